"""`heedful serve` from the command line."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

import synthetic_tasks as tasks
from heedful.cli.main import main
from heedful.training.run import train

pytest.importorskip("fastapi")

from heedful.serving import server


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def build(directory: Path) -> None:
        train(out=directory / "run", overrides={**tasks.tiny_corpus(directory / "text"), **tasks.TINY})

    return tasks.once(tmp_path_factory, "served", build) / "run"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serves_until_terminated(run: Path, number: signal.Signals) -> None:
    program = [sys.executable, "-m", "heedful", "serve", str(run), "--port", "0"]
    process = subprocess.Popen(program, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        said = process.stderr.readline()
        assert said.startswith("Serving source → target on http://127.0.0.1:"), said
        body = json.dumps({"q": ["a b", ""], "source": "source", "target": "target"}).encode()
        request = urllib.request.Request(f"{said.split()[5]}/translate", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            found = json.load(answer)["translatedText"]
        process.send_signal(number)
        out, log = process.communicate(timeout=30)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0
    assert (out, len(log.splitlines())) == ("", 1)
    assert " 127.0.0.1 POST /translate 200 " in log
    assert len(found) == 2
    assert found[1] == ""


def test_languages_of_an_unfinished_run(run: Path) -> None:
    text = json.loads((run / "model" / "config.json").read_text(encoding="utf-8"))["text"]
    assert text["source_profile"]
    assert text["target_profile"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], []),
        (["--host", "0.0.0.0"], ["Other machines"]),
        (["--host", "::"], ["Other machines"]),
        (["--host", "localhost"], []),
        (["--host", "::1"], []),
        (["--cors-origin", "*"], ["Any website"]),
        (["--cors-origin", "https://example.org"], []),
        (["--host", "0.0.0.0", "--cors-origin", "*"], ["Other machines", "Any website"]),
        (["--host", "0.0.0.0", "--cors-origin", "*", "--api-keys", "KEYS"], []),
    ],
)
def test_exposure_is_printed(
    run: Path,
    options: list[str],
    said: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "keys").write_text("secret\n")
    monkeypatch.setattr(server, "bind", lambda *_: socket.create_server(("127.0.0.1", 0)))
    monkeypatch.setattr(server, "run", lambda app, listener, limits, ready: ready())
    options = [str(tmp_path / "keys") if one == "KEYS" else one for one in options]
    assert main(["serve", str(run), *options]) == 0
    _, *warnings = capsys.readouterr().err.splitlines()
    assert [line.partition(" can use")[0] for line in warnings] == said


def test_port_in_use(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", str(run), "--port", str(port)]) == 4
    said = f"Cannot listen on 127.0.0.1:{port}: address already in use. Choose another port with `--port`."
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        ["--port", "70000"],
        ["--host", "no.such.host.invalid"],
        ["--engine", "magic"],
        ["--limit", "bdy=5"],
        ["--limit", "body"],
        ["--rate-limit", "0"],
        ["--rate-limit", "many"],
        ["--api-keys", "/no/such/file"],
        ["--cors-origin", "example.org"],
        ["--allowed-host", "https://example.org"],
        ["--trusted-proxy", "localhost"],
    ],
    ids=" ".join,
)
def test_wrong_options(run: Path, options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", str(run), *options]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_misspelt_limit(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", str(run), "--limit", "charcters=5"]) == 2
    assert 'Unknown limit "charcters". Did you mean "characters"?' in capsys.readouterr().err


def test_address_of_another_machine(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", str(run), "--host", "192.0.2.1", "--port", "0"]) == 4
    assert "Choose an address of this machine with `--host`" in capsys.readouterr().err


def test_options_reach_the_server(run: Path, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("secret\n")
    options = ["--api-keys", str(tmp_path / "keys"), "--rate-limit", "5", "--limit", "characters=3"]
    options += ["--allowed-host", "mt.example.org", "--cors-origin", "https://app.example", "--trusted-proxy", "::1"]
    program = [sys.executable, "-m", "heedful", "serve", str(run), "--port", "0", *options]
    process = subprocess.Popen(program, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        address = process.stderr.readline().split()[5]
        fields = {"q": "abc", "source": "source", "target": "target"}
        key = {"Authorization": "Bearer secret", "Host": "mt.example.org", "Origin": "https://app.example"}
        assert [
            status(address, {**fields, "api_key": "wrong"}),
            status(address, fields, **key),
            status(address, {**fields, "q": "abcd"}, **key),
            status(address, fields, **{**key, "Host": "other.example.org"}),
            status(address, fields, **{**key, "Origin": "https://other.example"}),
            *(status(address, fields, **key) for _ in range(3)),
        ] == [403, 200, 400, 421, 403, 200, 200, 429]
    finally:
        process.kill()
        process.communicate()


def status(address: str, fields: dict[str, str], **headers: str) -> int:
    request = urllib.request.Request(
        f"{address}/translate", json.dumps(fields).encode(), {"Content-Type": "application/json", **headers}
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def test_a_missing_model(tmp_path: Path) -> None:
    assert main(["serve", str(tmp_path / "nothing"), "--port", "0"]) == 3


def test_two_models_of_one_pair(run: Path) -> None:
    assert main(["serve", str(run), str(run), "--port", "0"]) == 2


def test_missing_serve_extra(run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in [name for name in sys.modules if name.startswith("heedful.serving")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    assert main(["serve", str(run)]) == 2
    assert "pip install 'heedful[serve]'" in capsys.readouterr().err


def test_suggestions_are_written_to_the_file(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "suggestions.jsonl"
    program = [sys.executable, "-m", "heedful", "serve", str(run), "--port", "0", "--suggestions", str(path)]
    process = subprocess.Popen(program, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        fields = {"q": "a", "s": "b", "source": "source", "target": "target"}
        address = process.stderr.readline().split()[5]
        with urllib.request.urlopen(
            f"{address}/suggest", urllib.parse.urlencode(fields).encode(), timeout=30
        ) as answer:
            assert json.load(answer) == {"success": True}
        assert json.loads(path.read_text(encoding="utf-8")) == fields
        process.terminate()
        assert process.communicate(timeout=30)[0] == ""
    finally:
        process.kill()
        process.communicate()


def test_suggestions_file_that_cannot_be_written(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", str(run), "--port", "0", "--suggestions", str(tmp_path)]) == 4
    assert "is a directory. Choose another file." in capsys.readouterr().err
