"""Limits of requests: their number at a time, and allowances of tokens and money."""

from __future__ import annotations

import asyncio
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mast_tui.configuration import Prices
from mast_tui.judges.llm.client.budget import Allowance, Budget, Reserved
from mast_tui.judges.llm.client.rate_limiter import (
    MOST_BACK_OFF,
    MOST_SPREAD,
    RateLimiter,
    back_off,
)
from mast_tui.judges.llm.request import AllowanceSpent
from mast_tui.workspace import Usage
from tests.judges.llm.fake_time import FakeTime


async def hold(limiter: RateLimiter, release: asyncio.Event) -> None:
    async with limiter.turn():
        await release.wait()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


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
        limit = limiter.allowed
        answers = 0
        while limiter.allowed == limit:
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
    limiter = RateLimiter(3, timing=time.timing, ramp=0.5)
    begun = []
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


# Allowances


async def test_an_allowance_counts_earlier_spending_and_money() -> None:
    budget = Budget(Allowance(10_000), used=Usage(9, 8_000, 1_500))
    with pytest.raises(AllowanceSpent, match="exceed the 10,000 tokens allowed"):
        await budget.reserve(600, 100)
    await budget.reserve(400, 100)
    with pytest.raises(ValueError, match="price"):
        Budget(Allowance(cost=1.0))
    budget = Budget(Allowance(cost=0.01), prices=Prices(1.0, 10.0))
    budget.settle(await budget.reserve(1_000, 100), 1_000, 850)
    with pytest.raises(AllowanceSpent, match=r"exceed the 0\.0100 allowed"):
        await budget.reserve(1_000, 100)
    # A request that is too large by itself is reported as such.
    message = re.escape("one request alone may use 1,100, more than the 1,000 tokens allowed")
    with pytest.raises(AllowanceSpent, match=message):
        await Budget(Allowance(1_000), used=Usage(1, 500)).reserve(1_000, 400)
    dear = Budget(Allowance(cost=0.001), prices=Prices(1.0, 10.0))
    with pytest.raises(AllowanceSpent, match=re.escape("0.0020, more than the 0.0010 allowed")):
        await dear.reserve(1_000, 400)


async def test_reservations_of_running_requests_are_awaited() -> None:
    budget = Budget(Allowance(10_000))
    first = await budget.reserve(6_000, 0)
    second = asyncio.create_task(budget.reserve(6_000, 0))
    await asyncio.sleep(0)
    assert not second.done()
    budget.settle(first, 2_000, 0)
    assert await asyncio.wait_for(second, 5)
    third = asyncio.create_task(budget.reserve(8_500, 0))
    with pytest.raises(AllowanceSpent):
        await third


async def test_reservations_grow_with_longer_answers() -> None:
    budget = Budget(Allowance(10_000))
    budget.settle(await budget.reserve(1_000, 4_000), 1_000, 3_000)
    reserved = await budget.reserve(1_000, 4_000)
    assert reserved.tokens_out == 3_000
    assert (await budget.reserve(0, 2_000)).tokens_out == 2_000


WORKERS = 8


@settings(max_examples=40, deadline=None)
@given(
    allowed=st.integers(0, 60_000),
    sizes=st.lists(
        st.tuples(st.integers(1, 6_000), st.floats(0.5, 2.0), st.integers(0, 5_000), st.booleans()),
        min_size=1,
        max_size=40,
    ),
)
def test_workers_exceed_an_allowance_by_one_request_each_at_most(
    allowed: int, sizes: list[tuple[int, float, int, bool]]
) -> None:
    async def worker(budget: Budget, work: list[tuple[int, float, int, bool]]) -> None:
        while work:
            estimate, truth, tokens_out, answered = work.pop()
            reserved: Reserved = await budget.reserve(estimate, 4_000)
            for _ in range(tokens_out % 5):
                await asyncio.sleep(0)
            if answered:
                budget.settle(reserved, int(estimate * truth), tokens_out)
            budget.release(reserved)

    async def run() -> Budget:
        budget = Budget(Allowance(allowed))
        work = list(sizes)
        workers = (worker(budget, work) for _ in range(WORKERS))
        async with asyncio.timeout(20):
            ends = await asyncio.gather(*workers, return_exceptions=True)
        assert all(end is None or isinstance(end, AllowanceSpent) for end in ends)
        return budget

    budget = asyncio.run(run())
    largest = max(int(estimate * truth) + out for estimate, truth, out, _ in sizes)
    assert budget.tokens <= allowed + WORKERS * largest
