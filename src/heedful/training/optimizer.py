"""The optimizers that `training.optimizer` selects, and their state as named tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from heedful.model.transformer import Transformer
from heedful.training.muon import Muon
from heedful.training.sharding import placed_like

BETAS, EPSILON = (0.9, 0.98), 1e-9  # section 5.3

Optimizers = list[torch.optim.Optimizer]


def make_optimizers(model: Transformer, name: str) -> Optimizers:
    """Return Adam for all parameters, or Muon for linear layers and Adam for the rest.

    The learning rate is set at each step.
    """
    if name == "adam":
        return [adam(model.parameters())]
    matrices = [module.weight for module in model.modules() if isinstance(module, torch.nn.Linear)]
    is_matrix = {id(matrix) for matrix in matrices}
    others = [parameter for parameter in model.parameters() if id(parameter) not in is_matrix]
    dtype = torch.bfloat16 if model.embedding.training_dtype == torch.bfloat16 else matrices[0].dtype
    return [Muon(matrices, dtype=dtype), adam(others)]


def adam(parameters: Iterable[Tensor]) -> torch.optim.Adam:
    """Return Adam as in section 5.3. The learning rate is set at each step."""
    return torch.optim.Adam(parameters, lr=0.0, betas=BETAS, eps=EPSILON, fused=True)


def state_tensors(model: Transformer, optimizers: Optimizers) -> dict[str, Tensor]:
    """Return the optimizer state, named as in "exp_avg.encoder.0.feed_forward.inner.weight"."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return {
        f"{key}.{names[id(parameter)]}": tensor
        for optimizer in optimizers
        for parameter, state in optimizer.state.items()
        for key, tensor in state.items()
    }


def load_state_tensors(model: Transformer, optimizers: Optimizers, tensors: Mapping[str, Tensor]) -> None:
    """Set the optimizer state from named tensors.

    Raise ValueError if one is missing, unknown or misshapen.
    """
    parameters = dict(model.named_parameters())
    left = dict(tensors)
    for optimizer in optimizers:
        own = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        for name, parameter in parameters.items():
            if id(parameter) in own:
                optimizer.state[parameter] = {
                    key: _placed(_taken(left, f"{key}.{name}", shape), parameter)
                    for key, shape in _state_shapes(optimizer, parameter).items()
                }
    if left:
        raise ValueError(f"{min(left)} does not belong to this model and optimizer")


def _state_shapes(optimizer: torch.optim.Optimizer, parameter: Tensor) -> dict[str, torch.Size]:
    if isinstance(optimizer, Muon):
        return {"momentum_buffer": parameter.shape}
    return {"step": torch.Size(), "exp_avg": parameter.shape, "exp_avg_sq": parameter.shape}


def _placed(tensor: Tensor, parameter: Tensor) -> Tensor:
    """Return a moment on the parameter's device, or this process's part of it."""
    return placed_like(tensor, parameter) if tensor.shape == parameter.shape else tensor.to(parameter.device)


def _taken(tensors: dict[str, Tensor], name: str, shape: torch.Size) -> Tensor:
    tensor = tensors.pop(name, None)
    if tensor is None or tensor.shape != shape:
        found = "missing" if tensor is None else f"of shape {tuple(tensor.shape)}"
        raise ValueError(f"{name} is {found}, expected {tuple(shape)}")
    return tensor
