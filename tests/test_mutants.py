"""tests/surviving_mutants.toml fits the source, and `make mutants` reads mutmut's output."""

from __future__ import annotations

import importlib.util
import inspect
from operator import attrgetter

import pytest

import run_mutants
from run_mutants import Mutant

SHOWN = """# heedful.training.loss.xǁ_ProjectedLossǁforward__mutmut_9: survived
--- src/heedful/training/loss.py
+++ src/heedful/training/loss.py
@@ -1,4 +1,4 @@
 def forward(
-        total = (
-            one
-        )
+        total = None
"""


def test_a_mutant_is_its_function_and_its_change() -> None:
    found = run_mutants.mutant("heedful.training.loss.xǁ_ProjectedLossǁforward__mutmut_9", SHOWN)
    assert found == Mutant("heedful.training.loss._ProjectedLoss.forward", "total = ( one )", "total = None")
    assert run_mutants.function_of("heedful.manifest.x__read__mutmut_12") == "heedful.manifest._read"


def test_results_are_read_and_other_lines_are_not() -> None:
    text = "Some warning: nothing\n    a.x_f__mutmut_1: survived\n    a.x_f__mutmut_2: caught by type check\n"
    assert run_mutants.statuses(text) == {"a.x_f__mutmut_1": "survived", "a.x_f__mutmut_2": "caught by type check"}


def source_of(function: str) -> str:
    """Of the function that is named from its module on, without line breaks."""
    parts = function.split(".")
    depth = 2 if importlib.util.find_spec(".".join(parts[:2])).submodule_search_locations is None else 3
    module = importlib.import_module(".".join(parts[:depth]))
    return " ".join(inspect.getsource(attrgetter(".".join(parts[depth:]))(module)).split())


@pytest.mark.parametrize("mutant", run_mutants.listed(), ids=lambda mutant: f"{mutant.function}: {mutant.after[:40]}")
def test_listed_mutants_are_of_the_source_as_it_is(mutant: Mutant) -> None:
    assert mutant.before in source_of(mutant.function)
    assert mutant.before != mutant.after
    assert run_mutants.listed()[mutant].startswith(("equivalent: ", "performance: ", "text: "))
