"""The adjectives of the lexicon, and which of them are compatible."""

from __future__ import annotations

from heedful.grammar.lexical_entries import Adjective, Verb

# english  german  inflected stem or -  noun kinds it modifies
# "temporary" marks a temporary state of a person, "positive" a desirable property of a thing
_TABLE = """
old alt - person,animal,text,thing,clothes,machine,vehicle,furniture,part,place,paper
young jung - person,animal
tall groß - person
friendly freundlich - person,animal
rich reich - person
poor arm - person
famous berühmt - person
clever klug - person,animal
strong stark - person,animal
polite höflich - person
brave mutig - person,animal
lazy faul - person,animal
tired müde müd person,animal,temporary
sick krank - person,animal,temporary
hungry hungrig - person,animal,temporary
happy glücklich - person,temporary
sad traurig - person,temporary
nervous nervös - person,temporary
wild wild - animal
small klein - animal,thing,plant,clothes,machine,vehicle,furniture,part,room,place,fruit
big groß - animal,thing,machine,vehicle,furniture,part,room,place
new neu - text,thing,clothes,machine,vehicle,furniture,paper,positive
beautiful schön - thing,plant,clothes,furniture,place,animal,positive
expensive teuer teur thing,clothes,machine,vehicle,furniture,food,fruit,drink,plant,water,wine
cheap billig - thing,clothes,machine,furniture,food,fruit,drink,vehicle,plant,positive,water,wine
heavy schwer - thing,machine,furniture
modern modern - machine,furniture,vehicle,positive
broken kaputt - machine,vehicle
dirty schmutzig - animal,thing,clothes,vehicle,room
clean sauber - thing,clothes,room,positive
interesting interessant - text,event,paper,positive
boring langweilig - text,event,paper
long lang - text,event
short kurz - text,event
red rot - colour
blue blau - colour
green grün - colour
black schwarz - colour
white weiß - colour
yellow gelb - colour
fresh frisch - food,fruit,water,plant,positive
delicious köstlich - food,fruit,positive
cold kalt - food,drink,water,wine
hot heiß - drink,water
sweet süß - fruit,drink,positive,wine
quiet ruhig - place
dark dunkel dunkl room
warm warm - room,clothes,positive
"""


def _parse_adjective(row: str) -> Adjective:
    english, german, stem, kinds = row.split()
    return Adjective(
        english=english,
        german=german,
        stem=german if stem == "-" else stem,
        kinds=frozenset(kinds.split(",")),
        cue_words=frozenset({english}),
    )


ADJECTIVES: tuple[Adjective, ...] = tuple(_parse_adjective(row) for row in _TABLE.splitlines() if row)

BY_KIND: dict[str, tuple[Adjective, ...]] = {
    kind: tuple(adjective for adjective in ADJECTIVES if kind in adjective.kinds)
    for kind in sorted({kind for adjective in ADJECTIVES for kind in adjective.kinds})
}
COLOURABLE_KINDS = frozenset({"thing", "clothes", "vehicle", "plant", "furniture"})

_OPPOSITES = (
    "old new", "old young", "small big", "expensive cheap", "dirty clean", "rich poor", "interesting boring",
    "long short", "cold hot", "happy sad",
)  # fmt: skip
# Verb -> the adjective that its object cannot have: nobody washes a clean shirt.
_CONTRADICTING_ADJECTIVES = {"wash": "clean", "tidy": "clean", "turn": "broken", "bake": "cold"}


def contradicting_adjective(verb: Verb) -> str:
    """Return the adjective that contradicts the verb on its object, or ""."""
    return _CONTRADICTING_ADJECTIVES.get(verb.english, "")


def conflicts(adjective: Adjective, others: tuple[Adjective, ...]) -> bool:
    """Return whether an adjective repeats or contradicts one of the others."""
    for other in others:
        if adjective is other:
            return True
        if any({adjective.english, other.english} == set(opposites.split()) for opposites in _OPPOSITES):
            return True
    return False
