"""The input of a report on failure signatures, in columns, and its thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.bootstrap import Floats
from mast_tui.figures.record import FigureScope, Sources
from mast_tui.gold.model import GoldMixJson
from mast_tui.taxonomy.model import Group, Mode

OPEN: Final = 0
PRESENT: Final = 1
ABSENT: Final = 2
UNSURE: Final = 4
"""The verdicts of one annotator, as bits, so that those of several annotators can be joined."""

UNRESOLVED: Final = 8
"""The verdict if annotators differ and no one has decided."""

UNKNOWN: Final = 0
FAILED: Final = 1
SUCCEEDED: Final = 2
"""The values of outcomes."""

NO_VALUE: Final = "(unknown)"
"""The group of traces without a value of the grouping field."""

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """The labels on spans with known indices, in columns of equal length.

    Attributes:
        trace: The row of the trace in the verdicts.
        mode: The column of the mode in the verdicts.
        first: The index of the first span, from 0.
        last: The index of the last span.
        fatal: True if the label is marked as decisive for the outcome.
    """

    trace: Integers
    mode: Integers
    first: Integers
    last: Integers
    fatal: Flags


def no_places() -> Places:
    """Return columns without labels."""
    none = np.zeros(0, dtype=np.int64)
    return Places(none, none, none, none, np.zeros(0, dtype=bool))


ALL: Final = "all"
"""The grouping with all traces in one group."""

OVERALL: Final = ""
"""The name of the group of all traces in figures."""


_COLUMNS: Final = (
    "outcome", "score", "verdicts", "spans", "stratum_numbers", "task_numbers", "task_from_text",
    "trial_numbers", "weights",
)  # fmt: skip
"""The fields of ``SignatureInput`` with a row for each trace; some may be None."""


@dataclass(frozen=True, slots=True, eq=False)
class SignatureInput:
    """The labels of an annotator, or the gold, on many traces, in columns.

    Attributes:
        taxonomy_ref: The taxonomy, as ``id@version``.
        modes: The modes.
        categories: The topmost categories.
        by: The grouping: ``all``, or fields with commas.
        label_source: ``gold``, or the name of the annotator.
        label_source_kind: ``gold``, ``human``, ``judge`` or ``imported``.
        traces: The ids of the traces.
        group_names: The names of the groups.
        group: The index of each trace's group in ``group_names``.
        outcome: UNKNOWN, FAILED or SUCCEEDED of each trace.
        score: The score of each trace; NaN if it has none.
        verdicts: Traces × modes: OPEN, PRESENT, ABSENT, UNSURE or UNRESOLVED.
        spans: The number of spans of each trace; -1 if it is unknown.
        places: The labels on spans with known indices.
        whole_trace_labels: The number of labels on whole traces.
        labels_on_unknown_spans: The number of labels on spans with unknown indices.
        failed_below: The score below which a trace has failed; None if outcomes are recorded.
        gold: The sources of the gold; None for an annotator's labels.
        unfinished: The number of traces that the annotator has begun and not finished.
        stratum_numbers: The index of each trace's model in ``stratum_names``, -1 if unknown; None
            if models were not read.
        stratum_names: The names of the models.
        group_parts: The values of the grouping fields, by group.
        task_numbers: The number of each trace's task, -1 if unknown; None if tasks were not read. A
            benchmark's tasks are its own, whatever their names.
        task_keys: The benchmark and the id or text of each task, by its number.
        task_from_text: True for a trace whose task has no id and is identified by its text.
        trial_numbers: The number of each run among the runs of its task, -1 if unknown.
        weights: The number of traces that each trace represents; None if all weights are equal.
        has_unknown_weights: True if traces were drawn with different chances that give no weights.
        levels: All categories of each level by its name; empty for one level only.
    """

    taxonomy_ref: str
    modes: tuple[Mode, ...]
    categories: tuple[Group, ...]
    by: str
    label_source: str
    label_source_kind: str
    traces: tuple[str, ...]
    group_names: tuple[str, ...]
    group: Integers
    outcome: NDArray[np.int8]
    score: Floats
    verdicts: NDArray[np.uint8]
    spans: Integers
    places: Places = field(default_factory=no_places)
    whole_trace_labels: int = 0
    labels_on_unknown_spans: int = 0
    failed_below: float | None = None
    gold: GoldMixJson | None = None
    unfinished: int = 0
    stratum_numbers: Integers | None = None
    stratum_names: tuple[str, ...] = ()
    group_parts: tuple[tuple[str, ...], ...] = ()
    task_numbers: Integers | None = None
    task_keys: tuple[tuple[str, str], ...] = ()
    task_from_text: Flags | None = None
    trial_numbers: Integers | None = None
    weights: Floats | None = None
    has_unknown_weights: bool = False
    levels: Mapping[str, tuple[Group, ...]] = field(default_factory=dict)

    @property
    def fields(self) -> tuple[str, ...]:
        """The metadata fields that define the groups; empty if all traces are one group."""
        return () if self.by == ALL else tuple(self.by.split(","))

    def as_one_group(self) -> SignatureInput:
        """Return the input with all traces in one group."""
        if self.group_names == (ALL,) and self.by == ALL:
            return self
        return replace(
            self,
            by=ALL,
            group=np.zeros(len(self.traces), dtype=np.int64),
            group_names=(ALL,),
            group_parts=((),),
        )

    def only(self, selected: Flags) -> SignatureInput:
        """Return the input of the traces in a mask, without groups that become empty."""
        in_selected_trace = selected[self.places.trace]
        # The row of each selected trace in the new input.
        new_rows = np.cumsum(selected) - 1
        places = Places(
            new_rows[self.places.trace[in_selected_trace]],
            *(
                getattr(self.places, name)[in_selected_trace]
                for name in ("mode", "first", "last", "fatal")
            ),
        )
        group_numbers = np.unique(self.group[selected])
        remaining_groups = group_numbers.tolist()
        columns = {name: getattr(self, name) for name in _COLUMNS}
        return replace(
            self,
            traces=tuple(compress(self.traces, selected.tolist())),
            group=np.searchsorted(group_numbers, self.group[selected]),
            group_names=tuple(self.group_names[group] for group in remaining_groups),
            group_parts=tuple(
                self.group_parts[group] for group in remaining_groups if self.group_parts
            ),
            places=places,
            **{name: column[selected] for name, column in columns.items() if column is not None},
        )

    def members(self) -> dict[str, Flags]:
        """Return masks of the traces by name: of all traces (``OVERALL``), then of each group."""
        mask_by_group = {OVERALL: np.ones(len(self.traces), dtype=bool)}
        if self.fields:
            mask_by_group |= {
                name: self.group == number for number, name in enumerate(self.group_names)
            }
        return mask_by_group

    def parts(self, group: int) -> dict[str, str]:
        """Return the value of each field of a group, by the group's index in ``group_names``."""
        values = self.group_parts[group] if self.group_parts else (self.group_names[group],)
        return dict(zip(self.fields, values, strict=True)) if self.fields else {}


@dataclass(frozen=True, slots=True)
class GroupScope:
    """The subject of the figures of one group.

    ``group`` is its name, or ``OVERALL``. ``slugs`` are those of the modes, by code.
    """

    taxonomy: str
    group: str
    slugs: Mapping[str, str]

    @classmethod
    def named(cls, inputs: SignatureInput, group: str) -> GroupScope:
        """Return the scope of a group.

        Args:
            inputs: The input of the report.
            group: The name of the group, or ``OVERALL``.
        """
        return cls(inputs.taxonomy_ref, group, {mode.code: mode.slug for mode in inputs.modes})

    def scope(self, name: str, mode: str = "", *codes: str, **where: str) -> FigureScope:
        """Return a scope of the group.

        Args:
            name: The name of the scope; a name that ends in ``_failed`` is about failed traces.
            mode: The mode, category or pair that its figures are about.
            codes: The codes of modes that all source traces of its figures have.
            where: Further conditions of the query, as field and value.
        """
        if name.endswith("_failed"):
            where = {"outcome": "failed", **where}
        modes = tuple(self.slugs[code] for code in codes)
        return FigureScope(
            name,
            self.taxonomy,
            self.group,
            mode,
            sources=Sources("signatures", modes, group=self.group, where=tuple(where.items())),
        )


@dataclass(frozen=True, slots=True)
class Rules:
    """The thresholds of the report; ``docs/report.md`` explains them.

    Attributes:
        alpha: A mode with a smaller adjusted p-value is fatal.
        margin: A mode is benign if the interval of its difference of rates ends at or below this;
            0.1 for ten points.
        least: The fewest failed and successful traces to classify a mode.
        isolated: The most modes of a trace with an isolated failure.
        cascading: The fewest modes of a trace with a cascading failure.

    Raises:
        ValueError: A threshold is out of range.
    """

    alpha: float = 0.05
    margin: float = 0.1
    least: int = 5
    isolated: int = 2
    cascading: int = 4

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise ValueError(f"alpha must be between 0 and 1, not {self.alpha:g}")
        if not 0 <= self.margin <= 1:
            raise ValueError(f"margin must be between 0 and 100 points, not {100 * self.margin:g}")
        if self.least < 1:
            raise ValueError(f"least must be at least 1 trace, not {self.least}")
        if not 1 <= self.isolated < self.cascading:
            raise ValueError(
                f"isolated must be at least 1 and below cascading, not {self.isolated} modes with "
                f"cascading from {self.cascading}"
            )
