"""OpenTelemetry's values: typed ones, ids and times in all their spellings, dotted names."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Final

from mast_tui.traces.io.json_values import InvalidJSON, as_number, as_text, dump_text, load_json
from mast_tui.traces.times import unix_seconds

Attributes = Mapping[str, object]
"""Attributes by their dotted names."""

_DEEPEST: Final = 32
_LONGEST_ID: Final = 200
_DIGITS: Final = re.compile(r"\d{1,30}")
_DURATION: Final = re.compile(
    r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.ASCII
)
_WHOLE: Final = frozenset(
    {
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.system_instructions",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
        "gen_ai.tool.definitions",
        "input.value",
        "output.value",
        "llm.invocation_parameters",
        "metadata",
        "tool.parameters",
        "tool_call.function.arguments",
    }
)
"""Attributes whose value is an object of its own, not a level of dotted names."""


def any_value(value: object, depth: int = 0) -> object:
    """The JSON value that an OTLP ``AnyValue`` stands for; anything else is itself."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return None if value == {} else value
    ((kind, inner),) = value.items()
    match str(kind).replace("_", "").lower():
        case "stringvalue" | "boolvalue" | "doublevalue" | "bytesvalue":
            return inner
        case "intvalue":
            number = isinstance(inner, str) and _DIGITS.fullmatch(inner.removeprefix("-"))
            return int(str(inner)) if number else inner
        case "arrayvalue":
            items = inner.get("values") if isinstance(inner, Mapping) else None
            if depth > _DEEPEST or not isinstance(items, list):
                return [] if items is None else dump_text(items)
            return [any_value(item, depth + 1) for item in items]
        case "kvlistvalue":
            items = inner.get("values") if isinstance(inner, Mapping) else None
            return dump_text(items) if depth > _DEEPEST else attributes_of(items, depth + 1)
    return value


def attributes_of(value: object, depth: int = 0) -> dict[str, object]:
    """Attributes by name, from OTLP's list of keys and values or from an object."""
    if isinstance(value, str):
        value = json_in(value)
    if isinstance(value, Mapping):
        return {str(name): any_value(inner, depth) for name, inner in value.items()}
    found: dict[str, object] = {}
    for item in value if isinstance(value, list) else ():
        if isinstance(item, Mapping) and isinstance(item.get("key"), str):
            found[item["key"]] = any_value(item.get("value"), depth)
    return found


def dotted(attributes: Attributes) -> dict[str, object]:
    """Nested attributes under dotted names; lists, and objects that are values, stay whole."""
    return dict(_dotted(attributes, "", 0))


def _dotted(values: Attributes, prefix: str, depth: int) -> Iterator[tuple[str, object]]:
    for name, value in values.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping) and value and path not in _WHOLE and depth < _DEEPEST:
            yield from _dotted(value, f"{path}.", depth + 1)
        else:
            yield path, value


def grouped(attributes: Attributes, name: str) -> object:
    """What stands under a dotted name: its own value, or what the names below it make up.

    ``a.0.b``, ``a.1.b`` become a list of objects; a JSON text becomes the value in it.
    """
    own = attributes.get(name)
    if isinstance(own, str):
        parsed = json_in(own)
        return own if parsed is None else parsed
    if own is not None:
        return own
    prefix = f"{name}."
    below = {
        path.removeprefix(prefix): v
        for path, v in attributes.items()
        if path[: len(prefix)] == prefix
    }
    return unflattened(below) if below else None


def unflattened(values: Attributes) -> object:
    """Dotted names as nested objects; where all names of a level are numbers, as a list."""
    root: dict[str, object] = {}
    for path, value in values.items():
        steps = path.split(".", _DEEPEST)
        node = root
        for step in steps[:-1]:
            below = node.get(step)
            if not isinstance(below, _Node):
                below = node[step] = _Node({} if below is None else {"": below})
            node = below
        last = node.get(steps[-1])
        if isinstance(last, _Node):
            last[""] = value
        else:
            node[steps[-1]] = value
    return _settled(root)


class _Node(dict[str, object]):
    """A level of dotted names; an object that is a value is none."""


def _settled(node: dict[str, object]) -> object:
    settled = {
        name: _settled(value) if isinstance(value, _Node) else value for name, value in node.items()
    }
    if settled and all(name.isascii() and name.isdigit() for name in settled):
        return [settled[name] for name in sorted(settled, key=lambda name: (len(name), name))]
    return settled


def json_in(text: str) -> object:
    """The object or list in a JSON text; None where it is none."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return load_json(text)
    except InvalidJSON:
        return None


def span_id(value: object) -> str | None:
    """An id as lowercase hex of 16 digits; None where there is none, or only zeros."""
    return _identifier(value, 16)


def trace_id(value: object) -> str | None:
    """An id as lowercase hex of 32 digits; None where there is none, or only zeros."""
    return _identifier(value, 32)


def _identifier(value: object, digits: int) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:0{digits}x}" if 0 < value < 16**digits else None
    text = as_text(value)
    if text is None:
        return None
    text = text.strip()[:_LONGEST_ID]
    if text.startswith(BIG_INT):
        number = text.removeprefix(BIG_INT)
        return _identifier(int(number), digits) if _DIGITS.fullmatch(number[:30]) else None
    plain = text.lower().removeprefix("0x")
    if plain.strip("0123456789abcdef"):
        return _from_base64(text, digits) or text
    return plain if plain.strip("0") else None


def _from_base64(text: str, digits: int) -> str | None:
    """The hex digits of an id in base64, as protobuf's own JSON has it."""
    if len(text) != -(-digits // 6) * 4:
        return None
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data.hex() if len(data) * 2 == digits else None


BIG_INT: Final = "int:"
"""What goes before the digits of an id that is too big for a JSON parser."""


def moment(value: object) -> float | None:
    """Unix seconds of ISO text, a number, digits, or seconds and nanoseconds in a list."""
    if isinstance(value, str) and _DIGITS.fullmatch(value.strip()):
        return unix_seconds(int(value))
    if isinstance(value, list) and len(value) == 2:
        seconds, nanoseconds = as_number(value[0]), as_number(value[1])
        if seconds is not None and nanoseconds is not None:
            return unix_seconds(seconds + nanoseconds / 1e9)
    return unix_seconds(value)


def duration(value: object) -> float | None:
    """Seconds of an ISO 8601 duration such as ``PT1M2.5S``, or of a number of seconds."""
    if not isinstance(value, str):
        return as_number(value)
    match = _DURATION.fullmatch(value.strip()[:_LONGEST_ID])
    if match is None or not any(match.groups()):
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
