"""1.3 Step repetition of browsing agents: an action shows the same view again.

Agents such as Magentic-One's report in a message their action and the view of their window after
it. The same action with the same view, without another view in between, had no effect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from mast_tui.judges.rules.repetition import MODE
from mast_tui.judges.rules.steps import RuleStep
from mast_tui.judges.rules.walk import Walk
from mast_tui.labels import Finding

_VIEW_HEADER: Final = re.compile(
    r"\AAddress: \S[^\n]*\n(?:[^\n]*\n){0,3}?Viewport position: [^\n]*"
    r"|\A[^\n]{0,300}\s+Here is a screenshot of \[[^\n]*\. The viewport shows [^\n]*"
)
"""The beginning of a browsing agent's message: the action, the page, and the position on it."""

_VISIT_REMARK: Final = re.compile(r"\bYou previously visited this page [^\n]*")
_BODY_CHARS: Final = 800
_SAME_BODY: Final = 95.0


class _View(NamedTuple):
    """A view: its step, the action and the position on the page, and the beginning of its text."""

    step: RuleStep
    header: str
    body: str


def is_view(step: RuleStep) -> bool:
    """Check whether a message is the view of a browsing agent's window."""
    return _VIEW_HEADER.match(step.head) is not None


def find(walk: Walk) -> Iterator[Finding]:
    """Yield a finding on each view that equals the last view of its agent."""
    last_views: dict[str, _View] = {}
    for step in walk.steps:
        header_match = _VIEW_HEADER.match(step.head) if step.is_message else None
        if header_match is None:
            continue
        header = " ".join(_VISIT_REMARK.sub("", header_match[0]).split())
        body = " ".join(step.head[header_match.end() :].split())[:_BODY_CHARS]
        last_view = last_views.get(step.span.agent)
        if (
            last_view is None
            or last_view.header != header
            or not _is_same_body(last_view.body, body)
        ):
            last_views[step.span.agent] = _View(step, header, body)
            continue
        yield walk.finding(
            MODE,
            (step.index, step.index),
            step.quote(0, header_match.end()),
            f"{step.number}: {step.span.agent} has the same view again as in "
            f"{last_view.step.number}, and had no other in between.",
            0.7,
        )


def _is_same_body(body: str, other: str) -> bool:
    from rapidfuzz import fuzz

    return body == other or fuzz.ratio(body, other, score_cutoff=_SAME_BODY) > 0
