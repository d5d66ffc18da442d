"""The agreement report as rows of a table, and in words for the row under the cursor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final, cast

from mast_tui.agreement.text_table import is_kappa_paradox

if TYPE_CHECKING:
    from mast_tui.agreement.coefficients import CoefficientJson
    from mast_tui.agreement.study import CoefficientsJson, PairJson, Report, TableJson

NO_FIGURE: Final = "—"
PARADOX_MARK: Final = "*"

WHY_UNDEFINED: Final[Mapping[str, str]] = {
    "no_variance": "undefined, since all verdicts are the same and cannot be told from chance",
    "no_overlap": "undefined, since no trace has a verdict on it by two people",
    "single_rater": "undefined, since only one person has given verdicts",
}
"""The reasons why there is no figure, in words."""

_NEVER_SAID: Final = {
    "positive_agreement": "undefined, since nobody said present",
    "negative_agreement": "undefined, since nobody said absent",
}


class RowKind(StrEnum):
    """What a row of the table sums up."""

    MODE = "mode"
    MACRO = "macro"
    POOLED = "pooled"


@dataclass(frozen=True, slots=True)
class AgreementRow:
    """One row: what it is about, and a cell per column of ``COLUMNS``.

    ``slug`` is the mode's, None for totals; ``doubtful`` says that κ needs a second look.
    """

    kind: RowKind
    code: str
    name: str
    slug: str | None
    cells: Mapping[str, str]
    doubtful: bool = False


COLUMNS: Final[tuple[tuple[str, str], ...]] = (
    ("n", "n"),
    ("raw_agreement", "raw"),
    ("prevalence", "present"),
    ("positive_agreement", "P+"),
    ("negative_agreement", "P−"),
    ("cohen_kappa", "κ"),
    ("fleiss_kappa", "Fleiss"),
    ("krippendorff_alpha", "α"),
    ("gwet_ac1", "AC1"),
)
"""Keys of the report with the title of their column."""

_NAMES: Final[tuple[tuple[str, str], ...]] = (
    ("raw_agreement", "Raw agreement"),
    ("positive_agreement", "Positive agreement (P+)"),
    ("negative_agreement", "Negative agreement (P−)"),
    ("cohen_kappa", "Cohen's κ"),
    ("fleiss_kappa", "Fleiss' κ"),
    ("krippendorff_alpha", "Krippendorff's α"),
    ("gwet_ac1", "Gwet's AC1"),
)


def columns_of(report: Report) -> tuple[tuple[str, str], ...]:
    """The columns that mean something here: Fleiss' κ only for three annotators or more."""
    many = len(report["annotators"]) > 2
    return tuple(column for column in COLUMNS if many or column[0] != "fleiss_kappa")


def rows_of(report: Report) -> tuple[AgreementRow, ...]:
    """A row per mode, then the mean over modes, then all traces × modes in one table."""
    rows = [
        AgreementRow(
            RowKind.MODE, code, mode["name"], mode["slug"], _cells(mode, mode),
            is_kappa_paradox(mode),
        )
        for code, mode in report["modes"].items()
    ]  # fmt: skip
    pooled = report["pooled"]
    rows.append(AgreementRow(RowKind.MACRO, "", "Mean over modes", None, _cells(report["macro"])))
    rows.append(
        AgreementRow(
            RowKind.POOLED, "", "Pooled", None, _cells(pooled, pooled), is_kappa_paradox(pooled)
        )
    )
    if not any(row.doubtful for row in rows):
        return tuple(rows)
    # The mark stands behind the figures, which stay aligned.
    return tuple(row if row.doubtful else _with_room_for_mark(row) for row in rows)


def _with_room_for_mark(row: AgreementRow) -> AgreementRow:
    return replace(row, cells={**row.cells, "cohen_kappa": row.cells["cohen_kappa"] + " "})


def _figures(figures: CoefficientsJson) -> Mapping[str, CoefficientJson]:
    return cast("Mapping[str, CoefficientJson]", figures)


def _cells(figures: CoefficientsJson, table: TableJson | None = None) -> dict[str, str]:
    cells = {key: _shown(_figures(figures)[key]) for key, _ in _NAMES}
    if table is not None:
        cells["n"] = str(table["n"])
        cells["prevalence"] = _prevalence(table)
        if is_kappa_paradox(table):
            cells["cohen_kappa"] += PARADOX_MARK
    return cells


def _shown(figure: CoefficientJson) -> str:
    return NO_FIGURE if figure["value"] is None else f"{figure['value']:.2f}"


def _prevalence(table: TableJson) -> str:
    """Both shares of 'present', or of three and more the lowest and the highest."""
    shares = list(table["prevalence"].values())
    known = [share for share in shares if share is not None]
    if not known:
        return NO_FIGURE
    if len(shares) > 2:
        return f"{min(known):.2f}–{max(known):.2f}"
    return "/".join(NO_FIGURE if share is None else f"{share:.2f}" for share in shares)


def explained(report: Report, row: AgreementRow) -> str:
    """What the figures of a row say, in sentences; names are as they were given."""
    if row.kind is RowKind.MACRO:
        return _macro_explained(report)
    table: TableJson = report["pooled"] if row.kind is RowKind.POOLED else report["modes"][row.code]
    parts = [_who_said_what(report, row, table)]
    if is_kappa_paradox(table):
        parts.append(
            f"{PARADOX_MARK} κ is low although raw agreement is high: nearly all verdicts are the "
            "same here, so nearly all agreement counts as chance. Read AC1, P+ and P− beside it."
        )
    many = len(report["annotators"]) > 2
    parts += _undefined_explained(table, many)
    if many:
        parts.append("κ is the mean over the pairs where it is defined.")
        parts += _pairs_explained(table["pairs"])
    unsure = [f"{name} {count}" for name, count in table["unsure"].items() if count]
    if unsure:
        parts.append(f"Unsure, counted as missing: {', '.join(unsure)}.")
    return "\n".join(parts)


def _who_said_what(report: Report, row: AgreementRow, table: TableJson) -> str:
    count = table["n"]
    unit = "trace × mode pair" if row.kind is RowKind.POOLED else "trace"
    have = "has" if count == 1 else "have"
    units = f"{count} {unit}{'' if count == 1 else 's'} {have} verdicts by two people or more"
    shares = [
        f"{name} in {share:.0%}" for name, share in table["prevalence"].items() if share is not None
    ]
    if row.kind is RowKind.POOLED:
        units = f"All modes in one table: {units}"
    return f"{units}. Present, says {', '.join(shares)}." if shares else f"{units}."


def _undefined_explained(table: CoefficientsJson, many: bool) -> list[str]:
    by_reason: dict[str, list[str]] = {}
    for key, name in _names(many):
        reason = _figures(table)[key].get("undefined")
        if reason is not None:
            why = WHY_UNDEFINED[reason]
            if reason == "no_variance":
                why = _NEVER_SAID.get(key, why)
            by_reason.setdefault(why, []).append(name)
    return [f"{NO_FIGURE} {joined(names)}: {why}." for why, names in by_reason.items()]


def _names(many: bool) -> list[tuple[str, str]]:
    """Keys and names of the figures that are shown."""
    return [(key, name) for key, name in _NAMES if many or key != "fleiss_kappa"]


def _pairs_explained(pairs: Mapping[str, PairJson]) -> list[str]:
    lines = []
    for names, pair in pairs.items():
        first, _, second = names.partition("|")
        lines.append(
            f"  {first} and {second}: n {pair['n']}, raw {_shown(pair['raw_agreement'])}, "
            f"κ {_shown(pair['cohen_kappa'])}, AC1 {_shown(pair['gwet_ac1'])}"
        )
    return lines


def _macro_explained(report: Report) -> str:
    defined = report["macro"]["modes_defined"]
    total = len(report["modes"])
    lines = ["The mean over the modes for which a figure is defined:"]
    lines += [
        f"  {name}: {defined[key]} of {total} modes" for key, name in _NAMES if key in defined
    ]
    return "\n".join(lines)


def joined(names: Sequence[str]) -> str:
    """Names in a sentence: ``a``, ``a and b``, ``a, b and c``."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
