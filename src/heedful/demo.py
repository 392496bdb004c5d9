"""`heedful demo`: the whole workflow on the built-in corpus in a few minutes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from heedful import grammar
from heedful.decoding.translator import Translator
from heedful.engines.load import load
from heedful.errors import UsageError
from heedful.evaluation.exact_match import ExactMatch, exact_match, exact_match_by_label
from heedful.evaluation.sacrebleu_scores import bleu, chrf
from heedful.formatting import plural, shell_command
from heedful.inspection.inspector import Inspector
from heedful.recipes import Settings
from heedful.storage.file_names import ATTENTION_FIGURE, ATTENTION_PAGE
from heedful.storage.run_directory import RunDirectory
from heedful.training.run import train_settings
from heedful.views.app_page import write_app_page
from heedful.views.attended_sentence import attended
from heedful.views.cross_attention_figure import draw_cross_attention, require_matplotlib

TEST_PAIRS = 1_000
SHOWN = 5

# Five minutes on two cores. `recipes/builtin.toml` trains for half an hour and is nearly perfect.
SETTINGS: Settings = {
    "data": {"builtin": True, "builtin_pairs": 60_000, "vocab_size": 1_500},
    "model": {"N": 2, "d_model": 128, "d_ff": 512, "h": 4, "dropout": 0.0},
    "training": {
        "steps": 1_100,
        "batch_tokens": 2_048,
        "warmup_steps": 110,
        "learning_rate": 0.45,
        "validate_every": 275,
        "save_every": 50,
        "average": 3,
        "patience": 0,
    },
}


def demo(out: Path, settings: Settings = SETTINGS, test_pairs: int = TEST_PAIRS) -> Iterator[str]:
    """Train in `out`, or resume, and yield the lines to print."""
    require_matplotlib()  # fail before training, not after
    _require_own_run(out)
    train_settings(settings, out)
    translator = load(out)
    test = list(grammar.pairs("test", test_pairs))
    print(f"translating {len(test):,} held-out sentences", file=sys.stderr)
    hypotheses = [result.text for result in translator.translate([pair.english for pair in test])]
    yield f"Scores on {plural(len(test), 'held-out sentence')} of the built-in corpus:"
    yield from report(hypotheses, test)
    yield from _examples(test[:SHOWN], hypotheses)
    yield from _pictures(translator, _for_picture(test), out)
    yield from _next_steps(out)


def _require_own_run(out: Path) -> None:
    """Raise UsageError if `out` holds a run on other text."""
    run = RunDirectory(out)
    if run.config.is_file() and not run.recipe().data.builtin:
        raise UsageError(f"{out} is a run that was trained on text files. Choose another `--out` for the demo.")


def report(hypotheses: list[str], pairs: list[grammar.SentencePair]) -> Iterator[str]:
    """Yield BLEU, chrF and exact match, overall and by phenomenon."""
    references = [pair.german for pair in pairs]
    yield str(bleu(hypotheses, references))
    yield str(chrf(hypotheses, references))
    yield f"exact match {exact_match(hypotheses, references)}"
    yield from _table(exact_match_by_label(hypotheses, references, [pair.phenomena for pair in pairs]))


def _table(by_phenomenon: dict[str, ExactMatch]) -> Iterator[str]:
    yield ""
    yield "exact match by phenomenon"
    for name, match in by_phenomenon.items():
        yield f"  {name:24} {match.accuracy:6.1%}  {match.correct:4} of {match.total}"


def _examples(pairs: list[grammar.SentencePair], hypotheses: list[str]) -> Iterator[str]:
    for pair, hypothesis in zip(pairs, hypotheses, strict=False):
        yield ""
        yield f"  English  {pair.english}"
        yield f"  heedful  {hypothesis}"
        yield f"  correct  {pair.german}"


def _for_picture(pairs: list[grammar.SentencePair]) -> str:
    """Return a sentence of medium length whose verb moves to the end in German."""
    fitting = (p for p in pairs if "verb-final" in p.phenomena and 9 <= len(p.english.split()) <= 12)
    return next(fitting, pairs[0]).english


def _pictures(translator: Translator, text: str, out: Path) -> Iterator[str]:
    inspector = Inspector(translator)
    sentences = attended(inspector, text, sentence=1)[:1]
    attention = sentences[0].attention
    assert attention is not None  # requested above
    picture, page = out / ATTENTION_FIGURE, out / ATTENTION_PAGE
    draw_cross_attention(attention, picture)
    write_app_page(inspector, sentences, page)
    yield ""
    yield f"Cross-attention of one translation: {picture}"
    yield f"Attention of every head in every layer, as a web page: {page}"


def _next_steps(out: Path) -> Iterator[str]:
    yield ""
    yield "Next:"
    yield f'  echo "The old man is looking for his red hat." | {shell_command("translate", out)}'
    yield f'  {shell_command("attend", out)} "The old man is looking for his red hat." --out page.html'
    yield f"  {shell_command('info', out)}"
    yield f"  {shell_command('train')} --source FILE --target FILE --out runs/mine"
