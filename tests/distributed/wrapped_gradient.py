"""Write the gradient of two processes under one of torch's own wrappers: torchrun … wrapped_gradient.py KIND OUT."""

from __future__ import annotations

import sys

import safetensors.torch
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel

from heedful.config import BOS, EOS, ModelConfig
from heedful.data.batches import Batch, pad
from heedful.model.transformer import Transformer
from heedful.training.loss import batch_loss

WORLD = 2


class WithLoss(nn.Module):
    """A model whose forward pass is its loss per token of all processes, as the wrappers expect it."""

    def __init__(self, tokens: int) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.model = Transformer(ModelConfig(vocab_size=40, N=2, d_model=32, d_ff=64, h=4, dropout=0.0))
        self.model.embedding.training_dtype = torch.bfloat16
        self.tokens = tokens

    def forward(self, batch: Batch) -> Tensor:
        return batch_loss(self.model, batch, 0.1).smoothed / self.tokens


def batches() -> list[Batch]:
    """One batch per process, of different lengths."""
    generator = torch.Generator().manual_seed(5)
    made = []
    for _ in range(WORLD):
        lengths = torch.randint(2, 12, (8,), generator=generator).tolist()
        sources, targets = (
            [[*torch.randint(4, 40, (length,), generator=generator).tolist(), EOS] for length in lengths]
            for _ in range(2)
        )
        target_in = pad([[BOS, *target[:-1]] for target in targets])
        made.append(Batch(pad(sources), target_in, pad(targets), sum(map(len, targets)), ()))
    return made


def all_tokens() -> int:
    return sum(batch.tokens for batch in batches())


def alone(dtype: torch.dtype = torch.bfloat16) -> dict[str, Tensor]:
    """The gradient of one process that accumulates the same batches."""
    module = WithLoss(all_tokens())
    module.model.embedding.training_dtype = dtype
    for batch in batches():
        module(batch).backward()
    return {name: parameter.grad for name, parameter in module.model.named_parameters() if parameter.grad is not None}


def wrapped(kind: str) -> dict[str, Tensor]:
    """The gradient of all processes.

    The wrappers average over them, so it is multiplied by their number.
    """
    module = WithLoss(all_tokens())
    if kind == "ddp":
        parallel = DistributedDataParallel(module)  # its hooks must live until the backward pass
        parallel(batches()[dist.get_rank()]).backward()
    else:
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        mesh = init_device_mesh("cpu", (WORLD,))
        for layer in (*module.model.encoder, *module.model.decoder):
            fully_shard(layer, mesh=mesh, mp_policy=policy)
        fully_shard(module, mesh=mesh, mp_policy=policy)
        module(batches()[dist.get_rank()]).backward()
    found = {}
    for name, parameter in module.model.named_parameters():
        gradient = parameter.grad
        assert gradient is not None, name
        assert gradient.dtype == parameter.dtype == torch.float32, name
        found[name] = WORLD * (gradient.full_tensor() if kind == "fsdp" else gradient)
    return found


if __name__ == "__main__":
    dist.init_process_group("gloo")
    gradients = wrapped(sys.argv[1])
    if dist.get_rank() == 0:
        safetensors.torch.save_file(gradients, sys.argv[2])
    dist.destroy_process_group()
