"""1.3 Step repetition in words: an agent repeats what it has said before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from mast_tui.judges.rules.repetition import MODE
from mast_tui.judges.rules.steps import Step
from mast_tui.judges.rules.views import is_view
from mast_tui.judges.rules.walk import Walk, is_output
from mast_tui.judges.word_comparison import Likeness, compare
from mast_tui.labels import Finding
from mast_tui.traces.model import SpanKind

_SAME_WORDS: Final = 95.0
"""Similarity of two messages from which their words are compared one by one."""

_SHORTEST_MESSAGE: Final = 80
_FEWEST_MESSAGES: Final = 3
_LONG_MESSAGE: Final = 600
"""A message of this length, said twice, is a repetition; shorter ones three times."""

_COMPARED: Final = 800
_LOOK_BACK: Final = 12
"""With so many of an agent's last different messages each new one is compared."""

_TEMPLATE: Final = 2
"""A line that so many agents say word for word is a prompt that they share."""


@dataclass(frozen=True, slots=True)
class _Said:
    """A message with its own words, and how much others had said or done before it."""

    step: Step
    words: str
    news: int


def find(walk: Walk) -> Iterator[Finding]:
    """Suggest the messages in which an agent says the same again and again."""
    for group in _groups(walk):
        first, again = group[0], group[1:]
        enough = len(group) >= _FEWEST_MESSAGES or (again and len(first.words) >= _LONG_MESSAGE)
        if not enough:
            continue
        for said in again:
            quote = said.step.first_words()
            if quote is not None:
                yield walk.finding(
                    MODE,
                    (said.step.index, said.step.index),
                    quote,
                    f"{said.step.number}: {first.step.span.agent} repeats {first.step.number} "
                    f"almost word for word ({len(group)} times in all).",
                    min(0.85, 0.4 + 0.1 * len(group)),
                )


def _groups(walk: Walk) -> list[list[_Said]]:
    """Messages of an agent that say the same, each time after something else had happened."""
    shared = _shared_sentences(walk)
    said: dict[str, list[list[_Said]]] = defaultdict(list)
    news = _News()
    for step in walk.steps:
        news.hear(step)
        words = " ".join(words for _, words in step.spoken if len(shared[words]) < _TEMPLATE)
        own = step.tells and not is_output(step) and not is_view(step)
        if not own or len(words) < _SHORTEST_MESSAGE:
            continue
        mine = said[step.span.agent]
        now = _Said(step, words, news.count_for(step.span.agent))
        for group in reversed(mine[-_LOOK_BACK:]):
            if _same(group[-1].words, words):
                # Printed once more by the log, with nothing between: no message of its own.
                if now.news > group[-1].news:
                    group.append(now)
                break
        else:
            mine.append([now])
    return [group for mine in said.values() for group in mine]


class _News:
    """What has been said and done, each thing once: a log's echo of it is nothing new."""

    def __init__(self) -> None:
        self._heard: set[tuple[str, str]] = set()
        self._by: dict[str, int] = defaultdict(int)

    def hear(self, step: Step) -> None:
        """Count a step, unless it is a log's or was there before in the same words."""
        what = (step.span.agent, step.head)
        if step.span.kind is not SpanKind.LOG and what not in self._heard:
            self._heard.add(what)
            self._by[step.span.agent if step.says else ""] += 1

    def count_for(self, agent: str) -> int:
        """How many things others have said or done, and tools have answered."""
        return sum(count for other, count in self._by.items() if other != agent)


def _shared_sentences(walk: Walk) -> Mapping[str, set[str]]:
    """By sentence the agents that say it word for word."""
    agents: dict[str, set[str]] = defaultdict(set)
    for step in walk.steps:
        if step.tells:
            for _, words in step.spoken:
                agents[words].add(step.span.agent)
    return agents


def _same(one: str, other: str) -> bool:
    """Whether two messages say the same: no number, name or weighty word differs.

    Of long ones both ends are compared.
    """
    from rapidfuzz import fuzz

    if 20 * abs(len(one) - len(other)) > max(len(one), len(other)):
        return False
    ends = [(one[:_COMPARED], other[:_COMPARED])]
    if max(len(one), len(other)) > _COMPARED:
        ends.append((one[-_COMPARED:], other[-_COMPARED:]))
    return all(
        mine == theirs
        or (
            fuzz.ratio(mine, theirs, score_cutoff=_SAME_WORDS) > 0
            and compare(mine, theirs).likeness is not Likeness.ALTERED
            and compare(theirs, mine).likeness is not Likeness.ALTERED
        )
        for mine, theirs in ends
    )
