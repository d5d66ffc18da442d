"""1.5 Unaware of termination conditions, and 3.1 Premature termination: too late and too early."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from mast_tui.judges.rules import speech
from mast_tui.judges.rules.phrases import any_of
from mast_tui.judges.rules.speech import WORKING_VERBS, announcements
from mast_tui.judges.rules.steps import Quote, Step
from mast_tui.judges.rules.walk import Walk
from mast_tui.labels import Finding
from mast_tui.traces.model import SpanKind

TOO_LATE: Final = "unaware_of_termination_conditions"
TOO_EARLY: Final = "premature_termination"

_COUNTED: Final = (
    "(?:turns?|steps?|iterations?|rounds?|messages?|tokens?|interactions?|(?:tool )?calls?|time)"
)
_USED_UP: Final = "(?:reached|exceeded|exhausted|hit|used up|run out)"
_LIMIT: Final = any_of(
    rf"max(?:imum)?(?: number of| of)? ?(?:\d+ )?{_COUNTED}(?:[^\n]{{0,30}}) {_USED_UP}",
    rf"{_COUNTED}[ -](?:limit|budget|cap)(?:[^\n]{{0,40}}) {_USED_UP}",
    rf"(?:limit|budget) (?:of|for) (?:this|the) (?:run|session|conversation|task)(?:[^\n]{{0,30}})"
    rf" {_USED_UP}",
    rf"(?:reached|exceeded|exhausted|hit|ran out of|ran into)(?:[^\n]{{0,30}})"
    rf"(?:max(?:imum)?|limit|budget)(?:[^\n]{{0,20}}) {_COUNTED}",
    rf"(?:reached|exceeded|hit)(?:[^\n]{{0,20}}) {_COUNTED}[ -](?:limit|budget)",
    r"max_(?:turns|steps|iterations|rounds)(?:[^\n]{0,20})",
    r"context_length_exceeded|budget[_ ]limited|budget[_ ]exhausted",
)
_POLICY: Final = any_of(
    r"polic(?:y|ies)|guidelines?|terms|(?:not )?(?:allowed|permitted|eligible|authori[sz]ed)"
    r"|non-?refundable|restrictions?|per our|rules?|human agent|transferred",
    hint=r"polic|guideline|terms|allow|permit|eligible|authori|refundable|restriction|per\s+our|rule"
    r"|human|transfer",
)
_HANDED_OVER: Final = re.compile(r"transfer|escalat|hand_?o(?:ff|ver)", re.IGNORECASE)
_LAST_STEPS: Final = 6
_LAST_WORDS: Final = 400
"""In a tool's result only its end can be the harness speaking."""


def find_limit(walk: Walk) -> Iterator[Finding]:
    """Suggest a limit that ends the run while it is at work."""
    for step in walk.steps[-_LAST_STEPS:]:
        quote = _limit_in(step)
        if quote is None:
            continue
        said = [s for s in walk.steps[: step.index] if s.is_message][-3:]
        if any(speech.claims_success(s) for s in said):
            return
        yield walk.finding(
            TOO_LATE,
            (said[-1].index if said else step.index, step.index),
            quote,
            f"{step.number}: a limit ends the run while it is still at work; "
            "nothing before says that it is finished.",
            0.7,
        )
        return


def _limit_in(step: Step) -> Quote | None:
    quote = step.find_last(_LIMIT)
    if quote is None or step.span.kind is SpanKind.TOOL_CALL:
        return None
    of_tool = step.span.kind is SpanKind.TOOL_RESULT
    return None if of_tool and quote.end < step.length - _LAST_WORDS else quote


def find_early_end(walk: Walk) -> Iterator[Finding]:
    """Suggest an end whose own words say that the goal is not met."""
    final = _last_word(walk)
    if final is None or speech.claims_success(final) is not None or _refuses(walk, final):
        return
    told = _unmet(final)
    if told is not None:
        quote, why = told
        yield walk.finding(
            TOO_EARLY, (final.index, final.index), quote, f"{final.number}: {why}", 0.65
        )


def _refuses(walk: Walk, final: Step) -> bool:
    """Whether the run ends as a rule wants it: by a policy, or with somebody else taking over."""
    if _POLICY.search(final.own_text):
        return True
    return any(_HANDED_OVER.search(call.tool) for call in walk.calls[-2:])


def _last_word(walk: Walk) -> Step | None:
    """The last step in which an agent tells something, if no other work comes after it."""
    told = [s for s in walk.steps if s.is_message or (s.sentences and not s.is_speech)]
    if not told or walk.calls_between(told[-1].index, len(walk.steps)):
        return None
    return told[-1]


def _unmet(final: Step) -> tuple[Quote, str] | None:
    """What in the final message shows that the goal was not reached, and why that shows it."""
    if (quote := speech.gives_up(final)) is not None:
        return quote, "the run ends with the agent giving up."
    if (quote := speech.leaves_open(final)) is not None:
        return quote, "the run ends here, and the message itself says that the goal is not met."
    plans = [a for a in announcements(final) if a.verb in WORKING_VERBS and not a.refused]
    if final.is_message and plans and plans[-1].quote.end >= final.length - 40:
        return plans[-1].quote, "a next step is announced, and the run ends without it."
    return None
