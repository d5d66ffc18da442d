"""The report on places as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from mast_tui.agreement.figure_table import (
    Cell,
    FigureTable,
    Row,
    cell,
    in_words,
    withheld_notes,
)
from mast_tui.figures.agreement.coefficients import CoefficientJson

if TYPE_CHECKING:
    from mast_tui.figures.spans.report import F1Json, SpanReport

HALF: Final = "0.5"
"""The degree of overlap of which F1 is shown beside the exact one."""


def span_table(report: SpanReport | None, width: int | None) -> list[str]:
    """Places per mode and over all; one line where nothing could be compared."""
    if report is None:
        return ["Places were not compared."]
    traces = report["traces"]
    title = "Places: which spans and quotes were marked"
    if not traces["compared"]:
        return [title, _none_at_hand(traces["not_at_hand"])]
    found = report["all"]
    totals = [
        Row(("", "finding, any mode", str(found["finding"]["places"])), _f1(found["finding"])),
        Row(
            ("", "finding and naming", str(found["finding_and_naming"]["places"])),
            (
                *_f1(found["finding_and_naming"])[:2],
                Cell(),
                cell(found["krippendorff_alpha_u"]),
            ),
        ),
    ]
    modes = [
        Row(
            (code, one["name"], str(one["f1"]["places"])),
            (
                cell(one["f1"]["exact"]),
                cell(one["f1"]["overlap"][HALF]),
                cell(one["krippendorff_alpha"]),
                cell(one["krippendorff_alpha_u"]),
            ),
        )
        for code, one in found["modes"].items()
    ]
    table = FigureTable(
        ("", "mode", "places"),
        ("F1 exact", f"F1 at {HALF}", "α spans", "α_U"),
        [modes, totals],
        gives_way=(0, 2, 1, 3),
    )
    return [title, *table.lines(width)]


def _none_at_hand(missing: int) -> str:
    if missing:
        return (
            f"The files of the {missing} traces that two have finished are not at hand, so no "
            "place could be compared. Open them once with mast-tui, or run this where they are."
        )
    return "No trace was finished by two annotators."


def _f1(figures: F1Json) -> tuple[Cell, ...]:
    return (cell(figures["exact"]), cell(figures["overlap"][HALF]), Cell(), Cell())


def span_notes(report: SpanReport | None) -> Iterator[str]:
    """What the figures on places rest on, and what was left out."""
    if report is None or not report["traces"]["compared"]:
        return
    found, traces = report["all"], report["traces"]
    yield (
        f"F1: of all places marked the share that pairs off, exactly or with an overlap of {HALF}. "
        "α: over the spans that two or more have read. α_U: where units lie on the spans that all "
        "have read."
    )
    sweep = ", ".join(
        f"{level} {_short(one)}" for level, one in found["finding_and_naming"]["overlap"].items()
    )
    yield f"F1 of finding and naming by overlap of at least: {sweep}."
    counted = "; ".join(
        f"{name} {one['places']} in {one['traces']} traces ({one['reading_recorded']} with reading "
        f"recorded), {one['whole_trace']} on whole traces, {one['not_found']} not found"
        for name, one in report["annotators"].items()
    )
    yield f"{traces['compared']} traces, {found['spans']} spans. Places: {counted}."
    left = found["finding_and_naming"]["left_out"]
    parts = []
    if traces["not_at_hand"]:
        parts.append(f"{traces['not_at_hand']} traces whose files are not at hand")
    if left:
        parts.append(f"{left} places on what the other side has not read or judged")
    examples = traces.get("examples_left_out", {})
    parts += [f"{n} traces in the prompt of {name}" for name, n in examples.items() if n]
    if parts:
        yield f"Left out: {'; '.join(parts)}."
    yield from without_places(report)
    yield from withheld_notes(report["all"])


def without_places(report: SpanReport | Mapping[str, Any]) -> Iterator[str]:
    """What says that a mode shows and not where, and is left out for it."""
    unplaced = report["all"]["no_places"]
    if unplaced:
        yield (
            f"In {unplaced} traces × modes somebody says present and not where (a label on the "
            "whole trace, or a table without places): left out on both sides."
        )
    every = len(report["all"]["modes"])
    for name, one in report["annotators"].items():
        codes = one["never_placed"]
        if codes:
            of = "any mode" if len(codes) == every else ", ".join(codes)
            yield f"{name} never says where {of} shows, so counts in no figure on places of it."


def _short(figure: CoefficientJson) -> str:
    return cell(figure).number or in_words(figure)
