"""Full stops that do not end a sentence: titles, abbreviations, initials and ordinals.

All lists are closed. Where neither list nor context decides, the full stop ends the sentence: a model trained on single
sentences may drop the second of two, which is worse than one sentence cut in two.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from heedful.text.languages import base


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Before a name.
TITLES = _words(
    "Mr Mrs Ms Mx Messrs Dr Drs Prof Rev Fr Hon Pres Gov Sen Rep Gen Col Maj Capt Cpt Lt Sgt Cmdr St Ste Mt "
    "Hr Hrn Frl Mme Mmes Mlle Mlles Mgr Sr Sra Srta Sres Dra Dña Sto Sta Exmo Exma Sig Sigg Dott Avv Dhr Mevr Mw"
)
TITLES_OF = {"fr": _words("M MM"), "es": _words("D"), "it": _words("S"), "ru": _words("ул им проф акад")}
# Before the rest of the sentence.
LEAD_INS = _words(
    "vs cf viz approx ca incl excl e.g E.g i.e I.e "
    "z.B Z.B d.h D.h u.a U.a i.d.R bzw bspw vgl Vgl inkl exkl zzgl sog evtl ggf einschl "
    "p.ex P.ex c.-à-d p.ej P.ej bijv d.w.z t.ex bl.a f.eks tzn např напр"
)
_SPACED = re.compile(r"(?<!\w)(?:[zZ]\.\s?B|[dD]\.\s?h|[uU]\.\s?a|e\.\s?g|i\.\s?e|p\.\s?ex)$")
# Before a number.
BEFORE_NUMBERS = _words(
    "No Nos Nr Nrn Nº nr č št p pp Fig Figs Abb Vol Bd Abs Kap Ch Sec Eq Ziff Tel "
    "Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Okt Nov Dec Dez"
)

# Words that begin a sentence and never a name: a title or an initial cannot precede them.
OPENERS = _words(
    "The This That These Those There Here He She It We They You I My His Her Its Our Your Their And But Or So Then "
    "When Where What Who Why How If As At In On For From With To By After Before Not Yes No Now Both Some Many All One "
    "Der Die Das Den Dem Des Ein Eine Einen Einem Einer Er Sie Es Wir Ihr Ich Du Man Mein Sein Ihre Und Aber Oder Dann "
    "Wenn Wo Was Wer Wie Warum Dort Da Hier Im Am Auf Mit Von Zu Nach Vor Ja Nein Nicht Kein Keine Diese Dieser Dieses "
    "Il Elle Ils Elles Nous Vous On Je Tu Les Un Une Des Ce Cette Ces Et Mais Puis Dans "
    "Los Las Una Yo Ella Ellos Ellas Nosotros Pero Este Esta Lo Gli Io Lui Lei Noi Het Een Hij Zij Wij Maar "
    "Он Она Оно Они Мы Вы Ты Это Но Потом"
)
# Nouns that a single letter follows: vitamin C, plan B.
_LABELLED = _words(
    "Plan Vitamin Hepatitis Type Typ Group Gruppe Class Klasse Option Section Figure Table Appendix Team Room Part "
    "Teil Version Block Grade Level Model Line Linie Letter Buchstabe Buchstaben Point Punkt Haus Halle Gate"
)
CAPITALISED = _LABELLED | OPENERS  # capitalised, but not because they are names
_PRONOUNS_AND_NUMERALS = _words("I V X Я")  # I, the pronoun, and Henry V
NOUNS_HAVE_CAPITALS = ("de", "lb")  # in these languages a capital does not indicate a name
# German writes ordinals with a full stop. Czech, Danish, Finnish and others do too, but continue in lower case.
MONTHS_AND_CENTURIES = (
    *("Januar", "Jänner", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September", "Oktober"),
    *("November", "Dezember", "Jahrhundert", "Jahrhunderts", "Jahrtausend", "Jahrtausends", "Weltkrieg"),
    *("Weltkriege", "Weltkrieges", "Weltkriegs", "Jan.", "Feb.", "Aug.", "Sept.", "Okt.", "Nov.", "Dez.", "Jh."),
)
_AFTER_ORDINAL = re.compile(rf"(?:{'|'.join(map(re.escape, MONTHS_AND_CENTURIES))})(?!\w)")
_NEXT = re.compile(r"[^\w\s]*(\w+)")
OPENING = "\"'“„‘‚«»([¿¡-–—"
_LOOKED_AT = 40  # characters before and after
_LONGEST_LIST_NUMBER = 3  # digits


class _Context(NamedTuple):
    word: str  # before the full stop, without opening quotes and brackets
    previous: str  # the text before it; empty where a line or a quotation begins
    next_word: str
    after: str
    language: str


def is_abbreviation(text: str, stop: int, following: int, language: str) -> bool:
    """Return whether the full stop at `stop`, before `following`, is part of its word."""
    before = text[max(0, stop - _LOOKED_AT) : stop]
    after = text[following : following + _LOOKED_AT]
    if not before or before[-1].isspace():
        return False
    *previous, last = before.rsplit(maxsplit=1)
    word = last.lstrip(OPENING)
    if word in LEAD_INS or _SPACED.search(before) or (word in ("z", "Z") and after.startswith("B.")):
        return True
    next_word = found[1] if (found := _NEXT.match(after)) else ""
    is_first = not previous or last[0] in OPENING
    context = _Context(word, "" if is_first else previous[0], next_word, after, base(language))
    if word.isdecimal():
        is_list_number = is_first and stop < _LOOKED_AT and len(word) <= _LONGEST_LIST_NUMBER
        return is_list_number or _is_ordinal(context)
    if next_word[:1].isdigit():
        return word in BEFORE_NUMBERS
    return next_word not in OPENERS and next_word[:1].isupper() and (_is_title(context) or _is_initial(context))


def _is_ordinal(context: _Context) -> bool:
    return context.language in NOUNS_HAVE_CAPITALS and _AFTER_ORDINAL.match(context.after) is not None


def _is_title(context: _Context) -> bool:
    if context.word == "St" and not _precedes_saint(context.previous):
        return False
    return context.word in TITLES or context.word in TITLES_OF.get(context.language, ())


def _precedes_saint(text: str) -> bool:
    """Return whether St. after this text is a title.

    After a name or a number, it may be a street: 42nd St.
    """
    word = text.split()[-1].lstrip(OPENING) if text else ""
    is_lowercase = word.isalpha() and word.islower()
    return not word[-1:].isalnum() or is_lowercase or word in CAPITALISED


def _is_initial(context: _Context) -> bool:
    """Return whether a capital is an initial: first, or after an initial, title or name."""
    word, previous = context.word, context.previous
    if len(word) != 1 or not word.isupper():
        return False
    if not previous:
        return True
    if word in _PRONOUNS_AND_NUMERALS:
        return False
    is_name = _ends_in_name(previous) and context.language not in NOUNS_HAVE_CAPITALS
    return previous.endswith(".") or is_name


def _ends_in_name(text: str) -> bool:
    """Return whether the last word seems a name: capitalised, and not for another reason."""
    word = text.split()[-1].lstrip(OPENING) if text else ""
    return word.isalpha() and word[0].isupper() and word[1:].islower() and word not in CAPITALISED
