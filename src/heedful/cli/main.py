"""The `heedful` command: parse, call, print. Only results go to stdout.

This module imports little, so that Ctrl-C is handled as early as possible.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from heedful.cli.interrupts import EXIT_CODE, InterruptHandler
from heedful.errors import HeedfulError, InputError, Interrupted, MachineError, cause, is_out_of_memory


def main(arguments: Sequence[str] | None = None) -> int:
    with InterruptHandler(ends_process=arguments is None) as handler:
        try:
            run(sys.argv[1:] if arguments is None else arguments, handler)
        except KeyboardInterrupt:
            return _interrupted()
        except Exception as error:
            # After Ctrl-C, a library may have raised this error in place of KeyboardInterrupt.
            if handler.interrupted and not isinstance(error, Interrupted):
                return _interrupted()
            return _report(error)
        return _interrupted() if handler.interrupted else 0


def run(arguments: Sequence[str], handler: InterruptHandler) -> None:
    from heedful.allocator import keep_memory
    from heedful.cli.commands import load_command, parse

    _open_closed_streams()
    _print_warnings()
    # File names that are not UTF-8 are printed unchanged.
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape", newline="\n")  # type: ignore[union-attr]
    keep_memory()
    try:
        parsed = parse(arguments)
    except SystemExit:  # --help or --version
        sys.stdout.flush()
        return
    command = load_command(parsed)
    handler.start_raising()
    command(parsed)
    sys.stdout.flush()


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


def _print_warnings() -> None:
    """Print log records as `warning: …`, like training."""
    import logging

    class Formatter(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return f"{record.levelname.lower()}: {super().format(record)}"

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Formatter())
    logging.basicConfig(handlers=[handler], level=logging.WARNING)


def _interrupted() -> int:
    if sys.stderr.isatty():  # start the shell prompt on a new line
        print(file=sys.stderr)
    return EXIT_CODE


def _report(error: Exception) -> int:
    """Print a user's or machine's error and return its exit code; raise any other again."""
    if isinstance(error, HeedfulError):
        return _say(str(error), error.exit_code)
    if isinstance(error, BrokenPipeError):
        # The reader closed the pipe (`heedful translate … | head`): not an error.
        _discard_output()
        return 0
    if isinstance(error, OSError):
        return _report_os_error(error)
    if not is_out_of_memory(error):
        raise error
    advice = (
        "Close other programs, or use a machine with more memory. To translate, lower `--beam` or split long lines."
    )
    return _say(f"Out of memory. {advice}", MachineError.exit_code)


def _report_os_error(error: OSError) -> int:
    """Report an invalid path (too long, no permission) or a full disk."""
    from heedful.atomic_files import DISK_ERRORS

    try:
        sys.stdout.flush()
    except OSError:
        _discard_output()
    code = MachineError.exit_code if error.errno in DISK_ERRORS else InputError.exit_code
    return _say(
        f"Cannot access {error.filename or 'the output'}: {cause(error)}. Check the path and its permissions.", code
    )


def _discard_output() -> None:
    """Drop unwritable output, or Python reports the error again at exit with its own code."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(message: str, exit_code: int) -> int:
    with suppress(OSError, ValueError):  # stderr may be closed; the exit code still reports the error
        print(f"heedful: {message}", file=sys.stderr, flush=True)
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
