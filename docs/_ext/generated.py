"""Reference pages, written from the code each time the site is built.

A page has a line `<!-- generated: NAME -->` where the text of the function `NAME` goes. Nothing is stored, so nothing
can be out of date.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import io
import os
import re
import tokenize
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

import heedful
from heedful import config, errors, presets
from heedful.cli.parser import build_parser

MARK = re.compile(r"^<!-- generated: ([\w-]+)(?: ([\w-]+))? -->$", re.MULTILINE)


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def command_line() -> str:
    """A section per command: usage, then a table of its arguments and options."""
    _, commands = build_parser()
    return "\n\n".join(_command(name, parser) for name, parser in commands.items())


def _command(name: str, parser: argparse.ArgumentParser) -> str:
    summary = (parser.description or "").strip().rstrip(".")
    rows = [_option(action) for action in parser.declared if "--help" not in action.option_strings]
    return "\n\n".join(
        [
            f"## heedful {name}",
            f"{summary[:1].upper()}{summary[1:]}.",
            f"```text\n{_usage(parser)}\n```",
            table(("argument", "meaning"), rows),
        ]
    )


def _usage(parser: argparse.ArgumentParser) -> str:
    lines = parser.format_usage().rstrip().split("\n")
    return "\n".join(line[len("usage: ") :] for line in lines)


def _option(action: argparse.Action) -> tuple[str, str]:
    value = action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    shown = value if isinstance(value, str) else " ".join(value)
    if not action.option_strings:
        written = shown
    else:
        written = ", ".join(action.option_strings) + (f" {shown}" if action.nargs != 0 else "")
    required = " Required." if action.required and action.option_strings else ""
    return f"`{written}`", f"{_escaped(action.help or '')}{required}"


def _escaped(text: str) -> str:
    return re.sub(r"([<*])", r"\\\1", text)


def comments(source: str) -> dict[int, str]:
    """Line → its trailing comment."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {token.start[0]: token.string.lstrip("#: ") for token in tokens if token.type == tokenize.COMMENT}


def field_comments(cls: type[Any]) -> dict[str, str]:
    """Field of a dataclass → the comment behind it, which says meaning and unit."""
    source = Path(inspect.getfile(cls)).read_text(encoding="utf-8")
    said = comments(source)
    body = next(node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == cls.__name__)
    return {
        node.target.id: said.get(node.end_lineno or node.lineno, "")
        for node in body.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


def recipe_keys(section: str) -> str:
    """Every key of a section with its type, default and meaning."""
    cls = config.SECTIONS[section]
    meaning, keys = field_comments(cls), config.keys_of(section)
    rows = [
        (f"`{field.name}`", _type(str(field.type)), f"`{_default(field)}`", _escaped(meaning[field.name]))
        for field in fields(cls)
        if field.name in keys
    ]
    return table(("key", "type", "default", "meaning"), rows)


def _type(name: str) -> str:
    return {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}.get(name, "list of strings")


def _default(field: Field[Any]) -> str:
    value = field.default
    assert value is not MISSING, field.name
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return str(list(value))
    return f'"{value}"' if isinstance(value, str) else str(value)


def error_tree() -> str:
    """The exceptions of errors.py with their exit codes, from the tree at its head."""
    rows = []
    for line in (errors.__doc__ or "").split("\n"):
        found = re.match(r"([│├└─ ]*)(\w+)\s+(?:([\d/]+)\s{2,})?(\S.*)", line)
        if found and inspect.isclass(getattr(errors, found[2], None)):
            base = getattr(errors, found[2]).__mro__[1].__name__
            rows.append((f"`{found[2]}`", f"`{base}`", found[3] or "–", _escaped(found[4])))
    return table(("exception", "is a", "exit code", "raised for"), rows)


def preset_table() -> str:
    rows = []
    for name, preset in presets.PRESETS.items():
        shape = preset.model(37_000)
        keys = ("N", "d_model", "d_ff", "h", "d_k", "d_v", "dropout", "positions")
        rows.append((f"`{name}`", *(str(getattr(shape, key)) for key in keys)))
    return table(("preset", "N", "d_model", "d_ff", "h", "d_k", "d_v", "dropout", "positions"), rows)


def python_api() -> str:
    """An autodoc directive for each name of `heedful.__all__`."""
    return "\n\n".join(_documented(name) for name in heedful.__all__ if name != "__version__")


def _documented(name: str) -> str:
    value = getattr(heedful, name)
    options = "   :members:\n" if inspect.isclass(value) else ""
    if inspect.ismodule(value):
        directive, target, options = "automodule", value.__name__, "   :members: tiny, small, base, big, named\n"
    elif inspect.isclass(value):
        directive = "autoexception" if issubclass(value, Exception) else "autoclass"
        target = f"heedful.{name}"
    else:
        directive, target = "autofunction", f"heedful.{name}"
    return f"## heedful.{name}\n\n```{{eval-rst}}\n.. {directive}:: {target}\n{options}```"


def shape_legend() -> str:
    """The legend of shape suffixes, from the docstring of heedful.model."""
    from heedful import model

    legend = [line.strip() for line in (model.__doc__ or "").split("\n") if line.startswith("    ")]
    pairs = [entry.strip().split(" ", 1) for entry in " · ".join(legend).split(" · ")]
    return table(("suffix", "axis"), [(f"`{letter}`", meaning) for letter, meaning in pairs])


WRITERS = {
    "command-line": command_line,
    "recipe-keys": recipe_keys,
    "error-tree": error_tree,
    "presets": preset_table,
    "python-api": python_api,
    "shape-legend": shape_legend,
}


def filled(page: str) -> str:
    """A page with every mark replaced by what is generated for it."""
    return MARK.sub(lambda mark: WRITERS[mark[1]](*filter(None, [mark[2]])), page)


def setup(app: Any) -> dict[str, bool]:
    def read(_: Any, __: str, source: list[str]) -> None:
        source[0] = filled(source[0])

    os.environ["COLUMNS"] = "88"  # argparse wraps usage to the terminal: the same page everywhere
    app.connect("source-read", read)
    return {"parallel_read_safe": True}
