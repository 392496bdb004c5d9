"""Output of the commands: only results on standard output."""

from __future__ import annotations

import gzip
import io
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
import safetensors.numpy

import heedful as api
import synthetic_tasks as tasks
from heedful.decoding import search_engine
from synthetic_tasks import Program

LINES = ["a b c", "", "h g f e d", "b", "   ", "c c c c c c c c"]
TEXT = "".join(f"{line}\n" for line in LINES)


@pytest.fixture(scope="module")
def translator(model: Path) -> api.Translator:
    return api.load(model, device="cpu")


@pytest.fixture(scope="module")
def expected(translator: api.Translator) -> list[api.Translation]:
    """Each line translated alone."""
    return [translator.translate(line) for line in LINES]


# translate

ENGINE = "engine heedful: faster in batches\n"


def test_one_line_in_one_line_out(heedful: Program, model: Path, expected: list[api.Translation]) -> None:
    outcome = heedful("translate", model, stdin=TEXT.encode())
    assert (outcome.code, outcome.err) == (0, ENGINE)
    assert outcome.out.split("\n") == [*(one.text for one in expected), ""]
    assert outcome.out.split("\n")[1] == ""
    assert outcome.out.split("\n")[4] == ""


@pytest.mark.parametrize(
    "stdin",
    [
        TEXT.replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf" + TEXT.encode(),
        TEXT.encode().removesuffix(b"\n"),
    ],
    ids=["crlf", "bom", "no last newline"],
)
def test_line_endings_and_byte_order_mark_are_ignored(heedful: Program, model: Path, stdin: bytes) -> None:
    assert heedful("translate", model, stdin=stdin) == heedful("translate", model, stdin=TEXT.encode())


def test_empty_input_gives_empty_output(heedful: Program, model: Path) -> None:
    assert heedful("translate", model, stdin=b"") == (0, "", "")
    assert heedful("translate", model, stdin=b"\n\n") == (0, "\n\n", ENGINE)


def test_only_newlines_end_a_line(heedful: Program, model: Path) -> None:
    outcome = heedful("translate", model, stdin="a\u2028b\x0bc\x85d\re\n".encode())
    assert outcome.out.count("\n") == 1


def test_order_is_kept_across_batches(heedful: Program, model: Path, translator: api.Translator) -> None:
    lines = [source for source, _ in tasks.pairs(tasks.copy, range(1_100), shortest=1, longest=5)]
    outcome = heedful("translate", model, "--beam", "1", stdin="\n".join(lines).encode())
    found = outcome.out.removesuffix("\n").split("\n")
    assert len(found) == 1_100
    for index in (0, 1, 500, 999, 1_000, 1_099):
        assert found[index] == translator.translate(lines[index], beam=1).text


def test_input_and_output_files(heedful: Program, model: Path, tmp_path: Path) -> None:
    (tmp_path / "in.gz").write_bytes(gzip.compress(TEXT.encode()))
    outcome = heedful("translate", model, "--input", tmp_path / "in.gz", "--output", tmp_path / "out")
    assert outcome == (0, "", ENGINE)
    assert (tmp_path / "out").read_text() == heedful("translate", model, stdin=TEXT.encode()).out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.gz", "out"]


def test_output_may_be_a_device(heedful: Program, model: Path) -> None:
    assert heedful("translate", model, "--output", "/dev/null", stdin=b"a\n") == (0, "", ENGINE)
    assert Path("/dev/null").is_char_device()


def test_scores_precede_the_text(heedful: Program, model: Path, expected: list[api.Translation]) -> None:
    outcome = heedful("translate", model, "--scores", stdin=TEXT.encode())
    rows = [line.split("\t") for line in outcome.out.removesuffix("\n").split("\n")]
    assert [row[1] for row in rows] == [one.text for one in expected]
    assert [float(row[0]) for row in rows] == pytest.approx([one.score for one in expected], abs=1e-4)


def test_n_best_gives_k_lines_per_source(heedful: Program, model: Path, translator: api.Translator) -> None:
    outcome = heedful("translate", model, "--n-best", "3", stdin=TEXT.encode())
    rows = [line.split("\t") for line in outcome.out.removesuffix("\n").split("\n")]
    assert [int(row[0]) for row in rows] == [number for number in range(1, 7) for _ in range(3)]
    assert [row[2] for row in rows[3:6]] == ["", "", ""]
    best = translator.translate(LINES[0], n_best=3)
    assert [row[2] for row in rows[:3]] == [one.text for one in (best, *best.alternatives)]
    scores = [float(row[1]) for row in rows[:3]]
    assert scores == sorted(scores, reverse=True)


def test_json_lines(heedful: Program, model: Path, expected: list[api.Translation]) -> None:
    outcome = heedful("translate", model, "--format", "jsonl", "--n-best", "2", stdin=TEXT.encode())
    entries = [json.loads(line) for line in outcome.out.splitlines()]
    assert [entry["source"] for entry in entries] == LINES
    assert [entry["text"] for entry in entries] == [one.text for one in expected]
    assert [entry["score"] for entry in entries] == pytest.approx([one.score for one in expected], abs=1e-4)
    assert len(entries[0]["alternatives"]) == 1  # besides the best


def test_search_options_reach_the_search(heedful: Program, model: Path, translator: api.Translator) -> None:
    for beam, alpha in ((1, 0.0), (2, 1.5)):
        outcome = heedful("translate", model, "--scores", "--beam", str(beam), "--alpha", str(alpha), stdin=b"a b c\n")
        own = translator.translate("a b c", beam=beam, alpha=alpha)
        score, text = outcome.out.removesuffix("\n").split("\t")
        assert (text, float(score)) == (own.text, pytest.approx(own.score, abs=1e-4))


@pytest.mark.parametrize("which", ["averaged", "best", "last"])
def test_run_directory_is_accepted_as_model(heedful: Program, tiny_run: Path, which: str) -> None:
    chosen = api.load(tiny_run, checkpoint=which, device="cpu").translate("a b c d")
    outcome = heedful("translate", tiny_run, "--checkpoint", which, stdin=b"a b c d\n")
    assert outcome == (0, f"{chosen.text}\n", ENGINE)


def test_too_long_line_is_translated_in_parts_with_a_warning(
    heedful: Program, model: Path, caplog: pytest.LogCaptureFixture
) -> None:
    outcome = heedful("translate", model, "--beam", "1", stdin=b"a\n" + b"a b c d " * 20 + b"\n")
    assert outcome.code == 0
    assert outcome.out.count("\n") == 2
    assert "line 2 is longer than the training maximum of 40 tokens" in caplog.text


SEVERAL = ["A b c. D e!  F g", "H g f.", "", "A b.\tC d. " * 30]


def test_line_with_several_sentences_is_translated_sentence_by_sentence(
    heedful: Program, model: Path, translator: api.Translator
) -> None:
    outcome = heedful("translate", model, "--scores", stdin="".join(f"{line}\n" for line in SEVERAL).encode())
    rows = [line.split("\t", 1) for line in outcome.out.removesuffix("\n").split("\n")]
    first = [translator.translate(one) for one in ("A b c.", "D e!", "F g")]
    assert rows[0][1] == f"{first[0].text} {first[1].text}  {first[2].text}"
    assert float(rows[0][0]) == pytest.approx(sum(one.score for one in first), abs=1e-3)
    pair = [translator.translate(one).text for one in ("A b.", "C d.")]
    assert rows[3][1] == " ".join(["\t".join(pair)] * 30)


def test_carriage_return_becomes_a_space(heedful: Program, model: Path) -> None:
    outcome = heedful("translate", model, stdin=b"a b\rc d\n")
    assert outcome.out.count("\n") == 1
    assert "\r" not in outcome.out


def test_prompt_is_not_written_to_redirected_output(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    from heedful.cli.main import main

    monkeypatch.setattr(sys, "stdin", Terminal(io.BytesIO(b"a b\n\nc\n")))
    assert main(["translate", str(model), "--engine", "heedful"]) == 0  # this process has translated with it
    out, err = capsys.readouterr()
    assert out.count("\n") == 3
    assert "Press Ctrl-D to quit" in err
    assert "> " not in out


@pytest.mark.parametrize(
    ("options", "engine"),
    [
        ((), "heedful: faster in batches"),
        (("--scores",), "heedful: `--scores` needs"),
        (("--n-best", "2"), "heedful: `--n-best` needs"),
        (("--precision", "int8"), "heedful: CTranslate2 runs in float32"),
        (("--engine", "heedful"), ""),
    ],
)
def test_the_engine_is_printed(heedful: Program, model: Path, options: tuple[str, ...], engine: str) -> None:
    outcome = heedful("translate", model, *options, stdin=b"a\n")
    assert (outcome.code, bool(outcome.err)) == (0, bool(engine))
    assert engine in outcome.err


def test_engines_agree(heedful: Program, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Greedily, with one limit for both lines.

    A process has one engine: the second is refused otherwise.
    """
    pytest.importorskip("ctranslate2")
    arguments = ("translate", model, "--beam", "1", "--engine")
    ours = heedful(*arguments, "heedful", stdin=b"a b\nb c\n")
    refused = heedful(*arguments, "ctranslate2", stdin=b"a b\nb c\n")
    assert (refused.code, "already translates with heedful" in refused.err) == (2, True)
    monkeypatch.setattr(search_engine, "_engine_of_process", "")
    theirs = heedful(*arguments, "ctranslate2", stdin=b"a b\nb c\n")
    assert (theirs.code, theirs.out) == (0, ours.out)


# evaluate


def evaluated(corpus: dict[str, str]) -> tuple[str, ...]:
    return ("--source", corpus["data.valid_source"], "--reference", corpus["data.valid_target"])


def test_evaluate_matches_sacrebleu(heedful: Program, model: Path, corpus: dict[str, str], tmp_path: Path) -> None:
    arguments = ("evaluate", model, *evaluated(corpus), "--output", tmp_path / "hypotheses")
    outcome = heedful(*arguments, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    hypotheses = (tmp_path / "hypotheses").read_text().removesuffix("\n").split("\n")
    references = Path(corpus["data.valid_target"]).read_text().removesuffix("\n").split("\n")
    translated = heedful("translate", model, "--input", corpus["data.valid_source"]).out
    assert translated == (tmp_path / "hypotheses").read_text()
    content = json.loads(outcome.out)
    assert content["sentences"] == 6
    for metric in (sacrebleu.BLEU(), sacrebleu.CHRF()):
        score = metric.corpus_score(hypotheses, [references])
        assert content[score.name.removesuffix("2")]["value"] == pytest.approx(score.score)
        assert content[score.name.removesuffix("2")]["signature"] == str(metric.get_signature())


def test_evaluate_equals_translate_then_sacrebleu(heedful: Program, model: Path, tmp_path: Path) -> None:
    """Also for lines with several sentences; uses the sacrebleu program."""
    (tmp_path / "source").write_text("".join(f"{line}\n" for line in SEVERAL), encoding="utf-8")
    (tmp_path / "reference").write_text("".join(f"{line[::-1]}\n" for line in SEVERAL), encoding="utf-8")
    outcome = heedful(
        "evaluate", model, "--source", tmp_path / "source", "--reference", tmp_path / "reference", "--json"
    )
    translated = heedful("translate", model, "--input", tmp_path / "source").out
    call = [sys.executable, "-m", "sacrebleu", str(tmp_path / "reference"), "-m", "bleu", "chrf", "-w", "6"]
    done = subprocess.run(call, input=translated, capture_output=True, text=True, check=True, encoding="utf-8")
    bleu, chrf = json.loads(done.stdout)
    found = json.loads(outcome.out)
    assert found["BLEU"]["value"] == pytest.approx(bleu["score"], abs=1e-6)
    assert found["chrF"]["value"] == pytest.approx(chrf["score"], abs=1e-6)


def test_evaluate_prints_scores_with_their_signatures(heedful: Program, model: Path, corpus: dict[str, str]) -> None:
    outcome = heedful("evaluate", model, *evaluated(corpus), "--tokenize", "none", "--lowercase")
    lines = outcome.out.splitlines()
    assert re.match(r"BLEU \d+\.\d\d ", lines[0])
    assert "case:lc" in lines[1]
    assert "tok:none" in lines[1]
    assert any(re.match(r"chrF \d+\.\d\d", line) for line in lines)
    assert sum("version:" in line for line in lines) == 2


# score


def test_score_prints_log_probabilities_and_perplexity(
    heedful: Program, model: Path, corpus: dict[str, str], translator: api.Translator
) -> None:
    sides = corpus["data.valid_source"], corpus["data.valid_target"]
    outcome = heedful("score", model, "--source", sides[0], "--target", sides[1])
    assert outcome.code == 0
    rows = [line.split("\t") for line in outcome.out.splitlines()]
    targets = Path(sides[1]).read_text().splitlines()
    assert [int(row[1]) for row in rows] == [len(target.split()) + 1 for target in targets]
    assert all(float(row[0]) < 0 for row in rows)
    total, tokens = sum(float(row[0]) for row in rows), sum(int(row[1]) for row in rows)
    found = re.fullmatch(r"perplexity (\S+) over (\d+) tokens\n", outcome.err)
    assert found
    assert float(found[1]) == pytest.approx(math.exp(-total / tokens), rel=1e-4)
    assert int(found[2]) == tokens


def test_score_agrees_with_beam_search(heedful: Program, model: Path, tmp_path: Path) -> None:
    """A translation's score at alpha 0 is its log-probability."""
    (tmp_path / "s").write_text("a b c\nd e\n")
    (tmp_path / "t").write_text(heedful("translate", model, "--input", tmp_path / "s").out)
    rows = heedful("translate", model, "--input", tmp_path / "s", "--scores", "--alpha", "0").out.splitlines()
    assert len(rows) == 2
    if [row.split("\t")[1] for row in rows] != (tmp_path / "t").read_text().splitlines():
        (tmp_path / "t").write_text("".join(row.split("\t")[1] + "\n" for row in rows))
    scored = heedful("score", model, "--source", tmp_path / "s", "--target", tmp_path / "t").out.splitlines()
    for row, line in zip(rows, scored, strict=True):
        assert float(line.split("\t")[0]) == pytest.approx(float(row.split("\t")[0]), abs=1e-3)


# average


def test_average_is_the_mean_of_the_newest_checkpoints(heedful: Program, own_run: Path, tmp_path: Path) -> None:
    outcome = heedful("average", own_run, "--last", "2", "--out", tmp_path / "mean")
    assert outcome == (0, f"{tmp_path / 'mean'}\n", "")
    files = [
        safetensors.numpy.load_file(own_run / "checkpoints" / step / "model.safetensors")
        for step in ("step-00000008", "step-00000012")
    ]
    found = safetensors.numpy.load_file(tmp_path / "mean" / "model.safetensors")
    assert found.keys() == files[0].keys()
    for name, value in found.items():
        mean = (files[0][name].astype(np.float64) + files[1][name].astype(np.float64)) / 2
        assert np.array_equal(value, mean.astype(np.float32)), name
    assert heedful("translate", tmp_path / "mean", stdin=b"a b\n").code == 0


def test_average_skips_invalid_checkpoints_and_replaces_an_older_model(
    heedful: Program, own_run: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    heedful("average", own_run, "--last", "3", "--out", tmp_path / "mean")
    (own_run / "checkpoints" / "step-00000012" / "state.json").write_text("{}")
    assert heedful("average", own_run, "--last", "1", "--out", tmp_path / "mean").code == 0
    assert "step-00000012" in caplog.text
    eight = own_run / "checkpoints" / "step-00000008" / "model.safetensors"
    files = [safetensors.numpy.load_file(path) for path in (eight, tmp_path / "mean" / "model.safetensors")]
    assert all(np.array_equal(files[0][name], files[1][name]) for name in files[0])


def test_output_equal_to_input_is_rejected(heedful: Program, model: Path, tmp_path: Path) -> None:
    source, link = tmp_path / "text.en", tmp_path / "link.en"
    source.write_text("a b\n", encoding="utf-8")
    link.symlink_to(source)
    for name in (source, link):
        outcome = heedful("translate", model, "--input", name, "--output", source)
        assert outcome.code == 2, outcome.err
        assert "is one of the input files" in outcome.err
    for side in ("source", "reference"):
        other = tmp_path / f"other-{side}"
        other.write_text("a b\n", encoding="utf-8")
        files = {"--source": source, "--reference": source, f"--{side}": other}
        outcome = heedful("evaluate", model, *(one for pair in files.items() for one in pair), "--output", other)
        assert outcome.code == 2, outcome.err
        assert other.read_text(encoding="utf-8") == "a b\n"
    assert source.read_text(encoding="utf-8") == "a b\n"
