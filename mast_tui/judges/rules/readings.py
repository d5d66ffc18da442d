"""A measured value against the bound that a claim names: 'below 500 ms' when 4608 was read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from mast_tui.judges.rules.phrases import any_of
from mast_tui.judges.rules.steps import Quote, Step
from mast_tui.judges.rules.walk import answer_of

_NUMBER: Final = r"\d+(?:\.\d+)?"
_BOUND: Final = any_of(
    rf"(?P<side>below|under|less than|lower than|at most|above|over|more than|at least) "
    rf"(?P<bound>{_NUMBER}) ?(?P<unit>ms|milliseconds?|s|seconds?|%|percent)?"
)
_LOW: Final = frozenset({"below", "under", "less than", "lower than", "at most"})
_VALUE: Final = re.compile(rf"(?:\A|[\s}}\]=:])(?P<value>{_NUMBER})\s*\Z")
_UNITS: Final[Mapping[str, tuple[str, float]]] = {
    "ms": ("time", 0.001),
    "millisecond": ("time", 0.001),
    "milliseconds": ("time", 0.001),
    "s": ("time", 1.0),
    "second": ("time", 1.0),
    "seconds": ("time", 1.0),
    "%": ("share", 0.01),
    "percent": ("share", 0.01),
}


def contradicts(command: str, result: Step, claim: str) -> Quote | None:
    """The value that a check read last, where it lies on the wrong side of the claim's bound.

    Only a result that ends in one bare number counts, and only where the unit of what was asked
    for can be told from the command (``…_milliseconds_…``, ``…_seconds_…``, a ratio).
    """
    bound = _BOUND.search(claim)
    if bound is None:
        return None
    value = _VALUE.search(answer_of(result))
    if value is None or (scale := _scale(command)) is None:
        return None
    kind, factor = _UNITS.get((bound["unit"] or "").lower(), ("", 1.0))
    if kind != scale[0]:
        return None
    read = float(value["value"]) * scale[1]
    limit = float(bound["bound"]) * factor
    low = " ".join(bound["side"].lower().split()) in _LOW
    if (read <= limit) if low else (read >= limit):
        return None
    return result.find_last(re.compile(re.escape(value["value"])))


def _scale(command: str) -> tuple[str, float] | None:
    if re.search(r"millis|_ms\b", command):
        return "time", 0.001
    if "seconds" in command:
        return "time", 1.0
    return ("share", 1.0) if re.search(r"\)\s*/\s*\w*\(", command) else None
