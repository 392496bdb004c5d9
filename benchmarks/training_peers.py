"""One training step of each contender: forward, loss with label smoothing, backward, Adam.

All have the same shape, batches, optimiser (torch's fused Adam) and smoothed loss. Each is used as its documentation
shows; what is particular to one is said where it is built. `STEPS` maps a name to the function that builds it, which
takes the task and gives `step(i) -> loss`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from shapes import BOS, EOS, PAD, Rows, Shape, Task
from torch import Tensor, nn

Step = Callable[[int], float]
LEARNING_RATE = 1e-4


def _ids(rows: Rows) -> tuple[Tensor, Tensor, Tensor]:
    return torch.from_numpy(rows.source), torch.from_numpy(rows.target_in), torch.from_numpy(rows.target_out)


def _adam(model: nn.Module) -> torch.optim.Adam:
    return torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.98), eps=1e-9, fused=True)


def _trained(model: nn.Module, task: Task, loss_of: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Step:
    """The ordinary loop of PyTorch around a model."""
    optimizer, batches = _adam(model.train()), [_ids(rows) for rows in task.batches]

    def step(i: int) -> float:
        loss = loss_of(*batches[i])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return loss.item()

    return step


def heedful_step(task: Task) -> Step:
    """Everything that `heedful train` does in an update: dropout seeded a step, gradient's norm, checks."""
    from heedful.config import ModelConfig, TrainingConfig
    from heedful.data.batches import Batch
    from heedful.model.transformer import Transformer
    from heedful.training.allocator import keep_memory
    from heedful.training.step import Updater

    keep_memory()
    shape = task.shape
    config = ModelConfig(
        vocab_size=shape.vocab_size,
        N=shape.N,
        d_model=shape.d_model,
        d_ff=shape.d_ff,
        h=shape.h,
        dropout=shape.dropout,
    )
    updater = Updater(Transformer(config), TrainingConfig(label_smoothing=shape.label_smoothing))
    batches = [Batch(*_ids(rows), rows.tokens, tuple(range(len(rows.source)))) for rows in task.batches]
    return lambda i: updater.update(i + 1, [batches[i]]).loss


class TorchTransformer(nn.Module):
    """torch.nn.Transformer with what it leaves to its user: tied, scaled embeddings, sinusoids, the projection."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.scale = math.sqrt(shape.d_model)
        self.embedding = nn.Embedding(shape.vocab_size, shape.d_model, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=shape.d_model**-0.5)
        self.dropout = nn.Dropout(shape.dropout)
        self.transformer = nn.Transformer(
            shape.d_model, shape.h, shape.N, shape.N, shape.d_ff, shape.dropout, batch_first=True
        )
        self.register_buffer("positions", _sinusoids(512, shape.d_model))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        padding, causal = source == PAD, nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        states = self.transformer(
            self._embedded(source),
            self._embedded(target),
            tgt_mask=causal,
            tgt_is_causal=True,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        return F.linear(states, self.embedding.weight)

    def _embedded(self, ids: Tensor) -> Tensor:
        positions: Tensor = self.get_buffer("positions")[: ids.shape[1]]
        dropped: Tensor = self.dropout(self.embedding(ids) * self.scale + positions)
        return dropped


def _sinusoids(length: int, d_model: int) -> Tensor:
    angles = torch.arange(length)[:, None] * 10_000.0 ** (-torch.arange(0, d_model, 2) / d_model)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).reshape(length, d_model)


def torch_step(task: Task) -> Step:
    model = TorchTransformer(task.shape)

    def loss(source: Tensor, target_in: Tensor, target_out: Tensor) -> Tensor:
        return _cross_entropy(model(source, target_in), target_out, task.shape)

    return _trained(model, task, loss)


def marian_step(task: Task) -> Step:
    """Hugging Face's Marian: no smoothing of its own, so the loss is made from its logits, as its Trainer does."""
    from transformers import MarianConfig, MarianMTModel

    shape = task.shape
    config = MarianConfig(
        vocab_size=shape.vocab_size,
        d_model=shape.d_model,
        encoder_layers=shape.N,
        decoder_layers=shape.N,
        encoder_attention_heads=shape.h,
        decoder_attention_heads=shape.h,
        encoder_ffn_dim=shape.d_ff,
        decoder_ffn_dim=shape.d_ff,
        activation_function="relu",
        dropout=shape.dropout,
        attention_dropout=0.0,
        activation_dropout=0.0,
        scale_embedding=True,
        max_position_embeddings=512,
        pad_token_id=PAD,
        eos_token_id=EOS,
        bos_token_id=BOS,
        decoder_start_token_id=BOS,
        use_cache=False,
    )
    model = MarianMTModel(config)

    def loss(source: Tensor, target_in: Tensor, target_out: Tensor) -> Tensor:
        found = model(input_ids=source, attention_mask=source != PAD, decoder_input_ids=target_in)
        return _cross_entropy(found.logits, target_out, shape)

    return _trained(model, task, loss)


def x_transformers_step(task: Task) -> Step:
    """x-transformers: pre-norm and without label smoothing, as it comes; it shifts the target itself."""
    from x_transformers import XTransformer

    shape = task.shape
    side = {
        "num_tokens": shape.vocab_size,
        "depth": shape.N,
        "heads": shape.h,
        "attn_dim_head": shape.d_model // shape.h,
        "ff_mult": shape.d_ff / shape.d_model,
        "max_seq_len": 512,
        "attn_flash": True,
        "ff_dropout": shape.dropout,
    }
    options = {f"{name}_{key}": value for name in ("enc", "dec") for key, value in side.items()}
    model = XTransformer(dim=shape.d_model, tie_token_emb=True, pad_value=PAD, ignore_index=PAD, **options)

    def loss(source: Tensor, target_in: Tensor, target_out: Tensor) -> Tensor:
        whole = torch.cat([target_in[:, :1], target_out], dim=1)
        found: Any = model(source, whole, mask=source != PAD)
        return found if isinstance(found, Tensor) else found[0]

    return _trained(model, task, loss)


def matrix_products(task: Task) -> Step:
    """The machine's own ceiling: the matrix products that a step cannot do without, and nothing else.

    Forward, then the two of the backward pass, for each projection on padded rows (padding is the batch's, not the
    contender's), the logits on real target pieces, and the two products of each attention.
    """
    from heedful.training.allocator import keep_memory

    keep_memory()
    lists = [list(_products(task.shape, rows)) for rows in task.batches]
    memory = {size: torch.randn(size) for products in lists for size in _sizes(products)}

    def step(i: int) -> float:
        for batch, m, k, n in lists[i]:
            x, w = memory[batch * m * k].view(batch, m, k), memory[batch * k * n].view(batch, k, n)
            y = torch.bmm(x, w) if batch > 1 else (x[0] @ w[0])[None]
            if batch > 1:
                torch.bmm(y, w.transpose(1, 2))
                torch.bmm(x.transpose(1, 2), y)
            else:
                y[0] @ w[0].T
                x[0].T @ y[0]
        return 0.0

    return step


def _products(shape: Shape, rows: Rows) -> list[tuple[int, int, int, int]]:
    """(batch, m, k, n) of each product of the forward pass."""
    B, S = rows.source.shape
    T = rows.target_in.shape[1]
    d, f, heads, width = shape.d_model, shape.d_ff, B * shape.h, shape.d_model // shape.h
    products: list[tuple[int, int, int, int]] = []
    for _ in range(shape.N):
        products += [(1, B * S, d, d)] * 4 + [(1, B * S, d, f), (1, B * S, f, d)]
        products += [(heads, S, width, S), (heads, S, S, width)]
        products += [(1, B * T, d, d)] * 6 + [(1, B * S, d, d)] * 2 + [(1, B * T, d, f), (1, B * T, f, d)]
        products += [(heads, T, width, T), (heads, T, T, width), (heads, T, width, S), (heads, T, S, width)]
    return [*products, (1, rows.tokens, d, shape.vocab_size)]


def _sizes(products: list[tuple[int, int, int, int]]) -> set[int]:
    return {size for batch, m, k, n in products for size in (batch * m * k, batch * k * n)}


def _cross_entropy(logits: Tensor, labels: Tensor, shape: Shape) -> Tensor:
    return F.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=PAD, label_smoothing=shape.label_smoothing
    )


STEPS: dict[str, Callable[[Task], Step]] = {
    "heedful": heedful_step,
    "torch.nn.Transformer": torch_step,
    "Marian (transformers)": marian_step,
    "x-transformers": x_transformers_step,
    "matrix products alone": matrix_products,
}
