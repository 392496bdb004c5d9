"""The training loss over all processes: DistributedDataParallel or FSDP2.

`training.shard = true` selects FSDP2. Both average the gradients while the backward pass is still running. They hook
into the forward pass of a module, so the loss is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from heedful.config import TrainingConfig
from heedful.data.batches import Batch
from heedful.model.transformer import Transformer
from heedful.training.consistency import consistent_loss
from heedful.training.distributed import ProcessGroup, communication_errors
from heedful.training.loss import Loss, batch_loss


class LossModule(nn.Module):
    """A model whose forward pass returns its loss."""

    def __init__(self, model: Transformer, training: TrainingConfig) -> None:
        super().__init__()
        self.model = model
        self.config = training

    def forward(self, batch: Batch) -> Loss:
        if self.config.consistency:
            return consistent_loss(self.model, batch, self.config)
        return batch_loss(self.model, batch, self.config.label_smoothing)


class ParallelLoss:
    """The loss of one process's batches, with gradients averaged over all processes."""

    def __init__(self, model: Transformer, training: TrainingConfig, processes: ProcessGroup) -> None:
        """Wrap the model; sharding replaces its parameters, so create optimizers afterwards."""
        module = LossModule(model, training)
        self._world_size = processes.world_size
        self._module: nn.Module = module
        if processes.world_size == 1:
            return
        with communication_errors():
            if training.shard:
                fully_shard_model(module, processes)
            else:
                # Gradients are views of the buffers that are sent, which saves a copy of them.
                self._module = DistributedDataParallel(module, gradient_as_bucket_view=True)

    def __call__(self, batch: Batch) -> Loss:
        loss: Loss = self._module(batch)
        return loss

    def share(self, total: Tensor, tokens: int) -> Tensor:
        """Return a sum over this process's tokens, scaled to give the gradient of the mean.

        Averaged over the processes, its gradient is that of the mean over `tokens`. `tokens` counts the true target
        tokens of all processes, which may have different numbers of them. Averaging divides by the number of processes;
        this multiplies by it.
        """
        return total / (tokens / self._world_size)

    @contextmanager
    def accumulation(self, is_last: bool) -> Iterator[None]:
        """Cover a batch's forward and backward; average gradients only after a step's last one."""
        if self._world_size == 1:
            yield
            return
        with communication_errors():
            if not isinstance(self._module, DistributedDataParallel):
                self._module.set_requires_gradient_sync(is_last)  # type: ignore[operator]
                yield
            elif is_last:
                yield
            else:
                with self._module.no_sync():
                    yield


def fully_shard_model(module: LossModule, processes: ProcessGroup) -> None:
    """Divide parameters, gradients and optimizer state over processes by layer (FSDP2).

    With bf16 activations the layers' weights are sent in bf16, as the layers would round them anyway; gradients are
    averaged in float32. The embedding stays float32: its scaled sum with the positions is rounded later.
    """
    # Imported here because it takes a second.
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    mesh = init_device_mesh(processes.device.type, (processes.world_size,))
    dtype = module.model.embedding.training_dtype
    policy = MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=None if dtype is None else torch.float32)
    for layer in (*module.model.encoder, *module.model.decoder):
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(module, mesh=mesh)
