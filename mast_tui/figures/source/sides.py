"""What annotators said in the passes that count, read into columns."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.signatures.model import ABSENT, OPEN, PRESENT, UNSURE
from mast_tui.labels import AnnotatorKind, PassKind, VerdictValue, annotator_kind
from mast_tui.passes import finished_by
from mast_tui.workspace.columns import SEPARATOR

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace

BITS: Final = {
    VerdictValue.PRESENT: PRESENT,
    VerdictValue.ABSENT: ABSENT,
    VerdictValue.UNSURE: UNSURE,
}

_Rows = Mapping[tuple[str, str], tuple[int, int]]
"""Annotator and trace id to the row and the number of the pass that counts."""

_NOWHERE: Final = (-1, -1)
_READINGS: Final = frozenset(kind.value for kind in PassKind if kind.is_reading)


@dataclass(slots=True)
class Marks:
    """Labels with spans as they were read: trace id, mode's column, first and last key, fatal."""

    trace: list[str] = field(default_factory=list)
    mode: list[int] = field(default_factory=list)
    first: list[str] = field(default_factory=list)
    last: list[str] = field(default_factory=list)
    fatal: list[bool] = field(default_factory=list)
    whole: int = 0

    def add(self, trace: str, mode: int, first: str | None, last: str | None, fatal: bool) -> None:
        """Keep a label; one on the whole trace is only counted."""
        if first is None or last is None:
            self.whole += 1
            return
        self.trace.append(trace)
        self.mode.append(mode)
        self.first.append(first)
        self.last.append(last)
        self.fatal.append(fatal)


class Sides:
    """The counted passes of annotators with what was said in them, row by row.

    ``keys`` are annotator and trace id of each row, sorted by trace; ``cells`` the verdicts.
    ``not_in_study`` is how many traces each of those has finished who have no part in the study;
    they are left out unless an annotator is named.
    """

    def __init__(
        self,
        workspace: Workspace,
        taxonomy: Taxonomy,
        traces: Container[str] | None,
        *,
        annotator: str | None,
        unfinished: bool,
    ) -> None:
        self.ref = taxonomy.ref
        self._workspace = workspace
        self._modes = {mode.slug: i for i, mode in enumerate(taxonomy.modes)}
        self._wanted = {"taxonomy": taxonomy.ref}
        if annotator is not None:
            self._wanted["annotator"] = annotator
        kinds = {info.name: info.kind for info in workspace.annotators()}
        outside = workspace.outside_study(taxonomy.ref) if annotator is None else frozenset[str]()
        found = self._passes(unfinished)
        passes = {key: n for key, n in found.items() if key[0] not in outside}
        self.not_in_study = finished_by(
            outside, (key for key in found if traces is None or key[1] in traces)
        )
        self._passes_of = {
            key: number
            for key, number in passes.items()
            if (traces is None or key[1] in traces)
            and (
                annotator is not None
                or kinds.get(key[0], annotator_kind(key[0])) is not AnnotatorKind.JUDGE
            )
        }
        self.keys: list[tuple[str, str]] = []
        self.cells = np.zeros((0, len(self._modes)), dtype=np.uint8)
        self.marks = Marks()

    def _passes(self, unfinished: bool) -> dict[tuple[str, str], int]:
        """The number of the last reading that counts, by annotator and trace id."""

        def take(rows: Iterator[tuple[Any, ...]]) -> dict[tuple[str, str], int]:
            found: dict[tuple[str, str], int] = {}
            for name, trace, number, kind, finished_at, withdrawn in rows:
                if (
                    withdrawn
                    or kind not in _READINGS
                    or not (unfinished or finished_at is not None)
                ):
                    continue
                key = (name, trace)
                found[key] = max(number, found.get(key, number))
            return found

        columns = ("annotator", "trace_id", "number", "kind", "finished_at", "withdrawn")
        return self._workspace.read_columns("passes", columns, take, wanted=self._wanted)

    def without(self, traces: Container[str]) -> None:
        """Leave traces out."""
        self._passes_of = {k: n for k, n in self._passes_of.items() if k[1] not in traces}

    def read(self) -> None:
        """Read what was said."""
        self.keys = sorted(self._passes_of, key=lambda key: (key[1], key[0]))
        rows = {key: (row, self._passes_of[key]) for row, key in enumerate(self.keys)}
        self.cells = np.zeros((len(self.keys), len(self._modes)), dtype=np.uint8)
        self.marks.whole = self._read_whole(rows)
        self._read_marks(rows)
        self._read_others(rows)

    def _read_whole(self, rows: _Rows) -> int:
        """Set the modes with labels on the whole trace, and return how many labels there are."""
        # In the order of an index of that table, so that nothing has to be sorted.
        columns = ("trace_id", "annotator", "pass_number")

        def take(found: Iterator[tuple[Any, ...]]) -> int:
            return self._set(((a, t, n, *more) for t, a, n, *more in found), rows, PRESENT)

        return self._workspace.read_columns(
            "labels", columns, take, wanted=self._wanted, empty="first_key", joined="mode"
        )

    def _read_others(self, rows: _Rows) -> None:
        """Set the modes that are absent or unsure and have no label."""
        columns = ("annotator", "trace_id", "pass_number")
        for value in (VerdictValue.ABSENT, VerdictValue.UNSURE):
            self._workspace.read_columns(
                "verdicts",
                columns,
                partial(self._set, rows=rows, bit=BITS[value]),
                wanted={**self._wanted, "value": value.value},
                joined="mode",
            )

    def _set(self, found: Iterator[tuple[Any, ...]], rows: _Rows, bit: int) -> int:
        """Set modes where nothing stands yet, and return how many were said.

        A mode with labels is present, whatever was said of it before.
        """
        said = 0
        at, which = [], []
        patterns: dict[str, int] = {}
        for name, trace, number, modes, count in found:
            row, counted = rows.get((name, trace), _NOWHERE)
            if counted == number:
                said += count
                at.append(row)
                which.append(patterns.setdefault(modes, len(patterns)))
        own = self.cells[at]
        self.cells[at] = np.where(own == OPEN, self._cells(patterns, bit)[which], own)
        return said

    def _cells(self, patterns: Mapping[str, int], bit: int) -> NDArray[np.uint8]:
        """Per pattern of joined modes a row of verdicts; modes of no taxonomy are left out."""
        cells = np.zeros((len(patterns), len(self._modes)), dtype=np.uint8)
        for pattern, row in patterns.items():
            for mode in pattern.split(SEPARATOR):
                if mode in self._modes:
                    cells[row, self._modes[mode]] = bit
        return cells

    def _read_marks(self, rows: _Rows) -> None:
        """Read the labels that name spans, and set their modes."""
        modes, marks, keys = self._modes, self.marks, self.keys
        at: list[int] = []

        def take(found: Iterator[tuple[Any, ...]]) -> None:
            for name, trace, number, mode, first, last, severity, decisive in found:
                row, counted = rows.get((name, trace), _NOWHERE)
                if counted == number and mode in modes:
                    at.append(row)
                    marks.trace.append(keys[row][1])
                    marks.mode.append(modes[mode])
                    marks.first.append(first)
                    # One text for equal keys, as there may be a million of them.
                    marks.last.append(first if last == first else last)
                    marks.fatal.append(severity == "fatal" or decisive == 1)

        columns = ("annotator", "trace_id", "pass_number", "mode")
        placed = (*columns, "first_key", "last_key", "severity", "decisive")
        self._workspace.read_columns("labels", placed, take, wanted=self._wanted, given="first_key")
        self.cells[at, marks.mode] = PRESENT

    def keep_only(self, looks_at: Mapping[str, Collection[str]]) -> None:
        """Open every mode of a trace but those that are looked at."""
        for row, (_, trace) in enumerate(self.keys):
            seen = looks_at.get(trace, ())
            for slug, column in self._modes.items():
                if slug not in seen:
                    self.cells[row, column] = OPEN

    def shared(self) -> set[str]:
        """The traces with more than one side."""
        traces = [trace for _, trace in self.keys]
        return {a for a, b in pairwise(traces) if a == b}

    def settled(
        self, besides: Collection[str]
    ) -> tuple[list[str], NDArray[np.uint8], NDArray[np.bool_]]:
        """The traces with a side, and ``besides`` others, with what all sides say of each mode.

        Where they differ, the mode is open. Beside it whether several sides have a verdict.
        """
        traces = [trace for _, trace in self.keys]
        opens = [i for i in range(len(traces)) if i == 0 or traces[i] != traces[i - 1]]
        ids = [traces[i] for i in opens]
        cells = np.zeros((0, len(self._modes)), dtype=np.uint8)
        shared = np.zeros(cells.shape, dtype=bool)
        if opens:
            starts = np.array(opens, dtype=np.intp)
            cells = np.bitwise_or.reduceat(self.cells, starts, axis=0)
            shared = np.add.reduceat((self.cells != OPEN).astype(np.int64), starts, axis=0) > 1
        several = ~np.isin(cells, (PRESENT, ABSENT, UNSURE))
        cells[several] = OPEN
        new = sorted(set(besides) - set(ids))
        more = np.full((len(new), len(self._modes)), OPEN, dtype=np.uint8)
        alone = np.zeros(more.shape, dtype=bool)
        return [*ids, *new], np.concatenate([cells, more]), np.concatenate([shared, alone])
