"""German morphology: pure functions and paradigms from a word and its features to its form.

The key of a noun phrase's column is its gender, or "p" for the plural, which has no gender in German.
"""

from __future__ import annotations

from functools import cache

from heedful.grammar.words import Adjective, Agreement, Case, Determiner, Modal, Noun, Verb

# Endings of dieser (and, with an a-vowel, of the article) by case and gender or plural.
_STRONG = {
    ("nom", "m"): "er", ("nom", "f"): "e", ("nom", "n"): "es", ("nom", "p"): "e",
    ("acc", "m"): "en", ("acc", "f"): "e", ("acc", "n"): "es", ("acc", "p"): "e",
    ("dat", "m"): "em", ("dat", "f"): "er", ("dat", "n"): "em", ("dat", "p"): "en",
}  # fmt: skip
DEFINITE = {
    ("nom", "m"): "der", ("nom", "f"): "die", ("nom", "n"): "das", ("nom", "p"): "die",
    ("acc", "m"): "den", ("acc", "f"): "die", ("acc", "n"): "das", ("acc", "p"): "die",
    ("dat", "m"): "dem", ("dat", "f"): "der", ("dat", "n"): "dem", ("dat", "p"): "den",
}  # fmt: skip
# ein, kein and the possessives lack an ending exactly here; the adjective then shows the gender itself.
_NO_ENDING = frozenset({("nom", "m"), ("nom", "n"), ("acc", "n")})
_WEAK = {
    key: "e" if key[1] != "p" and key[0] != "dat" and key != ("acc", "m") else "en" for key in _STRONG
}  # der alte, den alten, dem alten, die alten
_MIXED = {key: _STRONG[key] if key in _NO_ENDING else _WEAK[key] for key in _STRONG}
_ADJECTIVE_ENDINGS = {"strong": _STRONG, "weak": _WEAK, "mixed": _MIXED}

RELATIVE_PRONOUNS = {**DEFINITE, ("dat", "p"): "denen"}
CONTRACTIONS = {
    ("in", "dem"): "im", ("an", "dem"): "am", ("zu", "dem"): "zum", ("zu", "der"): "zur",
    ("bei", "dem"): "beim", ("von", "dem"): "vom", ("in", "das"): "ins", ("an", "das"): "ans",
}  # fmt: skip
# (person and number, gender of what the pronoun stands for) -> nominative, accusative, dative
PRONOUNS = {
    ("1s", ""): {"nom": "ich", "acc": "mich", "dat": "mir"},
    ("2s", ""): {"nom": "du", "acc": "dich", "dat": "dir"},
    ("3s", "m"): {"nom": "er", "acc": "ihn", "dat": "ihm"},
    ("3s", "f"): {"nom": "sie", "acc": "sie", "dat": "ihr"},
    ("3s", "n"): {"nom": "es", "acc": "es", "dat": "ihm"},
    ("1p", ""): {"nom": "wir", "acc": "uns", "dat": "uns"},
    ("3p", ""): {"nom": "sie", "acc": "sie", "dat": "ihnen"},
}
WHO = {"nom": "wer", "acc": "wen", "dat": "wem"}
WHAT = {"nom": "was", "acc": "was"}

SEIN = {"1s": "bin", "2s": "bist", "3s": "ist", "1p": "sind", "3p": "sind"}
HABEN = {"1s": "habe", "2s": "hast", "3s": "hat", "1p": "haben", "3p": "haben"}
WERDEN = {"1s": "werde", "2s": "wirst", "3s": "wird", "1p": "werden", "3p": "werden"}
_WEAK_PAST = {"1s": "", "2s": "st", "3s": "", "1p": "n", "3p": "n"}
WAR = {"1s": "war", "2s": "warst", "3s": "war", "1p": "waren", "3p": "waren"}
HATTE = {who: "hatte" + ending for who, ending in _WEAK_PAST.items()}
AUXILIARIES = {"sein": SEIN, "haben": HABEN}


@cache
def noun_form(noun: Noun, plural: bool, case: Case) -> str:
    """The noun in its case: weak masculines change in the singular, the dative plural adds -n."""
    if not plural:
        return noun.weak if noun.weak and case != "nom" else noun.german
    if case == "dat" and not noun.german_plural.endswith(("n", "s")):
        return noun.german_plural + "n"
    return noun.german_plural


@cache
def determiner_form(determiner: Determiner, column: str, case: Case) -> str:
    """The determiner in its case and gender or plural; "" where there is no article."""
    if determiner.bare:
        return determiner.german
    if determiner.german == "d":
        return DEFINITE[case, column]
    if determiner.declension == "mixed" and (case, column) in _NO_ENDING:
        return determiner.german
    return determiner.german + _STRONG[case, column]


@cache
def adjective_form(adjective: Adjective, declension: str, column: str, case: Case) -> str:
    """The adjective before a noun: the ending shows the case only where the determiner does not."""
    return adjective.stem + _ADJECTIVE_ENDINGS[declension][case, column]


def _stem(infinitive: str) -> str:
    return infinitive[:-2] if infinitive.endswith("en") else infinitive[:-1]


def regular_er(infinitive: str) -> str:
    """er sagt, er arbeitet."""
    stem = _stem(infinitive)
    return stem + ("et" if stem.endswith(("t", "d")) else "t")


def regular_du(infinitive: str) -> str:
    """du sagst, du arbeitest, du tanzt."""
    stem = _stem(infinitive)
    if stem.endswith(("s", "ß", "z", "x")):
        return stem + "t"
    return stem + ("est" if stem.endswith(("t", "d")) else "st")


def present(verb: Verb, who: Agreement) -> str:
    """The finite present without its separable prefix."""
    if verb.german == "sein":
        return SEIN[who]
    if who == "3s":
        return verb.er
    if who == "2s":
        return verb.du
    if who != "1s":
        return verb.german
    return "weiß" if verb.german == "wissen" else _first_person(verb.german)


def _first_person(infinitive: str) -> str:
    """ich mache, ich füttere."""
    return infinitive[:-1] if infinitive.endswith("en") else infinitive[:-1] + "e"


def modal_form(modal: Modal, tense: str, who: Agreement) -> str:
    """The finite form of a modal; its past is the preterite."""
    if tense == "past":
        return modal.german_past + _WEAK_PAST[who]
    same, du, wir = modal.german_present
    return {"1s": same, "3s": same, "2s": du}.get(who, wir)


def infinitive(verb: Verb) -> str:
    """The infinitive as it stands after a modal or werden."""
    return verb.prefix + verb.german


def zu_infinitive(verb: Verb) -> str:
    """The infinitive with zu, which goes between a separable prefix and its verb: aufzumachen."""
    return f"{verb.prefix}zu{verb.german}" if verb.prefix else f"zu {verb.german}"


@cache
def verb_group(verb: Verb, tense: str, modal: Modal | None, who: Agreement) -> tuple[str, str]:
    """The finite verb and what closes the clause: a participle or an infinitive, or "".

    Both English simple past and present perfect become the Perfekt, except of be and have (war, hatte).
    The separable prefix of a finite verb is left to the caller, for its place depends on the clause.
    """
    if modal is not None:
        return modal_form(modal, tense, who), infinitive(verb)
    if tense == "future":
        return WERDEN[who], infinitive(verb)
    if tense in ("past", "perfect"):
        if verb.german in AUXILIARIES:
            return (WAR if verb.german == "sein" else HATTE)[who], ""
        return AUXILIARIES[verb.auxiliary][who], verb.german_participle
    return present(verb, who), ""
