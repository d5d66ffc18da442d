"""What may be spent: tokens or money are put aside before a request and settled after it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from mast_tui.judges.llm.errors import AllowanceSpent

FIRST_SHARE: Final = 0.25
"""Of the longest answer, what one is expected to take before any has come."""

PER: Final = 1_000_000
"""Prices are for so many tokens."""


@dataclass(frozen=True, slots=True, eq=False)
class Reserved:
    """What one try is expected to take, in tokens; each is one of its own."""

    tokens_in: int
    tokens_out: int


class Budget:
    """An allowance in tokens, in money, or both; without either it only counts.

    ``max_tokens`` counts tokens in and out together. ``price_in``, ``price_out`` and, where the
    server knows what is sent, ``price_cached`` are for a
    million tokens, in the unit of ``max_cost``. ``spent_in`` and ``spent_out`` are the tokens
    that were used before. One budget serves the tasks of one event loop. Since a request is only
    sent while its estimate still fits, no more than one answer of each worker can go beyond.

    Raises:
        ValueError: money is limited and a price is missing.
    """

    def __init__(
        self,
        *,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        price_in: float | None = None,
        price_out: float | None = None,
        price_cached: float | None = None,
        spent_in: int = 0,
        spent_out: int = 0,
        spent_cached: int = 0,
    ) -> None:
        if max_cost is not None and (price_in is None or price_out is None):
            raise ValueError("an allowance in money needs the prices of tokens in and out")
        self._max_tokens = max_tokens
        self._max_cost = max_cost
        self._price_in = price_in
        self._price_out = price_out
        self._price_cached = price_in if price_cached is None else price_cached
        self._in = spent_in
        self._out = spent_out
        self._cached = spent_cached
        self._answers = 0
        self._answered_out = 0
        self._held: set[Reserved] = set()
        self._settled = asyncio.Event()

    @property
    def tokens(self) -> int:
        """The tokens used so far, in and out."""
        return self._in + self._out

    @property
    def tokens_in(self) -> int:
        """The tokens sent so far."""
        return self._in

    @property
    def tokens_out(self) -> int:
        """The tokens of all answers so far."""
        return self._out

    @property
    def cost(self) -> float | None:
        """The money spent so far, None where a price is not known."""
        return self._cost(self._in, self._out)

    async def reserve(self, tokens_in: int, answer_tokens: int) -> Reserved:
        """Put aside what a request is expected to take, to be settled or released.

        ``tokens_in`` is an estimate of what is sent, ``answer_tokens`` the most that its answer
        may take. Where the rest is only held by requests under way, it waits for them.

        Raises:
            AllowanceSpent: the rest does not suffice.
        """
        while True:
            wanted = Reserved(tokens_in, self._expected(answer_tokens))
            if not self._fits([wanted]):
                raise AllowanceSpent(self._words(wanted))
            if self._fits([*self._held, wanted]):
                self._held.add(wanted)
                return wanted
            self._settled.clear()
            await self._settled.wait()

    def settle(
        self, reserved: Reserved, tokens_in: int, tokens_out: int, tokens_cached: int = 0
    ) -> None:
        """An answer came: count what it took in place of what was put aside.

        Args:
            reserved: What that was.
            tokens_in: All that was sent.
            tokens_out: What the answer took.
            tokens_cached: What of that sent the server knew.
        """
        self._in += tokens_in
        self._cached += tokens_cached
        self._out += tokens_out
        self._answers += 1
        self._answered_out += tokens_out
        self.release(reserved)

    def lose(self, reserved: Reserved) -> None:
        """An answer was lost on its way: what was sent may have to be paid, so it counts."""
        self._in += reserved.tokens_in
        self.release(reserved)

    def release(self, reserved: Reserved) -> None:
        """No answer came: take back what was put aside; nothing where it was settled."""
        self._held.discard(reserved)
        self._settled.set()

    def _expected(self, answer_tokens: int) -> int:
        if not self._answers:
            return round(answer_tokens * FIRST_SHARE)
        return min(answer_tokens, -(-self._answered_out // self._answers))

    def _fits(self, planned: list[Reserved]) -> bool:
        tokens_in = self._in + sum(each.tokens_in for each in planned)
        tokens_out = self._out + sum(each.tokens_out for each in planned)
        if self._max_tokens is not None and tokens_in + tokens_out > self._max_tokens:
            return False
        cost = self._cost(tokens_in, tokens_out)
        return self._max_cost is None or cost is None or cost <= self._max_cost

    def _cost(self, tokens_in: int, tokens_out: int) -> float | None:
        if self._price_in is None or self._price_out is None or self._price_cached is None:
            return None
        saved = self._cached * (self._price_in - self._price_cached)
        return (tokens_in * self._price_in + tokens_out * self._price_out - saved) / PER

    def _words(self, wanted: Reserved) -> str:
        alone = wanted.tokens_in + wanted.tokens_out
        tokens = self._max_tokens is not None and self.tokens + alone > self._max_tokens
        if tokens:
            used, most = f"{self.tokens:,}", f"{self._max_tokens:,} tokens"
            takes, too_much = f"{alone:,}", alone > (self._max_tokens or 0)
        else:
            cost = self._cost(wanted.tokens_in, wanted.tokens_out) or 0.0
            used, most = _money(self.cost), _money(self._max_cost)
            takes, too_much = _money(cost), cost > (self._max_cost or 0.0)
        if too_much:
            return f"one request alone may take {takes} of the {most} allowed; allow more"
        return (
            f"{used} of the {most} allowed are {'used' if tokens else 'spent'}, and the next"
            " request would go beyond; the same command goes on with a new allowance"
        )


def _money(amount: float | None) -> str:
    return f"{amount or 0.0:,.2f}" if not amount or amount >= 1 else f"{amount:.4f}"
