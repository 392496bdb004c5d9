"""HTML parsing: runs of text to translate, and the markup around them.

A block element ends a run. Inline elements are part of their run, so that sentences stay whole; inline_markup.py
restores them in the translation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from lxml import etree

from heedful.errors import InputError
from heedful.serving.inline_markup import Node, Run, escape
from heedful.text.sentence_splitting import ENDS, ENDS_AT_ONCE


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
)  # boolean attributes, written without a value
_LINE_END = re.compile(r"[ \t]*[\r\n]\s*")  # treated as ordinary white space
_DOCUMENT = re.compile(r"(?:\s|<!--.*?-->|<\?.*?>)*+<(?:!doctype|html|head|body)\b", re.I | re.S)
_ROOT = "heedful-fragment"
_DEEPEST = 30  # nesting depth of inline elements; deeper ones count as blocks
_LONGEST_NAME = 60  # longest untranslated span that the model still sees as part of the sentence
_SENTENCE_END = re.compile(f"[{re.escape(ENDS + ENDS_AT_ONCE)}]")


def parse_html(text: str) -> list[str | Run]:
    """Return markup (str) and runs of text with their inline elements, in order."""
    is_document = _DOCUMENT.match(text) is not None
    root = _tree(text if is_document else f"<{_ROOT}>{text}")
    builder = _Builder(_inline_elements(root), text.lower())
    if is_document:
        builder.document(root)
    elif (fragment := root.find(f".//{_ROOT}")) is not None:
        builder.content(fragment)
    return builder.parts


def _tree(text: str) -> Any:
    # As bytes, because lxml rejects str with an encoding declaration. NUL would end the text.
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True)
    root = etree.fromstring(text.replace("\0", "\ufffd").encode("utf-8"), parser)
    if root is None or any(entry.level >= etree.ErrorLevels.FATAL for entry in parser.error_log):
        raise InputError("The HTML is nested too deeply. Send it in smaller parts.")
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
    parts: list[str | Run] = field(default_factory=list)
    text: list[str] = field(default_factory=list)  # of the run
    length: int = 0
    nodes: list[Node] = field(default_factory=list)
    open: list[Node] = field(default_factory=list)

    def document(self, root: Any) -> None:
        """Add a whole document with doctype and surrounding comments; implied tags are not added."""
        before, after = list(root.itersiblings(preceding=True))[::-1], list(root.itersiblings())
        if "<!doctype" in self.source and (doctype := root.getroottree().docinfo.doctype):
            self.parts.append(doctype)
        self.parts.extend(markup(node) for node in before)
        self._walk(root)
        self._flush()
        self.parts.extend(markup(node) for node in after)

    def content(self, fragment: Any) -> None:
        self._add(fragment.text)
        for child in fragment:
            self._walk(child)
            self._add(child.tail)
        self._flush()

    def _walk(self, element: Any) -> None:
        """Walk iteratively, because elements may be nested deeper than Python's stack."""
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

    def _add(self, text: str | None) -> None:
        if text:
            self.text.append(_LINE_END.sub(" ", text))
            self.length += len(self.text[-1])

    def _whole(self, node: Any) -> bool:
        """Add comments, empty and untranslated elements with all their content; return whether it was one."""
        is_element = isinstance(node.tag, str)
        if is_element and not (node.tag in _UNTOUCHED | _EMPTY or _is_untranslated(node)):
            return False
        if is_element and node not in self.inline:
            self._flush()
            self.parts.append(markup(node))
            return True
        if is_element and node.tag == "br" and self.text and self.text[-1][-1:].strip():
            self._add(" ")  # it separates the words before and after
        start = self.length
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
            self.parts.append(start_tag(element) if self._is_in_source(element) else "")

    def _leave(self, element: Any) -> None:
        if element in self.inline:
            self.open.pop().end = self.length
        else:
            self._flush()
            self.parts.append(end_tag(element) if self._is_in_source(element) else "")

    def _is_in_source(self, element: Any) -> bool:
        return element.tag not in ("html", "head", "body", "p") or f"<{element.tag}" in self.source

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
