"""The agreement report as rows: per mode, over all, per category, per round, and with oneself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

from mast_tui.agreement.text_table import is_kappa_paradox, rotates
from mast_tui.safe_text import one_line
from mast_tui.ui.agreement_cells import (
    LOOK_MARK,
    NO_FIGURE,
    PARADOX_MARK,
    PageRow,
    figure_cell,
    interval_cell,
    joined,
    styled,
)
from mast_tui.ui.agreement_words import (
    macro_words,
    pooled_words,
    retest_words,
    sets_words,
    table_words,
)
from mast_tui.ui.widgets.column_table import Column, TableRow

if TYPE_CHECKING:
    from mast_tui.figures.agreement.coefficients import CoefficientJson
    from mast_tui.figures.agreement.report import CoefficientsJson, PairJson, Report, TableJson

__all__ = ["category_rows", "columns_of", "joined", "mode_rows", "pair_rows"]

MACRO: Final = "macro"
POOLED: Final = "pooled"
SETS: Final = "sets"

_FIGURES: Final = (
    "raw_agreement",
    "positive_agreement",
    "negative_agreement",
    "cohen_kappa",
    "fleiss_kappa",
    "krippendorff_alpha",
    "gwet_ac1",
)

_MODE: Final = (Column("code", "", keeps=101), Column("name", "mode", shrinks=True, keeps=102))
_INTERVAL: Final = Column("ci", "95 %", keeps=40)


def columns_of(report: Report, *, many: bool | None = None) -> tuple[Column, ...]:
    """The columns that mean something here, with the interval of κ for two annotators, else of α.

    ``many`` says whether there are three annotators or more; Fleiss' κ is for these only.
    """
    if many is None:
        many = len(report["annotators"]) > 2
    kappas = (Column("cohen_kappa", "κ", figure=True, keeps=99),)
    alpha = (Column("krippendorff_alpha", "α", figure=True, keeps=98),)
    if many and rotates(report):
        mean = (Column("cohen_kappa", "mean κ", figure=True, keeps=92),)
        fleiss = (Column("fleiss_kappa", "Fleiss", figure=True, keeps=60),)
        middle: tuple[Column, ...] = (*alpha, _INTERVAL, *mean, *fleiss)
    elif many:
        fleiss = (Column("fleiss_kappa", "Fleiss", figure=True, keeps=60),)
        middle = (*kappas, *fleiss, *alpha, _INTERVAL)
    else:
        middle = (*kappas, _INTERVAL, *alpha)
    return (
        *_MODE,
        Column("n", "n", figure=True, keeps=97),
        Column("raw_agreement", "raw", figure=True, keeps=96),
        Column("prevalence", "present", figure=True, keeps=70),
        Column("positive_agreement", "P+", figure=True, keeps=94),
        Column("negative_agreement", "P−", figure=True, keeps=93),
        *middle,
        Column("gwet_ac1", "AC1", figure=True, keeps=95),
    )


def mode_rows(report: Report, *, pending: bool = False) -> tuple[PageRow, ...]:
    """A row per mode, then the totals, the sets of modes, each round, and retests.

    ``pending`` says that the intervals are still being counted.
    """
    every = tuple(mode["slug"] for mode in report["modes"].values())
    many = len(report["annotators"]) > 2
    rows = [
        _row(
            mode["slug"], code, mode["name"], mode, many, pending,
            table_words(report, mode, code=code, pending=pending), modes=(mode["slug"],),
        )
        for code, mode in report["modes"].items()
    ]  # fmt: skip
    rows.append(
        _row(MACRO, "", "Mean over modes", report["macro"], many, pending,
             macro_words(report, pending=pending), modes=every, total=True)
    )  # fmt: skip
    look = LOOK_MARK if report["identical_blocks"] else " "
    rows.append(
        _row(POOLED, "", "Pooled", report["pooled"], many, pending,
             pooled_words(report, pending=pending), modes=every, total=True, glyph=look)
    )  # fmt: skip
    rows.append(_sets_row(report, many, pending))
    rows += [
        _row(f"round {name}", "", f"Round {name}", one["pooled"], many, pending,
             table_words(report, one["pooled"], pending=pending,
                         about=f"All modes of the {one['traces']} traces of this round together: "))
        for name, one in report["rounds"].items()
    ]  # fmt: skip
    rows += [
        _row(f"retest {name}", "", f"{name} again", one, many, pending,
             retest_words(name, one, pending=pending))
        for name, one in report["retests"].items()
    ]  # fmt: skip
    return _marks_aligned(rows)


def category_rows(report: Report, *, pending: bool = False) -> tuple[PageRow, ...]:
    """A row per category: its modes pooled."""
    many = len(report["annotators"]) > 2
    slugs = {code: mode["slug"] for code, mode in report["modes"].items()}
    rows = [
        _row(
            ident, "", one["name"], one, many, pending,
            table_words(report, one, pending=pending,
                        about=f"The modes {joined(one['modes'])} in one table: "),
            modes=tuple(slugs[code] for code in one["modes"]),
        )
        for ident, one in report["categories"].items()
    ]  # fmt: skip
    return _marks_aligned(rows)


def pair_rows(report: Report, pair: str, *, pending: bool = False) -> tuple[PageRow, ...]:
    """A row per mode with the figures of two annotators, named ``A|B``, then all modes pooled."""
    rows = []
    for code, mode in report["modes"].items():
        one = mode["pairs"][pair]
        words = table_words(report, one, pending=pending)
        rows.append(
            _row(mode["slug"], code, mode["name"], one, False, pending, words,
                 modes=(mode["slug"],))
        )  # fmt: skip
    pooled = report["pooled"]["pairs"][pair]
    words = table_words(report, pooled, pending=pending, about="All modes in one table: ")
    every = tuple(mode["slug"] for mode in report["modes"].values())
    rows.append(_row(POOLED, "", "Pooled", pooled, False, pending, words, modes=every, total=True))
    return _marks_aligned(rows)


def _row(
    ident: str,
    code: str,
    name: str,
    figures: CoefficientsJson,
    many: bool,
    pending: bool,
    words: str,
    *,
    modes: tuple[str, ...] = (),
    total: bool = False,
    glyph: str = " ",
) -> PageRow:
    by_name = cast("Mapping[str, CoefficientJson]", figures)
    cells = {"code": one_line(code, 12), "name": one_line(name)}
    cells |= {key: figure_cell(by_name[key]) for key in _FIGURES}
    cells["ci"] = interval_cell(
        by_name["krippendorff_alpha" if many else "cohen_kappa"], pending=pending
    )
    styles = styled(cells, ("n", "prevalence", "ci"))
    styles |= {"code": "name", "name": "total" if total else "figure"}
    if "n" in figures:
        table = cast("TableJson", figures)
        cells["n"] = str(table["n"])
        cells["prevalence"] = _prevalence(table)
        if is_kappa_paradox(table):
            cells["cohen_kappa"] += PARADOX_MARK
            styles["cohen_kappa"] = "doubt"
    if glyph.strip():
        styles["glyph"] = "doubt"
    title = f"{code} {name}".strip()
    return PageRow(TableRow(ident, cells, glyph, styles), title, words, modes)


def _sets_row(report: Report, many: bool, pending: bool) -> PageRow:
    sets = report["sets"]
    jaccard = sets["krippendorff_alpha_jaccard"]
    cells = {
        "name": "Sets of modes",
        "n": str(sets["n"]),
        "krippendorff_alpha": figure_cell(jaccard),
        "ci": interval_cell(jaccard, pending=pending) if many else "",
    }
    styles = styled(cells, ("n", "ci"))
    words = sets_words(sets, pending=pending)
    every = tuple(mode["slug"] for mode in report["modes"].values())
    return PageRow(TableRow(SETS, cells, " ", styles), "Sets of modes", words, every)


def _prevalence(table: PairJson) -> str:
    """Both shares of 'present', or of three and more the lowest and the highest."""
    shares = list(table["prevalence"].values())
    known = [share for share in shares if share is not None]
    if not known:
        return NO_FIGURE
    if len(shares) > 2:
        return f"{min(known):.2f}–{max(known):.2f}"
    return "/".join(NO_FIGURE if share is None else f"{share:.2f}" for share in shares)


def _marks_aligned(rows: list[PageRow]) -> tuple[PageRow, ...]:
    """The mark stands behind the figures of κ, which stay aligned."""
    if not any(row.shown.styles.get("cohen_kappa") == "doubt" for row in rows):
        return tuple(rows)
    return tuple(
        row if row.shown.styles.get("cohen_kappa") == "doubt" else _with_room(row) for row in rows
    )


def _with_room(row: PageRow) -> PageRow:
    cells = dict(row.shown.cells)
    cells["cohen_kappa"] = f"{cells.get('cohen_kappa', '')} "
    shown = TableRow(row.shown.id, cells, row.shown.glyph, row.shown.styles)
    return PageRow(shown, row.title, row.words, row.modes)
