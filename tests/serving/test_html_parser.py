"""HTML parsing into runs and markup, and reassembly."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.config import EOS
from heedful.decoding.translator import Translator
from heedful.serving.documents import HtmlDocument
from heedful.serving.html_parser import parse_html
from heedful.serving.inline_markup import AlignedText, Node, Run, Word
from heedful.text.text_segments import Segment


def runs(html: str) -> list[str]:
    return [part.text for part in parse_html(html) if isinstance(part, Run)]


def identity(segment: Segment, text: str) -> AlignedText:
    """The n-th word comes from the n-th."""
    source, target = ([match.span() for match in re.finditer(r"\w+|[^\w\s]", one)] for one in (segment.text, text))
    count = max(1, len(source))
    words = [Word(*span, [float(column == row) for column in range(count)], 0) for row, span in enumerate(target)]
    return AlignedText(text, words, source)


def echoed(html: str, translator: Translator, upper: bool = False) -> str:
    """The document whose translation is its own text, or that in capitals."""
    document = HtmlDocument(html, translator)
    texts = [segment.text.upper() if upper else segment.text for segment in document.segments]
    found = [[*translator.model.tokenizer.encode(text), EOS] for text in texts]
    return document.fill(
        found, {number: identity(document.segments[number], texts[number]) for number in document.to_align}
    )


RUNS = [
    ("his <b>red</b> hat", ["his red hat"]),
    ("<p>One\n  two.\n</p><p>Three", ["One two. ", "Three"]),
    ("<p>One\ttwo\t\n\tthree</p>", ["One two three"]),
    ("<ul><li>One<li>Two</ul>Three", ["One", "Two", "Three"]),
    ("a &amp; b &lt; c", ["a & b < c"]),
    ("One<br>two", ["One two"]),
    ("One <!-- no --> two", ["One  two"]),
    ("<script>if (a<b) x()</script>One", ["One"]),
    ("<pre>a &lt; b</pre>One", ["One"]),
    ("One <textarea>a</textarea> two", ["One ", " two"]),
    ("<p translate=no>One</p><p class='x notranslate'>Two</p><div translate='NO'><p>x</p></div>Three", ["Three"]),
    ("<p>One <b>two", ["One two"]),
    ("<b>One<p>two</p></b>", ["One", "two"]),
    ("<a><div>One</div></a> two", ["One", " two"]),
    ("One < two", ["One < two"]),
    ("</div>One</b>", ["One"]),
]


@pytest.mark.parametrize(("html", "expected"), RUNS, ids=[html for html, _ in RUNS])
def test_translated_and_untranslated_parts(html: str, expected: list[str]) -> None:
    assert [text for text in runs(html) if text] == expected


UNCHANGED = [
    '<p>One <b class="x">two</b>.</p>',
    '<a href="x?a=1&amp;b=2" title="&quot;&lt;b&gt;">One</a>',
    "<script>if (a<b) x()</script>One",
    "<style>p > a {}</style>",
    "<pre>a &lt; b</pre><code>c &amp; d</code> One",
    "<textarea>a &lt; b</textarea>",
    "One<!-- a -- b -->",
    "a&nbsp;b &lt; c &amp;amp;",
    '<ul><li>One</li><li>Two <img src="x" alt=""> </li></ul>',
    '<p translate="no">One <b>two</b></p>',
    "<td>One</td><td>Two</td>",
    '<p hidden><input type="checkbox" checked value=""> One</p>',
    " <b> </b> <br> <i></i> ",
    '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>One</title></head><body class="x"><p>Two</p>'
    "</body></html>",
    "<!DOCTYPE html><html><body><!-- a --><p>One</p></body></html>",
    "<o:p>One</o:p><custom-element>Two</custom-element>",
    "",
]


@pytest.mark.parametrize("html", UNCHANGED)
def test_identity_translation_reproduces_the_document(html: str, translator: Translator) -> None:
    assert echoed(html, translator) == html


def test_unclosed_elements_stay_as_they_are(translator: Translator) -> None:
    for page in ("<p>One <b>two", "<div>One <i>two</div> three", "<b>One<p>two</p></b>", "<b>a <i>b</b> c</i>"):
        assert echoed(page, translator) == page
    assert runs("<p>One <b>two</p>") == ["One two"]


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("One <code>x", "ONE <code>x</code>"),  # otherwise words that move behind it would become code
        ("<p>One <code>x</p><p>two", "<p>ONE <code>x</code></p><p>TWO"),
        ("<b>One <code>x</b> two", "<b>ONE <code>x</code></b> TWO"),
        ("<p translate=no>One<p>two", "<p translate=no>One<p>TWO"),
        ("<ul><li class=notranslate>x<ul><li>x</li></ul></li><li>two", None),
        ("One <svg><path/></svg> <code>a</code>, two", "ONE <svg><path/></svg> <code>a</code>, TWO"),
        ("<svg/>two", None),
    ],
)
def test_where_untranslated_elements_end(page: str, expected: str | None, translator: Translator) -> None:
    assert echoed(page, translator, upper=True) == (expected or page.replace("two", "TWO").replace("One", "ONE"))


def test_fragment_stays_a_fragment(translator: Translator) -> None:
    for html in ("One", "<p>One</p>", "<td>One</td>", "<li>One</li>", "<title>One</title>"):
        assert not re.search("<html|<body|<head", echoed(html, translator))
    assert echoed("<!DOCTYPE html><title>One</title><p>Two</p>", translator).count("<html") == 0


def test_untranslated_spans_are_kept_in_their_sentence(translator: Translator) -> None:
    found = echoed(
        'see <span class="notranslate">Ab. Cd!</span> and <code>x &lt; y</code> here', translator, upper=True
    )
    assert found.count('<span class="notranslate">Ab. Cd!</span>') == 1
    assert found.count("<code>x &lt; y</code>") == 1
    assert len(HtmlDocument('see <span class="notranslate">Ab. Cd!</span> here', translator).segments) == 1


def test_elements_that_hold_whole_sentences_need_no_alignment(translator: Translator) -> None:
    html = "<p><b>One.</b> <i>Two three.</i></p>"
    assert HtmlDocument(html, translator).to_align == []
    assert echoed(html, translator, upper=True) == "<p><b>ONE.</b> <i>TWO THREE.</i></p>"


def test_any_nesting_depth(translator: Translator) -> None:
    for tag in ("<b>", "<div>", "<code>", "<span translate=no>"):
        assert "End" in echoed(tag * 100_000 + "End", translator)


def test_a_large_document_takes_linear_time() -> None:
    """Quadratic algorithms would take minutes."""
    for html in (
        "<b>a</b> " * 50_000,
        "<p>a" * 50_000,
        "<!--" * 100_000,
        "<" * 300_000,
        "a<br>" * 50_000,
        "&" * 300_000,
    ):
        parse_html(html)


class Text(HTMLParser):
    """Another parser: the text of a document without that of scripts and comments."""

    def __init__(self) -> None:
        super().__init__()
        self.found = ""

    def handle_data(self, data: str) -> None:
        self.found += data


def text_of(html: str) -> str:
    reader = Text()
    reader.feed(html)
    reader.close()
    return "".join(reader.found.split())


INLINE = ["<b>", "</b>", "<i>", "</i>", "<br>", "<img>", "<a href=x>", "</a>", "<em></em>", "<!--c-->"]
BLOCKS = ["<p>", "</p>", "<div>", "</div>", "<li>", "<td>"]
UNTRANSLATED = ["<code>", "</code>", "<span translate=no>", "</span>"]
TAGS = st.sampled_from([*INLINE, *BLOCKS, *UNTRANSLATED, "&amp;", "&lt;", "&nbsp;"])
WORDS = st.sampled_from(["ba ", "bo", ". ", " Ka", "lu! ", "\n", " ", "mi?", "1"])


def hidden(nodes: list[Node]) -> str:
    """The text of untranslated spans that are too long for the model to read."""
    own = "".join(text_of(node.open) for node in nodes if node.untouched and node.start == node.end)
    return own + "".join(hidden(node.children) for node in nodes)


@settings(max_examples=200)
@given(st.lists(st.one_of(TAGS, WORDS), max_size=30))
def test_no_text_is_lost_for_arbitrary_tags(parts: list[str]) -> None:
    """The words of all runs and untranslated parts are those that another parser finds."""
    html = "".join(parts)
    found = "".join(
        part.text + hidden(part.nodes) if isinstance(part, Run) else text_of(part) for part in parse_html(html)
    )
    assert sorted(re.sub(r"[\s.!?,]", "", found)) == sorted(re.sub(r"[\s.!?,]", "", text_of(html)))


STRAY = st.sampled_from(["</body>", "</html>", "</heedful-fragment>", "<html>", "<body>", "<head>", "</p>", "<!--c-->"])


@settings(max_examples=300)
@given(
    st.sampled_from(["", "<html>", "<!doctype html>", "<html><body>"]),
    st.lists(st.one_of(STRAY, st.sampled_from(["<b>", "</b>", "<p>", "<div>", "</div>"]), WORDS), max_size=20),
)
def test_every_text_is_in_a_run_in_order(start: str, parts: list[str]) -> None:
    """Also after stray end tags; a space may be added between two sentences."""
    html = "".join((start, *parts))
    assert "".join("".join(runs(html)).split()) == text_of(html)


@pytest.mark.parametrize("end", ["</body>", "</html>", "</heedful-fragment>", "</body></html>"])
def test_text_behind_stray_end_tags(translator: Translator, end: str) -> None:
    assert runs(f"One.{end}Two <b>three</b>.<p>Four") == ["One.", "Two three.", "Four"]
    assert echoed(f"<p>one</p>{end}<p>two</p>", translator, upper=True) == f"<p>ONE</p>{end}<p>TWO</p>"


def test_text_behind_a_document_is_translated_too(translator: Translator) -> None:
    page = "<!DOCTYPE html><html><body><p>one</p></body></html>"
    assert echoed(f"{page}two", translator, upper=True) == page.replace("one", "ONE") + "TWO"
    assert echoed(f"{page}<!--c--><p>two</p>", translator, upper=True) == f"{page}<!--c--><p>TWO</p>".replace(
        "one", "ONE"
    )


@pytest.mark.parametrize("between", ["<!--x-->", "<!-- -->", "<![CDATA[x]]>", "<?x?>", "\0"])
def test_sentences_with_only_a_comment_between_them(translator: Translator, between: str) -> None:
    document = HtmlDocument(f"I see the dog.{between}The cat sees me.", translator)
    assert len(document.segments) == 2
    assert document.segments[1].text == "The cat sees me."


@pytest.mark.parametrize("html", ["un<!--x-->happy", "$1000.<!-- -->50", "example.<!-- -->com", "dog.<!--x--> The"])
def test_a_comment_inside_a_word_adds_nothing(html: str) -> None:
    assert runs(html) == [re.sub("<!--.*?-->", "", html)]


@settings(max_examples=60)
@given(parts=st.lists(st.one_of(TAGS, WORDS), max_size=14))
def test_every_tag_and_word_is_kept(translator: Translator, parts: list[str]) -> None:
    html = "".join(parts)
    found = echoed(html, translator)
    again = echoed(found, translator)
    assert sorted(re.findall(r"<[^>]*>", again)) == sorted(re.findall(r"<[^>]*>", found)), "well formed: stable"
    for tag in ("img", "br", "a ", "!--c--"):
        assert found.count(f"<{tag}") == html.count(f"<{tag}")
    if "<code>" not in html and "<span" not in html:
        assert sorted(text_of(found)) == sorted(text_of(html))


@given(st.text(st.sampled_from(list("<>/!-?&;a\"'= p[]b\0\x0b")), max_size=40))
def test_arbitrary_html_is_parsed(html: str) -> None:
    parse_html(html)


@pytest.mark.parametrize("page", ["one</br>two", "one</BR />two"])
def test_an_end_tag_of_br_separates_words_as_in_browsers(page: str) -> None:
    [run] = [part for part in parse_html(page) if isinstance(part, Run)]
    assert run.text.split() == ["one", "two"]


@pytest.mark.parametrize("tail", ["<b and c", "<a href=x", "</b", "<!-- two", "<!x", "<?x", '<a x="y'])
def test_unclosed_markup_is_text(tail: str) -> None:
    assert runs(f"a {tail}") == [f"a {tail}"]


def test_an_unclosed_quote_ends_with_its_tag(translator: Translator) -> None:
    assert echoed('a <a href="x>link</a> and more', translator, upper=True) == 'A <a href="x">LINK</a> AND MORE'


def test_a_stray_end_tag_of_a_paragraph_separates_words(translator: Translator) -> None:
    assert runs("one</p>two") == ["one", "two"]
    assert echoed("one</p>two", translator) == "one</p>two"


def test_a_doctype_inside_text_loses_nothing(translator: Translator) -> None:
    assert "".join(runs("x<!doctype html>y")) == "xy"


def test_readings_are_kept_and_not_translated(translator: Translator) -> None:
    page = "I see <ruby>dog<rp>(</rp><rt>dokku</rt><rp>)</rp></ruby> now"
    assert runs(page) == ["I see dog now"]
    assert echoed(page, translator, upper=True) == page.replace("I see", "I SEE").replace("dog", "DOG").replace(
        "now", "NOW"
    )
    assert runs("<ruby>a<rt>b<rp>c</ruby> d") == ["a d"]


def test_end_tags_inside_scripts_and_comments_are_unchanged(translator: Translator) -> None:
    page = '<script>"</br>"</script><!-- </br> <b -->'
    assert HtmlDocument(page, translator).fill([], {}) == page
