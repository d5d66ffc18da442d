"""Request forms that a server accepts, and the meaning of its errors."""

from __future__ import annotations

import asyncio

from mast_tui.judges.llm.client.api_capabilities import ApiCapabilities
from mast_tui.judges.llm.client.api_errors import (
    ErrorKind,
    api_error_of,
    context_limit,
    error_kind_of,
    longest_answer,
)
from mast_tui.judges.llm.client.endpoint import host_of
from mast_tui.judges.llm.request import Form, Parameters, RunStops, TraceFails
from tests.judges.llm.asking import asking
from tests.judges.llm.server import Action, Script, answer, document, status

LOCAL = "http://127.0.0.1:8000/v1"
COLD = Parameters("m", temperature=0.0)

FORMS: tuple[Form, ...] = ("json_schema", "json_object_schema", "json_object", "text")


def server_accepting(
    *,
    forms: tuple[Form, ...] = FORMS,
    limits: tuple[str, ...] = ("max_tokens",),
    temperature: bool = True,
    together: int = 0,
) -> Script:
    """Emulate a server that accepts only these fields, and refuses others as OpenAI does."""

    def script(body: dict[str, object], _n: int) -> Action:
        form = body.get("response_format")
        name = form["type"] if isinstance(form, dict) else "text"
        if name == "json_object" and "schema" in form:  # type: ignore[operator]
            name = "json_object_schema"
        if name not in forms:
            message = f"'response_format' of type '{name}' is not supported with this model."
            return status(400, message, param="response_format").when_together(together)
        for limit in ("max_tokens", "max_completion_tokens"):
            if limit in body and limit not in limits:
                message = f"Unsupported parameter: '{limit}' is not supported with this model."
                return status(400, message, param=limit, code="unsupported_parameter")
        if "temperature" in body and not temperature:
            message = "Unsupported value: 'temperature' does not support 0.0 with this model."
            return status(400, message, param="temperature", code="unsupported_value")
        return answer("ok")

    return script


async def test_the_strictest_accepted_form_is_kept() -> None:
    for refusals, expected in [*enumerate(FORMS)]:
        async with asking(server_accepting(forms=FORMS[refusals:])) as chat:
            for _ in range(3):
                assert (
                    (await chat.ask()).form
                    == chat.client.capabilities.request_form.answer_format
                    == expected
                )
            assert len(chat.chats) == refusals + 3
        assert len(chat.remarks) == refusals


async def test_refusals_are_learned_once_for_all_tasks() -> None:
    script = server_accepting(forms=("text",), limits=("max_completion_tokens",), temperature=False)
    async with asking(script, parameters=COLD) as chat:
        replies = await asyncio.gather(*(chat.ask() for _ in range(16)))
        request_count = len(chat.chats)
        await chat.ask()
        assert len(chat.chats) == request_count + 1
    assert request_count <= 16 * 6
    assert {reply.form for reply in replies} == {"text"}
    assert len(chat.remarks) == 4
    assert any("temperature" in remark for remark in chat.remarks)


async def test_concurrent_refusals_are_each_repeated_once() -> None:
    async with asking(server_accepting(forms=("json_object_schema",), together=16)) as chat:
        await asyncio.gather(*(chat.ask() for _ in range(16)))
        assert chat.client.capabilities.request_form.answer_format == "json_object_schema"
        assert len(chat.chats) == 32


async def test_temperature_and_limit_are_sent_where_they_are_accepted() -> None:
    async with asking(server_accepting(), parameters=COLD) as chat:
        await chat.ask()
        assert chat.chats[0].body["temperature"] == 0.0
    async with asking(server_accepting(limits=())) as chat:
        await chat.ask()
        assert not {"max_tokens", "max_completion_tokens"} & chat.chats[-1].body.keys()
    assert any("not accept a limit" in remark for remark in chat.remarks)


async def test_refusing_every_form_fails_the_trace() -> None:
    async with asking(status(400, "the JSON schema is invalid")) as chat:
        await chat.fails(TraceFails, "schema is invalid")
        assert len(chat.chats) == 4
    async with asking(status(400, "messages must alternate")) as chat:  # it is about something else
        await chat.fails(TraceFails)
        assert chat.client.capabilities.request_form.answer_format == "json_schema"
    assert chat.remarks == []
    error = {"loc": ["body", "response_format"], "msg": "Extra inputs are not permitted"}
    refused = document({"detail": [error]}, code=422)  # a list of validation errors
    async with asking(
        lambda body, _n: refused if "response_format" in body else answer("ok")
    ) as chat:
        assert (await chat.ask()).form == "text"


def test_the_newer_name_of_the_limit_is_used_where_it_is_known() -> None:
    for address, limit in (
        ("https://api.openai.com/v1", "max_completion_tokens"),
        ("https://lab.openai.azure.com/openai/v1", "max_completion_tokens"),
        ("https://lab.services.ai.azure.com/openai/v1", "max_completion_tokens"),
        (LOCAL, "max_tokens"),
        ("https://notapi.openai.com.example/v1", "max_tokens"),
    ):
        forms = ApiCapabilities(Parameters("m"), host_of(address), lambda _: None)
        assert forms.request_form.limit == limit, address


OVERFLOWS = [
    "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens",
    "This endpoint's maximum context length is 32768 tokens. However, you requested about 42832",
    "the request exceeds the available context size. try increasing the context size",
    "request (14429 tokens) exceeds the available context size (8192 tokens), try increasing it",
    "Requested tokens (2285) exceed context window of 2048",
    "litellm.ContextWindowExceededError: prompt is too long: 209353 tokens > 199999 maximum",
    "input length and `max_tokens` exceed context limit: 174167 + 64000 > 200000",
    "`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens",
    "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000",
    "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
    "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
    "max_tokens must be at least 1, got -186.",
    "'max_tokens' is too large: 4000. This model's maximum context length is 4096 tokens",
    "Trying to keep the first 5000 tokens when context the overflows. However, the model is"
    " loaded with context length of only 4096 tokens",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 45000.",
    "Please reduce the length of the messages or completion.",
    "too many tokens: total number of tokens in the prompt cannot exceed 4081",
    "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
    "Input is too long for requested model.",
]


QUOTA = "You exceeded your current quota"
PLAN = f"{QUOTA}, please check your plan and billing details."
ERRORS: dict[ErrorKind, list[tuple[int, object]]] = {
    ErrorKind.OVERFLOW: [
        (400, {"message": "no", "code": "context_length_exceeded"}),
        (400, {"message": "no", "type": "exceed_context_size_error"}),
        (413, "Request Entity Too Large"),
        (429, "Request too large on tokens per min: Limit 9, Requested 15"),
    ],
    ErrorKind.FORM: [
        (400, {"message": "This response_format type is unavailable now"}),
        (422, "response_format.type `json_schema` is unavailable now at line 1"),
        (400, {"message": "'response_format.type' must be 'json_schema' or 'text'"}),
        (400, {"message": "The provided JSON schema contains features not supported"}),
        (500, {"message": 'Grammar error: Unimplemented keys: ["propertyNames"]'}),
        (400, {"message": "'messages' must contain 'json' to use 'json_object'"}),
        (404, "No endpoints found that can handle the requested parameters."),
        (400, {"message": "not supported"}),
    ],
    ErrorKind.LIMIT: [
        (400, {"message": "Unsupported parameter: 'max_tokens'", "param": "max_tokens"}),
        (422, "max_completion_tokens: Extra inputs are not permitted"),
    ],
    ErrorKind.ANSWER_TOO_LONG: [
        (400, "max_tokens is too large: 9. This model supports at most 5 completion tokens"),
        (400, "max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens"),
        (400, "Range of max_tokens should be [1, 8192]"),
    ],
    ErrorKind.TEMPERATURE: [
        (400, "'temperature' does not support 0 with this model."),
        (400, {"message": "only 1 is allowed", "param": "temperature"}),
    ],
    ErrorKind.NO_MODEL: [
        (404, {"message": "The model `x` does not exist or you lack access to it"}),
        (404, {"message": 'model "x" not found, try pulling it first'}),
        (400, {"message": "Invalid model name passed in model=x"}),
        (400, {"message": "x is not a valid model ID"}),
        (404, {"code": "DeploymentNotFound", "message": "no deployment"}),
        (404, {"message": "The model `grammar-1` was not found"}),
    ],
    ErrorKind.NOT_FOUND: [(404, {"detail": "Not Found"}), (405, {"detail": "Method Not Allowed"})],
    ErrorKind.MONEY: [
        (429, {"message": "slow down", "code": "insufficient_quota"}),
        (429, f"litellm.RateLimitError: RateLimitError: OpenAIException - {QUOTA}"),
        (429, PLAN),
        (400, {"message": "Budget has been exceeded! Current cost: 9"}),
        (402, "Insufficient Balance"),
        (400, "Your credit balance is too low"),
    ],
    ErrorKind.BUSY: [
        (429, {"message": QUOTA, "code": 429}),
        (429, f"{PLAN} Please retry in 38.4s."),
        (429, "Rate limit reached on tokens per min: Limit 9, Used 8, Requested 5"),
        (429, "Too many tokens, please wait before trying again."),
        (429, "This would exceed the rate limit of 40,000 input tokens per minute"),
    ],
    ErrorKind.KEY: [(400, {"message": "No connected db.", "type": "no_db_connection"})],
    ErrorKind.DENIED: [(403, "blocked")],
    ErrorKind.LOADING: [(503, "loading model")],
    ErrorKind.TEMPORARY: [
        (500, {"message": "context canceled"}),
        (500, {"message": "context deadline exceeded"}),
        (408, None),
    ],
    ErrorKind.REDIRECT: [(302, None)],
    ErrorKind.SYSTEM: [(400, {"message": "roles must alternate"})],
    ErrorKind.REFUSED: [(451, None)],
}


def test_errors_are_classified() -> None:
    for kind in ERRORS:
        too_long = [(code, text) for text in OVERFLOWS for code in (400, 422, 500)]
        for code, body in ERRORS[kind] + (too_long if kind is ErrorKind.OVERFLOW else []):
            assert error_kind_of(api_error_of(body, code)) is kind, body
            assert error_kind_of(api_error_of({"error": body}, code)) is kind, body


def test_limits_are_read_from_error_messages() -> None:
    for message, limit, longest in [
        ("request (4903 tokens) exceeds the available context size (4096 tokens)", 4_096, None),
        ("This model's maximum context length is 8,192 tokens. You requested 9000", 8_192, None),
        ("Request too large on tokens per min (TPM): Limit 3000, Requested 4903", 3_000, 3_000),
        ("prompt is too long: 210000 tokens > 200000 maximum", 200_000, None),
        ("The input token count (40000) exceeds the maximum number of tokens allowed (32768).",
         32_768, None),
        ("max_tokens is too large: 4000. This model supports at most 2048 completion tokens",
         None, 2_048),
        ("max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens",
         None, 8_192),
        ("`max_tokens` must be less than or equal to `8192`, the maximum value", None, 8_192),
        ("the valid range of max_tokens is [1, 8192]", None, 8_192),
        ("max_tokens is too large: 9. This model supports at most 5 completion tokens", None, None),
        ("it is too long", None, None),
    ]:  # fmt: skip
        error = api_error_of({"error": {"message": message}}, 400)
        assert (context_limit(error), longest_answer(error)) == (limit, longest)


async def test_a_server_s_longest_answer_is_requested_from_then_on() -> None:
    def script(body: dict[str, object], _n: int) -> Action:
        room = body["max_tokens"]
        assert isinstance(room, int)
        if room > 2_048:
            limit = "This model supports at most 2048 completion tokens"
            message = f"max_tokens is too large: {room}. {limit}, whereas you provided {room}."
            return status(400, message)
        return answer("ok")

    async with asking(script) as chat:
        for _ in range(2):
            assert (await chat.ask(room=4_000)).text == "ok"
        await chat.ask(room=1_000)
        assert [chat.body["max_tokens"] for chat in chat.chats] == [4_000, 2_048, 2_048, 1_000]
    (remark,) = chat.remarks
    assert "gives answers of at most 2,048 tokens" in remark


async def test_refusing_its_own_limit_stops_the_run() -> None:
    message = "max_tokens is too large. This model supports at most 2048 completion tokens"
    async with asking(status(400, message)) as chat:
        await chat.fails(RunStops, "allow fewer tokens", room=4_000)
        assert len(chat.chats) == 2
