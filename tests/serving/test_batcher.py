"""Requests that are translated together: to each its own, none waits for the longest, and too many are refused."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from heedful.serving import batcher as module
from heedful.serving.batcher import Batcher, OverloadError

Answer = asyncio.Task[list[list[str]]]


class Held:
    """An engine that waits for `go` before each batch, and says what it was given."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.go = threading.Semaphore(0)

    def search(self, sentences: list[str], n_best: int) -> list[list[str]]:
        self.batches.append(sentences)
        self.go.acquire()
        if "fails" in sentences:
            raise ValueError("broken")
        return [[f"{sentence}{rank}" for rank in range(n_best)] for sentence in sentences]


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
) -> asyncio.Task[list[list[str]]]:
    return asyncio.ensure_future(batcher.translate(engine, list(sentences), [tokens] * len(sentences), n_best))


def test_what_waits_is_translated_together_and_everyone_gets_his_own() -> None:
    async def work(batcher: Batcher, engine: Held) -> None:
        first = ask(batcher, engine, "a")
        await until(lambda: engine.batches == [["a"]])
        others = [ask(batcher, engine, "b", "c"), ask(batcher, engine, "d")]
        await asyncio.sleep(0.05)
        engine.go.release(100)
        assert await first == [["a0"]]
        assert await others[0] == [["b0"], ["c0"]]
        assert await others[1] == [["d0"]]
        assert batcher.tokens == 0

    assert run(work).batches == [["a"], ["b", "d", "c"]]


def test_a_long_text_does_not_hold_up_a_short_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOGETHER", 2)

    async def work(batcher: Batcher, engine: Held) -> None:
        long = ask(batcher, engine, *"abcdef")
        await until(lambda: engine.batches == [["a", "b"]])
        short = ask(batcher, engine, "x")
        engine.go.release(2)
        assert await short == [["x0"]]
        assert not long.done()
        engine.go.release(100)
        assert await long == [[f"{letter}0"] for letter in "abcdef"]

    run(work)


def test_only_what_goes_together_is_put_together() -> None:
    async def work(batcher: Batcher, engine: Held) -> None:
        first = ask(batcher, engine, "a")
        await until(lambda: len(engine.batches) == 1)
        tasks = [first, ask(batcher, engine, "b"), ask(batcher, engine, "c", n_best=2), ask(batcher, engine, "d")]
        await asyncio.sleep(0.05)
        engine.go.release(100)
        found = await asyncio.gather(*tasks)
        assert found[2] == [["c0", "c1"]]

    assert run(work).batches == [["a"], ["b", "d"], ["c"]]


def test_too_much_is_refused_and_said_when_to_come_again() -> None:
    async def work(batcher: Batcher, engine: Held) -> None:
        first = ask(batcher, engine, "a", tokens=60)
        await until(lambda: len(engine.batches) == 1)
        second = ask(batcher, engine, "b", tokens=40)
        await asyncio.sleep(0.02)
        with pytest.raises(OverloadError, match="busy") as caught:
            await batcher.translate(engine, ["c"], [1], 1)
        assert caught.value.seconds >= 1
        engine.go.release(100)
        await asyncio.gather(first, second)
        assert await batcher.translate(engine, ["c"], [101], 1) == [["c0"]]  # alone, anything within a request's limits

    run(work)


def test_whoever_goes_makes_room_and_is_not_translated() -> None:
    async def work(batcher: Batcher, engine: Held) -> None:
        first = ask(batcher, engine, "a")
        await until(lambda: len(engine.batches) == 1)
        gone = ask(batcher, engine, "gone", tokens=99)
        await asyncio.sleep(0.02)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        assert batcher.tokens == 1
        engine.go.release(100)
        await first
        assert await ask(batcher, engine, "b") == [["b0"]]

    assert ["gone"] not in run(work).batches


def test_a_batch_that_fails_is_said_and_the_next_one_is_translated() -> None:
    async def work(batcher: Batcher, engine: Held) -> None:
        engine.go.release(100)
        with pytest.raises(ValueError, match="broken"):
            await batcher.translate(engine, ["fails", "x"], [1, 1], 1)
        assert await batcher.translate(engine, ["x"], [1], 1) == [["x0"]]
        assert batcher.tokens == 0

    run(work)


def test_other_work_has_its_turn() -> None:
    async def work(batcher: Batcher, engine: Held) -> None:
        assert await batcher.alone(lambda: 7, 1) == 7
        assert await batcher.translate(engine, [], [], 1) == []

    run(work)
