"""The whole report of ``agree`` as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from mast_tui.agreement.text_judge import judge_notes, judge_tables
from mast_tui.agreement.text_people import (
    blocks_warning,
    pairs_matrix,
    retests_table,
    rounds_table,
    sets_lines,
)
from mast_tui.agreement.text_spans import span_notes, span_table
from mast_tui.agreement.text_table import mode_tables, notes

if TYPE_CHECKING:
    from mast_tui.figures.agreement.report import Report


def render_report(report: Report, width: int | None = None) -> list[str]:
    """The report as lines: who agrees on what, where, and how good the judge is.

    Under each part stands what it rests on and what was left out. ``width`` is how many cells a
    line should not exceed; mode names are cut for it and intervals left out, numbers never. Names
    are written as they are: whoever shows the lines passes them through ``safe_text``.
    """
    people = ", ".join(report["annotators"]) or "nobody"
    traces = report["traces"]
    by_two = f"finished by two or more: {traces['finished_by_two']}, "
    many = len(report["annotators"]) > 2
    lines = [
        *_wrapped(
            [
                f"{report['taxonomy']}, pass {report['pass']}, {people}; "
                f"{by_two if many else ''}finished by all: {traces['finished_by_all']} traces.",
                *blocks_warning(report),
            ],
            width,
        ),
        "",
    ]
    lines += [*mode_tables(report, width), "", *_wrapped(notes(report), width)]
    parts: list[Sequence[str]] = [
        pairs_matrix(report, width),
        rounds_table(report, width),
        list(sets_lines(report)),
        retests_table(report, width),
        _with_notes(span_table(report["spans"], width), span_notes(report["spans"])),
    ]
    judge = report["judge"]
    if judge is not None:
        parts.append(_with_notes(judge_tables(judge, width), judge_notes(judge)))
    for part in parts:
        if part:
            lines += ["", *_wrapped(part, width)]
    return lines


def _with_notes(table: Sequence[str], notes: Iterable[str]) -> list[str]:
    """A part with what it rests on under it, where there is anything to say."""
    told = list(notes)
    return [*table, "", *told] if told else list(table)


def _wrapped(lines: Iterable[str], width: int | None) -> list[str]:
    """Sentences broken at the width; lines of tables that are wider stay as they are."""
    if width is None:
        return list(lines)
    found: list[str] = []
    for line in lines:
        is_row = "  " in line.strip() or line.startswith("─")
        found += [line] if is_row or not line else wrap(line, width, break_on_hyphens=False)
    return found
