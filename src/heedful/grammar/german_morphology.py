"""German morphology: pure functions and paradigms from a lexical entry to a form.

`gender_number` is the gender of a singular noun phrase, or "p": the German plural does not distinguish gender.
"""

from __future__ import annotations

from functools import cache

from heedful.grammar.lexical_entries import Adjective, Agreement, Case, Determiner, Modal, Noun, Verb

# Strong endings (dieser) by case and gender or plural.
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
# ein, kein and the possessives have no ending here, so the adjective takes the strong ending.
_ENDINGLESS = frozenset({("nom", "m"), ("nom", "n"), ("acc", "n")})
_WEAK = {
    key: "e" if key[1] != "p" and key[0] != "dat" and key != ("acc", "m") else "en" for key in _STRONG
}  # der alte, den alten, dem alten, die alten
_MIXED = {key: _STRONG[key] if key in _ENDINGLESS else _WEAK[key] for key in _STRONG}
_ADJECTIVE_ENDINGS = {"strong": _STRONG, "weak": _WEAK, "mixed": _MIXED}

RELATIVE_PRONOUNS = {**DEFINITE, ("dat", "p"): "denen"}
CONTRACTIONS = {
    ("in", "dem"): "im", ("an", "dem"): "am", ("zu", "dem"): "zum", ("zu", "der"): "zur",
    ("bei", "dem"): "beim", ("von", "dem"): "vom", ("in", "das"): "ins", ("an", "das"): "ans",
}  # fmt: skip
# (agreement, gender of the referent) -> form by case
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
HATTE = {agreement: "hatte" + ending for agreement, ending in _WEAK_PAST.items()}
AUXILIARIES = {"sein": SEIN, "haben": HABEN}


@cache
def noun_form(noun: Noun, plural: bool, case: Case) -> str:
    """Return the noun form; weak masculines inflect and the dative plural adds -n."""
    if not plural:
        return noun.weak_form if noun.weak_form and case != "nom" else noun.german
    if case == "dat" and not noun.german_plural.endswith(("n", "s")):
        return noun.german_plural + "n"
    return noun.german_plural


@cache
def determiner_form(determiner: Determiner, gender_number: str, case: Case) -> str:
    """Return the inflected determiner, or "" for the zero article."""
    if determiner.indeclinable:
        return determiner.german
    if determiner.german == "d":
        return DEFINITE[case, gender_number]
    if determiner.declension == "mixed" and (case, gender_number) in _ENDINGLESS:
        return determiner.german
    return determiner.german + _STRONG[case, gender_number]


@cache
def adjective_form(adjective: Adjective, declension: str, gender_number: str, case: Case) -> str:
    """Return the attributive adjective with its strong, weak or mixed ending."""
    return adjective.stem + _ADJECTIVE_ENDINGS[declension][case, gender_number]


def _verb_stem(infinitive: str) -> str:
    return infinitive[:-2] if infinitive.endswith("en") else infinitive[:-1]


def regular_er_form(infinitive: str) -> str:
    """Return the regular third person singular: er sagt, er arbeitet."""
    stem = _verb_stem(infinitive)
    return stem + ("et" if stem.endswith(("t", "d")) else "t")


def regular_du_form(infinitive: str) -> str:
    """Return the regular second person singular: du sagst, du arbeitest, du tanzt."""
    stem = _verb_stem(infinitive)
    if stem.endswith(("s", "ß", "z", "x")):
        return stem + "t"
    return stem + ("est" if stem.endswith(("t", "d")) else "st")


def present_form(verb: Verb, agreement: Agreement) -> str:
    """Return the finite present form without its separable prefix."""
    if verb.german == "sein":
        return SEIN[agreement]
    if agreement == "3s":
        return verb.er_form
    if agreement == "2s":
        return verb.du_form
    if agreement != "1s":
        return verb.german
    return "weiß" if verb.german == "wissen" else _regular_ich_form(verb.german)


def _regular_ich_form(infinitive: str) -> str:
    """Return the regular first person singular: ich mache, ich füttere."""
    return infinitive[:-1] if infinitive.endswith("en") else infinitive[:-1] + "e"


def modal_form(modal: Modal, tense: str, agreement: Agreement) -> str:
    """Return the finite form of a modal; the past is the preterite."""
    if tense == "past":
        return modal.german_past + _WEAK_PAST[agreement]
    ich_er, du, wir = modal.german_present
    return {"1s": ich_er, "3s": ich_er, "2s": du}.get(agreement, wir)


def infinitive(verb: Verb) -> str:
    """Return the infinitive with its separable prefix."""
    return verb.prefix + verb.german


def zu_infinitive(verb: Verb) -> str:
    """Return the zu-infinitive; zu follows a separable prefix (aufzumachen)."""
    return f"{verb.prefix}zu{verb.german}" if verb.prefix else f"zu {verb.german}"


@cache
def verb_group(verb: Verb, tense: str, modal: Modal | None, agreement: Agreement) -> tuple[str, str]:
    """Return the finite verb and the participle or infinitive that closes the clause, or "".

    Simple past and present perfect become the Perfekt, except for be and have (war, hatte). The caller places the
    separable prefix of a finite verb, because its position depends on the clause.
    """
    if modal is not None:
        return modal_form(modal, tense, agreement), infinitive(verb)
    if tense == "future":
        return WERDEN[agreement], infinitive(verb)
    if tense in ("past", "perfect"):
        if verb.german in AUXILIARIES:
            return (WAR if verb.german == "sein" else HATTE)[agreement], ""
        return AUXILIARIES[verb.auxiliary][agreement], verb.german_participle
    return present_form(verb, agreement), ""
