"""MODEL directories: exact round trip, and rejection of everything invalid."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import safetensors.torch
import torch

from heedful.config import DataConfig, DecodingConfig, ModelConfig
from heedful.data.store import write_store
from heedful.errors import HeedfulError, ModelError
from heedful.manifest import write_manifest
from heedful.model.transformer import Transformer
from heedful.storage import model_directory
from heedful.storage.model_directory import Model, TextFacts, read_model, write_model
from heedful.text.corpus import Pair
from heedful.text.tokenizer import Tokenizer

FILES = {"config.json", "tokenizer.model", "model.safetensors", "MANIFEST.json"}


@pytest.fixture
def model(tokenizer: Tokenizer) -> Model:
    torch.manual_seed(1)
    config = ModelConfig(vocab_size=tokenizer.vocab_size, N=1, d_model=8, d_ff=16, h=2, d_k=3)
    text = TextFacts("en", "de", lowercase=True, max_length=33)
    return Model(Transformer(config), tokenizer, text, DecodingConfig(beam=3, alpha=0.5), {"steps": 7, "größe": "ß"})


@pytest.fixture
def written(model: Model, tmp_path: Path) -> Path:
    write_model(tmp_path / "deep" / "model", model)
    return tmp_path / "deep" / "model"


def rewrite_config(directory: Path, **changes: object) -> None:
    """Change config.json and update the manifest, as a faulty program could."""
    path = directory / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **changes}), encoding="utf-8")
    write_manifest(directory)


def test_has_exactly_the_files_of_the_contract(written: Path) -> None:
    assert {path.name for path in written.iterdir()} == FILES
    assert [path.name for path in written.parent.iterdir()] == ["model"]


def test_round_trip_preserves_everything(written: Path, model: Model) -> None:
    read = read_model(written)
    assert read.transformer.config == model.transformer.config
    assert (read.text, read.decoding, read.history) == (model.text, model.decoding, model.history)
    assert read.tokenizer.model == model.tokenizer.model
    before, after = model.transformer.state_dict(), read.transformer.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert not read.transformer.training


def test_translations_are_the_same_after_reading(written: Path, model: Model) -> None:
    source, target = torch.tensor([[5, 6, 3]]), torch.tensor([[2, 7]])
    with torch.inference_mode():
        assert torch.equal(model.transformer.eval()(source, target), read_model(written).transformer(source, target))


def test_newer_model_replaces_an_older_one(written: Path, model: Model) -> None:
    write_model(written, replace(model, history={"steps": 8}))
    assert read_model(written).history == {"steps": 8}
    assert [path.name for path in written.parent.iterdir()] == ["model"]


def test_a_failed_write_leaves_the_older_model(written: Path, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("in the middle")

    monkeypatch.setattr(model_directory, "write_tensors", fail)
    with pytest.raises(RuntimeError, match="in the middle"):
        write_model(written, replace(model, history={"steps": 8}))
    assert read_model(written).history["steps"] == 7
    assert [path.name for path in written.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("name", sorted(FILES))
def test_damage_to_any_file_is_found(written: Path, name: str) -> None:
    path = written / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)
    with pytest.raises(ModelError, match="damaged"):
        read_model(written)


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_missing_file_is_named(written: Path, name: str) -> None:
    (written / name).unlink()
    with pytest.raises(ModelError, match=name):
        read_model(written)


def test_missing_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is not a model directory"):
        read_model(tmp_path / "nowhere")


def test_models_of_other_tools_are_named(written: Path) -> None:
    rewrite_config(written, format_version=99)
    with pytest.raises(
        ModelError, match=r"format_version 99; heedful .* reads format_version 1\. Use the heedful version"
    ):
        read_model(written)


@pytest.mark.parametrize(
    "changes",
    [
        {"model": {"no_such_key": 1}},
        {"model": None},
        {"model": {"N": 0}},
        {"model": {"N": "two"}},
        {"text": 5},
        {"decoding": {"beam": 0}},
        {"history": 3},
    ],
)
def test_invalid_model_configuration_is_rejected(written: Path, changes: dict[str, object]) -> None:
    rewrite_config(written, **changes)
    with pytest.raises(ModelError, match="is not a valid model configuration") as caught:
        read_model(written)
    assert re.search("NoneType|object is not|argument after", str(caught.value)) is None  # Python's own words


def test_vocabulary_mismatch_shows_both_sizes(written: Path, model: Model) -> None:
    rewrite_config(written, model={**asdict(model.transformer.config), "vocab_size": 599})
    with pytest.raises(ModelError, match=f"tokenizer has {model.tokenizer.vocab_size} tokens, but the model has 599"):
        read_model(written)


def test_weights_of_another_shape_show_both_shapes(written: Path, model: Model) -> None:
    weights = safetensors.torch.load_file(written / "model.safetensors")
    name = min(name for name, tensor in weights.items() if tensor.dim() == 2)
    own = " × ".join(map(str, weights[name].shape))
    weights[name] = torch.zeros(2, 3)
    safetensors.torch.save_file(weights, written / "model.safetensors")
    write_manifest(written)
    with pytest.raises(ModelError, match=f"{name} is 2 × 3, expected {own}"):
        read_model(written)


def test_missing_or_extra_weights_are_rejected(written: Path) -> None:
    weights = safetensors.torch.load_file(written / "model.safetensors")
    name = min(weights)
    renamed = {("extra" if key == name else key): value for key, value in weights.items()}
    safetensors.torch.save_file(renamed, written / "model.safetensors")
    write_manifest(written)
    with pytest.raises(ModelError, match="absent"):
        read_model(written)


@pytest.mark.parametrize("name", sorted(FILES - {"MANIFEST.json"}))
@pytest.mark.parametrize("content", [b"", b"\x80\x04K\x01.", b"PK\x03\x04", b"\xff" * 64, b"{}", b"null"])
def test_files_of_other_types_raise_model_error(written: Path, name: str, content: bytes) -> None:
    (written / name).write_bytes(content)
    write_manifest(written)
    with pytest.raises(HeedfulError) as caught:
        read_model(written)
    assert caught.value.exit_code == 3
    assert name in str(caught.value)


@pytest.mark.parametrize(("several", "expected"), [(0, True), (9, True), (10, False), (100, False)])
def test_the_training_text_shows_whether_lines_are_sentences(
    tmp_path: Path, tokenizer: Tokenizer, several: int, expected: bool
) -> None:
    """`several` of 100 lines have two sentences."""
    sources = ["Ba bo ka. Lu mi ra."] * several + ["Ba bo ka lu mi ra."] * (100 - several)
    pairs = [Pair(source, "x. Y") for source in sources]  # the source alone counts: it is what is split
    store = write_store(tmp_path / "store", pairs, tokenizer, DataConfig(), {"text": "here"})
    assert TextFacts.of(DataConfig(), store, tokenizer).sentence_per_line is expected


def test_a_model_keeps_whether_lines_are_sentences(tmp_path: Path, model: Model) -> None:
    for value in (True, False):
        write_model(tmp_path / "model", replace(model, text=replace(model.text, sentence_per_line=value)))
        assert read_model(tmp_path / "model").text.sentence_per_line is value
