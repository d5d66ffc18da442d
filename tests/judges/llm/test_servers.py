"""Servers as they are: what they cut, count, refuse and call by names of their own."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from mast_tui.judges.llm.client.api_errors import api_error_of, asked_wait, read_api_error
from mast_tui.judges.llm.client.bounded_http import connected
from mast_tui.judges.llm.client.budget import Budget
from mast_tui.judges.llm.client.client import Client
from mast_tui.judges.llm.client.endpoint import Endpoint
from mast_tui.judges.llm.client.rate_limiter import FIRST, RateLimiter
from mast_tui.judges.llm.errors import ContextOverflow, RunStops, Unanswered
from mast_tui.judges.llm.request import Correction, Parameters
from mast_tui.workspace import Usage
from tests.judges.llm.asking import ANSWER_TOKENS, Heard, a_client, a_request, after, ask_once
from tests.judges.llm.fake_time import FakeTime
from tests.judges.llm.server import MODEL, Action, ModelServer, answer, document, raw, status


def used(usage: Mapping[str, object], text: str = "ok") -> Action:
    """A right answer with this usage."""
    said = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return document({"choices": [said], "usage": usage})


# What was read and thought


@pytest.mark.parametrize(
    ("usage", "tokens_out"),
    [
        ({"prompt_tokens": 300, "completion_tokens": 50, "total_tokens": 350}, 50),
        ({"prompt_tokens": 300, "completion_tokens": 50, "total_tokens": 900}, 600),
        (
            {
                "prompt_tokens": 300,
                "completion_tokens": 50,
                "completion_tokens_details": {"reasoning_tokens": 700},
            },
            700,
        ),
    ],
)
async def test_what_was_thought_is_counted_wherever_it_stands(
    usage: dict[str, object], tokens_out: int
) -> None:
    budget = Budget()
    with ModelServer(lambda _body, _n: used(usage)) as server:
        async with a_client(server, budget=budget) as client:
            reply = await client.ask(a_request(), ANSWER_TOKENS)
    assert (reply.tokens_in, reply.tokens_out) == (300, tokens_out)
    assert budget.tokens == 300 + tokens_out


async def test_what_a_server_had_read_before_is_told() -> None:
    usage = {"prompt_tokens": 300, "prompt_tokens_details": {"cached_tokens": 256}}
    with ModelServer(lambda _body, _n: used(usage)) as server:
        assert (await ask_once(server)).tokens_cached == 256


LONG = "The agent read the file and said that all of its tests had passed. " * 480


async def test_a_prompt_that_was_cut_in_silence_is_noticed_from_1_6_times_on() -> None:
    with ModelServer(lambda _body, _n: answer("ok", tokens_in=4_096)) as server:
        async with a_client(server) as client:
            with pytest.raises(ContextOverflow, match="OLLAMA_CONTEXT_LENGTH"):
                await client.ask(a_request(LONG, tokens=6_700), ANSWER_TOKENS)


@pytest.mark.parametrize(
    ("count", "tokens", "cut"),
    [
        (4_096, 4_600, False),  # one request, or the same one again
        (4_096, 4_999, True),  # clearly more
        (8_192, 9_900, True),
        (2_048, 2_400, False),
        (2_048, 2_500, True),
        (4_095, 4_999, False),
        (1_024, 1_300, False),
    ],
)
async def test_a_count_that_is_just_what_a_context_holds_is_a_cut_where_clearly_more_was_sent(
    count: int, tokens: int, cut: bool
) -> None:
    with ModelServer(lambda _body, _n: answer("ok", tokens_in=count)) as server:
        async with a_client(server) as client:
            for sample in range(2):
                asked = client.ask(a_request("same", tokens=tokens, sample=sample), ANSWER_TOKENS)
                if cut:
                    with pytest.raises(ContextOverflow, match=f"only {count:,} tokens of about"):
                        await asked
                else:
                    assert (await asked).tokens_in == count


@pytest.mark.parametrize(
    ("count", "first", "second", "cut"),
    [
        (4_096, 4_600, 4_610, True),
        (4_096, 3_900, 4_600, True),
        (4_096, 3_000, 3_100, False),  # less was sent than was counted
        (4_500, 4_600, 4_610, False),
        (4_500, 4_600, 5_800, True),  # one clearly longer than the other
    ],
)
async def test_different_requests_that_count_the_same_were_cut(
    count: int, first: int, second: int, cut: bool
) -> None:
    with ModelServer(lambda _body, _n: answer("ok", tokens_in=count)) as server:
        async with a_client(server) as client:
            await client.ask(a_request("one", tokens=first), ANSWER_TOKENS)
            await client.ask(a_request("one", tokens=first), ANSWER_TOKENS)
            if cut:
                with pytest.raises(ContextOverflow) as caught:
                    await client.ask(a_request("other", tokens=second), ANSWER_TOKENS)
                assert caught.value.context_limit == count
                assert caught.value.truncated_usage == Usage(1, count, 50)
            else:
                await client.ask(a_request("other", tokens=second), ANSWER_TOKENS)


async def test_a_server_that_has_read_more_does_not_cut_at_less() -> None:
    counts = [6_000, 4_096, 4_096]
    with ModelServer(lambda _body, n: answer("ok", tokens_in=counts[n])) as server:
        async with a_client(server) as client:
            for number, tokens in enumerate((6_500, 4_990, 4_600)):
                await client.ask(a_request(f"{number}", tokens=tokens), ANSWER_TOKENS)


async def test_a_count_that_no_context_is_as_small_as_is_not_believed() -> None:
    with ModelServer(lambda _body, _n: answer("ok", tokens_in=10)) as server:
        async with a_client(server) as client:
            reply = await client.ask(a_request(LONG, tokens=6_700), ANSWER_TOKENS)
    assert (reply.text, reply.counted, reply.tokens_in) == ("ok", False, 6_700)


@pytest.mark.parametrize(
    "words",
    [
        "This model's maximum context length is 8192 tokens. However, you requested 8700 tokens"
        " (4700 in the messages, 4000 in the completion). Please reduce the length.",
        "'max_tokens' or 'max_completion_tokens' is too large: 4000. This model's maximum context"
        " length is 8192 tokens and your request has 4700 input tokens (4000 > 8192 - 4700).",
    ],
)
async def test_what_is_left_for_an_answer_is_told_with_an_overflow(words: str) -> None:
    with after(9, status(400, words)) as server:
        async with a_client(server) as client:
            with pytest.raises(ContextOverflow) as caught:
                await client.ask(a_request(), 4_000)
    assert caught.value.answer_room == 8192 - 4700 - 32
    assert "8192" in str(caught.value)


# What is refused


@pytest.mark.parametrize(
    "words",
    [
        "System role not supported",
        "Only user and assistant roles are supported!",
        "Developer instruction is not enabled for models/gemma-3-27b-it",
        "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
        "Conversation roles must alternate user/assistant/user/assistant/...",
    ],
)
async def test_a_system_role_that_is_refused_becomes_one_message_of_the_user(words: str) -> None:
    def script(body: dict[str, object], _n: int) -> Action:
        messages = body["messages"]
        assert isinstance(messages, list)
        return status(400, words) if messages[0]["role"] == "system" else answer("ok")

    heard = Heard()
    with ModelServer(script) as server:
        async with a_client(server, heard=heard) as client:
            reply = await client.ask(a_request("a trace"), ANSWER_TOKENS)
        sent = server.chats[-1].body["messages"]
    assert reply.form == "json_schema"
    assert isinstance(sent, list)
    assert [message["role"] for message in sent] == ["user"]
    assert "Judge in JSON" in sent[0]["content"]
    assert "a trace" in sent[0]["content"]
    assert len(heard.remarks) == 1


@pytest.mark.parametrize("code", [400, 401, 403])
async def test_a_key_that_is_not_valid_stops_the_run_whatever_the_status(code: int) -> None:
    words = "API key not valid. Please pass a valid API key."
    with after(9, status(code, words)) as server:
        async with a_client(server, key="sk-wrong") as client:
            with pytest.raises(RunStops, match="refuses the key that OPENAI_API_KEY holds"):
                await client.ask(a_request(), ANSWER_TOKENS)
        assert len(server.chats) == 1


async def test_a_quota_that_a_proxy_wraps_in_a_429_stops_the_run() -> None:
    words = "litellm.RateLimitError: OpenAIException - {'error': {'code': 'insufficient_quota'}}"
    with after(9, status(429, words, code="429")) as server:
        async with a_client(server) as client:
            with pytest.raises(RunStops, match="no credit left"):
                await client.ask(a_request(), ANSWER_TOKENS)


async def test_a_key_that_a_proxy_without_a_database_does_not_know_stops_the_run() -> None:
    with after(9, status(400, "No connected db.", type="no_db_connection", code="400")) as server:
        async with a_client(server, key="sk-wrong") as client:
            for _ in range(2):
                with pytest.raises(RunStops, match="refuses the key that OPENAI_API_KEY holds"):
                    await client.ask(a_request(), ANSWER_TOKENS)
        assert len(server.chats) == 1


# Waits


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        ({"message": "busy", "details": [{"@type": "x", "retryDelay": "38s"}]}, 38.0),
        ({"message": "busy", "details": [{}, 3, {"retryDelay": "1.5s"}]}, 1.5),
        ({"message": "Please retry in 38.4s."}, 38.4),
        ({"message": "Rate limit reached. Please try again in 2.113s."}, 2.113),
        ({"message": "try again in 20ms"}, 0.02),
        ({"message": "Try again in 3 minutes"}, 180.0),
        ({"message": "retry in 1h"}, 3_600.0),
        ({"message": "try again later"}, None),
        ({"message": "busy", "details": [{"retryDelay": "soon"}]}, None),
    ],
)
def test_a_wait_is_read_in_the_body_of_a_429(
    body: dict[str, object], seconds: float | None
) -> None:
    assert api_error_of({"error": body}, 429).wait == seconds
    assert api_error_of({"error": body}, 400).wait is None
    read = read_api_error(429, {"retry-after": "7"}, json.dumps({"error": body}).encode())
    assert read.wait == 7.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"reset-requests": "1s", "remaining-requests": "0"}, 1.0),
        ({"reset-tokens": "6m0s", "remaining-tokens": "0", "reset-requests": "1s"}, 360.0),
        ({"reset-tokens": "6m0s", "reset-requests": "20ms"}, 0.02),
        ({"reset-tokens": "soon"}, None),
    ],
)
def test_a_limit_that_begins_anew_is_a_wait(headers: dict[str, str], seconds: float | None) -> None:
    named = {f"x-ratelimit-{name}": value for name, value in headers.items()}
    assert asked_wait(named) == seconds
    assert asked_wait({**named, "retry-after": "9"}) == 9.0


@pytest.mark.parametrize(
    ("action", "seconds"),
    [
        (status(429, "busy", details=[{"@type": "x", "retryDelay": "38s"}]), 38.0),
        (status(429, "Rate limit reached. Please try again in 2.1s."), 2.1),
        (
            status(
                429,
                headers={"x-ratelimit-reset-tokens": "20s", "x-ratelimit-remaining-tokens": "0"},
            ),
            20.0,
        ),
    ],
    ids=["retryDelay", "words", "reset"],
)
async def test_a_wait_that_stands_elsewhere_than_in_its_header_is_kept(
    action: Action, seconds: float
) -> None:
    time = FakeTime()
    with after(3, action) as server:
        async with a_client(server, time=time, tries=2) as client:
            assert (await client.ask(a_request(), ANSWER_TOKENS)).text == "ok"
        assert len(server.chats) == 4, "waits use up no tries"
    assert 3 * seconds <= time.time - 100.0 <= 3 * seconds * 1.5


async def test_a_model_that_is_being_loaded_is_waited_for() -> None:
    time, heard = FakeTime(), Heard()
    with after(40, status(503, "Loading model", code=503, type="unavailable_error")) as server:
        async with a_client(server, time=time, heard=heard, tries=3) as client:
            assert (await client.ask(a_request(), ANSWER_TOKENS)).text == "ok"
    assert 200.0 <= time.time - 100.0 <= 300.0
    assert "loads the model" in heard.waits[0]


# Where the answer stands


@pytest.mark.parametrize(
    "action",
    [
        answer(None, tool_calls=[{"function": {"name": "judge", "arguments": '{"a": 1}'}}]),
        answer("", reasoning_content='so {"a": 1}'),
        answer(None, reasoning='{"a": 1}'),
    ],
)
async def test_an_answer_in_a_call_or_in_the_reasoning_is_found(action: Action) -> None:
    with ModelServer(lambda _body, _n: action) as server:
        assert '{"a": 1}' in (await ask_once(server)).text


@pytest.mark.parametrize(
    ("reason", "finish"), [("MAX_TOKENS", "length"), ("STOP", "stop"), ("SAFETY", "refusal")]
)
async def test_reasons_in_capitals_are_read(reason: str, finish: str) -> None:
    with ModelServer(lambda _body, _n: answer("half", finish=reason)) as server:
        assert (await ask_once(server)).finish == finish


def events(*chunks: object) -> Action:
    """A response that comes in pieces."""
    lines = [chunk if isinstance(chunk, str) else json.dumps(chunk) for chunk in chunks]
    body = "".join(f"data: {line}\n\n" for line in lines)
    return raw(body.encode(), content_type="text/event-stream")


def piece(finish: str | None = None, **delta: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


async def test_an_answer_that_a_server_streams_unasked_is_put_together() -> None:
    usage = {"prompt_tokens": 300, "completion_tokens": 7}
    action = events(
        piece(role="assistant", content=""),
        piece(reasoning_content="hm"),
        piece(content='{"a"'),
        piece(content=": 1}"),
        piece("stop"),
        {"choices": [], "usage": usage},
        "[DONE]",
    )
    with ModelServer(lambda _body, _n: action) as server:
        reply = await ask_once(server)
    assert (reply.text, reply.finish) == ('{"a": 1}', "stop")
    assert (reply.tokens_in, reply.tokens_out) == (300, 7)


async def test_a_streamed_call_and_a_streamed_error_are_read_too() -> None:
    calls = [{"index": 0, "function": {"arguments": part}} for part in ('{"a"', ": 1}")]
    action = events(*(piece(tool_calls=[call]) for call in calls), piece("tool_calls"))
    with ModelServer(lambda _body, _n: action) as server:
        assert (await ask_once(server)).text == '{"a": 1}'
    error = events({"error": {"message": "no such key", "code": 401}})
    with ModelServer(lambda _body, _n: error) as server:
        async with a_client(server, key="sk-1") as client:
            with pytest.raises(RunStops, match="refuses the key"):
                await client.ask(a_request(), ANSWER_TOKENS)


async def test_a_stream_that_breaks_off_is_no_answer_and_says_so() -> None:
    with ModelServer(lambda _body, _n: events(piece(content="{"))) as server:
        async with a_client(server) as client:
            with pytest.raises(Unanswered, match="a stream that cannot be read"):
                await client.ask(a_request(), ANSWER_TOKENS)


# Addresses, and what else is sent


@pytest.mark.parametrize(
    ("address", "sent"),
    [
        ("https://lab.openai.azure.com/openai/v1", True),
        ("https://lab.cognitiveservices.azure.com/openai/deployments/m?api-version=1", True),
        ("https://LAB.services.ai.azure.com/models", True),
        ("https://lab.openai.azure.com.example.org/v1", False),
        ("https://openai.azure.com.evil.net/v1", False),
        ("https://lab-openai.azure.com/v1", False),
        ("https://evil.net/lab.openai.azure.com", False),
        ("https://api.openai.com/v1", False),
        ("http://127.0.0.1:1/v1", False),
    ],
)
async def test_hosts_of_azure_and_no_others_get_the_key_in_their_own_header(
    address: str, sent: bool
) -> None:
    async with connected(Endpoint(address, "a-key")) as client:
        assert client.default_headers.get("api-key") == ("a-key" if sent else None)


async def test_what_stands_behind_the_address_goes_with_each_request() -> None:
    with ModelServer() as server:
        url = f"{server.base_url}?api-version=2024-06-01"
        async with a_client(server, base_url=url) as client:
            await client.ask(a_request(), ANSWER_TOKENS)
        assert server.chats[0].path == "/v1/chat/completions?api-version=2024-06-01"


async def test_own_headers_and_parameters_are_sent() -> None:
    parameters = Parameters(MODEL, extra_body=(("reasoning_effort", "low"), ("seed", 7)))
    with ModelServer() as server:
        async with Client(
            parameters, Endpoint(server.base_url, "k", headers={"x-team": "sre"})
        ) as client:
            await client.ask(a_request(), ANSWER_TOKENS)
        seen = server.chats[0]
    assert seen.headers["x-team"] == "sre"
    assert (seen.body["reasoning_effort"], seen.body["seed"]) == ("low", 7)


async def test_what_was_wrong_is_said_with_the_answer_that_was() -> None:
    with ModelServer() as server:
        async with a_client(server) as client:
            await client.ask(a_request(), ANSWER_TOKENS, Correction("{broken", "it breaks off"))
        messages = server.chats[0].body["messages"]
    assert isinstance(messages, list)
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert messages[2]["content"] == "{broken"
    assert "it breaks off" in messages[3]["content"]


# Where everything fails


@pytest.mark.slow
@pytest.mark.parametrize(
    "action",
    [
        status(500),
        status(400, "no such thing"),
        status(429),
        status(400, "response_format is not supported"),
        answer(None, tokens_in=None),
    ],
)
async def test_at_most_eight_requests_are_sent_before_one_is_of_use(action: Action) -> None:
    time = FakeTime()
    with ModelServer(lambda _body, _n: action) as server:
        async with Client(
            Parameters(MODEL),
            Endpoint(server.base_url, "k"),
            limiter=RateLimiter(16, timing=time.timing, first=FIRST),
            timing=time.timing,
        ) as client:
            ends = []
            for _ in range(12):
                with pytest.raises((RunStops, Unanswered)) as caught:
                    await client.ask(a_request(), ANSWER_TOKENS)
                ends.append(caught.value)
        assert len(server.chats) <= 8
    assert isinstance(ends[-1], RunStops)
    assert "none of 8 requests" in str(ends[-1])


async def test_once_an_answer_was_of_use_all_may_ask() -> None:
    limiter = RateLimiter(16, first=FIRST)
    assert limiter.allowed == 1
    with ModelServer() as server:
        async with Client(
            Parameters(MODEL), Endpoint(server.base_url, "k"), limiter=limiter
        ) as client:
            await client.ask(a_request(), ANSWER_TOKENS)
            assert limiter.allowed == 1
            client.note(None)
            assert limiter.allowed == 16
