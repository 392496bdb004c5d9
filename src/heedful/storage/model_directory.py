"""A MODEL directory: everything needed to translate raw text into raw text.

config.json · tokenizer.model · model.safetensors · MANIFEST.json

An imported Marian model has source.spm, target.spm and vocab.json instead of tokenizer.model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from heedful.atomic_files import new_directory, read_at_most
from heedful.config import DataConfig, DecodingConfig, ModelConfig
from heedful.data.store import Store
from heedful.errors import ConfigError, InputError, ModelError, as_sentence, cause
from heedful.manifest import MANIFEST, MOST_JSON, verify_manifest, write_manifest
from heedful.model.transformer import Transformer
from heedful.storage.file_names import CONFIG, CTRANSLATE2_WEIGHTS, MODEL_FILES, WEIGHTS
from heedful.storage.ownership import may_replace
from heedful.storage.tokenizer_files import read_tokenizer, tokenizer_contents, tokenizer_names
from heedful.text.language_detection import LINES, profile
from heedful.text.sentence_splitting import split_sentences
from heedful.text.tokenizer import Tokenizer
from heedful.typed_dataclasses import build_dataclass, require_format_version
from heedful.version import __version__

FORMAT_VERSION = 1  # of config.json; increased when older versions cannot read the new format
_SEVERAL_SENTENCES = 0.1  # share of lines with several sentences above which the text counts as paragraphs
_MOST_HEADER = 2_000_000  # bytes of a safetensors header: a model of hundreds of layers


@dataclass(frozen=True)
class TextFacts:
    """What a model expects of its input text, and what its training text was like."""

    source_language: str = ""
    target_language: str = ""
    lowercase: bool = False
    max_length: int = DataConfig.max_length  # tokens with the end token; no training sentence was longer
    source_profile: str = ""  # language profile, for detection (text/language_detection.py)
    target_profile: str = ""
    sentence_per_line: bool = True  # if so, input lines with several sentences are split

    def __post_init__(self) -> None:
        if self.max_length < 2:
            raise ConfigError(f"text.max_length must be at least 2, not {self.max_length}")
        for code in (self.source_language, self.target_language):
            if code.encode("utf-8", "ignore").decode("utf-8") != code:
                raise ConfigError(f"{code!a} is not a language code: it contains invalid Unicode")

    @classmethod
    def of(cls, data: DataConfig, store: Store | None = None, tokenizer: Tokenizer | None = None) -> TextFacts:
        """Return the facts of a configuration, and those of a training text sample if given."""
        facts = cls(data.source_language, data.target_language, data.lowercase, data.max_length)
        if store is None or tokenizer is None:
            return facts
        numbers = range(0, len(store), -(-len(store) // LINES))
        sides = ([side(number)[:-1].tolist() for number in numbers] for side in (store.source, store.target))
        source, target = (list(map(tokenizer.decode, side)) for side in sides)
        return replace(
            facts,
            source_profile=profile(source),
            target_profile=profile(target),
            sentence_per_line=_sentence_per_line(source, data.source_language),
        )


def _sentence_per_line(lines: Sequence[str], language: str) -> bool:
    """Return whether lines are single sentences, allowing for a few lines with two."""
    return sum(len(split_sentences(line, language)) > 1 for line in lines) < _SEVERAL_SENTENCES * len(lines)


@dataclass(frozen=True)
class Model:
    """A transformer with its tokenizer and settings."""

    transformer: Transformer
    tokenizer: Tokenizer
    text: TextFacts
    decoding: DecodingConfig
    history: Mapping[str, Any] = field(default_factory=dict)  # its origin: steps, scores, data


def write_model(directory: Path, model: Model) -> None:
    """Write a MODEL atomically, replacing an older one."""
    content = {
        "format_version": FORMAT_VERSION,
        "heedful": __version__,
        "model": asdict(model.transformer.config),
        "text": asdict(model.text),
        "decoding": asdict(model.decoding),
        "history": dict(model.history),
    }
    with new_directory(directory, 4 * model.transformer.parameter_count(), is_model) as unfinished:
        (unfinished / CONFIG).write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")
        for name, tokenizer_file in tokenizer_contents(model.tokenizer).items():
            (unfinished / name).write_bytes(tokenizer_file)
        write_tensors(unfinished / WEIGHTS, model.transformer.state_dict())
        about = {"precision": model.history["precision"]} if "precision" in model.history else {}
        write_manifest(unfinished, about)


def read_model(directory: Path, device: torch.device | str = "cpu") -> Model:
    """Verify every byte of a MODEL and read it. The transformer is in eval mode."""
    if not directory.is_dir():
        raise ModelError(f"{directory} is not a model directory. Pass a model or run directory written by heedful.")
    _refuse_other_formats(directory)
    verify_manifest(directory, required_files(directory), ModelError)
    content = read_config(directory)
    try:
        config = build_dataclass(ModelConfig, content["model"])
        text, decoding = (
            build_dataclass(TextFacts, content["text"]),
            build_dataclass(DecodingConfig, content["decoding"]),
        )
        history = dict(content["history"])
    except (KeyError, TypeError, ValueError, OverflowError, ConfigError) as error:
        raise ModelError(f"{directory / CONFIG} is not a valid model configuration: {as_sentence(error)}") from None
    tokenizer = read_tokenizer(directory)
    if tokenizer.vocab_size != config.vocab_size:
        raise ModelError(
            f"{directory}: the tokenizer has {tokenizer.vocab_size} tokens, but the model has {config.vocab_size}. "
            "The two do not belong together: copy the directory again."
        )
    transformer = with_weights(config, read_tensors(directory / WEIGHTS, ModelError), directory / WEIGHTS)
    return Model(transformer.to(device).eval(), tokenizer, text, decoding, history)


def _refuse_other_formats(directory: Path) -> None:
    """Raise ModelError for a model of another tool, and say what to pass instead."""
    if (directory / MANIFEST).exists():
        return
    if (directory / CTRANSLATE2_WEIGHTS).is_file():
        raise ModelError(
            f"{directory} is a CTranslate2 model. heedful exports this format but does not read it. "
            "Pass the model or run that it was exported from."
        )
    if (directory / "source.spm").is_file():
        raise ModelError(f"{directory} is a Marian model. Import it first: heedful import {directory} --from marian")


def required_files(directory: Path) -> tuple[str, ...]:
    """Return the names of the files that a MODEL must have."""
    return (CONFIG, *tokenizer_names(directory), WEIGHTS)


def is_model(directory: Path) -> bool:
    """Return whether this is an unchanged MODEL that heedful wrote.

    Only such a directory may be replaced.
    """
    return may_replace(directory, MODEL_FILES)


def read_config(directory: Path) -> dict[str, Any]:
    """Return the content of config.json; raise ModelError if unreadable or another version."""
    path = directory / CONFIG
    try:
        content = json.loads(read_at_most(path, MOST_JSON).decode("utf-8"))
        version = content["format_version"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelError(
            f"Cannot read {path}: {cause(error)}. Copy the model again, or restore it from a backup."
        ) from None
    require_format_version(version, FORMAT_VERSION, path, ModelError)
    return dict(content)


def with_weights(config: ModelConfig, tensors: Mapping[str, Tensor], where: Path) -> Transformer:
    """Return a transformer with these parameters; raise ModelError if they do not match."""
    require_size(config, tensors, where)
    with torch.device("meta"):
        transformer = Transformer(config)
    expected = {name: tensor.shape for name, tensor in transformer.state_dict().items()}
    given = {name: tensor.shape for name, tensor in tensors.items()}
    if wrong := sorted(expected.items() ^ given.items()):
        name = wrong[0][0]
        raise ModelError(
            f"{where} does not match its configuration: {name} is {_shape(given.get(name))}, "
            f"expected {_shape(expected.get(name))}. Copy the model again, or restore it from a backup."
        )
    transformer.load_state_dict(dict(tensors), assign=True)
    return transformer


def require_size(config: ModelConfig, tensors: Mapping[str, Tensor], where: Path) -> None:
    """Raise ModelError before building a model that is far larger than its weights file."""
    layers = config.N + config.decoder_layers
    largest = max(layers, *(getattr(config, name) for name in ("d_model", "d_ff", "h", "d_k", "d_v")))
    if len(tensors) < layers or largest > sum(tensor.numel() for tensor in tensors.values()):
        raise ModelError(
            f"{where} does not match its configuration: it has far too few values for a model of that size. "
            "Copy the model again, or restore it from a backup."
        )


def _shape(shape: torch.Size | None) -> str:
    return "absent" if shape is None else " × ".join(map(str, shape))


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write a safetensors file.

    Unlike safetensors' own writer, this raises OSError if the disk is full.
    """
    path.write_bytes(safetensors.torch.save({name: t.detach().contiguous().cpu() for name, t in tensors.items()}))


def read_tensors(path: Path, error: type[InputError]) -> dict[str, Tensor]:
    """Read a safetensors file, and raise `error` if it is invalid."""
    try:
        if path.exists() and not path.is_file():
            raise ValueError("not a regular file")  # reading from a pipe may never end
        with path.open("rb") as stream:
            header = int.from_bytes(stream.read(8), "little")
        if header > _MOST_HEADER:
            raise ValueError(f"its header has {header:,} bytes; heedful writes at most {_MOST_HEADER:,}")
        return safetensors.torch.load_file(path)
    except (safetensors.SafetensorError, OSError, ValueError) as reason:
        raise error(f"Cannot read {path}: {reason}. Copy it again, or restore it from a backup.") from None
