"""A model with random values in every parameter, including biases and norms."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from heedful.storage.model_directory import Model


@pytest.fixture(scope="session")
def model(random_model: Callable[..., Model]) -> Model:
    return random_model()
