"""A comparison as rows: counts per mode, and the traces behind them with their places."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from mast_tui.gold.places import in_reading_order
from mast_tui.judges.comparing import Case, Comparison, Mark, ModeCounts, Outcome
from mast_tui.safe_text import one_line
from mast_tui.ui.place_words import place_words
from mast_tui.ui.widgets.column_table import Column, TableRow

if TYPE_CHECKING:
    from mast_tui.gold import Order
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.ui.judge_runs.run_comparison import Compared

ALL_MODES: Final = ""
"""The id of the row that sums up all modes."""

MOST_PLACES: Final = 4
"""Places of one side that are named in a row."""

RUN_COLUMNS: Final = (
    Column("code", ""),
    Column("mode", "mode", shrinks=True),
    Column("both", "both", figure=True, keeps=95),
    Column("meet", "same place", figure=True, keeps=70),
    Column("first", "only A", figure=True, keeps=94),
    Column("second", "only B", figure=True, keeps=93),
    Column("neither", "neither", figure=True, keeps=50),
    Column("undecided", "undecided", figure=True, keeps=40),
)
GOLD_COLUMNS: Final = (
    Column("code", ""),
    Column("mode", "mode", shrinks=True),
    Column("both", "in gold", figure=True, keeps=95),
    Column("meet", "place", figure=True, keeps=70),
    Column("first", "not in gold", figure=True, keeps=94),
    Column("second", "missed", figure=True, keeps=93),
    Column("neither", "neither", figure=True, keeps=42),
    Column("undecided", "undecided", figure=True, keeps=40),
    Column("precision", "precision", figure=True, keeps=55),
    Column("recall", "recall", figure=True, keeps=56),
)
CASE_COLUMNS: Final = (
    Column("trace", "trace", shrinks=True),
    Column("code", "", keeps=90),
    Column("outcome", "", keeps=95),
    Column("first", "A", keeps=80, shrinks=True),
    Column("second", "B", keeps=79, shrinks=True),
)
GOLD_CASE_COLUMNS: Final = (
    *CASE_COLUMNS[:3],
    Column("first", "judge", keeps=80, shrinks=True),
    Column("second", "gold", keeps=79, shrinks=True),
)


def count_rows(comparison: Comparison, taxonomy: Taxonomy) -> list[TableRow]:
    """All modes together, then each mode that was compared or found."""
    rows = [_count_row(comparison.total, "", "all modes")]
    for counts in comparison.counts:
        mode = taxonomy.mode(counts.mode)
        rows.append(_count_row(counts, one_line(mode.code, 8), one_line(mode.name)))
    return rows


def _count_row(counts: ModeCounts, code: str, name: str) -> TableRow:
    total = counts.mode == ALL_MODES
    placed = counts.meet + counts.apart
    numbers = {
        "both": str(counts.both),
        "meet": f"{counts.meet} of {placed}" if placed else "—",
        "first": str(counts.first),
        "second": str(counts.second),
        "neither": str(counts.neither),
        "undecided": str(counts.undecided),
        "precision": _share(counts.precision),
        "recall": _share(counts.recall),
    }
    differs = counts.first or counts.second or counts.apart
    styles = {
        "glyph": "doubt" if differs else "quiet",
        "code": "name",
        "mode": "total" if total else "figure",
        **{key: "quiet" for key, text in numbers.items() if text in ("0", "—")},
        **{key: "doubt" for key in ("first", "second") if numbers[key] != "0"},
    }
    glyph = "≠" if differs else "=" if counts.both else " "
    return TableRow(counts.mode, {"code": code, "mode": name, **numbers}, glyph, styles)


def _share(share: float | None) -> str:
    return "—" if share is None else f"{share:.2f}"


def case_rows(
    cases: Iterable[Case],
    taxonomy: Taxonomy,
    name_of: Callable[[str], str],
    order_of: Callable[[str], Order],
    *,
    gold: bool,
    with_mode: bool,
) -> list[TableRow]:
    """The traces behind a row, where the sides differ first."""
    rows = []
    for case in cases:
        order = order_of(case.trace_id)
        says = outcome_words(case, gold=gold)
        cells = {
            "trace": one_line(name_of(case.trace_id)),
            "code": one_line(taxonomy.mode(case.mode).code, 8) if with_mode else "",
            "outcome": says,
            "first": places_words(case.first, order, said=case.outcome is not Outcome.SECOND),
            "second": places_words(case.second, order, said=case.outcome is not Outcome.FIRST),
        }
        styles = {
            "glyph": "doubt" if case.differs else "quiet",
            "trace": "name",
            "code": "name",
            "outcome": "doubt" if case.differs else "quiet",
        }
        glyph = "≠" if case.differs else "="
        rows.append(TableRow(f"{case.mode}\n{case.trace_id}", cells, glyph, styles))
    return rows


def outcome_words(case: Case, *, gold: bool) -> str:
    """Who says it, and whether at the same place."""
    if case.outcome is Outcome.FIRST:
        return "not in gold" if gold else "only A"
    if case.outcome is Outcome.SECOND:
        return "missed" if gold else "only B"
    if case.meet is None:
        return "both"
    return "both, same place" if case.meet else "both, elsewhere"


def places_words(marks: tuple[Mark, ...], order: Order, *, said: bool) -> str:
    """Where a side marks a mode; ``—`` where it does not say it."""
    if not said:
        return "—"
    if not marks:
        return "no place"
    in_order = in_reading_order(marks, lambda mark: mark.target, order)
    words = [place_words(mark.target, order, quoted=False) for mark in in_order[:MOST_PLACES]]
    more = len(marks) - MOST_PLACES
    return ", ".join(words) + (f" and {more} more" if more > 0 else "")


def about_words(found: Compared, *, gold: bool) -> str:
    """Over what was compared, and what was left out and why."""
    count = found.traces
    words = [f"{count} trace{'' if count == 1 else 's'} compared"]
    if found.examples:
        stood = (
            "1 left out, an example"
            if found.examples == 1
            else (f"{found.examples} left out, examples")
        )
        words.append(f"{stood} in a prompt")
    if found.hidden:
        words.append(f"{found.hidden} hidden until you have finished them")
    if gold and found.judge_seen:
        some = f"{found.judge_seen} verdict{'' if found.judge_seen == 1 else 's'}"
        if found.with_seen:
            words.append(
                f"{some} settled with a judge on screen counted too: no independent figure"
            )
        else:
            words.append(f"{some} settled with a judge on screen left out (o counts them)")
    return " · ".join(words)


def nothing_words(found: Compared, *, gold: bool) -> str:
    """Why there is nothing to compare, and what to do."""
    if found.problem is not None:
        return one_line(found.problem)
    lines = []
    if gold:
        lines.append("No trace of this run has gold that you may see and that is independent.")
        lines.append("")
        lines.append("Gold is what people have finished (D) and settled (A) on the same traces.")
    else:
        lines.append("These two judges have judged no trace in common that you may see.")
        lines.append("")
        lines.append("R, then J, runs a judge on all traces of the library.")
    if found.examples:
        lines.append(f"{found.examples} left out: their text stood as examples in a prompt.")
    if found.hidden:
        lines.append(f"{found.hidden} hidden from you until you have finished them.")
    lines += ["", "Esc goes back."]
    return "\n".join(lines)
