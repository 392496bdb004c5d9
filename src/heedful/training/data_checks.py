"""Check the training text: identify its languages, and warn of likely mistakes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from heedful import recipes
from heedful.config import DataConfig
from heedful.recipes import Settings
from heedful.text.corpus import Pair, ParallelText
from heedful.text.corpus_checks import PairCounter, reversed_validation, same_sides, sample, thinned
from heedful.text.languages import (
    Languages,
    contradicting_language,
    disagrees,
    from_names,
    identify,
    language_name,
    require_code,
)

PrintStatus = Callable[[str], None]

_KEYS = ("source_language", "target_language")
_HOW = "set data.source_language and data.target_language to change them"


def with_checked_codes(settings: Settings) -> Settings:
    """Return the settings with normalised language codes; raise UsageError if one is invalid."""
    given = settings.get("data", {})
    checked = {key: require_code(given[key], f"data.{key}") for key in _KEYS if given.get(key)}
    return recipes.merged(settings, {"data": checked}) if checked else settings


def check_text(settings: Settings, train: ParallelText, valid: ParallelText, print_status: PrintStatus) -> Settings:
    """Return the settings with their languages; warn of mistakes in the first lines of text."""
    training, validation = sample(train.pairs()), sample(valid.pairs())
    few = thinned(training)
    texts = [pair.source for pair in few], [pair.target for pair in few]
    found = [identify(text) for text in texts]
    settings = _with_languages(settings, found, print_status)
    for key, code in zip(_KEYS, found, strict=True):
        stated = settings.get("data", {}).get(key, "")
        if stated and code and disagrees(stated, code):
            print_status(f"warning: {_disagreement(key, stated, code)}")
    reverse = reversed_validation(few, thinned(validation))
    others = [] if reverse else _other_languages(settings, found, thinned(validation))
    for warning in (same_sides(training, "training"), reverse, *others):
        if warning:
            print_status(f"warning: {warning}")
    return settings


def _other_languages(settings: Settings, found: Sequence[str | None], validation: Sequence[Pair]) -> Iterator[str]:
    """Yield a warning for each side whose validation and training text differ in language."""
    for key, trained, lines in zip(_KEYS, found, zip(*validation, strict=True), strict=True):
        side = key.removesuffix("_language")
        expected = trained or settings.get("data", {}).get(key, "")
        if code := contradicting_language(expected, lines):
            yield (
                f"The validation {side} text looks like {language_name(code)} ({code}), but the training {side} text "
                f"is {language_name(expected)} ({expected}). Check data.valid_{side}."
            )


def counted_pairs(valid: ParallelText) -> PairCounter:
    """Return a counter that checks the training text while it is tokenized."""
    return PairCounter(valid.pairs())


def _with_languages(settings: Settings, found: Sequence[str | None], print_status: PrintStatus) -> Settings:
    """Detect languages that are not set, from the file names or, if clear, from the text."""
    data = DataConfig(**settings.get("data", {}))
    given = Languages(data.source_language, data.target_language)
    if all(given):
        return settings
    assumed = from_names(data.source, data.target)
    names = [Path(files[0]).name for files in (data.source, data.target) if files]
    origin = f"from the file name{'s' * (len(names) > 1)} {' and '.join(names)}"
    if assumed is None:
        assumed, origin = Languages(found[0] or "", found[1] or ""), "identified from the text"
    languages = Languages(given.source or assumed.source, given.target or assumed.target)
    if not all(languages) or languages.source == languages.target:
        print_status(f"Languages: unknown. The model calls them source and target; {_HOW}.")
        return settings
    source, target = (f"{language_name(code)} ({code})" for code in languages)
    print_status(f"Languages: {source} → {target}, {origin}; {_HOW}.")
    return recipes.merged(settings, {"data": dict(zip(_KEYS, languages, strict=True))})


def _disagreement(key: str, stated: str, found: str) -> str:
    side = key.removesuffix("_language")
    return (
        f"The {side} language is {language_name(stated)} ({stated}), but the {side} text looks like "
        f"{language_name(found)} ({found}). Check that `--source` and `--target` are not swapped, or set data.{key}."
    )
