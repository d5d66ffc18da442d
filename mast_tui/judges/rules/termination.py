"""1.5 Unaware of termination conditions, and 3.1 Premature termination."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from mast_tui.judges.rules import speech
from mast_tui.judges.rules.effects import name_words
from mast_tui.judges.rules.phrases import any_of
from mast_tui.judges.rules.speech import WORKING_VERBS, announcements
from mast_tui.judges.rules.steps import Quote, RuleStep
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
_PLAN_WORDS: Final = frozenset({"plan", "todo", "todos"})
_STATE_FIELD: Final = re.compile(r"\"(?:status|state)\"\s*:\s*\"(\w+)\"")
_STATES_DONE: Final = frozenset(
    {"completed", "complete", "done", "cancelled", "canceled", "skipped"}
)
_HANDED_OVER: Final = re.compile(r"transfer|escalat|hand_?o(?:ff|ver)", re.IGNORECASE)
_LAST_STEPS: Final = 6
_MESSAGE_END: Final = 40
"""The characters at the end of a message in which an announcement is its last statement."""

_RESULT_END: Final = 400
"""The characters at the end of a tool result in which the harness may have added a message."""


def find_limit(walk: Walk) -> Iterator[Finding]:
    """Yield a finding on a limit that ends the run.

    A run does not count if one of its last messages before the limit claims success.
    """
    for step in walk.steps[-_LAST_STEPS:]:
        quote = _limit_quote(step)
        if quote is None:
            continue
        messages = [other for other in walk.steps[: step.index] if other.is_message][-3:]
        if any(speech.claims_success(message) for message in messages):
            return
        yield walk.finding(
            TOO_LATE,
            (messages[-1].index if messages else step.index, step.index),
            quote,
            f"{step.number}: a limit ends the run while it is still at work; "
            "nothing before says that it is finished.",
            0.7,
        )
        return


def _limit_quote(step: RuleStep) -> Quote | None:
    """Return the words by which a step says that a limit was reached; None if it does not.

    In the result of a tool, only words at the end count.
    """
    quote = step.find_last(_LIMIT)
    if quote is None or step.span.kind is SpanKind.TOOL_CALL:
        return None
    is_result = step.span.kind is SpanKind.TOOL_RESULT
    if is_result and quote.end < step.length - _RESULT_END:
        return None
    return quote


def find_open_plan(walk: Walk) -> Iterator[Finding]:
    """Yield a finding on the last message if the plan has more open steps than calls after it.

    Agents often do not update their plan, but every step takes a call.
    """
    plans = [call for call in walk.calls if _PLAN_WORDS & set(name_words(call.tool))]
    final = next((step for step in reversed(walk.steps) if step.is_message), None)
    if not plans or final is None or final.index < plans[-1].index:
        return
    plan = plans[-1].step
    states = _STATE_FIELD.findall(walk.text_of(plan.index))
    open_count = sum(state.lower() not in _STATES_DONE for state in states)
    later_calls = walk.calls_between(plan.index, final.index)
    # A question to the user does not end the work.
    if open_count > len(later_calls) and not final.own_text.rstrip().endswith("?"):
        yield walk.finding(
            TOO_EARLY,
            (plan.index, final.index),
            final.first_sentence() or final.quote(0, final.length),
            f"{final.number} ends the run, and {open_count} of {len(states)} steps of the plan in "
            f"{plan.number} are not done.",
            0.7,
        )


def find_early_end(walk: Walk) -> Iterator[Finding]:
    """Yield a finding on the last message if it says that the goal is not met."""
    final = _last_message(walk)
    if final is None or speech.claims_success(final) is not None or _is_handed_over(walk, final):
        return
    quote_and_reason = _unmet_goal_quote(final)
    if quote_and_reason is not None:
        quote, reason = quote_and_reason
        yield walk.finding(
            TOO_EARLY, (final.index, final.index), quote, f"{final.number}: {reason}", 0.65
        )


def _is_handed_over(walk: Walk, final: RuleStep) -> bool:
    """Check whether the run ends by a policy, or hands over to someone else."""
    if _POLICY.search(final.own_text):
        return True
    return any(_HANDED_OVER.search(call.tool) for call in walk.calls[-2:])


def _last_message(walk: Walk) -> RuleStep | None:
    """Return the last message or commented call of an agent, if no call follows it."""
    messages = [
        step for step in walk.steps if step.is_message or (step.sentences and not step.is_speech)
    ]
    if not messages or walk.calls_between(messages[-1].index, len(walk.steps)):
        return None
    return messages[-1]


def _unmet_goal_quote(final: RuleStep) -> tuple[Quote, str] | None:
    """Return a quote of the last message that shows an unmet goal, and a sentence about it.

    Return None if the message does not show that the goal is unmet.
    """
    quote = speech.gives_up(final)
    if quote is not None:
        return quote, "the run ends with the agent giving up."
    quote = speech.leaves_open(final)
    if quote is not None:
        return quote, "the run ends here, and the message itself says that the goal is not met."
    planned_steps = [
        announced
        for announced in announcements(final)
        if announced.verb in WORKING_VERBS and not announced.refused
    ]
    if final.is_message and planned_steps:
        quote = planned_steps[-1].quote
        # A plan earlier in the message may be carried out in its rest.
        if quote.end >= final.length - _MESSAGE_END:
            return quote, "a next step is announced, and the run ends without it."
    return None
