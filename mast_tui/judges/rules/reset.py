"""2.1 Conversation reset: the opening comes again in the middle, and the work starts over."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from mast_tui.judges.rules.phrases import any_of
from mast_tui.judges.rules.steps import Step
from mast_tui.judges.rules.walk import Call, Walk, is_output
from mast_tui.labels import Finding

MODE: Final = "conversation_reset"

_OPENINGS: Final = 4
"""How many of the first things said count as the opening."""

_FAR: Final = 8
"""So many steps at least lie between the opening and its return."""

_COMPARED: Final = 4000
_SHORTEST: Final = 60
_ALIKE: Final = 85.0
_RELATED: Final = 60.0
_TEMPLATE: Final = 3
"""An opening that comes back more often is a prompt that the harness repeats."""

_CODE: Final = re.compile(r"#?\b(?=\w*\d)[\w-]{2,}|\b[A-Z][A-Z0-9]{4,}\b")
"""Numbers and codes that name a thing: ``#W2378156``, ``IFOYYZ``."""

_FIRST_CALLS: Final = 4
_GREETING: Final = any_of(
    r"\A\W*(?:hi|hello|hey|good (?:morning|day|afternoon|evening)|welcome)"
    r"[^\n]*(?:I'm|I am|how (?:can|may)|help|assist\w*)"
)


def find(walk: Walk) -> Iterator[Finding]:
    """Suggest each place at which the opening returns and the first steps are taken anew."""
    taken: list[int] = []
    for opening in _openings(walk):
        returns = _returns(walk, opening)
        if len(returns) > _TEMPLATE:
            continue
        for step, similarity in returns:
            if _near(taken, step.index):
                continue
            finding = _reset(walk, opening, step, similarity)
            if finding is not None:
                taken.append(step.index)
                yield finding
    yield from _first_calls_again(walk, taken)


def _near(taken: Sequence[int], index: int) -> bool:
    return any(abs(index - other) < _FAR for other in taken)


def _openings(walk: Walk) -> list[Step]:
    said = [
        s for s in walk.steps if s.is_speech and len(s.own_text) >= _SHORTEST and not is_output(s)
    ]
    # Who speaks first leads; what others say depends on what they are asked.
    return [
        s
        for s in said[:_OPENINGS]
        if s.span.agent == said[0].span.agent and s.index <= said[0].index + 2 * _OPENINGS
    ]


def _returns(walk: Walk, opening: Step) -> list[tuple[Step, float]]:
    """Later steps of the same agent that say what the opening said, with their similarity."""
    from rapidfuzz import fuzz

    words = opening.own_text[:_COMPARED]
    greets = _GREETING.search(words) is not None
    returns = []
    for step in walk.steps[opening.index + _FAR :]:
        if not step.is_speech or step.span.agent != opening.span.agent:
            continue
        again = step.own_text[:_COMPARED]
        if greets and _GREETING.search(again):
            returns.append((step, 100.0))
        elif similarity := fuzz.ratio(words, again, score_cutoff=_RELATED):
            # Another order, flight or code number makes other work of the same words.
            if similarity < 100 and set(_CODE.findall(words)) != set(_CODE.findall(again)):
                continue
            returns.append((step, similarity))
    return returns


def _reset(walk: Walk, opening: Step, again: Step, similarity: float) -> Finding | None:
    """The finding, if the work follows the opening once more and does not just mention it."""
    now = _calls_from(walk, again.index)
    repeated = _repeated(_calls_from(walk, opening.index), now)
    if similarity < _ALIKE:
        if repeated < 2:
            return None
    elif not repeated and (now or not _goes_the_same_way(walk, opening, again)):
        return None
    quote = again.first_sentence()
    if quote is None:
        return None
    what = (
        f"{repeated} of the first calls after it are made again"
        if repeated
        else "the conversation goes the same way from there"
    )
    return walk.finding(
        MODE,
        (again.index, now[-1].last_index if repeated else again.index),
        quote,
        f"{again.number} says again what {opening.number} said at the beginning "
        f"({similarity:.0f} % alike), and {what}.",
        min(0.85, 0.45 + 0.1 * repeated + (similarity - _RELATED) / 200),
    )


def _calls_from(walk: Walk, index: int) -> list[Call]:
    return walk.calls_between(index, len(walk.steps))[:_FIRST_CALLS]


def _repeated(then: Sequence[Call], now: Sequence[Call]) -> int:
    """How many of the calls now were among those then."""
    known = {(call.tool, call.command) for call in then}
    return sum((call.tool, call.command) in known for call in now)


def _goes_the_same_way(walk: Walk, opening: Step, again: Step) -> bool:
    """Whether the next thing said after the return is like that after the opening."""
    from rapidfuzz import fuzz

    then = next((s for s in walk.steps[opening.index + 1 :] if s.is_speech), None)
    now = next((s for s in walk.steps[again.index + 1 :] if s.is_speech), None)
    if then is None or now is None:
        return False
    return fuzz.ratio(then.own_text[:_COMPARED], now.own_text[:_COMPARED]) >= _RELATED


def _first_calls_again(walk: Walk, taken: Sequence[int]) -> Iterator[Finding]:
    """The first calls of the run, made again one after the other in the same order."""
    calls = walk.calls_between(-1, len(walk.steps))
    first = [(call.tool, call.command) for call in calls[:3]]
    if len(set(first)) < 3:
        return
    for place in range(_FIRST_CALLS, len(calls) - 2):
        now = calls[place : place + 3]
        same = [(call.tool, call.command) for call in now] == first
        if same and not _near(taken, now[0].index):
            yield walk.finding(
                MODE,
                (now[0].index, now[-1].last_index),
                now[0].quote(),
                f"{now[0].step.number} to {now[-1].step.number} are the run's first calls, "
                f"{calls[0].step.number} to {calls[2].step.number}, again in the same order.",
                0.7,
            )
            return
