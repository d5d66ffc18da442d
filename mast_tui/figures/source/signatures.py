"""A workspace's labels and outcomes as the input of a report on failure signatures."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from mast_tui.figures.signatures.model import (
    ALL,
    FAILED,
    NO_VALUE,
    SUCCEEDED,
    UNKNOWN,
    ModeInfo,
    Places,
    Runs,
    SignatureInput,
    Whole,
)
from mast_tui.figures.source.sides import Marks
from mast_tui.figures.source.verdicts import GOLD, GoldOf, Words, words_of, words_of_gold
from mast_tui.gold.model import GoldTrace
from mast_tui.gold.places import Order, no_order
from mast_tui.gold.sources import GoldKind
from mast_tui.traces.model import Outcome
from mast_tui.workspace.errors import WorkspaceError

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace

FIELDS: Final = ("model", "system", "benchmark", "task", "reader", "version", "date")
"""What is known of traces and can tell groups apart; the date is the day in UTC."""

_NAMES_OF_COLUMNS: Final = {"date": "started"}

BETWEEN: Final = " · "
"""What stands in a group's name between the values of several fields."""

_OUTCOMES: Final = {Outcome.FAILED.value: FAILED, Outcome.SUCCEEDED.value: SUCCEEDED}


def _no_orders(_trace_id: str) -> Order:
    return no_order


def input_from_workspace(
    workspace: Workspace,
    taxonomy: Taxonomy,
    *,
    labels: str = GOLD,
    by: str = "model",
    failed_below: float | None = None,
    gold: GoldOf | Mapping[str, GoldTrace] | None = None,
    order_of: Callable[[str], Order] = _no_orders,
    traces: Container[str] | None = None,
    which: GoldKind = "all",
) -> SignatureInput:
    """Read the gold, or one annotator's finished words, under one taxonomy.

    Args:
        workspace: Where they are.
        taxonomy: Under which taxonomy.
        labels: ``gold``, or an annotator's name.
        by: What tells groups apart: ``all``, one of ``FIELDS``, or several with commas between,
            whose groups are named ``A · B``.
        failed_below: A trace with a lower score has failed, any other with a score has succeeded,
            and without one its outcome is unknown. By default outcomes are those of the traces.
        gold: The gold of the traces it is asked for; needed where ``labels`` is ``gold``.
        order_of: Gives the order of a trace's spans.
        traces: Those that may be seen; None for all.
        which: How much of the gold counts.

    Raises:
        WorkspaceError: A field is not known of traces, or nobody here has such a name.
    """
    fields = fields_of(by)
    if labels == GOLD:
        words = words_of_gold(workspace, taxonomy, _asking(gold), order_of, traces, which)
        kind = GOLD
    else:
        words = words_of(workspace, taxonomy, labels, traces)
        kind = next(one.kind.value for one in workspace.annotators() if one.name == labels)
    known = _facts(workspace, words, fields)
    names, parts, group = _groups(known.values)
    strata, stratum = _numbered(known.models)
    outcome, score = np.array(known.outcomes, dtype=np.int8), np.array(known.scores, dtype=float)
    if failed_below is not None:
        outcome = np.where(score < failed_below, FAILED, SUCCEEDED).astype(np.int8)
        outcome[np.isnan(score)] = UNKNOWN
    places, unplaced = _placed(words, order_of)
    return SignatureInput(
        taxonomy_ref=taxonomy.ref,
        modes=tuple(ModeInfo(m.slug, m.code, m.name, m.category) for m in taxonomy.modes),
        categories=tuple((one.id, one.name) for one in taxonomy.categories),
        by=",".join(fields) or ALL,
        labels=labels,
        labels_kind=kind,
        traces=words.traces,
        group_names=names,
        group=np.array(group, dtype=np.int64),
        outcome=outcome,
        score=score,
        verdicts=words.verdicts,
        spans=np.array(known.spans, dtype=np.int64),
        places=places,
        whole=words.marks.whole,
        unplaced=unplaced,
        failed_below=failed_below,
        gold=words.mix,
        stratum=None if fields else stratum,
        stratum_names=() if fields else strata,
        group_parts=parts,
        runs=Runs(_numbered(known.tasks)[1], stratum, strata),
    )


def fields_of(by: str) -> tuple[str, ...]:
    """Take apart what is to tell groups apart.

    Args:
        by: ``all``, one of ``FIELDS``, or several of them with commas between.

    Returns:
        The fields, in the order that was asked for; none for ``all``.

    Raises:
        WorkspaceError: A field is not known of traces, or stands there twice.
    """
    fields = tuple(name.strip() for name in by.split(","))
    if fields == (ALL,):
        return ()
    for place, field in enumerate(fields):
        if field == ALL:
            raise WorkspaceError("--by all makes one group of all traces; it stands alone")
        if field not in FIELDS:
            there = ", ".join((*FIELDS, ALL))
            raise WorkspaceError(
                f"--by {field!r} is nothing that is known of traces; there are: {there}"
            )
        if field in fields[:place]:
            raise WorkspaceError(f"--by names {field} twice")
    return fields


def without_outcomes(
    given: SignatureInput, shown: Container[str] | None
) -> tuple[SignatureInput, int]:
    """Take out the outcomes and scores that may not be shown, and count their traces.

    Args:
        given: The input of a report.
        shown: The traces whose outcome may be shown; None for all.
    """
    if shown is None:
        return given, 0
    veiled = np.array([trace not in shown for trace in given.traces], dtype=bool)
    if not veiled.any():
        return given, 0
    outcome = np.where(veiled, UNKNOWN, given.outcome).astype(np.int8)
    score = np.where(veiled, np.nan, given.score)
    return replace(given, outcome=outcome, score=score), int(veiled.sum())


def _asking(gold: GoldOf | Mapping[str, GoldTrace] | None) -> GoldOf:
    if gold is None:
        return lambda _traces: {}
    if isinstance(gold, Mapping):
        settled = gold
        return lambda traces: {trace: settled[trace] for trace in traces if trace in settled}
    return gold


@dataclass(frozen=True, slots=True)
class _Facts:
    """What is known of the traces, in their order; spans are -1 and scores NaN where nothing is.

    ``values`` are those of the fields that tell groups apart. A task goes with its benchmark.
    """

    values: list[tuple[str, ...]]
    models: list[str | None]
    tasks: list[tuple[str, str] | None]
    outcomes: list[int]
    scores: list[float]
    spans: list[int]


_COLUMNS: Final = ("id", "model", "benchmark", "task", "outcome", "score", "spans")


def _facts(workspace: Workspace, words: Words, fields: Sequence[str]) -> _Facts:
    rows = {trace: row for row, trace in enumerate(words.traces)}
    n = len(rows)
    found = _Facts(
        [(NO_VALUE,) * len(fields)] * n,
        [None] * n,
        [None] * n,
        [UNKNOWN] * n,
        [float("nan")] * n,
        [-1] * n,
    )

    dated = fields.index("date") if "date" in fields else None

    def take(read: Iterator[tuple[Any, ...]]) -> None:
        for trace, model, benchmark, task, outcome, score, spans, *values in read:
            row = rows.get(trace)
            if row is not None:
                if dated is not None and values[dated] is not None:
                    values[dated] = _day(values[dated])
                found.values[row] = tuple(value or NO_VALUE for value in values)
                found.models[row] = model
                found.tasks[row] = (benchmark or "", task) if task else None
                found.outcomes[row] = _OUTCOMES.get(outcome, UNKNOWN)
                found.scores[row] = float("nan") if score is None else score
                found.spans[row] = -1 if spans is None else spans

    named = (_NAMES_OF_COLUMNS.get(field, field) for field in fields)
    workspace.read_columns("traces", (*_COLUMNS, *named), take)
    return found


def _day(started: float) -> str | None:
    """The day of a moment in Unix seconds, in UTC; None of one that no calendar has."""
    try:
        return datetime.fromtimestamp(started, UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):
        return None


def _groups(
    values: Sequence[tuple[str, ...]],
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...], list[int]]:
    """The names and parts of the groups, and the place of each trace's own.

    They are in the order of their parts, of each the unknown one last.
    """
    parts = sorted(set(values), key=lambda one: [(value == NO_VALUE, value) for value in one])
    places = {one: place for place, one in enumerate(parts)}
    names: list[str] = []
    for one in parts:
        name = BETWEEN.join(one) or ALL
        # Values that hold what stands between them could make two groups of one name.
        while name in names:
            name += "*"
        names.append(name)
    return tuple(names), tuple(parts), [places[one] for one in values]


_Value = TypeVar("_Value", str, tuple[str, str])


def _numbered(values: Sequence[_Value | None]) -> tuple[tuple[_Value, ...], Whole]:
    """The different values in their order, and the number of each trace's own; -1 for none."""
    names = sorted({value for value in values if value})
    places = {name: place for place, name in enumerate(names)}
    numbers = [places[value] if value else -1 for value in values]
    return tuple(names), np.array(numbers, dtype=np.int64)


def _placed(words: Words, order_of: Callable[[str], Order]) -> tuple[Places, int]:
    """The marks whose spans are known here, and how many are not."""
    marks = words.marks
    rows = {trace: row for row, trace in enumerate(words.traces)}
    first, last = _indices(marks, order_of)
    here = (first >= 0) & (last >= 0)
    trace = np.array([rows[one] for one in marks.trace], dtype=np.int64)
    places = Places(
        trace[here],
        np.array(marks.mode, dtype=np.int64)[here],
        # The ends may stand the other way round in somebody else's file.
        np.minimum(first, last)[here],
        np.maximum(first, last)[here],
        np.array(marks.fatal, dtype=bool)[here],
    )
    return places, int((~here).sum())


def _indices(marks: Marks, order_of: Callable[[str], Order]) -> tuple[Whole, Whole]:
    """The indices of the first and last spans of the marks, -1 where they are not known."""
    orders: dict[str, Order] = {}
    first = np.full(len(marks.first), -1, dtype=np.int64)
    last = first.copy()
    columns = zip(marks.trace, marks.first, marks.last, strict=True)
    for place, (trace, opening, closing) in enumerate(columns):
        order = orders.get(trace)
        if order is None:
            order = orders[trace] = order_of(trace)
        index = order(opening)
        if index is None:
            continue
        end = index if closing == opening else order(closing)
        first[place], last[place] = index, -1 if end is None else end
    return first, last
