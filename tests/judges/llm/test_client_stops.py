"""The client against servers that refuse: what stops a run, and what only a trace."""

from __future__ import annotations

import asyncio

import pytest

from mast_tui.judges.llm.client.budget import Budget
from mast_tui.judges.llm.errors import ContextOverflow, RunStops, TraceFails, Unanswered
from tests.judges.llm.asking import (
    ANSWER_TOKENS,
    a_client,
    a_request,
    after,
    failure,
)
from tests.judges.llm.server import Action, ModelServer, answer, document, html, status

# What stops the run


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (status(401, "Incorrect API key"), "OPENAI_API_KEY"),
        (status(403, "not in your country"), "not in your country"),
        (status(429, "over", code="insufficient_quota"), "no credit"),
        (status(402, "Insufficient Balance"), "no credit"),
        (Action(307, headers=(("location", "http://127.0.0.1:9/v1"),)), "127.0.0.1:9/v1"),
        (html(200), "no OpenAI API"),
        (html(404), "no OpenAI API"),
        (document({"detail": "Not Found"}, code=404), "no OpenAI API"),
        (status(400, "max_tokens is too large: 9. At most 5 completion tokens"), "fewer tokens"),
    ],
)
async def test_what_no_request_would_get_past_stops_the_run_at_once(
    action: Action, words: str
) -> None:
    with after(99, action) as server:
        async with a_client(server, key="sk-secret-1") as client:
            for _ in range(2):
                with pytest.raises(RunStops, match=words) as caught:
                    await client.ask(a_request(), ANSWER_TOKENS)
        assert len(server.chats) == 1
    assert "\n" not in str(caught.value)


async def test_a_server_that_wants_a_key_says_which_variable_to_set() -> None:
    with after(9, status(401)) as server:
        assert "set OPENAI_API_KEY" in str(await failure(server))


@pytest.mark.parametrize(
    "action",
    [
        status(404, "The model `test-model` does not exist", code="model_not_found"),
        status(404, 'model "test-model" not found, try pulling it first'),
        status(400, "test-model is not a valid model ID"),
        html(404),
    ],
)
async def test_an_unknown_model_is_told_with_those_that_there_are(action: Action) -> None:
    models = [f"model-{n}" for n in range(7)]
    with ModelServer(lambda _body, _n: action, models=models) as server:
        error = await failure(server)
    assert isinstance(error, RunStops)
    assert "test-model" in str(error)
    assert "model-0, model-1" in str(error)
    assert "2 more" in str(error)


async def test_an_unknown_model_is_told_also_where_none_are_listed() -> None:
    action = status(404, "The model `test-model` does not exist")
    with ModelServer(lambda _body, _n: action, models=None) as server:
        assert "knows no model “test-model”" in str(await failure(server))


async def test_a_request_that_a_firewall_refuses_among_others_fails_alone() -> None:
    def script(_body: dict[str, object], n: int) -> Action:
        return html(403) if n == 1 else answer("ok")

    with ModelServer(script) as server:
        async with a_client(server) as client:
            await client.ask(a_request(), ANSWER_TOKENS)
            with pytest.raises(TraceFails):
                await client.ask(a_request(), ANSWER_TOKENS)
            await client.ask(a_request(), ANSWER_TOKENS)


async def test_any_other_refusal_fails_this_trace_with_the_servers_words() -> None:
    with after(9, status(400, "messages: \x1b[31mtoo odd")) as server:
        error = await failure(server)
        assert len(server.chats) == 1
    assert type(error) is Unanswered
    assert "too odd (400)" in str(error)
    assert "\x1b" not in str(error)


# Requests that are too long


async def test_an_overflow_is_told_as_one() -> None:
    said = "This model's maximum context length is 8192 tokens. However, you requested 9000"
    with after(9, status(400, said, code="context_length_exceeded")) as server:
        error = await failure(server)
        assert len(server.chats) == 1
    assert isinstance(error, ContextOverflow)
    assert "8192" in str(error)


async def test_an_overflow_in_a_right_response_is_told_as_one() -> None:
    said = {"message": "too much", "type": "exceed_context_size_error", "code": 400}
    with after(9, document({"error": said})) as server:
        assert isinstance(await failure(server), ContextOverflow)


async def test_a_silent_cut_is_told_as_an_overflow() -> None:
    text = "The agent read the file and said that all of its tests had passed. " * 500
    for counted, cut in ((2_050, True), (7_400, False)):
        with ModelServer(lambda _body, _n, n=counted: answer("ok", tokens_in=n)) as server:  # type: ignore[misc]
            async with a_client(server, budget=(budget := Budget())) as client:
                asked = client.ask(a_request(text, tokens=8_000), ANSWER_TOKENS)
                if cut:
                    with pytest.raises(ContextOverflow, match="only 2,050 tokens of about 8,000"):
                        await asked
                else:
                    assert (await asked).tokens_in == counted
        assert budget.used.tokens_in == counted


async def test_long_runs_of_one_character_are_no_cut() -> None:
    with ModelServer(lambda _body, _n: answer("ok", tokens_in=600)) as server:
        async with a_client(server) as client:
            text = ("=" * 400 + "\nheading\n" + " " * 400) * 40
            await client.ask(a_request(text, tokens=12_000), ANSWER_TOKENS)


async def test_sixteen_that_are_stopped_at_once_look_for_the_models_once() -> None:
    action = status(404, "The model `test-model` does not exist").when_together(16)
    with ModelServer(lambda _body, _n: action, models=["other"]) as server:
        async with a_client(server) as client:
            asked = (client.ask(a_request(), ANSWER_TOKENS) for _ in range(20))
            ends = await asyncio.gather(*asked, return_exceptions=True)
        assert len(server.chats) == 16
        assert len(server.requests) == 17
    assert {str(end) for end in ends} == {str(ends[0])}
    assert isinstance(ends[0], RunStops)
