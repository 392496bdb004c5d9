"""Score a finished run and record it in docs/results/results.json and docs/results/results.md.

python benchmarks/record_result.py RECIPE.toml RUN --data-root DIR [--commit HASH] [--note TEXT] [--alpha A]
python benchmarks/record_result.py none RUN --data-root DIR          a run from text files, without a recipe

Run it on the machine that trained RUN, because it records this machine's CPU; times, tokens and curves come from the
run's log. `heedful evaluate` scores the validation and test sets once; a recorded model keeps its scores. Training does
not depend on the length penalty, so --alpha may be chosen afterwards, on the validation text. Runs with different seeds
are recorded separately, and the page shows their mean; a run with a known seed replaces the old one.
benchmarks/results_page.py writes the page.
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
from heedful.training.run_log import read_log
from heedful.training.run_setup import MAY_CHANGE

ROOT = Path(__file__).parents[1]
NONE = "none"
# The test sets of corpora with more than one. Their file names replace "train" in those of the training text.
TEST_SETS = {"multi30k": ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco")}
SIDES = ("source", "target", "valid_source", "valid_target")

Entry = dict[str, Any]


def heedful(*arguments: str | Path) -> str:
    """Run heedful in a subprocess and return its output."""
    command = [sys.executable, "-m", "heedful", *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}.")
    return done.stdout.decode("utf-8")


def entry_of(
    recipe_file: Path | None, run: RunDirectory, data: Path, commit: str, note: str = "", alpha: float | None = None
) -> Entry:
    """Return the facts about a run, without scores. `data` is the directory of the corpora."""
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
    """Return the single file of a side, as named in docs/reference/data.md."""
    (path,) = paths
    try:
        return Path(path).relative_to(data).as_posix()
    except ValueError:
        raise SystemExit(f"The run was trained on {path}, which is not below {data}. Pass its --data-root.") from None


def require_text(run: RunDirectory, recipe: Recipe) -> None:
    """Raise unless the text files are still those that the run was trained on."""
    sides = {
        "training": (recipe.data.source, recipe.data.target),
        "validation": (recipe.data.valid_source, recipe.data.valid_target),
    }
    for name, files in sides.items():
        if Corpus.of(*files, name).digest() != Store(run.data / name).facts["text"]:
            raise SystemExit(
                f"The {name} text, {files[0][0]} and {files[1][0]}, has changed since {run.path} was trained."
            )


def _given(recipe_file: Path | None, recipe: Recipe, data: Path) -> Settings:
    """Return the settings given for the run: a recipe, or only its files. A chosen vocabulary size is kept."""
    if recipe_file is None:
        given: Settings = {"data": {side: getattr(recipe.data, side) for side in SIDES}}
    else:
        given = recipes.read(recipe_file, data.parent)
    return recipes.merged({"data": {"vocab_size": recipe.data.vocab_size}}, given)


def settings_beside(given: Settings, recipe: Recipe, size: CorpusSize) -> Settings:
    """Return the run's --set options: the settings that differ from the given and the chosen ones."""
    chosen = autoconfig.choose(given, size, gpu=False)
    own: Settings = {}
    for key, (_, value) in recipes.differences(recipes.build(autoconfig.apply(given, chosen)), recipe).items():
        section, _, name = key.partition(".")
        if (section, name) in recipes.PATHS:
            raise SystemExit(f"{key} is {value} in the run but not in the recipe. Is this a run of the recipe?")
        if name == "steps" or name not in MAY_CHANGE:  # other keys do not affect the trained model
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
        raise SystemExit(
            f"{run.model} is from step {history['steps']} but the log ends at step {last['step']}. Let the run finish."
        )
    # A log line is written before the validation of its step, whose time counts too.
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
    """Return threads and torch version from the run's last checkpoint, and this machine's CPU."""
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
    """Return validation loss and greedy BLEU by step."""
    found = [entry for entry in read_log(run.log) if entry["kind"] == "valid"]
    return [{"step": entry["step"], "nll": round(entry["nll"], 4), "bleu": round(entry["bleu"], 2)} for entry in found]


def digest(path: Path) -> str:
    if not path.is_file():
        raise SystemExit(f"File {path} does not exist.")
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def held_out(texts: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Return name → (source, reference) of the validation and test sets."""
    source, target = texts["source"], texts["target"]
    names = TEST_SETS.get(Path(source).parts[0], ("test",))
    return {name: (source.replace("/train.", f"/{name}."), target.replace("/train.", f"/{name}.")) for name in names}


def _names(sets: dict[str, tuple[str, str]]) -> list[str]:
    return [name for pair in sets.values() for name in pair]


def scored(run: RunDirectory, data: Path, entry: Entry) -> Entry:
    """Return the scores of the averaged model per set, validation first."""
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
    """Return the content with the run added, replacing one with the same name and seed."""
    others = [one for one in content["runs"] if key(one) != key(entry)]
    return {"runs": sorted([*others, entry], key=key)}


def key(entry: Entry) -> tuple[str, int]:
    return entry["name"], entry["seed"]


def known_scores(content: Entry, entry: Entry) -> Entry | None:
    """Return recorded scores of the same model, search settings and files, if any."""

    def facts(run: Entry) -> list[Any]:
        return [run["model"], run["files"], run["tokenize"], run["settings"]["decoding"]]

    return next((one["scores"] for one in content["runs"] if facts(one) == facts(entry)), None)


def commit_here() -> str:
    """Return HEAD, and whether the source has uncommitted changes."""

    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)

    head = git("rev-parse", "HEAD")
    if head.returncode:
        raise SystemExit("This is not a git repository. Pass the --commit that the run was trained with.")
    changed = git("diff", "--quiet", "HEAD", "--", "src").returncode
    return head.stdout.strip() + (" with changes" if changed else "")


def main() -> None:
    parser = argparse.ArgumentParser(description="Record a finished run in docs/results/results.md.")
    parser.add_argument("recipe", help=f'a recipe of recipes/, or "{NONE}"')
    parser.add_argument("run", type=Path)
    parser.add_argument(
        "--data-root", type=Path, required=True, help="directory that contains data/, as for heedful train"
    )
    parser.add_argument("--commit", help='commit that the run was trained with (default: HEAD; "": unknown)')
    parser.add_argument("--note", default="", help="note about the run, for example about its time")
    parser.add_argument("--alpha", type=float, help="length penalty to score with (default: the run's own)")
    parser.add_argument("--docs", type=Path, default=results_page.DOCS, help="directory of results.json and results.md")
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
