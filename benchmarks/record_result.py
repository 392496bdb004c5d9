"""Scores a finished run, and enters it in docs/results/results.json and docs/results/results.md.

python benchmarks/record_result.py RECIPE.toml RUN --data-root DIR [--commit HASH] [--note TEXT] [--alpha A]
python benchmarks/record_result.py none RUN --data-root DIR          a run from text files, without a recipe

To be run where RUN was trained: the processor is read from this machine; times, tokens and curves are from the run's
log. The validation and test sets are scored by `heedful evaluate`, once: a model that is entered already keeps its
scores. Training does not depend on the length penalty, so a run may be scored with one that was chosen afterwards
(--alpha), on the validation text. Runs of a recipe with other seeds stand beside each other, and the page has their
mean; a run with a seed that is there takes its place. benchmarks/results_page.py writes the page.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import results_page

from heedful import recipes
from heedful.config import Recipe
from heedful.data.store import Store
from heedful.recipes import Settings
from heedful.storage.run_directory import RunDirectory
from heedful.text.corpus import Corpus
from heedful.training import autoconfig
from heedful.training.autoconfig import CorpusSize
from heedful.training.dry_run import training_shapes
from heedful.training.estimate import estimate
from heedful.training.preparation import MAY_CHANGE
from heedful.training.run_log import read_log

ROOT = Path(__file__).parents[1]
NONE = "none"
# The test sets of a corpus that has more than one. Their files are named as the training text's, "train" replaced.
TEST_SETS = {"multi30k": ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco")}
SIDES = ("source", "target", "valid_source", "valid_target")

Entry = dict[str, Any]


def heedful(*arguments: str | Path) -> str:
    """What the program prints, in a process of its own."""
    command = [sys.executable, "-m", "heedful", *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}.")
    return done.stdout.decode("utf-8")


def entry_of(
    recipe_file: Path | None, run: RunDirectory, data: Path, commit: str, note: str = "", alpha: float | None = None
) -> Entry:
    """All that is known of a run, but for its scores. `data` is the folder that has the corpora."""
    recipe, store = run.recipe(), Store(run.data / "training")
    if alpha is not None:
        recipe = replace(recipe, decoding=replace(recipe.decoding, alpha=alpha))
    texts = {side: named(getattr(recipe.data, side), data) for side in SIDES}
    require_text(run, recipe)
    size = CorpusSize(len(store), store.buckets.target_tokens)
    given = _given(recipe_file, recipe, data)
    own = settings_beside(given, recipe, size)
    source, target = texts["source"], texts["target"]
    languages = "-".join(name.removesuffix(".gz").rpartition(".")[2] for name in (source, target))
    corpus = str(Path(source).parent).removesuffix(f"-{languages}")
    name = recipe_file.stem if recipe_file else f"{corpus}-{languages}-automatic"
    return {
        "name": name,
        "recipe": f"recipes/{recipe_file.name}" if recipe_file else None,
        "seed": recipe.training.seed,
        "command": command_of(name, recipe_file, texts, own),
        "model": json.loads((run.model / "MANIFEST.json").read_text(encoding="utf-8"))["digest"],
        "settings": settings_without_paths(recipe),
        "training": training_facts(run, recipe, store),
        "machine": machine_facts(run),
        "commit": commit,
        "note": note,
        "tokenize": "none" if ".tok." in target else "13a",
        "files": {name: digest(data / name) for name in (*texts.values(), *_names(held_out(texts)))},
        "curve": curve(run),
    }


def named(paths: tuple[str, ...], data: Path) -> str:
    """A side's one file, as docs/reference/data.md names it."""
    (path,) = paths
    try:
        return Path(path).relative_to(data).as_posix()
    except ValueError:
        raise SystemExit(f"The run was trained on {path}, which is not below {data}: give its --data-root.") from None


def require_text(run: RunDirectory, recipe: Recipe) -> None:
    """The digests below are worth something only if the files are still those that the run has read."""
    sides = {
        "training": (recipe.data.source, recipe.data.target),
        "validation": (recipe.data.valid_source, recipe.data.valid_target),
    }
    for name, files in sides.items():
        if Corpus.of(*files, name).digest() != Store(run.data / name).facts["text"]:
            raise SystemExit(f"The {name} text, {files[0][0]} and {files[1][0]}, is not what {run.path} has read.")


def _given(recipe_file: Path | None, recipe: Recipe, data: Path) -> Settings:
    """What was written for the run: a recipe, or its files alone. A vocabulary's size that was chosen stays so."""
    if recipe_file is None:
        given: Settings = {"data": {side: getattr(recipe.data, side) for side in SIDES}}
    else:
        given = recipes.read(recipe_file, data.parent)
    return recipes.merged({"data": {"vocab_size": recipe.data.vocab_size}}, given)


def settings_beside(given: Settings, recipe: Recipe, size: CorpusSize) -> Settings:
    """What the run has set otherwise than it was given or would be chosen: its --set."""
    chosen = autoconfig.choose(given, size, gpu=False)
    own: Settings = {}
    for key, (_, value) in recipes.differences(recipes.build(autoconfig.apply(given, chosen)), recipe).items():
        section, _, name = key.partition(".")
        if (section, name) in recipes.PATHS:
            raise SystemExit(f"{key} is {value} in the run, but not in the recipe. Is it a run of this recipe?")
        if name == "steps" or name not in MAY_CHANGE:  # the others change nothing of what is learnt
            own.setdefault(section, {})[name] = value
    return own


def command_of(name: str, recipe_file: Path | None, texts: dict[str, str], own: Settings) -> str:
    if recipe_file:
        words = ["heedful train", f"recipes/{recipe_file.name}", "--data-root DIR"]
    else:
        words = ["heedful train", *(f"--{side.replace('_', '-')} DIR/data/{file}" for side, file in texts.items())]
    seed = own.get("training", {}).get("seed")
    words.append(f"--out runs/{name}" + (f"-{seed}" if seed is not None else ""))
    words += [f"--set {section}.{key}={json.dumps(value)}" for section in own for key, value in own[section].items()]
    return " ".join(words)


def settings_without_paths(recipe: Recipe) -> Settings:
    settings = recipes.as_settings(recipe)
    for section, key in recipes.PATHS:
        del settings[section][key]
    return settings


def training_facts(run: RunDirectory, recipe: Recipe, store: Store) -> Entry:
    entries = read_log(run.log)
    start = next(entry for entry in entries if entry["kind"] == "start")
    last = [entry for entry in entries if entry["kind"] == "train"][-1]
    described = json.loads((run.model / "config.json").read_text(encoding="utf-8"))
    history, vocab_size = described["history"], described["model"]["vocab_size"]
    if history["steps"] != last["step"]:
        raise SystemExit(f"{run.model} is of step {history['steps']}, the log of {last['step']}: let the run finish.")
    # A line of the log is written before the validation at its step, which belongs to the time.
    after = [entry["seconds"] for entry in entries if entry["kind"] == "valid" and entry["step"] == last["step"]]
    shapes = training_shapes(store.buckets, recipe.training)
    done = replace(recipe, training=replace(recipe.training, steps=last["step"]))
    cost = estimate(done, replace(recipe.model, vocab_size=vocab_size), shapes, gpu=False)
    return {
        "pairs": start["pairs"],
        "vocab_size": vocab_size,
        "parameters": start["parameters"],
        "steps": last["step"],
        "epochs": last["epoch"],
        "tokens": last["tokens"],
        "flops": cost.run_flops,
        "seconds": round(last["seconds"] + sum(after), 1),
        "averaged_steps": history["averaged_steps"],
    }


def machine_facts(run: RunDirectory) -> Entry:
    """Threads and torch as the run's last checkpoint has them; the processor of this machine."""
    state = run.checkpoint(run.steps()[-1]) / "state.json"
    facts = json.loads(state.read_text(encoding="utf-8"))["facts"]
    return {
        "processor": processor(Path("/proc/cpuinfo")),
        "cores": os.cpu_count(),
        "threads": facts["threads"],
        "torch": facts["torch"],
        "python": platform.python_version(),
    }


def processor(cpuinfo: Path) -> str:
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def curve(run: RunDirectory) -> list[Entry]:
    """Validation loss and greedy BLEU over the steps."""
    found = [entry for entry in read_log(run.log) if entry["kind"] == "valid"]
    return [{"step": entry["step"], "nll": round(entry["nll"], 4), "bleu": round(entry["bleu"], 2)} for entry in found]


def digest(path: Path) -> str:
    if not path.is_file():
        raise SystemExit(f"There is no file {path}.")
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def held_out(texts: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Name → source and reference."""
    source, target = texts["source"], texts["target"]
    names = TEST_SETS.get(Path(source).parts[0], ("test",))
    return {name: (source.replace("/train.", f"/{name}."), target.replace("/train.", f"/{name}.")) for name in names}


def _names(sets: dict[str, tuple[str, str]]) -> list[str]:
    return [name for pair in sets.values() for name in pair]


def scored(run: RunDirectory, data: Path, entry: Entry) -> Entry:
    """The scores of the averaged model by set, the validation text first."""
    texts = {side: named(getattr(run.recipe().data, side), data) for side in SIDES}
    sets = {"val": (texts["valid_source"], texts["valid_target"]), **held_out(texts)}
    scores = {}
    for name, (source, reference) in sets.items():
        files = ("--source", data / source, "--reference", data / reference)
        alpha = entry["settings"]["decoding"]["alpha"]
        asked = ("--checkpoint", "averaged", "--alpha", str(alpha), "--tokenize", entry["tokenize"], "--json")
        scores[name] = json.loads(heedful("evaluate", run.path, *files, *asked))
        print(f"{entry['name']}, {name}: BLEU {scores[name]['BLEU']['value']:.2f}", file=sys.stderr, flush=True)
    return scores


def entered(content: Entry, entry: Entry) -> Entry:
    """The content with the run in it, in place of one of the same name and seed."""
    others = [one for one in content["runs"] if key(one) != key(entry)]
    return {"runs": sorted([*others, entry], key=key)}


def key(entry: Entry) -> tuple[str, int]:
    return entry["name"], entry["seed"]


def known_scores(content: Entry, entry: Entry) -> Entry | None:
    """Those of the same model and search on the same files, where they are there."""

    def facts(run: Entry) -> list[Any]:
        return [run["model"], run["files"], run["tokenize"], run["settings"]["decoding"]]

    return next((one["scores"] for one in content["runs"] if facts(one) == facts(entry)), None)


def commit_here() -> str:
    """HEAD, and whether the program differs from it."""

    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)

    head = git("rev-parse", "HEAD")
    if head.returncode:
        raise SystemExit("This is no git repository: give the --commit that the run was trained with.")
    changed = git("diff", "--quiet", "HEAD", "--", "src").returncode
    return head.stdout.strip() + (" with changes" if changed else "")


def main() -> None:
    parser = argparse.ArgumentParser(description="Enters a finished run in docs/results/results.md.")
    parser.add_argument("recipe", help=f'a recipe of recipes/, or "{NONE}"')
    parser.add_argument("run", type=Path)
    parser.add_argument("--data-root", type=Path, required=True, help="has data/, as for heedful train")
    parser.add_argument("--commit", help='that the run was trained with (default: HEAD; "": not known)')
    parser.add_argument("--note", default="", help="what else to know of the run, for example of its time")
    parser.add_argument("--alpha", type=float, help="length penalty to score with (default: the run's own)")
    parser.add_argument("--docs", type=Path, default=results_page.DOCS, help="where results.json and results.md are")
    options = parser.parse_args()
    recipe_file = None if options.recipe == NONE else Path(options.recipe)
    run, data = RunDirectory(options.run.absolute()), options.data_root.absolute() / "data"
    commit = commit_here() if options.commit is None else options.commit
    entry = entry_of(recipe_file, run, data, commit, options.note, options.alpha)
    stored = options.docs / "results.json"
    content = json.loads(stored.read_text(encoding="utf-8")) if stored.exists() else {"runs": []}
    entry["scores"] = known_scores(content, entry) or scored(run, data, entry)
    stored.write_text(json.dumps(entered(content, entry), indent=1) + "\n", encoding="utf-8")
    results_page.write(options.docs)


if __name__ == "__main__":
    main()
