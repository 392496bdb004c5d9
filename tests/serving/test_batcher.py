"""Request batching: correct results, fairness and overload."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from heedful.serving import batcher as module
from heedful.serving.batcher import Batcher, OverloadError

FAILS = "!"


def ids(text: str, tokens: int = 1) -> list[int]:
    """A sentence: a character, and as many tokens."""
    return [ord(text)] + [0] * (tokens - 1)


class Held:
    """An engine that waits for `go`, records its input, and returns sentence and rank."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.go = threading.Semaphore(0)

    def search(self, sources: list[list[int]], n_best: int) -> list[list[list[int]]]:
        self.batches.append([chr(source[0]) for source in sources])
        self.go.acquire()
        if FAILS in self.batches[-1]:
            raise ValueError("broken")
        return [[[source[0], rank] for rank in range(n_best)] for source in sources]


def answer(text: str, n_best: int = 1) -> list[list[list[int]]]:
    return [[[ord(character), rank] for rank in range(n_best)] for character in text]


def run(work: Callable[[Batcher, Held], Awaitable[None]], waiting: int = 100) -> Held:
    async def all_of_it() -> Held:
        batcher, engine = Batcher(waiting), Held()
        batcher.start()
        try:
            await work(batcher, engine)
        finally:
            engine.go.release(100)
            await batcher.close()
        return engine

    return asyncio.run(all_of_it())


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came")


def ask(
    batcher: Batcher, engine: Held, *sentences: str, n_best: int = 1, tokens: int = 1
) -> asyncio.Task[list[list[list[int]]]]:
    async def in_a_slot() -> list[list[list[int]]]:
        with batcher.slot(tokens * len(sentences)):
            return await batcher.translate(engine, [ids(one, tokens) for one in sentences], n_best)

    return asyncio.ensure_future(in_a_slot())


def test_queued_requests_share_a_batch_and_get_their_own_results() -> None:
    async def work(batcher: Batcher, engine: Held) -> None:
        first = ask(batcher, engine, "a")
        await until(lambda: engine.batches == [["a"]])
        others = [ask(batcher, engine, "b", "c"), ask(batcher, engine, "d")]
        await asyncio.sleep(0.05)
        engine.go.release(100)
        assert await first == answer("a")
        assert await others[0] == answer("bc")
        assert await others[1] == answer("d")
        assert batcher.tokens == 0

    assert run(work).batches == [["a"], ["b", "d", "c"]]


def test_long_request_does_not_delay_a_short_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH_TOKENS", 2)

    async def work(batcher: Batcher, engine: Held) -> None:
        long = ask(batcher, engine, *"abcdef")
        await until(lambda: engine.batches == [["a", "b"]])
        short = ask(batcher, engine, "x")
        engine.go.release(2)
        assert await short == answer("x")
        assert not long.done()
        engine.go.release(100)
        assert await long == answer("abcdef")

    run(work)


def test_only_compatible_requests_share_a_batch() -> None:
    async def work(batcher: Batcher, engine: Held) -> None:
        first = ask(batcher, engine, "a")
        await until(lambda: len(engine.batches) == 1)
        tasks = [first, ask(batcher, engine, "b"), ask(batcher, engine, "c", n_best=2), ask(batcher, engine, "d")]
        await asyncio.sleep(0.05)
        engine.go.release(100)
        found = await asyncio.gather(*tasks)
        assert found[2] == answer("c", n_best=2)

    assert run(work).batches == [["a"], ["b", "d"], ["c"]]


def test_full_queue_is_rejected_with_retry_after() -> None:
    async def work(batcher: Batcher, engine: Held) -> None:
        first = ask(batcher, engine, "a", tokens=60)
        await until(lambda: len(engine.batches) == 1)
        second = ask(batcher, engine, "b", tokens=40)
        await asyncio.sleep(0.02)
        with pytest.raises(OverloadError, match="busy") as caught:
            await ask(batcher, engine, "c")
        assert caught.value.seconds >= 1
        engine.go.release(100)
        await asyncio.gather(first, second)
        assert await ask(batcher, engine, "c", tokens=101) == answer("c")  # an empty queue takes anything

    run(work)


def test_cancelled_request_frees_its_slot() -> None:
    async def work(batcher: Batcher, engine: Held) -> None:
        first = ask(batcher, engine, "a")
        await until(lambda: len(engine.batches) == 1)
        gone = ask(batcher, engine, "g", tokens=99)
        await asyncio.sleep(0.02)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        assert batcher.tokens == 1
        engine.go.release(100)
        await first
        assert await ask(batcher, engine, "b") == answer("b")

    assert ["g"] not in run(work).batches


def test_failed_batch_does_not_affect_the_next() -> None:
    async def work(batcher: Batcher, engine: Held) -> None:
        engine.go.release(100)
        with pytest.raises(ValueError, match="broken"):
            await batcher.translate(engine, [ids(FAILS), ids("x")], 1)
        assert await batcher.translate(engine, [ids("x")], 1) == answer("x")
        assert batcher.tokens == 0

    run(work)


def test_other_jobs_run_between_batches() -> None:
    async def work(batcher: Batcher, engine: Held) -> None:
        assert await batcher.run(lambda: 7) == 7
        assert await batcher.translate(engine, [], 1) == []

    run(work)
