"""The closed word classes: determiners, prepositions, adverbials, conjunctions, modals."""

from __future__ import annotations

from heedful.grammar.lexical_entries import Adverb, Conjunction, Determiner, Marker, Modal, Preposition


def _determiner(
    english: str, german: str, declension: str, definite: bool = True, indeclinable: bool = False
) -> Determiner:
    return Determiner(english, german, declension, definite, indeclinable, frozenset({english} - {"", "a"}))


THE = _determiner("the", "d", "weak")
THIS = _determiner("this", "dies", "weak")
THESE = _determiner("these", "dies", "weak")
EVERY = _determiner("every", "jed", "weak")
WHICH = _determiner("which", "welch", "weak")
A = _determiner("a", "ein", "mixed", definite=False)
ZERO_ARTICLE = _determiner("", "", "strong", definite=False, indeclinable=True)
TWO = _determiner("two", "zwei", "strong", definite=False, indeclinable=True)
THREE = _determiner("three", "drei", "strong", definite=False, indeclinable=True)
# German negates an indefinite object with kein; English has "not ... a" or "not ... any".
NEGATED_A = _determiner("a", "kein", "mixed", definite=False)
NEGATED_ANY = _determiner("any", "kein", "mixed", definite=False)
POSSESSIVES = (
    _determiner("my", "mein", "mixed"),
    _determiner("your", "dein", "mixed"),
    _determiner("his", "sein", "mixed"),
    _determiner("her", "ihr", "mixed"),
    _determiner("our", "unser", "mixed"),
    _determiner("their", "ihr", "mixed"),
)
# Relative possessives agree with their antecedent, not with the noun they modify, so they have no endings.
WHOSE_DESSEN = _determiner("whose", "dessen", "strong", indeclinable=True)
WHOSE_DEREN = _determiner("whose", "deren", "strong", indeclinable=True)

IN = Preposition("in", "in", "dat")
AT = Preposition("at", "an", "dat")
AT_MARKET = Preposition("at", "auf", "dat")
ON_ISLAND = Preposition("on", "auf", "dat")
ON_BEACH = Preposition("on", "an", "dat")
INTO = Preposition("into", "in", "acc")
TO = Preposition("to", "zu", "dat")
THROUGH = Preposition("through", "durch", "acc")
AROUND = Preposition("around", "um", "acc")
NEAR = Preposition("near", "bei", "dat")
WITH = Preposition("with", "mit", "dat")
WITHOUT = Preposition("without", "ohne", "acc")
FOR = Preposition("for", "für", "acc")
FROM = Preposition("from", "von", "dat")
AFTER = Preposition("after", "nach", "dat")
BEFORE = Preposition("before", "vor", "dat")
ON = Preposition("on", "auf", "dat")
UNDER = Preposition("under", "unter", "dat")
NEXT_TO = Preposition("next to", "neben", "dat")
BEHIND = Preposition("behind", "hinter", "dat")
IN_FRONT_OF = Preposition("in front of", "vor", "dat")
# Two-way prepositions take the accusative when they express a direction.
ON_DIRECTION = Preposition("on", "auf", "acc")
UNDER_DIRECTION = Preposition("under", "unter", "acc")
NEXT_TO_DIRECTION = Preposition("next to", "neben", "acc")

PAST_ADVERBIALS = (
    Adverb("yesterday", "gestern", "early"),
    Adverb("last week", "letzte Woche", "early"),
    Adverb("last year", "letztes Jahr", "early"),
    Adverb("this morning", "heute Morgen", "early"),
    Adverb("on Monday", "am Montag", "early"),
    Adverb("in the evening", "am Abend", "early"),
)
PRESENT_ADVERBIALS = (
    Adverb("today", "heute", "early"),
    Adverb("now", "jetzt", "early"),
)
FUTURE_ADVERBIALS = (
    Adverb("tomorrow", "morgen", "early"),
    Adverb("next week", "nächste Woche", "early"),
    Adverb("next year", "nächstes Jahr", "early"),
    Adverb("tomorrow morning", "morgen früh", "early"),
    Adverb("on Saturday", "am Samstag", "early"),
    Adverb("in the evening", "am Abend", "early"),
)
FREQUENCY_ADVERBIALS = (Adverb("every day", "jeden Tag", "early"), Adverb("every week", "jede Woche", "early"))
# They precede the English verb; never follows the objects in German, as nicht does.
FREQUENCY_ADVERBS = (
    Adverb("always", "immer", "early"),
    Adverb("often", "oft", "early"),
    Adverb("sometimes", "manchmal", "early"),
    Adverb("usually", "meistens", "early"),
    Adverb("never", "nie", "late"),
)
ALREADY = Adverb("already", "schon", "late")

BECAUSE = Conjunction("because", "weil")
ALTHOUGH = Conjunction("although", "obwohl")
IF = Conjunction("if", "wenn")
AS_SOON_AS = Conjunction("as soon as", "sobald")
BEFORE_CLAUSE = Conjunction("before", "bevor")
WHILE = Conjunction("while", "während")
THAT = Conjunction("that", "dass")
WHETHER = Conjunction("whether", "ob")
IN_ORDER_TO = Conjunction("in order", "um")

CAN = Modal(
    {"present": "can", "past": "could"}, None, ("kann", "kannst", "können"), "konnte",
    frozenset({"can", "could", "cannot"}),
)  # fmt: skip
SHOULD = Modal({"present": "should"}, None, ("sollte", "solltest", "sollten"), "sollte", frozenset({"should"}))
MUST = Modal({"present": "must"}, None, ("muss", "musst", "müssen"), "musste", frozenset({"must"}))
HAVE_TO = Modal({}, ("have", "has", "had"), ("muss", "musst", "müssen"), "musste", frozenset({"have", "has", "had"}))
WANT = Modal(
    {}, ("want", "wants", "wanted"), ("will", "willst", "wollen"), "wollte",
    frozenset({"want", "wants", "wanted"}),
)  # fmt: skip
ALLOWED = Modal({}, None, ("darf", "darfst", "dürfen"), "durfte", frozenset({"allowed"}))
MODALS = (CAN, HAVE_TO, WANT, ALLOWED, SHOULD, MUST)

AND = Conjunction("and", "und")
BUT = Conjunction("but", "aber")
VERY = Adverb("very", "sehr", "late")
TOO = Adverb("too", "zu", "late")
WHERE = Adverb("where", "wo", "early")
WHERE_TO = Adverb("where", "wohin", "early")
WHEN = Adverb("when", "wann", "early")
WHY = Adverb("why", "warum", "early")

NOT = Marker(frozenset({"not", "cannot"}))
WILL = Marker(frozenset({"will"}))
BE_AUXILIARY = Marker(frozenset({"am", "are", "is"}))
HAVE_AUXILIARY = Marker(frozenset({"have", "has"}))
