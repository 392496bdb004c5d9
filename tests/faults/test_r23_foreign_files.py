"""R23: wherever `--out` points, heedful deletes or overwrites only its own files."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import random
import shutil
import signal
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fault_injection import Phases, count, die, forked
from tiny_runs import continued, leftovers

import synthetic_tasks as tasks
from heedful import atomic_files
from heedful.cli.main import main
from heedful.storage import ownership
from heedful.storage.run_directory import RunDirectory

pytestmark = pytest.mark.faults

ARRANGEMENTS = count(10, 100)
PRECIOUS = "what somebody wrote\n"


class Arrangement(NamedTuple):
    had: tuple[str, ...]  # what the user had in the directory, or instead of it
    command: str
    state: str  # what had happened there before

    @property
    def name(self) -> str:
        return f"{self.command}, {self.state}, {' + '.join(self.had)}"


def write(path: Path, text: str = PRECIOUS) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def write_all(directory: Path, names: tuple[str, ...]) -> None:
    for name in names:
        write(directory / name)


def link(path: Path, outside: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.symlink_to(outside)


# What a user may have, by name: `out` is what --out points at, `outside` a directory of theirs elsewhere.
HAD: dict[str, Callable[[Path, Path], None]] = {
    "notes": lambda out, _: write(out / "notes.txt"),
    "model": lambda out, _: write(out / "model" / "weights.bin"),
    "model of four files": lambda out, _: write_all(out / "model", ("config.json", "tokenizer.model", "MANIFEST.json")),
    "store": lambda out, _: write_all(out / "data" / "training", ("store.json", "lines", "source.ids", "target.ids")),
    "best": lambda out, _: write(out / "best" / "photo.jpg"),
    "data": lambda out, _: write(out / "data" / "training" / "train.en"),
    "data of another tool": lambda out, _: write(out / "data" / "validation" / "store.json"),
    "checkpoints": lambda out, _: write(out / "checkpoints" / "step-00000002" / "model.safetensors"),
    "log": lambda out, _: write(out / "log.jsonl"),
    "config of another tool": lambda out, _: write(out / "config.toml", "[tool]\nname = 'mine'\n"),
    "tokenizer": lambda out, _: write(out / "tokenizer.model"),
    "lock": lambda out, _: write(out / ".lock", "12345"),
    "marker of another tool": lambda out, _: write(out / ".heedful", "mine"),
    "manifest of another tool": lambda out, _: write(out / "MANIFEST.json", json.dumps({"files": {}, "digest": ""})),
    "unfinished": lambda out, _: write(out / ".unfinished-model" / "draft"),
    "unfinished beside": lambda out, _: write(out.parent / f".unfinished-{out.name}" / "draft"),
    "unfinished tokenizer": lambda out, _: write(out / ".unfinished-tokenizer.model"),
    "tensorboard": lambda out, _: write(out / "tensorboard" / "events"),
    "attention": lambda out, _: write(out / "attention.png"),
    "treebank": lambda out, _: write(out / "train.words"),
    "link model": lambda out, outside: link(out / "model", outside),
    "link checkpoints": lambda out, outside: link(out / "checkpoints", outside),
    "link data": lambda out, outside: link(out / "data", outside),
    "link log": lambda out, outside: link(out / "log.jsonl", outside / "file"),
    "link marker": lambda out, outside: link(out / ".heedful", outside / "file"),
    "link tokenizer": lambda out, outside: link(out / "tokenizer.model", outside / "file"),
    "dangling link": lambda out, outside: link(out / "best", outside / "nothing"),
}
COMMANDS = ("train", "average", "import", "export", "demo", "treebank", "argos")
STATES = ("fresh", "after a failed start", "after a killed start", "after both")


def arrangements(number: int, seed: int = 23) -> list[Arrangement]:
    """Half are runs: that is where things are replaced.

    Each has one or two things of the user's.
    """
    draw = random.Random(seed)
    single = [Arrangement((had,), "train", state) for state, had in product(STATES, HAD)]
    others = [Arrangement((had,), command, "fresh") for command, had in product(COMMANDS[1:], HAD)]
    double = [Arrangement(tuple(draw.sample(list(HAD), 2)), draw.choice(COMMANDS), draw.choice(STATES)) for _ in HAD]
    chosen = [draw.choice(group) for group in (single, others, single, double) for _ in range(-(-number // 4))]
    return chosen[:number] if len(set(chosen)) < number else draw.sample(sorted(set(chosen)), number)


def tree(top: Path) -> dict[str, str]:
    """Every file and link below `top`, with a digest of what it holds or where it points."""
    found = {}
    for directory, folders, names in os.walk(top):
        for name in [*names, *(folder for folder in folders if os.path.islink(os.path.join(directory, folder)))]:
            path = Path(directory, name)
            content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
            found[str(path.relative_to(top))] = f"{path.is_symlink()} {hashlib.sha256(content).hexdigest()}"
    return found


def damage(before: dict[str, str], after: dict[str, str]) -> list[str]:
    return [name for name, digest in before.items() if after.get(name) != digest]


class Place:
    """A directory of the user's, and the commands that are pointed at it."""

    def __init__(self, top: Path, reference: Path, settings: dict[str, Any]) -> None:
        self.top, self.out, self.outside = top, top / "out", top / "outside"
        write(self.outside / "file")
        write(self.outside / "step-00000002" / "model.safetensors")
        self.reference, self.settings = reference, settings
        self.latin = top.parent / f"{top.name}-latin"
        write(self.latin)
        (self.latin).write_bytes("Übung\n".encode("latin-1") * 3)

    def before(self, state: str) -> None:
        """Failed starts before the user adds files."""
        if state in ("after a failed start", "after both"):
            self.call("train", {**self.settings, "data.source": str(self.latin)})
        if state in ("after a killed start", "after both"):

            def work() -> None:
                with pytest.MonkeyPatch.context() as patch:
                    Phases("begin", 1, 30, die).watch(patch, self.out)
                    continued(self.out, self.settings)

            assert forked(work, self.top.parent / "killed.txt") == -signal.SIGKILL

    def call(self, command: str, settings: dict[str, Any] | None = None) -> int:
        out, run = str(self.out), str(self.reference)
        arguments = {
            "train": ["train", *tasks.set_options(settings or self.settings), "--out", out],
            "average": ["average", run, "--last", "2", "--out", out],
            "import": ["import", str(self.reference.parent / "marian"), "--from", "marian", "--out", out],
            "export": ["export", run, "--to", "marian", "--out", out],
            "argos": ["export", run, "--to", "argos", "--languages", "en", "de", "--out", f"{out}/x.argosmodel"],
            "demo": ["demo", "--out", out],
            "treebank": ["treebank", str(self.reference.parent / "trees"), "--out", out],
        }[command]
        with contextlib.redirect_stdout(_Text()), contextlib.redirect_stderr(io.StringIO()):
            return main(arguments)


class _Text(io.StringIO):
    def reconfigure(self, **_: object) -> None:
        """Same interface as sys.stdout."""


@pytest.fixture(scope="session")
def sources(reference: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reference run, with a model of another tool and a treebank beside it."""

    def build(directory: Path) -> None:
        shutil.copytree(reference, directory / "run")
        with contextlib.redirect_stdout(_Text()):
            assert main(["export", str(reference), "--to", "marian", "--out", str(directory / "marian")]) == 0
        for number in range(20):
            write(directory / "trees" / f"made_{number:04d}.mrg", "( (S (NP (NN a)) (VP (VB b)) (. .)) )\n")

    return tasks.once(tmp_path_factory, "ownership", build) / "run"


@pytest.fixture
def quick_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo with a model that is trained in a second."""
    from heedful import demo

    tiny = {
        "data": {"builtin": True, "builtin_pairs": 300, "vocab_size": 400},
        "model": {"N": 1, "d_model": 16, "d_ff": 16, "h": 2},
        "training": {"steps": 1, "batch_tokens": 512, "threads": 1, "validate_every": 100},
    }
    full = demo.demo
    monkeypatch.setattr("heedful.cli.demo.run_demo", lambda out: full(out, tiny, 4))


def losses(arrangement: Arrangement, top: Path, sources: Path, settings: dict[str, Any]) -> list[str]:
    """Return the user's files that changed after the command and after repeating it."""
    place = Place(top, sources, settings)
    place.before(arrangement.state)
    for had in arrangement.had:
        HAD[had](place.out, place.outside)
    before = tree(top)
    if arrangement.state in ("after a killed start", "after both"):
        mine = Path(top.parent / "mine")  # what a killed start left is heedful's: only the user's own counts
        for had in arrangement.had:
            HAD[had](mine / "out", mine / "outside")
        own = {str(path.relative_to(mine)) for path in mine.rglob("*") if path.is_symlink() or path.is_file()}
        before = {name: digest for name, digest in before.items() if name in own or name.startswith("outside")}
    codes = [place.call(arrangement.command) for _ in range(2)]
    assert all(code in (0, 2, 3) for code in codes), codes
    return damage(before, tree(top))


@pytest.mark.usefixtures("quick_demo")
def test_no_user_file_is_lost(
    sources: Path, settings: dict[str, Any], tmp_path: Path, counted: Callable[[int, str], None]
) -> None:
    lost = {}
    for number, arrangement in enumerate(arrangements(ARRANGEMENTS)):
        top = tmp_path / str(number) / "top"
        if gone := losses(arrangement, top, sources, settings):
            lost[arrangement.name] = gone
        shutil.rmtree(top.parent)
    assert lost == {}
    counted(ARRANGEMENTS, "arrangements")


def test_a_failed_start_leaves_nothing_and_the_next_one_trains(
    sources: Path, settings: dict[str, Any], tmp_path: Path
) -> None:
    place = Place(tmp_path / "top", sources, settings)
    before = tree(tmp_path / "top")
    place.before("after a failed start")
    assert tree(tmp_path / "top") == before
    assert not place.out.exists()
    place.out.mkdir()
    place.before("after a failed start")
    assert list(place.out.iterdir()) == []
    assert place.call("train") == 0
    assert leftovers(place.out) == []


def test_a_run_may_be_a_link_to_a_directory(sources: Path, settings: dict[str, Any], tmp_path: Path) -> None:
    place = Place(tmp_path / "top", sources, settings)
    (tmp_path / "disk").mkdir()
    place.out.symlink_to(tmp_path / "disk")
    assert place.call("train") == 0
    assert place.out.is_symlink()
    assert RunDirectory(tmp_path / "disk").valid_steps()


def anything(*_: object) -> bool:
    return True


def test_control_a_marker_that_proves_nothing(
    sources: Path, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old behaviour: anything there counts as a run and is replaced."""
    monkeypatch.setattr(RunDirectory, "require_own", lambda self: None)
    monkeypatch.setattr(ownership, "holds_only", anything)
    monkeypatch.setattr(ownership, "is_ours", anything)
    monkeypatch.setattr(atomic_files, "require_replaceable", lambda *_: None)
    had = [("model",), ("tokenizer",), ("log",), ("best",), ("link log",)]
    lost = [
        losses(Arrangement(one, "train", "fresh"), tmp_path / str(number) / "top", sources, settings)
        for number, one in enumerate(had)
    ]
    assert all(lost), lost


def test_control_leftovers_without_a_marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic_files, "_is_workspace", anything)
    write(tmp_path / ".unfinished-mine" / "draft")
    atomic_files.clear_unfinished(tmp_path)
    assert not (tmp_path / ".unfinished-mine").exists()
