"""The recorded beam search, compared with the real one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import pytest

from heedful.config import EOS
from heedful.decoding.inference_model import SearchModel
from heedful.decoding.search import beam_search
from heedful.inspection.beam_tree import FINISHED, LIVE, PRUNED, beam_tree
from heedful.storage.model_directory import Model

SOURCES = [[7, 8, 9, EOS], [20, 21, 22, 23, 24, 25, EOS], [EOS], [40, EOS], [99, 98, 97, 96, EOS]]


@pytest.mark.parametrize("beam", [1, 2, 4, 8])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.2])
def test_the_result_is_that_of_the_search(random_model: Callable[..., Model], beam: int, alpha: float) -> None:
    model = SearchModel(random_model().transformer)
    for source in SOURCES:
        ((expected, *_),) = beam_search(model, [source], beam, alpha, max_extra=8)
        tree = beam_tree(model, source, beam, alpha, max_extra=8)
        best = tree.nodes[tree.best]
        assert tree.ids(tree.best) == list(expected.ids)
        assert best.log_probability == pytest.approx(expected.log_probability, abs=1e-4)
        assert best.score == pytest.approx(expected.score, abs=1e-4)


def test_every_node_has_a_fate(random_model: Callable[..., Model]) -> None:
    tree = beam_tree(SearchModel(random_model().transformer), SOURCES[1], 4, 0.6, max_extra=8)
    steps = range(1, max(node.step for node in tree.nodes) + 1)
    for step in steps:
        fates = Counter(node.fate for node in tree.nodes if node.step == step)
        assert fates[LIVE] == 4 or step == steps[-1]
        assert sum(fates.values()) <= 8
    for number, node in enumerate(tree.nodes):
        assert (node.score is not None) == (node.fate == FINISHED) == (node.token == EOS and node.score is not None)
        if node.parent >= 0:
            parent = tree.nodes[node.parent]
            assert parent.fate == LIVE
            assert parent.step == node.step - 1
            assert node.log_probability <= parent.log_probability + 1e-6
        if node.score is not None:
            assert node.score == pytest.approx(node.log_probability / ((5 + len(tree.ids(number))) / 6) ** 0.6)
    assert any(node.fate == PRUNED for node in tree.nodes)


def test_log_probabilities_are_those_of_teacher_forcing(random_model: Callable[..., Model]) -> None:
    from heedful.decoding.translator import Translator

    model = random_model()
    tree = beam_tree(SearchModel(model.transformer), SOURCES[1], 3, 0.6, max_extra=8)
    ids = tree.ids(tree.best)
    ((total, _),) = Translator(model)._score_batch([(SOURCES[1], ids)])
    assert math.isclose(total, tree.nodes[tree.best].log_probability, abs_tol=1e-3)
