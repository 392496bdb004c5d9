"""Limits on requests, connections and stored files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from heedful.errors import UsageError, nearest


def _limit(default: float, meaning: str) -> Any:
    return field(default=default, metadata={"meaning": meaning})


@dataclass(frozen=True)
class Limits:
    """The limits. A request above a limit is rejected before any work is done."""

    body: int = _limit(1_000_000, "bytes per request body")
    texts: int = _limit(100, "texts per request")
    characters: int = _limit(10_000, "characters per request, over all its texts")
    tokens: int = _limit(8_000, "tokens per request, over all its texts")
    attended: int = _limit(64, "tokens per inspected sentence or translation")
    inspected_beam: int = _limit(8, "beam width of an inspected search")
    file: int = _limit(1_000_000, "bytes per file to translate")
    files: int = _limit(100, "translated files stored or in progress")
    files_bytes: int = _limit(50_000_000, "bytes of all stored files")
    file_seconds: float = _limit(600.0, "seconds a translated file is stored")
    suggestions_bytes: int = _limit(100_000_000, "bytes of the suggestions file")
    alternatives: int = _limit(5, "alternative translations per text")
    waiting: int = _limit(16_000, "tokens in the request queue")
    connections: int = _limit(500, "open connections")
    receive_seconds: float = _limit(20.0, "seconds to receive a whole request")
    idle_seconds: float = _limit(20.0, "seconds between requests on a connection")
    send_seconds: float = _limit(20.0, "seconds without the client reading the response")


def limits_from(settings: Sequence[str]) -> Limits:
    """Return the default limits changed by settings such as `body=2000000`."""
    known = asdict(Limits())
    values: dict[str, Any] = {}
    for setting in settings:
        name, _, text = setting.partition("=")
        if name not in known:
            raise UsageError(f'Unknown limit "{name}".{nearest(name, known)}')
        values[name] = _number(name, text, type(known[name]))
    return Limits(**values)


_MOST = 10**12  # largest value of any limit


def _number(name: str, text: str, kind: type[int] | type[float]) -> float:
    lowest = 0.1 if kind is float else 0 if name == "alternatives" else 1
    try:
        value = kind(text)
    except ValueError:
        value = -1
    if not lowest <= value <= _MOST:  # also false for NaN
        what = "an integer" if kind is int else "a number of seconds"
        raise UsageError(f'`--limit`: {name} must be {what} from {lowest} to {_MOST:,}, not "{text}".')
    return value


def limits_table() -> str:
    """Return the table of docs/how-to/serving.md."""
    rows = [f"| `{one.name}` | {one.default:,} | {one.metadata['meaning']} |" for one in fields(Limits)]
    return "\n".join(["| name | default | meaning |", "|---|---|---|", *rows])
