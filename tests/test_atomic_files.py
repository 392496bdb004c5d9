"""Atomic writes of files and directories, and disk errors."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from heedful import atomic_files
from heedful.atomic_files import clear_unfinished, discard, disk_errors, free_bytes, new_directory, write_durably
from heedful.errors import MachineError, UsageError

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Killed(BaseException):
    """Raised to simulate a process that dies: no handler runs after it."""


def anything(_: Path) -> bool:
    return True


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
        monkeypatch.setattr(atomic_files, "_exchange", lambda first, second: False)


def test_new_directory_appears_only_when_complete(tmp_path):
    final = tmp_path / "deep" / "down" / "final"
    with new_directory(final) as unfinished:
        fill(unfinished, "new")
        assert not final.exists()
        assert unfinished.parent.parent == final.parent  # one file system, so that renaming is one step
    assert tree(tmp_path) == whole("deep/down/final", "new")


@pytest.mark.usefixtures("either_system")
def test_old_directory_is_replaced_completely(tmp_path):
    for content in ("old", "new", "newer"):
        with new_directory(tmp_path / "final", replaces=anything) as unfinished:
            fill(unfinished, content)
            (unfinished / content).touch()
    assert tree(tmp_path) == {**whole("final", "newer"), "final/newer": ""}


@pytest.mark.usefixtures("either_system")
@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("error", [ValueError("wrong"), KeyboardInterrupt()])
def test_failure_leaves_the_old_version_and_nothing_else(tmp_path, old, error):
    if old:
        with new_directory(tmp_path / "final") as unfinished:
            fill(unfinished, "old")

    def fail() -> None:
        with new_directory(tmp_path / "final", replaces=anything) as unfinished:
            fill(unfinished, "new")
            raise error

    with pytest.raises(type(error)):
        fail()
    assert tree(tmp_path) == (whole("final", "old") if old else {})
    assert [path.name for path in tmp_path.iterdir()] == ["final"] * old


def killed(final: Path, content: str = "half") -> Path:
    """Leave what a process killed inside `new_directory` leaves; return the hidden directory."""
    pid = os.fork()
    if pid == 0:
        with new_directory(final, replaces=anything) as unfinished:
            fill(unfinished, content)
            os._exit(9)
    os.waitpid(pid, 0)
    [space] = final.parent.glob(".unfinished-*")
    return space


def test_leftovers_of_a_killed_process_are_excluded(tmp_path):
    killed(tmp_path / "final", "rubbish")
    with new_directory(tmp_path / "final") as unfinished:
        assert list(unfinished.iterdir()) == []
        fill(unfinished, "new")
    assert tree(tmp_path) == whole("final", "new")


def test_clearing_removes_heedfuls_leftovers_only(tmp_path):
    with new_directory(tmp_path / "final") as unfinished:
        fill(unfinished, "kept")
    killed(tmp_path / "other")
    mine = tmp_path / ".unfinished-mine"
    mine.mkdir()
    fill(mine, "mine")
    (tmp_path / ".unfinished-file").write_text("mine", encoding="utf-8")
    (tmp_path / ".unfinished-link").symlink_to(tmp_path / "final")
    clear_unfinished(tmp_path)
    assert tree(tmp_path) == {**whole("final", "kept"), **whole(".unfinished-mine", "mine"), ".unfinished-file": "mine"}
    assert (tmp_path / ".unfinished-link").is_symlink()


@pytest.mark.parametrize("kind", ["directory", "file", "link"])
def test_foreign_workspace_is_not_removed(tmp_path, kind):
    mine = tmp_path / ".unfinished-final"
    (tmp_path / "elsewhere").mkdir()
    fill(tmp_path / "elsewhere", "mine")
    if kind == "directory":
        shutil.copytree(tmp_path / "elsewhere", mine)
    elif kind == "file":
        mine.write_text("mine", encoding="utf-8")
    else:
        mine.symlink_to(tmp_path / "elsewhere")
    before = tree(tmp_path)
    with (
        pytest.raises(UsageError, match="already exists, and heedful did not create it"),
        new_directory(tmp_path / "final"),
    ):
        pass
    assert tree(tmp_path) == before
    assert os.path.lexists(mine)


@pytest.mark.parametrize("kind", ["directory", "file", "link", "dangling link"])
def test_foreign_directory_is_not_replaced(tmp_path, kind):
    final = tmp_path / "final"
    (tmp_path / "elsewhere").mkdir()
    fill(tmp_path / "elsewhere", "mine")
    if kind == "directory":
        shutil.copytree(tmp_path / "elsewhere", final)
    elif kind == "file":
        final.write_text("mine", encoding="utf-8")
    else:
        final.symlink_to(tmp_path / ("elsewhere" if kind == "link" else "nowhere"))
    before = tree(tmp_path)
    said = "is a symbolic link" if "link" in kind else "heedful replaces only directories that it wrote"
    with pytest.raises(UsageError, match=said), new_directory(final):
        pytest.fail("work was done for nothing")
    assert tree(tmp_path) == before
    assert final.is_symlink() == ("link" in kind)


def test_target_created_during_the_write_is_not_replaced(tmp_path):
    final = tmp_path / "final"

    def write() -> None:
        with new_directory(final) as unfinished:
            fill(unfinished, "new")
            final.mkdir()
            fill(final, "mine")

    with pytest.raises(UsageError, match="heedful replaces only directories that it wrote"):
        write()
    assert tree(tmp_path) == whole("final", "mine")


def test_a_link_is_not_replaced_by_a_file(tmp_path):
    (tmp_path / "mine").write_text("mine", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    with pytest.raises(UsageError, match="is a symbolic link"):
        write_durably(tmp_path / "link", b"new")
    assert (tmp_path / "link").read_text(encoding="utf-8") == "mine"
    assert (tmp_path / "link").is_symlink()


def test_discarding_does_not_follow_links(tmp_path):
    (tmp_path / "mine").mkdir()
    fill(tmp_path / "mine", "mine")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "link").symlink_to(tmp_path / "mine")
    discard(tmp_path / "old")
    assert tree(tmp_path) == whole("mine", "mine")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_killed_removal_can_be_finished(tmp_path, monkeypatch):
    """The marker is removed last, so that leftovers are recognised wherever the process dies."""
    unlink, rmdir = os.unlink, os.rmdir
    for call in range(1, 7):
        killed(tmp_path / "final")
        made: list[object] = []

        def dying(function, made=made, call=call):
            def wrapped(*arguments, **named):
                made.append(arguments)
                if len(made) == call:
                    raise Killed
                return function(*arguments, **named)

            return wrapped

        monkeypatch.setattr(os, "unlink", dying(unlink))
        monkeypatch.setattr(os, "rmdir", dying(rmdir))
        with pytest.raises(Killed):
            clear_unfinished(tmp_path)
        monkeypatch.undo()
        clear_unfinished(tmp_path)
        # Killed between its marker and the directory itself: empty, so it could be the user's, and is in nobody's way.
        assert [path for path in tmp_path.iterdir() if not atomic_files.is_empty(path)] == []
        with new_directory(tmp_path / "final", replaces=anything) as unfinished:
            fill(unfinished, "next")
        assert tree(tmp_path) == whole("final", "next")
        shutil.rmtree(tmp_path / "final")


def test_clearing_nothing(tmp_path):
    (tmp_path / "kept").touch()
    clear_unfinished(tmp_path)
    clear_unfinished(tmp_path / "none")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_death_between_the_two_renames_loses_nothing(tmp_path, monkeypatch):
    """Without atomic exchange `final` is briefly missing; the next start restores it."""
    with new_directory(tmp_path / "final") as unfinished:
        fill(unfinished, "old")
    monkeypatch.setattr(atomic_files, "_exchange", lambda first, second: False)
    space = killed(tmp_path / "final", "new")
    rename, calls = os.rename, []

    def rename_once(source: Path, target: Path) -> None:
        if calls:
            raise Killed
        calls.append(source)
        rename(source, target)

    monkeypatch.setattr(os, "rename", rename_once)
    with pytest.raises(Killed):
        atomic_files._put_in_place(space / "final", tmp_path / "final")
    monkeypatch.undo()
    assert not (tmp_path / "final").exists()
    clear_unfinished(tmp_path)
    assert tree(tmp_path) == whole("final", "old")


def test_clearing_keeps_the_new_version_if_it_is_in_place(tmp_path):
    space = killed(tmp_path / "final", "half")
    for directory in (tmp_path / "final", space / "replaced"):
        directory.mkdir()
        fill(directory, directory.name)
    clear_unfinished(tmp_path)
    assert tree(tmp_path) == whole("final", "final")


def test_failed_second_rename_restores_the_old_version(tmp_path, monkeypatch):
    with new_directory(tmp_path / "final") as unfinished:
        fill(unfinished, "old")
    monkeypatch.setattr(atomic_files, "_exchange", lambda first, second: False)
    rename = os.rename

    def refuse_new(source: Path, target: Path) -> None:
        if Path(source).name == "final" and Path(target) == tmp_path / "final":
            raise FULL
        rename(source, target)

    monkeypatch.setattr(os, "rename", refuse_new)

    def write() -> None:
        with new_directory(tmp_path / "final", replaces=anything) as unfinished:
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
        with new_directory(final, needed=123_456_789, replaces=anything) as unfinished:
            fill(unfinished, "new")

    with pytest.raises(MachineError) as caught:
        write()
    message = str(caught.value)
    assert message.startswith(f"Cannot write {final}: no space left on device (123,456,789 bytes needed, ")
    assert re.search(r", [\d,]+ bytes free\)\. Existing files are unchanged\.", message)
    assert tree(tmp_path) == (whole("final", "old") if old else {})
    assert [path.name for path in tmp_path.iterdir()] == ["final"] * old


def test_a_disk_that_is_full_while_writing(tmp_path):
    def write() -> None:
        with new_directory(tmp_path / "final") as unfinished:
            fill(unfinished, "new")
            raise FULL

    with pytest.raises(MachineError, match=r"no space left on device \([\d,]+ bytes free\)"):
        write()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_full_device_gets_its_own_advice():
    said = r"^Cannot write /dev/full: no space left on device\. It is a device or pipe"
    with pytest.raises(MachineError, match=said), disk_errors(Path("/dev/full")):
        raise FULL


def test_a_disk_that_is_full_before_the_first_directory(tmp_path, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise FULL

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(MachineError, match=r"Cannot write .*: no space left"), new_directory(tmp_path / "a" / "b"):
        pass


def test_everything_is_flushed_before_the_rename(tmp_path, monkeypatch):
    """Files and directories first, then the rename, then the parent's list of names."""
    events: list[str] = []
    flush, rename = atomic_files.flush, os.rename
    monkeypatch.setattr(atomic_files, "flush", lambda path: (events.append(Path(path).name), flush(path)))
    monkeypatch.setattr(os, "rename", lambda source, target: (events.append("rename"), rename(source, target)))
    with new_directory(tmp_path / "final") as unfinished:
        fill(unfinished, "new")
    renamed = events.index("rename")
    assert sorted(events[:renamed]) == [".unfinished-final", "a", "b", "final", "sub"]
    assert events[renamed + 1 :] == [tmp_path.name]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS])
def test_disk_errors_are_machine_errors(tmp_path, number):
    with (
        pytest.raises(MachineError, match=re.escape(os.strerror(number).lower())) as caught,
        disk_errors(tmp_path / "x", 5_000),
    ):
        raise OSError(number, os.strerror(number))
    assert "5,000 bytes needed" in str(caught.value)
    assert caught.value.exit_code == 4


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG])
def test_unwritable_paths_are_usage_errors(tmp_path, number):
    with pytest.raises(UsageError) as caught, disk_errors(tmp_path / "x"):
        raise OSError(number, os.strerror(number))
    assert str(caught.value) == f"Cannot write {tmp_path / 'x'}: {os.strerror(number).lower()}. Choose another path."
    assert caught.value.exit_code == 2


def test_directory_below_a_file_is_a_usage_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"Cannot write \S*file/x: "), new_directory(tmp_path / "file" / "x"):
        pass


def test_other_errors_pass_through(tmp_path):
    with pytest.raises(TimeoutError), disk_errors(tmp_path):
        raise TimeoutError(errno.ETIMEDOUT, "no answer")
    with pytest.raises(ValueError, match="other"), disk_errors(tmp_path):
        raise ValueError("other")


def test_free_bytes_of_a_path_that_does_not_exist(tmp_path, monkeypatch):
    asked = []
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: (asked.append(path), usage)[1])
    assert free_bytes(tmp_path / "not" / "yet") == usage.free
    assert asked == [tmp_path]


WRITE = """
import sys
from pathlib import Path
from heedful.atomic_files import new_directory, new_file
final, content = Path(sys.argv[2]), sys.argv[3]
with {"file": new_file, "directory": new_directory}[sys.argv[1]](final) as unfinished:
    path = unfinished if sys.argv[1] == "file" else unfinished / "a"
    path.write_text(content[:1], encoding="utf-8")
    print("half", flush=True)
    sys.stdin.read()
    path.write_text(content, encoding="utf-8")
"""


def writer(kind: str, final: Path, content: str) -> subprocess.Popen[str]:
    """Start a process that writes half of `final`, and the rest when its input ends."""
    command = [sys.executable, "-c", WRITE, kind, str(final), content]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_second_writer_is_rejected(tmp_path, kind):
    """The second is refused, and the old version stays until the first publishes its own."""
    final = tmp_path / "final"
    final.write_text("old", encoding="utf-8") if kind == "file" else final.mkdir()
    with writer(kind, final, "first") as first:
        assert first.stdout.readline() == "half\n"
        clear_unfinished(tmp_path)
        with writer(kind, final, "second") as second:
            out, error = second.communicate(timeout=60)
        assert (second.returncode, out) == (1, "")
        assert f"UsageError: Another process is writing {final}. Wait for it to finish" in error
        assert tree(tmp_path)["final"] == "old" if kind == "file" else list(final.iterdir()) == []
        assert first.communicate(timeout=60) == ("", "")
        assert first.returncode == 0
    assert tree(tmp_path) == {"final" if kind == "file" else "final/a": "first"}
    assert list(tmp_path.iterdir()) == [final]


def test_many_processes_publish_only_whole_files(tmp_path):
    """Processes start together; each that succeeds published its own file at that moment."""
    final = tmp_path / "final"
    code = """
import sys
from pathlib import Path
from heedful.errors import UsageError
from heedful.atomic_files import write_durably
for turn in range(200):
    try:
        write_durably(Path(sys.argv[1]), sys.argv[2].encode() * 5_000)
    except UsageError as error:
        assert "Another process is writing" in str(error), error
"""
    processes = [subprocess.Popen([sys.executable, "-c", code, str(final), letter]) for letter in "abc"]
    seen = set()
    while any(process.poll() is None for process in processes):
        if final.exists():
            seen.add(final.read_bytes())
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert seen <= {letter.encode() * 5_000 for letter in "abc"}
    assert [path for path in tmp_path.iterdir() if not atomic_files.is_empty(path)] == [final]


@pytest.mark.parametrize("write", [atomic_files.new_file, discard])
def test_missing_parent_is_reported_immediately(tmp_path, write):
    """It must not be mistaken for a directory that another process has just removed."""
    with (
        pytest.raises(UsageError, match="none/final: no such file or directory"),
        write(tmp_path / "none" / "final"),
    ):
        pass


@pytest.mark.parametrize("kind", ["pipe", "directory"])
def test_only_plain_files_are_replaced_by_files(tmp_path, kind):
    path = tmp_path / "final"
    os.mkfifo(path) if kind == "pipe" else path.mkdir()
    with pytest.raises(UsageError, match="is not a regular file"):
        write_durably(path, b"new")
    assert (path.is_fifo(), path.is_dir()) == (kind == "pipe", kind == "directory")
    assert list(tmp_path.iterdir()) == [path]


def test_empty_user_directory_is_kept(tmp_path):
    for name in (".unfinished-final", ".unfinished-other"):
        (tmp_path / name).mkdir()
    clear_unfinished(tmp_path)
    write_durably(tmp_path / "final", b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".unfinished-final", ".unfinished-other", "final"]


def test_a_file_is_replaced_in_one_step(tmp_path):
    path = tmp_path / "config.toml"
    for content in (b"old", b"new", b""):
        write_durably(path, content)
        assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o755])
def test_the_permissions_of_a_replaced_file_are_kept(tmp_path, mode):
    path = tmp_path / "private"
    path.write_bytes(b"old")
    path.chmod(mode)
    with atomic_files.new_file(path) as beside:
        beside.write_bytes(b"new")
        assert beside.stat().st_mode & 0o077 == 0  # nobody else reads it meanwhile
    assert (path.read_bytes(), path.stat().st_mode & 0o7777) == (b"new", mode)


@pytest.mark.parametrize("old", [False, True])
def test_file_that_does_not_fit_on_the_disk(tmp_path, monkeypatch, old):
    path = tmp_path / "config.toml"
    if old:
        write_durably(path, b"old")
    monkeypatch.setattr(os, "fsync", failing_at(1, os.fsync))
    with pytest.raises(MachineError) as caught:
        write_durably(path, b"x" * 1_234)
    assert str(caught.value).startswith(f"Cannot write {path}: no space left on device (1,234 bytes needed, ")
    assert [file.name for file in tmp_path.iterdir()] == ["config.toml"] * old
    assert not old or path.read_bytes() == b"old"
