"""heedful's own search behind the interface of engines."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from heedful.decoding import search_engine as searcher_module
from heedful.decoding.encoder import SearchEncoder
from heedful.decoding.search_engine import OwnSearcher
from heedful.model.transformer import Memory
from heedful.storage.model_directory import Model


def test_small_batches_use_one_thread(random_model: Callable[..., Model], monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule counts rows times weights; the thread count is restored, even after errors."""
    model = random_model()
    own, seen, encode = OwnSearcher(model), list[int](), SearchEncoder.encode
    weights = sum(w.numel() for layer in model.transformer.decoder for w in layer.parameters())
    weights += model.transformer.embedding.weight_VD.numel()
    monkeypatch.setattr(searcher_module, "_ONE_THREAD", 8 * weights)

    def watched(self: SearchEncoder, source_BS: torch.Tensor) -> Memory:
        seen.append(torch.get_num_threads())
        return encode(self, source_BS)

    monkeypatch.setattr(SearchEncoder, "encode", watched)
    torch.set_num_threads(2)
    try:
        for sentences, beam in ((1, 4), (2, 4), (3, 4), (9, 1)):
            own.search([[5, 6, 3]] * sentences, beam, 0.6, 1)
            assert torch.get_num_threads() == 2
        monkeypatch.setattr(SearchEncoder, "encode", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            own.search([[5, 3]], 1, 0.6, 1)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert seen == [1, 1, 2, 2]
