"""Settings and their defaults, each written once.

Names follow the paper; comments give meaning and unit.

A recipe has four sections, one frozen dataclass each. The defaults are the paper's base model and training
(section 5); `heedful train` chooses better ones for a small corpus (training/autoconfig.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from heedful.errors import ConfigError
from heedful.typed_dataclasses import field_types

# Ids of the special tokens, the same in every vocabulary that heedful trains or accepts.
PAD, UNK, BOS, EOS = 0, 1, 2, 3


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ConfigError(message)


def _at_least(config: object, section: str, minimum: float, *names: str) -> None:
    for name in names:
        value = getattr(config, name)
        _require(value >= minimum, f"{section}.{name} must be at least {minimum}, not {value}.")


def _share(config: object, section: str, *names: str) -> None:
    for name in names:
        value = getattr(config, name)
        _require(0.0 <= value < 1.0, f"{section}.{name} must be at least 0 and below 1, not {value}.")


def _finite(config: object, section: str, *names: str) -> None:
    for name in names:
        value = getattr(config, name)
        _require(math.isfinite(value), f"{section}.{name} must be finite, not {value}.")


def _one_of(config: object, section: str, name: str, allowed: tuple[str, ...]) -> None:
    value = getattr(config, name)
    _require(value in allowed, f'{section}.{name} must be one of {", ".join(allowed)}, not "{value}".')


@dataclass(frozen=True)
class DataConfig:
    """The training text and how it is filtered: the [data] section of a recipe."""

    builtin: bool = False  # train on the built-in English-German corpus instead of files
    builtin_pairs: int = 100_000  # sentence pairs taken from the built-in corpus
    source: tuple[str, ...] = ()  # training files, source side, or files with both; or one prepared corpus
    target: tuple[str, ...] = ()  # training files, target side: one per source file; empty for .tsv
    valid_source: tuple[str, ...] = ()  # validation files, source side
    valid_target: tuple[str, ...] = ()  # validation files, target side
    held_out: int = 0  # without validation files: training pairs held out for validation; 0: chosen for the corpus
    source_language: str = ""  # language code such as "en"; if empty, detected from file names or text
    target_language: str = ""  # language code such as "de"
    tokenizer: str = ""  # SentencePiece model to use instead of training a tokenizer
    vocab_size: int = 37_000  # size of the shared vocabulary in tokens; reduced for a small corpus
    bpe_dropout: float = 0.0  # probability of skipping a BPE merge in training; 0: off, as in the paper
    max_length: int = 256  # maximum tokens per side, including EOS; longer pairs are dropped
    max_ratio: float = 4.0  # maximum length ratio of the two sides in tokens; other pairs are dropped
    lowercase: bool = False  # lowercase both sides, in training and translation

    def __post_init__(self) -> None:
        _at_least(self, "data", 2, "max_length")
        _at_least(self, "data", 1, "builtin_pairs")
        _at_least(self, "data", 0, "held_out")
        _require(
            not (self.held_out and (self.builtin or self.valid_source or self.valid_target)),
            f"data.held_out = {self.held_out} cannot be combined with other validation text. Remove one of the two.",
        )
        _require(
            not (self.builtin and (self.source or self.target or self.valid_source or self.valid_target)),
            "data.builtin = true was given together with text files. Remove one of the two.",
        )
        _at_least(self, "data", 1.0, "max_ratio")
        _share(self, "data", "bpe_dropout")
        _at_least(self, "data", 261, "vocab_size")  # 256 bytes, 4 special tokens and one learned token


@dataclass(frozen=True)
class ModelConfig:
    """The shape of the model: the [model] section of a recipe (section 3, Table 3)."""

    vocab_size: int = 37_000  # set by the tokenizer, not a recipe key
    N: int = 6  # number of encoder layers, and of decoder layers unless N_decoder is set
    N_decoder: int = 0  # number of decoder layers; 0: N, as in the paper
    d_model: int = 512  # width of the residual stream
    d_ff: int = 2048  # inner width of the feed-forward layers
    h: int = 8  # attention heads
    d_k: int = 0  # width of queries and keys per head; 0: d_model / h
    d_v: int = 0  # width of values per head; 0: d_model / h
    dropout: float = 0.1  # residual dropout, section 5.4
    attention_dropout: float = 0.0  # dropout on the attention weights
    word_dropout: float = 0.0  # probability of zeroing an input embedding; off during the cooldown
    positions: str = "sinusoidal"  # "sinusoidal" or "learned", Table 3 (E)
    max_positions: int = 512  # size of the learned position table
    # The paper's model has the defaults; models imported from other tools may have other values.
    activation: str = "relu"  # of the feed-forward layers: "relu" (Eq. 2), "gelu" or "swish"
    tied_embeddings: str = "all"  # what shares a matrix: "all", "target" (with projection) or "none"
    embedding_scale: float = 0.0  # factor on token embeddings; 0: the square root of d_model, section 3.4
    output_bias: bool = False  # whether the projection to the vocabulary has a bias

    def __post_init__(self) -> None:
        _at_least(self, "model", 1, "vocab_size", "N", "d_model", "d_ff", "h", "max_positions")
        _at_least(self, "model", 0, "d_k", "d_v", "N_decoder")
        _share(self, "model", "dropout", "attention_dropout", "word_dropout")
        _one_of(self, "model", "positions", ("sinusoidal", "learned"))
        _one_of(self, "model", "activation", ("relu", "gelu", "swish"))
        _one_of(self, "model", "tied_embeddings", ("all", "target", "none"))
        _at_least(self, "model", 0, "embedding_scale")
        _finite(self, "model", "embedding_scale")
        _require(
            self.positions == "learned" or self.d_model % 2 == 0,
            f"model.d_model must be even for sinusoidal positions (sine and cosine pairs), not {self.d_model}.",
        )
        if self.N_decoder == self.N:
            object.__setattr__(self, "N_decoder", 0)
        for name in ("d_k", "d_v"):
            if getattr(self, name) == 0:
                _require(
                    self.d_model % self.h == 0,
                    f"model.h = {self.h} does not divide model.d_model = {self.d_model}. "
                    f"Choose a divisor of {self.d_model}, or set model.{name}.",
                )
                object.__setattr__(self, name, self.d_model // self.h)

    @property
    def decoder_layers(self) -> int:
        return self.N_decoder or self.N


@dataclass(frozen=True)
class TrainingConfig:
    """The training settings: the [training] section of a recipe (section 5 of the paper)."""

    steps: int = 100_000  # optimizer updates
    seed: int = 1  # random seed for weights, batch order and dropout
    batch_tokens: int = 25_000  # batch size: maximum padded tokens on either side
    accumulate: int = 1  # gradient accumulation: batches per update
    optimizer: str = "adam"  # "adam", as in the paper, or "muon"
    warmup_steps: int = 4_000  # steps until the learning rate peaks, Eq. 3
    learning_rate: float = 1.0  # factor on the paper's schedule, Eq. 3
    cooldown_steps: int = 0  # final steps of linear decay to 0; 0: none, as in the paper
    dropout_warmup_steps: int = 0  # first steps, over which dropout and bpe_dropout rise from 0; 0: none
    bidirectional_steps: int = 0  # first steps, in which every other batch is reversed (target → source); 0: none
    consistency: float = 0.0  # weight of the divergence between whole and cut input (SimCut), at twice the cost; 0: off
    cutoff: float = 0.05  # with consistency: probability of cutting off an input token
    label_smoothing: float = 0.1  # probability spread over the vocabulary, section 5.4
    clip_norm: float = 0.0  # maximum gradient norm; 0: no clipping, as in the paper
    precision: str = "auto"  # data type of activations: "auto" (bf16 if supported natively), "fp32", "bf16" or "fp16"
    checkpoint_activations: bool = False  # recompute layers in the backward pass: less memory, same result
    shard: bool = False  # several processes: divide weights, gradients and optimizer state among them (FSDP2)
    non_finite: str = "stop"  # if the loss or a gradient is not finite: "stop" the run or "skip" the update
    log_every: int = 10  # steps between log lines
    validate_every: int = 1_000  # steps between validations
    save_every: int = 1_000  # steps between checkpoints
    keep: int = 0  # checkpoints kept; 0: as many as `average`, at least 2
    average: int = 5  # checkpoints averaged into the final model
    ema_decay: float = 0.0  # decay per step of an exponential moving average of the weights; 0: off
    select_final: bool = False  # final model: last, average, best or moving average, by validation BLEU
    patience: int = 0  # early stopping: validations without improvement; 0: off
    threads: int = 0  # CPU threads; 0: all cores
    init: str = ""  # MODEL to fine-tune, with its shape and tokenizer

    def __post_init__(self) -> None:
        one = ("steps", "batch_tokens", "accumulate", "warmup_steps", "log_every")
        _at_least(self, "training", 1, *one, "validate_every", "save_every", "average")
        _at_least(self, "training", 0, "seed", "keep", "patience", "threads", "clip_norm")
        _at_least(self, "training", 0, "cooldown_steps", "dropout_warmup_steps", "bidirectional_steps")
        _finite(self, "training", "learning_rate", "clip_norm", "consistency")
        _require(self.learning_rate > 0, f"training.learning_rate must be above 0, not {self.learning_rate}.")
        _share(self, "training", "label_smoothing", "ema_decay", "cutoff")
        _at_least(self, "training", 0, "consistency")
        _require(
            self.select_final or not self.ema_decay,
            f"training.ema_decay = {self.ema_decay} has no effect without training.select_final = true, which lets "
            "the validation text decide between the moving average and the checkpoints. Set both, or neither.",
        )
        _one_of(self, "training", "optimizer", ("adam", "muon"))
        _one_of(self, "training", "precision", ("auto", "fp32", "bf16", "fp16"))
        _one_of(self, "training", "non_finite", ("stop", "skip"))
        _require(
            not (self.shard and self.precision == "fp16"),
            'training.shard = true does not support training.precision = "fp16". Use "bf16" or "fp32".',
        )
        if self.keep == 0:
            object.__setattr__(self, "keep", max(2, self.average))
        _require(
            self.keep >= self.average,
            f"training.keep = {self.keep} is below training.average = {self.average}: "
            "the checkpoints to average would be deleted. Raise training.keep or lower training.average.",
        )


@dataclass(frozen=True)
class DecodingConfig:
    """The search settings: the [decoding] section of a recipe (section 6.1 of the paper)."""

    beam: int = 4  # beam width; 1 is greedy search
    alpha: float = 0.6  # length penalty: scores are divided by ((5 + |Y|) / 6) ** alpha
    power_alpha: float = 0.45  # the same for CTranslate2 and Marian, which divide scores by |Y| ** power_alpha
    select_alpha: bool = False  # choose both on the validation text when training ends
    max_extra: int = 50  # maximum output tokens beyond the input length
    batch_tokens: int = 16_384  # batch size: maximum padded source tokens × beam width

    def __post_init__(self) -> None:
        _at_least(self, "decoding", 1, "beam", "batch_tokens")
        _at_least(self, "decoding", 0, "alpha", "power_alpha", "max_extra")
        _finite(self, "decoding", "alpha", "power_alpha")


@dataclass(frozen=True)
class Recipe:
    """The settings that define a run."""

    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)

    def __post_init__(self) -> None:
        _require(
            self.data.max_length <= self.training.batch_tokens,
            f"data.max_length = {self.data.max_length} is above training.batch_tokens = "
            f"{self.training.batch_tokens}: the longest sentence would not fit in a batch. "
            "Lower data.max_length or raise training.batch_tokens.",
        )
        _require(
            self.model.positions == "sinusoidal"
            or self.model.max_positions >= self.data.max_length + self.decoding.max_extra,
            f"model.max_positions = {self.model.max_positions} is below data.max_length + decoding.max_extra = "
            f"{self.data.max_length + self.decoding.max_extra}: learned positions would run out. "
            "Raise model.max_positions.",
        )


SECTIONS: dict[str, type[Any]] = {
    "data": DataConfig,
    "model": ModelConfig,
    "training": TrainingConfig,
    "decoding": DecodingConfig,
}


def keys_of(section: str) -> dict[str, str]:
    """Return key → type name for a recipe section. The vocabulary size belongs to [data]."""
    hidden = {"vocab_size"} if section == "model" else set()
    return {name: kind for name, kind in field_types(SECTIONS[section]).items() if name not in hidden}
