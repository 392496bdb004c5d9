"""The same requests to LibreTranslate 1.9.6 and `heedful serve`: statuses, JSON, errors."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
from libretranslate_server import THEIRS, heedful_serve, libretranslate, new_home

pytestmark = pytest.mark.formats
TEXT = "The old man is looking for his red hat."
GOOD = {"q": TEXT, "source": "en", "target": "de"}
SRT = f"1\n00:00:01,000 --> 00:00:02,500\n{TEXT}\n\n2\n00:00:03,000 --> 00:00:04,000\nThey are reading a long letter.\n"


class Ask(NamedTuple):
    method: str
    path: str
    json: Any = None
    form: dict[str, Any] | None = None
    file: tuple[str, str] | None = None  # name and content
    query: dict[str, str] | None = None
    content: str | None = None
    kind: str | None = None

    def send(self, address: str) -> httpx2.Response:
        return httpx2.request(
            self.method,
            address + self.path,
            json=self.json,
            data=self.form,
            files={"file": self.file} if self.file else None,
            params=self.query,
            content=self.content,
            headers={"Content-Type": self.kind} if self.kind else None,
            timeout=60,
        )


def ask(**fields: Any) -> Ask:
    return Ask("POST", "/translate", json={**GOOD, **fields})


def without(name: str) -> dict[str, str]:
    return {other: value for other, value in GOOD.items() if other != name}


def file(name: str, content: str = TEXT, **form: Any) -> Ask:
    form = {"source": "en", "target": "de", "api_key": "", **form}
    return Ask("POST", "/translate_file", form={key: one for key, one in form.items() if one}, file=(name, content))


LANGUAGES = {"source": "en", "target": "de"}
REQUESTS = {
    "translate": ask(),
    "translate, form": Ask("POST", "/translate", form=GOOD),
    "translate, query": Ask("POST", "/translate", query=GOOD),
    "translate, empty api_key": ask(api_key=""),
    "translate, list": ask(q=[TEXT, "They are reading."]),
    "translate, list of one": ask(q=[TEXT]),
    "translate, list with an empty text": ask(q=[TEXT, ""]),
    "translate, html": ask(q=f"<p>{TEXT}</p>", format="html"),
    "translate, empty format": ask(format=""),
    "translate, alternatives": ask(alternatives=2),
    "translate, alternatives of a list": ask(q=[TEXT], alternatives=2),
    "translate, alternatives as a form": Ask("POST", "/translate", form={**GOOD, "alternatives": "2"}),
    "translate, alternatives -1": ask(alternatives=-1),
    "translate, auto": ask(source="auto"),
    "translate, auto, list": ask(source="auto", q=[TEXT, TEXT]),
    "translate, to itself": ask(target="en"),
    "translate, upper case": ask(source="EN", target="De"),
    "translate, region": ask(source="en-US", target="de-DE"),
    "translate, empty q": ask(q=""),
    "translate, empty list": ask(q=[]),
    "translate, no q": Ask("POST", "/translate", json=without("q")),
    "translate, no source": Ask("POST", "/translate", json=without("source")),
    "translate, no target": Ask("POST", "/translate", json=without("target")),
    "translate, no q in a form": Ask("POST", "/translate", form=without("q")),
    "translate, nothing": Ask("POST", "/translate"),
    "translate, unknown source": ask(source="xx"),
    "translate, unknown target": ask(target="ZZ"),
    "translate, no such pair": ask(source="de", target="en"),
    "translate, unknown format": ask(format="pdf"),
    "translate, alternatives not a number": Ask("POST", "/translate", form={**GOOD, "alternatives": "two"}),
    "translate, alternatives not a number, JSON": ask(alternatives="two"),
    "translate, too many alternatives": ask(alternatives=9),
    "translate, too many characters": ask(q="x" * 10_001),
    "translate, a list as JSON": Ask("POST", "/translate", json=[1]),
    "translate, not JSON": Ask("POST", "/translate", content="{", kind="application/json"),
    "translate, other content": Ask("POST", "/translate", content="x", kind="text/plain"),
    "translate, q is a number": ask(q=3),
    "translate, GET": Ask("GET", "/translate"),
    "detect": Ask("POST", "/detect", json={"q": TEXT}),
    "detect, form": Ask("POST", "/detect", form={"q": TEXT}),
    "detect, list": Ask("POST", "/detect", json={"q": [TEXT, TEXT]}),
    "detect, no q": Ask("POST", "/detect", json={}),
    "detect, nothing": Ask("POST", "/detect"),
    "detect, GET": Ask("GET", "/detect"),
    "languages": Ask("GET", "/languages"),
    "languages, POST": Ask("POST", "/languages"),
    "settings": Ask("GET", "/frontend/settings"),
    "health": Ask("GET", "/health"),
    "health, POST": Ask("POST", "/health"),
    "spec, POST": Ask("POST", "/spec"),
    "page": Ask("GET", "/"),
    "page, HEAD": Ask("HEAD", "/"),
    "languages, HEAD": Ask("HEAD", "/languages"),
    "docs": Ask("GET", "/docs/"),
    "spec": Ask("HEAD", "/spec"),
    "no such path": Ask("GET", "/nothing"),
    "file, txt": file("a.txt"),
    "file, html": file("a.html", f"<html><body><p>{TEXT}</p></body></html>"),
    "file, srt": file("a.srt", SRT),
    "file, auto": file("a.txt", source="auto"),
    "file, unsupported": file("a.xyz"),
    "file, no extension": file("a"),
    "file, no source": file("a.txt", source=""),
    "file, no target": file("a.txt", target=""),
    "file, unknown source": file("a.txt", source="xx"),
    "file, unknown target": file("a.txt", target="xx"),
    "file, no such pair": file("a.txt", source="de", target="en"),
    "file, none": Ask("POST", "/translate_file", form=LANGUAGES),
    "file, GET": Ask("GET", "/translate_file"),
    "download, no such file": Ask("GET", "/download_file/nothing.txt"),
    "suggest": Ask("POST", "/suggest", form={**GOOD, "s": "x"}),
    "suggest, JSON": Ask("POST", "/suggest", json={**GOOD, "s": "x"}),
    "suggest, no s": Ask("POST", "/suggest", form=GOOD),
    "suggest, no q": Ask("POST", "/suggest", form={"s": "x", **LANGUAGES}),
    "suggest, no target": Ask("POST", "/suggest", json={"q": "x", "s": "x", "source": "en"}),
}


# What differs, and why. "status": the HTTP status; "shape": keys and types of the JSON body; "error": the message.
_PAGE = ({"shape", "error"}, "LibreTranslate answers with an HTML page; here every error is JSON")
_CRASH = ({"status", "error"}, "LibreTranslate fails with 500; here the request is refused with 4xx")
_VAGUE = ({"error"}, "LibreTranslate shows its framework's general sentence; here the message names the mistake")
ACCEPTED: dict[str, tuple[set[str], str]] = {
    "translate, region": ({"status", "shape", "error"}, "LibreTranslate refuses regions; here de-DE is de"),
    "translate, other content": ({"status", "error"}, "LibreTranslate ignores the body; here 415 names its type"),
    "translate, alternatives not a number, JSON": _CRASH,
    "translate, q is a number": _CRASH,
    "translate, not JSON": _VAGUE,
    "languages": ({"shape"}, "LibreTranslate lists a language as its own target; here de has no target at all"),
    "file, no such pair": _CRASH,
    "file, none": _VAGUE,
    "download, no such file": _CRASH,
    **dict.fromkeys(
        (
            *("translate, GET", "detect, GET", "file, GET", "languages, POST", "health, POST", "spec, POST"),
            "no such path",
        ),
        _PAGE,
    ),
}


def shape(value: Any) -> Any:
    """Return the value with types for texts and numbers; a list has its distinct shapes."""
    if isinstance(value, dict):
        return {name: shape(one) for name, one in sorted(value.items())}
    if isinstance(value, list):
        return sorted({repr(shape(one)) for one in value})
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def described(answer: httpx2.Response) -> dict[str, Any]:
    """Return what clients see: status, shape of a JSON body, error message."""
    is_json = answer.headers.get("content-type", "").startswith("application/json") and bool(answer.content)
    content = answer.json() if is_json else None
    error = content.get("error") if isinstance(content, dict) else None
    return {"status": answer.status_code, "shape": shape(content), "error": error}


@pytest.fixture(scope="module")
def theirs(packages: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """LibreTranslate with one direction, limits like ours, files and suggestions."""
    home = new_home(tmp_path_factory.mktemp("home"))
    script, lines = Path(__file__).parent / "argos_translate.py", tmp_path_factory.mktemp("lines") / "lines.json"
    lines.write_text("[]", encoding="utf-8")
    program = [THEIRS / "python", script, lines, packages["en_de.argosmodel"]]
    subprocess.run(program, env=home, capture_output=True, text=True, timeout=120, check=True)
    options = ("--char-limit", "10000", "--alternatives-limit", "5", "--batch-limit", "100", "--suggestions")
    directory = tmp_path_factory.mktemp("server")
    (directory / "db").mkdir()  # where it keeps suggestions
    with libretranslate(home, directory, *options) as address:
        yield address


@pytest.fixture(scope="module")
def ours(packages: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    suggestions = tmp_path_factory.mktemp("suggestions") / "suggestions.jsonl"
    with heedful_serve(packages["run"], "--suggestions", suggestions) as address:
        yield address


@pytest.mark.parametrize("name", REQUESTS)
def test_the_same_request(name: str, theirs: str, ours: str) -> None:
    """A difference that is no longer there fails too: the list of accepted ones stays true."""
    their, our = described(REQUESTS[name].send(theirs)), described(REQUESTS[name].send(ours))
    differs = {key for key in their if their[key] != our[key]}
    accepted, reason = ACCEPTED.get(name, (set(), ""))
    assert differs == accepted, f"theirs: {their}\nours: {our}\naccepted: {reason}"


def test_accepted_differences_have_a_request() -> None:
    assert set(ACCEPTED) <= set(REQUESTS)


def test_a_translated_file_is_downloaded_alike(theirs: str, ours: str) -> None:
    found = []
    for address in (theirs, ours):
        url = REQUESTS["file, srt"].send(address).json()["translatedFileUrl"]
        assert url.startswith(f"{address}/download_file/")
        answer = httpx2.get(url)
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert answer.headers["content-disposition"].startswith("attachment; filename")
        assert answer.headers["content-disposition"].endswith("a_de.srt")
        found.append([line for line in answer.text.split("\n") if line and not line[0].isalpha()])
    assert found[0] == found[1] == [line for line in SRT.split("\n") if line and not line[0].isalpha()]


def test_the_same_kind_of_description(theirs: str, ours: str) -> None:
    """Swagger 2.0: the same paths and methods, and every parameter that theirs has."""
    their, our = (httpx2.get(f"{address}/spec").json() for address in (theirs, ours))
    assert their["swagger"] == our["swagger"] == "2.0"
    assert their["basePath"] == our["basePath"]
    assert {path: set(methods) for path, methods in their["paths"].items()} == {
        path: set(methods) for path, methods in our["paths"].items()
    }
    for path, methods in their["paths"].items():
        for method, described in methods.items():
            parameters = [
                {(one["name"], one["in"], one["required"]) for one in operation.get("parameters", [])}
                for operation in (described, our["paths"][path][method])
            ]
            assert parameters[0] == parameters[1], path
