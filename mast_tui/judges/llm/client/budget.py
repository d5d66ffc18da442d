"""What may be spent: tokens or money are put aside before a request and settled after it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from mast_tui.configuration import Prices
from mast_tui.judges.llm.errors import AllowanceSpent
from mast_tui.workspace import Usage

FIRST_SHARE: Final = 0.25
"""Of the longest answer, what one is expected to take before any has come."""


@dataclass(frozen=True, slots=True, eq=False)
class Reserved:
    """What one try is expected to take, in tokens; each is one of its own."""

    tokens_in: int
    tokens_out: int


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a run may spend, in tokens in and out together or in money; None is without bounds."""

    tokens: int | None = None
    cost: float | None = None

    def share(self, used: Usage, prices: Prices | None) -> float:
        """What was used, as a share of what is allowed; the greater one where both are bounded.

        Args:
            used: What was used.
            prices: What tokens cost.
        """
        share = 0.0
        if self.tokens:
            share = (used.tokens_in + used.tokens_out) / self.tokens
        if self.cost and prices is not None:
            cost = prices.cost(used.tokens_in, used.tokens_out, used.tokens_cached)
            share = max(share, cost / self.cost)
        return share


UNBOUNDED: Final = Allowance()


class Budget:
    """An allowance in tokens, in money, or both; without either it only counts.

    One serves the tasks of one event loop. Since a request is only sent while its estimate still
    fits, no more than one answer of each worker can go beyond.

    Args:
        allowed: What may be spent, money in the unit of the prices.
        prices: What tokens cost.
        used: What was used before.

    Raises:
        ValueError: Money is limited and nobody has said the prices.
    """

    def __init__(
        self,
        allowed: Allowance = UNBOUNDED,
        *,
        prices: Prices | None = None,
        used: Usage | None = None,
    ) -> None:
        if allowed.cost is not None and prices is None:
            raise ValueError("an allowance in money needs prices")
        self._allowed = allowed
        self._prices = prices
        self.used = used or Usage()
        """What was used so far."""
        self._answers = 0
        self._answered_out = 0
        self._held: set[Reserved] = set()
        self._settled = asyncio.Event()

    @property
    def tokens(self) -> int:
        """The tokens used so far, in and out."""
        return self.used.tokens_in + self.used.tokens_out

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
        self._use(tokens_in, tokens_out, tokens_cached)
        self._answers += 1
        self._answered_out += tokens_out
        self.release(reserved)

    def lose(self, reserved: Reserved) -> None:
        """An answer was lost on its way: what was sent may have to be paid, so it counts."""
        self._use(reserved.tokens_in, 0, 0)
        self.release(reserved)

    def release(self, reserved: Reserved) -> None:
        """No answer came: take back what was put aside; nothing where it was settled."""
        self._held.discard(reserved)
        self._settled.set()

    def _expected(self, answer_tokens: int) -> int:
        if not self._answers:
            return round(answer_tokens * FIRST_SHARE)
        return min(answer_tokens, -(-self._answered_out // self._answers))

    def _use(self, tokens_in: int, tokens_out: int, tokens_cached: int) -> None:
        self.used += Usage(1, tokens_in, tokens_out, tokens_cached)

    def _fits(self, planned: list[Reserved]) -> bool:
        tokens_in = self.used.tokens_in + sum(each.tokens_in for each in planned)
        tokens_out = self.used.tokens_out + sum(each.tokens_out for each in planned)
        if self._allowed.tokens is not None and tokens_in + tokens_out > self._allowed.tokens:
            return False
        if self._allowed.cost is None or self._prices is None:
            return True
        cost = self._prices.cost(tokens_in, tokens_out, self.used.tokens_cached)
        return cost <= self._allowed.cost

    def _words(self, wanted: Reserved) -> str:
        alone = wanted.tokens_in + wanted.tokens_out
        tokens = self._allowed.tokens is not None and self.tokens + alone > self._allowed.tokens
        if tokens or self._prices is None:
            used, most = f"{self.tokens:,}", f"{self._allowed.tokens:,} tokens"
            takes, too_much = f"{alone:,}", alone > (self._allowed.tokens or 0)
        else:
            now = self.used
            spent = self._prices.cost(now.tokens_in, now.tokens_out, now.tokens_cached)
            cost = self._prices.cost(wanted.tokens_in, wanted.tokens_out)
            used, most = _money(spent), _money(self._allowed.cost)
            takes, too_much = _money(cost), cost > (self._allowed.cost or 0.0)
        if too_much:
            return f"one request alone may take {takes} of the {most} allowed; allow more"
        return (
            f"{used} of the {most} allowed are {'used' if tokens else 'spent'}, and the next"
            " request would go beyond; the same command goes on with a new allowance"
        )


def _money(amount: float | None) -> str:
    return f"{amount or 0.0:,.2f}" if not amount or amount >= 1 else f"{amount:.4f}"
