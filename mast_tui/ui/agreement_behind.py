"""The traces behind a figure, as rows of a table: where the sides differ, first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mast_tui.labels import VerdictValue
from mast_tui.safe_text import one_line
from mast_tui.ui.widgets.column_table import Column, TableRow

if TYPE_CHECKING:
    from mast_tui.figures.agreement.report import StudyInput
    from mast_tui.figures.judge.confusion import Compared
    from mast_tui.figures.judge.input import JudgeInput
    from mast_tui.figures.spans.input import SpanInput
    from mast_tui.figures.spans.places import Place

MOST: Final = 2000
"""Rows that are listed; the rest is counted."""

MOST_PLACES: Final = 4
"""Places of one side that are named in a row."""

OPEN: Final = "open"
UNFINISHED: Final = "not finished"


@dataclass(frozen=True, slots=True)
class Behind:
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


@dataclass(frozen=True, slots=True)
class Cases:
    """The first of the traces behind a figure, of ``total``, in ``differing`` of which sides
    differ; ``sides`` are the columns."""

    sides: tuple[str, ...]
    rows: tuple[Behind, ...]
    total: int
    differing: int


def behind_people(study: StudyInput, modes: Sequence[str], pair: tuple[str, str] | None) -> Cases:
    """What people said of some modes (slugs), in all traces in which two of them can be compared;
    with ``pair`` only these two. Slow for many traces: for workers."""
    from mast_tui.figures.agreement.drill_down import traces_behind

    first, second = pair or (None, None)
    found = [
        (one.disagreement, mode, one)
        for mode in modes
        for one in traces_behind(study, mode, first, second)
    ]
    found.sort(key=lambda item: -item[0])
    rows = tuple(
        Behind(
            one.trace_id,
            mode,
            {name: OPEN if said is None else said.value for name, said in one.said.items()},
            one.disagreement > 0,
            VerdictValue.PRESENT in one.said.values(),
        )
        for _, mode, one in found[:MOST]
    )
    differing = sum(share > 0 for share, _, _ in found)
    return Cases(pair or study.annotators, rows, len(found), differing)


def behind_judge(given: JudgeInput, found: Compared, modes: Sequence[str]) -> Cases:
    """What a judge and its reference said of some modes: errors first."""
    from mast_tui.figures.judge.confusion import cases_behind

    cases = [(mode, one) for mode in modes for one in cases_behind(found, mode)]
    cases.sort(key=lambda item: (not item[1].differs, not item[1].reference))
    sides = (given.judge, given.reference.name)
    rows = tuple(
        Behind(
            one.trace_id,
            mode,
            dict(zip(sides, (_word(one.judge), _word(one.reference)), strict=True)),
            one.differs,
            one.judge or one.reference,
            _error(one.judge, one.reference),
            given.judge,
        )
        for mode, one in cases[:MOST]
    )
    return Cases(sides, rows, len(cases), sum(one.differs for _, one in cases))


def behind_spans(given: SpanInput, modes: Sequence[str]) -> Cases:
    """The places that people marked for some modes: those that the others did not, first."""
    found: list[tuple[int, Behind]] = []
    for trace in given.traces:
        for mode in modes:
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
            found.append((alone, Behind(trace.trace_id, mode, says, alone > 0, True, note)))
    found.sort(key=lambda item: (-item[0], item[1].trace_id))
    rows = tuple(one for _, one in found[:MOST])
    return Cases(given.annotators, rows, len(found), sum(alone > 0 for alone, _ in found))


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


def _word(present: bool) -> str:
    return VerdictValue.PRESENT.value if present else VerdictValue.ABSENT.value


def _error(judge: bool, reference: bool) -> str:
    if judge == reference:
        return ""
    return "false alarm" if judge else "missed"


def behind_columns(
    cases: Cases, several_modes: bool, called: Mapping[str, str]
) -> tuple[Column, ...]:
    """The trace, the mode where there are several, and a column per side; ``called`` are short
    names of sides."""
    code = (Column("code", "", keeps=95),) if several_modes else ()
    sides = (
        Column(f"side {place}", one_line(called.get(name, name), 20), keeps=90 - place)
        for place, name in enumerate(cases.sides)
    )
    return (
        Column("trace", "trace", shrinks=True, keeps=100),
        *code,
        *sides,
        Column("note", "", keeps=50),
    )


def behind_rows(
    cases: Cases, codes: Mapping[str, str], names: Mapping[str, str]
) -> Iterable[TableRow]:
    """A row per trace and mode; ``names`` are what traces go by, ``codes`` those of modes."""
    for one in cases.rows:
        cells = {
            "trace": one_line(names.get(one.trace_id, one.trace_id)),
            "code": one_line(codes[one.mode], 12),
            "note": one.note,
        }
        styles = {"note": "doubt", "code": "name"}
        for place, name in enumerate(cases.sides):
            word = one.says.get(name, UNFINISHED)
            cells[f"side {place}"] = one_line(word)
            if word in (VerdictValue.ABSENT.value, OPEN, UNFINISHED, "nowhere"):
                styles[f"side {place}"] = "quiet"
        glyph = "≠" if one.differs else "="
        styles["glyph"] = "doubt" if one.differs else "quiet"
        yield TableRow(f"{one.trace_id} {one.mode}", cells, glyph, styles)


def behind_words(one: Behind, trace_id: str) -> str:
    """What each side says of one trace, a line each."""
    lines = [f"{name}: {word}" for name, word in one.says.items()]
    if one.note:
        lines.append(f"{one.note}.")
    return "\n".join([*lines, f"trace {trace_id}"])
