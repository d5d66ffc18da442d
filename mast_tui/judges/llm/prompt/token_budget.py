"""How much of a request's room each span's text gets, and what of a long text is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mast_tui.judges.llm.prompt import prompt_text
from mast_tui.judges.llm.prompt.redacted_view import RedactedView
from mast_tui.judges.llm.prompt.tokens import estimate

HEADER_TOKENS: Final = 24
"""About what the line above a span takes."""

FRAME_TOKENS: Final = 200
"""About what stands around the spans: where they begin and end, notes, what is to be judged."""

_TAIL: Final = 4
_WEIGHT: Final = 5
_TAIL_WEIGHT: Final = 8
_UNITS: Final = 40

_HEAD_PART: Final = 0.6
_SNAP_CHARS: Final = 200


def task_room(budget: int) -> int:
    """The most tokens that the task may take."""
    return budget // 6


def digest_room(budget: int) -> int:
    """The most tokens that the digest of the run so far may take."""
    return min(900, budget // 6)


def spans_room(view: RedactedView, budget: int, *, alone: bool) -> int:
    """What is left for spans, with their headers; ``alone`` where no digest comes along."""
    task = min(estimate(view.task), task_room(budget))
    return max(0, budget - FRAME_TOKENS - task - (0 if alone else digest_room(budget)))


def weight(index: int, spans: int) -> int:
    """How many units of room a span's text may take: more at the end of the run."""
    return _TAIL_WEIGHT if index >= spans - _TAIL else _WEIGHT


def unit(budget: int) -> int:
    """The tokens of a unit by which windows are planned: a text may take an eighth of the budget,
    the last few of the run a fifth each."""
    return max(1, budget // _UNITS)


def allotted(tokens: Sequence[int], weights: Sequence[int], room: int) -> list[int]:
    """The most tokens for each text so that all fit into ``room``: what short ones leave over is
    for the long ones, in the measure of their weights."""
    if sum(tokens) <= room:
        return list(tokens)
    low, high = 0, max(tokens) + 1
    while high - low > 1:
        middle = (low + high) // 2
        used = sum(map(min, tokens, (middle * each for each in weights)))
        low, high = (middle, high) if used <= room else (low, middle)
    return [min(wanted, low * each) for wanted, each in zip(tokens, weights, strict=True)]


def left_out(count: int) -> str:
    """What stands in a text for the characters that are left out."""
    return prompt_text.LEFT_OUT.format(count=count)


def shortened(text: str, tokens: int, most: int) -> tuple[str, int]:
    """Head and tail of a text of ``tokens`` so that about ``most`` are kept, and how many
    characters are left out."""
    chars = len(text) * most // max(1, tokens)
    while True:
        head, tail = _ends(text, chars)
        taken = estimate(text[:head]) + estimate(text[tail:])
        if taken <= most or chars < 2:
            break
        chars = min(chars - 1, chars * most // taken)
    count = tail - head
    if count <= 0:
        return text, 0
    return f"{text[:head]}\n{left_out(count)}\n{text[tail:]}", count


def _ends(text: str, chars: int) -> tuple[int, int]:
    """Where the head ends and the tail begins, at line breaks where there are some near."""
    head = int(chars * _HEAD_PART)
    tail = len(text) - (chars - head)
    snap = min(_SNAP_CHARS, chars // 8)
    broken = text.rfind("\n", head - snap, head)
    head = broken if broken > 0 else head
    broken = text.find("\n", tail, tail + snap)
    return head, broken + 1 if broken >= 0 else tail
