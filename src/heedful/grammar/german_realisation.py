"""Surface realisation in German, with a record of the phenomena in the sentence.

The word order of a clause:

    prefield · finite verb · subject · pronouns (accusative, dative) · early adverbial · dative · accusative ·
    late adverb or nicht · prepositional phrase or predicate · participle, infinitive or prefix

An indefinite accusative follows the late adverb (schon ein Buch, but das Buch schon). A dependent clause is
verb-final. The relative clause of an object is extraposed to the end of the clause.
"""

from __future__ import annotations

from heedful.grammar import function_words as fw
from heedful.grammar.abstract_syntax import (
    Clause,
    InterrogativePronoun,
    Nominal,
    NounPhrase,
    PrepositionalPhrase,
    Pronoun,
    Sentence,
    fronted_constituent,
)
from heedful.grammar.german_morphology import (
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
from heedful.grammar.lexical_entries import Adverb, Case

_KEIN_DETERMINERS = frozenset({fw.NEGATED_A, fw.NEGATED_ANY})
_TENSE_PHENOMENA = {"past": "perfect", "perfect": "perfect", "future": "future"}


class GermanRealiser:
    """Builds one German sentence word by word and records its phenomena."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.phenomena: set[str] = set()
        self.combinations: set[str] = set()
        self.agreement_distance = 0
        self._comma_pending = False
        self._head_positions: dict[int, int] = {}  # id of a noun phrase -> position of its noun
        self._extraposed: list[NounPhrase] = []

    def add(self, word: str) -> None:
        """Append a word or fixed group of words, after a comma if one is pending."""
        if self._comma_pending:
            if self.words:
                self.words[-1] += ","
            self._comma_pending = False
        if " " in word:
            self.words.extend(word.split(" "))
        else:
            self.words.append(word)

    def require_comma(self) -> None:
        """Require a comma before the next word, if there is one."""
        self._comma_pending = True

    def record_agreement(self, first: int, second: int) -> None:
        """Record that the words at two positions agree."""
        between = abs(second - first) - 1
        if between > self.agreement_distance:
            self.agreement_distance = between

    # Nominals

    def realise_noun_phrase(self, phrase: NounPhrase, case: Case, preposition: str = "") -> None:
        """Realise a noun phrase; contract a preposition before it with the article."""
        noun, determiner, gender_number = phrase.noun, phrase.determiner, phrase.gender_number
        article = determiner_form(determiner, gender_number, case)
        if preposition:
            if determiner is fw.THE and (preposition, article) in CONTRACTIONS:
                preposition, article = CONTRACTIONS[preposition, article], ""
                self.phenomena.add("contraction")
            self.add(preposition)
        words = [article] if article else []
        for adjective in phrase.adjectives:
            words.append(adjective_form(adjective, determiner.declension, gender_number, case))
        words.append(noun_form(noun, phrase.plural, case))
        self.add(words[0])
        first = len(self.words) - 1
        self.words += words[1:]
        head = len(self.words) - 1
        self._head_positions[id(phrase)] = head
        self.record_agreement(first, head)
        self._record_noun_phrase(phrase, case)

    def _record_noun_phrase(self, phrase: NounPhrase, case: Case) -> None:
        if phrase.adjectives:
            self.phenomena.add("adjective")
        if phrase.plural:
            self.phenomena.add("plural")
        elif phrase.noun.weak_form and case != "nom":
            self.phenomena.add("weak-noun")
        if phrase.determiner in _KEIN_DETERMINERS:
            self.phenomena.add("negation-kein")
            self.record_combination(phrase, "negation-kein")
        if phrase.relative_clause is not None:
            self.record_combination(phrase, "relative")

    def record_combination(self, item: Nominal | None, construction: str) -> None:
        """Record that a noun occurs in a construction; these pairs define the unseen split."""
        if isinstance(item, NounPhrase):
            self.combinations.add(f"{item.noun.english}+{construction}")

    def realise_nominal(self, item: Nominal, case: Case, preposition: str = "") -> None:
        """Realise any nominal without its relative clause, which the caller places."""
        if isinstance(item, NounPhrase):
            self.realise_noun_phrase(item, case, preposition)
            return
        if preposition:
            self.add(preposition)
        if isinstance(item, Pronoun):
            self.add(PRONOUNS[item.agreement, item.gender][case])
            if item.antecedent is not None:
                self.phenomena.add("pronoun")
                self.record_combination(item.antecedent, "pronoun")
                self.record_agreement(self._head_positions[id(item.antecedent)], len(self.words) - 1)
        elif isinstance(item, InterrogativePronoun):
            self.add((WHO if item.person else WHAT)[case])
        else:
            self.add(RELATIVE_PRONOUNS[case, item.gender_number])

    def realise_prepositional_phrase(self, phrase: PrepositionalPhrase) -> None:
        preposition = phrase.preposition
        self.phenomena.add("dative-preposition" if preposition.case == "dat" else "accusative-preposition")
        self.record_combination(phrase.nominal, "preposition")
        self.realise_nominal(phrase.nominal, preposition.case, preposition.german)

    def realise_adverbial(self, item: Adverb | PrepositionalPhrase) -> None:
        if isinstance(item, Adverb):
            self.add(item.german)
        else:
            self.realise_prepositional_phrase(item)

    def realise_relative_clause(self, phrase: NounPhrase) -> None:
        """Realise the relative clause of a noun phrase, between commas."""
        assert phrase.relative_clause is not None
        self.phenomena.add("relative")
        self.require_comma()
        position = len(self.words)
        if (
            phrase.relative_clause.prepositional_phrase is not None
            and phrase.relative_clause.prepositional_phrase is fronted_constituent(phrase.relative_clause)
        ):
            position += 1  # a preposition precedes the relative pronoun
        self.realise_clause(phrase.relative_clause)
        self.record_agreement(self._head_positions[id(phrase)], position)
        if self.words[position].strip(",") in ("dessen", "deren"):
            self.phenomena.add("genitive-relative")
        self.require_comma()

    # Clauses

    def realise_clause(self, clause: Clause) -> None:
        """Realise a clause in the word order of its mood, without its conjunction."""
        outer, self._extraposed = self._extraposed, []
        front = fronted_constituent(clause)
        if clause.mood == "dependent":
            self._realise_dependent_clause(clause, front)
        elif clause.subject is None:
            self._realise_middle_field(clause, front)
            self.add(zu_infinitive(clause.verb))
            self.phenomena.add("zu-infinitive")
        else:
            self._realise_main_clause(clause, front)
        self._record_clause(clause)
        for phrase in self._extraposed:
            self.realise_relative_clause(phrase)
        self._extraposed = outer

    def _realise_main_clause(self, clause: Clause, front: Nominal | PrepositionalPhrase | None) -> None:
        """Realise a main clause: verb-second, or verb-first if polar or inverted."""
        assert clause.subject is not None
        finite, nonfinite = verb_group(clause.verb, clause.tense, clause.modal, clause.subject.agreement)
        prefield_filled = self._realise_prefield(clause, front)
        if not prefield_filled and clause.mood not in ("polar", "inverted"):
            subject = self._realise_subject(clause)
            self.add(finite)
            verb = len(self.words) - 1
        else:
            self.add(finite)
            verb = len(self.words) - 1
            subject = self._realise_subject(clause)
            self.phenomena.add("inversion")
        self.record_agreement(subject, verb)
        self._realise_middle_field(clause, front)
        nonfinite = nonfinite or clause.verb.prefix
        if nonfinite:
            self.add(nonfinite)

    def _realise_prefield(self, clause: Clause, front: Nominal | PrepositionalPhrase | None) -> bool:
        """Realise a constituent before the finite verb; return False if only the subject can."""
        if front is not None:
            self._realise_fronted(clause, front)
        elif clause.question_adverb is not None:
            self.add(clause.question_adverb.german)
        elif clause.time is not None and clause.time_first:
            self.realise_adverbial(clause.time)
        else:
            return False
        return True

    def _realise_fronted(self, clause: Clause, front: Nominal | PrepositionalPhrase) -> None:
        if isinstance(front, PrepositionalPhrase):
            self.realise_prepositional_phrase(front)
        else:
            self.realise_nominal(front, "acc" if front is clause.accusative else "dat")

    def _realise_dependent_clause(self, clause: Clause, front: Nominal | PrepositionalPhrase | None) -> None:
        """Realise a verb-final clause; the separable prefix joins the finite verb."""
        assert clause.subject is not None
        finite, nonfinite = verb_group(clause.verb, clause.tense, clause.modal, clause.subject.agreement)
        if front is not None:
            self._realise_fronted(clause, front)
        subject = self._realise_subject(clause)
        self._realise_middle_field(clause, front)
        if nonfinite:
            self.add(nonfinite)
            self.add(finite)
        else:
            self.add(clause.verb.prefix + finite)
        self.record_agreement(subject, len(self.words) - 1)
        self.phenomena.add("verb-final")
        self.record_combination(clause.subject, "verb-final")

    def _realise_subject(self, clause: Clause) -> int:
        """Realise the subject with its relative clause; return the position of its head."""
        assert clause.subject is not None
        self.realise_nominal(clause.subject, "nom")
        position = len(self.words) - 1
        if isinstance(clause.subject, NounPhrase) and clause.subject.relative_clause is not None:
            self.realise_relative_clause(clause.subject)
        return position

    def _realise_object(self, item: Nominal, case: Case) -> None:
        self.realise_nominal(item, case)
        if isinstance(item, NounPhrase) and item.relative_clause is not None:
            self._extraposed.append(item)

    def _realise_middle_field(self, clause: Clause, front: Nominal | PrepositionalPhrase | None) -> None:
        """Realise the middle field without the subject."""
        accusative = None if clause.accusative is front else clause.accusative
        dative = None if clause.dative is front else clause.dative
        if isinstance(accusative, Pronoun):
            self.realise_nominal(accusative, "acc")
        if isinstance(dative, Pronoun):
            self.realise_nominal(dative, "dat")
        if clause.time is not None and not clause.time_first:
            self.realise_adverbial(clause.time)
        if clause.adverb is not None and clause.adverb.position == "early":
            self.add(clause.adverb.german)
        if isinstance(dative, NounPhrase):
            self._realise_object(dative, "dat")
        self._realise_accusative_and_late_adverb(clause, accusative)
        if clause.prepositional_phrase is not None and clause.prepositional_phrase is not front:
            self.realise_prepositional_phrase(clause.prepositional_phrase)
        if clause.predicate is not None:
            if clause.predicate.degree is not None:
                self.add(clause.predicate.degree.german)
            self.add(clause.predicate.adjective.german)

    def _realise_accusative_and_late_adverb(self, clause: Clause, accusative: Nominal | None) -> None:
        """Realise the accusative: definite before nicht or a late adverb, indefinite after it."""
        late = clause.adverb.german if clause.adverb is not None and clause.adverb.position == "late" else ""
        phrase = accusative if isinstance(accusative, NounPhrase) else None
        if clause.negated and (phrase is None or phrase.determiner not in _KEIN_DETERMINERS):
            late = "nicht"
            self.phenomena.add("negation-nicht")
        if phrase is not None and phrase.determiner.definite:
            self._realise_object(phrase, "acc")
        if late:
            self.add(late)
        if phrase is not None and not phrase.determiner.definite:
            self._realise_object(phrase, "acc")

    def _record_clause(self, clause: Clause) -> None:
        notes = self.phenomena
        if clause.modal is not None:
            notes.add("modal")
        elif clause.tense in _TENSE_PHENOMENA and not (clause.tense == "past" and clause.verb.frame in ("be", "have")):
            notes.add(_TENSE_PHENOMENA[clause.tense])
            if clause.tense != "future":
                self.record_combination(clause.accusative, "perfect")
        if clause.verb.prefix:
            notes.add("separable")
            self.record_combination(clause.accusative, "separable")
        if clause.dative is not None:
            notes.add("dative")
            self.record_combination(clause.dative, "dative")
            if clause.accusative is not None:
                notes.add("ditransitive")
        if clause.predicate is not None:
            notes.add("predicative")
        if clause.mood in ("polar", "wh"):
            notes.add("question")
            self.record_combination(clause.subject, "question")

    # Sentences

    def realise_sentence(self, sentence: Sentence) -> str:
        """Return the whole sentence, capitalised and punctuated."""
        conjunction = sentence.conjunction
        if conjunction is not None and sentence.conjunction_first:
            self.add(conjunction.german)
        self.realise_clause(sentence.first)
        if sentence.second is not None:
            if conjunction is not fw.AND:
                self.require_comma()
            if conjunction is not None and not sentence.conjunction_first:
                self.add(conjunction.german)
            self.realise_clause(sentence.second)
            if sentence.form in ("subordinate", "content"):
                self.phenomena.add("subordinate")
            elif sentence.form == "coordinate":
                self.phenomena.add("coordination")
        text = " ".join(self.words)
        end = "?" if sentence.first.mood in ("polar", "wh") else "."
        return text[0].upper() + text[1:] + end
