"""Directories that appear whole or not at all: written beside, flushed to disk, renamed once."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heedful.errors import MachineError, UsageError

_UNFINISHED = ".unfinished-"
_REPLACED = ".replaced-"  # the old one, for the moment between two renames, where there is no exchange
DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}
# A name under which nothing can be written: the user's to change.
_NAME_ERRORS = {
    errno.EACCES,
    errno.EPERM,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
    errno.ENOENT,
    errno.ENAMETOOLONG,
}
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


@contextmanager
def new_directory(final: Path, needed: int | None = None) -> Iterator[Path]:
    """A directory to fill, renamed to `final` when the block ends well and removed when it does not.

    An older `final` is exchanged in one step, so that at every moment one of the two is there, whole.
    `needed` is its size in bytes where that is known: a full disk is then reported with it.
    """
    final = Path(os.path.abspath(final))  # "." has no name
    unfinished = final.parent / f"{_UNFINISHED}{final.name}"
    with disk_errors(final, needed):
        final.parent.mkdir(parents=True, exist_ok=True)
        try:
            _remove(unfinished)
            unfinished.mkdir()
            yield unfinished
            flush_tree(unfinished)
            _put_in_place(unfinished, final)
            flush(final.parent)
        except BaseException:
            _remove(unfinished)
            raise
        _remove(unfinished)


def clear_unfinished(parent: Path) -> None:
    """Removes what a killed process left half written, and puts back what it was about to replace."""
    for old in parent.glob(f"{_REPLACED}*"):
        final = old.with_name(old.name.removeprefix(_REPLACED))
        if final.exists():
            _remove(old)
        else:
            os.rename(old, final)
    for leftover in parent.glob(f"{_UNFINISHED}*"):
        _remove(leftover)


def write_durably(path: Path, content: bytes) -> None:
    """Replaces a file in one step."""
    beside = path.with_name(f"{_UNFINISHED}{path.name}")
    with disk_errors(path, len(content)):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            beside.write_bytes(content)
            flush(beside)
            os.replace(beside, path)
            flush(path.parent)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise


def read_at_most(path: Path, most: int) -> bytes:
    """A whole file; ValueError where it is no plain file (a pipe or device may have no end) or longer than `most`."""
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise ValueError("not a plain file")
    with path.open("rb") as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        raise ValueError(f"longer than {most:,} bytes")
    return content


def flush(path: Path) -> None:
    """fsync of a file, or of a directory's list of names."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def flush_tree(top: Path) -> None:
    for path in sorted(top.rglob("*")):
        flush(path)
    flush(top)


@contextmanager
def disk_errors(path: Path, needed: int | None = None) -> Iterator[None]:
    """A full or failing disk becomes a MachineError with path, needed and free bytes; a name that cannot be written,
    a UsageError."""
    try:
        yield
    except OSError as error:
        if error.errno in _NAME_ERRORS:
            raise UsageError(f"{path} cannot be written: {error.strerror}. Choose another place.") from error
        if error.errno not in DISK_ERRORS:
            raise
        raise MachineError(disk_message(path, error.strerror or str(error), needed)) from error


def disk_message(path: Path, reason: str, needed: int | None = None) -> str:
    wanted = f"{needed:,} bytes needed, " if needed is not None else ""
    return (
        f"{path} cannot be written: {reason} ({wanted}{free_bytes(path):,} bytes free). "
        "What was there before is untouched. Free some space and run the same command again."
    )


def free_bytes(path: Path) -> int:
    """Free bytes of the file system that holds `path`, or will."""
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _put_in_place(new: Path, final: Path) -> None:
    if not final.exists():
        os.rename(new, final)
    elif not _exchange(new, final):
        # No exchange on this system: for a moment neither is there, but `clear_unfinished` would put the old one back.
        old = final.with_name(f"{_REPLACED}{final.name}")
        _remove(old)
        os.rename(final, old)
        try:
            os.rename(new, final)
        except BaseException:
            os.rename(old, final)
            raise
        os.rename(old, new)


def _exchange(first: Path, second: Path) -> bool:
    """Linux's renameat2(RENAME_EXCHANGE): two names swap in one step."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        return False
    return bool(renameat2(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE) == 0)
