"""docs/results/results.md says exactly what benchmarks/record_result.py found."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

import synthetic_tasks as tasks
from heedful import recipes
from heedful.cli.main import main
from heedful.config import Recipe
from heedful.data.batches import Batches
from heedful.data.store import Store
from heedful.model.complexity import training_flops
from heedful.storage.run_directory import RunDirectory
from heedful.training import autoconfig
from heedful.training.autoconfig import CorpusSize
from heedful.training.run import train

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "benchmarks"))

import record_result
import results_page

DATA, PAGE = ROOT / "docs" / "results" / "results.json", ROOT / "docs" / "results" / "results.md"
CONTENT = json.loads(DATA.read_text(encoding="utf-8"))
SIZE = CorpusSize(29_000, 450_000)


def test_the_page_is_drawn_from_the_figures() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert results_page.filled(page, CONTENT) == page


def test_the_data_are_those_of_docs_data() -> None:
    listed = (ROOT / "docs" / "reference" / "data.md").read_text(encoding="utf-8")
    assert CONTENT["runs"]
    for run in CONTENT["runs"]:
        assert run["files"], run["name"]
        for file, digest in run["files"].items():
            assert f"| `{file}` | `{digest}` |" in listed


def test_no_place_of_a_machine_is_told() -> None:
    text = PAGE.read_text(encoding="utf-8") + DATA.read_text(encoding="utf-8")
    assert re.findall(r"(?:^|[\s\"'`=])/(?:home|root|tmp|work|Users|mnt)\b", text) == []


@pytest.mark.parametrize("run", CONTENT["runs"], ids=lambda run: f"{run['name']}-{run['seed']}")
def test_a_run_of_a_recipe_is_what_the_recipe_and_its_command_say(run: dict[str, Any]) -> None:
    """A recipe changed after its run must be run again."""
    if run["recipe"] is None:
        pytest.skip("chosen from the text")
    given = recipes.read(ROOT / run["recipe"], Path("/root"))
    given = recipes.merged(given, recipes.overrides(re.findall(r"--set (\S+)", run["command"])))
    for section, entries in given.items():
        for key, value in entries.items():
            if (section, key) not in recipes.PATHS:
                assert run["settings"][section][key] == value, f"{section}.{key}"


def made_up(seed: int, bleu: float, name: str = "multi30k-en-de") -> dict[str, Any]:
    def score(value: float) -> dict[str, Any]:
        detail = f"70.0/50.0/35.0/25.0 (BP 0.9{seed}0, ratio 0.950, 95/100 words)"
        return {
            "sentences": 1_000,
            "BLEU": {"value": value, "signature": "tok:none", "detail": detail},
            "chrF": {"value": value + 20, "signature": "nc:6", "detail": ""},
        }

    return {
        "name": name,
        "recipe": f"recipes/{name}.toml",
        "seed": seed,
        "command": f"heedful train recipes/{name}.toml --set training.seed={seed}",
        "model": f"model {seed}",
        "settings": {
            "model": {"N": 4, "d_model": 128, "d_ff": 256, "h": 4},
            "decoding": {"beam": 5, "alpha": 0.6},
        },
        "training": {
            "pairs": 29_000,
            "vocab_size": 10_000,
            "parameters": 2_605_056,
            "steps": 4_000,
            "epochs": 37.04,
            "tokens": 14_476_000,
            "flops": 2.4e14,
            "seconds": 4_200.0 + 60 * seed,
            "averaged_steps": [3_800, 3_900, 4_000],
        },
        "machine": {"processor": "Some CPU", "cores": 2, "threads": 2, "torch": "2.13", "python": "3.11"},
        "commit": "abc",
        "note": "",
        "tokenize": "none",
        "files": {"multi30k/train.en.gz": "0123456789abcdef"},
        "scores": {"val": score(bleu + 1), "test_2016_flickr": score(bleu)},
        "curve": [{"step": 2_000, "nll": 2.0, "bleu": 30.0}, {"step": 4_000, "nll": 1.5, "bleu": bleu}],
    }


def test_figures_make_tables_and_a_picture(tmp_path: Path) -> None:
    other = {**made_up(1, 20.0, "europarl"), "recipe": None, "commit": "", "note": "a busy machine"}
    other["training"]["averaged_steps"] = [4_000]
    runs = [made_up(1, 41.0), made_up(2, 40.5), made_up(3, 42.0), other]
    (tmp_path / "results.json").write_text(json.dumps({"runs": runs}))
    (tmp_path / "results.md").write_text(f"before\n{results_page.BEGIN}\nold\n{results_page.END}\nafter\n")
    results_page.write(tmp_path)
    text = (tmp_path / "results.md").read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    name = "[multi30k-en-de](../../recipes/multi30k-en-de.toml)"
    assert (
        f"| {name} | 4, 128, 256, 4 | 10,000 | 2,605,056 | 4,000 | 37.0 | 14.5 M | 2.40e14 | 72 ± 1 min | 2 |"
    ) in text
    assert "pairs; the average of the last 3 checkpoints, beam" in text
    assert "pairs; the last checkpoint, beam" in text
    middle = f"{mean([41.0, 40.5, 42.0]):.2f}"
    assert middle == "41.17"
    assert (
        f"| {name} | test_2016_flickr | 1,000 | **{middle} ± 0.75** | 61.17 ± 0.75 | 0.920 ± 0.010 "
        "| 1: 41.00, 2: 40.50, 3: 42.00 |"
    ) in text
    assert (
        f"Wu et al. 2021 report 41.02 for this shape and text on test_2016_flickr; {middle} is 0.15 above that" in text
    )
    assert "| europarl | validation | 1,000 | **21.00** | 41.00 | 0.910 | 1 |" in text
    assert "commit not recorded; a busy machine" in text
    assert text.index("### multi30k-en-de") < text.index("### europarl")  # recipes come first
    drawn = tmp_path / "images" / "results-multi30k-en-de.svg"
    before = drawn.read_bytes()
    assert b"<svg" in before
    assert before.count(b"greedy") == len(runs) - 1
    results_page.write(tmp_path)
    assert (tmp_path / "results.md").read_text() == text
    assert drawn.read_bytes() == before


def test_the_links_of_the_tables_lead_to_recipes() -> None:
    targets = re.findall(r"\]\(\.\./\.\./(recipes/[^)]+)\)", PAGE.read_text(encoding="utf-8"))
    assert {run["recipe"] for run in CONTENT["runs"] if run["recipe"]} <= set(targets)
    assert [target for target in targets if not (ROOT / target).is_file()] == []


def test_seeds_stand_beside_each_other_and_a_new_run_replaces_its_like() -> None:
    content: dict[str, Any] = {"runs": []}
    for run in (made_up(2, 40.0), made_up(1, 41.0), made_up(2, 42.0), made_up(1, 30.0, "europarl-en-de")):
        content = record_result.entered(content, run)
    entered = [
        (run["name"], run["seed"], run["scores"]["test_2016_flickr"]["BLEU"]["value"]) for run in content["runs"]
    ]
    assert entered == [("europarl-en-de", 1, 30.0), ("multi30k-en-de", 1, 41.0), ("multi30k-en-de", 2, 42.0)]


@pytest.mark.parametrize(
    "own",
    [
        {},
        {"training.seed": 2},
        {"training.seed": 3, "training.threads": 1, "training.steps": 700},
        {"model.d_model": 64, "decoding.alpha": 1.0, "data.lowercase": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["multi30k-en-de", "multi30k-de-en"])
def test_the_command_makes_the_same_run(name: str, own: dict[str, Any]) -> None:
    """Recipe and --set restore the run, whether the recipe says all or leaves choices."""
    file = ROOT / "recipes" / f"{name}.toml"
    given = recipes.merged({"data": {"vocab_size": 5_000}}, recipes.read(file, Path("/root")))
    run = resolved(recipes.merged(given, recipes.from_mapping(own)))
    found = record_result.settings_beside(given, run, SIZE)
    assert {f"{section}.{key}" for section in found for key in found[section]} >= set(own)
    command = record_result.command_of(name, file, {}, found)
    again = resolved(recipes.merged(given, recipes.overrides(re.findall(r"--set (\S+)", command))))
    same = {f"training.{key}" for key in ("validate_every", "patience", "keep", "log_every")}
    assert set(recipes.differences(again, run)) <= same
    assert ("--set" in command) == bool(own)


def resolved(given: recipes.Settings) -> Recipe:
    return recipes.build(autoconfig.apply(given, autoconfig.choose(given, SIZE, gpu=False)))


def test_a_run_on_other_text_is_no_run_of_the_recipe() -> None:
    given = recipes.read(ROOT / "recipes" / "multi30k-de-en.toml", Path("/root"))
    other = recipes.merged(given, {"data": {"source": ("/root/data/other.de",)}})
    with pytest.raises(SystemExit, match=r"data\.source is .*other\.de.* in the run"):
        record_result.settings_beside(given, resolved(other), SIZE)


def test_the_sets_of_a_corpus() -> None:
    published = {"source": "multi30k/train.lc.norm.tok.en.gz", "target": "multi30k/train.lc.norm.tok.de.gz"}
    assert record_result.held_out(published) == {
        name: (f"multi30k/{name}.lc.norm.tok.en.gz", f"multi30k/{name}.lc.norm.tok.de.gz")
        for name in ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco")
    }
    trained = {"source": "train-en/train.en", "target": "train-en/train.de"}
    assert record_result.held_out(trained) == {"test": ("train-en/test.en", "train-en/test.de")}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data root with a corpus of two sides, a test set, and a finished run of it."""
    root = tmp_path_factory.mktemp("results")
    text = root / "data" / "letters"
    for name, indices in (("train", range(80)), ("val", range(80, 86)), ("test", range(90, 95))):
        source, target = tasks.write(text, name, tasks.pairs(tasks.reverse, indices))
        source.rename(text / f"{name}.en")
        target.rename(text / f"{name}.de")
    files = {"source": "train.en", "target": "train.de", "valid_source": "val.en", "valid_target": "val.de"}
    train(
        out=root / "run", overrides={**{f"data.{key}": str(text / file) for key, file in files.items()}, **tasks.TINY}
    )
    log = root / "run" / "log.jsonl"
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    slow = [{**entry, "seconds": 100.0} if entry["kind"] == "valid" else entry for entry in entries]  # to be seen
    log.write_text("".join(json.dumps(entry) + "\n" for entry in slow))
    return root


def run_main(monkeypatch: pytest.MonkeyPatch, root: Path, docs: Path, *more: str) -> None:
    arguments = ["record_result.py", "none", str(root / "run"), "--data-root", str(root), "--docs", str(docs)]
    monkeypatch.setattr(sys, "argv", [*arguments, "--commit", "abc", *more])
    record_result.main()


def test_a_finished_run_is_entered(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[str, ...]] = []

    def in_this_process(*arguments: str | Path) -> str:
        asked.append(tuple(map(str, arguments)))
        capsys.readouterr()
        assert main([*map(str, arguments)]) == 0
        return capsys.readouterr().out

    monkeypatch.setattr(record_result, "heedful", in_this_process)
    (tmp_path / "results.md").write_text(f"{results_page.BEGIN}\n{results_page.END}\n")
    run_main(monkeypatch, finished, tmp_path)
    (entry,) = json.loads((tmp_path / "results.json").read_text())["runs"]
    log = [json.loads(line) for line in (finished / "run" / "log.jsonl").read_text().splitlines()]
    last = [one for one in log if one["kind"] == "train"][-1]
    validations = [one for one in log if one["kind"] == "valid"]
    facts = entry["training"]
    assert (facts["steps"], facts["tokens"]) == (12, last["tokens"])
    assert facts["seconds"] == pytest.approx(last["seconds"] + validations[-1]["seconds"], abs=0.06)
    assert [point["step"] for point in entry["curve"]] == [6, 12]
    assert entry["curve"][-1]["nll"] == pytest.approx(validations[-1]["nll"], abs=1e-4)
    assert facts["flops"] == pytest.approx(counted(finished / "run"), rel=0.1)
    assert entry["name"] == "letters-en-de-automatic"
    assert list(entry["files"]) == [
        f"letters/{name}.{language}" for name in ("train", "val", "test") for language in ("en", "de")
    ]
    assert {name: score["sentences"] for name, score in entry["scores"].items()} == {"val": 6, "test": 5}
    assert all("tok:13a" in score["BLEU"]["signature"] for score in entry["scores"].values())
    assert str(finished) not in (tmp_path / "results.json").read_text()
    assert "### letters-en-de-automatic" in (tmp_path / "results.md").read_text()
    assert len(asked) == 2
    run_main(monkeypatch, finished, tmp_path, "--note", "again")  # scored once
    assert len(asked) == 2
    assert json.loads((tmp_path / "results.json").read_text())["runs"] == [{**entry, "note": "again"}]


def counted(run: Path) -> float:
    """Return FLOPs of the steps taken, by batch, where the script uses an epoch's mean."""
    directory = RunDirectory(run)
    recipe = directory.recipe()
    described = json.loads((run / "model" / "config.json").read_text())
    config = replace(recipe.model, vocab_size=described["model"]["vocab_size"])
    batches = Batches(Store(directory.data / "training"), recipe.training.batch_tokens, recipe.training.seed)
    shapes = [batches[number] for number in range(recipe.training.steps)]
    return sum(training_flops(config, *one.source_BS.shape, one.target_out_BT.shape[1], one.tokens) for one in shapes)


@pytest.mark.parametrize("name", ["train.de", "val.en"])
def test_text_that_was_changed_since_is_refused(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    file = finished / "data" / "letters" / name
    before = file.read_bytes()
    file.write_bytes(before.replace(b"a", b"b", 1))
    try:
        with pytest.raises(SystemExit, match=r"has changed since .* was trained"):
            run_main(monkeypatch, finished, tmp_path)
    finally:
        file.write_bytes(before)


def test_a_run_that_went_on_is_refused(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its average is of an earlier step than its log."""
    shutil.copytree(finished / "run", tmp_path / "run")
    shutil.copytree(finished / "data", tmp_path / "data")
    config = tmp_path / "run" / "config.toml"
    config.write_text(config.read_text().replace(str(finished), str(tmp_path)))
    with (tmp_path / "run" / "log.jsonl").open("a") as log:
        log.write('{"step": 13, "kind": "train", "seconds": 1.0, "tokens": 1, "epoch": 1.0}\n')
    with pytest.raises(SystemExit, match=r"is from step 12 but the log ends at step 13\. Let the run finish"):
        run_main(monkeypatch, tmp_path, tmp_path)


@pytest.mark.parametrize(("differs", "said"), [(0, "abc"), (1, "abc with changes")])
def test_the_commit_says_whether_the_program_differs(monkeypatch: pytest.MonkeyPatch, differs: int, said: str) -> None:
    def git(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        asked = command[3]
        return subprocess.CompletedProcess(
            command, differs if asked == "diff" else 0, "abc\n" if asked != "diff" else ""
        )

    monkeypatch.setattr(subprocess, "run", git)
    assert record_result.commit_here() == said


def test_without_a_repository_the_commit_is_to_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 128, ""))
    with pytest.raises(SystemExit, match="--commit"):
        record_result.commit_here()


def test_the_processor_is_named(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: A: CPU\n\nprocessor\t: 1\nmodel name\t: A: CPU\n")
    assert record_result.processor(tmp_path / "cpuinfo") == "A: CPU"
    assert record_result.processor(tmp_path / "none")
