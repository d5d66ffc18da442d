"""The parser of a server's successful responses."""

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
from mast_tui.traces.search.pattern import encodable_text

LEAST_CHECKED: Final = 500
"""The fewest tokens of a request that is checked for truncation."""

LEAST_COUNT: Final = 256
"""The fewest tokens of a plausible count for a long request. No context is smaller."""

_REFUSALS: Final = frozenset(
    {"content_filter", "refusal", "safety", "prohibited_content", "blocklist", "spii"}
)
_EVENT: Final = re.compile(r"\s*(?:data|event|id|retry)?:")
_EVENT_DATA: Final = re.compile(r"^data:(.*)$", re.MULTILINE)
"""The events of a stream (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""

_LONG_RUN: Final = re.compile(r"(.)\1{3,}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class UnusableReply:
    """A response with status 200 but without an answer.

    Attributes:
        content: The description of its content.
        is_web_page: True if it is a web page.
        tokens_in: The tokens of the request that the server counted.
        tokens_out: The tokens of the answer that the server counted.
    """

    content: str
    is_web_page: bool = False
    tokens_in: int = 0
    tokens_out: int = 0


def read_reply(text: str, *, form: Form, sent_tokens: int) -> Reply | ApiError | UnusableReply:
    """Read a response with status 200: a reply, an error, or something else.

    An empty answer with counted tokens is an ordinary reply, because it must be paid.

    Args:
        text: The body.
        form: The requested form of the answer.
        sent_tokens: The estimated tokens of the request, in case the server counted none.
    """
    try:
        body = _join_stream(text) if _EVENT.match(text) else _decode_json(text)
    except (ValueError, RecursionError):
        return _unreadable_reply(text)
    return read_body(body, form=form, sent_tokens=sent_tokens)


def read_body(body: object, *, form: Form, sent_tokens: int) -> Reply | ApiError | UnusableReply:
    """Read the decoded body of a response with status 200.

    Args:
        body: The decoded body.
        form: The requested form of the answer.
        sent_tokens: The estimated tokens of the request, in case the server counted none.
    """
    if not isinstance(body, dict):
        return UnusableReply("JSON that is not an answer")
    usage = _read_usage(body.get("usage"))
    choice = _first_choice(body.get("choices"))
    error = body.get("error") or choice.get("error")
    if error:
        return api_error_of(error, _error_status(error))
    message = choice.get("message")
    if not isinstance(message, dict):
        return UnusableReply("no choice", tokens_in=usage.tokens_in, tokens_out=usage.tokens_out)
    answer_text = _content_text(message.get("content"))
    refusal_text = _content_text(message.get("refusal"))
    finish = _finish_of(choice.get("finish_reason"), refusal_text)
    if finish == "refusal":
        answer_text = refusal_text or answer_text or "the provider's filter stopped the answer"
    elif not answer_text.strip() and finish == "stop":
        answer_text = _text_of_call_or_reasoning(message)
    # Some servers report a small number without counting. Only a short request can have so few.
    is_counted = usage.tokens_in >= LEAST_COUNT or (
        usage.tokens_in > 0 and sent_tokens < LEAST_CHECKED
    )
    if not answer_text and finish == "stop" and not is_counted:
        return UnusableReply("no words")
    return Reply(
        answer_text,
        finish,
        form,
        tokens_in=usage.tokens_in if is_counted else sent_tokens,
        tokens_out=max(usage.tokens_out, 0 if is_counted else estimate(answer_text)),
        counted=is_counted,
        tokens_cached=min(usage.cached_tokens, usage.tokens_in) if is_counted else 0,
        tokens_thought=usage.thinking_tokens,
    )


def was_cut(reply: Reply, sent_messages: Iterable[Mapping[str, str]], sent_tokens: int) -> bool:
    """Check whether a server truncated a request: it counted far fewer tokens than were sent.

    Args:
        reply: The reply with the count.
        sent_messages: The messages of the request.
        sent_tokens: The estimated tokens of the whole request.
    """
    if not reply.counted or sent_tokens < LEAST_CHECKED:
        return False
    if reply.tokens_in * OVERSHOOT >= sent_tokens:
        return False
    # The estimate is too high for a long run of one character, which may be a single token. So the
    # count must be too low without such runs too.
    least_tokens = sum(
        estimate(_LONG_RUN.sub(r"\1\1\1", message["content"])) for message in sent_messages
    )
    return least_tokens >= LEAST_CHECKED and reply.tokens_in * OVERSHOOT < least_tokens


def _decode_json(text: str) -> object:
    """Parse JSON, also with half of a surrogate pair, such as ``\\ud83d`` alone.

    Raises:
        ValueError: The text is not JSON.
        RecursionError: The JSON is nested too deeply.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text)


def _unreadable_reply(text: str) -> UnusableReply:
    """Describe a response that is not JSON."""
    if text.lstrip().startswith("<"):
        return UnusableReply("a web page", is_web_page=True)
    if _EVENT.match(text):
        return UnusableReply(
            "a stream that cannot be read; turn off streaming in the server or proxy"
        )
    return UnusableReply("no JSON" if text else "an empty body")


def _join_stream(text: str) -> dict[str, object]:
    """Join the chunks of a streamed answer to the body of an ordinary response.

    Some servers stream without being asked.

    Raises:
        ValueError: A chunk is not a JSON object, or the end is missing.
        RecursionError: A chunk is nested too deeply.
    """
    texts_by_field: dict[str, list[str]] = defaultdict(list)
    body: dict[str, object] = {}
    finish: object = None
    for event in _EVENT_DATA.findall(text):
        if event.strip() == "[DONE]":
            continue
        chunk = _decode_json(event)
        if not isinstance(chunk, dict):
            raise ValueError("a piece is not an object")
        body |= {name: chunk[name] for name in ("usage", "error") if chunk.get(name)}
        choice = _first_choice(chunk.get("choices"))
        finish = choice.get("finish_reason") or finish
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, dict):
            for name in ("content", "refusal", "reasoning_content", "reasoning"):
                texts_by_field[name].append(_content_text(delta.get(name)))
            texts_by_field["arguments"].append(_call_arguments(delta))
    if finish is None and "error" not in body:
        raise ValueError("the end is missing")
    fields = {name: "".join(texts) for name, texts in texts_by_field.items()}
    calls = [{"function": {"arguments": fields.get("arguments", "")}}]
    choice = {"message": {**fields, "tool_calls": calls}, "finish_reason": finish}
    return {**body, "choices": [choice]}


def _call_arguments(message: Mapping[str, object]) -> str:
    """Return the arguments of the first call in a message that has any, or an empty text."""
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        arguments = _content_text(function.get("arguments")) if isinstance(function, dict) else ""
        if arguments:
            return arguments
    return ""


def _first_choice(choices: object) -> dict[str, object]:
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return choices[0]
    return {}


def _content_text(content: object) -> str:
    """Return the text of a message's content, which may be in parts; empty for other values."""
    if isinstance(content, str):
        return encodable_text(content)
    if not isinstance(content, list):
        return ""
    parts = (part.get("text") if isinstance(part, dict) else part for part in content)
    return _content_text("".join(part for part in parts if isinstance(part, str)))


def _text_of_call_or_reasoning(message: Mapping[str, object]) -> str:
    """Return the answer in a message without content.

    Some servers put the JSON of an answer into a tool call, others into the reasoning.
    """
    arguments = _call_arguments(message)
    if arguments.strip():
        return arguments
    for name in ("reasoning_content", "reasoning"):
        reasoning = _content_text(message.get(name))
        if "{" in reasoning:
            return reasoning
    return ""


def _finish_of(reason: object, refusal_text: str) -> Finish:
    """Return how an answer ended, from the vendor's reason and the text of a refusal."""
    name = reason.lower() if isinstance(reason, str) else ""
    if refusal_text or name in _REFUSALS:
        return "refusal"
    return "length" if name in ("length", "max_tokens", "model_length") else "stop"


@dataclass(frozen=True, slots=True)
class _Usage:
    """The tokens that a server counted; 0 for missing counts.

    ``cached_tokens`` is a part of ``tokens_in``, and ``thinking_tokens`` is a part of
    ``tokens_out``.
    """

    tokens_in: int = 0
    tokens_out: int = 0
    cached_tokens: int = 0
    thinking_tokens: int = 0


def _read_usage(usage: object) -> _Usage:
    """Read the token counts in a response, in the shapes of different servers."""
    if not isinstance(usage, dict):
        return _Usage()
    tokens_in = _positive_integer(usage.get("prompt_tokens"))
    cached_tokens = _detail_count(usage, "prompt_tokens_details", "cached_tokens")
    if cached_tokens > tokens_in:  # some servers count cached tokens separately
        tokens_in += cached_tokens
    thinking_tokens = _detail_count(usage, "completion_tokens_details", "reasoning_tokens")
    # Thinking must be paid, even if only the total includes it.
    tokens_out = max(
        _positive_integer(usage.get("completion_tokens")),
        _positive_integer(usage.get("total_tokens")) - tokens_in if tokens_in else 0,
        thinking_tokens,
    )
    return _Usage(tokens_in, tokens_out, cached_tokens, thinking_tokens)


def _detail_count(usage: Mapping[str, object], group: str, name: str) -> int:
    details = usage.get(group)
    return _positive_integer(details.get(name)) if isinstance(details, dict) else 0


def _positive_integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return value if 0 < value < MOST_TOKENS else 0


def _error_status(error: object) -> int:
    """Return the status of an error in the body of a response with status 200; 500 if unknown."""
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, str) and len(code) == 3 and code.isdecimal():
        code = int(code)
    status = _positive_integer(code)
    return status if 400 <= status < 600 else 500
