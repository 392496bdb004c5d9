"""Effects of deviations that need no training: computed from shapes or counted in text."""

from __future__ import annotations

import math
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from heedful import presets
from heedful.config import DataConfig
from heedful.data.batches import Batches
from heedful.data.store import Store, write_store
from heedful.model.attention import MultiHeadAttention
from heedful.model.embeddings import sinusoids
from heedful.model.transformer import Transformer
from heedful.text.builtin_corpus import BuiltinCorpus
from heedful.text.corpus import Corpus, Pair
from heedful.text.tokenizer import Tokenizer, learn
from heedful.training import autoconfig
from heedful.training.autoconfig import CorpusSize

Facts = dict[str, Any]

PUBLISHED = {  # Table 3, millions of parameters; the rows whose shape differs from base's
    "base": 65,
    "table3-b-dk16": 58,
    "table3-b-dk32": 60,
    "table3-c-n2": 36,
    "table3-c-n4": 50,
    "table3-c-n8": 80,
    "table3-c-d256": 28,
    "table3-c-d1024": 168,
    "table3-c-ff1024": 53,
    "table3-c-ff4096": 90,
}
WMT = CorpusSize(4_500_000, 130_000_000)  # English-German, tokens roughly
TEN_MINUTES, SECONDS_A_STEP = 600, {"base": 0.4, "big": 1.0}  # sections 5.2 and 6.1


def parameters() -> Facts:
    """Return the vocabulary sizes that reproduce Table 3's parameter counts, with and without attention biases."""
    return {"with": _vocabularies(biases=True), "without": _vocabularies(biases=False)}


def _vocabularies(biases: bool) -> list[int]:
    lowest, highest = 0, 10**9
    for name, millions in PUBLISHED.items():
        with torch.device("meta"):  # shapes only
            model = Transformer(presets.named(name).model(1))
        attentions = [module for module in model.modules() if isinstance(module, MultiHeadAttention)]
        of_attentions = sum(p.numel() for module in attentions for p in module.parameters() if p.ndim == 1)
        d_model = model.config.d_model
        others = model.parameter_count() - d_model - (0 if biases else of_attentions)
        lowest = max(lowest, math.ceil((millions * 1e6 - 5e5 - others) / d_model))
        highest = min(highest, math.floor((millions * 1e6 + 5e5 - others) / d_model))
    return [lowest, highest]


def positions() -> Facts:
    """Return the error of the sinusoids: rounded once, and computed entirely in single precision."""
    exact = sinusoids(256, 512)
    frequency = 10_000.0 ** (-torch.arange(0, 512, 2) / 512)
    angles = torch.arange(256)[:, None] * frequency
    single = torch.stack([angles.sin(), angles.cos()], dim=-1).reshape(256, 512)
    tables = {"rounded": exact.float(), "single": single}
    return {name: float((table.double() - exact).abs().max()) for name, table in tables.items()}


def dropout_grain() -> Facts:
    """Return the actual dropout probabilities, which are multiples of 1/65,536."""
    return {name: round(p * 2**16) / 2**16 for name, p in (("tenth", 0.1), ("three_tenths", 0.3))}


def adam_epsilon() -> Facts:
    """Return the effective ε if 1e-9 is added before the bias correction of the second moment."""
    return {f"step_{step}": 1e-9 / math.sqrt(1 - 0.98**step) for step in (1, 10, 100)}


def smoothing() -> Facts:
    """Return the label's probability, with smoothing over the whole vocabulary and over the other tokens."""
    return {"whole": 0.9 + 0.1 / 37_000, "others": 0.9}


def averaging() -> Facts:
    """Return the steps between averaged checkpoints: the paper's ten minutes, and the presets' on WMT14."""
    facts: Facts = {}
    for name, seconds in SECONDS_A_STEP.items():
        given = autoconfig.from_preset(name, {})
        training = autoconfig.apply(given, autoconfig.choose(given, WMT, gpu=True))["training"]
        facts[name] = {
            "paper": round(TEN_MINUTES / seconds),
            "heedful": training["save_every"],
            "averaged": training["average"],
        }
    return facts


def text_facts(name: str, data_root: Path | None, subword_nmt: str | None) -> Facts | None:
    """Return dropped pairs, padding and token lengths of a corpus; None if it is missing."""
    pairs = _pairs(name, data_root)
    if pairs is None:
        return None
    vocab_size = 1_000 if name == "builtin" else 8_000
    with tempfile.TemporaryDirectory() as directory:
        tokenizer = learn((text for pair in pairs for text in pair), vocab_size)
        rules = replace(DataConfig(), vocab_size=vocab_size)
        store = write_store(Path(directory) / "store", pairs, tokenizer, rules, {})
        return {
            "vocab_size": vocab_size,
            "read": store.report.read,
            "left_out": store.report.read - store.report.kept,
            "padding": {str(tokens): _padding(store, tokens) for tokens in (25_000, 2_048)},
            "tokens": _lengths(pairs, tokenizer, subword_nmt, Path(directory)),
        }


@cache
def _pairs(name: str, data_root: Path | None) -> list[Pair] | None:
    if name == "builtin":
        return list(BuiltinCorpus("train", 30_000).pairs())
    files = [(data_root or Path()) / "data" / name / f"train.{side}.gz" for side in ("en", "de")]
    if not all(file.is_file() for file in files):
        return None
    return list(Corpus.of((str(files[0]),), (str(files[1]),), name).pairs())


def _padding(store: Store, batch_tokens: int) -> Facts:
    batches = Batches(store, batch_tokens, seed=1)
    return {"share": batches.padding(), "batches": batches.per_epoch}


def _lengths(pairs: list[Pair], tokenizer: Tokenizer, program: str | None, directory: Path) -> Facts:
    """Return tokens per sentence without EOS, for SentencePiece and subword-nmt.

    subword-nmt runs on raw text and on tokenized text, as it is meant to be used.
    """
    lines = [text for pair in pairs for text in pair]
    own = sum(map(len, tokenizer.encode_many(lines))) / len(lines)
    lengths = {"sentencepiece": own}
    if program:
        split = Tokenizer13a()  # type: ignore[no-untyped-call]
        lengths["subword-nmt"] = _by_subword_nmt(lines, tokenizer.vocab_size, program, directory)
        words = [split(line) for line in lines]
        lengths["subword-nmt, 13a"] = _by_subword_nmt(words, tokenizer.vocab_size, program, directory)
    return lengths


def _by_subword_nmt(lines: Iterable[str], vocab_size: int, program: str, directory: Path) -> float:
    """Segment with subword-nmt and a total of `vocab_size` symbols, the closest match to SentencePiece's vocabulary."""
    text, codes = directory / "text", directory / "codes"
    text.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    learning = [program, "learn-bpe", "--symbols", str(vocab_size), "--total-symbols", "--input", str(text)]
    subprocess.run([*learning, "--output", str(codes)], check=True, stderr=subprocess.DEVNULL)
    applying = [program, "apply-bpe", "--codes", str(codes), "--input", str(text)]
    written = subprocess.run(applying, check=True, capture_output=True, encoding="utf-8").stdout
    counts = [len(line.split(" ")) for line in written.removesuffix("\n").split("\n")]
    return sum(counts) / len(counts)


def computed() -> Facts:
    return {
        "parameters": parameters(),
        "positions": positions(),
        "dropout-grain": dropout_grain(),
        "adam-epsilon": adam_epsilon(),
        "smoothing": smoothing(),
        "averaging": averaging(),
    }


def find_subword_nmt(given: str | None) -> str | None:
    return given or shutil.which("subword-nmt")
