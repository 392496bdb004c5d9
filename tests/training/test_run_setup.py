"""Starting and resuming a run: only a few keys may change."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

import synthetic_tasks as tasks
from heedful import recipes
from heedful.data.store import Store
from heedful.errors import CheckpointError, ConfigError, CorpusError, HeedfulError, ModelError, UsageError
from heedful.storage import model_directory, verified_stores
from heedful.storage.run_directory import RunDirectory, open_model
from heedful.text.corpus import Corpus
from heedful.training.dry_run import plan
from heedful.training.run import train

ONE_STEP = {**tasks.TINY, "training.steps": 1, "training.validate_every": 100}


@pytest.fixture
def corpus(tmp_path: Path) -> dict[str, str]:
    return tasks.tiny_corpus(tmp_path / "text")


def weights(path: Path) -> dict[str, torch.Tensor]:
    return safetensors.torch.load_file(path / "model.safetensors")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("training.steps", 13),
        ("training.patience", 2),
        ("training.keep", 9),
        ("training.validate_every", 5),
        ("training.log_every", 3),
    ],
)
def test_keys_that_may_change_on_resume(own_run: Path, key: str, value: int) -> None:
    train(out=own_run, overrides={key: value})
    recipe = recipes.as_settings(RunDirectory(own_run).recipe())
    assert recipe["training"][key.removeprefix("training.")] == value


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("model.d_ff", 64, "model.d_ff was 32, now 64"),
        ("model.dropout", 0.1, "model.dropout was 0.2, now 0.1"),
        ("training.seed", 7, "training.seed was 1, now 7"),
        ("training.batch_tokens", 100, "training.batch_tokens was 64, now 100"),
        ("training.learning_rate", 1.0, "training.learning_rate was 0.2, now 1.0"),
        ("training.save_every", 5, "training.save_every was 4, now 5"),
        ("data.max_length", 30, "data.max_length was 40, now 30"),
        ("data.lowercase", True, "data.lowercase was False, now True"),
        ("decoding.beam", 2, "decoding.beam was 4, now 2"),
    ],
)
def test_other_changes_on_resume_are_rejected_with_the_difference(
    own_run: Path, key: str, value: Any, said: str
) -> None:
    before = RunDirectory(own_run).config.read_bytes()
    with pytest.raises(ConfigError) as caught:
        train(out=own_run, overrides={key: value, "training.steps": 14})
    message = str(caught.value)
    assert said in message
    assert "training.keep" in message
    assert "training.steps was" not in message
    assert caught.value.exit_code == 2
    assert RunDirectory(own_run).config.read_bytes() == before


@pytest.mark.parametrize("side", ["data.source", "data.target", "data.valid_source", "data.valid_target"])
def test_changed_text_is_rejected(corpus: dict[str, str], tmp_path: Path, side: str) -> None:
    train(out=tmp_path / "run", overrides={**corpus, **ONE_STEP})
    path = Path(corpus[side])
    path.write_text(path.read_text().replace("a", "b", 1))
    name = "validation" if "valid" in side else "training"
    with pytest.raises(CheckpointError, match=f"The {name} text has changed since") as caught:
        train(out=tmp_path / "run", overrides={"training.steps": 2})
    assert caught.value.exit_code == 3


def test_text_is_hashed_again_only_if_its_files_changed(
    corpus: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resuming must not hash gigabytes of unchanged text again."""
    train(out=tmp_path / "run", overrides={**corpus, **ONE_STEP})
    read: list[Corpus] = []
    digest = Corpus.digest
    monkeypatch.setattr(Corpus, "digest", lambda self: read.append(self) or digest(self))
    assert train(out=tmp_path / "run", overrides={"training.steps": 2}).progress.step == 2
    assert not read
    os.utime(corpus["data.source"], (1, 1))  # another time, the same text
    assert train(out=tmp_path / "run", overrides={"training.steps": 3}).progress.step == 3
    assert len(read) == 1


def test_text_may_be_moved(corpus: dict[str, str], tmp_path: Path) -> None:
    train(out=tmp_path / "run", overrides={**corpus, **ONE_STEP})
    shutil.move(tmp_path / "text", tmp_path / "moved")
    with pytest.raises(CorpusError, match="does not exist"):
        train(out=tmp_path / "run", overrides={"training.steps": 2})
    moved = {key: value.replace("/text/", "/moved/") for key, value in corpus.items()}
    assert train(out=tmp_path / "run", overrides={**moved, "training.steps": 2}).progress.step == 2


def test_another_tokenizer_is_rejected(own_run: Path, tiny_run: Path, tmp_path: Path, tokenizer: Any) -> None:
    (tmp_path / "other.model").write_bytes(tokenizer.model)
    with pytest.raises(CheckpointError, match=r"is not the one that .* was started with"):
        train(out=own_run, overrides={"data.tokenizer": str(tmp_path / "other.model"), "training.steps": 13})
    same = {"data.tokenizer": str(tiny_run / "tokenizer.model"), "training.steps": 13}
    assert train(out=own_run, overrides=same).progress.step == 13


def test_given_tokenizer_is_used_unchanged(corpus: dict[str, str], tmp_path: Path, tiny_run: Path) -> None:
    ready = tiny_run / "tokenizer.model"
    run = train(out=tmp_path / "run", overrides={**corpus, **ONE_STEP, "data.tokenizer": str(ready)})
    assert (run.path / "tokenizer.model").read_bytes() == ready.read_bytes()


def test_choices_are_printed_with_reasons_and_resolved(
    corpus: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"training.steps": 10, "training.threads": 1, "model.d_model": 16, "model.d_ff": 16, "model.N": 1}
    run = train(out=tmp_path / "run", overrides={**corpus, **given})
    out, err = capsys.readouterr()
    assert out == ""
    assert "data.vocab_size = 500 — 80 pairs" in err
    assert "training.warmup_steps = 1 — a tenth of the steps" in err
    assert "model.dropout = 0.3 — smaller corpora get more dropout (80 pairs)" in err
    assert "training.steps = " not in err
    assert "model.d_model = " not in err
    assert "the text yields only" in err
    assert "training text: 80 of 80 pairs kept" in err
    resolved = RunDirectory(run.path).recipe()
    assert resolved == run.recipe
    assert resolved.training.warmup_steps == 1
    assert resolved.data.source == (corpus["data.source"],)


def test_invalid_value_is_reported_before_the_text_is_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"training\.steps must be at least 1"):
        train(out=tmp_path / "run", overrides={"data.source": "nowhere", "training.steps": 0})


def without_validation(directory: Path, count: int) -> dict[str, str]:
    source, target = tasks.write(directory, "all", tasks.pairs(tasks.reverse, range(count)))
    return {"data.source": str(source), "data.target": str(target)}


def test_without_validation_files_a_part_is_held_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is recorded, so that the run is resumed, and repeated from its config.toml, exactly."""
    text = without_validation(tmp_path / "text", 500)
    half = {**text, **tasks.TINY, "training.steps": 6}
    train(out=tmp_path / "run", overrides=half)
    assert "No validation files given: 25 pairs of the training text held out" in capsys.readouterr().err
    run = train(out=tmp_path / "run", overrides={**half, "training.steps": 12})  # resumes
    assert run.recipe.data.held_out == 25
    assert (run.recipe.data.valid_source, run.recipe.data.valid_target) == ((), ())
    again = train(tmp_path / "run" / "config.toml", out=tmp_path / "again")
    whole = train(out=tmp_path / "whole", overrides={**text, **tasks.TINY})
    last = weights(run.path / "checkpoints" / "step-00000012")
    for other in (again, whole):
        theirs = weights(other.path / "checkpoints" / "step-00000012")
        assert all(torch.equal(value, theirs[name]) for name, value in last.items())
        assert tasks.entries_without_clock(run.log(), "valid") == tasks.entries_without_clock(other.log(), "valid")


def test_held_out_pairs_are_not_trained_on(tmp_path: Path) -> None:
    text = without_validation(tmp_path / "text", 500)
    run = train(out=tmp_path / "run", overrides={**text, **ONE_STEP})
    stores = {name: Store(run.path / "data" / name) for name in ("training", "validation")}
    ids = {name: {tuple(store.source(i)) for i in range(len(store))} for name, store in stores.items()}
    assert len(stores["validation"]) == 25
    assert not ids["training"] & ids["validation"]


def test_a_held_out_run_refuses_changed_text(tmp_path: Path) -> None:
    text = without_validation(tmp_path / "text", 500)
    train(out=tmp_path / "run", overrides={**text, **ONE_STEP})
    without_validation(tmp_path / "text", 501)
    with pytest.raises(CheckpointError, match="The training text has changed"):
        train(out=tmp_path / "run", overrides={**text, **ONE_STEP, "training.steps": 2})


def test_nothing_left_after_filtering(corpus: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"No pairs of the training text are left: 0 of 80 pairs kept .*80 too long"):
        train(out=tmp_path / "run", overrides={**corpus, **ONE_STEP, "data.max_length": 3})
    assert not (tmp_path / "run" / "config.toml").exists()


def test_failed_start_can_be_repeated(corpus: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(HeedfulError):
        train(out=tmp_path / "run", overrides={**corpus, **ONE_STEP, "data.max_length": 3})
    assert train(out=tmp_path / "run", overrides={**corpus, **ONE_STEP}).progress.step == 1


@pytest.mark.parametrize("name", ["tokenizer.model", "config.json", "data", "model", "checkpoints"])
def test_directory_that_is_not_a_run_is_not_overwritten(corpus: dict[str, str], tmp_path: Path, name: str) -> None:
    mine = tmp_path / "mine" / name / "deep" if "." not in name else tmp_path / "mine" / name
    mine.parent.mkdir(parents=True)
    mine.write_text("precious")
    with pytest.raises(UsageError, match="is not a heedful run"):
        train(out=tmp_path / "mine", overrides={**corpus, **ONE_STEP})
    assert mine.read_text() == "precious"
    assert not (tmp_path / "mine" / ".heedful").exists()


def test_fine_tuning_starts_from_the_model_with_its_tokenizer(
    corpus: dict[str, str], tmp_path: Path, tiny_run: Path
) -> None:
    """With a tiny learning rate, the weights after one step equal those of the initial model."""
    settings = {"training.steps": 1, "training.learning_rate": 1e-12, "training.threads": 1}
    own = {"model.dropout": 0.25, "model.attention_dropout": 0.1, "model.word_dropout": 0.1}  # no part of the weights
    run = train(out=tmp_path / "tuned", overrides={**corpus, **settings, **own}, init=tiny_run / "model")
    assert (run.path / "tokenizer.model").read_bytes() == (tiny_run / "model" / "tokenizer.model").read_bytes()
    before, after = weights(tiny_run / "model"), weights(run.path / "model")
    assert before.keys() == after.keys()
    assert all(torch.allclose(before[name], after[name], atol=1e-6) for name in before)
    assert run.recipe.model.d_ff == 32
    decoding = json.loads((tiny_run / "model" / "config.json").read_text(encoding="utf-8"))["decoding"]
    inherited = ("beam", "alpha", "power_alpha", "max_extra")
    assert {key: getattr(run.recipe.decoding, key) for key in inherited} == {key: decoding[key] for key in inherited}


@pytest.mark.parametrize("is_dry_run", [False, True])
def test_fine_tuning_opens_and_hashes_the_initial_model_once(
    corpus: dict[str, str], tmp_path: Path, tiny_run: Path, monkeypatch: pytest.MonkeyPatch, is_dry_run: bool
) -> None:
    hashed: list[Path] = []
    verify = model_directory.verify_manifest

    def counting(directory: Path, *arguments: Any) -> Any:
        hashed.append(directory)
        return verify(directory, *arguments)

    monkeypatch.setattr(model_directory, "verify_manifest", counting)
    settings = {**corpus, "training.steps": 1, "training.threads": 1}
    if is_dry_run:
        given = recipes.merged(recipes.from_mapping(settings), {"training": {"init": str(tiny_run / "model")}})
        plan(given, None, torch.device("cpu"))
    else:
        train(out=tmp_path / "tuned", overrides=settings, init=tiny_run / "model")
    assert hashed.count(tiny_run / "model") == 1


def test_a_failed_start_leaves_no_parent_directories(corpus: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "existing").mkdir()
    too_short = {**corpus, **ONE_STEP, "data.max_length": 3}
    for out in (tmp_path / "a" / "b" / "c", tmp_path / "existing" / "run"):
        with pytest.raises(CorpusError):
            train(out=out, overrides=too_short)
    assert not (tmp_path / "a").exists()
    assert list((tmp_path / "existing").iterdir()) == []


def test_fine_tuned_run_resumes_without_the_initial_model(
    corpus: dict[str, str], tmp_path: Path, own_run: Path
) -> None:
    settings = {**corpus, "training.steps": 1, "training.threads": 1}
    train(out=tmp_path / "tuned", overrides=settings, init=own_run)
    shutil.rmtree(own_run)
    assert train(out=tmp_path / "tuned", overrides={"training.steps": 2}).progress.step == 2
    with pytest.raises(ConfigError, match=r"training\.init was .*own.*now .*other"):
        train(out=tmp_path / "tuned", overrides={"training.steps": 3}, init=tmp_path / "other")


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("model.d_model", 32, "model.d_model = 32, but the `--init` model has 16"),
        ("model.N", 2, "model.N = 2, but the `--init` model has 1"),
        ("model.N_decoder", 2, "model.N_decoder = 2, but the `--init` model has 0"),
    ],
)
def test_fine_tuning_into_another_shape_shows_both_sizes(
    corpus: dict[str, str], tmp_path: Path, tiny_run: Path, key: str, value: int, said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        train(out=tmp_path / "run", overrides={**corpus, key: value}, init=tiny_run)


def test_fine_tuning_with_another_tokenizer_shows_both_sizes(
    corpus: dict[str, str], tmp_path: Path, tiny_run: Path, tokenizer: Any
) -> None:
    (tmp_path / "other.model").write_bytes(tokenizer.model)
    own = open_model(tiny_run).tokenizer.vocab_size
    with pytest.raises(ConfigError, match=rf"\({tokenizer.vocab_size} tokens\) and `--init` \({own} tokens\)"):
        train(
            out=tmp_path / "run", overrides={**corpus, "data.tokenizer": str(tmp_path / "other.model")}, init=tiny_run
        )


def test_missing_initial_model(corpus: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="nowhere is not a model directory"):
        train(out=tmp_path / "run", overrides=corpus, init=tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["training/source.ids", "training/by_length", "validation/target.offsets"])
def test_a_flipped_bit_in_a_token_store_is_an_error(own_run: Path, name: str) -> None:
    path = own_run / "data" / name
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(CorpusError, match=rf"{name} is damaged: .* start the run again with another `--out`"):
        train(out=own_run, overrides={"training.steps": 13})


def test_token_stores_are_read_again_only_if_their_files_changed(
    own_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(out=own_run)  # a copy has other inodes: verified once
    verified: list[Path] = []
    monkeypatch.setattr(verified_stores, "verify_manifest", lambda directory, *_: verified.append(directory))
    train(out=own_run)
    assert verified == []
    os.utime(own_run / "data" / "training" / "lines")
    train(out=own_run)
    assert verified == [own_run / "data" / "training"]
