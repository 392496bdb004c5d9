"""`heedful info` as text and JSON, for models, presets and runs at any stage."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import safetensors.numpy

from synthetic_tasks import Program

SCREEN = 24  # lines of a terminal


def lines_of(heedful: Program, *arguments: str | Path) -> dict[str, str]:
    """Name → text, after checking that it is one screen."""
    outcome = heedful("info", *arguments)
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert len(lines) <= SCREEN
    assert max(map(len, lines)) < 500  # long paths, but no statistics of a language
    return {line[:13].strip(): line[14:] for line in reversed(lines)}


def test_a_model_on_one_screen(heedful: Program, model: Path) -> None:
    lines = lines_of(heedful, model)
    weights = safetensors.numpy.load_file(model / "model.safetensors")
    assert lines["parameters"].startswith(f"{sum(value.size for value in weights.values()):,} (")
    assert "d_model 16 · d_ff 32 · h 2 · d_k 8 · d_v 8" in lines["shape"]
    assert "average of 3 checkpoints, steps 4 to 12" in lines["model"]
    assert lines["tokenizer"] == "SentencePiece, 277 tokens; sentences of up to 40 tokens"
    assert lines["decoding"].startswith("beam 4, alpha 0.6")
    assert lines["next"] == f"heedful translate {model}"


def test_a_finished_run_on_one_screen(heedful: Program, tiny_run: Path) -> None:
    lines = lines_of(heedful, tiny_run)
    log = [json.loads(line) for line in (tiny_run / "log.jsonl").read_text().splitlines()]
    last = [entry for entry in log if entry["kind"] == "valid"][-1]
    assert lines["training"].startswith("finished: step 12 of 12 · ")
    assert lines["last"].startswith(f"step 12: BLEU {last['bleu']:.2f}, perplexity {last['perplexity']:.2f}")
    assert lines["checkpoints"] == "3 (step 4, 8, 12)"
    assert lines["model"].startswith(f"{tiny_run}/model (")
    assert lines["next"] == f"heedful translate {tiny_run}"


def test_json_has_everything(heedful: Program, tiny_run: Path) -> None:
    outcome = heedful("info", tiny_run, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    facts = json.loads(outcome.out)
    config = json.loads((tiny_run / "model" / "config.json").read_text(encoding="utf-8"))
    manifest = json.loads((tiny_run / "model" / "MANIFEST.json").read_text(encoding="utf-8"))
    assert facts["text"] == config["text"]
    assert facts["text"]["source_profile"]
    assert (facts["shape"], facts["decoding"], facts["history"]) == tuple(
        config[key] for key in ("model", "decoding", "history")
    )
    assert set(facts["sha256"].values()) <= set(re.findall("[0-9a-f]{64}", json.dumps(manifest)))
    assert [entry["step"] for entry in facts["run"]["validations"]] == [6, 12]
    assert facts["run"]["recipe"]["training"]["validate_every"] == 6
    assert facts["run"]["finished"] is True


def test_a_run_without_a_model_yet(heedful: Program, own_run: Path) -> None:
    for name in ("model", "best", "checkpoints"):
        shutil.rmtree(own_run / name)
    (own_run / "log.jsonl").write_bytes(b'{"step": 3, "kind": "train"}\n{"st\xff')
    lines = lines_of(heedful, own_run)
    assert lines["training"] == "unfinished: step 3 of 12"
    assert lines["validation"] == "none yet; every 6 steps"
    assert lines["model"].startswith("none yet")
    assert lines["next"].startswith(f"heedful train {own_run}/config.toml --out {own_run}")


def test_run_with_only_a_recipe(heedful: Program, own_run: Path, tmp_path: Path) -> None:
    (tmp_path / "begun").mkdir()
    shutil.copy(own_run / "config.toml", tmp_path / "begun")
    assert lines_of(heedful, tmp_path / "begun")["training"] == "unfinished: step 0 of 12"


def test_run_stopped_early_is_finished(heedful: Program, own_run: Path) -> None:
    config = own_run / "config.toml"
    config.write_text(
        re.sub(r"(?m)^(steps|patience) = .*", r"\1 = 2", config.read_text()).replace("steps = 2", "steps = 99")
    )
    entry = {"kind": "valid", "loss": 1.0, "nll": 1.0, "perplexity": 2.7, "bleu": 1.0, "seconds": 1.0}
    for count, state in ((2, "unfinished"), (3, "finished, stopped early")):
        log = [{"step": 3 * number, **entry} for number in range(1, count + 1)]
        (own_run / "log.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in log))
        assert lines_of(heedful, own_run)["training"].startswith(f"{state}: step {3 * count} of 99")


def test_non_finite_validation(heedful: Program, own_run: Path) -> None:
    entry = {"step": 6, "kind": "valid", "loss": None, "nll": None, "perplexity": None, "bleu": 0.0, "seconds": 1.0}
    (own_run / "log.jsonl").write_text(json.dumps(entry) + "\n")
    assert "loss not finite" in lines_of(heedful, own_run)["last"]


@pytest.mark.parametrize("name", ["tiny", "small", "base", "big"])
def test_a_preset(heedful: Program, name: str) -> None:
    lines = lines_of(heedful, "--preset", name)
    assert re.match(r"[\d,]+ \(.*vocabulary of 37,000 tokens", lines["parameters"])
    assert lines["next"].startswith(f"heedful train --preset {name} ")
    facts = json.loads(heedful("info", "--preset", name, "--json").out)
    if name == "base":
        assert "d_model 512" in lines["shape"]
        assert "warmup_steps 4,000" in lines["training"]
        assert facts["training"]["warmup_steps"] == 4_000


def test_the_page_of_a_run(heedful: Program, tiny_run: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    page = tmp_path / "page.html"
    outcome = heedful("info", tiny_run, "--out", page)
    assert (outcome.code, outcome.out, outcome.err) == (0, f"{page}\n", "")
    text = page.read_text(encoding="utf-8")
    assert "<svg" in text
    assert "<dt>training</dt><dd>finished: step 12 of 12" in text


def test_the_page_of_a_run_that_has_just_begun(heedful: Program, own_run: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (own_run / "log.jsonl").unlink()
    assert heedful("info", own_run, "--out", tmp_path / "page.html").code == 0


def test_page_requires_a_run_and_an_html_name(heedful: Program, tiny_run: Path, model: Path, tmp_path: Path) -> None:
    for arguments in ([model, "--out", tmp_path / "page.html"], ["--preset", "base", "--out", tmp_path / "page.html"]):
        outcome = heedful("info", *arguments)
        assert (outcome.code, outcome.out) == (2, "")
        assert "`--out` requires a run" in outcome.err
    outcome = heedful("info", tiny_run, "--out", tmp_path / "page.pdf")
    assert (outcome.code, outcome.out) == (2, "")
    assert "must end in .html" in outcome.err
