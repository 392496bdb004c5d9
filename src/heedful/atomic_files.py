"""Atomic writes of files and directories: write beside the target, sync, rename.

Nothing that heedful did not write is replaced or deleted, and no link is followed.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import stat
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from heedful.errors import MachineError, UsageError, cause
from heedful.locks import take_lock

_UNFINISHED = ".unfinished-"
_MARKER = ".written-by-heedful"  # an empty file, locked while the workspace is in use
_REPLACED = "replaced"  # the old version between two renames, on systems without an atomic exchange
DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}
# Errors in the path itself, which the user must change.
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


def real_path(path: Path) -> Path:
    """Return the absolute path as the system finds it; only the last name may be a link.

    `os.path.abspath` would take LINK/.. for the directory that contains LINK.
    """
    if path.name in ("", ".."):
        return Path(os.path.realpath(path))
    return Path(os.path.realpath(path.parent), path.name)


def is_empty(directory: Path) -> bool:
    """Return whether `directory` is an empty directory, not a link to one."""
    return holds_only(directory, ())


def holds_only(directory: Path, names: Collection[str]) -> bool:
    """Return whether `directory` contains only regular files (no links) with these names."""
    if directory.is_symlink() or not directory.is_dir():
        return False
    with os.scandir(directory) as entries:
        return all(entry.name in names and entry.is_file(follow_symlinks=False) for entry in entries)


@contextmanager
def new_directory(
    final: Path, needed: int | None = None, replaces: Callable[[Path], bool] = is_empty
) -> Iterator[Path]:
    """Yield a directory to fill.

    Rename it to `final` if the block succeeds; remove it otherwise.

    An existing `final` is exchanged in one step if `replaces(final)` is true, so that either the old or the new version
    exists at every moment. Otherwise raise UsageError: heedful replaces only what it wrote. `needed` is the size in
    bytes, if known; the message for a full disk contains it.
    """
    final = real_path(final)
    require_replaceable(final, replaces)
    with disk_errors(final, needed):
        final.parent.mkdir(parents=True, exist_ok=True)
        with _workspace(final) as space:
            unfinished = space / final.name
            unfinished.mkdir()
            yield unfinished
            flush_tree(unfinished)
            require_replaceable(final, replaces)  # it may have changed while the block ran
            _put_in_place(unfinished, final)
            flush(final.parent)


def require_replaceable(final: Path, replaces: Callable[[Path], bool]) -> None:
    """Raise UsageError unless `final` is missing, empty, or accepted by `replaces`."""
    if final.is_symlink():
        raise UsageError(f"{final} is a symbolic link, which heedful does not replace. Pass the directory itself.")
    if final.exists() and not is_empty(final) and not replaces(final):
        raise UsageError(
            f"{final} already exists. heedful replaces only directories that it wrote and that are unchanged. "
            "Choose another name, or move the directory elsewhere."
        )


def discard(path: Path) -> None:
    """Delete a directory.

    If killed, leave only what `clear_unfinished` removes, never half of `path`.
    """
    with disk_errors(path), _workspace(path) as space:
        os.rename(path, space / "discarded")


def clear_unfinished(parent: Path) -> None:
    """Remove unfinished writes of killed processes, and restore what they were replacing."""
    for space in parent.glob(f"{_UNFINISHED}*"):
        if not _is_workspace(space):
            continue  # not heedful's
        with suppress(FileNotFoundError):  # its process has just finished
            descriptor = take_lock(space / _MARKER)
            if descriptor is not None:  # otherwise a living process is writing
                _remove(space, parent / space.name.removeprefix(_UNFINISHED), descriptor)


@contextmanager
def new_file(path: Path, needed: int | None = None) -> Iterator[Path]:
    """Yield the name of a file to write. Rename it to `path` if the block succeeds.

    A plain file there is replaced, and its permissions are kept.
    """
    path = real_path(path)
    if path.is_symlink():
        raise UsageError(f"{path} is a symbolic link, which heedful does not replace. Pass the file itself.")
    if path.exists() and not path.is_file():  # renaming would replace a pipe or device
        raise UsageError(f"{path} is not a regular file, and heedful replaces only regular files. Choose another name.")
    with disk_errors(path, needed), _workspace(path) as space:
        beside = space / path.name
        old = path.stat() if path.is_file() else None
        if old is not None:  # a private file must stay private, also while it is written
            os.close(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        yield beside
        if old is not None:
            with suppress(PermissionError):  # only root may change the owner
                os.chown(beside, old.st_uid, old.st_gid)
            beside.chmod(stat.S_IMODE(old.st_mode))
        flush(beside)
        os.replace(beside, path)
        flush(path.parent)


def write_durably(path: Path, content: bytes) -> None:
    """Write a file atomically and flush it to disk."""
    with disk_errors(path, len(content)):
        path.parent.mkdir(parents=True, exist_ok=True)
    with new_file(path, len(content)) as beside:
        beside.write_bytes(content)


@contextmanager
def _workspace(final: Path) -> Iterator[Path]:
    """Yield a hidden directory next to `final` that no other process uses.

    Its marker distinguishes leftovers from a user's files and is locked while a process writes here.
    """
    space = final.parent / f"{_UNFINISHED}{final.name}"
    descriptor, keep = _take_workspace(space, final)
    try:
        flush(space)
        yield space
    finally:
        _remove(space, final, descriptor, keep)


def _take_workspace(space: Path, final: Path) -> tuple[int, bool]:
    """Create the workspace, or take over that of a dead process.

    Return the marker's lock and whether to keep it.

    An empty directory may be the user's, so it is used but not removed.
    """
    while True:
        held: set[str] | None = None
        is_new = _make(space)  # outside the block below: if the parent is missing, retrying is pointless
        with suppress(FileNotFoundError):  # its process has just removed it: try again
            if not is_new:
                held = _names_in(space)  # listed once: another process may add or remove its marker at any moment
            if held and _MARKER not in held:
                raise UsageError(f"{space} already exists, and heedful did not create it. Move or remove it.")
            if (descriptor := take_lock(space / _MARKER)) is None:
                raise UsageError(f"Another process is writing {final}. Wait for it to finish, or choose another name.")
            _clear(space, final)
            return descriptor, held == set()


def _make(space: Path) -> bool:
    """Create a directory. Return whether it is new."""
    try:
        space.mkdir()
    except FileExistsError:
        return False
    return True


def _names_in(space: Path) -> set[str]:
    """Return the names in a directory; for a file or a link, its own name."""
    return set(os.listdir(space)) if stat.S_ISDIR(space.lstat().st_mode) else {space.name}


def _clear(space: Path, final: Path) -> None:
    """Put back what was about to be replaced, and remove everything else except the marker."""
    if (space / _REPLACED).exists() and not os.path.lexists(final):
        os.rename(space / _REPLACED, final)
    for path in space.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != _MARKER:
            path.unlink()


def _remove(space: Path, final: Path, descriptor: int, keep: bool = False) -> None:
    """Remove a locked workspace, the marker last: the process may be killed here too."""
    try:
        if space.exists():
            _clear(space, final)
            (space / _MARKER).unlink(missing_ok=True)
            if not keep:
                with suppress(OSError):  # without its marker it was free, and the next process is using it
                    space.rmdir()
    finally:
        os.close(descriptor)


def _is_workspace(space: Path) -> bool:
    """Return whether `_workspace` created this directory."""
    marker = space / _MARKER
    return not space.is_symlink() and marker.is_file() and not marker.is_symlink()


def read_at_most(path: Path, most: int) -> bytes:
    """Return a file's content.

    Raise ValueError if it is not a regular file or longer than `most` bytes.
    """
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise ValueError("not a regular file")
    with path.open("rb") as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        raise ValueError(f"larger than {most:,} bytes")
    return content


def flush(path: Path) -> None:
    """Flush a file or a directory listing to disk (fsync)."""
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
    """Turn disk failures into a MachineError, and a bad path into a UsageError."""
    try:
        yield
    except OSError as error:
        if error.errno in _NAME_ERRORS:
            raise UsageError(f"Cannot write {path}: {cause(error)}. Choose another path.") from error
        if error.errno not in DISK_ERRORS:
            raise
        raise MachineError(disk_message(path, cause(error), needed)) from error


def disk_message(path: Path, reason: str, needed: int | None = None) -> str:
    if path.exists() and not (path.is_file() or path.is_dir()):
        return f"Cannot write {path}: {reason}. It is a device or pipe. Choose a file."
    wanted = f"{needed:,} bytes needed, " if needed is not None else ""
    return (
        f"Cannot write {path}: {reason} ({wanted}{free_bytes(path):,} bytes free). "
        "Existing files are unchanged. Free some space and run the same command again."
    )


def free_bytes(path: Path) -> int:
    """Return the free bytes of the file system of `path`, which need not exist yet."""
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free


def _put_in_place(new: Path, final: Path) -> None:
    if not final.exists():
        os.rename(new, final)
    elif not _exchange(new, final):
        # No atomic exchange on this system. If killed between the renames, `clear_unfinished` restores the old version.
        old = new.with_name(_REPLACED)
        os.rename(final, old)
        try:
            os.rename(new, final)
        except BaseException:
            os.rename(old, final)
            raise


def _exchange(first: Path, second: Path) -> bool:
    """Swap two names atomically with Linux's renameat2(RENAME_EXCHANGE)."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        return False
    return bool(renameat2(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE) == 0)
