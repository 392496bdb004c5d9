"""The whole model against Hugging Face's Marian with the same weights (float64).

Embeddings and positions are included.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
import torch
from marian_oracle import POSITIONS, marian_config, twin_marian
from torch import Tensor
from torch_oracle import randomised, small

import heedful
from heedful.config import BOS, EOS, PAD, UNK
from heedful.decoding.search import beam_search
from heedful.errors import ModelError
from heedful.interop.marian_export import marian_component_order
from heedful.model.embeddings import sinusoids
from heedful.model.transformer import Transformer

TOLERANCE = {"rtol": 0.0, "atol": 1e-9}
V = 13


@pytest.fixture(scope="module")
def marian() -> Any:
    """The module `transformers`: its import takes seconds, so it is done once and only here."""
    return pytest.importorskip("transformers")


def sentences(*lengths: int, seed: int = 0) -> Tensor:
    """Random tokens with the end symbol, right-padded."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(EOS + 1, V, (len(lengths), max(lengths)), generator=generator)
    ends = torch.tensor(lengths)[:, None] - 1
    places = torch.arange(max(lengths))
    ids[places == ends] = EOS
    ids[places > ends] = PAD
    return ids


def shifted(target: Tensor) -> Tensor:
    moved = torch.cat([torch.full((len(target), 1), BOS), target[:, :-1]], dim=1)
    return moved.masked_fill(target == PAD, PAD)


def logits_of(theirs: Any, source: Tensor, target_in: Tensor) -> Tensor:
    mask = (source != PAD).long()
    found: Tensor = theirs(input_ids=source, attention_mask=mask, decoder_input_ids=target_in, use_cache=False).logits
    return found


LENGTHS = [
    ((1,), (1,)),
    ((6, 6), (4, 4)),
    ((3, 3, 3), (9, 9, 9)),
    ((7, 2, 5), (6, 6, 1)),
    ((2, 8), (5, 3)),
    ((POSITIONS, 40), (100, POSITIONS)),  # the last position of Marian's table, and our fast attention
]


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize(("source_lengths", "target_lengths"), LENGTHS)
def test_logits_match_marian(
    marian: Any, source_lengths: Any, target_lengths: Any, attention: str, training: bool
) -> None:
    model = randomised(Transformer(small(N=3))).train(training)
    source, target = sentences(*source_lengths), sentences(*target_lengths, seed=1)
    expected = logits_of(twin_marian(marian, model, attention), source, shifted(target))
    real = target != PAD
    torch.testing.assert_close(model(source, shifted(target))[real], expected[real], **TOLERANCE)


@pytest.mark.parametrize("shape", [{"d_model": 2, "h": 1}, {"d_model": 18, "h": 9}, {"d_model": 16, "h": 2, "N": 1}])
def test_other_shapes_match_marian(marian: Any, shape: dict[str, int]) -> None:
    model = randomised(Transformer(small(**shape)))
    source, target = sentences(5, 7), sentences(6, 2, seed=1)
    expected = logits_of(twin_marian(marian, model), source, shifted(target))
    real = target != PAD
    torch.testing.assert_close(model(source, shifted(target))[real], expected[real], **TOLERANCE)


def test_control_without_the_component_permutation(marian: Any) -> None:
    """The control: without the permutation the twin says something else."""
    model = randomised(Transformer(small()))
    theirs = twin_marian(marian, model)
    source, target_in = sentences(5), shifted(sentences(4, seed=1))
    back = marian_component_order(model.config.d_model).argsort()
    with torch.no_grad():
        for stack in (theirs.model.encoder, theirs.model.decoder):
            stack.embed_positions.weight.copy_(stack.embed_positions.weight[:, back])
    assert not torch.allclose(logits_of(theirs, source, target_in), model(source, target_in), atol=1e-3)


def test_marians_sinusoids_are_ours_reordered(marian: Any) -> None:
    config = small(d_model=30, h=3)
    theirs = marian.MarianMTModel(marian.MarianConfig(**marian_config(config))).model
    ours = sinusoids(POSITIONS, 30)[:, marian_component_order(30)]
    for stack in (theirs.encoder, theirs.decoder):
        torch.testing.assert_close(stack.embed_positions.weight.double(), ours, rtol=0.0, atol=2**-24)


def test_gradients_match_marian(marian: Any) -> None:
    model = randomised(Transformer(small()))
    theirs = twin_marian(marian, model)
    source, target = sentences(5, 3), sentences(4, 6, seed=1)
    real = target != PAD
    model(source, shifted(target))[real].sin().sum().backward()
    logits_of(theirs, source, shifted(target))[real].sin().sum().backward()
    order = marian_component_order(model.config.d_model)
    ours = model.embedding.weight_VD.grad
    assert ours is not None
    torch.testing.assert_close(ours[:, order], theirs.model.shared.weight.grad, **TOLERANCE)


def test_zero_padding_embedding_changes_only_its_own_logit(marian: Any) -> None:
    """Marian's files have zeros there.

    What is masked is never read, but the projection is tied: its logit is 0.
    """
    model = randomised(Transformer(small()))
    theirs = twin_marian(marian, model)
    with torch.no_grad():
        theirs.model.shared.weight[PAD] = 0.0
    source, target = sentences(5, 3), sentences(2, 6, seed=1)
    real = target != PAD
    found, ours = logits_of(theirs, source, shifted(target))[real], model(source, shifted(target))[real]
    assert (found[:, PAD] == 0).all()
    torch.testing.assert_close(found[:, PAD + 1 :], ours[:, PAD + 1 :], **TOLERANCE)
    assert not torch.allclose(ours[:, PAD], found[:, PAD])


def test_decoding_starts_with_bos(marian: Any) -> None:
    model = randomised(Transformer(small())).eval()
    theirs = twin_marian(marian, model)
    target = sentences(4, 4, seed=1)
    assert theirs.prepare_decoder_input_ids_from_labels(target).tolist() == shifted(target).tolist()
    source = sentences(6, 6, 6)
    generated = theirs.generate(
        source,
        attention_mask=(source != PAD).long(),
        num_beams=1,
        do_sample=False,
        max_new_tokens=6 + 4,
        forced_eos_token_id=EOS,
        suppress_tokens=[PAD, UNK, BOS],
        output_logits=True,
        return_dict_in_generate=True,
    )
    sources = [row[row != PAD].tolist() for row in source]
    said = [[BOS, *best.ids] for [best] in beam_search(model, sources, beam=1, max_extra=4)]
    assert generated.sequences.tolist() == said
    ours = model(source, torch.tensor(said)[:, :-1])
    found = torch.stack(generated.logits, dim=1).double()  # they are kept in single precision
    torch.testing.assert_close(found, ours, rtol=1e-6, atol=1e-6)


def test_marians_position_table_is_finite(marian: Any) -> None:
    model = randomised(Transformer(small()))
    longer = sentences(POSITIONS + 1)
    assert model(longer, shifted(longer)).shape == (1, POSITIONS + 1, V)
    with pytest.raises(IndexError):
        logits_of(twin_marian(marian, model), longer, shifted(longer))


@pytest.mark.parametrize("changes", [{"d_k": 5}, {"d_v": 2}, {"positions": "learned"}])
def test_models_that_marian_cannot_express_are_rejected(changes: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match="MarianMT does not support"):
        marian_config(small(**changes))


def test_heedful_never_imports_transformers() -> None:
    for path in Path(heedful.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.split(".")[0] == "transformers" for name in names), path
