"""R15: beam search equals brute force, beam 1 greedy, and the cache recomputation."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from fault_injection import count
from search_oracles import brute_force, next_log_p, plain_greedy, random_model, random_sources

from heedful.config import BOS, EOS
from heedful.data.batches import pad
from heedful.decoding import search
from heedful.decoding.cache import DecoderCache
from heedful.decoding.decoder import SearchDecoder
from heedful.decoding.search import beam_search

pytestmark = pytest.mark.faults

MODELS = count(100, 1_000)
ALPHAS = (0.0, 0.3, 0.6, 1.0, 2.0)


def differences(seed: int, width: int | None = None) -> int:
    """Sentences of one tiny model whose best translation is not that of brute force.

    One source is empty.
    """
    vocab_size, alpha = 6 + seed % 2, ALPHAS[seed % len(ALPHAS)]
    model = random_model(seed, vocab_size, peak=0.5 + seed % 4)
    sources = random_sources(seed, vocab_size, [1, 3, 2])
    every = [brute_force(model, source, len(source) + 1, alpha) for source in sources]
    found = beam_search(model, sources, width or max(map(len, every)), alpha, max_extra=1)
    wrong = 0
    for hypotheses, best in zip(found, every, strict=True):
        wrong += hypotheses[0].ids != best[0].ids or abs(hypotheses[0].score - best[0].score) > 1e-4
    return wrong


@pytest.mark.parametrize("part", range(2))
def test_full_width_is_brute_force(part: int, counted: Callable[[int, str], None]) -> None:
    seeds = range(1_000 + part, 1_000 + MODELS, 2)
    assert sum(differences(seed) for seed in seeds) == 0
    counted(len(seeds), "models")


def test_beam_of_one_is_greedy_is_plain() -> None:
    for seed in range(2_000, 2_000 + MODELS // 4):
        model, alpha = random_model(seed, 9, peak=1.0 + seed % 3), ALPHAS[seed % 5]
        sources = random_sources(seed, 9, [4, 1, 2])
        plain = [plain_greedy(model, source, len(source) + 3, alpha) for source in sources]
        one = [found[0] for found in beam_search(model, sources, 1, alpha, max_extra=3)]
        assert [h.ids for h in one] == [h.ids for h in plain]


@torch.no_grad()
def test_the_cache_is_recomputation() -> None:
    for seed in range(MODELS // 4):
        model, sources = random_model(seed, 9), random_sources(seed, 9, [3, 1])
        cache = DecoderCache(SearchDecoder(model), beam=1)
        cache.admit(model.encode(pad(sources)), [0, 1])
        said = torch.randint(4, 9, (2, 4), generator=torch.Generator().manual_seed(seed))
        for length in range(4):
            last = said[:, length - 1] if length else torch.full((2,), BOS)
            stepped = cache.step(last, torch.full((2,), length)).log_softmax(-1)
            whole = [
                next_log_p(model, source, tuple(row[:length].tolist()))
                for source, row in zip(sources, said, strict=True)
            ]
            torch.testing.assert_close(stepped, torch.stack(whole), rtol=0.0, atol=1e-9)


def test_an_empty_source_has_a_translation() -> None:
    for seed in range(MODELS // 4):
        [[best]] = beam_search(random_model(seed, 8), [[EOS]], 4, 0.6, max_extra=5)
        assert best.ids[-1] == EOS


def test_control_a_narrow_beam() -> None:
    """What is compared can differ: a beam of one misses the best of some models."""
    assert sum(differences(seed, width=1) for seed in range(1_000, 1_060)) > 0


def test_control_a_cache_that_is_not_reordered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DecoderCache, "follow", lambda self, origins: None)
    assert sum(differences(seed) for seed in range(1_000, 1_060)) > 0


def test_control_stopping_at_the_first_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search._Beams, "_over", lambda self: self._state.finished_B > 0)
    assert sum(differences(seed) for seed in range(1_000, 1_060)) > 0
