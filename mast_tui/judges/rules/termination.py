"""1.5 Unaware of termination conditions, and 3.1 Premature termination: too late and too early."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from mast_tui.judges.rules import speech
from mast_tui.judges.rules.phrases import any_of
from mast_tui.judges.rules.speech import WORKING_VERBS, announcements
from mast_tui.judges.rules.steps import Quote, Step
from mast_tui.judges.rules.walk import Walk, is_output
from mast_tui.labels import Finding
from mast_tui.traces.model import Role, SpanKind

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

_CROWD: Final = 3
"""From so many agents on, one that calls its part finished need not mean the whole."""

_MORE_CALLS: Final = 3
_MORE_WORDS: Final = 2
_MORE_SMALL_TALK: Final = 6
_LONG: Final = 160

_NO_REQUEST: Final = re.compile(
    r"\s*(?:continue|go\s+on|keep\s+going|please\s+(?:continue|keep)|proceed|thanks?|thank\s+you"
    r"|ok(?:ay)?\b|<|\Z)",
    re.IGNORECASE,
)


def find_after_done(walk: Walk) -> Iterator[Finding]:
    """Suggest where work goes on after it was declared finished."""
    crowd = len({step.span.agent for step in walk.steps if step.tells}) >= _CROWD
    requests = _next_requests(walk)
    for step in walk.steps:
        quote = speech.says_finished(step) if step.tells else None
        if quote is None:
            continue
        until = requests[step.index]
        if crowd and until - step.index > step.index:
            continue  # more than half of the run follows: one of many closed its own part
        # One word that ends the run by its own rules ends it for all.
        alone = crowd and quote.text != "TERMINATE"
        more = _what_follows(walk, step, until, alone=alone)
        if more is None:
            continue
        what, amount = more
        yield walk.finding(
            TOO_LATE,
            (step.index + 1, until - 1),
            quote,
            f"{step.number} declares the work finished; {what} follow up to "
            f"{walk.steps[until - 1].number} with no new request.",
            min(0.85, 0.5 + 0.04 * amount),
        )
        return


def _next_requests(walk: Walk) -> list[int]:
    """For each step the index of the next one in which a person asks for something."""
    requests: list[int] = []
    request = len(walk.steps)
    for step in reversed(walk.steps):
        requests.append(request)
        asks = step.span.role is Role.USER and not is_output(step)
        if asks and not _NO_REQUEST.match(step.head):
            request = step.index
    return requests[::-1]


def _what_follows(walk: Walk, step: Step, until: int, *, alone: bool) -> tuple[str, int] | None:
    """What work there is between a declaration and the next request, if it is more than a close.

    ``alone``: only what the agent does that made it. Where many speak, one calls its part finished
    and the others go on with theirs.
    """

    def counts(one: Step) -> bool:
        return not alone or one.span.agent == step.span.agent

    calls = [call for call in walk.calls_between(step.index, until) if counts(call.step)]
    if len(calls) >= _MORE_CALLS:
        return f"{len(calls)} more calls", len(calls)
    told = [
        one
        for one in walk.steps[step.index + 1 : until]
        if one.tells and counts(one) and not is_output(one)
    ]
    long = [one for one in told if len(one.said) >= _LONG]
    if len(long) >= _MORE_WORDS or len(told) >= _MORE_SMALL_TALK:
        return f"{len(told)} more messages", len(told)
    return None


def find_limit(walk: Walk) -> Iterator[Finding]:
    """Suggest a limit that ends the run while it is at work."""
    for step in walk.steps[-_LAST_STEPS:]:
        quote = _limit_in(step)
        if quote is None:
            continue
        said = [s for s in walk.steps[: step.index] if s.tells][-3:]
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
    if _POLICY.search(final.said):
        return True
    return any(_HANDED_OVER.search(call.tool) for call in walk.calls[-2:])


def _last_word(walk: Walk) -> Step | None:
    """The last step in which an agent tells something, if no other work comes after it."""
    told = [s for s in walk.steps if s.tells or (s.spoken and not s.says)]
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
    if final.tells and plans and plans[-1].quote.end >= final.length - 40:
        return plans[-1].quote, "a next step is announced, and the run ends without it."
    return None
