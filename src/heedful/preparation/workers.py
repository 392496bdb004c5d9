"""Run a function in several processes, each call in a process of its own.

A finished process returns its memory. A killed one is noticed, and all end when the main process is killed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import connection, get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Any, NamedTuple

from heedful.errors import HeedfulError, MachineError

Work = Callable[..., None]


class _Running(NamedTuple):
    process: BaseProcess
    result: Connection
    job: tuple[Any, ...]


def run_in_processes(
    work: Work, jobs: Sequence[tuple[Any, ...]], processes: int, finished: Callable[[tuple[Any, ...]], None]
) -> None:
    """Call `work(*job)`, then `finished(job)`, for every job; one process means this process."""
    if processes == 1:
        for job in jobs:
            work(*job)
            finished(job)
        return
    waiting, running = list(jobs), list[_Running]()
    try:
        while waiting or running:
            while waiting and len(running) < processes:
                running.append(_start(work, waiting.pop(0)))
            ready = connection.wait([one.process.sentinel for one in running])
            for one in [one for one in running if one.process.sentinel in ready]:
                running.remove(one)
                _require_success(one)
                finished(one.job)
    finally:
        for one in running:
            one.process.kill()
            one.process.join()


def _start(work: Work, job: tuple[Any, ...]) -> _Running:
    context = get_context("spawn")  # a fork would copy the locks of other threads
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(work, job, send), daemon=True)
    process.start()
    send.close()
    return _Running(process, receive, job)


def _run(work: Work, job: tuple[Any, ...], send: Connection) -> None:
    Thread(target=_end_with_parent, daemon=True).start()
    try:
        work(*job)
    except HeedfulError as error:
        send.send((type(error), str(error)))
    except KeyboardInterrupt:  # the main process got it as well, and reports it
        os._exit(130)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _require_success(one: _Running) -> None:
    one.process.join()
    with suppress(EOFError):
        if one.result.poll():
            kind, message = one.result.recv()
            raise kind(message)
    if one.process.exitcode:
        raise MachineError(
            f"A process that prepared a shard ended with exit code {one.process.exitcode}; it may have run out of "
            "memory. Finished shards are kept: run the same command again, with a lower `--processes`."
        )
