"""Traces, labels and events for tests of workspaces and sessions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from mast_tui.labels import Label, PassKind, Target
from mast_tui.taxonomy.loader import load_mast
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.index.document import StepList, StepSpans
from mast_tui.traces.model import Outcome, Role, SpanKind, Trace, TraceIdentity, TraceMeta
from mast_tui.workspace import NewEvent, Workspace
from mast_tui.workspace.events.types import Fact, LabelAdded, PassStarted

MAST: Taxonomy = load_mast()
MODES = tuple(mode.slug for mode in MAST.modes)
TRACE = "run-1"


def trace_of(*texts: str, trace_id: str = TRACE, reader: str = "messages") -> Trace:
    """Return a trace with these texts under the keys ``k0``, ``k1``…"""
    steps = StepList()
    for number, text in enumerate(texts):
        steps.add(f"k{number}", SpanKind.MESSAGE, Role.AGENT, "agent", text, place=f"/{number}")
    content = "\n".join(texts).encode()
    identity = TraceIdentity(
        trace_id=trace_id,
        content_hash=hashlib.sha256(content).hexdigest(),
        content_bytes=len(content),
        reader=reader,
        key_scheme=1,
        native=True,
    )
    meta = TraceMeta(model="m-1", system="crew", outcome=Outcome.FAILED)
    return Trace(identity, Path("runs") / f"{trace_id}.json", StepSpans(steps.steps), meta=meta)


def label(
    workspace: Workspace,
    mode: str = MODES[0],
    target: Target | None = None,
    *,
    annotator: str = "alice",
    trace_id: str = TRACE,
    pass_number: int = 1,
    note: str = "",
) -> Label:
    """Return a label on the span ``k0``."""
    return Label(
        id=workspace.new_id(),
        annotator=annotator,
        trace_id=trace_id,
        taxonomy=MAST.ref,
        mode=mode,
        target=target or Target("k0", "k0"),
        note=note,
        pass_number=pass_number,
        created_at="2026-05-04T10:20:30.000000Z",
    )


def event(
    fact: Fact, *, annotator: str = "alice", trace_id: str = TRACE, pass_number: int = 1
) -> NewEvent:
    return NewEvent(annotator, trace_id, MAST.ref, pass_number, fact)


def start_pass(workspace: Workspace, *labels: Label, annotator: str = "alice") -> None:
    """Record a first pass with these labels."""
    facts: Sequence[Fact] = [PassStarted(PassKind.ASSISTED), *map(LabelAdded, labels)]
    workspace.append([event(fact, annotator=annotator) for fact in facts])


@contextmanager
def open_workspaces(count: int) -> Iterator[list[Workspace]]:
    """Open several empty workspaces in memory."""
    with ExitStack() as stack:
        yield [stack.enter_context(closing(Workspace.open(":memory:"))) for _ in range(count)]


def state(workspace: Workspace) -> dict[str, object]:
    """Return the content of all state tables."""
    return {
        "labels": workspace.labels(pass_number=None),
        "verdicts": workspace.verdicts(pass_number=None),
        "reviews": workspace.reviews(pass_number=None),
        "notes": workspace.span_notes(pass_number=None),
        "passes": workspace.passes(),
        "judgements": workspace.judgements(),
        "decisions": dict(workspace.all_decisions(MAST.ref)),
        "study": workspace.study(MAST.ref),
        "guidelines": workspace.guidelines(MAST.ref),
        "annotators": workspace.annotators(),
        "last labels": workspace.labels(),
        "last verdicts": workspace.verdicts(),
    }
