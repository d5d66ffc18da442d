"""Rules on the end of a run: modes 1.5, 3.1 and 3.3.

1.5 Unaware of termination conditions, 3.1 Premature termination, and 3.3 Incorrect verification
(success claimed against the last check, or without a check).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from mast_tui.judges.rules import speech
from mast_tui.judges.rules.effects import Effect, name_words
from mast_tui.judges.rules.walk import Call, Quote, RuleStep, Walk
from mast_tui.labels import Finding
from mast_tui.traces.model import Role, SpanKind

UNAWARE_OF_TERMINATION: Final = "unaware_of_termination_conditions"
PREMATURE_TERMINATION: Final = "premature_termination"

_COUNTED: Final = (
    "(?:turns?|steps?|iterations?|rounds?|messages?|tokens?|interactions?|(?:tool )?calls?|time)"
)
_USED_UP: Final = "(?:reached|exceeded|exhausted|hit|used up|run out)"
_LIMIT: Final = speech.any_of(
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
_POLICY: Final = speech.any_of(
    r"polic(?:y|ies)|guidelines?|terms|(?:not )?(?:allowed|permitted|eligible|authori[sz]ed)"
    r"|non-?refundable|restrictions?|per our|rules?|human agent|transferred",
)
_PLAN_WORDS: Final = frozenset({"plan", "todo", "todos"})
_STATE_FIELD: Final = re.compile(r"\"(?:status|state)\"\s*:\s*\"(\w+)\"")
_STATES_DONE: Final = frozenset(
    {"completed", "complete", "done", "cancelled", "canceled", "skipped"}
)
_HANDED_OVER: Final = re.compile(r"transfer|escalat|hand_?o(?:ff|ver)", re.IGNORECASE)
_LAST_STEPS: Final = 6
_MESSAGE_END: Final = 40
"""The characters at the end of a message where an announcement is its last statement."""

_RESULT_END: Final = 400
"""The characters at the end of a tool result where the harness may have added a message."""


def find_limit(walk: Walk) -> Iterator[Finding]:
    """Yield a finding on a limit that ends the run, unless success was claimed shortly before."""
    for step in walk.steps[-_LAST_STEPS:]:
        quote = _limit_quote(step)
        if quote is None:
            continue
        messages = [other for other in walk.steps[: step.index] if other.is_message][-3:]
        if any(speech.claims_success(message) for message in messages):
            return
        yield walk.finding(
            UNAWARE_OF_TERMINATION,
            (messages[-1].index if messages else step.index, step.index),
            quote,
            f"{step.number}: a limit ends the run while it is still at work; "
            "nothing before says that it is finished.",
            0.7,
        )
        return


def _limit_quote(step: RuleStep) -> Quote | None:
    """Return the words of a step that say that a limit was reached, or None."""
    quote = step.find_last(_LIMIT)
    if quote is None or step.span.kind is SpanKind.TOOL_CALL:
        return None
    # The harness adds its message at the end of a result.
    is_result = step.span.kind is SpanKind.TOOL_RESULT
    if is_result and quote.end < step.length - _RESULT_END:
        return None
    return quote


def find_open_plan(walk: Walk) -> Iterator[Finding]:
    """Yield a finding if a run ends while its last plan has more open steps than calls follow it.

    Agents often do not update their plan, but every step takes a call. A call after the last
    message shows that the run has not ended.
    """
    plans = [call for call in walk.calls if _PLAN_WORDS & set(name_words(call.tool))]
    final = walk.last_message
    if (
        not plans
        or final is None
        or final.index < plans[-1].index
        or walk.calls_between(final.index, len(walk.steps))
    ):
        return
    plan = plans[-1].step
    states = _STATE_FIELD.findall(walk.text_of(plan.index))
    open_count = sum(state.lower() not in _STATES_DONE for state in states)
    later_calls = walk.calls_between(plan.index, final.index)
    if open_count > len(later_calls) and not _asks(final):
        yield walk.finding(
            PREMATURE_TERMINATION,
            (plan.index, final.index),
            final.first_sentence() or final.quote(0, final.length),
            f"{final.number} ends the run, and {open_count} of {len(states)} steps of the plan in "
            f"{plan.number} are not done.",
            0.7,
        )


def _asks(final: RuleStep) -> bool:
    """Check whether a message ends with a question to the user, which does not end the work."""
    return final.own_text.rstrip().endswith("?")


def find_early_end(walk: Walk) -> Iterator[Finding]:
    """Yield a finding on the last message if it says that the goal is not met.

    There is none if the message also claims success or ends with a question, or if the run ends by
    a policy or a handover.
    """
    final = _last_message(walk)
    if final is None:
        return
    success_quote = speech.claims_success(final)
    if success_quote is not None or _is_handed_over(walk, final) or _asks(final):
        return
    quote_and_reason = _unmet_goal_quote(final)
    if quote_and_reason is not None:
        quote, reason = quote_and_reason
        yield walk.finding(
            PREMATURE_TERMINATION,
            (final.index, final.index),
            quote,
            f"{final.number}: {reason}",
            0.65,
        )


def _is_handed_over(walk: Walk, final: RuleStep) -> bool:
    """Check whether the run ends by a policy, or hands over to someone else."""
    if _POLICY.search(final.own_text):
        return True
    return any(_HANDED_OVER.search(call.tool) for call in walk.calls[-2:])


def _last_message(walk: Walk) -> RuleStep | None:
    """Return the last message or commented call of an agent; None if a call follows it."""
    # Only calls have sentences without being speech: their comments.
    messages = [
        step for step in walk.steps if step.is_message or (step.sentences and not step.is_speech)
    ]
    if not messages or walk.calls_between(messages[-1].index, len(walk.steps)):
        return None
    return messages[-1]


_UNMET_GOALS: Final = (
    (speech.gives_up, "the run ends with the agent giving up."),
    (
        speech.leaves_open,
        "the run ends here, and the message itself says that the goal is not met.",
    ),
)


def _unmet_goal_quote(final: RuleStep) -> tuple[Quote, str] | None:
    """Return a quote of the last message that shows an unmet goal, and a reason, or None."""
    for quote_of, reason in _UNMET_GOALS:
        quote = quote_of(final)
        if quote is not None:
            return quote, reason
    quote = speech.announces_step(final)
    # A plan earlier in the message may be carried out in the rest of it.
    if final.is_message and quote is not None and quote.end >= final.length - _MESSAGE_END:
        return quote, "a next step is announced, and the run ends without it."
    return None


INCORRECT_VERIFICATION: Final = "incorrect_verification"

_PROBLEM: Final = re.compile(
    r"\b(?:CrashLoopBackOff|ImagePullBackOff|ErrImagePull|OOMKilled|Traceback"
    r"|AssertionError)\b|\b0/[1-9]\d*\s+(?!Completed)\w|\b[1-9]\d* \(\d+[smh]\w* ago\)"
    r"|\b(?:FAILED|FAIL|FATAL|ERROR)\b|\b[Ee]rror:|\b[1-9]\d* (?:failed|failures?|errors?)\b"
    r"|[Cc]onnection refused|[Dd]eadline ?[Ee]xceeded|\btimed out\b|\bunhealthy\b|\bUnavailable\b"
    r"|\bfiring\b|exited with code [1-9]|\binvalid\b|\bmismatch\b|\bnot ready\b"
)
_NO_PROBLEM: Final = re.compile(
    r"\b(?:0|no|zero|without)\s+(?:\w+\s+)?(?:errors?|failures?|failed|fail|invalid|remaining)\b"
    r"|\b(?:errors?|failed|invalid)\s*[:=]\s*(?:0|none|\[\])\b",
    re.IGNORECASE,
)
_KNOWN_PROBLEM: Final = speech.any_of(r"pre-?existing", r"unrelated (?:fail\w*|errors?|tests?)")
_OBJECT_NAME: Final = re.compile(r"[A-Za-z][\w.-]{3,}")
_NOTE_FILE: Final = re.compile(
    r"(?:>>?|\btee(?:\s+-a)?|\"(?:file_)?path\":)\s*['\"]?[\w./-]+\.(?:md|txt|log)\b"
)
_NOTE_WORDS: Final = frozenset(
    {"note", "notes", "comment", "timeline", "report", "journal", "summary"}
)

# Measured values and the bounds of claims, such as 'below 500 ms' and 4608.
_NUMBER: Final = r"\d+(?:\.\d+)?"
_BOUND: Final = speech.any_of(
    rf"(?P<side>below|under|less than|lower than|at most|above|over|more than|at least) "
    rf"(?P<bound>{_NUMBER}) ?(?P<unit>ms|milliseconds?|s|seconds?|%|percent)?"
)
_UPPER_BOUND_WORDS: Final = frozenset({"below", "under", "less than", "lower than", "at most"})
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


class _Claim(NamedTuple):
    """A message that claims success after a change.

    Attributes:
        message: The message.
        quote: The sentence with the claim.
        change: The last change before the message.
        check: The last check between the change and the message, or None.
    """

    message: RuleStep
    quote: Quote
    change: Call
    check: Call | None


def find_failed_check(walk: Walk) -> Iterator[Finding]:
    """Yield a finding on each claim of success that the last check contradicts.

    Only the first claim after a change counts.
    """
    claimed_changes: set[int] = set()
    for message, quote, change, check in _claims(walk):
        if change.index in claimed_changes or _KNOWN_PROBLEM.search(message.own_text):
            continue
        claimed_changes.add(change.index)
        contradiction = None if check is None else _contradicting_quote(change, check, message)
        if check is not None and contradiction is not None:
            yield walk.finding(
                INCORRECT_VERIFICATION,
                (check.index, message.index),
                contradiction,
                f"{message.number} claims success (“{quote.text[:80]}”), but the last check, "
                f"{check.step.number}, still shows the problem.",
                0.7,
            )


def find_unchecked_claim(walk: Walk) -> Iterator[Finding]:
    """Yield a finding on the last claim of success if no check follows the last change."""
    for message, quote, change, check in list(_claims(walk))[-1:]:
        if check is None:
            yield walk.finding(
                INCORRECT_VERIFICATION,
                (change.index, message.index),
                quote,
                f"{message.number} claims success, and nothing was checked after the last change, "
                f"{change.step.number}.",
                0.6,
            )


def _claims(walk: Walk) -> Iterator[_Claim]:
    """Yield claims of success after a change, at the end of a turn or of the whole work.

    A message that also calls the problem unsolved does not count.
    """
    turn_ends = _turn_ends(walk)
    change: Call | None = None
    check: Call | None = None
    for step, call in walk.steps_with_calls():
        if change is not None and step.is_statement and speech.leaves_open(step) is None:
            quote = speech.claims_success(step)
            if quote is not None and (step.index in turn_ends or speech.says_finished(step)):
                yield _Claim(step, quote, change, check)
        if call is None or _only_takes_notes(call):
            continue
        if call.changed and call.effect is not Effect.RECORDS:
            change = call
            check = call if call.effect is Effect.CHANGES_AND_READS else None
        elif call.effect in (Effect.READS, Effect.UNKNOWN) and call.result is not None:
            check = call


def _turn_ends(walk: Walk) -> frozenset[int]:
    """Return the indices of the steps that end a turn: the last, or one before a user's message.

    Logs may follow such a step.
    """
    indices: set[int] = set()
    next_role = Role.USER
    for step in reversed(walk.steps):
        if next_role is Role.USER:
            indices.add(step.index)
        if step.span.kind is not SpanKind.LOG:
            next_role = step.span.role
    return frozenset(indices)


def _only_takes_notes(call: Call) -> bool:
    """Check whether a call only takes notes, in a text file or with a note-taking tool."""
    if _NOTE_WORDS & set(name_words(call.tool)):
        return True
    return call.effect >= Effect.CHANGES and _NOTE_FILE.search(call.command) is not None


def _contradicting_quote(change: Call, check: Call, claim: RuleStep) -> Quote | None:
    """Return the part of a check's result that contradicts a claim of success, or None.

    A check with the same tool as the change counts only if both commands name the same object.
    """
    changed_names = set(_OBJECT_NAME.findall(change.command))
    is_other_object = changed_names.isdisjoint(_OBJECT_NAME.findall(check.command))
    result = check.result
    if result is None or (change.tool == check.tool and is_other_object):
        return None
    for offset, piece in result.pieces():
        for match in _PROBLEM.finditer(piece):
            line_start = piece.rfind("\n", 0, match.start()) + 1
            line_end = match.end() + len(piece[match.end() :].split("\n", 1)[0])
            if not _NO_PROBLEM.search(piece, line_start, line_end):
                return result.quote(offset + line_start, offset + line_end)
    return _wrong_value(check, claim.own_text)


def _wrong_value(check: Call, claim: str) -> Quote | None:
    """Return the last value in a check's result if it is outside the bound of a claim, or None.

    The command must show the unit of the value (``…_milliseconds_…``, ``…_seconds_…``, a ratio).
    """
    bound = _BOUND.search(claim)
    value = _VALUE.search(check.answer or "")
    command_unit = _unit_of_command(check.command)
    if check.result is None or bound is None or value is None or command_unit is None:
        return None
    quantity, factor = command_unit
    claimed_quantity, claimed_factor = _UNITS.get((bound["unit"] or "").lower(), ("", 1.0))
    if claimed_quantity != quantity:
        return None
    measured = float(value["value"]) * factor
    limit = float(bound["bound"]) * claimed_factor
    is_upper_bound = " ".join(bound["side"].lower().split()) in _UPPER_BOUND_WORDS
    is_within_bound = measured <= limit if is_upper_bound else measured >= limit
    if is_within_bound:
        return None
    return check.result.find_last(re.compile(re.escape(value["value"])))


def _unit_of_command(command: str) -> tuple[str, float] | None:
    """Return the quantity in a command and the factor to its base unit, or None."""
    if re.search(r"millis|_ms\b", command):
        return "time", 0.001
    if "seconds" in command:
        return "time", 1.0
    if re.search(r"\)\s*/\s*\w*\(", command):  # a ratio, such as ``sum(a) / sum(b)``
        return "share", 1.0
    return None
