"""R28: two hosts, as network namespaces joined by a cable that is cut; a killed rank.

The cable is cut in a step, in validation and in a save. Both sides end with a message; after the repair, the run ends
with the weights of an undisturbed one. Needs root.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import failing_link
import pytest
from test_distributed import LAST, SETTINGS, assert_same

import synthetic_tasks as tasks
from heedful.training.run import train

pytestmark = [
    pytest.mark.distributed,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None, reason="needs root and the command ip"),
]

SHORT: dict[str, Any] = {**SETTINGS, "training.select_final": False, "training.ema_decay": 0.0}


class Hosts:
    """Two namespaces with a veth pair; names contain the process id, so tests may run twice."""

    def __init__(self) -> None:
        self.names = [f"heedful{os.getpid()}{side}" for side in "ab"]
        self.links = [f"hf{os.getpid()}{side}" for side in "ab"]
        self.addresses = ["10.217.0.1", "10.217.0.2"]

    def connect(self) -> None:
        ip("link", "add", self.links[0], "type", "veth", "peer", "name", self.links[1])
        for name, link, address in zip(self.names, self.links, self.addresses, strict=True):
            ip("netns", "add", name)
            ip("link", "set", link, "netns", name)
            ip("-n", name, "addr", "add", f"{address}/24", "dev", link)
            ip("-n", name, "link", "set", "lo", "up")
            # torchrun itself waits until the kernel gives up sending: 15 minutes by default, 3 seconds here.
            subprocess.run(["ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv4.tcp_retries2=3"], check=True)
        self.repair()

    def repair(self) -> None:
        for name, link in zip(self.names, self.links, strict=True):
            ip("-n", name, "link", "set", link, "up")

    def remove(self) -> None:
        for name in self.names:
            with suppress(subprocess.CalledProcessError):
                ip("netns", "del", name)


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=60)


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    made = Hosts()
    try:
        made.connect()
    except subprocess.CalledProcessError as error:
        made.remove()
        pytest.skip(f"cannot create network namespaces: {error.stderr!r}")
    yield made
    made.remove()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return tasks.tiny_corpus(tmp_path_factory.mktemp("text"))


@pytest.fixture(scope="module")
def undisturbed(corpus: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(out=tmp_path_factory.mktemp("undisturbed") / "run", overrides={**corpus, **SHORT}).path


class Started:
    """torchrun on both hosts."""

    def __init__(self, hosts: Hosts, out: Path, corpus: dict[str, str], event: str, restarts: int = 0) -> None:
        rendezvous = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"{hosts.addresses[0]}:29417", "--rdzv-id", "r28"]
        arguments = ["train", *tasks.file_options(corpus), "--out", str(out), *tasks.set_options(SHORT)]
        self.processes = []
        for name, link, address in zip(hosts.names, hosts.links, hosts.addresses, strict=True):
            # Both namespaces have the same host name, so torchrun cannot tell where the endpoint is.
            configuration = f"is_host={int(address == hosts.addresses[0])},read_timeout=20,join_timeout=60"
            limits = ["--rdzv-conf", configuration, "--max-restarts", str(restarts)]
            launch = ["-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1", *rendezvous, *limits]
            command = [sys.executable, *launch, "--local-addr", address, failing_link.__file__, link, event, *arguments]
            self.processes.append(
                subprocess.Popen(
                    ["ip", "netns", "exec", name, *command],
                    env={**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": link},
                    stderr=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    text=True,
                    start_new_session=True,
                )
            )

    def ended(self, timeout: float = 120) -> list[tasks.Outcome]:
        """Wait for both hosts."""
        try:
            messages = [process.communicate(timeout=timeout)[1] for process in self.processes]
        finally:
            for process in self.processes:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        return [
            tasks.Outcome(process.returncode, "", said) for process, said in zip(self.processes, messages, strict=True)
        ]


def test_cut_cable_ends_both_sides_and_the_run_resumes(
    hosts: Hosts, corpus: dict[str, str], undisturbed: Path, tmp_path: Path
) -> None:
    """One run, whose cable is cut three times: each start resumes it."""
    for event in ("step", "validation", "save"):
        ended = Started(hosts, tmp_path / "run", corpus, event).ended()
        assert "link down" in ended[0].err + ended[1].err
        for outcome in ended:
            assert outcome.code != 0
            assert "Lost the connection to" in outcome.err, outcome.err
            assert "run the same command to continue" in outcome.err
        hosts.repair()
    again = Started(hosts, tmp_path / "run", corpus, "none").ended()
    assert [outcome.code for outcome in again] == [0, 0], again[0].err + again[1].err
    assert_same(tmp_path / "run", undisturbed, LAST)


def test_killed_rank_is_restarted(hosts: Hosts, corpus: dict[str, str], undisturbed: Path, tmp_path: Path) -> None:
    ended = Started(hosts, tmp_path / "run", corpus, "kill", restarts=3).ended()
    assert [outcome.code for outcome in ended] == [0, 0], ended[0].err + ended[1].err
    assert any("exitcode: -9" in outcome.err for outcome in ended)
    assert any("continuing" in outcome.err for outcome in ended)
    assert_same(tmp_path / "run", undisturbed, LAST)
