"""The cache against recomputation of the whole prefix."""

from __future__ import annotations

import pytest
import torch
from random_models import next_log_p, random_model, random_sources

from heedful.config import BOS, ModelConfig
from heedful.data.batches import pad
from heedful.decoding.cache import DecoderCache
from heedful.decoding.decoder import SearchDecoder
from heedful.model.transformer import Transformer

V = 11


@pytest.mark.parametrize("lengths", [[4], [5, 5, 5], [1, 6, 3]], ids=["one", "unpadded", "padded"])
@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("seed", range(3))
@torch.no_grad()
def test_steps_equal_recomputation_while_rows_move_and_sentences_come_and_go(
    lengths: list[int], beam: int, seed: int
) -> None:
    """A search that takes random turns: each row goes on from a random row of its sentence; some leave, some come."""
    model = random_model(seed, V, N=2)
    sources = random_sources(seed, V, lengths)
    generator = torch.Generator().manual_seed(seed)
    cache = DecoderCache(SearchDecoder(model), beam)
    cache.admit(model.encode(pad(sources)))
    prefixes: list[list[tuple[int, ...]]] = [[()] * beam for _ in sources]
    for step in range(1, 14):  # beyond the room of a new cache
        flat = [(source, prefix) for source, rows in zip(sources, prefixes, strict=True) for prefix in rows]
        last = torch.tensor([prefix[-1] if prefix else BOS for _, prefix in flat])
        log_p = cache.step(last, torch.tensor([len(prefix) for _, prefix in flat])).log_softmax(dim=-1)
        expected = torch.stack([next_log_p(model, source, prefix) for source, prefix in flat])
        torch.testing.assert_close(log_p, expected, rtol=0.0, atol=1e-9)

        origins = torch.randint(0, beam, (len(sources), beam), generator=generator)
        pieces = torch.randint(4, V, (len(sources), beam), generator=generator)
        prefixes = [
            [(*rows[origin], piece) for origin, piece in zip(origins[b].tolist(), pieces[b].tolist(), strict=True)]
            for b, rows in enumerate(prefixes)
        ]
        cache.follow(origins)
        if step in (3, 5, 9):  # one leaves, at 9 the oldest; and with it what only it needed
            leaving = 0 if step == 9 else int(torch.randint(0, len(sources), (1,), generator=generator))
            kept = [b for b in range(len(sources)) if b != leaving]
            sources, prefixes = [sources[b] for b in kept], [prefixes[b] for b in kept]
            steps, longest = max((len(rows[0]) for rows in prefixes), default=0), max(map(len, sources), default=0)
            cache.keep(torch.tensor(kept, dtype=torch.long), steps, longest)
            assert cache.length == steps
            assert all(kv.k_BHSK.shape[2] == longest for kv in cache._memory)
            assert all(kv.k_BHSK.shape[2] == 2 * steps * beam for kv in cache._past)
        if step in (2, 5, 7, 9):  # longer and shorter ones than those that are here
            new = random_sources(100 + step, V, [step, 2] if step % 2 else [2])
            cache.admit(model.encode(pad(new)))
            sources, prefixes = sources + new, prefixes + [[()] * beam for _ in new]


@pytest.mark.parametrize("shape", [{"d_k": 3, "d_v": 5}, {"positions": "learned"}])
@torch.no_grad()
def test_every_shape_of_model(shape: dict[str, object]) -> None:
    torch.manual_seed(1)
    model = Transformer(ModelConfig(vocab_size=V, N=2, d_model=8, d_ff=12, h=2, **shape)).double().eval()
    source, target = pad(random_sources(1, V, [4, 2])), torch.randint(4, V, (2, 6))
    target[:, 0] = BOS
    cache = DecoderCache(SearchDecoder(model), beam=1)
    cache.admit(model.encode(source))
    stepwise = torch.stack([cache.step(target[:, t], torch.full((2,), t)) for t in range(6)], dim=1)
    torch.testing.assert_close(stepwise, model(source, target), rtol=0.0, atol=1e-9)
