"""A workspace in memory with one trace, and targets in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mast_tui.labels import Finding, Review, Target
from mast_tui.session import Session
from mast_tui.traces.model import Trace
from mast_tui.workspace import Workspace, store_judgement
from tests.workspace.build import MAST, MODES, TRACE, trace_of

JUDGE = "judge:rules@1"
TEXTS = ("look at the pods", "kubectl get pods", "pods pods pods", "all is well", "done")


def span(number: int) -> Target:
    """Return the target of the span with this index."""
    return Target(f"k{number}", f"k{number}")


def spans(first: int, last: int) -> Target:
    """Return the target of a range of spans."""
    return Target(f"k{first}", f"k{last}")


def finding(mode: str, first: int, last: int | None = None) -> Finding:
    """Return a finding on a range of spans, without a quote."""
    end = first if last is None else last
    return Finding(mode, f"k{first}", f"k{end}", "because", 0.5)


def review_of(session: Session, suggestion_id: str) -> Review | None:
    """Return the annotator's last stored answer to a suggestion."""
    kept = session.workspace.reviews(
        annotator=session.annotator,
        trace_id=session.trace_id,
        taxonomy=session.taxonomy.ref,
        pass_number=None,
    )
    return next((one for one in reversed(kept) if one.suggestion == suggestion_id), None)


@dataclass(slots=True)
class Desk:
    """A workspace in memory, and a trace of five spans."""

    workspace: Workspace
    trace: Trace

    @classmethod
    def set_up(cls) -> Desk:
        """Return a new workspace with a trace."""
        return cls(Workspace.open(":memory:"), trace_of(*TEXTS))

    def open(self, annotator: str = "alice", *, blind: bool = False) -> Session:
        """Open a session of an annotator."""
        return Session.open(self.workspace, self.trace, MAST, annotator, blind=blind)

    def judge(
        self, *findings: Finding, looks_at: Sequence[str] = MODES, judge: str = JUDGE
    ) -> None:
        """Store the findings of a judge on the trace."""
        store_judgement(
            self.workspace,
            judge=judge,
            taxonomy=MAST.ref,
            trace_id=TRACE,
            looks_at=looks_at,
            findings=findings,
        )


def put(session: Session, mode: str, target: Target) -> str:
    """Label, and return the label's id."""
    session.toggle_label(mode, target, suggestions_on_screen=False)
    return next(x.id for x in session.labels if (x.mode, x.target) == (mode, target))


def content(session: Session) -> dict[str, object]:
    """Return the content of the current pass without the ids of labels."""
    return {
        "labels": [
            (x.mode, x.target, x.note, x.confidence, x.severity, x.origin, x.suggestion)
            for x in session.labels
        ],
        "verdicts": dict(session.verdicts),
        "notes": dict(session.span_notes),
        "pending": [s.id for s in session.pending],
        "finished": session.finished,
        "number": session.current and session.current.number,
    }
