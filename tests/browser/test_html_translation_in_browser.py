"""A translated page has the same visible text, with an identity translator.

Chromium's innerText is the oracle.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Any

import pytest

from heedful.config import EOS
from heedful.serving.documents import HtmlDocument
from heedful.serving.file_formats import read_document
from heedful.serving.inline_markup import AlignedText, Word
from heedful.text.text_segments import Segment, SegmentedText, segment_text

pytestmark = pytest.mark.browser


class CharacterTranslator:
    """What HtmlDocument needs of a translator; each character is a token."""

    def segment(self, text: str) -> SegmentedText:
        return segment_text(text, lambda part: [*map(ord, part), EOS], 1_000, True)

    def text(self, ids: list[int]) -> str:
        return "".join(map(chr, ids[:-1]))


PAGES = {
    "misnested": "<p>one <b>two <i>three</b> four</i> five</p>",
    "unclosed inline": "<p>one <b>two<p>three</p>four",
    "unclosed paragraphs and items": "<p>one<p>two<ul><li>three<li>four</ul>five",
    "block in inline": "<b>one<p>two</p>three</b> four",
    "links": "<p>See <a href='/x?a=1&amp;b=2'>this page</a>, or <a href=y>that</a>.</p>",
    "half a word": "<p>un<b>believ</b>able, <i>really</i>!</p>",
    "line breaks": "<p>One.<br>Two.<br/>Three</br>four</p>",
    "entities": "<p>a &amp; b &lt; c &copy; d&nbsp;e &eacute; &#x41; &notin; &amp;lt; &unknown;</p>",
    "script and style": "<p>one<script>if (a<b) '</p>'</script> two</p><style>p > b {}</style><p>three</p>",
    "comment": "<p>one <!-- hidden <b> --> two<!-- --> three</p>",
    "odd comments": "<p>one<!--> two <!---> three <!-- x --!> four</p>",
    "not translated": "<p>Run <code>make  test</code> in <span translate=no>The Shell</span> now.</p>",
    "preformatted": "<pre>one\n  two</pre><p>three</p>",
    "textarea": "<p>one</p><textarea><b>two</b></textarea><p>three</p>",
    "table": "<table><tr><th>one<th>two<tr><td>three<td>four</table>",
    "text in a table": "<table>one<tr><td>two</td></tr></table>",
    "definition list": "<dl><dt>one<dd>two<dt>three<dd>four</dl>",
    "select": "<select><option>one<option>two</select><p>three</p>",
    "ruby": "<p>I see <ruby>dog<rp>(</rp><rt>dokku</rt><rp>)</rp></ruby> now.</p>",
    "svg": "<p>one <svg width=9 height=9><title>t</title><text>hidden</text></svg> two</p>",
    "math": "<p>one <math><mi>x</mi><mo>=</mo><mn>2</mn></math> two</p>",
    "template": "<p>one <template><p>two</p></template> three</p>",
    "hidden": "<p>one <span hidden>two</span> three</p><p style='display:none'>four</p>",
    "stray end tags": "</b>one</i></p>two</div></span>three",
    "attributes": "<p title='x > y' data-a=\"it's\">one</p><P CLASS=a CLASS=b>two</P>",
    "upper case": "<DIV>one <B>two</B><BR>three</DIV>",
    "slashes": "<p/>one<br / >two<b/>three</b>",
    "less than": "<p>1 < 2 and a <3 b, x<y</p><p>two</p>",
    "custom elements": "<p>one <x-y>two</x-y> three</p>",
    "nested": "<div>" * 60 + "one" + "</div>" * 60 + "<b>" * 40 + "two" + "</b>" * 40,
    "headings": "<h1>One</h1>two<h2>Three <em>four</em></h2>",
    "details": "<details open><summary>one</summary>two</details>",
    "buttons": "<p>one <button>two</button> three <label>four <input value=five></label></p>",
    "right to left": "<p dir=rtl>אחד <b>שתיים</b> שלוש</p>",
    "without spaces": "<p>今日は。<b>元気</b>ですか？はい。</p>",
    "whole page": "<!DOCTYPE html><html><head><title>T</title></head><body><p>one</p></body></html>two",
    "no space after a sentence": "<p>One.<b>Two</b>.<i>Three</i></p>",
    "noscript": "<p>one <noscript>two</noscript> three</p>",
}
UNCLOSED = {  # a browser hides what follows; the translation shows it
    "quote in a block tag": ('<p title="x>one</p><p>two</p>', "one two"),
    "quote in an inline tag": ('<p>one <a href="x>two</a> three</p>', "one two three"),
    "comment": ("<p>one</p><!-- two <p>three</p>", "one <!-- two three"),
}


def aligned(segment: Segment) -> AlignedText:
    """Every word is aligned with itself."""
    spans = [match.span() for match in re.finditer(r"\S+", segment.text)]
    words = [Word(*span, [float(span == other) for other in spans], 0) for span in spans]
    return AlignedText(segment.text, words, spans)


def in_request(page: str) -> str:
    document = HtmlDocument(page, CharacterTranslator())  # type: ignore[arg-type]
    found = {number: aligned(document.segments[number]) for number in document.to_align}
    return document.fill([[*map(ord, one.text), EOS] for one in document.segments], found)


def in_file(page: str) -> str:
    document = read_document(page, ".html", 1_000)
    return document.filled([in_request(text) for text in document.texts()])


@pytest.fixture(scope="module")
def visible(chromium: Any) -> Any:
    context = chromium.new_context()
    tab = context.new_page()

    def text(page: str) -> str:
        tab.set_content(page)
        return " ".join(tab.evaluate("document.body.innerText").split())

    yield text
    context.close()


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("translated", [in_request, in_file])
def test_visible_text_is_unchanged(name: str, translated: Any, visible: Any) -> None:
    expected, found = visible(PAGES[name]), visible(translated(PAGES[name]))
    assert found.replace(" ", "") == expected.replace(" ", "")
    # A space may be added where an untranslated element or a sentence touches a word; no words are joined.
    assert borders(expected) <= borders(found)


def borders(text: str) -> set[int]:
    """Where words end, counted in characters without spaces."""
    return set(accumulate(map(len, text.split())))


@pytest.mark.parametrize("name", UNCLOSED)
@pytest.mark.parametrize("translated", [in_request, in_file])
def test_unclosed_markup_hides_nothing(name: str, translated: Any, visible: Any) -> None:
    page, expected = UNCLOSED[name]
    assert visible(translated(page)) == expected
