"""The client of a model, asked through the real library: answers, retries, waits, allowances."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest

from mast_tui.judges.llm.client.budget import Allowance, Budget
from mast_tui.judges.llm.client.client import FREE_WAIT_SECONDS, RESTART, Client
from mast_tui.judges.llm.client.endpoint import Endpoint
from mast_tui.judges.llm.client.rate_limiter import FIRST, RateLimiter
from mast_tui.judges.llm.request import AllowanceSpent, Parameters, Reply, RunStops, Unanswered
from tests import waiting
from tests.judges.llm.asking import (
    ANSWER_TOKENS,
    SCHEMA,
    a_request,
    after,
    asking,
    error_from,
    reply_to,
)
from tests.judges.llm.fake_time import FakeTime
from tests.judges.llm.server import (
    MODEL,
    Action,
    ModelServer,
    Script,
    answer,
    close,
    document,
    empty,
    hang,
    html,
    raw,
    status,
)

pytestmark = pytest.mark.slow

# Right answers


async def test_a_reply_has_its_text_and_tokens_and_a_request_its_messages_and_schema() -> None:
    async with asking(answer("it failed", tokens_in=123, tokens_out=45)) as chat:
        reply = await chat.ask("a trace with half an \ud83d emoji")
        (request,) = chat.chats
    assert reply == Reply("it failed", "stop", "json_schema", 123, 45)
    assert request.headers["authorization"] == "Bearer none"
    body: Any = request.body
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert "a trace with half an \ufffd emoji" in body["messages"][1]["content"]
    assert (body["model"], body["max_tokens"]) == (MODEL, ANSWER_TOKENS)
    assert "temperature" not in body
    form = body["response_format"]
    assert form["type"] == "json_schema"
    assert (form["json_schema"]["schema"], form["json_schema"]["strict"]) == (SCHEMA, True)


@pytest.mark.parametrize(
    ("action", "finish", "text"),
    [
        (answer([{"type": "text", "text": "it "}, {"type": "text", "text": "fell"}]), "stop",
         "it fell"),
        (answer(["it ", {"type": "image"}, "fell"]), "stop", "it fell"),
        (answer("ünï\u2028code"), "stop", "ünï\u2028code"),
        (answer("broken \ud83d emoji"), "stop", "broken \ufffd emoji"),
        (answer("it fell", reasoning="hm"), "stop", "it fell"),
        (answer("it fell", reasoning_content="hm"), "stop", "it fell"),
        (answer("half", finish="STOP"), "stop", "half"),
        # Where a server puts the answer elsewhere.
        (answer(None, tool_calls=[{"function": {"name": "j", "arguments": '{"a": 1}'}}]), "stop",
         '{"a": 1}'),
        (answer("", reasoning_content='so {"a": 1}'), "stop", '{"a": 1}'),
        (answer(None, reasoning='{"a": 1}'), "stop", '{"a": 1}'),
        (answer(None, refusal="I will not"), "refusal", "I will not"),
        (answer("", refusal="I will not", finish=None), "refusal", "I will not"),
        (answer("half an", finish="content_filter"), "refusal", "half an"),
        (answer("half", finish="SAFETY"), "refusal", "half"),
        (status(400, "the content management policy", code="content_filter"), "refusal", "policy"),
        (answer('{"verd', finish="length"), "length", '{"verd'),
        (answer("half", finish="MAX_TOKENS"), "length", "half"),
        (answer("", finish="length"), "length", ""),
        (answer(None, finish="length"), "length", ""),
    ],
)  # fmt: skip
async def test_text_and_finish_are_read_wherever_a_server_puts_them(
    action: Action, finish: str, text: str
) -> None:
    async with asking(action) as chat:
        reply = await chat.ask()
        assert len(chat.chats) == 1
    assert reply.finish == finish
    partly = finish != "stop" or '"a"' in text
    assert text in reply.text if partly else text == reply.text


async def test_tokens_without_a_usable_count_are_estimated() -> None:
    for tokens_in in (None, 2**63):
        reply = await reply_to(answer("it failed", tokens_in=tokens_in))
        assert (reply.counted, reply.tokens_in) == (False, 100)
        assert reply.tokens_out > 0


async def test_as_many_requests_as_allowed_run_at_once() -> None:
    async with asking(answer("ok").when_together(16)) as chat:
        await asyncio.gather(*(chat.ask() for _ in range(40)))
        assert chat.server.most_in_flight == 16


# Retries

TRANSIENT: dict[str, Callable[[], Action]] = {
    "429": lambda: status(429, "too many requests"),
    "429 with seconds": lambda: status(429, headers={"retry-after": "30"}),
    "408": lambda: status(408),
    "409": lambda: status(409),
    "500": lambda: status(500),
    "502 with a page": lambda: html(502),
    "503": lambda: status(503, headers={"retry-after": "20"}),
    "529": lambda: status(529),
    "closed": close,
    "cut": lambda: answer("a long answer").cut(40),
    "reset": lambda: answer("a long answer").cut(40, reset=True),
    "no JSON": lambda: raw(b'{"choices": [{"mess'),
    "empty": empty,
    "a list": lambda: document([1]),
    "no choices": lambda: document({"choices": []}),
    "null": lambda: answer(None, tokens_in=None),
    "an error in a right response": lambda: document({"error": {"message": "busy", "code": 503}}),
    "a generation that failed": lambda: status(400, "no luck", code="json_validate_failed"),
}
ASKED_TO_WAIT = ("429 with seconds", "503")
RESTARTING = ("502 with a page", "an error in a right response")
"""Answers of servers and gateways that restart."""


@pytest.mark.parametrize("name", TRANSIENT)
async def test_transient_errors_are_retried_and_fail_only_their_trace(name: str) -> None:
    async with asking(after(2, TRANSIENT[name]())) as chat:
        assert (await chat.ask()).text == "ok"
        assert len(chat.chats) == 3
    if name not in ASKED_TO_WAIT + RESTARTING:
        async with asking(TRANSIENT[name](), tries=3) as chat:
            error = await chat.fails(Unanswered, "127.0.0.1.*in 3 tries")
            assert len(chat.chats) == 3
        assert type(error) is Unanswered


async def test_waits_that_the_server_asks_for_cost_no_tries_but_end() -> None:
    for name in ASKED_TO_WAIT:
        async with asking(TRANSIENT[name](), tries=3) as chat:
            await chat.fails(Unanswered, "in 3 tries")
            assert FREE_WAIT_SECONDS < chat.waited < 2 * FREE_WAIT_SECONDS


@pytest.mark.parametrize("name", RESTARTING)
async def test_a_restarting_server_is_awaited_for_two_minutes_then_the_trace_fails(
    name: str,
) -> None:
    restarting = TRANSIENT[name]()
    async with asking(tries=2, first=FIRST) as chat:
        chat.server.script = lambda _body, _n: restarting if chat.waited < RESTART else answer("ok")

        async def ask() -> str:
            reply = await chat.ask()
            chat.client.record_problem(None)
            return reply.text

        assert set(await asyncio.gather(*(ask() for _ in range(12)))) == {"ok"}
        assert 8 < len(chat.chats) < 40
    waits = [int(seconds) for seconds in re.findall(r"retrying in (\d+) s", " ".join(chat.waits))]
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (1, 15)
    assert "is not ready: " in chat.waits[0]
    assert "for at most 2 minutes" in chat.waits[0]
    async with asking(restarting) as chat:
        await chat.fails(Unanswered, "gave no usable answer")
        sent = len(chat.chats)
        assert RESTART <= chat.waited < 2 * RESTART
        await chat.fails(Unanswered, "in 1 try")
        assert len(chat.chats) == sent + 1


async def test_a_server_that_cannot_be_reached_stops_the_run_later_if_it_has_answered() -> None:
    time = FakeTime()
    waits: list[str] = []
    limiter = RateLimiter(timing=time.timing)
    with ModelServer() as server:
        endpoint = Endpoint(server.base_url, "k")
        client = Client(Parameters(MODEL), endpoint, on_wait=waits.append, limiter=limiter)
        await client.ask(a_request(), ANSWER_TOKENS)
    async with client:
        with pytest.raises(RunStops, match="the same command continues the run"):
            await client.ask(a_request(), ANSWER_TOKENS)
    assert RESTART <= time.time - 100.0 < 2 * RESTART
    assert "is not ready: " in waits[0]
    time = FakeTime()
    limiter = RateLimiter(timing=time.timing)
    async with Client(Parameters(MODEL), endpoint, tries=4, limiter=limiter) as client:
        with pytest.raises(RunStops, match=f"no answer from 127.0.0.1:{server.port}.*continues"):
            await client.ask(a_request(), ANSWER_TOKENS)
    assert len(time.slept) == 3


async def test_timeouts_are_retried_once_and_retries_back_off() -> None:
    async with asking(after(1, hang()), timeout=1.0) as chat:
        assert (await chat.ask()).text == "ok"
    (wait,) = chat.waits
    assert "within 1 s; retrying" in wait
    error = await error_from(answer("x" * 500).dripping(0.02), timeout=0.3, tries=9)
    assert type(error) is Unanswered
    assert "no usable answer in 2 tries" in str(error)
    async with asking(status(500), tries=6, chance=0.99) as chat:
        await chat.fails(Unanswered)
    assert chat.time.slept == sorted(chat.time.slept)
    assert len(set(chat.time.slept)) == 5


async def test_a_long_wait_is_reported_once_and_bounded() -> None:
    busy = status(429, headers={"retry-after": "86400"}).when_together(8)
    async with asking(after(8, busy), at_once=8) as chat:
        chat.time.ready = lambda: chat.client.limiter.running_count == 0
        await asyncio.gather(*(chat.ask() for _ in range(8)))
    assert 600.0 <= chat.waited <= 610.0
    (wait,) = chat.waits
    assert "asked to wait 86,400 s" in wait
    assert "retrying after 600 s" in wait


async def test_a_busy_server_gets_fewer_requests_and_later_more() -> None:
    async with asking(after(8, status(429).when_together(8)), at_once=8) as chat:
        await asyncio.gather(*(chat.ask() for _ in range(8)))
        fewer = chat.client.limiter.allowed
        for _ in range(40):
            await chat.ask()
        assert chat.client.limiter.allowed == 8
    assert 4 <= fewer < 8
    # A server that takes one of three requests keeps refusing requests, and all get an answer.
    script: Script = lambda _body, n: answer("ok") if n % 3 == 0 else status(429)  # noqa: E731
    async with asking(script, at_once=8, tries=2) as chat:
        results = await asyncio.gather(*(chat.ask() for _ in range(12)), return_exceptions=True)
    assert sum(isinstance(result, Reply) for result in results) >= 10


# Allowances


async def test_failures_are_free_and_empty_answers_are_charged() -> None:
    budget = Budget(Allowance(10_000))
    async with asking(after(3, status(500)), budget=budget) as chat:
        await chat.ask(tokens=400)
    assert budget.tokens == 150
    async with asking(answer(None), budget=budget) as chat:
        reply = await chat.ask()
        assert len(chat.chats) == 1
    assert (reply.text, reply.finish, reply.tokens_in, reply.counted) == ("", "stop", 100, True)
    assert budget.tokens == 150 + 150


async def test_lost_answers_are_charged_with_their_request() -> None:
    for lost in (answer("a long answer").cut(10), close(), empty()):
        budget = Budget(Allowance(10_000))
        async with asking(after(2, lost), budget=budget) as chat:
            await chat.ask()
            await chat.ask(tokens=400)
            assert len(chat.chats) == 4
        assert budget.used.tokens_in == 2 * 100 + 2 * 100
    budget = Budget(Allowance(6_000))
    async with asking(hang(), budget=budget, timeout=0.5, tries=9) as chat:
        await chat.fails(AllowanceSpent, tokens=4_000)
    assert budget.used.tokens_in == 4_000


async def test_a_cancelled_request_releases_its_reservation() -> None:
    async with asking(after(1, hang()), budget=Budget(Allowance(1_000))) as chat:
        task = asyncio.create_task(chat.ask(tokens=700))
        for _ in waiting.until(lambda: chat.chats):
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(20):
            await chat.ask(tokens=700)
        assert chat.client.limiter.running_count == 0
