"""1.3 Step repetition of looks that are no calls: an agent that browses shows the same view again.

Agents such as Magentic-One's say in a message what they did and what their window shows then. The
same act with the same view, with no other view of theirs between, has brought nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from mast_tui.judges.rules.repetition import MODE
from mast_tui.judges.rules.steps import Step
from mast_tui.judges.rules.walk import Walk
from mast_tui.labels import Finding

_WHERE: Final = re.compile(
    r"\AAddress: \S[^\n]*\n(?:[^\n]*\n){0,3}?Viewport position: [^\n]*"
    r"|\A[^\n]{0,300}\s+Here is a screenshot of \[[^\n]*\. The viewport shows [^\n]*"
)
"""What was done, the page, and where on it: the beginning of what a browsing agent says."""

_AGO: Final = re.compile(r"\bYou previously visited this page [^\n]*")
_BODY: Final = 800
_SAME_BODY: Final = 95.0


def is_view(step: Step) -> bool:
    """Whether a message is what an agent's window shows rather than its own words."""
    return _WHERE.match(step.head) is not None


def find(walk: Walk) -> Iterator[Finding]:
    """Suggest each view that is the agent's last one once more."""
    last: dict[str, tuple[Step, str, str]] = {}
    for step in walk.steps:
        where = _WHERE.match(step.head) if step.is_message else None
        if where is None:
            continue
        place = " ".join(_AGO.sub("", where[0]).split())
        body = " ".join(step.head[where.end() :].split())[:_BODY]
        before = last.get(step.span.agent)
        if before is None or before[1] != place or not _same(before[2], body):
            last[step.span.agent] = (step, place, body)
            continue
        yield walk.finding(
            MODE,
            (step.index, step.index),
            step.quote(0, where.end()),
            f"{step.number}: {step.span.agent} has the same view again as in {before[0].number}, "
            "and had no other in between.",
            0.7,
        )


def _same(one: str, other: str) -> bool:
    from rapidfuzz import fuzz

    return one == other or fuzz.ratio(one, other, score_cutoff=_SAME_BODY) > 0
