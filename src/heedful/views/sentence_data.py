"""The data of the web app's Attention and Inside views, as values for JSON."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heedful.atomic_files import write_durably
from heedful.decoding.translator import Translator
from heedful.inspection.alignment_error import Link, head_alignment_errors
from heedful.inspection.beam_tree import FINISHED, BeamTree
from heedful.inspection.gold_links import gold_links
from heedful.inspection.head_labels import label_heads
from heedful.inspection.inspector import Inspection, Inspector
from heedful.inspection.next_tokens import Candidates
from heedful.inspection.step_by_step import step_by_step
from heedful.inspection.switched_heads import KINDS, Head
from heedful.views.attended_sentence import AttendedSentence
from heedful.views.cross_attention_figure import sharpest_layer
from heedful.views.word_attention import group_tokens, word_weights


def sentence_data(inspector: Inspector, sentence: AttendedSentence) -> dict[str, Any]:
    """Return everything that the views show without asking the server again."""
    if sentence.inspection is None:
        return {"source_text": sentence.source}
    with inspector.computing():
        return _inspected_data(inspector.translator, sentence, sentence.inspection)


def _inspected_data(translator: Translator, sentence: AttendedSentence, found: Inspection) -> dict[str, Any]:
    attention, config, text = found.attention, translator.model.transformer.config, translator.model.text
    source, target = _side(attention.source), _side(attention.target)
    links = gold_links(sentence.source, sentence.target, source["words"], target["words"])
    return {
        **{name: getattr(config, name) for name in ("h", "d_model", "d_k", "d_v", "d_ff", "vocab_size")},
        "layers": {kind: len(getattr(attention, kind)) for kind in KINDS},
        "first_layer": sharpest_layer(attention.cross),
        "source": source,
        "target": target,
        "source_text": sentence.source,
        "target_text": sentence.target,
        "source_language": text.source_language,
        "target_language": text.target_language,
        **{kind: _packed(getattr(attention, kind)) for kind in KINDS},
        "labels": {kind: _labels(found, kind) for kind in KINDS},
        "gold": links,
        "alignment_errors": _alignment_errors(found, source["owners"], target["owners"], links),
        **_effect(translator, found),
        "beam": _beam(translator, found.tree),
        "next": [[_candidates(translator, one) for one in layer] for layer in found.next],
    }


def contrast_data(inspector: Inspector, found: Inspection, position: int, other: int) -> dict[str, Any]:
    """Return why the token at a position of the target was chosen rather than another."""
    names = inspector.translator.model.tokenizer.tokens
    result = inspector.contrast(found.source, found.target, position, other, found.off)
    return {
        "position": position,
        "chosen": names([found.target[position]])[0],
        "other": names([other])[0],
        "id": other,
    } | {name: _rounded(value) for name, value in result._asdict().items()}


def steps_data(inspector: Inspector, found: Inspection, place: Head, positions: Sequence[int]) -> dict[str, Any]:
    """Return the step-by-step computation of some positions at a layer and head."""
    names, attention = inspector.translator.model.tokenizer.tokens, found.attention
    tokens = {"source": attention.source, "target": attention.target}
    steps = inspector.steps(found.source, found.target, found.off)
    rows = [[one._asdict() for one in step_by_step(steps, place, at, tokens, names)] for at in positions]
    return {**place._asdict(), "positions": dict(zip(positions, rows, strict=True))}


def write_attention_data(sentences: Sequence[AttendedSentence], path: Path) -> None:
    """Write all weights as JSON: `sentences[i].cross[layer][head][row][column]`."""
    content = [
        {
            "source_text": sentence.source,
            "target_text": sentence.target,
            "source": sentence.attention.source,
            "target": sentence.attention.target,
            **{kind: _all_rounded(getattr(sentence.attention, kind)) for kind in KINDS},
        }
        for sentence in sentences
        if sentence.attention is not None
    ]
    write_durably(path, (json.dumps({"sentences": content}, ensure_ascii=False) + "\n").encode("utf-8"))


def _side(tokens: list[str]) -> dict[str, Any]:
    words, owners = group_tokens(tokens)
    return {"tokens": tokens, "words": words, "owners": owners}


def _labels(found: Inspection, kind: str) -> list[list[dict[str, Any]]]:
    attention = found.attention
    rows = attention.source if kind == "encoder" else attention.target
    columns = attention.target if kind == "decoder" else attention.source
    heads = label_heads(kind, getattr(attention, kind), rows, columns)
    return [[{name: _rounded(value) for name, value in one._asdict().items()} for one in layer] for layer in heads]


def _alignment_errors(
    found: Inspection, source_owners: list[int], target_owners: list[int], links: list[Link] | None
) -> list[list[float]] | None:
    """Return the alignment error rate per cross-attention head, where gold links are known."""
    if not links:
        return None
    layers = [
        torch.stack([word_weights(head, target_owners, source_owners) for head in layer])
        for layer in found.attention.cross
    ]
    errors = head_alignment_errors(torch.stack(layers), links)
    return [[_rounded(one) for one in layer] for layer in errors]


def _effect(translator: Translator, found: Inspection) -> dict[str, Any]:
    """Return translations and log-probabilities with all heads on and some switched off."""
    best = found.tree.nodes[found.tree.best]
    return {
        "off": sorted(map(str, found.off)),
        "own_text": translator.text(found.own),
        "found_text": translator.text(found.tree.ids(found.tree.best)),
        "found_log_probability": _rounded(best.log_probability),
        "log_probability": _rounded(found.log_probability),
        "all_on_log_probability": _rounded(found.all_on_log_probability),
        "token_log_probabilities": _rounded(found.token_log_probabilities),
    }


def _beam(translator: Translator, tree: BeamTree) -> dict[str, Any]:
    names = translator.model.tokenizer.tokens([node.token for node in tree.nodes])
    nodes = [
        [node.parent, name, node.step, _rounded(node.log_probability), node.fate, _rounded(node.score)]
        for node, name in zip(tree.nodes, names, strict=True)
    ]
    texts = {
        number: translator.text(tree.ids(number)) for number, node in enumerate(tree.nodes) if node.fate == FINISHED
    }
    return {"beam": tree.beam, "alpha": tree.alpha, "best": tree.best, "nodes": nodes, "texts": texts}


def _candidates(translator: Translator, one: Candidates) -> dict[str, Any]:
    return {
        "ids": one.ids,
        "tokens": translator.model.tokenizer.tokens(one.ids),
        "probabilities": _rounded(one.probabilities),
        "chosen": _rounded(one.chosen),
        "rank": one.rank,
    }


def _packed(weights: Tensor) -> str:
    """Pack weights into 16 bits each, finer than a screen shows."""
    steps = (weights.double() * 65_535).round().clamp(0, 65_535).to(torch.int32)
    return base64.b64encode(steps.numpy().astype("<u2").tobytes()).decode("ascii")


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _all_rounded(weights: Tensor) -> Any:
    return [[[[round(w, 6) for w in row] for row in head] for head in layer] for layer in weights.tolist()]
