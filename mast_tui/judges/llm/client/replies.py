"""Reading what a server answered, and telling an answer from what only looks like one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import orjson

from mast_tui.judges.llm.client.api_errors import ApiError, api_error_of
from mast_tui.judges.llm.model import Finish, Form, Reply
from mast_tui.judges.llm.prompt.tokens import estimate

OVERSHOOT: Final = 2.5
"""The estimate of a text's tokens is never so many times what a tokenizer makes of it."""

LEAST_LOOKED_AT: Final = 500
"""Tokens; where fewer were sent a count that is too low says nothing."""

MOST_TOKENS: Final = 10**9
"""No answer took so many; a server that says so has not counted."""

_RUN: Final = re.compile(r"(.)\1{3,}", re.DOTALL)
_SURROGATES: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Unusable:
    """No answer in a response that claims to be one; the tokens are what it cost, if it says."""

    words: str
    page: bool = False
    tokens_in: int = 0
    tokens_out: int = 0


def read_reply(text: str, *, form: Form, sent_tokens: int) -> Reply | ApiError | Unusable:
    """What a response with status 200 says.

    ``sent_tokens`` stands in where the server counted nothing. An answer without words that was
    counted is an answer like any other that cannot be used: it has to be paid.
    """
    try:
        body = _decoded(text)
    except (ValueError, RecursionError):
        page = text.lstrip().startswith("<")
        return Unusable("a web page" if page else "no JSON" if text else "an empty body", page)
    if not isinstance(body, dict):
        return Unusable("JSON that is no answer")
    tokens_in, tokens_out = _usage(body.get("usage"))
    choice = _first(body.get("choices"))
    error = body.get("error") or choice.get("error")
    if error:
        return api_error_of(error, _status(error))
    message = choice.get("message")
    if not isinstance(message, dict):
        return Unusable("no choice", False, tokens_in, tokens_out)
    said = _content(message.get("content"))
    refusal = _content(message.get("refusal"))
    finish = _finish(choice.get("finish_reason"), refusal)
    if finish == "refusal":
        said = refusal or said or "the provider's filter stopped the answer"
    counted = tokens_in > 0
    if not said and finish == "stop" and not counted:
        return Unusable("no words")
    return Reply(
        said,
        finish,
        form,
        tokens_in if counted else sent_tokens,
        tokens_out if counted else estimate(said),
        counted,
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


def _finish(reason: object, refusal: str) -> Finish:
    if refusal or reason in ("content_filter", "refusal"):
        return "refusal"
    return "length" if reason in ("length", "max_tokens", "model_length") else "stop"


def _usage(usage: object) -> tuple[int, int]:
    """The tokens in and out, 0 where they are not told."""
    if not isinstance(usage, dict):
        return 0, 0
    tokens_in, tokens_out = (
        _count(usage.get("prompt_tokens")),
        _count(usage.get("completion_tokens")),
    )
    details = usage.get("prompt_tokens_details")
    kept = _count(details.get("cached_tokens")) if isinstance(details, dict) else 0
    # Some count what they had read before apart from the rest.
    return (tokens_in + kept if kept > tokens_in else tokens_in), tokens_out


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
    return status if 400 <= status < 600 else 502
