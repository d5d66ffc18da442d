"""A workspace's labels and outcomes as the input of a report on failure signatures."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from mast_tui.errors import WorkspaceError
from mast_tui.figures.signatures.model import (
    ALL,
    FAILED,
    NO_VALUE,
    OPEN,
    SUCCEEDED,
    UNKNOWN,
    ModeInfo,
    Places,
    SignatureInput,
    Whole,
)
from mast_tui.figures.source.verdicts import GOLD, GoldOf, Words, words_of, words_of_gold
from mast_tui.gold.overlaps import Order, no_orders
from mast_tui.gold.sources import GoldKind
from mast_tui.traces.model import Outcome, task_key

if TYPE_CHECKING:
    from mast_tui.study import Study
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace

FIELDS: Final = ("model", "system", "benchmark", "task", "reader", "version", "date")
"""What is known of traces and can tell groups apart; the date is the day in UTC."""

_NAMES_OF_COLUMNS: Final = {"date": "started"}

BETWEEN: Final = " · "
"""What stands in a group's name between the values of several fields."""

_OUTCOMES: Final = {Outcome.FAILED.value: FAILED, Outcome.SUCCEEDED.value: SUCCEEDED}


def input_from_workspace(
    workspace: Workspace,
    taxonomy: Taxonomy,
    *,
    labels: str = GOLD,
    by: str = "model",
    failed_below: float | None = None,
    gold: GoldOf,
    order_of: Callable[[str], Order] = no_orders,
    traces: Container[str] | None = None,
    which: GoldKind = "all",
    with_unlabelled: bool = False,
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
        gold: The gold of the traces it is asked for.
        order_of: Gives the order of a trace's spans.
        traces: Those that may be seen; None for all.
        which: How much of the gold counts.
        with_unlabelled: Whether traces count as well on which nobody has said anything.

    Raises:
        WorkspaceError: A field is not known of traces, or nobody here has such a name.
    """
    fields = fields_of(by)
    study = _drawn(workspace, taxonomy, labels)
    weighted = study is not None and study.trace_weights(study.traces) is not None
    if study is not None and weighted:
        # Whatever else somebody labelled had no chance, and stands for nothing but itself.
        traces = frozenset(one for one in study.traces if traces is None or one in traces)
    if labels == GOLD:
        words = words_of_gold(workspace, taxonomy, gold, order_of, traces, which)
        kind = GOLD
    else:
        words = words_of(workspace, taxonomy, labels, traces)
        kind = next(one.kind.value for one in workspace.annotators() if one.name == labels)
    if with_unlabelled:
        words = _with_unlabelled(workspace, words, traces)
    facts = _facts(workspace, words, fields)
    if "task" in fields:
        # The name of a task goes before its words, as where runs of one task are compared.
        at = len(_COLUMNS) + fields.index("task")
        facts = [(*one[:at], one[7] or one[at], *one[at + 1 :]) for one in facts]
    names, parts, group = _groups([one[len(_COLUMNS) :] for one in facts], fields)
    strata, stratum = _numbered([one[1] for one in facts])
    tasks = [task_key(one[2], one[7], one[3]) for one in facts]
    by_words = [not one[7] and task is not None for one, task in zip(facts, tasks, strict=True)]
    score = np.array([one[5] for one in facts], dtype=float)
    if failed_below is None:
        outcomes = [_OUTCOMES.get(one[4], UNKNOWN) for one in facts]
        outcome = np.array(outcomes, dtype=np.int8)
    else:
        outcome = np.where(score < failed_below, FAILED, SUCCEEDED).astype(np.int8)
        outcome[np.isnan(score)] = UNKNOWN
    places, unplaced = _placed(words, order_of)
    return SignatureInput(
        taxonomy_ref=taxonomy.ref,
        modes=tuple(
            ModeInfo(m.slug, m.code, m.name, taxonomy.path(m.category)[0].id)
            for m in taxonomy.modes
        ),
        categories=tuple((id, name) for id, name, _ in taxonomy.at_level(0)),
        levels=taxonomy.by_level,
        by=",".join(fields) or ALL,
        labels=labels,
        labels_kind=kind,
        traces=words.traces,
        group_names=names,
        group=np.array(group, dtype=np.int64),
        outcome=outcome,
        score=score,
        verdicts=words.verdicts,
        spans=np.array([-1 if one[6] is None else one[6] for one in facts], dtype=np.int64),
        places=places,
        whole=words.marks.whole,
        unplaced=unplaced,
        failed_below=failed_below,
        gold=words.mix,
        unfinished=words.unfinished,
        stratum=stratum,
        stratum_names=strata,
        group_parts=parts,
        task=_numbered(tasks)[1],
        task_by_words=np.array(by_words, dtype=bool),
        weights=_weights(study, words.traces) if study is not None and weighted else None,
        of_no_whole=study is not None and not weighted,
    )


def _with_unlabelled(workspace: Workspace, words: Words, traces: Container[str] | None) -> Words:
    """Add the traces without labels, every mode of which is open."""
    ids = workspace.read_columns("traces", ("id",), lambda rows: [row[0] for row in rows])
    known = set(words.traces)
    more = [one for one in sorted(ids) if one not in known and (traces is None or one in traces)]
    verdicts = np.full((len(more), words.verdicts.shape[1]), OPEN, dtype=np.uint8)
    return replace(
        words,
        traces=(*words.traces, *more),
        verdicts=np.concatenate([words.verdicts, verdicts]),
    )


def _drawn(workspace: Workspace, taxonomy: Taxonomy, labels: str) -> Study | None:
    """The study whose traces were drawn with different chances, where it says who labels what."""
    study = workspace.study(taxonomy.ref)
    if study is None or study.chances_alike:
        return None
    return study if labels == GOLD or labels in study.annotators else None


def _weights(study: Study, traces: Sequence[str]) -> NDArray[np.float64]:
    found = study.trace_weights(frozenset(traces)) or {}
    return np.array([found[trace] for trace in traces])


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


_COLUMNS: Final = ("id", "model", "benchmark", "task", "outcome", "score", "spans", "task_id")
_NOTHING_KNOWN: Final = (None,) * len(_COLUMNS)


def _facts(workspace: Workspace, words: Words, fields: Sequence[str]) -> list[tuple[Any, ...]]:
    """What is known of the traces, in their order: ``_COLUMNS``, then the fields' values."""
    rows = {trace: row for row, trace in enumerate(words.traces)}
    found: list[tuple[Any, ...]] = [_NOTHING_KNOWN + (None,) * len(fields)] * len(rows)

    def take(read: Iterator[tuple[Any, ...]]) -> None:
        for one in read:
            row = rows.get(one[0])
            if row is not None:
                found[row] = one

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
    values: Sequence[tuple[Any, ...]], fields: Sequence[str]
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...], list[int]]:
    """The names and parts of the groups, and the place of each trace's own.

    They are in the order of their parts, of each the unknown one last.
    """
    parts_of: dict[tuple[Any, ...], tuple[str, ...]] = {}
    for one in set(values):
        told = [
            _day(value) if field == "date" and value is not None else value
            for field, value in zip(fields, one, strict=True)
        ]
        parts_of[one] = tuple(value or NO_VALUE for value in told)
    parts = sorted(
        set(parts_of.values()), key=lambda one: [(value == NO_VALUE, value) for value in one]
    )
    place_of = {one: parts.index(own) for one, own in parts_of.items()}
    names: list[str] = []
    for own in parts:
        name = BETWEEN.join(own) or ALL
        # Values that hold what stands between them could make two groups of one name.
        while name in names:
            name += "*"
        names.append(name)
    return tuple(names), tuple(parts), [place_of[one] for one in values]


_Value = TypeVar("_Value", str, tuple[str, str])


def _numbered(values: Sequence[_Value | None]) -> tuple[tuple[_Value, ...], Whole]:
    """The different values in their order, and the number of each trace's own; -1 for none."""
    names = sorted({value for value in values if value})
    places = {name: place for place, name in enumerate(names)}
    numbers = [places[value] if value else -1 for value in values]
    return tuple(names), np.array(numbers, dtype=np.int64)


def _placed(words: Words, order_of: Callable[[str], Order]) -> tuple[Places, int]:
    """The marks whose spans are known here, and how many are not."""
    rows = {trace: row for row, trace in enumerate(words.traces)}
    orders: dict[str, Order] = {}
    known = []
    for trace, mode, opening, closing, fatal in words.marks.placed:
        order = orders.get(trace)
        if order is None:
            order = orders[trace] = order_of(trace)
        index = order(opening)
        end = index if closing == opening or index is None else order(closing)
        if index is not None and end is not None:
            # The ends may stand the other way round in somebody else's file.
            known.append((rows[trace], mode, min(index, end), max(index, end), fatal))
    row, column, first, last, said = np.array(known, dtype=np.int64).reshape(-1, 5).T
    unknown = len(words.marks.placed) - len(known)
    return Places(row, column, first, last, said.astype(bool)), unknown
