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
_TICKED: Final = re.compile(r"`([^`\n]{2,200})`")
_WORD: Final = re.compile(r"[A-Za-z][\w-]*[A-Za-z0-9]|[A-Za-z]")
_OBJECT: Final = re.compile(r"(?:/|\bdeployment |\bstatefulset |app=)([a-z][a-z0-9-]{2,})")
_IDENTIFIER: Final = re.compile(r"\"(#?[A-Za-z]{1,3}-?\d{4,}|\d{6,})\"")
_AMOUNT: Final = re.compile(r"(?<![\w.-])\d+(?:\.\d+)?(?:Mi|Gi|Ki|m|%|ms|s|GB|MB)(?![\w-]|\.\d)")
_UNDER_WAY: Final = 3
"""The number of calls after an announcement that may carry it out."""

_Reason: TypeAlias = tuple[str, float]


def find(walk: Walk) -> Iterator[Finding]:
    """Suggest each announcement whose next calls do something else."""
    tools = {call.tool for call in walk.calls if len(call.tool) > 2}
    objects = _objects_of_changes(walk)
    for step, calls in _calls_after_words(walk):
        for announced in announcements(step)[-2:]:
            mismatch = _mismatch(announced, _under_way(calls), tools, objects)
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


def _calls_after_words(walk: Walk) -> Iterator[tuple[RuleStep, list[Call]]]:
    """Yield each message or thought of an agent with the calls before the next one."""
    calls = {call.index: call for call in walk.calls}
    speaker: RuleStep | None = None
    following: list[Call] = []
    for step in walk.steps:
        call = calls.get(step.index)
        if call is not None and speaker is not None and call.works:
            following.append(call)
        elif step.is_speech:
            if speaker is not None and following:
                yield speaker, following
            speaker = step
            following = []
    if speaker is not None and following:
        yield speaker, following


def _under_way(calls: Sequence[Call]) -> list[Call]:
    """Return the calls that may carry out an announcement: the first ones up to a change."""
    near: list[Call] = []
    for call in calls[:_UNDER_WAY]:
        near.append(call)
        if call.effect is Effect.CHANGES:
            break
    return near


def _objects_of_changes(walk: Walk) -> frozenset[str]:
    """Return the names of the objects that the run changes."""
    names: set[str] = set()
    for call in walk.calls:
        if call.effect is Effect.CHANGES:
            names.update(_OBJECT.findall(call.command))
            names.update(_IDENTIFIER.findall(call.command))
    return frozenset(names)


def _mismatch(
    announced: Announcement, near: Sequence[Call], tools: set[str], objects: frozenset[str]
) -> _Reason | None:
    if announced.refused:
        return _does_what_was_refused(announced, near)
    other = _calls_another(announced, near, tools) or _changes_instead_of_looking(
        announced, near[0]
    )
    change = next((call for call in near if call.effect is Effect.CHANGES), None)
    if other is not None or announced.verb not in CHANGING or change is None:
        return other
    return _changes_another_thing(announced, change, objects) or _changes_by_another_amount(
        announced, change
    )


def _word_set(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


def _call_words(call: Call) -> set[str]:
    return _word_set(call.command) | {call.tool.lower(), *name_words(call.tool)}


def _does_what_was_refused(announced: Announcement, near: Sequence[Call]) -> _Reason | None:
    for call in near:
        if announced.verb in CHANGING and call.changed and announced.verb in _call_words(call):
            return f"{call.step.number} does just that", 0.75
    return None


def _calls_another(
    announced: Announcement, near: Sequence[Call], tools: set[str]
) -> _Reason | None:
    """Return the reason if a tool or command is announced by name and no next call is of it."""
    named = _named_calls(announced, tools)
    made = [_call_words(call) for call in near]
    if not named or any(call_words.issuperset(name) for name in named for call_words in made):
        return None
    names = " or ".join(sorted(" ".join(name) for name in named))
    return f"the next call, {near[0].step.number}, is not of {names}", 0.7


def _named_calls(announced: Announcement, tools: set[str]) -> list[tuple[str, ...]]:
    """Return the calls that an announcement names, each as the words that it must have."""
    calling = announced.verb in CALLING
    named: list[tuple[str, ...]] = []
    for text in _TICKED.findall(announced.about):
        command = text.split() or [""]
        first = command[0].split("(")[0]
        verbs = commands.VERBS.get(first)
        if verbs is not None:
            verb = next((word for word in command[1:] if word in verbs[0] | verbs[1]), None)
            named.append((first, verb) if verb else (first,))
        elif first in tools or first in _PROGRAMS:
            named.append((first.lower(),))
    if not named and calling:
        about = announced.about.split(" to ")[0]
        about_words = _word_set(about)
        named = [
            (tool.lower(),)
            for tool in tools
            if tool.lower() in about_words and _names_tool(tool, about)
        ]
        named += [(program,) for program in sorted(_PROGRAMS & about_words)]
    return named


def _names_tool(tool: str, about: str) -> bool:
    """Check whether words mean a tool: 'run this file' does not mean the tool ``file``."""
    if not (tool.isalpha() and tool.islower()):
        return True
    return re.search(rf"\b{tool} (?:tool|command|function|action)\b", about.lower()) is not None


def _changes_instead_of_looking(announced: Announcement, first: Call) -> _Reason | None:
    if announced.verb not in LOOKING or first.effect is not Effect.CHANGES:
        return None
    announced_words = _word_set(announced.about)
    call_words = _call_words(first)
    # A script or a request may be the way to look, and so may a program that is named.
    if announced_words & CHANGING or call_words & _WAYS_TO_LOOK:
        return None
    if announced_words & call_words & _PROGRAMS:
        return None
    return f"a look is announced, and {first.step.number} makes a change", 0.6


def _changes_another_thing(
    announced: Announcement, change: Call, objects: frozenset[str]
) -> _Reason | None:
    about_words = set(re.findall(r"[\w#-]+", announced.about.lower()))
    announced_objects = {name for name in objects if name.lower() in about_words}
    touched = {name for name in objects if name in change.command}
    if not announced_objects or not touched:
        return None
    if any(name in change.command for name in announced_objects):
        return None
    return (
        f"{change.step.number} is about {', '.join(sorted(touched)[:3])} and not about "
        f"{', '.join(sorted(announced_objects)[:3])}",
        0.65,
    )


def _changes_by_another_amount(announced: Announcement, change: Call) -> _Reason | None:
    stated = set(_AMOUNT.findall(announced.about))
    made = set(_AMOUNT.findall(re.sub(r"[=\"':]", " ", change.command)))
    units = {amount.lstrip("0123456789.") for amount in stated}
    made = {amount for amount in made if amount.lstrip("0123456789.") in units}
    if not stated or not made or stated & made:
        return None
    return (
        f"{change.step.number} sets {', '.join(sorted(made))} and not {', '.join(sorted(stated))}",
        0.6,
    )
