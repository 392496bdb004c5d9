"""Recipes: TOML ⇄ the dataclasses of config.py.

`Settings` are sparse: section → key → value, only what the user wrote. `build` checks them and returns a full Recipe.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from heedful.config import SECTIONS, DataConfig, DecodingConfig, ModelConfig, Recipe, TrainingConfig, keys_of
from heedful.errors import ConfigError, cause, nearest
from heedful.typed_dataclasses import check_type

Settings = dict[str, dict[str, Any]]

# Keys that name files. A resumed run compares their content, not their location.
PATHS = (
    ("data", "source"),
    ("data", "target"),
    ("data", "valid_source"),
    ("data", "valid_target"),
    ("data", "tokenizer"),
    ("training", "init"),
)
_MOST_BYTES = 1_000_000  # of a recipe


def read(path: Path, data_root: Path | None = None) -> Settings:
    """Return the settings of a recipe file, with data paths resolved against `data_root`."""
    try:
        with path.open("rb") as stream:
            text = stream.read(_MOST_BYTES + 1).decode("utf-8")
    except FileNotFoundError:
        raise ConfigError(f"Recipe {path} does not exist. Check the path.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Cannot read recipe {path}: {cause(error)}. Check the file and its permissions.") from None
    if len(text) > _MOST_BYTES:
        raise ConfigError(f"Recipe {path} is larger than {_MOST_BYTES:,} bytes. Check the path.")
    try:
        written = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number with too many digits, or deeply nested brackets
        hint = "" if path.suffix == ".toml" else " Pass text files with `--source` and `--target`."
        raise ConfigError(f"Recipe {path} is not valid TOML: {error}.{hint}") from None
    settings = checked(written, where=str(path))
    return with_absolute_paths(settings, data_root or path.parent)


def checked(written: Mapping[str, Any], where: str) -> Settings:
    """Return the settings.

    Raise for an unknown section or key, with a suggestion, or a value of the wrong type.
    """
    settings: Settings = {}
    for section, entries in written.items():
        if section not in SECTIONS:
            raise ConfigError(f'{where}: unknown section "{section}".{nearest(section, SECTIONS)}')
        if not isinstance(entries, Mapping):
            raise ConfigError(f"{where}: {section} must be a section. Write [{section}] and its keys below it.")
        kinds = keys_of(section)
        settings[section] = {}
        for key, value in entries.items():
            if key not in kinds:
                elsewhere = next(
                    (f' It belongs in [{other}]: "{other}.{key}".' for other in SECTIONS if key in keys_of(other)), ""
                )
                raise ConfigError(f'{where}: unknown key "{key}" in [{section}].{elsewhere or nearest(key, kinds)}')
            try:
                settings[section][key] = check_type(value, kinds[key], f"{section}.{key}")
            except ConfigError as error:
                raise ConfigError(f"{where}: {error}") from None
    return settings


def overrides(assignments: Iterable[str]) -> Settings:
    """Parse `--set section.key=value` assignments. Values are TOML; bare words are strings."""
    settings: Settings = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        section, dot, key = name.strip().partition(".")
        if not (equals and dot and key):
            raise ConfigError(f'`--set` takes section.key=value, for example training.steps=2000, not "{assignment}".')
        one = checked({section: {key: _value(text.strip())}}, where="`--set`")
        settings = merged(settings, one)
    return settings


def from_mapping(keys: Mapping[str, Any]) -> Settings:
    """Return the settings of overrides such as {"training.steps": 1000}."""
    settings: Settings = {}
    for name, value in keys.items():
        section, _, key = name.partition(".")
        settings = merged(settings, checked({section: {key: value}}, where="overrides"))
    return settings


def _value(text: str) -> Any:
    try:
        written = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return written["value"] if len(written) == 1 else text  # several lines are not one TOML value


def merged(first: Settings, second: Settings) -> Settings:
    """Return the first settings, overridden by the second."""
    sections = {**first, **second}
    return {name: {**first.get(name, {}), **second.get(name, {})} for name in sections}


def with_absolute_paths(settings: Settings, root: Path) -> Settings:
    """Return the settings with absolute file paths."""
    absolute = {section: dict(entries) for section, entries in settings.items()}
    for section, key in PATHS:
        if value := absolute.get(section, {}).get(key):
            absolute[section][key] = (
                _absolute(root, value) if isinstance(value, str) else tuple(_absolute(root, name) for name in value)
            )
    return absolute


def _absolute(root: Path, name: str) -> str:
    path = str((root / name).absolute())
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        raise ConfigError(
            f"The file name {path!r} is not UTF-8 and cannot be stored in a recipe. Rename the file."
        ) from None
    return path


def build(settings: Settings) -> Recipe:
    """Return a full recipe: the settings, and the defaults for the rest."""
    return Recipe(
        data=DataConfig(**settings.get("data", {})),
        model=ModelConfig(**settings.get("model", {})),
        training=TrainingConfig(**settings.get("training", {})),
        decoding=DecodingConfig(**settings.get("decoding", {})),
    )


def as_settings(recipe: Recipe) -> Settings:
    """Return every key of a recipe as settings for `build`."""
    sections = asdict(recipe)
    return {name: {key: sections[name][key] for key in keys_of(name)} for name in SECTIONS}


def to_toml(recipe: Recipe) -> str:
    """Return the recipe as TOML with every key; reading it gives the same recipe."""
    lines = []
    for section, entries in as_settings(recipe).items():
        lines.append(f"[{section}]")
        lines += [f"{key} = {_toml(value)}" for key, value in entries.items()]
        lines.append("")
    return "\n".join(lines)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, str):
        # A JSON string is a valid TOML basic string, except that TOML requires DEL to be escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


def differences(old: Recipe, new: Recipe) -> dict[str, tuple[Any, Any]]:
    """Return section.key → (old, new) for each difference between two recipes."""
    before, after = as_settings(old), as_settings(new)
    return {
        f"{section}.{key}": (before[section][key], after[section][key])
        for section in before
        for key in before[section]
        if before[section][key] != after[section][key]
    }
