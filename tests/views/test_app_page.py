"""The attention page, figure and data: all weights are present, and text is escaped."""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heedful.decoding.translator import Attention, Translator
from heedful.errors import InputError
from heedful.inspection.inspector import Inspection, Inspector
from heedful.inspection.switched_heads import KINDS
from heedful.storage.model_directory import Model
from heedful.views.app_page import write_app_page
from heedful.views.attended_sentence import AttendedSentence, attended
from heedful.views.attention_heads_figure import draw_heads
from heedful.views.sentence_data import write_attention_data

SOURCE = ["▁the", "▁ha", "t", "</s>"]
TARGET = ["▁der", "▁Hut", "</s>"]


@pytest.fixture
def attention() -> Attention:
    """N = 2, N_decoder = 1, h = 3; each row sums to 1, each different."""
    generator = torch.Generator().manual_seed(1)

    def weights(layers: int, rows: int, columns: int) -> torch.Tensor:
        return torch.randn(layers, 3, rows, columns, generator=generator).softmax(dim=-1)

    return Attention(SOURCE, TARGET, weights(2, 4, 4), weights(1, 3, 3).tril(), weights(1, 3, 4))


@pytest.fixture
def inspector(random_model: Callable[..., Model]) -> Inspector:
    return Inspector(Translator(random_model()))


@pytest.fixture
def inspection(inspector: Inspector, attention: Attention) -> Inspection:
    """The weights of `attention`, and other results of a random model."""
    return replace(inspector.inspect([7, 8, 9, 3], [11, 12, 3]), attention=attention)


def embedded(page: str) -> dict[str, Any]:
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.S)
    assert found
    content: dict[str, Any] = json.loads(found[1])
    return content


def test_every_weight_is_in_the_page(
    inspector: Inspector, inspection: Inspection, attention: Attention, tmp_path: Path
) -> None:
    write_app_page(inspector, [AttendedSentence("the hat", "der Hut", inspection)], tmp_path / "deep" / "page.html")
    (content,) = embedded((tmp_path / "deep" / "page.html").read_text(encoding="utf-8"))["sentences"]
    assert content["layers"] == {"encoder": 2, "decoder": 1, "cross": 1}
    assert (content["h"], content["source_text"]) == (3, "the hat")
    assert content["source"] == {"tokens": SOURCE, "words": ["the", "hat", "</s>"], "owners": [0, 1, 1, 2]}
    for kind in KINDS:
        numbers = np.frombuffer(base64.b64decode(str(content[kind])), "<u2").astype(np.float64) / 65_535
        expected = getattr(attention, kind)
        np.testing.assert_allclose(numbers.reshape(expected.shape), expected, atol=1e-5)


def test_page_is_self_contained(inspector: Inspector, inspection: Inspection, tmp_path: Path) -> None:
    write_app_page(inspector, [AttendedSentence("the hat", "der Hut", inspection)], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    addresses = set(re.findall(r"https?://[^\"'\s]+", page))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name, not a place
    assert not re.search(r"<(script|img|link)[^>]*\ssrc=", page)
    assert "@DATA@" not in page


NASTY = ["</script><script>alert(1)</script>", "<!-- a", "@DATA@ @TITLE@", 'a\u2028b & "c" \'']


@pytest.mark.parametrize("text", NASTY)
def test_text_is_escaped(
    inspector: Inspector, inspection: Inspection, attention: Attention, tmp_path: Path, text: str
) -> None:
    nasty = replace(inspection, attention=attention._replace(source=["▁the", text, "t", "</s>"]))
    write_app_page(inspector, [AttendedSentence(text, text, nasty)], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    (content,) = embedded(page)["sentences"]
    assert content["source_text"] == text
    assert page.count("<script") == 2
    assert page.count("</title>") == 1


def test_the_data_have_every_weight(inspection: Inspection, attention: Attention, tmp_path: Path) -> None:
    write_attention_data([AttendedSentence("the hat", "der Hut", inspection)], tmp_path / "data.json")
    (content,) = json.loads((tmp_path / "data.json").read_text(encoding="utf-8"))["sentences"]
    assert (content["source"], content["target"]) == (SOURCE, TARGET)
    for kind in KINDS:
        torch.testing.assert_close(torch.tensor(content[kind]), getattr(attention, kind), rtol=0, atol=1e-6)


@pytest.mark.parametrize(("name", "start"), [("figure.png", b"\x89PNG"), ("figure.svg", b"<?xml")])
def test_heads_figure(attention: Attention, tmp_path: Path, name: str, start: bytes) -> None:
    pytest.importorskip("matplotlib")
    draw_heads(attention, tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)


def test_a_long_sentence_is_drawn_coarser_not_larger(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    tokens = ["▁a"] * 200
    long = Attention(tokens, tokens, *(torch.full((2, 3, 200, 200), 0.005) for _ in range(3)))
    draw_heads(long, tmp_path / "figure.png")
    width, height = struct.unpack(">II", (tmp_path / "figure.png").read_bytes()[16:24])
    assert max(width, height) <= 8_001


TEXT = "ba bo.  Ka lu! Mi"


def test_every_sentence_has_its_own_attention(random_model: Callable[..., Model]) -> None:
    translator = Translator(random_model())
    found = attended(Inspector(translator), TEXT)
    assert [one.source for one in found] == ["ba bo.", "Ka lu!", "Mi"]
    for one in found:
        expected = translator.translate(one.source, attention=True)
        assert one.target == expected.text
        assert one.attention is not None
        assert expected.attention is not None
        torch.testing.assert_close(one.attention.cross, expected.attention.cross)


def test_one_sentence_is_chosen(random_model: Callable[..., Model]) -> None:
    inspector = Inspector(Translator(random_model()))
    found = attended(inspector, TEXT, sentence=2)
    assert [one.attention is not None for one in found] == [False, True, False]
    for wrong in (0, 4):
        with pytest.raises(InputError, match=f"`--sentence {wrong}` is out of range: TEXT has 3"):
            attended(inspector, TEXT, sentence=wrong)


def test_a_given_translation_is_of_the_whole_text(random_model: Callable[..., Model]) -> None:
    translator = Translator(random_model())
    (found,) = attended(Inspector(translator), TEXT, "bo. Lu")
    assert (found.source, found.target) == (TEXT, "bo. Lu")
    assert found.attention is not None
    assert len(found.attention.source) == len(translator.ids(TEXT))
