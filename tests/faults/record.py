"""docs/reliability.md, filled from test runs: HEEDFUL_RECORD=1 make faults, or make faults-night.

docs/reliability.json has the last result of every row at both counts; the page is drawn from it.
"""

from __future__ import annotations

import datetime
import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from events import NIGHT

DOCS = Path(__file__).parents[2] / "docs"
DATA, PAGE = DOCS / "reliability.json", DOCS / "reliability.md"

ROWS = {
    "R1": ("clean resume", "a run with dropout over two epoch borders, resumed from its steps"),
    "R2": ("`kill -9`", "aimed by event: inside saves, steps, validations, pruning, averaging, preparation"),
    "R3": ("death at every I/O call", "of save, prune and replacing a model"),
    "R4": ("disk full", "ENOSPC at every call that writes, EFBIG from the system itself"),
    "R5": ("truncated checkpoint", "lengths over all files; fallback with one warning; none valid: exit 3"),
    "R6": ("flipped bits", "and zeroed pages, over all files of a checkpoint"),
    "R7": ("two trainers on one run", "a second start while the first trains; the lock of a killed one"),
    "R8": ("NaN or Inf", "in the loss or a gradient, stopped or skipped"),
    "R9": ("SIGTERM, SIGINT", "at random events; resumed bit-identical"),
    "R10": ("drift", "golden loss curve of 20 steps, exact twice, within 1e-4 of the recorded one"),
    "R11": ("malicious files", "with right digests: nothing executed, typed error, 1 s, bounded memory"),
    "R12": ("format fuzz", "mutated checkpoint, tokenizer and config files, with right digests: only our errors"),
    "R13": ("Unicode", "round trips through the tokenizer over all planes; lone surrogates refused by line"),
    "R14": ("bad text files", "empty, BOM, CRLF, not UTF-8, 10 MB line, unequal sides, blank lines, no last newline"),
    "R15": ("wrong search", "full-width beam against brute force, beam 1 = greedy, cache = recomputation"),
    "R16": ("neighbours in the batch", "sentences alone and in random batches"),
    "R17": (
        "malformed HTTP",
        "mutated and odd requests over raw sockets, and the OpenAPI fuzzer: no status ≥ 500, healthy after",
    ),
    "R18": (
        "limits",
        "body, texts, characters, tokens, alternatives, waiting: exact, before the work, in bounded memory",
    ),
    "R19": (
        "load",
        "32 clients, p99 ≤ 3 × p50; then four times as many as have room: 503 with Retry-After, goodput ≥ 90 %",
    ),
    "R20": (
        "slow and vanishing clients",
        "a byte a second, silence, answers not read, disconnects: closed in time, descriptors as before",
    ),
    "R21": ("shutdown", "SIGTERM under load: all in flight answered, exit 0"),
    "R22": ("soak", "no crossed answers, memory growth ≤ 5 %"),
    "R26": ("lost text", "lines of 1 to 300 sentences: all come back, the same by command line, server and Python"),
}

HEAD = """# Reliability

What is promised when things go wrong, and the last result of the test behind each promise. Every row has a control: the
same test with the protection removed must fail, and "fails as it must" says that it did. `make faults` runs the counts
of every change, `make faults-night` the large ones. This page is drawn from `reliability.json`, which
`HEEDFUL_RECORD=1 make faults` and `make faults-night` write; nothing in it is written by hand.

| # | fault | what is tested | every change | at night | control |
|---|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Result:
    test: str
    outcome: str
    seconds: float
    counts: tuple[tuple[int, str], ...]  # how many of what

    @property
    def row(self) -> str:
        found = re.search(r"test_r(\d\d)_", self.test)
        return f"R{int(found.group(1))}" if found else ""

    @property
    def is_control(self) -> bool:
        return "control" in self.test.rpartition("::")[2]


def keep(results: list[Result]) -> None:
    """Puts results in place of earlier ones of the same rows and counts."""
    data: dict[str, Any] = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {}
    when = "night" if NIGHT else "every change"
    for row in {result.row for result in results} - {""}:
        own = [result for result in results if result.row == row]
        data.setdefault(row, {})[when] = _summary([result for result in own if not result.is_control])
        if controls := [result for result in own if result.is_control]:
            data[row]["control"] = _summary(controls)
    DATA.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    PAGE.write_text(page(json.loads(DATA.read_text(encoding="utf-8"))), encoding="utf-8")


def _summary(results: list[Result]) -> dict[str, Any]:
    totals: Counter[str] = Counter()
    for result in results:
        for number, what in result.counts:
            totals[what] += number
    return {
        "passed": bool(results) and all(result.outcome == "passed" for result in results),
        "counts": dict(totals),
        "tests": len(results),
        "seconds": round(sum(result.seconds for result in results), 1),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


def page(data: dict[str, Any]) -> str:
    lines = []
    for row, (fault, tested) in ROWS.items():
        if not tested:
            lines.append(f"| {row} | {fault} | not built yet | not run | not run | not run |")
            continue
        found = data.get(row, {})
        cells = [_cell(found.get("every change"), "held"), _cell(found.get("night"), "held")]
        cells.append(_cell(found.get("control"), "fails as it must"))
        lines.append(f"| {row} | {fault} | {tested} | {' | '.join(cells)} |")
    return HEAD + "\n".join(lines) + "\n"


def _cell(summary: dict[str, Any] | None, good: str) -> str:
    if summary is None:
        return "not run"
    tests = f"{summary['tests']} test{'s' * (summary['tests'] != 1)}"
    counts = ", ".join(f"{number:,} {what}" for what, number in summary["counts"].items()) or tests
    return f"{counts}: {good if summary['passed'] else '**not held**'} ({summary['date']}, {summary['seconds']} s)"
