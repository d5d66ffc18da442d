"""The way to the server that a setup names, with the allowance and what was spent of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from mast_tui.judges.llm.client.budget import Budget
from mast_tui.judges.llm.client.client import Client
from mast_tui.judges.llm.client.hosts import check_address
from mast_tui.judges.llm.client.keys import find_key
from mast_tui.judges.llm.client.rate_limiter import FIRST, RAMP, RateLimiter
from mast_tui.judges.llm.model import Asks
from mast_tui.judges.llm.run.setup import Setup
from mast_tui.workspace import Usage


def budget_of(setup: Setup, spent: Usage) -> Budget:
    """Make what may be spent.

    Args:
        setup: Says the allowance and the prices.
        spent: What the run has used already.
    """
    prices = setup.prices
    return Budget(
        max_tokens=setup.allowance.tokens,
        max_cost=setup.allowance.cost,
        price_in=None if prices is None else prices.input,
        price_out=None if prices is None else prices.output,
        price_cached=None if prices is None else prices.cached,
        spent_in=spent.tokens_in,
        spent_out=spent.tokens_out,
        spent_cached=spent.tokens_cached,
    )


@asynccontextmanager
async def connected(
    setup: Setup,
    spent: Usage,
    on_wait: Callable[[str], None],
    on_remark: Callable[[str], None],
) -> AsyncIterator[Asks]:
    """A client for as long as it is needed.

    ``on_wait`` is told why requests wait, ``on_remark`` what the server does not take.

    Raises:
        RunStops: the address may not be asked, or there is no key for it.
    """
    check_address(setup.base_url, allow_http=setup.allow_http)
    async with Client(
        setup.parameters,
        base_url=setup.base_url,
        api_key=find_key(setup.base_url, setup.key_variable),
        timeout=setup.timeout,
        budget=budget_of(setup, spent),
        limiter=RateLimiter(setup.concurrency, ramp=RAMP, first=FIRST),
        key_variable=setup.key_variable,
        allow_http=setup.allow_http,
        headers=setup.headers,
        on_wait=on_wait,
        on_remark=on_remark,
    ) as client:
        yield client
