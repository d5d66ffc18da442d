"""The parser of a server's responses, which checks that they contain an answer."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import orjson

from mast_tui.judges.llm.client.api_errors import ApiError, api_error_of
from mast_tui.judges.llm.prompt.tokens import estimate
from mast_tui.judges.llm.request import MOST_TOKENS, OVERSHOOT, Finish, Form, Reply

LEAST_LOOKED_AT: Final = 500
"""The tokens of a request from which a count that is too low means that it was truncated."""

LEAST_COUNT: Final = 256
"""The fewest tokens of a plausible count of a long request: no context is smaller."""

_REFUSALS: Final = frozenset(
    {"content_filter", "refusal", "safety", "prohibited_content", "blocklist", "spii"}
)
_EVENT: Final = re.compile(r"\s*(?:data|event|id|retry)?:")
_EVENT_DATA: Final = re.compile(r"^data:(.*)$", re.MULTILINE)
"""The events of a stream (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""

_RUN: Final = re.compile(r"(.)\1{3,}", re.DOTALL)
_SURROGATES: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class UnusableReply:
    """A response with status 200 without an answer; ``content`` says what it holds instead.

    The tokens are those that the server counted.
    """

    content: str
    page: bool = False
    tokens_in: int = 0
    tokens_out: int = 0


def read_reply(text: str, *, form: Form, sent_tokens: int) -> Reply | ApiError | UnusableReply:
    """Read a response with status 200.

    An empty answer that was counted is an unusable reply, not an error: it has to be paid.

    Args:
        text: The body.
        form: The form of answer that was requested.
        sent_tokens: The estimated tokens of the request, used if the server counted none.
    """
    try:
        body = _streamed(text) if _EVENT.match(text) else _decoded(text)
    except (ValueError, RecursionError):
        return _no_json(text)
    return read_body(body, form=form, sent_tokens=sent_tokens)


def read_body(body: object, *, form: Form, sent_tokens: int) -> Reply | ApiError | UnusableReply:
    """Read the decoded body of a response with status 200, as ``read_reply`` does.

    Args:
        body: The decoded body.
        form: The form of answer that was requested.
        sent_tokens: The estimated tokens of the request, used if the server counted none.
    """
    if not isinstance(body, dict):
        return UnusableReply("JSON that is no answer")
    usage = _usage(body.get("usage"))
    choice = _first(body.get("choices"))
    error = body.get("error") or choice.get("error")
    if error:
        return api_error_of(error, _status(error))
    message = choice.get("message")
    if not isinstance(message, dict):
        return UnusableReply("no choice", False, usage.tokens_in, usage.tokens_out)
    answer_text = _content(message.get("content"))
    refusal = _content(message.get("refusal"))
    finish = _finish(choice.get("finish_reason"), refusal)
    if finish == "refusal":
        answer_text = refusal or answer_text or "the provider's filter stopped the answer"
    elif not answer_text.strip() and finish == "stop":
        answer_text = _text_of_call_or_reasoning(message)
    counted = usage.tokens_in >= LEAST_COUNT or (
        usage.tokens_in > 0 and sent_tokens < LEAST_LOOKED_AT
    )
    if not answer_text and finish == "stop" and not counted:
        return UnusableReply("no words")
    return Reply(
        answer_text,
        finish,
        form,
        usage.tokens_in if counted else sent_tokens,
        max(usage.tokens_out, 0 if counted else estimate(answer_text)),
        counted,
        tokens_cached=min(usage.cached, usage.tokens_in) if counted else 0,
        tokens_thought=usage.thought,
    )


def was_cut(reply: Reply, texts: Iterable[str], sent_tokens: int) -> bool:
    """Check whether a server truncated a request, by a count of tokens that is too low.

    Args:
        reply: The reply with the count.
        texts: The texts of the request. Long runs of one character count little, since they can be
            a single token.
        sent_tokens: The estimated tokens of the whole request.
    """
    if not reply.counted or sent_tokens < LEAST_LOOKED_AT:
        return False
    if reply.tokens_in * OVERSHOOT >= sent_tokens:
        return False
    sent = sum(estimate(_RUN.sub(r"\1\1\1", text)) for text in texts)
    return sent >= LEAST_LOOKED_AT and reply.tokens_in * OVERSHOOT < sent


def _decoded(text: str) -> object:
    """Parse JSON, also with half of a surrogate pair, such as ``\\ud83d`` alone.

    Raises:
        ValueError: The text is not JSON.
        RecursionError: The JSON is nested too deeply.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text)


def _no_json(text: str) -> UnusableReply:
    if text.lstrip().startswith("<"):
        return UnusableReply("a web page", page=True)
    if _EVENT.match(text):
        return UnusableReply("a stream that cannot be read; have the server or proxy send none")
    return UnusableReply("no JSON" if text else "an empty body")


def _streamed(text: str) -> dict[str, object]:
    """Join the chunks of an answer that a server streams without a request for it.

    Raises:
        ValueError: A chunk is not JSON, or the end is missing.
        RecursionError: A chunk is nested too deeply.
    """
    parts: dict[str, list[str]] = defaultdict(list)
    body: dict[str, object] = {}
    finish: object = None
    for event in _EVENT_DATA.findall(text):
        if event.strip() == "[DONE]":
            continue
        chunk = _decoded(event)
        if not isinstance(chunk, dict):
            raise ValueError("a piece is no object")
        body |= {name: chunk[name] for name in ("usage", "error") if chunk.get(name)}
        choice = _first(chunk.get("choices"))
        finish = choice.get("finish_reason") or finish
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, dict):
            for name in ("content", "refusal", "reasoning_content", "reasoning"):
                parts[name].append(_content(delta.get(name)))
            parts["arguments"].append(_arguments(delta))
    if finish is None and "error" not in body:
        raise ValueError("the end is missing")
    joined = {name: "".join(texts) for name, texts in parts.items()}
    calls = [{"function": {"arguments": joined.get("arguments", "")}}]
    whole = {"message": {**joined, "tool_calls": calls}, "finish_reason": finish}
    return {**body, "choices": [whole]}


def _arguments(message: Mapping[str, object]) -> str:
    """Return the arguments of the first call in a message that has some."""
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        arguments = _content(function.get("arguments")) if isinstance(function, dict) else ""
        if arguments:
            return arguments
    return ""


def _first(choices: object) -> dict[str, object]:
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return choices[0]
    return {}


def _content(content: object) -> str:
    """Return the text of a message, also of one in parts."""
    if isinstance(content, str):
        return _SURROGATES.sub("�", content)
    if not isinstance(content, list):
        return ""
    parts = (part.get("text") if isinstance(part, dict) else part for part in content)
    return _content("".join(part for part in parts if isinstance(part, str)))


def _text_of_call_or_reasoning(message: Mapping[str, object]) -> str:
    """Return the answer in a message without content, from a tool call or the reasoning.

    Some servers put the JSON of an answer into a tool call, others into the reasoning.
    """
    text = _arguments(message)
    if text.strip():
        return text
    thought = (_content(message.get(name)) for name in ("reasoning_content", "reasoning"))
    return next((text for text in thought if "{" in text), "")


def _finish(reason: object, refusal: str) -> Finish:
    name = reason.lower() if isinstance(reason, str) else ""
    if refusal or name in _REFUSALS:
        return "refusal"
    return "length" if name in ("length", "max_tokens", "model_length") else "stop"


@dataclass(frozen=True, slots=True)
class _Usage:
    """The tokens that a server counted, else 0; ``cached`` is a part of ``tokens_in``."""

    tokens_in: int = 0
    tokens_out: int = 0
    cached: int = 0
    thought: int = 0


def _usage(usage: object) -> _Usage:
    if not isinstance(usage, dict):
        return _Usage()
    tokens_in = _count(usage.get("prompt_tokens"))
    cached = _detail(usage, "prompt_tokens_details", "cached_tokens")
    if cached > tokens_in:  # some servers count cached tokens separately
        tokens_in += cached
    thought = _detail(usage, "completion_tokens_details", "reasoning_tokens")
    # Thinking has to be paid, also if only the total includes it.
    tokens_out = max(
        _count(usage.get("completion_tokens")),
        _count(usage.get("total_tokens")) - tokens_in if tokens_in else 0,
        thought,
    )
    return _Usage(tokens_in, tokens_out, cached, thought)


def _detail(usage: Mapping[str, object], group: str, name: str) -> int:
    details = usage.get(group)
    return _count(details.get(name)) if isinstance(details, dict) else 0


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return value if 0 < value < MOST_TOKENS else 0


def _status(error: object) -> int:
    """Return the status of an error in a response with status 200."""
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, str) and len(code) == 3 and code.isdecimal():
        code = int(code)
    status = _count(code)
    return status if 400 <= status < 600 else 500
