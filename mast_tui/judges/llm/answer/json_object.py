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

from mast_tui.judges.llm.errors import AskError

_THOUGHT: Final = re.compile(r"<(/?)(?:think|thinking|reasoning)>", re.IGNORECASE)
_BEGINS: Final = re.compile(r'\{\s*(?=["}])')
_MOST_BEGINS: Final = 200
"""The most braces that are tried as the beginning of an object."""

_MOST_READ: Final = 20_000_000
"""The most characters that all of these tries read together."""

MOST_REPAIRED: Final = 200_000
"""The most code points of an answer that is repaired: a repair is much slower than parsing."""

_PYTHON_OBJECT: Final = re.compile(r"\{\s*'")

_AFTER: Final = re.compile(r"[^\"'{}\[\]:]*")
"""The text that may follow a complete object: words, and the end of a fence."""

_BRACKETS: Final = re.compile(r"\\*\"|[{}\[\]]")
_BRACKETS_OF_PYTHON: Final = re.compile(r"\\*'|[{}\[\]]")
"""Brackets, and what begins or ends a text: a quote mark after an even number of backslashes."""


class Malformed(AskError):
    """A model's answer cannot be used; the message says what is wrong and where."""


class FoundObject(NamedTuple):
    """An object of an answer; ``repaired`` if its JSON was invalid."""

    value: Mapping[str, object]
    repaired: bool = False


def find_object(
    text: str, fits: Callable[[Mapping[str, object]], bool], content: str = "list of modes"
) -> FoundObject:
    """Find the last complete JSON object of a text.

    JSON with small faults, as models write it, is repaired by a library, unless it breaks off.

    Args:
        text: The answer of a model, with any text around its JSON.
        fits: Tells whether an object is the expected one.
        content: The content of the expected object, for messages.

    Raises:
        Malformed: There is no such object, or an object after it breaks off.
    """
    stripped = text.strip()
    if not stripped:
        raise Malformed("the answer is empty")
    try:
        whole = orjson.loads(stripped)
        if isinstance(whole, str) and whole.lstrip().startswith("{"):
            whole = orjson.loads(whole)  # JSON that was written as a text within JSON
    except orjson.JSONDecodeError:
        answer = _without_thoughts(text)
        try:
            return FoundObject(_search(answer, fits, content))
        except Malformed:
            repaired = _repaired(answer)
            if repaired is None or not fits(repaired):
                raise
            return FoundObject(repaired, repaired=True)
    if isinstance(whole, list) and whole and isinstance(whole[0], dict):
        whole = {"modes": whole}
    if not isinstance(whole, dict):
        raise Malformed(f"the answer is {_kind(whole)}, not a JSON object")
    if not fits(whole):
        raise Malformed(f"the answer's JSON object holds no {content}")
    return FoundObject(whole)


def _repaired(text: str) -> Mapping[str, object] | None:
    """Repair the JSON object of a text; None if it breaks off."""
    begin = text.find("{")
    end = text.rfind("}")
    if not 0 <= begin < end <= begin + MOST_REPAIRED or not _AFTER.fullmatch(text, end + 1):
        return None
    written = text[begin : end + 1]
    value = _python_literal(written)
    if value is None:
        if _left_open(text, begin, end + 1):
            return None
        try:
            value = json_repair.loads(written)
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


def _left_open(text: str, begin: int, end: int) -> bool:
    """Check whether brackets outside of strings stay open, so that a part is missing."""
    marks = _BRACKETS if '"' in text else _BRACKETS_OF_PYTHON
    depth = 0
    inside = False
    for mark in marks.finditer(text, begin, end):
        char = mark[0][-1]
        if char in "\"'":
            inside ^= len(mark[0]) % 2 == 1
        elif not inside:
            depth += 1 if char in "{[" else -1
    return depth > 0


def _without_thoughts(text: str) -> str:
    """Return the text after the last closed thought, up to one that stays open."""
    begin = 0
    end = len(text)
    for tag in _THOUGHT.finditer(text):
        if tag[1]:
            begin = tag.end()
            end = len(text)
        elif end == len(text):
            end = tag.start()
    return text[begin:end]


def _search(
    text: str, fits: Callable[[Mapping[str, object]], bool], content: str
) -> Mapping[str, object]:
    decoder = json.JSONDecoder(strict=False)  # accepts line breaks in strings
    last_match: Mapping[str, object] | None = None
    problem: str | None = None
    offset = 0
    tries = 0
    chars_read = 0
    while (begin := _BEGINS.search(text, offset)) is not None and tries < _MOST_BEGINS:
        if chars_read > _MOST_READ:
            problem = problem or "too many begin in it"
            break
        tries += 1
        offset = begin.end()
        end = len(text)
        try:
            value, offset = decoder.raw_decode(text, begin.start())
            end = offset
        except json.JSONDecodeError as error:
            end = error.pos
            reason = error.msg.removesuffix(" at")
            problem = f"{reason} at character {error.pos + 1:,} of {len(text):,}"
        except RecursionError:
            problem = "it is nested too deeply"
        except ValueError:
            problem = "it holds a number that is too long"
        else:
            if isinstance(value, dict) and fits(value):
                last_match = value
                problem = None
        chars_read += end - begin.start()
    if problem is not None:
        raise Malformed(f"the answer is no whole JSON object: {problem}")
    if last_match is None:
        raise Malformed(f"the answer holds no JSON object with a {content}")
    return last_match


def _kind(value: object) -> str:
    if isinstance(value, list):
        return "a JSON list"
    if isinstance(value, str):
        return "a JSON text"
    return "a bare JSON value"
