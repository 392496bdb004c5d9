"""The benchmarks of decoding, start-up and scaling."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.config import EOS, DecodingConfig, ModelConfig
from heedful.decoding import projection_kernels
from heedful.model.transformer import Transformer
from heedful.storage.model_directory import Model, TextFacts, write_model
from heedful.text.corpus import Corpus
from heedful.text.tokenizer import Tokenizer

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

import decoding_peers
import decoding_speed
import length_and_corpus_scaling
import processor
import startup_time
from decoding_peers import CT2, CT2_INT8, HEEDFUL, HEEDFUL_BF16, HEEDFUL_INT8, HF, Search
from decoding_speed import Mode, Result
from startup_time import OURS, TORCH, Taken

GREEDY = Search(1, 0.0)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer) -> Path:
    """Random in every parameter: zero biases and unit norms would hide a mistake."""
    generator = torch.Generator().manual_seed(1)
    transformer = Transformer(ModelConfig(vocab_size=tokenizer.vocab_size, N=2, d_model=24, d_ff=40, h=3)).eval()
    with torch.no_grad():
        for name, parameter in transformer.named_parameters():
            noise = 0.3 * torch.randn(parameter.shape, generator=generator)
            parameter.copy_(noise + 1.0 if "norm.weight" in name else noise)
        transformer.embedding.weight_VD[:EOS] = 0.0  # what we never say is never the likeliest
    path = tmp_path_factory.mktemp("model") / "model"
    write_model(path, Model(transformer, tokenizer, TextFacts(), DecodingConfig(max_extra=8)))
    return path


def sources(tokenizer: Tokenizer, *lengths: int) -> list[list[int]]:
    generator = torch.Generator().manual_seed(0)
    every = [torch.randint(EOS + 1, tokenizer.vocab_size, (length - 1,), generator=generator) for length in lengths]
    return [[*ids.tolist(), EOS] for ids in every]


@pytest.mark.parametrize(("package", "name"), [("transformers", HF), ("ctranslate2", CT2)])
def test_peers_translate_alike(model: Path, tokenizer: Tokenizer, package: str, name: str) -> None:
    """With greedy search in batches of one length, all stop at the same limit."""
    pytest.importorskip(package)
    ours = decoding_peers.CONTENDERS[HEEDFUL](model, 1)
    theirs = decoding_peers.CONTENDERS[name](model, 1)
    for lengths in ((7, 7, 7, 7, 7, 7), (12, 12, 12), (2,)):
        batch = sources(tokenizer, *lengths)
        said = ours(batch, GREEDY)
        assert {len(sentence) for sentence in said} == {lengths[0] + 8 - 1}
        assert theirs(batch, GREEDY) == said


def test_a_precision_that_this_machine_does_not_have_is_left_out(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projection_kernels, "processor", frozenset)
    with pytest.raises(decoding_peers.NotOffered, match="no bf16 instructions"):
        decoding_peers.CONTENDERS[HEEDFUL_BF16](model, 1)


def test_instruction_sets_are_read_from_what_libraries_say() -> None:
    said = """
ATen AVX512
MKL_VERBOSE oneMKL 2024.0 Product build 20240605 for Intel(R) 64 architecture Intel(R) AVX2 processors, Lnx 2.60GHz
onednn_verbose,v1,info,cpu,isa:Intel AVX-512 with bfloat16 support
[ctranslate2] [info]  - Selected ISA: AVX2
"""
    assert processor.parsed(said) == {
        "ATen": "AVX512",
        "MKL": "Intel(R) AVX2 processors",
        "oneDNN": "Intel AVX-512 with bfloat16 support",
        "CTranslate2": "AVX2",
    }


def test_tables_of_different_processors_are_not_shown_together() -> None:
    one, other = ({"measured": {"machine": "EPYC", "processor": flags}} for flags in ("avx2", "avx512f"))
    processor.require_one_processor([one, one])
    with pytest.raises(SystemExit, match="2 processors"):
        processor.require_one_processor([one, other])


def test_a_worker_answers_batch_by_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    def reversing(path: Path, threads: int) -> decoding_peers.Decode:
        return lambda batch, search: [ids[::-1] * search.beam for ids in batch]

    monkeypatch.setitem(decoding_peers.CONTENDERS, "reversing", reversing)
    monkeypatch.setattr(decoding_speed.time, "perf_counter", iter([10.0, 12.5]).__next__)
    asked = json.dumps({"batches": [[[1, 2], [3]], [[4, 5]]], "search": Search(2, 0.6)})
    answers = io.StringIO()
    decoding_speed.work("reversing", "model", "1", io.StringIO(asked + "\n"), answers)
    ready, answer = map(json.loads, answers.getvalue().splitlines())
    assert ready == {}
    assert answer["said"] == [[2, 1, 2, 1], [3, 3], [5, 4, 5, 4]]
    assert answer["seconds"] == 2.5


def test_a_worker_says_why_it_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(path: Path, threads: int) -> decoding_peers.Decode:
        raise ImportError("no module of that name")

    monkeypatch.setitem(decoding_peers.CONTENDERS, "absent", absent)
    answers = io.StringIO()
    decoding_speed.work("absent", "model", "1", io.StringIO(), answers)
    assert json.loads(answers.getvalue()) == {"left_out": "no module of that name"}


def test_the_timed_batches_are_spread_over_the_lengths() -> None:
    every = [[number] for number in range(64)]
    assert decoding_speed.timed(every, Mode("", GREEDY, 8), 2) == [[*every[16:24], *every[48:56]]]
    assert decoding_speed.timed(every, Mode("", GREEDY, 1), 100) == [[one] for one in every]


def test_ratios_are_medians_of_rounds() -> None:
    """A round that is slow for both, and one slow for one, do not move the ratio."""
    ours, theirs = Result([1.0, 10.0, 1.0], 300, 30), Result([2.0, 20.0, 20.0], 330, 30)
    assert decoding_speed.ratio(ours, theirs) == pytest.approx(2 * 300 / 330)
    assert decoding_speed.same([[1], [2, 3], []], [[1], [2], []]) == pytest.approx(2 / 3)


def made_up() -> dict[str, Result]:
    return {
        HEEDFUL: Result([2.0, 1.0, 4.0], 1_000, 100, [[1], [2]]),
        HEEDFUL_INT8: Result([1.0, 0.5, 2.0], 1_000, 100, [[1], [3]]),
        CT2: Result([2.0, 1.0, 4.0], 1_500, 100, [[1], [2]]),
        CT2_INT8: Result([1.0, 0.5, 2.0], 800, 100, [[4], [3]]),
    }


def test_tables() -> None:
    mode, scores = decoding_speed.MODES[0], dict.fromkeys(made_up(), 33.333)
    table = decoding_speed.mode_table(mode, made_up(), scores, {})
    assert all(len(row) == len(table["columns"]) for row in table["rows"])
    rows = {row[0]: row[1:] for row in table["rows"]}
    assert rows[HEEDFUL] == ["500", "250 to 1,000", "50.0", "20.0", "1.00", "33.33", "100.0%"]
    assert rows[CT2_INT8][-3:] == ["0.62", "33.33", "0.0%"]
    goals = decoding_speed.goals_table({mode.title: made_up()}, {})
    assert [row[:1] + row[2:] for row in goals["rows"]] == [
        [f"{HEEDFUL} : {CT2_INT8}", "0.62", "1", "no"],
        [f"{HEEDFUL_INT8} : {CT2_INT8}", "1.25", "1", "yes"],
    ]


def test_own_start_up_is_the_difference_of_neighbours() -> None:
    taken = {OURS: [Taken(3.0, 2.5), Taken(9.0, 2.6)], TORCH: [Taken(2.0, 2.0), Taken(8.5, 2.0)]}
    assert [one.wall for one in startup_time.over(taken)] == pytest.approx([1.0, 0.5])
    assert [one.processor for one in startup_time.over(taken)] == pytest.approx([0.5, 0.6])
    table = startup_time.table(taken, {})
    assert table["rows"][-1][1:] == ["0.75", "0.50 to 1.00", "0.55", "0.50 to 0.60"]
    with pytest.raises(SystemExit, match="exit code 3"):
        startup_time.run([sys.executable, "-c", "raise SystemExit(3)"])
    assert startup_time.run([sys.executable, "-c", "import time; time.sleep(0.2)"]).wall >= 0.2


def test_the_lines_of_a_large_corpus_are_all_different(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(length_and_corpus_scaling, "BLOCK", 50)
    made = list(length_and_corpus_scaling.lines(170))
    assert len(made) == 170
    assert len({source for source, _ in made}) == len({target for _, target in made}) == 170
    assert made[3][0].rpartition(" ")[0] == made[53][0].rpartition(" ")[0]


def test_what_is_watched_is_timed_and_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = Corpus.of(("no.such.tsv",), (), "test")
    monkeypatch.setattr(Corpus, "count", lambda self: len(self.source))
    monkeypatch.setattr(
        length_and_corpus_scaling, "number", length_and_corpus_scaling.number
    )  # both are put back at the end
    spent = (
        length_and_corpus_scaling.watched("heedful.text.corpus.Corpus.count"),
        length_and_corpus_scaling.watched("length_and_corpus_scaling.number"),
    )
    assert [corpus.count(), length_and_corpus_scaling.number("1,000"), length_and_corpus_scaling.number(cell="2")] == [
        1,
        1_000,
        2,
    ]
    assert [len(times) for times in spent] == [1, 2]


@pytest.mark.slow
def test_preparation_is_timed_by_its_parts(tmp_path: Path) -> None:
    length_and_corpus_scaling.write_corpus(tmp_path, 600)
    found = length_and_corpus_scaling.in_a_process("prepare", directory=str(tmp_path), threads=1)
    assert 0 < sum(found["phases"].values()) <= found["seconds"]
    assert all(seconds > 0 for seconds in found["phases"].values())
    assert found["peak"] >= found["before"] > 2**20
    assert (tmp_path / "run" / "config.toml").is_file()


@pytest.mark.parametrize(("asked", "done"), [([], ["lengths", "corpus"]), (["corpus"], ["corpus"])])
def test_growth_measures_what_is_asked_for(
    asked: list[str], done: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    monkeypatch.setattr(length_and_corpus_scaling, "lengths_table", lambda *_: "lengths")
    monkeypatch.setattr(length_and_corpus_scaling, "corpus_table", lambda *_: "corpus")
    monkeypatch.setattr(length_and_corpus_scaling, "write", lambda tables, _: written.extend(tables))
    monkeypatch.setattr(length_and_corpus_scaling, "draw_all", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["length_and_corpus_scaling.py", *asked, "--out", str(tmp_path / "growth.json")])
    length_and_corpus_scaling.main()
    assert written == done


def test_pictures_and_exponents(tmp_path: Path) -> None:
    rows = [["1,024", "4", "1.50", "500"], ["2,048", "2", "6", "1,000"]]
    lengths: Any = {"columns": ["n", "b", "s", "m"], "rows": rows}
    assert length_and_corpus_scaling.exponent(rows, 2) == pytest.approx(2)
    assert length_and_corpus_scaling.exponent(rows, 3) == pytest.approx(1)
    corpus = {"columns": ["pairs", *"abcdefghij"], "rows": [["10,000", *["2"] * 10], ["100,000", *["3"] * 10]]}
    length_and_corpus_scaling.draw_all([lengths, corpus], tmp_path)
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(first) == {"growth-lengths.svg", "growth-corpus.svg"}
    length_and_corpus_scaling.draw_all([lengths, corpus], tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == first
