"""Runs of an HTML page: text with its inline elements, between block elements.

A run is a list of tokens. What is not translated, such as <code> or translate="no", is one token with all its content.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from heedful.serving.html_tokens import Token, attributes, names, tokenize_html

# Every other element is a block and ends a sentence.
_INLINE = names(
    "a abbr acronym b bdi bdo big br cite code data del dfn em font i img input ins kbd label map mark math nobr "
    "picture q rb rp rt rtc ruby s samp script small source span strike strong style sub sup svg template time tt u "
    "var wbr"
)
VOID = names("area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr")
_READINGS = names("rp rt rtc")  # how the word before them is pronounced
_UNTOUCHED = _READINGS | names("code listing math picture pre script style svg template textarea xmp")
_UNTOUCHED |= names("iframe noembed noframes plaintext")
_RAW_TEXT = {"script", "style"}
_NOT_READ = _READINGS | names("picture script style svg template")
_CLOSED_BY_ITSELF = _READINGS | {"p", "option", "rb"}  # <p> ends the <p> before it
_DEEPEST = 30  # maximum nesting of inline elements; deeper ones are treated as blocks


class Group(NamedTuple):
    """Tokens of a run, or of markup between runs."""

    tokens: list[Token]
    is_run: bool

    def source(self) -> str:
        return "".join(token.text for token in self.tokens)

    def written(self) -> str:
        """Return the source with its unclosed quotes closed."""
        return "".join(token.written for token in self.tokens)


def html_runs(page: str) -> Iterator[Group]:
    """Yield runs and the markup between them, in order; joined, they give the page."""
    run: list[Token] = []
    for token in _whole_tokens(list(tokenize_html(page))):
        if _is_inline(token):
            run.append(token)
            continue
        yield from _well_nested(run)
        run = []
        yield Group([token], False)
    yield from _well_nested(run)


def pairs(tokens: Iterable[Token]) -> dict[int, int]:
    """Return the indices of start tags with those of their end tags, properly nested."""
    found: dict[int, int] = {}
    opened: list[tuple[int, str]] = []
    count: dict[str, int] = {}
    for at, token in enumerate(tokens):
        if token.kind == "start" and token.name not in VOID:
            opened.append((at, token.name))
            count[token.name] = count.get(token.name, 0) + 1
        elif token.kind == "end" and count.get(token.name):
            while opened:
                start, name = opened.pop()
                count[name] -= 1
                if name == token.name:
                    found[start] = at
                    break
    return found


def _well_nested(run: list[Token]) -> Iterator[Group]:
    """Split a run at tags that overlap others or are nested too deeply."""
    matched = pairs(run)
    if not run:
        return
    ends = set(matched.values())
    single = [token for at, token in enumerate(run) if at not in matched and at not in ends]
    overlapping = _tag_names(single, "start") & _tag_names(single, "end") - VOID
    borders, depth = list[int](), 0
    for at, token in enumerate(run):
        depth -= at in ends
        is_paired = at in matched or at in ends
        if depth >= _DEEPEST if is_paired else token.kind in ("start", "end") and token.name in overlapping:
            borders.append(at)
        depth += at in matched
    first = 0
    for border in [*borders, len(run)]:
        if first < border:
            yield Group(run[first:border], True)
        if border < len(run):
            yield Group([run[border]], False)
        first = border + 1


def _tag_names(tokens: list[Token], kind: str) -> set[str]:
    return {token.name for token in tokens if token.kind == kind}


def _is_inline(token: Token) -> bool:
    if token.kind == "whole":
        return token.name in _INLINE
    return token.kind in ("text", "comment") or token.name in _INLINE


def _whole_tokens(tokens: list[Token]) -> Iterator[Token]:
    """Yield the tokens; those of an untranslated element are one."""
    matched = _elements(tokens)
    ends = {end: start for start, end in matched.items()}
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.kind == "start" and _is_untranslated(token):
            end = matched[at] + 1 if at in matched else _implied_end(tokens, ends, at)
            yield _whole(tokens[at:end], at in matched)
            at = end
        else:
            yield token
            at += 1


def _elements(tokens: list[Token]) -> dict[int, int]:
    """Return the indices of start tags with those of their end tags; elements may overlap."""
    opened: dict[str, list[int]] = {}
    found: dict[int, int] = {}
    for at, token in enumerate(tokens):
        starts = opened.setdefault(token.name, [])
        if token.kind == "start" and not _is_empty(token):
            if token.name in _CLOSED_BY_ITSELF:
                starts.clear()
            starts.append(at)
        elif token.kind == "end" and starts:
            found[starts.pop()] = at
    return found


def _is_empty(tag: Token) -> bool:
    return tag.name in VOID or (tag.name in ("svg", "math") and tag.text.endswith("/>"))


def _is_untranslated(token: Token) -> bool:
    if token.name in _UNTOUCHED:
        return True
    tag = token.text.lower()
    if "translate" not in tag:
        return False
    found = attributes(token.text)
    return found.get("translate", "").strip().lower() == "no" or "notranslate" in found.get("class", "").split()


def _implied_end(tokens: list[Token], ends: dict[int, int], start: int) -> int:
    """Return where an unclosed element ends: at the next block or its parent's end."""
    if _is_empty(tokens[start]):
        return start + 1
    is_reading = tokens[start].name in _READINGS
    for at in range(start + 1, len(tokens)):
        token = tokens[at]
        is_next_reading = is_reading and token.kind == "start" and token.name in _READINGS | {"rb"}
        is_outer_end = token.kind == "end" and ends.get(at, 0) <= start
        if is_next_reading or is_outer_end or (token.kind != "raw" and not _is_inline(token)):
            return at
    return len(tokens)


def _whole(tokens: list[Token], is_closed: bool) -> Token:
    """Return one token for an untranslated element."""
    name, text = tokens[0].name, "".join(token.text for token in tokens)
    is_inline = name in _UNTOUCHED or all(map(_is_inline, tokens))
    token = Token("whole", text, name if is_inline else "")
    if is_closed or name not in _INLINE - _RAW_TEXT or _is_empty(tokens[0]):
        return token
    # Closed, so that it does not contain words that the translation puts after it.
    missing = sum((one.kind == "start") - (one.kind == "end") for one in tokens if one.name == name)
    return token._replace(repaired=text + f"</{name}>" * max(1, missing))


def words_of(token: Token) -> str:
    """Return the words of an untranslated element; empty if it is not part of the sentence."""
    if token.kind != "whole" or token.name in _NOT_READ:
        return ""
    text = "".join(one.text for one in tokenize_html(token.text) if one.kind in ("text", "raw"))
    return " ".join(html.unescape(text).replace("\0", " ").split())


def is_visible(token: Token) -> bool:
    """Return whether it is an untranslated element with text."""
    return (
        token.kind == "whole"
        and token.name not in names("picture script style svg template")
        and bool(re.search(r"\w", re.sub("<[^>]*+>", "", token.text)))
    )


def is_object(token: Token) -> bool:
    """Return whether it separates the words before and after it."""
    return token.name in ("img", "input", "picture", "svg") or is_visible(token)
