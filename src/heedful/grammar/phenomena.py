"""The grammatical phenomena that a German sentence can contain."""

PHENOMENON_DESCRIPTIONS: dict[str, str] = {
    "accusative-preposition": "a preposition with the accusative (für, durch, in with a direction)",
    "adjective": "an inflected adjective before its noun",
    "contraction": "a preposition contracted with the article (im, zum, ins)",
    "coordination": "two main clauses joined by und or aber",
    "dative": "an object in the dative",
    "dative-preposition": "a preposition with the dative (mit, von, in with a position)",
    "ditransitive": "a dative and an accusative object of one verb",
    "future": "werden with an infinitive at the end",
    "genitive-relative": "dessen or deren",
    "inversion": "the subject after the finite verb in a main clause",
    "modal": "a modal with an infinitive at the end",
    "negation-kein": "an indefinite object negated with kein",
    "negation-nicht": "negation with nicht",
    "perfect": "haben or sein with a participle at the end",
    "plural": "a noun in the plural",
    "predicative": "an uninflected adjective after sein",
    "pronoun": "a pronoun that agrees with a noun earlier in the sentence",
    "question": "a question",
    "relative": "a relative clause",
    "separable": "a verb with a separable prefix, separated or not",
    "subordinate": "a clause with a subordinating conjunction",
    "verb-final": "a finite verb at the end of its clause",
    "weak-noun": "a weak masculine noun with its ending (den Jungen)",
    "zu-infinitive": "an infinitive with zu",
}
PHENOMENA: tuple[str, ...] = tuple(sorted(PHENOMENON_DESCRIPTIONS))
