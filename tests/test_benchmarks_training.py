"""The training benchmarks, and docs/results/performance.md against their JSON files."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from heedful.config import ModelConfig
from heedful.model.complexity import training_flops

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "benchmarks"))

import benchmark_tables
import peak_allocation
import performance_page
import time_to_loss
import training_peers
import training_speed
import training_step_matmuls
import training_task
import training_worker

SHAPE = training_task.Shape(N=2, d_model=32, d_ff=48, h=4, vocab_size=90, dropout=0.0)


def rows(seed: int, B: int = 3, S: int = 7, T: int = 5, padded: bool = True) -> training_task.Rows:
    draw = np.random.default_rng(seed)
    source, target = draw.integers(4, SHAPE.vocab_size, (B, S)), draw.integers(4, SHAPE.vocab_size, (B, T))
    target[:, -1] = training_task.EOS
    if padded:
        source[0, 4:], target[0, 3:] = training_task.PAD, training_task.PAD
    shifted = np.concatenate([np.full((B, 1), training_task.BOS), target[:, :-1]], axis=1)
    return training_task.Rows(source, np.where(target == training_task.PAD, training_task.PAD, shifted), target)


TASK = training_task.Task(SHAPE, [rows(1), rows(2, B=4, S=6, T=8)])


def config() -> ModelConfig:
    s = SHAPE
    return ModelConfig(vocab_size=s.vocab_size, N=s.N, d_model=s.d_model, d_ff=s.d_ff, h=s.h)


def flops(step: Any, number: int) -> int:
    with FlopCounterMode(display=False) as counter:
        step(number)
    return int(counter.get_total_flops())


@pytest.mark.parametrize("number", [0, 1])
def test_the_ceiling_has_the_products_of_a_step(number: int) -> None:
    batch = TASK.batches[number]
    B, S = batch.source.shape
    expected = training_flops(config(), B, S, batch.target_in.shape[1], tokens=batch.tokens)
    assert flops(training_step_matmuls.matrix_products(TASK), number) == expected


def test_a_peer_s_step_has_the_same_products_where_nothing_is_padded() -> None:
    task = training_task.Task(SHAPE, [rows(3, padded=False)])
    step = training_peers.torch_step(task, "fp32").step
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        counted = flops(step, 0)
    assert (
        counted
        == flops(training_step_matmuls.matrix_products(task), 0)
        == flops(training_step_matmuls.matrix_products(task, False), 0)
    )


def test_without_padding_there_are_fewer_products() -> None:
    batch = TASK.batches[0]
    assert (batch.source_tokens, batch.tokens, batch.source.size) == (18, 13, 21)
    found = training_step_matmuls.products(SHAPE, batch, padded=False)
    assert {one.m for one in found if one.batch == 1} == {18, 13}
    assert {one.m for one in training_step_matmuls.products(SHAPE, batch, padded=True) if one.batch == 1} == {
        21,
        15,
        13,
    }
    assert batch.padding == pytest.approx(1 - 31 / 36)


@pytest.mark.parametrize("precision", training_peers.PRECISIONS)
def test_contenders_have_one_size_and_update_their_weights(precision: str) -> None:
    names = ("heedful", "torch.nn.Transformer", "Marian (transformers)")
    pytest.importorskip("transformers")
    torch.manual_seed(1)
    built = {name: training_peers.CONTENDERS[name](TASK, precision) for name in names}
    sizes = {name: sum(p.numel() for p in training_worker.trained(one)) for name, one in built.items()}
    final_norms = 2 * 2 * SHAPE.d_model  # nn.Transformer has one more behind each stack
    assert sizes["torch.nn.Transformer"] - final_norms == sizes["heedful"] == sizes["Marian (transformers)"]
    for name, one in built.items():
        before = {key: value.clone() for key, value in one.model.state_dict().items()}  # type: ignore[union-attr]
        first = one.step(0)
        assert first > np.log(SHAPE.vocab_size) / 2, name
        changed = [key for key, value in one.model.state_dict().items() if not torch.equal(value, before[key])]  # type: ignore[union-attr]
        assert len(changed) > 20, name


def test_activations_are_what_a_step_holds_beside_weights_and_gradients() -> None:
    model = torch.nn.Linear(256, 512, bias=False)
    x = torch.randn(1_024, 256)

    def step(_: int) -> float:
        hidden = model(x).relu()  # two of 2 MiB, of which the first is released
        again = hidden.exp()  # kept for its gradient, as `hidden` is for relu's
        again.sum().backward()
        model.zero_grad()
        return 0.0

    size = 1_024 * 512 * 4
    found = training_worker.activations(training_peers.Contender(step, model, "torch"), 0)
    assert found is not None
    assert 3 * size <= found < 4 * size + 512 * 256 * 4 + 4_096
    assert peak_allocation.peak_allocated_bytes(lambda: torch.empty(1_000_000, dtype=torch.uint8)) == pytest.approx(
        1_000_000, abs=64
    )
    assert training_worker.activations(training_peers.Contender(step, None, "torch"), 0) is None


def result(*seconds: float, activations: int | None = None) -> training_speed.Result:
    return training_speed.Result({"torch": "2"}, 10, list(seconds), activations)


def test_the_table_has_medians_spread_and_ratios() -> None:
    mib = training_speed.MIB
    results = {
        ("heedful", "bf16"): result(1.0, 2.0, 9.0, activations=30 * mib),
        ("heedful", "fp32"): result(4.0, 4.0, 4.0, activations=60 * mib),
        ("slow", "fp32"): result(9.0, 10.0, 10.0, activations=80 * mib),
        ("slow", "bf16"): result(4.0, 5.0, 8.0, activations=50 * mib),
        ("slower", "bf16"): result(9.0, 9.0, 9.0, activations=40 * mib),
        ("matrix products only", "fp32"): result(3.0, 3.0, 3.0),
        ("matrix products only", "bf16"): result(1.5, 1.5, 1.5),
    }
    found = {(row[0], row[1]): row[2:] for row in training_speed.rows_of(results, tokens=9_000)}
    assert next(iter(found)) == ("matrix products only", "bf16")
    assert found["**heedful**", "bf16"] == ["4,500", "1,000 to 9,000", "5.00 ×", "2.50 ×", "75%", "30", "75%", "10"]
    assert found["**heedful**", "fp32"] == ["2,250", "2,250 to 2,250", "2.50 ×", "2.50 ×", "75%", "60", "75%", "10"]
    assert found["slow", "bf16"][2:5] == ["2.00 ×", "1.00 ×", "30%"]
    assert found["matrix products only", "bf16"][5:7] == ["–", "–"]


def test_goals_compare_bf16_with_peers_and_the_upper_bound() -> None:
    shape = training_task.Shape(3, 256, 1_024, 4, 8_000)
    results = {
        ("heedful", "bf16"): result(1.0, 1.0, 5.0, activations=30),
        ("heedful", "fp32"): result(3.0, activations=60),
        ("slow", "fp32"): result(4.0, activations=80),
        ("slow", "bf16"): result(2.0, activations=50),
        ("lean", "bf16"): result(9.0, activations=40),
        (training_peers.CEILING, "bf16"): result(0.6),
        (training_peers.NO_PADDING, "bf16"): result(0.1),
    }
    rows = training_speed.goal_rows(shape, results)
    assert [row[1:] for row in rows] == [
        ["256", "4.00", "at least 3.70", "yes"],
        ["256", "2.00", "at least 2.20", "no"],
        ["256", "0.60", "at least 0.55", "yes"],
        ["256", "0.75", "at most 0.70", "no"],
    ]


def test_a_contender_that_does_not_start_is_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\necho 'ModuleNotFoundError: no such peer' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("BENCH_JOEYNMT", str(fake))
    key = ("JoeyNMT", "bf16")
    one = training_speed.Worker(key, tmp_path, 1)
    results, left_out = training_speed.started([one], 1)
    one.stop()
    assert results == {}
    assert left_out == {key: "ModuleNotFoundError: no such peer"}


def test_the_time_to_a_loss_lies_on_the_line_between_validations() -> None:
    assert time_to_loss.reached([10.0, 20.0, 30.0], [5.0, 3.0, 2.0], 4.0) == 15.0
    assert time_to_loss.reached([10.0, 20.0, 30.0], [5.0, 3.0, 2.0], 2.0) == 30.0
    assert time_to_loss.reached([10.0, 20.0], [5.0, 3.0], 6.0) == 10.0
    run = time_to_loss.Run("x", 2.0, [5, 10], [3.0, 2.0], [7.0, 12.0], [1.0, 1.5])
    assert run.clocks() == {"training alone": [4.0, 7.5], "without start-up": [5.0, 10.0], "total": [7.0, 12.0]}
    sides = [side == time_to_loss.OURS for side in time_to_loss.order(2)]
    assert sides == [True, False, False, True]


def test_a_log_is_read_as_it_grows(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    code = (
        f"import time; f = open({str(log)!r}, 'a', buffering=1); f.write('{{\"kind\": \"start\"}}\\n'); time.sleep(0.3)"
    )
    code += "; f.write('{\"kind\": \"va'); time.sleep(0.2); f.write('lid\"}\\n')"
    found = list(time_to_loss.watched([sys.executable, "-c", code], log, 1))
    assert [entry["kind"] for _, entry in found] == ["start", "valid"]
    assert 0.3 < found[1][0] - found[0][0] < 5
    with pytest.raises(SystemExit, match="exit code 3"):
        list(time_to_loss.watched([sys.executable, "-c", "raise SystemExit(3)"], tmp_path / "none", 1))


def test_the_page_is_drawn_from_the_figures() -> None:
    docs = ROOT / "docs" / "results"
    page = (docs / "performance.md").read_text(encoding="utf-8")
    assert performance_page.places(page) == list(performance_page.FILES)
    assert performance_page.filled(page, performance_page.read(docs)) == page


def test_tables_and_pictures_are_made_of_what_is_there(tmp_path: Path) -> None:
    measured = {"commit": "abc", "versions": {"torch": "2.13"}, "threads": 2, "data": "some", "when": "today"}
    names = ("heedful, fp32", "slow, bf16", "matrix products only, fp32")
    raw = {"tokens": 100, "results": {name: {"seconds": [1.0, 2.0]} for name in names}}
    one = {"title": "One", "measured": measured, "columns": ["a", "b"], "rows": [["x", 1]], "notes": ["so"], "raw": raw}
    (tmp_path / "performance.json").write_text(json.dumps([one, {**one, "title": "Two"}]))
    (tmp_path / "performance-growth.json").write_text(json.dumps([{**one, "title": "Three", "notes": []}]))
    places = "".join(f"<!-- fill: {name} -->\nold\n<!-- end -->\n" for name in ("training", "growth", "startup"))
    (tmp_path / "performance.md").write_text(f"before\n{places}after\n")
    performance_page.write(tmp_path)
    text = (tmp_path / "performance.md").read_text()
    assert "old" not in text
    assert text.startswith("before\n")
    assert text.endswith(f"{performance_page.NOT_RUN}\n<!-- end -->\nafter\n")
    shown = "### One\n\n| a | b |\n|---|---|\n| x | 1 |\n\n- so\n\n*today, commit abc, 2 threads; some; torch 2.13.*\n"
    assert shown in text
    assert [line for line in text.splitlines() if line.startswith("#")] == ["### One", "### Two", "### Three"]
    assert (tmp_path / "images" / "performance.png").stat().st_size > 1_000
    performance_page.write(tmp_path)
    assert (tmp_path / "performance.md").read_text() == text


def test_the_commit_is_the_newest(tmp_path: Path) -> None:
    assert benchmark_tables.commit(tmp_path) == "unknown"
    (tmp_path / ".git" / "logs").mkdir(parents=True)
    (tmp_path / ".git" / "logs" / "HEAD").write_text(
        "0 aaaaaaaaaaaa x\naaaaaaaaaaaa bbbbbbbbbbbb who 1 +0\tcommit: so\n"
    )
    assert benchmark_tables.commit(tmp_path) == "bbbbbbbbbb"
