"""1.3 Step repetition in messages: an agent repeats an earlier message."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from mast_tui.judges.rules.repetition import MODE
from mast_tui.judges.rules.steps import RuleStep
from mast_tui.judges.rules.views import is_view
from mast_tui.judges.rules.walk import Walk, is_output
from mast_tui.judges.word_comparison import WordLikeness, compare
from mast_tui.labels import Finding
from mast_tui.traces.model import SpanKind

_SAME_WORDS: Final = 95.0
"""The similarity of two messages from which their words are compared one by one."""

_SHORTEST_MESSAGE: Final = 80
_FEWEST_MESSAGES: Final = 3
_LONG_MESSAGE: Final = 600
"""The length from which a message counts as repeated the second time; a shorter one the third."""

_COMPARED: Final = 800
_LOOK_BACK: Final = 12
"""The number of an agent's last different messages with which a new one is compared."""

_TEMPLATE: Final = 2
"""The number of agents from which a sentence that all of them use is a shared prompt."""


@dataclass(frozen=True, slots=True)
class _Message:
    """A message with its own text, and the number of events by others before it."""

    step: RuleStep
    text: str
    events: int


def find(walk: Walk) -> Iterator[Finding]:
    """Suggest the messages of an agent that repeat an earlier one."""
    for group in _groups(walk):
        first, *repetitions = group
        fewest = 2 if len(first.text) >= _LONG_MESSAGE else _FEWEST_MESSAGES
        if len(group) < fewest:
            continue
        for message in repetitions:
            quote = message.step.first_sentence()
            if quote is not None:
                yield walk.finding(
                    MODE,
                    (message.step.index, message.step.index),
                    quote,
                    f"{message.step.number}: {first.step.span.agent} repeats {first.step.number} "
                    f"almost word for word ({len(group)} times in all).",
                    min(0.85, 0.4 + 0.1 * len(group)),
                )


def _groups(walk: Walk) -> list[list[_Message]]:
    """Group the messages of each agent that are the same, each after other events."""
    agents_by_sentence = _agents_by_sentence(walk)
    by_agent: dict[str, list[list[_Message]]] = defaultdict(list)
    events = _EventCounts()
    for step in walk.steps:
        events.add(step)
        text = " ".join(
            sentence
            for _, sentence in step.sentences
            if len(agents_by_sentence[sentence]) < _TEMPLATE
        )
        is_own = step.is_message and not is_output(step) and not is_view(step)
        if not is_own or len(text) < _SHORTEST_MESSAGE:
            continue
        groups = by_agent[step.span.agent]
        message = _Message(step, text, events.by_others(step.span.agent))
        for group in reversed(groups[-_LOOK_BACK:]):
            if _is_same(group[-1].text, text):
                # Without an event between them, the log has printed one message twice.
                if message.events > group[-1].events:
                    group.append(message)
                break
        else:
            groups.append([message])
    return [group for groups in by_agent.values() for group in groups]


class _EventCounts:
    """The number of different events by agent; an event that is logged again counts once."""

    def __init__(self) -> None:
        self._counted: set[tuple[str, str]] = set()
        self._by_agent: dict[str, int] = defaultdict(int)

    def add(self, step: RuleStep) -> None:
        """Count a step, unless it is a log or repeats an earlier one."""
        event = (step.span.agent, step.head)
        if step.span.kind is not SpanKind.LOG and event not in self._counted:
            self._counted.add(event)
            self._by_agent[step.span.agent if step.is_speech else ""] += 1

    def by_others(self, agent: str) -> int:
        """Count the messages of other agents, and all calls and results."""
        return sum(count for other, count in self._by_agent.items() if other != agent)


def _agents_by_sentence(walk: Walk) -> Mapping[str, set[str]]:
    agents: dict[str, set[str]] = defaultdict(set)
    for step in walk.steps:
        if step.is_message:
            for _, sentence in step.sentences:
                agents[sentence].add(step.span.agent)
    return agents


def _is_same(text: str, other: str) -> bool:
    """Check whether two messages are similar and have no different number, name or negation.

    Of long messages, both ends are compared.
    """
    from rapidfuzz import fuzz

    if 20 * abs(len(text) - len(other)) > max(len(text), len(other)):
        return False
    ends = [(text[:_COMPARED], other[:_COMPARED])]
    if max(len(text), len(other)) > _COMPARED:
        ends.append((text[-_COMPARED:], other[-_COMPARED:]))
    return all(
        part == other_part
        or (
            fuzz.ratio(part, other_part, score_cutoff=_SAME_WORDS) > 0
            and compare(part, other_part).likeness is not WordLikeness.ALTERED
            and compare(other_part, part).likeness is not WordLikeness.ALTERED
        )
        for part, other_part in ends
    )
