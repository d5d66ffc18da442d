"""Foreign JSON values: parsing what is nearly JSON, and the text that a value stands for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

import orjson

from mast_tui.traces.model import Tokens

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_REPLACEMENT: Final = "\ufffd"
_MOST_DIGITS: Final = 16
_FIRST_INEXACT: Final = 1 << 53


class InvalidJSON(ValueError):
    """An error for a text that is not JSON; the message has the reason and the location."""


def load_json(data: bytes | str) -> object:
    """Return the value of a JSON text, also of a text that is not strictly valid.

    - Lone surrogates and invalid bytes become U+FFFD.
    - ``NaN``, deep nesting and huge integers are accepted.
    - NUL bytes, which a crash leaves in a file, are left out.

    Raises:
        InvalidJSON: The text is not JSON.
    """
    try:
        value: object = orjson.loads(data)
    except orjson.JSONDecodeError:
        value = _load_slowly(data)
    return value


def why_not_json(text: str) -> str | None:
    """Return why ``load_json`` refuses the text, with line and column; None if it is JSON."""
    try:
        load_json(text)
    except InvalidJSON as invalid:
        reason = str(invalid)
    else:
        return None
    try:
        orjson.loads(text)  # its errors have the line and column
    except orjson.JSONDecodeError as error:
        return f"line {error.lineno}, column {error.colno}: {error.msg}"
    return reason


def _load_slowly(data: bytes | str) -> object:
    """Return the value of a text that orjson refuses, read by the standard library.

    Raises:
        InvalidJSON: The text is not JSON.
    """
    text = data if isinstance(data, str) else data.decode("utf-8", "replace")
    try:
        return without_surrogates(json.loads(text.replace("\0", "").removeprefix("\ufeff")))
    except json.JSONDecodeError as error:
        raise InvalidJSON(f"{error.msg} (character {error.pos + 1})") from None
    except RecursionError:
        raise InvalidJSON("nested too deeply") from None
    except ValueError:
        raise InvalidJSON("a number with too many digits") from None


def without_surrogates(value: object) -> object:
    """Return the value with each lone surrogate in its texts replaced.

    Raises:
        RecursionError: The value is nested too deeply.
    """
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, list):
        return [without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {replace_surrogates(key): without_surrogates(item) for key, item in value.items()}
    return value


def replace_surrogates(text: str) -> str:
    """Return a text with U+FFFD for each lone surrogate, so that the text can be encoded."""
    return _SURROGATE.sub(_REPLACEMENT, text)


def dump_text(value: object) -> str:
    """Return a JSON value as indented text; a string stays itself, None is empty."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    except TypeError:
        pass
    try:
        return json.dumps(value, indent=2, ensure_ascii=False)
    except RecursionError:
        return "(nested too deeply to be shown)"


def dump_line(value: object) -> bytes:
    """Return a JSON value on one line, with its line feed.

    Lone surrogates become U+FFFD; numbers of any length stay numbers.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        text = json.dumps(without_surrogates(value), ensure_ascii=False, separators=(",", ":"))
        return text.encode() + b"\n"


def canonical_bytes(value: object) -> bytes:
    """Return the value's JSON with sorted keys: the bytes that a record's content hash covers."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        pass
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    except RecursionError:
        return b"(nested too deeply)"


def content_text(content: object) -> str:
    """Return the text of a chat message's ``content``: a string, a list of parts, or None.

    Text parts (``text``, ``input_text``, ``output_text``, ``refusal`` …) are joined by newlines;
    a part without text, such as an image, becomes a note of its type in brackets.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_part_text(part) for part in content)
    if isinstance(content, Mapping):
        return _part_text(content)
    return dump_text(content)


def _part_text(part: object) -> str:
    """Return the text of a part of a message, a note of an image or audio, or else its JSON."""
    if not isinstance(part, Mapping):
        return dump_text(part)
    for field in ("text", "content", "refusal", "thinking", "value"):
        value = part.get(field)
        if isinstance(value, str):
            return value
    kind = part.get("type")
    if isinstance(kind, str) and "text" not in part and ("image" in kind or "audio" in kind):
        return f"[{kind}]"
    return dump_text(part)


def as_text(value: object) -> str | None:
    """Return ``value`` if it is a string that is not blank, else None."""
    return value if isinstance(value, str) and value.strip() else None


def identifier(value: object) -> str | None:
    """Return an id, a text or whole number, as a text; None for any other value."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 64:
        return str(value)
    return as_text(value)


def as_number(value: object) -> float | None:
    """Return ``value`` if it is a finite number (not a boolean), else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if number - number == 0 else None


def as_count(value: object) -> int | None:
    """Return a value that is a whole number from 0 on, also as a float or as digits; else None."""
    if type(value) is int and 0 <= value < _FIRST_INEXACT:
        return value
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < _MOST_DIGITS:
        return int(value)
    number = as_number(value)
    if number is None or number < 0 or number != int(number):
        return None
    return int(number)


def tokens_of(input_count: object, output_count: object) -> Tokens | None:
    """Return the tokens of a model call from two foreign values; None if neither is a count.

    Args:
        input_count: The tokens that the model read.
        output_count: The tokens that the model wrote.
    """
    tokens = Tokens(as_count(input_count), as_count(output_count))
    return None if tokens == Tokens() else tokens
