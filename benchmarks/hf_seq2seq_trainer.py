"""Hugging Face's Seq2SeqTrainer with a Marian model, for benchmarks/time_to_loss.py.

python benchmarks/hf_seq2seq_trainer.py DIRECTORY PLAN LOG

DIRECTORY contains the token stores, PLAN is JSON, and LOG is written in the format of log.jsonl. The batches are
exactly heedful's: each item of the dataset is a whole batch. Optimizer and schedule are passed in; the smoothed loss is
the Trainer's own. Validation computes only the loss.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from training_peers import marian
from training_task import PAD, Shape
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, TrainerCallback

from heedful.data.batches import Batch, Batches
from heedful.data.store import Store
from heedful.training.schedule import learning_rate

IGNORED = -100  # label that the Trainer ignores


def as_inputs(batch: Batch) -> dict[str, Tensor]:
    labels = batch.target_out_BT.masked_fill(batch.target_out_BT == PAD, IGNORED)
    return {
        "input_ids": batch.source_BS,
        "attention_mask": (batch.source_BS != PAD).long(),
        "decoder_input_ids": batch.target_in_BT,
        "labels": labels,
    }


class InOrder(torch.utils.data.IterableDataset[dict[str, Tensor]]):
    """Batches 0, 1, 2, … in the order of `heedful train`."""

    def __init__(self, batches: Batches, steps: int) -> None:
        self.batches, self.steps = batches, steps

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        return (as_inputs(self.batches[number]) for number in range(self.steps))


class Validate(TrainerCallback):
    """Writes the unsmoothed loss per token every few steps."""

    def __init__(self, batches: Batches, every: int, log: Path) -> None:
        self.batches = [batches[number] for number in range(batches.per_epoch)]
        self.every, self.log = every, log

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.write(step=0, kind="start")

    def on_step_end(self, args: Any, state: Any, control: Any, *, model: Any = None, **_: Any) -> None:
        if state.global_step % self.every == 0:
            began = monotonic()
            nll = self.nll(model)
            self.write(step=state.global_step, kind="valid", nll=nll, seconds=monotonic() - began)

    @torch.inference_mode()
    def nll(self, model: Any) -> float:
        model.eval()
        total = 0.0
        for batch in self.batches:
            inputs = as_inputs(batch)
            labels = inputs.pop("labels")
            logits = model(**inputs).logits
            total += F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum").item()
        model.train()
        return total / sum(batch.tokens for batch in self.batches)

    def write(self, **entry: Any) -> None:
        with self.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


def main(directory: Path, plan: dict[str, Any], log: Path) -> None:
    torch.set_num_threads(plan["threads"])
    torch.manual_seed(1)
    shape = Shape(**plan["shape"])
    train, valid = (Batches(Store(directory / name), plan["batch_tokens"], seed=1) for name in ("train", "valid"))
    model = marian(shape)
    # The learning rate is 1 × the schedule, which is Eq. 3; its first call is for step 1.
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda done: learning_rate(done + 1, shape.d_model, plan["warmup_steps"], plan["learning_rate"]),
    )
    arguments = Seq2SeqTrainingArguments(
        output_dir=str(log.parent),
        max_steps=plan["steps"],
        per_device_train_batch_size=1,  # an item is a batch
        label_smoothing_factor=shape.label_smoothing,
        max_grad_norm=0.0,
        logging_steps=10,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        bf16=plan["precision"] == "bf16",
        dataloader_pin_memory=False,
        remove_unused_columns=False,
    )
    Seq2SeqTrainer(
        model=model,
        args=arguments,
        train_dataset=InOrder(train, plan["steps"]),
        data_collator=lambda items: items[0],
        optimizers=(optimizer, schedule),
        callbacks=[Validate(valid, plan["every"], log)],
    ).train()


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]), Path(sys.argv[3]))
