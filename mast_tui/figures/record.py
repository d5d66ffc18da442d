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
from typing import Any, Final

OUTCOMES: Final = ("failed", "succeeded")
"""The outcomes of a trace, as conditions of figures."""

PAIR: Final = "|"
"""The separator of two annotators' names in one key or cell. No name contains it."""


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
        definition: The formula, or in words the counted things.
        source: The publication of the formula.
        form: The form in JSON documents.
        key: The key in JSON documents, with dots for nested objects; by default the name.
        lowest: The least possible value of a coefficient.
        basis: The answers on which a statistic of agreement rests.
        over_chance: Whether it compares agreement with chance, which needs two traces and both
            answers.
        steady: Whether a rare answer hardly biases it.
        linear: Whether it is a linear function of the share of agreeing pairs of verdicts.
    """

    name: str
    definition: str
    source: str = ""
    form: JsonForm = JsonForm.NUMBER
    key: str = ""
    lowest: float = 0.0
    basis: Basis = Basis.ALL
    over_chance: bool = False
    steady: bool = False
    linear: bool = False


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
        self._tables: dict[tuple[str, str, tuple[str, ...]], dict[str, FigureTable]] = {}
        """The tables that ``figures_by_key`` has returned, by scope, group and subject."""
        self._figures: dict[tuple[str, str], dict[str, list[Figure]]] = {}
        """Figures by mode, for each scope and group."""
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
        figures_by_pair: dict[tuple[str, ...], list[Figure]] = {}
        for figure in figures:
            figures_by_pair.setdefault(figure.subject, []).append(figure)
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


# The JSON document


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
    return values | doubt_json(figure)


def doubt_json(figure: Figure) -> dict[str, Any]:
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


# The records themselves


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


# The registry

_COEFFICIENTS: Final = (
    Statistic(
        "raw_agreement",
        "p_o, the share of agreeing pairs of verdicts, as the mean over units",
        form=JsonForm.ESTIMATE,
        steady=True,
        linear=True,
    ),
    Statistic(
        "positive_agreement",
        "2a / (2a + b + c)",
        "Cicchetti and Feinstein 1990; Fleiss 1981",
        JsonForm.ESTIMATE,
        basis=Basis.PRESENT,
    ),
    Statistic(
        "negative_agreement",
        "2d / (2d + b + c)",
        "Cicchetti and Feinstein 1990; Fleiss 1981",
        JsonForm.ESTIMATE,
        basis=Basis.ABSENT,
        steady=True,
    ),
    Statistic(
        "cohen_kappa",
        "(p_o − p_e) / (1 − p_e), p_e from the shares of each annotator; for three or more the "
        "mean over the pairs for which it is defined",
        "Cohen 1960; Light 1971",
        JsonForm.ESTIMATE,
        lowest=-1.0,
        basis=Basis.RARER,
        over_chance=True,
    ),
    Statistic(
        "fleiss_kappa",
        "(p_o − p_e) / (1 − p_e), p_e from the shares of all annotators, over units that all rated",
        "Fleiss 1971",
        JsonForm.ESTIMATE,
        lowest=-1.0,
        basis=Basis.RARER,
        over_chance=True,
    ),
    Statistic(
        "krippendorff_alpha",
        "1 − D_o / D_e, nominal, with missing verdicts",
        "Krippendorff 2011",
        JsonForm.ESTIMATE,
        lowest=-1.0,
        basis=Basis.RARER,
        over_chance=True,
    ),
    Statistic(
        "gwet_ac1",
        "(p_o − p_e) / (1 − p_e), p_e = 2q(1 − q), q the mean share of present",
        "Gwet 2008, 2014",
        JsonForm.ESTIMATE,
        lowest=-1.0,
        over_chance=True,
        steady=True,
    ),
    Statistic(
        "pabak",
        "2 · p_o − 1",
        "Byrt, Bishop and Carlin 1993",
        JsonForm.ESTIMATE,
        lowest=-1.0,
        steady=True,
        linear=True,
    ),
)


def _statistics(form: JsonForm, table: str) -> tuple[Statistic, ...]:
    """Read statistics of one form from lines ``name | definition | key``.

    The key, the statistic's name in JSON, is optional.
    """
    rows = ([part.strip() for part in line.split("|")] for line in table.strip().splitlines())
    return tuple(
        Statistic(name, definition, form=form, key="".join(optional_key))
        for name, definition, *optional_key in rows
    )


# Two judges are compared by the conditions ``first``, ``second`` and ``difference``, passes with
# and without suggestions by ``shown``, ``withheld`` and ``difference``.
_ESTIMATES: Final = (
    Statistic("true_negative_rate", "TN / (TN + FP)", form=JsonForm.ESTIMATE, steady=True),
    Statistic("f1", "2 · TP / (2 · TP + FP + FN)", form=JsonForm.ESTIMATE, basis=Basis.PRESENT),
    *_statistics(
        JsonForm.ESTIMATE,
        """
    krippendorff_alpha_jaccard | 1 − D_o / D_e of the sets of modes, Jaccard distance
    krippendorff_alpha_masi | 1 − D_o / D_e of the sets of modes, MASI distance (Passonneau 2006)
    missed | Chapman's estimator (1951) for two finders, Chao's (1987) for three or more
    share_found | found / (found + missed)
    true_positive_rate | TP / (TP + FN)
    precision | TP / (TP + FP)
    f1_exact | 2 · pairs / places, with one-to-one pairs of equal places | exact
    f1_overlap | f1_exact, with an intersection over union of at least the condition | overlap
    krippendorff_alpha_u | 1 − D_o / D_e of positions and lengths of units (Krippendorff 1995, 2004)
    task_share | mean over tasks of the share of their runs (pass@1: Chen and others 2021) | rate
    task_mean | mean over tasks of the mean of their runs | mean
    arm_difference | mean over the shared tasks of arm minus baseline | difference
    pass_k | mean over tasks of C(c, k) / C(n, k), c successes in n runs (Yao and others 2024)
    expected_calibration_error | mean distance of confidence and share correct (Naeini et al. 2015)
    corrected | (apparent + TNR − 1) / (TPR + TNR − 1) (Rogan and Gladen 1978)
    people | labelled present / n_labelled
    these | as people, of these traces alone
    powered | λ f̄ + mean(y − λ f) (Angelopoulos, Duchi and Zrnic 2023)
    present_rate | present / (present + absent)
    labels_per_pass | labels / passes
    agreement_with_judge | units with the verdict of the judge / units
    kappa_with_judge | Cohen's κ of annotator and judge
    right | findings that the reference calls present / findings
    accepted | accept / answers
    taken | (accept + edit) / answers
    right_place | labels that overlap a place of the reference / labels
    places_found | places of the reference that a label overlaps / places
    apparent | traces called present / n_unlabelled
    step | named steps at most the condition from the decisive step / traces asked about
    agent | right agents of the decisive step / traces whose truth has an agent
    category | right categories of the decisive step / traces whose truth has a category
    decisive_category | as category, with the categories of a level | decisive
    step_and_category | right steps with the right category / traces whose truth has a category
    published_step | named steps that the set's own scorer counts as right / traces asked about
    recall | named true locations / true locations
    per_trace | mean recall of the traces with a true location
    again | pairs of samples that both have a finding / pairs whose first has it
    always | findings of every sample / findings of any sample
    quotes_found | quotes found in the trace / quotes
    same_verdicts | equal verdicts / modes that both judge | verdicts
    same_modes | 2a / (2a + b + c) | modes
    same_places | modes with overlapping span ranges / modes that both call present | places
    same_step | traces with the same decisive step / traces in which either names one | step
    """,
    ),
)

_NUMBERS: Final = (
    *_statistics(
        JsonForm.NUMBER_OR_REASON,
        """
    more_traces | 3n, as an interval shrinks with the square root of the number of traces
    """,
    ),
    *_statistics(
        JsonForm.NUMBER_OR_REASONS,
        """
    power | share of simulated experiments that detect the change
    detectable | smallest change with 80 % power
    tasks_needed | fewest tasks with 80 % power
    """,
    ),
    *_statistics(
        JsonForm.FLAG,
        """
    weighted | whether traces were drawn with unequal probabilities
    """,
    ),
    *_statistics(
        JsonForm.NUMBER,
        """
    places_left_out | places that the other annotator has not read or judged | left_out
    prevalence | present verdicts / verdicts on the units compared
    few_shared_by_pair | traces in which both rated a unit, if any pair shares few traces
    odds_ratio | Mantel-Haenszel odds ratio (1959) of two finders for failures that a third found
    p_value | two-sided probability under independence
    p_adjusted | p_value adjusted over the comparisons (Benjamini and Hochberg 1995)
    with_suggestions | units in which suggestions of a judge were on screen
    rate | traces with the mode / traces with a verdict on it, weighted by one over their chances
    more_labels | traces needed for a Wilson interval of ± 3 points
    difference | first share minus second share
    risk_ratio | first share / second share (Katz 1978; over strata Greenland and Robins 1985)
    mean_score | mean of the traces' scores
    modes_per_failed_trace | sum over the modes of the share of failed traces with the mode
    share | modes of the category found / modes found
    jaccard | traces with both / with either (Jaccard 1901)
    phi | correlation of two modes (Pearson 1900)
    position | median of span index / number of spans
    spans_after | median of the spans from the last span of the first fatal failure
    spans_after_onset | median of the spans from the first span of the first fatal failure
    share_after | median of spans after the failure / number of spans
    used_share_after | cost after / total cost
    flip_p | Fisher's randomisation test (1935) over tasks | difference.p
    flip_p_adjusted | flip_p adjusted over tested modes and arms (Holm 1979) | difference.p_adjusted
    slope | least-squares slope of the shares over the scores
    z | test for a trend (Cochran 1954; Armitage 1955)
    mcnemar_p | exact two-sided test of FP against FN (McNemar 1947)
    mcnemar_p_adjusted | mcnemar_p adjusted over the modes (Benjamini and Hochberg 1995)
    mean_confidence | mean of the findings' confidences
    without_order | labels that count as incorrect because the order of the spans is unknown
    judge_weight | λ with the least variance (Angelopoulos, Duchi and Zrnic 2023)
    compared | traces with two annotators whose places can be compared
    not_at_hand | traces without a known order of spans
    spans | spans that two annotators or more have read
    spans_left_out | spans that fewer than two annotators have read
    positions | spans that all annotators have read
    places | marked places
    no_places | present verdicts without a place
    reading_recorded | traces with a record of the spans read
    whole_trace | labels on a whole trace
    not_found | labels on spans that the trace lacks
    n | units (traces, or traces × modes) with two verdicts
    n_complete | units that all annotators rated
    prevalence_n | verdicts of an annotator on the units compared
    unsure | unsure verdicts in finished traces
    modes_defined | modes for which a statistic is defined
    units | units (traces × modes) in a mean or table
    finished_by_all | traces that all annotators finished
    finished_by_two | traces that two annotators or more finished
    traces | traces that two annotators or more finished
    n_traces | traces that were labelled again
    distinct | different blocks of verdicts (annotators × modes)
    width | high − low of the interval of κ
    found | units that a finder called present
    found_once | failures that exactly one finder found
    found_twice | failures that exactly two finders found
    settled_absent | units adjudicated as absent
    examples_left_out | traces in the prompt of a judge
    unfinished | traces begun but not finished
    examples | traces in the prompt of a judge
    alone | traces that only one annotator finished
    open | modes left open in finished traces
    not_in_study | traces of people outside the study
    open_codes | labels that name no mode
    unresolved | verdicts on which annotators disagree
    strata | strata with failed and successful traces
    unknown_model | traces in no stratum
    modes_judged | modes with a verdict on any failed trace
    traces_with_modes | traces by number of modes
    shape | failed traces by class of their number of modes
    shown | modes of the category found, each once per trace
    both | units that have both
    only_first | units that have only the first
    only_second | units that have only the second
    neither | units that have neither
    showing | traces with any mode
    uncounted | traces with an unknown number of spans
    tied | traces in which several modes occur first, at the same span
    position_mean | mean of the positions
    position_tenth | traces by the tenth of the run
    sets_on | traces by which mode first occurs earlier
    transitions | traces in which one mode is the next to occur after another
    chains | traces in which modes first occur in exactly this order
    spans_after_mean | mean of spans_after
    spans_after_onset_mean | mean of spans_after_onset
    share_after_mean | mean of share_after
    with_fatal | failed traces with a fatal failure
    at_hand | traces whose files could be read
    used_total | cost of the traces
    used_without_fatal | cost of traces without a fatal failure
    used_before_first_fatal | cost before the first fatal failure
    used_after | cost from the first span of the failure on
    tasks | different tasks of the runs
    shared_tasks | tasks that the baseline has also run
    runs | runs with a known task
    no_task | traces that name no task | left_out.no_task
    no_group | traces in no group of the trend
    judged | traces that the judge has labelled
    unlabelled | traces that only the judge has labelled
    true_positives | both say present
    false_positives | only the judge says present
    false_negatives | only the reference says present
    true_negatives | both say absent
    judge_seen | reference verdicts given with suggestions on screen
    unsure_judge | the judge is unsure
    unsure_reference | the reference is unsure
    without_confidence | suggestions without a confidence
    accept | suggestions accepted unchanged
    edit | suggestions accepted with an edit
    reject | suggestions rejected
    merged_places | places that merge those of several annotators
    n_unlabelled | traces that only the judge has labelled
    n_unsure | traces on which the judge is unsure
    n_positives | units that the reference calls present
    n_negatives | units that the reference calls absent
    n_labelled | traces with a reference verdict
    passes | passes of annotators who have both kinds
    on_screen | passes in which suggestions were on screen
    not_judged | passes on traces that the judge has not labelled
    both_right | units on which both judges agree with the reference
    only_first_right | units on which only judge 1 agrees
    only_second_right | units on which only judge 2 agrees
    neither_right | units on which neither judge agrees
    judged_by_one | units with a verdict of one judge only | left_out
    asked | traces of a labelled set that the judge has judged | n
    not_asked | traces of the set that it has not judged
    named | traces in which the judge names a step
    true_locations | locations of the labelled set | true
    named_locations | locations that the judge names | named
    matching_locations | named locations that are true | right
    random_step | chance that a random step is right | random
    first_step | share of runs whose first step is right | first
    last_step | share of runs whose last step is right | last
    baseline_agent | share of runs with the right agent | agent
    baseline_published | chance by the set's scorer | published_step
    coverage | share of runs whose set of steps has the decisive step | value
    mean_share | mean share of a run's steps in its set
    chance_share | the same of random steps, as sure
    splits | random divisions of the runs
    labelled_runs | runs with a known decisive or first failing step | runs
    samples | readings of each trace
    sampled_findings | different findings of all samples | found
    judged_traces | traces that a judge has judged | traces
    """,
    ),
)

STATISTICS: Final[Mapping[str, Statistic]] = {
    statistic.name: statistic for statistic in (*_COEFFICIENTS, *_ESTIMATES, *_NUMBERS)
}
"""Every statistic by its name."""

COEFFICIENTS: Final = tuple(statistic.name for statistic in _COEFFICIENTS)
"""The coefficients of agreement on whole traces, in their order."""
