"""The record of a figure, the registry of statistics, and the JSON document of a report.

A figure is a flat, immutable record: a statistic, its scope, its value and interval, and the query
for its traces. The modules of ``figures`` compute sequences of records and contain no sentences.
JSON documents, tables and ``--records`` are views of the records.

To add a statistic, add an entry to the registry at the end of this module and compute it where its
kind is computed (coefficients of whole traces: ``figures/agreement/counting.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from operator import itemgetter
from typing import Any, Final, Literal, NamedTuple

from mast_tui.grouping import values_by_key

OUTCOMES: Final = ("failed", "succeeded")
"""The outcomes of a trace, as conditions of figures."""

PAIR: Final = "|"
"""The separator of two annotators' names in one key or cell. No name contains it."""


Undefined = Literal[
    "no_variance",
    "no_overlap",
    "single_trace",
    "single_rater",
    "no_unlabelled",
    "no_positives",
    "no_negatives",
    "no_better_than_chance",
]
"""The reasons why a figure is undefined. No figure is ever NaN.

A coefficient of agreement is undefined for the first of these reasons that holds:

- ``single_rater``: fewer than two raters, or only one of them has ratings.
- ``no_overlap``: no unit has ratings by two raters (for Fleiss' κ: by all raters).
- ``single_trace``: all shared units are in one trace, so that chance cannot be estimated. Raw,
  positive and negative agreement are defined nevertheless.
- ``no_variance``: all ratings of shared units are of one category, so that chance agreement is
  total. This includes Gwet's AC1: with a fixed number of categories its formula would give 1,
  without evidence of agreement on a category that never occurred. Raw agreement is defined.

Positive and negative agreement are undefined (``no_variance``) only if their category never occurs.

The last four are about prevalences that cannot be corrected: no trace was judged by the judge
alone; the reference never calls the mode present, or never absent; or TPR + TNR ≤ 1, so that the
judge is no better than chance.
"""
Withheld = Literal[
    "few_traces",
    "rare_answer",
    "few_shared_traces",
    "few_places",
    "few_found_twice",
    "dependent_finders",
    "single_trace",
    "copied_blocks",
    "unresolved",
]
"""The reasons why a figure has no interval.

- ``few_traces``: it rests on too few traces, or traces × modes.
- ``rare_answer``: present or absent is too rare.
- ``few_shared_traces``: it is a mean over pairs of annotators, and a pair shares too few traces.
- ``few_places``: places of two annotators overlap in too few traces.
- ``few_found_twice``: too few failures were found by several finders.
- ``dependent_finders``: finders depend on each other, which capture and recapture does not allow.
- ``single_trace``: the rarer answer occurs in one trace, or the figure is undefined without one.
- ``copied_blocks``: there are too few traces if copies of a block of verdicts count once.
- ``unresolved``: too many verdicts of the gold are unresolved disagreements.
"""

# The most informative reason comes first.
_REASONS: tuple[Undefined, ...] = ("no_variance", "single_trace", "no_overlap")


class Basis(StrEnum):
    """The answers on which a statistic of agreement rests."""

    ALL = "all"
    """Every answer."""
    PRESENT = "present"
    ABSENT = "absent"
    RARER = "rarer"
    """The rarer of both answers, which determines chance agreement."""


class JsonForm(StrEnum):
    """The form of a figure in a JSON document."""

    ESTIMATE = "estimate"
    """An object with ``value`` and ``ci``, or with ``value`` null and ``undefined``."""
    NUMBER = "number"
    """The number alone, or null."""
    NUMBER_OR_REASON = "number_or_reason"
    """The number, or null with ``undefined`` beside it."""
    NUMBER_OR_REASONS = "number_or_reasons"
    """The number, or null with its reason in the object ``undefined`` beside it."""
    FLAG = "flag"
    """True or false."""


@dataclass(frozen=True, slots=True)
class Statistic:
    """The definition of a statistic.

    Args:
        name: The name in records and JSON documents: ``cohen_kappa``.
        title: A short heading of a column: ``κ``.
        label: The name in sentences: ``Cohen's κ``.
        formula: The formula, or in words what is counted.
        source: Who published the formula.
        undefined: When the statistic has no value.
        interval: How the interval is computed; empty if there is none.
        withheld: Where an interval would not hold and is withheld.
        form: The form in JSON documents.
        key: The key in JSON documents, with dots between those of objects in each other; by
            default the name.
        lowest: The least possible value.
        basis: The answers that a statistic of agreement rests on.
        over_chance: Whether it compares agreement with the chance that the answers give, which
            takes two traces and both answers. A fixed chance (PABAK) is none.
        steady: Whether a rare answer hardly biases it; else a mean over modes needs more traces
            for an interval.
        linear: Whether it is a linear function of the share of agreeing pairs of verdicts; else an
            interval needs several traces with the rarer answer.
        priority: The order in which tables drop columns on narrow screens, the lowest first; 0 for
            a statistic that tables do not show.
    """

    name: str
    title: str
    label: str
    formula: str
    source: str = ""
    undefined: str = ""
    interval: str = ""
    withheld: str = ""
    form: JsonForm = JsonForm.NUMBER
    key: str = ""
    lowest: float = 0.0
    basis: Basis = Basis.ALL
    over_chance: bool = False
    steady: bool = False
    linear: bool = False
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Sources:
    """A query for the traces that a figure rests on.

    Attributes:
        part: The part of the report: ``people``, ``spans``, ``judge`` or ``signatures``.
        modes: The slugs of modes; empty for every mode.
        subject: The annotators whose traces count; empty for all.
        group: The group of traces; empty for all.
        where: Further conditions as (field, value): an outcome, a tenth of the run.
    """

    part: str
    modes: tuple[str, ...] = ()
    subject: tuple[str, ...] = ()
    group: str = ""
    where: tuple[tuple[str, str], ...] = ()

    def narrowed(self, field_name: str, value: str) -> Sources:
        """Return the query with a further condition.

        Args:
            field_name: The field of the condition, such as the tenth of the run.
            value: The value that the field must have.
        """
        return replace(self, where=(*self.where, (field_name, value)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A value of a statistic, with its scope, interval and sources.

    A computation returns a figure without a scope. ``FigureScope.figure`` adds the scope.

    Args:
        statistic: The name of a registered statistic; empty without a scope.
        scope: The part of the data: ``mode``, ``pooled``, ``pair``. A report declares its scopes.
        group: The round, level or group of traces.
        mode: The code of a mode, or the id of a category.
        subject: The annotators, the pair or the judge.
        condition: The part of the scope: a degree of overlap, an outcome, a bin, one of two
            annotators, or the statistic that a count belongs to.
        taxonomy: The taxonomy, as ``id@version``.
        value: None if the figure is undefined.
        interval: Both ends of the interval; None without one.
        bounds: The least and the greatest possible value after all unresolved disagreements are
            decided, which replace the interval.
        count: The number of hits of a share, of ``n``.
        n: The number of units on which the figure rests.
        unresolved: The number of further units on which annotators differ.
        reason: The reason why the value is undefined, or why there is no interval.
        needs: The number of units that an interval needs.
        sources: The query for its traces.
    """

    statistic: str = ""
    scope: str = ""
    group: str = ""
    mode: str = ""
    subject: tuple[str, ...] = ()
    condition: str = ""
    taxonomy: str = ""
    value: float | None = None
    interval: tuple[float, float] | None = None
    bounds: tuple[float, float] | None = None
    count: int | None = None
    n: int | None = None
    unresolved: int | None = None
    reason: str = ""
    needs: int | None = None
    sources: Sources | None = None

    def __post_init__(self) -> None:
        if self.statistic and self.statistic not in STATISTICS:
            raise ValueError(f"{self.statistic!r} is not in the registry of statistics")

    @property
    def low(self) -> float | None:
        """The lower end of the interval, or None."""
        return None if self.interval is None else self.interval[0]

    @property
    def high(self) -> float | None:
        """The upper end of the interval, or None."""
        return None if self.interval is None else self.interval[1]

    @property
    def undefined(self) -> str | None:
        """The reason for no value; None if there is one."""
        return (self.reason or "undefined") if self.value is None else None

    @property
    def withheld(self) -> str | None:
        """The reason for no interval; None if none is known."""
        return self.reason or None if self.value is not None else None

    @property
    def definition(self) -> Statistic:
        """The registered definition of its statistic."""
        return STATISTICS[self.statistic]


class NoInterval(NamedTuple):
    """The reason for no interval, and the number of traces, units or answers that it needs."""

    reason: Withheld
    needs: int


def mean_of_defined(coefficients: Sequence[Figure]) -> tuple[Figure, int]:
    """Return the mean of the defined coefficients, and their number.

    If none is defined, the reason of the mean is the first one in ``_REASONS`` that a coefficient
    has.
    """
    values = [c.value for c in coefficients if c.value is not None]
    if values:
        return Figure(value=sum(values) / len(values)), len(values)
    reasons = {c.undefined for c in coefficients}
    reason: Undefined = next((reason for reason in _REASONS if reason in reasons), "single_rater")
    return Figure(reason=reason), 0


@dataclass(frozen=True, slots=True)
class FigureScope:
    """The fields that several figures share."""

    name: str
    taxonomy: str = ""
    group: str = ""
    mode: str = ""
    subject: tuple[str, ...] = ()
    sources: Sources | None = None

    def of_pair(self, pair: tuple[str, str]) -> FigureScope:
        """Return the scope of the figures of two annotators."""
        sources = self.sources and replace(self.sources, subject=pair)
        return replace(self, name=f"{self.name}_pair", subject=pair, sources=sources)

    def figure(
        self, statistic: str, computed: Figure, *, condition: str = "", n: int | None = None
    ) -> Figure:
        """Return a computed figure with the fields of this scope.

        An outcome as the condition narrows the query for the figure's traces.

        Args:
            statistic: The name of the statistic.
            computed: The value with its interval or the reason for none.
            condition: The part of the data, such as an outcome; empty for all of it.
            n: The number of units on which it rests; by default that of ``computed``.
        """
        sources = self.sources
        if sources is not None and condition in OUTCOMES:
            sources = sources.narrowed("outcome", condition)
        return replace(
            computed,
            statistic=statistic,
            scope=self.name,
            group=self.group,
            mode=self.mode,
            subject=self.subject,
            condition=condition,
            taxonomy=self.taxonomy,
            n=computed.n if n is None else n,
            sources=sources,
        )

    def number(
        self,
        statistic: str,
        value: float | None,
        *,
        annotator: str = "",
        condition: str = "",
        n: int | None = None,
        reason: str = "",
    ) -> Figure:
        """Return a count, or a number without an interval, as a figure.

        Args:
            statistic: The name of the statistic.
            value: The number; None if it is undefined.
            annotator: The annotator, or two joined with ``PAIR``; empty to keep the scope's
                subject.
            condition: The part of the data, such as an outcome; empty for all of it.
            n: The number of units on which it rests.
            reason: The reason why it is undefined.
        """
        computed = Figure(value=value, n=n, reason=reason)
        figure = self.figure(statistic, computed, condition=condition)
        return replace(figure, subject=tuple(annotator.split(PAIR))) if annotator else figure

    def counts(
        self,
        values: Mapping[str, float | None],
        *,
        condition: str = "",
        n: int | None = None,
    ) -> Iterator[Figure]:
        """Yield counts, or numbers without an interval, of several statistics.

        Args:
            values: The numbers by the name of the statistic.
            condition: The part of the data, such as an outcome; empty for all of it.
            n: The number of units on which the numbers rest.
        """
        for statistic, value in values.items():
            yield self.number(statistic, value, condition=condition, n=n)

    def numbers(self, statistic: str, values: Mapping[str, float | None]) -> Iterator[Figure]:
        """Yield a number for each annotator, or for each pair.

        Args:
            statistic: The name of the statistic.
            values: The numbers by annotator, or by two annotators joined with ``PAIR``.
        """
        for name, value in values.items():
            yield self.number(statistic, value, annotator=name)


class FigureIndex:
    """Figures that are looked up by scope, group, mode and subject."""

    def __init__(self, figures: Iterable[Figure] = ()) -> None:
        self.figures = tuple(figures)
        # The tables that ``figures_by_key`` has returned, by scope, group and subject.
        self._tables: dict[tuple[str, str, tuple[str, ...]], dict[str, FigureTable]] = {}
        # Figures by mode, for each scope and group.
        self._figures: dict[tuple[str, str], dict[str, list[Figure]]] = {}
        for figure in self.figures:
            by_mode = self._figures.setdefault((figure.scope, figure.group), {})
            by_mode.setdefault(figure.mode, []).append(figure)

    def table(
        self, scope: str, *, group: str = "", mode: str = "", subject: Sequence[str] = ()
    ) -> FigureTable:
        """Return the figures of one scope; an empty table if there are none.

        Args:
            scope: The name of the scope.
            group: The round, level or group of traces; empty for all.
            mode: The code of a mode, or the id of a category.
            subject: The pair or annotator, if the scope has one table for each.
        """
        figures = self._figures.get((scope, group), {}).get(mode, [])
        if subject:
            figures = [figure for figure in figures if figure.subject == tuple(subject)]
        return FigureTable(tuple(figures), scope, group, mode, tuple(subject))

    def pairs(self, table: FigureTable) -> dict[tuple[str, ...], FigureTable]:
        """Return the tables of each pair of annotators that belong to a table of all annotators."""
        scope = f"{table.scope}_pair"
        figures = self._figures.get((scope, table.group), {}).get(table.mode, [])
        figures_by_pair = values_by_key((figure.subject, figure) for figure in figures)
        return {
            pair: FigureTable(tuple(pair_figures), scope, table.group, table.mode, pair)
            for pair, pair_figures in figures_by_pair.items()
        }

    def figures_by_key(
        self, scope: str, *, group: str = "", subject: Sequence[str] = ()
    ) -> dict[str, FigureTable]:
        """Return the figures of a scope by their field ``mode``, in the order of the figures.

        The field is a mode, or in some scopes a pair or a chain of modes.

        Args:
            scope: The name of the scope.
            group: The round, level or group of traces; empty for all.
            subject: The pair or annotator, if the scope has one table for each.
        """
        key = (scope, group, tuple(subject))
        if key not in self._tables:
            self._tables[key] = {
                mode: self.table(scope, group=group, mode=mode, subject=subject)
                for mode in self._figures.get((scope, group), {})
                if mode
            }
        return self._tables[key]


@dataclass(frozen=True, slots=True)
class FigureTable:
    """The figures of one scope, such as those of a mode.

    Without a ``subject``, some figures are about all annotators, and some about one annotator or
    pair.
    """

    figures: tuple[Figure, ...]
    scope: str = ""
    group: str = ""
    mode: str = ""
    subject: tuple[str, ...] = ()
    _by_key: dict[tuple[str, str], Figure] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        for figure in self.figures:
            if self.subject or not figure.subject:
                self._by_key[figure.statistic, figure.condition] = figure

    @property
    def sources(self) -> Sources | None:
        """The query for the traces of its figures, without the conditions of single figures."""
        return self.figures[0].sources if self.figures else None

    def get(self, statistic: str, condition: str = "") -> Figure | None:
        """Return the table's figure of a statistic; None if there is none.

        Args:
            statistic: The name of the statistic.
            condition: The part of the data, such as an outcome; empty for all of it.
        """
        return self._by_key.get((statistic, condition))

    def find(self, statistic: str, condition: str = "") -> Figure:
        """Return the table's figure of a statistic.

        Args:
            statistic: The name of the statistic.
            condition: The part of the data, such as an outcome; empty for all of it.

        Raises:
            KeyError: There is no such figure.
        """
        return self._by_key[statistic, condition]

    def __getitem__(self, statistic: str) -> Figure:
        return self._by_key[statistic, ""]

    def __contains__(self, statistic: object) -> bool:
        return (statistic, "") in self._by_key

    def value(self, statistic: str, condition: str = "") -> float | None:
        """Return the value of a statistic; None if it is undefined or missing.

        Args:
            statistic: The name of the statistic.
            condition: The part of the data, such as an outcome; empty for all of it.
        """
        figure = self.get(statistic, condition)
        return None if figure is None else figure.value

    def count(self, statistic: str, condition: str = "") -> int:
        """Return the value of a statistic that is a count; 0 if there is none.

        Args:
            statistic: The name of the statistic.
            condition: The part of the data, such as an outcome; empty for all of it.
        """
        return int(self.value(statistic, condition) or 0)

    def by_name(self, statistic: str) -> dict[str, Figure]:
        """Return the figures of a statistic by the name of their condition.

        If none has a condition, return them by the names in their subject.
        """
        figures = [figure for figure in self.figures if figure.statistic == statistic]
        if any(figure.condition for figure in figures):
            return {figure.condition: figure for figure in figures if figure.condition}
        return {PAIR.join(figure.subject): figure for figure in figures if figure.subject}

    def values(self, statistic: str) -> dict[str, float | None]:
        """Return the values of ``by_name``."""
        return {name: figure.value for name, figure in self.by_name(statistic).items()}


@dataclass(frozen=True, slots=True)
class ScopePath:
    """The path of a scope's figures in a JSON document.

    Attributes:
        keys: The keys; ``{group}``, ``{mode}``, ``{subject}`` and ``{condition}`` are filled in.
        shows_n: Whether figures show their ``n``.
        shows_subject: Whether the subject is a key; False if the whole document is about one
            subject.
    """

    keys: tuple[str, ...]
    shows_n: bool = True
    shows_subject: bool = True

    def keys_of(self, figure: Figure) -> list[str]:
        """Return the keys that lead to a figure in the JSON document.

        The figure's fields replace placeholders such as ``{mode}``, and the name of the statistic
        follows. A subject or condition without a placeholder is appended.
        """
        subject = PAIR.join(figure.subject) if self.shows_subject else ""
        field_by_placeholder = {
            "{group}": figure.group,
            "{mode}": figure.mode,
            "{subject}": subject,
            "{condition}": figure.condition,
        }
        keys = [field_by_placeholder.get(key, key) for key in self.keys]
        keys += (figure.definition.key or figure.statistic).split(".")
        for placeholder in ("{subject}", "{condition}"):
            if field_by_placeholder[placeholder] and placeholder not in self.keys:
                keys.append(field_by_placeholder[placeholder])
        return keys


def scope_paths(table: str) -> dict[str, ScopePath]:
    """Read the path of each scope's figures in a JSON document.

    Args:
        table: A line for each scope: ``scope | path | no n | no subject``. The path has the keys,
            joined with dots, and placeholders such as ``{mode}`` for fields of a figure. ``no n``
            hides
            the ``n`` of figures; ``no subject`` leaves their subject out of the keys.
    """
    paths: dict[str, ScopePath] = {}
    for line in table.strip().splitlines():
        scope, path, *flags = (part.strip() for part in line.split("|"))
        paths[scope] = ScopePath(
            tuple(path.split(".")),
            shows_n="no n" not in flags,
            shows_subject="no subject" not in flags,
        )
    return paths


def insert_figures(
    figures: Iterable[Figure], paths: Mapping[str, ScopePath], document: dict[str, Any]
) -> dict[str, Any]:
    """Insert figures into a JSON document, and return the same document.

    Args:
        figures: The figures, in the order of the document.
        paths: The paths by scope; figures of other scopes are left out.
        document: The document, which is changed.
    """
    for figure in figures:
        path = paths.get(figure.scope)
        if path is None:
            continue
        *parent_keys, key = path.keys_of(figure)
        parent = document
        for parent_key in parent_keys:
            if parent.get(parent_key) is None:
                parent[parent_key] = {}
            parent = parent[parent_key]
        match figure.definition.form:
            case JsonForm.ESTIMATE:
                parent[key] = estimate_json(figure, shows_n=path.shows_n)
            case JsonForm.FLAG:
                parent[key] = bool(figure.value)
            case JsonForm.NUMBER_OR_REASON if figure.value is None:
                parent |= {key: None, "undefined": figure.undefined}
            # The reasons of several numbers are together in one object.
            case JsonForm.NUMBER_OR_REASONS if figure.value is None:
                parent[key] = None
                parent.setdefault("undefined", {})[key] = figure.undefined
            case _:
                parent[key] = figure.value
    return document


def list_of(ends: tuple[float, float] | None) -> list[float] | None:
    """Return both ends of an interval as a list; None without an interval."""
    return None if ends is None else list(ends)


def rate_json(figure: Figure) -> dict[str, Any]:
    """Return a share as a JSON object, with the reason if a value or interval is missing."""
    values = {
        "count": figure.count,
        "n": figure.n,
        "rate": figure.value,
        "ci": list_of(figure.interval),
    }
    return values | uncertainty_json(figure)


def uncertainty_json(figure: Figure) -> dict[str, Any]:
    """Return the reason for a missing value or interval, and the unresolved units with bounds."""
    values: dict[str, Any] = {}
    if figure.value is None:
        values["undefined"] = figure.undefined
    if figure.unresolved:
        values["unresolved"] = figure.unresolved
    if figure.bounds is not None:
        values |= {
            "bounds": list_of(figure.bounds),
            "ci_withheld": "unresolved",
            "ci_needs": figure.needs,
        }
    return values | withheld_json(figure)


def withheld_json(figure: Figure) -> dict[str, Any]:
    """Return the reason for a missing interval, and the units that it needs; empty otherwise."""
    if figure.withheld is None:
        return {}
    return {"ci_withheld": figure.withheld, "ci_needs": figure.needs}


def estimate_json(figure: Figure, *, shows_n: bool = True) -> dict[str, Any]:
    """Return a figure as the object ``{"value", "ci"}`` of JSON documents.

    Args:
        figure: The figure.
        shows_n: Whether the object has the ``n`` of the figure.
    """
    values: dict[str, Any] = {"value": figure.value}
    if figure.value is None:
        values["undefined"] = figure.undefined
    else:
        values["ci"] = list_of(figure.interval)
    values |= withheld_json(figure)
    if figure.bounds is not None:
        values["bounds"] = list_of(figure.bounds)
    if shows_n and figure.n is not None:
        values["n"] = figure.n
    return values


def record_json(figure: Figure) -> dict[str, Any]:
    """Return a figure as one flat JSON object, with the query for its traces as a nested object."""
    record: dict[str, Any] = {}
    for name, value in asdict(figure).items():
        if name in _ENDS:
            record |= zip(_ENDS[name], value or (None, None), strict=True)
        else:
            record[name] = value
    return record


_ENDS: Final = {"interval": ("low", "high"), "bounds": ("bound_low", "bound_high")}
"""The fields of a record for both ends of a range."""


def renamed_figures(figures: Iterable[Figure], names: Mapping[str, str]) -> list[Figure]:
    """Return figures with other names for annotators.

    Figures that differ only in their annotators are sorted by the new names. Otherwise the order is
    kept.

    Args:
        figures: The figures.
        names: The new names by the old ones.
    """

    def renamed_subject(subject: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(sorted(names.get(annotator, annotator) for annotator in subject))

    # The position of each statistic, by its first figure.
    statistic_indexes: dict[tuple[str, str, str, str], int] = {}
    renamed = []
    for figure in figures:
        sources = figure.sources
        new = replace(
            figure,
            subject=renamed_subject(figure.subject),
            condition=names.get(figure.condition, figure.condition),
            group=names.get(figure.group, figure.group),
            sources=sources and replace(sources, subject=renamed_subject(sources.subject)),
        )
        statistic_key = (new.scope, new.group, new.mode, new.statistic)
        statistic_index = statistic_indexes.setdefault(statistic_key, len(statistic_indexes))
        # The condition of a figure of a pair may be the name of one annotator.
        condition_name = new.condition if figure.condition in figure.subject else ""
        renamed.append(((statistic_index, new.subject, condition_name), new))
    return [figure for _, figure in sorted(renamed, key=itemgetter(0))]


_JACKKNIFE: Final = (
    "under 2,000 traces the jackknife (Tukey 1958) with Wilson's formula (Korn and Graubard 1998), "
    "else the percentile bootstrap over traces (Efron 1979)"
)
_JUDGE_RATE: Final = f"per mode Wilson (1927); over several modes {_JACKKNIFE}"
_JACKKNIFE_OR_BCA: Final = (
    "under 2,000 traces the jackknife (Tukey 1958) with Wilson's formula, else the BCa bootstrap "
    "(Efron 1987)"
)
_NO_VARIANCE: Final = "all verdicts are equal, one trace, or no unit with two verdicts"
_FEW: Final = "fewer than 3 traces or 16 units"
_RARE: Final = f"{_FEW}; fewer than 5 present or absent verdicts per annotator"

_COEFFICIENTS: Final = (
    Statistic(
        "raw_agreement", "raw", "raw agreement",
        "p_o, the share of agreeing pairs of verdicts, as the mean over units",
        undefined="no unit with two verdicts", interval=_JACKKNIFE, withheld=_FEW,
        form=JsonForm.ESTIMATE, steady=True, linear=True, priority=46,
    ),
    Statistic(
        "positive_agreement", "P+", "positive agreement", "2a / (2a + b + c)",
        "Cicchetti and Feinstein 1990; Fleiss 1981", "no present verdict", _JACKKNIFE, _RARE,
        form=JsonForm.ESTIMATE, basis=Basis.PRESENT, priority=43,
    ),
    Statistic(
        "negative_agreement", "P−", "negative agreement", "2d / (2d + b + c)",
        "Cicchetti and Feinstein 1990; Fleiss 1981", "no absent verdict", _JACKKNIFE, _RARE,
        form=JsonForm.ESTIMATE, basis=Basis.ABSENT, steady=True, priority=42,
    ),
    Statistic(
        "cohen_kappa", "κ", "Cohen's κ",
        "(p_o − p_e) / (1 − p_e), p_e from the shares of each annotator; for three or more the "
        "mean over the pairs for which it is defined", "Cohen 1960; Light 1971", _NO_VARIANCE,
        _JACKKNIFE, f"{_RARE}; a pair shares few traces", form=JsonForm.ESTIMATE, lowest=-1.0,
        basis=Basis.RARER, over_chance=True, priority=48,
    ),
    Statistic(
        "fleiss_kappa", "Fleiss", "Fleiss' κ",
        "(p_o − p_e) / (1 − p_e), p_e from the shares of all annotators, over units that all rated",
        "Fleiss 1971", f"{_NO_VARIANCE}; no unit that all rated", _JACKKNIFE, _RARE,
        form=JsonForm.ESTIMATE, lowest=-1.0, basis=Basis.RARER, over_chance=True, priority=30,
    ),
    Statistic(
        "krippendorff_alpha", "α", "Krippendorff's α",
        "1 − D_o / D_e, nominal, with missing verdicts", "Krippendorff 2011", _NO_VARIANCE,
        _JACKKNIFE, _RARE, form=JsonForm.ESTIMATE, lowest=-1.0, basis=Basis.RARER, over_chance=True,
        priority=47,
    ),
    Statistic(
        "gwet_ac1", "AC1", "Gwet's AC1",
        "(p_o − p_e) / (1 − p_e), p_e = 2q(1 − q), q the mean share of present", "Gwet 2008, 2014",
        _NO_VARIANCE, _JACKKNIFE, _FEW, form=JsonForm.ESTIMATE, lowest=-1.0, over_chance=True,
        steady=True, priority=45,
    ),
    Statistic(
        "pabak", "PABAK", "prevalence-adjusted bias-adjusted κ", "2 · p_o − 1",
        "Byrt, Bishop and Carlin 1993", "no unit with two verdicts", _JACKKNIFE, _FEW,
        form=JsonForm.ESTIMATE, lowest=-1.0, steady=True, linear=True,
    ),
)  # fmt: skip

_REGISTRY: Final = (
    *_COEFFICIENTS,
    Statistic(
        "krippendorff_alpha_jaccard", "α Jaccard", "Krippendorff's α with Jaccard distance",
        "1 − D_o / D_e of the sets of modes of a trace, distance 1 − |A ∩ B| / |A ∪ B|",
        "Krippendorff 2011", "all sets are equal, or fewer than two traces with two complete sets",
        _JACKKNIFE, "fewer than 3 traces", form=JsonForm.ESTIMATE, lowest=-1.0,
    ),
    Statistic(
        "krippendorff_alpha_masi", "α MASI", "Krippendorff's α with MASI distance",
        "1 − D_o / D_e of the sets of modes of a trace, MASI distance", "Passonneau 2006",
        "all sets are equal, or fewer than two traces with two complete sets", _JACKKNIFE,
        "fewer than 3 traces", form=JsonForm.ESTIMATE, lowest=-1.0,
    ),
    Statistic(
        "missed", "missed", "failures that no annotator found",
        "capture-recapture: Chapman's estimator for two finders, Chao's for three or more",
        "Chapman 1951; Chao 1987", "fewer than two finders, or no failure found", "Sadinle 2009",
        "fewer than 5 failures found by two or more; dependent finders", form=JsonForm.ESTIMATE,
    ),
    Statistic(
        "share_found", "share found", "share of all failures found", "found / (found + missed)",
        undefined="as missed", interval="from the interval of missed", withheld="as missed",
        form=JsonForm.ESTIMATE,
    ),
    Statistic(
        "true_positive_rate", "TPR", "true positive rate (TPR)", "TP / (TP + FN)",
        undefined="no present verdict of the reference", interval=_JUDGE_RATE, withheld=_FEW,
        form=JsonForm.ESTIMATE,
    ),
    Statistic(
        "true_negative_rate", "TNR", "true negative rate (TNR)", "TN / (TN + FP)",
        undefined="no absent verdict of the reference", interval=_JUDGE_RATE, withheld=_FEW,
        form=JsonForm.ESTIMATE, steady=True,
    ),
    Statistic(
        "precision", "precision", "precision", "TP / (TP + FP)",
        undefined="no present verdict of the judge", interval=_JUDGE_RATE, withheld=_FEW,
        form=JsonForm.ESTIMATE,
    ),
    Statistic(
        "f1", "F1", "F1", "2 · TP / (2 · TP + FP + FN)", undefined="no present verdict",
        interval=_JACKKNIFE, withheld=_RARE, form=JsonForm.ESTIMATE, basis=Basis.PRESENT,
    ),
    Statistic(
        "f1_exact", "F1 exact", "F1 of exact matches",
        "2 · pairs / places, with one-to-one pairs of equal places",
        undefined="nothing marked, or no trace compared", interval=_JACKKNIFE_OR_BCA,
        withheld="fewer than 3 traces", form=JsonForm.ESTIMATE, key="exact",
    ),
    Statistic(
        "f1_overlap", "F1", "F1 of places by overlap",
        "2 · pairs / places, with one-to-one pairs of places whose overlap (intersection over "
        "union) is at least the condition", undefined="nothing marked, or no trace compared",
        interval=_JACKKNIFE_OR_BCA, withheld="fewer than 3 traces", form=JsonForm.ESTIMATE,
        key="overlap",
    ),
    Statistic(
        "krippendorff_alpha_u", "α_U", "Krippendorff's α_U",
        "1 − D_o / D_e of the positions and lengths of units", "Krippendorff 1995, 2004",
        "nothing marked, or everything marked by all", _JACKKNIFE_OR_BCA,
        "fewer than 20 traces; places of two annotators overlap in fewer than 3 traces",
        form=JsonForm.ESTIMATE, lowest=-1.0,
    ),
    Statistic(
        "places_left_out", "excluded", "excluded places",
        "places that the other annotator has not read or judged", key="left_out",
    ),
    Statistic(
        "prevalence", "present", "share of present verdicts",
        "present verdicts / verdicts on the units compared",
        undefined="no verdict on the units compared",
    ),
    Statistic(
        "few_shared_by_pair", "traces", "traces of a pair",
        "traces in which both rated a unit, if any pair shares few traces",
    ),
    Statistic(
        "more_traces", "more", "further traces that halve the interval of κ",
        "3n, as an interval shrinks with the square root of the number of traces",
        undefined="κ or its interval is undefined", form=JsonForm.NUMBER_OR_REASON,
    ),
    Statistic(
        "odds_ratio", "odds", "odds ratio",
        "Mantel-Haenszel odds ratio of two finders for failures that a third found",
        "Mantel and Haenszel 1959", "the two finders never differ",
    ),
    Statistic(
        "p_value", "p", "p-value", "two-sided probability under independence",
        undefined="nothing to test",
    ),
    Statistic(
        "p_adjusted", "p", "adjusted p-value", "p-value adjusted over the comparisons",
        "Benjamini and Hochberg 1995", "nothing to test",
    ),
    Statistic(
        "with_suggestions", "suggested", "excluded units",
        "units in which suggestions of a judge were on screen",
    ),
)  # fmt: skip

_SIGNATURES: Final = (
    Statistic(
        "rate", "share", "share of traces",
        "traces with the mode / traces with a verdict on it, weighted if traces were drawn with "
        "unequal probabilities", undefined="no trace has a verdict", interval="Wilson 1927",
        withheld="more than 2 % of the verdicts are unresolved",
    ),
    Statistic(
        "more_labels", "for ± 3", "further traces for ± 3 points",
        "traces needed for a Wilson interval of ± 3 points", undefined="no interval",
    ),
    Statistic(
        "difference", "points", "difference of two shares", "first share minus second share",
        undefined="a group has no trace with a verdict on the mode",
        interval="Newcombe 1998; paired: Newcombe 1998; over strata: Miettinen and Nurminen 1985",
        withheld="a group has fewer than 5 traces; fewer than 5 have the mode, or lack it",
        lowest=-1.0,
    ),
    Statistic(
        "risk_ratio", "ratio", "risk ratio",
        "first share / second share; over strata Mantel and Haenszel's",
        "Katz 1978; Greenland and Robins 1985", "no trace of the second group has the mode",
        "logarithm of the ratio", "as the difference; no trace of the first group has the mode",
    ),
    Statistic(
        "mean_score", "score", "mean score", "mean of the traces' scores", undefined="no scores",
    ),
    Statistic(
        "modes_per_failed_trace", "modes", "modes per failed trace",
        "sum over the modes of the share of failed traces with the mode",
        undefined="no failed trace has a verdict", interval="percentile bootstrap over traces",
        withheld="more than 2 % of the verdicts are unresolved",
    ),
    Statistic(
        "share", "share", "share of the modes found", "modes of the category found / modes found",
        undefined="no mode found",
    ),
    Statistic(
        "jaccard", "share of either", "Jaccard", "traces with both / with either", "Jaccard 1901",
    ),
    Statistic(
        "phi", "φ", "correlation φ", "correlation of two modes", "Pearson 1900",
        "a mode is in every trace", lowest=-1.0,
    ),
    Statistic(
        "position", "median", "position in the run", "median of span index / number of spans",
        undefined="no place is known", interval="quartiles", withheld="as undefined",
    ),
    Statistic(
        "spans_after", "spans", "spans after a fatal failure",
        "median of the spans from the last span of the first fatal failure",
        undefined="no place is known", interval="quartiles", withheld="as undefined",
    ),
    Statistic(
        "spans_after_onset", "spans", "spans after the start of a fatal failure",
        "median of the spans from the first span of the first fatal failure",
        undefined="no place is known", interval="quartiles", withheld="as undefined",
    ),
    Statistic(
        "share_after", "of the run", "share of the run after a fatal failure",
        "median of spans after the failure / number of spans", undefined="no place is known",
        interval="quartiles", withheld="as undefined",
    ),
    Statistic(
        "used_share_after", "share after", "share of the cost after", "cost after / total cost",
        undefined="no cost",
    ),
    Statistic(
        "task_share", "share", "share of runs", "mean over tasks of the share of their runs",
        "pass@1: Chen and others 2021", "no run has a verdict",
        "Wilson 1927 with an effective sample size from the variance between tasks (Korn and "
        "Graubard 1998) and Student's t", "fewer than 5 tasks; more than 2 % unresolved verdicts",
        form=JsonForm.ESTIMATE, key="rate",
    ),
    Statistic(
        "task_mean", "mean", "mean of runs", "mean over tasks of the mean of their runs",
        undefined="no run has a value", interval="Student's t over tasks",
        withheld="fewer than 5 tasks", form=JsonForm.ESTIMATE, key="mean",
    ),
    Statistic(
        "arm_difference", "difference", "difference from the baseline",
        "mean over the shared tasks of arm minus baseline",
        undefined="an arm has no run with a value",
        interval="Student's t over the differences of tasks",
        withheld="fewer than 5 tasks; fewer than 5 tasks with the mode in a run, or without; "
        "the same difference in all tasks; more than 2 % unresolved verdicts", lowest=-1.0,
        form=JsonForm.ESTIMATE, key="difference",
    ),
    Statistic(
        "flip_p", "p", "p-value", "Fisher's randomisation test over tasks: flips the signs of "
        "differences, or exchanges tasks between arms that share none", "Fisher 1935",
        "an arm has no run with a value", key="difference.p",
    ),
    Statistic(
        "flip_p_least", "least p", "least p-value", "least p-value that the test can reach with "
        "these tasks", key="difference.p_least",
    ),
    Statistic(
        "flip_p_adjusted", "p adj", "adjusted p-value", "p-value adjusted over the tested modes "
        "and arms, which keeps the chance of any false finding at or below 5 %", "Holm 1979",
        "an arm has no run with a value", key="difference.p_adjusted",
    ),
    Statistic(
        "pass_k", "pass^k", "pass^k", "mean over tasks of C(c, k) / C(n, k), c successes in n runs",
        "Yao and others 2024, arXiv 2406.12045", "no task has k runs", "as the share of runs",
        "fewer than 5 tasks", form=JsonForm.ESTIMATE,
    ),
    Statistic(
        "power", "power", "power", "share of simulated experiments that detect the change",
        undefined="the rate cannot change that much", form=JsonForm.NUMBER_OR_REASONS,
    ),
    Statistic(
        "detectable", "detectable", "smallest detectable change", "smallest change with 80 % power",
        undefined="no change has 80 % power", form=JsonForm.NUMBER_OR_REASONS,
    ),
    Statistic(
        "tasks_needed", "tasks", "tasks needed", "fewest tasks with 80 % power",
        undefined="over 5,000 tasks", form=JsonForm.NUMBER_OR_REASONS,
    ),
    Statistic(
        "slope", "slope", "slope", "least-squares slope of the shares over the scores",
        undefined="fewer than two groups have verdicts", lowest=-1.0,
    ),
    Statistic(
        "z", "z", "z", "test for a trend", "Cochran 1954; Armitage 1955",
        "all traces have the mode, or none", lowest=-1.0,
    ),
)  # fmt: skip

_NO_TRACE: Final = "no trace"

_JUDGE: Final = (
    Statistic(
        "mcnemar_p", "McNemar", "McNemar's p", "exact two-sided test of FP against FN",
        "McNemar 1947", "no unit compared",
    ),
    Statistic(
        "mcnemar_p_adjusted", "McNemar", "McNemar's p, adjusted over the modes",
        "mcnemar_p adjusted over the modes", "Benjamini and Hochberg 1995", "no unit compared",
    ),
    Statistic(
        "mean_confidence", "mean", "mean confidence", "mean of the findings' confidences",
        undefined="no finding has a confidence",
    ),
    Statistic(
        "expected_calibration_error", "ECE", "expected calibration error",
        "mean of |mean confidence − share correct| over ten bins, weighted by findings",
        "Naeini et al. 2015", "no finding has a confidence", form=JsonForm.ESTIMATE,
    ),
    Statistic(
        "without_order", "no order", "labels in an unknown order",
        "labels that count as incorrect because the order of the spans is unknown",
    ),
    Statistic(
        "corrected", "corrected", "corrected for the errors of the judge",
        "(apparent + TNR − 1) / (TPR + TNR − 1)", "Rogan and Gladen 1978",
        "TPR or TNR is unknown, or TPR + TNR ≤ 1; no judged trace that no one has finished",
        "Lang and Reiczigel 2014", "fewer than 30 labelled traces; unresolved verdicts",
        form=JsonForm.ESTIMATE,
    ),
    Statistic(
        "weighted", "weighted", "weighted", "whether traces were drawn with unequal probabilities",
        form=JsonForm.FLAG,
    ),
    Statistic(
        "people", "people alone", "estimate from people alone", "labelled present / n_labelled",
        undefined=_NO_TRACE, interval="Wilson 1927", withheld="unresolved verdicts",
        form=JsonForm.ESTIMATE,
    ),
    Statistic(
        "these", "these traces", "prevalence in these traces only", "labelled present / n_labelled",
        undefined="as powered", interval="of a sample from a finite population",
        withheld="fewer than 20 labelled traces; unresolved verdicts", form=JsonForm.ESTIMATE,
    ),
    Statistic(
        "powered", "with the judge", "prediction-powered estimate", "λ f̄ + mean(y − λ f)",
        "Angelopoulos, Duchi and Zrnic 2023", "fewer than 2 labelled traces, or all labelled",
        "Wilson with an effective sample size (Korn and Graubard 1998)",
        "fewer than 100 labelled traces; unresolved verdicts", form=JsonForm.ESTIMATE,
    ),
    Statistic(
        "judge_weight", "λ", "weight of the judge's verdicts", "λ with the least variance",
        "Angelopoulos, Duchi and Zrnic 2023", "as powered",
    ),
    *(
        Statistic(
            name, title, label, formula, undefined="no unit, or all verdicts are equal",
            interval="percentile bootstrap over traces", withheld="fewer than 50 traces",
            form=JsonForm.ESTIMATE,
        )
        for name, title, label, formula in (
            (
                "present_rate", "present", "share of present verdicts",
                "present / (present + absent)",
            ),
            ("labels_per_pass", "labels", "labels per trace", "labels / passes"),
            (
                "agreement_with_judge", "raw", "raw agreement with the judge",
                "units with the verdict of the judge / units",
            ),
            ("kappa_with_judge", "κ", "κ with the judge", "Cohen's κ of annotator and judge"),
        )
    ),
    *(
        Statistic(
            name, title, label, formula, undefined=undefined, interval="Wilson 1927",
            withheld="never", form=JsonForm.ESTIMATE,
        )
        for name, title, label, formula, undefined in (
            (
                "right", "correct", "share of correct findings",
                "findings that the reference calls present / findings", "no finding",
            ),
            (
                "accepted", "accepted as is", "share accepted unchanged",
                "accept / answers", "no answer",
            ),
            (
                "taken", "accepted or edited", "share accepted or edited",
                "(accept + edit) / answers", "no answer",
            ),
            (
                "right_place", "correct place", "share of labels in a correct place",
                "labels that overlap a place of the reference / labels", "no place to compare",
            ),
            (
                "places_found", "found", "share of places found",
                "places of the reference that a label overlaps / places", "no place to compare",
            ),
            (
                "apparent", "uncorrected", "share of present verdicts of the judge",
                "traces called present / n_unlabelled", "no judged trace that no one has finished",
            ),
        )
    ),
)  # fmt: skip
"""Figures of judges, and of two judges against each other.

Rates are in ``_REGISTRY``. Two judges are compared by the conditions ``first``, ``second`` and
``difference``, passes with and without suggestions by ``shown``, ``withheld`` and ``difference``.
"""


_TRACES_ASKED: Final = "no trace asked about"
_FEW_TRACES: Final = "fewer than 3 traces; undefined without one of the traces"

_EXAM: Final = (
    *(
        Statistic(
            name, title, label, formula, undefined=_TRACES_ASKED, interval="Wilson 1927",
            withheld="never", form=JsonForm.ESTIMATE, key=key,
        )
        for name, title, label, formula, key in (
            (
                "step", "step", "share of right steps",
                "named steps at most the condition from the decisive step / traces asked about", "",
            ),
            (
                "agent", "agent", "share of right agents",
                "right agents of the decisive step / traces whose truth has an agent", "",
            ),
            (
                "category", "categ.", "share of right categories",
                "right categories of the decisive step / traces whose truth has a category", "",
            ),
            (
                "decisive_category", "categ.", "share of right categories of a level",
                "right categories of the decisive step / traces whose truth has a category",
                "decisive",
            ),
            (
                "step_and_category", "both", "share of right steps with their category",
                "right steps with the right category / traces whose truth has a category", "",
            ),
            (
                "published_step", "publ.", "share of right steps by the published scorer",
                "named steps that the set's own scorer counts as right / traces asked about", "",
            ),
        )
    ),
    *(
        Statistic(
            name, title, label, formula, undefined="no case", interval=_JACKKNIFE_OR_BCA,
            withheld=_FEW_TRACES, form=JsonForm.ESTIMATE, key=key,
        )
        for name, title, label, formula, key in (
            ("recall", "recall", "recall", "named true locations / true locations", ""),
            (
                "per_trace", "per trace", "recall per trace",
                "mean recall of the traces with a true location", "",
            ),
            (
                "again", "again", "findings of a sample in another sample",
                "pairs of samples that both have a finding / pairs whose first has it", "",
            ),
            (
                "always", "always", "findings of all samples",
                "findings of every sample / findings of any sample", "",
            ),
            ("quotes_found", "quotes", "quotes found", "quotes found in the trace / quotes", ""),
            (
                "same_verdicts", "verdicts", "equal verdicts of two judges",
                "equal verdicts / modes that both judge", "verdicts",
            ),
            (
                "same_modes", "modes", "positive agreement of two judges", "2a / (2a + b + c)",
                "modes",
            ),
            (
                "same_places", "places", "equal places of two judges",
                "modes with overlapping span ranges / modes that both call present", "places",
            ),
            (
                "same_step", "step", "equal decisive steps of two judges",
                "traces with the same decisive step / traces in which either names one", "step",
            ),
        )
    ),
)  # fmt: skip
"""Figures of judges against a labelled set, and of their consistency without one."""


def _parse_count_statistics(table: str) -> tuple[Statistic, ...]:
    """Read statistics that are plain numbers from lines ``name | title | label | formula | key``.

    The key, the statistic's name in JSON, is optional.
    """
    rows = ([part.strip() for part in line.split("|")] for line in table.strip().splitlines())
    return tuple(
        Statistic(name, title, label, formula, key="".join(optional_key))
        for name, title, label, formula, *optional_key in rows
    )


_COUNTS: Final = _parse_count_statistics("""
    compared | traces | traces compared | traces with two annotators whose places can be compared
    not_at_hand | missing | excluded traces | traces without a known order of spans
    spans | spans | spans | spans read by two or more people with a verdict
    spans_left_out | excluded | excluded spans | spans read by fewer than two people with a verdict
    positions | spans | spans | spans that all annotators have read
    places | places | places | marked places
    no_places | no place | units without a place | present verdicts without a place
    reading_recorded | reading recorded | traces | traces with a record of the spans read
    whole_trace | on whole traces | labels | labels on a whole trace
    not_found | not found | labels | labels on spans that the trace lacks
    n | n | units compared | units (traces, or traces × modes) with two verdicts
    n_complete | complete | complete units | units that all annotators rated
    prevalence_n | n | verdicts | verdicts of an annotator on the units compared
    unsure | unsure | unsure verdicts | unsure verdicts in finished traces
    modes_defined | modes | modes | modes for which a statistic is defined
    units | units | units | units (traces × modes) in a mean or table
    finished_by_all | by all | traces | traces that all annotators finished
    finished_by_two | by two | traces | traces that two annotators or more finished
    traces | traces | traces | traces that two annotators or more finished
    n_traces | traces | retested traces | traces that were labelled again
    distinct | blocks | blocks | different blocks of verdicts (annotators × modes)
    width | width | width of the interval of κ | high − low
    found | found | failures found | units that a finder called present
    found_once | by one | found by one | failures that exactly one finder found
    found_twice | by two | found by two | failures that exactly two finders found
    settled_absent | absent | excluded units | units adjudicated as absent
    examples_left_out | examples | excluded traces | traces in a judge's prompt or of earlier errors
    unfinished | unfinished | excluded traces | traces begun but not finished
    examples | examples | excluded traces | traces in a judge's prompt or of earlier errors
    alone | alone | excluded traces | traces that only one annotator finished
    open | open | excluded units | modes left open in finished traces
    not_in_study | outside | excluded traces | traces of people outside the study
    open_codes | open codes | excluded labels | labels that name no mode
    unresolved | unresolved | unresolved verdicts | verdicts on which annotators disagree
    strata | models | models with both outcomes | strata with failed and successful traces
    unknown_model | unknown | traces of an unknown model | traces in no stratum
    modes_judged | modes | modes judged | modes with a verdict on any failed trace
    traces_with_modes | traces | traces by modes | traces by number of modes
    shape | traces | traces by shape | failed traces by class of their number of modes
    shown | shown | modes found | modes of the category found, each once per trace
    both | both | both | units that have both
    only_first | only first | only the first | units that have only the first
    only_second | only second | only the second | units that have only the second
    neither | neither | neither | units that have neither
    showing | of | traces with a failure | traces with any mode
    uncounted | uncounted | traces not counted | traces with an unknown number of spans
    tied | tied | ties | traces in which several modes occur first, at the same span
    position_mean | mean | mean position | mean of the positions
    position_tenth | traces | traces by tenth | traces by the tenth of the run
    sets_on | traces | order of two modes | traces by which mode first occurs earlier
    transitions | traces | steps | traces in which one mode is the next to occur after another
    chains | traces | chains | traces in which modes first occur in exactly this order
    spans_after_mean | mean | mean spans after a fatal failure | mean of spans_after
    spans_after_onset_mean | mean | mean spans after its start | mean of spans_after_onset
    share_after_mean | mean | mean share after a fatal failure | mean of share_after
    with_fatal | fatal | traces with a fatal failure | failed traces with a fatal failure
    at_hand | at hand | traces available | traces whose files could be read
    used_total | all | total cost | cost of the traces
    used_without_fatal | without | cost without failure | cost of traces without a fatal failure
    used_before_first_fatal | before | cost before | cost before the first fatal failure
    used_after | after | cost after | cost from the first span of the failure on
    tasks | tasks | tasks | different tasks of the runs
    shared_tasks | shared | shared tasks | tasks that the baseline has also run
    runs | runs | runs | runs with a known task
    no_task | no task | excluded traces | traces that name no task | left_out.no_task
    no_group | excluded | excluded traces | traces in no group of the trend
    judged | judged | traces judged | traces that the judge has labelled
    unlabelled | unlabelled | traces without labels | judged traces that no one has finished
    true_positives | TP | true positives | both say present
    false_positives | FP | false positives | only the judge says present
    false_negatives | FN | false negatives | only the reference says present
    true_negatives | TN | true negatives | both say absent
    judge_seen | seen | excluded units | reference verdicts given with suggestions on screen
    unsure_judge | unsure | excluded units | the judge is unsure
    unsure_reference | unsure | excluded units | the reference is unsure
    without_confidence | without | without a confidence | suggestions without a confidence
    accept | accepted | accepted | suggestions accepted unchanged
    edit | edited | edited | suggestions accepted with an edit
    reject | rejected | rejected | suggestions rejected
    merged_places | merged | merged places | places that merge those of several annotators
    n_unlabelled | n | traces of the judge alone | judged traces that no one has finished
    n_unsure | unsure | excluded traces | traces on which the judge is unsure
    n_positives | P | positives | units that the reference calls present
    n_negatives | N | negatives | units that the reference calls absent
    n_labelled | labelled | traces labelled by people | traces with a reference verdict
    passes | passes | passes | passes of annotators who have both kinds
    on_screen | on screen | passes | passes in which suggestions were on screen
    not_judged | not judged | excluded passes | passes on traces that the judge has not labelled
    both_right | both | both correct | units on which both judges agree with the reference
    only_first_right | only 1 | only the first is correct | units on which only judge 1 agrees
    only_second_right | only 2 | only the second is correct | units on which only judge 2 agrees
    neither_right | neither | neither is correct | units on which neither judge agrees
    judged_by_one | excluded | excluded units | units with a verdict of one judge only | left_out
    asked | n | traces asked about | traces of a labelled set that the judge has judged | n
    not_asked | not asked | traces not asked about | traces of the set that it has not judged
    named | named | traces with a step | traces in which the judge names a step
    true_locations | true | true locations | locations of the labelled set | true
    named_locations | named | named locations | locations that the judge names | named
    matching_locations | right | right locations | named locations that are true | right
    random_step | random | chance of a random step | chance that a random step is right | random
    first_step | first | chance of the first step | share of runs whose first step is right | first
    last_step | last | chance of the last step | share of runs whose last step is right | last
    baseline_agent | agent | agent of a baseline | share of runs with the right agent | agent
    baseline_published | publ. | published score | chance by the set's scorer | published_step
    coverage | inside | coverage | share of runs whose set of steps has the decisive step | value
    mean_share | share | share of a run in its set | mean share of a run's steps in its set
    chance_share | by chance | share of random sets | the same of random steps, as sure
    splits | splits | splits | random divisions of the runs
    labelled_runs | runs | labelled runs | runs with a known decisive or first failing step | runs
    samples | samples | samples | readings of each trace
    sampled_findings | found | findings | different findings of all samples | found
    judged_traces | traces | traces judged | traces that a judge has judged | traces
""")
"""Numbers without an interval that are defined everywhere."""

STATISTICS: Final[Mapping[str, Statistic]] = {
    statistic.name: statistic for statistic in (*_REGISTRY, *_SIGNATURES, *_JUDGE, *_EXAM, *_COUNTS)
}
"""Every statistic by its name."""

COEFFICIENTS: Final = tuple(statistic.name for statistic in _COEFFICIENTS)
"""The coefficients of agreement on whole traces, in their order."""
