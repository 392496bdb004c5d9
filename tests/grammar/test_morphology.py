"""German and English morphology against hand-written paradigms."""

import pytest

from heedful.grammar import english_morphology, german_morphology
from heedful.grammar import function_words as fw
from heedful.grammar.adjectives import ADJECTIVES
from heedful.grammar.lexical_entries import Determiner
from heedful.grammar.nouns import NOUNS
from heedful.grammar.verbs import VERBS

NOUN = {noun.english: noun for noun in NOUNS}
ADJECTIVE = {adjective.english: adjective for adjective in ADJECTIVES}
VERB = {(verb.prefix + verb.german): verb for verb in VERBS}
CASES = ("nom", "acc", "dat")
OUR = fw.POSSESSIVES[4]


def phrase(determiner: Determiner, adjective: str, noun: str, case: str, plural: bool = False) -> str:
    gender_number = "p" if plural else NOUN[noun].gender
    words = (
        german_morphology.determiner_form(determiner, gender_number, case),
        german_morphology.adjective_form(ADJECTIVE[adjective], determiner.declension, gender_number, case),
        german_morphology.noun_form(NOUN[noun], plural, case),
    )
    return " ".join(word for word in words if word)


PARADIGMS = [
    (fw.THE, "old", "man", False, "der alte Mann", "den alten Mann", "dem alten Mann"),
    (fw.THE, "old", "woman", False, "die alte Frau", "die alte Frau", "der alten Frau"),
    (fw.THE, "small", "house", False, "das kleine Haus", "das kleine Haus", "dem kleinen Haus"),
    (fw.THE, "old", "man", True, "die alten Männer", "die alten Männer", "den alten Männern"),
    (fw.THE, "sick", "boy", False, "der kranke Junge", "den kranken Jungen", "dem kranken Jungen"),
    (fw.A, "old", "man", False, "ein alter Mann", "einen alten Mann", "einem alten Mann"),
    (fw.A, "red", "flower", False, "eine rote Blume", "eine rote Blume", "einer roten Blume"),
    (fw.A, "new", "car", False, "ein neues Auto", "ein neues Auto", "einem neuen Auto"),
    (fw.NEGATED_ANY, "new", "car", True, "keine neuen Autos", "keine neuen Autos", "keinen neuen Autos"),
    (OUR, "friendly", "neighbour", False,
     "unser freundlicher Nachbar", "unseren freundlichen Nachbarn", "unserem freundlichen Nachbarn"),
    (OUR, "old", "aunt", False, "unsere alte Tante", "unsere alte Tante", "unserer alten Tante"),
    (fw.THIS, "expensive", "coat", False, "dieser teure Mantel", "diesen teuren Mantel", "diesem teuren Mantel"),
    (fw.EVERY, "tired", "child", False, "jedes müde Kind", "jedes müde Kind", "jedem müden Kind"),
    (fw.WHICH, "blue", "shirt", False, "welches blaue Hemd", "welches blaue Hemd", "welchem blauen Hemd"),
    (fw.ZERO_ARTICLE, "cold", "milk", False, "kalte Milch", "kalte Milch", "kalter Milch"),
    (fw.ZERO_ARTICLE, "sweet", "wine", False, "süßer Wein", "süßen Wein", "süßem Wein"),
    (fw.ZERO_ARTICLE, "fresh", "bread", False, "frisches Brot", "frisches Brot", "frischem Brot"),
    (fw.TWO, "old", "dog", True, "zwei alte Hunde", "zwei alte Hunde", "zwei alten Hunden"),
    (fw.ZERO_ARTICLE, "wild", "lion", True, "wilde Löwen", "wilde Löwen", "wilden Löwen"),
    (fw.WHOSE_DESSEN, "old", "dog", False, "dessen alter Hund", "dessen alten Hund", "dessen altem Hund"),
    (fw.THE, "dark", "room", False, "das dunkle Zimmer", "das dunkle Zimmer", "dem dunklen Zimmer"),
]  # fmt: skip


@pytest.mark.parametrize("row", PARADIGMS, ids=lambda row: row[4])
def test_noun_phrase_declension(row):
    determiner, adjective, noun, plural, *expected = row
    assert [phrase(determiner, adjective, noun, case, plural) for case in CASES] == expected


@pytest.mark.parametrize(
    ("noun", "dative_plural"),
    [
        ("child", "Kindern"), ("car", "Autos"), ("girl", "Mädchen"), ("uncle", "Onkeln"), ("key", "Schlüsseln"),
        ("mother", "Müttern"), ("student", "Studenten"), ("apple", "Äpfeln"), ("queen", "Königinnen"),
    ],
)  # fmt: skip
def test_dative_plural(noun, dative_plural):
    assert german_morphology.noun_form(NOUN[noun], True, "dat") == dative_plural


@pytest.mark.parametrize(
    ("verb", "forms"),
    [
        ("arbeiten", "arbeite arbeitest arbeitet arbeiten"),
        ("tanzen", "tanze tanzt tanzt tanzen"),
        ("schlafen", "schlafe schläfst schläft schlafen"),
        ("lesen", "lese liest liest lesen"),
        ("geben", "gebe gibst gibt geben"),
        ("füttern", "füttere fütterst füttert füttern"),
        ("aufmachen", "mache machst macht machen"),
        ("einladen", "lade lädst lädt laden"),
        ("teilnehmen", "nehme nimmst nimmt nehmen"),
        ("anbieten", "biete bietest bietet bieten"),
        ("begrüßen", "begrüße begrüßt begrüßt begrüßen"),
        ("beobachten", "beobachte beobachtest beobachtet beobachten"),
        ("wissen", "weiß weißt weiß wissen"),
        ("sein", "bin bist ist sind"),
        ("haben", "habe hast hat haben"),
        ("vergessen", "vergesse vergisst vergisst vergessen"),
        ("laufen", "laufe läufst läuft laufen"),
    ],
)
def test_present_tense(verb, forms):
    assert " ".join(german_morphology.present_form(VERB[verb], who) for who in ("1s", "2s", "3s", "1p")) == forms


@pytest.mark.parametrize(
    ("modal", "present", "past"),
    [
        (fw.CAN, "kann kannst kann können", "konnte konntest konnte konnten"),
        (fw.HAVE_TO, "muss musst muss müssen", "musste musstest musste mussten"),
        (fw.WANT, "will willst will wollen", "wollte wolltest wollte wollten"),
        (fw.ALLOWED, "darf darfst darf dürfen", "durfte durftest durfte durften"),
        (fw.SHOULD, "sollte solltest sollte sollten", "sollte solltest sollte sollten"),
    ],
)
def test_modal_verb_forms(modal, present, past):
    for tense, expected in (("present", present), ("past", past)):
        forms = [german_morphology.modal_form(modal, tense, who) for who in ("1s", "2s", "3s", "3p")]
        assert " ".join(forms) == expected


@pytest.mark.parametrize(
    ("verb", "infinitive"),
    [("aufmachen", "aufzumachen"), ("zuhören", "zuzuhören"), ("helfen", "zu helfen"), ("verkaufen", "zu verkaufen")],
)
def test_zu_infinitive(verb, infinitive):
    assert german_morphology.zu_infinitive(VERB[verb]) == infinitive


@pytest.mark.parametrize(
    ("verb", "finite", "nonfinite"),
    [
        ("aufstehen", "ist", "aufgestanden"), ("lesen", "hat", "gelesen"), ("folgen", "ist", "gefolgt"),
        ("anprobieren", "hat", "anprobiert"), ("sein", "war", ""), ("haben", "hatte", ""),
    ],
)  # fmt: skip
def test_simple_past_becomes_perfekt_except_for_sein_and_haben(verb, finite, nonfinite):
    assert german_morphology.verb_group(VERB[verb], "past", None, "3s") == (finite, nonfinite)


@pytest.mark.parametrize(
    ("base", "forms"),
    [
        ("carry", ("carries", "carried", "carried", "carrying")),
        ("play", ("plays", "played", "played", "playing")),
        ("watch", ("watches", "watched", "watched", "watching")),
        ("dance", ("dances", "danced", "danced", "dancing")),
        ("go", ("goes", "goed", "goed", "going")),  # regular forms; the lexicon has went and gone
    ],
)
def test_regular_english_verb_forms(base, forms):
    assert english_morphology.verb_forms(base) == forms


def test_indefinite_article():
    assert [english_morphology.indefinite_article(word) for word in ("apple", "old", "umbrella", "dog")] == [
        "an", "an", "an", "a",
    ]  # fmt: skip
