"""The options of every command. Building the parsers does not import torch."""

from __future__ import annotations

import argparse
import math
import re
from typing import Any, NoReturn

from heedful.cli.prepare_options import prepare_options, text_options
from heedful.errors import UsageError
from heedful.version import __version__

_MODEL_HELP = "model or run directory"
_LENGTH_PENALTY = "length penalty: log P(Y|X) is divided by ((5 + |Y|) / 6)^ALPHA; CTranslate2 divides by |Y|^ALPHA"


class Parser(argparse.ArgumentParser):
    """Raises UsageError (one message, exit code 2), and lists its arguments in `declared`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.declared: list[argparse.Action] = []
        super().__init__(*args, **options)

    def add_argument(self, *names: str, group: Any = None, **options: Any) -> argparse.Action:
        action = group.add_argument(*names, **options) if group else super().add_argument(*names, **options)
        self.declared.append(action)
        return action

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print help or version. argparse would hide that they cannot be written."""
        print(message, end="", file=file)

    def error(self, message: str) -> NoReturn:
        if missing := message.partition("the following arguments are required: ")[2]:
            names = ", ".join(f"`{name}`" for name in missing.split(", "))
            raise UsageError(f"Missing arguments: {names}. Run `{self.prog} --help`.")
        message = re.sub(r"^argument (-[^\s:]+)", r"`\1`", message).removeprefix("argument ")
        message = re.sub(r"(\S+): invalid choice: '(.*)' \(choose from (.*)\)$", _choice_message, message, flags=re.S)
        message = message.replace(": must be", " must be", 1)
        raise UsageError(f"{message}. Run `{self.prog} --help`.")


def build_parser() -> tuple[Parser, dict[str, Parser]]:
    """Return the main parser, and the parser of each command by name."""
    summary = "Train, evaluate and deploy translation models with the Transformer from 'Attention Is All You Need'."
    usage = "heedful [-h] [--version] COMMAND ..."
    parser = Parser(prog="heedful", usage=usage, description=summary, allow_abbrev=False)
    parser.add_argument(
        "--version", action="version", version=f"heedful {__version__}", help="show the version and exit"
    )
    # The listed name is longer than the one in the usage, which keeps every summary on the line of its command.
    commands = parser.add_subparsers(dest="command", metavar="COMMAND ...", title="commands", prog="heedful")
    declare = {
        "demo": (_demo_options, "run the whole workflow on the built-in corpus in a few minutes"),
        "train": (_train_options, "train from a recipe or from text files, or resume a run"),
        "prepare": (prepare_options, "clean, deduplicate, tokenize and shard a corpus for training"),
        "translate": (_translate_options, "translate text line by line"),
        "evaluate": (_evaluate_options, "translate and score with BLEU and chrF, or parse and score with F1"),
        "compare": (_compare_options, "compare two models, or two files of translations, with significance tests"),
        "score": (_score_options, "print the log-probability of given translations"),
        "average": (_average_options, "average the newest checkpoints of a run"),
        "attend": (_attend_options, "show the attention of every head in every layer"),
        "serve": (_serve_options, "serve a LibreTranslate-compatible HTTP API and web app"),
        "export": (_export_options, "export a model to CTranslate2, Argos Translate or Hugging Face (MarianMT)"),
        "import": (_import_options, "import a Hugging Face MarianMT model"),
        "lab": (_lab_options, "list or run experiments that test the paper's claims"),
        "info": (_info_options, "describe a model, run or preset"),
        "treebank": (_treebank_options, "convert a treebank into training text for a parser"),
    }
    parsers = {}
    for name, (options, summary) in declare.items():
        parsers[name] = commands.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.", allow_abbrev=False
        )
        options(parsers[name])
    return parser, parsers


def _demo_options(parser: Parser) -> None:
    parser.add_argument("--out", default="runs/demo", metavar="RUN", help="run directory (default: runs/demo)")


def _train_options(parser: Parser) -> None:
    parser.add_argument(
        "recipe",
        nargs="?",
        metavar="RECIPE.toml",
        help="recipe; alternatively pass text files with --source and --target",
    )
    files = parser.add_argument_group("text files instead of a recipe (plain, .gz or .zst; or .tsv, .jsonl, .tmx)")
    source = "training text, source side; or files with both sides; or a directory that heedful prepare wrote"
    parser.add_argument("--source", group=files, nargs="+", metavar="FILE", help=source)
    text_options(parser, files)
    parser.add_argument("--out", metavar="RUN", help="run directory (default: runs/NAME for recipe NAME.toml)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="override a recipe key; repeatable"
    )
    parser.add_argument(
        "--preset",
        metavar="NAME",
        help="model shape: tiny, small, base, big, or a row of the paper's Table 3 (table3-…)",
    )
    parser.add_argument("--init", metavar="MODEL", help="model or run to fine-tune; its tokenizer is kept")
    parser.add_argument(
        "--data-root", metavar="DIR", help="base of relative paths in the recipe (default: the recipe's directory)"
    )
    parser.add_argument(
        "--time",
        metavar="T",
        help="time budget, such as 90s, 30m or 2h; heedful measures this machine and chooses settings that fit",
    )
    parser.add_argument("--dry-run", action="store_true", help="estimate FLOPs, memory and training time, then exit")
    _device_option(parser)


def _translate_options(parser: Parser) -> None:
    _model_options(parser)
    parser.add_argument("--input", metavar="FILE", help="text to translate (default: standard input)")
    parser.add_argument(
        "--output", metavar="FILE", help="output file; compressed if it ends in .gz (default: standard output)"
    )
    _search_options(parser)
    _engine_option(parser)
    parser.add_argument(
        "--n-best",
        type=_whole,
        metavar="K",
        help="print the K best translations per line, each with line number and score",
    )
    parser.add_argument("--scores", action="store_true", help="print the score and a tab before each translation")
    parser.add_argument("--format", choices=("text", "jsonl"), default="text", help="output format (default: text)")


def _evaluate_options(parser: Parser) -> None:
    _model_options(parser)
    parser.add_argument("--source", required=True, metavar="FILE", help="source text, not tokenized")
    parser.add_argument(
        "--reference",
        required=True,
        metavar="FILE",
        help="reference translations, not tokenized; with --trees, gold trees",
    )
    _scoring_options(parser)
    parser.add_argument("--trees", action="store_true", help="evaluate a parser: labelled F1 as computed by evalb")
    parser.add_argument("--output", metavar="FILE", help="also write the translations or trees to FILE")
    parser.add_argument("--json", action="store_true", help="print the scores as JSON")
    _search_options(parser)


def _compare_options(parser: Parser) -> None:
    for name in ("a", "b"):
        parser.add_argument(name, metavar=f"MODEL_{name.upper()}", help=f"{_MODEL_HELP}, or a file of translations")
    parser.add_argument(
        "--source", metavar="FILE", help="source text; optional if both systems are files of translations"
    )
    parser.add_argument("--reference", required=True, metavar="FILE", help="reference translations, not tokenized")
    _scoring_options(parser)
    parser.add_argument("--json", action="store_true", help="print the scores as JSON")
    parser.add_argument(
        "--out", metavar="page.html", help="write the comparison to an HTML page instead of the terminal"
    )


def _score_options(parser: Parser) -> None:
    _model_options(parser)
    parser.add_argument("--source", required=True, metavar="FILE", help="source text")
    parser.add_argument("--target", required=True, metavar="FILE", help="translations to score, one per source line")


def _average_options(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help="run directory")
    parser.add_argument("--last", type=_whole, required=True, metavar="K", help="number of checkpoints to average")
    parser.add_argument("--out", required=True, metavar="MODEL", help="directory for the new model")


def _attend_options(parser: Parser) -> None:
    parser.add_argument("model", metavar="MODEL", help=_MODEL_HELP)
    parser.add_argument("text", metavar="TEXT", help="one or more sentences to translate")
    parser.add_argument(
        "--target", metavar="TEXT", help="show the attention for this translation (default: the model's own)"
    )
    parser.add_argument("--sentence", type=_whole, metavar="N", help="show only sentence N of TEXT (default: all)")
    parser.add_argument(
        "--out", required=True, metavar="FILE", help="output file: page.html, figure.png, figure.svg or data.json"
    )


def _serve_options(parser: Parser) -> None:
    parser.add_argument(
        "models",
        nargs="+",
        metavar="MODEL",
        help=f"{_MODEL_HELP}, one per language pair; MODEL:en:fr overrides its languages",
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on; 0.0.0.0 accepts connections from other machines (default: 127.0.0.1)",
    )
    parser.add_argument(
        "--port", type=_whole, default=5000, help="port to listen on; 0 selects a free port (default: 5000)"
    )
    _engine_option(parser)
    _precision_option(parser)
    access = parser.add_argument_group("access control and limits (see SECURITY.md)")
    for name, metavar, text in (
        ("--allowed-host", "NAME", "accept this name in the Host header, e.g. behind a proxy; repeatable"),
        (
            "--cors-origin",
            "ORIGIN",
            "allow cross-origin requests from this origin, e.g. https://example.org, or * for all; repeatable",
        ),
        ("--trusted-proxy", "ADDRESS", "trust X-Forwarded-For from this address or network; repeatable"),
        (
            "--limit",
            "NAME=VALUE",
            "change a limit, e.g. body=2000000; repeatable (see docs/how-to/serving.md)",
        ),
    ):
        parser.add_argument(name, group=access, action="append", default=[], metavar=metavar, help=text)
    parser.add_argument(
        "--api-keys", group=access, metavar="FILE", help="require an API key from FILE, which lists one key per line"
    )
    access.add_argument(
        "--rate-limit", type=_whole, metavar="N", help="maximum requests per client per minute (default: no limit)"
    )
    parser.add_argument(
        "--suggestions", metavar="FILE", help="accept suggested translations and append them to FILE as JSON Lines"
    )


def _export_options(parser: Parser) -> None:
    parser.add_argument("model", metavar="MODEL", help=_MODEL_HELP)
    parser.add_argument("--to", required=True, choices=("ctranslate2", "argos", "marian"), help="export format")
    parser.add_argument(
        "--out", required=True, metavar="PATH", help="output directory; for argos, a file NAME.argosmodel"
    )
    parser.add_argument(
        "--quantization",
        choices=("int8", "int8_float32", "int16", "float16", "bfloat16"),
        help="data type of the exported weights (default: float32, not quantized)",
    )
    parser.add_argument(
        "--languages", nargs=2, metavar="CODE", help="source and target languages, e.g. en de (default: the model's)"
    )


def _import_options(parser: Parser) -> None:
    parser.add_argument("path", metavar="PATH", help="directory written by save_pretrained")
    parser.add_argument("--from", required=True, choices=("marian",), help="format of PATH")
    parser.add_argument("--out", required=True, metavar="MODEL", help="directory for the new model")


def _lab_options(parser: Parser) -> None:
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help='experiment to run, or "all" (default: list the experiments)'
    )
    parser.add_argument("--out", default="runs/lab", metavar="DIR", help="directory for reports (default: runs/lab)")
    parser.add_argument(
        "--quick", action="store_true", help="train for a few steps only, to check that the experiment runs"
    )


def _info_options(parser: Parser) -> None:
    parser.add_argument("path", nargs="?", metavar="PATH", help=_MODEL_HELP)
    parser.add_argument(
        "--preset", metavar="NAME", help="preset to describe: tiny, small, base, big, or a row of Table 3 (table3-…)"
    )
    parser.add_argument("--out", metavar="page.html", help="write the run's training curves to an HTML page")
    parser.add_argument("--json", action="store_true", help="print all details as JSON")


def _treebank_options(parser: Parser) -> None:
    parser.add_argument("treebank", metavar="TREEBANK", help="directory with the treebank's .mrg files")
    parser.add_argument(
        "--out",
        required=True,
        metavar="DIR",
        help="output directory for the .words, .trees and .gold files of each split",
    )


def _model_options(parser: Parser) -> None:
    parser.add_argument("model", metavar="MODEL", help=_MODEL_HELP)
    parser.add_argument(
        "--checkpoint", choices=("averaged", "best", "last"), help="which model of a run to use (default: averaged)"
    )
    _device_option(parser)


def _scoring_options(parser: Parser) -> None:
    parser.add_argument(
        "--tokenize", choices=("13a", "none"), default="13a", help="sacreBLEU tokenizer for BLEU (default: 13a)"
    )
    parser.add_argument("--lowercase", action="store_true", help="compute case-insensitive scores")


def _search_options(parser: Parser) -> None:
    parser.add_argument(
        "--beam", type=_whole, metavar="W", help="beam width; 1 is greedy search (default: the model's, usually 4)"
    )
    parser.add_argument("--alpha", type=_finite, metavar="ALPHA", help=_LENGTH_PENALTY)
    _precision_option(parser)


def _precision_option(parser: Parser) -> None:
    text = "precision of matrix multiplications; bf16 and int8 are faster on CPUs that support them (default: fp32)"
    parser.add_argument("--precision", choices=("fp32", "bf16", "int8"), default="fp32", help=text)


def _engine_option(parser: Parser) -> None:
    text = "decoding engine: heedful's own search or CTranslate2 (default: auto, the faster one)"
    parser.add_argument("--engine", choices=("auto", "heedful", "ctranslate2"), default="auto", help=text)


def _choice_message(found: re.Match[str]) -> str:
    return f'{found[1]} must be one of {found[3].replace(chr(39), "")}, not "{found[2]}"'


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f'must be an integer, not "{text}"') from None


def _finite(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f'must be a finite number, not "{text}"')
    return value


def _device_option(parser: Parser) -> None:
    parser.add_argument(
        "--device",
        choices=("auto", "cpu", "cuda", "mps"),
        default="auto",
        help="device to compute on (default: auto, a CUDA GPU if available; mps: Apple GPU, never tested)",
    )
