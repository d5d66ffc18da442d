"""The client against servers that answer, fail and hang, through the real library."""

from __future__ import annotations

import asyncio
import json
import random
import re
import socket
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from email.utils import formatdate

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
    failed,
    replied,
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

DATE = "Sun, 06 Nov 2033 08:49:37 GMT"
DATE_LATER = "Sun, 06 Nov 2033 08:49:57 GMT"


# Right answers


async def test_a_right_answer_comes_back_with_what_it_took() -> None:
    async with asking(answer("it failed", tokens_in=123, tokens_out=45)) as to:
        reply = await to.ask("a trace with half an \ud83d emoji")
        (seen,) = to.chats
    assert reply == Reply("it failed", "stop", "json_schema", 123, 45)
    assert seen.headers["authorization"] == "Bearer none"
    messages = seen.body["messages"]
    assert isinstance(messages, list)
    assert [message["role"] for message in messages] == ["system", "user"]
    assert "a trace with half an \ufffd emoji" in messages[1]["content"]
    assert (seen.body["model"], seen.body["max_tokens"]) == (MODEL, ANSWER_TOKENS)
    assert "temperature" not in seen.body
    form = seen.body["response_format"]
    assert isinstance(form, dict)
    assert form["type"] == "json_schema"
    assert (form["json_schema"]["schema"], form["json_schema"]["strict"]) == (SCHEMA, True)


async def test_the_boundary_is_that_of_the_run_and_the_trace() -> None:
    """So a server has read the beginning of a further sample or try already."""
    one, other = a_request(), replace(a_request(), about="another trace")
    sent = []
    for _ in range(2):
        async with asking() as to:
            for request in (one, one, other):
                await to.client.ask(request, ANSWER_TOKENS)
            sent += [json.dumps(seen.body["messages"]) for seen in to.chats]
    assert sent[0] == sent[1]
    assert len(set(sent)) == 4


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (answer([{"type": "text", "text": "it "}, {"type": "text", "text": "fell"}]), "it fell"),
        (answer(["it ", {"type": "image"}, "fell"]), "it fell"),
        (answer("ünï\u2028code"), "ünï\u2028code"),
        (answer("broken \ud83d emoji"), "broken \ufffd emoji"),
        (answer("it fell", reasoning="hm"), "it fell"),
        (answer("it fell", reasoning_content="hm"), "it fell"),
        (answer("half", finish="STOP"), "half"),
        # Where a server puts the answer elsewhere.
        (answer(None, tool_calls=[{"function": {"name": "j", "arguments": '{"a": 1}'}}]), "{"),
        (answer("", reasoning_content='so {"a": 1}'), "{"),
        (answer(None, reasoning='{"a": 1}'), "{"),
    ],
)
async def test_the_text_of_an_answer_is_found(action: Action, text: str) -> None:
    reply = await replied(action)
    assert reply.finish == "stop"
    assert ('{"a": 1}' in reply.text) if text == "{" else (reply.text == text)


@pytest.mark.parametrize("tokens_in", [None, 2**63])
async def test_tokens_that_are_not_counted_or_cannot_be_are_estimated(
    tokens_in: int | None,
) -> None:
    reply = await replied(answer("it failed", tokens_in=tokens_in))
    assert (reply.counted, reply.tokens_in) == (False, 100)
    assert reply.tokens_out > 0


@pytest.mark.parametrize(
    ("action", "finish", "text"),
    [
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
)
async def test_a_refusal_and_a_cut_are_told_as_what_they_are(
    action: Action, finish: str, text: str
) -> None:
    async with asking(action) as to:
        reply = await to.ask()
        assert len(to.chats) == 1
    assert reply.finish == finish
    assert text in reply.text


async def test_all_requests_that_are_allowed_are_under_way_at_once() -> None:
    async with asking(answer("ok").when_together(16)) as to:
        await asyncio.gather(*(to.ask() for _ in range(40)))
        assert to.server.most_in_flight == 16


# What is tried again

PASSING: dict[str, Callable[[], Action]] = {
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
AWAY = ("502 with a page", "an error in a right response")
"""What servers and gateways say while they restart."""


@pytest.mark.parametrize("name", PASSING)
async def test_what_passes_is_tried_again_and_fails_its_trace_only(name: str) -> None:
    async with asking(after(2, PASSING[name]())) as to:
        assert (await to.ask()).text == "ok"
        assert len(to.chats) == 3
    if name not in ASKED_TO_WAIT + AWAY:
        async with asking(PASSING[name](), tries=3) as to:
            error = await to.fails(Unanswered, "127.0.0.1.*in 3 tries")
            assert len(to.chats) == 3
        assert type(error) is Unanswered


@pytest.mark.parametrize("name", ASKED_TO_WAIT)
async def test_waits_that_are_asked_for_use_up_no_tries_but_have_an_end(name: str) -> None:
    async with asking(PASSING[name](), tries=3) as to:
        await to.fails(Unanswered, "in 3 tries")
        assert FREE_WAIT_SECONDS < to.waited < 2 * FREE_WAIT_SECONDS


@pytest.mark.parametrize("name", AWAY)
async def test_a_server_that_restarts_is_asked_for_two_minutes(name: str) -> None:
    away = PASSING[name]()
    async with asking(tries=2, first=FIRST) as to:
        to.server.script = lambda _body, _n: away if to.waited < RESTART else answer("ok")

        async def ask() -> str:
            reply = await to.ask()
            to.client.note(None)
            return reply.text

        assert set(await asyncio.gather(*(ask() for _ in range(12)))) == {"ok"}
        assert 8 < len(to.chats) < 40
    waits = [int(seconds) for seconds in re.findall(r"again in (\d+) s", " ".join(to.heard.waits))]
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (1, 15)
    assert "is not ready: " in to.heard.waits[0]
    assert "for 2 minutes at most" in to.heard.waits[0]


@pytest.mark.parametrize("name", AWAY)
async def test_a_server_that_stays_away_fails_the_trace_and_the_next_one_at_once(name: str) -> None:
    async with asking(PASSING[name]()) as to:
        await to.fails(Unanswered, "gave no usable answer")
        sent = len(to.chats)
        assert RESTART <= to.waited < 2 * RESTART
        await to.fails(Unanswered, "in 1 try")
        assert len(to.chats) == sent + 1


async def test_a_server_that_is_gone_after_an_answer_is_waited_for() -> None:
    time = FakeTime()
    with ExitStack() as running:
        server = running.enter_context(ModelServer())
        waits: list[str] = []
        async with Client(
            Parameters(MODEL), Endpoint(server.base_url, "k"), on_wait=waits.append,
            limiter=RateLimiter(timing=time.timing),
        ) as client:  # fmt: skip
            await client.ask(a_request(), ANSWER_TOKENS)
            running.close()
            with pytest.raises(RunStops, match="the same command continues the run"):
                await client.ask(a_request(), ANSWER_TOKENS)
    assert RESTART <= time.time - 100.0 < 2 * RESTART
    assert "is not ready: " in waits[0]


async def test_an_answer_that_does_not_end_in_time_is_asked_for_twice_and_given_up() -> None:
    async with asking(after(1, hang()), timeout=1.0) as to:
        assert (await to.ask()).text == "ok"
    (wait,) = to.heard.waits
    assert "within 1 s; it is asked again" in wait
    error = await failed(answer("x" * 500).dripping(0.02), timeout=0.3, tries=9)
    assert type(error) is Unanswered
    assert "no usable answer in 2 tries" in str(error)


async def test_a_server_that_is_not_there_stops_the_run() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    time, url = FakeTime(), f"http://127.0.0.1:{port}/v1"
    async with Client(
        Parameters(MODEL), Endpoint(url, "k"), tries=4, limiter=RateLimiter(timing=time.timing)
    ) as client:
        with pytest.raises(RunStops, match=f"no answer from 127.0.0.1:{port}.*continues the run"):
            await client.ask(a_request(), ANSWER_TOKENS)
    assert len(time.slept) == 3


async def test_tries_are_further_and_further_apart() -> None:
    async with asking(status(500), tries=6, chance=0.99) as to:
        await to.fails(Unanswered)
    assert to.time.slept == sorted(to.time.slept)
    assert len(set(to.time.slept)) == 5


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "20"}, 20.0),
        ({"retry-after": "20.5"}, 20.5),
        ({"retry-after-ms": "20000", "retry-after": "1"}, 20.0),
        ({"retry-after": DATE_LATER, "date": DATE}, 20.0),
        ({"retry-after": formatdate(0, usegmt=True)}, 0.0),  # in the past
    ],
)
@pytest.mark.parametrize("code", [429, 503])
async def test_a_wait_that_the_server_asks_for_is_kept(
    headers: dict[str, str], seconds: float, code: int
) -> None:
    async with asking(after(1, status(code, headers=headers))) as to:
        await to.ask()
    assert seconds <= to.waited <= max(10.0, seconds * 1.5)


async def test_a_long_wait_is_said_once_and_has_an_end() -> None:
    busy = status(429, headers={"retry-after": "86400"}).when_together(8)
    async with asking(after(8, busy), at_once=8) as to:
        to.time.ready = lambda: to.client.limiter.running_count == 0
        await asyncio.gather(*(to.ask() for _ in range(8)))
    assert 600.0 <= to.waited <= 610.0
    (wait,) = to.heard.waits
    assert "asked to wait 86,400 s" in wait
    assert "again after 600 s" in wait


async def test_a_busy_server_gets_fewer_requests_and_then_more_again() -> None:
    async with asking(after(8, status(429).when_together(8)), at_once=8) as to:
        await asyncio.gather(*(to.ask() for _ in range(8)))
        fewer = to.client.limiter.allowed
        for _ in range(40):
            await to.ask()
        assert to.client.limiter.allowed == 8
    assert 4 <= fewer < 8
    # A server that takes one of three requests keeps refusing somebody, and all get through.
    script: Script = lambda _body, n: answer("ok") if n % 3 == 0 else status(429)  # noqa: E731
    async with asking(script, at_once=8, tries=2) as to:
        ends = await asyncio.gather(*(to.ask() for _ in range(12)), return_exceptions=True)
    assert sum(isinstance(end, Reply) for end in ends) >= 10


# What may be spent


ALL_OF_IT = answer("ok", tokens_in=500, tokens_out=ANSWER_TOKENS)
THOUGHT_APART = document(
    {
        "choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": 500,
            "completion_tokens": 10,
            "total_tokens": 500 + ANSWER_TOKENS,  # with what was thought
        },
    }
)


@pytest.mark.parametrize("action", [ALL_OF_IT, THOUGHT_APART], ids=["said", "thought"])
async def test_workers_with_longer_answers_than_thought_go_beyond_by_one_request_each(
    action: Action,
) -> None:
    """Each answer takes all it may, several times what is expected at first."""
    budget = Budget(Allowance(20_000))
    async with asking(action, budget=budget, at_once=8) as to:

        async def worker() -> None:
            for _ in range(20):  # more than there are tokens for
                await to.ask(tokens=500)

        ends = await asyncio.gather(*(worker() for _ in range(8)), return_exceptions=True)
    assert all(isinstance(end, AllowanceSpent) for end in ends)
    assert "tokens allowed" in str(ends[0])
    assert budget.tokens <= 20_000 + 8 * 1_500
    assert budget.tokens == 1_500 * len(to.chats)


async def test_what_fails_costs_nothing_and_what_says_nothing_is_an_answer_to_be_paid() -> None:
    budget = Budget(Allowance(10_000))
    async with asking(after(3, status(500)), budget=budget) as to:
        await to.ask(tokens=400)
    assert budget.tokens == 150
    async with asking(answer(None), budget=budget) as to:
        reply = await to.ask()
        assert len(to.chats) == 1
    assert (reply.text, reply.finish, reply.tokens_in, reply.counted) == ("", "stop", 100, True)
    assert budget.tokens == 150 + 150


async def test_an_answer_that_is_lost_counts_with_what_was_sent() -> None:
    """The server may have given it all the same, and want to be paid."""
    for lost in (answer("a long answer").cut(10), close(), empty()):
        budget = Budget(Allowance(10_000))
        async with asking(after(2, lost), budget=budget) as to:
            await to.ask()
            await to.ask(tokens=400)
            assert len(to.chats) == 4
        assert budget.used.tokens_in == 2 * 100 + 2 * 100
    budget = Budget(Allowance(6_000))
    async with asking(hang(), budget=budget, timeout=0.5, tries=9) as to:
        await to.fails(AllowanceSpent, tokens=4_000)
    assert budget.used.tokens_in == 4_000


async def test_a_request_that_is_cancelled_leaves_nothing_put_aside() -> None:
    async with asking(after(1, hang()), budget=Budget(Allowance(1_000))) as to:
        task = asyncio.create_task(to.ask(tokens=700))
        for _ in waiting.until(lambda: to.chats):
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(20):
            await to.ask(tokens=700)
        assert to.client.limiter.running_count == 0


@pytest.mark.parametrize("seed", range(3))
async def test_whatever_a_server_does_every_request_ends_in_an_answer_or_in_words(
    seed: int,
) -> None:
    chance, budget = random.Random(seed), Budget()
    actions = [*(make() for make in PASSING.values()), answer("ok"), html(403), status(400)]

    def script(_body: dict[str, object], n: int) -> Action:
        return answer("ok") if n % 3 == 0 else chance.choice(actions)

    async with asking(script, budget=budget) as to, asyncio.timeout(60):
        await to.ask()
        ends = await asyncio.gather(*(to.ask() for _ in range(60)), return_exceptions=True)
        assert to.client.limiter.running_count == 0
        assert to.server.most_in_flight <= 16
    assert all(type(end) in (Reply, Unanswered) for end in ends)
    answers = sum(isinstance(end, Reply) for end in ends)
    assert answers > 30
    assert budget.tokens >= 150 * answers
