"""Single values of an answer, in the ways in which models write them."""

from __future__ import annotations

import math
import re
from typing import Final

from mast_tui.labels import VerdictValue

MOST_REMARKS: Final = 20
"""Of so many odd things in one answer a person is told."""

_NUMBER: Final = re.compile(r"\s*(?:spans?\s*)?#?\s*(\d{1,12})(?:\.0+)?\s*", re.IGNORECASE)
_SHARE: Final = re.compile(r"\s*(\d{1,6}(?:\.\d{1,20})?|\.\d{1,20})\s*(%?)\s*")
_SURROGATES: Final = re.compile("[\ud800-\udfff]")

_VERDICTS: Final = {
    **dict.fromkeys(("present", "yes", "true", "detected"), VerdictValue.PRESENT),
    **dict.fromkeys(("absent", "no", "false", "not present", "not detected"), VerdictValue.ABSENT),
    **dict.fromkeys(("unsure", "uncertain", "unclear", "unknown", "maybe"), VerdictValue.UNSURE),
}


class Remarks:
    """What was odd, each thing once, in the order in which it was met."""

    def __init__(self) -> None:
        self._said: dict[str, None] = {}

    def add(self, words: str) -> None:
        self._said[words] = None

    def all(self) -> tuple[str, ...]:
        """At most ``MOST_REMARKS``, and how many more there were."""
        said = list(self._said)
        more = len(said) - MOST_REMARKS
        return (*said[:MOST_REMARKS], f"and {more:,} remarks more") if more > 0 else tuple(said)


def as_text(value: object) -> str:
    """A text, or texts in a list joined by an ellipsis; empty for anything else."""
    if isinstance(value, list):
        value = " … ".join(part for part in value if isinstance(part, str))
    return _SURROGATES.sub("�", value) if isinstance(value, str) else ""


def as_number(value: object) -> int | None:
    """A span's number: an integer, or a text such as ``12`` or ``#12``."""
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value)
        return None if match is None else int(match[1])
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if math.isfinite(value) and value == int(value) else None


def as_verdict(value: object) -> VerdictValue | None:
    """A verdict's word, or yes and no."""
    if isinstance(value, bool):
        return VerdictValue.PRESENT if value else VerdictValue.ABSENT
    if not isinstance(value, str):
        return None
    return _VERDICTS.get(" ".join(value.casefold().replace("_", " ").split()).strip(" .!'\""))


def as_confidence(value: object) -> float | None:
    """A confidence in [0, 1]; a number above 1 is in percent."""
    percent = False
    if isinstance(value, str):
        match = _SHARE.fullmatch(value)
        if match is None:
            return None
        value, percent = float(match[1]), bool(match[2])
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not math.isfinite(value) or not 0 <= value <= 100:
        return None
    return value / 100 if percent or value > 1 else float(value)


def as_decisive(value: object) -> bool | None:
    """Yes or no, None for anything else."""
    verdict = as_verdict(value)
    if verdict is None or verdict is VerdictValue.UNSURE:
        return None
    return verdict is VerdictValue.PRESENT
