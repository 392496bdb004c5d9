"""Malicious files with valid digests, so that the manifest does not help."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from heedful.manifest import write_manifest

Malice = Callable[[Path], None]
TRACE = "EXECUTED"  # a file of this name appears in the current directory if a payload is run


class Payload:
    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return open, (TRACE, "w")


def torch_archive() -> bytes:
    written = io.BytesIO()
    torch.save({"weights": Payload()}, written)
    return written.getvalue()


def replaced(name: str, content: Callable[[], bytes]) -> Malice:
    def act(model: Path) -> None:
        (model / name).write_bytes(content())
        write_manifest(model)

    return act


def with_header(header: dict[str, Any] | bytes, data: bytes = b"", length: int | None = None) -> bytes:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw) if length is None else length) + raw + data


def tensor(begin: int, end: int, shape: list[int]) -> dict[str, Any]:
    return {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}


def configured(**changes: Any) -> Malice:
    """config.json with some values of its section [model], or others, changed."""

    def act(model: Path) -> None:
        path = model / "config.json"
        content = json.loads(path.read_text(encoding="utf-8"))
        for key, value in changes.items():
            content[key] = {**content[key], **value} if isinstance(value, dict) else value
        path.write_text(json.dumps(content), encoding="utf-8")
        write_manifest(model)

    return act


def manifest(files: dict[str, Any]) -> Malice:
    def act(model: Path) -> None:
        known = json.loads((model / "MANIFEST.json").read_text(encoding="utf-8"))["files"]
        forged = {**known, **files}
        content = {"about": {}, "files": forged}
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        (model / "MANIFEST.json").write_text(json.dumps({**content, "digest": digest}), encoding="utf-8")

    return act


def linked(name: str, target: str) -> Malice:
    def act(model: Path) -> None:
        (model / name).unlink()
        (model / name).symlink_to(target)

    return act


def piped(name: str) -> Malice:
    def act(model: Path) -> None:
        (model / name).unlink()
        os.mkfifo(model / name)

    return act


def deep() -> bytes:
    return b'{"format_version":' + b"[" * 200_000


def huge() -> bytes:
    return b'{"format_version": 1, "history": [' + b"0," * 100_000_000 + b"0]}"


FACTS = {"bytes": 1, "sha256": "0" * 64}

MODELS: dict[str, Malice] = {
    "pickle as weights": replaced("model.safetensors", lambda: pickle.dumps(Payload())),
    "torch archive as weights": replaced("model.safetensors", lambda: torch_archive()),
    "pickle as tokenizer": replaced("tokenizer.model", lambda: pickle.dumps(Payload())),
    "pickle as configuration": replaced("config.json", lambda: pickle.dumps(Payload(), protocol=0)),
    "zip bomb as weights": replaced("model.safetensors", lambda: gzip.compress(bytes(50_000_000))),
    "header of 2^64 - 1 bytes": replaced("model.safetensors", lambda: with_header({}, length=2**64 - 1)),
    "header longer than the file": replaced("model.safetensors", lambda: with_header({}, length=99_999_999)),
    "header of zeros": replaced("model.safetensors", lambda: with_header(bytes(90_000_000))),
    "header of nested lists": replaced("model.safetensors", lambda: with_header(b'{"a":' + b"[" * 1_000_000)),
    "overlapping offsets": replaced(
        "model.safetensors", lambda: with_header({"a": tensor(0, 8, [2]), "b": tensor(4, 12, [2])}, bytes(12))
    ),
    "offsets beyond the file": replaced(
        "model.safetensors", lambda: with_header({"a": tensor(0, 2**40, [2**38])}, bytes(8))
    ),
    "offsets backwards": replaced("model.safetensors", lambda: with_header({"a": tensor(8, 0, [2])}, bytes(8))),
    "shape that overflows": replaced(
        "model.safetensors", lambda: with_header({"a": tensor(0, 8, [2**62, 2**62])}, bytes(8))
    ),
    "a million empty tensors": replaced(
        "model.safetensors", lambda: with_header({str(i): tensor(0, 0, [0]) for i in range(100_000)})
    ),
    "../ in the manifest": manifest({"../../../../etc/passwd": FACTS}),
    "absolute name in the manifest": manifest({"/dev/zero": FACTS}),
    "link to a secret": linked("tokenizer.model", "/etc/passwd"),
    "link to an endless device": linked("MANIFEST.json", "/dev/zero"),
    "pipe that nobody writes": piped("MANIFEST.json"),
    "pipe as weights": piped("model.safetensors"),
    "huge JSON": replaced("config.json", huge),
    "huge manifest": lambda model: (model / "MANIFEST.json").write_bytes(huge()) and None,
    "deep JSON": replaced("config.json", deep),
    "deep manifest": lambda model: (model / "MANIFEST.json").write_bytes(deep()) and None,
    "number of 10,000 digits": replaced("config.json", lambda: b'{"format_version": ' + b"9" * 10_000 + b"}"),
    "a billion layers": configured(model={"N": 10**9}),
    "width of 2^40": configured(model={"d_model": 2**40, "d_k": 1, "d_v": 1}),
    "heads of 2^62": configured(model={"h": 2**62, "d_k": 2**62, "d_v": 2**62}),
    "half a layer": configured(model={"N": 1.5}),
    "no length at all": configured(text={"max_length": -1}),
    "tokenizer of 150 MB": replaced("tokenizer.model", lambda: bytes(150_000_000)),
    "weights of no numbers": replaced("model.safetensors", lambda: with_header({})),
}


def raw(name: str, content: Callable[[], bytes]) -> Callable[[Path], Path]:
    def act(directory: Path) -> Path:
        (directory / name).write_bytes(content())
        return directory / name

    return act


TEXTS: dict[str, Callable[[Path], Path]] = {
    "gzip bomb": raw("bomb.gz", lambda: gzip.compress(bytes(300_000_000), compresslevel=1)),
    "gzip that ends early": raw("cut.gz", lambda: gzip.compress(os.urandom(100_000))[:-9]),
    "not gzip": raw("text.gz", lambda: b"\x1f\x8b" + bytes(100)),
}

RECIPES: dict[str, Callable[[Path], Path]] = {
    "deep TOML": raw("deep.toml", lambda: b"a = " + b"[" * 100_000),
    "huge TOML": raw("huge.toml", lambda: b"# " + b"x" * 100_000_000),
    "huge number in TOML": raw("number.toml", lambda: b"[training]\nsteps = " + b"9" * 10_000),
    "pickle as TOML": raw("pickle.toml", lambda: pickle.dumps(Payload(), protocol=0)),
    "endless device": lambda _: Path("/dev/zero"),
}
