"""The page of `heedful compare`, and the rows that it shares with the text on a terminal."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

from heedful.atomic_files import write_durably
from heedful.evaluation.comparison import Comparison, LengthBucket, SentencePair
from heedful.evaluation.significance import PairedScore, SystemScore
from heedful.formatting import plural
from heedful.views.page import facts_list, page

SCORE_HEAD = ("", "A", "B", "B − A", "p, bootstrap", "p, randomization")
BUCKET_HEAD = ("words", "sentences", "BLEU A", "BLEU B", "B − A", "chrF A", "chrF B", "B − A")

_STYLE = """
th:first-child, td:first-child { text-align: left } td, th { white-space: nowrap }
p { margin: .3rem 0 } .note { color: var(--soft); font-size: .85rem }
section { border-top: 1px solid var(--line); padding: .7rem 0 } section h3 { font-size: 1rem; margin: 0 0 .3rem;
       font-weight: 600 }
"""


def score_row(score: PairedScore) -> list[str]:
    """Return the cells of a metric; for equal scores, the tests are meaningless."""
    tests = (score.bootstrap_p, score.randomization_p)
    p_values = [f"{p:.4f}" if score.difference else "–" for p in tests]
    return [score.name, _with_interval(score.a), _with_interval(score.b), f"{score.difference:+.2f}", *p_values]


def bucket_row(bucket: LengthBucket) -> list[str]:
    """Return the cells of a length bucket."""
    cells = [bucket.words, f"{bucket.sentences:,}"]
    for a, b in ((bucket.bleu_a, bucket.bleu_b), (bucket.chrf_a, bucket.chrf_b)):
        cells += [f"{a:.2f}", f"{b:.2f}", f"{b - a:+.2f}"]
    return cells


def sentence_count(found: Comparison) -> str:
    """Return how many sentences each system translates better."""
    equal = found.sentences - found.a_better - found.b_better
    return (
        f"{plural(found.sentences, 'sentence')}: A has the higher chrF in {found.a_better:,}, "
        f"B in {found.b_better:,}; {equal:,} equal."
    )


def write_comparison_page(found: Comparison, path: Path) -> None:
    body = [
        *facts_list([("A", found.a), ("B", found.b)]),
        "<h2>Scores</h2>",
        *_table(SCORE_HEAD, [score_row(score) for score in found.scores]),
        *(_paragraph(text) for text in (*(score.verdict for score in found.scores), sentence_count(found))),
        '<p class="note">± is half the width of the 95% confidence interval from 1,000 bootstrap resamples.</p>',
        "<h2>By length of the reference</h2>",
        *_table(BUCKET_HEAD, [bucket_row(bucket) for bucket in found.by_length]),
        "<h2>Sentences that differ most, by chrF</h2>",
        *(line for pair in found.most_different for line in _sentence(pair)),
        *([] if found.most_different else [_paragraph("Every sentence has the same chrF.")]),
        "<h2>Signatures</h2>",
        *facts_list([(score.name, text) for score in found.scores for text in _signatures(score)]),
    ]
    write_durably(path, page("Comparison of two translation systems", _STYLE, body).encode())


def _with_interval(score: SystemScore) -> str:
    return f"{score.value:.2f} ± {score.interval:.2f}"


def _signatures(score: PairedScore) -> tuple[str, str]:
    return score.bootstrap_signature, score.randomization_signature


def _paragraph(text: str) -> str:
    return f"<p>{html.escape(text)}</p>"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [f"<tr>{''.join(f'<th>{html.escape(cell)}</th>' for cell in head)}</tr>"]
    lines += [f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows]
    return ['<div class="scroll"><table>', *lines, "</table></div>"]


def _sentence(pair: SentencePair) -> list[str]:
    source = [] if pair.source is None else [("source", pair.source)]
    texts = [*source, ("reference", pair.reference), (f"A {pair.chrf_a:.1f}", pair.a), (f"B {pair.chrf_b:.1f}", pair.b)]
    return [f"<section><h3>Line {pair.line:,}: {pair.difference:+.1f} chrF</h3>", *facts_list(texts), "</section>"]
