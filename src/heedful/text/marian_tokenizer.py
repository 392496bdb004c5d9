"""The tokenizer of an imported Marian model: two SentencePiece models, one vocabulary.

SentencePiece splits text into tokens; their ids come from vocab.json. A token that is not in it becomes the unknown
token, which heedful never generates.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from heedful.config import BOS, EOS, PAD, UNK
from heedful.errors import TokenizerError
from heedful.text.tokenizer import SPACE_MARK, Tokenizer, load_sentencepiece

_PREFIX, _PREFIX_END = ">>", "<<"  # around the language code of a multilingual model


class MarianTokenizer(Tokenizer):
    """Text ⇄ token ids.

    It encodes source text; `target` encodes target text, and both decode alike.
    """

    def __init__(self, source: bytes, target: bytes, vocabulary: Mapping[str, int], name: str = "the model") -> None:
        self.model, self.target_model = source, target
        self.vocabulary = dict(vocabulary)
        self.vocab_size = len(self.vocabulary)
        self._name = name
        self._names = sorted(self.vocabulary, key=self.vocabulary.__getitem__)
        if [self.vocabulary[token] for token in self._names] != list(range(self.vocab_size)) or self.vocab_size <= EOS:
            raise TokenizerError(
                f"The vocabulary of {name} does not contain each id from 0 to {self.vocab_size - 1} exactly once. "
                "Copy the model again."
            )
        self._source = load_sentencepiece(source, f"source.spm of {name}")
        self._target = load_sentencepiece(target, f"target.spm of {name}")

    @property
    def target(self) -> MarianTokenizer:
        return MarianTokenizer(self.target_model, self.model, self.vocabulary, self._name)

    def language_prefix(self, text: str) -> tuple[str, str]:
        """Split a text into its language token and the rest.

        A code that the model does not have is ordinary text.
        """
        code, end, rest = text.lstrip().partition(_PREFIX_END)
        if code.startswith(_PREFIX) and f"{code}{end}" in self.vocabulary:
            return f"{code}{end}", rest.lstrip(" ")  # the translation has no space there either
        return "", text

    def encode(self, text: str) -> list[int]:
        return self.encode_many([text])[0]

    def encode_many(self, texts: Sequence[str], threads: int = 1) -> list[list[int]]:
        prefixed = [self.language_prefix(text) for text in texts]
        split = self._source.encode([rest for _, rest in prefixed], out_type=str, num_threads=threads)
        return [
            [self.vocabulary.get(token, UNK) for token in ([prefix] if prefix else []) + tokens]
            for (prefix, _), tokens in zip(prefixed, split, strict=True)
        ]

    def encode_at_random(self, texts: Sequence[str], dropout: float, seed: int) -> list[list[int]]:
        raise TokenizerError(
            "data.bpe_dropout is not supported for imported Marian models: their tokenizers have no BPE merges. "
            "Set it to 0."
        )

    def decode(self, ids: Sequence[int]) -> str:
        kept = [token for token in self.tokens(ids) if self.vocabulary[token] not in (PAD, BOS, EOS)]
        text: str = self._target.decode(kept)
        return text.replace(SPACE_MARK, " ").strip()

    def tokens(self, ids: Sequence[int]) -> list[str]:
        return [self._names[int(i)] for i in ids]

    def vocabulary_json(self) -> bytes:
        """Return the content of vocab.json."""
        return json.dumps(self.vocabulary, ensure_ascii=False, indent=1).encode("utf-8")
