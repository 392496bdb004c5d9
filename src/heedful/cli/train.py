"""`heedful train`."""

from __future__ import annotations

import argparse
from pathlib import Path

from heedful import recipes
from heedful.errors import UsageError
from heedful.recipes import Settings

_FILES = ("source", "target", "valid_source", "valid_target")


def train(arguments: argparse.Namespace) -> None:
    settings = settings_of(arguments)
    out = Path(arguments.out) if arguments.out else Path("runs") / Path(arguments.recipe).stem
    from heedful.training.run import train_settings

    done = train_settings(settings, out, preset=arguments.preset, init=arguments.init, device=arguments.device)
    print(done.path)


def settings_of(arguments: argparse.Namespace) -> Settings:
    """The recipe, or the files of the command line, overridden by --set."""
    files = {name: tuple(getattr(arguments, name)) for name in _FILES if getattr(arguments, name)}
    if arguments.recipe and files:
        raise UsageError("Give either a recipe or --source, --target, --valid-source and --valid-target, not both.")
    given = recipes.overrides(arguments.set)
    if arguments.recipe:
        root = Path(arguments.data_root) if arguments.data_root else None
        return recipes.merged(recipes.read(Path(arguments.recipe), root), _absolute(given))
    if arguments.data_root:
        raise UsageError("--data-root goes with a recipe.")
    if not arguments.out:
        raise UsageError("Where should the run go? Give --out RUN.")
    settings = recipes.merged({"data": files}, given)
    begun = (Path(arguments.out) / "config.toml").is_file()
    if not (begun or settings["data"].get("source") or settings["data"].get("builtin")):
        raise UsageError("Nothing to train on: give a recipe, or --source, --target, --valid-source, --valid-target.")
    return _absolute(settings)


def _absolute(settings: Settings) -> Settings:
    return recipes.with_absolute_paths(settings, Path.cwd())
