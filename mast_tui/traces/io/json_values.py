"""The parsing of JSON and Python values from foreign files, and the texts of such values."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from math import isfinite
from typing import Final

import orjson

from mast_tui.traces.model import Tokens

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_REPLACEMENT: Final = "\ufffd"
_MOST_DIGITS: Final = 16
_FIRST_INEXACT_FLOAT: Final = 1 << 53

INVALID_ESCAPE: Final = "an invalid escape inside a text; it is shown as it is"
"""The problem of a backslash before a character that needs none, from tools that redact."""


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
    """Return why ``load_json`` refuses the text, with line and column; None if it accepts it."""
    try:
        load_json(text)
    except InvalidJSON as invalid:
        reason = str(invalid)
    else:
        return None
    try:
        orjson.loads(text)  # for the line and column in its error
    except orjson.JSONDecodeError as error:
        return f"line {error.lineno}, column {error.colno}: {error.msg}"
    return reason


def _load_slowly(data: bytes | str) -> object:
    """Return the value of a text that orjson refuses, read by the standard library."""
    text = data if isinstance(data, str) else data.decode("utf-8", "replace")
    # Damaged files have NUL characters, and some editors write a byte order mark.
    try:
        return without_surrogates(json.loads(text.replace("\0", "").removeprefix("\ufeff")))
    except json.JSONDecodeError as error:
        raise InvalidJSON(f"{error.msg} (character {error.pos + 1})") from None
    except RecursionError:
        raise InvalidJSON("nested too deeply") from None
    except ValueError:
        raise InvalidJSON("a number with too many digits") from None


def without_surrogates(value: object) -> object:
    """Return the value with U+FFFD for each lone surrogate in its texts.

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
    """Return a text with U+FFFD for each lone surrogate, which UTF-8 cannot encode."""
    return _SURROGATE.sub(_REPLACEMENT, text)


def dump_text(value: object) -> str:
    """Return a JSON value as indented text; a string stays unchanged, None is empty."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    except TypeError:  # such as for huge integers
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
    except TypeError:  # such as for huge integers and lone surrogates
        text = json.dumps(without_surrogates(value), ensure_ascii=False, separators=(",", ":"))
        return text.encode() + b"\n"


def canonical_bytes(value: object) -> bytes:
    """Return the value's JSON with sorted keys, the input of a content hash."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # such as for huge integers
        pass
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    except RecursionError:
        return b"(nested too deeply)"


def content_text(content: object) -> str:
    """Return the text of a chat message's ``content``: a string, a list of parts, or None.

    Text parts are joined by newlines; an image or audio becomes its type in brackets.
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
    """Return the text of a part of a message.

    An image or audio becomes its type in brackets, any other part without a text becomes JSON.
    """
    if not isinstance(part, Mapping):
        return dump_text(part)
    for field in ("text", "content", "refusal", "thinking", "value"):
        value = part.get(field)
        if isinstance(value, str):
            return value
    part_type = part.get("type")
    is_media = isinstance(part_type, str) and ("image" in part_type or "audio" in part_type)
    if is_media and "text" not in part:
        return f"[{part_type}]"
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
    return number if isfinite(number) else None


def as_count(value: object) -> int | None:
    """Return a whole number from 0 on, from an integer, float or digits; else None."""
    # The quick way for most values; exact, unlike a large float.
    if type(value) is int and 0 <= value < _FIRST_INEXACT_FLOAT:
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


MOST_CHARS: Final = 32 << 20
"""The longest text that is parsed, because the parser needs many times its size."""

DEEPEST: Final = 100
"""The deepest nesting of a record."""

_DICT_BEGINNING: Final = r"""\s*[\[(]?\s*\{\s*(?:'|"[^"\n]{0,200}"\s*:\s*(?:'|True|False|None))"""


def python_literal(text: str) -> object | None:
    """Return the value of a Python dictionary, written as a literal, in types that JSON has.

    No code in the text is run.

    Args:
        text: The whole text.

    Returns:
        The dictionary, or a list of dictionaries, with texts for keys, and lists for tuples and
        sets. None if the text is anything else, too long or nested too deeply.
    """
    if re.match(_DICT_BEGINNING, text) is None:
        return None
    try:
        return _json_value(read_literal(text, MOST_CHARS), 0)
    except (ValueError, RecursionError):
        return None


def read_literal(text: str, most_chars: int = 1 << 20) -> object:
    """Return the value of a Python literal, without running code; None if it is none.

    Args:
        text: The whole text.
        most_chars: The most characters of the text.
    """
    if len(text) > most_chars:
        return None
    try:
        value: object = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
    return value


def _json_value(value: object, depth: int) -> object:
    """Return a Python value with only the types that JSON has; other types become text.

    Raises:
        ValueError: The value is nested too deeply.
    """
    if depth > DEEPEST:
        raise ValueError("nested too deeply")
    if isinstance(value, dict):
        return {_json_key(name): _json_value(member, depth + 1) for name, member in value.items()}
    if isinstance(value, set):
        value = sorted(value, key=repr)  # otherwise the order would vary
    if isinstance(value, list | tuple):
        return [_json_value(item, depth + 1) for item in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return str(value)


def _json_key(name: object) -> str:
    """Return the text that ``json.dumps`` writes for a key."""
    if isinstance(name, bool) or name is None:
        return {True: "true", False: "false", None: "null"}[name]
    return name if isinstance(name, str) else str(name)
