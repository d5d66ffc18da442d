"""The token budget of a request: the share of each span, and the shortening of long texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mast_tui.judges.llm.prompt import prompt_text
from mast_tui.judges.llm.prompt.redacted_view import RedactedView
from mast_tui.judges.llm.prompt.tokens import estimate

HEADER_TOKENS: Final = 24
"""The approximate tokens of the line above a span."""

FRAME_TOKENS: Final = 200
"""The approximate tokens of the lines around the spans: begin and end, notes, the question."""

_TAIL: Final = 4
_WEIGHT: Final = 5
_TAIL_WEIGHT: Final = 8
_UNITS: Final = 40

_HEAD_PART: Final = 0.6
_SNAP_CHARS: Final = 200


def task_room(budget: int) -> int:
    """Return the most tokens of the task."""
    return budget // 6


def story_room(budget: int) -> int:
    """Return the most tokens of the story of the run."""
    return min(900, budget // 6)


def artefacts_room(budget: int) -> int:
    """Return the most tokens of the final patch and the test results."""
    return budget // 5


def spans_room(view: RedactedView, budget: int, *, alone: bool) -> int:
    """Return the tokens for spans with their headers.

    Args:
        view: The trace as it is sent.
        budget: The tokens of the request.
        alone: Whether the request has no story of the run.
    """
    task = min(estimate(view.task), task_room(budget))
    return max(0, budget - FRAME_TOKENS - task - (0 if alone else story_room(budget)))


def weight(index: int, spans: int) -> int:
    """Return the most units of the budget for the text of a span: more at the end of the run.

    Args:
        index: The index of the span.
        spans: The number of spans.
    """
    return _TAIL_WEIGHT if index >= spans - _TAIL else _WEIGHT


def unit(budget: int) -> int:
    """Return the tokens of a unit: a text has at most an eighth of the budget, the last ones a
    fifth each."""
    return max(1, budget // _UNITS)


def allotted(tokens: Sequence[int], weights: Sequence[int], room: int) -> list[int]:
    """Distribute tokens among texts by their weights; long texts get what short ones do not need.

    Args:
        tokens: The tokens of each text.
        weights: The weight of each text.
        room: The most tokens in all.

    Returns:
        The most tokens of each text.
    """
    if sum(tokens) <= room:
        return list(tokens)
    low = 0
    high = max(tokens) + 1
    while high - low > 1:
        middle = (low + high) // 2
        used = sum(map(min, tokens, (middle * each for each in weights)))
        if used <= room:
            low = middle
        else:
            high = middle
    return [min(length, low * each) for length, each in zip(tokens, weights, strict=True)]


def left_out(count: int) -> str:
    """Return the mark for the characters that are left out of a text."""
    return prompt_text.LEFT_OUT.format(count=count)


def shortened(text: str, tokens: int, most: int) -> tuple[str, int]:
    """Shorten a text to its head and tail.

    Args:
        text: The text.
        tokens: Its tokens.
        most: The approximate most tokens of the result.

    Returns:
        The shortened text, and the number of characters that are left out.
    """
    chars = len(text) * most // max(1, tokens)
    while True:
        head, tail = _ends(text, chars)
        used = estimate(text[:head]) + estimate(text[tail:])
        if used <= most or chars < 2:
            break
        chars = min(chars - 1, chars * most // used)
    count = tail - head
    if count <= 0:
        return text, 0
    return f"{text[:head]}\n{left_out(count)}\n{text[tail:]}", count


def _ends(text: str, chars: int) -> tuple[int, int]:
    """Return the end of the head and the begin of the tail, at line breaks nearby if possible."""
    head = int(chars * _HEAD_PART)
    tail = len(text) - (chars - head)
    snap = min(_SNAP_CHARS, chars // 8)
    broken = text.rfind("\n", head - snap, head)
    head = broken if broken > 0 else head
    broken = text.find("\n", tail, tail + snap)
    return head, broken + 1 if broken >= 0 else tail
