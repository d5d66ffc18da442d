"""Whose words on which traces: verdicts and labels of a workspace, read into columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.signatures.model import OPEN
from mast_tui.figures.source.sides import BITS, Marks, Sides
from mast_tui.gold.model import GoldTrace, Source
from mast_tui.gold.places import Order
from mast_tui.gold.sources import SOURCES, GoldKind, GoldMixJson, only_settled
from mast_tui.labels import AnnotatorKind, Severity
from mast_tui.workspace.errors import WorkspaceError
from mast_tui.workspace.set_aside import examples_of

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace

GOLD: Final = "gold"

_UNANIMOUS: Final = SOURCES.index(Source.UNANIMOUS)
_SINGLE: Final = SOURCES.index(Source.SINGLE)

GoldOf = Callable[[Collection[str]], Mapping[str, GoldTrace]]
"""The gold of some traces, by trace id."""


@dataclass(frozen=True, slots=True)
class Words:
    """The traces that somebody has judged, their verdicts (traces × modes), and the marks.

    ``mix`` is what they are made of where they are the gold.
    """

    traces: tuple[str, ...]
    verdicts: NDArray[np.uint8]
    marks: Marks
    mix: GoldMixJson | None = None


def words_of(
    workspace: Workspace, taxonomy: Taxonomy, name: str, traces: Container[str] | None = None
) -> Words:
    """Read the words of one annotator: of people the last finished pass, of judges the last one.

    A judge has a word only on modes that it looks at, and none on a trace that stood as an example
    in its prompt.

    Args:
        workspace: Where they are.
        taxonomy: Under which taxonomy.
        name: The annotator's name.
        traces: Those that may be seen; None for all.

    Raises:
        WorkspaceError: Nobody here has such a name.
    """
    known = {info.name: info.kind for info in workspace.annotators()}
    if name not in known:
        there = ", ".join([GOLD, *known])
        raise WorkspaceError(f"--labels {name!r} is nobody in this workspace; there are: {there}")
    judge = known[name] is AnnotatorKind.JUDGE
    sides = Sides(workspace, taxonomy, traces, annotator=name, unfinished=judge)
    if judge:
        sides.without(examples_of(workspace, name))
    sides.read()
    if judge:
        looked = workspace.judgements(annotator=name, taxonomy=taxonomy.ref)
        sides.keep_only({one.trace_id: one.looks_at for one in looked})
    return Words(tuple(trace for _, trace in sides.keys), sides.cells, sides.marks)


def words_of_gold(
    workspace: Workspace,
    taxonomy: Taxonomy,
    gold: GoldOf,
    order_of: Callable[[str], Order],
    traces: Container[str] | None = None,
    which: GoldKind = "all",
) -> Words:
    """Read the gold verdicts and places.

    Where nobody has decided anything, verdicts follow from the sides alone: equal ones hold,
    different ones are open. So ``gold`` is asked only for traces with decisions, and for those
    where several people named places that ``order_of`` knows.

    Args:
        workspace: Where the words are.
        taxonomy: Under which taxonomy.
        gold: The gold of the traces it is asked for.
        order_of: Gives the order of a trace's spans.
        traces: Those that may be seen; None for all.
        which: How much of the gold counts; of ``settled`` only what is more than one person's word.
    """
    sides = Sides(workspace, taxonomy, traces, annotator=None, unfinished=False)
    sides.read()
    decided = workspace.read_columns(
        "decisions",
        ("trace_id",),
        lambda rows: {row[0] for row in rows},
        wanted={"taxonomy": taxonomy.ref},
    )
    if traces is not None:
        decided = {trace for trace in decided if trace in traces}
    ids, verdicts, several = sides.settled(decided)
    sources = np.where(several, _UNANIMOUS, _SINGLE).astype(np.uint8)
    shared = sides.shared()
    known = {
        trace
        for trace, key in zip(sides.marks.trace, sides.marks.first, strict=True)
        if trace in shared and order_of(trace)(key) is not None
    }
    asked = decided | known
    marks = sides.marks
    if which == "settled":
        # Whatever counts here is on these, so that nothing of the sides alone is left.
        asked = decided | shared
        verdicts[:] = OPEN
        marks = Marks()
    if asked:
        marks = _without(marks, asked)
        rows = {trace: row for row, trace in enumerate(ids)}
        columns = {mode.slug: i for i, mode in enumerate(taxonomy.modes)}
        for trace, settled in gold(asked).items():
            if trace in rows:
                kept = only_settled(settled) if which == "settled" else settled
                row = rows[trace]
                _take_over(kept, trace, verdicts[row], sources[row], columns, marks)
    if which == "settled":
        held = (verdicts != OPEN).any(axis=1)
        ids = [trace for trace, is_held in zip(ids, held, strict=True) if is_held]
        verdicts, sources = verdicts[held], sources[held]
    there = set(ids)
    people = {name for name, trace in sides.keys if trace in there}
    mix = _mix(ids, verdicts, sources, people, which, sides.not_in_study)
    return Words(tuple(ids), verdicts, marks, mix)


def _mix(
    ids: Sequence[str],
    verdicts: NDArray[np.uint8],
    sources: NDArray[np.uint8],
    people: Collection[str],
    which: GoldKind,
    not_in_study: Mapping[str, int],
) -> GoldMixJson:
    """Count verdicts and traces by source."""
    counts: dict[str, int] = {}
    traces: dict[str, int] = {}
    for place, source in enumerate(SOURCES):
        own = (sources == place) & (verdicts != OPEN)
        counts[source.value], traces[source.value] = int(own.sum()), int(own.any(axis=1).sum())
    return {
        "sources": counts,
        "traces": traces,
        "annotators": sorted(people),
        "settled_only": which == "settled",
        "not_in_study": dict(not_in_study),
    }


def _take_over(
    settled: GoldTrace,
    trace: str,
    row: NDArray[np.uint8],
    sources: NDArray[np.uint8],
    columns: Mapping[str, int],
    marks: Marks,
) -> None:
    """Put what is settled of a trace in the stead of what its sides say."""
    row[:] = OPEN
    for verdict in settled.verdicts:
        if verdict.value is not None and verdict.mode in columns:
            row[columns[verdict.mode]] = BITS[verdict.value]
            sources[columns[verdict.mode]] = SOURCES.index(verdict.source)
    for label in settled.labels:
        if label.mode in columns:
            fatal = label.severity is Severity.FATAL
            marks.add(trace, columns[label.mode], label.target.first, label.target.last, fatal)


def _without(marks: Marks, traces: Collection[str]) -> Marks:
    kept = Marks(whole=marks.whole)
    for trace, mode, first, last, fatal in zip(
        marks.trace, marks.mode, marks.first, marks.last, marks.fatal, strict=True
    ):
        if trace not in traces:
            kept.add(trace, mode, first, last, fatal)
    return kept
