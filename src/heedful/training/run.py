"""`heedful.train`: start a run, or resume it."""

from __future__ import annotations

import platform
import signal
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from heedful import recipes
from heedful.atomic_files import clear_unfinished, disk_errors
from heedful.config import EOS, Recipe
from heedful.data.batches import Batches, Resegment
from heedful.data.store import Store
from heedful.devices import cores, pick_device, preserved_torch_state
from heedful.errors import CheckpointError, Interrupted, UsageError
from heedful.formatting import plural
from heedful.model.transformer import Transformer
from heedful.recipes import Settings
from heedful.storage.model_directory import TextFacts
from heedful.storage.run_directory import RunDirectory, open_model
from heedful.text.tokenizer import Tokenizer
from heedful.training import checkpoints, final_model, run_plan, run_setup
from heedful.training.autoconfig import from_preset
from heedful.training.data_checks import with_checked_codes
from heedful.training.display import print_status
from heedful.training.distributed import ProcessGroup, process_group
from heedful.training.lock import locked
from heedful.training.memory_errors import memory_errors
from heedful.training.precision import AUTO
from heedful.training.progress import Progress
from heedful.training.run_log import RunLog, read_log
from heedful.training.run_plan import Trial
from heedful.training.run_setup import Prepared
from heedful.training.run_writer import RunWriter
from heedful.training.schedule import dropout_share
from heedful.training.sharding import load_whole
from heedful.training.time_budget import parse_duration
from heedful.training.trainer import Trainer
from heedful.training.validation import Validation


@dataclass(frozen=True)
class Run:
    """A finished or stopped run. `heedful.load(run.path)` loads its model."""

    path: Path
    recipe: Recipe
    progress: Progress

    def log(self) -> list[dict[str, Any]]:
        """Return the entries of log.jsonl."""
        return read_log(RunDirectory(self.path).log)


def train(
    recipe: str | Path | None = None,
    *,
    out: str | Path,
    overrides: Mapping[str, Any] | None = None,
    data_root: str | Path | None = None,
    preset: str | None = None,
    init: str | Path | None = None,
    device: str = "auto",
    time: str | None = None,
) -> Run:
    """Train from a recipe, or resume the run in `out`.

    `overrides` sets keys, as in {"training.steps": 1000}.

    `time` is a budget such as "30m": heedful measures the machine and chooses settings that fit into it.
    """
    if not str(out):
        raise UsageError('out is empty (""). Pass the directory of the run.')
    settings: Settings = {}
    if recipe is not None:
        settings = recipes.read(Path(recipe), Path(data_root) if data_root else None)
    given = recipes.from_mapping(overrides or {})
    settings = recipes.merged(settings, recipes.with_absolute_paths(given, Path.cwd()))
    return train_settings(settings, Path(out), preset=preset, init=init, device=device, time=time)


def train_settings(
    settings: Settings,
    out: Path,
    *,
    preset: str | None = None,
    init: str | Path | None = None,
    device: str = "auto",
    time: str | None = None,
) -> Run:
    """Train with these settings or resume the run in `out`; restore the state of torch."""
    settings = completed(settings, preset, init)
    seconds = None if time is None else parse_duration(time)
    run, chosen_device = RunDirectory(out.absolute()), pick_device(device)
    with (
        memory_errors(settings.get("training", {}).get("checkpoint_activations", False)),
        preserved_torch_state(),
        process_group(chosen_device) as processes,
        locked(run) if processes.is_main else nullcontext(),
    ):
        return _train(run, settings, processes, seconds)


def completed(settings: Settings, preset: str | None, init: str | Path | None) -> Settings:
    """Return the settings completed with a preset and an initial model; "auto" means unset."""
    if settings.get("training", {}).get("precision") == AUTO:
        training = {key: value for key, value in settings["training"].items() if key != "precision"}
        settings = {**settings, "training": training}
    if preset is not None:
        settings = recipes.merged(from_preset(preset, settings), settings)
    if init is not None:
        settings = recipes.merged(settings, {"training": {"init": str(Path(init).absolute())}})
    return with_checked_codes(settings)


def _train(run: RunDirectory, settings: Settings, processes: ProcessGroup, seconds: float | None) -> Run:
    # Checked before the text is read, and again once the recipe is complete.
    processes.require_divisible(settings.get("training", {}).get("accumulate", processes.world_size))
    prepared = _prepare(run, settings, processes, seconds)
    training = prepared.recipe.training
    processes.require_divisible(training.accumulate)
    torch.set_num_threads(training.threads or cores())
    trainer = _restore(run, prepared, processes)
    result = Run(run.path, prepared.recipe, trainer.progress)
    if trainer.progress.is_finished(training):
        if processes.is_main:
            _finish(run, prepared, trainer.progress.step)
        return result
    batches = training_batches(prepared.train, prepared.tokenizer, prepared.recipe)
    validation = _validation(prepared)
    writer = _start(run, prepared, trainer, batches)
    if number := trainer.train(batches, validation, writer):
        raise Interrupted(
            f"{signal.Signals(number).name}: stopped at step {trainer.progress.step:,} and saved in {run.path}. "
            "Run the same command to continue.",
            number,
        )
    _print_on_main(processes, f"done: {plural(trainer.progress.step, 'step')}; the model is {run.model}")
    return result


def _prepare(run: RunDirectory, settings: Settings, processes: ProcessGroup, seconds: float | None) -> Prepared:
    """Prepare the run in the main process; the other processes then read what it wrote."""
    with processes.main_first("preparing the text"):
        if not processes.is_main:
            return run_setup.resume(run, settings)
        return _prepare_in_main(run, settings, processes, seconds)


def _prepare_in_main(run: RunDirectory, settings: Settings, processes: ProcessGroup, seconds: float | None) -> Prepared:
    if run.config.is_file():
        if seconds is not None:
            print_status(ignored_budget(run.path))
        prepared = run_setup.resume(run, settings)
    else:
        prepared = run_setup.begin(run, settings, processes.device, print_status, processes.world_size, seconds=seconds)
        for choice in prepared.choices:
            print_status(str(choice))
        print_status(run_plan.summary(prepared.recipe, _seconds(prepared, processes)))
    with disk_errors(run.checkpoints):
        run.checkpoints.mkdir(exist_ok=True)
        clear_unfinished(run.checkpoints)
        clear_unfinished(run.path)
    return prepared


def ignored_budget(run: Path) -> str:
    """Return the notice that --time changes nothing on resume."""
    return f"`--time` is ignored: {run} resumes with the plan made when it was started"


def _seconds(prepared: Prepared, processes: ProcessGroup) -> float | None:
    """Return the estimated duration of a new run; None for one of a few steps."""
    vocab_size = prepared.tokenizer.vocab_size
    trial = Trial(prepared.train, prepared.valid, vocab_size, processes.device, processes.world_size)
    speed = prepared.speed or run_plan.measure_short(prepared.recipe, trial)
    return None if speed is None else run_plan.run_seconds(prepared.recipe, speed)


def _validation(prepared: Prepared) -> Validation:
    text = TextFacts.of(prepared.recipe.data, prepared.train, prepared.tokenizer)
    return Validation(prepared.valid, prepared.valid_corpus, prepared.tokenizer, text, prepared.recipe.decoding)


def _finish(run: RunDirectory, prepared: Prepared, step: int) -> None:
    """Report that a run is finished.

    If it was killed after its last checkpoint, write its model first.
    """
    recipe, training = prepared.recipe, prepared.recipe.training
    checkpoints.prune(run, training.keep, training.save_every, newest=step)
    if not final_model.has_final_model(run, recipe, step):
        final_model.select_final_model(run, recipe, step, _validation(prepared), print_status)
    if step > training.steps:
        reason = f"training.steps = {training.steps:,} is below that. Set it above {step:,} to train further."
    elif step == training.steps:
        reason = "Raise training.steps to train further."
    else:
        reason = "Early stopping ended it. Raise training.patience to train further."
    print_status(f"{run.path} is finished: {plural(step, 'step')}. {reason}")


def _print_on_main(processes: ProcessGroup, text: str) -> None:
    if processes.is_main:
        print_status(text)


def _restore(run: RunDirectory, prepared: Prepared, processes: ProcessGroup) -> Trainer:
    """Return a trainer with the state of the newest valid checkpoint, or a new one."""
    training = prepared.recipe.training
    torch.manual_seed(training.seed)
    model = Transformer(replace(prepared.recipe.model, vocab_size=prepared.tokenizer.vocab_size))
    if not training.shard:  # a sharded model moves to the device layer by layer
        model.to(processes.device)
    trainer = Trainer(model, training, processes)
    newest = run.valid_steps(1)
    if not newest and run.steps():
        raise CheckpointError(
            f"None of the checkpoints in {run.checkpoints} is valid. Restore one, or choose another `--out`."
        )
    if newest:
        trainer.progress = checkpoints.load(run, newest[0], model, trainer.optimizers, trainer.moving_average)
        if trainer.progress.loss_scale:
            trainer.scaler.load_state_dict(trainer.progress.loss_scale)
    elif training.init:
        initial = prepared.initial_model or open_model(Path(training.init))
        load_whole(dict(model.named_parameters()), initial.transformer.state_dict())
    _update_facts(trainer.progress, processes, training.precision)
    if newest and not trainer.progress.is_finished(training):
        step = trainer.progress.step
        _print_on_main(processes, f"continuing {run.path} at step {step:,} of {training.steps:,}")
    return trainer


def _update_facts(progress: Progress, processes: ProcessGroup, precision: str) -> None:
    """Record the facts that exact resumption depends on, and warn if one has changed."""
    facts = {
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "machine": platform.machine(),
        "device": processes.device.type,
        "processes": processes.world_size,
        "precision": precision,
    }
    for name, now in facts.items():
        if (before := progress.facts.get(name, now)) != now:
            _print_on_main(
                processes, f"warning: {name} changed from {before} to {now}; training continues, but not bit for bit"
            )
    progress.facts = facts


def training_batches(store: Store, tokenizer: Tokenizer, recipe: Recipe) -> Batches:
    """Return the batches of a run."""
    training = recipe.training
    resegment = resegmentation(tokenizer, recipe) if recipe.data.bpe_dropout else None
    bidirectional = training.bidirectional_steps * training.accumulate
    return Batches(store, training.batch_tokens, training.seed, resegment, bidirectional)


def _start(run: RunDirectory, prepared: Prepared, trainer: Trainer, batches: Batches) -> RunWriter:
    """Check disk space and memory before the first step, and open the log."""
    processes, progress, recipe = trainer.processes, trainer.progress, prepared.recipe
    log = RunLog(run.log, keep_bytes=progress.log_bytes) if processes.is_main else None
    parameters, padding = trainer.model.parameter_count(), batches.padding()
    world = f", {processes.world_size} processes" * (processes.world_size > 1)
    _print_on_main(
        processes,
        f"{parameters:,} parameters · {plural(batches.per_epoch, 'batch', 'batches')} per epoch, "
        f"{padding:.1%} padding · {trainer.device}, {plural(torch.get_num_threads(), 'thread')}{world}",
    )
    size = checkpoints.bytes_per_parameter(bool(recipe.training.ema_decay)) * parameters
    checkpoints.require_space_for_all(run, size, recipe.training.keep)
    trainer.try_batch(batches.worst())
    if progress.step == 0 and log is not None:
        log.write(0, "start", parameters=parameters, padding=padding, pairs=len(prepared.train))
    return RunWriter(run, recipe, log, progress.step)


def resegmentation(tokenizer: Tokenizer, recipe: Recipe) -> Resegment:
    """Return a function that applies BPE-dropout to a batch.

    It warms up with dropout, and skips sentences that would become too long.
    """
    training = recipe.training

    def resegment(sentences: list[list[int]], seed: int, number: int) -> list[list[int]]:
        share = dropout_share(number // training.accumulate + 1, training.dropout_warmup_steps)
        texts = [tokenizer.decode(ids[:-1]) for ids in sentences]
        others = tokenizer.encode_at_random(texts, share * recipe.data.bpe_dropout, seed)
        return [
            [*other, EOS] if len(other) < recipe.data.max_length else ids
            for ids, other in zip(sentences, others, strict=True)
        ]

    return resegment
