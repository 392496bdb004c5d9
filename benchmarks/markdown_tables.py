"""Tables that every benchmark writes and docs/results/performance.md shows, with how they were measured.

A file has a list of them: {"title", "measured": {"commit", "versions", "threads", "data", "when"}, "columns", "rows",
"notes"}; whatever else a benchmark wants to keep of its raw figures stands beside these.
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
    """The circumstances: a figure without them is worth nothing."""
    return {
        "commit": commit(ROOT),
        "versions": {"python": platform.python_version(), **versions},
        "threads": threads,
        "data": data,
        "when": datetime.now(UTC).date().isoformat(),
        "machine": processor(Path("/proc/cpuinfo")),
    }


def commit(root: Path) -> str:
    """The newest commit, from git's own notes: no program is needed. What is not committed does not show."""
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
    """The table, its notes and its circumstances."""
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
    """On stdout, and as JSON where a path is given."""
    show(tables)
    if path is not None:
        path.write_text(json.dumps(tables, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
