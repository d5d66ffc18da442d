"""Reading what a server answered, and telling an answer from what only looks like one."""

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
"""Tokens; where fewer were sent a count that is too low says nothing."""

LEAST_COUNT: Final = 256
"""Tokens; who says that fewer of a long request were read has not counted: no context is so small.
"""

_REFUSALS: Final = frozenset(
    {"content_filter", "refusal", "safety", "prohibited_content", "blocklist", "spii"}
)
_EVENT: Final = re.compile(r"\s*(?:data|event|id|retry)?:")
_EVENT_DATA: Final = re.compile(r"^data:(.*)$", re.MULTILINE)
"""Events of a stream, as https://html.spec.whatwg.org/multipage/server-sent-events.html has it."""

_RUN: Final = re.compile(r"(.)\1{3,}", re.DOTALL)
_SURROGATES: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class UnusableReply:
    """No answer in a response that claims to be one; the tokens are what it cost, if it says."""

    words: str
    page: bool = False
    tokens_in: int = 0
    tokens_out: int = 0


def read_reply(text: str, *, form: Form, sent_tokens: int) -> Reply | ApiError | UnusableReply:
    """What a response with status 200 says.

    ``sent_tokens`` stands in where the server counted nothing. An answer without words that was
    counted is an answer like any other that cannot be used: it has to be paid.
    """
    try:
        body = _streamed(text) if _EVENT.match(text) else _decoded(text)
    except (ValueError, RecursionError):
        return _no_json(text)
    return read_body(body, form=form, sent_tokens=sent_tokens)


def read_body(body: object, *, form: Form, sent_tokens: int) -> Reply | ApiError | UnusableReply:
    """Read what the decoded body of a response with status 200 says, as ``read_reply`` does.

    Args:
        body: The decoded body.
        form: The form of answer that was asked for.
        sent_tokens: An estimate of what was sent, which stands in where nothing was counted.
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
        answer_text = _elsewhere(message)
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
    """Whether a server cannot have read all of the texts, as it counted too few tokens.

    ``sent_tokens`` is an estimate of the texts and of what else was sent. Long runs of one
    character are taken as short ones, since they can be a single token.
    """
    if not reply.counted or sent_tokens < LEAST_LOOKED_AT:
        return False
    if reply.tokens_in * OVERSHOOT >= sent_tokens:
        return False
    sent = sum(estimate(_RUN.sub(r"\1\1\1", text)) for text in texts)
    return sent >= LEAST_LOOKED_AT and reply.tokens_in * OVERSHOOT < sent


def _decoded(text: str) -> object:
    """The JSON in a text, also where half a character is written in it, as ``\\ud83d`` alone.

    Raises ``ValueError`` or ``RecursionError`` where it is no JSON.
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
    """Put the pieces of an answer together that a server streams though nobody asked for that.

    Raises ``ValueError`` or ``RecursionError`` where they are no JSON, or where the end is missing.
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
    """The words of a message, also where they come in parts."""
    if isinstance(content, str):
        return _SURROGATES.sub("�", content)
    if not isinstance(content, list):
        return ""
    parts = (part.get("text") if isinstance(part, dict) else part for part in content)
    return _content("".join(part for part in parts if isinstance(part, str)))


def _elsewhere(message: Mapping[str, object]) -> str:
    """The words of a message without content: the arguments of a call, or what was thought.

    Some servers put an answer as JSON into a tool call, others all of it into the reasoning.
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
    """The tokens that a server counted, 0 where it did not; ``cached`` is a part of those in."""

    tokens_in: int = 0
    tokens_out: int = 0
    cached: int = 0
    thought: int = 0


def _usage(usage: object) -> _Usage:
    if not isinstance(usage, dict):
        return _Usage()
    tokens_in = _count(usage.get("prompt_tokens"))
    cached = _detail(usage, "prompt_tokens_details", "cached_tokens")
    if cached > tokens_in:  # some count what they had read before apart from the rest
        tokens_in += cached
    thought = _detail(usage, "completion_tokens_details", "reasoning_tokens")
    # What was thought is paid for, also where it stands in the total alone.
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
    """The status that an error within a right response stands for."""
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, str) and len(code) == 3 and code.isdecimal():
        code = int(code)
    status = _count(code)
    return status if 400 <= status < 600 else 500
