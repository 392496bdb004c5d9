"""Decoding speed compared with peers: one trained model, the same source ids, threads and limits, in turns.

python benchmarks/decoding_speed.py --model RUN --data-root DIR [--rounds 7] [--threads 2] [--quick]

Without --model it first trains a small one on the built-in corpus. With --data-root the text is Multi30k's test set
(the model should be for that pair), otherwise that of the built-in corpus. Each contender
(benchmarks/decoding_peers.py) is its own process and waits while another has its turn. All end by their own search,
none at a fixed length. Writes docs/results/performance-decoding.json: tables for benchmarks/performance_page.py.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import processor
from benchmark_tables import DOCS, Table, measured, write
from decoding_peers import (
    AUTO_BATCHES,
    AUTO_SINGLE,
    CONTENDERS,
    CT2,
    CT2_INT8,
    HEEDFUL,
    HEEDFUL_BF16,
    HEEDFUL_INT8,
    HF,
    TOGETHER,
    NotOffered,
    Search,
    Sentences,
    Text,
    read_text,
    small_model,
)

OUT = DOCS / "performance-decoding.json"
PAUSE = 0.3  # seconds before a turn, until the previous toolkit's threads have stopped spinning


@dataclass(frozen=True)
class Mode:
    title: str
    search: Search
    together: int


MODES = (
    Mode("beam 4, in batches", Search(4, 0.6), TOGETHER),
    Mode("greedy, in batches", Search(1, 0.6), TOGETHER),
    Mode("beam 4 without length penalty, in batches", Search(4, 0.0), TOGETHER),
    Mode("beam 4, one sentence at a time", Search(4, 0.6), 1),
    Mode("greedy, one sentence at a time", Search(1, 0.6), 1),
)
BATCHES = tuple(mode.title for mode in MODES if mode.together > 1)
SINGLE = tuple(mode.title for mode in MODES if mode.together == 1)
BEST = (CT2, CT2_INT8)  # CTranslate2's best compute type: the faster one of a mode counts


class Goal(NamedTuple):
    ours: str
    theirs: tuple[str, ...]  # the fastest of these
    modes: tuple[str, ...]
    ratio: float


GOALS = (
    Goal(HEEDFUL, BEST, tuple(title for title in BATCHES if "greedy" not in title), 1.0),
    Goal(HEEDFUL, BEST, tuple(title for title in BATCHES if "greedy" in title), 1.1),
    Goal(HEEDFUL, BEST, SINGLE, 0.6),
    Goal(HEEDFUL_BF16, BEST, BATCHES, 1.0),
    Goal(HEEDFUL_INT8, BEST, BATCHES, 1.0),
    Goal(AUTO_BATCHES, BEST, BATCHES, 0.98),
    Goal(AUTO_SINGLE, BEST, SINGLE, 0.98),
    Goal(HEEDFUL, (HF,), BATCHES + SINGLE, 3.0),
)


@dataclass
class Result:
    """The measurements of one toolkit in one mode."""

    seconds: list[float] = field(default_factory=list)  # per round, for the timed sentences
    tokens: int = 0  # generated per round, end symbols included
    sentences: int = 0
    said: Sentences = field(default_factory=list)  # of the whole text

    @property
    def speeds(self) -> list[float]:
        """Return tokens per second, one value per round."""
        return [self.tokens / seconds for seconds in self.seconds]


class Contender:
    """A process that decodes on request."""

    def __init__(self, name: str, model: Path, threads: int) -> None:
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, __file__, "worker", name, model, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": str(threads)},
        )

    def left_out(self) -> str:
        """Return why this contender cannot take part; empty once it is ready."""
        return str(self._answer().get("left_out", ""))

    def decode(self, batches: list[Sentences], search: Search) -> tuple[float, Sentences]:
        """Return the seconds and the translations."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"batches": batches, "search": search}) + "\n")
        self.process.stdin.flush()
        answer = self._answer()
        return answer["seconds"], answer["said"]

    def stop(self) -> None:
        self.process.communicate()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} has ended (exit code {self.process.wait()}).")
        answer: dict[str, Any] = json.loads(line)
        return answer


def work(name: str, model: str, threads: str, lines: TextIO, answers: TextIO) -> None:
    """Run a contender's process: report whether it can take part, then answer each line of batches."""
    try:
        decode = CONTENDERS[name](Path(model), int(threads))
    except (NotOffered, ImportError) as reason:
        print(json.dumps({"left_out": str(reason)}), file=answers, flush=True)
        return
    print(json.dumps({}), file=answers, flush=True)
    for line in lines:
        asked = json.loads(line)
        search = Search(*asked["search"])
        begin = time.perf_counter()
        said = [sentence for batch in asked["batches"] for sentence in decode(batch, search)]
        seconds = time.perf_counter() - begin
        print(json.dumps({"seconds": seconds, "said": said}), file=answers, flush=True)


def started(model: Path, threads: int, stack: ExitStack) -> list[Contender]:
    """Start all contenders, and return those that can take part; name the others with the reason."""
    every = [Contender(name, model, threads) for name in CONTENDERS]
    contenders = []
    for contender in every:
        stack.callback(contender.stop)
        if reason := contender.left_out():
            print(f"left out: {contender.name} ({reason})", file=sys.stderr, flush=True)
        else:
            contenders.append(contender)
    return contenders


def batches(sources: Sentences, together: int) -> list[Sentences]:
    return [sources[start : start + together] for start in range(0, len(sources), together)]


def timed(sources: Sentences, mode: Mode, most: int) -> list[Sentences]:
    """Return at most `most` batches, spread evenly over sentence lengths; toolkits batch the text themselves."""
    every = batches(sources, mode.together)
    count = min(most, len(every))
    chosen = [every[(2 * place + 1) * len(every) // (2 * count)] for place in range(count)]
    return [[source for batch in chosen for source in batch]] if mode.together > 1 else chosen


def compare(contenders: list[Contender], mode: Mode, text: Text, rounds: int, most: int) -> dict[str, Result]:
    """Decode the whole text once, for the translations and as warm-up, then take turns on the timed batches."""
    chosen = timed(text.sources, mode, most if mode.together > 1 else 8 * most)
    results = {contender.name: Result() for contender in contenders}
    for contender in contenders:
        # One at a time gives the same translations up to rounding, so it need not decode the whole text.
        if mode.together > 1:
            results[contender.name].said = contender.decode([text.sources], mode.search)[1]
        contender.decode(chosen[:1], mode.search)
    for number in range(rounds):
        turn = number % len(contenders)
        for contender in contenders[turn:] + contenders[:turn]:
            time.sleep(PAUSE)
            seconds, said = contender.decode(chosen, mode.search)
            result = results[contender.name]
            result.seconds.append(seconds)
            result.tokens, result.sentences = sum(len(sentence) + 1 for sentence in said), len(said)
        print(f"{mode.title}: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return results


def same(one: Sentences, other: Sentences) -> float:
    """Return the share of sentences with identical tokens."""
    return sum(map(list.__eq__, one, other)) / len(other)


def ratio(ours: Result, theirs: Result) -> float:
    """Return how many times as fast ours is: the median over rounds."""
    return statistics.median(a / b for a, b in zip(ours.speeds, theirs.speeds, strict=True))


def mode_table(mode: Mode, results: dict[str, Result], bleu: dict[str, float], facts: dict[str, Any]) -> Table:
    rows = []
    for name, result in sorted(results.items(), key=lambda item: -statistics.median(item[1].speeds)):
        middle = statistics.median(result.seconds)
        rows.append(
            [
                name,
                f"{statistics.median(result.speeds):,.0f}",
                f"{min(result.speeds):,.0f} to {max(result.speeds):,.0f}",
                f"{result.sentences / middle:,.1f}",
                f"{1_000 * middle / result.sentences:,.1f}",
                f"{ratio(results[HEEDFUL], result):.2f}",
                *([f"{bleu[name]:.2f}", f"{same(result.said, results[HEEDFUL].said):.1%}"] if result.said else []),
            ]
        )
    columns = ["", "tokens/s", "range", "sentences/s", "ms per sentence", "heedful's speedup"]
    columns += ["BLEU", f"same as {HEEDFUL}"] if mode.together > 1 else []
    first = next(iter(results.values()))
    notes = [f"{first.sentences:,} sentences per round, {len(first.seconds)} rounds; medians over rounds."]
    return {"title": f"Decoding: {mode.title}", "measured": facts, "columns": columns, "rows": rows, "notes": notes}


def goals_table(results: dict[str, dict[str, Result]], facts: dict[str, Any]) -> Table:
    rows = []
    for goal in GOALS:
        for title in goal.modes:
            found = results.get(title, {})
            there = [name for name in goal.theirs if name in found]
            if goal.ours in found and there:
                theirs = max(there, key=lambda name: statistics.median(found[name].speeds))
                reached = ratio(found[goal.ours], found[theirs])
                met = "yes" if reached >= goal.ratio else "no"
                rows.append([f"{goal.ours} : {theirs}", title, f"{reached:.2f}", f"{goal.ratio:g}", met])
    return {
        "title": "Decoding: goals",
        "measured": facts,
        "columns": ["tokens per second of", "how", "ratio", "goal", "reached"],
        "rows": rows,
        "notes": [
            "A ratio is the median of the rounds' ratios.",
            "Tokens are those of the best hypothesis with its end token; padding and other hypotheses do not count.",
            "Every contender gets the same token ids and uses its own stopping rule. With a length penalty "
            "CTranslate2 continues until 4 hypotheses have ended, heedful until no other can win, "
            "or 4 have ended and no live one is ahead.",
            "The length penalty is ((5 + |Y|) / 6)^0.6 in heedful and |Y|^0.6 in the others; without one, all rank "
            "hypotheses equally.",
            "heedful keeps freed memory for the next step, as `heedful translate` does.",
            f"In batches, all get the whole text at once: CTranslate2 splits it into batches of {TOGETHER}, Marian is "
            f"given {TOGETHER} at a time, heedful fills its token budget and refills it as sentences end.",
        ],
    }


def versions(*packages: str) -> dict[str, str]:
    """Return the versions of the installed packages."""
    found = {}
    for name in packages:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def measure(model: Path, text: Text, translator: Any, options: argparse.Namespace) -> Iterator[Table]:
    from heedful.evaluation.sacrebleu_scores import bleu

    packages = ("torch", "ctranslate2", "transformers", "sentencepiece")
    shape = translator.model.transformer.config
    described = f"{text.name}; N {shape.N}, d_model {shape.d_model}, d_ff {shape.d_ff}, V {shape.vocab_size:,}"
    facts = {**measured(options.threads, described, versions(*packages)), "processor": processor.described()}
    print(facts["processor"], file=sys.stderr, flush=True)
    decode = translator.model.tokenizer.decode
    found: dict[str, dict[str, Result]] = {}
    with ExitStack() as stack:
        contenders = started(model, options.threads, stack)
        for mode in MODES:
            left_out = AUTO_SINGLE if mode.together > 1 else AUTO_BATCHES  # auto depends on the use
            taking_part = [contender for contender in contenders if contender.name != left_out]
            results = compare(taking_part, mode, text, options.rounds, options.batches)
            scores = {
                name: bleu([decode(ids) for ids in result.said], text.references).value
                for name, result in results.items()
                if result.said
            }
            found[mode.title] = results
            yield mode_table(mode, results, scores, facts)
    yield goals_table(found, facts)


def main() -> None:
    if sys.argv[1:2] == ["worker"]:
        name, path, threads = sys.argv[2:]
        work(name, path, threads, sys.stdin, sys.stdout)
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, help="model or run directory (default: train a small model)")
    parser.add_argument("--data-root", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--sentences", type=int, default=1_000)
    parser.add_argument(
        "--batches", type=int, default=4, help="batches timed per round; eight times as many single sentences"
    )
    parser.add_argument("--quick", action="store_true", help="smoke test; the results are meaningless")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.sentences, options.batches = 2, TOGETHER // 2, 1
    import heedful

    with tempfile.TemporaryDirectory() as directory:
        model = options.model or small_model(Path(directory), options.quick)
        translator = heedful.load(model, device="cpu")
        text = read_text(translator, options.data_root if options.model else None, options.sentences)
        tables = list(measure(model, text, translator, options))
        processor.require_one_processor(tables)
        write(tables, options.out)


if __name__ == "__main__":
    main()
