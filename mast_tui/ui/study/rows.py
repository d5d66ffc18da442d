"""A study on the screen: how far everybody is, as rows, and what was set up, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mast_tui.safe_text import one_line
from mast_tui.ui.widgets.column_table import Column, TableRow

if TYPE_CHECKING:
    from mast_tui.session import Progress
    from mast_tui.study import Study
    from mast_tui.traces.model import Trace
    from mast_tui.ui.services.open_workspace import OpenWorkspace

BAR_CELLS: Final = 24

COLUMNS: Final = (
    Column("name", "annotator", shrinks=True),
    Column("bar", "█ finished  ▒ open", keeps=60),
    Column("assigned", "assigned", figure=True, keeps=90),
    Column("finished", "finished", figure=True, keeps=95),
    Column("open", "open", figure=True, keeps=80),
    Column("left", "left", figure=True, keeps=85),
    Column("back", "come back", figure=True, keeps=50),
)


@dataclass(frozen=True, slots=True)
class Overlap:
    """The traces that several label: how many, how many all of theirs have finished, and how many
    only some have."""

    traces: int
    finished: int
    begun: int


@dataclass(frozen=True, slots=True)
class StudyView:
    """A study and how far it is, as one person may know it.

    ``back`` is whether it is told what came back to be labelled once more, and ``conflicts`` what
    is left to decide; None where that would tell an annotator what others say, or is not counted.
    """

    study: Study
    progress: Sequence[Progress]
    overlap: Overlap
    back: bool
    conflicts: int | None


def study_view(
    opened: OpenWorkspace, known: Sequence[Trace] = (), *, counted: bool = True
) -> StudyView | None:
    """The study under the taxonomy that is open, None without one. Slow: for workers.

    ``known`` are the traces at hand. Without ``counted`` it is not counted what is left to decide,
    for which files may have to be read. Raises ``WorkspaceError`` in words.
    """
    from mast_tui.adjudication import conflicts_by_trace
    from mast_tui.session import progress
    from mast_tui.ui.services.trace_loader import TraceLoader

    workspace, study = opened.workspace, opened.study()
    if study is None:
        return None
    labels = opened.annotator in study.annotators
    conflicts = None
    if counted and not labels:
        # Whether two ranges overlap follows from the order of spans: without it, more would seem
        # to be left here than in adjudication.
        order_of = TraceLoader(workspace, known).order_of
        found = conflicts_by_trace(
            workspace, opened.taxonomy, annotators=study.annotators, order_of=order_of
        )
        conflicts = sum(len(found.get(trace_id, ())) for trace_id in study.traces)
    return StudyView(
        study, progress(workspace, study), _overlap(opened, study), not labels, conflicts
    )


def _overlap(opened: OpenWorkspace, study: Study) -> Overlap:
    from mast_tui.study import annotators_of, overlap_traces

    ref = study.taxonomy
    done = {name: opened.workspace.finished_traces(name, ref) for name in study.annotators}
    by_all = by_some = 0
    shared = overlap_traces(study)
    for trace_id in shared:
        finished = [trace_id in done[name] for name in annotators_of(study, trace_id)]
        by_all += all(finished)
        by_some += any(finished) and not all(finished)
    return Overlap(len(shared), by_all, by_some)


def bar(done: int, begun: int, of: int, cells: int = BAR_CELLS) -> str:
    """How far something is: ``█`` finished, ``▒`` begun, ``·`` not yet.

    What there is of either shows in a cell at least, and nothing looks full that is not.
    """
    if of <= 0:
        return "·" * cells
    full = _cells(done, of, cells)
    open_cells = min(_cells(begun, of, cells), cells - full - (done + begun < of))
    if begun and open_cells < 1 < full:
        full, open_cells = full - 1, 1
    return "█" * full + "▒" * open_cells + "·" * (cells - full - open_cells)


def _cells(part: int, of: int, cells: int) -> int:
    if part >= of:
        return cells
    return min(max(round(part * cells / of), 1 if part else 0), cells - 1)


def table_rows(view: StudyView, me: str) -> list[TableRow]:
    """A row for each annotator, and one for the traces that several label."""
    rows = [_person(one, view, me) for one in view.progress]
    shared = view.overlap
    if shared.traces:
        cells = {
            "name": "by several",
            "bar": bar(shared.finished, shared.begun, shared.traces),
            "assigned": f"{shared.traces:,}",
            "finished": f"{shared.finished:,}",
            "open": f"{shared.begun:,}",
            "left": f"{shared.traces - shared.finished:,}",
        }
        rows.append(TableRow("", cells, styles=dict.fromkeys(cells, "total")))
    return rows


def _person(one: Progress, view: StudyView, me: str) -> TableRow:
    again = one.retests
    # To annotators what has come back is ordinary work that is not done.
    undone = 0 if view.back else len(again.now)
    begun = one.begun + (0 if view.back else len(again.begun))
    finished, left = one.finished - undone, one.left + undone
    taken = f"{len(again.done)} of {one.planned}" if view.back and one.planned else ""
    if again.lost and taken:
        taken += f", {len(again.lost)} lost"
    cells = {
        "name": one_line(one.name),
        "bar": bar(finished, begun, one.assigned),
        "assigned": f"{one.assigned:,}",
        "finished": f"{finished:,}",
        "open": f"{begun:,}",
        "left": f"{left:,}",
        "back": taken,
    }
    glyph = "●" if not left else "◐" if finished or begun else "○"
    return TableRow(one.name, cells, glyph, {"name": "name" if one.name == me else "figure"})


def progress_words(view: StudyView) -> str:
    """How far the whole study is, in a few words."""
    shared = view.overlap
    done, of = shared.finished, shared.traces
    words = f"{done:,} of {of:,} finished by all of theirs"
    if not of:
        done, of = sum(p.finished for p in view.progress), sum(p.assigned for p in view.progress)
        words = f"{done:,} of {of:,} finished"
    if view.conflicts is None:
        return words
    return f"{words} · {view.conflicts:,} conflict{'' if view.conflicts == 1 else 's'} left"


def protocol_words(view: StudyView) -> str:
    """What was set up, in sentences."""
    study, shared = view.study, view.overlap.traces
    lots = f" in {len(study.batches)} lots" if len(study.batches) > 1 else ""
    count = len(study.traces)
    lines = [
        f"{count:,} trace{'' if count == 1 else 's'}{lots}, under {one_line(study.taxonomy)}.",
        _people(study),
        _dealt(study, shared, count),
        _conditions(study),
        _finishing(study),
    ]
    if study.retests:
        lines.append(
            f"{study.retests:.0%} of everybody's finished traces come back to be labelled once "
            "more, without sight of the first time."
        )
    lines.append(_deciding(study))
    if view.conflicts is None and view.back:
        lines += ["", "Counting what is left to decide …"]
    elif view.conflicts is None:
        lines += ["", "What is left to decide is told to those who label nothing in the study."]
    else:
        lines += ["", f"{view.conflicts:,} left to decide: A opens them."]
    return "\n".join(lines)


def _people(study: Study) -> str:
    words = f"{_named(study.annotators)} label{'s' if len(study.annotators) == 1 else ''}"
    if study.per_trace == 1:
        return f"{words}."
    deciders = "anybody may decide"
    if study.adjudicators:
        one = len(study.adjudicators) == 1
        deciders = f"{_named(study.adjudicators)} decide{'s' if one else ''}"
    return f"{words}; where they differ {deciders}."


def _named(names: Sequence[str]) -> str:
    shown = [one_line(name) for name in names]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _dealt(study: Study, shared: int, count: int) -> str:
    if study.per_trace == 1:
        return f"Each trace is labelled by one of them, drawn by seed {study.seed}."
    everybody = study.per_trace == len(study.annotators)
    who = "all of them" if everybody else f"{study.per_trace} of them"
    rest = f", {count - shared:,} by one" if count > shared else ""
    return (
        f"{shared:,} trace{'' if shared == 1 else 's'} ({study.overlap:.0%}) labelled by {who}"
        f"{rest}; seed {study.seed}, and everybody has an order of their own."
    )


def _conditions(study: Study) -> str:
    if study.blind:
        return "They work blind: what judges say and the outcome are hidden until they finish."
    if not study.withheld:
        return "They work assisted: what judges suggest is on screen."
    return (
        f"They work assisted; on {study.withheld:.0%} of everybody's traces suggestions are "
        "withheld until they finish, so that their pull can be measured."
    )


def _finishing(study: Study) -> str:
    became = {
        "ask": "asks what becomes of open modes",
        "leave": "leaves open modes open",
        "absent": "sets open modes absent",
    }[study.open_modes.value]
    return f"Finishing with spans unread {became}."


def _deciding(study: Study) -> str:
    words = [
        f"names {'hidden until a key shows them' if study.names_hidden else 'shown'}",
        f"the judge shown {'before and after' if study.judge_first else 'after'} the decision",
    ]
    if study.boundaries:
        words.append("different places are conflicts")
    if study.reasons:
        words.append("each decision asks for a reason")
    return f"In adjudication: {', '.join(words)}."
