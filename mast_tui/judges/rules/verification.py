"""3.2 No or incomplete verification, and 3.3 Incorrect verification: success without its proof."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from mast_tui.judges.protocol import Finding
from mast_tui.judges.rules import speech
from mast_tui.judges.rules.effects import Effect, name_words
from mast_tui.judges.rules.readings import contradicts
from mast_tui.judges.rules.steps import Quote, Step
from mast_tui.judges.rules.walk import Call, Walk, answer_of
from mast_tui.traces.model import Role, SpanKind

LEFT_OUT: Final = "no_or_incomplete_verification"
FAILING: Final = "incorrect_verification"

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
_NAME: Final = re.compile(r"[A-Za-z][\w.-]{3,}")
_STATE: Final = re.compile(r"\s*[\[{]")
_LONG_STATE: Final = 80
_NOTE_FILE: Final = re.compile(r"(?:>>?|\btee(?:\s+-a)?)\s*['\"]?[\w./-]+\.(?:md|txt|log)\b")
_NOTE_WORDS: Final = frozenset(
    {"note", "notes", "comment", "timeline", "report", "journal", "summary"}
)


def find(walk: Walk) -> Iterator[Finding]:
    """Suggest each claim of success that no check, or a failing check, stands behind."""
    for claim, quote in _claims(walk):
        before = [c for c in walk.calls_between(-1, claim.index) if not _takes_notes(c)]
        change = next((c for c in reversed(before) if c.changed), None)
        if change is None:
            continue
        after = [c for c in before if c.index > change.index]
        if not after:
            if not _tells_its_effect(change):
                yield _unchecked(walk, change, claim, quote)
            continue
        checks = [c for c in after if c.effect is Effect.READS and c.result is not None]
        found = _contradiction(change, checks[-1], claim) if checks else None
        if found is not None:
            yield _contradicted(walk, checks[-1], claim, quote, found)


def _claims(walk: Walk) -> Iterator[tuple[Step, Quote]]:
    """Messages that call the work finished, or claim success where the run ends or hands back."""
    for step in walk.steps:
        quote = speech.claims_success(step) if step.tells else None
        if quote is None or speech.leaves_open(step) is not None:
            continue
        if _hands_back(walk, step) or speech.says_finished(step) is not None:
            yield step, quote


def _hands_back(walk: Walk, step: Step) -> bool:
    rest = walk.steps[step.index + 1 :]
    following = next((s for s in rest if s.span.kind is not SpanKind.LOG), None)
    return following is None or following.span.role is Role.USER


def _takes_notes(call: Call) -> bool:
    """Whether a call only writes down what was done, in a text file or by a note-taking tool."""
    if _NOTE_WORDS & set(name_words(call.tool)):
        return True
    return call.effect is Effect.CHANGES and _NOTE_FILE.search(call.command) is not None


def _tells_its_effect(change: Call) -> bool:
    """Whether the call looks after itself, or answers with the state that it has made."""
    if change.checks_itself:
        return True
    answer = answer_of(change.result) if change.result is not None else ""
    return _STATE.match(answer) is not None and len(answer) > _LONG_STATE


def _unchecked(walk: Walk, change: Call, claim: Step, quote: Quote) -> Finding:
    return walk.finding(
        LEFT_OUT,
        (change.index, claim.index),
        quote,
        f"{claim.number} claims success; the last change is {change.step.number}, and nothing "
        "was looked at after it.",
        0.75,
    )


def _contradiction(change: Call, check: Call, claim: Step) -> Quote | None:
    """What in the check's result speaks against the claim, if it is about what was changed."""
    result = check.result
    if result is None or not _share_a_name(change, check):
        return None
    for at, piece in result.pieces():
        for match in _PROBLEM.finditer(piece):
            if not _NO_PROBLEM.search(match[0]):
                return result.quote(at + match.start(), at + match.end())
    return contradicts(check.command, result, claim.said)


def _share_a_name(change: Call, check: Call) -> bool:
    if change.tool != check.tool:
        return True
    return bool(set(_NAME.findall(change.command)) & set(_NAME.findall(check.command)))


def _contradicted(walk: Walk, check: Call, claim: Step, quote: Quote, found: Quote) -> Finding:
    return walk.finding(
        FAILING,
        (check.index, claim.index),
        found,
        f"{claim.number} claims success (“{quote.text[:80]}”), but the last check, "
        f"{check.step.number}, still shows the problem.",
        0.7,
    )
