"""`heedful evaluate`: translate and score, or with --trees, parse and score."""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path

from heedful.cli.translate import output, translated
from heedful.engines.load import load
from heedful.errors import UsageError
from heedful.evaluation.sacrebleu_scores import bleu, chrf, require_detokenized
from heedful.parsing.bracket_scores import (
    SCORING_RULES,
    SHORT_SENTENCE_WORDS,
    ParsingScores,
    require_same_words,
    score_outputs,
)
from heedful.parsing.linearization import delinearize
from heedful.parsing.trees import Tree, read_trees, to_bracketed
from heedful.storage.model_directory import TextFacts
from heedful.text.corpus import read_sides
from heedful.text.languages import contradicting_language, language_name
from heedful.text.text_files import read_lines

log = logging.getLogger("heedful")


def evaluate(arguments: argparse.Namespace) -> None:
    if arguments.trees:
        evaluate_trees(arguments)
        return
    pairs = list(read_sides(Path(arguments.source), Path(arguments.reference)))
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    require_detokenized(references)
    hypotheses = _outputs(arguments, sources, lambda lines: lines, references=references)
    scores = (
        bleu(hypotheses, references, arguments.tokenize, arguments.lowercase),
        chrf(hypotheses, references, arguments.lowercase),
    )
    if arguments.json:
        content = {score.name: asdict(score) for score in scores}
        print(json.dumps({"sentences": len(pairs), **content}, indent=1))
    else:
        for score in scores:
            print(score)


def evaluate_trees(arguments: argparse.Namespace) -> None:
    if arguments.lowercase or arguments.tokenize != "13a":
        raise UsageError("`--tokenize` and `--lowercase` apply only to translations. Omit them with `--trees`.")
    sentences = list(read_lines(Path(arguments.source)))
    gold = list(read_trees(Path(arguments.reference)))
    require_same_words(gold, sentences)
    outputs = _outputs(arguments, sentences, lambda lines: _as_trees(gold, lines), split=False)  # one tree per line
    scores = score_outputs(gold, outputs)
    print(json.dumps(_content(scores), indent=1) if arguments.json else scores)


def _outputs(
    arguments: argparse.Namespace,
    sources: Sequence[str],
    written: Callable[[list[str]], Sequence[str]],
    split: bool = True,
    references: Sequence[str] = (),
) -> list[str]:
    """Return the model's output for each line. Write `written(output)` to --output, if given."""
    translator = load(
        arguments.model, checkpoint=arguments.checkpoint, device=arguments.device, precision=arguments.precision
    )
    if references:
        _warn_of_languages(translator.model.text, sources, references)
    # Opened before translating, so that an unwritable path fails at once.
    with (
        output(arguments.output, arguments.source, arguments.reference)
        if arguments.output is not None
        else nullcontext() as stream
    ):
        results = translated(translator, iter(sources), beam=arguments.beam, alpha=arguments.alpha, split=split)
        generated = [result.text for _, _, result in results]
        if stream is not None:
            stream.writelines(f"{line}\n" for line in written(generated))
    return generated


def _warn_of_languages(text: TextFacts, sources: Sequence[str], references: Sequence[str]) -> None:
    """Warn if a file is not in the model's language, because its score would be meaningless."""
    for option, stated, lines in (
        ("`--source`", text.source_language, sources),
        ("`--reference`", text.target_language, references),
    ):
        if found := contradicting_language(stated, lines):
            log.warning(
                "%s looks like %s (%s), but the model translates from %s to %s. Check the file.",
                option,
                language_name(found),
                found,
                language_name(text.source_language),
                language_name(text.target_language),
            )


def _as_trees(gold: Sequence[Tree], outputs: Sequence[str]) -> list[str]:
    """Return repaired, bracketed trees with the gold words and tags, as evalb needs them."""
    return [
        to_bracketed(replace(tree, brackets=delinearize(generated, len(tree.words))))
        for tree, generated in zip(gold, outputs, strict=True)
    ]


def _content(scores: ParsingScores) -> dict[str, object]:
    kinds = {"all": scores.all, f"up_to_{SHORT_SENTENCE_WORDS}_words": scores.short}
    derived = ("f1", "precision", "recall", "complete_match", "average_crossing")
    return {
        "sentences": scores.all.sentences,
        "rules": SCORING_RULES,
        "well_formed": scores.well_formed_share,
        **{name: {key: getattr(kind, key) for key in derived} | asdict(kind) for name, kind in kinds.items()},
    }
