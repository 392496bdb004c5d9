"""Server fixtures with a small random model, and with a fake engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from fake_engine import UppercaseEngine
from heedful.decoding.translator import Translator
from heedful.serving.app import create_app
from heedful.serving.limits import Limits
from heedful.serving.served_model import ServedModel
from heedful.serving.service import TranslationService
from heedful.storage.model_directory import Model
from heedful.text.language_detection import profile
from local_test_client import local_client


@pytest.fixture(scope="session")
def translator(random_model: Callable[..., Model]) -> Translator:
    model = random_model()
    profiles = {
        "source_profile": profile(["the dog and the cat"]),
        "target_profile": profile(["der Hund und die Katze"]),
    }
    return Translator(replace(model, text=replace(model.text, **profiles)))


@pytest.fixture
def served(translator: Translator) -> ServedModel:
    """en → de, in capitals."""
    one = ServedModel(translator)
    one.engine = UppercaseEngine(translator.model.tokenizer)
    return one


@pytest.fixture
def client(served: ServedModel) -> Iterator[TestClient]:
    with local_client(create_app(TranslationService([served], Limits()))) as one:
        yield one
