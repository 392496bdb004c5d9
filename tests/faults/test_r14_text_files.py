"""R14: bad text files: lines out = lines in, errors name file:line, memory is flat."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fault_injection import count, forked

from heedful.cli.main import main
from heedful.config import DataConfig
from heedful.data import store as store_module
from heedful.data.store import write_store
from heedful.errors import CorpusError
from heedful.text.corpus import Corpus, Pair
from heedful.text.text_files import one_line, read_lines
from heedful.text.tokenizer import Tokenizer

pytestmark = pytest.mark.faults

GOOD: dict[str, tuple[bytes, list[str]]] = {
    "byte-order mark": (b"\xef\xbb\xbfa\nb\n", ["a", "b"]),
    "CRLF": (b"a\r\nb\r\n", ["a", "b"]),
    "mixed ends": (b"a\r\nb\nc", ["a", "b", "c"]),
    "lone CR": (b"a\rb\n", ["a\rb"]),
    "blank lines": (b"\n\na\n\n", ["", "", "a", ""]),
    "no last newline": (b"a\nb", ["a", "b"]),
    "other separators": ("a\u2028b\u2029c\x85d\x0be\x0cf\n".encode(), ["a\u2028b\u2029c\x85d\x0be\x0cf"]),
    "10 MB line": (b"x" * 10_000_000 + b"\nb\n", ["x" * 10_000_000, "b"]),
    "NUL": (b"a\0b\n", ["a\0b"]),
}
BAD: dict[str, tuple[bytes, str]] = {
    "not UTF-8": (b"a\nb\n\xe9t\xe9\n", r"source:3: not UTF-8: byte 0xe9 at position 1"),
    "cut character": (b"a\n\xf0\x9f\x98", r"source:2: not UTF-8"),
    "surrogate in UTF-8": (b"\xed\xa0\x80\n", r"source:1: not UTF-8"),
    "17 MB line": (b"a\n" + b"x" * 17_000_000, r"source:2: the line is longer than"),
    "empty": (b"", r"are empty"),
}


@pytest.mark.parametrize("name", GOOD)
def test_lines_are_read_as_they_are(tmp_path: Path, name: str, counted: Callable[[int, str], None]) -> None:
    content, lines = GOOD[name]
    (tmp_path / "text").write_bytes(content)
    assert list(read_lines(tmp_path / "text")) == lines
    counted(1, "kinds of file")


@pytest.mark.parametrize("name", BAD)
def test_errors_name_file_and_line(tmp_path: Path, name: str, counted: Callable[[int, str], None]) -> None:
    content, message = BAD[name]
    (tmp_path / "source").write_bytes(content)
    (tmp_path / "target").write_bytes(b"" if name == "empty" else b"x\n" * 4)
    with pytest.raises(CorpusError, match=message):
        Corpus.of((str(tmp_path / "source"),), (str(tmp_path / "target"),), "training").count()
    counted(1, "kinds of file")


@pytest.mark.parametrize(("left", "right"), [(3, 4), (4, 3), (0, 1)])
def test_unequal_sides_are_both_counted(tmp_path: Path, left: int, right: int) -> None:
    (tmp_path / "source").write_bytes(b"a\n" * left)
    (tmp_path / "target").write_bytes(b"b\n" * right)
    with pytest.raises(CorpusError, match=rf"source has {left} lines, .*target has {right}"):
        Corpus.of((str(tmp_path / "source"),), (str(tmp_path / "target"),), "training").count()


@pytest.mark.parametrize("name", [name for name in GOOD if name != "10 MB line"])
def test_lines_out_are_lines_in(reference: Path, tmp_path: Path, name: str) -> None:
    content, lines = GOOD[name]
    (tmp_path / "in").write_bytes(content)
    assert main(["translate", str(reference), "--input", str(tmp_path / "in"), "--output", str(tmp_path / "out")]) == 0
    out = (tmp_path / "out").read_bytes()
    assert out.count(b"\n") == len(lines)
    assert [line == b"" for line in out.split(b"\n")[:-1]] == [not line.strip() for line in lines]


def test_a_newline_of_byte_tokens_is_a_space(tokenizer: Tokenizer) -> None:
    made = tokenizer.decode(tokenizer.encode("a\nb\r\nc"))
    assert made == "a\nb\r\nc"
    assert one_line(made) == "a b  c"


def growth(lines: int, tokenizer: Tokenizer, directory: Path, chunk: int | None = None) -> int:
    """Most memory, in KiB, that tokenizing so many lines takes."""
    written = directory / f"most-{lines}-{chunk}"

    def pairs() -> Iterator[Pair]:
        yield from (Pair(f"bada kilo {n} " * 4, f"{n} kilo bada " * 4) for n in range(lines))

    def work() -> None:
        if chunk:
            store_module._CHUNK = chunk
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        write_store(directory / f"store-{lines}-{chunk}", pairs(), tokenizer, DataConfig(), {})
        written.write_text(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))

    assert forked(work, directory / "log.txt") == 0, (directory / "log.txt").read_text()
    return int(written.read_text())


LINES = count(100_000, 1_000_000)


def test_memory_is_flat(tokenizer: Tokenizer, tmp_path: Path, counted: Callable[[int, str], None]) -> None:
    few, many = growth(10_000, tokenizer, tmp_path), growth(LINES, tokenizer, tmp_path)
    assert many < few + 40 * 1024, f"{few:,} KiB for 10,000 lines, {many:,} for {LINES:,}"
    counted(LINES, "lines in constant memory")


def test_control_memory_of_all_lines_at_once(tokenizer: Tokenizer, tmp_path: Path) -> None:
    few, many = growth(10_000, tokenizer, tmp_path), growth(50_000, tokenizer, tmp_path, chunk=10**9)
    assert many > few + 40 * 1024


def test_control_with_splitlines(tmp_path: Path) -> None:
    wrong = [name for name, (content, lines) in GOOD.items() if content.decode().splitlines() != lines]
    assert {"lone CR", "other separators", "byte-order mark"} <= set(wrong)
