"""`heedful train --time`: the shape and number of steps that fit a time budget."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from heedful import recipes
from heedful.config import Recipe
from heedful.errors import UsageError
from heedful.formatting import plural
from heedful.model.complexity import training_flops
from heedful.recipes import Settings
from heedful.training import autoconfig, run_plan
from heedful.training.autoconfig import Choice, CorpusSize
from heedful.training.run_plan import Speed, Trial

PrintStatus = Callable[[str], None]

_UNITS = {"s": 1, "m": 60, "h": 3_600}
_SHAPES = ((2, 64), (3, 128), (4, 128), (4, 192), (4, 256), (6, 384), (6, 512))  # N and d_model, by cost
_MEASURED_SECONDS = 4.0
_MOST_REPEATED = 3.0  # times the tokens of a plan without a budget; more would be memorised
_LEAST_TRAINED = 0.4  # of these tokens; with less, a smaller model learns more
_LEAST_STEPS = 100
_VALIDATIONS = (8, 4, 2)  # the first number that leaves this share of the budget for training
_TRAINING_SHARE = 0.7


def parse_duration(text: str) -> float:
    """Return the seconds of "90s", "30m" or "2h"; raise UsageError for anything else."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text.strip())
    if not match or not float(match[1]):
        raise UsageError(
            f'`--time` "{text}" is not a duration. Pass seconds, minutes or hours, such as 90s, 30m or 2h.'
        )
    return float(match[1]) * _UNITS[match[2]]


@dataclass(frozen=True)
class Budget:
    """A time budget, and what is needed to measure this machine."""

    seconds: float
    trial: Trial
    print_status: PrintStatus

    def measure(self, recipe: Recipe) -> Speed:
        return run_plan.measure(recipe, self.trial, _MEASURED_SECONDS)


def plan(given: Settings, size: CorpusSize, budget: Budget) -> tuple[list[Choice], Speed]:
    """Choose all keys not given, so that training with its validations takes the budget.

    The machine is measured with the shape that the corpus alone would get. A larger or smaller shape is taken if the
    budget is too long or too short for it, and measured again. The speed of the chosen shape is returned as well.
    """
    budget.print_status("measuring the speed of this machine")
    gpu = budget.trial.device.type == "cuda"
    recipe = recipes.build(autoconfig.apply(given, autoconfig.choose(given, size, gpu)))
    speed = budget.measure(recipe)
    fixed = {"N", "N_decoder", "d_model"} & set(given.get("model", {}))
    shape = None if fixed else best_shape(recipe, size, speed.step, budget.seconds)
    own: Settings = {}
    if shape is not None:
        own["model"] = dict(zip(("N", "d_model"), shape, strict=True))
        known = recipes.merged(own, given)
        recipe = recipes.build(autoconfig.apply(known, autoconfig.choose(known, size, gpu)))
        speed = budget.measure(recipe)
    steps, validations = _steps(recipe, size, speed, budget.seconds)
    if steps == _LEAST_STEPS:
        budget.print_status(
            f"warning: `--time` leaves too little time to train: the plan has {steps} steps and takes longer. "
            "Allow more time, or validate on fewer lines."
        )
    steps = given.get("training", {}).get("steps", steps)
    own["training"] = {"steps": steps, "validate_every": -(-steps // validations)}
    return [*_own_choices(own, given, budget), *autoconfig.choose(recipes.merged(own, given), size, gpu)], speed


def _own_choices(own: Settings, given: Settings, budget: Budget) -> Iterator[Choice]:
    seconds = budget.seconds
    why = f"`--time`: {plural(round(seconds / 60), 'minute')}" if seconds >= 120 else f"`--time`: {seconds:.0f} seconds"
    for section, keys in own.items():
        for key, value in keys.items():
            if key not in given.get(section, {}):
                yield Choice(section, key, value, why)


def best_shape(recipe: Recipe, size: CorpusSize, seconds: float, budget: float) -> tuple[int, int] | None:
    """Return the largest shape that the budget trains long enough, one size up at most.

    Return None if that is the planned shape.
    """
    planned = (recipe.model.N, recipe.model.d_model)
    if planned not in _SHAPES:
        return None
    full = seconds * autoconfig.training_tokens(size, bool(recipe.training.init)) / tokens_per_step(recipe)
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


def _steps(recipe: Recipe, size: CorpusSize, speed: Speed, budget: float) -> tuple[int, int]:
    """Return the steps that fit beside the validations, and the number of validations.

    There are at most three times the usual steps.
    """
    for validations in _VALIDATIONS:
        left = budget - run_plan.pauses(recipe, speed, validations)
        if left >= _TRAINING_SHARE * budget:
            break
    most = _MOST_REPEATED * autoconfig.training_tokens(size, bool(recipe.training.init)) / tokens_per_step(recipe)
    steps = max(_LEAST_STEPS, int(min(most, left / speed.step)))
    return steps, validations
