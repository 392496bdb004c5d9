"""`heedful translate`: one line in, one line out."""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import logging
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from time import monotonic
from typing import Any, BinaryIO, TextIO, cast

from heedful.atomic_files import disk_errors, new_file
from heedful.cli.output_file import require_not_an_input, require_not_in_a_model
from heedful.decoding.translator import Translation, Translator
from heedful.engines.choice import Use
from heedful.engines.load import load_all
from heedful.errors import Interrupted, UsageError
from heedful.formatting import plural
from heedful.text.corpus_checks import empty_translations
from heedful.text.text_files import decode_lines, one_line, read_lines

log = logging.getLogger("heedful")

_CHUNK = 1_000  # lines translated at a time: enough to batch by length, few enough to fit in memory


def translate(arguments: argparse.Namespace) -> None:
    interactive = arguments.input is None and sys.stdin.isatty()
    if arguments.n_best is not None and arguments.n_best < 1:
        raise UsageError(f"`--n-best` must be at least 1, not {arguments.n_best}.")
    if arguments.input is not None:
        lines = read_lines(Path(arguments.input))
        first = next(lines, None)  # report a missing file before loading the model
        lines = _again(first, lines)
    else:
        lines = _typed() if interactive else decode_lines(sys.stdin.buffer, "standard input")
    use = Use(in_batches=not interactive, needs=_needs(arguments))
    which = arguments.checkpoint, arguments.device, arguments.precision, arguments.engine
    [translator], choice = load_all([arguments.model], use, *which)
    chunk_lines = 1 if interactive else _CHUNK
    search = {"beam": arguments.beam, "alpha": arguments.alpha, "n_best": arguments.n_best or 1}
    inputs = () if arguments.input is None else (arguments.input,)
    with output(arguments.output, *inputs) as stream:
        for number, line, result in translated(translator, lines, chunk_lines, **search):
            if number == 1 and arguments.engine == "auto":  # only now, so that input errors are reported first
                print(choice, file=sys.stderr)
            stream.write(render(number, line, result, arguments))
            if number % chunk_lines == 0:
                stream.flush()


def _needs(arguments: argparse.Namespace) -> str:
    """Return the first given option that needs heedful's own search and length penalty."""
    wanted = {"--scores": arguments.scores, "--n-best": arguments.n_best, "--format jsonl": arguments.format == "jsonl"}
    wanted["--alpha"] = arguments.alpha is not None
    return next((option for option, given in wanted.items() if given), "")


def translated(
    translator: Translator, lines: Iterator[str], chunk_lines: int = _CHUNK, **search: Any
) -> Iterator[tuple[int, str, Translation]]:
    """Yield number, line and translation of every line; show progress on a terminal."""
    done, began, written, empty = 0, monotonic(), 0, 0
    while chunk := list(islice(lines, chunk_lines)):
        results = translator.translate(chunk, first_line=done + 1, **search)
        for number, line, result in zip(count(done + 1), chunk, results, strict=False):
            yield number, line, _on_one_line(result)
        done += len(chunk)
        texts = [result.text for line, result in zip(chunk, results, strict=True) if line.strip()]
        written, empty = written + len(texts), empty + sum(not text.strip() for text in texts)
        if chunk_lines > 1 and sys.stderr.isatty():
            speed = done / (monotonic() - began)
            print(f"{plural(done, 'line')}, {speed:,.0f} per second", file=sys.stderr)
    if warning := empty_translations(empty, written):
        log.warning(warning)


def _on_one_line(result: Translation) -> Translation:
    """Replace carriage returns, which `translate` keeps, with spaces."""
    others = tuple(replace(other, text=one_line(other.text)) for other in result.alternatives)
    return replace(result, text=one_line(result.text), alternatives=others)


def render(number: int, line: str, result: Translation, arguments: argparse.Namespace) -> str:
    """Return the output for one source line, with its newline."""
    wanted = arguments.n_best or 1
    found = [result, *result.alternatives]
    if arguments.format == "jsonl":
        entry: dict[str, object] = {"source": line, "text": result.text, "score": result.score}
        if arguments.n_best:
            entry["alternatives"] = [{"text": other.text, "score": other.score} for other in result.alternatives]
        return json.dumps(entry, ensure_ascii=False) + "\n"
    if arguments.n_best:
        found += [found[-1]] * (
            wanted - len(found)
        )  # an empty line has one translation, but the output has K lines per source
        return "".join(f"{number}\t{other.score:.6f}\t{other.text}\n" for other in found)
    return f"{result.score:.6f}\t{result.text}\n" if arguments.scores else f"{result.text}\n"


@contextlib.contextmanager
def output(name: str | None, *inputs: str) -> Iterator[TextIO]:
    """Open standard output, or a file that appears once it is complete.

    The inputs (standard input if none are given) are never overwritten.
    """
    if name is None:
        yield sys.stdout
        return
    path = Path(name)
    require_not_an_input(path, "--output", inputs)
    if path.is_file() and not inputs and _is_standard_input(path):
        raise UsageError(f"`--output {name}` is one of the input files. Choose another name.")
    if not name or path.is_dir():
        raise UsageError(f'`--output` "{name}" is not a file. Choose a file name.')
    if not path.parent.is_dir():
        raise UsageError(f"Cannot write {path}: directory {path.parent} does not exist. Create it first.")
    require_not_in_a_model(path)
    if path.exists() and not path.is_file():  # /dev/null or a pipe cannot be replaced
        with disk_errors(path), path.open("w", encoding="utf-8", newline="\n") as stream:
            yield stream
        return
    try:
        with new_file(path) as beside, _open(beside) as stream:
            yield stream
    except KeyboardInterrupt:
        raise Interrupted(f"Interrupted. Nothing was written to {path}.", signal.SIGINT) from None


def _open(path: Path) -> TextIO:
    """Open a file for writing, compressed if its name ends in .gz."""
    if path.suffix != ".gz":
        return path.open("w", encoding="utf-8", newline="\n")
    compressed = gzip.GzipFile(path, "wb", mtime=0)  # the same bytes every time
    return io.TextIOWrapper(cast("BinaryIO", compressed), encoding="utf-8", newline="\n")


def _is_standard_input(path: Path) -> bool:
    """Return whether standard input is read from this file (`< FILE`)."""
    try:
        return os.path.samestat(path.stat(), os.fstat(sys.stdin.fileno()))
    except (OSError, ValueError, AttributeError):  # closed, or not a file at all
        return False


def _again(first: str | None, rest: Iterator[str]) -> Iterator[str]:
    if first is not None:
        yield first
        yield from rest


def _typed() -> Iterator[str]:
    """Yield lines as they are typed, with editing and history on a terminal."""
    print("Type a line and press Enter. Press Ctrl-D to quit.", file=sys.stderr)
    if not sys.stdout.isatty():  # the prompt would end up in the output
        yield from decode_lines(sys.stdin.buffer, "standard input")
        return
    with contextlib.suppress(ImportError):  # not available on every system; input() works without it
        import readline  # noqa: F401
    # Invalid UTF-8 becomes lone surrogates, which the translator rejects with a message.
    sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")  # type: ignore[union-attr]
    with contextlib.suppress(EOFError):
        while True:
            yield input("> ")
    print(file=sys.stderr)
