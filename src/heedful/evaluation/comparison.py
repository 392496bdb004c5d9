"""`heedful.compare`: two models, or two files of translations, on one test set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import sacrebleu

from heedful.decoding.translator import Translator
from heedful.devices import pick_device
from heedful.errors import InputError, ModelError, UsageError
from heedful.evaluation.sacrebleu_scores import bleu, chrf, require_detokenized
from heedful.evaluation.significance import PairedScore, paired_scores
from heedful.formatting import plural
from heedful.storage.run_directory import open_model
from heedful.text.corpus import read_sides
from heedful.text.text_files import one_line, read_lines

MOST_DIFFERENT = 10  # sentences shown
_LONGEST = (5, 10, 15, 20, 30, 40, 50)  # reference words: upper ends of the length buckets, before the open one


@dataclass(frozen=True)
class LengthBucket:
    """Scores of sentences whose reference has `shortest` to `longest` words (None: no limit)."""

    shortest: int
    longest: int | None
    sentences: int
    bleu_a: float
    bleu_b: float
    chrf_a: float
    chrf_b: float

    @property
    def words(self) -> str:
        """The range of lengths, such as "up to 5", "6–10" or "51 or more"."""
        if self.longest is None:
            return f"{self.shortest} or more"
        return f"{self.shortest}–{self.longest}" if self.shortest else f"up to {self.longest}"


@dataclass(frozen=True)
class SentencePair:
    """One line of the test set with both translations and their sentence chrF."""

    line: int  # counted from 1
    source: str | None  # None: no source text was given
    reference: str
    a: str
    b: str
    chrf_a: float
    chrf_b: float

    @property
    def difference(self) -> float:
        """The chrF of B minus the chrF of A."""
        return self.chrf_b - self.chrf_a


@dataclass(frozen=True)
class Comparison:
    """The result of `heedful.compare`.

    Corpus scores with tests, scores by length, and the sentences that differ most.
    """

    a: str  # name of system A
    b: str  # name of system B
    sentences: int
    a_better: int  # sentences in which A has the higher chrF
    b_better: int  # sentences in which B has the higher chrF
    scores: tuple[PairedScore, ...]  # BLEU and chrF
    by_length: tuple[LengthBucket, ...]  # buckets with at least one sentence
    most_different: tuple[SentencePair, ...]  # largest difference in chrF first


def compare(
    a: str | Path,
    b: str | Path,
    *,
    reference: str | Path,
    source: str | Path | None = None,
    tokenize: str = "13a",
    lowercase: bool = False,
    device: str = "auto",
    report: Callable[[str], None] = lambda _: None,
) -> Comparison:
    """Compare two systems on one test set.

    Each of `a` and `b` is a MODEL or RUN directory, which translates `source`, or a file of translations, one per
    line of `reference`. With two files `source` is optional. `report` is called with a message before each long part.
    The tests use the seed 12345; set SACREBLEU_SEED to change it.
    """
    systems = [Path(a), Path(b)]
    _require_systems(systems, source)
    sources, references = _test_set(source, Path(reference))
    require_detokenized(references)
    # Files first: a wrong number of lines is reported before a model translates for minutes.
    outputs = {path: _lines_of(path, len(references)) for path in systems if not path.is_dir()}
    for path in systems:
        if path not in outputs:
            report(f"translating {plural(len(references), 'line')} with {path}")
            outputs[path] = _translate(path, sources or (), device)
    report("running significance tests")
    return compare_translations(
        outputs[systems[0]], outputs[systems[1]], references, sources, (str(a), str(b)), tokenize, lowercase
    )


def compare_translations(
    a: Sequence[str],
    b: Sequence[str],
    references: Sequence[str],
    sources: Sequence[str] | None = None,
    names: tuple[str, str] = ("A", "B"),
    tokenize: str = "13a",
    lowercase: bool = False,
) -> Comparison:
    """Compare two lists of translations with their references, line by line."""
    pairs = list(_sentence_pairs(a, b, references, sources, lowercase))
    return Comparison(
        *names,
        sentences=len(pairs),
        a_better=sum(pair.difference < 0 for pair in pairs),
        b_better=sum(pair.difference > 0 for pair in pairs),
        scores=paired_scores(a, b, references, tokenize, lowercase),
        by_length=tuple(_by_length(pairs, tokenize, lowercase)),
        most_different=_most_different(pairs),
    )


def _require_systems(systems: Sequence[Path], source: str | Path | None) -> None:
    for path in systems:
        if not path.exists():
            raise ModelError(
                f"{path} does not exist. Pass a model or run directory, or a file with one translation per line."
            )
    models = [path for path in systems if path.is_dir()]
    if models and source is None:
        raise UsageError(
            f"{models[0]} is a directory, and a model needs source text to translate. Pass it with `--source`."
        )


def _test_set(source: str | Path | None, reference: Path) -> tuple[list[str] | None, list[str]]:
    if source is None:
        references = list(read_lines(reference))
        if not references:
            raise InputError(f"{reference} is empty. Provide at least one reference.")
        return None, references
    pairs = list(read_sides(Path(source), reference))
    return [pair.source for pair in pairs], [pair.target for pair in pairs]


def _lines_of(path: Path, count: int) -> list[str]:
    lines = list(read_lines(path))
    if len(lines) != count:
        raise InputError(
            f"{path} has {plural(len(lines), 'line')}, but there {'is' if count == 1 else 'are'} "
            f"{plural(count, 'reference')}. Line n must be the translation of source line n."
        )
    return lines


def _translate(model: Path, sources: Sequence[str], device: str) -> list[str]:
    translator = Translator(open_model(model, device=pick_device(device)))
    return [one_line(result.text) for result in translator.translate(list(sources))]


def _sentence_pairs(
    a: Sequence[str], b: Sequence[str], references: Sequence[str], sources: Sequence[str] | None, lowercase: bool
) -> Iterator[SentencePair]:
    metric = sacrebleu.CHRF(lowercase=lowercase)
    given: Sequence[str | None] = [None] * len(references) if sources is None else sources
    lines = zip(given, references, a, b, strict=True)
    for number, (source, reference, first, second) in enumerate(lines, start=1):
        scores = (metric.sentence_score(text, [reference]).score for text in (first, second))
        yield SentencePair(number, source, reference, first, second, *scores)


def _most_different(pairs: Sequence[SentencePair]) -> tuple[SentencePair, ...]:
    found = sorted((pair for pair in pairs if pair.difference), key=lambda pair: -abs(pair.difference))
    return tuple(found[:MOST_DIFFERENT])


def _by_length(pairs: Sequence[SentencePair], tokenize: str, lowercase: bool) -> Iterator[LengthBucket]:
    shortest = 0
    for longest in (*_LONGEST, None):
        chosen = [pair for pair in pairs if _within(len(pair.reference.split()), shortest, longest)]
        if chosen:
            references = [pair.reference for pair in chosen]
            outputs = [pair.a for pair in chosen], [pair.b for pair in chosen]
            yield LengthBucket(
                shortest,
                longest,
                len(chosen),
                *(bleu(one, references, tokenize, lowercase).value for one in outputs),
                *(chrf(one, references, lowercase).value for one in outputs),
            )
        shortest = (longest or 0) + 1


def _within(length: int, shortest: int, longest: int | None) -> bool:
    return shortest <= length and (longest is None or length <= longest)
