"""Worker processes: errors and deaths are reported, and none outlives the main process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from heedful.errors import CorpusError, MachineError
from heedful.preparation.workers import run_in_processes


def touch(path: Path, what: str) -> None:
    if what == "fail":
        raise CorpusError(f"{path} is bad.")
    if what == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    path.write_text(str(os.getpid()), encoding="utf-8")
    if what == "wait":
        time.sleep(600)


@pytest.mark.parametrize("processes", [1, 2])
def test_every_job_is_done_once(tmp_path: Path, processes: int) -> None:
    done: list[str] = []
    jobs = [(tmp_path / str(number), "") for number in range(4)]
    run_in_processes(touch, jobs, processes, lambda job: done.append(job[0].name))
    assert sorted(done) == ["0", "1", "2", "3"]
    assert len({path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}) == (1 if processes == 1 else 4)


def test_errors_arrive_unchanged(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"x is bad\.$"):
        run_in_processes(touch, [(tmp_path / "x", "fail"), (tmp_path / "y", "wait")], 2, lambda _: None)


def test_a_killed_process_is_reported(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="exit code -9"):
        run_in_processes(touch, [(tmp_path / "x", "die"), (tmp_path / "y", "wait")], 2, lambda _: None)


MAIN = """
import sys
from pathlib import Path
from test_workers import touch
from heedful.preparation.workers import run_in_processes
if __name__ == "__main__":
    run_in_processes(touch, [(Path(sys.argv[1]) / str(n), "wait") for n in range(2)], 2, print)
"""


def test_workers_end_when_the_main_process_is_killed(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(MAIN, encoding="utf-8")
    files = [tmp_path / str(number) for number in range(2)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    with subprocess.Popen([sys.executable, "main.py", str(tmp_path)], cwd=tmp_path, env=environment) as main:
        while not all(path.is_file() and path.read_text(encoding="utf-8") for path in files):
            assert main.poll() is None
            time.sleep(0.05)
        workers = [int(path.read_text(encoding="utf-8")) for path in files]
        main.kill()
    deadline = time.monotonic() + 60
    while any(is_running(worker) for worker in workers):
        assert time.monotonic() < deadline, "a worker outlived the main process"
        time.sleep(0.05)


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
