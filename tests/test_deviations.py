"""Choices of deviations.md that no other test covers, and patches of its benchmark."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from heedful.config import BOS, EOS, ModelConfig, TrainingConfig
from heedful.data.batches import Batches
from heedful.data.store import Store
from heedful.decoding import search
from heedful.model import attention, embeddings, layers
from heedful.model.attention import MultiHeadAttention
from heedful.model.transformer import Transformer
from heedful.training.trainer import Trainer

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

from deviation_variants import BASELINE, SEARCH, TRAINING, Variant, applied

SMALL = ModelConfig(vocab_size=600, N=2, d_model=16, d_ff=32, h=2, dropout=0.1)


def test_both_sides_end_with_the_end_symbol(store: Store) -> None:
    for index in range(len(store)):
        for ids in (store.source(index).tolist(), store.target(index).tolist()):
            assert ids[-1] == EOS
            assert EOS not in ids[:-1]


def test_key_bias_does_not_change_the_output() -> None:
    """It adds q·b to every score of a query, and softmax ignores a common term."""
    torch.manual_seed(0)
    model = Transformer(replace(SMALL, dropout=0.0)).double().eval()
    source, target = torch.tensor([[9, 8, 7, EOS]]), torch.tensor([[BOS, 5, 6]])
    before = model(source, target)
    for changed, same in (("key", True), ("query", False), ("value", False)):
        for module in model.modules():
            if isinstance(module, MultiHeadAttention):
                torch.nn.init.normal_(module.get_submodule(changed).bias)  # type: ignore[arg-type]
        assert torch.allclose(model(source, target), before, rtol=0.0, atol=1e-12) == same, changed


def test_layer_norm_epsilon() -> None:
    """A position whose variance is v comes out with v / (v + 1e-5)."""
    norm = next(iter(Transformer(SMALL).double().encoder)).after_feed_forward.norm
    x = torch.linspace(-1e-3, 1e-3, 16, dtype=torch.float64)
    variance = x.var(unbiased=False).item()
    assert norm(x).var(unbiased=False).item() == pytest.approx(variance / (variance + 1e-5), rel=1e-9)


def test_dropout_is_applied_only_where_the_paper_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Section 5.4: on two sums, on 2 sub-layers per encoder and 3 per decoder layer."""
    shapes: list[tuple[int, ...]] = []

    def watched(x: Tensor, p: float, training: bool = True) -> Tensor:
        if p > 0 and training:
            shapes.append(tuple(x.shape))
        return x

    for module, name in ((layers, "dropout"), (embeddings, "dropout"), (attention, "apply_dropout")):
        monkeypatch.setattr(module, name, watched)
    monkeypatch.setattr(torch.nn.functional, "dropout", None)  # nor by any other way
    model = Transformer(SMALL)
    source, target = torch.tensor([[9, 8, 7, 6, EOS]]), torch.tensor([[BOS, 5, 6]])
    model(source, target)
    encoder, decoder = (1 + 2 * SMALL.N) * [(1, 5, 16)], (1 + 3 * SMALL.N) * [(1, 3, 16)]
    assert shapes == encoder + decoder
    shapes.clear()
    model.eval()(source, target)
    assert shapes == []


def figures(variant: Variant, store: Store) -> tuple[float, ...]:
    """Return loss and gradient of one seeded update, and the logits after it."""
    with applied(variant.patches):
        torch.manual_seed(1)
        trainer = Trainer(
            Transformer(replace(SMALL, **variant.model)), TrainingConfig(batch_tokens=256, precision="fp32")
        )
        batch = Batches(store, 256, seed=1)[0]
        result = trainer.train_step([batch])
        logits = trainer.model.eval()(batch.source_BS, batch.target_in_BT)
    return result.loss, result.gradient_norm, logits.sum().item()


def test_every_variant_differs_from_the_baseline(store: Store) -> None:
    """A patch whose target has moved would compare heedful with itself."""
    found = {variant.name: figures(variant, store) for variant in TRAINING}
    for variant in TRAINING[1:]:
        assert found[variant.name] != found[variant.against], variant.name
    assert figures(BASELINE, store) == found[BASELINE.name]  # they leave no trace


@pytest.mark.parametrize("variant", SEARCH[1:], ids=lambda variant: variant.name)
def test_every_search_variant_patches_code_in_use(variant: Variant) -> None:
    """With a useless patch in the same place, the search fails, so the place counts."""
    model = Transformer(SMALL).eval()
    for owner, name, new in variant.patches:
        useless = (lambda *_: 1 / 0) if callable(new) else [SMALL.vocab_size]
        with applied(((owner, name, useless),)), pytest.raises((ZeroDivisionError, IndexError)):
            search.beam_search(model, [[9, 8, 7, EOS]], max_extra=2)
    with applied(variant.patches):
        assert search.beam_search(model, [[9, 8, 7, EOS]], max_extra=2)[0]
