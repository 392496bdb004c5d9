"""The plan of a run in one line, and its duration from measured steps and searches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter

import torch

from heedful.config import EOS, ModelConfig, Recipe
from heedful.data.batches import Batches
from heedful.data.store import Store
from heedful.decoding.inference_model import SearchModel
from heedful.decoding.search import beam_search
from heedful.devices import cores, preserved_torch_state
from heedful.formatting import plural, rough_duration
from heedful.model.transformer import Transformer
from heedful.training import final_model
from heedful.training.trainer import Trainer
from heedful.training.validation import MOST_DECODED

_SECONDS = 2.0  # of measured steps, without a time budget
_WARMUP_BATCHES = 3  # the first steps of a process are slow
_SHARE = 50  # a measurement takes at most one in so many of the run's steps
_SEARCHED = 100  # validation lines that are translated to measure a search, the batch of a validation


@dataclass(frozen=True)
class Trial:
    """What a measurement needs besides a recipe."""

    train: Store
    valid: Store
    vocab_size: int
    device: torch.device
    processes: int = 1


@dataclass(frozen=True)
class Speed:
    """Seconds on this machine."""

    step: float  # an update
    losses: float  # the loss of the validation text
    greedy: float  # greedy search on the validation lines that BLEU is computed on
    beam: float  # beam search on the lines that alpha is chosen on


def summary(recipe: Recipe, seconds: float | None = None) -> str:
    """Return "plan: 4 layers, d_model 128, …, about 14 minutes on this machine"."""
    training = recipe.training
    size = f"{plural(training.steps, 'step')} of at most {training.batch_tokens * training.accumulate:,} tokens"
    duration = "" if seconds is None else f", about {rough_duration(seconds)} on this machine"
    return f"plan: {_depth(recipe.model)}, d_model {recipe.model.d_model}, {size}{duration}"


def _depth(model: ModelConfig) -> str:
    if model.N_decoder:
        return f"{model.N} encoder and {plural(model.N_decoder, 'decoder layer')}"
    return plural(model.N, "layer")


def run_seconds(recipe: Recipe, speed: Speed) -> float:
    """Return the duration of a run that early stopping does not end.

    Saving is left out: it takes milliseconds.
    """
    training = recipe.training
    validations = -(-training.steps // training.validate_every)  # one at the last step
    return training.steps * speed.step + pauses(recipe, speed, validations)


def pauses(recipe: Recipe, speed: Speed, validations: int) -> float:
    """Return the duration of validations and of the choices at the end of a run."""
    greedy, beam = final_model.searches(recipe)
    return validations * (speed.losses + speed.greedy) + greedy * speed.greedy + beam * speed.beam


def measure_short(recipe: Recipe, trial: Trial) -> Speed | None:
    """Measure for a small part of the run's duration; return None for a very short run."""
    most = recipe.training.steps // _SHARE
    return measure(recipe, trial, _SECONDS, most) if most > _WARMUP_BATCHES else None


def measure(recipe: Recipe, trial: Trial, seconds: float, most: int | None = None) -> Speed:
    """Measure a random model: updates on the training text, searches on the validation text."""
    training = replace(recipe.training, dropout_warmup_steps=0)  # masks cost time, and training soon has them
    with preserved_torch_state():
        torch.set_num_threads(training.threads or cores())
        model = Transformer(replace(recipe.model, vocab_size=trial.vocab_size)).to(trial.device)
        trainer = Trainer(model, training)
        per_step = training.accumulate // trial.processes
        batches = Batches(trial.train, training.batch_tokens, training.seed)
        for number in range(_WARMUP_BATCHES):
            trainer.train_step([batches[number]])
        began, done, tokens = perf_counter(), 0, 0
        while not done or (perf_counter() - began < seconds and (most is None or done < most)):
            first = _WARMUP_BATCHES + done * per_step
            tokens += trainer.train_step(batches[number] for number in range(first, first + per_step)).tokens
            done += 1
        elapsed = perf_counter() - began
        # The backward pass has twice the products of the forward pass, which is all that validation needs.
        passes = 3 * (2 if training.consistency else 1)
        losses = elapsed / tokens * trial.valid.buckets.target_tokens / passes
        greedy = _search_seconds(model, trial, 1, MOST_DECODED)
        _, searches = final_model.searches(recipe)
        beam = _search_seconds(model, trial, recipe.decoding.beam, final_model.ALPHA_LINES) if searches else 0.0
    return Speed(elapsed / done, losses, greedy, beam)


def _search_seconds(model: Transformer, trial: Trial, beam: int, most_lines: int) -> float:
    """Time a search on some validation lines; return the duration for `most_lines`."""
    lines = min(len(trial.valid), most_lines)
    every = -(-lines // _SEARCHED)
    sources = [trial.valid.source(number).tolist() for number in range(0, lines, every)]
    model.eval()
    with torch.no_grad():
        model.embedding.weight_VD[EOS] = 0.0  # never the likeliest token: every translation is as long as its source
    ready = SearchModel(model)
    began = perf_counter()
    beam_search(ready, sources, beam, max_extra=0)
    buckets = trial.valid.buckets
    longer = buckets.target_tokens / max(buckets.tokens - buckets.target_tokens, 1)
    return (perf_counter() - began) * lines / len(sources) * longer
