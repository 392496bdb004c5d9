"""Language codes and names, and language detection from file names and text."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from heedful.errors import UsageError

# ISO 639-1 code, ISO 639-3 code, English name.
_NAMES = """
aa aar Afar            ab abk Abkhazian     ae ave Avestan       af afr Afrikaans     ak aka Akan
am amh Amharic         an arg Aragonese     ar ara Arabic        as asm Assamese      av ava Avaric
ay aym Aymara          az aze Azerbaijani   ba bak Bashkir       be bel Belarusian    bg bul Bulgarian
bi bis Bislama         bm bam Bambara       bn ben Bengali       bo bod Tibetan       br bre Breton
bs bos Bosnian         ca cat Catalan       ce che Chechen       ch cha Chamorro      co cos Corsican
cr cre Cree            cs ces Czech         cu chu Slavonic      cv chv Chuvash       cy cym Welsh
da dan Danish          de deu German        dv div Divehi        dz dzo Dzongkha      ee ewe Ewe
el ell Greek           en eng English       eo epo Esperanto     es spa Spanish       et est Estonian
eu eus Basque          fa fas Persian       ff ful Fulah         fi fin Finnish       fj fij Fijian
fo fao Faroese         fr fra French        fy fry Frisian       ga gle Irish         gd gla Gaelic
gl glg Galician        gn grn Guarani       gu guj Gujarati      gv glv Manx          ha hau Hausa
he heb Hebrew          hi hin Hindi         ho hmo Motu          hr hrv Croatian      ht hat Haitian
hu hun Hungarian       hy hye Armenian      hz her Herero        ia ina Interlingua   id ind Indonesian
ie ile Interlingue     ig ibo Igbo          ii iii Yi            ik ipk Inupiaq       io ido Ido
is isl Icelandic       it ita Italian       iu iku Inuktitut     ja jpn Japanese      jv jav Javanese
ka kat Georgian        kg kon Kongo         ki kik Kikuyu        kj kua Kwanyama      kk kaz Kazakh
kl kal Greenlandic     km khm Khmer         kn kan Kannada       ko kor Korean        kr kau Kanuri
ks kas Kashmiri        ku kur Kurdish       kv kom Komi          kw cor Cornish       ky kir Kyrgyz
la lat Latin           lb ltz Luxembourgish lg lug Ganda         li lim Limburgish    ln lin Lingala
lo lao Lao             lt lit Lithuanian    lu lub Luba-Katanga  lv lav Latvian       mg mlg Malagasy
mh mah Marshallese     mi mri Maori         mk mkd Macedonian    ml mal Malayalam     mn mon Mongolian
mr mar Marathi         ms msa Malay         mt mlt Maltese       my mya Burmese       na nau Nauru
nb nob Norwegian       nd nde Ndebele       ne nep Nepali        ng ndo Ndonga        nl nld Dutch
nn nno Nynorsk         no nor Norwegian     nr nbl Ndebele       nv nav Navajo        ny nya Chichewa
oc oci Occitan         oj oji Ojibwa        om orm Oromo         or ori Odia          os oss Ossetian
pa pan Punjabi         pi pli Pali          pl pol Polish        ps pus Pashto        pt por Portuguese
qu que Quechua         rm roh Romansh       rn run Rundi         ro ron Romanian      ru rus Russian
rw kin Kinyarwanda     sa san Sanskrit      sc srd Sardinian     sd snd Sindhi        se sme Sami
sg sag Sango           si sin Sinhala       sk slk Slovak        sl slv Slovenian     sm smo Samoan
sn sna Shona           so som Somali        sq sqi Albanian      sr srp Serbian       ss ssw Swati
st sot Sotho           su sun Sundanese     sv swe Swedish       sw swa Swahili       ta tam Tamil
te tel Telugu          tg tgk Tajik         th tha Thai          ti tir Tigrinya      tk tuk Turkmen
tl tgl Tagalog         tn tsn Tswana        to ton Tongan        tr tur Turkish       ts tso Tsonga
tt tat Tatar           tw twi Twi           ty tah Tahitian      ug uig Uyghur        uk ukr Ukrainian
ur urd Urdu            uz uzb Uzbek         ve ven Venda         vi vie Vietnamese    vo vol Volapuk
wa wln Walloon         wo wol Wolof         xh xho Xhosa         yi yid Yiddish       yo yor Yoruba
za zha Zhuang          zh zho Chinese       zu zul Zulu
"""
_WORDS = _NAMES.split()
_BY_CODE = dict(zip(_WORDS[::3], _WORDS[2::3], strict=True))
_SHORT = dict(zip(_WORDS[1::3], _WORDS[::3], strict=True))  # eng → en
# BCP 47: a language, optionally a script and a region; or a private-use code.
_CODE = re.compile(r"([a-z]{2,3})([-_][a-z]{4})?([-_](?:[a-z]{2}|\d{3}))?", re.IGNORECASE)
_PRIVATE = re.compile(r"x(-[a-z0-9]{1,8})+", re.IGNORECASE)
# In file names a region must be in upper case: de-en is a language pair, pt-BR is not.
_IN_NAME = re.compile(r"[a-z]{2,3}([-_][A-Z][a-z]{3})?([-_](?:[A-Z]{2}|\d{3}))?")
_PAIR_IN_NAME = re.compile(r"(?:^|[-_])([a-z]{2,3})[-_]([a-z]{2,3})$")
_FORMATS = ("gz", "zst", "txt", "tsv", "jsonl", "tmx")  # extensions that are not language codes

# Languages that an identifier confuses even on clean text: no warning within a group.
_ALIKE = (
    {"no", "nb", "nn", "da"},
    {"hr", "bs", "sr", "sl"},
    {"id", "ms"},
    {"cs", "sk"},
    {"pt", "gl"},
    {"zh", "yue", "wuu"},
)
_LINES, _TOGETHER = 200, 10  # sampled lines, and lines identified together, because single lines are too short
_SURE, _MAJORITY = 0.9, 0.8  # minimum probability per group of lines, and minimum fraction of groups that agree
_VERY_SURE = 0.99  # minimum probability for a single line


class Languages(NamedTuple):
    source: str
    target: str


def language_name(code: str) -> str:
    """Return the English name of a language, or the code itself if unknown."""
    return _BY_CODE.get(base(code), code)


def base(code: str) -> str:
    """Return the language without region, in two letters if possible: pt for pt-BR."""
    first = re.split("[-_]", code.lower())[0]
    return _SHORT.get(first, first)


def is_known(code: str) -> bool:
    """Return whether a code is that of a language in our table."""
    return base(code) in _BY_CODE


def require_code(code: str, where: str) -> str:
    """Return a code in its usual spelling (pt_br becomes pt-BR); raise UsageError if invalid."""
    if _PRIVATE.fullmatch(code):
        return code
    found = _CODE.fullmatch(code)
    language = found[1].lower() if found else ""
    if found is None or (len(language) == 2 and language not in _BY_CODE):
        shown = code.encode("utf-8", "backslashreplace").decode()
        raise UsageError(
            f'{where}: "{shown}" is not a language code. Use an ISO 639 code such as en, de or hsb, with a region '
            f"or a script where you need one (pt-BR, zh-Hans), or a private-use code (x-mine).{_hint(code)}"
        )
    script, region = (part[1:] if part else "" for part in found.groups()[1:])
    return "-".join(part for part in (language, script.title(), region.upper()) if part)


def _hint(name: str) -> str:
    """Return a suggestion if a language was given by its name."""
    codes = {known: code for code, known in _BY_CODE.items()}
    close = difflib.get_close_matches(name.title(), codes, n=1, cutoff=0.85)
    return f' Did you mean "{codes[close[0]]}"?' if close else ""


def with_languages(argument: str) -> tuple[str, Languages | None]:
    """Split MODEL:en:fr into path and languages. A path that exists is not split."""
    path, *codes = argument.rsplit(":", 2)
    if len(codes) < 2 or Path(argument).exists():
        return argument, None
    return path, Languages(*(require_code(code, argument) for code in codes))


def from_names(source: Sequence[str], target: Sequence[str]) -> Languages | None:
    """Return the languages in file names (train.en, corpus.de-en.en.gz, pairs.en-de.tsv)."""
    if target:
        found = {
            Languages(_of_name(left) or "", _of_name(right) or "") for left, right in zip(source, target, strict=False)
        }
    else:
        found = {_of_table(name) or Languages("", "") for name in source}
    languages = found.pop() if len(found) == 1 else Languages("", "")
    return languages if all(languages) and languages.source != languages.target else None


def _parts(name: str) -> list[str]:
    parts = Path(name).name.split(".")
    while len(parts) > 1 and parts[-1] in _FORMATS:
        parts.pop()
    return parts


def _of_name(name: str) -> str | None:
    last = _parts(name)[-1]
    known = _IN_NAME.fullmatch(last) and base(last) in _BY_CODE
    return require_code(last, name) if known else None


def _of_table(name: str) -> Languages | None:
    found = _PAIR_IN_NAME.search(_parts(name)[-1])
    codes = found.groups() if found else ()
    return Languages(*codes) if codes and all(base(code) in _BY_CODE for code in codes) else None


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # its model takes a second to load

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def identify(lines: Iterable[str]) -> str | None:
    """Return the language of a text, from its first lines; None if it is not clear."""
    sample = list(islice((line for line in lines if line.strip()), _LINES))
    answers: Counter[str] = Counter()
    texts = [" ".join(sample[begin : begin + _TOGETHER]) for begin in range(0, len(sample), _TOGETHER)]
    for text in texts:
        code, probability = _identifier().classify(text)
        answers[base(code)] += probability >= _SURE
    for code, count in answers.most_common(1):
        if code in _BY_CODE and count >= _MAJORITY * len(texts):
            return code
    return None


def disagrees(stated: str, found: str | None) -> bool:
    """Return whether a text is clearly not in the stated language, if both are known."""
    if found is None or base(stated) == found:
        return False
    alike = any({base(stated), found} <= group for group in _ALIKE)
    return not alike and base(stated) in {base(label) for label in _identifier().labels}


def contradicting_language(stated: str, lines: Iterable[str]) -> str | None:
    """Return the language of a text if it is clearly not the stated one, otherwise None."""
    found = identify(lines) if stated else None
    return found if disagrees(stated, found) else None


def sure_language(text: str) -> str | None:
    """Return the language of one text if the identifier is very sure of it, otherwise None."""
    code, probability = _identifier().classify(text)
    return base(code) if probability >= _VERY_SURE else None
