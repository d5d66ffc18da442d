"""Finding the JSON object of an answer in whatever a model has written around it."""

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
"""So many braces are tried as the beginning of an object."""

_MOST_READ: Final = 20_000_000
"""So many characters are read in all of these tries together."""


MOST_MENDED: Final = 200_000
"""A longer answer is not mended, in code points: that takes much longer than reading one."""

_PYTHON_OBJECT: Final = re.compile(r"\{\s*'")

_AFTER: Final = re.compile(r"[^\"'{}\[\]:]*")
"""What may follow an object that is whole: words, and the end of a fence."""


_BRACKETS: Final = re.compile(r"\\*\"|[{}\[\]]")
_BRACKETS_OF_PYTHON: Final = re.compile(r"\\*'|[{}\[\]]")
"""Brackets, and what begins or ends a text: a quote mark after an even number of backslashes."""


class Malformed(AskError):
    """A model's answer cannot be used; the message says what is wrong and where."""


class FoundObject(NamedTuple):
    """An object of an answer; ``mended`` says that it was no right JSON as it stood."""

    value: Mapping[str, object]
    mended: bool = False


def find_object(
    text: str, fits: Callable[[Mapping[str, object]], bool], what: str = "list of modes"
) -> FoundObject:
    """Find the last whole JSON object of a text.

    JSON with small faults, as models write it, is mended by a library; what breaks off is not.

    Args:
        text: A model's answer, with whatever stands around the JSON.
        fits: Whether an object is the one that is looked for.
        what: What that holds, in words.

    Raises:
        Malformed: There is none, or an object after it breaks off.
    """
    stripped = text.strip()
    if not stripped:
        raise Malformed("the answer is empty")
    try:
        whole = orjson.loads(stripped)
        if isinstance(whole, str) and whole.lstrip().startswith("{"):
            whole = orjson.loads(whole)  # JSON that was written as a text within JSON
    except orjson.JSONDecodeError:
        after = _after_thoughts(text)
        try:
            return FoundObject(_search(after, fits, what))
        except Malformed:
            mended = _mended(after)
            if mended is None or not fits(mended):
                raise
            return FoundObject(mended, mended=True)
    if isinstance(whole, list) and whole and isinstance(whole[0], dict):
        whole = {"modes": whole}
    if not isinstance(whole, dict):
        raise Malformed(f"the answer is {_kind(whole)}, not a JSON object")
    if not fits(whole):
        raise Malformed(f"the answer's JSON object holds no {what}")
    return FoundObject(whole)


def _mended(text: str) -> Mapping[str, object] | None:
    """Return the one object of a text with its faults mended; None where it breaks off."""
    begin = text.find("{")
    end = text.rfind("}")
    if not 0 <= begin < end <= begin + MOST_MENDED or not _AFTER.fullmatch(text, end + 1):
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
    """Return the JSON value that a Python literal stands for; None where the text is none."""
    if not _PYTHON_OBJECT.match(text):
        return None
    try:
        with warnings.catch_warnings(action="ignore"):  # of escapes that Python does not know
            value = ast.literal_eval(text)
        return json.loads(json.dumps(value))  # tuples become lists, and all keys texts
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None  # all that these raise, by their documentation, where the text is no literal


def _left_open(text: str, begin: int, end: int) -> bool:
    """Whether more brackets are opened than closed, outside of texts: then something is missing."""
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


def _after_thoughts(text: str) -> str:
    """The text behind what the model thought aloud, as far as it came to an end with that."""
    begin, end = 0, len(text)
    for tag in _THOUGHT.finditer(text):
        if tag[1]:
            begin, end = tag.end(), len(text)
        elif end == len(text):
            end = tag.start()
    return text[begin:end]


def _search(
    text: str, fits: Callable[[Mapping[str, object]], bool], what: str
) -> Mapping[str, object]:
    decoder = json.JSONDecoder(strict=False)  # line breaks within texts as well
    found: Mapping[str, object] | None = None
    broken: str | None = None
    at = tried = read = 0
    while (begin := _BEGINS.search(text, at)) is not None and tried < _MOST_BEGINS:
        if read > _MOST_READ:
            broken = broken or "too many begin in it"
            break
        tried += 1
        end = len(text)
        try:
            value, at = decoder.raw_decode(text, begin.start())
            end = at
        except json.JSONDecodeError as error:
            at, end = begin.end(), error.pos
            broken = (
                f"{error.msg.removesuffix(' at')} at character {error.pos + 1:,} of {len(text):,}"
            )
        except RecursionError:
            at, broken = begin.end(), "it is nested too deeply"
        except ValueError:
            at, broken = begin.end(), "it holds a number that is too long"
        else:
            if isinstance(value, dict) and fits(value):
                found, broken = value, None
        read += end - begin.start()
    if found is not None and broken is None:
        return found
    if broken is not None:
        raise Malformed(f"the answer is no whole JSON object: {broken}")
    raise Malformed(f"the answer holds no JSON object with a {what}")


def _kind(value: object) -> str:
    if isinstance(value, list):
        return "a JSON list"
    if isinstance(value, str):
        return "a JSON text"
    return "a bare JSON value"
