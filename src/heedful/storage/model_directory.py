"""A MODEL directory: all that is needed to go from raw text to raw text.

config.json · tokenizer.model · model.safetensors · MANIFEST.json
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from heedful.config import DecodingConfig, ModelConfig
from heedful.errors import ConfigError, InputError, ModelError
from heedful.files import new_directory
from heedful.model.transformer import Transformer
from heedful.storage.manifest import verify_manifest, write_manifest
from heedful.text.tokenizer import Tokenizer
from heedful.version import __version__

FORMAT = 1
WEIGHTS, TOKENIZER, CONFIG = "model.safetensors", "tokenizer.model", "config.json"


@dataclass(frozen=True)
class TextFacts:
    """What a model expects of its text."""

    source_language: str = ""
    target_language: str = ""
    lowercase: bool = False
    max_length: int = 256  # pieces with the end symbol; it was trained on nothing longer


@dataclass(frozen=True)
class Model:
    """A model with its tokeniser and what it needs to know of its text."""

    transformer: Transformer
    tokenizer: Tokenizer
    text: TextFacts
    decoding: DecodingConfig
    history: Mapping[str, Any] = field(default_factory=dict)  # where it comes from: steps, scores, data


def write_model(directory: Path, model: Model) -> None:
    """Writes a MODEL whole or not at all; an older one is replaced in one step."""
    content = {
        "format": FORMAT,
        "heedful": __version__,
        "model": asdict(model.transformer.config),
        "text": asdict(model.text),
        "decoding": asdict(model.decoding),
        "history": dict(model.history),
    }
    with new_directory(directory, needed=4 * model.transformer.parameter_count()) as unfinished:
        (unfinished / CONFIG).write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")
        (unfinished / TOKENIZER).write_bytes(model.tokenizer.model)
        write_tensors(unfinished / WEIGHTS, model.transformer.state_dict())
        write_manifest(unfinished)


def read_model(directory: Path, device: torch.device | str = "cpu") -> Model:
    """Reads a MODEL after checking every byte of it; the transformer is in eval mode."""
    if not directory.is_dir():
        raise ModelError(f"There is no model {directory}.")
    verify_manifest(directory, (CONFIG, TOKENIZER, WEIGHTS), ModelError)
    content = read_config(directory)
    try:
        config = ModelConfig(**content["model"])
        text, decoding = TextFacts(**content["text"]), DecodingConfig(**content["decoding"])
        history = dict(content["history"])
    except (KeyError, TypeError, ValueError, ConfigError) as error:
        raise ModelError(f"{directory / CONFIG} does not describe a model: {error}.") from None
    tokenizer = Tokenizer.read(directory / TOKENIZER)
    if tokenizer.vocab_size != config.vocab_size:
        raise ModelError(
            f"{directory}: the tokeniser has {tokenizer.vocab_size} pieces and the model {config.vocab_size}."
        )
    with torch.device("meta"):
        transformer = Transformer(config)
    load_weights(transformer, read_tensors(directory / WEIGHTS, ModelError), directory / WEIGHTS)
    return Model(transformer.to(device).eval(), tokenizer, text, decoding, history)


def read_config(directory: Path) -> dict[str, Any]:
    path = directory / CONFIG
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        number = content["format"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelError(f"{path} cannot be read: {error}.") from None
    if number != FORMAT:
        raise ModelError(f"{path} is of format {number}; this heedful ({__version__}) reads format {FORMAT}.")
    return dict(content)


def load_weights(transformer: Transformer, tensors: Mapping[str, Tensor], where: Path) -> None:
    """Puts tensors in place of a transformer's parameters; names and shapes must be its own."""
    expected = {name: tensor.shape for name, tensor in transformer.state_dict().items()}
    given = {name: tensor.shape for name, tensor in tensors.items()}
    if wrong := sorted(expected.items() ^ given.items()):
        name = wrong[0][0]
        raise ModelError(
            f"{where} does not fit its configuration: {name} is {_shape(given.get(name))}, "
            f"expected {_shape(expected.get(name))}."
        )
    transformer.load_state_dict(dict(tensors), assign=True)


def _shape(shape: torch.Size | None) -> str:
    return "absent" if shape is None else " × ".join(map(str, shape))


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Written by ourselves, not by safetensors' own file writer: a full disk is then an OSError that says so."""
    path.write_bytes(safetensors.torch.save({name: t.detach().contiguous().cpu() for name, t in tensors.items()}))


def read_tensors(path: Path, error: type[InputError]) -> dict[str, Tensor]:
    try:
        return safetensors.torch.load_file(path)
    except (safetensors.SafetensorError, OSError, ValueError) as reason:
        raise error(f"{path} cannot be read: {reason}.") from None
