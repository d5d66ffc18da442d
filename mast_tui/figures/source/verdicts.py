"""Whose words on which traces: verdicts and labels of a workspace, read into columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from mast_tui.errors import WorkspaceError
from mast_tui.figures.signatures.model import ABSENT, OPEN, PRESENT, UNRESOLVED, UNSURE
from mast_tui.gold.model import GoldTrace, Source
from mast_tui.gold.overlaps import Order
from mast_tui.gold.sources import SOURCES, GoldKind, GoldMixJson, counted_source, only_settled
from mast_tui.labels import AnnotatorKind, PassKind, Severity, VerdictValue, annotator_kind
from mast_tui.passes import finished_by
from mast_tui.workspace.events.columns import BITS, CODES, MODES_AT_ONCE

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace

GOLD: Final = "gold"

FLAGS: Final = {
    VerdictValue.PRESENT: PRESENT,
    VerdictValue.ABSENT: ABSENT,
    VerdictValue.UNSURE: UNSURE,
}
"""What stands for each verdict in ``Words``."""

GoldOf = Callable[[Collection[str]], Mapping[str, GoldTrace]]
"""The gold of some traces, by trace id."""

Pass = tuple[str, str, int]
"""Annotator, trace id and number."""

_READINGS: Final = frozenset(kind.value for kind in PassKind if kind.is_reading)
_UNANIMOUS: Final = SOURCES.index(Source.UNANIMOUS)
_SINGLE: Final = SOURCES.index(Source.SINGLE)


@dataclass(slots=True)
class Marks:
    """Labels with spans as they were read: trace id, mode's column, first and last key, fatal.

    ``whole`` counts the labels on whole traces, ``merged`` the places that cover different ones of
    several people.
    """

    placed: list[tuple[str, int, str, str, bool]] = field(default_factory=list)
    whole: int = 0
    merged: int = 0


@dataclass(frozen=True, slots=True)
class Words:
    """The traces that an annotator has judged, their verdicts (traces × modes), and the marks.

    ``mix`` is what they are made of where they are the gold. ``unfinished`` counts the traces that
    the annotator has begun and not finished.
    """

    traces: tuple[str, ...]
    verdicts: NDArray[np.uint8]
    marks: Marks
    mix: GoldMixJson | None = None
    unfinished: int = 0


def last_readings(
    workspace: Workspace, wanted: Mapping[str, str], *, unfinished: bool
) -> dict[tuple[str, str], int]:
    """Give the number of the last reading that counts, by annotator and trace id.

    Args:
        workspace: Where the passes are.
        wanted: The values that columns of the passes must have.
        unfinished: Whether a reading counts that was not finished.
    """

    def take(rows: Iterator[tuple[Any, ...]]) -> dict[tuple[str, str], int]:
        found: dict[tuple[str, str], int] = {}
        for name, trace, number, kind, finished_at, withdrawn in rows:
            if not withdrawn and kind in _READINGS and (unfinished or finished_at is not None):
                key = (name, trace)
                found[key] = max(number, found.get(key, number))
        return found

    columns = ("annotator", "trace_id", "number", "kind", "finished_at", "withdrawn")
    return workspace.read_columns("passes", columns, take, equal_to=wanted)


def verdict_cells(
    workspace: Workspace,
    taxonomy: Taxonomy,
    rows: Mapping[Pass, int],
    values: Mapping[VerdictValue, int],
    no_verdict: int,
    *,
    annotator: str | None = None,
) -> tuple[NDArray[Any], int]:
    """Read the verdicts of some passes; a mode with labels is present.

    Args:
        workspace: Where they are.
        taxonomy: Its modes are the columns.
        rows: The passes, with the row of each, from 0.
        values: What stands for each verdict.
        no_verdict: What stands where there is none.
        annotator: Whose alone; None for everybody's.

    Returns:
        Passes × modes, and how many labels are on whole traces.
    """
    slugs = [mode.slug for mode in taxonomy.modes]
    packed = np.zeros((len(rows), -(-len(slugs) // MODES_AT_ONCE)), dtype=np.int64)
    whole = 0
    for part, chunk in enumerate(workspace.packed_verdicts(taxonomy.ref, slugs, annotator)):
        at, bits = [], []
        for name, trace, number, verdicts, labels in chunk.rows:
            row = rows.get((name, trace, number))
            if row is not None:
                at.append(row)
                bits.append(verdicts)
                whole += labels if part == 0 else 0
        np.bitwise_or.at(packed[:, part], np.array(at, dtype=np.intp), np.array(bits, np.int64))
    places = np.arange(len(slugs))
    codes = packed[:, places // MODES_AT_ONCE] >> (BITS * (places % MODES_AT_ONCE))
    cell_of_code = np.full(1 << BITS, no_verdict, dtype=np.int8)
    for value, code in CODES.items():
        cell_of_code[code] = values[value]
    return cell_of_code[codes & ((1 << BITS) - 1)], whole


class _Sides:
    """The passes of annotators that count with what was said in them, row by row.

    ``keys`` are annotator and trace id of each row, sorted by trace; ``cells`` the verdicts.
    """

    def __init__(
        self,
        workspace: Workspace,
        taxonomy: Taxonomy,
        passes: Mapping[tuple[str, str], int],
        annotator: str | None = None,
    ) -> None:
        self.keys = sorted(passes, key=lambda key: (key[1], key[0]))
        rows = {(*key, passes[key]): row for row, key in enumerate(self.keys)}
        cells, whole = verdict_cells(workspace, taxonomy, rows, FLAGS, OPEN, annotator=annotator)
        self.cells: NDArray[np.uint8] = cells.astype(np.uint8)
        columns = {mode.slug: column for column, mode in enumerate(taxonomy.modes)}

        def take(found: Iterator[tuple[Any, ...]]) -> Marks:
            placed = []
            for name, trace, number, mode, first, last, severity, decisive in found:
                row = rows.get((name, trace, number))
                if row is not None and mode in columns:
                    fatal = severity == Severity.FATAL or decisive == 1
                    # One text for equal ones, as there may be a million of them.
                    last = first if last == first else last
                    placed.append((self.keys[row][1], columns[mode], first, last, fatal))
            return Marks(placed, whole)

        wanted = {"taxonomy": taxonomy.ref} | (
            {} if annotator is None else {"annotator": annotator}
        )
        passed = ("annotator", "trace_id", "pass_number")
        named = (*passed, "mode", "first_key", "last_key", "severity", "decisive")
        self.marks = workspace.read_columns(
            "labels", named, take, equal_to=wanted, not_null="first_key"
        )

    def settled(
        self, besides: Collection[str]
    ) -> tuple[list[str], NDArray[np.uint8], NDArray[np.bool_]]:
        """The traces with a side, and ``besides`` others, with what all sides say of each mode.

        Where they differ, the mode is unresolved. Beside it whether several sides have a verdict.
        """
        ids: list[str] = []
        starts = []
        for row, (_, trace) in enumerate(self.keys):
            if not ids or trace != ids[-1]:
                ids.append(trace)
                starts.append(row)
        new = sorted(set(besides) - set(ids))
        cells = np.full((len(ids) + len(new), self.cells.shape[1]), OPEN, dtype=np.uint8)
        several = np.zeros(cells.shape, dtype=bool)
        if ids:
            said = self.cells != OPEN
            cells[: len(ids)] = np.bitwise_or.reduceat(self.cells, starts, axis=0)
            several[: len(ids)] = np.add.reduceat(said.astype(np.int64), starts, axis=0) > 1
        cells[~np.isin(cells, (OPEN, PRESENT, ABSENT, UNSURE))] = UNRESOLVED
        return [*ids, *new], cells, several


def words_of(
    workspace: Workspace, taxonomy: Taxonomy, name: str, traces: Container[str] | None = None
) -> Words:
    """Read the verdicts of one annotator in the last finished pass.

    A judge has a verdict only on modes that it looks at, and none on a trace that it has not
    finished or that was an example in its prompt.

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
    wanted = {"taxonomy": taxonomy.ref, "annotator": name}
    left_out = workspace.run_examples(name) if judge else frozenset[str]()
    begun = {
        key: number
        for key, number in last_readings(workspace, wanted, unfinished=True).items()
        if (traces is None or key[1] in traces) and key[1] not in left_out
    }
    looked = workspace.judgements(annotator=name, taxonomy=taxonomy.ref) if judge else ()
    looks_at = {one.trace_id: one.looks_at for one in looked}
    if judge:
        passes = {key: number for key, number in begun.items() if key[1] in looks_at}
    else:
        finished = last_readings(workspace, wanted, unfinished=False)
        passes = {key: number for key, number in finished.items() if key in begun}
    sides = _Sides(workspace, taxonomy, passes, name)
    if judge:
        for row, (_, trace) in enumerate(sides.keys):
            seen = looks_at.get(trace, ())
            sides.cells[row, [mode.slug not in seen for mode in taxonomy.modes]] = OPEN
    return Words(
        tuple(trace for _, trace in sides.keys),
        sides.cells,
        sides.marks,
        unfinished=len(begun) - len(passes),
    )


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
    different ones are unresolved. So ``gold`` is asked only for traces with decisions, and for
    those where several people named places that ``order_of`` knows.

    Args:
        workspace: Where the words are.
        taxonomy: Under which taxonomy.
        gold: The gold of the traces it is asked for.
        order_of: Gives the order of a trace's spans.
        traces: Those that may be seen; None for all.
        which: How much of the gold counts; of ``settled`` only what is more than one person's word.
    """
    wanted = {"taxonomy": taxonomy.ref}
    passes = last_readings(workspace, wanted, unfinished=False)
    if traces is not None:
        passes = {key: number for key, number in passes.items() if key[1] in traces}
    outside = workspace.outside_study(taxonomy.ref)
    not_in_study = finished_by(outside, passes)
    kinds = {info.name: info.kind for info in workspace.annotators()}
    names = {name for name, _ in passes}
    people = {name for name in names - outside if kinds.get(name, annotator_kind(name)).is_person}
    if people < names:
        passes = {key: number for key, number in passes.items() if key[0] in people}
    sides = _Sides(workspace, taxonomy, passes)
    decided = workspace.read_columns(
        "decisions", ("trace_id",), lambda rows: {row[0] for row in rows}, equal_to=wanted
    )
    if traces is not None:
        decided = {trace for trace in decided if trace in traces}
    ids, verdicts, several = sides.settled(decided)
    sources = np.where(several, _UNANIMOUS, _SINGLE).astype(np.uint8)
    sources[verdicts == UNRESOLVED] = SOURCES.index(Source.UNRESOLVED)
    shared = {trace for (_, trace), (_, other) in pairwise(sides.keys) if trace == other}
    marks = sides.marks
    if which == "settled":
        # Whatever counts here is on these, so that nothing of the sides alone is left.
        asked = decided | shared
        verdicts[:] = OPEN
        marks = Marks()
    else:
        asked = decided | {
            trace
            for trace, _, key, _, _ in marks.placed
            if trace in shared and order_of(trace)(key) is not None
        }
    if asked:
        marks = Marks([mark for mark in marks.placed if mark[0] not in asked], marks.whole)
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
    mix: GoldMixJson = {
        "sources": {},
        "traces": {},
        "annotators": sorted({name for name, trace in sides.keys if trace in there}),
        "settled_only": which == "settled",
        "not_in_study": not_in_study,
        "merged": marks.merged,
    }
    for place, source in enumerate(SOURCES):
        own = (sources == place) & (verdicts != OPEN)
        mix["sources"][source.value] = int(own.sum())
        mix["traces"][source.value] = int(own.any(axis=1).sum())
    return Words(tuple(ids), verdicts, marks, mix)


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
        source = counted_source(verdict)
        if source is not None and verdict.mode in columns:
            value = verdict.value
            row[columns[verdict.mode]] = UNRESOLVED if value is None else FLAGS[value]
            sources[columns[verdict.mode]] = SOURCES.index(source)
    for label in settled.labels:
        first, last = label.target.first, label.target.last
        if label.mode in columns and (first is None or last is None):
            marks.whole += 1
        elif label.mode in columns and first is not None and last is not None:
            fatal = label.severity is Severity.FATAL
            marks.placed.append((trace, columns[label.mode], first, last, fatal))
            marks.merged += label.merged
