"""HTML parsing: runs of text to translate, and the markup around them.

A block element ends a run. Inline elements are part of their run, so that sentences stay whole; inline_markup.py
restores them in the translation.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from lxml import etree

from heedful.errors import InputError
from heedful.serving.html_chunking import repair_html
from heedful.serving.inline_markup import Node, Run, escape
from heedful.text.sentence_splitting import CLOSES, ENDS, ENDS_AT_ONCE


def _names(names: str) -> frozenset[str]:
    return frozenset(names.split())


# Every other element is a block and ends a sentence.
_INLINE = _names(
    "a abbr acronym b bdi bdo big br cite code data del dfn em font i img input ins kbd label map mark nobr picture "
    "q rp rt ruby s samp script small source span strike strong style sub sup svg template time tt u var wbr"
)
_VOID = _names("area base basefont br col embed frame hr img input link meta param source track wbr")
_RAW = _names("script style xmp iframe noembed noframes plaintext")  # text without character references
_UNTOUCHED = _RAW | _names("code pre textarea svg template")
_EMPTY = _VOID | _names("script style template svg picture")  # never part of a sentence
_BOOLEAN = _names(
    "allowfullscreen async autofocus autoplay checked controls default defer disabled hidden inert ismap itemscope "
    "loop multiple muted nomodule novalidate open playsinline readonly required reversed selected"
)  # attributes that are written without a value
# Line ends and tabs are white space like any other. Possessive, and never matched from inside a run: linear time.
_WHITE_SPACE = re.compile(r"(?<! ) *+[\r\n\t]\s*+")
_DOCUMENT = re.compile(r"(?:\s|<!--.*?-->|<\?.*?>)*+<(?:!doctype|html|head|body)\b", re.I | re.S)
_ROOT = "heedful-fragment"
_PAGE = _names("html head body")
_DEEPEST = 30  # maximum nesting of inline elements; deeper ones are treated as blocks
_LONGEST_NAME = 60  # maximum characters of an untranslated span that the model reads as part of its sentence
_SENTENCE_BEFORE = re.compile(rf"[{re.escape(ENDS)}][{re.escape(CLOSES)}]*\Z")
_SENTENCE_END = re.compile(f"[{re.escape(ENDS + ENDS_AT_ONCE)}]")


def parse_html(text: str) -> list[str | Run]:
    """Return markup (str) and runs of text with their inline elements, in order."""
    text, unclosed = repair_html(text)
    return [*_parsed(text), unclosed] if unclosed else _parsed(text)


def _parsed(text: str) -> list[str | Run]:
    is_document = _DOCUMENT.match(text) is not None
    root = _tree(text if is_document else f"<{_ROOT}>{text}")
    if root is None:  # a doctype or comments, and nothing else
        return [text]
    # Text after </html> is in a second tree next to the first.
    nodes = [*list(root.itersiblings(preceding=True))[::-1], root, *root.itersiblings()]
    inline = {element for node in nodes for element in _inline_elements(node)}
    builder = _Builder(inline, text.lower(), is_document, None if is_document else root.find(f".//{_ROOT}"))
    if is_document and "<!doctype" in builder.source and (doctype := root.getroottree().docinfo.doctype):
        builder.parts.append(doctype)
    for node in nodes:
        builder.add(node)
    return builder.parts


def _tree(text: str) -> Any:
    # As bytes, because lxml rejects str with an encoding declaration. NUL would end the text.
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True)
    root = etree.fromstring(text.replace("\0", "\ufffd").encode("utf-8"), parser)
    if any(entry.level >= etree.ErrorLevels.FATAL for entry in parser.error_log):
        raise InputError("Cannot parse the HTML: its elements are nested too deeply. Send it in smaller parts.")
    return root


def _inline_elements(root: Any) -> set[Any]:
    """Return the inline elements that contain no block and are not nested too deeply."""
    found, depths = set(), dict[Any, int]()
    for element in reversed(list(root.iter(etree.Element))):
        depth = 1 + max((depths.get(child, 0) for child in element), default=0)
        depths[element] = depth
        children = all(child in found for child in element if isinstance(child.tag, str))
        if element.tag in _INLINE and (children or element.tag in _UNTOUCHED) and depth <= _DEEPEST:
            found.add(element)
    return found


@dataclass
class _Builder:
    inline: set[Any]
    source: str  # in lower case
    is_document: bool
    wrapper: Any  # the element that we put around a fragment
    parts: list[str | Run] = field(default_factory=list)
    text: list[str] = field(default_factory=list)  # of the run
    length: int = 0
    nodes: list[Node] = field(default_factory=list)
    open: list[Node] = field(default_factory=list)
    is_behind_comment: bool = False
    written: set[Any] = field(default_factory=set)  # blocks whose start tag is in `parts`
    pages: Counter[str] = field(default_factory=Counter)  # how often <html>, <head> and <body> occurred

    def add(self, element: Any) -> None:
        """Add a node with all its content. Not recursive: elements may be nested deeper than Python's stack."""
        stack: list[tuple[str, Any]] = [("enter", element)]
        while stack:
            step, node = stack.pop()
            if step == "text":
                self._add(node)
            elif step == "leave":
                self._leave(node)
            elif not self._whole(node):
                self._enter(node)
                stack.append(("leave", node))
                for child in reversed(node):
                    stack += [("text", child.tail), ("enter", child)]
                stack.append(("text", node.text))
        self._flush()

    def _add(self, text: str | None) -> None:
        if not text:
            return
        if self.is_behind_comment and text[0].isalpha() and not text[0].islower() and self._is_behind_sentence():
            text = f" {text}"  # otherwise "dog.<!-- -->The" would become one word
        self.is_behind_comment = False
        self.text.append(_WHITE_SPACE.sub(" ", text))
        self.length += len(self.text[-1])

    def _is_behind_sentence(self) -> bool:
        return _SENTENCE_BEFORE.search("".join(self.text[-2:])[-10:]) is not None

    def _whole(self, node: Any) -> bool:
        """Add a comment, an empty or an untranslated element with its content; return False for other nodes."""
        is_element = isinstance(node.tag, str)
        if is_element and not (node.tag in _UNTOUCHED | _EMPTY or _is_untranslated(node)):
            return False
        if is_element and node not in self.inline:
            self._flush()
            self.parts.append(markup(node))
            return True
        if is_element and node.tag == "br" and self.text and self.text[-1][-1:].strip():
            self._add(" ")  # keeps the words before and after it apart
        start, self.is_behind_comment = self.length, not is_element
        if is_element and node.tag not in _EMPTY:
            text = str(node.xpath("string()"))
            if len(text) <= _LONGEST_NAME:
                self._add(_SENTENCE_END.sub(",", text))  # a sentence must not end inside it
        self._nodes().append(Node(markup(node), "", start, self.length, untouched=True))
        return True

    def _enter(self, element: Any) -> None:
        if element in self.inline:
            node = Node(start_tag(element), end_tag(element), self.length)
            self._nodes().append(node)
            self.open.append(node)
        else:
            self._flush()
            if self._is_in_source(element):
                self.written.add(element)
                self.parts.append(start_tag(element))

    def _leave(self, element: Any) -> None:
        if element in self.inline:
            self.open.pop().end = self.length
        else:
            self._flush()
            self.parts.append(end_tag(element) if element in self.written else "")

    def _is_in_source(self, element: Any) -> bool:
        """Return whether the tag is in the page; the parser adds implied tags."""
        if element is self.wrapper:
            return False
        if element.tag in _PAGE:
            self.pages[element.tag] += 1
            return self.is_document and self.source.count(f"<{element.tag}") >= self.pages[element.tag]
        return element.tag != "p" or "<p" in self.source

    def _nodes(self) -> list[Node]:
        return self.open[-1].children if self.open else self.nodes

    def _flush(self) -> None:
        if self.length or self.nodes:
            self.parts.append(Run("".join(self.text), self.nodes))
            self.text, self.length, self.nodes = [], 0, []


def _is_untranslated(element: Any) -> bool:
    classes = (element.get("class") or "").split()
    return (element.get("translate") or "").strip().lower() == "no" or "notranslate" in classes


def start_tag(element: Any) -> str:
    return f"<{element.tag}{''.join(_attribute(*item) for item in element.attrib.items())}>"


def _attribute(name: str, value: str) -> str:
    if name in _BOOLEAN and value in ("", name):
        return f" {name}"
    quoted = escape(value).replace('"', "&quot;")
    return f' {name}="{quoted}"'


def end_tag(element: Any) -> str:
    return "" if element.tag in _VOID or element.tag == "plaintext" else f"</{element.tag}>"


def markup(node: Any) -> str:
    """Return a node with its content as HTML, without its tail text."""
    written: list[str] = []
    stack: list[Any] = [node]
    while stack:
        one = stack.pop()
        if isinstance(one, str):
            written.append(one)
        elif not isinstance(one.tag, str):
            written.append(f"<!--{one.text or ''}-->" if one.tag is etree.Comment else f"<?{one.text or ''}>")
        else:
            write = str if one.tag in _RAW else escape
            written.append(start_tag(one))
            stack.append(end_tag(one))
            for child in reversed(one):
                stack += [escape(child.tail or "") if one.tag not in _RAW else child.tail or "", child]
            stack.append(write(one.text or ""))
    return "".join(written)
