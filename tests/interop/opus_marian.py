"""Marian directories as OPUS-MT publishes them, with random weights and tokenizers."""

from __future__ import annotations

import io
import json
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import sentencepiece
import torch

from heedful.text.builtin_corpus import BuiltinCorpus

LANGUAGES = (">>deu<<", ">>nld<<")
# config.json of opus-mt-en-de as it is published, with the sizes scaled down.
OPUS: dict[str, Any] = {
    "activation_function": "swish",
    "attention_dropout": 0.0,
    "d_model": 32,
    "decoder_attention_heads": 4,
    "decoder_ffn_dim": 64,
    "decoder_layers": 2,
    "dropout": 0.1,
    "encoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "encoder_layers": 2,
    "eos_token_id": 0,
    "forced_eos_token_id": 0,
    "init_std": 0.15,
    "is_encoder_decoder": True,
    "max_position_embeddings": 512,
    "num_beams": 6,
    "scale_embedding": True,
    "static_position_embeddings": True,
}
FULL_SIZE = {
    **{f"{stack}_layers": 6 for stack in ("encoder", "decoder")},
    **{f"{stack}_ffn_dim": 2048 for stack in ("encoder", "decoder")},
    **{f"{stack}_attention_heads": 8 for stack in ("encoder", "decoder")},
    "d_model": 512,
    "init_std": 0.04,
}


@cache
def sentencepiece_model(side: int, size: int = 400) -> bytes:
    """Return a unigram model of one side of the built-in corpus, trained as OPUS-MT's are."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([pair[side] for pair in islice(BuiltinCorpus("train", 2_000).pairs(), 2_000)]),
        model_writer=written,
        model_type="unigram",
        vocab_size=size,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return written.getvalue()


@cache
def vocabulary() -> dict[str, int]:
    """Return a joint vocabulary: </s> first, <pad> last, and neither side's own ids."""
    names = {"</s>": 0, "<unk>": 0, **dict.fromkeys(LANGUAGES, 0)}
    for side in (0, 1):
        processor = sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_model(side))
        names |= {processor.id_to_piece(number): 0 for number in range(3, processor.get_piece_size())}
    return {name: number for number, name in enumerate([*names, "<pad>"])}


def write_opus(directory: Path, end_bias: float = 0.0, **changes: Any) -> Any:
    """Write a Marian directory with random parameters; return the transformers model."""
    import transformers

    names = vocabulary()
    special = {"vocab_size": len(names), "pad_token_id": names["<pad>"], "decoder_start_token_id": names["<pad>"]}
    config = transformers.MarianConfig(**{**OPUS, **special, **changes})
    torch.manual_seed(1)
    model = transformers.MarianMTModel(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name and ("bias" in name or "layer_norm" in name):
                parameter.add_(0.1 * torch.randn(parameter.shape))
        model.final_logits_bias.copy_(0.5 * torch.randn(model.final_logits_bias.shape))
        model.final_logits_bias[0, 0] += end_bias
        for stack in (model.model.encoder, model.model.decoder):
            stack.embed_tokens.weight[names["<pad>"]] = 0.0
    model.generation_config.bad_words_ids = [[names["<pad>"]]]
    model.generation_config.num_beams = config.num_beams if hasattr(config, "num_beams") else 6
    model.save_pretrained(directory)
    write_tokenizer_files(directory)
    return model


def write_tokenizer_files(directory: Path) -> None:
    (directory / "source.spm").write_bytes(sentencepiece_model(0))
    (directory / "target.spm").write_bytes(sentencepiece_model(1))
    (directory / "vocab.json").write_text(json.dumps(vocabulary()), encoding="utf-8")
    content = {"tokenizer_class": "MarianTokenizer", "source_lang": "eng", "target_lang": "deu"}
    (directory / "tokenizer_config.json").write_text(json.dumps(content), encoding="utf-8")
