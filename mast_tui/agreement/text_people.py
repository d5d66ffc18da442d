"""Pairs of annotators, rounds, sets, retests and copied blocks as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, cast

from mast_tui.agreement.figure_table import Cell, FigureTable, Row, cell, in_words
from mast_tui.agreement.text_table import rotates

if TYPE_CHECKING:
    from mast_tui.figures.agreement.coefficients import CoefficientJson
    from mast_tui.figures.agreement.report import Report

_OVERALL: Final = (
    ("raw_agreement", "raw"),
    ("cohen_kappa", "κ"),
    ("krippendorff_alpha", "α"),
    ("gwet_ac1", "AC1"),
)


_ROTATING: Final = (
    ("raw_agreement", "raw"),
    ("krippendorff_alpha", "α"),
    ("gwet_ac1", "AC1"),
    ("cohen_kappa", "mean κ"),
)


def _cells(figures: object, columns: tuple[tuple[str, str], ...] = _OVERALL) -> tuple[Cell, ...]:
    by_name = cast("Mapping[str, CoefficientJson]", figures)
    return tuple(cell(by_name[key]) for key, _ in columns)


def pairs_matrix(report: Report, width: int | None) -> list[str]:
    """κ between every two of three annotators or more, all modes pooled; nothing of two."""
    names = report["annotators"]
    if len(names) < 3:
        return []
    pairs = report["pooled"]["pairs"]
    rows = [
        Row(
            (name,),
            tuple(
                cell(pairs[f"{other}|{name}"]["cohen_kappa"]) if place < own else Cell()
                for place, other in enumerate(names[:-1])
            ),
        )
        for own, name in enumerate(names)
        if own
    ]
    # The whole matrix has intervals, or none of it.
    columns = tuple(range(len(names) - 1))
    table = FigureTable(("",), tuple(names[:-1]), [rows], gives_way=columns, left=1)
    counts = {one["n"] for one in pairs.values()}
    units = [f"{pair.replace('|', ' and ')} {one['n']}" for pair, one in pairs.items()]
    told = f"each pair {counts.pop()}" if len(counts) == 1 else ", ".join(units)
    return [
        "Pairs: κ over all modes pooled",
        *table.lines(width),
        f"Traces × modes that both judged: {told}.",
    ]


def rounds_table(report: Report, width: int | None) -> list[str]:
    """The figures of each round of the study, all modes pooled; nothing without rounds."""
    rounds = report["rounds"]
    if not rounds:
        return []
    columns = _ROTATING if rotates(report) else _OVERALL
    rows = [
        Row((name, str(one["traces"]), str(one["pooled"]["n"])), _cells(one["pooled"], columns))
        for name, one in rounds.items()
    ]
    table = FigureTable(
        ("round", "traces", "n"),
        tuple(title for _, title in columns),
        [rows],
        gives_way=(0, 2, 3),
        left=1,
    )
    return ["Rounds: all modes pooled", *table.lines(width)]


def sets_lines(report: Report) -> Iterator[str]:
    """Agreement on the set of modes in a trace, in one line."""
    sets = report["sets"]
    yield (
        f"Sets of modes in a trace: α {in_words(sets['krippendorff_alpha_jaccard'])} with Jaccard "
        f"distance, {in_words(sets['krippendorff_alpha_masi'])} with MASI, over {sets['n']} traces "
        "on which two or more judged every mode."
    )


def retests_table(report: Report, width: int | None) -> list[str]:
    """Agreement of each annotator with themselves; nothing where nobody labelled twice."""
    retests = report["retests"]
    if not retests:
        return []
    rows = [
        Row((name, str(one["n_traces"]), str(one["n"])), _cells(one))
        for name, one in retests.items()
    ]
    table = FigureTable(
        ("annotator", "traces", "n"),
        tuple(title for _, title in _OVERALL),
        [rows],
        gives_way=(0, 2, 3),
        left=1,
    )
    return [
        "Agreement with oneself: the same traces once more, all modes pooled",
        *table.lines(width),
    ]


def blocks_warning(report: Report) -> Iterator[str]:
    """That several traces share one and the same block of labels, where some do."""
    found = report["identical_blocks"]
    if not found:
        return
    traces = sum(len(one["traces"]) for one in found)
    blocks = f"{len(found)} block{'' if len(found) == 1 else 's'} of labels"
    every = report["blocks"]
    yield (
        f"Warning: {traces} traces share {blocks}: everybody said the same of every mode on "
        "several traces, where chance would hardly have it so. Were they copied, or labelled "
        "together? They count as agreement all the same. "
        f"In all there are {every['distinct']} different blocks on {every['traces']} traces."
    )
    for one in found:
        yield f"- {', '.join(one['annotators'])}: {', '.join(one['traces'])}"
