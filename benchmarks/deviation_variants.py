"""Alternatives to heedful's choices where the paper is silent or differs, as patches that deviations.py trains.

heedful itself has no switches for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.config import BOS, EOS, PAD
from heedful.data.batches import Batch
from heedful.decoding import search, top_tokens
from heedful.decoding.decoder import SearchDecoder
from heedful.decoding.encoder import SearchEncoder
from heedful.decoding.projection_kernels import PlainProjection, Precision
from heedful.model import attention, dropout, embeddings, layers, transformer
from heedful.model.embeddings import Embedding
from heedful.model.layers import FeedForward
from heedful.model.transformer import Memory, Transformer
from heedful.training import loss, parallel
from heedful.training.trainer import Trainer

Patches = tuple[tuple[object, str, object], ...]  # owner, name, replacement

RATE = 0.1  # rate of the dropouts that heedful does not apply
CONSTANT = 1_000  # arbitrary: Adam is invariant to the scale of the loss


@dataclass(frozen=True)
class Variant:
    name: str  # key in docs/explanation/deviations.json and place in docs/explanation/deviations.md
    what: str  # the other choice
    patches: Patches = ()
    model: dict[str, Any] = field(default_factory=dict)  # [model] keys that differ
    against: str = "baseline"  # variant to compare with


@contextmanager
def applied(patches: Patches) -> Iterator[None]:
    with ExitStack() as stack:
        for owner, name, new in patches:
            stack.enter_context(mock.patch.object(owner, name, new))
        yield


# Initialisation and shape

_initialise = transformer.initialise


def initialised(change: Callable[[Transformer], None]) -> Patches:
    """Return a patch that runs after the usual initialisation."""

    def initialise(model: Transformer) -> None:
        _initialise(model)
        change(model)

    return ((transformer, "initialise", initialise),)


def unit_embeddings(model: Transformer) -> None:
    nn.init.normal_(model.embedding.weight_VD)


def linear_as_torch_has_it(model: Transformer) -> None:
    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.reset_parameters()


def feed_forward_as_the_rest(model: Transformer) -> None:
    for layer in (*model.encoder, *model.decoder):
        nn.init.xavier_uniform_(layer.feed_forward.outer.weight)


def small_positions(model: Transformer) -> None:
    assert model.embedding.positions_TD is not None
    nn.init.normal_(model.embedding.positions_TD, std=model.config.d_model**-0.5)


def no_attention_biases(model: Transformer) -> None:
    """Keep the attention biases at zero."""
    for module in model.modules():
        if isinstance(module, attention.MultiHeadAttention):
            for projection in (module.query, module.key, module.value, module.output):
                projection.bias.requires_grad_(False)


def smaller_epsilon(model: Transformer) -> None:
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps = 1e-6


def add_output_bias(model: Transformer) -> None:
    model.embedding.bias_V = nn.Parameter(torch.zeros(model.config.vocab_size))


def logits_with_bias(embedding: Embedding, states: Tensor) -> Tensor:
    bias_V = embedding.bias_V
    assert isinstance(bias_V, Tensor)
    return F.linear(states, embedding.weight_VD, bias_V)


_prepare = SearchDecoder.__init__


def decoder_with_bias(decoder: SearchDecoder, model: Transformer, precision: Precision = "fp32") -> None:
    """Add the bias to the projection of search."""
    _prepare(decoder, model, precision)
    bias_V = model.embedding.bias_V
    assert isinstance(bias_V, Tensor)
    decoder.logits = PlainProjection(model.embedding.weight_VD.detach(), bias_V.detach())


def loss_by_logits(model: Transformer, batch: Batch, label_smoothing: float) -> loss.Loss:
    """Compute the loss from `logits`; heedful's own loss assumes a single matrix."""
    states_BTD = model.decode(batch.target_in_BT, model.encode(batch.source_BS))
    real_BT = batch.target_out_BT != PAD
    logits_PV = model.embedding.logits(states_BTD[real_BT])
    return loss.smoothed_cross_entropy(logits_PV, batch.target_out_BT[real_BT], label_smoothing)


# What the stacks read

_encode = Transformer.encode


def encode_without_end(model: Transformer, source_BS: Tensor) -> Memory:
    """Remove the source's EOS by turning it into padding."""
    return _encode(model, source_BS.masked_fill(source_BS == EOS, PAD))


_search_encode = SearchEncoder.encode


def search_without_end(encoder: SearchEncoder, source_BS: Tensor) -> Memory:
    """The same in search."""
    return _search_encode(encoder, source_BS.masked_fill(source_BS == EOS, PAD))


def embed_start_as_zero(embedding: Embedding, ids_BT: Tensor, side: str = "target") -> Tensor:
    """Start the decoder from the position alone."""
    embedded_BTD = F.embedding(ids_BT, embedding.matrix(side), padding_idx=PAD) * embedding.scale
    embedded_BTD = embedded_BTD * (ids_BT != BOS)[:, :, None]
    positions_TD = embedding.positions(ids_BT.shape[1])
    return dropout.dropout(embedded_BTD + positions_TD, embedding.dropout, embedding.training)


_embedded = SearchDecoder.embedded


def embedded_start_as_zero(decoder: SearchDecoder, tokens_R: Tensor, position_R: Tensor) -> Tensor:
    """Do the same in search."""
    positions_RD = decoder.model.embedding.positions(int(position_R.max()) + 1)[position_R]
    return torch.where((tokens_R == BOS)[:, None], positions_RD, _embedded(decoder, tokens_R, position_R))


# Loss and dropout

_accumulate_gradients = Trainer._accumulate_gradients


def loss_by_sentence(trainer: Trainer, number: int, batches: list[Batch], tokens: int) -> tuple[float, float]:
    return _accumulate_gradients(trainer, number, batches, sum(len(batch.lines) for batch in batches))


def loss_by_a_constant(trainer: Trainer, number: int, batches: list[Batch], tokens: int) -> tuple[float, float]:
    return _accumulate_gradients(trainer, number, batches, CONSTANT)


def dropout_inside(layer: FeedForward, x_BTD: Tensor) -> Tensor:
    result: Tensor = layer.outer(dropout.dropout(F.relu(layer.inner(x_BTD)), RATE, layer.training))
    return result


BASELINE = Variant("baseline", "heedful")
LEARNED = Variant("learned", "learned positions, N(0, 1)", model={"positions": "learned"})
TRAINING = (
    BASELINE,
    Variant("embedding-init", "embeddings N(0, 1)", initialised(unit_embeddings)),
    Variant("linear-init", "PyTorch's initialisation of linear layers", initialised(linear_as_torch_has_it)),
    Variant("feed-forward-init", "second feed-forward matrix also Glorot", initialised(feed_forward_as_the_rest)),
    Variant(
        "source-end",
        "no end token on the source",
        ((Transformer, "encode", encode_without_end), (SearchEncoder, "encode", search_without_end)),
    ),
    Variant(
        "start",
        "a start token of zeros",
        ((Embedding, "forward", embed_start_as_zero), (SearchDecoder, "embedded", embedded_start_as_zero)),
    ),
    Variant("attention-biases", "no biases in attention", initialised(no_attention_biases)),
    Variant("norm-epsilon", "layer normalisation with ε = 1e-6", initialised(smaller_epsilon)),
    Variant(
        "output-bias",
        "a bias before the softmax",
        (
            *initialised(add_output_bias),
            (Embedding, "logits", logits_with_bias),
            (SearchDecoder, "__init__", decoder_with_bias),
            (parallel, "batch_loss", loss_by_logits),
            (loss, "batch_loss", loss_by_logits),
        ),
    ),
    LEARNED,
    Variant(
        "learned-init",
        "learned positions, N(0, 1/d_model)",
        initialised(small_positions),
        model=LEARNED.model,
        against=LEARNED.name,
    ),
    Variant("loss-sentences", "loss divided by sentences", ((Trainer, "_accumulate_gradients", loss_by_sentence),)),
    Variant("loss-constant", "loss divided by a constant", ((Trainer, "_accumulate_gradients", loss_by_a_constant),)),
    Variant(
        "dropout-torch",
        "PyTorch's dropout",
        ((layers, "dropout", F.dropout), (embeddings, "dropout", F.dropout), (attention, "apply_dropout", F.dropout)),
    ),
    Variant("dropout-inside", f"dropout {RATE} inside the feed-forward", ((FeedForward, "forward", dropout_inside),)),
    Variant("dropout-attention", f"dropout {RATE} on the attention weights", model={"attention_dropout": RATE}),
)


# Search, on the baseline's weights

_length_penalty = search.length_penalty


def over_when_none_can_win(beams: search._Beams) -> Any:
    state = beams._state
    best_live_B = state.score_BW.max(axis=1)
    attainable_B = best_live_B / _length_penalty(state.limit_B, beams.alpha)
    return ~(best_live_B > -math.inf) | (state.to_beat_B >= attainable_B)


def over_when_the_beam_is_full(beams: search._Beams) -> Any:
    state = beams._state
    return ~(state.score_BW.max(axis=1) > -math.inf) | (state.finished_B >= beams.beam)


def penalty_without_the_end(length: Any, alpha: float) -> Any:
    return _length_penalty(length - 1, alpha)


SEARCH = (
    BASELINE,
    Variant(
        "search-to-the-end",
        "stops only when no hypothesis can win",
        ((search._Beams, "_over", over_when_none_can_win),),
    ),
    Variant("search-full", "stops when W have finished", ((search._Beams, "_over", over_when_the_beam_is_full),)),
    Variant("search-length", "length without the end token", ((search, "length_penalty", penalty_without_the_end),)),
    Variant("search-special", "special tokens may be generated", ((top_tokens, "SUPPRESSED", []),)),
)
