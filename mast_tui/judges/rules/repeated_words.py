"""1.3 Step repetition in messages: an agent repeats an earlier message."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
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

_LENGTH_PARTS: Final = 20
"""Messages that are the same differ in length by at most one part in so many."""

_SHORTEST_MESSAGE: Final = 80
_FEWEST_MESSAGES: Final = 3
_LONG_MESSAGE: Final = 600
"""The length from which a message counts as repeated the second time; a shorter message the third
time."""

_COMPARED_CHARS: Final = 800
_LOOK_BACK: Final = 12
"""The number of an agent's last different messages with which a new one is compared."""

_SHARED_BY: Final = 2
"""The number of agents from which a sentence of all of them is a part of a shared prompt."""


@dataclass(frozen=True, slots=True)
class _Message:
    """A message of an agent.

    Attributes:
        step: The step of the message.
        text: Its sentences, without those of a shared prompt.
        event_count: The number of events by other agents and tools before it.
    """

    step: RuleStep
    text: str
    event_count: int


def find(walk: Walk) -> Iterator[Finding]:
    """Yield a finding on each message of an agent that repeats an earlier one."""
    for group in _message_groups(walk):
        first, *repetitions = group
        # A short message is repeated by chance more often.
        fewest_messages = 2 if len(first.text) >= _LONG_MESSAGE else _FEWEST_MESSAGES
        if len(group) < fewest_messages:
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


def _message_groups(walk: Walk) -> list[list[_Message]]:
    """Group the messages of each agent that are the same.

    A message counts only if there are events by others between it and the last message of its
    group. Without such an event, the log has printed one message twice.
    """
    agents_by_sentence = _agents_of_sentences(walk)
    groups_by_agent: dict[str, list[list[_Message]]] = defaultdict(list)
    event_counter = _EventCounter()
    for step in walk.steps:
        event_counter.add(step)
        text = " ".join(
            sentence
            for _, sentence in step.sentences
            if len(agents_by_sentence[sentence]) < _SHARED_BY
        )
        is_own = step.is_message and not is_output(step) and not is_view(step)
        if not is_own or len(text) < _SHORTEST_MESSAGE:
            continue
        groups = groups_by_agent[step.span.agent]
        message = _Message(step, text, event_counter.count_by_others(step.span.agent))
        for group in reversed(groups[-_LOOK_BACK:]):
            last_message = group[-1]
            if _is_same_message(last_message.text, text):
                if message.event_count > last_message.event_count:
                    group.append(message)
                break
        else:
            groups.append([message])
    return list(chain.from_iterable(groups_by_agent.values()))


class _EventCounter:
    """The number of different events by agent; an event that is logged again counts once."""

    def __init__(self) -> None:
        self._counted_events: set[tuple[str, str]] = set()
        self._count_by_agent: dict[str, int] = defaultdict(int)
        """The number of messages and thoughts by agent; other events are under an empty name."""

    def add(self, step: RuleStep) -> None:
        """Count a step, unless it is a log or repeats an earlier step."""
        event = (step.span.agent, step.head)
        if step.span.kind is not SpanKind.LOG and event not in self._counted_events:
            self._counted_events.add(event)
            self._count_by_agent[step.span.agent if step.is_speech else ""] += 1

    def count_by_others(self, agent: str) -> int:
        """Return the number of messages of other agents, and of all calls and results."""
        return sum(count for other, count in self._count_by_agent.items() if other != agent)


def _agents_of_sentences(walk: Walk) -> Mapping[str, set[str]]:
    """Return the agents that use each sentence in a message, by sentence."""
    agents_by_sentence: dict[str, set[str]] = defaultdict(set)
    for step in walk.steps:
        if step.is_message:
            for _, sentence in step.sentences:
                agents_by_sentence[sentence].add(step.span.agent)
    return agents_by_sentence


def _is_same_message(text: str, other: str) -> bool:
    """Check whether two messages are similar and have no different number, name or negation.

    Of long messages, both ends are compared.
    """
    if _LENGTH_PARTS * abs(len(text) - len(other)) > max(len(text), len(other)):
        return False
    if not _is_same_part(text[:_COMPARED_CHARS], other[:_COMPARED_CHARS]):
        return False
    if max(len(text), len(other)) <= _COMPARED_CHARS:
        return True
    return _is_same_part(text[-_COMPARED_CHARS:], other[-_COMPARED_CHARS:])


def _is_same_part(part: str, other_part: str) -> bool:
    """Check whether two parts of messages are similar, and no word changes the meaning."""
    from rapidfuzz import fuzz

    if part == other_part:
        return True
    return (
        fuzz.ratio(part, other_part, score_cutoff=_SAME_WORDS) > 0
        and compare(part, other_part).likeness is not WordLikeness.ALTERED
        and compare(other_part, part).likeness is not WordLikeness.ALTERED
    )
