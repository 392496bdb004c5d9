"""Out-of-memory errors: name the batch that did not fit, and say what to change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from heedful.config import PAD
from heedful.data.batches import Batch
from heedful.errors import MachineError, is_out_of_memory
from heedful.formatting import plural


@contextmanager
def batch_memory_errors(batch: Batch, step: int, checkpoint_activations: bool) -> Iterator[None]:
    """Turn an out-of-memory error into a MachineError that names the batch's longest pair.

    Step 0 is a trial run.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        lengths = (batch.source_BS != PAD).sum(dim=1) + (batch.target_out_BT != PAD).sum(dim=1)
        when = f"at step {step}" if step else "before the first step, with the largest batch"
        raise MachineError(
            f"Out of memory {when}: {plural(len(batch.lines), 'pair')}, padded to {batch.source_BS.shape[1]} source "
            f"and {batch.target_out_BT.shape[1]} target tokens. The longest pair is line "
            f"{batch.lines[int(lengths.argmax())]} of the training text. {_advice(checkpoint_activations)}"
        ) from error


@contextmanager
def memory_errors(checkpoint_activations: bool) -> Iterator[None]:
    """Turn any other out-of-memory error into a MachineError."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        cause = str(error).splitlines()[0] if str(error) else "allocation failed"
        raise MachineError(f"Out of memory ({cause}). {_advice(checkpoint_activations)}") from error


def _advice(checkpoint_activations: bool) -> str:
    """Return what to change, given whether activations are already checkpointed."""
    first = "Lower" if checkpoint_activations else "Set training.checkpoint_activations = true, or lower"
    return (
        f"Saved checkpoints are intact. {first} training.batch_tokens (and raise training.accumulate to keep the "
        "number of tokens per update), data.max_length or the size of the model. "
        "Then train again with another `--out`."
    )
