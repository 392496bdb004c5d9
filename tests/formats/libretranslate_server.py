"""LibreTranslate from the environment of `make formats`, and `heedful serve`."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

THEIRS = Path(__file__).parents[2] / ".venv-libretranslate" / "bin"


def new_home(directory: Path) -> dict[str, str]:
    """Return an environment with LibreTranslate's files below `directory` and no network."""
    kept = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    closed = "http://127.0.0.1:9"
    kept |= {"http_proxy": closed, "https_proxy": closed, "all_proxy": closed, "no_proxy": "127.0.0.1"}
    own = {name: str(directory) for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "TMPDIR")}
    return {**kept, **own, "OMP_NUM_THREADS": "1"}


@contextmanager
def libretranslate(home: dict[str, str], directory: Path, *options: str) -> Iterator[str]:
    """Run LibreTranslate and yield its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [THEIRS / "libretranslate", "--host", "127.0.0.1", "--port", str(port), *options],
            env=home,
            cwd=directory,
            stdout=log,
            stderr=log,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(900):
            if process.poll() is not None or _answers(address):
                break
            time.sleep(0.2)
        assert _answers(address), (directory / "log").read_text()
        yield address
    finally:
        process.terminate()
        process.wait(20)


def _answers(address: str) -> bool:
    try:
        return bool(urllib.request.urlopen(f"{address}/languages", timeout=5).status == 200)
    except (urllib.error.URLError, OSError):
        return False


@contextmanager
def heedful_serve(*arguments: str | Path) -> Iterator[str]:
    """Run `heedful serve` and yield its address."""
    program = [sys.executable, "-m", "heedful", "serve", *map(str, arguments), "--port", "0"]
    process = subprocess.Popen(program, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        yield process.stderr.readline().split()[5]
    finally:
        process.terminate()
        process.communicate(timeout=30)
