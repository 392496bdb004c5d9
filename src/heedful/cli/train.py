"""`heedful train`, and its cost estimate (`--dry-run`)."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from heedful import recipes
from heedful.errors import CorpusError, MachineError, UsageError
from heedful.formatting import next_commands, plural, rough_duration, shell_command
from heedful.recipes import Settings
from heedful.storage.file_names import RECIPE

if TYPE_CHECKING:
    from heedful.training.dry_run import Report

_FILES = ("source", "target", "valid_source", "valid_target")


def train(arguments: argparse.Namespace) -> None:
    settings = settings_of(arguments)
    out = arguments.out or (arguments.recipe and f"runs/{Path(arguments.recipe).stem}")
    options = {"preset": arguments.preset, "init": arguments.init, "device": arguments.device}
    if arguments.dry_run:
        from heedful.training.dry_run import dry_run

        _say_cost(dry_run(settings, Path(out) if out else None, time=arguments.time, **options))
    else:
        from heedful.training.display import print_status
        from heedful.training.distributed import is_main_process
        from heedful.training.run import train_settings

        try:
            run = train_settings(settings, Path(out), time=arguments.time, **options)
        except CorpusError as error:
            raise CorpusError(f"{error}{_data_hint(arguments, settings)}") from None
        if is_main_process():
            print(run.path)
            print_status(
                "\n".join(
                    ["next:", *(f"  {line}" for line in (*next_commands(run.path), shell_command("info", run.path)))]
                )
            )


def _data_hint(arguments: argparse.Namespace, settings: Settings) -> str:
    """Return where a recipe's data comes from, if it is missing."""
    data = settings.get("data", {})
    if not arguments.recipe or all(Path(file).exists() for name in _FILES for file in data.get(name, ())):
        return ""
    return " Paths in a recipe are relative to `--data-root` (default: its directory). See docs/reference/data.md."


def settings_of(arguments: argparse.Namespace) -> Settings:
    """Return the settings from the recipe or the file options, overridden by --set."""
    files = {name: tuple(getattr(arguments, name)) for name in _FILES if getattr(arguments, name)}
    if arguments.recipe and files:
        raise UsageError("Pass either a recipe or text files (`--source` and so on), not both.")
    given = recipes.overrides(arguments.set)
    if arguments.recipe:
        root = Path(arguments.data_root) if arguments.data_root else None
        return recipes.merged(recipes.read(Path(arguments.recipe), root), _absolute(given))
    if arguments.data_root:
        raise UsageError("`--data-root` applies only to a recipe. Remove it, or pass a recipe.")
    settings = recipes.merged({"data": files}, given)
    begun = bool(arguments.out) and (Path(arguments.out) / RECIPE).is_file()
    if not (begun or settings["data"].get("source") or settings["data"].get("builtin")):
        raise UsageError(
            "No training text given. Pass a recipe, or `--source` and `--target` files, for example: "
            "heedful train --source train.en --target train.de --out runs/mine"
        )
    if not (arguments.out or arguments.dry_run):
        raise UsageError("No run directory given. Pass `--out RUN`, for example `--out runs/mine`.")
    return _absolute(settings)


def _absolute(settings: Settings) -> Settings:
    return recipes.with_absolute_paths(settings, Path.cwd())


def _say_cost(report: Report) -> None:
    print("\n".join([*_plan_lines(report), *_flops_lines(report), *_memory_lines(report), *_time_lines(report)]))
    if report.refusal:
        raise MachineError(report.refusal)


def _plan_lines(report: Report) -> Iterator[str]:
    from heedful.training.run_plan import summary

    plan, training = report.plan, report.plan.recipe.training
    if plan.missing:
        more = f" and {len(plan.missing) - 1} more" if len(plan.missing) > 1 else ""
        yield f"data not found here: {plan.missing[0]}{more}"
    yield from map(str, plan.chosen)
    yield summary(plan.recipe, plan.seconds)
    yield f"parameters: {report.estimate.parameters:,}"
    parts = f"{training.accumulate} × {training.batch_tokens:,} padded"
    mean = f"at most ({parts})" if plan.buckets is None else f"on average (at most {parts})"
    yield f"target tokens per step: {report.estimate.tokens:,.0f} {mean}"


def _flops_lines(report: Report) -> Iterator[str]:
    from heedful.training.estimate import ASSUMED_LENGTH

    cost, steps = report.estimate, report.plan.recipe.training.steps
    read = report.plan.buckets is not None
    basis = "from the batches of the corpus" if read else f"assuming sentences of {ASSUMED_LENGTH} tokens"
    yield f"FLOPs per step, counted: {_power(cost.step_flops)} ({basis})"
    yield f"FLOPs of the run, counted: {_power(cost.run_flops)} ({plural(steps, 'step')})"
    if run := cost.papers_run:
        how = f"{run.devices} devices × {run.hours:g} hours × {_power(run.rate, 1)} FLOP/s, as in Table 2"
        yield f"FLOPs of the run, the paper's estimate: {_power(run.flops, 1)} ({how})"


def _memory_lines(report: Report) -> Iterator[str]:
    from heedful.training.checkpoints import bytes_per_parameter
    from heedful.training.dry_run import gigabytes

    memory, training = report.estimate.memory, report.plan.recipe.training
    parts = {
        "weights": memory.weights,
        "gradients": memory.gradients,
        "Adam's two moments": memory.moments,
        "activations of the largest batch": memory.activations,
        "allocator overhead": memory.working,
        "total": memory.total,
    }
    yield from (f"memory, {name}: {gigabytes(size)}" for name, size in parts.items())
    if report.available is not None:
        yield f"memory available: {gigabytes(report.available)} ({report.device.type})"
    checkpoint = bytes_per_parameter(bool(training.ema_decay)) * report.estimate.parameters
    yield f"disk for checkpoints: {gigabytes(checkpoint * (training.keep + 1))}"


def _time_lines(report: Report) -> Iterator[str]:
    if report.speed:
        seconds = report.estimate.run_flops / report.speed
        yield (
            f"estimated time: {rough_duration(seconds)} at {report.speed / 1e9:,.3g} GFLOP/s, measured on this "
            f"{'GPU' if report.device.type == 'cuda' else 'CPU'} just now; excluding validation and checkpoints"
        )


def _power(number: float, digits: int = 2) -> str:
    """Return a number in scientific notation, such as 1.23e18."""
    return f"{number:.{digits}e}".replace("e+0", "e").replace("e+", "e")
