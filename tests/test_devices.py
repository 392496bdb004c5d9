"""Device selection and thread count."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from heedful.devices import cores, has_native_bf16, pick_device
from heedful.errors import UsageError


def test_thread_count_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert cores() == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert cores() == 7


@pytest.mark.parametrize("asked", ["", "0", "-1", "many", "4,2"])
def test_default_is_all_available_cores(monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert cores() == len(os.sched_getaffinity(0))


def test_devices_by_name() -> None:
    assert pick_device("cpu") == torch.device("cpu")
    with pytest.raises(UsageError, match='not "tpu"'):
        pick_device("tpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_missing_gpu_is_reported() -> None:
    assert pick_device("auto") == torch.device("cpu")
    with pytest.raises(UsageError, match="no CUDA device"):
        pick_device("cuda")


@pytest.mark.skipif(torch.backends.mps.is_available(), reason="there is an Apple GPU here")
def test_missing_apple_gpu_is_reported() -> None:
    with pytest.raises(UsageError, match="no Apple GPU"):
        pick_device("mps")


def test_apple_gpu_is_used_only_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert pick_device("mps") == torch.device("mps")
    assert pick_device("auto") == torch.device("cpu")


CPU = torch.device("cpu")


def processor(monkeypatch: pytest.MonkeyPatch, level: str, **capabilities: object) -> None:
    """Pretend to be a processor with these instructions, used by torch up to `level`."""
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: level)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_f": True, **capabilities}, raising=False)


@pytest.mark.parametrize(
    ("level", "capabilities", "expected"),
    [
        ("AVX512", {"avx512_bf16": True, "amx_bf16": False}, True),
        ("AVX512", {"avx512_bf16": False, "amx_bf16": True}, True),
        ("AVX512", {"avx512_bf16": False, "amx_bf16": False}, False),
        ("AVX512", {}, False),  # another architecture, or a release of torch that does not tell
        ("AVX2", {"avx512_bf16": True, "amx_bf16": True}, False),  # ATEN_CPU_CAPABILITY=avx2
        ("DEFAULT", {"avx512_bf16": True}, False),
    ],
)
def test_native_bf16_requires_avx512_bf16_or_amx(
    monkeypatch: pytest.MonkeyPatch, level: str, capabilities: dict[str, bool], expected: bool
) -> None:
    processor(monkeypatch, level, **capabilities)
    assert has_native_bf16(CPU) == expected


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        ("", True),
        ("ALL", True),
        ("default", True),
        ("AVX512_CORE_BF16", True),
        ("AVX512_CORE_AMX", True),
        ("AVX10_1_512", True),
        ("AVX512_CORE_VNNI", False),
        ("AVX512_CORE", False),
        ("avx2", False),
        ("SSE41", False),
    ],
)
def test_instructions_disabled_for_onednn_do_not_count(
    monkeypatch: pytest.MonkeyPatch, allowed: str, expected: bool
) -> None:
    processor(monkeypatch, "AVX512", avx512_bf16=True)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", allowed)
    assert has_native_bf16(CPU) == expected


@pytest.mark.parametrize(("name", "value"), [("ATEN_CPU_CAPABILITY", "avx2"), ("ONEDNN_MAX_CPU_ISA", "AVX2")])
def test_environment_can_disable_bf16(name: str, value: str) -> None:
    code = "import torch; from heedful.devices import has_native_bf16; print(has_native_bf16(torch.device('cpu')))"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, name: value}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(("capability", "expected"), [((7, 5), False), ((8, 0), True), ((8, 9), True), ((12, 0), True)])
def test_gpu_bf16_requires_compute_capability_8(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], expected: bool
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    assert has_native_bf16(torch.device("cuda")) == expected


def test_other_devices_have_no_native_bf16() -> None:
    assert not has_native_bf16(torch.device("mps"))
