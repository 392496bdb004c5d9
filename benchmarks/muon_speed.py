"""Time one update of Muon: torch.optim.Muon, and heedful's in float32 and bf16. python benchmarks/muon_speed.py

Every round times each optimizer once, in turn, so that a disturbance hits all of them. Medians are printed.
"""

from __future__ import annotations

import argparse
import statistics
from time import perf_counter

import torch
from processor import flags
from torch import Tensor

from heedful.config import ModelConfig
from heedful.model.transformer import Transformer
from heedful.training.muon import Muon

MODELS = [
    ModelConfig(vocab_size=100, N=4, d_model=128, d_ff=256, h=4),
    ModelConfig(vocab_size=100, N=3, d_model=256, d_ff=1_024, h=4),
]


def matrices(config: ModelConfig) -> list[Tensor]:
    """The matrices of the linear layers, with random gradients."""
    torch.manual_seed(1)
    modules = Transformer(config).modules()
    weights: list[Tensor] = [module.weight for module in modules if isinstance(module, torch.nn.Linear)]
    for weight in weights:
        weight.grad = torch.randn_like(weight)
    return weights


def candidates(config: ModelConfig) -> dict[str, torch.optim.Optimizer]:
    return {
        "torch.optim.Muon": torch.optim.Muon(
            matrices(config), lr=1e-3, weight_decay=0.0, adjust_lr_fn="match_rms_adamw"
        ),
        "heedful, float32": Muon(matrices(config)),
        "heedful, bf16": Muon(matrices(config), dtype=torch.bfloat16),
    }


def measure(config: ModelConfig, rounds: int) -> dict[str, float]:
    """Median milliseconds per update."""
    optimizers = candidates(config)
    for optimizer in optimizers.values():
        optimizer.step()  # warm-up
    found: dict[str, list[float]] = {name: [] for name in optimizers}
    for _ in range(rounds):
        for name, optimizer in optimizers.items():
            before = perf_counter()
            optimizer.step()
            found[name].append(1_000 * (perf_counter() - before))
    return {name: statistics.median(times) for name, times in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads; processor flags: {flags()}")
    for config in MODELS:
        print(f"N {config.N}, d_model {config.d_model}, d_ff {config.d_ff}: median of {rounds} rounds, ms per update")
        for name, milliseconds in measure(config, rounds).items():
            print(f"  {name}: {milliseconds:.0f}")


if __name__ == "__main__":
    main()
