"""Read TMX files as a stream, refusing entities so that a small file cannot expand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.parsers import expat

from heedful.errors import CorpusError
from heedful.text.languages import base, from_names
from heedful.text.text_files import MAX_LINE_BYTES, open_text

_READ = 1 << 16
_HIDDEN = ("bpt", "ept", "ph", "it", "ut")  # inline elements whose content is formatting code, not text


class _Units:
    """Collects the translation units that the parser has finished."""

    def __init__(self) -> None:
        self.finished: list[dict[str, str]] = []  # language → text
        self.source_language = ""
        self._unit: dict[str, str] = {}
        self._language = ""
        self._text: list[str] | None = None
        self._size = self._hidden = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "header":
            self.source_language = base(attributes.get("srclang", ""))
        elif name == "tu":
            self._unit = {}
        elif name == "tuv":
            self._language = base(attributes.get("xml:lang") or attributes.get("lang", ""))
        elif name == "seg":
            self._text, self._size = [], 0
        elif name in _HIDDEN:
            self._hidden += 1

    def end(self, name: str) -> None:
        if name == "seg" and self._text is not None:
            self._unit.setdefault(self._language, "".join(self._text))
            self._text = None
        elif name == "tu":
            self.finished.append(self._unit)
        elif name in _HIDDEN:
            self._hidden -= 1

    def text(self, content: str) -> None:
        if self._text is not None and not self._hidden:
            self._size += len(content)
            if self._size > MAX_LINE_BYTES:
                raise ValueError(f"a segment is longer than {MAX_LINE_BYTES:,} characters")
            self._text.append(content)


def read_units(path: Path) -> Iterator[tuple[str, str]]:
    """Yield source and target of each unit that has both.

    The languages are those in the file name (NAME.en-de.tmx). Otherwise, the header's source language comes first.
    """
    named = from_names([str(path)], [])
    languages = [base(named.source), base(named.target)] if named else []
    for unit, first in _parsed(path):
        if not languages and len(unit) > 1:
            if len(unit) > 2:
                raise CorpusError(
                    f"{path} has units in {len(unit)} languages. Name the two to use: rename it to NAME.en-de.tmx, "
                    "with the codes of your languages."
                )
            languages = sorted(unit, key=lambda language: language != first)
        if languages and all(language in unit for language in languages):
            yield unit[languages[0]], unit[languages[1]]


def _parsed(path: Path) -> Iterator[tuple[dict[str, str], str]]:
    units, parser = _Units(), expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = units.start, units.end
    parser.CharacterDataHandler, parser.EntityDeclHandler = units.text, _refuse_entities
    try:
        with open_text(path) as stream:
            while content := stream.read(_READ):
                parser.Parse(content, False)
                yield from ((unit, units.source_language) for unit in units.finished)
                units.finished.clear()
            parser.Parse(b"", True)
    except (expat.ExpatError, ValueError) as error:
        raise CorpusError(
            f"{path}:{parser.CurrentLineNumber}: not a valid TMX file: {error}. Download or export it again."
        ) from None


def _refuse_entities(*_: object) -> None:
    raise ValueError("it declares XML entities, which heedful does not expand")
