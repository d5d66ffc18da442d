"""Quirks of servers: token counts, cuts, refusals, waits, streams."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Final

import pytest

from mast_tui.judges.llm.client.api_errors import (
    LONGEST_WAIT,
    api_error_of,
    read_api_error,
    requested_wait,
)
from mast_tui.judges.llm.client.bounded_http import openai_client
from mast_tui.judges.llm.client.budget import Budget
from mast_tui.judges.llm.client.endpoint import Endpoint
from mast_tui.judges.llm.client.rate_limiter import FIRST
from mast_tui.judges.llm.request import (
    ContextOverflow,
    Correction,
    Parameters,
    RunStops,
    TraceFails,
    Unanswered,
)
from mast_tui.workspace import Usage
from tests.judges.llm.asking import after, asking, error_from, reply_to
from tests.judges.llm.server import MODEL, Action, answer, document, html, raw, status


def answer_with_usage(usage: Mapping[str, object]) -> Action:
    choice = {"message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
    return document({"choices": [choice], "usage": usage})


# Token counts


USAGES: list[tuple[dict[str, object], int]] = [
    ({"completion_tokens": 50, "total_tokens": 350}, 50),
    ({"completion_tokens": 50, "total_tokens": 900}, 600),
    ({"completion_tokens": 50, "completion_tokens_details": {"reasoning_tokens": 700}}, 700),
    ({"completion_tokens": 50, "prompt_tokens_details": {"cached_tokens": 256}}, 50),
]


async def test_thinking_and_cached_tokens_are_counted() -> None:
    for usage, tokens_out in USAGES:
        budget = Budget()
        async with asking(
            answer_with_usage({"prompt_tokens": 300, **usage}), budget=budget
        ) as chat:
            reply = await chat.ask()
        assert (reply.tokens_in, reply.tokens_out) == (300, tokens_out)
        assert reply.tokens_cached == (256 if "prompt_tokens_details" in usage else 0)
        assert budget.tokens == 300 + tokens_out


LONG = "The agent read the file and said that all of its tests had passed. " * 500


async def test_a_silent_cut_is_noticed_by_its_token_count() -> None:
    for count, tokens, cut in [
        (4_096, 4_600, False),  # one request, or the same one again
        (4_096, 4_999, True),  # clearly more
        (8_192, 9_900, True),
        (2_048, 2_400, False),
        (2_048, 2_500, True),
        (4_095, 4_999, False),
        (1_024, 1_300, False),
        (2_050, 8_000, True),  # 1.6 times as much, whatever the count
        (7_400, 8_000, False),
    ]:
        text = LONG if tokens == 8_000 else "same"
        async with asking(answer("ok", tokens_in=count), budget=(budget := Budget())) as chat:
            for sample in range(2):
                if cut:
                    message = f"only {count:,} tokens of about {tokens:,}.*OLLAMA_CONTEXT_LENGTH"
                    await chat.fails(
                        ContextOverflow, message, text=text, tokens=tokens, sample=sample
                    )
                else:
                    assert (await chat.ask(text, tokens=tokens, sample=sample)).tokens_in == count
        assert budget.used.tokens_in == 2 * count


async def test_different_requests_with_equal_counts_were_cut() -> None:
    for count, first, second, cut in [
        (4_096, 4_600, 4_610, True),
        (4_096, 3_900, 4_600, True),
        (4_096, 3_000, 3_100, False),  # less was sent than was counted
        (4_500, 4_600, 4_610, False),
        (4_500, 4_600, 5_800, True),  # one clearly longer than the other
    ]:
        async with asking(answer("ok", tokens_in=count)) as chat:
            for _ in range(2):
                await chat.ask("one", tokens=first)
            if cut:
                overflow = await chat.fails(ContextOverflow, text="other", tokens=second)
                assert overflow.context_limit == count
                assert overflow.truncated_usage == Usage(1, count, 50)
            else:
                await chat.ask("other", tokens=second)


async def test_low_counts_that_are_no_cut() -> None:
    counts = [6_000, 4_096, 4_096]  # it has read more
    async with asking(lambda _body, n: answer("ok", tokens_in=counts[n])) as chat:
        for number, tokens in enumerate((6_500, 4_990, 4_600)):
            await chat.ask(f"{number}", tokens=tokens)
    async with asking(answer("ok", tokens_in=10)) as chat:  # no context is as small
        reply = await chat.ask(LONG, tokens=6_700)
    assert (reply.text, reply.counted, reply.tokens_in) == ("ok", False, 6_700)
    async with asking(answer("ok", tokens_in=600)) as chat:  # one token for many characters
        await chat.ask(("=" * 400 + "\nheading\n" + " " * 400) * 40, tokens=12_000)


LEFT = 8192 - 4700 - 32


async def test_an_overflow_reports_the_room_left_for_an_answer() -> None:
    for action, room in [
        (
            status(400, "This model's maximum context length is 8192 tokens. However, you requested"
                   " 8700 tokens (4700 in the messages, 4000 in the completion)."),
            LEFT,
        ),
        (
            status(400, "'max_tokens' or 'max_completion_tokens' is too large: 4000. This model's"
                   " maximum context length is 8192 tokens and your request has 4700 input tokens"
                   " (4000 > 8192 - 4700)."),
            LEFT,
        ),
        (status(400, "it reads 8192 tokens", code="context_length_exceeded"), None),
        (document({"error": {"message": "8192", "type": "exceed_context_size_error"}}), None),
    ]:  # fmt: skip
        async with asking(action) as chat:
            overflow = await chat.fails(ContextOverflow, "8192", room=4_000)
            assert len(chat.chats) == 1
        assert overflow.answer_room == room


# Refusals

UNKNOWN_MODEL = status(404, "The model `test-model` does not exist")
KEY_WORDS = "refuses the key in OPENAI_API_KEY"


async def test_fatal_errors_stop_the_run_at_once() -> None:
    for action, message in [
        (status(401, "Incorrect API key"), "OPENAI_API_KEY"),
        (status(403, "not in your country"), "not in your country"),
        (status(429, "over", code="insufficient_quota"), "no credit"),
        (status(402, "Insufficient Balance"), "no credit"),
        (Action(307, headers=(("location", "http://127.0.0.1:9/v1"),)), "127.0.0.1:9/v1"),
        (html(200), "not an OpenAI API"),
        (html(404), "not an OpenAI API"),
        (document({"detail": "Not Found"}, code=404), "not an OpenAI API"),
        (status(400, "max_tokens is too large: 9. At most 5 completion tokens"), "fewer tokens"),
        *((status(code, "API key not valid. Pass a valid API key."), KEY_WORDS) for code in
          (400, 401, 403)),
        (status(400, "No connected db.", type="no_db_connection", code="400"), KEY_WORDS),
        (
            status(429, "litellm.RateLimitError: OpenAIException - {'error': {'code':"
                   " 'insufficient_quota'}}", code="429"),
            "no credit left",
        ),
    ]:  # fmt: skip
        async with asking(action, key="sk-secret-1") as chat:
            for _ in range(2):
                error = await chat.fails(RunStops, message)
            assert len(chat.chats) == 1
        assert "\n" not in str(error)
        assert "set OPENAI_API_KEY" in str(await error_from(status(401)))  # where none is set


async def test_an_unknown_model_is_reported_once_with_the_available_models() -> None:
    for action in [
        status(404, "The model `test-model` does not exist", code="model_not_found"),
        status(404, 'model "test-model" not found, try pulling it first'),
        status(400, "test-model is not a valid model ID"),
        html(404),
    ]:
        async with asking(action, models=[f"model-{n}" for n in range(7)]) as chat:
            await chat.fails(RunStops, "test-model.*model-0, model-1.*2 more")
    async with asking(UNKNOWN_MODEL.when_together(16), models=["other"]) as chat:
        results = await asyncio.gather(*(chat.ask() for _ in range(20)), return_exceptions=True)
        assert (len(chat.chats), len(chat.server.requests)) == (16, 17)
    assert {str(result) for result in results} == {str(results[0])}
    assert isinstance(results[0], RunStops)
    async with asking(UNKNOWN_MODEL, models=None) as chat:
        await chat.fails(RunStops, "has no model “test-model”")


async def test_other_refusals_fail_only_their_trace() -> None:
    async with asking(lambda _body, n: html(403) if n == 1 else answer("ok")) as chat:
        await chat.ask()
        await chat.fails(TraceFails)
        await chat.ask()
    async with asking(status(400, "messages: \x1b[31mtoo odd")) as chat:
        error = await chat.fails(Unanswered, r"too odd \(400\)")
        assert len(chat.chats) == 1
    assert "\x1b" not in str(error)


async def test_a_refused_system_role_is_merged_into_the_user_message() -> None:
    for refusal in [
        "System role not supported",
        "Only user and assistant roles are supported!",
        "Developer instruction is not enabled for models/gemma-3-27b-it",
        "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
        "Conversation roles must alternate user/assistant/user/assistant/...",
    ]:

        def script(body: dict[str, object], _n: int, refusal: str = refusal) -> Action:
            messages = body["messages"]
            assert isinstance(messages, list)
            return status(400, refusal) if messages[0]["role"] == "system" else answer("ok")

        async with asking(script) as chat:
            assert (await chat.ask("a trace")).form == "json_schema"
            sent = chat.chats[-1].body["messages"]
        assert isinstance(sent, list)
        (message,) = sent
        assert message["role"] == "user"
        assert "Judge in JSON" in message["content"]
        assert "a trace" in message["content"]
        assert len(chat.remarks) == 1


# Waits


def test_a_wait_is_read_in_the_body_of_a_429() -> None:
    for body, seconds in [
        ({"message": "busy", "details": [{"@type": "x", "retryDelay": "38s"}]}, 38.0),
        ({"message": "busy", "details": [{}, 3, {"retryDelay": "1.5s"}]}, 1.5),
        ({"message": "Please retry in 38.4s."}, 38.4),
        ({"message": "Rate limit reached. Please try again in 2.113s."}, 2.113),
        ({"message": "try again in 20ms"}, 0.02),
        ({"message": "Try again in 3 minutes"}, 180.0),
        ({"message": "retry in 1h"}, 3_600.0),
        ({"message": "try again later"}, None),
        ({"message": "busy", "details": [{"retryDelay": "soon"}]}, None),
    ]:
        assert api_error_of({"error": body}, 429).wait == seconds
        assert api_error_of({"error": body}, 400).wait is None
        error = read_api_error(429, {"retry-after": "7"}, json.dumps({"error": body}).encode())
        assert error.wait == 7.0


RESET = {"x-ratelimit-reset-tokens": "20s", "x-ratelimit-remaining-tokens": "0"}


@pytest.mark.parametrize(
    ("action", "times", "seconds"),
    [
        *((status(code, headers={"retry-after": "20"}), 1, 20.0) for code in (429, 503)),
        (status(429, "busy", details=[{"@type": "x", "retryDelay": "38s"}]), 3, 38.0),
        (status(429, "Rate limit reached. Please try again in 2.1s."), 3, 2.1),
        (status(429, headers=RESET), 3, 20.0),
        (status(503, "Loading model", code=503, type="unavailable_error"), 40, 5.0),
    ],
    ids=["429", "503", "retryDelay", "words", "reset", "loading"],
)
async def test_requested_waits_are_respected_and_cost_no_tries(
    action: Action, times: int, seconds: float
) -> None:
    async with asking(after(times, action), tries=2) as chat:
        assert (await chat.ask()).text == "ok"
        assert len(chat.chats) == times + 1
    assert times * seconds <= chat.waited <= times * seconds * 1.5
    assert times < 40 or "is loading the model" in chat.waits[0]


# Streams


def events(*chunks: object) -> Action:
    lines = [chunk if isinstance(chunk, str) else json.dumps(chunk) for chunk in chunks]
    body = "".join(f"data: {line}\n\n" for line in lines)
    return raw(body.encode(), content_type="text/event-stream")


def piece(finish: str | None = None, **delta: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


CALLS = [{"index": 0, "function": {"arguments": part}} for part in ('{"a"', ": 1}")]
STREAMS = [
    events(
        piece(role="assistant", content=""),
        piece(reasoning_content="hm"),
        piece(content='{"a"'),
        piece(content=": 1}"),
        piece("stop"),
        {"choices": [], "usage": {"prompt_tokens": 300, "completion_tokens": 7}},
        "[DONE]",
    ),
    events(*(piece(tool_calls=[call]) for call in CALLS), piece("tool_calls")),
]


async def test_unrequested_streams_are_assembled() -> None:
    reply, call = [await reply_to(stream) for stream in STREAMS]
    assert (reply.text, reply.finish) == ('{"a": 1}', "stop")
    assert (reply.tokens_in, reply.tokens_out) == (300, 7)
    assert call.text == '{"a": 1}'
    async with asking(events({"error": {"message": "no such key", "code": 401}}), key="k") as chat:
        await chat.fails(RunStops, "refuses the key")
    async with asking(events(piece(content="{"))) as chat:
        await chat.fails(Unanswered, "a stream that cannot be read")


AZURE = (
    "https://lab.openai.azure.com/openai/v1",
    "https://lab.cognitiveservices.azure.com/openai/deployments/m?api-version=1",
    "https://LAB.services.ai.azure.com/models",
)
NOT_AZURE = (
    "https://lab.openai.azure.com.example.org/v1",
    "https://openai.azure.com.evil.net/v1",
    "https://lab-openai.azure.com/v1",
    "https://evil.net/lab.openai.azure.com",
    "https://api.openai.com/v1",
    "http://127.0.0.1:1/v1",
)


async def test_only_azure_hosts_get_the_api_key_header() -> None:
    for address in (*AZURE, *NOT_AZURE):
        async with openai_client(Endpoint(address, "a-key")) as client:
            key = "a-key" if address in AZURE else None
            assert client.default_headers.get("api-key") == key, address


async def test_configured_fields_and_corrections_are_sent() -> None:
    parameters = Parameters(MODEL, extra_body=(("reasoning_effort", "low"), ("seed", 7)))
    async with asking(
        parameters=parameters, headers={"x-team": "sre"}, path="?api-version=2024-06-01"
    ) as chat:
        await chat.ask(correction=Correction("{broken", "it breaks off"))
        (request,) = chat.chats
    assert request.path == "/v1/chat/completions?api-version=2024-06-01"
    assert request.headers["x-team"] == "sre"
    assert (request.body["reasoning_effort"], request.body["seed"]) == ("low", 7)
    messages = request.body["messages"]
    assert isinstance(messages, list)
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert messages[2]["content"] == "{broken"
    assert "it breaks off" in messages[3]["content"]


async def test_few_requests_are_sent_before_the_first_useful_answer() -> None:
    async with asking(status(500), first=FIRST) as chat:
        for _ in range(2):
            await chat.fails(Unanswered)
        await chat.fails(RunStops, "none of 8 requests")
        assert len(chat.chats) == 8
    async with asking(first=FIRST) as chat:
        assert chat.client.limiter.allowed == 1
        await chat.ask()
        assert chat.client.limiter.allowed == 1
        chat.client.record_problem(None)
        assert chat.client.limiter.allowed == 16


# Headers


LIMIT: Final = "x-ratelimit-"
NOW: Final = "Sun, 06 Nov 2033 08:49:37 GMT"
FAR: Final = "9" * 20

DATES: Final = [
    f"Mon, 01 Jan {FAR} 00:00:00 GMT", "Mon, 01 Jan 9999 23:59:59 -2359",
    "Mon, 01 Jan 10000 00:00:00 GMT", "Mon, 01 Jan 0001 00:00:00 +2359",
    "Mon, 01 Jan 0000 00:00:00 GMT", f"Mon, 01 Jan 2034 00:00:00 +{FAR}",
    f"Mon, 01 Jan 2034 00:00:00 -{FAR}", f"Mon, {FAR} Jan 2034 00:00:00 GMT",
    f"Mon, 01 Jan 2034 {FAR}:{FAR}:{FAR} GMT", "Mon, 32 Foo 2034 25:61:61 XYZ",
    "Mon, 01 Jan -2034 00:00:00 GMT", "06-Nov-33", ",,,", ":", "(((", "\x00",
    "Mon, 01 Jan 2034 00:00:00 " + "(" * 60_000,
]  # fmt: skip
NUMBERS: Final = [
    *("-1", "-0", "nan", "-nan", "inf", "-Infinity", "1e308", "1e400", "1_0", "0x10", "٣"),
    *("1" * 5_000, "0." + "0" * 5_000, "", " ", "120, 120"),
]


@pytest.mark.parametrize("name", ["retry-after", "retry-after-ms", "date"])
def test_a_wait_is_bounded_for_any_header_value(name: str) -> None:
    for value in (*DATES, *NUMBERS):
        wait = requested_wait({"retry-after": NOW, name: value})
        assert wait is None or 0.0 <= wait <= LONGEST_WAIT, value


WAITS: Final[list[tuple[dict[str, str], float | None]]] = [
    ({"retry-after": "-5"}, None),
    ({"retry-after": "nan"}, None),
    ({"retry-after": "inf"}, None),
    ({"retry-after": "2.5"}, 2.5),
    ({"retry-after": "1e300"}, LONGEST_WAIT),
    ({"retry-after-ms": "-5", "retry-after": "2"}, 2.0),
    ({"retry-after-ms": "20000", "retry-after": "1"}, 20.0),
    ({"retry-after-ms": "1e300"}, LONGEST_WAIT),
    ({"retry-after": "Mon, 01 Jan 9999 00:00:00 GMT", "date": NOW}, LONGEST_WAIT),
    ({"retry-after": "Sun, 06 Nov 2033 08:49:38 GMT", "date": NOW}, 1.0),
    ({"retry-after": "Sun, 06 Nov 2033 08:49:37 +0100", "date": NOW}, 0.0),
    # A limit that is reset.
    ({f"{LIMIT}reset-requests": "1s", f"{LIMIT}remaining-requests": "0"}, 1.0),
    ({f"{LIMIT}reset-tokens": "6m0s", f"{LIMIT}remaining-tokens": "0"}, 360.0),
    ({f"{LIMIT}reset-tokens": "6m0s", f"{LIMIT}reset-requests": "20ms"}, 0.02),
    ({f"{LIMIT}reset-tokens": "soon"}, None),
    ({f"{LIMIT}reset-tokens": "6m0s", "retry-after": "9"}, 9.0),
]


def test_the_requested_wait_is_read_from_headers() -> None:
    for headers, seconds in WAITS:
        assert requested_wait(headers) == seconds, headers


CHARSETS: Final = ("zlib", "bz2", "punycode", "idna", "unicode_escape", "utf-7", "x" * 10_000)


@pytest.mark.slow
async def test_the_content_type_does_not_change_how_an_answer_is_read() -> None:
    for value in [
        *(f"application/json; charset={name}" for name in CHARSETS),
        *("text/event-stream", ";", "", "\x7f"),
    ]:
        right = answer("ünï ok")
        assert (await reply_to(Action(200, right.body, content_type=value))).text == "ünï ok"
        wrong = status(400, "roles must alternate")
        error = await error_from(Action(400, wrong.body, content_type=value))
        assert "roles must alternate" in str(error)


@pytest.mark.slow
async def test_a_false_content_encoding_is_an_error() -> None:
    for value in [
        "gzip", "gzip, gzip", "deflate", "br", "zstd", "gzip," * 50, "nonsense", ",", "\x7f",
    ]:  # fmt: skip
        for code in (200, 429):
            action = Action(code, b'{"error": "x"}', (("content-encoding", value),))
            async with asking(action, tries=2) as chat:
                await chat.fails(TraceFails)
                assert len(chat.chats) <= 2


async def test_a_redirect_is_reported_and_not_followed() -> None:
    for value in [
        "", "//", "http://[", "http://\x1b[31m/", "x" * 20_000, "javascript:1",
        "http://a:99999999/",
    ]:  # fmt: skip
        async with asking(Action(302, headers=(("location", value),))) as chat:
            error = await chat.fails(RunStops, "redirects to")
            assert len(chat.server.requests) == 1
        assert "\x1b" not in str(error)
        assert len(str(error)) < 1_000


async def test_other_odd_headers_do_no_harm() -> None:
    for name, value in [
        *(("content-length", value) for value in ("-1", "9" * 30, "1, 2")),
        ("transfer-encoding", "gzip, chunked, nonsense"),
        ("x-request-id", "\x7f" * 1_000),
        ("x-ratelimit-reset-requests", f"{FAR}s"),
        ("set-cookie", "a=b; expires=" + DATES[0]),
        ("x-many", "y" * 200_000),
    ]:
        odd = Action(200, answer("ok").body, ((name, value),))
        assert (await reply_to(after(1, odd))).text == "ok"
