"""`transformers` loads what we write and says what we say; `import` brings it back, and refuses what is not ours."""

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
from oracle import log_probabilities, sentences

from heedful.config import BOS
from heedful.decoding.translator import Translator
from heedful.errors import HeedfulError, ModelError
from heedful.interop.marian import (
    BIAS,
    CONFIG,
    EMBEDDING,
    SOURCE,
    TARGET,
    VOCABULARY,
    WEIGHTS,
    sines_then_cosines,
    write_marian,
)
from heedful.interop.marian_import import read_marian
from heedful.model.embeddings import sinusoids
from heedful.storage.model_directory import Model
from heedful.text.lines import one_line
from heedful.text.tokenizer import learn


@pytest.fixture(scope="module")
def exported(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """To be read, not written."""
    directory = tmp_path_factory.mktemp("marian") / "out"
    write_marian(model, directory)
    return directory


@pytest.fixture
def own(exported: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(exported, tmp_path / "own"))


@pytest.fixture(scope="module")
def theirs(exported: Path) -> Any:
    transformers = pytest.importorskip("transformers")
    return transformers.MarianMTModel.from_pretrained(exported).eval()


def test_the_directory(exported: Path) -> None:
    assert {path.name for path in exported.iterdir()} == {
        *("config.json", "generation_config.json", "model.safetensors", "vocab.json"),
        *("source.spm", "target.spm", "tokenizer_config.json"),
    }


def test_transformers_has_our_probabilities(theirs: Any, model: Model) -> None:
    source, target = sentences(model, 9, 6)
    with torch.no_grad():
        shifted = torch.tensor([[BOS, *target[:-1]]])
        logits = theirs(input_ids=torch.tensor([source]), decoder_input_ids=shifted).logits[0]
    found = logits.log_softmax(dim=-1)[range(len(target)), target]
    torch.testing.assert_close(found, log_probabilities(model, source, target), rtol=0, atol=1e-4)


def test_no_weight_is_left_to_chance(exported: Path) -> None:
    transformers = pytest.importorskip("transformers")
    _, report = transformers.MarianMTModel.from_pretrained(exported, output_loading_info=True)
    assert not report["unexpected_keys"]
    assert not report["mismatched_keys"]
    assert {name for name in report["missing_keys"] if "embed_positions" not in name} <= {"lm_head.weight"}


def test_text_in_text_out(theirs: Any, exported: Path, model: Model) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.MarianTokenizer.from_pretrained(exported)
    ours = Translator(model)
    for text in ("bade kilo", "so mi ta", "Grüße, 日本"):
        batch = tokenizer([text], return_tensors="pt")
        assert batch["input_ids"][0].tolist() == ours.ids(text)
        most = len(ours.ids(text)) + model.decoding.max_extra
        [said] = theirs.generate(**batch, num_beams=1, max_length=most + 1)
        expected = ours.translate(text, beam=1)
        assert tokenizer.convert_ids_to_tokens(said, skip_special_tokens=True) == list(expected.tokens)
        assert one_line(tokenizer.decode(said, skip_special_tokens=True)) == expected.text


def test_its_own_search_settings_are_there(theirs: Any, model: Model) -> None:
    assert theirs.generation_config.num_beams == model.decoding.beam
    assert theirs.generation_config.decoder_start_token_id == BOS


def test_there_and_back_is_the_same_to_the_bit(exported: Path, model: Model) -> None:
    back = read_marian(exported)
    for name, tensor in model.transformer.state_dict().items():
        assert torch.equal(back.transformer.state_dict()[name], tensor), name
    assert back.transformer.config == model.transformer.config
    assert (back.text, back.decoding) == (model.text, model.decoding)
    assert back.tokenizer.model == model.tokenizer.model
    assert not back.transformer.training


def test_back_from_transformers(theirs: Any, exported: Path, model: Model, tmp_path: Path) -> None:
    """Saved there, as after fine-tuning; the tokenizer's files are as they were."""
    shutil.copytree(exported, tmp_path / "saved")
    theirs.save_pretrained(tmp_path / "saved")
    back = read_marian(tmp_path / "saved")
    for name, tensor in model.transformer.state_dict().items():
        assert torch.equal(back.transformer.state_dict()[name], tensor), name


def test_half_precision_becomes_single(own: Path, model: Model) -> None:
    weights = {name: tensor.half() for name, tensor in safetensors.torch.load_file(own / WEIGHTS).items()}
    safetensors.torch.save_file(weights, own / WEIGHTS)
    back = read_marian(own)
    assert {tensor.dtype for tensor in back.transformer.state_dict().values()} == {torch.float32}
    source, target = sentences(model, 9, 6)
    expected = log_probabilities(model, source, target)
    torch.testing.assert_close(log_probabilities(back, source, target), expected, rtol=0, atol=0.05)


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


def with_bytes_in_the_tokenizer(directory: Path) -> None:
    """A token of two letters becomes two bytes that are no UTF-8."""
    content = (directory / SOURCE).read_bytes()
    token = "\u2581ba".encode()
    assert content.count(token)
    for name in (SOURCE, TARGET):
        (directory / name).write_bytes(content.replace(token, b"\xe2\x96\x81\xff\xfe", 1))


def with_other_target(directory: Path) -> None:
    (directory / TARGET).write_bytes(learn(["some other words"] * 3, 300).model)


def with_other_numbers(directory: Path) -> None:
    content = json.loads((directory / VOCABULARY).read_text(encoding="utf-8"))
    content["<0x41>"], content["<0x42>"] = content["<0x42>"], content["<0x41>"]
    (directory / VOCABULARY).write_text(json.dumps(content))


def plus_one(weights: dict[str, torch.Tensor]) -> None:
    weights[BIAS][0, 7] += 1


REFUSED = {
    "swish": (with_config(activation_function="swish"), "activation_function is 'swish'"),
    "no activation": (with_config(activation_function=None), "activation_function is 'gelu'"),
    "another model": (with_config(model_type="bart"), "model_type is 'bart'"),
    "padding elsewhere": (with_config(pad_token_id=58_100), "pad_token_id is 58100"),
    "not scaled": (with_config(scale_embedding=False), "scale_embedding"),
    "unequal stacks": (with_config(decoder_layers=1), "2 in the encoder and 1 in the decoder"),
    "half a layer": (with_config(encoder_layers=2.5, decoder_layers=2.5), "2.5"),
    "no width": (with_config(d_model=None), "d_model"),
    "huge": (with_config(encoder_layers=10**9, decoder_layers=10**9), "far too few numbers"),
    "other facts": (with_config(heedful={"text": {"max_length": "long"}}), "max_length"),
    "odd facts": (with_config(heedful=[1]), "does not describe a model"),
    "huge dropout": (with_config(dropout=10**400), "does not describe a model"),
    "huge alpha": (with_config(heedful={"decoding": {"alpha": 10**400}}), "does not describe a model"),
    "no language": (with_config(heedful={"text": {"source_language": "\ud800"}}), "no name of a language"),
    "a pipe": (with_pipe, "not a plain file"),
    "no text in the tokenizer": (with_bytes_in_the_tokenizer, "no text|damaged"),
    "a pickle": (with_pickle, "pickle"),
    "two tokenizers": (with_other_target, "differ"),
    "other numbers": (with_other_numbers, "numbers the tokens otherwise"),
    "a weight missing": (with_weights(lambda w: w.pop("model.encoder.layers.0.fc1.weight")), "fc1.weight is absent"),
    "a weight of ours": (with_weights(lambda w: w.update(extra=torch.zeros(1))), "has extra"),
    "another projection": (
        with_weights(lambda w: w.update({"lm_head.weight": w[EMBEDDING] + 1})),
        "lm_head.weight differs",
    ),
    "whole numbers": (with_weights(lambda w: w.update({EMBEDDING: w[EMBEDDING].char()})), "torch.int8"),
    "one position": (
        with_weights(lambda w: w.update({"model.encoder.embed_positions.weight": torch.tensor(1.0)})),
        "not the table of sinusoids",
    ),
    "learned positions": (
        with_weights(lambda w: w.update({"model.decoder.embed_positions.weight": torch.ones(9, 24)})),
        "not the table of sinusoids",
    ),
    "a bias": (with_weights(plus_one), "has no bias"),
    "no JSON": (lambda directory: (directory / CONFIG).write_text("{"), "cannot be read"),
    "a list": (lambda directory: (directory / CONFIG).write_text("[]"), "no JSON object"),
    "no tokenizer": (lambda directory: (directory / SOURCE).unlink(), "source.spm"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_not_of_our_kind_is_refused_by_name(own: Path, kind: str) -> None:
    change, message = REFUSED[kind]
    change(own)
    with pytest.raises(HeedfulError, match=message) as caught:
        read_marian(own)
    assert caught.value.exit_code == 3


def test_the_copies_that_old_files_have_are_no_matter(own: Path, model: Model) -> None:
    def edit(weights: dict[str, torch.Tensor]) -> None:
        weights["lm_head.weight"] = weights[EMBEDDING].clone()
        weights["model.encoder.embed_positions.weight"] = sinusoids(100, 24)[:, sines_then_cosines(24)].half()
        del weights[BIAS]

    with_weights(edit)(own)
    back = read_marian(own).transformer.state_dict()
    for name, tensor in model.transformer.state_dict().items():
        assert torch.equal(back[name], tensor), name


@pytest.mark.parametrize("shape", [{"d_k": 5}, {"positions": "learned"}], ids=str)
def test_what_marian_cannot_express_is_refused(random_model: Any, tmp_path: Path, shape: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match="cannot express this model"):
        write_marian(random_model(**shape), tmp_path / "out")
    assert not list(tmp_path.iterdir())
