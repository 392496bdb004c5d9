"""The rule that chooses an engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from heedful.decoding import search_engine
from heedful.engines import choice as choice_module
from heedful.engines.choice import Use, choose_engine
from heedful.errors import UsageError
from heedful.model.transformer import Transformer
from heedful.storage.model_directory import Model


@pytest.fixture
def model(random_model: Callable[..., Model]) -> Transformer:
    return random_model().transformer


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """CTranslate2 is installed, or is not."""

    def pretend(found: bool) -> None:
        monkeypatch.setattr(choice_module, "is_installed", lambda: found)

    pretend(True)
    return pretend


@pytest.mark.parametrize(
    ("use", "engine", "reason"),
    [
        (Use(), "ctranslate2", "faster for single sentences"),
        (Use(in_batches=True), "heedful", "batches"),
        (Use(needs="--scores"), "heedful", "`--scores` needs"),
    ],
)
def test_auto(model: Transformer, installed: Any, use: Use, engine: str, reason: str) -> None:
    choice = choose_engine("auto", [model], use)
    assert choice.engine == engine
    assert reason in str(choice)
    assert engine in str(choice)


def test_auto_selects_heedful_if_ctranslate2_cannot_translate(
    model: Transformer, installed: Callable[[bool], None], random_model: Callable[..., Model]
) -> None:
    odd = random_model(d_k=5, d_v=5).transformer
    assert "bf16" in choose_engine("auto", [model], Use(), "bf16").reason
    assert "d_model / h" in choose_engine("auto", [odd], Use()).reason
    assert choose_engine("auto", [model, odd], Use()).engine == "heedful"  # one engine for all models of a process
    installed(False)
    assert choose_engine("auto", [model], Use()) == ("heedful", "CTranslate2 is not installed")


def test_requested_engine_is_used_or_rejected(model: Transformer, installed: Any) -> None:
    assert choose_engine("heedful", [model], Use()).engine == "heedful"
    assert choose_engine("ctranslate2", [model], Use(in_batches=True)).engine == "ctranslate2"
    with pytest.raises(UsageError, match="Cannot use `--engine ctranslate2`: CTranslate2 runs in float32, not int8"):
        choose_engine("ctranslate2", [model], Use(), "int8")
    with pytest.raises(UsageError, match='auto, heedful, ctranslate2, not "magic"'):
        choose_engine("magic", [model], Use())


def test_a_process_has_one_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_engine, "_engine_of_process", "")
    search_engine.claim_process("heedful")
    search_engine.claim_process("heedful")
    with pytest.raises(UsageError, match="already translates with heedful"):
        search_engine.claim_process("ctranslate2")
