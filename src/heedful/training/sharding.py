"""Sharded tensors (`training.shard = true`): how to gather and to split them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor


def is_sharded(tensor: Tensor) -> bool:
    """Return whether a tensor is a DTensor; import the class only if a run is sharded."""
    return hasattr(tensor, "full_tensor")


def gathered(tensor: Tensor) -> Tensor:
    """Return the whole tensor. If it is sharded, every process must call this."""
    return cast("DTensor", tensor).full_tensor() if is_sharded(tensor) else tensor


def gathered_in_main(tensors: Mapping[str, Tensor], is_main: bool) -> dict[str, Tensor]:
    """Return whole tensors in the main process, and nothing of the sharded ones elsewhere.

    Gathered tensors are moved to the CPU one by one: together they may exceed the memory of a device.
    """
    found = {}
    for name, tensor in tensors.items():
        if not is_sharded(tensor):
            found[name] = tensor
        elif (whole := gathered(tensor.detach())) is not None and is_main:
            found[name] = whole.cpu()
    return found


def placed_like(tensor: Tensor, like: Tensor) -> Tensor:
    """Return a whole tensor on the device of another, split in the same way."""
    if not is_sharded(like):
        return tensor.to(like.device)
    from torch.distributed.tensor import distribute_tensor

    sharded = cast("DTensor", like)
    # Every process has read the same file, so nothing needs to be sent: src_data_rank=None.
    return distribute_tensor(tensor.to(like.device), sharded.device_mesh, sharded.placements, src_data_rank=None)


def local(tensor: Tensor) -> Tensor:
    """Return the part of a tensor that this process holds."""
    return cast("DTensor", tensor).to_local() if is_sharded(tensor) else tensor


def gathered_rows(parts_NRC: Tensor, like_RC: Tensor) -> Tensor:
    """Return a stack of whole matrices, gathered from each process's rows."""
    if not is_sharded(like_RC):
        return parts_NRC
    from torch.distributed.tensor import DTensor, Shard

    shape = torch.Size((len(parts_NRC), *like_RC.shape))
    stride = (shape[1] * shape[2], shape[2], 1)
    mesh = cast("DTensor", like_RC).device_mesh
    return DTensor.from_local(parts_NRC, mesh, [Shard(1)], shape=shape, stride=stride).full_tensor()


def load_whole(parameters: Mapping[str, Tensor], tensors: Mapping[str, Tensor]) -> None:
    """Set parameters, sharded or not, to whole tensors of the same names."""
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(placed_like(tensors[name], parameter))
