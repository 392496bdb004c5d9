"""The `heedful` command: parse, call, print. Only results go to stdout.

Each command has its own module, imported when called, so --help does not import torch.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from heedful.allocator import keep_memory
from heedful.atomic_files import DISK_ERRORS
from heedful.cli.openmp_settings import set_spin_count
from heedful.cli.parser import build_parser
from heedful.errors import HeedfulError, InputError, MachineError, UsageError, cause, is_out_of_memory, nearest


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
            hint = f" Pass text files as --source {parsed.recipe} --target {unknown[0]}."
        raise UsageError(f'Unknown argument "{unknown[0]}".{hint} Run `heedful {parsed.command} --help`.')
    return parsed


def _require_equals_sign(arguments: Sequence[str]) -> None:
    """Raise for `--set training.steps 5`, in which argparse would read 5 as a recipe."""
    for option, name, value in zip(arguments, arguments[1:], arguments[2:], strict=False):
        if option == "--set" and "=" not in name and not value.startswith("-"):
            raise UsageError(f"--set {name} has no value. Write --set {name}={value}.")


def run(parsed: argparse.Namespace) -> None:
    set_spin_count(parsed.command, os.environ)
    if parsed.command == "demo":
        from heedful.cli.demo import demo as command
    elif parsed.command == "train":
        from heedful.cli.train import train as command
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
    command(parsed)


class _Formatter(logging.Formatter):
    """Formats log records as `warning: …`, like training."""

    def format(self, record: logging.LogRecord) -> str:
        return f"{record.levelname.lower()}: {super().format(record)}"


def _open_closed_streams() -> None:
    """Open the standard streams that the caller has closed.

    Otherwise the next file opened gets the stream's number, and with it the messages of libraries. Writing to a closed
    standard output stays an error, so that no result is lost silently.
    """
    opened = (("stdin", "r", os.O_RDONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY))
    for number, (name, mode, flags) in enumerate(opened):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)  # the lowest number that is free
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def main(arguments: Sequence[str] | None = None) -> int:
    _open_closed_streams()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter())
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    # File names that are not UTF-8 are printed unchanged.
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape", newline="\n")  # type: ignore[union-attr]
    keep_memory()
    try:
        run(parse(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
    except HeedfulError as error:
        return _say(str(error), error.exit_code)
    except KeyboardInterrupt:
        if sys.stderr.isatty():  # start the shell prompt on a new line
            print(file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader closed the pipe (`heedful translate … | head`): not an error.
        _discard_output()
    except OSError as error:
        # An invalid path (too long, no permission) or a full disk.
        try:
            sys.stdout.flush()
        except OSError:
            _discard_output()
        code = MachineError.exit_code if error.errno in DISK_ERRORS else InputError.exit_code
        return _say(
            f"Cannot access {error.filename or 'the output'}: {cause(error)}. Check the path and its permissions.", code
        )
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        return _say(
            "Out of memory. Lower the beam or decoding.batch_tokens, or split the input.", MachineError.exit_code
        )
    return 0


def _discard_output() -> None:
    """Drop what cannot be written, or Python reports the same error again at exit, with a code of its own."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(message: str, exit_code: int) -> int:
    with suppress(OSError, ValueError):  # stderr may be closed; the exit code still reports the error
        print(f"heedful: {message}", file=sys.stderr, flush=True)
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
