"""The optimizers of `training.optimizer`: parameters, and state as named tensors."""

from __future__ import annotations

import re

import pytest
import torch

from heedful.config import ModelConfig
from heedful.model.transformer import Transformer
from heedful.training.muon import Muon
from heedful.training.optimizer import Optimizers, adam, load_state_tensors, make_optimizers, state_tensors


def small_model(seed: int = 1) -> Transformer:
    torch.manual_seed(seed)
    return Transformer(ModelConfig(vocab_size=20, N=1, d_model=8, d_ff=16, h=2, dropout=0.0))


def update(model: Transformer, optimizers: Optimizers, count: int = 1) -> None:
    for _ in range(count):
        model(torch.tensor([[5, 6, 3]]), torch.tensor([[2, 7, 8]])).square().sum().backward()
        for optimizer in optimizers:
            optimizer.param_groups[0]["lr"] = 0.01
            optimizer.step()
            optimizer.zero_grad()


def test_adam_is_fused_and_has_the_papers_values() -> None:
    model = small_model()
    (optimizer,) = make_optimizers(model, "adam")
    assert type(optimizer) is torch.optim.Adam
    (group,) = optimizer.param_groups
    assert (group["betas"], group["eps"], group["weight_decay"]) == ((0.9, 0.98), 1e-9, 0)
    assert group["fused"]
    assert not group["amsgrad"]
    assert {id(parameter) for parameter in group["params"]} == {id(parameter) for parameter in model.parameters()}


def test_muon_has_the_matrices_of_the_linear_layers_and_adam_the_rest() -> None:
    model = small_model()
    muon, rest = make_optimizers(model, "muon")
    assert isinstance(muon, Muon)
    assert isinstance(rest, torch.optim.Adam)
    assert rest.param_groups[0]["betas"] == (0.9, 0.98)
    owner = {id(p): name for name, one in (("muon", muon), ("adam", rest)) for p in one.param_groups[0]["params"]}
    for name, parameter in model.named_parameters():
        is_matrix = parameter.dim() == 2 and "embedding" not in name
        assert owner[id(parameter)] == ("muon" if is_matrix else "adam"), name


def test_a_parameter_without_a_gradient_stays() -> None:
    used, unused = (torch.ones(2, requires_grad=True) for _ in range(2))
    optimizer = adam([unused, used])
    optimizer.param_groups[0]["lr"] = 0.1
    used.grad = torch.ones(2)
    optimizer.step()
    assert torch.equal(unused, torch.ones(2))
    assert (used < 1).all()


@pytest.mark.parametrize("name", ["adam", "muon"])
def test_restored_state_gives_the_same_next_update(name: str) -> None:
    one, other = small_model(1), small_model(2)
    its, others = make_optimizers(one, name), make_optimizers(other, name)
    update(one, its, count=3)
    saved = {key: tensor.clone() for key, tensor in state_tensors(one, its).items()}
    assert all(tensor.dtype == torch.float32 for tensor in saved.values())
    other.load_state_dict(one.state_dict())
    load_state_tensors(other, others, saved)
    again = state_tensors(other, others)
    assert saved.keys() == again.keys()
    assert all(torch.equal(saved[key], again[key]) for key in saved)
    for model, optimizers in ((one, its), (other, others)):
        update(model, optimizers)
    assert all(torch.equal(*pair) for pair in zip(one.parameters(), other.parameters(), strict=True))


def test_control_without_its_state_the_next_update_differs() -> None:
    one, other = small_model(1), small_model(1)
    its = make_optimizers(one, "adam")
    update(one, its, count=3)
    other.load_state_dict(one.state_dict())
    update(one, its)
    update(other, make_optimizers(other, "adam"))
    assert not torch.equal(one.embedding.weight_VD, other.embedding.weight_VD)


@pytest.mark.parametrize("name", ["adam", "muon"])
def test_every_tensor_is_required_in_its_shape_and_none_besides(name: str) -> None:
    model = small_model()
    optimizers = make_optimizers(model, name)
    update(model, optimizers)
    saved = dict(state_tensors(model, optimizers))
    for key, tensor in saved.items():
        with pytest.raises(ValueError, match=f"{key} is missing"):
            load_state_tensors(model, optimizers, {k: t for k, t in saved.items() if k != key})
        expected = re.escape(f"{key} is of shape (3, 3, 3), expected {tuple(tensor.shape)}")
        with pytest.raises(ValueError, match=expected):
            load_state_tensors(model, optimizers, {**saved, key: torch.zeros(3, 3, 3)})
    with pytest.raises(ValueError, match=r"exp_avg\.nothing does not belong to this model and optimizer"):
        load_state_tensors(model, optimizers, {**saved, "exp_avg.nothing": torch.zeros(1)})
