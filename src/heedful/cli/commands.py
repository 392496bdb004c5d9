"""Parse the command line and find the function of its command.

Each command has its own module, imported when called, so --help does not import torch.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence

from heedful.cli.openmp_settings import set_spin_count
from heedful.cli.parser import build_parser
from heedful.errors import UsageError, nearest


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser, parsers = build_parser()
    if arguments and not arguments[0].startswith("-") and arguments[0] not in parsers:
        raise UsageError(f'Unknown command "{arguments[0]}".{nearest(arguments[0], parsers)}')
    _require_equals_sign(arguments)
    parsed, unknown = parser.parse_known_args(arguments)
    if parsed.command is None and unknown:
        raise UsageError(f'Unknown option "{unknown[0]}".{nearest(unknown[0], ("--help", "--version"))}')
    if parsed.command is None:
        raise UsageError("No command given. Run `heedful --help` for the list.")
    if unknown:
        options = [option for action in parsers[parsed.command].declared for option in action.option_strings]
        hint = nearest(unknown[0].partition("=")[0], options) if unknown[0].startswith("-") else ""
        if parsed.command == "train" and not hint:
            hint = f" Pass text files as `--source {parsed.recipe} --target {unknown[0]}`."
        raise UsageError(f'Unknown argument "{unknown[0]}".{hint} Run `heedful {parsed.command} --help`.')
    _require_no_empty_values(parsed, parsers[parsed.command].declared)
    return parsed


def _require_no_empty_values(parsed: argparse.Namespace, actions: Sequence[argparse.Action]) -> None:
    """Raise for "", often an unset shell variable; as a path it means the current directory."""
    for action in actions:
        given = getattr(parsed, action.dest, None)
        if action.metavar != "TEXT" and "" in (given if isinstance(given, list) else [given]):
            raise UsageError(f'{"".join(action.option_strings) or action.metavar} is empty (""). Pass a value.')


def _require_equals_sign(arguments: Sequence[str]) -> None:
    """Raise for `--set training.steps 5`, in which argparse would read 5 as a recipe."""
    for option, name, value in zip(arguments, arguments[1:], arguments[2:], strict=False):
        if option == "--set" and "=" not in name and not value.startswith("-"):
            raise UsageError(f"`--set {name}` has no value. Write `--set {name}={value}`.")


def load_command(parsed: argparse.Namespace) -> Callable[[argparse.Namespace], None]:
    """Import the module of a command, and most of what it needs, and return its function."""
    set_spin_count(parsed.command, os.environ)
    if parsed.command == "demo":
        from heedful.cli.demo import demo as command
    elif parsed.command == "train":
        from heedful.cli.train import train as command
    elif parsed.command == "prepare":
        from heedful.cli.prepare import prepare as command
    elif parsed.command == "translate":
        from heedful.cli.translate import translate as command
    elif parsed.command == "evaluate":
        from heedful.cli.evaluate import evaluate as command
    elif parsed.command == "compare":
        from heedful.cli.compare import compare as command
    elif parsed.command == "score":
        from heedful.cli.score import score as command
    elif parsed.command == "average":
        from heedful.cli.average import average as command
    elif parsed.command == "attend":
        from heedful.cli.attend import attend as command
    elif parsed.command == "serve":
        from heedful.cli.serve import serve as command
    elif parsed.command == "export":
        from heedful.cli.export_import import export as command
    elif parsed.command == "import":
        from heedful.cli.export_import import import_model as command
    elif parsed.command == "lab":
        from heedful.cli.lab import lab as command
    elif parsed.command == "treebank":
        from heedful.cli.treebank import treebank as command
    else:
        from heedful.cli.info import info as command
    return command
