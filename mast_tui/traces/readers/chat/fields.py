"""Fields of foreign messages, each under the names that vendors give it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mast_tui.traces.io.json_values import as_count, as_text, tokens_of
from mast_tui.traces.model import Tokens
from mast_tui.traces.times import unix_seconds

Fields = Mapping[str, object]
"""A JSON object of unknown content."""

NO_FIELDS: Final[Fields] = {}

_NAME_CHARS: Final = 100
_TIME_FIELDS: Final = ("timestamp", "created_at", "createdAt", "time", "created")
_USAGE_FIELDS: Final = ("usage", "usage_metadata", "usageMetadata", "models_usage", "token_usage")
_MODEL_FIELDS: Final = ("model", "model_name", "model_version", "modelVersion", "model_id")
_METADATA_FIELDS: Final = ("response_metadata", "metadata")
_TAKEN_IN: Final = (
    "input_tokens",
    "prompt_tokens",
    "request_tokens",
    "prompt_token_count",
    "promptTokenCount",
)
_GIVEN_OUT: Final = (
    "output_tokens",
    "completion_tokens",
    "response_tokens",
    "candidates_token_count",
    "candidatesTokenCount",
)
_CACHED_APART: Final = ("cache_read_input_tokens", "cache_creation_input_tokens")
_THOUGHTS_APART: Final = ("thoughts_token_count", "thoughtsTokenCount")


def fields_of(value: object) -> Fields:
    """``value`` where it is a JSON object, else an empty one."""
    # Most fields are not there, and None is told from an object sooner than by its class.
    return value if value is not None and isinstance(value, Mapping) else NO_FIELDS


def kind_of(value: object) -> str:
    """The ``type`` of a message, item or block; empty where it has none."""
    kind = value.get("type") if isinstance(value, Mapping) else None
    return kind if isinstance(kind, str) else ""


def name_in(value: Fields, *fields: str) -> str | None:
    """The first field that is a text, on one line and no longer than a name may be."""
    for field in fields:
        if text := as_text(value.get(field)):
            return " ".join(text[: 2 * _NAME_CHARS].split())[:_NAME_CHARS] or None
    return None


def first_in(value: Fields, *fields: str) -> object:
    """The first field that is there and not null, else None."""
    return next((value[field] for field in fields if value.get(field) is not None), None)


def identifier_in(value: Fields, *fields: str) -> str | None:
    """The first field that is an id: a text, or a whole number."""
    for field in fields:
        found = value.get(field)
        if (
            isinstance(found, int)
            and not isinstance(found, bool)
            and as_count(abs(found)) is not None
        ):
            return str(found)
        if text := as_text(found):
            return text
    return None


def start_of(message: Fields) -> float | None:
    """When a message was written, in Unix seconds."""
    return next(
        (time for field in _TIME_FIELDS if (time := unix_seconds(message.get(field))) is not None),
        None,
    )


def model_of(message: Fields) -> str | None:
    """The model that wrote a message or answered a request, where it says so."""
    holders = (message, *(fields_of(message.get(field)) for field in _METADATA_FIELDS))
    return next((name for holder in holders if (name := name_in(holder, *_MODEL_FIELDS))), None)


def usage_of(message: Fields) -> Tokens | None:
    """The tokens of the model call that a message or a response came from.

    What was read from or written to a cache counts as taken in, and hidden thoughts as given out,
    where the vendor keeps them apart.
    """
    for field in _USAGE_FIELDS:
        usage = message.get(field)
        if usage is not None and isinstance(usage, Mapping):
            return _tokens(usage)
    usage = fields_of(message.get("response_metadata")).get("token_usage")
    return _tokens(usage) if isinstance(usage, Mapping) else None


def _tokens(usage: Fields) -> Tokens | None:
    return tokens_of(
        _sum(usage, first_in(usage, *_TAKEN_IN), _CACHED_APART),
        _sum(usage, first_in(usage, *_GIVEN_OUT), _THOUGHTS_APART),
    )


def _sum(usage: Fields, base: object, more: tuple[str, ...]) -> int | None:
    count = as_count(base)
    return None if count is None else count + sum(as_count(usage.get(name)) or 0 for name in more)
