"""The lab: claims hold, trained experiments run, and failed claims are reported."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from heedful.cli.main import main
from heedful.lab import computed_experiments, trained_experiments
from heedful.lab.experiment import Bars, Curve, Curves, Experiment, Finding, Setting, _draw, report
from heedful.lab.experiments import EXPERIMENTS
from heedful.lab.variant_training import Trained

matplotlib = pytest.importorskip("matplotlib")


@pytest.mark.parametrize(
    "experiment", [computed_experiments.scaling, computed_experiments.order, computed_experiments.shifts]
)
def test_computed_experiments_confirm_their_claims(experiment: object, tmp_path: Path) -> None:
    assert experiment(Setting(tmp_path, quick=False)).held  # type: ignore[operator]


def test_rotation_by_another_offset_is_detected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The control: the same experiment can fail."""
    rotation = computed_experiments._rotation
    monkeypatch.setattr(computed_experiments, "_rotation", lambda k, d_model: rotation(k + 1, d_model))
    assert not computed_experiments.shifts(Setting(tmp_path, quick=False)).held


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab"]) == 0
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) == len(EXPERIMENTS)
    for one in EXPERIMENTS:
        assert f"{one.name} " in printed


def test_every_experiment_is_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "results" / "lab.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([\w-]+)` \|", page, re.MULTILINE) == [one.name for one in EXPERIMENTS]


def test_trained_experiment_in_quick_mode(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "smoothing", "--quick", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "| ε = 0.0 |" in printed
    assert "not judged" in printed
    result = json.loads((tmp_path / "smoothing" / "result.json").read_text(encoding="utf-8"))
    assert result["held"] is None
    assert (tmp_path / "smoothing" / "figure.svg").read_bytes().startswith(b"<?xml")
    assert "![smoothing](figure.svg)" in (tmp_path / "smoothing" / "report.md").read_text(encoding="utf-8")


def test_unknown_experiment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "smothing", "--out", str(tmp_path)]) == 2
    assert 'Did you mean "smoothing"?' in capsys.readouterr().err


def trained(name: str, nll: float, bleu: float = 10.0, parameters: int = 1, training_nll: float = 1.0) -> Trained:
    return Trained(name, Path(), parameters, training_nll, nll, bleu, Curve(name, [1], [nll]))


JUDGED = [
    (trained_experiments._heads, [trained("1", 2.0), trained("4", 1.9), trained("16", 2.1)], True),
    (trained_experiments._heads, [trained("1", 1.8), trained("4", 1.9), trained("16", 2.1)], False),
    (trained_experiments._key_size, [trained("16", 1.0), trained("4", 1.1), trained("2", 1.2)], True),
    (trained_experiments._key_size, [trained("16", 1.0), trained("4", 0.9), trained("2", 1.2)], False),
    (trained_experiments._size, [trained("s", 2.0, parameters=1), trained("l", 1.0, parameters=2)], True),
    (trained_experiments._size, [trained("s", 1.0, parameters=1), trained("l", 2.0, parameters=2)], False),
    (trained_experiments._dropout, [trained("0", 2.0), trained("0.1", 1.9)], True),
    (trained_experiments._dropout, [trained("0", 2.0), trained("0.1", 2.1)], False),
    (trained_experiments._positions, [trained("s", 2.0), trained("l", 2.02)], True),
    (trained_experiments._positions, [trained("s", 2.0), trained("l", 2.2)], False),
    (trained_experiments._smoothing, [trained("0", 1.0, 10), trained("0.1", 1.1, 11)], True),
    (trained_experiments._smoothing, [trained("0", 1.0, 10), trained("0.1", 0.9, 11)], False),
    (trained_experiments._warmup, [trained("1", 2.0), trained("100", 1.0)], True),
    (trained_experiments._warmup, [trained("1", 1.0), trained("100", 2.0)], False),
]


@pytest.mark.parametrize(("judge", "found", "held"), JUDGED)
def test_verdicts(judge: object, found: list[Trained], held: bool) -> None:
    assert judge(found)[0] is held  # type: ignore[operator]


@pytest.mark.parametrize(
    ("held", "said"), [(True, "agrees with the paper:"), (False, "disagrees with the paper:"), (None, "not judged:")]
)
def test_report_states_the_result(held: bool | None, said: str) -> None:
    found = Finding(("a", "b"), [["1", "2"]], held, "because.", Curves([], "x", "y"))
    text = report(Experiment("name", "section 1", "A claim.", lambda _: found), found)
    assert f"\n{said} because." in text
    assert "| 1 | 2 |" in text


def texts(figure: Curves | Bars, path: Path) -> list[str]:
    """Return all text in a figure."""
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        _draw(figure, path / "figure.svg")
    drawing = ElementTree.fromstring((path / "figure.svg").read_bytes())
    return ["".join(one.itertext()) for one in drawing.iter("{http://www.w3.org/2000/svg}text")]


def test_categories_are_bars_with_their_names_and_values(tmp_path: Path) -> None:
    found = computed_experiments.order(Setting(tmp_path, quick=True))
    assert isinstance(found.figure, Bars)
    written = texts(found.figure, tmp_path)
    assert {"without", "with sinusoids", found.figure.x_label, found.figure.y_label} <= set(written)
    assert {f"{value:.3g}" for value in found.figure.values.values()} <= set(written)


@pytest.mark.parametrize(
    ("figure", "ticks"),
    [
        (Curves([Curve("a", [4, 16, 64, 1_024], [1, 2, 3, 4])], "d_k", "y", log_x=True), ["4", "16", "64", "1,024"]),
        (Curves([Curve("a", [16, 64], [0.4, 30.0])], "n", "y", log_x=True, log_y=True), ["16", "64", "1", "5", "20"]),
        (Curves([Curve("a", [1, 2, 3], [1, 2, 3])], "heads", "y"), ["1", "2", "3"]),
    ],
    ids=["log x", "log both", "linear"],
)
def test_ticks_are_plain_numbers_where_values_can_be(figure: Curves, ticks: list[str], tmp_path: Path) -> None:
    written = texts(figure, tmp_path)
    assert set(ticks) <= set(written)
    assert not any("^" in text or "×" in text for text in written)  # 16, not 2^4


def test_head_counts_divide_d_model(tmp_path: Path) -> None:
    written = texts(Curves([Curve("a", [1, 2, 3], [10, 20, 30])], "heads", "y"), tmp_path)
    assert "1" in written
    assert "1.5" not in written


def test_every_axis_of_computed_experiments_has_a_title(tmp_path: Path) -> None:
    for experiment in (computed_experiments.scaling, computed_experiments.order, computed_experiments.shifts):
        figure = experiment(Setting(tmp_path, quick=True)).figure
        assert {figure.x_label, figure.y_label} <= set(texts(figure, tmp_path))
        assert min(len(figure.x_label), len(figure.y_label)) > 3  # words, not a lone symbol
