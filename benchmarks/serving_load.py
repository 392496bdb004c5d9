"""Requests per second and latency of `heedful serve` with both engines, compared with LibreTranslate.

python benchmarks/serving_load.py --model RUN [--clients 1 8 32] [--seconds 8] [--rounds 3] [--out FILE]

All servers use the same model and run in turns, one at a time. Each client sends one sentence of the built-in corpus
at a time, and the next as soon as it gets the response. LibreTranslate is measured offline, if `make formats` has
installed it (.venv-libretranslate). Writes docs/results/performance-serving.json.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from benchmark_tables import DOCS, ROOT, Table, measured, write
from decoding_speed import versions

OUT = DOCS / "performance-serving.json"
THEIRS = ROOT / ".venv-libretranslate" / "bin"


class Round(NamedTuple):
    answered: int
    seconds: float
    times: list[float]  # latency per response
    refused: int


class Contender(NamedTuple):
    name: str
    command: list[str]  # with a placeholder {port}
    environment: dict[str, str]


def sentences(number: int) -> list[str]:
    from heedful.text.builtin_corpus import BuiltinCorpus

    return [pair.source for pair in BuiltinCorpus("test", number).pairs()]


def ours(model: Path, engine: str) -> Contender:
    command = [sys.executable, "-m", "heedful", "serve", str(model), "--port", "{port}", "--engine", engine]
    return Contender(f"heedful, engine {engine}", command, dict(os.environ))


def libretranslate(model: Path, directory: Path) -> Contender | None:
    """Return LibreTranslate with packages of the same model for both directions, because it needs two."""
    if not (THEIRS / "libretranslate").exists():
        return None
    environment = {
        **os.environ,
        "HOME": str(directory),
        "XDG_DATA_HOME": str(directory),
        "XDG_CONFIG_HOME": str(directory),
    }
    door = "http://127.0.0.1:9"  # no downloads
    environment |= {"http_proxy": door, "https_proxy": door, "no_proxy": "127.0.0.1"}
    packages = []
    for first, second in (("en", "de"), ("de", "en")):
        packages.append(str(directory / f"{first}_{second}.argosmodel"))
        export = ["export", str(model), "--to", "argos", "--out", packages[-1], "--languages", first, second]
        subprocess.run([sys.executable, "-m", "heedful", *export], check=True, stdout=subprocess.DEVNULL)
    install = "import sys; from argostranslate import package; [package.install_from_path(p) for p in sys.argv[1:]]"
    subprocess.run([THEIRS / "python", "-c", install, *packages], check=True, env=environment)
    command = [str(THEIRS / "libretranslate"), "--port", "{port}", "--disable-files-translation", "--disable-web-ui"]
    return Contender("LibreTranslate", command, environment)


@contextmanager
def started(one: Contender) -> Iterator[int]:
    """Start a server and yield its port when it responds."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [part.replace("{port}", str(port)) for part in one.command]
    process = subprocess.Popen(command, env=one.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                break
            if process.poll() is not None:
                raise SystemExit(f"{one.name} ended with {process.returncode}")
            time.sleep(0.1)
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def load(port: int, texts: list[str], clients: int, seconds: float) -> Round:
    """Send requests from several clients, each with its own connection and part of the text."""
    times: list[float] = []
    refused = [0] * clients
    end = time.perf_counter() + seconds

    def client(number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        turn = number * 17
        while (began := time.perf_counter()) < end:
            body = json.dumps({"q": texts[turn % len(texts)], "source": "en", "target": "de"})
            connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            if answer.status == 200:
                times.append(time.perf_counter() - began)
            else:
                refused[number] += 1
            turn += 1
        connection.close()

    began = time.perf_counter()
    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Round(len(times), time.perf_counter() - began, times, sum(refused))


def row(name: str, clients: int, rounds: list[Round]) -> list[str]:
    speeds = [one.answered / one.seconds for one in rounds]
    times = sorted(taken for one in rounds for taken in one.times)
    p50, p99 = times[len(times) // 2], times[int(0.99 * len(times))]
    spread = f"{min(speeds):.1f} to {max(speeds):.1f}"
    refused = str(sum(one.refused for one in rounds))
    return [
        name,
        str(clients),
        f"{statistics.median(speeds):.1f}",
        spread,
        f"{1000 * p50:.0f}",
        f"{1000 * p99:.0f}",
        refused,
    ]


def table(found: dict[tuple[str, int], list[Round]], facts: dict[str, Any]) -> Table:
    return {
        "title": "Requests of one sentence",
        "measured": facts,
        "columns": ["server", "clients", "requests per second", "range", "p50, ms", "p99, ms", "refused"],
        "rows": [row(name, clients, rounds) for (name, clients), rounds in found.items()],
        "notes": [f"Medians of {len(next(iter(found.values())))} rounds, the servers in turns, one at a time."],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    texts = sentences(500)
    with tempfile.TemporaryDirectory() as directory:
        peer = libretranslate(options.model, Path(directory))
        contenders = [ours(options.model, "heedful"), ours(options.model, "ctranslate2"), *([peer] if peer else [])]
        found: dict[tuple[str, int], list[Round]] = {
            (one.name, clients): [] for clients in options.clients for one in contenders
        }
        for number in range(options.rounds):
            for one in contenders:
                with started(one) as port:
                    load(port, texts, 4, 2)  # warm-up
                    for clients in options.clients:
                        found[one.name, clients].append(load(port, texts, clients, options.seconds))
            print(f"serving: {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
    data = f"the model {options.model.name}, sentences of the built-in corpus"
    facts = measured(len(os.sched_getaffinity(0)), data, versions("torch", "ctranslate2", "fastapi", "uvicorn"))
    write([table(found, facts)], options.out)


if __name__ == "__main__":
    main()
