"""The cache against recomputation of the whole prefix."""

from __future__ import annotations

import pytest
import torch
from search_oracles import next_log_p, random_model, random_sources

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
def test_steps_match_recomputation_while_rows_move_and_sentences_enter_and_leave(
    lengths: list[int], beam: int, seed: int
) -> None:
    """Reorder hypotheses at random at each step, while sentences leave and enter."""
    model = random_model(seed, V, N=2)
    generator = torch.Generator().manual_seed(seed)
    cache = DecoderCache(SearchDecoder(model), beam)
    sources = random_sources(seed, V, lengths)
    cache.admit(model.encode(pad(sources)), list(range(len(sources))))
    prefixes: list[list[tuple[int, ...]]] = [[()] * beam for _ in sources]
    cut = False
    for step in range(1, 30):  # exceeds the initial capacity more than once
        flat = [(source, prefix) for source, rows in zip(sources, prefixes, strict=True) for prefix in rows]
        last = torch.tensor([prefix[-1] if prefix else BOS for _, prefix in flat])
        log_p = cache.step(last, torch.tensor([len(prefix) for _, prefix in flat])).log_softmax(dim=-1)
        expected = torch.stack([next_log_p(model, source, prefix) for source, prefix in flat])
        torch.testing.assert_close(log_p, expected, rtol=0.0, atol=1e-9)

        origins = torch.randint(0, beam, (len(sources), beam), generator=generator)
        tokens = torch.randint(4, V, (len(sources), beam), generator=generator)
        prefixes = [
            [(*rows[origin], token) for origin, token in zip(origins[b].tolist(), tokens[b].tolist(), strict=True)]
            for b, rows in enumerate(prefixes)
        ]
        cache.follow(origins)
        if step in (2, 5, 7, 9, 20):  # new sentences after all others, longer and shorter ones
            new = random_sources(100 + step, V, [step, 2] if step % 2 else [2])
            cache.admit(model.encode(pad(new)), [len(sources) + n for n in range(len(new))])
            sources, prefixes = sources + new, prefixes + [[()] * beam for _ in new]
        if step in (4, 6, 12):  # in the row of another one
            row = int(torch.randint(0, len(sources), (1,), generator=generator))
            [sources[row]] = new = random_sources(200 + step, V, [3])
            prefixes[row] = [()] * beam
            cache.admit(model.encode(pad(new)), [row])
        if step in (6, 9, 13, 15, 16, 17):  # remove one, the oldest last
            leaving = 0 if step > 13 else int(torch.randint(0, len(sources), (1,), generator=generator))
            kept = [b for b in range(len(sources)) if b != leaving]
            sources, prefixes = [sources[b] for b in kept], [prefixes[b] for b in kept]
            cache.keep(kept)
        if step in (3, 9, 12, 14, 15, 16, 17):  # and drop unused slots
            steps, longest = max(len(rows[0]) for rows in prefixes), max(map(len, sources))
            cut = cut or (steps, longest) < (cache.length, cache._longest)
            cache.narrow(steps, longest)
            assert cache.length == steps
            assert cache._longest == longest
    assert cut


@torch.no_grad()
def test_cache_does_not_grow_with_finished_sentences() -> None:
    model = random_model(1, V)
    cache = DecoderCache(SearchDecoder(model), beam=2)
    for _ in range(40):
        cache.admit(model.encode(pad([[4, 5, 3]])), [0])
        for t in range(5):
            cache.step(torch.full((2,), BOS), torch.full((2,), t))
        cache.narrow(0, 0)
    assert cache._memory[0].shape[1] == cache._past[0].shape[1] == 1
    assert cache._past[0].shape[3] <= 4 * 5 * 2


@torch.no_grad()
def test_capacity_for_long_sentences_is_not_kept_for_short_ones() -> None:
    model = random_model(1, V)
    cache = DecoderCache(SearchDecoder(model), beam=1)
    cache.admit(model.encode(pad([[4] * 50])), [0])
    for t in range(100):
        cache.step(torch.full((1,), BOS), torch.full((1,), t))
    cache.narrow(0, 0)
    cache.admit(model.encode(pad([[4, 3]] * 60)), list(range(60)))
    assert cache._past[0].shape[3] <= 8
    assert cache._memory[0].shape[3] == 2


@torch.no_grad()
def test_new_sentence_is_unaffected_by_the_previous_one_in_its_row() -> None:
    model = random_model(1, V)
    cache = DecoderCache(SearchDecoder(model), beam=1)
    cache.admit(model.encode(pad([[4, 5, 6, 3]])), [0])
    cache.step(torch.tensor([BOS]), torch.tensor([0]))
    for layer in (*cache._memory, *cache._past):
        layer.fill_(torch.nan)
    cache.admit(model.encode(pad([[5, 3]])), [0])
    logits = cache.step(torch.tensor([BOS]), torch.tensor([0]))
    torch.testing.assert_close(logits.log_softmax(-1)[0], next_log_p(model, [5, 3], ()), rtol=0.0, atol=1e-9)


@pytest.mark.parametrize(
    "shape", [{"d_k": 3, "d_v": 5}, {"d_k": 5, "d_v": 3}, {"positions": "learned"}, {"N_decoder": 1}, {"N_decoder": 3}]
)
@torch.no_grad()
def test_all_model_shapes(shape: dict[str, object]) -> None:
    torch.manual_seed(1)
    model = Transformer(ModelConfig(vocab_size=V, N=2, d_model=8, d_ff=12, h=2, **shape)).double().eval()
    source, target = pad(random_sources(1, V, [4, 2])), torch.randint(4, V, (2, 6))
    target[:, 0] = BOS
    cache = DecoderCache(SearchDecoder(model), beam=1)
    cache.admit(model.encode(source), [0, 1])
    stepwise = torch.stack([cache.step(target[:, t], torch.full((2,), t)) for t in range(6)], dim=1)
    torch.testing.assert_close(stepwise, model(source, target), rtol=0.0, atol=1e-9)
