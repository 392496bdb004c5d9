"""The nouns of the lexicon.

Professions and roles are masculine (the teacher: der Lehrer, he), because English does not mark their gender. The
English singular and plural of a noun always differ, so that the German number is determined.
"""

from __future__ import annotations

from heedful.grammar.lexical_entries import Noun

# english  plural  german  gender  plural  kind  tags  [weak form]
# tags: kin requires a possessive; singular-only has no plural; in, an or auf is the locative preposition of a place;
# goal can follow "to" (zu); the others are selected by verbs and prepositions.
_TABLE = """
man men Mann m Männer person -
woman women Frau f Frauen person -
child children Kind n Kinder person -
boy boys Junge m Jungen person - Jungen
girl girls Mädchen n Mädchen person -
teacher teachers Lehrer m Lehrer person -
doctor doctors Arzt m Ärzte person -
student students Student m Studenten person - Studenten
farmer farmers Bauer m Bauern person - Bauern
baker bakers Bäcker m Bäcker person -
policeman policemen Polizist m Polizisten person - Polizisten
tourist tourists Tourist m Touristen person - Touristen
guest guests Gast m Gäste person -
customer customers Kunde m Kunden person - Kunden
painter painters Maler m Maler person -
pilot pilots Pilot m Piloten person - Piloten
king kings König m Könige person -
queen queens Königin f Königinnen person -
nurse nurses Krankenschwester f Krankenschwestern person -
actress actresses Schauspielerin f Schauspielerinnen person -
waitress waitresses Kellnerin f Kellnerinnen person -
brother brothers Bruder m Brüder person kin
sister sisters Schwester f Schwestern person kin
father fathers Vater m Väter person kin,singular-only
mother mothers Mutter f Mütter person kin,singular-only
son sons Sohn m Söhne person kin
daughter daughters Tochter f Töchter person kin
uncle uncles Onkel m Onkel person kin
aunt aunts Tante f Tanten person kin
grandfather grandfathers Großvater m Großväter person kin,singular-only
grandmother grandmothers Großmutter f Großmütter person kin,singular-only
friend friends Freund m Freunde person kin
neighbour neighbours Nachbar m Nachbarn person kin Nachbarn
colleague colleagues Kollege m Kollegen person kin Kollegen
boss bosses Chef m Chefs person kin,singular-only

dog dogs Hund m Hunde animal pet
cat cats Katze f Katzen animal pet
horse horses Pferd n Pferde animal pet
bird birds Vogel m Vögel animal pet
cow cows Kuh f Kühe animal pet
mouse mice Maus f Mäuse animal pet
duck ducks Ente f Enten animal pet
pig pigs Schwein n Schweine animal pet
rabbit rabbits Kaninchen n Kaninchen animal pet
bear bears Bär m Bären animal wild Bären
lion lions Löwe m Löwen animal wild Löwen
elephant elephants Elefant m Elefanten animal wild Elefanten

book books Buch n Bücher text readable,writable,portable,purchasable,gift
letter letters Brief m Briefe text readable,writable,portable,post
newspaper newspapers Zeitung f Zeitungen paper readable,portable,purchasable
story stories Geschichte f Geschichten text readable,writable,tellable
map maps Karte f Karten thing portable,purchasable,gift
key keys Schlüssel m Schlüssel thing portable
bag bags Tasche f Taschen thing portable,purchasable,container,gift,carriable
picture pictures Bild n Bilder thing portable,purchasable,gift,art,carriable
cup cups Tasse f Tassen thing portable,purchasable,gift
knife knives Messer n Messer thing portable,purchasable
bottle bottles Flasche f Flaschen thing portable,openable
present presents Geschenk n Geschenke thing portable,openable,post
doll dolls Puppe f Puppen thing portable,purchasable,gift,toy
ring rings Ring m Ringe thing portable,purchasable,gift
flower flowers Blume f Blumen plant portable,purchasable,gift,art
umbrella umbrellas Regenschirm m Regenschirme thing portable,purchasable
suitcase suitcases Koffer m Koffer thing portable,purchasable,openable,closable,container,carriable
box boxes Kiste f Kisten thing portable,openable,closable,container,carriable
door doors Tür f Türen part openable,closable
window windows Fenster n Fenster part openable,closable
coat coats Mantel m Mäntel clothes portable,purchasable,gift,wearable
shirt shirts Hemd n Hemden clothes portable,purchasable,gift,wearable
dress dresses Kleid n Kleider clothes portable,purchasable,gift
hat hats Hut m Hüte clothes portable,purchasable,gift,wearable
jacket jackets Jacke f Jacken clothes portable,purchasable,gift,wearable
lamp lamps Lampe f Lampen machine purchasable,device,gift,carriable
clock clocks Uhr f Uhren machine purchasable,gift,portable,repairable
computer computers Computer m Computer machine purchasable,device,repairable
radio radios Radio n Radios machine purchasable,device,repairable
camera cameras Kamera f Kameras machine purchasable,device,gift,portable,repairable
machine machines Maschine f Maschinen machine purchasable,device,repairable
car cars Auto n Autos vehicle purchasable,repairable,drivable
bicycle bicycles Fahrrad n Fahrräder vehicle purchasable,repairable,gift
bus buses Bus m Busse vehicle transport,drivable
train trains Zug m Züge vehicle transport
ship ships Schiff n Schiffe vehicle transport
table tables Tisch m Tische furniture purchasable,surface,carriable
chair chairs Stuhl m Stühle furniture purchasable,surface,seat,carriable
bed beds Bett n Betten furniture purchasable,surface,seat
sofa sofas Sofa n Sofas furniture purchasable,surface,seat
cupboard cupboards Schrank m Schränke furniture purchasable,openable,closable,container

apple apples Apfel m Äpfel fruit edible,purchasable
egg eggs Ei n Eier food edible,purchasable
cake cakes Kuchen m Kuchen fruit edible,purchasable,baked
potato potatoes Kartoffel f Kartoffeln food edible,purchasable
tomato tomatoes Tomate f Tomaten food edible,purchasable
orange oranges Orange f Orangen fruit edible,purchasable
pear pears Birne f Birnen fruit edible,purchasable
sausage sausages Wurst f Würste food edible,purchasable
bread breads Brot n Brote food edible,purchasable,mass,baked
cheese cheeses Käse m Käse food edible,purchasable,mass
meat meats Fleisch n Fleische food edible,purchasable,mass
water waters Wasser n Wasser water drinkable,mass
milk milks Milch f Milche water drinkable,purchasable,mass
coffee coffees Kaffee m Kaffees drink drinkable,purchasable,mass
tea teas Tee m Tees drink drinkable,purchasable,mass
juice juices Saft m Säfte wine drinkable,purchasable,mass
wine wines Wein m Weine wine drinkable,purchasable,mass

garden gardens Garten m Gärten place in,enterable,outside
kitchen kitchens Küche f Küchen room in,enterable,indoors
room rooms Zimmer n Zimmer room in,enterable,indoors
office offices Büro n Büros room in,enterable,indoors
house houses Haus n Häuser place in,enterable,building
hotel hotels Hotel n Hotels place in,enterable,building,goal
school schools Schule f Schulen place in,enterable,building,goal
museum museums Museum n Museen place in,enterable,building,goal
restaurant restaurants Restaurant n Restaurants place in,enterable,building,goal
library libraries Bibliothek f Bibliotheken place in,enterable,building,goal
church churches Kirche f Kirchen place in,enterable,building,goal
hospital hospitals Krankenhaus n Krankenhäuser place in,building,goal
park parks Park m Parks place in,enterable,outside,goal
forest forests Wald m Wälder place in,enterable,outside
village villages Dorf n Dörfer place in,outside
city cities Stadt f Städte place in
station stations Bahnhof m Bahnhöfe place an,building,goal
beach beaches Strand m Strände place an,goal
lake lakes See m Seen place an,goal
river rivers Fluss m Flüsse place an,goal
market markets Markt m Märkte place auf,goal
island islands Insel f Inseln place auf

concert concerts Konzert n Konzerte event -
wedding weddings Hochzeit f Hochzeiten event -
exam exams Prüfung f Prüfungen event -
meeting meetings Besprechung f Besprechungen event -
party parties Feier f Feiern event -
game games Spiel n Spiele event -
course courses Kurs m Kurse event -
"""


def _parse_noun(row: str) -> Noun:
    english, plural, german, gender, german_plural, kind, tags, *weak = row.split()
    return Noun(
        english=english,
        english_plural=plural,
        german=german,
        gender=gender,
        german_plural=german_plural,
        kind=kind,
        tags=frozenset({kind, *tags.split(",")} - {"-"}),
        weak_form=weak[0] if weak else "",
        cue_words=frozenset({english, plural}),
    )


NOUNS: tuple[Noun, ...] = tuple(_parse_noun(row) for row in _TABLE.splitlines() if row)

BY_TAG: dict[str, tuple[Noun, ...]] = {
    tag: tuple(noun for noun in NOUNS if tag in noun.tags)
    for tag in sorted({tag for noun in NOUNS for tag in noun.tags})
}
# Unions of tags that verbs select.
BY_TAG["animate"] = BY_TAG["person"] * 2 + BY_TAG["animal"]
BY_TAG["findable"] = BY_TAG["portable"] + BY_TAG["pet"] + BY_TAG["person"]
# Without bird: the idiom einen Vogel haben means to be crazy.
BY_TAG["ownable"] = tuple(
    noun for noun in BY_TAG["pet"] + BY_TAG["purchasable"] if not noun.mass and noun.english != "bird"
)
BY_TAG["lendable"] = tuple(noun for noun in BY_TAG["purchasable"] if "edible" not in noun.tags and not noun.mass)
BY_TAG["anything"] = NOUNS
