"""Names of languages by their ISO 639-1 codes, for the tools that show them to people."""

from __future__ import annotations

_NAMES = """
af Afrikaans   am Amharic     ar Arabic      az Azerbaijani be Belarusian  bg Bulgarian   bn Bengali     bs Bosnian
ca Catalan     cs Czech       cy Welsh       da Danish      de German      el Greek       en English     eo Esperanto
es Spanish     et Estonian    eu Basque      fa Persian     fi Finnish     fo Faroese     fr French      ga Irish
gd Gaelic      gl Galician    gu Gujarati    ha Hausa       he Hebrew      hi Hindi       hr Croatian    hu Hungarian
hy Armenian    id Indonesian  ig Igbo        is Icelandic   it Italian     ja Japanese    ka Georgian    kk Kazakh
km Khmer       kn Kannada     ko Korean      ky Kyrgyz      la Latin       lb Luxembourgish lo Lao       lt Lithuanian
lv Latvian     mg Malagasy    mi Maori       mk Macedonian  ml Malayalam   mn Mongolian   mr Marathi     ms Malay
mt Maltese     my Burmese     nb Norwegian   ne Nepali      nl Dutch       nn Nynorsk     no Norwegian   oc Occitan
pa Punjabi     pl Polish      ps Pashto      pt Portuguese  rm Romansh     ro Romanian    ru Russian     rw Kinyarwanda
sa Sanskrit    sd Sindhi      si Sinhala     sk Slovak      sl Slovenian   sm Samoan      sn Shona       so Somali
sq Albanian    sr Serbian     su Sundanese   sv Swedish     sw Swahili     ta Tamil       te Telugu      tg Tajik
th Thai        tk Turkmen     tl Tagalog     tr Turkish     tt Tatar       ug Uyghur      uk Ukrainian   ur Urdu
uz Uzbek       vi Vietnamese  xh Xhosa       yi Yiddish     yo Yoruba      zh Chinese     zu Zulu
"""
_WORDS = _NAMES.split()
_BY_CODE = dict(zip(_WORDS[::2], _WORDS[1::2], strict=True))


def language_name(code: str) -> str:
    """English; a code that is not known is its own name."""
    return _BY_CODE.get(code, code)
