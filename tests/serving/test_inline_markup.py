"""Inline markup transfer with given alignments."""

from __future__ import annotations

import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.decoding.translator import Attention, Translator
from heedful.serving.html_parser import parse_html
from heedful.serving.inline_markup import AlignedText, Run, Word, restore
from heedful.serving.word_alignment import _weaken_mismatched_weights as like_with_like
from heedful.serving.word_alignment import align_words
from heedful.text.text_segments import Segment


def words(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]


def restored(html: str, translation: str, alignment: list[int]) -> str:
    """`alignment`: for each word of the translation the number of its source word."""
    (run,) = (part for part in parse_html(html) if isinstance(part, Run))
    source = words(run.text)
    rows = [[float(number == aligned) for number in range(len(source))] for aligned in alignment]
    found = [Word(*span, row, 0) for span, row in zip(words(translation), rows, strict=True)]
    return restore(run, AlignedText(translation, found, source))


CASES = [
    # the word that "red" went to
    ("his <b>red</b> hat", "seinen roten Hut", [0, 1, 2], "seinen <b>roten</b> Hut"),
    # another order
    ("the <b>red</b> hat", "le chapeau rouge", [0, 2, 1], "le chapeau <b>rouge</b>"),
    ("<i>red</i> <b>hat</b>", "chapeau rouge", [1, 0], "<b>chapeau</b> <i>rouge</i>"),
    # several words, with one between them that comes from elsewhere
    ("a <b>big red hat</b> b", "A groß rot X Hut B", [0, 1, 2, 0, 3, 4], "A <b>groß rot X Hut</b> B"),
    # a word far away is not worth the words between
    ("<b>get</b> a b c up", "steh A B C auf", [0, 1, 2, 3, 0], "<b>steh</b> A B C auf"),
    # in each other
    ("a <i>b <b>c</b> d</i> e", "A D C B E", [0, 3, 2, 1, 4], "A <i>D <b>C</b> B</i> E"),
    ("<i><b>a b</b></i> c", "C A B", [2, 0, 1], "C <i><b>A B</b></i>"),
    # all of the text
    ("<b>a b</b>", "X Y Z", [0, 0, 0], "<b>X Y Z</b>"),
    ("<b>a b</b><br>", "X Y", [1, 0], "<b>X Y</b><br>"),
    # empty elements
    ("a <br>b", "A B", [0, 1], "A <br>B"),
    ("a <img> b c", "B C A", [1, 2, 0], "<img>B C A"),
    ("<img>a b", "A B", [0, 1], "<img>A B"),
    ("a b<!-- x -->", "B A", [1, 0], "B A<!-- x -->"),
    ("a <b></b>b", "A B", [0, 1], "A <b></b>B"),
    # what has no word of its own in the translation goes to the word that is nearest to it, or between words
    ("<b>the</b> hat", "Hut", [1], "<b></b>Hut"),
    # not translated
    ("open <code>x.y</code> now", "jetzt X öffnen", [4, 1, 0], "jetzt <code>x.y</code> öffnen"),
    ("open <code>x</code> now", "jetzt öffnen", [2, 0], "<code>x</code> jetzt öffnen"),
    # diffuse attention: an element that is not translated must not swallow the translation
    ("I like <code>foo</code> and men", "A B C D E", [2, 2, 2, 2, 2], "<code>foo</code> B C D E"),
    ("a <code>x y</code> b", "A X Y Z B", [0, 1, 2, 2, 3], "A <code>x y</code> Z B"),
    # part of a word
    ("un<b>do</b>ne x", "offen X", [0, 1], "<b>offen</b> X"),
    # special characters
    ("a <b>&lt;</b> b", "A < B&", [0, 1, 2, 2], "A <b>&lt;</b> B&amp;"),
    # nothing came of it
    ("a <b>b</b>", "", [], "<b></b>"),
]


@pytest.mark.parametrize(("html", "translation", "alignment", "expected"), CASES, ids=[case[0] for case in CASES])
def test_placement_of_inline_elements(html: str, translation: str, alignment: list[int], expected: str) -> None:
    assert restored(html, translation, alignment) == expected


def test_word_with_low_attention_is_not_wrapped() -> None:
    """A full stop of which the source has none."""
    (run,) = (part for part in parse_html("<b>the</b> child") if isinstance(part, Run))
    found = [Word(0, 3, [0.3, 0.4], 0), Word(4, 8, [0.1, 0.9], 0), Word(8, 9, [0.008, 0.001], 0)]
    assert restore(run, AlignedText("das Kind.", found, words(run.text))) == "<b>das</b> Kind."


ALPHABET = "abcdef"


@st.composite
def marked(draw: st.DrawFn) -> tuple[str, list[int]]:
    """Words with elements in each other, and any alignment of as many words."""

    def content(depth: int) -> str:
        kinds = ["word", "word", "empty"] + (["element"] if depth < 3 else [])
        parts = []
        for kind in draw(st.lists(st.sampled_from(kinds), min_size=0, max_size=4)):
            name = draw(st.sampled_from("biu"))
            inner = f"<{name}>{content(depth + 1)}</{name}>" if kind == "element" else ""
            parts.append({"word": draw(st.sampled_from(ALPHABET)), "empty": "<img>", "element": inner}[kind])
        return " ".join(parts)

    html = f"{content(0)} z"
    count = len(re.findall(r"(?<![<\w/])[a-fz](?![\w>])", html))
    return html, draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=10))


@given(marked())
def test_arbitrary_alignment_gives_well_nested_markup(example: tuple[str, list[int]]) -> None:
    html, alignment = example
    translation = " ".join(f"w{number}" for number in range(len(alignment)))
    found = restored(html, translation, alignment)
    assert re.sub("<[^>]*>", "", found).split() == translation.split()
    assert sorted(re.findall("<[^>]*>", found)) == sorted(re.findall("<[^>]*>", html))
    stack: list[str] = []
    for close, name in re.findall("<(/?)([biu])>", found):
        if close:
            assert stack.pop() == name
        else:
            stack.append(name)
    assert stack == []


def test_words_are_aligned_by_the_mean_of_all_heads(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    """The attention is made by hand: each token attends to the tokens of its own word."""
    source, target, order = "ba bofu kalimo", "kalimo ba bofu", [2, 0, 1]
    encode, tokens = translator.ids, translator.model.tokenizer.tokens
    owners = [[tokens(encode(text))[: at + 1] for at in range(len(encode(text)))] for text in (source, target)]
    rows, columns = ([sum(one.startswith("▁") for one in prefix) - 1 for prefix in side] for side in owners[::-1])
    cross = torch.full((2, 2, len(rows), len(columns)), 0.1)
    for row, word in enumerate(rows[:-1]):
        for column, other in enumerate(columns[:-1]):
            cross[1, 0, row, column] += order[word] == other  # one head knows; the others look everywhere
    attention = Attention(tokens(encode(source)), tokens(encode(target)), torch.empty(0), torch.empty(0), cross)
    monkeypatch.setattr(translator, "attention", lambda *_: attention)
    found = align_words(translator, Segment(source, 0, encode(source)), encode(target))
    assert [source[slice(*span)] for span in found.source_words] == source.split()
    assert [target[word.start : word.end] for word in found.words] == target.split()
    assert [word.aligned for word in found.words] == order


def test_words_are_not_aligned_with_punctuation() -> None:
    weights = torch.tensor([[0.2, 0.8], [0.7, 0.3]])
    found = like_with_like(weights, [False, True], [False, True])
    assert found.argmax(dim=1).tolist() == [0, 1]
    assert like_with_like(weights, [False, True], [False, False]).argmax(dim=1).tolist() == [1, 0]
