"""What is read back from a cache is looked at before it is believed: a file can be damaged.

Each function gives the value back, and raises ``ValueError`` where it is of another kind.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from mast_tui.traces.model import AnswerKey, Problem, Thread, TraceIdentity


def text(value: object) -> str:
    """A text."""
    if type(value) is not str:
        raise ValueError(f"no text: {value!r:.80}")
    return value


def text_or_none(value: object) -> str | None:
    """A text, or nothing."""
    return None if value is None else text(value)


def count(value: object) -> int:
    """A whole number from 0 on."""
    if type(value) is not int or value < 0:
        raise ValueError(f"no count: {value!r:.80}")
    return value


def count_or_none(value: object) -> int | None:
    """A whole number from 0 on, or nothing."""
    return None if value is None else count(value)


def flag(value: object) -> bool:
    """Yes or no."""
    if type(value) is not bool:
        raise ValueError(f"neither true nor false: {value!r:.80}")
    return value


def number_or_none(value: object) -> float | None:
    """A finite number, or nothing."""
    if value is not None and (type(value) not in (int, float) or not math.isfinite(value)):  # type: ignore[arg-type]
        raise ValueError(f"no number: {value!r:.80}")
    return value  # type: ignore[return-value]


def score_or_none(value: object) -> float | None:
    """A number from 0 to 1, or nothing."""
    score = number_or_none(value)
    if score is not None and not 0 <= score <= 1:
        raise ValueError(f"no score: {score}")
    return score


def path(value: object) -> str:
    """A text that can be a path."""
    found = text(value)
    if not found or "\0" in found:
        raise ValueError(f"no path: {found!r:.80}")
    return found


def sequence(value: object) -> Sequence[Any]:
    """A list of anything."""
    if not isinstance(value, list | tuple):
        raise ValueError(f"no list: {value!r:.80}")
    return value


def mapping(value: object) -> Mapping[str, Any]:
    """A mapping of names to anything."""
    if not isinstance(value, Mapping):
        raise ValueError(f"no mapping: {value!r:.80}")
    return value


def pairs(value: object) -> tuple[tuple[str, str], ...]:
    """A list of pairs of texts."""
    return tuple((text(one), text(other)) for one, other in map(sequence, sequence(value)))


def answer_key(value: object) -> AnswerKey:
    """An answer key by its sections, all of which must be there."""
    found = mapping(value)
    return AnswerKey(*(pairs(found[section.name]) for section in fields(AnswerKey)))


def problems(value: object) -> tuple[Problem, ...]:
    """A list of places and messages."""
    return tuple(Problem(place, message) for place, message in pairs(value))


def thread(value: object) -> Thread | None:
    """A thread's id and that of its parent, or nothing."""
    if value is None:
        return None
    own, parent = sequence(value)
    return Thread(text(own), text_or_none(parent))


def identity(value: object) -> TraceIdentity:
    """The fields of an identity, in their order."""
    own_id, content_hash, size, reader, scheme, native = sequence(value)
    return TraceIdentity(
        text(own_id), text(content_hash), count(size), text(reader), count(scheme), flag(native)
    )
