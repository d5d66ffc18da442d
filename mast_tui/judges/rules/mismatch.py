"""2.6 Reasoning-action mismatch: the calls after an announcement do something else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from mast_tui.judges.rules import commands
from mast_tui.judges.rules.effects import Effect, name_words
from mast_tui.judges.rules.speech import (
    CALLING,
    CHANGING,
    LOOKING,
    Announcement,
    announcements,
)
from mast_tui.judges.rules.steps import RuleStep
from mast_tui.judges.rules.walk import Call, Walk
from mast_tui.labels import Finding

MODE: Final = "reasoning_action_mismatch"

_PROGRAMS: Final = frozenset(commands.VERBS) | commands.word_set(
    "promql psql redis-cli valkey-cli curl pytest"
)
_WAYS_TO_LOOK: Final = commands.word_set(
    "python python3 node curl wget http create edit write cat tee echo touch insert install pip"
    " pip3 apt apt-get npm mkdir cp tar unzip wc open"
)
_IN_BACKTICKS: Final = re.compile(r"`([^`\n]{2,200})`")
_WORD: Final = re.compile(r"[A-Za-z][\w-]*[A-Za-z0-9]|[A-Za-z]")
_OBJECT: Final = re.compile(r"(?:/|\bdeployment |\bstatefulset |app=)([a-z][a-z0-9-]{2,})")
_IDENTIFIER: Final = re.compile(r"\"(#?[A-Za-z]{1,3}-?\d{4,}|\d{6,})\"")
_AMOUNT: Final = re.compile(r"(?<![\w.-])\d+(?:\.\d+)?(?:Mi|Gi|Ki|m|%|ms|s|GB|MB)(?![\w-]|\.\d)")
_MOST_NEXT_CALLS: Final = 3
"""The number of calls after an announcement that may carry it out."""

_LAST_ANNOUNCEMENTS: Final = 2
"""The number of last announcements of a step that are checked."""

_Reason: TypeAlias = tuple[str, float]
"""The reason of a mismatch, as a part of a sentence, and the confidence in it."""


def find(walk: Walk) -> Iterator[Finding]:
    """Yield a finding on each announcement whose next calls do something else."""
    tools = {call.tool for call in walk.calls if len(call.tool) > 2}
    objects = _objects_of_changes(walk)
    for step, calls in _calls_by_speech(walk):
        for announced in announcements(step)[-_LAST_ANNOUNCEMENTS:]:
            mismatch = _find_reason(announced, _next_calls(calls), tools, objects)
            if mismatch is not None:
                reason, confidence = mismatch
                yield walk.finding(
                    MODE,
                    (step.index, calls[0].index),
                    announced.quote,
                    f"{step.number} says “{announced.quote.text[:100]}”; {reason}.",
                    confidence,
                )
                break


def _calls_by_speech(walk: Walk) -> Iterator[tuple[RuleStep, list[Call]]]:
    """Yield each message or thought of an agent with the calls before the next message or thought.

    Messages and thoughts without calls are left out.
    """
    call_by_index = {call.index: call for call in walk.calls}
    speech: RuleStep | None = None
    calls: list[Call] = []
    for step in walk.steps:
        call = call_by_index.get(step.index)
        if call is not None and speech is not None and call.works:
            calls.append(call)
        elif step.is_speech:
            if speech is not None and calls:
                yield speech, calls
            speech = step
            calls = []
    if speech is not None and calls:
        yield speech, calls


def _next_calls(calls: Sequence[Call]) -> list[Call]:
    """Return the calls that may carry out an announcement: the first calls, up to a change.

    ``calls`` are the calls after the announcement.
    """
    next_calls: list[Call] = []
    for call in calls[:_MOST_NEXT_CALLS]:
        next_calls.append(call)
        if call.effect is Effect.CHANGES:
            break
    return next_calls


def _objects_of_changes(walk: Walk) -> frozenset[str]:
    """Return the names of the objects that the run changes."""
    names: set[str] = set()
    for call in walk.calls:
        if call.effect is Effect.CHANGES:
            names.update(_OBJECT.findall(call.command))
            names.update(_IDENTIFIER.findall(call.command))
    return frozenset(names)


def _find_reason(
    announced: Announcement, next_calls: Sequence[Call], tools: set[str], objects: frozenset[str]
) -> _Reason | None:
    """Return the reason why the next calls do not match an announcement; None if they do.

    Args:
        announced: The announcement.
        next_calls: The calls that may carry it out.
        tools: The names of the tools of the run.
        objects: The names of the objects that the run changes.
    """
    if announced.refused:
        return _does_what_was_refused(announced, next_calls)
    reason = _calls_another_tool(announced, next_calls, tools)
    if reason is None:
        reason = _changes_instead_of_looking(announced, next_calls[0])
    change = next((call for call in next_calls if call.effect is Effect.CHANGES), None)
    if reason is not None or announced.verb not in CHANGING or change is None:
        return reason
    reason = _changes_another_thing(announced, change, objects)
    if reason is None:
        reason = _changes_by_another_amount(announced, change)
    return reason


def _word_set(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


def _call_words(call: Call) -> set[str]:
    return _word_set(call.command) | {call.tool.lower(), *name_words(call.tool)}


def _does_what_was_refused(announced: Announcement, next_calls: Sequence[Call]) -> _Reason | None:
    """Return the reason if a next call makes the change that the agent said it would not make."""
    for call in next_calls:
        if announced.verb in CHANGING and call.changed and announced.verb in _call_words(call):
            return f"{call.step.number} does just that", 0.75
    return None


def _calls_another_tool(
    announced: Announcement, next_calls: Sequence[Call], tools: set[str]
) -> _Reason | None:
    """Return the reason if a tool or command is announced by name, and no next call uses it."""
    named_calls = _named_calls(announced, tools)
    if not named_calls:
        return None
    for call in next_calls:
        call_words = _call_words(call)
        if any(call_words.issuperset(name) for name in named_calls):
            return None
    names = " or ".join(sorted(" ".join(name) for name in named_calls))
    return f"the next call, {next_calls[0].step.number}, does not use {names}", 0.7


def _named_calls(announced: Announcement, tools: set[str]) -> list[tuple[str, ...]]:
    """Return the calls that an announcement names, each as the words that it must have."""
    named_calls: list[tuple[str, ...]] = []
    for text in _IN_BACKTICKS.findall(announced.about):
        command = text.split() or [""]
        program = command[0].split("(")[0]
        if program in commands.VERBS:
            reading_verbs, changing_verbs = commands.VERBS[program]
            verbs = reading_verbs | changing_verbs
            verb = next((word for word in command[1:] if word in verbs), None)
            named_calls.append((program, verb) if verb else (program,))
        elif program in tools or program in _PROGRAMS:
            named_calls.append((program.lower(),))
    if named_calls or announced.verb not in CALLING:
        return named_calls
    about = announced.about.split(" to ")[0]
    about_words = _word_set(about)
    named_calls = [
        (tool.lower(),)
        for tool in tools
        if tool.lower() in about_words and _names_tool(tool, about)
    ]
    return named_calls + [(program,) for program in sorted(_PROGRAMS & about_words)]


def _names_tool(tool: str, about: str) -> bool:
    """Check whether words mean a tool: 'run this file' does not mean the tool ``file``."""
    if not (tool.isalpha() and tool.islower()):
        return True
    return re.search(rf"\b{tool} (?:tool|command|function|action)\b", about.lower()) is not None


def _changes_instead_of_looking(announced: Announcement, first_call: Call) -> _Reason | None:
    """Return the reason if a look is announced, and the first call makes a change."""
    if announced.verb not in LOOKING or first_call.effect is not Effect.CHANGES:
        return None
    announced_words = _word_set(announced.about)
    call_words = _call_words(first_call)
    # A script or a request may be the way to look, and so may a program that is named.
    if announced_words & CHANGING or call_words & _WAYS_TO_LOOK:
        return None
    if announced_words & call_words & _PROGRAMS:
        return None
    return f"a look is announced, and {first_call.step.number} makes a change", 0.6


def _changes_another_thing(
    announced: Announcement, change: Call, objects: frozenset[str]
) -> _Reason | None:
    """Return the reason and confidence if a change is about none of the announced objects."""
    about_words = set(re.findall(r"[\w#-]+", announced.about.lower()))
    announced_objects = {name for name in objects if name.lower() in about_words}
    changed_objects = {name for name in objects if name in change.command}
    if not announced_objects or not changed_objects or announced_objects & changed_objects:
        return None
    return (
        f"{change.step.number} is about {', '.join(sorted(changed_objects)[:3])} and not about "
        f"{', '.join(sorted(announced_objects)[:3])}",
        0.65,
    )


def _changes_by_another_amount(announced: Announcement, change: Call) -> _Reason | None:
    """Return the reason and confidence if a change sets none of the announced amounts, else None.

    Only amounts in the units of the announced ones count.
    """
    announced_amounts = set(_AMOUNT.findall(announced.about))
    units = {_unit_of(amount) for amount in announced_amounts}
    amounts = {
        amount
        for amount in _AMOUNT.findall(re.sub(r"[=\"':]", " ", change.command))
        if _unit_of(amount) in units
    }
    if not amounts or announced_amounts & amounts:
        return None
    return (
        f"{change.step.number} sets {', '.join(sorted(amounts))} and not "
        f"{', '.join(sorted(announced_amounts))}",
        0.6,
    )


def _unit_of(amount: str) -> str:
    return amount.lstrip("0123456789.")
