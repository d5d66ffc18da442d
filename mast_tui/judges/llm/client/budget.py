"""The budget of a run: tokens are reserved before each request and counted after it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from mast_tui.configuration import Prices
from mast_tui.judges.llm.request import AllowanceSpent
from mast_tui.workspace import Usage

FIRST_SHARE: Final = 0.25
"""The expected length of the first answer, as a share of its token limit."""


@dataclass(frozen=True, slots=True, eq=False)
class Reserved:
    """The reserved tokens of one try; a reservation equals only itself."""

    tokens_in: int
    tokens_out: int


@dataclass(frozen=True, slots=True)
class Allowance:
    """The most tokens (in and out) or money that a run may spend; None for no limit."""

    tokens: int | None = None
    cost: float | None = None

    def share(self, used: Usage, prices: Prices | None) -> float:
        """Return the used share of the allowance, the greater of the shares of tokens and money.

        Args:
            used: The usage.
            prices: The prices of tokens.
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
    """An allowance and its usage, for the tasks of one event loop.

    A request is sent only if its estimate fits, so each worker exceeds the allowance by at most one
    answer.

    Args:
        allowed: The allowance, with money in the unit of the prices.
        prices: The prices of tokens.
        used: The earlier usage.

    Raises:
        ValueError: An allowance in money has no prices.
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
        self._answer_count = 0
        self._answer_tokens = 0
        self._reservations: set[Reserved] = set()
        self._reservation_ended = asyncio.Event()

    @property
    def tokens(self) -> int:
        """The tokens used so far, in and out."""
        return self.used.tokens_in + self.used.tokens_out

    async def reserve(self, tokens_in: int, answer_tokens: int) -> Reserved:
        """Reserve the expected tokens of a request; the caller must settle, lose or release them.

        Wait while other requests have reserved the rest of the allowance.

        Args:
            tokens_in: The estimated tokens of the request.
            answer_tokens: The token limit of the answer.

        Raises:
            AllowanceSpent: The rest of the allowance is too small.
        """
        while True:
            request = Reserved(tokens_in, self._expected_answer_tokens(answer_tokens))
            # The end of all other requests would not leave enough.
            if not self._fits_allowance([request]):
                raise AllowanceSpent(self._spent_message(request))
            if self._fits_allowance([*self._reservations, request]):
                self._reservations.add(request)
                return request
            self._reservation_ended.clear()
            await self._reservation_ended.wait()

    def settle(
        self, reserved: Reserved, tokens_in: int, tokens_out: int, tokens_cached: int = 0
    ) -> None:
        """Count the tokens of an answer in place of the reserved tokens.

        Args:
            reserved: The reserved tokens.
            tokens_in: The tokens of the request.
            tokens_out: The tokens of the answer.
            tokens_cached: The tokens of the request that the server had cached.
        """
        self._add_usage(tokens_in, tokens_out, tokens_cached)
        self._answer_count += 1
        self._answer_tokens += tokens_out
        self.release(reserved)

    def lose(self, reserved: Reserved) -> None:
        """Count the request of a lost answer, because it may have to be paid."""
        self._add_usage(reserved.tokens_in, 0, 0)
        self.release(reserved)

    def release(self, reserved: Reserved) -> None:
        """Release reserved tokens, unless they were released before."""
        self._reservations.discard(reserved)
        self._reservation_ended.set()

    def _expected_answer_tokens(self, answer_tokens: int) -> int:
        """Return the mean tokens of earlier answers, at first a share of the token limit."""
        if not self._answer_count:
            return round(answer_tokens * FIRST_SHARE)
        return min(answer_tokens, -(-self._answer_tokens // self._answer_count))

    def _add_usage(self, tokens_in: int, tokens_out: int, tokens_cached: int) -> None:
        self.used += Usage(1, tokens_in, tokens_out, tokens_cached)

    def _fits_allowance(self, reservations: list[Reserved]) -> bool:
        """Check whether the usage with these reservations is within the allowance."""
        tokens_in = self.used.tokens_in
        tokens_out = self.used.tokens_out
        for reserved in reservations:
            tokens_in += reserved.tokens_in
            tokens_out += reserved.tokens_out
        if self._allowed.tokens is not None and tokens_in + tokens_out > self._allowed.tokens:
            return False
        if self._allowed.cost is None or self._prices is None:
            return True
        cost = self._prices.cost(tokens_in, tokens_out, self.used.tokens_cached)
        return cost <= self._allowed.cost

    def _spent_message(self, request: Reserved) -> str:
        """Return the error message for a request that exceeds the rest of the allowance."""
        tokens = request.tokens_in + request.tokens_out
        is_token_limit = (
            self._allowed.tokens is not None and self.tokens + tokens > self._allowed.tokens
        )
        if is_token_limit or self._prices is None:
            allowed_amount = f"{self._allowed.tokens:,} tokens"
            needed_amount = f"{tokens:,}"
            is_too_much = tokens > (self._allowed.tokens or 0)
        else:
            cost = self._prices.cost(request.tokens_in, request.tokens_out)
            allowed_amount = _amount_text(self._allowed.cost)
            needed_amount = _amount_text(cost)
            is_too_much = cost > (self._allowed.cost or 0.0)
        if is_too_much:
            return (
                f"one request alone may use {needed_amount}, more than the {allowed_amount} "
                "allowed; allow more"
            )
        # Answers to other requests may still arrive, so the usage until now is not reported.
        return (
            f"the next request would exceed the {allowed_amount} allowed; the same command "
            "continues with a new allowance"
        )


def _amount_text(amount: float | None) -> str:
    return f"{amount or 0.0:,.2f}" if not amount or amount >= 1 else f"{amount:.4f}"
