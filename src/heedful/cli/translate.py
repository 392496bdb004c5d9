"""`heedful translate`: a line in, a line out."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from time import monotonic
from typing import IO, Any, TextIO

from heedful.allocator import keep_memory
from heedful.decoding.load import load
from heedful.decoding.translator import Translation, Translator
from heedful.errors import UsageError
from heedful.files import disk_errors
from heedful.text.lines import decode_lines, one_line, read_lines

_CHUNK = 1_000  # lines translated at a time: enough to batch by length, few enough to hold


def translate(arguments: argparse.Namespace) -> None:
    interactive = arguments.input is None and sys.stdin.isatty()
    if arguments.n_best is not None and arguments.n_best < 1:
        raise UsageError(f"--n-best must be at least 1, not {arguments.n_best}.")
    if arguments.input is not None:
        lines = read_lines(Path(arguments.input))
        first = next(lines, None)  # a missing file is said before the model is loaded
        lines = _again(first, lines)
    else:
        lines = _typed() if interactive else decode_lines(sys.stdin.buffer, "standard input")
    translator = load(arguments.model, checkpoint=arguments.checkpoint, device=arguments.device, int8=arguments.int8)
    chunk_lines = 1 if interactive else _CHUNK
    search = {"beam": arguments.beam, "alpha": arguments.alpha, "n_best": arguments.n_best or 1}
    with output(arguments.output) as stream:
        for number, line, result in translated(translator, lines, chunk_lines, **search):
            stream.write(render(number, line, result, arguments))
            if number % chunk_lines == 0:
                stream.flush()


def translated(
    translator: Translator, lines: Iterator[str], chunk_lines: int = _CHUNK, **search: Any
) -> Iterator[tuple[int, str, Translation]]:
    """Number, line and translation of every line; shows progress on a terminal."""
    keep_memory()  # search reallocates its cache at every step
    done, began = 0, monotonic()
    while chunk := list(islice(lines, chunk_lines)):
        results = translator.translate(chunk, first_line=done + 1, **search)
        for number, line, result in zip(count(done + 1), chunk, results, strict=False):
            yield number, line, _on_one_line(result)
        done += len(chunk)
        if chunk_lines > 1 and sys.stderr.isatty():
            print(f"{done:,} lines, {done / (monotonic() - began):.0f} a second", file=sys.stderr)


def _on_one_line(result: Translation) -> Translation:
    """A carriage return between two sentences is kept by `translate`; in a file of lines it is a space."""
    others = tuple(replace(other, text=one_line(other.text)) for other in result.alternatives)
    return replace(result, text=one_line(result.text), alternatives=others)


def render(number: int, line: str, result: Translation, arguments: argparse.Namespace) -> str:
    """The output for one source line, newline included."""
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
        )  # an empty line has one translation; K lines per source are promised
        return "".join(f"{number}\t{other.score:.6f}\t{other.text}\n" for other in found)
    return f"{result.score:.6f}\t{result.text}\n" if arguments.scores else f"{result.text}\n"


@contextmanager
def output(name: str | None) -> Iterator[TextIO]:
    """Standard output, or a file that appears when it is complete; what stood there before stays until then."""
    if name is None:
        yield sys.stdout
        return
    path = Path(name)
    if not name or path.is_dir():
        raise UsageError(f'--output takes the name of a file, not "{name}".')
    if not path.parent.is_dir():
        raise UsageError(f"{path} cannot be written: there is no directory {path.parent}.")
    if path.exists() and not path.is_file():  # /dev/null, a pipe: nothing to put in its place
        with disk_errors(path), path.open("w", encoding="utf-8", newline="\n") as stream:
            yield stream
        return
    beside = path.with_name(f".unfinished-{path.name}")
    with disk_errors(path):
        try:
            with beside.open("w", encoding="utf-8", newline="\n") as stream:
                yield stream
            os.replace(beside, path)
        finally:
            beside.unlink(missing_ok=True)


def _again(first: str | None, rest: Iterator[str]) -> Iterator[str]:
    if first is not None:
        yield first
        yield from rest


def _typed() -> Iterator[str]:
    print("Type a line and press Enter; Ctrl-D ends.", file=sys.stderr)
    yield from decode_lines(_Prompting(sys.stdin.buffer), "standard input")
    print(file=sys.stderr)


class _Prompting:
    """Asks for each line that is read."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream

    def readline(self, size: int, /) -> bytes:
        print("> ", end="", file=sys.stderr, flush=True)
        return self.stream.readline(size)
