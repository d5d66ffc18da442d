"""Finding the JSON object of an answer in whatever a model has written around it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Final

import orjson

from mast_tui.judges.llm.errors import AskError

_THOUGHT: Final = re.compile(r"<(/?)(?:think|thinking|reasoning)>", re.IGNORECASE)
_BEGINS: Final = re.compile(r'\{\s*(?=["}])')
_MOST_BEGINS: Final = 200
"""So many braces are tried as the beginning of an object."""

_MOST_READ: Final = 20_000_000
"""So many characters are read in all of these tries together."""


class Malformed(AskError):
    """A model's answer cannot be used; the message says what is wrong and where."""


def find_object(text: str, fits: Callable[[Mapping[str, object]], bool]) -> Mapping[str, object]:
    """The last whole JSON object in ``text`` for which ``fits`` holds.

    Raises:
        Malformed: there is none, or an object after it breaks off.
    """
    stripped = text.strip()
    if not stripped:
        raise Malformed("the answer is empty")
    try:
        whole = orjson.loads(stripped)
    except orjson.JSONDecodeError:
        return _search(_after_thoughts(text), fits)
    if not isinstance(whole, dict):
        raise Malformed(f"the answer is {_kind(whole)}, not a JSON object")
    if not fits(whole):
        raise Malformed("the answer's JSON object holds no list of modes")
    return whole


def _after_thoughts(text: str) -> str:
    """The text behind what the model thought aloud, as far as it came to an end with that."""
    begin, end = 0, len(text)
    for tag in _THOUGHT.finditer(text):
        if tag[1]:
            begin, end = tag.end(), len(text)
        elif end == len(text):
            end = tag.start()
    return text[begin:end]


def _search(text: str, fits: Callable[[Mapping[str, object]], bool]) -> Mapping[str, object]:
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
    raise Malformed("the answer holds no JSON object with a list of modes")


def _kind(value: object) -> str:
    if isinstance(value, list):
        return "a JSON list"
    if isinstance(value, str):
        return "a JSON text"
    return "a bare JSON value"
