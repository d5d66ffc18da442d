"""3.3 Incorrect verification: success claimed against the last check, or without one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from mast_tui.judges.rules import speech
from mast_tui.judges.rules.effects import Effect, name_words
from mast_tui.judges.rules.phrases import any_of
from mast_tui.judges.rules.steps import Quote, RuleStep
from mast_tui.judges.rules.walk import Call, Walk, answer_of, is_output
from mast_tui.labels import Finding
from mast_tui.traces.model import Role, SpanKind

MODE: Final = "incorrect_verification"

_PROBLEM: Final = re.compile(
    r"[^\n]*(?:\b(?:CrashLoopBackOff|ImagePullBackOff|ErrImagePull|OOMKilled|Traceback"
    r"|AssertionError)\b|\b0/[1-9]\d*\s+(?!Completed)\w|\b[1-9]\d* \(\d+[smh]\w* ago\)"
    r"|\b(?:FAILED|FAIL|FATAL|ERROR)\b|\b[Ee]rror:|\b[1-9]\d* (?:failed|failures?|errors?)\b"
    r"|[Cc]onnection refused|[Dd]eadline ?[Ee]xceeded|\btimed out\b|\bunhealthy\b|\bUnavailable\b"
    r"|\bfiring\b|exited with code [1-9]|\binvalid\b|\bmismatch\b|\bnot ready\b)[^\n]*"
)
_NO_PROBLEM: Final = re.compile(
    r"\b(?:0|no|zero|without)\s+(?:\w+\s+)?(?:errors?|failures?|failed|fail|invalid)\b"
    r"|\b(?:errors?|failed|invalid)\s*[:=]\s*(?:0|none|\[\])\b",
    re.IGNORECASE,
)
_NAME_PATTERN: Final = re.compile(r"[A-Za-z][\w.-]{3,}")
_NOTE_FILE: Final = re.compile(r"(?:>>?|\btee(?:\s+-a)?)\s*['\"]?[\w./-]+\.(?:md|txt|log)\b")
_NOTE_WORDS: Final = frozenset(
    {"note", "notes", "comment", "timeline", "report", "journal", "summary"}
)

# A measured value against the bound that a claim names: 'below 500 ms' when 4608 was read.
_NUMBER: Final = r"\d+(?:\.\d+)?"
_BOUND: Final = any_of(
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


def find(walk: Walk) -> Iterator[Finding]:
    """Yield a finding on each claim of success that the last check contradicts.

    Only a check after the last change counts.
    """
    reported_changes: set[int] = set()
    for claim, quote, change, check in _checked_claims(walk):
        if change is None or change.index in reported_changes:
            continue
        reported_changes.add(change.index)
        contradiction = None if check is None else _contradicting_quote(change, check, claim)
        if check is not None and contradiction is not None:
            yield _contradiction_finding(walk, check, claim, quote, contradiction)


def find_unchecked(walk: Walk) -> Iterator[Finding]:
    """Yield a finding on the last claim of success if no check follows the last change."""
    for claim, quote, change, check in list(_checked_claims(walk))[-1:]:
        if change is not None and check is None:
            yield walk.finding(
                MODE,
                (change.index, claim.index),
                quote,
                f"{claim.number} claims success, and nothing was checked after the last change, "
                f"{change.step.number}.",
                0.6,
            )


def _checked_claims(walk: Walk) -> Iterator[tuple[RuleStep, Quote, Call | None, Call | None]]:
    """Yield each claim of success with its quote, the last change before it, and the last check.

    The check is the last one after the change; None if nothing was checked.
    """
    calls = iter(call for call in walk.calls if call.works and not _only_takes_notes(call))
    call = next(calls, None)
    change: Call | None = None
    check: Call | None = None
    for claim, quote in _success_claims(walk):
        while call is not None and call.index < claim.index:
            if call.changed:
                change = call
                check = None
            elif call.effect is Effect.READS and call.result is not None:
                check = call
            call = next(calls, None)
        yield claim, quote, change, check


def _success_claims(walk: Walk) -> Iterator[tuple[RuleStep, Quote]]:
    """Return the messages that claim success and end a turn or call the work finished.

    Only messages after the first change count, because before it there is nothing to verify. A
    message that also calls the problem unsolved does not count.
    """
    ends_turn = True
    claims: list[tuple[RuleStep, Quote]] = []
    first_change = next((call.index for call in walk.calls if call.changed), len(walk.steps))
    for step in reversed(walk.steps[first_change:]):
        is_message = step.is_message and not is_output(step)
        quote = speech.claims_success(step) if is_message else None
        is_final = ends_turn or (quote is not None and speech.says_finished(step) is not None)
        if quote is not None and is_final and speech.leaves_open(step) is None:
            claims.append((step, quote))
        # The loop goes backwards: the step before a message of the user ends a turn.
        if step.span.kind is not SpanKind.LOG:
            ends_turn = step.span.role is Role.USER
    return reversed(claims)


def _only_takes_notes(call: Call) -> bool:
    """Check whether a call only takes notes, in a text file or by a note-taking tool."""
    if _NOTE_WORDS & set(name_words(call.tool)):
        return True
    return call.effect is Effect.CHANGES and _NOTE_FILE.search(call.command) is not None


def _contradicting_quote(change: Call, check: Call, claim: RuleStep) -> Quote | None:
    """Return the part of a check's result that contradicts a claim; None if no part does.

    A check with the same tool as the change counts only if both commands have a common name.
    """
    result = check.result
    if result is None or not _may_have_same_object(change, check):
        return None
    for offset, piece in result.pieces():
        for match in _PROBLEM.finditer(piece):
            if not _NO_PROBLEM.search(match[0]):
                return result.quote(offset + match.start(), offset + match.end())
    return _wrong_value(check.command, result, claim.own_text)


def _may_have_same_object(change: Call, check: Call) -> bool:
    """Check whether two calls are of different tools, or their commands have a common name."""
    if change.tool != check.tool:
        return True
    return bool(
        set(_NAME_PATTERN.findall(change.command)) & set(_NAME_PATTERN.findall(check.command))
    )


def _contradiction_finding(
    walk: Walk, check: Call, claim: RuleStep, quote: Quote, contradiction: Quote
) -> Finding:
    """Return the finding of a claim that a check contradicts."""
    return walk.finding(
        MODE,
        (check.index, claim.index),
        contradiction,
        f"{claim.number} claims success (“{quote.text[:80]}”), but the last check, "
        f"{check.step.number}, still shows the problem.",
        0.7,
    )


def _wrong_value(command: str, result: RuleStep, claim: str) -> Quote | None:
    """Return the last value in a check's result if it is outside the bound that a claim names.

    Return None if the result does not end in a number, or if the command does not show its unit
    (``…_milliseconds_…``, ``…_seconds_…``, a ratio).
    """
    bound = _BOUND.search(claim)
    value = _VALUE.search(answer_of(result))
    command_unit = _unit_of_command(command)
    if bound is None or value is None or command_unit is None:
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
    return result.find_last(re.compile(re.escape(value["value"])))


def _unit_of_command(command: str) -> tuple[str, float] | None:
    """Return the quantity that a command measures and the factor to its base unit, or None."""
    if re.search(r"millis|_ms\b", command):
        return "time", 0.001
    if "seconds" in command:
        return "time", 1.0
    return ("share", 1.0) if re.search(r"\)\s*/\s*\w*\(", command) else None
