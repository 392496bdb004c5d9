"""The options of `heedful prepare`, some of which `heedful train` shares."""

from __future__ import annotations

from typing import Any


def text_options(parser: Any, group: Any = None) -> None:
    """Declare the files of a corpus besides --source."""
    parser.add_argument("--target", group=group, nargs="+", metavar="FILE", help="training text, target side")
    parser.add_argument(
        "--valid-source",
        group=group,
        nargs="+",
        metavar="FILE",
        help="validation text, source side (default: part of the training text)",
    )
    parser.add_argument("--valid-target", group=group, nargs="+", metavar="FILE", help="validation text, target side")


def prepare_options(parser: Any) -> None:
    parser.add_argument(
        "--source",
        required=True,
        nargs="+",
        metavar="FILE",
        help="training text, source side; or files with both sides",
    )
    text_options(parser)
    parser.add_argument(
        "--exclude",
        nargs="+",
        default=[],
        metavar="FILE",
        help="text whose lines are dropped from the corpus, such as a test set",
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="directory for the prepared corpus")
    parser.add_argument("--report", metavar="page.html", help="write counts and examples per rule to an HTML page")
    parser.add_argument(
        "--processes", type=int, metavar="N", help="processes that clean and tokenize (default: one per core)"
    )
    parser.add_argument("--shard", metavar="I/N", help="prepare part I of N, for a Slurm job array (default: 1/1, all)")
    parser.add_argument("--skip", nargs="+", default=[], metavar="RULE", help="cleaning rules to skip, such as copied")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="data.KEY=VALUE",
        help="override a recipe key of [data], such as data.tokenizer; repeatable",
    )
