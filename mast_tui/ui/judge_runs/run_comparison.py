"""A run of a judge beside another run, or beside the gold, as far as an annotator may know it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mast_tui.errors import MastError
from mast_tui.labels import VerdictValue

if TYPE_CHECKING:
    from mast_tui.adjudication import TraceWords
    from mast_tui.judges.comparing import Comparison, Side
    from mast_tui.traces.model import Trace
    from mast_tui.ui.services.open_workspace import OpenWorkspace
    from mast_tui.ui.services.trace_loader import TraceLoader
    from mast_tui.workspace import Run


@dataclass(frozen=True, slots=True)
class Compared:
    """What there is to show.

    ``traces`` were compared. ``examples`` of the traces are left out because they stood in a
    prompt, ``hidden`` because the annotator may not know of them yet. ``judge_seen`` verdicts
    were settled with a judge on screen and are left out unless ``with_seen``. ``problem`` is why
    nothing could be compared.
    """

    comparison: Comparison | None = None
    at_hand: TraceLoader | None = None
    traces: int = 0
    examples: int = 0
    hidden: int = 0
    judge_seen: int = 0
    with_seen: bool = False
    problem: str | None = None


def compare_runs(
    opened: OpenWorkspace, first: Run, second: Run, known: Sequence[Trace]
) -> Compared:
    """Two runs over the traces that both have judged. Slow: for workers only."""
    from mast_tui.judges.comparing import compare
    from mast_tui.session import library_view
    from mast_tui.ui.services.trace_loader import TraceLoader
    from mast_tui.workspace import WorkspaceError, examples_of

    workspace, ref = opened.workspace, opened.taxonomy.ref
    try:
        view = library_view(workspace, opened.annotator, ref, blind=opened.blind)
        shared = _judged_in(opened, first) & _judged_in(opened, second)
        visible = {t for t in shared if t in view and view[t].suggestions_visible}
        shown_before = examples_of(workspace, first.judge) | examples_of(workspace, second.judge)
        counted = visible - shown_before
        at_hand = TraceLoader(workspace, known)
        found = compare(
            _side_of_judge(opened, first.judge),
            _side_of_judge(opened, second.judge),
            counted,
            [mode.slug for mode in opened.taxonomy.modes],
            at_hand.order_of,
        )
    except WorkspaceError as error:
        return Compared(problem=str(error))
    return Compared(
        found,
        at_hand,
        traces=len(counted),
        examples=len(visible & shown_before),
        hidden=len(shared - visible),
    )


def compare_with_gold(
    opened: OpenWorkspace, run: Run, known: Sequence[Trace], *, with_seen: bool = False
) -> Compared:
    """A run beside the gold, over traces that the annotator has finished or adjudicated.

    That it is shown is recorded where it tells what was hidden. Verdicts that were settled with a
    judge on screen count only ``with_seen``. Slow: for workers only.
    """
    from mast_tui.adjudication import words_by_trace
    from mast_tui.judges.comparing import Mark, Side, compare
    from mast_tui.session import record_reveal, visible_traces_for_agreement
    from mast_tui.ui.services.trace_loader import TraceLoader
    from mast_tui.workspace import examples_of

    workspace, taxonomy = opened.workspace, opened.taxonomy
    try:
        words = words_by_trace(workspace, taxonomy)
        with_gold = _judged_in(opened, run) & words.keys()
        visible = with_gold & visible_traces_for_agreement(
            workspace, opened.annotator, taxonomy.ref
        )
        examples = examples_of(workspace, run.judge)
        counted = visible - examples
        at_hand = TraceLoader(workspace, known)
        verdicts: dict[tuple[str, str], VerdictValue] = {}
        marks: dict[tuple[str, str], tuple[Mark, ...]] = {}
        seen: set[tuple[str, str]] = set()
        for trace_id in counted:
            gold = words[trace_id].gold(taxonomy, at_hand.order_of(trace_id))
            for verdict in gold.verdicts:
                if verdict.value is None:
                    continue
                verdicts[trace_id, verdict.mode] = verdict.value
                if verdict.judge_seen:
                    seen.add((trace_id, verdict.mode))
            for label in gold.labels:
                key = (trace_id, label.mode)
                marks[key] = (*marks.get(key, ()), Mark(label.target))
        found = compare(
            _side_of_judge(opened, run.judge),
            Side(verdicts, marks),
            counted,
            [mode.slug for mode in taxonomy.modes],
            at_hand.order_of,
            left_out=frozenset() if with_seen else seen,
        )
        kept_back = counted if opened.blind else opened.withheld()
        told = [t for t in counted if t in kept_back or _others_spoke(opened, words[t])]
        record_reveal(workspace, opened.annotator, taxonomy.ref, sorted(told))
    except MastError as error:
        return Compared(problem=str(error))
    return Compared(
        found,
        at_hand,
        traces=len(counted),
        examples=len(visible & examples),
        hidden=len(with_gold - visible),
        judge_seen=len(seen),
        with_seen=with_seen,
    )


def _others_spoke(opened: OpenWorkspace, words: TraceWords) -> bool:
    names = (*words.passes, *(decision.decided_by for decision in words.decisions))
    return any(name != opened.annotator for name in names)


def _judged_in(opened: OpenWorkspace, run: Run) -> set[str]:
    """The run's traces on which its judge has come to a judgement."""
    judged = {
        one.trace_id
        for one in opened.workspace.judgements(annotator=run.judge, taxonomy=run.taxonomy)
    }
    return judged & {trace.trace_id for trace in run.traces}


def _side_of_judge(opened: OpenWorkspace, judge: str) -> Side:
    from mast_tui.judges.comparing import side_of

    workspace, ref = opened.workspace, opened.taxonomy.ref
    verdicts = {
        (verdict.trace_id, verdict.mode): verdict.value
        for verdict in workspace.verdicts(annotator=judge, taxonomy=ref)
    }
    return side_of(workspace.labels(annotator=judge, taxonomy=ref), verdicts)
