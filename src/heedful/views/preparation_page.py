"""The page of `heedful prepare --report`: cleaning rules, examples, length histogram."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from heedful.atomic_files import write_durably
from heedful.formatting import plural
from heedful.text.cleaning import RULES
from heedful.views.page import facts_list, page

_STYLE = """
td:first-child, th:first-child, td.text, th:last-child { text-align: left }
.note { color: var(--soft); font-size: .85rem }
section { border-top: 1px solid var(--line); padding: .7rem 0 }
section h3 { font-size: 1rem; margin: 0; font-weight: 600 }
section dl { margin: .6rem 0 0 } svg { width: 100%; height: auto } svg text { fill: var(--soft); font-size: 11px }
.source { fill: var(--train) } .target { fill: var(--valid) } svg line { stroke: var(--line) }
"""
_BARS = 30
_WIDTH, _HEIGHT, _MARGIN = 720, 200, 20


def write_preparation_page(report: dict[str, Any], name: str, path: Path) -> None:
    read, kept = report["read"], report["kept"]
    dropped = {rule: found for rule, found in report["rules"].items() if found["count"]}
    body = [
        *facts_list(
            [
                ("corpus", name),
                ("pairs read", f"{read:,}"),
                ("pairs kept", f"{kept:,} ({kept / read:.1%})"),
                ("pairs dropped", f"{read - kept:,}"),
            ]
        ),
        "<h2>Cleaning rules</h2>",
        *_rules(report),
        '<p class="note">A pair counts for the first rule that drops it.</p>',
        "<h2>Lengths</h2>",
        *_histogram(report["lengths"]),
        "<h2>Examples</h2>",
        *(line for rule, found in dropped.items() for line in _examples(rule, found)),
        *([] if dropped else ["<p>No pair was dropped.</p>"]),
    ]
    write_durably(path, page("Prepared corpus", _STYLE, body).encode())


def _rules(report: dict[str, Any]) -> Iterator[str]:
    yield '<div class="scroll"><table><tr><th>rule</th><th>pairs</th><th>share</th><th>drops a pair if</th></tr>'
    for rule, meaning in RULES.items():
        count = report["rules"][rule]["count"]
        share = f"{count / report['read']:.2%}"
        yield f'<tr><td>{rule}</td><td>{count:,}</td><td>{share}</td><td class="text">{html.escape(meaning)}</td></tr>'
    yield "</table></div>"


def _examples(rule: str, found: dict[str, Any]) -> Iterator[str]:
    yield f"<section><h3>{rule}: {plural(found['count'], 'pair')}</h3>"
    for line, source, target in found["examples"]:
        yield from facts_list([("line", f"{line:,}"), ("source", source), ("target", target)])
    yield "</section>"


def _histogram(lengths: dict[str, list[int]]) -> Iterator[str]:
    """Yield the number of sentences per range of lengths, for both sides."""
    longest = max(map(len, lengths.values())) - 1
    width = -(-longest // _BARS)  # tokens per bar
    bars = {side: _binned(counts, width, -(-longest // width)) for side, counts in lengths.items()}
    highest = max(max(counts) for counts in bars.values())
    number = len(bars["source"])
    step = (_WIDTH - 2 * _MARGIN) / number
    base = _HEIGHT - _MARGIN
    yield f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="Histogram of sentence lengths in tokens">'
    for place, (side, counts) in enumerate(bars.items()):
        for index, count in enumerate(counts):
            height = (base - _MARGIN) * count / highest
            x = _MARGIN + index * step + place * 0.45 * step
            title = f"{side}, {index * width + 1} to {(index + 1) * width} tokens: {count:,}"
            yield (
                f'<rect class="{side}" x="{x:.1f}" y="{base - height:.1f}" width="{0.42 * step:.1f}" '
                f'height="{height:.1f}"><title>{title}</title></rect>'
            )
    yield f'<line x1="{_MARGIN}" y1="{base}" x2="{_WIDTH - _MARGIN}" y2="{base}"/>'
    for index in range(0, number, max(1, number // 6)):
        yield f'<text x="{_MARGIN + index * step:.1f}" y="{_HEIGHT - 5}">{index * width + 1}</text>'
    yield "</svg>"
    yield (
        '<p class="note">Sentences per length in tokens, with the end token: source in the lighter colour, target in '
        f"the stronger one. The highest bar has {plural(highest, 'sentence')}.</p>"
    )


def _binned(counts: Sequence[int], width: int, bars: int) -> list[int]:
    """Return the number of sentences of 1 to width tokens, width + 1 to 2 · width, and so on."""
    return [sum(counts[1 + index * width : 1 + (index + 1) * width]) for index in range(bars)]
