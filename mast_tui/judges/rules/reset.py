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

_FAR: Final = 8
"""The fewest steps between the opening and its return."""

_COMPARED: Final = 4000
_SHORTEST: Final = 60
_ALIKE: Final = 85.0
_RELATED: Final = 60.0
_TEMPLATE: Final = 3
"""The most returns of an opening; one with more is a prompt that the harness repeats."""

_CODE: Final = re.compile(r"#?\b(?=\w*\d)[\w-]{2,}|\b[A-Z][A-Z0-9]{4,}\b")
"""Numbers and codes that identify something: ``#W2378156``, ``IFOYYZ``."""

_FIRST_CALLS: Final = 4
_GREETING: Final = any_of(
    r"\A\W*(?:hi|hello|hey|good (?:morning|day|afternoon|evening)|welcome)"
    r"[^\n]*(?:I'm|I am|how (?:can|may)|help|assist\w*)"
)


def find(walk: Walk) -> Iterator[Finding]:
    """Suggest each return of the opening after which the first steps are repeated."""
    suggested: list[int] = []
    for opening in _openings(walk):
        returns = _returns(walk, opening)
        if len(returns) > _TEMPLATE:
            continue
        for step, similarity in returns:
            if _near(suggested, step.index):
                continue
            finding = _reset(walk, opening, step, similarity)
            if finding is not None:
                suggested.append(step.index)
                yield finding
    yield from _repeated_first_calls(walk, suggested)


def _near(suggested: Sequence[int], index: int) -> bool:
    return any(abs(index - other) < _FAR for other in suggested)


def _openings(walk: Walk) -> list[RuleStep]:
    messages = [
        step
        for step in walk.steps
        if step.is_speech and len(step.own_text) >= _SHORTEST and not is_output(step)
    ]
    # The first agent to speak leads; what others say depends on its requests.
    return [
        step
        for step in messages[:_OPENINGS]
        if step.span.agent == messages[0].span.agent
        and step.index <= messages[0].index + 2 * _OPENINGS
    ]


def _returns(walk: Walk, opening: RuleStep) -> list[tuple[RuleStep, float]]:
    """Return later steps of the agent that are similar to the opening, with their similarity."""
    from rapidfuzz import fuzz

    text = opening.own_text[:_COMPARED]
    greets = _GREETING.search(text) is not None
    returns = []
    for step in walk.steps[opening.index + _FAR :]:
        if not step.is_speech or step.span.agent != opening.span.agent:
            continue
        later_text = step.own_text[:_COMPARED]
        if greets and _GREETING.search(later_text):
            returns.append((step, 100.0))
        elif similarity := fuzz.ratio(text, later_text, score_cutoff=_RELATED):
            # With another order, flight or code number, the same words are other work.
            if similarity < 100 and set(_CODE.findall(text)) != set(_CODE.findall(later_text)):
                continue
            returns.append((step, similarity))
    return returns


def _reset(walk: Walk, opening: RuleStep, later: RuleStep, similarity: float) -> Finding | None:
    """Return the finding if the work after the opening is repeated too, else None."""
    later_calls = _calls_from(walk, later.index)
    repeated = _count_repeated(_calls_from(walk, opening.index), later_calls)
    if similarity < _ALIKE:
        if repeated < 2:
            return None
    elif not repeated and (later_calls or not _continues_alike(walk, opening, later)):
        return None
    quote = later.first_sentence()
    if quote is None:
        return None
    if repeated:
        verb = "is" if repeated == 1 else "are"
        consequence = f"{repeated} of the first calls after it {verb} made again"
    else:
        consequence = "the conversation goes the same way from there"
    return walk.finding(
        MODE,
        (later.index, later_calls[-1].last_index if repeated else later.index),
        quote,
        f"{later.number} says again what {opening.number} said at the beginning "
        f"({similarity:.0f} % alike), and {consequence}.",
        min(0.85, 0.45 + 0.1 * repeated + (similarity - _RELATED) / 200),
    )


def _calls_from(walk: Walk, index: int) -> list[Call]:
    return walk.calls_between(index, len(walk.steps))[:_FIRST_CALLS]


def _count_repeated(calls: Sequence[Call], later_calls: Sequence[Call]) -> int:
    """Count the later calls that are among the earlier ones."""
    made = {(call.tool, call.command) for call in calls}
    return sum((call.tool, call.command) in made for call in later_calls)


def _continues_alike(walk: Walk, opening: RuleStep, later: RuleStep) -> bool:
    """Check whether the messages after the opening and after its return are similar."""
    from rapidfuzz import fuzz

    following = next((step for step in walk.steps[opening.index + 1 :] if step.is_speech), None)
    later_following = next((step for step in walk.steps[later.index + 1 :] if step.is_speech), None)
    if following is None or later_following is None:
        return False
    texts = (following.own_text[:_COMPARED], later_following.own_text[:_COMPARED])
    return fuzz.ratio(*texts) >= _RELATED


def _repeated_first_calls(walk: Walk, suggested: Sequence[int]) -> Iterator[Finding]:
    """Suggest the first repetition of the first three calls of the run, in the same order."""
    calls = walk.calls_between(-1, len(walk.steps))
    first = [(call.tool, call.command) for call in calls[:3]]
    if len(set(first)) < 3:
        return
    for start in range(_FIRST_CALLS, len(calls) - 2):
        later = calls[start : start + 3]
        is_same = [(call.tool, call.command) for call in later] == first
        if is_same and not _near(suggested, later[0].index):
            yield walk.finding(
                MODE,
                (later[0].index, later[-1].last_index),
                later[0].quote(),
                f"{later[0].step.number} to {later[-1].step.number} are the run's first calls, "
                f"{calls[0].step.number} to {calls[2].step.number}, again in the same order.",
                0.7,
            )
            return
