"""The number of concurrent requests."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.judges.llm.client.rate_limiter import (
    MOST_BACK_OFF,
    MOST_SPREAD,
    RateLimiter,
    back_off,
)
from tests.judges.llm.fake_time import FakeTime


async def hold(limiter: RateLimiter, release: asyncio.Event) -> None:
    async with limiter.turn():
        await release.wait()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_healthy_server_gets_all_requests() -> None:
    with pytest.raises(ValueError, match="at least one"):
        RateLimiter(0)
    limiter, release = RateLimiter(16), asyncio.Event()
    tasks = [asyncio.create_task(hold(limiter, release)) for _ in range(20)]
    await settle()
    assert limiter.running_count == 16
    release.set()
    await asyncio.gather(*tasks)
    assert limiter.running_count == 0


async def test_concurrent_refusals_halve_the_limit_once() -> None:
    limiter = RateLimiter(16)
    async with limiter.turn() as first, limiter.turn() as second:
        limiter.slow_down(first, None)
        limiter.slow_down(second, None)
    assert limiter.allowed == 8
    async with limiter.turn() as later:
        limiter.slow_down(later, None)
    assert limiter.allowed == 4


async def test_the_limit_stays_above_zero_and_grows_by_one_per_round() -> None:
    limiter = RateLimiter(4)
    for _ in range(5):
        async with limiter.turn() as turn:
            limiter.slow_down(turn, None)
    assert limiter.allowed == 1
    needed = []
    for _ in range(3):
        before, answers = limiter.allowed, 0
        while limiter.allowed == before:
            limiter.request_succeeded()
            answers += 1
        needed.append(answers)
    assert (limiter.allowed, needed) == (4, [1, 2, 3])
    limiter.request_succeeded()
    assert limiter.allowed == 4


async def test_requested_waits_hold_for_all_requests() -> None:
    for chance in [0.0, 0.5, 0.99]:
        time = FakeTime(chance)
        limiter = RateLimiter(4, timing=time.timing)
        async with limiter.turn() as turn:
            assert limiter.slow_down(turn, 20.0)
            assert not limiter.slow_down(turn, 20.0)
            assert not limiter.slow_down(turn, 5.0)
        async with limiter.turn():
            # By chance, so that those who waited together do not come back at one moment.
            assert time.time == pytest.approx(120.0 + chance * MOST_SPREAD)


async def test_the_first_requests_are_staggered() -> None:
    time = FakeTime()
    limiter, begun = RateLimiter(3, timing=time.timing, ramp=0.5), []
    for _ in range(6):
        async with limiter.turn():
            begun.append(time.time)
    assert [moment - begun[0] for moment in begun] == [0.0, 0.5, 1.0, 1.5, 1.5, 1.5]


async def test_waiting_requests_keep_their_order_and_wait_as_asked() -> None:
    time = FakeTime()
    limiter = RateLimiter(1, timing=time.timing)
    async with limiter.turn() as turn:
        release = asyncio.Event()
        release.set()
        second = asyncio.create_task(hold(limiter, release))
        await settle()
        limiter.slow_down(turn, 30.0)
    await second
    assert time.time >= 130.0
    limiter = RateLimiter(1)
    order: list[int] = []

    async def take(name: int) -> None:
        async with limiter.turn():
            order.append(name)
            await asyncio.sleep(0)

    await asyncio.gather(*(take(name) for name in range(6)))
    assert order == list(range(6))


async def test_cancelled_requests_free_their_place() -> None:
    limiter = RateLimiter(1)
    async with limiter.turn():
        waiting = [asyncio.create_task(hold(limiter, asyncio.Event())) for _ in range(3)]
        await settle()
        waiting[1].cancel()
        await settle()
    waiting[0].cancel()  # it has just been let in, and does not know yet
    waiting[2].cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert limiter.running_count == 0
    async with asyncio.timeout(5), limiter.turn():
        assert limiter.running_count == 1


@given(st.integers(1, 50), st.floats(0, 1, exclude_max=True))
def test_back_off_is_random_up_to_a_doubling_limit(tries: int, chance: float) -> None:
    assert 0 <= back_off(tries, chance) <= min(MOST_BACK_OFF, 2.0 ** (tries - 1))
    assert back_off(tries, chance) <= back_off(tries + 1, chance)
