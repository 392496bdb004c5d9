"""HTML tokenization by the HTML standard (section 13.2.5).

Joined, the tokens are the source.

A parser that builds a tree drops, moves and adds text and tags. Tokens keep everything that is not translated as it is
in the source. This tokenizer differs from the standard only where a browser would drop the rest of the page: "<"
without ">" and an unclosed comment are text, and an unclosed quote ends before the next ">". It takes linear time.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SPACE = r"\t\n\f\r "
_ATTRIBUTE = (
    rf"(?P<name>[^{_SPACE}/>][^{_SPACE}/>=]*+)"
    rf"(?:[{_SPACE}]*+=[{_SPACE}]*+(?P<value>\"[^\"]*+\"|'[^']*+'|[^{_SPACE}>\"'][^{_SPACE}>]*+|(?=>))|(?![{_SPACE}]*+=))"
)
_FIND_ATTRIBUTE = re.compile(_ATTRIBUTE)
_TAG_START = re.compile(r"</?[a-zA-Z]")
_NAME = re.compile(rf"</?([a-zA-Z][^{_SPACE}/>]*+)")
_TAG = re.compile(rf"{_NAME.pattern}(?:[{_SPACE}/]++|{re.sub('[?]P<[a-z]+>', '?:', _ATTRIBUTE)})*+>")
_MARKUP = re.compile(r"<(?=[a-zA-Z!?]|/.)", re.DOTALL)
_COMMENT = re.compile(r"<!--(?:-?>|.*?--!?>)", re.DOTALL)
_IN_SCRIPT = re.compile(rf"(?P<end>-->)|(?P<begin><!--)(?!-*+>)|<(?P<slash>/?)script(?=[{_SPACE}/>])", re.IGNORECASE)
_RAW = names("script style textarea xmp iframe noembed noframes")
_TEXT_ONLY = _RAW | {"title", "plaintext"}  # elements that contain text, no tags
_END_OF = {name: re.compile(rf"</{name}(?=[{_SPACE}/>])", re.IGNORECASE) for name in _TEXT_ONLY}
_FOREIGN = names("svg math")
_LEAVES_FOREIGN = names(
    "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta "
    "nobr ol p pre ruby s small span strong strike sub sup table tt u ul var"
)
_MOST_FAILURES = 10  # unclosed quotes; each costs a scan to the end of the page


class Token(NamedTuple):
    kind: str  # "text", "start", "end", "raw" (the content of a script, for example) or "comment"
    text: str
    name: str = ""
    repaired: str = ""  # the text with what was not closed

    @property
    def written(self) -> str:
        return self.repaired or self.text


def tokenize_html(page: str) -> Iterator[Token]:
    """Yield the tokens in order."""
    tokenizer = _Tokenizer(page)
    while tokenizer.position < len(page):
        yield tokenizer.next()


def attributes(tag: str) -> dict[str, str]:
    """Return the attributes of a start tag; of two with one name the first counts."""
    found: dict[str, str] = {}
    match = _NAME.match(tag)
    for attribute in _FIND_ATTRIBUTE.finditer(tag, match.end() if match else 0, len(tag) - 1):
        value = attribute["value"] or ""
        found.setdefault(
            attribute["name"].lower(), html.unescape(value.strip(value[:1]) if value[:1] in "'\"" else value)
        )
    return found


class _Tokenizer:
    def __init__(self, page: str) -> None:
        self.page = page
        self.position = 0
        self.last_bracket = page.rfind(">")
        self.last_comment_end = max(page.rfind("-->"), page.rfind("--!>"))
        self.failures = 0
        self.text_only = ""  # the element whose content begins here
        self.foreign = 0  # depth in <svg> and <math>

    def next(self) -> Token:
        start = self.position
        token = self._content() if self.text_only else self._token(start)
        self.position = start + len(token.text)
        if token.kind == "start" or token.kind == "end":
            token = self._repaired(token)
            self._note(token)
        return token

    def _token(self, start: int) -> Token:
        found = _MARKUP.search(self.page, start)
        if found is None or found.start() > start:
            return Token("text", self.page[start : found.start() if found else len(self.page)])
        if _TAG_START.match(self.page, start):
            return self._tag(start)
        comment = self._comment(start)
        return Token("comment", comment) if comment else Token("text", "<")

    def _tag(self, start: int) -> Token:
        if start > self.last_bracket:
            return Token("text", "<")
        tag = _TAG.match(self.page, start) if self.failures < _MOST_FAILURES else None
        self.failures += tag is None
        text = tag[0] if tag else self.page[start : self.page.index(">", start) + 1]
        name = _NAME.match(text)
        return Token("end" if text[1] == "/" else "start", text, name[1].lower() if name else "")

    @staticmethod
    def _repaired(token: Token) -> Token:
        """Return the tag with its unclosed quote closed."""
        if _TAG.fullmatch(token.text):
            return token
        for quote in "\"'":
            if _TAG.fullmatch(text := f"{token.text[:-1]}{quote}>"):
                return token._replace(repaired=text)
        return token

    def _comment(self, start: int) -> str:
        """Return the comment, declaration or instruction that starts here; empty if unclosed."""
        page = self.page
        if page.startswith("<!--", start):
            if start > self.last_comment_end and not page.startswith(("<!-->", "<!--->"), start):
                return ""
            comment = _COMMENT.match(page, start)
            return comment[0] if comment else ""
        if self.foreign and page.startswith("<![CDATA[", start) and (end := page.find("]]>", start)) >= 0:
            return page[start : end + 3]
        return page[start : page.index(">", start) + 1] if start < self.last_bracket else ""

    def _content(self) -> Token:
        """Return the content of an element without tags: the rest of the page if it is unclosed."""
        name, self.text_only = self.text_only, ""
        start = self.position
        if name == "plaintext":
            end = len(self.page)
        elif name == "script":
            end = self._end_of_script(start)
        else:
            match = _END_OF[name].search(self.page, start)
            end = match.start() if match else len(self.page)
        if end == start:
            return self._token(start)
        return Token("text" if name == "title" else "raw", self.page[start:end], name)

    def _end_of_script(self, start: int) -> int:
        escaped = 0  # 1 in a comment, 2 in a script in a comment
        for match in _IN_SCRIPT.finditer(self.page, start):
            if match["end"]:
                escaped = 0
            elif match["begin"]:
                escaped = escaped or 1
            elif not match["slash"]:
                escaped = 2 if escaped else 0
            elif escaped < 2:
                return match.start()
            else:
                escaped = 1
        return len(self.page)

    def _note(self, token: Token) -> None:
        """Follow what decides how the next token is read."""
        is_start = token.kind == "start"
        if token.name in _FOREIGN:
            self.foreign = max(0, self.foreign + (is_start or -1) * (not (is_start and token.text.endswith("/>"))))
        elif is_start and token.name in _LEAVES_FOREIGN:
            self.foreign = 0
        elif is_start and token.name in _TEXT_ONLY and not self.foreign:
            self.text_only = token.name
