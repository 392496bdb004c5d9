"""English morphology: pure functions from a lexical entry and features to a form."""

from __future__ import annotations

from functools import cache

from heedful.grammar.lexical_entries import Agreement, Modal, Verb

SUBJECT_PRONOUNS = {
    ("1s", ""): "I", ("2s", ""): "you", ("3s", "m"): "he", ("3s", "f"): "she", ("3s", "n"): "it",
    ("1p", ""): "we", ("3p", ""): "they",
}  # fmt: skip
OBJECT_PRONOUNS = {
    ("1s", ""): "me", ("2s", ""): "you", ("3s", "m"): "him", ("3s", "f"): "her", ("3s", "n"): "it",
    ("1p", ""): "us", ("3p", ""): "them",
}  # fmt: skip

BE_PRESENT = {"1s": "am", "2s": "are", "3s": "is", "1p": "are", "3p": "are"}
BE_PAST = {"1s": "was", "2s": "were", "3s": "was", "1p": "were", "3p": "were"}


def _ends_in_consonant_y(base: str) -> bool:
    return base.endswith("y") and base[-2] not in "aeiou"


def verb_forms(base: str, past: str = "", participle: str = "", ing: str = "") -> tuple[str, str, str, str]:
    """Return third person, past, participle and -ing form; irregular forms take precedence."""
    if _ends_in_consonant_y(base):
        third, regular_past = base[:-1] + "ies", base[:-1] + "ied"
    elif base.endswith(("s", "sh", "ch", "x", "o")):
        third, regular_past = base + "es", base + "ed"
    else:
        third, regular_past = base + "s", base + ("d" if base.endswith("e") else "ed")
    regular_ing = (base[:-1] if base.endswith("e") and not base.endswith("ee") else base) + "ing"
    third = {"be": "is", "have": "has"}.get(base, third)
    return third, past or regular_past, participle or past or regular_past, ing or regular_ing


def indefinite_article(next_word: str) -> str:
    """Return a or an by spelling, which matches the pronunciation throughout the lexicon."""
    return "an" if next_word[0] in "aeiou" else "a"


@cache
def verb_group(verb: Verb, tense: str, modal: Modal | None, agreement: Agreement, do_support: bool) -> tuple[str, str]:
    """Return the auxiliary ("" if none) and the rest of the verb group, without particle.

    `do_support` requires an auxiliary where a plain statement has none, as in questions and negation.
    """
    if modal is not None:
        return _modal_group(verb, tense, modal, agreement, do_support)
    if tense == "future":
        return "will", verb.english
    if tense == "perfect":
        return ("has" if agreement == "3s" else "have"), verb.participle
    if verb.english == "be":
        return (BE_PRESENT if tense == "present" else BE_PAST)[agreement], ""
    if tense == "progressive":
        return BE_PRESENT[agreement], verb.ing_form
    return _simple_group(verb.english, verb.third_person, verb.past, tense, agreement, do_support)


def _simple_group(
    base: str, third: str, past: str, tense: str, agreement: Agreement, do_support: bool
) -> tuple[str, str]:
    if tense == "past":
        return ("did", base) if do_support else ("", past)
    if agreement == "3s":
        return ("does", base) if do_support else ("", third)
    return ("do", base) if do_support else ("", base)


def _modal_group(verb: Verb, tense: str, modal: Modal, agreement: Agreement, do_support: bool) -> tuple[str, str]:
    if modal.english:
        return modal.english[tense], verb.english
    if modal.english_verb is None:
        return (BE_PRESENT if tense == "present" else BE_PAST)[agreement], f"allowed to {verb.english}"
    auxiliary, form = _simple_group(*modal.english_verb, tense, agreement, do_support)
    return auxiliary, f"{form} to {verb.english}"
