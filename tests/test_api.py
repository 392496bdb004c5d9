"""The Python API, as its users write it."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import heedful
import synthetic_tasks as tasks
from heedful.errors import MachineError, UsageError


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tasks.tiny_run(tmp_path_factory) / "run"


def test_public_api_is_complete() -> None:
    for name in heedful.__all__:
        assert getattr(heedful, name) is not None, name
    assert {"load", "train", "Transformer", "presets", "Translation", "__version__"} <= set(heedful.__all__)


def test_unknown_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        _ = heedful.trian  # type: ignore[attr-defined]


def test_an_empty_path_is_not_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="The path of the model is empty"):
        heedful.load("")
    with pytest.raises(UsageError, match="out is empty"):
        heedful.train(out="", overrides={"data.builtin": True, "training.steps": 1})
    assert not list(tmp_path.iterdir())


def test_import_does_not_load_torch() -> None:
    program = (
        "import sys, heedful; assert 'torch' not in sys.modules; heedful.Transformer; assert 'torch' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_preset_model_is_a_module() -> None:
    with torch.device("meta"):
        model = heedful.Transformer(heedful.presets.base(vocab_size=37_000))
    assert isinstance(model, torch.nn.Module)
    config = model.config
    assert (config.N, config.d_model, config.d_ff, config.h, config.d_k, config.d_v) == (6, 512, 2048, 8, 64, 64)


def test_a_module_maps_tokens_to_logits() -> None:
    model = heedful.Transformer(heedful.ModelConfig(vocab_size=30, N=1, d_model=8, d_ff=16, h=2))
    logits = model(torch.tensor([[5, 6, 3], [7, 3, 0]]), torch.tensor([[2, 5], [2, 6]]))
    assert logits.shape == (2, 2, 30)


def test_str_gives_translation_and_list_gives_list(tiny_run: Path) -> None:
    translator = heedful.load(tiny_run)
    one = translator.translate("a b c")
    assert isinstance(one, heedful.Translation)
    assert {field.name for field in dataclasses.fields(one)} >= {"text", "score", "tokens", "attention"}
    assert isinstance(one.text, str)
    assert one.score < 0
    assert "".join(one.tokens).replace("▁", " ").strip() == one.text
    assert one.attention is None
    many = translator.translate(["a b c", "", "d"])
    assert [type(each) for each in many] == [heedful.Translation] * 3
    assert many[0].text == one.text
    assert (many[1].text, many[1].score, many[1].tokens) == ("", 0.0, ())


def test_alternatives_and_attention_when_asked_for(tiny_run: Path) -> None:
    translator = heedful.load(str(tiny_run / "model"), device="cpu")
    [found] = translator.translate(["a b c"], beam=4, n_best=2, attention=True)
    assert len(found.alternatives) == 1
    assert found.score >= found.alternatives[0].score
    weights = found.attention
    assert weights is not None
    S, T = len(weights.source), len(weights.target)
    assert weights.cross.shape == (1, 2, T, S)
    for kind, columns in ((weights.encoder, S), (weights.decoder, T), (weights.cross, S)):
        assert kind.shape[-1] == columns
        assert torch.allclose(kind.sum(-1), torch.ones(kind.shape[:-1]), atol=1e-5)


def test_training_from_python(tmp_path: Path) -> None:
    corpus = tasks.tiny_corpus(tmp_path / "text")
    recipe = tmp_path / "recipe.toml"
    keys = "\n".join(f'{key.removeprefix("data.")} = "text/{Path(path).name}"' for key, path in corpus.items())
    recipe.write_text(f"[data]\n{keys}\n")
    run = heedful.train(recipe, out=tmp_path / "run", overrides={**tasks.TINY, "training.steps": 2})
    assert isinstance(run, heedful.Run)
    assert run.path == tmp_path / "run"
    assert run.recipe.training.steps == 2
    assert run.progress.step == 2
    assert [entry["step"] for entry in run.log() if entry["kind"] == "train"] == [1, 2]
    assert heedful.load(run.path).translate("a").tokens is not None


def test_errors_share_one_base_class(tmp_path: Path, tiny_run: Path) -> None:
    mistakes: dict[str, Callable[[], object]] = {
        "nowhere": lambda: heedful.load(tmp_path / "nowhere"),
        "tpu": lambda: heedful.load(tiny_run, device="tpu"),
        "nowhere.toml": lambda: heedful.train(tmp_path / "nowhere.toml", out=tmp_path / "run"),
        'unknown key "stps"': lambda: heedful.train(out=tmp_path / "run", overrides={"training.stps": 1}),
        'unknown section "steps"': lambda: heedful.train(out=tmp_path / "run", overrides={"steps": 1}),
        "bse": lambda: heedful.presets.named("bse"),
    }
    for named, mistake in mistakes.items():
        with pytest.raises(heedful.HeedfulError, match=re.escape(named)):
            mistake()


def test_loading_a_model_imports_no_compiler(tiny_run: Path) -> None:
    """torch's compiler is slow to import; a random number on the meta device imports it."""
    program = f"""
import sys, heedful
for precision in ("fp32", "int8"):
    heedful.load({str(tiny_run)!r}, precision=precision).translate("a b c")
assert "torch._dynamo" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_missing_int8_support_is_reported(tiny_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch, "quantize_per_channel")
    with pytest.raises(MachineError, match="does not support int8 matrix multiplication"):
        heedful.load(tiny_run, precision="int8")


def test_int8_translations_are_close(tiny_run: Path) -> None:
    line = "a b c"
    plain = heedful.load(tiny_run).translate(line)
    rounded = heedful.load(tiny_run, precision="int8").translate(line)
    assert rounded.score == pytest.approx(plain.score, rel=0.1)
    assert rounded.score != plain.score


def test_training_leaves_threads_and_random_state_as_they_were(tmp_path: Path) -> None:
    """In a process of its own: the tests of one worker share torch's state."""
    settings = {
        "data.builtin": True,
        "data.builtin_pairs": 200,
        "data.vocab_size": 400,
        "training.steps": 2,
        "training.threads": 1,
        "model.d_model": 16,
        "model.d_ff": 16,
        "model.N": 1,
        "model.h": 2,
        "training.batch_tokens": 256,
    }
    program = (
        "import torch, heedful\n"
        "torch.set_num_threads(2); torch.manual_seed(7); expected = torch.rand(3); torch.manual_seed(7)\n"
        f"heedful.train(out={str(tmp_path / 'run')!r}, overrides={settings!r})\n"
        "assert torch.get_num_threads() == 2, torch.get_num_threads()\n"
        "assert torch.equal(torch.rand(3), expected)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
