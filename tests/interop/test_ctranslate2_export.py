"""Exported CTranslate2 models compute the same probabilities and translations."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from reference_log_probabilities import log_probabilities, sentences

from heedful.config import EOS
from heedful.decoding.translator import Translator
from heedful.errors import ModelError, UsageError
from heedful.interop import ctranslate2_export as exporter
from heedful.interop.ctranslate2_export import TOKENIZER, write_ctranslate2
from heedful.interop.export_constraints import SUPPRESSION_BIAS
from heedful.storage.model_directory import Model
from heedful.text.text_files import one_line

ctranslate2 = pytest.importorskip("ctranslate2")

SHAPES: list[dict[str, Any]] = [
    {},
    {"N": 3, "d_model": 32, "h": 2},
    {"positions": "learned", "max_positions": 100},
    {"d_model": 16, "h": 1, "d_ff": 8},
    {"N": 3, "N_decoder": 1},
    {"N": 1, "N_decoder": 2},
]


def export_and_load(model: Model, directory: Path, **options: Any) -> Any:
    write_ctranslate2(model, directory, **options)
    return ctranslate2.Translator(str(directory), device="cpu", intra_threads=1)


def score(translator: Any, model: Model, source: list[int], target: list[int]) -> torch.Tensor:
    to_tokens = model.tokenizer.tokens
    [result] = translator.score_batch([to_tokens(source[:-1])], [to_tokens(target[:-1])])
    return torch.tensor(result.log_probs)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_log_probabilities_match(random_model: Any, tmp_path: Path, shape: dict[str, Any]) -> None:
    model = random_model(**shape)
    source, target = sentences(model, 9, 6)
    result = score(export_and_load(model, tmp_path / "out"), model, source, target)
    torch.testing.assert_close(result, log_probabilities(model, source, target), rtol=0, atol=1e-4)


def test_swapped_weights_are_detected(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: a model with queries, keys and values in reverse order must differ."""
    original = exporter._set_linear
    monkeypatch.setattr(exporter, "_set_linear", lambda theirs, *linears: original(theirs, *linears[::-1]))
    source, target = sentences(model, 9, 6)
    result = score(export_and_load(model, tmp_path / "out"), model, source, target)
    assert not torch.allclose(result, log_probabilities(model, source, target), atol=1e-2)


def test_greedy_translation_from_the_exported_files(model: Model, tmp_path: Path) -> None:
    """Call it as users do: exported SentencePiece model, no end symbol, detokenized output."""
    sentencepiece = pytest.importorskip("sentencepiece")
    translator = export_and_load(model, tmp_path / "out")
    processor = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "out" / TOKENIZER))
    ours = Translator(model)
    for text in ("bade kilo", "so mi ta", "Grüße, 日本"):
        limit = len(ours.ids(text)) + model.decoding.max_extra - 1
        tokens = processor.encode(text, out_type=str)
        [result] = translator.translate_batch([tokens], beam_size=1, max_decoding_length=limit)
        expected = ours.translate(text, beam=1)
        assert result.hypotheses[0] == list(expected.tokens)
        assert one_line(processor.decode(result.hypotheses[0])) == expected.text


@pytest.mark.parametrize("bias", [SUPPRESSION_BIAS, 0.0], ids=["with bias", "control: without bias"])
def test_suppressed_tokens_are_never_generated(
    random_model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bias: float
) -> None:
    """Give the special tokens a dominant embedding: without the bias they are generated."""
    monkeypatch.setattr(exporter, "SUPPRESSION_BIAS", bias)
    model = random_model()
    [source] = sentences(model, 7)
    tokens = model.tokenizer.tokens(source[:-1])

    def generated_tokens(directory: Path) -> set[str]:
        options = {"beam_size": 4, "num_hypotheses": 4, "max_decoding_length": 9}
        [result] = export_and_load(model, directory).translate_batch([tokens], **options)
        return {token for hypothesis in result.hypotheses for token in hypothesis}

    generated_ids = [
        model.tokenizer.tokens(range(model.tokenizer.vocab_size)).index(token)
        for token in sorted(generated_tokens(tmp_path / "1"))
    ]
    with torch.no_grad():
        model.transformer.embedding.weight_VD[:EOS] = 3 * model.transformer.embedding.weight_VD[generated_ids[0]]
    assert bool({"<pad>", "<unk>", "<s>"} & generated_tokens(tmp_path / "2")) == (bias == 0)


def test_directory_contents(model: Model, tmp_path: Path) -> None:
    write_ctranslate2(model, tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"model.bin", "config.json", "shared_vocabulary.json", "sentencepiece.model"}
    assert json.loads((tmp_path / "out" / "config.json").read_text())["add_source_eos"] is True
    assert (tmp_path / "out" / TOKENIZER).read_bytes() == model.tokenizer.model


def test_int8_is_smaller_and_close_to_float32(random_model: Any, tmp_path: Path) -> None:
    model = random_model(d_model=64, h=2, d_ff=128)
    source, target = sentences(model, 9, 6)
    before = log_probabilities(model, source, target)
    result = score(export_and_load(model, tmp_path / "small", quantization="int8"), model, source, target)
    assert torch.equal(log_probabilities(model, source, target), before)  # the exported model is unchanged
    write_ctranslate2(model, tmp_path / "large")
    sizes = [(tmp_path / name / "model.bin").stat().st_size for name in ("small", "large")]
    assert sizes[0] < 0.7 * sizes[1]
    torch.testing.assert_close(result, before, rtol=0.2, atol=1)


@pytest.mark.parametrize("length", [1_023, 1_024])
def test_longest_input_of_the_position_table(model: Model, tmp_path: Path, length: int) -> None:
    translator = export_and_load(model, tmp_path / "out")
    [source] = sentences(model, length + 1)
    [result] = translator.score_batch([model.tokenizer.tokens(source[:-1])], [["<0x41>"]])
    assert len(result.log_probs) == 2  # CTranslate2 truncates inputs longer than its max_input_length of 1,024


@pytest.mark.parametrize("shape", [{"d_k": 5}, {"d_v": 2}], ids=str)
def test_unsupported_head_sizes_are_rejected(random_model: Any, tmp_path: Path, shape: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match="does not support this model"):
        write_ctranslate2(random_model(**shape), tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_missing_package_names_the_extra_to_install(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(UsageError, match=r"heedful\[export\]"):
        write_ctranslate2(model, tmp_path / "out")
