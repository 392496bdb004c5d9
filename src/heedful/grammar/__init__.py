"""The built-in language pair: English to German, from a grammar of our own.

It lets the product show its main job, and the tests know the truth, with no download. A pair is a pure function
of a seed and an index. Both sentences are built from one abstract structure, so the German is the translation
by construction, and carries the names of the phenomena that it shows.

One English sentence has exactly one German translation here. Where English leaves a choice, this is the reading:

- you, your: one person addressed informally (du, dein).
- Nouns of profession or role are masculine (the teacher: der Lehrer), except where English says otherwise
  (queen, nurse, actress, waitress).
- it: always stands for the one thing or animal named earlier in the sentence, and takes its German gender. he, she
  and they stand for people, they also for things; the child and the girl, in the singular, are never taken up again
  by a pronoun (the children and the girls are: they).
- his, her, their: sein, ihr, ihr, whoever is meant.
- Simple past: the Perfekt (opened: hat aufgemacht); be, have and modals: the preterite (war, hatte, konnte).
- Present perfect, always with already: the Perfekt with schon.
- Simple present and progressive: the Präsens. will: werden with infinitive.
- Verbs of position (lie, sit, stand) have haben in the Perfekt.
- can: können; could: konnte (was able to); have to and must: müssen; want to: wollen; be allowed to: dürfen;
  should: sollte. must is never negated.
- if: wenn; whether: ob; as soon as: sobald; while: während; when asks for the time only (wann).
- who as an object, also with a preposition left behind: wen, wem, auf wen, by the German verb.
- where: wohin with go, wo with all others.
- not with a, any or a bare noun as object: kein; with all others nicht, after the objects and before
  prepositional phrases. never (nie) and already (schon) stand where nicht does, but before an object that is
  indefinite (trinkt den Kaffee nie, trinkt nie Kaffee).
- on, under and next to after place are directions (auf den Tisch, neben den Tisch), as all two-way prepositions would
  be there; else they are positions (auf dem Tisch). into: in with accusative; to: zu; near: bei.
- at: an, but auf for markets; on: auf (auf der Insel), but an for beaches (am Strand, an einem Strand).
- Order: in German, adverbials of time stand first where they do so in English, else before the noun objects; the
  relative clause of an object follows the clause that it belongs to.
- Commas: two main clauses have one before and and but in English, before aber but not before und in German. German
  sets off every subordinate, relative and infinitive clause; English only a subordinate clause that comes first.
- Contractions are always made with the article the: im, am, zum, zur, beim, vom, ins,
  ans; no others (auf das, für das).
- Every verb has one translation in each of its uses: know is kennen with an object and wissen with a clause; look
  for: suchen; look at: ansehen; place: legen.

The files, in the order in which they are best read: words, nouns, adjectives, function_words and verbs (the
lexicon); german_forms and english_forms (morphology); structure, german and english (syntax); choices, phrases,
clauses, relatives and sentences (what is said); phenomena, pair, splits; derive (the grammar run backwards).
"""

from heedful.grammar.derivations import is_derivable
from heedful.grammar.phenomena import PHENOMENA
from heedful.grammar.sentence_pair import SentencePair, make_pair
from heedful.grammar.splits import SPLITS, assign_split, pairs

__all__ = ["PHENOMENA", "SPLITS", "SentencePair", "assign_split", "is_derivable", "make_pair", "pairs"]
