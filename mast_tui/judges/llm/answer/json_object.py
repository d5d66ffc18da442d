"""Search for the JSON object of an answer in the text that a model has written around it."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import json_repair
import orjson

from mast_tui.judges.llm.request import AskError

_THOUGHT: Final = re.compile(r"<(/?)(?:think|thinking|reasoning)>", re.IGNORECASE)
_OBJECT_START: Final = re.compile(r'\{\s*(?=["}])')
_MOST_STARTS: Final = 200
"""The most braces that are tried as the beginning of an object."""

_MOST_READ: Final = 20_000_000
"""The most characters that all of these tries read together."""

MOST_REPAIRED_CHARS: Final = 200_000
"""The most code points of an answer that is repaired: a repair is much slower than parsing."""

_PYTHON_OBJECT: Final = re.compile(r"\{\s*'")

_TRAILING_WORDS: Final = re.compile(r"[^\"'{}\[\]:]*")
"""The text that may follow a complete object: words, and the end of a fence."""

_BRACKETS: Final = re.compile(r"\\*\"|[{}\[\]]")
_BRACKETS_OF_PYTHON: Final = re.compile(r"\\*'|[{}\[\]]")
"""Brackets, and quote marks with the backslashes before them. A quote mark begins or ends a text if
the number of backslashes is even."""


class Malformed(AskError):
    """A model's answer cannot be used; the message says what is wrong and where."""


class FoundObject(NamedTuple):
    """An object of an answer; ``repaired`` if its JSON was invalid."""

    value: Mapping[str, object]
    repaired: bool = False


def find_object(
    text: str, fits: Callable[[Mapping[str, object]], bool], content: str = "list of modes"
) -> FoundObject:
    """Find the last complete JSON object of the expected kind in a text.

    JSON with small faults, as models write it, is repaired, unless it breaks off.

    Args:
        text: The answer of a model, with any text around its JSON.
        fits: Returns True if an object is the expected one.
        content: The content of the expected object, for messages.

    Raises:
        Malformed: There is no such object, or an object after it breaks off.
    """
    stripped = text.strip()
    if not stripped:
        raise Malformed("the answer is empty")
    try:
        value = orjson.loads(stripped)
        if isinstance(value, str) and value.lstrip().startswith("{"):
            value = orjson.loads(value)  # JSON that was written as a text within JSON
    except orjson.JSONDecodeError:
        answer = _text_after_thoughts(text)
        try:
            return FoundObject(_find_last_object(answer, fits, content))
        except Malformed:
            repaired = _repair_object(answer)
            if repaired is None or not fits(repaired):
                raise
            return FoundObject(repaired, repaired=True)
    if isinstance(value, list) and value and isinstance(value[0], dict):
        # Some models write the list of modes without the object around it.
        value = {"modes": value}
    if not isinstance(value, dict):
        raise Malformed(f"the answer is {_kind_name(value)}, not a JSON object")
    if not fits(value):
        raise Malformed(f"the answer's JSON object holds no {content}")
    return FoundObject(value)


def _repair_object(text: str) -> Mapping[str, object] | None:
    """Return the repaired JSON object of a text.

    Return None if the object breaks off, is too long or has too much text after it.
    """
    start = text.find("{")
    last = text.rfind("}")
    if not 0 <= start < last <= start + MOST_REPAIRED_CHARS:
        return None
    if not _TRAILING_WORDS.fullmatch(text, last + 1):
        return None
    object_text = text[start : last + 1]
    value = _python_literal(object_text)
    if value is None:
        if _has_open_brackets(object_text, has_double_quotes='"' in object_text):
            return None
        try:
            value = json_repair.loads(object_text)
        except (RecursionError, ValueError):  # ValueError: an integer of thousands of digits
            return None
    return value if isinstance(value, dict) else None


def _python_literal(text: str) -> object:
    """Convert a Python literal to a JSON value; None for any other text."""
    if not _PYTHON_OBJECT.match(text):
        return None
    try:
        with warnings.catch_warnings(action="ignore"):  # of escapes that Python does not know
            value = ast.literal_eval(text)
        return json.loads(json.dumps(value))  # tuples become lists, and all keys texts
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None  # the documented errors of these functions for a text that is no literal


def _has_open_brackets(object_text: str, *, has_double_quotes: bool) -> bool:
    """Check whether brackets outside of strings stay open, so that a part is missing.

    Args:
        object_text: The text of an object.
        has_double_quotes: True if strings are in double quotation marks, not in single ones.
    """
    pattern = _BRACKETS if has_double_quotes else _BRACKETS_OF_PYTHON
    depth = 0
    is_in_string = False
    # A match is a bracket, or a quotation mark with the backslashes before it.
    for mark in pattern.finditer(object_text):
        char = mark[0][-1]
        if char in "\"'":
            backslash_count = len(mark[0]) - 1
            if backslash_count % 2 == 0:
                is_in_string = not is_in_string
        elif not is_in_string:
            depth += 1 if char in "{[" else -1
    return depth > 0


def _text_after_thoughts(text: str) -> str:
    """Return the text after the last closed thought, up to the next thought if it is not closed."""
    start = 0
    end = len(text)
    for tag in _THOUGHT.finditer(text):
        is_closing = bool(tag[1])
        if is_closing:
            start = tag.end()
            end = len(text)
        elif end == len(text):  # the first thought after the last closed one
            end = tag.start()
    return text[start:end]


def _find_last_object(
    text: str, fits: Callable[[Mapping[str, object]], bool], content: str
) -> Mapping[str, object]:
    """Return the last complete JSON object in a text among those that fit.

    ``content`` is the content of the expected object, for messages.

    Raises:
        Malformed: No object fits, or an object after the last fitting one breaks off.
    """
    last_match: Mapping[str, object] | None = None
    problem = ""
    offset = 0
    chars_read = 0
    start_count = 0
    while start := _OBJECT_START.search(text, offset):
        if chars_read > _MOST_READ or start_count == _MOST_STARTS:
            problem = problem or "too many begin in it"
            break
        piece = _decode_object(text, start.start())
        if piece.problem:
            problem = piece.problem
        elif isinstance(piece.value, dict) and fits(piece.value):
            last_match = piece.value
            problem = ""
        offset = start.end() if piece.problem else piece.end
        chars_read += piece.end - start.start()
        start_count += 1
    if problem:
        raise Malformed(f"the answer is no whole JSON object: {problem}")
    if last_match is None:
        raise Malformed(f"the answer holds no JSON object with a {content}")
    return last_match


class _Decoded(NamedTuple):
    """The JSON value that begins at an offset of a text.

    Attributes:
        value: The value; None if there is a problem.
        end: The offset to which the text was read.
        problem: The reason why there is no value; empty if there is one.
    """

    value: object
    end: int
    problem: str = ""


def _decode_object(text: str, start: int) -> _Decoded:
    """Decode the JSON object that begins at an offset of a text."""
    decoder = json.JSONDecoder(strict=False)  # accepts line breaks in strings
    try:
        return _Decoded(*decoder.raw_decode(text, start))
    except json.JSONDecodeError as error:
        place = f"at character {error.pos + 1:,} of {len(text):,}"
        return _Decoded(None, error.pos, f"{error.msg.removesuffix(' at')} {place}")
    # These errors do not name the place, so the whole text counts as read.
    except RecursionError:
        return _Decoded(None, len(text), "it is nested too deeply")
    except ValueError:
        return _Decoded(None, len(text), "it holds a number that is too long")


def _kind_name(value: object) -> str:
    """Return the kind of a JSON value in words, for error messages."""
    if isinstance(value, list):
        return "a JSON list"
    if isinstance(value, str):
        return "a JSON text"
    return "a bare JSON value"
