"""What a training would cost, by arithmetic alone: parameters, FLOPs and memory. `heedful train --dry-run` prints it.

FLOPs are counted (model/complexity.py). The paper's Table 2 has another figure, devices × time × rate: it is given
beside the counted one, under its own name, where the settings are the paper's.
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
from heedful.model.complexity import training_flops
from heedful.model.transformer import Transformer

ASSUMED_LENGTH = 25  # tokens of a sentence where no text is at hand; FLOPs hardly depend on it
HELD = 96 * 96  # T × S up to which attention on a CPU keeps its weights (model/attention.py)
# What an allocator holds besides all that is in use, temporary tensors and above all gaps, as a share of what the
# activations would be without checkpoints: the C library's in simple steps and in others (measured:
# docs/results/experiments.md), and a GPU's (not measured).
_WORKING_SIMPLE, _WORKING, _WORKING_GPU = 0.6, 1.6, 0.3

_PAPERS_TOKENS = 25_000  # a step, on either side


class PapersRun(NamedTuple):
    """A row of Table 2 as section 5.2 gives its cost: devices × time × sustained rate."""

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
    tokens: int  # of B × T those that are no padding


@dataclass(frozen=True)
class Memory:
    """Bytes, by what they hold."""

    weights: int
    gradients: int
    moments: int  # Adam's two
    activations: int  # of the largest batch: what the backward pass needs
    working: int  # temporary tensors, and gaps between those that live on

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.moments + self.activations + self.working


@dataclass(frozen=True)
class Estimate:
    parameters: int
    tokens: float  # real target tokens per step (at most, where no text is at hand)
    step_flops: float
    run_flops: float
    papers_run: PapersRun | None  # for Table 2's own figure, where the settings are the paper's
    memory: Memory


def estimate(recipe: Recipe, config: ModelConfig, shapes: Sequence[BatchShape] | None, gpu: bool) -> Estimate:
    """`shapes` are an epoch's batches; None: no text is at hand, and batches are full of sentences of one length."""
    training = recipe.training
    checkpointed = training.checkpoint_activations
    if shapes is None:
        length = min(ASSUMED_LENGTH, recipe.data.max_length)
        tokens = float(training.batch_tokens)
        flops = training_flops(config, 1, length, length, checkpointed=checkpointed) * tokens / length
    else:
        tokens = sum(shape.tokens for shape in shapes) / len(shapes)
        flops = sum(training_flops(config, *shape, checkpointed=checkpointed) for shape in shapes) / len(shapes)
    step = training.accumulate * flops
    return Estimate(
        parameters=parameters(config),
        tokens=training.accumulate * tokens,
        step_flops=step,
        run_flops=training.steps * step,
        papers_run=papers_run(recipe, config),
        memory=memory(config, training, largest(recipe, config, shapes, gpu), gpu),
    )


@functools.lru_cache(maxsize=16)
def parameters(config: ModelConfig) -> int:
    with torch.device("meta"):  # shapes only
        return Transformer(config).parameter_count()


def papers_run(recipe: Recipe, config: ModelConfig) -> PapersRun | None:
    """The paper's run that these settings are; None unless shape, batch and steps are those of base or big."""
    for name, run in PAPERS_RUNS.items():
        preset = presets.named(name)
        # Dropout differs between the two languages, and no vocabulary is quite the paper's.
        shape = replace(preset.model(config.vocab_size), dropout=config.dropout)
        tokens = recipe.training.batch_tokens * recipe.training.accumulate
        if (config, recipe.training.steps, tokens) == (shape, preset.training["steps"], _PAPERS_TOKENS):
            return run
    return None


def largest(recipe: Recipe, config: ModelConfig, shapes: Sequence[BatchShape] | None, gpu: bool) -> BatchShape:
    """The batch that needs most memory. Without text: full of sentences as long as can be, or as can be attended to
    with all weights held, whichever is more."""
    if shapes is None:
        lengths = {recipe.data.max_length, min(recipe.data.max_length, int(HELD**0.5))}
        rows = {length: max(1, recipe.training.batch_tokens // length) for length in lengths}
        shapes = [BatchShape(B, n, n, B * n) for n, B in rows.items()]
    return max(shapes, key=lambda shape: activations(config, recipe.training, shape, gpu))


def memory(config: ModelConfig, training: TrainingConfig, shape: BatchShape, gpu: bool) -> Memory:
    """Weights, gradients and moments are 4 bytes each; half precision has a copy of the weights besides."""
    count = parameters(config)
    weights = count * (4 if training.precision == "fp32" else 6)
    held = activations(config, training, shape, gpu)
    whole = activations(config, replace(training, checkpoint_activations=False), shape, gpu)
    simple = training.accumulate == 1 and not training.checkpoint_activations
    share = _WORKING_GPU if gpu else _WORKING_SIMPLE if simple else _WORKING
    return Memory(weights, 4 * count, 8 * count, held, int(share * whole))


def activations(config: ModelConfig, training: TrainingConfig, shape: BatchShape, gpu: bool) -> int:
    """What autograd keeps of a forward pass, in bytes; checkpointed, the inputs of the layers and one layer whole."""
    B, S, T, tokens = shape
    half = training.precision != "fp32"
    d_model, V = config.d_model, config.vocab_size
    encoder, decoder = _layer_bytes(config, B, S, None, half, gpu), _layer_bytes(config, B, T, S, half, gpu)
    if training.checkpoint_activations:
        layers = config.N * 4 * B * (S + T) * d_model + max(encoder, decoder)
    else:
        layers = config.N * (encoder + decoder)
    ends = B * (S + T) * (8 + d_model * (config.dropout > 0))  # ids and dropout
    ends += 4 * B * S * d_model  # the encoder's output
    # The loss keeps two gradients (training/loss.py: projected_loss), or in half precision the states and all logits.
    loss = tokens * (2 * d_model + 4 * V) if half else 4 * (tokens + V) * d_model
    return layers + ends + loss


def _layer_bytes(config: ModelConfig, B: int, n: int, source: int | None, half: bool, gpu: bool) -> int:
    """A layer of n positions; `source` is the length of what the decoder's second attention reads."""
    width = 2 if half else 4
    # A matrix product keeps its input: one tensor for all that share it, but a copy for each in half precision.
    x = width * B * n * config.d_model
    norm = B * n * _norm_bytes(config)
    own = (3 if half else 1) * x + _attention_bytes(config, B, n, n, width, gpu) + norm
    feed_forward = x + width * B * n * config.d_ff + norm
    if source is None:
        return own + feed_forward
    read = 2 * width * B * source * config.d_model if half else 0
    return own + x + read + _attention_bytes(config, B, n, source, width, gpu) + norm + feed_forward


def _norm_bytes(config: ModelConfig) -> int:
    """A position of AddAndNorm: the sum and its mean and deviation, and a byte an element that says what was kept."""
    return 4 * config.d_model + 8 + (config.d_model if config.dropout > 0 else 0)


def _attention_bytes(config: ModelConfig, B: int, T: int, S: int, width: int, gpu: bool) -> int:
    """Queries, keys, values and what they give; and the weights, unless attention works in blocks."""
    h, dropout = config.h, config.attention_dropout > 0
    if gpu or (T * S > HELD and not dropout):
        widest = max(config.d_k, config.d_v)  # the narrower are padded
        joined = width * T * h * config.d_v if config.d_k != config.d_v else 0
        return B * (width * h * widest * (2 * T + 2 * S) + joined + 4 * h * T)
    keys, values = h * config.d_k, h * config.d_v
    weight = width if not dropout else 2 * width + 1 if T * S <= HELD else 12  # torch's own way for dropout
    weights = h * T * S * weight
    return B * (width * (T * (keys + values) + S * (keys + values)) + weights)


def smaller_batch(recipe: Recipe, fits: Callable[[Recipe], bool]) -> Recipe | None:
    """The same update in more, smaller parts: the first that fits, or None where a single sentence does not."""
    training = recipe.training
    tokens = training.batch_tokens * training.accumulate

    def parts(accumulate: int) -> Recipe:
        changed = replace(training, batch_tokens=tokens // accumulate, accumulate=accumulate)
        return replace(recipe, training=changed)

    candidates = range(training.accumulate, tokens // recipe.data.max_length + 1)
    first = bisect_left(candidates, True, key=lambda accumulate: fits(parts(accumulate)))
    return parts(candidates[first]) if first < len(candidates) else None
