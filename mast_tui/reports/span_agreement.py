"""The section on the agreement of places, in the report on agreement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from mast_tui.counts import counted
from mast_tui.figures.record import PAIR, FigureTable
from mast_tui.figures.spans.report import THRESHOLDS, SpanAgreement
from mast_tui.grouping import values_by_key
from mast_tui.reports.model import (
    CODE,
    MODE,
    Cell,
    Column,
    Kind,
    Note,
    ReportSection,
    Row,
    Table,
    columns,
    existing_parts,
    figure_cell,
    figure_cells,
)
from mast_tui.reports.render.cells import fixed_number
from mast_tui.reports.sentences import (
    applicable,
    intervals_note,
    joined_names,
    why_undefined,
    withheld_notes,
)
from mast_tui.taxonomy.model import Mode

BIAS_CORRECTED: Final = "BCa bootstrap"
"""The bootstrap for figures on places and of judges."""

_UNDEFINED: Final = {
    "no_variance": "no one marked a span that others read too, or all annotators marked every span",
    "no_overlap": "no span was read by two annotators who gave a verdict",
    "single_rater": "only one annotator gave a verdict",
}

_PLACES: Final = columns("""
    places         | places   | count  | compared places                 | 97
    f1_exact       | F1 exact | number | F1 of exact matches             | 99
    f1_overlap:0.5 | F1 ≥ 0.5 | number | F1 at an overlap of 0.5 or more | 46
    f1_overlap:0.1 | F1 ≥ 0.1 | number | F1 at an overlap of 0.1 or more | 44
""")
_ALPHA, _ALPHA_U = columns("""
    krippendorff_alpha   | α spans | number | Krippendorff's α over spans | 48
    krippendorff_alpha_u | α_U     | number | Krippendorff's α_U          | 47
""")
_PAIRS: Final = columns("""
    pair          | pair    | text   |                                       | 102
    traces        | traces  | count  | traces compared                       | 90
    finding_exact | place   | number | F1 of exact matches, any mode         | 98
    finding_half  | ≥ 0.5   | number | F1 at an overlap of 0.5, any mode     | 60
    naming_exact  | + mode  | number | F1 of exact matches, same mode        | 99
    naming_half   | ≥ 0.5   | number | F1 at an overlap of 0.5, same mode    | 61
""")
_ANNOTATORS: Final = columns("""
    traces           | traces           | count | traces compared                       | 99
    places           | places           | count | places marked                         | 98
    reading_recorded | reading recorded | count | traces with a record of the spans read
    whole_trace      | on whole traces  | count | labels on a whole trace
    no_places        | no place         | count | verdicts present without a place
    not_found        | not found        | count | labels on spans that the trace lacks
""")
_MODE_NOTE: Final = Note(
    "F1: share of all marked places that match one to one, exactly or with an overlap "
    "(intersection over union) of at least 0.5 or 0.1. α spans: agreement "
    "on whether each span is marked, over spans read by two or more. α_U: agreement on "
    "the positions of places, over spans read by all. place only: modes may differ; "
    "place and mode: modes must be equal.",
    "f1",
)
_SHOWN_IF_NOT_ZERO: Final = ("whole_trace", "no_places", "not_found")
"""The columns that are left out if they are 0 for all annotators."""


class _Matching(NamedTuple):
    """A rule by which places of two annotators match, with its row, scope and texts."""

    row_id: str
    scope: str
    name: str
    sentence: str


_PLACE_ONLY: Final = _Matching(
    "finding", "spans_finding", "place only", "Places match whatever their modes."
)
_PLACE_AND_MODE: Final = _Matching(
    "finding_and_naming",
    "spans_naming",
    "place and mode",
    "Places match only if their modes are equal.",
)


def places_section(spans: SpanAgreement) -> ReportSection:
    """Make the section on agreement about places: the spans and quotes that annotators marked."""
    if not spans.compared:
        return ReportSection("spans", "Places", notes=(_nothing_compared_note(spans.not_at_hand),))
    tables = existing_parts(
        _modes_table(spans),
        _overlaps_table(spans),
        _pairs_table(spans),
        _annotators_table(spans),
    )
    return ReportSection("spans", "Places", tables, notes=tuple(_left_out_notes(spans)))


def _nothing_compared_note(unordered_traces: int) -> Note:
    """Return a note on the reason why no place could be compared."""
    if unordered_traces:
        traces_text = "trace" if unordered_traces == 1 else f"{unordered_traces:,} traces"
        return Note(
            f"No places can be compared: the files of the {traces_text} that two annotators have "
            "finished were not found, so the order of their spans is unknown. Open the files once "
            "with mast-tui.",
            "not_at_hand",
        )
    return Note("No places can be compared: no trace was finished by two annotators.", "alone")


def _modes_table(spans: SpanAgreement) -> Table:
    """Make the table of agreement on places by mode, with totals."""
    index = spans.index
    span_count = index.table("spans").count("spans")
    rows = [_mode_row(spans, mode) for mode in spans.modes]
    totals = (
        _total_row(spans, _PLACE_ONLY),
        _with_alpha_u(_total_row(spans, _PLACE_AND_MODE), spans),
    )
    withheld = withheld_notes(
        *(figure for figure in index.figures if figure.scope in _COMMON_SCOPES)
    )
    return Table(
        "spans",
        "Agreement on places (marked spans and quotes)",
        (CODE, MODE, *_PLACES, _ALPHA, _ALPHA_U),
        (tuple(rows), totals),
        f"Places marked by {joined_names(spans.annotators)} in {counted(spans.compared, 'trace')} "
        f"with {counted(span_count, 'span')}. "
        + intervals_note(spans.resampling, spans.compared, BIAS_CORRECTED),
        (_MODE_NOTE, *withheld),
    )


def _mode_row(spans: SpanAgreement, mode: Mode) -> Row:
    """Return the row of a mode: F1 of its places, and α of its spans and places."""
    figures = spans.index.table("spans_mode", mode=mode.code)
    f1_figures = spans.index.table("spans_mode_f1", mode=mode.code)
    return Row(
        mode.slug,
        {
            "code": mode.code,
            "name": mode.name,
            **figure_cells(f1_figures, _PLACES),
            **figure_cells(figures, (_ALPHA, _ALPHA_U)),
        },
        detail=(*_f1_sentences(f1_figures), *_mode_sentences(figures)),
        sources=f1_figures.sources,
    )


def _total_row(spans: SpanAgreement, matching: _Matching) -> Row:
    """Return the row of F1 over all modes, by one rule of matching."""
    figures = spans.index.table(matching.scope)
    return Row(
        matching.row_id,
        {"name": matching.name, **figure_cells(figures, _PLACES)},
        detail=(matching.sentence, *_f1_sentences(figures)),
        sources=figures.sources,
    )


def _with_alpha_u(row: Row, spans: SpanAgreement) -> Row:
    """Return the row of a total with α_U over all modes, or the reason why it is undefined."""
    alpha_u = spans.index.table("spans")["krippendorff_alpha_u"]
    reasons = why_undefined([("α_U over all modes", alpha_u)], _UNDEFINED, {})
    return replace(
        row,
        cells={**row.cells, _ALPHA_U.key: figure_cell(alpha_u)},
        detail=(*row.detail, *reasons),
    )


_COMMON_SCOPES: Final = (
    "spans",
    "spans_finding",
    "spans_naming",
    "spans_mode",
    "spans_mode_f1",
)
"""The scopes of the figures of all annotators."""


def _overlaps_table(spans: SpanAgreement) -> Table:
    """Make the table of F1 by the required overlap of two places."""
    levels = [
        Column(
            f"f1_overlap:{level}",
            level,
            name=f"F1 at an overlap of {level} or more",
            interval=False,
        )
        for level in THRESHOLDS
    ]
    rows = [
        Row(
            matching.row_id,
            {"name": matching.name, **figure_cells(spans.index.table(matching.scope), levels)},
        )
        for matching in (_PLACE_ONLY, _PLACE_AND_MODE)
    ]
    return Table(
        "spans_overlap",
        "F1 of places by required overlap",
        (Column("name", "overlap ≥", Kind.TEXT, "F1", priority=102), *levels),
        (tuple(rows),),
    )


def _pairs_table(spans: SpanAgreement) -> Table | None:
    """Make the table of F1 and α_U of each pair of annotators; None for a single pair."""
    if len(spans.pairs) < 2:
        return None
    index = spans.index
    rows = []
    for pair in spans.pairs:
        pair_figures = index.table("spans_pair", subject=pair)
        cells: dict[str, Cell] = {
            "pair": joined_names(pair),
            "traces": pair_figures.count("traces"),
        }
        for key in ("finding", "naming"):
            f1_figures = index.table(f"spans_{key}_pair", subject=pair)
            cells[f"{key}_exact"] = figure_cell(f1_figures["f1_exact"])
            cells[f"{key}_half"] = figure_cell(f1_figures.find("f1_overlap", "0.5"))
        cells |= figure_cells(pair_figures, (_ALPHA_U,))
        rows.append(Row(PAIR.join(pair), cells))
    return Table(
        "spans_pairs",
        "Agreement on places by pair",
        (*_PAIRS, _ALPHA_U),
        (tuple(rows),),
        notes=withheld_notes(
            *(figure for figure in index.figures if figure.scope.endswith("_pair"))
        ),
        folded=True,
    )


def _annotators_table(spans: SpanAgreement) -> Table:
    """Make the table of the traces, places and labels of each annotator."""
    figures_by_name = {
        name: spans.index.table("spans_annotator", subject=(name,)) for name in spans.annotators
    }
    columns = [
        column
        for column in _ANNOTATORS
        if column.key not in _SHOWN_IF_NOT_ZERO
        or any(figures.count(column.key) for figures in figures_by_name.values())
    ]
    rows = [
        Row(name, {"annotator": name, **figure_cells(figures, columns)})
        for name, figures in figures_by_name.items()
    ]
    return Table(
        "spans_annotators",
        "Traces, places and labels of each annotator",
        (Column("annotator", "annotator", Kind.TEXT, priority=102), *columns),
        (tuple(rows),),
        notes=(
            Note(
                "A finished trace without a record of the spans read counts as read completely.",
                "reading_recorded",
            ),
        ),
    )


def _mode_sentences(figures: FigureTable) -> Iterator[str]:
    """Yield sentences on the data of α and α_U of a mode, and on why these are undefined."""
    alpha = figures["krippendorff_alpha"]
    alpha_u = figures["krippendorff_alpha_u"]
    yield (
        f"α uses {counted(figures.count('spans'), 'span')} in "
        f"{counted(figures.count('traces'), 'trace')}, read by two or more people who gave a "
        f"verdict on the mode; {counted(figures.count('spans_left_out'), 'other span')} excluded. "
        f"α_U uses {counted(figures.count('units'), 'place')} on "
        f"{counted(figures.count('positions'), 'span')} that all of them read."
    )
    without_place = figures.count("no_places")
    if without_place:
        yield (
            f"{counted(without_place, 'trace')} excluded: an annotator gave the verdict present "
            "without a place."
        )
    yield from why_undefined([("α", alpha), ("α_U", alpha_u)], _UNDEFINED, {})


def _f1_sentences(figures: FigureTable) -> Iterator[str]:
    """Yield sentences on places left out, and on F1 by required overlap, or why it is undefined."""
    left_out_count = figures.count("places_left_out")
    if left_out_count:
        yield (
            f"{counted(left_out_count, 'place')} excluded: the other annotator did not read the "
            "span or gave no verdict."
        )
    exact = figures["f1_exact"]
    if exact.value is None:
        yield from why_undefined([("F1", exact)], _UNDEFINED, {"F1": "no place can be compared"})
        return
    overlaps_by_f1 = values_by_key(
        (fixed_number(f1 or 0.0), overlap) for overlap, f1 in figures.values("f1_overlap").items()
    )
    if len(overlaps_by_f1) > 1:
        f1_texts = ", ".join(
            f"{f1} at {overlaps[0]}" + (f" to {overlaps[-1]}" if len(overlaps) > 1 else "")
            for f1, overlaps in overlaps_by_f1.items()
        )
        yield f"F1 by required overlap: {f1_texts}."


def _left_out_notes(spans: SpanAgreement) -> Iterator[Note]:
    """Yield notes on the traces and places that figures on places leave out."""
    index = spans.index
    place_count = index.table("spans_naming").count("places_left_out")
    example_counts = index.table("spans_traces").values("examples_left_out")
    parts = applicable(
        (
            spans.not_at_hand,
            f"{counted(spans.not_at_hand, 'trace')} with an unknown order of spans",
        ),
        (
            place_count,
            f"{counted(place_count, 'place')} that the other annotator has not read or judged",
        ),
        *(
            (
                n,
                f"{counted(int(n or 0), 'trace')} in the prompt of {name}, or chosen for errors of "
                "an earlier version",
            )
            for name, n in example_counts.items()
        ),
    )
    without_place = index.table("spans").count("no_places")
    no_places = (
        f"Excluded for all annotators: {counted(without_place, 'trace × mode', 'traces × modes')} "
        "in which one of them gave the verdict present without a place (a label on the whole "
        "trace, or an import without places)."
    )
    yield from applicable(
        (parts, Note(f"Excluded from the figures on places: {'; '.join(parts)}.", "left_out")),
        (without_place, Note(no_places, "no_places")),
    )
    for name, codes in spans.never_placed.items():
        if codes:
            modes = "any mode" if len(codes) == len(spans.modes) else ", ".join(codes)
            yield Note(
                f"{name} gave no places for {modes} and is excluded from its figures on places.",
                "never_placed",
            )
