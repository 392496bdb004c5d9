"""The `heedful` command: parse, call, print. Only results go to stdout.

Each command has its own module, imported when called, so --help does not import torch.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from heedful.allocator import keep_memory
from heedful.cli.argument_types import finite_number, whole_number
from heedful.cli.openmp import set_spin_count
from heedful.errors import HeedfulError, InputError, MachineError, UsageError, is_out_of_memory, nearest
from heedful.files import DISK_ERRORS
from heedful.version import __version__

_MODEL_HELP = "a model directory, or a run"
_LENGTH_PENALTY = "length penalty: log P(Y|X) is divided by ((5 + |Y|) / 6)^ALPHA (default: the model's, 0.6)"


class _Parser(argparse.ArgumentParser):
    """Errors become UsageError: one message, exit code 2."""

    def error(self, message: str) -> NoReturn:
        message = message.removeprefix("argument ").replace("the following arguments are required", "Missing")
        raise UsageError(f"{message}. See {self.prog} --help.")


def build_parser() -> tuple[_Parser, dict[str, _Parser]]:
    """The program's parser, and each command's by name."""
    summary = "The Transformer of 'Attention Is All You Need': train a translator from two text files, and use it."
    parser = _Parser(prog="heedful", description=summary, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"heedful {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    declare = {
        "demo": (_demo_options, "run the whole workflow on the built-in language pair, in minutes"),
        "train": (
            _train_options,
            "train from a recipe or from text files; the same command resumes a run",
        ),
        "translate": (_translate_options, "translate lines of text"),
        "evaluate": (_evaluate_options, "translate and score with BLEU and chrF, or parse and score with F1"),
        "compare": (_compare_options, "compare two models, or two files of translations, with significance tests"),
        "score": (_score_options, "print the log-probability of given translations"),
        "average": (_average_options, "average the newest checkpoints of a run"),
        "attend": (_attend_options, "show what every head attends to"),
        "serve": (_serve_options, "serve a LibreTranslate-compatible HTTP API and a web page"),
        "export": (_export_options, "write a model in the format of another tool"),
        "import": (_import_options, "read a model of another tool's format"),
        "lab": (_lab_options, "list or run the experiments behind the paper's claims"),
        "info": (_info_options, "describe a model, run or preset"),
        "treebank": (_treebank_options, "convert a treebank into training text for a parser"),
    }
    parsers = {}
    for name, (options, summary) in declare.items():
        parsers[name] = commands.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        options(parsers[name])
    return parser, parsers


def _demo_options(parser: _Parser) -> None:
    parser.add_argument("--out", default="runs/demo", metavar="RUN", help="the run's directory (default: runs/demo)")


def _train_options(parser: _Parser) -> None:
    parser.add_argument(
        "recipe", nargs="?", metavar="RECIPE.toml", help="a recipe; or pass text files with --source and --target"
    )
    files = parser.add_argument_group("text files instead of a recipe (plain, .gz, or .tsv with both sides)")
    files.add_argument("--source", nargs="+", metavar="F", help="training text, source side (or .tsv)")
    files.add_argument("--target", nargs="+", metavar="F", help="training text, target side")
    files.add_argument("--valid-source", nargs="+", metavar="F", help="validation text (default: a held-out part)")
    files.add_argument("--valid-target", nargs="+", metavar="F", help="validation text, target side")
    parser.add_argument("--out", metavar="RUN", help="the run's directory (default: runs/ and the recipe's name)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="SECTION.KEY=VALUE",
        help="override a key of the recipe; may be repeated",
    )
    parser.add_argument("--preset", metavar="NAME", help="a model shape: tiny, small, base, big, or a row of Table 3")
    parser.add_argument("--init", metavar="MODEL", help="fine-tune this model, with its tokenizer")
    parser.add_argument("--data-root", metavar="DIR", help="folder that contains data/ (default: the recipe's folder)")
    parser.add_argument(
        "--dry-run", action="store_true", help="print the FLOPs, memory and time that training needs, and stop"
    )
    _device_option(parser)


def _translate_options(parser: _Parser) -> None:
    _model_options(parser)
    parser.add_argument("--input", metavar="F", help="text to translate, one line each (default: standard input)")
    parser.add_argument("--output", metavar="F", help="where to write (default: standard output)")
    _search_options(parser)
    _engine_option(parser)
    parser.add_argument("--n-best", type=whole_number, metavar="K", help="K lines per source: number, score and text")
    parser.add_argument("--scores", action="store_true", help="write score<TAB>text")
    parser.add_argument("--format", choices=("text", "jsonl"), default="text", help="default: text")


def _evaluate_options(parser: _Parser) -> None:
    _model_options(parser)
    parser.add_argument("--source", required=True, metavar="F", help="raw source text")
    parser.add_argument("--reference", required=True, metavar="F", help="its raw translation; with --trees, its trees")
    _scoring_options(parser)
    parser.add_argument("--trees", action="store_true", help="the model parses: score labelled brackets as evalb does")
    parser.add_argument("--output", metavar="F", help="also write the translations, or the trees, here")
    parser.add_argument("--json", action="store_true", help="print JSON")
    _search_options(parser)


def _compare_options(parser: _Parser) -> None:
    for name in ("a", "b"):
        parser.add_argument(name, metavar=f"MODEL_{name.upper()}", help=f"{_MODEL_HELP}; or a file of translations")
    parser.add_argument("--source", metavar="F", help="raw source text; not needed for two files of translations")
    parser.add_argument("--reference", required=True, metavar="F", help="its raw translation")
    _scoring_options(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--out", metavar="page.html", help="write a page instead")


def _score_options(parser: _Parser) -> None:
    _model_options(parser)
    parser.add_argument("--source", required=True, metavar="F", help="source text, one line per pair")
    parser.add_argument("--target", required=True, metavar="F", help="the translations to score")


def _average_options(parser: _Parser) -> None:
    parser.add_argument("run", metavar="RUN", help="a run directory")
    parser.add_argument("--last", type=whole_number, required=True, metavar="K", help="number of checkpoints")
    parser.add_argument("--out", required=True, metavar="MODEL", help="the new model's directory")


def _attend_options(parser: _Parser) -> None:
    parser.add_argument("model", metavar="MODEL", help=_MODEL_HELP)
    parser.add_argument("text", metavar="TEXT", help="one or more sentences to translate")
    parser.add_argument("--target", metavar="TEXT", help="its translation (default: the model's own)")
    parser.add_argument("--sentence", type=int, metavar="N", help="only the N-th sentence of TEXT (default: all)")
    parser.add_argument("--out", required=True, metavar="F", help="page.html, figure.png, figure.svg or data.json")


def _serve_options(parser: _Parser) -> None:
    parser.add_argument(
        "models",
        nargs="+",
        metavar="MODEL",
        help=f"{_MODEL_HELP}; several for several pairs; MODEL:en:fr names its languages",
    )
    parser.add_argument("--host", default="127.0.0.1", help="0.0.0.0: for other machines too (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=5000, help="0: any that is free (default: 5000)")
    _engine_option(parser)
    _precision_option(parser)
    access = parser.add_argument_group("access (SECURITY.md has the defaults)")
    for name, metavar, text in (
        ("--allowed-host", "NAME", "accept this name in the Host header, for example behind a proxy; repeatable"),
        ("--cors-origin", "ORIGIN", "let pages of this site use the API (https://example.org); repeatable"),
        ("--trusted-proxy", "ADDRESS", "believe X-Forwarded-For from this address or network; repeatable"),
        (
            "--limit",
            "NAME=VALUE",
            "change a limit, such as body=2000000; repeatable (docs/how-to/serving.md has the list)",
        ),
    ):
        access.add_argument(name, action="append", default=[], metavar=metavar, help=text)
    access.add_argument("--api-keys", metavar="FILE", help="require an API key of this file, one key per line")
    access.add_argument(
        "--rate-limit", type=int, metavar="N", help="requests per minute and client (default: no limit)"
    )
    parser.add_argument(
        "--suggestions", metavar="FILE", help="append translations that users suggest to this file, as JSON lines"
    )


def _export_options(parser: _Parser) -> None:
    parser.add_argument("model", metavar="MODEL", help=_MODEL_HELP)
    parser.add_argument("--to", required=True, choices=("ctranslate2", "argos", "marian"), help="the tool")
    parser.add_argument("--out", required=True, metavar="PATH", help="a directory; for argos a file, NAME.argosmodel")
    parser.add_argument(
        "--quantization",
        choices=("int8", "int8_float32", "int16", "float16", "bfloat16"),
        help="of CTranslate2's weights (default: none, float32)",
    )
    parser.add_argument(
        "--languages", nargs=2, metavar="CODE", help="source and target, instead of the model's own (en de)"
    )


def _import_options(parser: _Parser) -> None:
    parser.add_argument("path", metavar="PATH", help="a model directory written by the other tool")
    parser.add_argument("--from", required=True, choices=("marian",), help="the tool")
    parser.add_argument("--out", required=True, metavar="MODEL", help="the new model's directory")


def _lab_options(parser: _Parser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="an experiment, or all (default: list them)")
    parser.add_argument("--out", default="runs/lab", metavar="DIR", help="where reports go (default: runs/lab)")
    parser.add_argument("--quick", action="store_true", help="a few steps, to check that it runs")


def _info_options(parser: _Parser) -> None:
    parser.add_argument("path", nargs="?", metavar="PATH", help=_MODEL_HELP)
    parser.add_argument("--preset", metavar="NAME", help="a preset instead: tiny, small, base, big, table3-…")
    parser.add_argument("--out", metavar="page.html", help="write a page with the run's curves instead")
    parser.add_argument("--json", action="store_true", help="print everything that is known, as JSON")


def _treebank_options(parser: _Parser) -> None:
    parser.add_argument("treebank", metavar="DIR", help="folder with the treebank's .mrg files")
    parser.add_argument(
        "--out", required=True, metavar="DIR", help="folder for train, valid and test .words, .trees and .gold"
    )


def _model_options(parser: _Parser) -> None:
    parser.add_argument("model", metavar="MODEL", help=_MODEL_HELP)
    parser.add_argument(
        "--checkpoint", choices=("averaged", "best", "last"), help="which model of a run (default: averaged)"
    )
    _device_option(parser)


def _scoring_options(parser: _Parser) -> None:
    parser.add_argument("--tokenize", choices=("13a", "none"), default="13a", help="BLEU's tokenization (default: 13a)")
    parser.add_argument("--lowercase", action="store_true", help="score without regard to case")


def _search_options(parser: _Parser) -> None:
    text = "hypotheses kept (default: the model's, 4); 1 is greedy"
    parser.add_argument("--beam", type=whole_number, metavar="W", help=text)
    parser.add_argument("--alpha", type=finite_number, metavar="ALPHA", help=_LENGTH_PENALTY)
    _precision_option(parser)


def _precision_option(parser: _Parser) -> None:
    text = "of matrix products; bf16 and int8 are faster where the processor has them (default: fp32)"
    parser.add_argument("--precision", choices=("fp32", "bf16", "int8"), default="fp32", help=text)


def _engine_option(parser: _Parser) -> None:
    text = "heedful's own search or CTranslate2 (default: auto, the faster one)"
    parser.add_argument("--engine", choices=("auto", "heedful", "ctranslate2"), default="auto", help=text)


def _device_option(parser: _Parser) -> None:
    text = "device to compute on (default: auto)"
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help=text)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser, parsers = build_parser()
    if arguments and not arguments[0].startswith("-") and arguments[0] not in parsers:
        raise UsageError(f'Unknown command "{arguments[0]}".{nearest(arguments[0], parsers)}')
    _require_equals_sign(arguments)
    parsed, unknown = parser.parse_known_args(arguments)
    if parsed.command is None and unknown:
        raise UsageError(f'Unknown option "{unknown[0]}".{nearest(unknown[0], ("--help", "--version"))}')
    if parsed.command is None:
        raise UsageError("No command given. Run `heedful --help` for the list.")
    if unknown:
        options = [option for action in parsers[parsed.command].declared for option in action.option_strings]
        hint = nearest(unknown[0].partition("=")[0], options) if unknown[0].startswith("-") else ""
        raise UsageError(f'Unknown argument "{unknown[0]}".{hint} See heedful {parsed.command} --help.')
    return parsed


def _require_equals_sign(arguments: Sequence[str]) -> None:
    """Raise for `--set training.steps 5`, in which argparse would take 5 for a recipe."""
    for option, name, value in zip(arguments, arguments[1:], arguments[2:], strict=False):
        if option == "--set" and "=" not in name and not value.startswith("-"):
            raise UsageError(f"--set {name} has no value. Write --set {name}={value}.")


def run(parsed: argparse.Namespace) -> None:
    set_spin_count(parsed.command, os.environ)
    if parsed.command == "demo":
        from heedful.cli.demo import demo as command
    elif parsed.command == "train":
        from heedful.cli.train import train as command
    elif parsed.command == "translate":
        from heedful.cli.translate import translate as command
    elif parsed.command == "evaluate":
        from heedful.cli.evaluate import evaluate as command
    elif parsed.command == "compare":
        from heedful.cli.compare import compare as command
    elif parsed.command == "score":
        from heedful.cli.score import score as command
    elif parsed.command == "average":
        from heedful.cli.average import average as command
    elif parsed.command == "attend":
        from heedful.cli.attend import attend as command
    elif parsed.command == "serve":
        from heedful.cli.serve import serve as command
    elif parsed.command == "export":
        from heedful.cli.export import export as command
    elif parsed.command == "import":
        from heedful.cli.export import import_model as command
    elif parsed.command == "lab":
        from heedful.cli.lab import lab as command
    elif parsed.command == "treebank":
        from heedful.cli.treebank import treebank as command
    else:
        from heedful.cli.info import info as command
    command(parsed)


def main(arguments: Sequence[str] | None = None) -> int:
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING, stream=sys.stderr)
    # File names that are not UTF-8 are printed unchanged.
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape", newline="\n")  # type: ignore[union-attr]
    keep_memory()
    try:
        run(parse(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
    except HeedfulError as error:
        return _say(str(error), error.exit_code)
    except KeyboardInterrupt:
        if sys.stderr.isatty():  # start the shell prompt on a new line
            print(file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader closed the pipe (`heedful translate … | head`): not an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        # An invalid path (too long, no permission) or a full disk.
        code = MachineError.exit_code if error.errno in DISK_ERRORS else InputError.exit_code
        return _say(f"{error.filename or 'output'}: {error.strerror or error}.", code)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        return _say(
            "Out of memory. Lower the beam or decoding.batch_tokens, or split the input.", MachineError.exit_code
        )
    return 0


def _say(message: str, exit_code: int) -> int:
    with suppress(OSError, ValueError):  # nobody reads stderr any more: the exit code still says it
        print(f"heedful: {message}", file=sys.stderr, flush=True)
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
