"""Sentences of many requests, translated together.

One thread translates, a batch at a time; while it does, requests wait here. A batch takes a sentence of each waiting
request in turn, so that a short text does not wait for a long one. All bookkeeping is on the event loop: no locks.
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
from heedful.serving.engine import Engine

T = TypeVar("T")
TOGETHER = 1_000  # tokens of a batch: more are hardly translated faster, and whoever comes next waits for all of them
_FIRST_GUESS = 500.0  # tokens per second, before any was translated
_SMOOTHING = 0.2  # the weight of the newest batch in the speed


class OverloadError(HeedfulError):
    """Too much waits already; `seconds` from now it may not."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"The server is busy. Try again in {seconds} s.")
        self.seconds = seconds


@dataclass(eq=False)
class Job:
    """The sentences of a request. `found` fills up as batches take them."""

    engine: Engine
    sentences: list[str]
    tokens: list[int]  # of each sentence
    n_best: int
    answer: asyncio.Future[list[list[str]]]
    taken: int = 0
    found: list[list[str]] = field(default_factory=list)


class Batcher:
    """`start` it on a running event loop, `close` it there."""

    def __init__(self, waiting: int) -> None:
        self.most = waiting  # tokens
        self.tokens = 0  # of all jobs that are here
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

    async def translate(self, engine: Engine, sentences: list[str], tokens: list[int], n_best: int) -> list[list[str]]:
        """Best translations of every sentence. Whoever is cancelled while he waits gives his place free."""
        if not sentences:
            return []
        with self._place(sum(tokens)):
            job = Job(engine, sentences, tokens, n_best, asyncio.get_running_loop().create_future())
            self._jobs.append(job)
            self._arrival.set()
            return await job.answer

    async def alone(self, work: Callable[[], T], tokens: int) -> T:
        """Other work for the thread that translates, when its batch is done: worth a quarter of all that may wait."""
        with self._place(max(tokens, self.most // 4)):
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    @contextmanager
    def _place(self, tokens: int) -> Iterator[None]:
        """A request that is within the limits of one has its place whenever nothing else is here."""
        if self.tokens and self.tokens + tokens > self.most:
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
        """Sentences as (job, number), of jobs that go together with the one that has waited longest."""
        batch: list[tuple[Job, int]] = []
        room, others = TOGETHER, deque[Job]()
        while self._jobs and room > 0:
            job = self._jobs.popleft()
            if job.answer.done():  # whoever asked has gone
                continue
            if batch and (job.engine, job.n_best) != (batch[0][0].engine, batch[0][0].n_best):
                others.append(job)
                continue
            batch.append((job, job.taken))
            room -= job.tokens[job.taken]
            job.taken += 1
            if job.taken < len(job.sentences):
                self._jobs.append(job)
        self._jobs.extendleft(reversed(others))  # they come first now
        return batch

    async def _translate_batch(self, batch: list[tuple[Job, int]]) -> None:
        engine, n_best = batch[0][0].engine, batch[0][0].n_best
        sentences = [job.sentences[number] for job, number in batch]
        began = time.perf_counter()
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(self._thread, engine.search, sentences, n_best)
            if len(found) != len(sentences):
                raise RuntimeError(f"{len(sentences)} sentences, {len(found)} translations")
        except Exception as error:  # whatever it was, those who wait must hear of it, and the next batch may do better
            for job, _ in batch:
                if not job.answer.done():
                    job.answer.set_exception(error)
            return
        tokens = sum(job.tokens[number] for job, number in batch)
        speed = tokens / max(time.perf_counter() - began, 1e-6)
        self.speed = speed if self.batches == 0 else (1 - _SMOOTHING) * self.speed + _SMOOTHING * speed
        self.batches += 1
        for (job, _), translations in zip(batch, found, strict=True):
            job.found.append(translations)  # a job's sentences are taken in order
            if len(job.found) == len(job.sentences) and not job.answer.done():
                job.answer.set_result(job.found)
