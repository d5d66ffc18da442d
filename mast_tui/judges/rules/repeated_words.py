"""1.3 Step repetition in words: an agent repeats what it has said before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from mast_tui.judges.rules.repetition import MODE
from mast_tui.judges.rules.steps import Step
from mast_tui.judges.rules.walk import Walk, is_output
from mast_tui.labels import Finding

_SAME_WORDS: Final = 95.0
"""Similarity of two messages of one agent from which the second says nothing new."""

_SHORTEST_MESSAGE: Final = 80
_FEWEST_MESSAGES: Final = 3
_LONG_MESSAGE: Final = 600
"""A message of this length, said twice, is a repetition; shorter ones three times."""

_COMPARED: Final = 800
_LOOK_BACK: Final = 12
"""With so many of an agent's last different messages each new one is compared."""


def find(walk: Walk) -> Iterator[Finding]:
    """Suggest the messages in which an agent says the same again and again."""
    said: dict[str, list[list[tuple[Step, str]]]] = defaultdict(list)
    for step in walk.steps:
        words = step.said
        if not step.tells or len(words) < _SHORTEST_MESSAGE or is_output(step):
            continue
        mine = said[step.span.agent]
        for group in reversed(mine[-_LOOK_BACK:]):
            last, last_words = group[-1]
            if last.index == step.index - 1 and last_words == words:
                break  # the same record twice in a row: the log's doing, not the agent's
            if _same(last_words, words):
                group.append((step, words))
                break
        else:
            mine.append([(step, words)])
    for group in (group for mine in said.values() for group in mine):
        first, again = group[0][0], [step for step, _ in group[1:]]
        enough = len(group) >= _FEWEST_MESSAGES or (again and len(group[0][1]) >= _LONG_MESSAGE)
        quote = again[0].first_words() if enough else None
        if quote is None:
            continue
        numbers = ", ".join(step.number for step in again[:6]) + (" …" if len(again) > 6 else "")
        yield walk.finding(
            MODE,
            (again[0].index, again[-1].index),
            quote,
            f"{numbers}: {first.span.agent} repeats {first.number} almost word for word.",
            min(0.85, 0.4 + 0.1 * len(group)),
        )


def _same(one: str, other: str) -> bool:
    """Whether two messages are of one length and alike, at both ends where they are long."""
    from rapidfuzz import fuzz

    if 20 * abs(len(one) - len(other)) > max(len(one), len(other)):
        return False
    heads = fuzz.ratio(one[:_COMPARED], other[:_COMPARED], score_cutoff=_SAME_WORDS)
    return heads > 0 and (
        max(len(one), len(other)) <= _COMPARED
        or fuzz.ratio(one[-_COMPARED:], other[-_COMPARED:], score_cutoff=_SAME_WORDS) > 0
    )
