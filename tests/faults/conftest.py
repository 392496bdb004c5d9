"""Shared fixtures of the fault tests: a finished reference run, counts and results."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent.parent / "decoding"))

import pytest
import reliability_record
import tiny_runs

import synthetic_tasks as tasks
from heedful.text.languages import identify

_results: list[reliability_record.Result] = []


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    """Tiny tensors are slower on several threads, and a fork has only one.

    What the first optimizer and the first log would import is imported here rather than in every fork.
    """
    import torch._dynamo

    with suppress(ImportError):
        import torch.utils.tensorboard
    identify(["The language identifier loads its model once, here."])
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def counted(request: pytest.FixtureRequest) -> Callable[[int, str], None]:
    """Return `counted(20, "kills")`, which records how often a fault was injected."""

    def note(number: int, what: str) -> None:
        request.node.user_properties.append(("count", [number, what]))

    return note


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run without faults, in `run`, beside its text. Read-only."""

    def build(directory: Path) -> None:
        tiny_runs.continued(directory / "run", {**tasks.tiny_corpus(directory / "text"), **tiny_runs.SETTINGS})

    return tasks.once(tmp_path_factory, "reference", build) / "run"


@pytest.fixture(scope="session")
def settings(reference: Path) -> dict[str, Any]:
    return {**tasks.corpus_in(reference.parent / "text"), **tiny_runs.SETTINGS}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or report.outcome != "passed":
        counts = [(int(value[0]), str(value[1])) for name, value in report.user_properties if name == "count"]  # type: ignore[index]
        _results.append(reliability_record.Result(report.nodeid, report.outcome, report.duration, tuple(counts)))


def pytest_sessionfinish() -> None:
    """Write the results to docs/ if HEEDFUL_RECORD=1, but not in xdist workers."""
    if os.environ.get("HEEDFUL_RECORD") and "PYTEST_XDIST_WORKER" not in os.environ:
        reliability_record.keep(_results)
