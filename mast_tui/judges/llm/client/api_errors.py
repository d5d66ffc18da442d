"""The errors of servers that speak the OpenAI API, classified by their meaning."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum, auto
from math import isfinite
from typing import Final

import orjson

MOST_WORDS: Final = 4_000
"""The most code points of an error that are read."""

MOST_NAME: Final = 200
"""The most code points of its code, type or parameter."""

DEEPEST: Final = 6
"""The depth to which an error is searched for texts."""

LEAST_ROOM: Final = 800
"""The fewest tokens in which an answer on the modes of a taxonomy can end."""

ROOM_SPARED: Final = 32
"""The tokens that are left free, as counts of one request may differ a little."""

LONGEST_WAIT: Final = 365 * 86_400.0
"""The most seconds of a wait that a server asks for."""


class ErrorKind(Enum):
    """The meaning of an error, by which the client decides what to do."""

    OVERFLOW = auto()
    """The request is too long."""
    FILTERED = auto()
    """The provider's filter stopped the request."""
    FORM = auto()
    SYSTEM = auto()
    LIMIT = auto()
    TEMPERATURE = auto()
    """A parameter is not accepted; the request may be sent without it."""
    ANSWER_TOO_LONG = auto()
    """The limit for answers is higher than the model's."""
    BUSY = auto()
    """There are too many requests: send fewer, later."""
    LOADING = auto()
    """The model is being loaded: try later."""
    AGAIN = auto()
    """The request may succeed later."""
    KEY = auto()
    DENIED = auto()
    MONEY = auto()
    NO_MODEL = auto()
    NOT_FOUND = auto()
    REDIRECT = auto()
    REFUSED = auto()
    """Any other error; the request would be refused again."""


@dataclass(frozen=True, slots=True)
class ApiError:
    """An error of a server.

    ``names`` holds its code, type and parameter in lower case, ``wait`` the seconds that the server
    asks to wait; ``page`` is true if the error was not JSON.
    """

    status: int
    message: str
    names: tuple[str, ...] = ()
    wait: float | None = None
    page: bool = False
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
    r"maximum context length (?:is|of) (\d{1,9})\b.{1,80}?"
    r"(?:your request has|requested \d+ tokens \()\s*(\d{1,9})\b"
)
"""The context length and the tokens of the messages, in the words of vLLM and its descendants."""

_ITSELF_TOO_LONG: Final = re.compile(
    r"(?:request|prompt|input|message)s? (?:is |are )?too (?:large|long)"
    r"|context[ _](?:length|window|size)|reduce your message size"
)
"""The words of a request that is too long, for servers with status 429 for both that and load."""

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
"""The words for a lack of credit, unless the error has a time to wait: Gemini uses the same words
for a limit by the minute."""
_BAD_KEY: Final = re.compile(
    r"api_key_invalid|invalid_api_key|api[ _-]?key (?:is )?(?:not valid|invalid|missing)"
    r"|(?:invalid|incorrect|missing) api[ _-]?key|no connected db|no_db_connection"
)
"""The words for a bad key. LiteLLM without a database reports a foreign key as a lack of one."""
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
_MOST_ANSWER: Final = re.compile(
    r"at most ([\d,]{1,12})\b"
    r"|> ?([\d,]{1,12}),? which is the maximum"
    r"|less than or equal to `?([\d,]{1,12})\b"
    r"|(?:maximum|limit)(?: value)?(?: of| is|:)? ([\d,]{1,12})\b"
    r"|\[\d+, ?(\d{1,9})\]"
)
"""The longest answer that a model gives, in the words of an error."""

_CONTEXT_LIMIT: Final = re.compile(
    r"(?:maximum|max|model'?s?) (?:context|prompt|input|model|sequence) (?:length|size|window)"
    r"(?: is| of|:)?(?: only)? ([\d,]{1,12})\b"
    r"|context (?:length|size|window|limit)[^.\d]{0,20}?\(?([\d,]{1,12})\b"
    r"|\(tpm\):? limit:? ([\d,]{1,12})\b"
    r"|n_ctx\W{1,4}([\d,]{1,12})\b"
    r"|(?:maximum|limit) (?:of|is) ([\d,]{1,12}) tokens|> ?([\d,]{1,12}) maximum"
    r"|maximum number of (?:input )?tokens allowed \(?([\d,]{1,12})\b"
)
"""The tokens that a server reads at most, in the words of an error."""
_FORM: Final = re.compile(
    r"response_format|response format|json_schema|json schema|json_object|json mode"
    r"|structured output|guided|grammar|schema"
)
_ONCE_BAD: Final = re.compile(r"json_validate_failed|failed to generate json")
_UNSUPPORTED_STATUS: Final = (400, 404, 415, 422, 500, 501)


def error_kind_of(refusal: ApiError) -> ErrorKind:
    """Classify an error by its status and, if that is not specific, by its words."""
    status = refusal.status
    text = " ".join((refusal.message[:MOST_WORDS].lower(), *refusal.names))
    if 300 <= status < 400:
        return ErrorKind.REDIRECT
    if status == 401 or (status in (400, 403) and _BAD_KEY.search(text)):
        return ErrorKind.KEY
    if status == 402 or _NO_MONEY.intersection(refusal.names) or _NO_MONEY_WORDS.search(text):
        return ErrorKind.MONEY
    if refusal.wait is None and _QUOTA_WORDS.search(text):
        return ErrorKind.MONEY
    if status == 403:
        return ErrorKind.DENIED
    if status < 500 and _FILTER.search(text):
        return ErrorKind.FILTERED
    if status == 413 or _is_overflow(refusal, text):
        return ErrorKind.OVERFLOW
    if _ONCE_BAD.search(text):
        return ErrorKind.AGAIN
    if status >= 500 and _LOADING.search(text):
        return ErrorKind.LOADING
    part = _unsupported_part(refusal, text)
    if part is not None:
        return part
    if status in (400, 404, 422) and not refusal.page and _NO_MODEL.search(text):
        return ErrorKind.NO_MODEL
    return _by_status(refusal)


def answer_room(refusal: ApiError) -> int | None:
    """Return the tokens for an answer if the request alone fits into the context.

    None if the error does not name them, or if they are too few.
    """
    sizes = _SIZES.search(refusal.message[:MOST_WORDS].lower())
    if sizes is None:
        return None
    room = int(sizes[1]) - int(sizes[2]) - ROOM_SPARED
    return room if room >= LEAST_ROOM else None


def context_limit(refusal: ApiError) -> int | None:
    """Return the tokens of the server's context, or None if the error does not name them."""
    return _number_in(_CONTEXT_LIMIT, refusal)


def longest_answer(refusal: ApiError) -> int | None:
    """Return the most tokens of an answer, or None if the error does not name enough of them."""
    most = _number_in(_MOST_ANSWER, refusal)
    return most if most is not None and most >= LEAST_ROOM else None


def _number_in(pattern: re.Pattern[str], refusal: ApiError) -> int | None:
    """Return the number that a group of a pattern matches in the message of an error."""
    match = pattern.search(refusal.message[:MOST_WORDS].lower())
    digits = "" if match is None else (match[match.lastindex or 0]).replace(",", "")
    return int(digits) if digits else None


def _is_overflow(refusal: ApiError, text: str) -> bool:
    if refusal.page or _OVERFLOW.search(text) is None:
        return False
    return refusal.status != 429 or _ITSELF_TOO_LONG.search(text) is not None


def _unsupported_part(refusal: ApiError, text: str) -> ErrorKind | None:
    """Return the kind for the parameter that an error is about, or None."""
    if refusal.status not in _UNSUPPORTED_STATUS or refusal.page:
        return None
    if refusal.status == 404:  # no such model, or no endpoint with all parameters
        return ErrorKind.FORM if "requested parameters" in text else None
    is_unsupported = _UNSUPPORTED.search(text) is not None
    if _LIMIT.search(text):
        if is_unsupported:
            return ErrorKind.LIMIT
        if refusal.status < 500 and _ANSWER_TOO_LONG.search(text):
            return ErrorKind.ANSWER_TOO_LONG
    if _ANSWER_TOO_LONG.search(text) and refusal.status < 500:
        return ErrorKind.ANSWER_TOO_LONG
    if _NO_SYSTEM.search(text):
        return ErrorKind.SYSTEM
    if "temperature" in text and (is_unsupported or "temperature" in refusal.names):
        return ErrorKind.TEMPERATURE
    if _FORM.search(text):
        return ErrorKind.FORM
    is_about_model = _NO_MODEL.search(text) is not None
    if refusal.status in (400, 422) and "not support" in text and not is_about_model:
        return ErrorKind.FORM
    return None


def _by_status(refusal: ApiError) -> ErrorKind:
    status = refusal.status
    if status in (404, 405):
        return ErrorKind.NOT_FOUND
    if status == 429 or (status == 503 and refusal.wait is not None):
        return ErrorKind.BUSY
    if status in (408, 409, 425) or status >= 500:
        return ErrorKind.AGAIN
    return ErrorKind.REFUSED


def read_api_error(status: int, headers: Mapping[str, str], content: bytes) -> ApiError:
    """Read an error response.

    Args:
        status: The status.
        headers: The headers, by their names in lower case.
        content: The body.
    """
    page = False
    try:
        body: object = orjson.loads(content) if content else None
    except orjson.JSONDecodeError:
        text = content[:MOST_WORDS].decode("utf-8", "replace")
        page = _is_page(text, headers)
        body = text
    error = api_error_of(body, status, wait=asked_wait(headers))
    return replace(error, page=page, location=headers.get("location", ""))


def api_error_of(body: object, status: int, *, wait: float | None = None) -> ApiError:
    """Read an error from its decoded body, in any of the usual shapes.

    Args:
        body: The decoded body.
        status: The status.
        wait: The seconds that the headers ask to wait.
    """
    error = body.get("error", body) if isinstance(body, dict) else body
    message = " ".join(_texts(error))[:MOST_WORDS].strip()
    names: list[str] = []
    if isinstance(error, dict):
        values = (error.get(name) for name in ("code", "type", "param", "error_type"))
        scalars = (
            value for value in values if isinstance(value, str | int | float) and value != ""
        )
        names = [str(value)[:MOST_NAME].lower() for value in scalars]
    if wait is None and (status == 429 or status >= 500):
        wait = _wait_in_body(error, message)
    return ApiError(status, message or f"status {status}", tuple(names), wait)


def _wait_in_body(error: object, message: str) -> float | None:
    """Return the seconds that the body of an error asks to wait, in a field or in its words."""
    details = error.get("details") if isinstance(error, dict) else None
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        seconds = _duration(delay) if isinstance(delay, str) else None
        if seconds is not None:
            return seconds
    match = _WAIT_WORDS.search(message.lower())
    if match is None:
        return None
    unit = match[2] or "s"
    return min(float(match[1]) * _UNITS[unit if unit == "ms" else unit[0]], LONGEST_WAIT)


def _duration(text: str) -> float | None:
    """Read a duration such as ``38s``, ``6m0s`` or ``20ms`` in seconds; None for other texts."""
    parts = _DURATION.findall(text[:MOST_NAME])
    if not parts or "".join(number + unit for number, unit in parts) != text.strip():
        return None
    return min(sum(float(number) * _UNITS[unit] for number, unit in parts), LONGEST_WAIT)


def _texts(error: object, depth: int = 0) -> Iterator[str]:
    """Yield the texts of an error, without those that repeat the request."""
    if isinstance(error, str):
        yield error[:MOST_WORDS]
    elif depth == DEEPEST:
        return
    elif isinstance(error, list):
        for each in error[:5]:
            yield from _texts(each, depth + 1)
    elif isinstance(error, dict):
        location = error.get("loc")
        if isinstance(location, list):
            steps = (step for step in location[:5] if isinstance(step, str | int))
            yield ".".join(str(step)[:MOST_NAME] for step in steps)
        for name in ("message", "detail", "msg", "error", "errors", "metadata", "raw"):
            yield from _texts(error.get(name), depth + 1)


def _is_page(text: str, headers: Mapping[str, str]) -> bool:
    return "html" in headers.get("content-type", "") or text.lstrip().startswith("<")


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a response asks to wait, at most ``LONGEST_WAIT``, or None.

    A date counts against the server's own clock if the response has one. Without a time to wait,
    the reset of a used-up rate limit counts.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return min(milliseconds / 1000.0, LONGEST_WAIT)
    retry_after = headers.get("retry-after", "").strip()
    seconds = _number(retry_after)
    if seconds is None:
        until = _date(retry_after)
        if until is None:
            return _limit_reset(headers)
        now = _date(headers.get("date", "")) or datetime.now(UTC)
        seconds = max(0.0, (until - now).total_seconds())
    return min(seconds, LONGEST_WAIT)


def _limit_reset(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until the used-up rate limits are reset, from OpenAI's headers."""
    resets = {
        name: seconds
        for name in ("requests", "tokens")
        if (seconds := _duration(headers.get(f"x-ratelimit-reset-{name}", ""))) is not None
    }
    used_up = [
        seconds
        for name, seconds in resets.items()
        if headers.get(f"x-ratelimit-remaining-{name}", "").strip() == "0"
    ]
    return max(used_up) if used_up else min(resets.values(), default=None)


def _number(text: str) -> float | None:
    try:
        value = float(text[:MOST_NAME])
    except ValueError:
        return None
    return value if isfinite(value) and value >= 0 else None


def _date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text[:MOST_NAME])
    except (ValueError, OverflowError):
        return None
    return date if date.tzinfo is not None else date.replace(tzinfo=UTC)
