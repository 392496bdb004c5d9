"""HTML splitting between blocks, so that a long page is translated in several requests.

Like a browser, the scanner lets an unclosed comment, tag or script run to the end of the
page. It takes linear time for any input.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

_VERBATIM = ("script", "style", "pre", "textarea", "template", "svg", "math", "noscript", "iframe", "object")
# Tag name and attributes; a > inside a quoted value does not end the tag. Possessive, to prevent backtracking.
_TAG = re.compile(r"""<(/?)([a-zA-Z][^\s/>]*+)(?:=\s*+"[^"]*+"|=\s*+'[^']*+'|[^>])*+>""")
_OTHER = re.compile(r"<[!?/][^>]*+>")  # a declaration, or an end tag without a name
_CLOSE = {name: re.compile(rf"</{name}(?=[\s/>])[^>]*+>?", re.IGNORECASE) for name in _VERBATIM}
_END_BR = re.compile(r"</br(?=[\s/>])[^>]*+>", re.IGNORECASE)
_LINE_BREAK = "<br>"
_UNCLOSED = re.compile(r"</?[a-zA-Z][^>]*+")
_MARKUP = re.compile(r"<(?=[a-zA-Z/!?])")
_VOID_INLINE = ("img", "wbr")
_INLINE = (
    *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del"),
    *("dfn", "em", "font", "i", "ins", "kbd", "label", "mark", "q", "s", "samp"),
    *("small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var"),
)


class _Token(NamedTuple):
    text: str
    kind: str  # "text", "open", "close", "void" (inline) or "border"
    name: str = ""


def split_html(page: str) -> Iterator[tuple[str, bool]]:
    """Yield (part, whether it is text to translate) in order.

    Text parts contain only whole inline elements, so that each is a valid fragment.
    """
    run: list[_Token] = []
    for token in _tokens(page):
        if token.kind == "border":
            yield from _split_run(run)
            run = []
            yield token.text, False
        else:
            run.append(token)
    yield from _split_run(run)


def _split_run(run: list[_Token]) -> Iterator[tuple[str, bool]]:
    if _is_balanced(run):
        yield "".join(token.text for token in run), any(map(_has_words, run))
    else:
        for token in run:
            yield token.text, _has_words(token)


def _has_words(token: _Token) -> bool:
    return token.kind == "text" and any(map(str.isalpha, html.unescape(token.text)))


def _is_balanced(run: list[_Token]) -> bool:
    opened: list[str] = []
    for token in run:
        if token.kind == "open":
            opened.append(token.name)
        elif token.kind == "close" and (not opened or opened.pop() != token.name):
            return False
    return not opened


def repair_html(page: str) -> tuple[str, str]:
    """Return the page with </br> written as <br>, as browsers read it, and the unclosed tag at its end.

    The parser drops both: the words around </br> would become one, and `a <b and c` would end after "a".
    """
    texts = [_LINE_BREAK if _END_BR.fullmatch(token.text) else token.text for token in _tokens(page)]
    is_unclosed = bool(texts) and _UNCLOSED.fullmatch(texts[-1]) is not None
    return ("".join(texts[:-1]), texts[-1]) if is_unclosed else ("".join(texts), "")


def _tokens(page: str) -> Iterator[_Token]:
    place = 0
    while place < len(page):
        found = _MARKUP.search(page, place)
        start = found.start() if found else len(page)
        if start > place:
            yield _Token(page[place:start], "text")
        if start < len(page):
            token = _markup(page, start)
            yield token
            start += len(token.text)
        place = start


def _markup(page: str, start: int) -> _Token:
    """Return the comment, declaration, tag or untranslated element that starts here."""
    if page.startswith("<!--", start):
        end = page.find("-->", start + 4)
        return _Token(page[start : end + 3] if end >= 0 else page[start:], "border")
    tag = _TAG.match(page, start)
    if tag is None:
        other = _OTHER.match(page, start)
        return _Token(other[0] if other else page[start:], "border")
    name = tag[2].lower()
    if not tag[1] and name in _VERBATIM:
        close = _CLOSE[name].search(page, tag.end())
        return _Token(page[start : close.end() if close else len(page)], "border")
    if name in _VOID_INLINE:
        return _Token(tag[0], "void")
    if name in _INLINE:
        return _Token(tag[0], "close" if tag[1] else "open", name)
    return _Token(tag[0], "border")
