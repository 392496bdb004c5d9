"""Device selection and thread count."""

from __future__ import annotations

import os

import pytest
import torch

from heedful.devices import cores, pick_device
from heedful.errors import UsageError


def test_threads_asked_for_in_the_environment_are_kept_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert cores() == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert cores() == 7


@pytest.mark.parametrize("asked", ["", "0", "-1", "many", "4,2"])
def test_otherwise_all_cores_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert cores() == len(os.sched_getaffinity(0))


def test_devices_by_name() -> None:
    assert pick_device("cpu") == torch.device("cpu")
    with pytest.raises(UsageError, match='not "tpu"'):
        pick_device("tpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_that_is_not_there() -> None:
    assert pick_device("auto") == torch.device("cpu")
    with pytest.raises(UsageError, match="no CUDA device"):
        pick_device("cuda")
