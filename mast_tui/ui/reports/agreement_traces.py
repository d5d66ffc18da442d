"""The source traces of a figure of agreement, those with differing sides first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mast_tui.figures.agreement.drill_down import (
    SourceTrace,
    judged_source_traces,
    source_traces,
)
from mast_tui.figures.agreement.report import StudyInput
from mast_tui.figures.agreement.sets import COMPLETE
from mast_tui.figures.judge.confusion import ComparedUnits
from mast_tui.figures.judge.input import JudgeInput
from mast_tui.figures.record import Sources
from mast_tui.figures.spans.input import LabelRange, SpanInput
from mast_tui.figures.spans.sums import (
    PreparedMarks,
    PreparedTrace,
    compared_places,
    never_placed_modes,
)
from mast_tui.gold.overlaps import in_reading_order
from mast_tui.labels import VerdictValue
from mast_tui.reports.model import Column, Kind, Row, Table
from mast_tui.safe_text import one_line
from mast_tui.ui.actions.registry import Where
from mast_tui.ui.context import ShowDisagreements, TraceLocation
from mast_tui.ui.reports.screen import MOST_SOURCE_TRACES, Listing, TracesScreen
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.suggestion_wording import judge_name
from mast_tui.ui.wording import counted, trace_names

MOST_RANGES: Final = 4
"""The most span ranges of a side that a row names."""

OPEN: Final = "open"
UNFINISHED: Final = "not finished"
FALSE_ALARM: Final = "false alarm"


class AgreementTracesScreen(TracesScreen):
    """The answers of the sides on each trace."""

    where = Where.AGREEMENT_TRACES


@dataclass(frozen=True, slots=True)
class TraceAnswers:
    """The answers of all sides on one mode of a trace.

    Attributes:
        trace_id: The id of the trace.
        mode: The slug of the mode.
        answers: The text of each side's answer, by the name of the side.
        disagreement: How far the answers differ: the share of differing pairs of verdicts, or the
            number of span ranges that not all sides have marked. 0 if the sides agree.
        any_present: Whether any side says present.
        note: A remark on the difference, such as ``missed``.
    """

    trace_id: str
    mode: str
    answers: Mapping[str, str]
    disagreement: float
    any_present: bool
    note: str = ""

    @property
    def id(self) -> str:
        """The id of its row."""
        return f"{self.trace_id} {self.mode}"


@dataclass(frozen=True, slots=True)
class ComparedTraces:
    """The source traces of a figure.

    Attributes:
        sides: The names of the sides.
        rows: The answers on each trace and mode, the greatest differences first.
        judge: The name of the judge if a judge is compared with its reference; None for people.
    """

    sides: tuple[str, ...]
    rows: Sequence[TraceAnswers]
    judge: str | None = None


def compare_people(study: StudyInput, sources: Sources) -> ComparedTraces:
    """List the answers of people on the modes of a figure, for its traces.

    This is slow for many traces: call it in a worker.

    Args:
        study: The people's answers.
        sources: The modes, the two annotators (empty for all) and the conditions of the figure.
    """
    pair = sources.subject
    rows = [
        _verdicts_row(trace, mode)
        for mode in sources.modes
        for trace in source_traces(study, mode, pair, complete=COMPLETE in sources.where)
    ]
    rows.sort(key=lambda row: -row.disagreement)
    return ComparedTraces(pair or study.annotators, rows)


def compare_judge(
    judge_input: JudgeInput, confusion: ComparedUnits, modes: Sequence[str]
) -> ComparedTraces:
    """List the answers of a judge and its reference on some modes, errors first.

    Misses come before false alarms.

    Args:
        judge_input: The answers of the judge and of its reference.
        confusion: The comparison of these answers.
        modes: The slugs of the modes.
    """
    reference = judge_input.reference.name
    rows = [
        _verdicts_row(trace, mode, reference)
        for mode in modes
        for trace in judged_source_traces(judge_input, confusion, mode)
    ]
    rows.sort(
        key=lambda row: (-row.disagreement, row.answers[reference] != VerdictValue.PRESENT.value)
    )
    return ComparedTraces((judge_input.judge, reference), rows, judge_input.judge)


def _verdicts_row(trace: SourceTrace, mode: str, reference: str | None = None) -> TraceAnswers:
    """Return the verdicts on a mode of a trace.

    If they are those of a judge and its ``reference``, the note names the error of the judge.
    """
    note = ""
    if reference is not None and trace.disagreement:
        note = "missed" if trace.verdicts[reference] is VerdictValue.PRESENT else FALSE_ALARM
    return TraceAnswers(
        trace.trace_id,
        mode,
        answers={
            name: verdict.value if verdict else OPEN for name, verdict in trace.verdicts.items()
        },
        disagreement=trace.disagreement,
        any_present=VerdictValue.PRESENT in trace.verdicts.values(),
        note=note,
    )


def compare_spans(span_input: SpanInput, sources: Sources) -> ComparedTraces:
    """List the compared places of people for some modes, the most unmatched places first.

    Args:
        span_input: The span ranges of the people on each trace.
        sources: The modes and the two annotators (empty for all) of the figure.
    """
    names = sources.subject or span_input.annotators
    never_placed = never_placed_modes(span_input.traces, [mode.slug for mode in span_input.modes])
    rows = []
    for trace in span_input.traces:
        marks_by_name = PreparedTrace.from_trace(trace, never_placed).marks_by_name
        for mode in sources.modes:
            answering = {
                name: marks_by_name[name]
                for name in names
                if name in marks_by_name and marks_by_name[name].answers(mode)
            }
            row = _places_row(trace.trace_id, mode, answering)
            if row is not None:
                rows.append(row)
    rows.sort(key=lambda row: (-row.disagreement, row.trace_id))
    return ComparedTraces(names, rows)


def _places_row(
    trace_id: str, mode: str, marks_by_name: Mapping[str, PreparedMarks]
) -> TraceAnswers | None:
    """Return the places of several people for a mode of a trace; None if none is compared.

    As in the figures, a place in spans that nobody else has read is not compared.
    """
    compared = [
        compared_places(
            marks, [other for other in marks_by_name.values() if other is not marks], mode
        )
        for marks in marks_by_name.values()
    ]
    compared_count = sum(map(len, compared))
    if not compared_count:
        return None
    unmatched_count = _unmatched_count(compared)
    unread_count = sum(len(marks.places(mode)) for marks in marks_by_name.values()) - compared_count
    notes = (
        (unmatched_count, counted(unmatched_count, "place differs", "places differ")),
        (unread_count, f"{counted(unread_count, 'place')} not compared: not read by others"),
    )
    return TraceAnswers(
        trace_id,
        mode,
        answers={name: _ranges_text(marks.places(mode)) for name, marks in marks_by_name.items()},
        disagreement=unmatched_count,
        any_present=True,
        note=", ".join(text for count, text in notes if count),
    )


def _unmatched_count(sides: Sequence[Sequence[LabelRange]]) -> int:
    """Return the number of span ranges that at least one other side has not marked."""
    return sum(
        any(span_range not in other for other in sides if other is not side)
        for side in sides
        for span_range in side
    )


def _ranges_text(ranges: Sequence[LabelRange]) -> str:
    """Return the first span ranges of a side, and the number of further ranges."""
    if not ranges:
        return "nowhere"
    names = [_range_name(r) for r in sorted(ranges, key=lambda r: (r.first, r.last))]
    further_text = f" +{len(names) - MOST_RANGES}" if len(names) > MOST_RANGES else ""
    return ", ".join(names[:MOST_RANGES]) + further_text


def _range_name(span_range: LabelRange) -> str:
    """Return a span range as ``#3``, ``#3–5`` or ``#3 quote``."""
    name = f"#{span_range.first + 1}"
    if span_range.last > span_range.first:
        name += f"–{span_range.last + 1}"
    return name if span_range.chars is None else f"{name} quote"


def listing_of(compared: ComparedTraces, opened: OpenWorkspace) -> Listing:
    """Return the list of the source traces of a figure, at most ``MOST_SOURCE_TRACES``.

    A row opens the trace, or the adjudication of its mode if the user may adjudicate a present
    verdict.

    Args:
        compared: The traces.
        opened: The workspace, and the user.
    """
    modes = {mode.slug: mode for mode in opened.taxonomy.modes}
    names = trace_names(opened.workspace.traces())
    listed = compared.rows[:MOST_SOURCE_TRACES]
    with_codes = len({row.mode for row in listed}) > 1
    rows = tuple(_table_row(row, compared.sides, modes[row.mode].code, names) for row in listed)
    answers_by_row_id = {row.id: row for row in listed}
    facts = [
        counted(len(compared.rows), "trace × mode pair" if with_codes else "trace"),
        f"{sum(row.disagreement > 0 for row in compared.rows):,} where the sides differ",
    ]
    if len(rows) < len(compared.rows):
        facts.append(f"the first {len(rows):,} listed")

    study = opened.study()
    may_adjudicate = compared.judge is None and (
        study is None or study.is_adjudicator(opened.annotator)
    )
    adjudicated_ids = frozenset(row.id for row in listed if may_adjudicate and row.any_present)

    def _destination_of(opened: OpenWorkspace, row_id: str) -> TraceLocation | ShowDisagreements:
        row = answers_by_row_id[row_id]
        if row_id in adjudicated_ids:
            return ShowDisagreements(row.mode, row.trace_id, lists_agreed=not row.disagreement)
        return _evidence_location(opened, row, compared.judge)

    return Listing(
        Table("traces", "", _columns_of(compared.sides, with_codes=with_codes), (rows,)),
        titles={
            row.id: f"{one_line(names.get(row.trace_id, row.trace_id))} · "
            f"{modes[row.mode].code} {modes[row.mode].name}"
            for row in listed
        },
        facts=tuple(facts),
        open=_destination_of,
        differing_ids=frozenset(row.id for row in listed if row.disagreement),
        adjudicated_ids=adjudicated_ids,
    )


def _columns_of(sides: Sequence[str], *, with_codes: bool) -> tuple[Column, ...]:
    """Return the columns of a trace, the code of a mode, the answer of each side, and the note."""
    code_column = Column("code", "mode", Kind.TEXT, priority=95)
    return (
        Column("trace", "trace", Kind.TEXT, priority=100),
        *((code_column,) if with_codes else ()),
        *(
            Column(
                f"side {number}", one_line(judge_name(name), 20), Kind.TEXT, priority=90 - number
            )
            for number, name in enumerate(sides)
        ),
        Column("note", "", Kind.TEXT),
    )


def _table_row(
    answers: TraceAnswers, sides: Sequence[str], code: str, names: Mapping[str, str]
) -> Row:
    """Return the row of a trace and mode, with the answers of the sides."""
    cells = {
        "trace": names.get(answers.trace_id, answers.trace_id),
        "code": code,
        "note": answers.note,
        **{f"side {n}": answers.answers.get(name, UNFINISHED) for n, name in enumerate(sides)},
    }
    detail = [f"{name}: {answer}" for name, answer in answers.answers.items()]
    if answers.note:
        detail.append(f"{answers.note}.")
    detail.append(f"trace {answers.trace_id}")
    return Row(answers.id, cells, "≠" if answers.disagreement else "", tuple(detail))


def _evidence_location(
    opened: OpenWorkspace, row: TraceAnswers, judge: str | None
) -> TraceLocation:
    """Return the location of the evidence for the answers on a trace and mode.

    It is the first suggestion of the judge, or else a label with spans: of the user, or of another
    side. Without these, it is the whole trace.
    """
    labels = [
        label
        for label in opened.workspace.labels(
            trace_id=row.trace_id, taxonomy=opened.taxonomy.ref, pass_number=None
        )
        if label.mode == row.mode
    ]
    suggestions = [label for label in labels if label.annotator == judge]
    if suggestions:
        suggestion, *_ = in_reading_order(suggestions, lambda label: label.target)
        return TraceLocation(row.trace_id, suggestion=suggestion.id, key=suggestion.target.first)
    side_labels = [label for label in labels if label.annotator in (*row.answers, opened.annotator)]
    side_labels.sort(key=lambda label: label.annotator != opened.annotator)
    keys = (label.target.first for label in side_labels if label.target.first is not None)
    return TraceLocation(row.trace_id, key=next(keys, None))
