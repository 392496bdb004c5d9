"""Language codes as clients write them: any case, with or without a region."""

from __future__ import annotations

from collections.abc import Collection

# LibreTranslate has two codes for each of these languages: the one of its models and the one of its API.
_SYNONYMS = (("pb", "pt-br"), ("zh", "zh-hans"), ("zt", "zh-hant"))
_OTHER_CODE = {one: other for pair in _SYNONYMS for one, other in (pair, reversed(pair))}


def resolve_language(code: str, known: Collection[str]) -> str:
    """Return the best known code: the exact one, else without its last subtags (RFC 4647).

    `de-DE` finds `de`, `pt-BR` finds `pt-BR` before `pt`. A code that matches nothing is returned in lower case.
    """
    by_lower = {one.lower().replace("_", "-"): one for one in known}
    wanted = code.strip().lower()
    # No prefix with more subtags than every known code can match; without this bound, time would be quadratic.
    most = max(one.count("-") for one in (*by_lower, *_OTHER_CODE)) + 1
    subtags = wanted.replace("_", "-").split("-", most)[:most]
    for length in range(len(subtags), 0, -1):
        prefix = "-".join(subtags[:length])
        for candidate in (prefix, _OTHER_CODE.get(prefix, prefix)):
            if candidate in by_lower:
                return by_lower[candidate]
    return wanted
