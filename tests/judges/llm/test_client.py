"""The client against servers that answer, fail, refuse and hang, through the real library."""

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
from mast_tui.judges.llm.client.client import MOST_WAITED, RESTART
from mast_tui.judges.llm.client.rate_limiter import FIRST, RateLimiter
from mast_tui.judges.llm.errors import (
    AllowanceSpent,
    RunStops,
    Unanswered,
)
from mast_tui.judges.llm.request import Reply
from tests import waiting
from tests.judges.llm.asking import (
    ANSWER_TOKENS,
    SCHEMA,
    Heard,
    a_client,
    a_request,
    after,
    ask_once,
    failure,
)
from tests.judges.llm.fake_time import FakeTime
from tests.judges.llm.server import (
    MODEL,
    Action,
    ModelServer,
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
    with ModelServer(lambda _body, _n: answer("it failed", tokens_in=123, tokens_out=45)) as server:
        reply = await ask_once(server, "a trace")
        (seen,) = server.chats
    assert reply == Reply("it failed", "stop", "json_schema", 123, 45)
    assert seen.headers["authorization"] == "Bearer none"
    messages = seen.body["messages"]
    assert isinstance(messages, list)
    assert [message["role"] for message in messages] == ["system", "user"]
    assert "a trace" in messages[1]["content"]
    assert seen.body["model"] == MODEL
    assert seen.body["max_tokens"] == ANSWER_TOKENS
    assert "temperature" not in seen.body
    form = seen.body["response_format"]
    assert isinstance(form, dict)
    assert form["type"] == "json_schema"
    assert form["json_schema"]["schema"] == SCHEMA
    assert form["json_schema"]["strict"] is True


async def test_the_boundary_is_that_of_the_run_and_the_trace() -> None:
    """So a server has read the beginning of a further sample or try already."""
    one, other = a_request(), replace(a_request(), about="another trace")
    with ModelServer() as server:
        for _ in range(2):
            async with a_client(server) as client:
                for request in (one, one, other):
                    await client.ask(request, ANSWER_TOKENS)
        sent = [json.dumps(seen.body["messages"]) for seen in server.chats]
    assert sent[0] == sent[1]
    assert len(set(sent)) == 4


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": "it "}, {"type": "text", "text": "failed"}], "it failed"),
        (["it ", {"type": "image"}, "failed"], "it failed"),
        ("ünï\u2028code", "ünï\u2028code"),
    ],
)
async def test_an_answer_in_parts_is_one_text(content: object, text: str) -> None:
    with ModelServer(lambda _body, _n: answer(content)) as server:
        assert (await ask_once(server)).text == text


async def test_tokens_that_the_server_does_not_count_are_estimated() -> None:
    with ModelServer(lambda _body, _n: answer("it failed", tokens_in=None)) as server:
        reply = await ask_once(server)
    assert not reply.counted
    assert reply.tokens_in == 100
    assert reply.tokens_out > 0


@pytest.mark.parametrize(
    "action",
    [answer("it failed", reasoning="hm"), answer("it failed", reasoning_content="hm")],
)
async def test_reasoning_is_passed_over(action: Action) -> None:
    with ModelServer(lambda _body, _n: action) as server:
        assert (await ask_once(server)).text == "it failed"


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (answer(None, refusal="I will not"), "I will not"),
        (answer("", refusal="I will not", finish=None), "I will not"),
        (answer("half an", finish="content_filter"), "half an"),
        (status(400, "the content management policy", code="content_filter"), "policy"),
    ],
)
async def test_a_refusal_is_told_as_one(action: Action, text: str) -> None:
    with ModelServer(lambda _body, _n: action) as server:
        reply = await ask_once(server)
        assert len(server.chats) == 1
    assert reply.finish == "refusal"
    assert text in reply.text


@pytest.mark.parametrize("content", ['{"verd', "", None])
async def test_an_answer_that_ran_into_its_limit_is_told_as_one(content: str | None) -> None:
    with ModelServer(lambda _body, _n: answer(content, finish="length")) as server:
        reply = await ask_once(server)
    assert (reply.finish, reply.text) == ("length", content or "")


async def test_halves_of_surrogate_pairs_do_not_keep_a_trace_from_being_sent() -> None:
    with ModelServer() as server:
        await ask_once(server, "broken \ud83d emoji")
        sent = json.dumps(server.chats[0].body["messages"], ensure_ascii=False)
    assert "broken \ufffd emoji" in sent


async def test_halves_of_surrogate_pairs_do_not_make_an_answer_useless() -> None:
    with ModelServer(lambda _body, _n: answer("broken \ud83d emoji")) as server:
        assert (await ask_once(server)).text == "broken \ufffd emoji"
        assert len(server.chats) == 1


async def test_tokens_that_nobody_can_have_counted_are_estimated() -> None:
    with ModelServer(lambda _body, _n: answer("it failed", tokens_in=2**63)) as server:
        reply = await ask_once(server)
    assert not reply.counted
    assert reply.tokens_in < 1_000_000


async def test_all_requests_that_are_allowed_are_under_way_at_once() -> None:
    action = answer("ok").when_together(16)
    with ModelServer(lambda _body, _n: action) as server:
        async with a_client(server) as client:
            await asyncio.gather(*(client.ask(a_request(), ANSWER_TOKENS) for _ in range(40)))
        assert server.most_in_flight == 16


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


@pytest.mark.parametrize("name", PASSING)
async def test_what_passes_is_tried_again(name: str) -> None:
    with after(2, PASSING[name]()) as server:
        assert (await ask_once(server)).text == "ok"
        assert len(server.chats) == 3


ASKED_TO_WAIT = ("429 with seconds", "503")
AWAY = ("502 with a page", "an error in a right response")
"""What servers and gateways say while they restart."""


@pytest.mark.parametrize("name", [name for name in PASSING if name not in ASKED_TO_WAIT + AWAY])
async def test_what_does_not_pass_fails_this_trace_only(name: str) -> None:
    with after(99, PASSING[name]()) as server:
        error = await failure(server, tries=3)
        assert len(server.chats) == 3
    assert type(error) is Unanswered
    assert "in 3 tries" in str(error)
    assert "127.0.0.1" in str(error)


@pytest.mark.slow  # it asks until the waits are over
@pytest.mark.parametrize("name", ASKED_TO_WAIT)
async def test_waits_that_are_asked_for_use_up_no_tries_but_have_an_end(name: str) -> None:
    time = FakeTime()
    with after(9_999, PASSING[name]()) as server:
        async with a_client(server, time=time, tries=3) as client:
            with pytest.raises(Unanswered, match="in 3 tries"):
                await client.ask(a_request(), ANSWER_TOKENS)
    assert MOST_WAITED < time.time - 100.0 < 2 * MOST_WAITED


@pytest.mark.parametrize("name", AWAY)
async def test_a_server_that_restarts_is_asked_for_two_minutes(name: str) -> None:
    time, heard = FakeTime(), Heard()
    away = PASSING[name]()

    def script(_body: dict[str, object], _n: int) -> Action:
        return away if time.time < 100.0 + RESTART else answer("ok")

    with ModelServer(script) as server:
        limiter = RateLimiter(16, timing=time.timing, first=FIRST)
        async with a_client(server, time=time, heard=heard, tries=2, limiter=limiter) as client:

            async def ask() -> str:
                reply = await client.ask(a_request(), ANSWER_TOKENS)
                client.note(None)
                return reply.text

            assert set(await asyncio.gather(*(ask() for _ in range(12)))) == {"ok"}
        assert 8 < len(server.chats) < 40
    waits = [int(seconds) for seconds in re.findall(r"again in (\d+) s", " ".join(heard.waits))]
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (1, 15)
    assert "is not ready: " in heard.waits[0]
    assert "for 2 minutes at most" in heard.waits[0]


@pytest.mark.parametrize("name", AWAY)
async def test_a_server_that_stays_away_fails_the_trace_and_the_next_one_at_once(name: str) -> None:
    time = FakeTime()
    with after(999, PASSING[name]()) as server:
        async with a_client(server, time=time) as client:
            with pytest.raises(Unanswered, match="gave no usable answer"):
                await client.ask(a_request(), ANSWER_TOKENS)
            sent = len(server.chats)
            assert RESTART <= time.time - 100.0 < 2 * RESTART
            with pytest.raises(Unanswered, match="in 1 try"):
                await client.ask(a_request(), ANSWER_TOKENS)
            assert len(server.chats) == sent + 1


async def test_a_server_that_is_gone_after_an_answer_is_waited_for() -> None:
    time, heard = FakeTime(), Heard()
    with ExitStack() as running:
        server = running.enter_context(ModelServer())
        async with a_client(server, time=time, heard=heard) as client:
            await client.ask(a_request(), ANSWER_TOKENS)
            running.close()
            with pytest.raises(RunStops, match="goes on where it stopped"):
                await client.ask(a_request(), ANSWER_TOKENS)
    assert RESTART <= time.time - 100.0 < 2 * RESTART
    assert "is not ready: " in heard.waits[0]


async def test_an_answer_that_does_not_end_in_time_is_asked_for_twice_and_given_up() -> None:
    heard = Heard()
    with after(1, hang()) as server:
        async with a_client(server, timeout=1.0, heard=heard) as client:
            assert (await client.ask(a_request(), ANSWER_TOKENS)).text == "ok"
    assert len(heard.waits) == 1
    assert "within 1 s; it is asked once more" in heard.waits[0]
    with after(9, answer("x" * 500).dripping(0.02)) as server:
        error = await failure(server, timeout=0.3, tries=9)
    assert type(error) is Unanswered
    assert "no usable answer in 2 tries" in str(error)


async def test_a_server_that_is_not_there_stops_the_run() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    server, time = ModelServer(), FakeTime()
    url = f"http://127.0.0.1:{port}/v1"
    async with a_client(server, base_url=url, time=time, tries=4) as client:
        with pytest.raises(RunStops, match=f"no answer from 127.0.0.1:{port}.*goes on where"):
            await client.ask(a_request(), ANSWER_TOKENS)
    assert len(time.slept) == 3


async def test_tries_are_further_and_further_apart() -> None:
    time = FakeTime(chance=0.99)
    with after(9, status(500)) as server:
        async with a_client(server, time=time, tries=6) as client:
            with pytest.raises(Unanswered):
                await client.ask(a_request(), ANSWER_TOKENS)
    assert time.slept == sorted(time.slept)
    assert len(set(time.slept)) == 5


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "20"}, 20.0),
        ({"retry-after": "20.5"}, 20.5),
        ({"retry-after-ms": "20000", "retry-after": "1"}, 20.0),
        ({"retry-after": DATE_LATER, "date": DATE}, 20.0),
    ],
)
@pytest.mark.parametrize("code", [429, 500, 503])
async def test_a_wait_that_the_server_asks_for_is_kept(
    headers: dict[str, str], seconds: float, code: int
) -> None:
    time, heard = FakeTime(), Heard()
    with after(1, status(code, headers=headers)) as server:
        async with a_client(server, time=time, heard=heard) as client:
            await client.ask(a_request(), ANSWER_TOKENS)
    assert seconds <= time.time - 100.0 <= seconds * 1.5


async def test_a_long_wait_is_said_once_and_has_an_end() -> None:
    time, heard = FakeTime(), Heard()
    with after(8, status(429, headers={"retry-after": "86400"}).when_together(8)) as server:
        async with a_client(server, time=time, heard=heard, at_once=8) as client:
            time.ready = lambda: client.limiter.under_way == 0
            await asyncio.gather(*(client.ask(a_request(), ANSWER_TOKENS) for _ in range(8)))
    assert 600.0 <= time.time - 100.0 <= 610.0
    assert len(heard.waits) == 1
    assert "asked to wait 86,400 s" in heard.waits[0]
    assert "again after 600 s" in heard.waits[0]


async def test_a_date_in_the_past_is_no_wait() -> None:
    time = FakeTime()
    with after(1, status(429, headers={"retry-after": formatdate(0, usegmt=True)})) as server:
        async with a_client(server, time=time) as client:
            await client.ask(a_request(), ANSWER_TOKENS)
    assert time.time < 110


async def test_a_busy_server_gets_fewer_requests_and_then_more_again() -> None:
    with after(8, status(429).when_together(8)) as server:
        async with a_client(server, at_once=8) as client:
            await asyncio.gather(*(client.ask(a_request(), ANSWER_TOKENS) for _ in range(8)))
            fewer = client.limiter.allowed
            for _ in range(40):
                await client.ask(a_request(), ANSWER_TOKENS)
            assert client.limiter.allowed == 8
    assert 4 <= fewer < 8


async def test_a_limit_that_lets_others_through_uses_up_no_tries() -> None:
    """A server that takes one of three requests keeps refusing somebody, and all get through."""

    def script(_body: dict[str, object], n: int) -> Action:
        return answer("ok") if n % 3 == 0 else status(429)

    with ModelServer(script) as server:
        async with a_client(server, at_once=8, tries=2) as client:
            asked = (client.ask(a_request(), ANSWER_TOKENS) for _ in range(12))
            ends = await asyncio.gather(*asked, return_exceptions=True)
    assert sum(isinstance(end, Reply) for end in ends) >= 10


# What may be spent


async def test_no_request_is_sent_that_the_allowance_does_not_cover() -> None:
    with ModelServer(lambda _body, _n: answer("ok", tokens_in=100, tokens_out=50)) as server:
        budget = Budget(Allowance(1_000))
        async with a_client(server, budget=budget) as client:
            for _ in range(6):
                await client.ask(a_request(), ANSWER_TOKENS)
            with pytest.raises(AllowanceSpent, match="tokens allowed"):
                await client.ask(a_request(), ANSWER_TOKENS)
        assert len(server.chats) == 6
    assert budget.tokens == 900


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

    async def worker(ask: Callable[[], object]) -> None:
        for _ in range(20):  # more than there are tokens for
            await ask()  # type: ignore[misc]

    with ModelServer(lambda _body, _n: action) as server:
        budget = Budget(Allowance(20_000))
        async with a_client(server, budget=budget, at_once=8) as client:
            ask = lambda: client.ask(a_request(tokens=500), ANSWER_TOKENS)  # noqa: E731
            ends = await asyncio.gather(*(worker(ask) for _ in range(8)), return_exceptions=True)
    assert all(isinstance(end, AllowanceSpent) for end in ends)
    assert budget.tokens <= 20_000 + 8 * 1_500
    assert budget.tokens == 1_500 * len(server.chats)


async def test_what_fails_costs_nothing_and_what_says_nothing_is_an_answer_to_be_paid() -> None:
    budget = Budget(Allowance(10_000))
    with after(3, status(500)) as server:
        async with a_client(server, budget=budget) as client, asyncio.timeout(20):
            await client.ask(a_request(tokens=400), ANSWER_TOKENS)
    assert budget.tokens == 150
    with after(1, answer(None)) as server:
        async with a_client(server, budget=budget) as client:
            reply = await client.ask(a_request(), ANSWER_TOKENS)
    assert (reply.text, reply.finish, reply.tokens_in, reply.counted) == ("", "stop", 100, True)
    assert budget.tokens == 150 + 150
    assert len(server.chats) == 1


async def test_an_answer_that_is_lost_counts_with_what_was_sent() -> None:
    """The server may have given it all the same, and want to be paid."""
    for lost in (answer("a long answer").cut(10), close(), empty()):
        budget = Budget(Allowance(10_000))
        with after(2, lost) as server:
            async with a_client(server, budget=budget) as client:
                await client.ask(a_request(), ANSWER_TOKENS)
                await client.ask(a_request(tokens=400), ANSWER_TOKENS)
        assert len(server.chats) == 4
        assert budget.used.tokens_in == 2 * 100 + 2 * 100
    with ModelServer(lambda _body, _n: hang()) as server:
        budget = Budget(Allowance(6_000))
        async with a_client(server, budget=budget, timeout=0.5, tries=9) as client:
            with pytest.raises(AllowanceSpent):
                await client.ask(a_request(tokens=4_000), ANSWER_TOKENS)
        assert budget.used.tokens_in == 4_000


async def test_a_request_that_is_cancelled_leaves_nothing_put_aside() -> None:
    budget = Budget(Allowance(1_000))
    with after(1, hang()) as server:
        async with a_client(server, budget=budget) as client:
            task = asyncio.create_task(client.ask(a_request(tokens=700), ANSWER_TOKENS))
            for _ in waiting.until(lambda: server.chats):
                await asyncio.sleep(0.005)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            async with asyncio.timeout(20):
                await client.ask(a_request(tokens=700), ANSWER_TOKENS)
            assert client.limiter.under_way == 0


@pytest.mark.parametrize("seed", range(3))
async def test_whatever_a_server_does_every_request_ends_in_an_answer_or_in_words(
    seed: int,
) -> None:
    chance, budget = random.Random(seed), Budget()
    actions = [*(make() for make in PASSING.values()), answer("ok"), html(403), status(400)]

    def script(_body: dict[str, object], n: int) -> Action:
        return answer("ok") if n % 3 == 0 else chance.choice(actions)

    with ModelServer(script) as server:
        async with a_client(server, budget=budget) as client, asyncio.timeout(60):
            await client.ask(a_request(), ANSWER_TOKENS)
            asked = (client.ask(a_request(), ANSWER_TOKENS) for _ in range(60))
            ends = await asyncio.gather(*asked, return_exceptions=True)
            assert client.limiter.under_way == 0
        assert server.most_in_flight <= 16
    assert all(type(end) in (Reply, Unanswered) for end in ends)
    answers = sum(isinstance(end, Reply) for end in ends)
    assert answers > 30
    assert budget.tokens >= 150 * answers
