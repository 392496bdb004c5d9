"""Hand-written pairs that the grammar must derive exactly, and sentences it must not."""

import pytest

from heedful.grammar import PHENOMENA, is_derivable
from heedful.grammar.recognizer import derivations
from heedful.grammar.sentence_pair import realise

HAND_WRITTEN = {
    "accusative-preposition": [
        ("The boy is running through the forest.", "Der Junge läuft durch den Wald."),
        ("We ran around the old church yesterday.", "Wir sind gestern um die alte Kirche gelaufen."),
        ("She is going into the kitchen.", "Sie geht in die Küche."),
        ("My uncle is buying a ring for my aunt.", "Mein Onkel kauft einen Ring für meine Tante."),
        ("The girl is dancing without her friend.", "Das Mädchen tanzt ohne ihren Freund."),
        ("The tourist is waiting for the bus.", "Der Tourist wartet auf den Bus."),
    ],
    "adjective": [
        ("The young woman has a small red car.", "Die junge Frau hat ein kleines rotes Auto."),
        ("He never drinks cold coffee.", "Er trinkt nie kalten Kaffee."),
        ("She is washing the dirty shirt.", "Sie wäscht das schmutzige Hemd."),
        ("She is washing the clean shirt.", None),
        ("I turned on the broken lamp.", None),
        ("Two friendly boys have old bicycles.", "Zwei freundliche Jungen haben alte Fahrräder."),
        ("This expensive coat belongs to the rich customer.", "Dieser teure Mantel gehört dem reichen Kunden."),
    ],
    "contraction": [
        ("The children are sleeping in the garden.", "Die Kinder schlafen im Garten."),
        ("Our neighbour is going to the station.", "Unser Nachbar geht zum Bahnhof."),
        ("I am going to the school.", "Ich gehe zur Schule."),
        ("The guests are coming into the house.", "Die Gäste kommen ins Haus."),
        ("She is waiting at the station.", "Sie wartet am Bahnhof."),
        ("They slept near the lake.", None),
        ("He works near the museum every day.", "Er arbeitet jeden Tag beim Museum."),
        ("The farmer is coming from the market.", "Der Bauer kommt vom Markt."),
    ],
    "coordination": [
        ("My father is sleeping, and my mother is working.", "Mein Vater schläft und meine Mutter arbeitet."),
        ("My father is sleeping and my mother is working.", None),
        (
            "He opened the window, but the old man closed the door.",
            "Er hat das Fenster aufgemacht, aber der alte Mann hat die Tür zugemacht.",
        ),
    ],
    "dative": [
        ("The student is helping the old woman.", "Der Student hilft der alten Frau."),
        ("I will thank you tomorrow.", "Ich werde dir morgen danken."),
        ("The dog is following the children.", "Der Hund folgt den Kindern."),
        ("Your car belongs to my brother.", "Dein Auto gehört meinem Bruder."),
        ("We congratulated them.", "Wir haben ihnen gratuliert."),
    ],
    "dative-preposition": [
        ("My sister is speaking with the doctor.", "Meine Schwester spricht mit dem Arzt."),
        ("The book is lying on the table.", "Das Buch liegt auf dem Tisch."),
        ("The policeman stood in front of the hotel.", "Der Polizist hat vor dem Hotel gestanden."),
        ("The boy is sitting next to my grandmother.", "Der Junge sitzt neben meiner Großmutter."),
        ("We bought apples at the market.", "Wir haben Äpfel auf dem Markt gekauft."),
        ("She dreamed of the queen.", "Sie hat von der Königin geträumt."),
    ],
    "ditransitive": [
        ("The teacher is giving the girl a book.", "Der Lehrer gibt dem Mädchen ein Buch."),
        ("He showed me his camera.", "Er hat mir seine Kamera gezeigt."),
        ("They will send their uncle a letter.", "Sie werden ihrem Onkel einen Brief schicken."),
        ("The waitress offered the guests cake.", None),
        ("The waitress offered the guests pears.", None),
        ("The waitress offered her pears.", None),
        ("The waitress offered me pears.", "Die Kellnerin hat mir Birnen angeboten."),
        ("The waitress offered the guests two pears.", "Die Kellnerin hat den Gästen zwei Birnen angeboten."),
        ("The waitress offered the guests fresh bread.", "Die Kellnerin hat den Gästen frisches Brot angeboten."),
    ],
    "future": [
        ("Tomorrow the pilot will visit his parents.", None),
        ("Tomorrow the pilot will visit his brothers.", "Morgen wird der Pilot seine Brüder besuchen."),
        ("You will find the key.", "Du wirst den Schlüssel finden."),
        ("I will go to the beach next week.", "Ich werde nächste Woche zum Strand gehen."),
    ],
    "genitive-relative": [
        (
            "The man whose car was broken called the policeman.",
            "Der Mann, dessen Auto kaputt war, hat den Polizisten angerufen.",
        ),
        (
            "The nurse whose brother is sleeping is working.",
            "Die Krankenschwester, deren Bruder schläft, arbeitet.",
        ),
    ],
    "inversion": [
        ("Yesterday the farmer sold a cow.", None),
        ("Yesterday the farmer sold a bicycle.", "Gestern hat der Bauer ein Fahrrad verkauft."),
        ("Now I am closing the suitcase.", "Jetzt mache ich den Koffer zu."),
        ("After the concert we went out.", "Nach dem Konzert sind wir ausgegangen."),
        ("In the evening her son read the newspaper.", "Am Abend hat ihr Sohn die Zeitung gelesen."),
    ],
    "modal": [
        ("I can repair your computer.", "Ich kann deinen Computer reparieren."),
        ("The child wants to sleep.", "Das Kind will schlafen."),
        ("You should visit your grandfather.", "Du solltest deinen Großvater besuchen."),
        ("She had to get up.", "Sie musste aufstehen."),
        ("The girls are allowed to feed the horses.", "Die Mädchen dürfen die Pferde füttern."),
        ("We must help him.", "Wir müssen ihm helfen."),
        ("He could not fall asleep.", None),
        ("He could not understand me.", None),
        ("They could not open the door.", "Sie konnten die Tür nicht aufmachen."),
    ],
    "negation-kein": [
        ("My brother does not have a dog.", "Mein Bruder hat keinen Hund."),
        ("My brother does not have a bird.", None),
        ("They do not need any bread.", "Sie brauchen kein Brot."),
        ("The baker is not selling any old cakes.", None),
        ("The baker did not sell any fresh cakes.", "Der Bäcker hat keine frischen Kuchen verkauft."),
        ("I did not write him a letter.", None),
        ("I did not send him a letter.", "Ich habe ihm keinen Brief geschickt."),
    ],
    "negation-nicht": [
        ("The woman does not know my colleague.", "Die Frau kennt meinen Kollegen nicht."),
        ("He did not open the window.", "Er hat das Fenster nicht aufgemacht."),
        ("The exam was not long.", "Die Prüfung war nicht lang."),
        ("She is not working in the garden.", "Sie arbeitet nicht im Garten."),
        ("We do not trust him.", "Wir vertrauen ihm nicht."),
        ("You do not have to wait for me.", "Du musst nicht auf mich warten."),
        ("Today they are not getting up.", "Heute stehen sie nicht auf."),
    ],
    "perfect": [
        ("The train arrived yesterday.", "Der Zug ist gestern angekommen."),
        ("The cook has already baked the cake.", None),
        ("The baker has already baked the cake.", "Der Bäcker hat den Kuchen schon gebacken."),
        ("She has already read a book.", "Sie hat schon ein Buch gelesen."),
        ("I swam in the evening.", "Ich bin am Abend geschwommen."),
        ("They went into the forest.", "Sie sind in den Wald gegangen."),
    ],
    "plural": [
        ("The elephants are big.", "Die Elefanten sind groß."),
        ("These tomatoes are very fresh.", "Diese Tomaten sind sehr frisch."),
        ("Three mice ran into the kitchen.", "Drei Mäuse sind in die Küche gelaufen."),
    ],
    "predicative": [
        ("The lamp is broken.", "Die Lampe ist kaputt."),
        ("Your coffee was very hot.", None),
        ("The coffee was very hot.", "Der Kaffee war sehr heiß."),
        ("You are friendly.", "Du bist freundlich."),
    ],
    "pronoun": [
        (
            "The woman bought the table although it was very expensive.",
            "Die Frau hat den Tisch gekauft, obwohl er sehr teuer war.",
        ),
        ("I am reading the newspaper because it is interesting.", "Ich lese die Zeitung, weil sie interessant ist."),
        ("We sold the car because it was old.", "Wir haben das Auto verkauft, weil es alt war."),
        (
            "My son bought a ring because he wanted to give it to you.",
            "Mein Sohn hat einen Ring gekauft, weil er ihn dir geben wollte.",
        ),
        (
            "She needs the bag because she has to lend it to her sister.",
            "Sie braucht die Tasche, weil sie sie ihrer Schwester leihen muss.",
        ),
        ("The queen is laughing because she is happy.", "Die Königin lacht, weil sie glücklich ist."),
        ("He did not eat any meat because he was hungry.", None),
        ("He ate meat although he was hungry.", None),
        ("Although he was hungry, he ate meat.", None),
        ("Although the boys are tired, they are singing.", "Obwohl die Jungen müde sind, singen sie."),
    ],
    "question": [
        ("Is the doctor working today?", "Arbeitet der Arzt heute?"),
        ("Did you see the lion?", None),
        ("Did you see the cat?", "Hast du die Katze gesehen?"),
        ("Where does your uncle have to wait?", "Wo muss dein Onkel warten?"),
        ("Where did the girls go?", "Wohin sind die Mädchen gegangen?"),
        ("Who is helping the old man?", "Wer hilft dem alten Mann?"),
        ("Who is the old man helping?", "Wem hilft der alte Mann?"),
        ("What are you eating?", "Was isst du?"),
        ("Who are they waiting for?", "Auf wen warten sie?"),
        ("Which letter did she read?", "Welchen Brief hat sie gelesen?"),
        ("When will the painter come back?", "Wann wird der Maler zurückkommen?"),
        ("Why are you crying?", "Warum weinst du?"),
    ],
    "relative": [
        (
            "The man who is working in the library knows my father.",
            "Der Mann, der in der Bibliothek arbeitet, kennt meinen Vater.",
        ),
        (
            "The child whom the nurse helped is sleeping.",
            "Das Kind, dem die Krankenschwester geholfen hat, schläft.",
        ),
        ("I am looking for the book that you lost.", "Ich suche das Buch, das du verloren hast."),
        ("The computer that we are turning on is broken.", None),
        ("I am baking the cake that you bought.", None),
        ("I am looking for the shirt that was clean.", "Ich suche das Hemd, das sauber war."),
        ("I am washing the shirt that was clean.", None),
        ("He is buying the clean shirt that she washed.", None),
        (
            "The actress with whom we spoke invited the guests.",
            "Die Schauspielerin, mit der wir gesprochen haben, hat die Gäste eingeladen.",
        ),
        (
            "She is visiting the farmers whom she trusts.",
            "Sie besucht die Bauern, denen sie vertraut.",
        ),
        (
            "He did not open the letter that his daughter is writing.",
            None,
        ),
        (
            "He did not open the box that his daughter is carrying.",
            "Er hat die Kiste nicht aufgemacht, die seine Tochter trägt.",
        ),
    ],
    "separable": [
        ("I am turning on the radio.", "Ich schalte das Radio ein."),
        ("She is picking him up.", "Sie holt ihn ab."),
        ("The students took part in the course.", "Die Studenten haben am Kurs teilgenommen."),
        ("My mother never wakes me up.", "Meine Mutter weckt mich nie auf."),
    ],
    "subordinate": [
        ("The king believes that the pilot is very brave.", "Der König glaubt, dass der Pilot sehr mutig ist."),
        (
            "He did not eat any meat although he was hungry.",
            "Er hat kein Fleisch gegessen, obwohl er hungrig war.",
        ),
        ("Do you know whether the train has already arrived?", None),
        ("Do you know whether the train arrived yesterday?", "Weißt du, ob der Zug gestern angekommen ist?"),
        (
            "If the boy tidies up the room, he can go out.",
            "Wenn der Junge das Zimmer aufräumt, kann er ausgehen.",
        ),
        (
            "He drank a juice before he went out.",
            None,
        ),
        (
            "He drank water before he went out.",
            "Er hat Wasser getrunken, bevor er ausgegangen ist.",
        ),
        (
            "While my aunt is cooking, she is listening to us.",
            "Während meine Tante kocht, hört sie uns zu.",
        ),
        (
            "I will call you as soon as I come back.",
            "Ich werde dich anrufen, sobald ich zurückkomme.",
        ),
    ],
    "verb-final": [
        ("They hope that she will come back.", "Sie hoffen, dass sie zurückkommen wird."),
        (
            "The baker says that his son wants to open the restaurant.",
            None,
        ),
        (
            "The baker says that his son cannot open the bottle.",
            "Der Bäcker sagt, dass sein Sohn die Flasche nicht aufmachen kann.",
        ),
        ("I do not know whether you need the map.", "Ich weiß nicht, ob du die Karte brauchst."),
    ],
    "weak-noun": [
        ("We see the boy.", "Wir sehen den Jungen."),
        ("The teacher is answering the student.", "Der Lehrer antwortet dem Studenten."),
        ("She heard a bear.", "Sie hat einen Bären gehört."),
    ],
    "zu-infinitive": [
        ("The man tried to open the door.", "Der Mann hat versucht, die Tür aufzumachen."),
        ("I forgot to feed the cat.", "Ich habe vergessen, die Katze zu füttern."),
        (
            "My grandmother is going to the market in order to buy potatoes.",
            "Meine Großmutter geht zum Markt, um Kartoffeln zu kaufen.",
        ),
        ("They promised to listen to her.", "Sie haben versprochen, ihr zuzuhören."),
    ],
}  # German is None: the grammar must not derive the sentence
DERIVABLE = [(name, *pair) for name, rows in HAND_WRITTEN.items() for pair in rows if pair[1] is not None]
NOT_DERIVABLE = [pair[0] for rows in HAND_WRITTEN.values() for pair in rows if pair[1] is None]


def test_every_phenomenon_is_covered():
    assert set(HAND_WRITTEN) == set(PHENOMENA)
    assert len(DERIVABLE) >= 80


@pytest.mark.parametrize(("phenomenon", "english", "german"), DERIVABLE)
def test_hand_written_pair_is_derived_exactly(phenomenon, english, german):
    derived = [realise(structure) for structure in derivations(english)]
    assert {pair.german for pair in derived} == {german}
    assert all(phenomenon in pair.phenomena for pair in derived)


@pytest.mark.parametrize("english", NOT_DERIVABLE)
def test_sentence_outside_the_grammar_is_not_derivable(english):
    assert list(derivations(english)) == []


def test_only_the_correct_translation_is_derivable():
    assert is_derivable("We see the boy.", "Wir sehen den Jungen.")
    assert not is_derivable("We see the boy.", "Wir sehen den Junge.")
    assert not is_derivable("We see the boy.", "Wir sehen der Jungen.")
