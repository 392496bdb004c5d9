"""A rule-based sentence splitter for Argos packages, encoded as an ONNX graph.

Argos Translate splits text with an ONNX model that predicts for every character whether a sentence ends there, and
downloads one if the package has none. This one makes the download unnecessary. A convolution computes detectors, each 0
or 1: for marks before a space, and for each abbreviation and each word that begins a sentence. The next one adds them.

The rules are those of `text/sentence_splitting.py`. It differs where the window does not reach: a space that was
forgotten between sentences, quotes before the next word, several spaces, footnotes, Markdown, and numbers in the middle
of a long line. Text without capitals is not split before a lowercase letter, because the window does not show the whole
text.
"""

from __future__ import annotations

import json

import numpy as np

from heedful.interop.onnx_encoding import FLOAT, INT64, Weights, bytes_field, model, node, tensor, value
from heedful.text import abbreviations as rules
from heedful.text.languages import base
from heedful.text.sentence_splitting import CLOSES, ENDS, ENDS_AT_ONCE

# Features of a character; all are 0 outside the text. A word is matched by the sum of (code - expected)².
_FEATURES = (
    *("code", "code²", "any", "inside", "word", "end", "end_at_once"),
    *("space", "close", "small", "upper", "digit", "numeral"),
)
# The five output labels of a character; minisbd treats the last as a sentence end too.
_SENTENCE_END, _SENTENCE_END_AFTER_CLOSE, _LABELS = 2, 4, 5
_BEFORE, _AFTER = 20, 20  # characters in the window, excluding the current one
_PAUSES = ",;:"
_LEAD_INS = rules.LEAD_INS | frozenset(["z. B", "Z. B", "d. h", "D. h", "u. a", "U. a", "e. g", "i. e", "p. ex"])


def build_sentence_splitter(language: str = "") -> bytes:
    """Return the ONNX file for text in a language, such as "de", if it is known."""
    characters = _characters()
    table = np.zeros((len(characters) + 2, len(_FEATURES)), np.float32)  # rows 0 and 1: padding, other characters
    table[1] = _features("\ue000", 0)
    for index, character in enumerate(characters, start=2):
        table[index] = _features(character, index)
    detectors = _Detectors({character: table[index, 0] for index, character in enumerate(characters, start=2)})
    _add_ends(detectors)
    _add_abbreviations(detectors, base(language))
    tensors = {
        "table": table,
        "weights": np.stack(detectors.weights).astype(np.float32),
        "bias": np.array(detectors.bias, np.float32),
        "votes": np.array(detectors.votes, np.float32).T[:, :, None].copy(),
        "thresholds": np.array([0, -100, -1, -100, -1], np.float32),
    }
    nodes = [
        node("Gather", ["table", "units"], "classes", {"axis": 0}),
        node("Transpose", ["classes"], "turned", {"perm": [0, 2, 1]}),
        node(
            "Conv",
            ["turned", "weights", "bias"],
            "detected",
            {"kernel_shape": [_BEFORE + 1 + _AFTER], "pads": [_BEFORE, _AFTER]},
        ),
        node("Relu", ["detected"], "found", {}),
        node("Conv", ["found", "votes", "thresholds"], "said", {"kernel_shape": [1], "pads": [0, 0]}),
        node("Transpose", ["said"], "output", {"perm": [0, 2, 1]}),
    ]
    graph = [
        *(bytes_field(1, one) for one in nodes),
        bytes_field(2, b"sentences"),
        *(bytes_field(5, tensor(name, weights)) for name, weights in tensors.items()),
        bytes_field(11, value("units", INT64, ["B", "T"])),
        bytes_field(11, value("features", FLOAT, ["B", "T", 1])),
        bytes_field(12, value("output", FLOAT, ["B", "T", 5])),
    ]
    return model(b"".join(graph), _metadata(characters))


def _characters() -> list[str]:
    """Return the known characters, including all letters and digits of the basic plane."""
    first = sorted({*" ", *ENDS, *ENDS_AT_ONCE, *CLOSES, *_PAUSES, *rules.OPENING})
    others = [one for one in map(chr, range(0xD800)) if one.islower() or one.isupper() or one.isdigit()]
    return first + [one for one in others if one not in first]


def _features(character: str, index: int) -> list[float]:
    code = 0 if character == " " else index / 32
    is_space = character == " "
    flags = (
        *(True, not is_space and character not in rules.OPENING, character.isalnum()),
        *(character in ENDS, character in ENDS_AT_ONCE, is_space, character in CLOSES),
        *(character.islower(), character.isupper(), character.isdigit(), character in "IVXЯ"),
    )
    return [code, code * code, *map(float, flags)]


class _Detectors:
    """Rows of the first convolution, and how each counts for the two sentence-end labels."""

    def __init__(self, codes: dict[str, float]) -> None:
        self.codes = codes
        self.weights: list[Weights] = []
        self.bias: list[float] = []
        self.votes: list[list[float]] = []

    def add(
        self,
        vote: float,
        required: dict[int, str],
        forbidden: dict[int, str] | None = None,
        words: dict[int, str] | None = None,
        label: int = _SENTENCE_END,
    ) -> None:
        """Add a detector of required and forbidden features, and of strings, by offset."""
        weights = np.zeros((len(_FEATURES), _BEFORE + 1 + _AFTER), np.float64)
        bias = 1.0 - len(required)
        for offset, feature in required.items():
            weights[_FEATURES.index(feature), _BEFORE + offset] += 1
        for offset, features in (forbidden or {}).items():
            for feature in features.split():
                weights[_FEATURES.index(feature), _BEFORE + offset] -= 1
        for start, text in (words or {}).items():
            for offset, character in enumerate(text, _BEFORE + start):
                code = self.codes[character]
                weights[:2, offset] += [2_048 * code, -1_024]
                bias -= 1_024 * code * code
        self.weights.append(weights.astype(np.float32))
        self.bias.append(bias)
        self.votes.append([vote if one == label else 0.0 for one in range(_LABELS)])


def _add_ends(detectors: _Detectors) -> None:
    after = {2: "small space"}
    detectors.add(2, {0: "end", 1: "space"}, {**after, -1: "space"})
    detectors.add(2, {0: "end", 1: "space", -1: "space"}, after)
    detectors.add(20, {0: "end_at_once"}, {1: "close"})
    detectors.add(2, {-1: "end", 0: "close", 1: "space"}, after, label=_SENTENCE_END_AFTER_CLOSE)
    detectors.add(2, {-1: "end_at_once", 0: "close"}, label=_SENTENCE_END_AFTER_CLOSE)


def _add_abbreviations(detectors: _Detectors, language: str) -> None:
    stop = {0: "end", 1: "space"}
    named = {**stop, 2: "upper"}
    for word in sorted(_LEAD_INS):
        detectors.add(-9, stop, {-len(word) - 1: "inside"}, {-len(word): f"{word}."})
    for word in ("z", "Z"):
        detectors.add(-9, stop, {-2: "inside"}, {-1: f"{word}. B."})
    for word in sorted((rules.TITLES | rules.TITLES_OF.get(language, frozenset())) - {"St"}):
        detectors.add(-2, named, {-len(word) - 1: "inside"}, {-len(word): f"{word}."})
    for word in sorted(rules.BEFORE_NUMBERS):
        detectors.add(-2, {**stop, 2: "digit"}, {-len(word) - 1: "inside"}, {-len(word): f"{word}."})
    for word in sorted(rules.OPENERS):
        detectors.add(2, named, {2 + len(word): "word"}, {0: f". {word}"})
    for digits in (1, 2, 3):  # of a list
        detectors.add(-9, {**stop, **dict.fromkeys(range(-digits, 0), "digit")}, {-digits - 1: "any"}, {0: "."})
    if language in rules.NOUNS_HAVE_CAPITALS:
        for word in rules.MONTHS_AND_CENTURIES:
            detectors.add(-9, {**stop, -1: "digit"}, {2 + len(word): "word"}, {0: f". {word}"})
    _add_saint(detectors, named)
    _add_initials(detectors, language, {**named, -1: "upper"})


def _add_saint(detectors: _Detectors, named: dict[int, str]) -> None:
    """St. is a title at the start, and after a mark or a word that is not a name.

    Otherwise it may be a street.
    """
    detectors.add(-2, named, {-3: "inside space"}, {-2: "St."})
    for mark in sorted({*ENDS, *ENDS_AT_ONCE, *CLOSES, *_PAUSES}):
        detectors.add(-2, named, None, {-4: f"{mark} St."})
    for letters in range(1, _BEFORE - 3):
        word = dict.fromkeys(range(-3 - letters, -3), "small")
        detectors.add(-2, {**named, **word}, {-4 - letters: "inside"}, {-3: " St."})
    for name in sorted(rules.CAPITALISED):
        detectors.add(-2, named, {-4 - len(name): "inside"}, {-3 - len(name): f"{name} St."})


def _add_initials(detectors: _Detectors, language: str, initial: dict[int, str]) -> None:
    """A single capital at the start, after another initial or a title, or after a name."""
    detectors.add(-2, initial, {-2: "any"}, {0: "."})
    detectors.add(-2, {**initial, -2: "space"}, {-1: "numeral"}, {-3: ".", 0: "."})
    if language not in rules.NOUNS_HAVE_CAPITALS:
        _add_names(detectors, {**initial, -2: "space"})


def _add_names(detectors: _Detectors, initial: dict[int, str]) -> None:
    """Add detectors of names before an initial: a capital and lowercase letters."""
    for letters in range(1, _BEFORE - 6):
        name = {-3 - letters: "upper", **dict.fromkeys(range(-2 - letters, -2), "small")}
        detectors.add(-2, {**initial, **name}, {-1: "numeral", -4 - letters: "inside"}, {0: "."})
    for word in sorted(rules.CAPITALISED):  # for another reason than that they are names
        if len(word) > 1 and word[0].isupper() and word[1:].islower():
            around = {-1: "numeral", -3 - len(word): "inside"}
            detectors.add(2, initial, around, {0: ".", -2 - len(word): word})


def _metadata(characters: list[str]) -> dict[str, str]:
    """Return the metadata from which minisbd reads the character vocabulary."""
    names = ["<PAD>", "<UNK>", *characters]
    vocabulary = {"_id2unit": names, "_unit2id": {name: number for number, name in enumerate(names)}}
    config = {"max_seqlen": 1_000, "batch_size": 32, "feat_funcs": ["end_of_para"]}
    return {
        "lang_code": "any",
        "config": json.dumps(config),
        "vocab": json.dumps(vocabulary, ensure_ascii=False),
    }
