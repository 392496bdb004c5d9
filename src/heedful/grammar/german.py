"""From the abstract structure to German words, noting on the way which phenomena the sentence shows.

The order within a clause is fixed here once:

    opening · finite verb · subject · pronouns (accusative, dative) · early adverbial · dative · accusative ·
    late adverb or nicht · prepositional phrase or predicate · participle, infinitive or prefix

An indefinite accusative stands behind the late adverb (schon ein Buch, das Buch schon). In a dependent clause
the finite verb closes. The relative clause of an object follows the whole clause.
"""

from __future__ import annotations

from heedful.grammar import function_words as fw
from heedful.grammar.german_forms import (
    CONTRACTIONS,
    PRONOUNS,
    RELATIVE_PRONOUNS,
    WHAT,
    WHO,
    adjective_form,
    determiner_form,
    noun_form,
    verb_group,
    zu_infinitive,
)
from heedful.grammar.structure import (
    Clause,
    Nominal,
    NounPhrase,
    PrepositionalPhrase,
    Pronoun,
    Question,
    Sentence,
    fronted,
)
from heedful.grammar.words import Adverb, Case

_NEGATIVE = frozenset({fw.NO_A, fw.NO_ANY})
_TENSE_MARKS = {"past": "perfect", "perfect": "perfect", "future": "future"}


class German:
    """A German sentence in the making: its words so far, and what has been noticed about them."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.phenomena: set[str] = set()
        self.combinations: set[str] = set()
        self.distance = 0
        self._comma_due = False
        self._heads: dict[int, int] = {}  # identity of a noun phrase -> position of its noun
        self._extraposed: list[NounPhrase] = []

    def add(self, word: str) -> None:
        """Append a word (or a group that nothing can split), after a comma if one is due."""
        if self._comma_due:
            if self.words:
                self.words[-1] += ","
            self._comma_due = False
        if " " in word:
            self.words.extend(word.split(" "))
        else:
            self.words.append(word)

    def comma(self) -> None:
        """A comma before the next word, if there is one."""
        self._comma_due = True

    def agree(self, first: int, second: int) -> None:
        """Note that the words at two positions agree."""
        between = abs(second - first) - 1
        if between > self.distance:
            self.distance = between

    # Nominals

    def noun_phrase(self, phrase: NounPhrase, case: Case, preposition: str = "") -> None:
        """A noun phrase in its case, with the preposition before it, if any, contracted with the article."""
        noun, determiner, column = phrase.noun, phrase.determiner, phrase.column
        article = determiner_form(determiner, column, case)
        if preposition:
            if determiner is fw.THE and (preposition, article) in CONTRACTIONS:
                preposition, article = CONTRACTIONS[preposition, article], ""
                self.phenomena.add("contraction")
            self.add(preposition)
        words = [article] if article else []
        for adjective in phrase.adjectives:
            words.append(adjective_form(adjective, determiner.declension, column, case))
        words.append(noun_form(noun, phrase.plural, case))
        self.add(words[0])
        first = len(self.words) - 1
        self.words += words[1:]
        head = len(self.words) - 1
        self._heads[id(phrase)] = head
        self.agree(first, head)
        self._note_noun_phrase(phrase, case)

    def _note_noun_phrase(self, phrase: NounPhrase, case: Case) -> None:
        if phrase.adjectives:
            self.phenomena.add("adjective")
        if phrase.plural:
            self.phenomena.add("plural")
        elif phrase.noun.weak and case != "nom":
            self.phenomena.add("weak-noun")
        if phrase.determiner in _NEGATIVE:
            self.phenomena.add("negation-kein")
            self.combine(phrase, "negation-kein")
        if phrase.relative is not None:
            self.combine(phrase, "relative")

    def combine(self, item: Nominal | None, construction: str) -> None:
        """Note that a noun occurs in a construction; the unseen split is defined by these combinations."""
        if isinstance(item, NounPhrase):
            self.combinations.add(f"{item.noun.english}+{construction}")

    def nominal(self, item: Nominal, case: Case, preposition: str = "") -> None:
        """Any nominal in its case; the relative clause of a noun phrase is left to the caller."""
        if isinstance(item, NounPhrase):
            self.noun_phrase(item, case, preposition)
            return
        if preposition:
            self.add(preposition)
        if isinstance(item, Pronoun):
            self.add(PRONOUNS[item.agreement, item.gender][case])
            if item.antecedent is not None:
                self.phenomena.add("pronoun")
                self.combine(item.antecedent, "pronoun")
                self.agree(self._heads[id(item.antecedent)], len(self.words) - 1)
        elif isinstance(item, Question):
            self.add((WHO if item.person else WHAT)[case])
        else:
            self.add(RELATIVE_PRONOUNS[case, item.column])

    def prepositional_phrase(self, phrase: PrepositionalPhrase) -> None:
        preposition = phrase.preposition
        self.phenomena.add("dative-preposition" if preposition.case == "dat" else "accusative-preposition")
        self.combine(phrase.nominal, "preposition")
        self.nominal(phrase.nominal, preposition.case, preposition.german)

    def adverbial(self, item: Adverb | PrepositionalPhrase) -> None:
        if isinstance(item, Adverb):
            self.add(item.german)
        else:
            self.prepositional_phrase(item)

    def relative(self, phrase: NounPhrase) -> None:
        """The relative clause of a noun phrase, between commas."""
        assert phrase.relative is not None
        self.phenomena.add("relative")
        self.comma()
        position = len(self.words)
        if phrase.relative.phrase is not None and phrase.relative.phrase is fronted(phrase.relative):
            position += 1  # a preposition stands before the relative pronoun
        self.clause(phrase.relative)
        self.agree(self._heads[id(phrase)], position)
        if self.words[position].strip(",") in ("dessen", "deren"):
            self.phenomena.add("genitive-relative")
        self.comma()

    # Clauses

    def clause(self, clause: Clause) -> None:
        """A clause in the order that its mood asks for, without its conjunction."""
        outer, self._extraposed = self._extraposed, []
        front = fronted(clause)
        if clause.mood == "dependent":
            self._dependent(clause, front)
        elif clause.subject is None:
            self._middle(clause, front)
            self.add(zu_infinitive(clause.verb))
            self.phenomena.add("zu-infinitive")
        else:
            self._main(clause, front)
        self._note_clause(clause)
        for phrase in self._extraposed:
            self.relative(phrase)
        self._extraposed = outer

    def _main(self, clause: Clause, front: Nominal | PrepositionalPhrase | None) -> None:
        """Verb second, or first in a yes/no question and behind a subordinate clause."""
        assert clause.subject is not None
        finite, closing = verb_group(clause.verb, clause.tense, clause.modal, clause.subject.agreement)
        opened = self._opening(clause, front)
        if not opened and clause.mood not in ("polar", "inverted"):
            subject = self._subject(clause)
            self.add(finite)
            verb = len(self.words) - 1
        else:
            self.add(finite)
            verb = len(self.words) - 1
            subject = self._subject(clause)
            self.phenomena.add("inversion")
        self.agree(subject, verb)
        self._middle(clause, front)
        closing = closing or clause.verb.prefix
        if closing:
            self.add(closing)

    def _opening(self, clause: Clause, front: Nominal | PrepositionalPhrase | None) -> bool:
        """What stands before the finite verb instead of the subject; False if there is nothing."""
        if front is not None:
            self._front(clause, front)
        elif clause.question_adverb is not None:
            self.add(clause.question_adverb.german)
        elif clause.time is not None and clause.time_first:
            self.adverbial(clause.time)
        else:
            return False
        return True

    def _front(self, clause: Clause, front: Nominal | PrepositionalPhrase) -> None:
        if isinstance(front, PrepositionalPhrase):
            self.prepositional_phrase(front)
        else:
            self.nominal(front, "acc" if front is clause.accusative else "dat")

    def _dependent(self, clause: Clause, front: Nominal | PrepositionalPhrase | None) -> None:
        """The finite verb closes the clause, joined to its separable prefix."""
        assert clause.subject is not None
        finite, closing = verb_group(clause.verb, clause.tense, clause.modal, clause.subject.agreement)
        if front is not None:
            self._front(clause, front)
        subject = self._subject(clause)
        self._middle(clause, front)
        if closing:
            self.add(closing)
            self.add(finite)
        else:
            self.add(clause.verb.prefix + finite)
        self.agree(subject, len(self.words) - 1)
        self.phenomena.add("verb-final")
        self.combine(clause.subject, "verb-final")

    def _subject(self, clause: Clause) -> int:
        """The subject with its relative clause; returns the position of its head."""
        assert clause.subject is not None
        self.nominal(clause.subject, "nom")
        position = len(self.words) - 1
        if isinstance(clause.subject, NounPhrase) and clause.subject.relative is not None:
            self.relative(clause.subject)
        return position

    def _object(self, item: Nominal, case: Case) -> None:
        self.nominal(item, case)
        if isinstance(item, NounPhrase) and item.relative is not None:
            self._extraposed.append(item)

    def _middle(self, clause: Clause, front: Nominal | PrepositionalPhrase | None) -> None:
        """The middle field, without the subject."""
        accusative = None if clause.accusative is front else clause.accusative
        dative = None if clause.dative is front else clause.dative
        if isinstance(accusative, Pronoun):
            self.nominal(accusative, "acc")
        if isinstance(dative, Pronoun):
            self.nominal(dative, "dat")
        if clause.time is not None and not clause.time_first:
            self.adverbial(clause.time)
        if clause.adverb is not None and clause.adverb.place == "early":
            self.add(clause.adverb.german)
        if isinstance(dative, NounPhrase):
            self._object(dative, "dat")
        self._accusative_and_late(clause, accusative)
        if clause.phrase is not None and clause.phrase is not front:
            self.prepositional_phrase(clause.phrase)
        if clause.predicate is not None:
            if clause.predicate.degree is not None:
                self.add(clause.predicate.degree.german)
            self.add(clause.predicate.adjective.german)

    def _accusative_and_late(self, clause: Clause, accusative: Nominal | None) -> None:
        """Definite objects stand before nicht and its like, indefinite ones behind."""
        late = clause.adverb.german if clause.adverb is not None and clause.adverb.place == "late" else ""
        phrase = accusative if isinstance(accusative, NounPhrase) else None
        if clause.negated and (phrase is None or phrase.determiner not in _NEGATIVE):
            late = "nicht"
            self.phenomena.add("negation-nicht")
        if phrase is not None and phrase.determiner.definite:
            self._object(phrase, "acc")
        if late:
            self.add(late)
        if phrase is not None and not phrase.determiner.definite:
            self._object(phrase, "acc")

    def _note_clause(self, clause: Clause) -> None:
        notes = self.phenomena
        if clause.modal is not None:
            notes.add("modal")
        elif clause.tense in _TENSE_MARKS and not (clause.tense == "past" and clause.verb.frame in ("be", "have")):
            notes.add(_TENSE_MARKS[clause.tense])
            if clause.tense != "future":
                self.combine(clause.accusative, "perfect")
        if clause.verb.prefix:
            notes.add("separable")
            self.combine(clause.accusative, "separable")
        if clause.dative is not None:
            notes.add("dative")
            self.combine(clause.dative, "dative")
            if clause.accusative is not None:
                notes.add("ditransitive")
        if clause.predicate is not None:
            notes.add("predicative")
        if clause.mood in ("polar", "wh"):
            notes.add("question")
            self.combine(clause.subject, "question")

    # Sentences

    def sentence(self, sentence: Sentence) -> str:
        """The whole sentence, capitalised and with its punctuation."""
        conjunction = sentence.conjunction
        if conjunction is not None and sentence.conjunction_first:
            self.add(conjunction.german)
        self.clause(sentence.first)
        if sentence.second is not None:
            if conjunction is not fw.AND:
                self.comma()
            if conjunction is not None and not sentence.conjunction_first:
                self.add(conjunction.german)
            self.clause(sentence.second)
            if sentence.form in ("subordinate", "content"):
                self.phenomena.add("subordinate")
            elif sentence.form == "coordinate":
                self.phenomena.add("coordination")
        text = " ".join(self.words)
        end = "?" if sentence.first.mood in ("polar", "wh") else "."
        return text[0].upper() + text[1:] + end
