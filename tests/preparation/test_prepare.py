"""`heedful prepare`: the same result for any number of processes, jobs and kills."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from dirty_corpus import SHARD_BYTES, clean_pairs, dirty_pairs, tree

import synthetic_tasks as tasks
from heedful.data.batches import Batches
from heedful.errors import CheckpointError, ConfigError, CorpusError, UsageError
from heedful.preparation import prepare as preparation
from heedful.preparation.plan import Request
from heedful.preparation.prepare import Job, prepare
from heedful.storage.prepared_directory import PreparedDirectory
from heedful.training.run import train


def prepared(request: Request, out: Path, processes: int = 1, job: Job = preparation.ALL) -> PreparedDirectory:
    return prepare(request, out, lambda _: None, processes, job, SHARD_BYTES)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def test_every_rule_drops_its_pair_and_the_rest_is_kept(tmp_path: Path, request_of_text: Request) -> None:
    found = prepared(request_of_text, tmp_path / "out")
    assert len(found.shard_paths()) > 2
    report = found.read_report()
    assert report is not None
    assert {rule: one["count"] for rule, one in report["rules"].items() if one["count"]} == {
        **dict.fromkeys(("empty", "copied", "urls", "numbers", "duplicate", "near_duplicate", "too_long", "uneven"), 1)
    }
    assert report["rules"]["copied"]["examples"] == [[162, *dirty_pairs()[161]]]
    assert (report["read"], report["kept"]) == (168, 160)
    assert sorted(found.pairs()) == sorted(clean_pairs())
    lines = {found.store.line(index): pair for index, pair in enumerate(found.pairs())}
    assert all(dirty_pairs()[line - 1] == pair for line, pair in lines.items())


def test_result_is_the_same_for_any_number_of_processes_and_jobs(tmp_path: Path, request_of_text: Request) -> None:
    expected = tree(prepared(request_of_text, tmp_path / "one").path)
    assert tree(prepared(request_of_text, tmp_path / "two", processes=2).path) == expected
    for number in (3, 1, 2):
        found = prepared(request_of_text, tmp_path / "jobs", job=Job(number, 3))
        assert (found.read_report() is None) == (number != 2)
    assert tree(found.path) == expected
    assert prepared(request_of_text, tmp_path / "jobs").read_report() is not None
    assert tree(found.path) == expected


def test_preparation_continues_without_redoing_finished_shards(
    tmp_path: Path, request_of_text: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = tree(prepared(request_of_text, tmp_path / "straight").path)
    write_shard, written = preparation.write_shard, []

    def failing(path: Path, partition: Path, number: int) -> None:
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(number)
        write_shard(path, partition, number)

    monkeypatch.setattr(preparation, "write_shard", failing)
    with pytest.raises(KeyboardInterrupt):
        prepared(request_of_text, tmp_path / "out")
    monkeypatch.setattr(preparation, "write_shard", lambda *job: (written.append(job[-1]), write_shard(*job)))
    found = prepared(request_of_text, tmp_path / "out")
    assert sorted(written) == list(range(len(found.shard_paths())))
    assert tree(found.path) == expected


def test_an_epoch_has_every_pair_of_every_shard_once(tmp_path: Path, request_of_text: Request) -> None:
    store = prepared(request_of_text, tmp_path / "out").store
    batches = Batches(store, 60, seed=1)
    lines = [line for number in range(batches.per_epoch) for line in batches[number].lines]
    assert sorted(lines) == list(range(1, 161))


def test_near_duplicates_share_a_shard_and_the_first_is_kept(tmp_path: Path, settings: dict[str, Any]) -> None:
    clean = clean_pairs()
    tasks.write(tmp_path / "text", "train", [*clean, *((a.upper(), f"{b}!") for a, b in clean)])
    found = prepared(Request({"data": settings}), tmp_path / "out")
    assert sorted(found.pairs()) == sorted(clean)
    skipped = prepared(Request({"data": settings}, skip=("near_duplicate",)), tmp_path / "skipped")
    assert len(skipped.store) == 320


def test_excluded_and_validation_lines_are_dropped(tmp_path: Path, settings: dict[str, Any]) -> None:
    clean = clean_pairs()
    (tmp_path / "test").write_text(f"{clean[7][1].upper()}\n", encoding="utf-8")
    tasks.write(tmp_path / "text", "valid", [(clean[9][0], "a b"), *tasks.pairs(tasks.reverse, range(300, 304))])
    found = prepared(Request({"data": settings}, exclude=(str(tmp_path / "test"),)), tmp_path / "out")
    assert not {clean[7], clean[9]} & set(found.pairs())
    assert len(found.store) == 158


def test_without_validation_files_clean_pairs_are_held_out(tmp_path: Path, settings: dict[str, Any]) -> None:
    data = {key: value for key, value in settings.items() if not key.startswith("valid")}
    found = prepared(Request({"data": data}), tmp_path / "out")
    sides = [path.read_text(encoding="utf-8").splitlines() for path in found.valid]
    held_out = set(zip(*sides, strict=True))
    assert len(held_out) == 20
    assert held_out | set(found.pairs()) == set(clean_pairs())
    assert not held_out & set(found.pairs())


def weights(run: Path) -> dict[str, torch.Tensor]:
    return safetensors.torch.load_file(run / "model" / "model.safetensors")


def assert_same_weights(one: Path, other: Path) -> None:
    ours, others = weights(one), weights(other)
    assert all(torch.equal(ours[name], others[name]) for name in ours | others)


def test_training_from_one_shard_equals_training_from_its_text(tmp_path: Path, request_of_text: Request) -> None:
    found = prepare(request_of_text, tmp_path / "out", lambda _: None)
    assert len(found.shard_paths()) == 1
    clean = tasks.write(tmp_path / "clean", "train", list(found.pairs()))
    train(out=tmp_path / "prepared", overrides={**tasks.TINY, "data.source": [str(found.path)]})
    files = dict(zip(("source", "target", "valid_source", "valid_target"), (*clean, *found.valid), strict=True))
    corpus = {f"data.{name}": [str(path)] for name, path in files.items()}
    train(out=tmp_path / "plain", overrides={**tasks.TINY, **corpus, "data.tokenizer": str(found.tokenizer)})
    assert_same_weights(tmp_path / "prepared", tmp_path / "plain")


def test_a_run_on_several_shards_resumes_exactly(tmp_path: Path, request_of_text: Request) -> None:
    found = prepared(request_of_text, tmp_path / "out")
    overrides = {**tasks.TINY, "data.source": [str(found.path)]}
    train(out=tmp_path / "straight", overrides=overrides)
    for steps in (5, 12):
        train(out=tmp_path / "stopped", overrides={**overrides, "training.steps": steps})
    assert_same_weights(tmp_path / "straight", tmp_path / "stopped")


def test_a_run_refuses_another_or_a_damaged_corpus(tmp_path: Path, settings: dict[str, Any]) -> None:
    found = prepared(Request({"data": settings}), tmp_path / "out")
    overrides = {**tasks.TINY, "data.source": [str(found.path)], "training.steps": 1}
    train(out=tmp_path / "run", overrides=overrides)
    found.path.rename(tmp_path / "first")
    prepared(Request({"data": settings}, skip=("copied",)), tmp_path / "out")
    with pytest.raises(CheckpointError, match="prepared corpus has changed"):
        train(out=tmp_path / "run", overrides=overrides)
    flip(tmp_path / "out" / "shards" / "00001" / "source.ids")
    for run in ("run", "new"):
        with pytest.raises(CorpusError, match=r"00001/source\.ids is damaged"):
            train(out=tmp_path / run, overrides=overrides)


@pytest.mark.parametrize(
    ("key", "value"), [("data.max_length", 30), ("data.lowercase", True), ("data.vocab_size", 400)]
)
def test_rules_of_a_prepared_corpus_cannot_change(
    tmp_path: Path, request_of_text: Request, key: str, value: object
) -> None:
    found = prepared(request_of_text, tmp_path / "out")
    with pytest.raises(ConfigError, match=rf"{key} = {value}, but .* was prepared with"):
        train(out=tmp_path / "run", overrides={"data.source": [str(found.path)], key: value})


def test_another_tokenizer_is_refused(tmp_path: Path, request_of_text: Request, tokenizer: Any) -> None:
    found = prepared(request_of_text, tmp_path / "out")
    (tmp_path / "other.model").write_bytes(tokenizer.model)
    with pytest.raises(ConfigError, match="was prepared with a tokenizer other than"):
        train(
            out=tmp_path / "run",
            overrides={"data.source": [str(found.path)], "data.tokenizer": str(tmp_path / "other.model")},
        )


def test_a_directory_that_is_not_a_prepared_corpus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="`heedful prepare` did not write it"):
        train(out=tmp_path / "run", overrides={"data.source": [str(tmp_path)]})


def test_an_incomplete_corpus_is_refused(tmp_path: Path, request_of_text: Request) -> None:
    found = prepared(request_of_text, tmp_path / "out", job=Job(1, 2))
    with pytest.raises(CorpusError, match="not completely prepared: shard 00001 of"):
        train(out=tmp_path / "run", overrides={"data.source": [str(found.path)]})


def test_other_text_or_settings_are_refused(tmp_path: Path, settings: dict[str, Any]) -> None:
    prepared(Request({"data": settings}), tmp_path / "out")
    with pytest.raises(ConfigError, match=r"changed: skip"):
        prepared(Request({"data": settings}, skip=("urls",)), tmp_path / "out")
    with pytest.raises(ConfigError, match=r"changed: data"):
        prepared(Request({"data": {**settings, "max_length": 30}}), tmp_path / "out")
    tasks.write(tmp_path / "text", "train", dirty_pairs()[1:])
    with pytest.raises(ConfigError, match=r"changed: text"):
        prepared(Request({"data": settings}), tmp_path / "out")


@pytest.mark.parametrize("name", ["shards/00001/target.ids", "plan/tokenizer.model", "index/by_length"])
def test_a_flipped_bit_is_an_error_when_preparation_continues(
    tmp_path: Path, request_of_text: Request, name: str
) -> None:
    found = prepared(request_of_text, tmp_path / "out")
    flip(found.path / name)
    with pytest.raises(CorpusError, match=f"{name} is damaged"):
        prepared(request_of_text, tmp_path / "out")


def test_user_directories_are_left_alone(tmp_path: Path, request_of_text: Request) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "notes").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match="heedful did not write it"):
        prepared(request_of_text, tmp_path / "own")
    assert tree(tmp_path / "own") == {"notes": b"mine"}


def test_a_user_directory_inside_a_prepared_corpus_is_left_alone(tmp_path: Path, request_of_text: Request) -> None:
    """Also where the text of an unfinished shard would be."""
    found = prepared(request_of_text, tmp_path / "out")
    mine = found.work / "text-1-of-1" / "notes"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    prepared(request_of_text, tmp_path / "out")
    assert mine.read_text() == "mine"


def test_every_pair_dropped_is_an_error(tmp_path: Path, settings: dict[str, Any]) -> None:
    request = Request({"data": settings}, exclude=(settings["source"][0], settings["target"][0]))
    with pytest.raises(Exception, match=r"No pairs are left|every line of the text is empty"):
        prepared(request, tmp_path / "out")


def test_another_job_may_write_the_same_plan_meanwhile(
    tmp_path: Path, request_of_text: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_plan = preparation.write_plan

    def overtaken(*arguments: Any) -> None:
        write_plan(*arguments)
        write_plan(*arguments)  # raises: the plan exists

    monkeypatch.setattr(preparation, "write_plan", overtaken)
    assert prepared(request_of_text, tmp_path / "out").read_report() is not None
