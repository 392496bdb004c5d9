"""A corpus with something for every cleaning rule."""

from __future__ import annotations

from pathlib import Path

import synthetic_tasks as tasks

SHARD_BYTES = 1_500  # several shards for a small text


def clean_pairs() -> list[tuple[str, str]]:
    """160 distinct pairs whose sides differ."""
    different = [pair for pair in tasks.pairs(tasks.reverse, range(200)) if pair[0] != pair[1]]
    return list(dict.fromkeys(different))[:160]


def dirty_pairs() -> list[tuple[str, str]]:
    """Clean pairs, then pairs that are empty, copied, repeated or have other numbers or URLs."""
    clean = clean_pairs()
    return [
        *clean,
        ("", "a b c"),
        ("a b c d e f g h a", "a b c d e f g h a"),
        clean[3],
        (clean[5][0].upper() + " .", clean[5][1]),
        ("a 1990", "1991 a"),
        ("see www.example.org", "a b"),
        ("a b c " * 50, "c b a " * 50),
        ("a", "a b c d e f g h a b c d"),
    ]


def tree(directory: Path) -> dict[str, bytes]:
    """Every file but the marker, which names the process that wrote it."""
    files = (path for path in directory.rglob("*") if path.is_file() and path.name != ".heedful")
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}
