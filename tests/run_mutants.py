"""Run mutmut and compare survivors with tests/surviving_mutants.toml: `make mutants`.

mutmut changes one thing at a time in a copy of the source (`[tool.mutmut]` in pyproject.toml) and runs the tests that
reach it. A mutant that no test notices is either killed by a new test or listed with a reason. The list names the
function and the changed text, because mutmut's numbers move with the code.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import NamedTuple

LISTED = Path(__file__).with_name("surviving_mutants.toml")
NOTICED = ("killed", "timeout")


class Mutant(NamedTuple):
    """A function, and what a mutation changes in it; lines are joined by single spaces."""

    function: str
    before: str
    after: str


def listed() -> dict[Mutant, str]:
    """Mutants that may survive, with the reason."""
    entries = tomllib.loads(LISTED.read_text(encoding="utf-8"))["mutant"]
    return {Mutant(entry["function"], entry["before"], entry["after"]): entry["reason"] for entry in entries}


def function_of(name: str) -> str:
    """Turn `module.xǁClassǁmethod__mutmut_3` or `module.x_function__mutmut_3` into a name."""
    module, _, mangled = name.rpartition("__mutmut_")[0].rpartition(".")
    parts = mangled.removeprefix("xǁ").split("ǁ") if mangled.startswith("xǁ") else [mangled.removeprefix("x_")]
    return ".".join([module, *parts])


def mutant(name: str, diff: str) -> Mutant:
    """Read the mutant of this name from the diff that mutmut shows."""
    changed = {"-": "", "+": ""}
    for line in diff.splitlines():
        if line[:1] in changed and not line.startswith(("---", "+++")):
            changed[line[0]] += " " + line[1:]
    return Mutant(function_of(name), *(" ".join(text.split()) for text in changed.values()))


def statuses(results: str) -> dict[str, str]:
    """Read the lines of `mutmut results`: a name and its state, such as killed or survived."""
    rows = (line.strip().split(": ", 1) for line in results.splitlines() if "__mutmut_" in line)
    return dict(rows)


def mutmut(*arguments: str) -> str:
    command = [sys.executable, "-m", "mutmut", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def main() -> int:
    subprocess.run([sys.executable, "-m", "mutmut", "run", "--max-children", "1", *sys.argv[1:]], check=True)
    found = statuses(mutmut("results", "--all", "true"))
    if not found:
        print("mutmut made no mutants. See [tool.mutmut] in pyproject.toml.")
        return 1
    survivors = {name: mutant(name, mutmut("show", name)) for name, status in found.items() if status not in NOTICED}
    known = listed()
    unlisted = {name: one for name, one in survivors.items() if one not in known}
    for name, one in unlisted.items():
        print(f"\n{name}: {found[name]}\n  {one.function}\n- {one.before}\n+ {one.after}")
    for one in known.keys() - set(survivors.values()):
        print(f"\nlisted, but noticed by a test or no longer made: {one.function}\n- {one.before}\n+ {one.after}")
    print(f"\n{len(found)} mutants: {dict(Counter(found.values()))}; {len(survivors) - len(unlisted)} of them listed.")
    if unlisted:
        print(f"{len(unlisted)} survivors are not listed. Write a test that fails for each, or list it in {LISTED}.")
    return 1 if unlisted else 0


if __name__ == "__main__":
    sys.exit(main())
