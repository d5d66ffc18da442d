"""Requests, and clients that ask a scripted server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

import pytest

from mast_tui.judges.llm.client.budget import Budget
from mast_tui.judges.llm.client.client import Client
from mast_tui.judges.llm.client.endpoint import NO_KEY, Endpoint
from mast_tui.judges.llm.client.rate_limiter import RateLimiter
from mast_tui.judges.llm.request import AskError, Correction, Parameters, Reply, Request
from tests.judges.llm.fake_time import FakeTime
from tests.judges.llm.server import MODEL, Action, ModelServer, Script, Seen, answer

ANSWER_TOKENS = 1_000

SCHEMA: dict[str, object] = {"type": "object", "properties": {"a": {"type": "string"}}}

E = TypeVar("E", bound=BaseException)


def a_request(text: str = "what failed?", *, tokens: int = 100, sample: int = 0) -> Request:
    """Make a request with the text between two boundaries."""
    return Request(("Judge in JSON. ", " bounds"), ("", text, ""), SCHEMA, tokens, (), sample)


def after(times: int, first: Action, last: Action | None = None) -> Script:
    """Do the first action this many times, and then answer."""
    final = last or answer("ok")
    return lambda _body, n: first if n < times else final


@dataclass
class Asking:
    """A client and the server that it asks; its waits take no time.

    ``waits`` and ``remarks`` are the client's messages to the user.
    """

    server: ModelServer
    client: Client
    time: FakeTime
    waits: list[str]
    remarks: list[str]

    @property
    def chats(self) -> list[Seen]:
        return self.server.chats

    @property
    def waited(self) -> float:
        """The seconds that the client has waited."""
        return self.time.time - 100.0

    async def ask(
        self,
        text: str = "what failed?",
        *,
        tokens: int = 100,
        sample: int = 0,
        room: int = ANSWER_TOKENS,
        correction: Correction | None = None,
    ) -> Reply:
        """Ask a question; ``tokens`` is its estimate."""
        request = a_request(text, tokens=tokens, sample=sample)
        return await self.client.ask(request, room, correction)

    async def fails(self, error: type[E], message: str | None = None, **question: object) -> E:
        """Ask a question that ends in this error, with a message that matches."""
        with pytest.raises(error, match=message) as caught:
            await self.ask(**question)  # type: ignore[arg-type]
        return caught.value


@asynccontextmanager
async def asking(
    script: Action | Script | None = None,
    *,
    models: Sequence[str] | None = (MODEL,),
    chance: float = 0.5,
    parameters: Parameters | None = None,
    key: str = NO_KEY,
    headers: dict[str, str] | None = None,
    budget: Budget | None = None,
    at_once: int = 16,
    first: int | None = None,
    timeout: float = 20.0,
    tries: int = 4,
    path: str = "",
) -> AsyncIterator[Asking]:
    """Run a server that does this with every request, and a client of the server."""
    time = FakeTime(chance)
    waits: list[str] = []
    remarks: list[str] = []
    respond = (lambda _body, _n: script) if isinstance(script, Action) else script
    with ModelServer(respond, models=models) as server:
        async with Client(
            parameters or Parameters(MODEL),
            Endpoint(f"{server.base_url}{path}", key, timeout=timeout, headers=headers or {}),
            budget=budget,
            limiter=RateLimiter(at_once, timing=time.timing, first=first),
            tries=tries,
            on_wait=waits.append,
            on_remark=remarks.append,
        ) as client:
            yield Asking(server, client, time, waits, remarks)


async def reply_to(script: Action | Script) -> Reply:
    async with asking(script) as chat:
        return await chat.ask()


async def error_from(script: Action | Script, *, timeout: float = 20.0, tries: int = 3) -> AskError:
    """Return the error in which one request ends, which gets no answer."""
    async with asking(script, timeout=timeout, tries=tries) as chat:
        return await chat.fails(AskError)
