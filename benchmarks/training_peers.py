"""One training step of each toolkit: forward, loss with label smoothing, backward, Adam.

All have the same shape, batches, optimizer (torch's fused Adam) and smoothed loss. Each is used as its documentation
shows, in float32 and in bf16; for the peers bf16 is torch.autocast, the way their documentation recommends. What is
particular to a contender is said where it is built. `CONTENDERS` maps a name to the function that builds it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from training_step_matmuls import matrix_products
from training_task import BOS, EOS, PAD, UNK, Rows, Shape, Task

Step = Callable[[int], float]
LEARNING_RATE = 1e-4
OURS, CEILING, NO_PADDING = "heedful", "matrix products only", "matrix products, no padding"
PRECISIONS = ("fp32", "bf16")


@dataclass(frozen=True)
class Contender:
    step: Step  # runs an update on batch i and returns its loss
    model: nn.Module | None  # None: the upper bound has no weights
    package: str  # package whose version is recorded


def _ids(rows: Rows) -> tuple[Tensor, Tensor, Tensor]:
    return torch.from_numpy(rows.source), torch.from_numpy(rows.target_in), torch.from_numpy(rows.target_out)


def _adam(model: nn.Module) -> torch.optim.Adam:
    return torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.98), eps=1e-9, fused=True)


def _trained(
    model: nn.Module, package: str, task: Task, precision: str, loss_of: Callable[[Tensor, Tensor, Tensor], Tensor]
) -> Contender:
    """Return PyTorch's usual training loop around a model."""
    optimizer, batches = _adam(model.train()), [_ids(rows) for rows in task.batches]

    def step(i: int) -> float:
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            loss = loss_of(*batches[i])
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return Contender(step, model, package)


def heedful_step(task: Task, precision: str) -> Contender:
    """Everything that `heedful train` does in an update: dropout seeded a step, gradient's norm, checks."""
    from heedful.allocator import keep_memory
    from heedful.config import ModelConfig, TrainingConfig
    from heedful.data.batches import Batch
    from heedful.model.transformer import Transformer
    from heedful.training.trainer import Trainer

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
    trainer = Trainer(Transformer(config), TrainingConfig(label_smoothing=shape.label_smoothing, precision=precision))
    batches = [Batch(*_ids(rows), rows.tokens, tuple(range(len(rows.source)))) for rows in task.batches]
    return Contender(lambda i: trainer.train_step([batches[i]]).loss, trainer.model, "heedful")


class TorchTransformer(nn.Module):
    """torch.nn.Transformer plus tied and scaled embeddings, sinusoids and the output projection."""

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


def torch_step(task: Task, precision: str) -> Contender:
    model = TorchTransformer(task.shape)

    def loss(source: Tensor, target_in: Tensor, target_out: Tensor) -> Tensor:
        return _cross_entropy(model(source, target_in), target_out, task.shape)

    return _trained(model, "torch", task, precision, loss)


def marian(shape: Shape) -> Any:
    """Return Hugging Face's Marian as in the paper: post-norm, ReLU, scaled and tied embeddings, sinusoids."""
    from transformers import MarianConfig, MarianMTModel

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
    return MarianMTModel(config)


def marian_step(task: Task, precision: str) -> Contender:
    """It has no smoothing of its own, so the loss is made from its logits, as its Trainer does."""
    model, shape = marian(task.shape), task.shape

    def loss(source: Tensor, target_in: Tensor, target_out: Tensor) -> Tensor:
        found = model(input_ids=source, attention_mask=source != PAD, decoder_input_ids=target_in)
        return _cross_entropy(found.logits, target_out, shape)

    return _trained(model, "transformers", task, precision, loss)


def x_transformers_step(task: Task, precision: str) -> Contender:
    """x-transformers as it comes: pre-norm, learned positions, a projection of its own, no label smoothing, dropout in
    the feed-forward layers alone; it shifts the target itself."""
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

    return _trained(model, "x-transformers", task, precision, loss)


def joeynmt_step(task: Task, precision: str) -> Contender:
    """JoeyNMT's model, batches and loss; post-norm is a setting, and its one dropout is on attention weights too."""
    from joeynmt.batch import Batch
    from joeynmt.model import build_model

    shape, vocabulary = task.shape, _joeynmt_vocabulary(task.shape.vocab_size)
    side = {
        "type": "transformer",
        "num_layers": shape.N,
        "num_heads": shape.h,
        "hidden_size": shape.d_model,
        "ff_size": shape.d_ff,
        "dropout": shape.dropout,
        "embeddings": {"embedding_dim": shape.d_model, "scale": True, "dropout": shape.dropout},
        "layer_norm": "post",
        "activation": "relu",
    }
    tied = {"tied_embeddings": True, "tied_softmax": True}
    model = build_model({"encoder": dict(side), "decoder": dict(side), **tied}, vocabulary, vocabulary)
    model.loss_function = ("crossentropy", shape.label_smoothing)

    def loss(source: Tensor, target_in: Tensor, target_out: Tensor) -> Tensor:
        source, whole = _pad_second(source), _pad_second(torch.cat([target_in[:, :1], target_out], dim=1))
        lengths, order = (source != _JOEYNMT_PAD).sum(dim=1), torch.arange(len(source))
        batch = Batch(source, lengths, None, whole, None, order, torch.device("cpu"), _JOEYNMT_PAD, EOS)
        per_token: Tensor = model(return_type="loss", **vars(batch))[0] / batch.ntokens
        return per_token

    return _trained(model, "joeynmt", task, precision, loss)


_JOEYNMT_PAD = UNK  # its vocabulary starts with the unknown token, heedful's with padding


def _joeynmt_vocabulary(size: int) -> Any:
    from joeynmt.vocabulary import Vocabulary

    tokens = {"unk_token": "<unk>", "pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "sep_token": None}
    ids = {"unk_id": PAD, "pad_id": _JOEYNMT_PAD, "bos_id": BOS, "eos_id": EOS, "sep_id": None}
    return Vocabulary([f"token{i}" for i in range(size - 4)], SimpleNamespace(**tokens, **ids, lang_tags=[]))


def _pad_second(ids: Tensor) -> Tensor:
    """Swap the ids of padding and the unknown token."""
    return torch.where(ids <= UNK, UNK - ids, ids)


def ceiling_step(task: Task, precision: str, padded: bool = True) -> Contender:
    from heedful.allocator import keep_memory

    keep_memory()
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    return Contender(matrix_products(task, padded, dtype), None, "torch")


def _cross_entropy(logits: Tensor, labels: Tensor, shape: Shape) -> Tensor:
    return F.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=PAD, label_smoothing=shape.label_smoothing
    )


CONTENDERS: dict[str, Callable[[Task, str], Contender]] = {
    OURS: heedful_step,
    "torch.nn.Transformer": torch_step,
    "Marian (transformers)": marian_step,
    "x-transformers": x_transformers_step,
    "JoeyNMT": joeynmt_step,
    CEILING: ceiling_step,
    NO_PADDING: partial(ceiling_step, padded=False),
}
