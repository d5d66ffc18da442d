"""The input of a report on failure signatures, in columns, and its thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.record import FigureScope, Sources
from mast_tui.gold.sources import GoldMixJson
from mast_tui.taxonomy.model import Group

OPEN: Final = 0
PRESENT: Final = 1
ABSENT: Final = 2
UNSURE: Final = 4
"""The verdicts of one side, as bits, so that those of several sides can be combined."""

UNRESOLVED: Final = 8
"""The verdict if the sides differ and no one has decided."""

UNKNOWN: Final = 0
FAILED: Final = 1
SUCCEEDED: Final = 2
"""The values of outcomes."""

NO_VALUE: Final = "(unknown)"
"""The group of the traces without a value."""

Whole = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ModeInfo:
    """A mode of the taxonomy, as a report names it."""

    slug: str
    code: str
    name: str
    category: str


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """The labels on spans with known indices, in columns of equal length.

    ``trace`` and ``mode`` are rows and columns of the verdicts, ``first`` and ``last`` the indices
    of the spans, from 0. ``fatal`` flags the labels that are marked as having decided the outcome.
    """

    trace: Whole
    mode: Whole
    first: Whole
    last: Whole
    fatal: Flags


def no_places() -> Places:
    """Return columns without labels."""
    none = np.zeros(0, dtype=np.int64)
    return Places(none, none, none, none, np.zeros(0, dtype=bool))


ALL: Final = "all"
"""The grouping that has every trace in one group."""

OVERALL: Final = ""
"""The name of the group of all traces."""


@dataclass(frozen=True, slots=True, eq=False)
class SignatureInput:
    """Somebody's words on many traces, in columns.

    ``by`` is what tells the groups apart: ``all``, a field, or several with a comma between them.
    ``traces`` are ids; ``group`` the place of each trace's group in ``group_names``, and
    ``group_parts`` the value of each field by group; ``outcome``
    UNKNOWN, FAILED or SUCCEEDED; ``score`` NaN if there is none; ``verdicts`` (traces × modes)
    OPEN, PRESENT, ABSENT, UNSURE or UNRESOLVED; ``spans`` how many spans each trace has, -1 where
    nobody counted. ``whole`` counts labels that name no place, ``unplaced`` those whose place is
    not known here. ``labels`` is whose words they are, ``labels_kind`` gold, human, judge or
    imported; ``gold`` is what a gold is made of, and ``unfinished`` counts the traces that the
    annotator has begun and not finished. ``stratum`` is the place of each trace's model in
    ``stratum_names``, -1 if it is not known; None if nobody has asked.
    ``task`` has a number for the task that each trace is a run of, -1 if it is not known; tasks
    of one name in two benchmarks are two. It is None if nobody has asked; ``task_by_words``
    flags the traces whose task has no name and is known by its words. ``weights`` are how
    many traces of the whole each stands for; None if all stand for as many; ``of_no_whole`` says
    that they came in with different chances, so that nobody knows. ``categories`` are the topmost,
    ``levels`` by name all of each level, none where there is one only.
    """

    taxonomy_ref: str
    modes: tuple[ModeInfo, ...]
    categories: tuple[tuple[str, str], ...]
    by: str
    labels: str
    labels_kind: str
    traces: tuple[str, ...]
    group_names: tuple[str, ...]
    group: Whole
    outcome: NDArray[np.int8]
    score: NDArray[np.float64]
    verdicts: NDArray[np.uint8]
    spans: Whole
    places: Places = field(default_factory=no_places)
    whole: int = 0
    unplaced: int = 0
    failed_below: float | None = None
    gold: GoldMixJson | None = None
    unfinished: int = 0
    stratum: Whole | None = None
    stratum_names: tuple[str, ...] = ()
    group_parts: tuple[tuple[str, ...], ...] = ()
    task: Whole | None = None
    task_by_words: Flags | None = None
    weights: NDArray[np.float64] | None = None
    of_no_whole: bool = False
    levels: Mapping[str, tuple[Group, ...]] = field(default_factory=dict)

    @property
    def fields(self) -> tuple[str, ...]:
        """The metadata fields that define the groups; empty if all traces are one group."""
        return () if self.by == ALL else tuple(self.by.split(","))

    def as_one_group(self) -> SignatureInput:
        """Return the input with all traces in one group; the same where they are already."""
        if self.group_names == (ALL,) and self.by == ALL:
            return self
        return replace(
            self,
            by=ALL,
            group=np.zeros(len(self.traces), dtype=np.int64),
            group_names=(ALL,),
            group_parts=((),),
        )

    def only(self, rows: Flags) -> SignatureInput:
        """Return the input with some of the traces, and only groups that have any."""
        in_rows = rows[self.places.trace]
        numbers = np.cumsum(rows) - 1
        places = Places(
            numbers[self.places.trace[in_rows]],
            *(getattr(self.places, name)[in_rows] for name in ("mode", "first", "last", "fatal")),
        )
        groups = np.unique(self.group[rows])
        chosen = np.flatnonzero(rows).tolist()
        return replace(
            self,
            traces=tuple(self.traces[row] for row in chosen),
            group=np.searchsorted(groups, self.group[rows]),
            group_names=tuple(self.group_names[group] for group in groups.tolist()),
            group_parts=tuple(self.group_parts[group] for group in groups.tolist())
            if self.group_parts
            else (),
            outcome=self.outcome[rows],
            score=self.score[rows],
            verdicts=self.verdicts[rows],
            spans=self.spans[rows],
            places=places,
            stratum=None if self.stratum is None else self.stratum[rows],
            task=None if self.task is None else self.task[rows],
            task_by_words=None if self.task_by_words is None else self.task_by_words[rows],
            weights=self.weights_of(rows),
        )

    def members(self) -> dict[str, Flags]:
        """Return flags of the traces in each group by its name, first all as ``OVERALL``.

        If all traces are one group, it is the only entry.
        """
        groups = {name: self.group == number for number, name in enumerate(self.group_names)}
        return {OVERALL: np.ones(len(self.traces), dtype=bool), **(groups if self.fields else {})}

    def weights_of(self, chosen: Flags) -> NDArray[np.float64] | None:
        """Return the weights of the chosen traces; None if all have the same."""
        return None if self.weights is None else self.weights[chosen]

    def parts(self, group: int) -> dict[str, str]:
        """Return the value of each field of a group, by the group's index in ``group_names``."""
        values = self.group_parts[group] if self.group_parts else (self.group_names[group],)
        return dict(zip(self.fields, values, strict=True)) if self.fields else {}


@dataclass(frozen=True, slots=True)
class GroupScope:
    """The subject of the figures of one group; ``group`` is its name, or ``OVERALL``."""

    taxonomy: str
    group: str
    slugs: Mapping[str, str]
    """The slugs of the modes by code."""

    @classmethod
    def named(cls, inputs: SignatureInput, group: str) -> GroupScope:
        """Return the scope of a group.

        Args:
            inputs: The input of the report.
            group: The name of the group, or ``OVERALL``.
        """
        return cls(inputs.taxonomy_ref, group, {mode.code: mode.slug for mode in inputs.modes})

    def scope(self, name: str, mode: str = "", *codes: str, **where: str) -> FigureScope:
        """Return one scope of the group.

        Args:
            name: Its name; one that ends in ``_failed`` is about failed traces alone.
            mode: The mode, category or pair that its figures are about.
            codes: The modes that its traces show; none for all traces.
            where: What else narrows the query for its traces.
        """
        if name.endswith("_failed"):
            where = {"outcome": "failed", **where}
        modes = tuple(self.slugs[code] for code in codes)
        sources = Sources("signatures", modes, group=self.group, where=tuple(where.items()))
        return FigureScope(name, self.taxonomy, self.group, mode, sources=sources)


@dataclass(frozen=True, slots=True)
class Rules:
    """The thresholds of the report; ``docs/report.md`` explains them.

    ``margin`` is a difference of rates, 0.1 for ten points. Raises ``ValueError`` for an impossible
    limit.
    """

    alpha: float = 0.05
    margin: float = 0.1
    least: int = 5
    isolated: int = 2
    cascading: int = 4

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise ValueError(f"alpha lies between 0 and 1, not at {self.alpha:g}")
        if not 0 <= self.margin <= 1:
            raise ValueError(f"a margin lies between 0 and 100 points, not at {self.margin:g}")
        if self.least < 1:
            raise ValueError(f"at least 1 trace is needed for a word on a mode, not {self.least}")
        if not 1 <= self.isolated < self.cascading:
            raise ValueError(
                f"isolated ends at {self.isolated} modes and cascading begins at {self.cascading}; "
                "the first is at least 1 and below the second"
            )
