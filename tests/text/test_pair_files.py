"""Files with both sides: .tsv, .jsonl and .tmx, plain and compressed, valid and not."""

from __future__ import annotations

import gzip
import json
import sys
import tracemalloc
from pathlib import Path

import pytest

from heedful.errors import CorpusError, UsageError
from heedful.text.corpus import Corpus
from heedful.text.pair_files import kind_of, read_pairs
from heedful.text.text_files import read_lines

PAIRS = [("A dog.", "Ein Hund."), ("café \u2028 & <b>", "Café")]
TMX = """<?xml version="1.0" encoding="utf-8"?>
<tmx version="1.4"><header srclang="en" datatype="plaintext"/><body>
<tu><tuv xml:lang="de"><seg>Ein Hund.</seg></tuv>
<tuv xml:lang="en-GB"><seg>A <bpt i="1">&lt;b&gt;</bpt>dog.</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>no counterpart</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>two
lines</seg></tuv><tuv xml:lang="de"><seg>zwei Zeilen</seg></tuv></tu>
</body></tmx>"""


def json_lines() -> str:
    return "".join(json.dumps({"source": a, "target": b, "id": 1}) + "\n" for a, b in PAIRS)


@pytest.mark.parametrize(
    ("name", "content"), [("a.jsonl", json_lines()), ("a.tsv", "".join(f"{a}\t{b}\n" for a, b in PAIRS))]
)
def test_pairs_are_read_plain_and_compressed(tmp_path: Path, name: str, content: str) -> None:
    zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed")
    forms = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.ZstdCompressor().compress}
    for ending, compress in forms.items():
        path = tmp_path / f"{name}{ending}"
        path.write_bytes(compress(content.encode()))
        assert list(Corpus.of((str(path),), (), "training").pairs()) == PAIRS


@pytest.mark.parametrize(
    "line",
    [
        '{"source": "a"}',
        '["a", "b"]',
        "a\tb",
        '{"source": 1, "target": "b"}',
        '{"source": "\\ud800", "target": "b"}',
        "[",
    ],
)
def test_a_bad_json_line_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.jsonl").write_text(f"{json_lines()}{line}\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"a\.jsonl:3: not a JSON object"):
        list(read_pairs(tmp_path / "a.jsonl"))


def tmx(directory: Path, name: str, content: str = TMX) -> Path:
    (directory / name).write_text(content, encoding="utf-8")
    return directory / name


def test_tmx_takes_the_languages_from_its_name_or_header(tmp_path: Path) -> None:
    expected = [("A dog.", "Ein Hund."), ("two lines", "zwei Zeilen")]
    for name in ("corpus.tmx", "corpus.en-de.tmx"):
        assert list(read_pairs(tmx(tmp_path, name))) == expected
    assert list(read_pairs(tmx(tmp_path, "corpus.de-en.tmx"))) == [(b, a) for a, b in expected]
    path = tmp_path / "corpus.en-de.tmx.gz"
    path.write_bytes(gzip.compress(TMX.encode()))
    assert list(read_pairs(path)) == expected


def test_tmx_with_three_languages_needs_a_name(tmp_path: Path) -> None:
    content = TMX.replace("</seg></tuv></tu>", '</seg></tuv><tuv xml:lang="fr"><seg>Un chien.</seg></tuv></tu>', 1)
    with pytest.raises(CorpusError, match=r"units in 3 languages.*NAME\.en-de\.tmx"):
        list(read_pairs(tmx(tmp_path, "corpus.tmx", content)))
    assert list(read_pairs(tmx(tmp_path, "x.en-fr.tmx", content))) == [("A dog.", "Un chien.")]


def test_tmx_entities_are_refused_and_damage_is_named(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE tmx [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>'
    with pytest.raises(CorpusError, match="declares XML entities"):
        list(read_pairs(tmx(tmp_path, "a.tmx", TMX.replace("<tmx ", f"{bomb}<tmx ").replace("dog", "&b;"))))
    with pytest.raises(CorpusError, match=r"b\.tmx:\d+: not a valid TMX file"):
        list(read_pairs(tmx(tmp_path, "b.tmx", TMX[:-30])))
    with pytest.raises(CorpusError, match="is empty"):
        list(read_pairs(tmx(tmp_path, "c.tmx", "<tmx/>")))


def test_several_and_truncated_zstd_frames(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed")
    one, two = (zstandard.ZstdCompressor().compress(text) for text in (b"a\nb", b"c\n"))
    (tmp_path / "a.zst").write_bytes(one + two)
    assert list(read_lines(tmp_path / "a.zst")) == ["a", "bc"]
    (tmp_path / "a.zst").write_bytes(one + two[:-2])
    with pytest.raises(CorpusError, match="ended before the end-of-stream marker"):
        list(read_lines(tmp_path / "a.zst"))
    (tmp_path / "a.zst").write_bytes(b"plain text\n")
    with pytest.raises(CorpusError, match="not valid zstd data"):
        list(read_lines(tmp_path / "a.zst"))


def test_a_zstd_bomb_is_refused_in_bounded_memory(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed")
    compressor = zstandard.ZstdCompressor().compressobj()
    content = b"".join(compressor.compress(bytes(1 << 20)) for _ in range(300)) + compressor.flush()
    (tmp_path / "a.zst").write_bytes(content)
    tracemalloc.start()
    with pytest.raises(CorpusError, match="the line is longer than"):
        list(read_lines(tmp_path / "a.zst"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150_000_000


def test_zst_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.zst").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(UsageError, match=r"needs the package zstandard.*heedful\[zstd\]"):
        list(read_lines(tmp_path / "a.zst"))


def test_kinds_of_files() -> None:
    names = {"a.tsv": ".tsv", "a.tmx.gz": ".tmx", "a.jsonl.zst": ".jsonl", "a.en": "", "tsv": ""}
    assert {name: kind_of(name) for name in names} == names
