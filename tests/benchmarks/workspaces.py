"""Workspaces with many labels, spread over many traces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from mast_tui.labels import Finding, Label, PassKind, Target
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.library import read_file, read_fully
from mast_tui.workspace import NewEvent, TraceRecord, Workspace, store_judgement
from mast_tui.workspace.events.types import Fact, LabelAdded, PassStarted

ANNOTATOR: Final = "someone"
ANNOTATORS: Final = (ANNOTATOR, "another")
PER_TRACE: Final = 200
"""Labels on one trace, of all annotators together."""


def write_workspace(path: Path, rollout: Path, labels: int) -> None:
    """Write a workspace with ``labels`` labels; the first trace in it is the rollout.

    The journal is folded into the file at the end, so that the file can be copied by itself.
    """
    (trace,) = read_file(rollout, named=True).traces
    read_fully(trace)
    taxonomy = load_mast()
    workspace = Workspace.open(path)
    workspace.add_taxonomy(taxonomy)
    modes = [mode.slug for mode in taxonomy.modes]
    keys = [trace.span(index).key for index in range(min(len(trace), PER_TRACE))]
    with workspace.transaction():
        for number in range(max(1, labels // PER_TRACE)):
            record = (
                TraceRecord.from_trace(trace) if number == 0 else TraceRecord(f"trace-{number:05d}")
            )
            trace_id = workspace.register_trace(record)
            count = min(labels, PER_TRACE) // len(ANNOTATORS)
            for annotator in ANNOTATORS:
                workspace.append(
                    _events(workspace, annotator, trace_id, taxonomy.ref, modes, keys, count)
                )
    workspace.close()


def suggest(path: Path, rollout: Path, count: int) -> None:
    """Let a judge suggest a mode on ``count`` spans of a rollout, one after the other.

    ``path`` is the workspace, which gets them in addition to what is there.
    """
    (trace,) = read_file(rollout, named=True).traces
    read_fully(trace)
    taxonomy = load_mast()
    workspace = Workspace.open(path)
    keys = [trace.span(len(trace) - 1 - number).key for number in range(count)]
    store_judgement(
        workspace,
        judge="judge:rules@1",
        taxonomy=taxonomy.ref,
        trace_id=workspace.register_trace(TraceRecord.from_trace(trace)),
        looks_at=[mode.slug for mode in taxonomy.modes],
        findings=[Finding(taxonomy.modes[0].slug, key, key, "because", 0.5) for key in keys],
    )
    workspace.close()


def _events(
    workspace: Workspace,
    annotator: str,
    trace_id: str,
    taxonomy: str,
    modes: Sequence[str],
    keys: Sequence[str],
    count: int,
) -> list[NewEvent]:
    """A pass of one annotator over one trace with ``count`` labels."""

    def label(place: int) -> Label:
        key = keys[place % len(keys)]
        return Label(
            id=workspace.new_id(),
            annotator=annotator,
            trace_id=trace_id,
            taxonomy=taxonomy,
            mode=modes[place % len(modes)],
            target=Target(key, key),
        )

    facts: list[Fact] = [
        PassStarted(PassKind.ASSISTED),
        *(LabelAdded(label(n)) for n in range(count)),
    ]
    return [NewEvent(annotator, trace_id, taxonomy, 1, fact) for fact in facts]
