"""The tokenizer: SentencePiece BPE with one vocabulary for both languages.

Byte fallback encodes a character that has no token of its own as its UTF-8 bytes, so there are no unknown tokens.
Identity normalisation makes decoding the exact inverse of encoding.
"""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import sentencepiece

from heedful.atomic_files import read_at_most
from heedful.config import BOS, EOS, PAD, UNK
from heedful.errors import TokenizerError, VocabularyTooSmallError, cause
from heedful.text.bpe_dropout import segment, skip_with

# SentencePiece writes spaces as U+2581, so a literal U+2581 would be decoded as a space. It is encoded as bytes
# instead: a stand-in (a noncharacter that is kept out of the vocabulary) takes its place, and the bytes of the
# stand-in are then replaced by those of U+2581.
SPACE_MARK = "\u2581"
_STAND_IN = "\ufdd0"

_LONGEST_TRAINING_LINE = 4_000  # bytes; SentencePiece skips longer lines
_MOST_BYTES = 100_000_000  # size limit of a SentencePiece model, a hundred times a large one
SAMPLE = 1_000_000  # lines to learn from; more lines cost memory and change little


class Tokenizer:
    """Text ⇄ token ids, from the bytes of a SentencePiece model (`learn` trains one)."""

    def __init__(self, model: bytes, name: str = "the tokenizer") -> None:
        self.model = model
        self._processor = _load(model, name)
        self.vocab_size: int = self._processor.get_piece_size()
        self._bytes_of_mark, self._bytes_of_stand_in = (
            [self._processor.piece_to_id(f"<0x{byte:02X}>") for byte in character.encode("utf-8")]
            for character in (SPACE_MARK, _STAND_IN)
        )

    @classmethod
    def read(cls, path: Path) -> Tokenizer:
        return cls(read_sentencepiece(path), str(path))

    @property
    def target(self) -> Tokenizer:
        """Return the tokenizer of target text, the same one unless the model was imported."""
        return self

    def language_prefix(self, text: str) -> tuple[str, str]:
        """Split a text into its language token, such as ">>deu<<", and the rest.

        Only imported models have them.
        """
        return "", text

    def encode(self, text: str) -> list[int]:
        """Return the token ids, without BOS and EOS."""
        if SPACE_MARK in text:
            return self._encode_space_marks(text)
        ids: list[int] = self._processor.encode(text)
        return ids

    def encode_many(self, texts: Sequence[str], threads: int = 1) -> list[list[int]]:
        return self._with_space_marks(texts, self._processor.encode(list(texts), num_threads=threads))

    def encode_at_random(self, texts: Sequence[str], dropout: float, seed: int) -> list[list[int]]:
        """Sample segmentations by BPE-dropout: each merge is skipped with probability `dropout`.

        The same seed gives the same segmentation, in every process.
        """
        skips = skip_with(dropout, seed)
        words = [self._processor.normalize(text) for text in texts]
        ids = [self._merged_ids(segment(word, self._merge_ranks, skips)) for word in words]
        return self._with_space_marks(texts, ids)

    @functools.cached_property
    def _merge_ranks(self) -> dict[str, int]:
        """Return the rank of every merged token: SentencePiece gives the n-th merge score -n."""
        processor = self._processor
        ids = [i for i in range(self.vocab_size) if not (processor.is_byte(i) or processor.is_control(i))]
        ranks = {processor.id_to_piece(i): -processor.get_score(i) for i in ids if i != UNK}
        if any(rank != int(rank) or rank < 0 for rank in ranks.values()):
            raise TokenizerError(
                "data.bpe_dropout needs a BPE tokenizer, but this tokenizer has no merges. Set it to 0."
            )
        return {token: int(rank) for token, rank in ranks.items()}

    def _merged_ids(self, tokens: Sequence[str]) -> list[int]:
        """Return the ids of tokens; a character without a token becomes its UTF-8 bytes."""
        ids: list[int] = []
        for token in tokens:
            if (found := self._processor.piece_to_id(token)) != UNK:
                ids.append(found)
            else:
                ids += [self._processor.piece_to_id(f"<0x{byte:02X}>") for byte in token.encode("utf-8")]
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self._processor.decode([int(i) for i in ids])
        return text

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Return each token as SentencePiece writes it: U+2581 for a space, <0x41> for a byte."""
        names: list[str] = self._processor.id_to_piece([int(i) for i in ids])
        return names

    def _with_space_marks(self, texts: Sequence[str], ids: list[list[int]]) -> list[list[int]]:
        return [
            self._encode_space_marks(text) if SPACE_MARK in text else own for text, own in zip(texts, ids, strict=True)
        ]

    def _encode_space_marks(self, text: str) -> list[int]:
        marks = iter([character == SPACE_MARK for character in text if character in (SPACE_MARK, _STAND_IN)])
        ids = self._processor.encode(text.replace(SPACE_MARK, _STAND_IN))
        position, width = 0, len(self._bytes_of_stand_in)
        while position < len(ids):
            if ids[position : position + width] == self._bytes_of_stand_in:
                if next(marks):
                    ids[position : position + width] = self._bytes_of_mark
                position += width
            else:
                position += 1
        return list(ids)


def learn(lines: Iterable[str], vocab_size: int, threads: int = 1) -> Tokenizer:
    """Train BPE on text. The vocabulary is smaller than requested if no further merges exist."""
    written = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_training_lines(lines),
            model_writer=written,
            model_type="bpe",
            vocab_size=vocab_size,
            hard_vocab_limit=False,
            byte_fallback=True,
            character_coverage=0.9999,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            num_threads=threads,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise _training_error(str(error), vocab_size) from None
    return Tokenizer(written.getvalue())


def _training_lines(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        text = line.replace(SPACE_MARK, " ").replace(_STAND_IN, " ").replace("\0", " ")
        if text and len(text.encode("utf-8")) <= _LONGEST_TRAINING_LINE:
            yield text


def _training_error(error: str, vocab_size: int) -> TokenizerError:
    if found := re.search(r"smaller than required_chars\. \d+ vs (\d+)", error):
        required = int(found.group(1))
        return VocabularyTooSmallError(
            f"data.vocab_size = {vocab_size} is too small: characters, special tokens and the 256 byte tokens "
            f"alone need {required}. Set data.vocab_size to more than {required}.",
            required,
        )
    if "sentences_.empty()" in error:
        return TokenizerError(
            "Cannot train a tokenizer: every line of the text is empty or too long. Check the text files."
        )
    return TokenizerError(f"Cannot train a tokenizer: {error.rstrip('.')}. Check the text files.")


def read_sentencepiece(path: Path) -> bytes:
    """Return the bytes of a SentencePiece model file."""
    try:
        return read_at_most(path, _MOST_BYTES)
    except (OSError, ValueError) as error:
        raise TokenizerError(
            f"Cannot read the tokenizer {path}: {cause(error)}. Pass a SentencePiece model file."
        ) from None


def load_sentencepiece(model: bytes, name: str) -> sentencepiece.SentencePieceProcessor:
    """Return the processor of a SentencePiece model; raise if its bytes are not one."""
    if not model:
        raise TokenizerError(f"{name} is empty, not a SentencePiece model.")
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    except RuntimeError:
        raise TokenizerError(f"{name} is not a SentencePiece model, or it is damaged.") from None
    try:
        processor.id_to_piece(list(range(processor.get_piece_size())))
    except UnicodeDecodeError:
        raise TokenizerError(f"{name} is damaged: it has tokens that are not valid text.") from None
    return processor


def _load(model: bytes, name: str) -> sentencepiece.SentencePieceProcessor:
    processor = load_sentencepiece(model, name)
    ids = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
    if ids != (PAD, UNK, BOS, EOS):
        raise TokenizerError(
            f"{name} has the special tokens (padding, unknown, start, end) at ids {ids}; heedful needs "
            f"{(PAD, UNK, BOS, EOS)}. Train it with pad_id=0 unk_id=1 bos_id=2 eos_id=3, or let heedful train one."
        )
    if processor.piece_to_id("<0xE2>") == UNK:
        raise TokenizerError(
            f"{name} has no byte fallback. Train it with byte_fallback=true, or let heedful train one."
        )
    return processor
