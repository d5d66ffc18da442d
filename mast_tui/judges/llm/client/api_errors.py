"""The errors of servers with the OpenAI API, classified by meaning."""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from math import isfinite
from time import time
from typing import Final, NamedTuple

import orjson

from mast_tui.traces.times import unix_seconds

MOST_MESSAGE_CHARS: Final = 4_000
"""The most code points of an error's message that are read."""

MOST_NAME: Final = 200
"""The most code points of an error's code, type or parameter, and of a header, that are read."""

DEEPEST: Final = 6
"""The depth to which an error is searched for texts."""

_MOST_LISTED: Final = 5
"""The most entries of a list that are searched for texts."""

LEAST_ROOM: Final = 800
"""The fewest tokens in which an answer on the modes of a taxonomy can end."""

ROOM_SPARED: Final = 32
"""The tokens that stay free, because counts of one request may differ a little."""

LONGEST_WAIT: Final = 365 * 86_400.0
"""The most seconds of a wait that a server asks for."""


class ErrorKind(Enum):
    """The meaning of an error for the client."""

    OVERFLOW = auto()
    """The request is too long."""
    FILTERED = auto()
    """The provider's filter stopped the request."""
    FORM = auto()
    SYSTEM = auto()
    LIMIT = auto()
    TEMPERATURE = auto()
    """A parameter is refused; the request may be sent without it."""
    ANSWER_TOO_LONG = auto()
    """The token limit of the answer is higher than the model allows."""
    BUSY = auto()
    """There are too many requests: send fewer, later."""
    LOADING = auto()
    """The model is being loaded: try later."""
    TEMPORARY = auto()
    """The request may succeed later."""
    KEY = auto()
    DENIED = auto()
    MONEY = auto()
    NO_MODEL = auto()
    NOT_FOUND = auto()
    REDIRECT = auto()
    REFUSED = auto()
    """Any other error; the same request would be refused again."""


@dataclass(frozen=True, slots=True)
class ApiError:
    """An error of a server.

    Attributes:
        status: The HTTP status.
        message: The text of the error.
        names: Its code, type and parameter, in lower case.
        wait: The seconds that the server asks to wait, or None.
        is_web_page: True if the body is a web page instead of JSON.
        location: The target of a redirect.
    """

    status: int
    message: str
    names: tuple[str, ...] = ()
    wait: float | None = None
    is_web_page: bool = False
    location: str = ""


_OVERFLOW: Final = re.compile(
    r"context_length_exceeded|context_window_exceeded|contextwindowexceeded"
    r"|exceed_context_size|string_above_max_length"
    r"|(?:maximum|max|model'?s?) (?:context|prompt|input|model|sequence) (?:length|size|window)"
    r"|context (?:length|size|window|limit)s? (?:is |of |was )?(?:only |been )?"
    r"(?:exceeded|too small|\d)"
    r"|exceed(?:s|ed|ing)?\b[^.]{0,40}\bcontext[ _](?:length|size|window|limit)"
    r"|(?:longer|larger|greater|bigger) than the (?:\w+'?s? )?(?:context|model length)"
    r"|(?:prompt|input|request|message|inputs) (?:is |are )?too (?:long|large)"
    r"|input length[^.]{0,60}exceed"
    r"|too many (?:input |prompt |total )?tokens"
    r"|(?:input )?token count[^.]{0,40}exceeds"
    r"|tokens[^.]{0,40}exceeds? the (?:maximum|limit|model)"
    r"|reduce (?:the|your) (?:length of the |size of the )?"
    r"(?:messages?|prompt|inputs?|message size|length of)"
    r"|`?inputs?`? (?:tokens )?(?:\+ `?max_new_tokens|must have less than)"
    r"|max_tokens must be at least 1, got -"
    r"|(?:entity|payload|content) too large"
)
_SIZES: Final = re.compile(
    r"maximum context length (?:is|of) (?P<context>\d{1,9})\b.{1,80}?"
    r"(?:your request has|requested \d+ tokens \()\s*(?P<request>\d{1,9})\b"
)
"""The context length and the tokens of the request, in the wording of vLLM and its descendants."""

_REQUEST_TOO_LONG: Final = re.compile(
    r"(?:request|prompt|input|message)s? (?:is |are )?too (?:large|long)"
    r"|context[ _](?:length|window|size)|reduce your message size"
)
"""The wording of a request that is too long. Some servers use status 429 for it and for load."""

_FILTER: Final = re.compile(r"content_filter|content management policy|responsibleaipolicy")
_NO_MONEY: Final = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "insufficient_credits", "budget_exceeded"}
)
_NO_MONEY_WORDS: Final = re.compile(
    r"insufficient_quota|insufficient (?:account )?(?:balance|credits?|funds)"
    r"|credit balance is too low|budget has been exceeded"
)
_QUOTA_WORDS: Final = re.compile(
    r"ratelimiterror.{0,200}exceeded your current quota"
    r"|exceeded your current quota.{0,80}billing",
    re.DOTALL,
)
"""The wording of a lack of credit. With a time to wait, Gemini uses it for a limit by the
minute."""
_BAD_KEY: Final = re.compile(
    r"api_key_invalid|invalid_api_key|api[ _-]?key (?:is )?(?:not valid|invalid|missing)"
    r"|(?:invalid|incorrect|missing) api[ _-]?key|no connected db|no_db_connection"
)
"""The wording of a bad key. LiteLLM without a database reports a missing database."""
_LOADING: Final = re.compile(r"loading model|model (?:\S+ )?is (?:currently |still )?loading")
_NO_SYSTEM: Final = re.compile(
    r"(?:system|developer)[ _]?(?:role|message|prompt|instruction)s?[^.]{0,30}"
    r"not (?:supported|allowed|enabled)|messages\[0\]\.role|messages\.0\.role"
    r"|roles must alternate|only (?:support )?(?:the )?user and assistant roles"
    r"|(?:not support|unsupported)[^.]{0,30}(?:system|developer)[ _'\"]{0,3}(?:role|message|prompt)"
)
_WAIT_WORDS: Final = re.compile(
    r"(?:retry|try again|available) (?:again )?in (?:about )?(\d+(?:\.\d+)?) ?"
    r"(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?)?\b"
)
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_NO_MODEL: Final = re.compile(
    r"model_not_found|deploymentnotfound|model_not_available|invalid_model"
    r"|model\b.{0,200}?(?:not found|not exist|not available|is not a valid|is not supported)"
    r"|(?:invalid|unknown|no such|not a valid|unsupported|cannot find|find) model"
    r"|not a valid model"
)
_UNSUPPORTED: Final = re.compile(
    r"not support|unsupported|unrecogni[sz]ed|unknown|unexpected|not permitted|not allowed"
    r"|extra_forbidden|extra inputs|not implemented|unavailable|not available|deprecated"
    r"|invalid_parameter|no longer|cannot be (?:used|set)|does not accept|only the default"
    r"|cannot unmarshal|not enabled"
)
_LIMIT: Final = re.compile(r"max_tokens|max_completion_tokens")
_ANSWER_TOO_LONG: Final = re.compile(
    r"at most [\d,]+ (?:completion|output) tokens|maximum allowed number of output tokens"
    r"|max_(?:completion_)?tokens\W.{0,40}?"
    r"(?:too large|less than or equal|exceeds?|out of range|maximum|should be \[|is \[)"
)
_LONGEST_ANSWER: Final = re.compile(
    r"at most ([\d,]{1,12})\b"
    r"|> ?([\d,]{1,12}),? which is the maximum"
    r"|less than or equal to `?([\d,]{1,12})\b"
    r"|(?:maximum|limit)(?: value)?(?: of| is|:)? ([\d,]{1,12})\b"
    r"|\[\d+, ?(\d{1,9})\]"
)
"""The token limit of answers, in the wording of errors."""

_CONTEXT_LIMIT: Final = re.compile(
    r"(?:maximum|max|model'?s?) (?:context|prompt|input|model|sequence) (?:length|size|window)"
    r"(?: is| of|:)?(?: only)? ([\d,]{1,12})\b"
    r"|context (?:length|size|window|limit)[^.\d]{0,20}?\(?([\d,]{1,12})\b"
    r"|\(tpm\):? limit:? ([\d,]{1,12})\b"
    r"|n_ctx\W{1,4}([\d,]{1,12})\b"
    r"|(?:maximum|limit) (?:of|is) ([\d,]{1,12}) tokens|> ?([\d,]{1,12}) maximum"
    r"|maximum number of (?:input )?tokens allowed \(?([\d,]{1,12})\b"
)
"""The size of the context in tokens, in the wording of errors."""
_FORM: Final = re.compile(
    r"response_format|response format|json_schema|json schema|json_object|json mode"
    r"|structured output|guided|grammar|schema"
)
_INVALID_JSON_ANSWER: Final = re.compile(r"json_validate_failed|failed to generate json")
_TEMPERATURE: Final = re.compile("temperature")
_NOT_SUPPORTED: Final = re.compile("not support")
_NO_ENDPOINT: Final = re.compile("requested parameters")
"""The wording of OpenRouter if no endpoint of a model has all parameters."""

_SERVER_ERRORS: Final = range(500, 1_000)
_NOT_BUSY: Final = frozenset(range(1_000)) - {429}
_UNSUPPORTED_STATUS: Final = (400, 415, 422, 500, 501)


class _Rule(NamedTuple):
    """The errors of a kind.

    Attributes:
        kind: The kind.
        statuses: The HTTP statuses; None for every status.
        patterns: The patterns that all occur in the message or in the names.
        names: The names of which the error has one; empty for any names.
        on_web_page: Whether the body may be a web page.
        has_wait: Whether the server asks to wait; None for either.
    """

    kind: ErrorKind
    statuses: Container[int] | None = None
    patterns: Sequence[re.Pattern[str]] = ()
    names: Collection[str] = ()
    on_web_page: bool = True
    has_wait: bool | None = None


_RULES: Final = (
    _Rule(ErrorKind.REDIRECT, range(300, 400)),
    _Rule(ErrorKind.KEY, (401,)),
    _Rule(ErrorKind.KEY, (400, 403), [_BAD_KEY]),
    _Rule(ErrorKind.MONEY, (402,)),
    _Rule(ErrorKind.MONEY, names=_NO_MONEY),
    _Rule(ErrorKind.MONEY, patterns=[_NO_MONEY_WORDS]),
    # A quota error with a time to wait is a limit on the rate of requests.
    _Rule(ErrorKind.MONEY, patterns=[_QUOTA_WORDS], has_wait=False),
    _Rule(ErrorKind.DENIED, (403,)),
    _Rule(ErrorKind.FILTERED, range(500), [_FILTER]),
    _Rule(ErrorKind.OVERFLOW, (413,)),
    _Rule(ErrorKind.OVERFLOW, (429,), [_OVERFLOW, _REQUEST_TOO_LONG], on_web_page=False),
    _Rule(ErrorKind.OVERFLOW, _NOT_BUSY, [_OVERFLOW], on_web_page=False),
    _Rule(ErrorKind.TEMPORARY, patterns=[_INVALID_JSON_ANSWER]),
    _Rule(ErrorKind.LOADING, _SERVER_ERRORS, [_LOADING]),
    _Rule(ErrorKind.FORM, (404,), [_NO_ENDPOINT], on_web_page=False),
    _Rule(ErrorKind.LIMIT, _UNSUPPORTED_STATUS, [_UNSUPPORTED, _LIMIT], on_web_page=False),
    _Rule(ErrorKind.ANSWER_TOO_LONG, (400, 415, 422), [_ANSWER_TOO_LONG], on_web_page=False),
    _Rule(ErrorKind.SYSTEM, _UNSUPPORTED_STATUS, [_NO_SYSTEM], on_web_page=False),
    _Rule(
        ErrorKind.TEMPERATURE, _UNSUPPORTED_STATUS, [_UNSUPPORTED, _TEMPERATURE], on_web_page=False
    ),
    _Rule(ErrorKind.TEMPERATURE, _UNSUPPORTED_STATUS, names=["temperature"], on_web_page=False),
    _Rule(ErrorKind.FORM, _UNSUPPORTED_STATUS, [_FORM], on_web_page=False),
    _Rule(ErrorKind.NO_MODEL, (400, 404, 422), [_NO_MODEL], on_web_page=False),
    _Rule(ErrorKind.FORM, (400, 422), [_NOT_SUPPORTED], on_web_page=False),
    _Rule(ErrorKind.NOT_FOUND, (404, 405)),
    _Rule(ErrorKind.BUSY, (429,)),
    _Rule(ErrorKind.BUSY, (503,), has_wait=True),
    _Rule(ErrorKind.TEMPORARY, (408, 409, 425)),
    _Rule(ErrorKind.TEMPORARY, _SERVER_ERRORS),
    _Rule(ErrorKind.REFUSED),
)
"""The kinds of errors; the first rule that fits determines the kind of an error."""


def error_kind_of(api_error: ApiError) -> ErrorKind:
    """Return the kind of an error, from its status, message and names."""
    text = " ".join((api_error.message[:MOST_MESSAGE_CHARS].lower(), *api_error.names))
    return next(
        rule.kind
        for rule in _RULES
        if (rule.statuses is None or api_error.status in rule.statuses)
        and rule.has_wait in (None, api_error.wait is not None)
        and (rule.on_web_page or not api_error.is_web_page)
        and (not rule.names or not set(rule.names).isdisjoint(api_error.names))
        and all(pattern.search(text) for pattern in rule.patterns)
    )


def answer_room(api_error: ApiError) -> int | None:
    """Return the tokens that the context leaves for an answer.

    Return None if the error does not name the sizes, or if the room is too small.
    """
    sizes = _SIZES.search(api_error.message[:MOST_MESSAGE_CHARS].lower())
    if sizes is None:
        return None
    room = int(sizes["context"]) - int(sizes["request"]) - ROOM_SPARED
    return room if room >= LEAST_ROOM else None


def context_limit(api_error: ApiError) -> int | None:
    """Return the tokens of the server's context, or None if the error does not name them."""
    return _number_in(_CONTEXT_LIMIT, api_error)


def longest_answer(api_error: ApiError) -> int | None:
    """Return the most tokens of an answer that the model allows.

    Return None if the error does not name the number, or if it is too low.
    """
    token_count = _number_in(_LONGEST_ANSWER, api_error)
    return token_count if token_count is not None and token_count >= LEAST_ROOM else None


def _number_in(pattern: re.Pattern[str], api_error: ApiError) -> int | None:
    """Return the number that a pattern finds in the message of an error, or None."""
    match = pattern.search(api_error.message[:MOST_MESSAGE_CHARS].lower())
    digits = "" if match is None else match[match.lastindex or 0].replace(",", "")
    return int(digits) if digits else None


def read_api_error(status: int, headers: Mapping[str, str], content: bytes) -> ApiError:
    """Read the error in a failed response.

    Args:
        status: The HTTP status.
        headers: The headers, with names in lower case.
        content: The body.
    """
    is_web_page = False
    try:
        body: object = orjson.loads(content) if content else None
    except orjson.JSONDecodeError:
        text = content[:MOST_MESSAGE_CHARS].decode("utf-8", "replace")
        is_web_page = _is_page(text, headers)
        body = text
    error = api_error_of(body, status, wait=requested_wait(headers))
    return replace(error, is_web_page=is_web_page, location=headers.get("location", ""))


def api_error_of(body: object, status: int, *, wait: float | None = None) -> ApiError:
    """Read an error from its decoded body, in any of the usual shapes.

    Args:
        body: The JSON values, or a text.
        status: The status.
        wait: The seconds that the headers ask to wait, if they do.
    """
    error = body.get("error", body) if isinstance(body, dict) else body
    message = " ".join(_error_texts(error))[:MOST_MESSAGE_CHARS].strip()
    names: list[str] = []
    if isinstance(error, dict):
        for field in ("code", "type", "param", "error_type"):
            value = error.get(field)
            if isinstance(value, str | int | float) and value != "":
                names.append(str(value)[:MOST_NAME].lower())
    if wait is None and (status == 429 or status >= 500):
        wait = _wait_in_body(error, message)
    return ApiError(status, message or f"status {status}", tuple(names), wait)


def _wait_in_body(error: object, message: str) -> float | None:
    """Return the seconds that the body of an error asks to wait, or None."""
    details = error.get("details") if isinstance(error, dict) else None
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        seconds = _duration_seconds(delay) if isinstance(delay, str) else None
        if seconds is not None:
            return seconds
    match = _WAIT_WORDS.search(message.lower())
    if match is None:
        return None
    unit = match[2] or "s"
    # The first letter identifies units such as ``seconds`` and ``min``.
    unit_seconds = _UNITS[unit] if unit == "ms" else _UNITS[unit[0]]
    return min(float(match[1]) * unit_seconds, LONGEST_WAIT)


def _duration_seconds(text: str) -> float | None:
    """Read a duration such as ``38s``, ``6m0s`` or ``20ms`` in seconds; None for other texts."""
    # A server may send a header of any length, so read only its beginning.
    parts = _DURATION.findall(text[:MOST_NAME])
    if not parts or "".join(number + unit for number, unit in parts) != text.strip():
        return None
    return min(sum(float(number) * _UNITS[unit] for number, unit in parts), LONGEST_WAIT)


def _error_texts(error: object, depth: int = 0) -> Iterator[str]:
    """Yield the texts of an error, to a limited depth, without fields that repeat the request."""
    if isinstance(error, str):
        yield error[:MOST_MESSAGE_CHARS]
    elif depth == DEEPEST:
        return
    elif isinstance(error, list):
        for entry in error[:_MOST_LISTED]:
            yield from _error_texts(entry, depth + 1)
    elif isinstance(error, dict):
        location = error.get("loc")
        if isinstance(location, list):
            steps = (step for step in location[:_MOST_LISTED] if isinstance(step, str | int))
            yield ".".join(str(step)[:MOST_NAME] for step in steps)
        for name in ("message", "detail", "msg", "error", "errors", "metadata", "raw"):
            yield from _error_texts(error.get(name), depth + 1)


def _is_page(text: str, headers: Mapping[str, str]) -> bool:
    return "html" in headers.get("content-type", "") or text.lstrip().startswith("<")


def requested_wait(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a response asks the client to wait, or None.

    Without a header for this, return the time until a used-up rate limit is reset.
    """
    milliseconds = _nonnegative_number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return min(milliseconds / 1000.0, LONGEST_WAIT)
    retry_after = headers.get("retry-after", "").strip()
    seconds = _nonnegative_number(retry_after)
    if seconds is None:
        # A server may send a header of any length, so read only its beginning.
        until = unix_seconds(retry_after[:MOST_NAME])
        if until is None:
            return _limit_reset(headers)
        # Compare with the server's date, because this machine's clock may differ.
        now = unix_seconds(headers.get("date", "")[:MOST_NAME])
        seconds = max(0.0, until - (time() if now is None else now))
    return min(seconds, LONGEST_WAIT)


def _limit_reset(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until all used-up rate limits are reset, from OpenAI's headers.

    If no limit is used up, return the seconds until the first reset; None without headers.
    """
    all_resets: list[float] = []
    used_up_resets: list[float] = []
    for name in ("requests", "tokens"):
        seconds = _duration_seconds(headers.get(f"x-ratelimit-reset-{name}", ""))
        if seconds is None:
            continue
        all_resets.append(seconds)
        if headers.get(f"x-ratelimit-remaining-{name}", "").strip() == "0":
            used_up_resets.append(seconds)
    return max(used_up_resets) if used_up_resets else min(all_resets, default=None)


def _nonnegative_number(text: str) -> float | None:
    """Read a finite number that is not negative; None for other texts."""
    try:
        value = float(text[:MOST_NAME])
    except ValueError:
        return None
    return value if isfinite(value) and value >= 0 else None
