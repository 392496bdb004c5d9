"""The files of a tokenizer in a MODEL or a RUN: tokenizer.model, or Marian's three."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from heedful.atomic_files import read_at_most, write_durably
from heedful.errors import ModelError, cause
from heedful.storage.file_names import MARIAN_TOKENIZER, TOKENIZER, TOKENIZER_FILES
from heedful.text.marian_tokenizer import MarianTokenizer
from heedful.text.tokenizer import Tokenizer, read_sentencepiece

MOST_VOCABULARY = 50_000_000  # bytes of vocab.json, enough for a million tokens


def tokenizer_names(directory: Path) -> tuple[str, ...]:
    """Return the names of the tokenizer's files in a directory."""
    return MARIAN_TOKENIZER if (directory / MARIAN_TOKENIZER[0]).exists() else (TOKENIZER,)


def read_tokenizer(directory: Path) -> Tokenizer:
    """Return the tokenizer of a MODEL or a RUN."""
    names = tokenizer_names(directory)
    if names == (TOKENIZER,):
        return Tokenizer.read(directory / TOKENIZER)
    source, target, vocabulary = (directory / name for name in names)
    return MarianTokenizer(
        read_sentencepiece(source), read_sentencepiece(target), read_vocabulary(vocabulary), str(directory)
    )


def read_vocabulary(path: Path) -> dict[str, int]:
    """Return the token ids in a vocab.json."""
    try:
        content = json.loads(read_at_most(path, MOST_VOCABULARY).decode("utf-8"))
        if not isinstance(content, dict) or any(type(number) is not int for number in content.values()):
            raise ValueError("it does not map tokens to ids")
        "".join(content).encode("utf-8")  # a lone surrogate is not text
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"Cannot read {path}: {cause(error)}. Copy the model again.") from None
    return content


def tokenizer_contents(tokenizer: Tokenizer) -> dict[str, bytes]:
    """Return the content of each file of a tokenizer."""
    if isinstance(tokenizer, MarianTokenizer):
        parts = (tokenizer.model, tokenizer.target_model, tokenizer.vocabulary_json())
        return dict(zip(MARIAN_TOKENIZER, parts, strict=True))
    return {TOKENIZER: tokenizer.model}


def write_tokenizer(directory: Path, tokenizer: Tokenizer) -> None:
    for name, content in tokenizer_contents(tokenizer).items():
        write_durably(directory / name, content)


def tokenizer_digest(tokenizer: Tokenizer) -> str:
    """Return the SHA-256 of a tokenizer's files, one after the other."""
    return hashlib.sha256(b"".join(tokenizer_contents(tokenizer).values())).hexdigest()


def digest_of_files(directory: Path) -> str:
    """Return `tokenizer_digest` of the files in a directory, valid or not."""
    paths = [directory / name for name in TOKENIZER_FILES]
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths if path.is_file())).hexdigest()
