"""2.1 Conversation reset: the opening is repeated later, and the work starts over."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from mast_tui.judges.rules.phrases import any_of
from mast_tui.judges.rules.steps import RuleStep
from mast_tui.judges.rules.walk import Call, Walk, is_output
from mast_tui.labels import Finding

MODE: Final = "conversation_reset"

_OPENINGS: Final = 4
"""The number of first messages that count as the opening."""

_LEAST_DISTANCE: Final = 8
"""The fewest steps between the opening and its return, or between two suggestions."""

_COMPARED_CHARS: Final = 4000
_SHORTEST_OPENING: Final = 60
_SAME_OPENING: Final = 85.0
_SIMILAR_OPENING: Final = 60.0
_MOST_RETURNS: Final = 3
"""The most returns of an opening; an opening with more is a prompt that the harness repeats."""

_CODE: Final = re.compile(r"#?\b(?=\w*\d)[\w-]{2,}|\b[A-Z][A-Z0-9]{4,}\b")
"""Numbers and codes that identify something: ``#W2378156``, ``IFOYYZ``."""

_FIRST_CALLS: Final = 4
"""The number of calls after an opening that are compared."""

_REPEATED_CALLS: Final = 3
"""The number of first calls of a run whose repetition is a reset by itself."""

_GREETING: Final = any_of(
    r"\A\W*(?:hi|hello|hey|good (?:morning|day|afternoon|evening)|welcome)"
    r"[^\n]*(?:I'm|I am|how (?:can|may)|help|assist\w*)"
)


def find(walk: Walk) -> Iterator[Finding]:
    """Yield a finding on each return of the opening after which the first steps are repeated."""
    suggested_indices: list[int] = []
    for opening in _opening_messages(walk):
        returns = _find_returns(walk, opening)
        if len(returns) > _MOST_RETURNS:
            continue
        for step, similarity in returns:
            if _is_near_suggestion(suggested_indices, step.index):
                continue
            finding = _reset_finding(walk, opening, step, similarity)
            if finding is not None:
                suggested_indices.append(step.index)
                yield finding
    yield from _repeated_first_calls(walk, suggested_indices)


def _is_near_suggestion(suggested_indices: Sequence[int], index: int) -> bool:
    return any(abs(index - other) < _LEAST_DISTANCE for other in suggested_indices)


def _opening_messages(walk: Walk) -> list[RuleStep]:
    """Return the first messages of the agent that speaks first, without short messages."""
    messages = [
        step
        for step in walk.steps
        if step.is_speech and len(step.own_text) >= _SHORTEST_OPENING and not is_output(step)
    ]
    # The first agent to speak leads; the messages of other agents depend on its requests.
    return [
        step
        for step in messages[:_OPENINGS]
        if step.span.agent == messages[0].span.agent
        and step.index <= messages[0].index + 2 * _OPENINGS
    ]


def _find_returns(walk: Walk, opening: RuleStep) -> list[tuple[RuleStep, float]]:
    """Return later steps of the agent that are similar to the opening, with their similarity.

    The similarity is from 0 to 100. Two greetings have the similarity 100.
    """
    from rapidfuzz import fuzz

    text = opening.own_text[:_COMPARED_CHARS]
    is_greeting = _GREETING.search(text) is not None
    returns = []
    for step in walk.steps[opening.index + _LEAST_DISTANCE :]:
        if not step.is_speech or step.span.agent != opening.span.agent:
            continue
        later_text = step.own_text[:_COMPARED_CHARS]
        if is_greeting and _GREETING.search(later_text):
            returns.append((step, 100.0))
            continue
        similarity = fuzz.ratio(text, later_text, score_cutoff=_SIMILAR_OPENING)
        if not similarity:
            continue
        # With another order, flight or code number, the same words are other work.
        if similarity == 100 or set(_CODE.findall(text)) == set(_CODE.findall(later_text)):
            returns.append((step, similarity))
    return returns


def _reset_finding(
    walk: Walk, opening: RuleStep, later: RuleStep, similarity: float
) -> Finding | None:
    """Return the finding if the work after the opening is repeated too, otherwise None.

    - After a similar opening, two calls must be repeated.
    - After the same opening, one call is enough, or a similar next message if no call follows.
    """
    later_calls = _calls_from(walk, later.index)
    repeated_count = _repeated_call_count(_calls_from(walk, opening.index), later_calls)
    if similarity < _SAME_OPENING:
        if repeated_count < 2:
            return None
    elif not repeated_count and (later_calls or not _continues_alike(walk, opening, later)):
        return None
    quote = later.first_sentence()
    if quote is None:
        return None
    if repeated_count:
        verb = "is" if repeated_count == 1 else "are"
        consequence = f"{repeated_count} of the first calls after it {verb} repeated too"
    else:
        consequence = "the conversation goes the same way from there"
    return walk.finding(
        MODE,
        (later.index, later_calls[-1].last_index if repeated_count else later.index),
        quote,
        f"{later.number} repeats the opening {opening.number} ({similarity:.0f} % alike), "
        f"and {consequence}.",
        min(0.85, 0.45 + 0.1 * repeated_count + (similarity - _SIMILAR_OPENING) / 200),
    )


def _calls_from(walk: Walk, index: int) -> list[Call]:
    return walk.calls_between(index, len(walk.steps))[:_FIRST_CALLS]


def _repeated_call_count(calls: Sequence[Call], later_calls: Sequence[Call]) -> int:
    """Count the later calls that are among the earlier calls."""
    earlier_calls = {(call.tool, call.command) for call in calls}
    return sum((call.tool, call.command) in earlier_calls for call in later_calls)


def _continues_alike(walk: Walk, opening: RuleStep, later: RuleStep) -> bool:
    """Check whether the messages after the opening and after its return are similar."""
    from rapidfuzz import fuzz

    next_step = next((step for step in walk.steps[opening.index + 1 :] if step.is_speech), None)
    later_next_step = next((step for step in walk.steps[later.index + 1 :] if step.is_speech), None)
    if next_step is None or later_next_step is None:
        return False
    next_text = next_step.own_text[:_COMPARED_CHARS]
    later_next_text = later_next_step.own_text[:_COMPARED_CHARS]
    return fuzz.ratio(next_text, later_next_text) >= _SIMILAR_OPENING


def _repeated_first_calls(walk: Walk, suggested_indices: Sequence[int]) -> Iterator[Finding]:
    """Yield a finding on the first repetition of the run's first calls in the same order.

    First calls that are all the same do not count.
    """
    calls = walk.calls_between(-1, len(walk.steps))
    first_calls = [(call.tool, call.command) for call in calls[:_REPEATED_CALLS]]
    if len(set(first_calls)) < _REPEATED_CALLS:
        return
    for start in range(_FIRST_CALLS, len(calls) - _REPEATED_CALLS + 1):
        later_calls = calls[start : start + _REPEATED_CALLS]
        first_later = later_calls[0]
        last_later = later_calls[-1]
        is_same = [(call.tool, call.command) for call in later_calls] == first_calls
        if is_same and not _is_near_suggestion(suggested_indices, first_later.index):
            yield walk.finding(
                MODE,
                (first_later.index, last_later.last_index),
                first_later.quote(),
                f"{first_later.step.number} to {last_later.step.number} are the run's first calls, "
                f"{calls[0].step.number} to {calls[_REPEATED_CALLS - 1].step.number}, again in "
                "the same order.",
                0.7,
            )
            return
