"""Prepare a run for training: start a new one, or check that an existing one can resume.

Starting reads the text, learns a tokenizer, tokenizes, chooses the settings that were not given and writes config.toml.
Resuming requires the same text, tokenizer and settings; only a few keys may change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import torch

from heedful import recipes
from heedful.atomic_files import write_durably
from heedful.config import DataConfig, Recipe
from heedful.data.store import Store, write_store
from heedful.devices import cores
from heedful.errors import CheckpointError, ConfigError, CorpusError, VocabularyTooSmallError
from heedful.formatting import plural
from heedful.recipes import Settings
from heedful.storage.file_names import TRAINING, VALIDATION
from heedful.storage.model_directory import Model
from heedful.storage.prepared_directory import PreparedDirectory, prepared_text
from heedful.storage.run_directory import RunDirectory, open_model
from heedful.storage.tokenizer_files import read_tokenizer, tokenizer_digest, write_tokenizer
from heedful.storage.verified_stores import record_verified, require_undamaged_stores
from heedful.text.builtin_corpus import VALIDATION_PAIRS, BuiltinCorpus
from heedful.text.corpus import Corpus, ParallelText, clean
from heedful.text.corpus_checks import PairCounter
from heedful.text.held_out import HeldOut, Remaining
from heedful.text.tokenizer import SAMPLE, Tokenizer, learn
from heedful.training import autoconfig, data_checks, prepared_corpus, time_budget
from heedful.training.autoconfig import Choice, CorpusSize
from heedful.training.run_plan import Speed, Trial

MAY_CHANGE = ("steps", "patience", "keep", "validate_every", "log_every", "shard")

PrintStatus = Callable[[str], None]


@dataclass(frozen=True)
class Prepared:
    """Everything that training needs."""

    recipe: Recipe
    tokenizer: Tokenizer
    train: Store
    valid: Store
    valid_corpus: ParallelText
    choices: tuple[Choice, ...] = ()  # of a new run: the settings that were not given
    initial_model: Model | None = None  # of a new run with --init
    speed: Speed | None = None  # of a new run with a time budget


def begin(
    run: RunDirectory,
    settings: Settings,
    device: torch.device,
    print_status: PrintStatus,
    processes: int = 1,
    initial_model: Model | None = None,
    seconds: float | None = None,
) -> Prepared:
    """Prepare a new run; write config.toml last, since a directory without it is not a run.

    `seconds` is a time budget; without one, the choices depend on the text alone.
    """
    _require_valid(settings, device)
    run.path.mkdir(parents=True, exist_ok=True)
    run.clear_failed_start()
    initial_model = initial_model or open_initial_model(settings)
    settings = with_initial_model(_with_builtin_languages(settings), initial_model)
    settings = prepared_corpus.completed(settings, initial_model)
    threads = settings.get("training", {}).get("threads", 0) or cores()
    train, valid = corpora(settings)
    train.require_files()
    valid.require_files()
    valid.count()  # small, so its errors are reported before the training text is read
    if isinstance(valid, HeldOut):
        _print_held_out(valid, train, print_status)
        # Recorded in config.toml: training from it repeats the run.
        settings = recipes.merged(settings, {"data": {"held_out": valid.count()}})
    counter = None
    if not isinstance(train, BuiltinCorpus):
        settings = data_checks.check_text(settings, train, valid, print_status)
        counter = None if isinstance(train, PreparedDirectory) else data_checks.counted_pairs(valid)
    tokenizer, choice = choose_tokenizer(settings, initial_model, train, threads, print_status)
    if choice is not None:
        settings = autoconfig.apply(settings, [choice])
    rules = DataConfig(**settings.get("data", {}))
    stores = [
        _store(run, TRAINING, train, tokenizer, rules, threads, print_status, counter),
        _store(run, VALIDATION, valid, tokenizer, rules, threads, print_status, prepared=_prepared_digest(train)),
    ]
    size = CorpusSize(len(stores[0]), stores[0].buckets.target_tokens)
    choices = autoconfig.choose_precision(settings, device) + ([] if choice is None else [choice])
    if processes > 1 and "accumulate" not in settings.get("training", {}):
        choices.append(Choice("training", "accumulate", processes, "one batch per process"))
        settings = autoconfig.apply(settings, choices)
    speed = None
    if seconds is None:
        choices += autoconfig.choose(settings, size, gpu=device.type == "cuda")
    else:
        trial = Trial(stores[0], stores[1], tokenizer.vocab_size, device, processes)
        budget = time_budget.Budget(seconds, trial, print_status)
        planned, speed = time_budget.plan(autoconfig.apply(settings, choices), size, budget)
        choices += planned
    recipe = recipes.build(autoconfig.apply(settings, choices))
    write_tokenizer(run.path, tokenizer)
    write_durably(run.config, recipes.to_toml(recipe).encode())
    record_verified(run.verified, _store_directories(run, train))
    return Prepared(recipe, tokenizer, stores[0], stores[1], valid, tuple(choices), initial_model, speed)


def _require_valid(settings: Settings, device: torch.device) -> None:
    """Raise ConfigError for invalid settings before the corpus is read."""
    some = autoconfig.choose(settings, CorpusSize(10_000, 200_000), gpu=device.type == "cuda")
    recipes.build(autoconfig.apply(settings, some))


def resume(run: RunDirectory, settings: Settings) -> Prepared:
    """Prepare to resume a run; raise if its text, tokenizer or settings have changed."""
    old = run.recipe()
    settings = prepared_corpus.completed(settings, None)
    recipe = recipes.build(recipes.merged(recipes.as_settings(old), settings))
    require_same(run, old, recipe)
    tokenizer = read_tokenizer(run.path)
    if (
        recipe.data.tokenizer != old.data.tokenizer
        and Tokenizer.read(Path(recipe.data.tokenizer)).model != tokenizer.model
    ):
        raise CheckpointError(
            f"The tokenizer {recipe.data.tokenizer} is not the one that {run.path} was started with. "
            "Omit data.tokenizer, or choose another `--out`."
        )
    train, valid = corpora(recipes.as_settings(recipe))
    require_undamaged_stores(run.verified, _store_directories(run, train))
    stores = [train.store] if isinstance(train, PreparedDirectory) else []
    for name, corpus in ((TRAINING, train), (VALIDATION, valid))[len(stores) :]:
        store = Store(run.data / name)
        for what, digest in _digests(corpus, tokenizer, store.facts).items():
            if store.facts.get(what) != digest:
                changed = f"{name} text" if what == "text" else f"{what} of the {name} text"
                raise CheckpointError(
                    f"The {changed} has changed since {run.path} was started. Restore it, or choose another `--out`."
                )
        stores.append(store)
    if stores[-1].facts.get("prepared", "") != _prepared_digest(train):
        raise CheckpointError(
            f"The prepared corpus has changed since {run.path} was started. Restore it, or choose another `--out`."
        )
    if recipe != old:
        write_durably(run.config, recipes.to_toml(recipe).encode())
    return Prepared(recipe, tokenizer, stores[0], stores[1], valid)


def corpora(settings: Settings) -> tuple[ParallelText, ParallelText]:
    """Return the training and the validation text."""
    data = DataConfig(**settings.get("data", {}))
    if data.builtin:
        return BuiltinCorpus("train", data.builtin_pairs), BuiltinCorpus("valid", VALIDATION_PAIRS)
    train = prepared_text(data) or Corpus.of(data.source, data.target, "training")
    if isinstance(train, Corpus) and not (data.valid_source or data.valid_target):
        held_out = HeldOut(train, data.held_out)
        return Remaining(held_out), held_out
    return train, Corpus.of(data.valid_source, data.valid_target, "validation")


def _store_directories(run: RunDirectory, train: ParallelText) -> list[Path]:
    """Return the directories of a run's tokens, each with a manifest."""
    own = [run.data / VALIDATION]
    if isinstance(train, PreparedDirectory):
        return [*(directory for directory, _ in train.parts()), *own]
    return [run.data / TRAINING, *own]


def _prepared_digest(train: ParallelText) -> str:
    return train.digest() if isinstance(train, PreparedDirectory) else ""


def _print_held_out(valid: HeldOut, train: ParallelText, print_status: PrintStatus) -> None:
    near = valid.corpus.count() - train.count() - valid.count()
    also = f"; {plural(near, 'more pair')} with the same source or target will not be trained on" if near else ""
    print_status(f"No validation files given: {plural(valid.count(), 'pair')} of the training text held out{also}.")


def _with_builtin_languages(settings: Settings) -> Settings:
    builtin = settings.get("data", {}).get("builtin")
    own: Settings = {"data": {"source_language": "en", "target_language": "de"}}
    return recipes.merged(own, settings) if builtin else settings


def open_initial_model(settings: Settings) -> Model | None:
    """Return the model that `training.init` names, or None.

    Opening it reads and hashes all its files.
    """
    init = settings.get("training", {}).get("init")
    return open_model(Path(init)) if init else None


def with_initial_model(settings: Settings, model: Model | None) -> Settings:
    """Return the settings with the shape of the model to fine-tune; raise if they differ."""
    if model is None:
        return settings
    given = settings.get("data", {})
    if given.get("tokenizer"):
        other = Tokenizer.read(Path(given["tokenizer"])).vocab_size
        raise ConfigError(
            f"data.tokenizer ({other} tokens) and `--init` ({model.tokenizer.vocab_size} tokens) were both given; "
            "fine-tuning uses the model's own tokenizer. Omit data.tokenizer."
        )
    may_differ = ("dropout", "attention_dropout", "word_dropout")
    for key, value in settings.get("model", {}).items():
        own = getattr(model.transformer.config, key)
        same = value == own or (key == "N_decoder" and value == model.transformer.config.N and own == 0)
        if not same and key not in may_differ:
            raise ConfigError(f"model.{key} = {value}, but the `--init` model has {own}. Omit model.{key}.")
    shape = {key: value for key, value in asdict(model.transformer.config).items() if key not in may_differ}
    del shape["vocab_size"]  # not a recipe key
    if given.get("vocab_size", model.tokenizer.vocab_size) != model.tokenizer.vocab_size:
        raise ConfigError(
            f"data.vocab_size = {given['vocab_size']}, but the `--init` model has {model.tokenizer.vocab_size} "
            "tokens. Omit data.vocab_size."
        )
    inherited: Settings = {
        "data": {
            "lowercase": model.text.lowercase,
            "vocab_size": model.tokenizer.vocab_size,
            "source_language": model.text.source_language,
            "target_language": model.text.target_language,
        },
        "model": shape,
        "decoding": {key: getattr(model.decoding, key) for key in ("beam", "alpha", "power_alpha", "max_extra")},
    }
    return recipes.merged(inherited, settings)


def choose_tokenizer(
    settings: Settings, initial_model: Model | None, train: ParallelText, threads: int, print_status: PrintStatus
) -> tuple[Tokenizer, Choice | None]:
    data = settings.get("data", {})
    if initial_model is not None:
        return initial_model.tokenizer, None
    if data.get("tokenizer"):
        tokenizer = Tokenizer.read(Path(data["tokenizer"]))
        return tokenizer, Choice("data", "vocab_size", tokenizer.vocab_size, "the size of the given tokenizer")
    print_status("reading the text")
    pairs = train.count()
    chosen = None if "vocab_size" in data else autoconfig.vocabulary(pairs)
    wanted = chosen.value if chosen else data["vocab_size"]
    print_status(f"training a tokenizer with a vocabulary of {plural(wanted, 'token')} on {plural(pairs, 'pair')}")
    lowercase = data.get("lowercase", False)
    try:
        tokenizer = learn(_sample(train, pairs, lowercase), wanted, threads)
    except VocabularyTooSmallError as error:
        if chosen is None:
            raise
        # A script with many characters: make room for all of them, plus half as many tokens.
        wanted = error.required + error.required // 2
        chosen = Choice("data", "vocab_size", wanted, f"the text has {error.required:,} distinct characters")
        tokenizer = learn(_sample(train, pairs, lowercase), wanted, threads)
    if tokenizer.vocab_size < wanted:
        print_status(f"the text yields only {tokenizer.vocab_size:,} tokens; using a vocabulary of that size")
    return tokenizer, chosen


def _sample(corpus: ParallelText, pairs: int, lowercase: bool) -> Iterator[str]:
    """Yield the lines to train the tokenizer on: all, or evenly spaced ones."""
    every = -(-2 * pairs // SAMPLE)
    for pair in islice(corpus.pairs(), 0, None, every):
        for text in pair:
            yield clean(text, lowercase)


def _store(
    run: RunDirectory,
    name: str,
    corpus: ParallelText,
    tokenizer: Tokenizer,
    rules: DataConfig,
    threads: int,
    print_status: PrintStatus,
    counter: PairCounter | None = None,
    prepared: str = "",
) -> Store:
    if isinstance(corpus, PreparedDirectory):
        print_status(f"{name} text: {plural(len(corpus.store), 'pair')} prepared in {corpus.path}")
        return corpus.store
    facts = {"stamp": corpus.stamp(), **_digests(corpus, tokenizer)}
    if prepared:
        facts["prepared"] = prepared
    pairs = corpus.pairs() if counter is None else counter.through(corpus.pairs())
    store = write_store(run.data / name, pairs, tokenizer, rules, facts, threads)
    print_status(f"{name} text: {store.report}")
    for warning in counter.warnings() if counter else ():
        print_status(f"warning: {warning}")
    if not len(store):
        raise CorpusError(
            f"No pairs of the {name} text are left: {store.report}. Each side may have at most {rules.max_length} "
            f"tokens (data.max_length) and at most {rules.max_ratio} times as many as the other side (data.max_ratio). "
            "Raise these limits, or check that the two files belong together."
        )
    return store


def _digests(corpus: ParallelText, tokenizer: Tokenizer, known: Mapping[str, str] = {}) -> dict[str, str]:
    """Return digests of text and tokenizer, which must not change when a run resumes.

    A large text is not read again if its files have the sizes and times of the known digest.
    """
    stamp = corpus.stamp()
    same = stamp and stamp == known.get("stamp")
    text = known["text"] if same and "text" in known else corpus.digest()
    return {"text": text, "tokenizer": tokenizer_digest(tokenizer)}


def require_same(run: RunDirectory, old: Recipe, new: Recipe) -> None:
    """Raise ConfigError if a setting has changed that must stay the same when a run resumes."""
    files = {f"{section}.{key}" for section, key in recipes.PATHS if section == "data"}
    allowed = {f"training.{key}" for key in MAY_CHANGE}
    changed = {key: values for key, values in recipes.differences(old, new).items() if key not in files | allowed}
    if changed:
        listed = "; ".join(f"{key} was {before!r}, now {after!r}" for key, (before, after) in changed.items())
        raise ConfigError(
            f"The run {run.path} was started with different settings: {listed}. Only "
            f"{', '.join(sorted(allowed))} may change. Restore the original values, or choose another `--out`."
        )
