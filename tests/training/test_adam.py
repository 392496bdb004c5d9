"""Adam against torch's own class, bit for bit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import torch

from heedful.training.adam import BETA_1, BETA_2, EPSILON, Adam

SHAPES = [(3, 5), (7,), (33, 17)]


def test_it_is_torchs_fused_adam_bit_for_bit() -> None:
    torch.manual_seed(1)
    ours = [torch.randn(shape, requires_grad=True) for shape in SHAPES]
    theirs = [weight.detach().clone().requires_grad_() for weight in ours]
    adam = Adam(ours)
    oracle = torch.optim.Adam(theirs, lr=0.0, betas=(BETA_1, BETA_2), eps=EPSILON, fused=True)
    for step in range(1, 8):
        adam.rate = oracle.param_groups[0]["lr"] = 0.01 / step
        for one, other in zip(ours, theirs, strict=True):
            one.grad = torch.randn_like(one) * 10.0 ** (step - 4)
            other.grad = one.grad.clone()
        adam.step()
        oracle.step()
        for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            assert torch.equal(one, other)
            assert torch.equal(adam.m[index], oracle.state[other]["exp_avg"])
            assert torch.equal(adam.v[index], oracle.state[other]["exp_avg_sq"])
    adam.zero_grad()
    assert all(weight.grad is None for weight in ours)


def test_a_parameter_without_a_gradient_stays() -> None:
    used, unused = (torch.ones(2, requires_grad=True) for _ in range(2))
    adam = Adam([unused, used])
    adam.rate = 0.1
    used.grad = torch.ones(2)
    adam.step()
    assert torch.equal(unused, torch.ones(2))
    assert (used < 1).all()


def test_training_starts_without_torchs_compiler(tmp_path: Path) -> None:
    """Its import takes longer than everything else before the first step."""
    settings = {"data.builtin": True, "data.builtin_pairs": 300, "data.vocab_size": 400, "training.steps": 1}
    shape = {"model.N": 1, "model.d_model": 16, "model.d_ff": 16, "model.h": 2, "training.batch_tokens": 300}
    code = (
        "import sys, heedful\n"
        f"heedful.train(out={str(tmp_path / 'run')!r}, overrides={settings | shape!r})\n"
        "print('torch._dynamo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
