"""Fill docs/explanation/deviations.md from deviations.json, between `<!-- fill: NAME -->` and `<!-- end -->`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from deviation_variants import SEARCH, TRAINING, Variant

Results = dict[str, Any]

UNKNOWN = "not measured yet"
_PLACE = re.compile(r"(<!-- fill: ([\w-]+) -->)(.*?)(<!-- end -->)", re.DOTALL)
_CORPORA = {"builtin": "built-in corpus", "multi30k": "Multi30k"}


def filled(page: str, results: Results) -> str:
    """Return the page with every marked place filled from the results."""
    known = effects(results)
    return _PLACE.sub(lambda place: f"{place[1]}{known[place[2]]}{place[4]}", page)


def places(page: str) -> list[str]:
    return [place[2] for place in _PLACE.finditer(page)]


def effects(results: Results) -> dict[str, str]:
    """Return the content of each place by name."""
    return {
        **{variant.name: _of_training(results, variant) for variant in TRAINING},
        **{variant.name: _of_search(results, variant) for variant in SEARCH},
        **{name: _of_facts(results["facts"], name) for name in (*_WORDS, "left-out", "padding", "tokens")},
        "table": f"\n{table(results)}\n",
        "settings": _settings(results),
    }


def table(results: Results) -> str:
    """Return a Markdown table of all trained variants and search rules."""
    rows = [
        "| trained with | perplexity | BLEU | exact match, % |",
        "|---|---|---|---|",
        *(_row(v.what, results["training"].get(v.name, {}), ("perplexity", "bleu", "exact")) for v in TRAINING),
        "",
        "| searched with, on the weights of the first row | BLEU | exact match, % | same as heedful, % |",
        "|---|---|---|---|",
        *(_row(v.what, results["search"].get(v.name, {}), ("bleu", "exact", "same")) for v in SEARCH),
    ]
    return "\n".join(rows)


def _row(what: str, seeds: dict[str, dict[str, float]], names: Iterable[str]) -> str:
    return f"| {what} | " + " | ".join(_mean(seeds, name) for name in names) + " |"


def _mean(seeds: dict[str, dict[str, float]], name: str) -> str:
    """Return the mean over seeds, and half the range."""
    if not seeds:
        return UNKNOWN
    values = [figures[name] for figures in seeds.values()]
    mean = _number(sum(values) / len(values))
    return f"{mean} ± {_number((max(values) - min(values)) / 2)}" if len(values) > 1 else mean


def _number(value: float) -> str:
    return f"{value:.2f}" if value < 10_000 else f"{value:.1e}"


def _of_training(results: Results, variant: Variant) -> str:
    other, ours = (results["training"].get(name) for name in (variant.name, variant.against))
    if not other or not ours:
        return UNKNOWN
    figures = {"perplexity": "perplexity", "bleu": "BLEU"}
    return f"{variant.what}: " + ", ".join(
        f"{words} {_mean(other, name)} (heedful {_mean(ours, name)})" for name, words in figures.items()
    )


def _of_search(results: Results, variant: Variant) -> str:
    other, ours = (results["search"].get(name) for name in (variant.name, variant.against))
    if not other or not ours:
        return UNKNOWN
    same = f"{_mean(other, 'same')}% of the translations identical"
    return f"{variant.what}: BLEU {_mean(other, 'bleu')} (heedful {_mean(ours, 'bleu')}), {same}"


def _settings(results: Results) -> str:
    s, seeds = results["settings"], sorted({seed for seeds in results["training"].values() for seed in seeds}, key=int)
    drawn = f"seeds {', '.join(seeds)}" if seeds else "no seed yet"
    return (
        f"N = {s['N']}, d_model = {s['d_model']}, d_ff = {s['d_ff']}, h = {s['h']}, dropout {s['dropout']}, "
        f"vocabulary {s['vocab_size']:,}, {s['pairs']:,} pairs of the built-in corpus, {s['steps']:,} steps of at "
        f"most {s['batch_tokens']:,} tokens, warmup {s['warmup_steps']}, factor {s['learning_rate']} on Eq. 3; {drawn}"
    )


_WORDS = {  # templates of the computed facts
    "parameters": (
        "with all biases, vocabularies of {with[0]:,} to {with[1]:,} tokens reproduce every row of Table 3's column; "
        "without attention biases, {without[0]:,} to {without[1]:,} do: the column does not settle the question"
    ),
    "positions": (
        "a component differs from the formula by at most {rounded:.1e}; in float32 throughout, by {single:.1e}"
        " (256 positions, d_model 512)"
    ),
    "dropout-grain": "0.1 is {tenth:.6f}, 0.3 is {three_tenths:.6f}",
    "adam-epsilon": "as if it were {step_1:.1e} at step 1, {step_10:.1e} at step 10 and {step_100:.1e} at step 100",
    "smoothing": "the label's share is {whole:.7f} instead of {others} (37,000 tokens)",
    "averaging": (
        "ten minutes are {base[paper]:,} steps for base and {big[paper]:,} for big; `--preset base` averages "
        "{base[averaged]} checkpoints {base[heedful]:,} steps apart, `--preset big` {big[averaged]} checkpoints "
        "{big[heedful]:,} steps apart"
    ),
}


def _of_facts(facts: dict[str, Any], name: str) -> str:
    if name in _WORDS:
        return _WORDS[name].format(**facts[name]) if name in facts else UNKNOWN
    sentence = {"left-out": _left_out, "padding": _padding, "tokens": _tokens}[name]
    known = {words: facts[corpus] for corpus, words in _CORPORA.items() if corpus in facts}
    return "; ".join(f"{words}: {sentence(counted)}" for words, counted in known.items()) or UNKNOWN


def _left_out(counted: dict[str, Any]) -> str:
    return f"{counted['left_out']:,} of {counted['read']:,} pairs"


def _padding(counted: dict[str, Any]) -> str:
    return ", ".join(
        f"{found['share']:.1%} at {int(tokens):,} tokens ({found['batches']:,} batches)"
        for tokens, found in sorted(counted["padding"].items(), key=lambda item: int(item[0]))
    )


def _tokens(counted: dict[str, Any]) -> str:
    lengths = ", ".join(
        f"{name.replace(', 13a', ' on split words').replace('sentencepiece', 'SentencePiece')} {n:.2f}"
        for name, n in counted["tokens"].items()
    )
    return f"tokens per sentence with a vocabulary of {counted['vocab_size']:,}: {lengths}"
