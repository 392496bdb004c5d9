"""Tag soup: no visible word is lost, joined or duplicated.

The oracle for what is visible is another parser, html5lib.

The soup has a grammar of awkward constructs and random mutations. Words are unique, so that each can be found again.
"""

from __future__ import annotations

import html
import random
import re
from typing import Any

import html5lib
import pytest
from html5lib import _tokenizer as html5lib_tokenizer
from html5lib.constants import tokenTypes
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.config import EOS
from heedful.serving.documents import HtmlDocument
from heedful.serving.file_formats import read_document
from heedful.serving.html_tokens import names, tokenize_html
from heedful.serving.inline_markup import AlignedText, Word
from heedful.text.text_segments import Segment, SegmentedText, segment_text


class CharacterTranslator:
    """What HtmlDocument needs of a translator; each character is a token."""

    def segment(self, text: str) -> SegmentedText:
        return segment_text(text, lambda part: [*map(ord, part), EOS], 1_000, True)

    def text(self, ids: list[int]) -> str:
        return "".join(map(chr, ids[:-1]))


def words(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]


def identity(segment: Segment) -> AlignedText:
    source = words(segment.text)
    rows = [[float(row == column) for column in range(len(source))] for row in range(len(source))]
    return AlignedText(segment.text, [Word(*span, row, 0) for span, row in zip(source, rows, strict=True)], source)


def shuffled(segment: Segment, choose: random.Random) -> AlignedText:
    """Other words, in any number, with any alignment; some are copied."""
    source = words(segment.text)
    own = [segment.text[slice(*span)] for span in source]
    found = [choose.choice([*own, "X", "Y.", "Zz"]) for _ in range(choose.randint(0, len(own) + 2))]
    text, target = " ".join(found), []
    for word in found:
        start = target[-1].end + 1 if target else 0
        target.append(Word(start, start + len(word), [choose.random() for _ in source], 0))
    return AlignedText(text, target, source)


def translated(page: str, choose: random.Random | None = None) -> str:
    """Return the page with identical text, or with arbitrary translations."""
    document = HtmlDocument(page, CharacterTranslator())  # type: ignore[arg-type]
    found = {
        number: identity(segment) if choose is None else shuffled(segment, choose)
        for number, segment in enumerate(document.segments)
    }
    if choose is None:
        found = {number: found[number] for number in document.to_align}
    return document.fill([[*map(ord, segment.text), EOS] for segment in document.segments], found)


HIDDEN = {"script", "style", "template", "noframes", "iframe", "noembed"}
INLINE = HIDDEN | names(
    "a abbr b bdi bdo big cite code data del dfn em font i img input ins kbd label map mark math mi nobr picture q "
    "rb rp rt rtc ruby s samp small span strike strong sub sup svg time tt u var wbr"
) - {"noframes", "iframe", "noembed"}


def visible(page: str) -> str:
    """The text of a page by html5lib, with a space around blocks."""
    pieces: list[str] = []

    def walk(element: Any) -> None:
        name = element.tag if isinstance(element.tag, str) else ""
        if name and name not in HIDDEN:
            around = "" if name in INLINE else " "
            pieces.append(around + (element.text or ""))
            for child in element:
                walk(child)
            pieces.append(around)
        pieces.append(element.tail or "")

    parse = html5lib.parse if re.match(r"\s*<(!doctype|html|head|body)", page, re.I) else html5lib.parseFragment
    walk(parse(page, treebuilder="etree", namespaceHTMLElements=False))
    return re.sub("[\0\ufffd]", " ", "".join(pieces))


def characters_and_borders(text: str) -> tuple[str, set[int]]:
    """The text without white space, and where white space was."""
    parts = text.split()
    borders, length = set(), 0
    for part in parts:
        length += len(part)
        borders.add(length)
    return "".join(parts), borders


def is_unclosed(page: str) -> bool:
    """Whether a browser drops the rest of the page."""
    return any(
        token["type"] == tokenTypes["ParseError"] and "eof" in token["data"].lower()
        for token in html5lib_tokenizer.HTMLTokenizer(page)
    ) or any(token.text == "<" for token in tokenize_html(page))


TAGS = (
    *("<b>", "</b>", "<I>", "</i>", "<a href=x>", "</a>", "<a href='x>y'>", '<a href="x>', "<b x=1 x=2>", "</span>"),
    *("<p>", "</p>", "<DIV>", "</div>", "<ul>", "<li>", "</ul>", "<h1>", "</h1>", "<br>", "</br>", "<hr>", "<wbr>"),
    *("<img alt='a b'>", "<input placeholder=x>", "<ruby>", "<rt>", "</rt>", "<rp>", "</rp>", "</ruby>", "<x-y>"),
    *("<table>", "<tr>", "<td>", "</td>", "</table>", "<caption>", "<dl>", "<dt>", "<dd>", "<button>", "</button>"),
    *("<!-- c -->", "<!---->", "<!-->", "<!--", "-->", "--!>", "<!doctype html>", "<?x y?>", "<![CDATA[x]]>", "</>"),
    *("<title>", "</title>", "<textarea>", "</textarea>", "<pre>", "</pre>", "<xmp>", "</xmp>", "<noscript>"),
    *("<script>a<b</script>", "<style>p > a {}</style>", "<template>t</template>", "<svg><g/></svg>", "</noscript>"),
    *("<math><mi>x</mi></math>", "<code>", "</code>", "<span translate=no>", "<em class=notranslate>", "</em>"),
    *("</body>", "</html>", "<body>", "<", "<3", "a<b ", " < ", ">", '"', "'", "&amp", "&lt;", "&nbsp;", "&shy;", "&"),
    *("\0", " ", " ", " ", "\n", "\t", ". ", ", ", "(", ")", ". The ", "。", "/", "-", "=", "!"),
)
# Without those that would make a tag after them text or an attribute.
AROUND = tuple(tag for tag in TAGS if tag not in ("<title>", "a<b ", '<a href="x>'))
START = ("", "", "", "<!DOCTYPE html><html><head><title>T</title></head><body>")


@st.composite
def soups(draw: st.DrawFn) -> str:
    """Tags and unique words, with a few characters deleted."""
    parts = draw(st.lists(st.one_of(st.sampled_from(TAGS), st.just("w"), st.just("w ")), max_size=16))
    page = draw(st.sampled_from(START)) + "".join(
        f"w{number}w{part[1:]}" if part.startswith("w") else part for number, part in enumerate(parts)
    )
    for place in draw(st.lists(st.integers(0, 200), max_size=2)):
        page = page[:place] + page[place + 1 :]
    return page


@settings(max_examples=1_000, deadline=None)
@given(soups())
def test_every_visible_word_comes_out_in_order(page: str) -> None:
    source, found = visible(page), visible(translated(page))
    if is_unclosed(page):  # what a browser drops is added
        for word in set(re.findall(r"w\d+w", source)):
            assert found.count(word) == source.count(word), page
        return
    characters, borders = characters_and_borders(source)
    found_characters, found_borders = characters_and_borders(found)
    assert found_characters == characters
    assert borders <= found_borders, "joined"


def translated_file(page: str) -> str:
    """Return the page as a translated file: its texts are requests of their own."""
    document = read_document(page, ".html", 1_000)
    return document.filled([translated(text) for text in document.texts()])


@settings(max_examples=500, deadline=None)
@given(soups())
def test_a_file_shows_what_the_same_page_in_a_request_shows(page: str) -> None:
    assert visible(translated_file(page)).split() == visible(translated(page)).split()


def test_an_unclosed_quote_hides_nothing_in_a_file() -> None:
    assert translated_file('<p title="x>one</p><p>two</p>') == '<p title="x">one</p><p>two</p>'
    assert translated_file("<p>1 <!-- 2</p><p>two</p>") == "<p>1 &lt;!-- 2</p><p>two</p>"


@settings(max_examples=500, deadline=None)
@given(soups(), st.randoms(use_true_random=False))
def test_no_word_of_the_source_is_lost(page: str, choose: random.Random) -> None:
    """Also none that is in a comment, an attribute or a script."""
    found = translated(page)
    for word in re.findall(r"w\d+w", page):
        assert found.count(word) == 1


@settings(max_examples=500, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(AROUND), st.just("w")), max_size=12), st.randoms(use_true_random=False))
def test_untranslated_elements_are_neither_lost_nor_duplicated(parts: list[str], choose: random.Random) -> None:
    kept = []
    for number, part in enumerate(parts):
        if part == "w":
            name = choose.choice(["<code>{}</code>", "<b translate=no>{}</b>", "<i class=notranslate>{}. Bb</i>"])
            kept.append(name.format(f"k{number}"))
            parts[number] = kept[-1]
    page = "".join(parts)
    found = translated(page, choose)
    for element in kept:
        assert found.count(element) + found.count(html.escape(element, quote=False)) == page.count(element), page


CONTENT = {
    **dict.fromkeys(("style", "xmp", "iframe", "noembed", "noframes"), "rawtextState"),
    **dict.fromkeys(("title", "textarea"), "rcdataState"),
    "script": "scriptDataState",
    "plaintext": "plaintextState",
}


def joined(tokens: list[tuple[str, str]]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for kind, text in tokens:
        if kind == "text" and found and found[-1][0] == "text":
            found[-1] = ("text", found[-1][1] + text)
        else:
            found.append((kind, text))
    return found


def tokens_by_html5lib(page: str) -> list[tuple[str, str]] | None:
    """Texts and tag names; None if the rest of the page is dropped."""
    found = []
    tokenizer = html5lib_tokenizer.HTMLTokenizer(page)
    for token in tokenizer:
        kind = token["type"]
        if kind == tokenTypes["ParseError"] and "eof" in token["data"].lower():
            return None
        if kind in (tokenTypes["Characters"], tokenTypes["SpaceCharacters"]):
            found.append(("text", token["data"]))
        elif kind in (tokenTypes["StartTag"], tokenTypes["EndTag"]):
            found.append(("start" if kind == tokenTypes["StartTag"] else "end", token["name"]))
            if found[-1][0] == "start" and token["name"] in CONTENT:
                tokenizer.state = getattr(tokenizer, CONTENT[token["name"]])
    return joined(found)


PIECES = (
    *("a", "<b>", "</b>", "<b", '<a href="', 'x">', "'>", "=", '"', "'", ">", "<", "/", "!", "--", "-->", "<!--", "-"),
    *("--!>", "<!", "<?", "?>", "<![CDATA[", "]]>", "</", "</p>", "<p ", "<SCRIPT>", "</script>", "<script", " ", "\n"),
    *("</script ", "<style>", "</style/>", "<title>", "</title>", "<textarea>", "</textarea>", "<plaintext>", "<xmp>"),
    *("</xmp>", "&amp", "&lt;", "&", "x", "<3", "a<b", "<br/>", "<img alt='a>b'>", "<iframe>", "</iframe>"),
)


@settings(max_examples=1_000, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=16).map("".join))
def test_tokens_are_those_of_html5lib(page: str) -> None:
    tokens = list(tokenize_html(page))
    assert "".join(token.text for token in tokens) == page
    expected = tokens_by_html5lib(page)
    if expected is None or re.search(r"<[!?/]", page[page.rfind(">") + 1 :]):
        return
    raw = {"textarea", "title"}
    assert expected == joined(
        [
            ("text", token.text if token.kind == "raw" and token.name not in raw else html.unescape(token.text))
            if token.kind in ("text", "raw")
            else (token.kind, token.name)
            for token in tokens
            if token.kind != "comment"
        ]
    )


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("x<code>y</code>z", "x<code>y</code>z"),
        ("<code>a</code>/<code>b</code>, c", "<code>a</code>/ <code>b</code>, c"),
        (f"see <code>{'a' * 61}</code> here", None),
        ("un<b>do</b>ne", "<b>undone</b>"),
    ],
)
def test_names_inside_a_word(page: str, expected: str | None) -> None:
    found = translated(page)
    assert (found == expected) if expected else found.split() == page.split()
