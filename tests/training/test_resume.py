"""A resumed run ends exactly like an uninterrupted one, bit for bit."""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import synthetic_tasks as tasks
from heedful.errors import CheckpointError, Interrupted, NonFiniteError
from heedful.storage.run_directory import RunDirectory, open_model
from heedful.training import parallel
from heedful.training.checkpoints import read_progress
from heedful.training.progress import Progress, StepResult
from heedful.training.run import Run, train
from heedful.training.run_log import read_log
from heedful.training.trainer import Trainer

LAST = 12


@pytest.fixture
def settings(tiny_run: Path) -> dict[str, Any]:
    return {**tasks.corpus_in(tiny_run.parent / "text"), **tasks.TINY}


def digest(path: Path) -> str:
    """Return a short digest: pytest takes minutes to print the difference of two large files."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def assert_same_end(one: Path, other: Path) -> None:
    """Weights, moments, the averaged model and the losses of the log."""
    first, second = RunDirectory(one), RunDirectory(other)
    for name in ("model.safetensors", "optimizer.safetensors"):
        assert digest(first.checkpoint(LAST) / name) == digest(second.checkpoint(LAST) / name)
    assert digest(first.model / "model.safetensors") == digest(second.model / "model.safetensors")
    logs = [tasks.entries_without_clock(read_log(run.log), "train") for run in (first, second)]
    assert logs[0] == logs[1]


def signal_at(monkeypatch: pytest.MonkeyPatch, step: int, number: int) -> None:
    """Send the process a signal in the middle of an update."""
    train_step = Trainer.train_step

    def interrupted(self: Trainer, batches: Any) -> StepResult:
        if self.progress.step + 1 == step:
            os.kill(os.getpid(), number)
        return train_step(self, batches)

    monkeypatch.setattr(Trainer, "train_step", interrupted)


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 16
    path.write_bytes(content)


def test_repeated_run_is_identical(tiny_run: Path, tmp_path: Path, settings: dict[str, Any]) -> None:
    train(out=tmp_path / "run", overrides=settings)
    assert_same_end(tiny_run, tmp_path / "run")
    best = [(path / "best" / "model.safetensors").read_bytes() for path in (tiny_run, tmp_path / "run")]
    assert best[0] == best[1]


def test_the_resolved_recipe_trains_to_the_same_run(tiny_run: Path, tmp_path: Path) -> None:
    train(tiny_run / "config.toml", out=tmp_path / "run")
    assert_same_end(tiny_run, tmp_path / "run")
    assert (tmp_path / "run" / "config.toml").read_bytes() == (tiny_run / "config.toml").read_bytes()


def test_control_another_seed_gives_another_run(tiny_run: Path, tmp_path: Path, settings: dict[str, Any]) -> None:
    """Control of the tests above: the compared files do depend on the seed."""
    train(out=tmp_path / "run", overrides={**settings, "training.seed": 2})
    with pytest.raises(AssertionError):
        assert_same_end(tiny_run, tmp_path / "run")


@pytest.mark.parametrize("sittings", [(5,), (1, 4, 11)])
def test_raising_steps_matches_an_uninterrupted_run(
    tiny_run: Path, tmp_path: Path, settings: dict[str, Any], sittings: tuple[int, ...]
) -> None:
    for steps in (*sittings, LAST):
        run = train(out=tmp_path / "run", overrides={**settings, "training.steps": steps})
        assert run.progress.step == steps
    assert_same_end(tiny_run, tmp_path / "run")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("step", [3, 8])
def test_signal_saves_and_the_same_command_resumes(
    tiny_run: Path,
    tmp_path: Path,
    settings: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
    code: int,
    step: int,
) -> None:
    with monkeypatch.context() as patch:
        signal_at(patch, step, number)
        with pytest.raises(Interrupted, match=f"{number.name}: stopped at step {step} and saved") as caught:
            train(out=tmp_path / "run", overrides=settings)
    assert caught.value.exit_code == code
    assert RunDirectory(tmp_path / "run").steps()[-1] == step
    averaged = {3: [3], 8: [4, 8]}[step]
    assert open_model(tmp_path / "run").history["averaged_steps"] == averaged
    train(out=tmp_path / "run", overrides=settings)
    assert_same_end(tiny_run, tmp_path / "run")


def test_log_entries_do_not_depend_on_interruptions(
    tmp_path: Path, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {**settings, "training.log_every": 10}
    train(out=tmp_path / "straight", overrides=settings)
    with monkeypatch.context() as patch:
        signal_at(patch, 7, signal.SIGTERM)
        with pytest.raises(Interrupted):
            train(out=tmp_path / "stopped", overrides=settings)
    train(out=tmp_path / "stopped", overrides=settings)
    assert_same_end(tmp_path / "straight", tmp_path / "stopped")


def test_log_entry_is_the_mean_over_tokens(tmp_path: Path, settings: dict[str, Any], tiny_run: Path) -> None:
    train(out=tmp_path / "run", overrides={**settings, "training.log_every": 6})
    single = [entry for entry in read_log(RunDirectory(tiny_run).log) if entry["kind"] == "train"]
    tokens = np.diff([0, *(entry["tokens"] for entry in single)])
    merged = [entry for entry in read_log(RunDirectory(tmp_path / "run").log) if entry["kind"] == "train"]
    assert [entry["step"] for entry in merged] == [6, 12]
    for place, entry in enumerate(merged):
        part = slice(6 * place, 6 * place + 6)
        for key in ("loss", "nll"):
            values = np.array([one[key] for one in single[part]])
            assert entry[key] == pytest.approx(np.average(values, weights=tokens[part]), rel=1e-9)


def test_accumulated_batches_continue_in_order(tmp_path: Path, settings: dict[str, Any]) -> None:
    settings = {**settings, "training.accumulate": 3}
    train(out=tmp_path / "straight", overrides=settings)
    for steps in (5, LAST):
        train(out=tmp_path / "stopped", overrides={**settings, "training.steps": steps})
    assert_same_end(tmp_path / "straight", tmp_path / "stopped")


def test_finished_run_is_reported_and_unchanged(own_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rewritten = (".heedful", "verified.json")  # a copy has other inodes
    files = {path: path.read_bytes() for path in own_run.rglob("*") if path.is_file() and path.name not in rewritten}
    run = train(out=own_run)
    assert run.progress.step == LAST
    assert "is finished: 12 steps. Raise training.steps to train further." in capsys.readouterr().err
    assert {path: path.read_bytes() for path in files} == files


def test_lowering_steps_gives_a_finished_run(own_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = train(out=own_run, overrides={"training.steps": 5})
    assert run.progress.step == LAST
    error = capsys.readouterr().err
    assert "is finished: 12 steps. training.steps = 5 is below that. Set it above 12 to train further." in error
    assert "continuing" not in error
    assert train(out=own_run, overrides={"training.steps": LAST + 1}).progress.step == LAST + 1


def test_damaged_newest_checkpoint_is_skipped(own_run: Path, tiny_run: Path, caplog: pytest.LogCaptureFixture) -> None:
    damage(RunDirectory(own_run).checkpoint(LAST) / "optimizer.safetensors")
    shutil.rmtree(own_run / "model")
    train(out=own_run)
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1
    assert "skipping a damaged checkpoint" in warnings[0]
    assert "optimizer.safetensors is damaged" in warnings[0]
    assert_same_end(tiny_run, own_run)


def test_no_valid_checkpoint_is_an_error_not_a_restart(own_run: Path) -> None:
    run = RunDirectory(own_run)
    for step in run.steps():
        damage(run.checkpoint(step) / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"None of the checkpoints .* is valid") as caught:
        train(out=own_run, overrides={"training.steps": 20})
    assert caught.value.exit_code == 3
    assert run.steps() == [4, 8, 12]


def test_checkpoints_are_pruned_and_the_best_is_kept_apart(tmp_path: Path, settings: dict[str, Any]) -> None:
    """The learning rate ruins the model, so the best is the first; its checkpoint is pruned."""
    broken = {"training.learning_rate": 50.0, "training.steps": 20, "training.save_every": 2, "training.average": 2}
    run = train(out=tmp_path / "run", overrides={**settings, **broken, "training.validate_every": 2})
    directory = RunDirectory(run.path)
    assert directory.steps() == [18, 20]
    valid = [entry for entry in run.log() if entry["kind"] == "valid"]
    ranked = max(valid, key=lambda entry: (entry["bleu"], -entry["nll"]))
    assert run.progress.best["step"] == ranked["step"] < 18
    best = open_model(run.path, "best")
    assert best.history["steps"] == ranked["step"]
    assert best.history["valid_bleu"] == ranked["bleu"]


def test_the_final_model_is_the_mean_of_the_last_checkpoints(tmp_path: Path, settings: dict[str, Any]) -> None:
    run = RunDirectory(
        train(out=tmp_path / "run", overrides={**settings, "training.average": 2, "training.keep": 3}).path
    )
    assert run.steps() == [4, 8, 12]
    files = [safetensors.numpy.load_file(run.checkpoint(step) / "model.safetensors") for step in (8, 12)]
    averaged = safetensors.numpy.load_file(run.model / "model.safetensors")
    for name, value in averaged.items():
        mean = (files[0][name].astype(np.float64) + files[1][name].astype(np.float64)) / 2
        assert np.array_equal(value, mean.astype(np.float32)), name


def test_patience_stops_a_run_without_improvement(
    tmp_path: Path, settings: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {**settings, "training.learning_rate": 1e-12, "training.validate_every": 2, "training.patience": 2}
    run = train(out=tmp_path / "run", overrides={**settings, "training.steps": 40})
    valid = [entry for entry in run.log() if entry["kind"] == "valid"]
    assert run.progress.step == valid[-1]["step"] < 40
    assert run.progress.validations_without_gain == 2
    assert (run.path / "model").is_dir()
    assert RunDirectory(run.path).steps()[-1] == run.progress.step
    capsys.readouterr()
    again = train(out=tmp_path / "run", overrides={**settings, "training.steps": 50})
    assert again.progress.step == run.progress.step
    assert "Early stopping ended it. Raise training.patience" in capsys.readouterr().err
    more = train(out=tmp_path / "run", overrides={"training.patience": 3})
    assert more.progress.step > run.progress.step


def test_patience_decreases_only_if_neither_score_improves() -> None:
    progress = Progress(step=1)
    history = []
    for nll, bleu in [(5.0, 0.0), (4.0, 0.0), (4.5, 3.0), (4.2, 2.0), (3.9, 1.0), (4.6, 3.0), (math.nan, 0.0)]:
        better = progress.record_validation(bleu, nll)
        history.append((better, progress.validations_without_gain))
    assert history == [(True, 0), (True, 0), (True, 0), (False, 1), (False, 0), (False, 1), (False, 2)]
    assert progress.best == {"step": 1, "bleu": 3.0, "nll": 4.5}
    assert progress.lowest_nll == 3.9


def test_zero_patience_disables_early_stopping(tiny_run: Path) -> None:
    training = RunDirectory(tiny_run).recipe().training
    assert not Progress(step=11, validations_without_gain=99).is_finished(training)
    assert Progress(step=12).is_finished(training)


def nan_at(monkeypatch: pytest.MonkeyPatch, *steps: int) -> None:
    """Make the loss of these updates NaN."""
    original = parallel.batch_loss
    train_step = Trainer.train_step

    def poisoned(self: Trainer, batches: Any) -> StepResult:
        now = self.progress.step + 1

        def loss(*arguments: Any) -> Any:
            sums = original(*arguments)
            return sums._replace(smoothed=sums.smoothed * math.nan) if now in steps else sums

        monkeypatch.setattr(parallel, "batch_loss", loss)
        return train_step(self, batches)

    monkeypatch.setattr(Trainer, "train_step", poisoned)


def test_nan_loss_stops_before_the_update(
    tmp_path: Path, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    nan_at(monkeypatch, 6)
    with pytest.raises(NonFiniteError, match="Step 6: the loss is nan"):
        train(out=tmp_path / "run", overrides=settings)
    run = RunDirectory(tmp_path / "run")
    assert run.valid_steps() == [4]
    weights = safetensors.numpy.load_file(run.checkpoint(4) / "model.safetensors")
    assert all(np.isfinite(value).all() for value in weights.values())


def test_nan_update_is_skipped_counted_and_logged(
    tmp_path: Path, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nan_at(monkeypatch, 2, 6)
    run: Run = train(out=tmp_path / "run", overrides={**settings, "training.non_finite": "skip"})
    assert run.progress.skipped == 2
    assert read_progress(RunDirectory(run.path).checkpoint(LAST)).skipped == 2
    assert "step 6: loss or gradient not finite; update skipped (2 so far)" in capsys.readouterr().err
    assert "NaN" not in (run.path / "log.jsonl").read_text()
    logged = {entry["step"]: entry for entry in run.log() if entry["kind"] == "train"}
    assert logged[6]["loss"] is None
    assert logged[7]["loss"] > 0
