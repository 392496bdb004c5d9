"""Train on synthetic batches; write losses and a checkpoint for each job.

Usage: [torchrun …] equal_runs.py OUT JOBS. JOBS is a JSON object: the name of a directory in OUT → `to` (last step),
`from` (directory with the checkpoint to resume), `dtype`, `gradients` (write gradients instead), and keys of the
[training] section.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from heedful.config import BOS, EOS, ModelConfig, TrainingConfig
from heedful.data.batches import Batch, pad
from heedful.model.transformer import Transformer
from heedful.storage.run_directory import RunDirectory
from heedful.training import checkpoints
from heedful.training.distributed import ProcessGroup, process_group
from heedful.training.trainer import Trainer

ACCUMULATE = 4
MODEL = ModelConfig(vocab_size=40, N=2, d_model=32, d_ff=64, h=4, dropout=0.0)


def batch(number: int) -> Batch:
    """One batch; the last of each step has only one short sentence."""
    generator = torch.Generator().manual_seed(number)
    rows = 1 if number % ACCUMULATE == ACCUMULATE - 1 else 6
    longest = 4 if rows == 1 else 12
    lengths = torch.randint(2, longest, (rows,), generator=generator).tolist()
    sources = [[*torch.randint(4, 40, (length,), generator=generator).tolist(), EOS] for length in lengths]
    targets = [[*source[-2::-1], EOS] for source in sources]
    target_in = pad([[BOS, *target[:-1]] for target in targets])
    return Batch(pad(sources), target_in, pad(targets), sum(map(len, targets)), ())


def make_trainer(processes: ProcessGroup, options: dict[str, Any]) -> Trainer:
    torch.manual_seed(1)
    training = {"steps": 100, "warmup_steps": 20, "learning_rate": 0.3, "precision": "fp32", **options}
    config = TrainingConfig(**training, accumulate=ACCUMULATE)
    return Trainer(Transformer(MODEL), config, processes)


def share(trainer: Trainer) -> list[Batch]:
    first = trainer.progress.step * ACCUMULATE
    return [batch(number) for number in trainer.processes.shard(range(first, first + ACCUMULATE))]


def save(run: RunDirectory, trainer: Trainer) -> None:
    state = checkpoints.state_of(trainer.model, trainer.optimizers, trainer.moving_average, trainer.processes.is_main)
    with trainer.processes.main_first("saving"):
        if trainer.processes.is_main:
            checkpoints.write(run, state, trainer.progress)


def train(out: Path, processes: ProcessGroup, options: dict[str, Any]) -> None:
    steps, resumed = options.pop("to"), options.pop("from", "")
    losses = []
    trainer = make_trainer(processes, options)
    if resumed:
        run = RunDirectory(out.parent / resumed)
        trainer.progress = checkpoints.load(
            run, run.valid_steps(1)[0], trainer.model, trainer.optimizers, trainer.moving_average
        )
    while trainer.progress.step < steps:
        losses.append(trainer.train_step(share(trainer)).loss)
    save(RunDirectory(out), trainer)
    if processes.is_main:
        (out / "losses.json").write_text(json.dumps(losses), encoding="utf-8")


def gradients(out: Path, processes: ProcessGroup, options: dict[str, Any]) -> None:
    """Write this process's gradients inside `no_sync`, and after the last batch."""
    trainer = make_trainer(processes, options)
    batches = share(trainer)
    found = {}
    for number, one in enumerate(batches):
        is_last = number == len(batches) - 1
        with trainer.parallel_loss.accumulation(is_last):
            trainer.parallel_loss.share(trainer.parallel_loss(one).smoothed, 100).backward()  # type: ignore[no-untyped-call]
        found["after" if is_last else "inside"] = torch.cat(
            [parameter.grad.flatten() for parameter in trainer.model.parameters() if parameter.grad is not None]
        ).clone()
    safetensors.torch.save_file(found, out / f"gradients-{processes.rank}.safetensors")


def main() -> None:
    torch.set_num_threads(1)
    with process_group(torch.device("cpu")) as processes:
        for name, options in json.loads(sys.argv[2]).items():
            out = Path(sys.argv[1]) / name
            out.mkdir(parents=True, exist_ok=True)
            torch.set_default_dtype(getattr(torch, options.pop("dtype", "float32")))
            wanted = gradients if options.pop("gradients", False) else train
            wanted(out, processes, options)


if __name__ == "__main__":
    main()
