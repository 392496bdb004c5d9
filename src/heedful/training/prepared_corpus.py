"""Training on a prepared corpus, with its tokenizer, rules and validation text."""

from __future__ import annotations

from pathlib import Path

from heedful import recipes
from heedful.config import DataConfig
from heedful.errors import ConfigError
from heedful.recipes import Settings
from heedful.storage.model_directory import Model
from heedful.storage.prepared_directory import PreparedDirectory, prepared_text
from heedful.text.tokenizer import Tokenizer

FIXED = ("lowercase", "max_length", "max_ratio", "vocab_size")  # keys of [data] that were applied in preparation
_OWN_UNLESS_GIVEN = ("source_language", "target_language")


def completed(settings: Settings, initial_model: Model | None) -> Settings:
    """Return the settings with those of a prepared `data.source`; raise if they differ."""
    data = settings.get("data", {})
    prepared = prepared_text(DataConfig(**data))
    if prepared is None:
        return settings
    plan = prepared.read_plan()
    rules, requested = plan["data"], plan["request"]["data"]
    _require_same_tokenizer(prepared, data, initial_model)
    for key in FIXED:
        # The vocabulary may have become smaller than requested.
        if key in data and data[key] not in (rules[key], requested.get(key)):
            raise ConfigError(
                f"data.{key} = {data[key]}, but {prepared.path} was prepared with {rules[key]}. "
                f"Omit data.{key}, or prepare the corpus again."
            )
    own = {key: rules[key] for key in FIXED}
    own |= {key: rules[key] for key in _OWN_UNLESS_GIVEN if rules[key]}
    if not (data.get("valid_source") or data.get("valid_target")):
        own |= {key: (str(path),) for key, path in zip(("valid_source", "valid_target"), prepared.valid, strict=True)}
    if initial_model is None:
        own["tokenizer"] = str(prepared.tokenizer)
    given = {key: value for key, value in data.items() if value and key not in FIXED}
    return recipes.merged({"data": own}, {**settings, "data": given})


def _require_same_tokenizer(prepared: PreparedDirectory, data: Settings, initial_model: Model | None) -> None:
    own = Tokenizer.read(prepared.tokenizer).model
    other = initial_model.tokenizer.model if initial_model is not None else None
    name, file = "the `--init` model's", "MODEL/tokenizer.model"
    if other is None and data.get("tokenizer"):
        name = file = str(data["tokenizer"])
        other = Tokenizer.read(Path(file)).model
    if other is not None and other != own:
        raise ConfigError(
            f"{prepared.path} was prepared with a tokenizer other than {name}. "
            f"Prepare it again with `--set data.tokenizer={file}`."
        )
