"""The vocabulary of a Marian directory, in heedful's order.

heedful has the special tokens <pad>, <unk>, <s> and </s> at ids 0 to 3; Marian has its own at any ids, and usually
starts decoding from <pad>. Reordering the vocabulary is exact. For a start token of its own, heedful adds one with a
copy of the embedding that Marian starts from, so the decoder computes the same states.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from heedful.config import BOS, EOS, PAD, UNK
from heedful.errors import ModelError, TokenizerError
from heedful.interop.marian_export import SOURCE, TARGET, VOCABULARY
from heedful.storage.tokenizer_files import read_vocabulary
from heedful.text.marian_tokenizer import MarianTokenizer
from heedful.text.tokenizer import Tokenizer, read_sentencepiece

_UNKNOWN = "<unk>"


class Vocabulary(NamedTuple):
    """A tokenizer in heedful's order and Marian's id of each of its tokens."""

    tokenizer: Tokenizer
    marian_ids: list[int]
    start_was_added: bool  # then the start token has the Marian id of the token that Marian starts from


def read_vocabulary_in_order(directory: Path, content: Mapping[str, Any]) -> Vocabulary:
    """Return the vocabulary of a directory whose config.json has this content."""
    theirs = read_vocabulary(directory / VOCABULARY)
    if sorted(theirs.values()) != list(range(len(theirs))) or len(theirs) != content.get("vocab_size"):
        raise ModelError(
            f"{directory / VOCABULARY} has {len(theirs)} tokens, but the model has {content.get('vocab_size')}. "
            "Each id must occur once. Download the model again."
        )
    names = sorted(theirs, key=theirs.__getitem__)
    padding, unknown, start, end = _special_ids(content, theirs, directory)
    added = start in (padding, unknown, end)
    ids = [padding, unknown, start, end]
    ids += [number for number in range(len(names)) if number not in ids]
    ours = [names[number] for number in ids]
    if added:
        ours[BOS] = next(name for name in ("<s>", "<start>", "<heedful-start>") if name not in theirs)
    return Vocabulary(_tokenizer(directory, ours), ids, added)


def _special_ids(content: Mapping[str, Any], theirs: Mapping[str, int], directory: Path) -> list[int]:
    """Return Marian's ids of padding, unknown, start and end token."""
    defaults = {"pad_token_id": 58_100, "unk": 1, "decoder_start_token_id": 58_100, "eos_token_id": 0}
    given = {**content, "unk": theirs.get(_UNKNOWN)}
    ids = [given.get(key, default) for key, default in defaults.items()]
    for key, number in zip(defaults, ids, strict=True):
        if type(number) is not int or not 0 <= number < len(theirs):
            name = f"the token {_UNKNOWN}" if key == "unk" else key
            raise ModelError(
                f"{directory}: {name} is {number!r}, but the vocabulary has {len(theirs)} tokens. "
                "Download the model again."
            )
    if len({ids[PAD], ids[UNK], ids[EOS]}) < 3:
        raise ModelError(
            f"{directory}: the padding, unknown and end tokens have the ids {ids[PAD]}, {ids[UNK]} and {ids[EOS]}. "
            "heedful imports only models in which they differ."
        )
    return ids


def _tokenizer(directory: Path, names: list[str]) -> Tokenizer:
    """Return heedful's own tokenizer if present, or one with separate SentencePiece models."""
    source, target = (read_sentencepiece(directory / name) for name in (SOURCE, TARGET))
    if source == target:
        try:
            tokenizer = Tokenizer(source, str(directory / SOURCE))
        except TokenizerError:
            pass
        else:
            if tokenizer.tokens(range(tokenizer.vocab_size)) == names:
                return tokenizer
    return MarianTokenizer(source, target, {name: number for number, name in enumerate(names)}, str(directory))
