"""The request queue, which batches sentences of several requests.

One worker thread translates, one batch at a time; other requests wait in the queue. A batch takes one sentence of each
waiting request in turn, so that short texts do not wait for long ones. All bookkeeping runs on the event loop, so there
are no locks.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from heedful.errors import HeedfulError
from heedful.serving.served_model import Engine

T = TypeVar("T")
Found = list[list[list[int]]]  # n-best translations per sentence, as token ids
BATCH_TOKENS = 1_000  # larger batches are hardly faster, and requests wait for the whole batch
_FIRST_GUESS = 500.0  # tokens per second, before the first batch
_SMOOTHING = 0.2  # weight of the newest batch in the average speed


class OverloadError(HeedfulError):
    """The queue is full. Try again in `seconds`."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"The server is busy. Try again in {seconds} s.")
        self.seconds = seconds


@dataclass(eq=False)
class Job:
    """The sentences of a request and the translations so far."""

    engine: Engine
    sources: list[list[int]]  # token ids of each sentence
    n_best: int
    answer: asyncio.Future[Found]
    taken: int = 0  # sentences already assigned to a batch
    found: Found = field(default_factory=list)


class Batcher:
    """The request queue and its worker thread. Call `start` and `close` on the event loop."""

    def __init__(self, waiting: int) -> None:
        self.capacity = waiting  # tokens
        self.tokens = 0  # of all requests in the queue
        self.speed = _FIRST_GUESS  # tokens per second
        self.batches = 0
        self._jobs: deque[Job] = deque()
        self._arrival = asyncio.Event()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="translate")
        self._work: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._work = asyncio.create_task(self._translate_batches())

    async def close(self) -> None:
        if self._work is not None:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)
        self._thread.shutdown()

    async def translate(self, engine: Engine, sources: list[list[int]], n_best: int) -> Found:
        """Return the n-best translations of every sentence.

        The caller holds a slot.
        """
        if not sources:
            return []
        job = Job(engine, sources, n_best, asyncio.get_running_loop().create_future())
        self._jobs.append(job)
        self._arrival.set()
        return await job.answer

    async def run(self, work: Callable[[], T]) -> T:
        """Run other work in the worker thread, between two batches.

        The caller holds a slot.
        """
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    @contextmanager
    def slot(self, tokens: int) -> Iterator[None]:
        """Hold a slot of the queue while a request is computed.

        A cancelled request frees its slot.
        An empty queue takes any request; a full one raises OverloadError.
        """
        if self.tokens and self.tokens + tokens > self.capacity:
            raise OverloadError(max(1, math.ceil(self.tokens / self.speed)))
        self.tokens += tokens
        try:
            yield
        finally:
            self.tokens -= tokens

    async def _translate_batches(self) -> None:
        while True:
            await self._arrival.wait()
            batch = self._next_batch()
            if not batch:
                self._arrival.clear()
                continue
            await self._translate_batch(batch)

    def _next_batch(self) -> list[tuple[Job, int]]:
        """Return (job, index) of the next sentences, from all jobs compatible with the oldest."""
        batch: list[tuple[Job, int]] = []
        space, others = BATCH_TOKENS, deque[Job]()
        while self._jobs and space > 0:
            job = self._jobs.popleft()
            if job.answer.done():  # cancelled
                continue
            if batch and (job.engine, job.n_best) != (batch[0][0].engine, batch[0][0].n_best):
                others.append(job)
                continue
            batch.append((job, job.taken))
            space -= len(job.sources[job.taken])
            job.taken += 1
            if job.taken < len(job.sources):
                self._jobs.append(job)
        self._jobs.extendleft(reversed(others))  # the next batch starts with them
        return batch

    async def _translate_batch(self, batch: list[tuple[Job, int]]) -> None:
        engine, n_best = batch[0][0].engine, batch[0][0].n_best
        sources = [job.sources[number] for job, number in batch]
        began = time.perf_counter()
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(self._thread, engine.search, sources, n_best)
            if len(found) != len(sources):
                raise RuntimeError(f"{len(sources)} sentences, {len(found)} translations")
        except Exception as error:  # all requests of this batch fail; the next batch may succeed
            for job, _ in batch:
                if not job.answer.done():
                    job.answer.set_exception(error)
            return
        speed = sum(map(len, sources)) / max(time.perf_counter() - began, 1e-6)
        self.speed = speed if self.batches == 0 else (1 - _SMOOTHING) * self.speed + _SMOOTHING * speed
        self.batches += 1
        for (job, _), translations in zip(batch, found, strict=True):
            job.found.append(translations)  # batches take a job's sentences in order
            if len(job.found) == len(job.sources) and not job.answer.done():
                job.answer.set_result(job.found)
