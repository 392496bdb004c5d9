"""The cross-attention figure and its choice of layer."""

from pathlib import Path

import pytest
import torch

from heedful.decoding.translator import Attention
from heedful.views.cross_attention_figure import draw_cross_attention, sharpest_layer

pytest.importorskip("matplotlib")


def an_attention() -> Attention:
    blurred = torch.full((2, 3, 4), 0.25)
    sharp = torch.eye(3, 4).expand(2, 3, 4)
    return Attention(
        ["▁a", "▁b", "c", "</s>"],
        ["▁x", "▁y", "</s>"],
        torch.rand(2, 2, 4, 4),
        torch.rand(2, 2, 3, 3),
        torch.stack([blurred, sharp]),
    )


def test_the_sharpest_layer_is_the_one_whose_rows_have_one_large_weight() -> None:
    assert sharpest_layer(an_attention().cross) == 1


@pytest.mark.parametrize(("name", "magic"), [("deep/figure.png", b"\x89PNG"), ("figure.svg", b"<?xml")])
def test_figure_is_written(tmp_path: Path, name: str, magic: bytes) -> None:
    draw_cross_attention(an_attention(), tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(magic)
