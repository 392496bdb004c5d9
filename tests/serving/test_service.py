"""The translation service: a request keeps its slot until its response is complete."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from fake_engine import UppercaseEngine
from heedful.decoding.translator import Translator
from heedful.serving import service as module
from heedful.serving.limits import Limits
from heedful.serving.requests import TranslateRequest
from heedful.serving.served_model import ServedModel
from heedful.serving.service import TranslationService
from heedful.storage.model_directory import Model


def test_word_alignment_holds_the_slot_of_its_request(
    random_model: Callable[..., Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    served = ServedModel(Translator(random_model()))
    served.engine = UppercaseEngine(served.translator.model.tokenizer)
    service = TranslationService([served], Limits())
    held, align = [], module.align_words

    def noted(*given: Any) -> Any:
        held.append(service.batcher.tokens)
        return align(*given)

    async def translate() -> None:
        service.batcher.start()
        try:
            await service.translate(
                TranslateRequest(["the <b>dog</b>"], False, served.source, served.target, "html", 0)
            )
        finally:
            await service.batcher.close()

    monkeypatch.setattr(module, "align_words", noted)
    asyncio.run(translate())
    assert held
    assert all(held)
    assert service.batcher.tokens == 0
