"""`heedful.train`: begins a run, or continues the one that is there."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from heedful import recipes
from heedful.config import EOS, Recipe
from heedful.data.batches import Batches, Resegment
from heedful.devices import cores, pick_device, preserved_torch_state
from heedful.errors import CheckpointError, Interrupted, MachineError, is_out_of_memory
from heedful.files import clear_unfinished, disk_errors
from heedful.model.transformer import Transformer
from heedful.recipes import Settings
from heedful.storage.model_directory import TextFacts
from heedful.storage.run_directory import RunDirectory, open_model
from heedful.text.tokenizer import Tokenizer
from heedful.training import checkpoints, preparation
from heedful.training.autoconfig import from_preset
from heedful.training.checkpoints import Progress
from heedful.training.data_checks import with_checked_codes
from heedful.training.display import say
from heedful.training.distributed import ProcessGroup, process_group
from heedful.training.lock import locked
from heedful.training.loop import Loop, has_average, is_finished, stopped_message, write_average
from heedful.training.preparation import Prepared
from heedful.training.run_log import RunLog, read_log
from heedful.training.schedule import dropout_share
from heedful.training.step import Updater, memory_advice
from heedful.training.validation import Validation
from heedful.wording import plural


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
) -> Run:
    """Train from a recipe, or resume the run in `out`. `overrides` sets keys, as in {"training.steps": 1000}."""
    settings: Settings = {}
    if recipe is not None:
        settings = recipes.read(Path(recipe), Path(data_root) if data_root else None)
    given = recipes.from_mapping(overrides or {})
    settings = recipes.merged(settings, recipes.with_absolute_paths(given, Path.cwd()))
    return train_settings(settings, Path(out), preset=preset, init=init, device=device)


def train_settings(
    settings: Settings,
    out: Path,
    *,
    preset: str | None = None,
    init: str | Path | None = None,
    device: str = "auto",
) -> Run:
    settings = completed(settings, preset, init)
    run, chosen_device = RunDirectory(out.absolute()), pick_device(device)
    try:
        with (
            preserved_torch_state(),
            process_group(chosen_device) as processes,
            locked(run) if processes.is_main else nullcontext(),
        ):
            return _train(run, settings, processes)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        checkpointed = settings.get("training", {}).get("checkpoint_activations", False)
        raise MachineError(_memory_message(error, checkpointed)) from error


def completed(settings: Settings, preset: str | None, init: str | Path | None) -> Settings:
    """The settings with what a preset and a first model add to them."""
    if preset is not None:
        settings = recipes.merged(from_preset(preset, settings), settings)
    if init is not None:
        settings = recipes.merged(settings, {"training": {"init": str(Path(init).absolute())}})
    return with_checked_codes(settings)


def _train(run: RunDirectory, settings: Settings, processes: ProcessGroup) -> Run:
    processes.require_divisible(settings.get("training", {}).get("accumulate", processes.world_size))  # before the text is read
    prepared = _prepare(run, settings, processes)
    processes.require_divisible(prepared.recipe.training.accumulate)
    threads = prepared.recipe.training.threads or cores()
    torch.set_num_threads(threads)
    updater, progress = _restore(run, prepared, processes, threads)
    if is_finished(progress, prepared.recipe):
        if processes.is_main:
            _finish(run, prepared.recipe, progress.step)
        return Run(run.path, prepared.recipe, progress)
    loop = _loop(run, prepared, updater, progress)
    if number := loop.train():
        raise Interrupted(stopped_message(run, progress.step, number), number)
    _speaking(processes)(f"done: {plural(progress.step, 'step')}; the averaged model is {run.model}")
    return Run(run.path, prepared.recipe, progress)


def _prepare(run: RunDirectory, settings: Settings, processes: ProcessGroup) -> Prepared:
    """The first process reads the text and clears up; the others find what it has made."""
    if not processes.is_main:
        processes.barrier()
        return preparation.resume(run, settings)
    if run.config.is_file():
        prepared = preparation.resume(run, settings)
    else:
        prepared = preparation.begin(run, settings, processes.device, say, processes.world_size)
        for choice in prepared.choices:
            say(f"chosen: {choice}")
    with disk_errors(run.checkpoints):
        run.checkpoints.mkdir(exist_ok=True)
        clear_unfinished(run.checkpoints)
        clear_unfinished(run.path)
    processes.barrier()
    return prepared


def _finish(run: RunDirectory, recipe: Recipe, step: int) -> None:
    """A run that was killed between its last save and its end is brought to it."""
    checkpoints.prune(run, recipe.training.keep, recipe.training.save_every, newest=step)
    if not has_average(run, step):
        write_average(run, recipe, step)
    patient = step >= recipe.training.steps
    more = "Raise training.steps to train on." if patient else "Its patience is used up: raise training.patience."
    say(f"{run.path} is finished: {plural(step, 'step')}. {more}")


def _speaking(processes: ProcessGroup) -> Callable[[str], None]:
    """The first process speaks for all."""
    return say if processes.is_main else lambda _: None


def _restore(run: RunDirectory, prepared: Prepared, processes: ProcessGroup, threads: int) -> tuple[Updater, Progress]:
    """Model, optimizer and progress of the newest valid checkpoint, or of step 0."""
    recipe, device = prepared.recipe, processes.device
    torch.manual_seed(recipe.training.seed)
    model = Transformer(replace(recipe.model, vocab_size=prepared.tokenizer.vocab_size))
    updater = Updater(model.to(device), recipe.training, processes)
    newest = run.valid_steps(1)
    if not newest and run.steps():
        raise CheckpointError(
            f"None of the checkpoints in {run.checkpoints} is valid. Restore one, or train into another --out."
        )
    facts = {
        "threads": threads,
        "torch": torch.__version__,
        "machine": platform.machine(),
        "device": device.type,
        "processes": processes.world_size,
    }
    if not newest:
        if recipe.training.init:
            model.load_state_dict(open_model(Path(recipe.training.init)).transformer.state_dict())
        return updater, Progress(facts=facts)
    progress = checkpoints.load(run, newest[0], model, updater.optimizer)
    say = _speaking(processes)
    for name, now in facts.items():
        if (before := progress.facts.get(name, now)) != now:
            say(f"warning: {name} was {before}, now {now}: the run goes on, but not bit for bit")
    progress.facts = facts
    if progress.loss_scale:
        updater.scaler.load_state_dict(progress.loss_scale)
    say(f"continuing {run.path} at step {progress.step:,} of {recipe.training.steps:,}")
    return updater, progress


def _loop(run: RunDirectory, prepared: Prepared, updater: Updater, progress: Progress) -> Loop:
    recipe, training = prepared.recipe, prepared.recipe.training
    resegment = resegmentation(prepared.tokenizer, recipe) if recipe.data.bpe_dropout else None
    bidirectional = training.bidirectional_steps * training.accumulate
    batches = Batches(prepared.train, training.batch_tokens, training.seed, resegment, bidirectional)
    text = TextFacts.of(recipe.data, prepared.train, prepared.tokenizer)
    validation = Validation(prepared.valid, prepared.valid_corpus, prepared.tokenizer, text, recipe.decoding)
    processes = updater.processes
    log = RunLog(run.log, keep_bytes=progress.log_bytes) if processes.is_main else None
    padding = batches.padding()
    together = f", {processes.world_size} processes" * (processes.world_size > 1)
    _speaking(processes)(
        f"{updater.model.parameter_count():,} parameters · {plural(batches.per_epoch, 'batch', 'batches')} per epoch, "
        f"{padding:.1%} padding · {updater.device}, {plural(torch.get_num_threads(), 'thread')}{together}"
    )
    checkpoints.require_space(run.checkpoints, 12 * updater.model.parameter_count() * (training.keep + 1))
    updater.try_batch(batches.worst())
    if progress.step == 0 and log is not None:
        log.write(0, "start", parameters=updater.model.parameter_count(), padding=padding, pairs=len(prepared.train))
    return Loop(run, recipe, updater, batches, validation, progress, log)


def resegmentation(tokenizer: Tokenizer, recipe: Recipe) -> Resegment:
    """BPE-dropout of whole batches, rising as dropout does. A sentence that would become too long stays as it is."""
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


def _memory_message(error: BaseException, checkpoint_activations: bool) -> str:
    cause = str(error).splitlines()[0] if str(error) else "no more to be had"
    return f"Out of memory ({cause}). {memory_advice(checkpoint_activations)}"
