"""Requests and clients for tests that talk to the scripted server."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from mast_tui.judges.llm.client.budget import Budget
from mast_tui.judges.llm.client.client import Client
from mast_tui.judges.llm.client.endpoint import Endpoint
from mast_tui.judges.llm.client.keys import NO_KEY
from mast_tui.judges.llm.client.rate_limiter import RateLimiter
from mast_tui.judges.llm.errors import AskError
from mast_tui.judges.llm.request import Parameters, Reply, Request
from tests.judges.llm.fake_time import FakeTime
from tests.judges.llm.server import MODEL, Action, ModelServer, answer

ANSWER_TOKENS = 1_000

SCHEMA: dict[str, object] = {"type": "object", "properties": {"a": {"type": "string"}}}


def a_request(text: str = "what failed?", *, tokens: int = 100, sample: int = 0) -> Request:
    """A question with the text between two boundaries."""
    return Request(("Judge in JSON. ", " bounds"), ("", text, ""), SCHEMA, tokens, (), sample)


@dataclass
class Heard:
    """What a client told the person."""

    waits: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def a_client(
    server: ModelServer,
    *,
    heard: Heard | None = None,
    time: FakeTime | None = None,
    key: str = NO_KEY,
    budget: Budget | None = None,
    at_once: int = 16,
    timeout: float = 20.0,
    temperature: float | None = None,
    tries: int = 4,
    base_url: str | None = None,
    limiter: RateLimiter | None = None,
) -> Client:
    """A client of the server whose waits take no time."""
    heard, timing = heard or Heard(), (time or FakeTime()).timing
    return Client(
        Parameters(MODEL, temperature=temperature),
        Endpoint(base_url or server.base_url, key, timeout=timeout),
        budget=budget,
        limiter=limiter or RateLimiter(at_once, timing=timing),
        tries=tries,
        on_wait=heard.waits.append,
        on_remark=heard.remarks.append,
        timing=timing,
    )


def after(times: int, first: Action, then: Action | None = None) -> ModelServer:
    """A server that does the one thing so many times, and then answers."""
    right = then or answer("ok")
    return ModelServer(lambda _body, n: first if n < times else right)


async def ask_once(server: ModelServer, text: str = "what failed?") -> Reply:
    """The answer to one request."""
    async with a_client(server) as client:
        return await client.ask(a_request(text), ANSWER_TOKENS)


async def failure(server: ModelServer, *, timeout: float = 20.0, tries: int = 3) -> AskError:
    """What one request ends in that gets no answer."""
    async with a_client(server, timeout=timeout, tries=tries) as client:
        with pytest.raises(AskError) as caught:
            await client.ask(a_request(), ANSWER_TOKENS)
    return caught.value
