"""The verbs of the lexicon, with their frames and selectional restrictions."""

from __future__ import annotations

from heedful.grammar.english_morphology import verb_forms
from heedful.grammar.german_morphology import regular_du_form, regular_er_form
from heedful.grammar.lexical_entries import Preposition, Verb

# english[:past:participle[:ing]]  with +particle or ~preposition
# german (prefix-verb)  du/er or -  auxiliary/participle  frame  subject  object  features
# features: stative has no progressive; place, companion and beneficiary are possible adjuncts;
# non-volitional takes neither modals nor the habitual present
_TABLE = """
sleep:slept:slept schlafen schläfst/schläft hat/geschlafen intransitive animate - place
work arbeiten - hat/gearbeitet intransitive person - place,companion,beneficiary
sing:sang:sung singen - hat/gesungen intransitive person - place,companion,beneficiary
dance tanzen - hat/getanzt intransitive person - place,companion
cook kochen - hat/gekocht intransitive person - place,companion,beneficiary
laugh lachen - hat/gelacht intransitive person - -
cry weinen - hat/geweint intransitive person - place
wait warten - hat/gewartet intransitive person - place
swim:swam:swum:swimming schwimmen - ist/geschwommen intransitive animate - -
get+up:got:got:getting auf-stehen - ist/aufgestanden intransitive person - -
fall+asleep:fell:fallen ein-schlafen schläfst/schläft ist/eingeschlafen intransitive animate - place,non-volitional
go+out:went:gone aus-gehen - ist/ausgegangen intransitive person - companion
come+back:came:come zurück-kommen - ist/zurückgekommen intransitive animate - companion
arrive an-kommen - ist/angekommen intransitive transport - -
depart ab-fahren fährst/fährt ist/abgefahren intransitive transport - -

see:saw:seen sehen siehst/sieht hat/gesehen accusative animate findable stative
hear:heard:heard hören - hat/gehört accusative person animal stative
know:knew:known kennen - hat/gekannt accusative person person stative
love lieben - hat/geliebt accusative person person stative
need brauchen - hat/gebraucht accusative person purchasable stative
understand:understood:understood verstehen - hat/verstanden accusative person person stative
buy:bought:bought kaufen - hat/gekauft accusative person purchasable place,beneficiary
sell:sold:sold verkaufen - hat/verkauft accusative person purchasable place
read:read:read lesen liest/liest hat/gelesen accusative person readable place
write:wrote:written schreiben - hat/geschrieben accusative person writable place
eat:ate:eaten essen isst/isst hat/gegessen accusative person edible place
drink:drank:drunk trinken - hat/getrunken accusative person drinkable place
bake backen - hat/gebacken accusative person baked beneficiary
paint malen - hat/gemalt accusative person art place,beneficiary
look~for suchen - hat/gesucht accusative animate findable place
find:found:found finden findest/findet hat/gefunden accusative person portable place,non-volitional
lose:lost:lost verlieren - hat/verloren accusative person portable place,non-volitional
carry tragen trägst/trägt hat/getragen accusative person carriable -
hide:hid:hidden verstecken - hat/versteckt accusative person portable place
photograph fotografieren - hat/fotografiert accusative person animate place
watch beobachten - hat/beobachtet accusative animate animate place
feed:fed:fed füttern - hat/gefüttert accusative person pet place
visit besuchen - hat/besucht accusative person person -
greet begrüßen - hat/begrüßt accusative person person -
wash waschen wäschst/wäscht hat/gewaschen accusative person clothes -
repair reparieren - hat/repariert accusative person repairable beneficiary
open auf-machen - hat/aufgemacht accusative person openable -
close zu-machen - hat/zugemacht accusative person closable -
turn+on ein-schalten - hat/eingeschaltet accusative person device -
turn+off aus-schalten - hat/ausgeschaltet accusative person device -
try+on an-probieren - hat/anprobiert accusative person clothes -
tidy+up auf-räumen - hat/aufgeräumt accusative person indoors -
call an-rufen - hat/angerufen accusative person person -
invite ein-laden lädst/lädt hat/eingeladen accusative person person -
wake+up:woke:woken auf-wecken - hat/aufgeweckt accusative person person -
pick+up ab-holen - hat/abgeholt accusative person person -
bring+along:brought:brought mit-bringen - hat/mitgebracht accusative person gift -
look~at an-sehen siehst/sieht hat/angesehen accusative animate animate -

help helfen hilfst/hilft hat/geholfen dative person person -
thank danken - hat/gedankt dative person person -
answer antworten - hat/geantwortet dative person person -
congratulate gratulieren - hat/gratuliert dative person person -
follow folgen - ist/gefolgt dative animate animate -
trust vertrauen - hat/vertraut dative person person stative
listen~to zu-hören - hat/zugehört dative person person -
belong~to gehören - hat/gehört dative purchasable person stative

give:gave:given geben gibst/gibt hat/gegeben ditransitive person gift -
show:showed:shown zeigen - hat/gezeigt ditransitive person gift -
send:sent:sent schicken - hat/geschickt ditransitive person post -
bring:brought:brought bringen - hat/gebracht ditransitive person portable -
lend:lent:lent leihen - hat/geliehen ditransitive person lendable -
tell:told:told erzählen - hat/erzählt ditransitive person tellable -
offer an-bieten bietest/bietet hat/angeboten ditransitive person edible -

wait~for warten - hat/gewartet prepositional:auf+acc person person place
wait~for warten - hat/gewartet prepositional:auf+acc person transport -
think:thought:thought~of denken - hat/gedacht prepositional:an+acc person person stative
speak:spoke:spoken~with sprechen sprichst/spricht hat/gesprochen prepositional:mit+dat person person place
play~with spielen - hat/gespielt prepositional:mit+dat person pet place
play~with spielen - hat/gespielt prepositional:mit+dat person toy place
dream~of träumen - hat/geträumt prepositional:von+dat person person non-volitional
take:took:taken+part~in teil-nehmen nimmst/nimmt hat/teilgenommen prepositional:an+dat person event -

go:went:gone gehen - ist/gegangen motion person place -
come:came:come kommen - ist/gekommen motion person place -
run:ran:run:running laufen läufst/läuft ist/gelaufen motion animate place -
lie:lay:lain:lying liegen - hat/gelegen position portable surface -
sit:sat:sat:sitting sitzen sitzt/sitzt hat/gesessen position person seat -
stand:stood:stood stehen - hat/gestanden position person building -
place legen - hat/gelegt placement person portable -

be:was:been:being sein bist/ist ist/gewesen be anything - stative
have:had:had haben hast/hat hat/gehabt have person ownable stative
know:knew:known wissen weißt/weiß hat/gewusst that person - stative
believe glauben - hat/geglaubt that person - stative
hope hoffen - hat/gehofft that person - stative
say:said:said sagen - hat/gesagt that person - stative
ask fragen - hat/gefragt whether person - stative
try versuchen - hat/versucht infinitive person - -
forget:forgot:forgotten:forgetting vergessen vergisst/vergisst hat/vergessen infinitive person - -
promise versprechen versprichst/verspricht hat/versprochen infinitive person - -
"""


def _parse_english(english: str) -> tuple[list[str], str, str]:
    """Parse a column such as "take:took:taken+part~in": forms, particle, preposition."""
    english, _, preposition = english.partition("~")
    particle = ""
    if "+" in english:
        before, _, after = english.partition("+")
        particle, *irregular = after.split(":")
        english = ":".join([before, *irregular])
    return english.split(":"), particle, preposition


def _parse_verb(row: str) -> Verb:
    english, german, present, perfect, frame, subject, object_tag, features = row.split()
    irregular, particle, english_preposition = _parse_english(english)
    third_person, past, participle, ing_form = verb_forms(*irregular)
    prefix, _, stem = german.rpartition("-")
    du, _, er = present.partition("/")
    auxiliary, _, german_participle = perfect.partition("/")
    frame, _, government = frame.partition(":")
    governed_preposition, _, case = government.partition("+")
    return Verb(
        english=irregular[0],
        third_person=third_person,
        past=past,
        participle=participle,
        ing_form=ing_form,
        particle=particle,
        english_preposition="" if governed_preposition else english_preposition,
        german=stem,
        prefix=prefix,
        du_form=regular_du_form(stem) if present == "-" else du,
        er_form=regular_er_form(stem) if present == "-" else er,
        german_participle=german_participle,
        auxiliary={"hat": "haben", "ist": "sein"}[auxiliary],
        frame=frame,
        subject=subject,
        object=object_tag,
        preposition=Preposition(english_preposition, governed_preposition, case) if governed_preposition else None,
        features=frozenset(features.split(",")),
        cue_words=frozenset({irregular[0], third_person, past, participle, ing_form, "is", "are", "am", "was", "were"})
        if irregular[0] == "be"
        else frozenset({irregular[0], third_person, past, participle, ing_form}),
    )


VERBS: tuple[Verb, ...] = tuple(_parse_verb(row) for row in _TABLE.splitlines() if row)

BY_FRAME: dict[str, tuple[Verb, ...]] = {
    frame: tuple(verb for verb in VERBS if verb.frame == frame) for frame in sorted({verb.frame for verb in VERBS})
}
(BE,) = BY_FRAME["be"]
(HAVE,) = BY_FRAME["have"]
