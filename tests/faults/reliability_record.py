"""Write docs/explanation/reliability.md from test runs: HEEDFUL_RECORD=1 make faults, or make faults-night.

reliability.json has the last result of every row at both counts; the page is generated from it.
"""

from __future__ import annotations

import datetime
import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fault_injection import NIGHT

DOCS = Path(__file__).parents[2] / "docs" / "explanation"
DATA, PAGE = DOCS / "reliability.json", DOCS / "reliability.md"

ROWS = {
    "R1": ("clean resume", "a two-epoch run with dropout, resumed at every step"),
    "R2": ("`kill -9`", "during saves, steps, validations, pruning, averaging and preparation"),
    "R3": ("crash at every I/O call", "while saving, pruning and replacing a model"),
    "R4": ("disk full", "ENOSPC at every write, EFBIG from the kernel"),
    "R5": ("truncated checkpoint", "falls back to an older checkpoint with one warning; exit code 3 if none is valid"),
    "R6": ("bit flips", "flipped bits and zeroed pages in every file of a checkpoint are detected"),
    "R7": ("two trainers on one run", "the second start is rejected; a killed trainer frees its lock"),
    "R8": ("NaN or Inf", "in the loss or a gradient: stops before the update, or skips it"),
    "R9": ("SIGTERM, SIGINT", "at random times: saves, exits, and resumes bit for bit"),
    "R10": ("numerical drift", "two runs have identical losses, within 1e-4 of the recorded golden curve"),
    "R11": ("malicious files", "with valid digests: no code runs, typed error, bounded time and memory"),
    "R12": ("format fuzz", "mutated files with valid digests raise only heedful's errors"),
    "R13": ("Unicode", "tokenizer round trips over all planes; lone surrogates rejected"),
    "R14": ("bad text files", "empty, BOM, CRLF, not UTF-8, 10 MB line, unequal sides, blank lines"),
    "R15": ("search errors", "beam search against brute force; beam 1 = greedy; cache = recomputation"),
    "R16": (
        "batch independence",
        "same translation alone and in random batches; scores within 1e-4, in bf16 and int8 within 0.05",
    ),
    "R17": (
        "malformed HTTP",
        "mutated requests over raw sockets, and the OpenAPI fuzzer: no status ≥ 500, healthy afterwards",
    ),
    "R18": (
        "limits",
        "body, texts, characters, tokens, alternatives, queue: exact, checked before any work, bounded memory",
    ),
    "R19": (
        "load",
        "32 clients, p99 ≤ 3 × p50; then four times the capacity: 503 with Retry-After, goodput ≥ 90%",
    ),
    "R20": (
        "slow and disconnecting clients",
        "one byte per second, silence, unread responses, disconnects: closed in time, no leaked file descriptors",
    ),
    "R21": ("shutdown", "SIGTERM under load: all in-flight requests answered, exit code 0"),
    "R22": ("soak", "no mixed-up responses, memory growth ≤ 5%"),
    "R23": (
        "user files",
        "`--out` pointing at user files, failed and killed starts, foreign locks, markers and links: nothing is lost",
    ),
    "R24": (
        "event-loop stalls",
        "nested multipart, deep JSON, 1 MB of form fields, 10,000-character words, 5,000 lines: "
        "`/health` answers within 250 ms in nightly runs (2 s on every change), no status ≥ 500",
    ),
    "R25": (
        "access control",
        "foreign Host and Origin, missing and wrong API key, rate limit, request smuggling: "
        "correct status, connection closed if the framing is ambiguous",
    ),
    "R26": ("lost text", "lines of 1 to 300 sentences: none is lost, and command line, server and Python agree"),
    "R27": ("bf16", 'R1, R2 and R9 with `training.precision = "bf16"`: bit-identical'),
}

HEAD = """# Reliability

This page lists what heedful guarantees when something goes wrong, and the last result of each test. Every row has a
control: the same test with the protection removed, which must fail. "Fails as expected" means that it did.

`make faults` runs a few cases of each test on every change; `make faults-night` runs many every night. This page is
generated from `reliability.json`, which `HEEDFUL_RECORD=1 make faults` and `make faults-night` write.

| # | fault | every change | nightly | control |
|---|---|---|---|---|
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
    """Replace earlier results of the same rows and counts."""
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
    """A table of outcomes, then what each row tests and how often."""
    outcomes, details = [], []
    for row, (fault, tested) in ROWS.items():
        found = data.get(row, {})
        change, night, control = (found.get(when) for when in ("every change", "night", "control"))
        cells = [_outcome(change, "passed"), _outcome(night, "passed"), _outcome(control, "fails as expected")]
        outcomes.append(f"| {row} | {fault} | {' | '.join(cells)} |")
        counts = {"every change": change, "nightly": night, "control": control}
        said = "; ".join(f"{when}: {_counts(summary)}" for when, summary in counts.items() if summary)
        details.append(f"- **{row}, {fault}**: {tested}. *{said[:1].upper()}{said[1:] or 'Not run'}.*")
    return HEAD + "\n".join(outcomes) + "\n\n## What is tested\n\n" + "\n".join(details) + "\n"


def _outcome(summary: dict[str, Any] | None, good: str) -> str:
    return f"{good if summary['passed'] else '**failed**'}, {summary['date']}" if summary else "not run"


def _counts(summary: dict[str, Any]) -> str:
    tests = f"{summary['tests']} test{'s' * (summary['tests'] != 1)}"
    counts = ", ".join(f"{number:,} {what}" for what, number in summary["counts"].items()) or tests
    return f"{counts} in {summary['seconds']} s"
