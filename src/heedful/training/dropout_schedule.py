"""Dropout as a function of the step: its probabilities and its random seed."""

from __future__ import annotations

import hashlib

import torch

from heedful.config import TrainingConfig
from heedful.model.attention import MultiHeadAttention
from heedful.model.embeddings import Embedding
from heedful.model.layers import AddAndNorm
from heedful.model.transformer import Transformer
from heedful.training.schedule import dropout_share, word_dropout_share

_DROPOUT_STREAM = 3  # separates this random stream from those of data/batches.py


def set_dropout(model: Transformer, training: TrainingConfig, step: int) -> None:
    """Set every dropout probability of the model to its scheduled value at a step."""
    share = dropout_share(step, training.dropout_warmup_steps)
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            module.dropout = share * model.config.attention_dropout
        elif isinstance(module, AddAndNorm | Embedding):
            module.dropout = share * model.config.dropout
    word_share = word_dropout_share(step, training.steps, training.dropout_warmup_steps, training.cooldown_steps)
    model.embedding.word_dropout = word_share * model.config.word_dropout


def seed_dropout(seed: int, step: int, batch: int) -> None:
    """Seed torch for one batch of one step: a resumed run draws the same dropout masks."""
    digest = hashlib.blake2b(repr((_DROPOUT_STREAM, seed, step, batch)).encode(), digest_size=7).digest()
    torch.manual_seed(int.from_bytes(digest))
