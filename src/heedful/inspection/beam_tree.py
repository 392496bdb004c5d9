"""Beam search of one sentence with a record of every extension it considered.

The rules are those of `decoding/search.py`, whose result is the oracle in the tests. This one is written for reading.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch

from heedful.config import BOS, EOS
from heedful.decoding.cache import DecoderCache
from heedful.decoding.inference_model import SearchModel
from heedful.decoding.search import length_penalty
from heedful.decoding.top_tokens import top_tokens

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
LIVE, FINISHED, PRUNED = "live", "finished", "pruned"


@dataclass
class Node:
    """An extension of a hypothesis by one token."""

    parent: int  # index of the node it extends; -1: the start
    token: int
    step: int  # tokens of the hypothesis
    log_probability: float  # of the whole hypothesis
    fate: str  # LIVE: extended at the next step; FINISHED: ended; PRUNED: not among the best
    score: float | None = None  # log-probability divided by the length penalty, if FINISHED


@dataclass
class BeamTree:
    """All nodes in the order of search, and the finished node that won."""

    beam: int
    alpha: float
    nodes: list[Node] = field(default_factory=list)
    best: int = -1

    def ids(self, node: int) -> list[int]:
        """Return the tokens from the start to a node."""
        ids: list[int] = []
        while node >= 0:
            ids.append(self.nodes[node].token)
            node = self.nodes[node].parent
        return ids[::-1]


@torch.inference_mode()
def beam_tree(model: SearchModel, source: list[int], beam: int, alpha: float, max_extra: int) -> BeamTree:
    """Search the best translation of one sentence."""
    tree, limit = BeamTree(beam, alpha), len(source) + max_extra
    cache = DecoderCache(model.decoder, beam)
    cache.admit(model.encoder.encode(torch.tensor([source], device=model.device)), [0])
    live = [-1]  # nodes that the next step extends; -1 is the start
    for step in range(1, limit + 1):
        log_p_WC, tokens_WC = _likeliest(tree, live, cache, step, limit, model.device)
        before = live
        live = _extend(tree, before, log_p_WC, tokens_WC, step)
        if not live or _is_over(tree, live, step, limit):
            break
        if beam > 1:
            origins = [before.index(tree.nodes[node].parent) for node in live]
            cache.follow(torch.tensor([_filled(origins, beam, 0)], device=model.device))
    finished = [number for number, node in enumerate(tree.nodes) if node.fate == FINISHED]
    tree.best = max(finished, key=lambda number: tree.nodes[number].score or -math.inf, default=-1)
    return tree


def _filled(values: list[int], length: int, value: int) -> list[int]:
    return [*values, *[value] * (length - len(values))]


def _likeliest(
    tree: BeamTree, live: list[int], cache: DecoderCache, step: int, limit: int, device: torch.device
) -> tuple[Floats, Ints]:
    """Return log-probabilities and ids of the 2W likeliest next tokens per live hypothesis."""
    W = tree.beam
    last = _filled([BOS if node < 0 else tree.nodes[node].token for node in live], W, BOS)
    positions = torch.full((W,), step - 1, device=device)
    logits_WV = cache.step(torch.tensor(last, device=device), positions)
    at_limit = torch.ones(W, dtype=torch.bool, device=device) if step == limit else None  # it may only end
    log_p_WC, tokens_WC = top_tokens(logits_WV, at_limit, 2 * W)
    return log_p_WC.cpu().numpy(), tokens_WC.cpu().numpy()


def _extend(tree: BeamTree, live: list[int], log_p_WC: Floats, tokens_WC: Ints, step: int) -> list[int]:
    """Add the 2W best extensions to the tree, and return the nodes that live on."""
    W, C = log_p_WC.shape
    totals = [0.0 if node < 0 else tree.nodes[node].log_probability for node in live]
    totals_W = np.array([*totals, *[-math.inf] * (W - len(live))], np.float32)
    totals_R = (totals_W[:, None] + log_p_WC).reshape(-1)
    alive: list[int] = []
    for rank, place in enumerate(np.argsort(-totals_R, kind="stable")[: 2 * W].tolist()):
        total, token = float(totals_R[place]), int(tokens_WC.reshape(-1)[place])
        if not total > -math.inf:
            break
        node = Node(live[place // C], token, step, total, PRUNED)
        if token == EOS and rank < W:
            node.fate, node.score = FINISHED, float(total / length_penalty(step, tree.alpha))
        elif token != EOS and len(alive) < W:
            node.fate = LIVE
            alive.append(len(tree.nodes))
        tree.nodes.append(node)
    return alive


def _is_over(tree: BeamTree, live: list[int], step: int, limit: int) -> bool:
    """Return whether no live hypothesis can win any more.

    Log-probabilities only fall, so a live hypothesis can at best keep its own up to the longest length. Once W have
    finished, it must be ahead as it stands.
    """
    scores = [node.score for node in tree.nodes if node.score is not None]
    length = limit if len(scores) < tree.beam else step
    best_live = max(tree.nodes[node].log_probability for node in live)
    attainable: float = best_live / length_penalty(length, tree.alpha)
    return max(scores, default=-math.inf) >= attainable
