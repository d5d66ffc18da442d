"""Safe access to foreign JSON: each function returns a value of its type, else None or empty.

A value of another type is treated like a missing one, so damaged files need no special code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final, TypeVar

from mast_tui.traces.io.json_values import InvalidJSON, as_text, identifier, load_json
from mast_tui.traces.preview import preview
from mast_tui.traces.times import unix_seconds

Fields = Mapping[str, object]
"""A JSON object of unknown content."""

_T = TypeVar("_T")
_NO_FIELDS: Final[Fields] = {}
_MAX_NAME_CHARS: Final = 100
_CAPITAL: Final = re.compile(r"(?<=[a-z])[A-Z]")
_TESTED_VALUES: Final = 20


def names(text: str) -> tuple[str, ...]:
    """Return the words of a text, as a compact notation for a list of names."""
    return tuple(text.split())


def name_set(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


def fields_of(value: object) -> Fields:
    """Return ``value`` if it is a JSON object, else an empty object."""
    # Most values are None or a dict: both tests are faster than the test for a Mapping.
    return value if value is not None and isinstance(value, (dict, Mapping)) else _NO_FIELDS


def fields_at(value: object, *path: str) -> Fields:
    """Return the object at a path of fields in ``value``, else an empty object."""
    fields = fields_of(value)
    for field in path:
        fields = fields_of(fields.get(field))
    return fields


def snake_fields(value: object) -> Fields:
    """Return a JSON object with its camel-case fields in snake case; empty for any other value."""
    return {snake_case(name): field for name, field in fields_of(value).items()}


def snake_case(name: str) -> str:
    """Return a camel-case name such as ``callId`` in snake case."""
    return _CAPITAL.sub(lambda capital: f"_{capital[0].lower()}", name)


def without(value: Fields, names: Container[str]) -> Fields:
    """Return an object without some of its fields.

    Args:
        value: The object.
        names: The names of the fields to leave out.
    """
    return {name: field for name, field in value.items() if name not in names}


def items_of(value: object) -> Sequence[object]:
    """Return ``value`` if it is a JSON list, else an empty sequence."""
    return value if isinstance(value, list) else ()


def located_items(value: object, pointer: str) -> list[tuple[str, object]]:
    """Return the items of a list with their JSON pointers; empty if the value is no list.

    Args:
        value: The list.
        pointer: The JSON pointer to the list.
    """
    items = value if isinstance(value, list | tuple) else ()
    return [(f"{pointer}/{number}", item) for number, item in enumerate(items)]


def located_objects(value: object, pointer: str) -> list[tuple[str, Fields]]:
    """Return the objects of a list with their JSON pointers; any other item is an empty object.

    Args:
        value: The list; any other value has no items.
        pointer: The JSON pointer to the list.
    """
    return [(location, fields_of(item)) for location, item in located_items(value, pointer)]


def kind_of(value: object) -> str:
    """Return the ``type`` of a message, item or block; empty if it has none."""
    kind = value.get("type") if isinstance(value, (dict, Mapping)) else None
    return kind if isinstance(kind, str) else ""


def add_new(seen: set[_T], value: _T) -> bool:
    """Add a value to a set; return whether the set did not have it.

    Args:
        seen: The set.
        value: The value.
    """
    is_new = value not in seen
    seen.add(value)
    return is_new


def mostly(matches: Callable[[object], bool], values: Iterable[object]) -> bool:
    """Return whether at least half of the first values match, and at least one does.

    Args:
        matches: Returns whether a value matches.
        values: The values; the first 20 are tested.
    """
    first_values = list(islice(values, _TESTED_VALUES))
    match_count = sum(map(matches, first_values))
    return match_count > 0 and 2 * match_count >= len(first_values)


def json_in(value: object) -> object:
    """Return the object or list in a JSON text; None for any other text; other values unchanged."""
    if not isinstance(value, str):
        return value
    if value.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return load_json(value)
    except InvalidJSON:
        return None


def value_in(value: object) -> object:
    """Return the object or list in a JSON text; any other text and value unchanged."""
    parsed = json_in(value)
    return value if parsed is None else parsed


def object_in(data: bytes | str) -> Fields | None:
    """Return the object in a JSON text; None for any other text."""
    try:
        value = load_json(data)
    except InvalidJSON:
        return None
    return value if isinstance(value, Mapping) else None


def first_in(value: Fields, *fields: str) -> object:
    """Return the value of the first field that exists and is not null, else None."""
    for field in fields:
        if (field_value := value.get(field)) is not None:
            return field_value
    return None


def text_in(value: Fields, *fields: str) -> str | None:
    """Return the first nonblank text among the values of some fields, else None."""
    for field in fields:
        if text := as_text(value.get(field)):
            return text
    return None


def texts_in(value: Fields, *fields: str, between: str = "\n") -> str:
    """Join the nonblank texts among the values of some fields.

    Args:
        value: The object.
        fields: The names of the fields.
        between: The text between two adjacent texts.
    """
    return between.join(text for field in fields if (text := as_text(value.get(field))))


def flag_in(value: Fields, *fields: str) -> bool | None:
    """Return the first true or false among the values of some fields, else None."""
    return next((flag for field in fields if isinstance(flag := value.get(field), bool)), None)


def time_in(value: Fields, *fields: str) -> float | None:
    """Return the first time among the values of some fields in Unix seconds, else None."""
    for field in fields:
        stated_time = value.get(field)
        if stated_time is not None and (time := unix_seconds(stated_time)) is not None:
            return time
    return None


def short_name(value: object) -> str:
    """Return the beginning of a name on one line; empty for any value but a text."""
    if not isinstance(value, str):
        return ""
    return " ".join(value[: 2 * _MAX_NAME_CHARS].split())[:_MAX_NAME_CHARS]


def one_line(value: object) -> str | None:
    """Return the beginning of a text on one line; None for a blank text or any other value."""
    text = as_text(value)
    if text is None:
        return None
    line, _is_entire = preview(text)
    return line


def name_in(value: Fields, *fields: str) -> str | None:
    """Return the first nonblank text among the values of some fields as a short name, else None."""
    for field in fields:
        text = value.get(field)
        if text is not None and as_text(text):
            return short_name(text) or None
    return None


def identifier_in(value: Fields, *fields: str) -> str | None:
    """Return the first id, a text or an integer, among the values of some fields as a text."""
    return next((text for field in fields if (text := identifier(value.get(field)))), None)


_FOREIGN_FIELD_SETS: Final[tuple[frozenset[str], ...]] = tuple(
    map(
        frozenset,
        (
            ("trajectory", "history", "info"),
            ("steps", "agent"),
            ("steps", "schema_version"),
            ("eval", "samples"),
            ("cells", "nbformat"),
            ("sessionId", "uuid"),
            ("session_id", "type", "message"),
            ("type", "payload"),
            ("run_type",),
            ("dotted_order",),
            ("observations",),
            ("op_name",),
            ("span_attributes",),
            ("span_data",),
            ("span_id",),
            ("spans",),
            ("traceId",),
            ("resourceSpans",),
            ("resource_spans",),
        ),
    )
)
"""The fields of formats that have messages and their own reader, unlike a list of messages."""

_FOREIGN_LIST_FIELDS: Final = frozenset({"trajectory", "steps", "samples", "observations", "spans"})
"""The fields of ``_FOREIGN_FIELD_SETS`` that must be lists, as message records have texts there."""


def is_of_other_format(record: Fields) -> bool:
    """Return whether a record has the fields of a format with its own reader, no message list."""
    return any(
        fields <= record.keys()
        and all(isinstance(record[field], list) for field in fields & _FOREIGN_LIST_FIELDS)
        for fields in _FOREIGN_FIELD_SETS
    )
