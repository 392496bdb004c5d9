"""Defaults against the paper, validation messages, and name suggestions."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace

import pytest

from heedful import errors, presets
from heedful.config import SECTIONS, DataConfig, DecodingConfig, ModelConfig, Recipe, TrainingConfig, keys_of
from heedful.errors import ConfigError, HeedfulError, Interrupted, UsageError, nearest

INF, NAN = float("inf"), float("nan")

# A section, a value out of range, and what the message says. `{key}` must be at least …, not {value}.
OUT_OF_RANGE = [
    ("data", {"max_length": 1}, "data.max_length must be at least 2, not 1."),
    ("data", {"builtin_pairs": 0}, "data.builtin_pairs must be at least 1, not 0."),
    ("data", {"builtin": True, "source": ("a.en",)}, "data.builtin = true was given together with text files."),
    ("data", {"builtin": True, "target": ("a.de",)}, "data.builtin = true was given together with text files."),
    ("data", {"max_ratio": 0.5}, "data.max_ratio must be at least 1.0, not 0.5."),
    ("data", {"vocab_size": 260}, "data.vocab_size must be at least 261, not 260."),
    ("model", {"N": 0}, "model.N must be at least 1, not 0."),
    ("model", {"d_model": 0}, "model.d_model must be at least 1, not 0."),
    ("model", {"d_ff": -1}, "model.d_ff must be at least 1, not -1."),
    ("model", {"h": 0}, "model.h must be at least 1, not 0."),
    ("model", {"d_k": -1}, "model.d_k must be at least 0, not -1."),
    ("model", {"N_decoder": -1}, "model.N_decoder must be at least 0, not -1."),
    ("model", {"d_v": -1}, "model.d_v must be at least 0, not -1."),
    ("model", {"max_positions": 0}, "model.max_positions must be at least 1, not 0."),
    ("model", {"dropout": 1.0}, "model.dropout must be at least 0 and below 1, not 1.0."),
    ("model", {"attention_dropout": -0.1}, "model.attention_dropout must be at least 0 and below 1, not -0.1."),
    ("model", {"word_dropout": 1.0}, "model.word_dropout must be at least 0 and below 1, not 1.0."),
    ("model", {"dropout": NAN}, "model.dropout must be at least 0 and below 1, not nan."),
    ("model", {"positions": "sine"}, 'model.positions must be one of sinusoidal, learned, not "sine".'),
    ("model", {"d_model": 15, "h": 3}, "model.d_model must be even for sinusoidal positions"),
    (
        "model",
        {"d_model": 512, "h": 7},
        "model.h = 7 does not divide model.d_model = 512. Choose a divisor of 512, or set model.d_k.",
    ),
    (
        "model",
        {"d_model": 512, "h": 7, "d_k": 64},
        "model.h = 7 does not divide model.d_model = 512. Choose a divisor of 512, or set model.d_v.",
    ),
    *(
        ("training", {key: 0}, f"training.{key} must be at least 1, not 0.")
        for key in (
            "steps",
            "batch_tokens",
            "accumulate",
            "warmup_steps",
            "log_every",
            "validate_every",
            "save_every",
            "average",
        )
    ),
    *(
        ("training", {key: -1}, f"training.{key} must be at least 0, not -1.")
        for key in (
            "seed",
            "keep",
            "patience",
            "threads",
            "clip_norm",
            "cooldown_steps",
            "dropout_warmup_steps",
            "bidirectional_steps",
        )
    ),
    ("model", {"embedding_scale": -1.0}, "model.embedding_scale must be at least 0, not -1.0."),
    ("model", {"embedding_scale": INF}, "model.embedding_scale must be finite, not inf."),
    ("model", {"activation": "tanh"}, 'model.activation must be one of relu, gelu, swish, not "tanh".'),
    ("model", {"tied_embeddings": "some"}, 'model.tied_embeddings must be one of all, target, none, not "some".'),
    ("training", {"learning_rate": 0.0}, "training.learning_rate must be above 0, not 0.0."),
    ("training", {"learning_rate": INF}, "training.learning_rate must be finite, not inf."),
    ("training", {"learning_rate": NAN}, "training.learning_rate must be finite, not nan."),
    ("training", {"clip_norm": INF}, "training.clip_norm must be finite, not inf."),
    ("training", {"label_smoothing": 1.0}, "training.label_smoothing must be at least 0 and below 1, not 1.0."),
    ("training", {"cutoff": 1.0}, "training.cutoff must be at least 0 and below 1, not 1.0."),
    ("training", {"consistency": -1.0}, "training.consistency must be at least 0, not -1.0."),
    (
        "training",
        {"ema_decay": 1.0, "select_final": True},
        "training.ema_decay must be at least 0 and below 1, not 1.0.",
    ),
    ("data", {"held_out": -1}, "data.held_out must be at least 0, not -1."),
    ("data", {"bpe_dropout": 1.0}, "data.bpe_dropout must be at least 0 and below 1, not 1.0."),
    ("training", {"optimizer": "sgd"}, 'training.optimizer must be one of adam, muon, not "sgd".'),
    ("training", {"precision": "fp8"}, 'training.precision must be one of auto, fp32, bf16, fp16, not "fp8".'),
    ("training", {"non_finite": "go"}, 'training.non_finite must be one of stop, skip, not "go".'),
    ("training", {"keep": 3, "average": 4}, "training.keep = 3 is below training.average = 4"),
    ("decoding", {"beam": 0}, "decoding.beam must be at least 1, not 0."),
    ("decoding", {"batch_tokens": 0}, "decoding.batch_tokens must be at least 1, not 0."),
    ("decoding", {"alpha": -0.1}, "decoding.alpha must be at least 0, not -0.1."),
    ("decoding", {"alpha": INF}, "decoding.alpha must be finite, not inf."),
    ("decoding", {"power_alpha": -0.1}, "decoding.power_alpha must be at least 0, not -0.1."),
    ("decoding", {"max_extra": -1}, "decoding.max_extra must be at least 0, not -1."),
]


@pytest.mark.parametrize(("section", "values", "message"), OUT_OF_RANGE)
def test_out_of_range_values_are_rejected(section, values, message):
    with pytest.raises(ConfigError) as caught:
        SECTIONS[section](**values)
    assert message in str(caught.value)


def test_every_number_has_a_rule():
    """No key of a number without a value that is refused."""
    tried = {(section, key) for section, values, _ in OUT_OF_RANGE for key in values}
    numbers = {
        (section, key) for section in SECTIONS for key, kind in keys_of(section).items() if kind in ("int", "float")
    }
    assert numbers <= tried


def test_longest_sentence_must_fit_a_batch():
    data = DataConfig(max_length=100)
    Recipe(data=data, training=TrainingConfig(batch_tokens=100))
    with pytest.raises(ConfigError, match=r"data\.max_length = 100 is above training\.batch_tokens = 99"):
        Recipe(data=data, training=TrainingConfig(batch_tokens=99))


def test_learned_positions_must_suffice():
    data, decoding = DataConfig(max_length=100), DecodingConfig(max_extra=50)
    Recipe(data=data, decoding=decoding, model=ModelConfig(positions="learned", max_positions=150))
    Recipe(data=data, decoding=decoding, model=ModelConfig(positions="sinusoidal", max_positions=10))
    with pytest.raises(ConfigError, match=r"model\.max_positions = 149 is below data\.max_length \+ .* = 150"):
        Recipe(data=data, decoding=decoding, model=ModelConfig(positions="learned", max_positions=149))


def test_head_widths_default_to_d_model_over_h():
    assert (ModelConfig(d_model=512, h=8).d_k, ModelConfig(d_model=512, h=8).d_v) == (64, 64)
    explicit = ModelConfig(d_model=512, h=7, d_k=16, d_v=32)
    assert (explicit.d_k, explicit.d_v) == (16, 32)
    assert ModelConfig(d_model=9, h=3, positions="learned").d_k == 3


def test_keep_defaults_to_average():
    assert TrainingConfig(average=5).keep == 5
    assert TrainingConfig(average=1).keep == 2
    assert TrainingConfig(average=5, keep=9).keep == 9


def test_settings_are_immutable():
    with pytest.raises(FrozenInstanceError):
        ModelConfig().N = 3  # type: ignore[misc]
    assert replace(ModelConfig(), dropout=0.3).dropout == 0.3


def test_keys_of_a_recipe():
    assert "vocab_size" in keys_of("data")
    assert "vocab_size" not in keys_of("model")
    kinds = {kind for section in SECTIONS for kind in keys_of(section).values()}
    assert kinds == {"int", "float", "str", "bool", "tuple[str, ...]"}
    assert {field.name for field in fields(Recipe)} == set(SECTIONS)


# Table 3: N, d_model, d_ff, h, d_k, d_v, dropout.
@pytest.mark.parametrize(
    ("preset", "shape"),
    [(presets.base, (6, 512, 2048, 8, 64, 64, 0.1)), (presets.big, (6, 1024, 4096, 16, 64, 64, 0.3))],
)
def test_presets_match_table_3(preset, shape):
    config = preset(vocab_size=37_000)
    got = (config.N, config.d_model, config.d_ff, config.h, config.d_k, config.d_v, config.dropout)
    assert got == shape
    assert config.vocab_size == 37_000


def test_training_presets_match_section_5():
    assert dict(presets.named("base").training) == {
        "steps": 100_000,
        "optimizer": "adam",
        "batch_tokens": 25_000,
        "warmup_steps": 4_000,
        "label_smoothing": 0.1,
        "save_every": 1_500,  # ten minutes of 0.4 s steps, section 6.1
        "average": 5,
        "patience": 0,
    }
    assert presets.named("big").training["save_every"] == 600  # of 1.0 s
    assert presets.named("big").training["steps"] == 300_000
    assert presets.named("big").training["average"] == 20
    for name in presets.PRESETS:
        TrainingConfig(**presets.named(name).training)  # keys and values that exist
        assert presets.named(name).model(500).vocab_size == 500


def test_presets_grow():
    sizes = [presets.PRESETS[name].model(1_000).d_model for name in ("tiny", "small", "base", "big")]
    assert sizes == sorted(set(sizes))


@pytest.mark.parametrize(
    ("given", "hint"), [("bse", 'Did you mean "base"?'), ("qqq", "Allowed: base, big, small, table3-a-h1, ")]
)
def test_unknown_preset(given, hint):
    with pytest.raises(ConfigError) as caught:
        presets.named(given)
    assert str(caught.value).startswith(f'Unknown preset "{given}". {hint}')


def test_nearest():
    assert nearest("warmup", ["warmup_steps", "steps"]) == ' Did you mean "warmup_steps"?'
    assert nearest("zzz", ["b", "a"]) == " Allowed: a, b."
    assert nearest("", ["b", "a"]) == " Allowed: a, b."


def test_exit_codes_match_the_module_docstring():
    drawn = {}
    for line in errors.__doc__.splitlines():
        words = line.replace("│", " ").replace("├──", " ").replace("└──", " ").split()
        if len(words) > 1 and isinstance(getattr(errors, words[0], None), type):
            drawn[words[0]] = words[1]
    classes = {
        name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, HeedfulError)
    }
    assert set(drawn) == classes
    for name in classes - {"HeedfulError", "Interrupted"}:
        assert str(getattr(errors, name).exit_code) == drawn[name]
    assert issubclass(ConfigError, UsageError)


def test_interruption_has_the_signal_in_its_exit_code():
    assert Interrupted("stopped", 2).exit_code == 130
    assert Interrupted("stopped", 15).exit_code == 143
