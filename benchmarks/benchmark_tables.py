"""Benchmark tables as JSON and Markdown, with the circumstances of the measurement.

A file has a list of them: {"title", "measured": {"commit", "versions", "threads", "data", "when"}, "columns", "rows",
"notes"}; benchmarks may add raw figures.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs" / "results"

Table = dict[str, Any]


def measured(threads: int, data: str, versions: Mapping[str, str]) -> dict[str, Any]:
    """Return the circumstances of a measurement: commit, versions, threads, data, date."""
    return {
        "commit": commit(ROOT),
        "versions": {"python": platform.python_version(), **versions},
        "threads": threads,
        "data": data,
        "when": datetime.now(UTC).date().isoformat(),
        "machine": processor(Path("/proc/cpuinfo")),
    }


def commit(root: Path) -> str:
    """Return the newest commit, read from git's files without the git program; uncommitted changes do not show."""
    try:
        return (root / ".git" / "logs" / "HEAD").read_text(encoding="utf-8").splitlines()[-1].split()[1][:10]
    except (OSError, IndexError):
        return "unknown"


def processor(cpuinfo: Path) -> str:
    try:
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def markdown(table: Table) -> str:
    """Return the table, its notes and its circumstances as Markdown."""
    lines = ["| " + " | ".join(table["columns"]) + " |", "|---" * len(table["columns"]) + "|"]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in table["rows"]]
    if table["notes"]:
        lines += ["", *(f"- {note}" for note in table["notes"])]
    return "\n".join([*lines, "", circumstances(table["measured"])])


def circumstances(found: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    threads = f"{found['threads']} threads" + (f" of {found['machine']}" if found.get("machine") else "")
    processor = f"; {found['processor']}" if found.get("processor") else ""
    return f"*{found['when']}, commit {found['commit']}, {threads}{processor}; {found['data']}; {versions}.*"


def show(tables: Iterable[Table]) -> None:
    for table in tables:
        print(f"\n{table['title']}\n\n{markdown(table)}")


def write(tables: list[Table], path: Path | None) -> None:
    """Print the tables, and write them as JSON if a path is given."""
    show(tables)
    if path is not None:
        path.write_text(json.dumps(tables, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
