"""Write docs/explanation/reliability.md from test runs.

Usage: HEEDFUL_RECORD=1 make faults, or make faults-night. reliability.json has the last result of every row at both
counts; the page is generated from it.
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
    "R1": ("clean resume", "a two-epoch run with dropout, stopped at any step, resumes bit for bit"),
    "R2": ("`kill -9`", "a run killed during a save, step, validation, pruning, averaging or preparation resumes"),
    "R3": ("crash at every I/O call", "a process that crashes while saving, pruning or replacing a model recovers"),
    "R4": ("disk full", "every write fails with ENOSPC, or with EFBIG from the kernel; no valid file is lost"),
    "R5": ("truncated checkpoint", "training warns and resumes from an older checkpoint; exit code 3 if none is valid"),
    "R6": ("bit flips", "flipped bits and zeroed pages are detected in every file of a checkpoint"),
    "R7": ("two trainers on one run", "the second trainer is rejected; a killed trainer frees its lock"),
    "R8": ("NaN or Inf", "if the loss or a gradient is not finite, training stops before the update or skips it"),
    "R9": ("SIGTERM, SIGINT", "a signal at a random time makes training save and exit; it resumes bit for bit"),
    "R10": ("numerical drift", "two runs have identical losses, which are within 1e-4 of a recorded curve"),
    "R11": (
        "malicious files",
        "malicious files with valid digests run no code and raise a typed error in bounded time and memory",
    ),
    "R12": ("format fuzz", "mutated files with valid digests raise only heedful's own errors"),
    "R13": ("Unicode", "the tokenizer restores text from all planes exactly; lone surrogates are rejected"),
    "R14": (
        "bad text files",
        "files that are empty, not in UTF-8 or unequal in number of lines, or contain a BOM, CRLF, blank lines "
        "or 10 MB lines, "
        "are read correctly or rejected",
    ),
    "R15": (
        "search errors",
        "beam search matches brute force, beam 1 matches greedy search, and the cache matches recomputation",
    ),
    "R16": (
        "batch independence",
        "a sentence has the same translation alone and in random batches; its score differs by at most 1e-4, "
        "or 0.05 in bf16 and int8",
    ),
    "R17": (
        "malformed HTTP",
        "mutated requests over raw sockets and from the OpenAPI fuzzer cause no status ≥ 500; the server stays healthy",
    ),
    "R18": (
        "limits",
        "limits on body, texts, characters, tokens, alternatives and queue are exact and checked before any work, "
        "in bounded memory",
    ),
    "R19": (
        "load",
        "with 32 clients, p99 latency ≤ 3 × p50; at four times the capacity, 503 with Retry-After and goodput ≥ 90%",
    ),
    "R20": (
        "slow and disconnecting clients",
        "clients that send one byte per second, fall silent, disconnect or do not read are disconnected in time, "
        "without leaked file descriptors",
    ),
    "R21": ("shutdown", "after SIGTERM under load, all in-flight requests are answered; exit code 0"),
    "R22": ("soak", "over many requests, no responses are mixed up and memory grows by ≤ 5%"),
    "R23": (
        "user files",
        "`--out` points at user files, foreign locks, markers or links, or a start fails or is killed: nothing is lost",
    ),
    "R24": (
        "event-loop stalls",
        "nested multipart, deep JSON, 1 MB of form fields, 10,000-character words or 5,000 lines cause no status "
        "≥ 500, and `/health` answers within 250 ms in nightly runs (2 s on every change)",
    ),
    "R25": (
        "access control",
        "foreign Host and Origin headers, missing and wrong API keys, too many requests and request smuggling get the "
        "correct status; ambiguous framing closes the connection",
    ),
    "R26": ("lost text", "lines of 1 to 300 sentences lose none; command line, server and Python agree"),
    "R27": ("bf16", 'R1, R2 and R9 hold with `training.precision = "bf16"`'),
    "R29": (
        "prepared data",
        "`heedful prepare`, killed at any change of the disk, continues without redoing finished shards and ends the "
        "same; flipped bits in prepared corpora and token stores are detected",
    ),
}

HEAD = """# Reliability

This page lists the faults that heedful handles and the last result of each test. Every row has a control: the same
test with the protection removed, which must fail. "Fails as expected" means that it did.

`make faults` runs a few cases of each test on every change; `make faults-night` runs many more every night. With
`HEEDFUL_RECORD=1`, both write their results to `reliability.json`, from which this page is generated.

Two rows are not recorded here. R28, two hosts whose link fails and a process that is killed, is tested by
`make distributed`; it has no control yet. R30, the oldest and newest supported release of each dependency, has not been
run.

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
