"""`heedful`: parse → call → print. Results go to stdout and nothing else does.

The options are declared here, all of them; what a command does is in its own file, imported when it is called, so
that --help does not wait for torch.
"""

from __future__ import annotations

import argparse
import logging
import math
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from heedful.errors import HeedfulError, InputError, MachineError, UsageError, is_out_of_memory, nearest
from heedful.files import DISK_ERRORS
from heedful.version import __version__

_MODEL_HELP = "a model directory, or a run"
_LENGTH_PENALTY = "length penalty: log P(Y|X) is divided by ((5 + |Y|) / 6)^ALPHA (default: the model's, 0.6)"


class _Parser(argparse.ArgumentParser):
    """Errors become UsageError: one message, exit code 2."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}. See {self.prog} --help.")


def build_parser() -> tuple[_Parser, dict[str, _Parser]]:
    """The program's parser, and each command's by name."""
    summary = "The Transformer of 'Attention Is All You Need': train a translator from two text files, and use it."
    parser = _Parser(prog="heedful", description=summary, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"heedful {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    declare = {
        "demo": (_demo_options, "the whole road on the built-in language pair, in minutes"),
        "train": (
            _train_options,
            "train by a recipe, or on two text files; the same command continues a run",
        ),
        "translate": (_translate_options, "translate lines of text"),
        "evaluate": (_evaluate_options, "translate and score with BLEU and chrF, or parse and score with F1"),
        "score": (_score_options, "log-probability of given translations"),
        "average": (_average_options, "average the newest checkpoints of a run"),
        "attend": (_attend_options, "show what every head attends to"),
        "serve": (_serve_options, "translate over HTTP: the API of LibreTranslate, and a page"),
        "export": (_export_options, "write a model in the format of another tool"),
        "import": (_import_options, "read a model of another tool's format"),
        "lab": (_lab_options, "list, or run, the experiments behind the paper's claims"),
        "info": (_info_options, "what a model, run or preset is"),
        "treebank": (_treebank_options, "make text to train a parser on from bracketed trees"),
    }
    parsers = {}
    for name, (options, summary) in declare.items():
        parsers[name] = commands.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        options(parsers[name])
    return parser, parsers


def _demo_options(parser: _Parser) -> None:
    parser.add_argument("--out", default="runs/demo", metavar="RUN", help="the run's directory (default: runs/demo)")


def _train_options(parser: _Parser) -> None:
    parser.add_argument("recipe", nargs="?", metavar="RECIPE.toml", help="a recipe; or give the four files below")
    files = parser.add_argument_group("text, where there is no recipe (plain, .gz, or .tsv with both sides)")
    files.add_argument("--source", nargs="+", metavar="F", help="training text, source side (or .tsv)")
    files.add_argument("--target", nargs="+", metavar="F", help="training text, target side")
    files.add_argument("--valid-source", nargs="+", metavar="F", help="validation text, source side (or .tsv)")
    files.add_argument("--valid-target", nargs="+", metavar="F", help="validation text, target side")
    parser.add_argument("--out", metavar="RUN", help="the run's directory (default: runs/ and the recipe's name)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="SECTION.KEY=VALUE",
        help="overrides a key of the recipe",
    )
    parser.add_argument("--preset", metavar="NAME", help="a model shape: tiny, small, base, big, or a row of Table 3")
    parser.add_argument("--init", metavar="MODEL", help="fine-tune this model, with its tokenizer")
    parser.add_argument("--data-root", metavar="DIR", help="where a recipe's data lie (default: the recipe's folder)")
    parser.add_argument("--dry-run", action="store_true", help="only say what it would need: FLOPs, memory, time")
    _device_option(parser)


def _translate_options(parser: _Parser) -> None:
    _model_options(parser)
    parser.add_argument("--input", metavar="F", help="text to translate, a line each (default: standard input)")
    parser.add_argument("--output", metavar="F", help="where to write (default: standard output)")
    _search_options(parser)
    parser.add_argument("--n-best", type=int, metavar="K", help="K lines a source: its number (from 1), score and text")
    parser.add_argument("--scores", action="store_true", help="write score<TAB>text")
    parser.add_argument("--format", choices=("text", "jsonl"), default="text", help="default: text")


def _evaluate_options(parser: _Parser) -> None:
    _model_options(parser)
    parser.add_argument("--source", required=True, metavar="F", help="raw source text")
    parser.add_argument("--reference", required=True, metavar="F", help="its raw translation; with --trees, its trees")
    parser.add_argument("--tokenize", choices=("13a", "none"), default="13a", help="BLEU's tokenization (default: 13a)")
    parser.add_argument("--lowercase", action="store_true", help="score without regard to case")
    parser.add_argument("--trees", action="store_true", help="the model parses: score labelled brackets as evalb does")
    parser.add_argument("--output", metavar="F", help="also write the translations, or the trees, here")
    parser.add_argument("--json", action="store_true", help="print JSON")
    _search_options(parser)


def _score_options(parser: _Parser) -> None:
    _model_options(parser)
    parser.add_argument("--source", required=True, metavar="F")
    parser.add_argument("--target", required=True, metavar="F", help="the translations to score")


def _average_options(parser: _Parser) -> None:
    parser.add_argument("run", metavar="RUN", help="a run directory")
    parser.add_argument("--last", type=int, required=True, metavar="K", help="how many checkpoints")
    parser.add_argument("--out", required=True, metavar="MODEL", help="the new model's directory")


def _attend_options(parser: _Parser) -> None:
    parser.add_argument("model", metavar="MODEL", help=_MODEL_HELP)
    parser.add_argument("text", metavar="TEXT", help="a sentence to translate")
    parser.add_argument("--target", metavar="TEXT", help="its translation (default: the model's own)")
    parser.add_argument("--out", required=True, metavar="F", help="page.html, figure.png, figure.svg or data.json")


def _serve_options(parser: _Parser) -> None:
    parser.add_argument("models", nargs="+", metavar="MODEL", help=f"{_MODEL_HELP}; several for several pairs")
    parser.add_argument("--host", default="127.0.0.1", help="0.0.0.0: for other machines too (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=5000, help="0: any that is free (default: 5000)")
    parser.add_argument(
        "--engine", choices=("heedful", "ctranslate2"), default="heedful", help="who translates (default: heedful)"
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
        "--languages", nargs=2, metavar="CODE", help="source and target, where the model does not know them (en de)"
    )


def _import_options(parser: _Parser) -> None:
    parser.add_argument("path", metavar="PATH", help="a directory of the other tool's")
    parser.add_argument("--from", required=True, choices=("marian",), help="the tool")
    parser.add_argument("--out", required=True, metavar="MODEL", help="the new model's directory")


def _lab_options(parser: _Parser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="an experiment, or all (default: list them)")
    parser.add_argument("--out", default="runs/lab", metavar="DIR", help="where reports go (default: runs/lab)")
    parser.add_argument("--quick", action="store_true", help="to see that it runs: too little to judge by")


def _info_options(parser: _Parser) -> None:
    parser.add_argument("path", nargs="?", metavar="PATH", help=_MODEL_HELP)
    parser.add_argument("--preset", metavar="NAME", help="a preset instead: tiny, small, base, big, table3-…")
    parser.add_argument("--out", metavar="page.html", help="draw a run's curves instead of printing")


def _treebank_options(parser: _Parser) -> None:
    parser.add_argument("treebank", metavar="DIR", help="has the treebank's .mrg files, in folders or not")
    parser.add_argument("--out", required=True, metavar="DIR", help="gets train, valid and test .words, .trees, .gold")


def _model_options(parser: _Parser) -> None:
    parser.add_argument("model", metavar="MODEL", help=_MODEL_HELP)
    parser.add_argument(
        "--checkpoint", choices=("averaged", "best", "last"), help="which model of a run (default: averaged)"
    )
    _device_option(parser)


def _search_options(parser: _Parser) -> None:
    parser.add_argument("--beam", type=int, metavar="W", help="hypotheses kept (default: the model's, 4); 1 is greedy")
    parser.add_argument("--alpha", type=_finite, metavar="ALPHA", help=_LENGTH_PENALTY)
    parser.add_argument(
        "--int8", action="store_true", help="8-bit weights in the decoder, CPU only: less memory, sometimes faster"
    )


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"must be a finite number, not {text}")
    return value


def _device_option(parser: _Parser) -> None:
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="default: auto")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser, parsers = build_parser()
    if arguments and not arguments[0].startswith("-") and arguments[0] not in parsers:
        raise UsageError(f'There is no command "{arguments[0]}".{nearest(arguments[0], parsers)}')
    parsed, unknown = parser.parse_known_args(arguments)
    if parsed.command is None and unknown:
        raise UsageError(f'heedful does not take "{unknown[0]}".{nearest(unknown[0], ("--help", "--version"))}')
    if parsed.command is None:
        raise UsageError("Say what to do: a command is missing. See heedful --help.")
    if unknown:
        options = [option for action in parsers[parsed.command]._actions for option in action.option_strings]
        hint = nearest(unknown[0].partition("=")[0], options) if unknown[0].startswith("-") else ""
        raise UsageError(
            f'heedful {parsed.command} does not take "{unknown[0]}".{hint} See heedful {parsed.command} --help.'
        )
    return parsed


def run(parsed: argparse.Namespace) -> None:
    if parsed.command == "demo":
        from heedful.cli.demo import demo as command
    elif parsed.command == "train":
        from heedful.cli.train import train as command
    elif parsed.command == "translate":
        from heedful.cli.translate import translate as command
    elif parsed.command == "evaluate":
        from heedful.cli.evaluate import evaluate as command
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
    # A name of a file that is no UTF-8 is printed as it was given.
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape", newline="\n")  # type: ignore[union-attr]
    try:
        run(parse(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
    except HeedfulError as error:
        return _say(str(error), error.exit_code)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone (`heedful translate … | head`): not an error, but nothing more to say.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        # A name or a place that the system refuses (too long, no permission), or a full disk, wherever it was met.
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
    print(f"heedful: {message}", file=sys.stderr)
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
