"""Directories and files that appear whole or not at all, and what a full disk says."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from heedful import files
from heedful.errors import MachineError, UsageError
from heedful.files import clear_unfinished, disk_errors, free_bytes, new_directory, write_durably

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def fill(directory: Path, content: str) -> None:
    (directory / "a").write_text(content, encoding="utf-8")
    (directory / "sub").mkdir()
    (directory / "sub" / "b").write_text(content, encoding="utf-8")


def tree(top: Path) -> dict[str, str]:
    return {
        str(path.relative_to(top)): path.read_text(encoding="utf-8")
        for path in sorted(top.rglob("*"))
        if path.is_file()
    }


def whole(name: str, content: str) -> dict[str, str]:
    return {f"{name}/a": content, f"{name}/sub/b": content}


@pytest.fixture(params=["exchange", "no exchange"])
def either_system(request, monkeypatch) -> None:
    """With the exchange of two names in one step, and on a system without it."""
    if request.param == "no exchange":
        monkeypatch.setattr(files, "_exchange", lambda first, second: False)


def test_a_new_directory_appears_whole_at_the_end(tmp_path):
    final = tmp_path / "deep" / "down" / "final"
    with new_directory(final) as unfinished:
        fill(unfinished, "new")
        assert not final.exists()
        assert unfinished.parent == final.parent  # one file system, so that renaming is one step
    assert tree(tmp_path) == whole("deep/down/final", "new")


@pytest.mark.usefixtures("either_system")
def test_an_old_directory_is_replaced_whole(tmp_path):
    for content in ("old", "new", "newer"):
        with new_directory(tmp_path / "final") as unfinished:
            fill(unfinished, content)
            (unfinished / content).touch()
    assert tree(tmp_path) == {**whole("final", "newer"), "final/newer": ""}


@pytest.mark.usefixtures("either_system")
@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("error", [ValueError("wrong"), KeyboardInterrupt()])
def test_a_failure_leaves_what_was_there_and_nothing_else(tmp_path, old, error):
    if old:
        with new_directory(tmp_path / "final") as unfinished:
            fill(unfinished, "old")

    def fail() -> None:
        with new_directory(tmp_path / "final") as unfinished:
            fill(unfinished, "new")
            raise error

    with pytest.raises(type(error)):
        fail()
    assert tree(tmp_path) == (whole("final", "old") if old else {})
    assert [path.name for path in tmp_path.iterdir()] == ["final"] * old


def test_leftovers_of_a_killed_process_do_not_get_in(tmp_path):
    leftover = tmp_path / ".unfinished-final"
    leftover.mkdir()
    (leftover / "rubbish").touch()
    with new_directory(tmp_path / "final") as unfinished:
        assert list(unfinished.iterdir()) == []
        fill(unfinished, "new")
    assert tree(tmp_path) == whole("final", "new")


def test_clearing_removes_leftovers_only(tmp_path):
    with new_directory(tmp_path / "final") as unfinished:
        fill(unfinished, "kept")
    (tmp_path / ".unfinished-other").mkdir()
    (tmp_path / ".unfinished-other" / "half").touch()
    (tmp_path / ".unfinished-file").touch()
    (tmp_path / ".unfinished-link").symlink_to(tmp_path / "final")
    clear_unfinished(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["final"]
    assert tree(tmp_path) == whole("final", "kept")


def test_clearing_nothing(tmp_path):
    (tmp_path / "kept").touch()
    clear_unfinished(tmp_path)
    clear_unfinished(tmp_path / "none")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


class Killed(BaseException):
    """A process that dies: nothing after it runs."""


def test_death_between_the_two_renames_loses_nothing(tmp_path, monkeypatch):
    """Where names cannot be exchanged, there is a moment without `final`; the next start puts the old one back."""
    with new_directory(tmp_path / "final") as unfinished:
        fill(unfinished, "old")
    monkeypatch.setattr(files, "_exchange", lambda first, second: False)
    new = tmp_path / ".unfinished-final"
    new.mkdir()
    fill(new, "new")
    rename, calls = os.rename, []

    def rename_once(source: Path, target: Path) -> None:
        if calls:
            raise Killed
        calls.append(source)
        rename(source, target)

    monkeypatch.setattr(os, "rename", rename_once)
    with pytest.raises(Killed):
        files._put_in_place(new, tmp_path / "final")
    monkeypatch.undo()
    assert not (tmp_path / "final").exists()
    clear_unfinished(tmp_path)
    assert tree(tmp_path) == whole("final", "old")


def test_clearing_prefers_the_new_one_where_it_is_in_place(tmp_path):
    for name in ("final", ".replaced-final"):
        (tmp_path / name).mkdir()
        fill(tmp_path / name, name)
    clear_unfinished(tmp_path)
    assert tree(tmp_path) == whole("final", "final")


def test_a_failed_second_rename_puts_the_old_one_back(tmp_path, monkeypatch):
    with new_directory(tmp_path / "final") as unfinished:
        fill(unfinished, "old")
    monkeypatch.setattr(files, "_exchange", lambda first, second: False)
    rename = os.rename

    def refuse_new(source: Path, target: Path) -> None:
        if Path(source).name.startswith(".unfinished-"):
            raise FULL
        rename(source, target)

    monkeypatch.setattr(os, "rename", refuse_new)

    def write() -> None:
        with new_directory(tmp_path / "final") as unfinished:
            fill(unfinished, "new")

    with pytest.raises(MachineError):
        write()
    assert tree(tmp_path) == whole("final", "old")
    assert [path.name for path in tmp_path.iterdir()] == ["final"]


def failing_at(call: int, function: Callable[..., None]) -> Callable[..., None]:
    made = []

    def wrapped(*arguments: object) -> None:
        made.append(arguments)
        if len(made) == call:
            raise FULL
        function(*arguments)

    return wrapped


# The block's tree has four names to flush: the directory, `a`, `sub` and `sub/b`.
@pytest.mark.parametrize("call", [1, 2, 3, 4])
@pytest.mark.parametrize("old", [False, True])
def test_a_disk_that_fills_up_while_flushing(tmp_path, monkeypatch, call, old):
    final = tmp_path / "final"
    if old:
        with new_directory(final) as unfinished:
            fill(unfinished, "old")
    monkeypatch.setattr(os, "fsync", failing_at(call, os.fsync))

    def write() -> None:
        with new_directory(final, needed=123_456_789) as unfinished:
            fill(unfinished, "new")

    with pytest.raises(MachineError) as caught:
        write()
    message = str(caught.value)
    assert message.startswith(f"{final} cannot be written: No space left on device (123,456,789 bytes needed, ")
    assert re.search(r", [\d,]+ bytes free\)\. What was there before is untouched\.", message)
    assert tree(tmp_path) == (whole("final", "old") if old else {})
    assert [path.name for path in tmp_path.iterdir()] == ["final"] * old


def test_a_disk_that_is_full_while_writing(tmp_path):
    def write() -> None:
        with new_directory(tmp_path / "final") as unfinished:
            fill(unfinished, "new")
            raise FULL

    with pytest.raises(MachineError, match=r"No space left on device \([\d,]+ bytes free\)"):
        write()
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full_before_the_first_directory(tmp_path, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise FULL

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(MachineError, match="cannot be written: No space left"), new_directory(tmp_path / "a" / "b"):
        pass


def test_everything_is_flushed_before_the_rename(tmp_path, monkeypatch):
    """Files and directories first, then the rename, then the parent's list of names."""
    events: list[str] = []
    flush, rename = files.flush, os.rename
    monkeypatch.setattr(files, "flush", lambda path: (events.append(Path(path).name), flush(path)))
    monkeypatch.setattr(os, "rename", lambda source, target: (events.append("rename"), rename(source, target)))
    with new_directory(tmp_path / "final") as unfinished:
        fill(unfinished, "new")
    renamed = events.index("rename")
    assert sorted(events[:renamed]) == [".unfinished-final", "a", "b", "sub"]
    assert events[renamed + 1 :] == [tmp_path.name]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS])
def test_disk_errors_are_the_machines_fault(tmp_path, number):
    with (
        pytest.raises(MachineError, match=re.escape(os.strerror(number))) as caught,
        disk_errors(tmp_path / "x", 5_000),
    ):
        raise OSError(number, os.strerror(number))
    assert "5,000 bytes needed" in str(caught.value)
    assert caught.value.exit_code == 4


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG])
def test_names_that_cannot_be_written_are_wrong_usage(tmp_path, number):
    with pytest.raises(UsageError) as caught, disk_errors(tmp_path / "x"):
        raise OSError(number, os.strerror(number))
    assert str(caught.value) == f"{tmp_path / 'x'} cannot be written: {os.strerror(number)}. Choose another place."
    assert caught.value.exit_code == 2


def test_a_directory_below_a_file_is_wrong_usage(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"file/x cannot be written: "), new_directory(tmp_path / "file" / "x"):
        pass


def test_other_errors_pass_through(tmp_path):
    with pytest.raises(TimeoutError), disk_errors(tmp_path):
        raise TimeoutError(errno.ETIMEDOUT, "no answer")
    with pytest.raises(ValueError, match="other"), disk_errors(tmp_path):
        raise ValueError("other")


def test_free_bytes_of_what_is_not_there_yet(tmp_path, monkeypatch):
    asked = []
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: (asked.append(path), usage)[1])
    assert free_bytes(tmp_path / "not" / "yet") == usage.free
    assert asked == [tmp_path]


def test_a_file_is_replaced_in_one_step(tmp_path):
    path = tmp_path / "config.toml"
    for content in (b"old", b"new", b""):
        write_durably(path, content)
        assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("old", [False, True])
def test_a_file_that_does_not_fit(tmp_path, monkeypatch, old):
    path = tmp_path / "config.toml"
    if old:
        write_durably(path, b"old")
    monkeypatch.setattr(os, "fsync", failing_at(1, os.fsync))
    with pytest.raises(MachineError) as caught:
        write_durably(path, b"x" * 1_234)
    assert str(caught.value).startswith(f"{path} cannot be written: No space left on device (1,234 bytes needed, ")
    assert [file.name for file in tmp_path.iterdir()] == ["config.toml"] * old
    assert not old or path.read_bytes() == b"old"
