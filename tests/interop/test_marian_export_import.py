"""Marian export against `transformers`, the import round trip and rejected models."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from reference_log_probabilities import log_probabilities, sentences

from heedful.config import BOS
from heedful.decoding.translator import Translator
from heedful.errors import HeedfulError, ModelError
from heedful.interop.marian_export import (
    BIAS,
    CONFIG,
    EMBEDDING,
    SOURCE,
    TARGET,
    VOCABULARY,
    WEIGHTS,
    marian_component_order,
    write_marian,
)
from heedful.interop.marian_import import read_marian
from heedful.model.embeddings import sinusoids
from heedful.storage.model_directory import Model
from heedful.text.text_files import one_line


@pytest.fixture(scope="module")
def exported(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An exported directory that tests must not modify."""
    directory = tmp_path_factory.mktemp("marian") / "out"
    write_marian(model, directory)
    return directory


@pytest.fixture
def writable_copy(exported: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(exported, tmp_path / "own"))


@pytest.fixture(scope="module")
def marian_model(exported: Path) -> Any:
    transformers = pytest.importorskip("transformers")
    return transformers.MarianMTModel.from_pretrained(exported).eval()


def test_directory_contents(exported: Path) -> None:
    assert {path.name for path in exported.iterdir()} == {
        *("config.json", "generation_config.json", "model.safetensors", "vocab.json"),
        *("source.spm", "target.spm", "tokenizer_config.json"),
    }


def test_transformers_computes_the_same_log_probabilities(marian_model: Any, model: Model) -> None:
    source, target = sentences(model, 9, 6)
    with torch.no_grad():
        shifted = torch.tensor([[BOS, *target[:-1]]])
        logits = marian_model(input_ids=torch.tensor([source]), decoder_input_ids=shifted).logits[0]
    actual = logits.log_softmax(dim=-1)[range(len(target)), target]
    torch.testing.assert_close(actual, log_probabilities(model, source, target), rtol=0, atol=1e-4)


def test_transformers_loads_every_weight(exported: Path) -> None:
    transformers = pytest.importorskip("transformers")
    _, report = transformers.MarianMTModel.from_pretrained(exported, output_loading_info=True)
    assert not report["unexpected_keys"]
    assert not report["mismatched_keys"]
    assert {name for name in report["missing_keys"] if "embed_positions" not in name} <= {"lm_head.weight"}


def test_greedy_translation_matches_transformers(marian_model: Any, exported: Path, model: Model) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.MarianTokenizer.from_pretrained(exported)
    ours = Translator(model)
    for text in ("bade kilo", "so mi ta", "Grüße, 日本"):
        batch = tokenizer([text], return_tensors="pt")
        assert batch["input_ids"][0].tolist() == ours.ids(text)
        limit = len(ours.ids(text)) + model.decoding.max_extra
        [generated] = marian_model.generate(**batch, num_beams=1, max_length=limit + 1)
        expected = ours.translate(text, beam=1)
        assert tokenizer.convert_ids_to_tokens(generated, skip_special_tokens=True) == list(expected.tokens)
        assert one_line(tokenizer.decode(generated, skip_special_tokens=True)) == expected.text


def test_generation_config(marian_model: Any, model: Model) -> None:
    assert marian_model.generation_config.num_beams == model.decoding.beam
    assert marian_model.generation_config.length_penalty == model.decoding.power_alpha != model.decoding.alpha
    assert marian_model.generation_config.decoder_start_token_id == BOS


def test_export_import_round_trip_is_bit_exact(exported: Path, model: Model) -> None:
    imported = read_marian(exported)
    for name, tensor in model.transformer.state_dict().items():
        assert torch.equal(imported.transformer.state_dict()[name], tensor), name
    assert imported.transformer.config == model.transformer.config
    assert (imported.text, imported.decoding) == (model.text, model.decoding)
    assert imported.tokenizer.model == model.tokenizer.model
    assert not imported.transformer.training


def test_stacks_of_different_depths(random_model: Any, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    model = random_model(N=3, N_decoder=1)
    write_marian(model, tmp_path / "out")
    imported = read_marian(tmp_path / "out").transformer
    assert imported.config == model.transformer.config
    for name, tensor in model.transformer.state_dict().items():
        assert torch.equal(imported.state_dict()[name], tensor), name
    theirs = transformers.MarianMTModel.from_pretrained(tmp_path / "out").eval()
    test_transformers_computes_the_same_log_probabilities(theirs, model)


def test_import_after_save_pretrained(marian_model: Any, exported: Path, model: Model, tmp_path: Path) -> None:
    """`save_pretrained` rewrites the weights, as after fine-tuning, but not the tokenizer."""
    shutil.copytree(exported, tmp_path / "saved")
    marian_model.save_pretrained(tmp_path / "saved")
    imported = read_marian(tmp_path / "saved")
    for name, tensor in model.transformer.state_dict().items():
        assert torch.equal(imported.transformer.state_dict()[name], tensor), name


def test_half_precision_weights_are_imported_as_float32(writable_copy: Path, model: Model) -> None:
    weights = {name: tensor.half() for name, tensor in safetensors.torch.load_file(writable_copy / WEIGHTS).items()}
    safetensors.torch.save_file(weights, writable_copy / WEIGHTS)
    imported = read_marian(writable_copy)
    assert {tensor.dtype for tensor in imported.transformer.state_dict().values()} == {torch.float32}
    source, target = sentences(model, 9, 6)
    expected = log_probabilities(model, source, target)
    torch.testing.assert_close(log_probabilities(imported, source, target), expected, rtol=0, atol=0.05)


def with_config(**changes: Any) -> Callable[[Path], None]:
    def change(directory: Path) -> None:
        content = json.loads((directory / CONFIG).read_text(encoding="utf-8")) | changes
        (directory / CONFIG).write_text(json.dumps({key: v for key, v in content.items() if v is not None}))

    return change


def with_weights(edit: Callable[[dict[str, torch.Tensor]], Any]) -> Callable[[Path], None]:
    def change(directory: Path) -> None:
        weights = safetensors.torch.load_file(directory / WEIGHTS)
        edit(weights)
        safetensors.torch.save_file(weights, directory / WEIGHTS)

    return change


def with_pickle(directory: Path) -> None:
    (directory / WEIGHTS).rename(directory / "pytorch_model.bin")


def with_pipe(directory: Path) -> None:
    (directory / WEIGHTS).unlink()
    os.mkfifo(directory / WEIGHTS)


def with_invalid_utf8_tokenizer(directory: Path) -> None:
    """Replace a token of two letters by two bytes that are not valid UTF-8."""
    content = (directory / SOURCE).read_bytes()
    token = "\u2581ba".encode()
    assert content.count(token)
    for name in (SOURCE, TARGET):
        (directory / name).write_bytes(content.replace(token, b"\xe2\x96\x81\xff\xfe", 1))


def with_missing_token(directory: Path) -> None:
    content = json.loads((directory / VOCABULARY).read_text(encoding="utf-8"))
    content["<0x41>"] = content["<0x42>"]
    (directory / VOCABULARY).write_text(json.dumps(content))


def with_text_ids(directory: Path) -> None:
    (directory / VOCABULARY).write_text(json.dumps({"a": "0"}))


UNSUPPORTED = {
    "other activation": (with_config(activation_function="gelu_new"), 'activation_function is "gelu_new"'),
    "other model type": (with_config(model_type="bart"), 'model_type is "bart"'),
    "unequal heads": (with_config(decoder_attention_heads=1), "3 in the encoder and 1 in the decoder"),
    "a decoder layer too many": (with_config(decoder_layers=1), "contains the tensor model.decoder.layers.1"),
    "no decoder depth": (with_config(decoder_layers=None), "decoder_layers"),
    "padding outside of the vocabulary": (with_config(pad_token_id=58_100), "pad_token_id is 58100"),
    "padding is the end": (with_config(pad_token_id=3), "imports only models in which they differ"),
    "pre-norm": (with_config(normalize_before=True), "normalize_before is true"),
    "forbidden word": (with_config(bad_words_ids=[[0], [77]]), r"bad_words_ids contains \[77\]"),
    "separate vocabularies": (with_config(decoder_vocab_size=7), "have separate vocabularies"),
    "fractional layers": (with_config(encoder_layers=2.5, decoder_layers=2.5), "2.5"),
    "no d_model": (with_config(d_model=None), "d_model"),
    "implausibly large": (with_config(encoder_layers=10**9, decoder_layers=10**9), "far too few values"),
    "invalid text settings": (with_config(heedful={"text": {"max_length": "long"}}), "max_length"),
    "settings of the wrong type": (
        with_config(heedful=[1]),
        "is not a valid model configuration: its content has an unexpected structure",
    ),
    "huge dropout": (with_config(dropout=10**400), "is not a valid model configuration"),
    "huge alpha": (with_config(heedful={"decoding": {"alpha": 10**400}}), "is not a valid model configuration"),
    "invalid language name": (with_config(heedful={"text": {"source_language": "\ud800"}}), "not a language code"),
    "named pipe": (with_pipe, "not a regular file"),
    "invalid UTF-8 in the tokenizer": (with_invalid_utf8_tokenizer, "no text|damaged"),
    "pickle file": (with_pickle, "pickle"),
    "token without an id": (with_missing_token, "Each id must occur once"),
    "ids that are not numbers": (with_text_ids, "does not map tokens to ids"),
    "missing weight": (with_weights(lambda w: w.pop("model.encoder.layers.0.fc1.weight")), "fc1.weight is missing"),
    "unknown weight": (with_weights(lambda w: w.update(extra=torch.zeros(1))), "contains the tensor extra"),
    "tied projection with other values": (
        with_weights(lambda w: w.update({"lm_head.weight": w[EMBEDDING] + 1})),
        "lm_head.weight differs",
    ),
    "short bias": (with_weights(lambda w: w.update({BIAS: w[BIAS][:, 1:].clone()})), "one per token"),
    "integer weights": (with_weights(lambda w: w.update({EMBEDDING: w[EMBEDDING].char()})), "torch.int8"),
    "scalar position table": (
        with_weights(lambda w: w.update({"model.encoder.embed_positions.weight": torch.tensor(1.0)})),
        "not sinusoidal",
    ),
    "learned positions": (
        with_weights(lambda w: w.update({"model.decoder.embed_positions.weight": torch.ones(9, 24)})),
        "not sinusoidal",
    ),
    "invalid JSON": (lambda directory: (directory / CONFIG).write_text("{"), "Cannot read"),
    "JSON list": (lambda directory: (directory / CONFIG).write_text("[]"), "not a JSON object"),
    "no tokenizer": (lambda directory: (directory / SOURCE).unlink(), "source.spm"),
}


@pytest.mark.parametrize("kind", UNSUPPORTED)
def test_unsupported_model_is_rejected(writable_copy: Path, kind: str) -> None:
    change, message = UNSUPPORTED[kind]
    change(writable_copy)
    with pytest.raises(HeedfulError, match=message) as caught:
        read_marian(writable_copy)
    assert caught.value.exit_code == 3


def test_redundant_tensors_are_accepted(writable_copy: Path, model: Model) -> None:
    def edit(weights: dict[str, torch.Tensor]) -> None:
        weights["lm_head.weight"] = weights[EMBEDDING].clone()
        weights["model.encoder.embed_positions.weight"] = sinusoids(100, 24)[:, marian_component_order(24)].half()
        del weights[BIAS]

    with_weights(edit)(writable_copy)
    back = read_marian(writable_copy).transformer.state_dict()
    for name, tensor in model.transformer.state_dict().items():
        assert torch.equal(back[name], tensor), name


@pytest.mark.parametrize("shape", [{"d_k": 5}, {"positions": "learned"}], ids=str)
def test_unsupported_configuration_is_not_exported(random_model: Any, tmp_path: Path, shape: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=r"MarianMT does not support (this model|model\.positions)"):
        write_marian(random_model(**shape), tmp_path / "out")
    assert not list(tmp_path.iterdir())
