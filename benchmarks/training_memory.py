"""Peak memory of a training step by sentence length: docs/results/memory.json, its tables and figure.

python benchmarks/training_memory.py            measures, a fresh process for each figure, then draws
python benchmarks/training_memory.py processes  measures only what whole processes take, then draws
python benchmarks/training_memory.py draw       draws again what docs/results/memory.json has

The peak is exact: the largest running sum of the profiler's allocations and releases. Weights and gradients are
allocated before and not counted.
"""

from __future__ import annotations

import ctypes
import json
import math
import platform
import resource
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time
from typing import Any

import torch
from peak_allocation import peak_allocated_bytes

from heedful import presets
from heedful.allocator import keep_memory
from heedful.config import BOS, PAD, TrainingConfig
from heedful.data.batches import Batch
from heedful.model import attention
from heedful.model.transformer import Transformer
from heedful.training.loss import batch_loss
from heedful.training.trainer import Trainer

DOCS = Path(__file__).parents[1] / "docs" / "results"
LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096)
SPARSE = (64, 256, 1024, 4096)  # fewer lengths for bf16, which is very slow on a CPU without bf16 instructions
SMALL_VOCABULARY = 1_000  # a small vocabulary, so that the layers dominate
MIB = 2**20


@dataclass(frozen=True)
class Way:
    """One way to compute a training step."""

    name: str
    plain: bool = False  # stores all attention weights
    checkpoint: bool = False  # training.checkpoint_activations
    bf16: bool = False  # training.precision


PLAIN = Way("plain attention", plain=True)
OURS = Way("heedful")
CHECKPOINT = Way("heedful, checkpoint_activations", checkpoint=True)
BF16 = Way("heedful, bf16", bf16=True)
BOTH = Way("heedful, both", checkpoint=True, bf16=True)
WAYS = (PLAIN, OURS, BF16, CHECKPOINT, BOTH)
COLOURS = {PLAIN: "#c1272d", OURS: "#1f4e9c", BF16: "#1f4e9c", CHECKPOINT: "#1a7f37", BOTH: "#1a7f37"}


@dataclass(frozen=True)
class Case:
    """One step: a preset, a vocabulary size, and a number of sentences of one length."""

    preset: str
    vocabulary: int
    sentences: int
    length: int


SWEEP = [Case("small", SMALL_VOCABULARY, 1, length) for length in LENGTHS]
USUAL = [Case("base", 37_000, 32, 32), Case("base", 37_000, 1, 1024)]


def batch_of(case: Case) -> Batch:
    """Return random tokens; the last eighth of each source is padding, so that masks are used."""
    target = torch.randint(4, case.vocabulary, (case.sentences, case.length))
    source = target.clone()
    source[:, case.length - case.length // 8 :] = PAD
    shifted = torch.cat([torch.full((case.sentences, 1), BOS), target[:, :-1]], dim=1)
    return Batch(source, shifted, target, target.numel(), tuple(range(1, case.sentences + 1)))


def measure(way: Way, case: Case) -> dict[str, int]:
    """Return the peak bytes of one forward and backward pass."""
    torch.manual_seed(1)
    model = Transformer(presets.named(case.preset).model(case.vocabulary))
    model.checkpoint_activations = way.checkpoint
    model.embedding.training_dtype = torch.bfloat16 if way.bf16 else None
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    if way.plain:
        attention.longest_plain = lambda _: case.length**2
    batch = batch_of(case)

    def step() -> None:
        loss = batch_loss(model, batch, TrainingConfig().label_smoothing).smoothed
        loss.backward()  # type: ignore[no-untyped-call]

    return {
        "peak": peak_allocated_bytes(step),
        "weights": sum(p.numel() * p.element_size() for p in model.parameters()),
        "process": most_resident(),
    }


@dataclass(frozen=True)
class Process:
    """A process that runs updates of 4,096 tokens per side with several sentence lengths, as in training."""

    checkpoint: bool
    own_pages: bool  # return blocks above 1 MiB to the kernel; otherwise keep them, as `train` does
    preset: str = "small"
    vocabulary: int = 8_000


PROCESSES = [Process(checkpoint, own_pages) for own_pages in (False, True) for checkpoint in (False, True)]


def take(process: Process) -> dict[str, float]:
    """Return the peak growth of a process after a first tiny update (bytes) and its CPU time (seconds)."""
    if process.own_pages:
        ctypes.CDLL(None).mallopt(-3, MIB)  # M_MMAP_THRESHOLD
    else:
        keep_memory()
    torch.manual_seed(1)
    model = Transformer(presets.named(process.preset).model(process.vocabulary))
    trainer = Trainer(model, TrainingConfig(checkpoint_activations=process.checkpoint, precision="fp32"))
    trainer.train_step([batch_of(Case(process.preset, process.vocabulary, 1, 16))])
    before, began = most_resident(), process_time()
    for length in (16, 48, 32, 64, 24, 32, 16, 64):
        trainer.train_step([batch_of(Case(process.preset, process.vocabulary, 4_096 // length, length))])
    return {"grown": most_resident() - before, "seconds": round(process_time() - began, 1)}


def most_resident() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def in_a_process_of_its_own(**asked: Any) -> Any:
    command = [sys.executable, __file__, "one", json.dumps({name: asdict(value) for name, value in asked.items()})]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{asked}: exit code {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def measured_step(way: Way, case: Case) -> dict[str, Any]:
    figures = in_a_process_of_its_own(way=way, case=case)
    print(
        f"{case.preset} {case.sentences} x {case.length:<5} {way.name:<32} {figures['peak'] / MIB:10,.1f} MiB",
        flush=True,
    )
    return {"way": way.name, **asdict(case), **figures}


def facts() -> dict[str, Any]:
    machine = f"{platform.system()} {platform.machine()}, CPU, {' '.join(platform.libc_ver())}"
    return {"torch": torch.__version__, "threads": torch.get_num_threads(), "machine": machine}


def measure_steps() -> list[dict[str, Any]]:
    sweep = [(way, case) for case in SWEEP for way in WAYS if not way.bf16 or case.length in SPARSE]
    usual = [(way, case) for case in USUAL for way in (PLAIN, OURS, CHECKPOINT)]
    return [measured_step(way, case) for way, case in sweep + usual]


def measure_processes() -> list[dict[str, Any]]:
    return [{**asdict(process), **in_a_process_of_its_own(process=process)} for process in PROCESSES]


Peaks = dict[int, int]  # length → bytes


def peaks(measured: dict[str, Any], way: Way) -> Peaks:
    return {
        step["length"]: step["peak"]
        for step in measured["steps"]
        if step["way"] == way.name and step["preset"] == SWEEP[0].preset
    }


def exponent(line: Peaks, first: int = 1024, last: int = 4096) -> float:
    """Return p such that memory grows as lengthᵖ between two lengths."""
    return math.log(line[last] / line[first]) / math.log(last / first)


def in_mib(size: int | None) -> str:
    return "–" if size is None else f"{size / MIB:,.1f}" if size < 100 * MIB else f"{size / MIB:,.0f}"


def sweep_table(measured: dict[str, Any]) -> str:
    rows = ["| MiB at length | " + " | ".join(f"{n:,}" for n in LENGTHS) + " | exponent |"]
    rows.append("|---" * (len(LENGTHS) + 2) + "|")
    for way in WAYS:
        line = peaks(measured, way)
        cells = [in_mib(line.get(length)) for length in LENGTHS]
        rows.append(f"| {way.name} | {' | '.join(cells)} | {exponent(line):.2f} |")
    return "\n".join(rows)


def usual_table(measured: dict[str, Any]) -> str:
    rows = [
        "| batch of 1,024 tokens per side, MiB | plain attention | heedful | checkpoint_activations |",
        "|---" * 4 + "|",
    ]
    for case in USUAL:
        found = [s["peak"] for s in measured["steps"] if s["preset"] == case.preset and s["length"] == case.length]
        rows.append(f"| {case.sentences} × {case.length:,} | {' | '.join(in_mib(size) for size in found)} |")
    return "\n".join(rows)


def processes_table(measured: dict[str, Any]) -> str:
    rows = ["| growth, MiB (CPU time, s) | heedful | checkpoint_activations |", "|---" * 3 + "|"]
    names = {
        False: "freed memory kept, as in `heedful train`",
        True: "freed memory returned to the kernel",
    }
    for own_pages, name in names.items():
        found = [one for one in measured["processes"] if one["own_pages"] == own_pages]
        cells = [f"{in_mib(one['grown'])} ({one['seconds']:.0f})" for one in found]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


def write_tables(measured: dict[str, Any]) -> None:
    """Write the tables between the markers of docs/results/memory.md."""
    page = DOCS / "memory.md"
    text = page.read_text(encoding="utf-8")
    tables = {"lengths": sweep_table, "usual": usual_table, "processes": processes_table}
    for name, table_of in tables.items():
        table = table_of(measured)
        print(table, end="\n\n")
        before, rest = text.split(f"<!-- {name} -->\n")
        text = f"{before}<!-- {name} -->\n{table}\n<!-- end -->{rest.partition('<!-- end -->')[2]}"
    page.write_text(text, encoding="utf-8")


def draw(measured: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.6, 4.6))
    for way in WAYS:
        line = peaks(measured, way)
        sizes = [size / MIB for size in line.values()]
        style = "--o" if way.bf16 else "-o"
        axes.plot(list(line), sizes, style, color=COLOURS[way], markersize=4, linewidth=1.8)
        label = f"{way.name}: {sizes[-1]:,.0f} MiB, $n^{{{exponent(line):.2f}}}$"
        end, up = (LENGTHS[-1], sizes[-1]), -6 if way.bf16 else 5  # avoid overlapping labels
        axes.annotate(label, end, (10, up), textcoords="offset points", va="center", color=COLOURS[way], fontsize=9)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(LENGTHS, [f"{n:,}" for n in LENGTHS])
    axes.set_yticks([10, 100, 1000], ["10", "100", "1,000"])
    axes.set_xlabel("n: tokens of the sentence, as many source as target")
    axes.set_ylabel("MiB, excluding weights and gradients")
    axes.set_title("Peak memory of a training step", loc="left", fontsize=11)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130, bbox_inches="tight")
    pyplot.close(figure)


def main(arguments: list[str]) -> None:
    data = DOCS / "memory.json"
    if arguments[:1] == ["one"]:
        asked = json.loads(arguments[1])
        one = (
            take(Process(**asked["process"]))
            if "process" in asked
            else measure(Way(**asked["way"]), Case(**asked["case"]))
        )
        print(json.dumps(one))
        return
    measured = json.loads(data.read_text(encoding="utf-8")) if arguments else facts()
    if not arguments:
        measured["steps"] = measure_steps()
    if arguments in ([], ["processes"]):
        measured["processes"] = measure_processes()
    data.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    write_tables(measured)
    draw(measured, DOCS / "images" / "memory.png")


if __name__ == "__main__":
    main(sys.argv[1:])
