"""Estimate parameters, FLOPs and memory of a training run by arithmetic.

`heedful train --dry-run` prints them.

FLOPs are counted from matrix products (model/complexity.py). Table 2 of the paper instead multiplies devices, time and
rate; for the paper's own settings that figure is given too, under its own name.
"""

from __future__ import annotations

import functools
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch

from heedful import presets
from heedful.config import ModelConfig, Recipe, TrainingConfig
from heedful.model.attention import SHORTEST_ROW, in_float32, longest_plain
from heedful.model.complexity import orthogonalisation_flops, training_flops
from heedful.model.transformer import Transformer
from heedful.training.consistency import CHUNK, consistency_flops
from heedful.training.muon import ROUNDS

ASSUMED_LENGTH = 25  # tokens per sentence if there is no text; FLOPs per token hardly depend on it
# Temporary tensors and fragmentation, as a share of the activations without checkpointing: for simple steps and others
# on a CPU (measured: docs/results/experiments.md), and on a GPU (not measured).
_WORKING_SIMPLE, _WORKING, _WORKING_GPU = 0.6, 1.6, 0.3

_PAPERS_TOKENS = 25_000  # per step and side


class PapersRun(NamedTuple):
    """The cost of a row of Table 2 by section 5.2: devices × time × sustained rate."""

    devices: int
    hours: float
    rate: float = 9.5e12  # FLOP/s of a P100

    @property
    def flops(self) -> float:
        return self.devices * self.hours * 3_600 * self.rate


PAPERS_RUNS = {"base": PapersRun(8, 12.0), "big": PapersRun(8, 3.5 * 24)}


class BatchShape(NamedTuple):
    B: int
    S: int
    T: int
    tokens: int  # target tokens without padding


class BatchShapes(NamedTuple):
    """The batches of an epoch, and their reversed copies for bidirectional training."""

    forward: Sequence[BatchShape]
    reversed: Sequence[BatchShape] = ()


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes by purpose."""

    weights: int
    gradients: int
    moments: int  # the two moments of Adam
    activations: int  # kept for the backward pass of the largest batch
    working: int  # temporary tensors and fragmentation

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.moments + self.activations + self.working


@dataclass(frozen=True)
class Estimate:
    parameters: int
    tokens: float  # target tokens per step (an upper bound without text)
    step_flops: float
    run_flops: float
    papers_run: PapersRun | None  # the row of Table 2, if the settings are the paper's
    memory: MemoryEstimate


def estimate(recipe: Recipe, config: ModelConfig, shapes: BatchShapes | None, gpu: bool) -> Estimate:
    """Estimate the cost of a run.

    Without `shapes`, batches are full of sentences of one length.
    """
    training = recipe.training
    if shapes is None:
        length = min(ASSUMED_LENGTH, recipe.data.max_length)
        rows = training.batch_tokens / length
        tokens, flops = (
            float(training.batch_tokens),
            rows * _batch_flops(config, training, BatchShape(1, length, length, length)),
        )
    else:
        tokens, flops = _mean(config, training, shapes)
    step = training.accumulate * flops + optimizer_flops(config, training)
    return Estimate(
        parameters=parameters(config),
        tokens=training.accumulate * tokens,
        step_flops=step,
        run_flops=training.steps * step,
        papers_run=papers_run(recipe, config),
        memory=memory(config, training, largest(recipe, config, shapes, gpu), gpu),
    )


def _mean(config: ModelConfig, training: TrainingConfig, shapes: BatchShapes) -> tuple[float, float]:
    """Return target tokens and FLOPs of a batch, averaged over the run."""
    share = min(training.bidirectional_steps, training.steps) / training.steps / 2 if shapes.reversed else 0.0
    means = [
        (
            sum(shape.tokens for shape in direction) / len(direction),
            sum(_batch_flops(config, training, shape) for shape in direction) / len(direction),
        )
        for direction in (shapes.forward, shapes.reversed or shapes.forward)
    ]
    tokens, flops = ((1 - share) * forward + share * backward for forward, backward in zip(*means, strict=True))
    return tokens, flops


def _batch_flops(config: ModelConfig, training: TrainingConfig, shape: BatchShape) -> int:
    flops = training_flops(config, *shape, checkpointed=training.checkpoint_activations)
    if training.consistency:
        flops += consistency_flops(config, *shape, checkpointed=training.checkpoint_activations)
    return flops


def optimizer_flops(config: ModelConfig, training: TrainingConfig) -> int:
    """Count the matrix products of one update.

    Adam has none; element-wise work is not counted, as elsewhere.
    """
    if training.optimizer != "muon":
        return 0
    with torch.device("meta"):
        linears = [module for module in Transformer(config).modules() if isinstance(module, torch.nn.Linear)]
    return sum(orthogonalisation_flops(one.out_features, one.in_features, ROUNDS) for one in linears)


@functools.lru_cache(maxsize=16)
def parameters(config: ModelConfig) -> int:
    with torch.device("meta"):  # shapes only
        return Transformer(config).parameter_count()


def papers_run(recipe: Recipe, config: ModelConfig) -> PapersRun | None:
    """Return the row of Table 2 if the settings are those of base or big, otherwise None."""
    for name, run in PAPERS_RUNS.items():
        preset = presets.named(name)
        # Dropout differs between the language pairs, and no vocabulary matches the paper's exactly.
        shape = replace(preset.model(config.vocab_size), dropout=config.dropout)
        tokens = recipe.training.batch_tokens * recipe.training.accumulate
        if (config, recipe.training.steps, tokens) == (shape, preset.training["steps"], _PAPERS_TOKENS):
            return run
    return None


def largest(recipe: Recipe, config: ModelConfig, shapes: BatchShapes | None, gpu: bool) -> BatchShape:
    """Return the batch that needs the most memory.

    Without text, try the longest sentences and the longest whose attention weights are stored.
    """
    if shapes is None:
        held = longest_plain(_activation_dtype(recipe.training))
        lengths = {recipe.data.max_length, min(recipe.data.max_length, int(held**0.5))}
        rows = {length: max(1, recipe.training.batch_tokens // length) for length in lengths}
        shapes = BatchShapes([BatchShape(B, n, n, B * n) for n, B in rows.items()])
    return max([*shapes.forward, *shapes.reversed], key=lambda shape: activations(config, recipe.training, shape, gpu))


def memory(config: ModelConfig, training: TrainingConfig, shape: BatchShape, gpu: bool) -> MemoryEstimate:
    """Estimate memory: 4 bytes each for weights, gradients and moments, plus copies.

    The copies of the weights are those in half precision and their moving average.
    """
    count = parameters(config)
    weights = count * (4 if _activation_dtype(training) == torch.float32 else 6) + 4 * count * bool(training.ema_decay)
    held = activations(config, training, shape, gpu)
    whole = activations(config, replace(training, checkpoint_activations=False), shape, gpu)
    simple = training.accumulate == 1 and not training.checkpoint_activations
    share = _WORKING_GPU if gpu else _WORKING_SIMPLE if simple else _WORKING
    return MemoryEstimate(weights, 4 * count, 8 * count, held, int(share * whole))


def activations(config: ModelConfig, training: TrainingConfig, shape: BatchShape, gpu: bool) -> int:
    """Return the bytes that autograd keeps of a forward pass, with or without checkpointing."""
    B, S, T, tokens = shape
    dtype = _activation_dtype(training)
    width, d_model, V = dtype.itemsize, config.d_model, config.vocab_size
    encoder, decoder = _layer_bytes(config, B, S, None, dtype, gpu), _layer_bytes(config, B, T, S, dtype, gpu)
    if training.checkpoint_activations:
        inputs = width * B * (config.N * S + config.decoder_layers * T) * d_model
        layers = inputs + max(encoder, decoder)
    else:
        layers = config.N * encoder + config.decoder_layers * decoder
    ends = B * (S + T) * (8 + d_model * (config.dropout > 0))  # ids and dropout
    ends += width * B * S * d_model  # the encoder's output
    if training.consistency:  # a second pass, and what the divergence of a chunk needs: two pairs of P × V tensors
        layers, ends = 2 * layers, 2 * ends + 16 * min(tokens, CHUNK) * V
    # The loss keeps two gradients (training/loss.py: projected_loss), or in fp16 the states and all logits.
    if dtype == torch.float16:
        return layers + ends + tokens * (2 * d_model + 4 * V)
    return layers + ends + (width * tokens + 4 * V) * d_model


def _activation_dtype(training: TrainingConfig) -> torch.dtype:
    return {"bf16": torch.bfloat16, "fp16": torch.float16}.get(training.precision, torch.float32)


def _layer_bytes(config: ModelConfig, B: int, n: int, source: int | None, dtype: torch.dtype, gpu: bool) -> int:
    """Return a layer's bytes for n positions; a decoder layer has `source` encoder states."""
    width = dtype.itemsize
    x = width * B * n * config.d_model  # the input of the matrix products that read the same states
    norm = B * n * _norm_bytes(config, width)
    own = x + _attention_bytes(config, B, n, n, dtype, gpu) + norm
    feed_forward = x + width * B * n * config.d_ff + norm
    if source is None:
        return own + feed_forward
    return own + x + _attention_bytes(config, B, n, source, dtype, gpu) + norm + feed_forward


def _norm_bytes(config: ModelConfig, width: int) -> int:
    """Return the bytes of AddAndNorm per position: sum, mean, deviation and dropout mask."""
    return width * config.d_model + 8 + (config.d_model if config.dropout > 0 else 0)


def _attention_bytes(config: ModelConfig, B: int, T: int, S: int, dtype: torch.dtype, gpu: bool) -> int:
    """Return the bytes of queries, keys, values, output and any stored attention weights."""
    h, dropout = config.h, config.attention_dropout > 0
    width, held = dtype.itemsize, longest_plain(dtype)
    if gpu or (held < T * S and not dropout):
        widest = max(config.d_k, config.d_v)  # the narrower ones are padded
        joined = width * T * h * config.d_v if config.d_k != config.d_v else 0
        return B * (width * h * widest * (2 * T + 2 * S) + joined + 4 * h * T)
    keys, values = h * config.d_k, h * config.d_v
    softmax = 4 * max(S, SHORTEST_ROW) // S if in_float32(S, dtype) else 0  # kept beside the converted weights
    weight = softmax + width if not dropout else softmax + 2 * width + 1 if held >= T * S else 12  # torch's fallback
    weights = h * T * S * weight
    return B * (width * (T * (keys + values) + S * (keys + values)) + weights)


def smaller_batch(recipe: Recipe, fits: Callable[[Recipe], bool]) -> Recipe | None:
    """Return the recipe with the fewest accumulated batches that fits, or None."""
    training = recipe.training
    tokens = training.batch_tokens * training.accumulate

    def parts(accumulate: int) -> Recipe:
        changed = replace(training, batch_tokens=tokens // accumulate, accumulate=accumulate)
        return replace(recipe, training=changed)

    candidates = range(training.accumulate, tokens // recipe.data.max_length + 1)
    first = bisect_left(candidates, True, key=lambda accumulate: fits(parts(accumulate)))
    return parts(candidates[first]) if first < len(candidates) else None
