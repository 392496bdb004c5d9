"""Usage errors of every command: exit code 2 or 3, one message and no traceback."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from heedful.cli.main import main
from heedful.cli.parser import build_parser
from synthetic_tasks import Program

COMMANDS = ("train", "translate", "compare", "evaluate", "score", "average", "info", "treebank")
TESTED_ELSEWHERE = ("attend", "demo", "export", "import", "lab", "prepare", "serve")


@pytest.fixture
def places(tiny_run: Path, model: Path, corpus: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """Values of the placeholders in the arguments below."""
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    (tmp_path / "latin1").write_bytes(b"fine\nna\xefve\n")
    (tmp_path / "utf16").write_text("a b\nc d\n", encoding="utf-16")
    (tmp_path / "two").write_text("a b\nc d\n")
    (tmp_path / "three").write_text("a b\nc d\ne f\n")
    (tmp_path / "tokens").write_text("▁a ▁b\n▁c\n")
    (tmp_path / "gold").write_text("(NP (NN a) (NN b))\n(NP (NN c) (NN d))\n")
    (tmp_path / "unclosed").write_text("(NP (NN a) (NN b))\n(NP (NN c)\n")
    for name, second in (("trees", "(NP (NN b))"), ("badtrees", "(NP (NN b)")):
        (tmp_path / name).mkdir()
        for number, text in enumerate(("(NP (NN a))", second, "(NP (NN c))")):
            (tmp_path / name / f"{number}.mrg").write_text(f"( {text} )\n")
    recipes = {
        "good": "",
        "broken": "[data\n",
        "section": "[dta]\n",
        "key": "[training]\nstps = 5\n",
        "type": '[training]\nsteps = "many"\n',
        "range": "[training]\nsteps = -1\n",
        "rule": "[model]\nd_model = 100\nh = 3\n",
        "flat": "training = 5\n",
        "nodata": '[data]\nsource = ["data/x.en"]\ntarget = ["data/x.de"]\n',
    }
    for name, text in recipes.items():
        (tmp_path / f"{name}.toml").write_text(text)
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe[data]")
    damaged = Path(shutil.copytree(model, tmp_path / "damaged"))
    content = bytearray((damaged / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (damaged / "model.safetensors").write_bytes(content)
    for name, file in (("ct2", "model.bin"), ("marian", "source.spm")):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_bytes(b"")
    names = (
        "ct2",
        "marian",
        "empty",
        "folder",
        "latin1",
        "utf16",
        "two",
        "three",
        "tokens",
        "damaged",
        "gold",
        "unclosed",
        "trees",
        "badtrees",
    )
    found = {name: str(tmp_path / name) for name in names}
    found |= {f"{name}_toml": str(tmp_path / f"{name}.toml") for name in (*recipes, "bytes")}
    files = " ".join(f"--{key.removeprefix('data.').replace('_', '-')} {path}" for key, path in corpus.items())
    return {
        **found,
        "model": str(model),
        "run": str(tiny_run),
        "files": files,
        "new": str(tmp_path / "new"),
        "nowhere": str(tmp_path / "nowhere"),
        "source": corpus["data.source"],
        "target": corpus["data.target"],
        "long": "x" * 300,
    }


MISTAKES = [
    # nothing, or nothing known
    ("", 2, "No command given. Run `heedful --help` for the list."),
    ("--versoin", 2, 'Did you mean "--version"'),
    ("trian x.toml", 2, 'Unknown command "trian". Did you mean "train"'),
    ("dance", 2, "Allowed: "),
    # train: options
    ("train", 2, "No training text given. Pass a recipe, or `--source` and `--target` files"),
    ("train --out {new}", 2, "No training text given"),
    ("train --sorce {source} --out {new}", 2, 'Did you mean "--source"'),
    ("train {good_toml} {files} --out {new}", 2, "either a recipe or"),
    ("train {files}", 2, "No run directory given. Pass `--out RUN`"),
    ("train {files} --out {new} --data-root {folder}", 2, "`--data-root` applies only to a recipe"),
    ("train {files} --out {new} --device tpu", 2, 'not "tpu"'),
    ("train {files} --out {new} --preset tny", 2, 'Unknown preset "tny". Did you mean "tiny"'),
    ("train {files} --out {two}", 2, "is a file. Pass the name of a new or existing directory"),
    ("train {two} {three} --out {new}", 2, "Pass text files as `--source"),
    ("train {two} --out {new}", 2, "Pass text files with `--source` and `--target`"),
    ("train {nodata_toml} --out {new}", 3, "relative to `--data-root` (default: its directory)"),
    ("train {nodata_toml} --out {new} --dry-run", 3, "data/x.en does not exist. data.vocab_size, "),
    ("translate {ct2} --input {two}", 3, "is a CTranslate2 model. heedful exports this format but does not read it"),
    ("evaluate {marian} --source {two} --reference {two}", 3, "is a Marian model. Import it first: heedful import"),
    ("demo --out {two}", 2, "is a file. Pass the name of a new or existing directory"),
    ("demo --out {model}", 2, "is one of the files that heedful wrote in"),
    ("demo --uot {new}", 2, 'Did you mean "--out"'),
    ("demo {new}", 2, "Unknown argument"),
    ("train {files} --out {two}/below", 2, ": not a directory"),
    ("train {files} --out {folder}/{long}", 3, "file name too long"),
    ("train {files} --out {model}", 2, "is one of the files that heedful wrote in"),
    ("train {files} --out {new} --set training.steps", 2, 'section.key=value, for example training.steps=2000, not "'),
    ("train {files} --out {new} --set training.steps 5", 2, "has no value. Write `--set training.steps=5`."),
    ("train {good_toml} --out {new} --set training.steps 5", 2, "has no value. Write `--set training.steps=5`."),
    ("train {files} --set a.b --out {new}", 2, 'section.key=value, for example training.steps=2000, not "a.b"'),
    ("train {files} --out {new} --set steps=5", 2, "`--set` takes section.key=value"),
    ("train {files} --out {new} --set training.stps=5", 2, 'unknown key "stps" in [training]. Did you mean "steps"'),
    ("train {files} --out {new} --set trainig.steps=5", 2, 'unknown section "trainig". Did you mean "training"'),
    ("train {files} --out {new} --set training.steps=many", 2, 'must be an integer, not "many"'),
    ("train {files} --out {new} --set training.steps=1.5", 2, "must be an integer, not 1.5"),
    ("train {files} --out {new} --set training.steps=-3", 2, "at least 1, not -3"),
    ("train {files} --out {new} --set training.learning_rate=nan", 2, "not nan"),
    ("train {files} --out {new} --set training.threads=-1", 2, "at least 0, not -1"),
    ("train {files} --out {new} --set model.dropout=1.0", 2, "below 1, not 1.0"),
    ("train {files} --out {new} --set model.positions=none", 2, 'sinusoidal, learned, not "none"'),
    ("train {files} --out {new} --set data.lowercase=1", 2, "true or false, not 1"),
    ("train {files} --out {new} --set training.keep=1 --set training.average=3", 2, "is below training.average = 3"),
    ("train {run}/config.toml --out {run} --set model.d_ff=77", 2, "model.d_ff was 32, now 77"),
    # train: recipes
    ("train {nowhere} --out {new}", 2, "does not exist. Check the path"),
    ("train {folder} --out {new}", 2, "Cannot read recipe"),
    ("train {bytes_toml} --out {new}", 2, "Cannot read recipe"),
    ("train {broken_toml} --out {new}", 2, "is not valid TOML"),
    ("train {section_toml} --out {new}", 2, 'Did you mean "data"'),
    ("train {key_toml} --out {new}", 2, 'Did you mean "steps"'),
    ("train {type_toml} --out {new}", 2, 'must be an integer, not "many"'),
    ("train {range_toml} --out {new}", 2, "training.steps must be at least 1, not -1"),
    ("train {rule_toml} --out {new}", 2, "model.h = 3 does not divide model.d_model = 100"),
    ("train {flat_toml} --out {new}", 2, "must be a section. Write [training]"),
    # train: text
    ("train {good_toml} --out {new}", 3, "No training text"),
    ("train --source {two} --target {two} --out {new}", 3, "2 distinct pairs: too few to hold out 20"),
    ("train --source {two} --target {two} --valid-target {two} --out {new}", 3, "No validation text"),
    ("train {files} --out {new} --set data.held_out=9", 2, "data.held_out = 9 cannot be combined with other"),
    ("train --source {nowhere} --target {two} --out {new}", 3, "does not exist"),
    ("train --source {two} --out {new} --valid-source {two} --valid-target {two}", 3, "1 source and 0 target"),
    (
        "train --source {nowhere} --target {two} --valid-source {two} --valid-target {two} --out {new}",
        3,
        "does not exist",
    ),
    ("train --source {folder} --target {two} --valid-source {two} --valid-target {two} --out {new}", 3, "directory"),
    ("train --source {two} --target {three} --valid-source {two} --valid-target {two} --out {new}", 3, "2 lines"),
    (
        "train --source {utf16} --target {two} --valid-source {two} --valid-target {two} --out {new}",
        3,
        "is UTF-16, not",
    ),
    ("train --source {latin1} --target {two} --valid-source {two} --valid-target {two} --out {new}", 3, "latin1:2"),
    ("train --source {empty} --target {empty} --valid-source {two} --valid-target {two} --out {new}", 3, "empty"),
    (
        "train --source {two} --target {two} --valid-source {two} --valid-target {nowhere} --out {new}",
        3,
        "does not exist",
    ),
    ("train {files} --out {new} --set data.tokenizer={two}", 3, "is not a SentencePiece model"),
    ("train {files} --out {new} --set data.tokenizer={nowhere}", 3, "Cannot read the tokenizer"),
    ("train {files} --out {new} --set data.vocab_size=262", 3, "data.vocab_size = 262 is too small"),
    ("train {files} --out {new} --init {nowhere}", 3, "is not a model directory"),
    ("train {files} --out {new} --init {damaged}", 3, "is damaged"),
    ("train {files} --out {new} --init {model} --set model.N=4", 2, "model.N = 4, but the `--init` model has 1"),
    # translate
    ("translate", 2, "Missing arguments: `MODEL`"),
    ("translate {model} --n-bset 2", 2, 'Did you mean "--n-best"'),
    ("translate {nowhere}", 3, "is not a model directory"),
    ("translate {two}", 3, "is not a model directory"),
    ("translate {folder}", 3, "MANIFEST.json is missing"),
    ("translate {damaged}", 3, "is damaged"),
    ("translate {model} --input {nowhere}", 3, "does not exist"),
    ("translate {model} --input {folder}", 3, "is a directory"),
    ("translate {model} --input {utf16}", 3, "utf16 is UTF-16, not UTF-8. Convert it: iconv -f UTF-16 -t UTF-8 "),
    ("translate {model} --input {latin1}", 3, "latin1:2: not UTF-8"),
    ("translate {model} --input {two} --beam x", 2, 'must be an integer, not "x"'),
    ("translate {model} --input {two} --beam 0", 2, "at least 1"),
    ("translate {model} --input {two} --beam -4", 2, "at least 1"),
    ("translate {model} --input {two} --alpha -1", 2, "alpha"),
    ("translate {model} --input {two} --alpha nan", 2, "must be a finite number"),
    ("translate {model} --input {two} --n-best 0", 2, "at least 1, not 0"),
    ("translate {model} --input {two} --n-best 5", 2, "n-best = 5 is larger than beam = 4"),
    ("translate {model} --input {two} --format xml", 2, 'not "xml"'),
    ("translate {model} --input {two} --output {nowhere}/x", 2, "does not exist. Create it first"),
    ("translate {model} --input {two} --output {folder}", 2, 'folder" is not a file. Choose a file name'),
    ("translate {model} --input {two} --output {two}/below", 2, "does not exist. Create it first"),
    ("translate {model} --input {two} --output {folder}/{long}", 3, "file name too long"),
    ("translate {model} --checkpoint newest", 2, 'not "newest"'),
    ("translate {model} --input {two} --checkpoint best", 2, "is a model, not a run"),
    ("translate {model} {model}", 2, "Unknown argument"),
    # compare
    ("compare {two}", 2, "Missing arguments: `MODEL_B`, `--reference`"),
    ("compare {two} {two} --source {two}", 2, "--reference"),
    ("compare {two} {nowhere} --reference {two}", 3, "does not exist. Pass a model or run directory, or a file"),
    ("compare {two} {model} --reference {two}", 2, "needs source text to translate. Pass it with `--source`"),
    ("compare {two} {three} --reference {two}", 3, "has 3 lines, but there are 2 references"),
    ("compare {two} {two} --source {three} --reference {two}", 3, "differ in length"),
    ("compare {two} {folder} --source {two} --reference {two}", 3, "MANIFEST.json is missing"),
    ("compare {two} {damaged} --source {two} --reference {two}", 3, "is damaged"),
    ("compare {two} {latin1} --reference {two}", 3, "not UTF-8"),
    ("compare {two} {two} --reference {empty}", 3, "is empty"),
    ("compare {two} {two} --reference {tokens}", 3, "seems to be split into subwords"),
    ("compare {two} {two} --reference {two} --out {new}/x.pdf", 2, "must end in .html"),
    ("compare {two} {two} --reference {two} --out {nowhere}/x.html", 2, "nowhere does not exist. Create it first"),
    ("compare {two} {two} --reference {two} --out {new}.html --json", 2, "`--out` and `--json` cannot be combined"),
    # evaluate
    ("evaluate {model}", 2, "`--source`, `--reference`"),
    ("evaluate {model} --source {two} --reference {two} --tokenise none", 2, 'Did you mean "--tokenize"'),
    ("evaluate {model} --source {two} --reference {three}", 3, "2 lines"),
    ("evaluate {model} --source {nowhere} --reference {two}", 3, "does not exist"),
    ("evaluate {model} --source {two} --reference {folder}", 3, "is a directory"),
    ("evaluate {model} --source {empty} --reference {empty}", 3, "are empty"),
    ("evaluate {model} --source {latin1} --reference {two}", 3, "not UTF-8"),
    ("evaluate {model} --source {two} --reference {tokens}", 3, "seems to be split into subwords"),
    ("evaluate {model} --source {two} --reference {two} --tokenize zh", 2, 'not "zh"'),
    ("evaluate {model} --source {two} --reference {two} --beam 0", 2, "at least 1"),
    ("evaluate {model} --source {two} --reference {two} --output {nowhere}/x", 2, "does not exist. Create it first"),
    ("evaluate {nowhere} --source {two} --reference {two}", 3, "is not a model directory"),
    ("evaluate {damaged} --source {two} --reference {two}", 3, "is damaged"),
    ("evaluate {model} --source {two} --reference {gold} --tree", 2, 'Did you mean "--trees"'),
    (
        "evaluate {model} --source {two} --reference {gold} --trees --lowercase",
        2,
        "apply only to translations. Omit them with `--trees`",
    ),
    (
        "evaluate {model} --source {two} --reference {gold} --trees --tokenize none",
        2,
        "apply only to translations. Omit them with `--trees`",
    ),
    ("evaluate {model} --source {two} --reference {two} --trees", 3, 'two:1: "a" is outside any bracket'),
    ("evaluate {model} --source {two} --reference {unclosed} --trees", 3, "unclosed:2: this tree is not closed"),
    ("evaluate {model} --source {three} --reference {gold} --trees", 3, "3 sentences but 2 trees"),
    ("evaluate {model} --source {tokens} --reference {gold} --trees", 3, "Line 1: the sentence"),
    ("evaluate {model} --source {empty} --reference {empty} --trees", 3, "there are no sentences and no trees"),
    ("evaluate {model} --source {two} --reference {nowhere} --trees", 3, "does not exist"),
    (
        "evaluate {model} --source {two} --reference {gold} --trees --output {nowhere}/x",
        2,
        "does not exist. Create it first",
    ),
    ("evaluate {damaged} --source {two} --reference {gold} --trees", 3, "is damaged"),
    # treebank
    ("treebank", 2, "Missing arguments: `TREEBANK`, `--out`"),
    ("treebank {trees}", 2, "Missing arguments: `--out`"),
    ("treebank {trees} --uot {new}", 2, "Missing arguments: `--out`"),
    ("treebank {trees} --out {new} --uot {new}", 2, 'Did you mean "--out"'),
    ("treebank {nowhere} --out {new}", 3, "does not exist"),
    ("treebank {two} --out {new}", 3, "does not exist"),
    ("treebank {folder} --out {new}", 3, "0 .mrg files found"),
    ("treebank {badtrees} --out {new}", 3, "1.mrg:1: this tree is not closed"),
    ("treebank {trees} --out {two}", 2, "heedful replaces only directories that it wrote"),
    ("treebank {trees} --out {model}", 2, "is one of the files that heedful wrote in"),
    ("treebank {trees} --out {trees}", 2, "heedful replaces only directories that it wrote"),
    ("treebank {trees} --out {two}/below", 2, "Cannot write"),
    ("treebank {trees} --out {folder}/{long}", 3, "file name too long"),
    # score
    ("score {model} --source {two}", 2, "Missing arguments: `--target`"),
    ("score {model} --source {two} --traget {two} --target {two}", 2, 'Did you mean "--target"'),
    ("score {model} --source {two} --target {three}", 3, "2 lines"),
    ("score {model} --source {two} --target {nowhere}", 3, "does not exist"),
    ("score {model} --source {empty} --target {empty}", 3, "are empty"),
    ("score {model} --source {two} --target {latin1}", 3, "latin1:2"),
    ("score {nowhere} --source {two} --target {two}", 3, "is not a model directory"),
    ("score {damaged} --source {two} --target {two}", 3, "is damaged"),
    # average
    ("average {run}", 2, "Missing arguments: `--last`, `--out`"),
    ("average {run} --lst 2 --last 2 --out {new}", 2, 'Did you mean "--last"'),
    ("average {run} --last two --out {new}", 2, 'must be an integer, not "two"'),
    ("average {run} --last 0 --out {new}", 2, "at least 1, not 0"),
    ("average {run} --last -2 --out {new}", 2, "at least 1, not -2"),
    ("average {run} --last 4 --out {new}", 3, "3 valid checkpoints, fewer than `--last 4`"),
    ("average {model} --last 1 --out {new}", 3, "is not a run"),
    ("average {nowhere} --last 1 --out {new}", 3, "is not a run"),
    ("average {two} --last 1 --out {new}", 3, "is not a run"),
    ("average {run} --last 1 --out {two}", 2, "heedful replaces only directories that it wrote"),
    ("average {run} --last 1 --out {trees}", 2, "heedful replaces only directories that it wrote"),
    ("average {run} --last 1 --out {two}/below", 2, "Cannot write"),
    # info
    ("info", 2, "Pass either a model or run directory, or `--preset NAME`, not both"),
    ("info {model} --preset tiny", 2, "Pass either a model or run directory, or `--preset NAME`, not both"),
    ("info --prest tiny", 2, 'Did you mean "--preset"'),
    ("info --preset huge", 2, "Allowed: base, big, "),
    ("info {nowhere}", 3, "nowhere does not exist. Pass a model or run directory"),
    ("info {two}", 3, "two is a file. Pass a model or run directory"),
    ("info {folder}", 3, "folder is neither a model nor a run"),
    ("info {damaged}", 3, "is damaged"),
]


def assert_one_message(err: str, expected: str) -> None:
    message = err[err.rindex("heedful: ") :]
    assert expected in message
    assert message.count("\n") == 1
    assert err.count("heedful: ") == 1
    assert "Traceback" not in err


@pytest.mark.parametrize(("line", "code", "expected"), MISTAKES, ids=[line or "nothing" for line, *_ in MISTAKES])
def test_usage_error_gives_one_message(
    heedful: Program, places: dict[str, str], line: str, code: int, expected: str
) -> None:
    outcome = heedful(*line.format(**places).split(), stdin=b"a b\n")
    assert outcome.code == code, outcome.err
    assert outcome.out == ""
    assert_one_message(outcome.err, expected)
    assert not Path(places["new"], "config.toml").exists()


def test_every_command_has_a_usage_error_case() -> None:
    assert sorted([*COMMANDS, *TESTED_ELSEWHERE]) == sorted(build_parser()[1])
    for command in COMMANDS:
        codes = {code for line, code, _ in MISTAKES if line.split()[:1] == [command]}
        assert codes == {2, 3}, command


@pytest.mark.parametrize("stdin", [b"ok\n\xff\n", b"\xc3\n"])
def test_standard_input_that_is_not_utf8(heedful: Program, model: Path, stdin: bytes) -> None:
    outcome = heedful("translate", model, stdin=stdin)
    assert (outcome.code, outcome.out) == (3, "")
    assert_one_message(outcome.err, "standard input:")


def test_failed_output_keeps_the_old_file(heedful: Program, model: Path, tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(b"a\n\xff\n")
    (tmp_path / "result").write_text("before")
    outcome = heedful("translate", model, "--input", tmp_path / "bad", "--output", tmp_path / "result")
    assert outcome.code == 3
    assert (tmp_path / "result").read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad", "result"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_directory(heedful: Program, model: Path, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a\n")
    (tmp_path / "locked").mkdir(mode=0o500)
    outcome = heedful("translate", model, "--input", tmp_path / "a", "--output", tmp_path / "locked" / "x")
    assert (outcome.code, outcome.out) == (2, "")
    assert_one_message(outcome.err, "permission denied")


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def process() -> Run:
    """Run the program in a subprocess."""

    def call(*arguments: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "heedful", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]

    return call


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (("trnslate", "x"), 2, 'Did you mean "translate"'),
        (("train", "nowhere.toml"), 2, "does not exist. Check the path"),
        (("translate", "nowhere"), 3, "is not a model directory"),
    ],
)
def test_usage_error_in_a_subprocess(
    process: Run, tmp_path: Path, arguments: tuple[str, ...], code: int, expected: str
) -> None:
    done = process(*arguments, cwd=tmp_path, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (code, "")
    assert_one_message(done.stderr, expected)


def test_closed_pipe_is_not_an_error(model: Path, tmp_path: Path) -> None:
    (tmp_path / "many").write_text("a\n" * 2_500)
    program = f"'{sys.executable}' -m heedful translate '{model}' --beam 1 --input '{tmp_path / 'many'}' | head -n 1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("train", "--help"), ("translate", "--help")])
def test_help_and_version_do_not_import_torch(arguments: tuple[str, ...]) -> None:
    program = (
        "import sys\nfrom heedful.cli.main import main\n"
        "try:\n main(sys.argv[1:])\nexcept SystemExit as left:\n assert not left.code\n"
        "heavy = {'torch', 'numpy', 'sentencepiece', 'sacrebleu', 'safetensors'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "heedful" in done.stdout


def test_help_takes_under_three_tenths_of_a_second_of_cpu() -> None:
    command = [sys.executable, "-m", "heedful", "--help"]
    seconds = []
    for _ in range(5):  # the first compiles the bytecode; the machine may be busy
        child = os.posix_spawn(
            sys.executable, command, os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
        )
        _, status, usage = os.wait4(child, 0)
        assert status == 0
        seconds.append(usage.ru_utime + usage.ru_stime)
    assert min(seconds) < 0.3, seconds


def test_help_lists_every_command(heedful: Program) -> None:
    outcome = heedful("--help")
    assert outcome.code == 0
    assert outcome.err == ""
    for command in COMMANDS:
        assert f"  {command} " in outcome.out


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["demo", "--out", ""], "--out"),
        (["train", "--source", "a.en", "--target", "a.de", "--out", ""], "--out"),
        (["train", "--source", "", "--target", "a.de", "--out", "run"], "--source"),
        (["train", ""], "RECIPE.toml"),
        (["translate", ""], "MODEL"),
        (["translate", "model", "--output", ""], "--output"),
        (["export", "model", "--to", "marian", "--out", ""], "--out"),
        (["serve", "model", ""], "MODEL"),
        (["info", ""], "PATH"),
    ],
)
def test_an_empty_path_is_not_the_current_directory(
    arguments: list[str], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert capsys.readouterr() == ("", f'heedful: {name} is empty (""). Pass a value.\n')
    assert not list(tmp_path.iterdir())
