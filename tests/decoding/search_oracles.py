"""Oracles of decoding: random models small enough for brute force, and plain searches."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import torch
from torch import Tensor

from heedful.config import BOS, EOS, ModelConfig
from heedful.data.batches import pad
from heedful.model.transformer import Transformer

FIRST_WORD = 4  # ids below are special; of them only EOS is ever said


class Found(NamedTuple):
    ids: tuple[int, ...]
    log_probability: float
    score: float


def random_model(seed: int, vocab_size: int = 7, peak: float = 2.0, **shape: int) -> Transformer:
    """Return a random float64 model whose logits have standard deviation about `peak`."""
    sizes = {"N": 1, "d_model": 8, "d_ff": 12, "h": 2} | shape
    model = Transformer(ModelConfig(vocab_size=vocab_size, dropout=0.0, **sizes)).double().eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) * 0.5)
        for layer in (*model.encoder, *model.decoder):
            for name, parameter in layer.named_parameters():
                if name.endswith("norm.weight"):
                    parameter.add_(1.0)
        model.embedding.weight_VD.mul_(2 * peak / sizes["d_model"] ** 0.5)
    return model


def speaks_always(model: Transformer, token: int, never: int | None = None) -> Transformer:
    """Return a model where `token` is always the likeliest and `never` the least likely."""
    with torch.no_grad():
        norm = list(model.decoder)[-1].after_feed_forward.norm
        norm.weight.zero_()
        norm.bias.fill_(1.0)
        model.embedding.weight_VD.mul_(0.1)
        model.embedding.weight_VD[token] = 1.0
        if never is not None:
            model.embedding.weight_VD[never] = -1.0
    return model


def random_sources(seed: int, vocab_size: int, lengths: list[int]) -> list[list[int]]:
    """Return random ids of these lengths, each with the end token (and only it for length 1)."""
    generator = torch.Generator().manual_seed(seed)
    draws = [torch.randint(FIRST_WORD, vocab_size, (length - 1,), generator=generator).tolist() for length in lengths]
    return [[*draw, EOS] for draw in draws]


@torch.no_grad()
def next_log_p(model: Transformer, source: list[int], prefix: tuple[int, ...]) -> Tensor:
    """Return log P of each next token, computed from the whole prefix without cache or batch."""
    return model(torch.tensor([source]), torch.tensor([[BOS, *prefix]]))[0, -1].log_softmax(dim=-1)


def normalised(total: float, length: int, alpha: float, power: bool = False) -> float:
    return total / math.pow(length if power else (5 + length) / 6, alpha)


@torch.no_grad()
def brute_force(model: Transformer, source: list[int], limit: int, alpha: float, power: bool = False) -> list[Found]:
    """Every sequence that ends within the limit, best first."""
    words = range(FIRST_WORD, model.config.vocab_size)
    every = [(*said, EOS) for n in range(limit) for said in itertools.product(words, repeat=n)]
    targets = pad([list(ids) for ids in every])
    decoder_input = torch.cat([torch.full((len(every), 1), BOS), targets[:, :-1]], dim=1)
    sources = torch.tensor([source]).expand(len(every), -1)
    log_p = model(sources, decoder_input).log_softmax(dim=-1)
    found = []
    for row, ids in enumerate(every):
        total = sum(log_p[row, place, token].item() for place, token in enumerate(ids))
        found.append(Found(ids, total, normalised(total, len(ids), alpha, power)))
    return sorted(found, key=lambda item: -item.score)


def plain_greedy(model: Transformer, source: list[int], limit: int, alpha: float) -> Found:
    said: tuple[int, ...] = ()
    total = 0.0
    while EOS not in said:
        log_p = next_log_p(model, source, said)
        words = [EOS] if len(said) + 1 == limit else [EOS, *range(FIRST_WORD, len(log_p))]
        best = max(words, key=lambda token: log_p[token].item())
        said, total = (*said, best), total + log_p[best].item()
    return Found(said, total, normalised(total, len(said), alpha))


def plain_beam(model: Transformer, source: list[int], limit: int, beam: int, alpha: float) -> tuple[list[Found], int]:
    """Return the result and step count of beam search without early termination.

    It ends when no hypothesis is live, or when W have finished and no live one is ahead.
    """
    live: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    ended: list[Found] = []
    steps = 0
    while live:
        ranked = sorted((found.score for found in ended), reverse=True)
        if len(ended) >= beam and ranked[0] >= normalised(live[0][1], steps, alpha):
            break
        steps += 1
        extensions = []
        for prefix, total in live:
            log_p = next_log_p(model, source, prefix)
            words = [EOS] if steps == limit else [EOS, *range(FIRST_WORD, len(log_p))]
            extensions += [((*prefix, token), total + log_p[token].item()) for token in words]
        extensions = sorted(extensions, key=lambda item: -item[1])[: 2 * beam]
        for ids, total in extensions[:beam]:
            if ids[-1] == EOS:
                ended.append(Found(ids, total, normalised(total, len(ids), alpha)))
        live = [extension for extension in extensions if extension[0][-1] != EOS][:beam]
    return sorted(ended, key=lambda item: -item.score), steps
