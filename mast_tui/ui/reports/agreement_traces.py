"""The traces behind a figure of agreement: where the sides differ, first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

from mast_tui.figures.agreement.drill_down import (
    SourceTrace,
    judged_source_traces,
    source_traces,
)
from mast_tui.figures.agreement.report import StudyInput
from mast_tui.figures.judge.confusion import Compared
from mast_tui.figures.judge.input import JudgeInput
from mast_tui.figures.spans.input import Place, SpanInput
from mast_tui.gold.overlaps import in_reading_order
from mast_tui.labels import VerdictValue
from mast_tui.reports.model import Column, Kind, Row, Table
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.ui.actions.registry import Where
from mast_tui.ui.context import ShowDisagreements, TraceLocation
from mast_tui.ui.reports.screen import MOST, Listing, TracesScreen
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.suggestion_wording import judge_name
from mast_tui.ui.wording import counted

MOST_PLACES: Final = 4
"""Places of one side that are named in a row."""

OPEN: Final = "open"
UNFINISHED: Final = "not finished"


class AgreementTracesScreen(TracesScreen):
    """What the sides say of each trace: where they differ, first."""

    where = Where.AGREEMENT_TRACES


@dataclass(frozen=True, slots=True)
class TraceAnswers:
    """One trace and mode: what each side says, whether they differ, whether any says present.

    ``judge`` is the judge's name where the sides are a judge and its reference, else None.
    """

    trace_id: str
    mode: str
    says: Mapping[str, str]
    differs: bool
    present: bool
    note: str = ""
    judge: str | None = None

    @property
    def id(self) -> str:
        """The id of its row."""
        return f"{self.trace_id} {self.mode}"


@dataclass(frozen=True, slots=True)
class Cases:
    """The first of the traces behind a figure, of ``total``, in ``differing`` of which sides
    differ; ``sides`` are the columns."""

    sides: tuple[str, ...]
    rows: tuple[TraceAnswers, ...]
    total: int
    differing: int

    @classmethod
    def of(cls, sides: tuple[str, ...], found: list[tuple[Any, TraceAnswers]]) -> Cases:
        """Put the cases into the order of their first parts."""
        cases = [case for _, case in sorted(found, key=lambda item: item[0])]
        return cls(sides, tuple(cases[:MOST]), len(cases), sum(case.differs for case in cases))


def behind_people(study: StudyInput, modes: Sequence[str], pair: tuple[str, ...]) -> Cases:
    """List what people said of some modes, in all traces in which two of them can be compared.

    Slow for many traces: for workers.

    Args:
        study: What the figures were made from.
        modes: Slugs.
        pair: Only these two; empty for all annotators.
    """
    traces = {mode: source_traces(study, mode, pair) for mode in modes}
    return _cases(pair or study.annotators, traces)


def behind_judge(given: JudgeInput, compared: Compared, modes: Sequence[str]) -> Cases:
    """List what a judge and its reference said of some modes: errors first.

    Args:
        given: What the figures were made from.
        compared: The same, as it was compared.
        modes: Slugs.
    """
    traces = {mode: judged_source_traces(given, compared, mode) for mode in modes}
    return _cases((given.judge, given.reference.name), traces, given.judge)


def _cases(
    sides: tuple[str, ...], traces: Mapping[str, Sequence[SourceTrace]], judge: str | None = None
) -> Cases:
    """Put the traces of several modes together; a judge's misses come before its false alarms."""
    found = []
    for mode, behind in traces.items():
        for one in behind:
            says = {name: said.value if said else OPEN for name, said in one.verdicts.items()}
            present = VerdictValue.PRESENT in one.verdicts.values()
            invents = judge is not None and one.verdicts[sides[-1]] is not VerdictValue.PRESENT
            differs, note = one.disagreement > 0, ""
            if judge is not None and differs:
                note = "false alarm" if invents else "missed"
            case = TraceAnswers(one.trace_id, mode, says, differs, present, note, judge)
            found.append(((-one.disagreement, invents), case))
    return Cases.of(sides, found)


def behind_spans(given: SpanInput, modes: Sequence[str]) -> Cases:
    """List the places that people marked for some modes: those that the others did not, first.

    Args:
        given: What the figures were made from.
        modes: Slugs.
    """
    found = []
    for trace, mode in product(given.traces, modes):
        places = {
            name: reading.places.get(mode, ())
            for name, reading in trace.readings.items()
            if mode not in reading.unanswered
        }
        if len(places) < 2 or not any(places.values()):
            continue
        alone = _unmatched(list(places.values()))
        says = {name: _places_words(marked) for name, marked in places.items()}
        note = f"{alone} of {sum(len(p) for p in places.values())} unlike" if alone else ""
        case = TraceAnswers(trace.trace_id, mode, says, alone > 0, True, note)
        found.append(((-alone, trace.trace_id), case))
    return Cases.of(given.annotators, found)


def _unmatched(sides: Sequence[Sequence[Place]]) -> int:
    """How many places have no equal on some other side."""
    return sum(
        any(place not in other for other in sides if other is not side)
        for side in sides
        for place in side
    )


def _places_words(places: Sequence[Place]) -> str:
    if not places:
        return "nowhere"
    named = [
        f"#{place.first + 1}" + (f"–{place.last + 1}" if place.last > place.first else "")
        + (" quote" if place.chars is not None else "")
        for place in sorted(places, key=lambda p: (p.first, p.last))
    ]  # fmt: skip
    more = f" +{len(named) - MOST_PLACES}" if len(named) > MOST_PLACES else ""
    return ", ".join(named[:MOST_PLACES]) + more


def listing_of(cases: Cases, taxonomy: Taxonomy, names: Mapping[str, str]) -> Listing:
    """Make rows of what stands behind a figure.

    Args:
        cases: The traces.
        taxonomy: Whose modes they are of.
        names: What traces go by, by their ids.
    """
    modes = {mode.slug: mode for mode in taxonomy.modes}
    several = len({one.mode for one in cases.rows}) > 1
    columns = (
        Column("trace", "trace", Kind.TEXT, keeps=100),
        *((Column("code", "mode", Kind.TEXT, keeps=95),) if several else ()),
        *(
            Column(f"side {place}", one_line(judge_name(name), 20), Kind.TEXT, keeps=90 - place)
            for place, name in enumerate(cases.sides)
        ),
        Column("note", "", Kind.TEXT),
    )
    titles = {
        one.id: f"{one_line(names.get(one.trace_id, one.trace_id))} · "
        f"{modes[one.mode].code} {modes[one.mode].name}"
        for one in cases.rows
    }
    rows = tuple(_row(one, cases.sides, modes[one.mode].code, names) for one in cases.rows)
    by_id = {one.id: one for one in cases.rows}
    facts = [
        counted(cases.total, "trace × mode" if several else "trace"),
        f"{cases.differing:,} where the sides differ",
    ]
    if len(rows) < cases.total:
        facts.append(f"the first {len(rows):,} listed")

    def opening(opened: OpenWorkspace, row: str) -> TraceLocation | ShowDisagreements:
        one = by_id[row]
        if one.judge is None and one.present and _may_adjudicate(opened):
            return ShowDisagreements(one.mode, one.trace_id, agreed=not one.differs)
        return _evidence(opened, one)

    return Listing(
        Table("traces", "", columns, (rows,)),
        titles,
        tuple(facts),
        opening,
        frozenset(one.id for one in cases.rows if one.differs),
    )


def _row(one: TraceAnswers, sides: Sequence[str], code: str, names: Mapping[str, str]) -> Row:
    cells = {
        "trace": names.get(one.trace_id, one.trace_id),
        "code": code,
        "note": one.note,
        **{f"side {place}": one.says.get(name, UNFINISHED) for place, name in enumerate(sides)},
    }
    told = [f"{name}: {word}" for name, word in one.says.items()]
    told += [f"{one.note}."] if one.note else []
    mark = "≠" if one.differs else ""
    return Row(one.id, cells, mark, (*told, f"trace {one.trace_id}"))


def _may_adjudicate(opened: OpenWorkspace) -> bool:
    """Whether settling is this person's to do: everybody's without a study, else as it says."""
    study = opened.workspace.study(opened.taxonomy.ref)
    if study is None or not study.adjudicators:
        return True
    return opened.annotator in study.adjudicators


def _evidence(opened: OpenWorkspace, one: TraceAnswers) -> TraceLocation:
    """Where to look in a trace: at the judge's suggestion, one's own label, or anybody's."""
    found = [
        label
        for label in opened.workspace.labels(
            trace_id=one.trace_id, taxonomy=opened.taxonomy.ref, pass_number=None
        )
        if label.mode == one.mode
    ]
    of_judge = [label for label in found if label.annotator == one.judge]
    if of_judge:
        first = in_reading_order(of_judge, lambda label: label.target)[0]
        return TraceLocation(one.trace_id, suggestion=first.id, key=first.target.first)
    sides = [label for label in found if label.annotator in (*one.says, opened.annotator)]
    sides.sort(key=lambda label: label.annotator != opened.annotator)
    keys = (label.target.first for label in sides if label.target.first is not None)
    return TraceLocation(one.trace_id, key=next(keys, None))
