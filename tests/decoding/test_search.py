"""Greedy and beam search against brute force and against plain searches (R15).

The plain searches have no cache, batch or shortcut.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import pytest
import torch
from search_oracles import (
    Found,
    brute_force,
    plain_beam,
    plain_greedy,
    random_model,
    random_sources,
    speaks_always,
)

from heedful.config import EOS
from heedful.decoding.cache import DecoderCache
from heedful.decoding.encoder import SearchEncoder
from heedful.decoding.inference_model import SearchModel
from heedful.decoding.search import Hypothesis, beam_search, length_penalty, power_penalty
from heedful.model.transformer import Memory

ALPHAS = (0.0, 0.3, 0.6, 1.0, 2.0)


def assert_same(found: Sequence[Hypothesis], expected: Sequence[Found]) -> None:
    assert [h.ids for h in found] == [e.ids for e in expected]
    assert [h.log_probability for h in found] == pytest.approx([e.log_probability for e in expected], abs=1e-4)
    assert [h.score for h in found] == pytest.approx([e.score for e in expected], abs=1e-4)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The number of rows of every decoder step."""
    rows: list[int] = []
    step = DecoderCache.step

    def counted(self: DecoderCache, last_R: torch.Tensor, position_R: torch.Tensor) -> torch.Tensor:
        rows.append(len(last_R))
        return step(self, last_R, position_R)

    monkeypatch.setattr(DecoderCache, "step", counted)
    return rows


@pytest.mark.parametrize("power", [False, True])
@pytest.mark.parametrize("first", range(0, 120, 20))
def test_full_width_beam_matches_brute_force(first: int, power: bool) -> None:
    """With a beam as wide as the number of sequences, the whole n-best list is exact."""
    for seed in range(first, first + 20):
        vocab_size = 6 + seed % 2
        model = random_model(seed, vocab_size, peak=0.5 + seed % 4)
        sources = random_sources(seed, vocab_size, [1, 3, 2])
        alpha = ALPHAS[seed % len(ALPHAS)]
        everything = [brute_force(model, source, len(source) + 1, alpha, power) for source in sources]
        penalty = power_penalty if power else length_penalty
        width = max(map(len, everything))
        for n_best in (1, 3, width):
            found = beam_search(model, sources, width, alpha, max_extra=1, n_best=n_best, penalty=penalty)
            for hypotheses, every in zip(found, everything, strict=True):
                assert_same(hypotheses, every[:n_best])


def test_beam_of_one_is_greedy() -> None:
    for seed in range(60):
        model, alpha = random_model(seed, 9, peak=1.0 + seed % 3), ALPHAS[seed % len(ALPHAS)]
        sources = random_sources(seed, 9, [4, 1, 2, 4, 3])
        found = beam_search(model, sources, beam=1, alpha=alpha, max_extra=3)
        assert_same(
            [best for [best] in found], [plain_greedy(model, source, len(source) + 3, alpha) for source in sources]
        )


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_early_termination_does_not_change_results(first: int, steps: list[int]) -> None:
    """Alone and without early termination the search takes more steps and finds the same."""
    taken = needed = 0
    for seed in range(first, first + 10):
        beam = 2 + seed % 4
        n_best = 1 + seed % beam
        model = random_model(seed, 10, peak=1.0 + seed % 3)
        for source in random_sources(seed, 10, [1, 5]):
            steps.clear()
            ((*found,),) = beam_search(model, [source], beam, ALPHAS[seed % 5], max_extra=6, n_best=n_best)
            expected, plain_steps = plain_beam(model, source, len(source) + 6, beam, ALPHAS[seed % 5])
            assert_same(found, expected[:n_best])
            assert len(steps) <= plain_steps
            taken, needed = taken + len(steps), needed + plain_steps
    assert taken < needed  # otherwise nothing was tested


@pytest.mark.parametrize("seed", [32, 143, 179])
def test_longer_hypothesis_may_still_win_by_length_penalty(seed: int) -> None:
    """With α = 2 and fewer than W finished, search continues though the live ones are behind."""
    model = random_model(seed, 9, peak=1.0 + seed % 4)
    [source] = random_sources(seed, 9, [3])
    for beam in (4, 6):
        found = beam_search(model, [source], beam, alpha=2.0, max_extra=12)[0]
        assert_same(found, plain_beam(model, source, 15, beam, alpha=2.0)[0][:1])


@pytest.mark.parametrize("beam", [1, 4])
def test_finished_sentences_leave_the_batch(beam: int, steps: list[int]) -> None:
    model = random_model(5, 12, peak=3.0)
    source = random_sources(5, 12, [3, 9, 1, 6, 12, 2])
    found = beam_search(model, source, beam, max_extra=4)
    assert len(found) == 6
    assert steps[0] == 6 * beam
    assert steps == sorted(steps, reverse=True)
    assert len(set(steps)) > 2
    assert all(rows % beam == 0 for rows in steps)


def test_rows_are_removed_when_more_than_an_eighth_is_free(steps: list[int]) -> None:
    """Each step ends a sentence: 3 of 16 rows must be free, 2 of 8 to 15, 1 of fewer."""
    model = speaks_always(random_model(1, 8), token=6, never=EOS)
    beam_search(model, random_sources(1, 8, list(range(1, 17))), beam=1, max_extra=0)
    assert steps == [16, 16, 16, 13, 13, 11, 11, 9, 9, 7, 6, 5, 4, 3, 2, 1]


@pytest.mark.parametrize("max_extra", [0, 3])
@pytest.mark.parametrize("beam", [1, 3])
def test_length_limit_is_source_tokens_plus_max_extra(beam: int, max_extra: int) -> None:
    """The model never ends by itself. Padding does not count."""
    model = speaks_always(random_model(1, 8), token=6, never=EOS)
    sources = random_sources(1, 8, [5, 1, 3])
    found = [h[0] for h in beam_search(model, sources, beam, max_extra=max_extra)]
    for hypothesis, source in zip(found, sources, strict=True):
        assert hypothesis.ids == (*[6] * (len(source) + max_extra - 1), EOS)


def test_model_that_ends_immediately(steps: list[int]) -> None:
    model = speaks_always(random_model(1, 8), token=EOS)
    source = random_sources(1, 8, [5, 1, 3])
    assert [best.ids for [best] in beam_search(model, source, beam=1)] == [(EOS,)] * 3
    assert len(steps) == 1
    assert [h[0].ids for h in beam_search(model, source)] == [(EOS,)] * 3


def test_empty_source() -> None:
    model = random_model(3, 9)
    source = [[EOS]]
    assert_same(beam_search(model, source, 1, max_extra=4)[0], [plain_greedy(model, [EOS], 5, 0.6)])
    assert_same(beam_search(model, source, 3, max_extra=4)[0], plain_beam(model, [EOS], 5, 3, 0.6)[0][:1])


@pytest.mark.parametrize("beam", [2, 5])
def test_scores_match_the_returned_tokens_and_are_sorted(beam: int) -> None:
    model = random_model(7, 15, peak=1.5)
    sources = random_sources(7, 15, [6, 2, 4])
    found = beam_search(model, sources, beam, alpha=0.6, max_extra=6, n_best=beam)
    for source, hypotheses in zip(sources, found, strict=True):
        assert len({h.ids for h in hypotheses}) == len(hypotheses) == beam
        assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)
        for h in hypotheses:
            log_p = model(torch.tensor([source]), torch.tensor([[2, *h.ids[:-1]]]))[0].log_softmax(-1)
            total = sum(log_p[place, token].item() for place, token in enumerate(h.ids))
            assert h.log_probability == pytest.approx(total, abs=1e-4)
            assert h.score == pytest.approx(total / ((5 + len(h.ids)) / 6) ** 0.6, abs=1e-4)


def test_fewer_hypotheses_if_fewer_exist() -> None:
    """One word and at most two tokens: two sequences in all."""
    (found,) = beam_search(random_model(1, 5), [[EOS]], beam=4, max_extra=1, n_best=4)
    assert sorted(h.ids for h in found) == [(EOS,), (4, EOS)]


@pytest.mark.parametrize("beam", [1, 4])
def test_special_tokens_are_never_generated(beam: int) -> None:
    for special in (0, 1, 2):
        model = speaks_always(random_model(2, 8), token=special, never=EOS)
        source = random_sources(2, 8, [3, 1])
        found = [h[0] for h in beam_search(model, source, beam, max_extra=4)]
        assert all(set(h.ids[:-1]).isdisjoint({0, 1, 2, EOS}) for h in found)


@pytest.mark.parametrize("beam", [1, 3])
def test_search_with_nan_weights_terminates(beam: int) -> None:
    model = random_model(1, 8)
    with torch.no_grad():
        model.embedding.weight_VD.fill_(math.nan)
    assert beam_search(model, random_sources(1, 8, [3, 1]), beam, max_extra=4) == [[], []]


def test_defaults_match_section_6_1() -> None:
    """Beam 4, α = 0.6, output at most 50 tokens longer than the source; one hypothesis."""
    for seed in range(12):
        model = random_model(seed, 9, peak=1.5 + seed % 3)
        [source] = random_sources(seed, 9, [4])
        assert_same(beam_search(model, [source])[0], plain_beam(model, source, 54, beam=4, alpha=0.6)[0][:1])
    endless = speaks_always(random_model(1, 8), token=6, never=EOS)
    assert [len(best.ids) for [best] in beam_search(endless, random_sources(1, 8, [5, 1]))] == [55, 51]


def test_prepared_search_model_is_reused() -> None:
    model, sources = random_model(1, 9), random_sources(1, 9, [4, 2])
    expected = beam_search(model, sources)
    ready = SearchModel(model)
    with torch.no_grad():
        for layer in model.decoder:
            layer.self_attention.value.weight.zero_()  # joined with others when the search model was made
    assert beam_search(ready, sources) == expected
    assert beam_search(model, sources) != expected


def test_search_does_not_track_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, encode = [], SearchEncoder.encode

    def watched(self: SearchEncoder, source_BS: torch.Tensor) -> Memory:
        seen.append(torch.is_inference_mode_enabled())
        return encode(self, source_BS)

    monkeypatch.setattr(SearchEncoder, "encode", watched)
    beam_search(random_model(1, 9), random_sources(1, 9, [3]))
    assert seen == [True]


@pytest.mark.parametrize("seed", [3, 34, 53])
def test_the_best_of_several_is_the_best_alone(seed: int) -> None:
    """Seeds with which a search for two that goes on longer finds a better one."""
    model, sources = random_model(seed, 9, peak=0.8 + seed % 3 * 0.5), random_sources(seed, 9, [5])
    [[alone]] = beam_search(model, sources, 2, 2.5, 14)
    [[best, second]] = beam_search(model, sources, 2, 2.5, 14, n_best=2)
    assert best == alone
    assert best.score >= second.score


def test_no_sentences() -> None:
    assert beam_search(random_model(1, 9), []) == []


def test_length_penalty() -> None:
    assert length_penalty(1, 0.6) == 1.0
    assert length_penalty(7, 0.0) == 1.0
    assert length_penalty(7, 1.0) == pytest.approx(2.0)
    assert length_penalty(19, 0.5) == pytest.approx(2.0)


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("tokens", [1, 40, 130])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_waiting_sentences_enter_when_others_end(
    beam: int, tokens: int, positions: str, steps: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results equal those of one batch and of single sentences, within the memory budget."""
    sources = random_sources(5, 12, [3, 9, 1, 6, 30, 2, 4, 4, 7, 1, 5, 8, 3, 2, 10] * 3)
    model = random_model(5, 12, peak=3.0, positions=positions, max_positions=max(map(len, sources)) + 4)
    widths, held = [], []
    step = DecoderCache.step

    def measured(self: DecoderCache, last_R: torch.Tensor, position_R: torch.Tensor) -> torch.Tensor:
        widths.append(len(last_R) * self._longest)
        held.append(beam * self._memory[0][0, :, 0, :, 0].numel())
        return step(self, last_R, position_R)

    together = beam_search(model, sources, beam, max_extra=4)
    alone = [beam_search(model, [source], beam, max_extra=4)[0] for source in sources]
    monkeypatch.setattr(DecoderCache, "step", measured)
    found = beam_search(model, sources, beam, max_extra=4, tokens=tokens)
    for one, expected, other in zip(found, together, alone, strict=True):
        assert [h.ids for h in one] == [h.ids for h in expected] == [h.ids for h in other]
        assert [h.score for h in one] == pytest.approx([h.score for h in other], abs=1e-6)
    assert max(widths) <= max(tokens, beam * max(map(len, sources)))
    assert max(held) <= 1.25 * max(tokens, beam * max(map(len, sources)))  # with the room for more


def test_continuous_batching_takes_fewer_steps(steps: list[int]) -> None:
    model = random_model(1, 12, peak=3.0)
    sources = random_sources(1, 12, [6] * 48)
    beam_search(model, sources, beam=2, max_extra=12, tokens=96)
    filled = len(steps)
    steps.clear()
    for start in range(0, 48, 8):
        beam_search(model, sources[start : start + 8], beam=2, max_extra=12)
    assert filled < 0.8 * len(steps)
