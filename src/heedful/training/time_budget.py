"""`heedful train --time`: the shape and the number of steps that fit into a time budget on this machine."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter

import torch

from heedful import recipes
from heedful.config import Recipe
from heedful.data.batches import Batches
from heedful.data.store import Store
from heedful.devices import cores, preserved_torch_state
from heedful.errors import UsageError
from heedful.formatting import format_duration, plural
from heedful.model.complexity import training_flops
from heedful.model.transformer import Transformer
from heedful.recipes import Settings
from heedful.training import autoconfig
from heedful.training.autoconfig import Choice, CorpusSize
from heedful.training.trainer import Trainer

PrintStatus = Callable[[str], None]

_UNITS = {"s": 1, "m": 60, "h": 3_600}
_SHAPES = ((2, 64), (3, 128), (4, 128), (4, 192), (4, 256), (6, 384), (6, 512))  # N and d_model, by cost
_MEASURED_SECONDS = 4.0
_WARMUP_BATCHES = 3  # the first steps of a process are slow
_MOST_REPEATED = 3.0  # times the tokens of a plan without a budget; more would be memorised
_LEAST_TRAINED = 0.4  # of these tokens; with less, a smaller model learns more
_GREEDY_COST = 2.5  # greedy search against training, per target token (measured at d_model 128)
_FINAL_VALIDATIONS = 9.0  # cost of choosing the final model and alpha, in greedy validations
_VALIDATIONS = 8


def parse_duration(text: str) -> float:
    """Return the seconds of "90s", "30m" or "2h"; raise UsageError for anything else."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text.strip())
    if not match or not float(match[1]):
        raise UsageError(f'--time "{text}" is not a duration. Pass seconds, minutes or hours, such as 90s, 30m or 2h.')
    return float(match[1]) * _UNITS[match[2]]


@dataclass(frozen=True)
class Budget:
    """A time budget, and what is needed to plan within it."""

    seconds: float
    device: torch.device
    print_status: PrintStatus


def plan(given: Settings, size: CorpusSize, train: Store, validation_tokens: int, budget: Budget) -> list[Choice]:
    """Choose every key that was not given, so that training and its validations take the budget.

    The machine is measured with the shape that the corpus alone would get. A larger or smaller shape is taken if the
    budget is too long or too short for it, and measured again.
    """
    budget.print_status("measuring the speed of this machine")
    gpu = budget.device.type == "cuda"
    recipe = recipes.build(autoconfig.apply(given, autoconfig.choose(given, size, gpu)))
    seconds = step_seconds(recipe, train, budget.device)
    fixed = {"N", "d_model"} & set(given.get("model", {}))
    shape = None if fixed else best_shape(recipe, size, seconds, budget.seconds)
    if shape is not None:
        given = recipes.merged({"model": dict(zip(("N", "d_model"), shape, strict=True))}, given)
        recipe = recipes.build(autoconfig.apply(given, autoconfig.choose(given, size, gpu)))
        seconds = step_seconds(recipe, train, budget.device)
    steps = given.get("training", {}).get("steps") or _steps(recipe, size, seconds, validation_tokens, budget.seconds)
    budget.print_status(
        f"a step takes {seconds:.3f} s on this machine: {plural(steps, 'step')} take about "
        f"{format_duration(steps * seconds)}, without validations"
    )
    return _choices(given, size, gpu, steps, shape, budget.seconds)


def step_seconds(recipe: Recipe, train: Store, device: torch.device) -> float:
    """Return the seconds of a training step, measured with updates of a random model on batches of this text."""
    with preserved_torch_state():
        torch.set_num_threads(recipe.training.threads or cores())
        # Without warmup of dropout: its masks cost time.
        training = replace(recipe.training, dropout_warmup_steps=0)
        trainer = Trainer(Transformer(replace(recipe.model, vocab_size=recipe.data.vocab_size)).to(device), training)
        batches = Batches(train, training.batch_tokens, training.seed)
        began, done = perf_counter(), 0
        while done < _WARMUP_BATCHES + 1 or perf_counter() - began < _MEASURED_SECONDS:
            if done == _WARMUP_BATCHES:
                began = perf_counter()
            first = done * training.accumulate
            trainer.train_step(batches[number] for number in range(first, first + training.accumulate))
            done += 1
        return (perf_counter() - began) / (done - _WARMUP_BATCHES)


def best_shape(recipe: Recipe, size: CorpusSize, seconds: float, budget: float) -> tuple[int, int] | None:
    """Return the largest shape, at most one size above the planned one, that the budget trains long enough.

    Return None if that is the planned shape.
    """
    planned = (recipe.model.N, recipe.model.d_model)
    if planned not in _SHAPES:
        return None
    full = seconds * autoconfig.reference_tokens(size) / tokens_per_step(recipe)
    own = _SHAPES.index(planned)
    for shape in reversed(_SHAPES[: own + 2]):
        # A larger model pays only after the planned one has had all its steps, and it is trained for as many.
        least = 1.0 if _SHAPES.index(shape) > own else _LEAST_TRAINED
        if budget >= least * full * _relative_cost(recipe, shape):
            return None if shape == planned else shape
    return _SHAPES[0] if planned != _SHAPES[0] else None


def tokens_per_step(recipe: Recipe) -> int:
    """Return the target tokens of a step, as autoconfig counts them."""
    return recipe.training.batch_tokens * recipe.training.accumulate


def _relative_cost(recipe: Recipe, shape: tuple[int, int]) -> float:
    """Return the FLOPs of a step with this shape, relative to the recipe's."""
    model = replace(recipe.model, vocab_size=recipe.data.vocab_size)
    N, d_model = shape
    changed = replace(model, N=N, d_model=d_model, d_ff=4 * d_model, d_k=0, d_v=0)
    return training_flops(changed, 32, 20, 20) / training_flops(model, 32, 20, 20)


def _steps(recipe: Recipe, size: CorpusSize, seconds: float, validation_tokens: int, budget: float) -> int:
    """Return the steps that fit into the budget beside the validations, at most three times the usual number."""
    per_token = seconds / min(tokens_per_step(recipe), max(size.tokens, 1))
    validation = _GREEDY_COST * per_token * validation_tokens
    left = budget - (_VALIDATIONS + _FINAL_VALIDATIONS) * validation
    most = _MOST_REPEATED * autoconfig.reference_tokens(size) / tokens_per_step(recipe)
    return max(100, int(min(most, max(left, budget / 2) / seconds)))


def _choices(
    given: Settings, size: CorpusSize, gpu: bool, steps: int, shape: tuple[int, int] | None, budget: float
) -> list[Choice]:
    """Return the choices of autoconfig for this number of steps, with the budget as the reason."""
    training = {"steps": steps, "validate_every": -(-steps // _VALIDATIONS)}
    known = recipes.merged({"training": training}, given)
    choices = autoconfig.choose(known, size, gpu)
    why = f"--time: {plural(round(budget / 60), 'minute')}" if budget >= 120 else f"--time: {budget:.0f} seconds"
    own = [Choice("training", key, value, why) for key, value in training.items()]
    if shape is not None:
        own += [Choice("model", key, value, why) for key, value in zip(("N", "d_model"), shape, strict=True)]
    return own + choices
