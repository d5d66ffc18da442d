"""The figures per mode, category and over all as aligned lines of text, and what they rest on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from mast_tui.agreement.figure_table import (
    NONE,
    Cell,
    FigureTable,
    Row,
    cell,
    number,
    withheld_notes,
)
from mast_tui.figures.jackknife import MANY

if TYPE_CHECKING:
    from mast_tui.figures.agreement.coefficients import CoefficientJson
    from mast_tui.figures.agreement.report import CoefficientsJson, Report, TableJson

# Where κ is called low although raw agreement is high because one answer is nearly always given.
# The bounds are this project's own: κ under 0.4 is what Landis and Koch call at most 'fair'.
_LOW_KAPPA = 0.4
_HIGH_RAW = 0.8
_EXTREME_PREVALENCE = 0.2

_PARADOX_MARK = "*"

OBSERVED: Final = (
    ("raw_agreement", "raw"),
    ("negative_agreement", "Pneg"),
    ("positive_agreement", "Ppos"),
)
"""What was observed, with the titles of the columns."""


def is_kappa_paradox(figures: TableJson) -> bool:
    """Whether κ is low only because nearly all verdicts are the same (Feinstein, Cicchetti 1990).

    That is: raw agreement of 0.8 or more, κ under 0.4, and on average 'present' in at most a
    fifth, or at least four fifths, of the verdicts.
    """
    kappa, raw = figures["cohen_kappa"]["value"], figures["raw_agreement"]["value"]
    shares = [p for p in figures["prevalence"].values() if p is not None]
    if kappa is None or raw is None or not shares:
        return False
    mean = sum(shares) / len(shares)
    return kappa < _LOW_KAPPA and raw >= _HIGH_RAW and min(mean, 1 - mean) <= _EXTREME_PREVALENCE


def rotates(report: Report | Mapping[str, Any]) -> bool:
    """Whether two of three annotators or more share few of the traces: α leads there."""
    return bool(report["pooled"].get("few_shared_by_pair"))


def corrected(many: bool, rotating: bool = False) -> tuple[tuple[str, str], ...]:
    """The figures that are corrected for chance, the one to lead with first.

    Fleiss' κ is only of three annotators or more; where they rotate, it has hardly a unit.
    """
    fleiss = (("fleiss_kappa", "Fleiss κ"),) if many else ()
    if rotating:
        return (
            ("krippendorff_alpha", "α"),
            ("gwet_ac1", "AC1"),
            ("cohen_kappa", "mean κ"),
            *fleiss,
        )
    return (
        ("cohen_kappa", "mean κ" if many else "κ"),
        *fleiss,
        ("krippendorff_alpha", "α"),
        ("gwet_ac1", "AC1"),
    )


def mode_tables(report: Report, width: int | None) -> list[str]:
    """Two tables of a row per mode, category, and over all: what was observed, and beyond chance.

    κ, or α where annotators rotate, stands in both: neither raw agreement nor AC1 tells a useless
    annotator by itself. Names are written as they are.
    """
    many = len(report["annotators"]) > 2
    columns = corrected(many, rotates(report))
    kappa = columns[0]
    observed = FigureTable(
        ("", "mode", "n", "present"),
        tuple(title for _, title in (*OBSERVED, kappa)),
        [
            [
                Row(
                    (code, name, "" if table is None else str(table["n"]), _prevalence(table)),
                    (*_cells(figures, OBSERVED), Cell(_cells(figures, [kappa])[0].number or NONE)),
                )
                for code, name, figures, table in group
            ]
            for group in _groups(report)
        ],
        gives_way=(0, 1, 2),
    )
    beyond = FigureTable(
        ("", "mode"),
        tuple(title for _, title in columns),
        [
            [Row((code, name), _cells(figures, columns)) for code, name, figures, _ in group]
            for group in _groups(report)
        ],
        gives_way=tuple(range(len(columns) - 2, 0, -1)),
    )
    return [*observed.lines(width), "", "Corrected for chance:", *beyond.lines(width)]


_OF_PEOPLE: Final = ("modes", "categories", "macro", "pooled", "sets", "rounds", "retests")

Named = tuple[str, str, "CoefficientsJson", "TableJson | None"]


def _groups(report: Report) -> list[list[Named]]:
    """Code, name, figures and table of every row."""
    pooled = report["pooled"]
    totals: list[Named] = [
        ("", "macro", report["macro"], None),
        (_marked("", pooled), "pooled", pooled, pooled),
    ]
    return [
        [(_marked(code, one), one["name"], one, one) for code, one in report["modes"].items()],
        [(_marked("", one), one["name"], one, one) for one in report["categories"].values()],
        totals,
    ]


def _marked(code: str, table: TableJson) -> str:
    return f"{code}{_PARADOX_MARK}" if is_kappa_paradox(table) else code


def _cells(figures: CoefficientsJson, columns: Sequence[tuple[str, str]]) -> tuple[Cell, ...]:
    by_name = cast("Mapping[str, CoefficientJson]", figures)
    return tuple(cell(by_name[key]) for key, _ in columns)


def _prevalence(table: TableJson | None) -> str:
    """Each annotator's share of 'present'; of three or more the lowest and the highest."""
    shares = [] if table is None else list(table["prevalence"].values())
    if len(shares) > 2:
        known = [p for p in shares if p is not None]
        return f"{number(min(known))}–{number(max(known))}" if known else NONE
    return "/".join(NONE if p is None else number(p) for p in shares)


def notes(report: Report) -> Iterator[str]:
    """What the figures rest on, what was left out, and how to read them, in sentences."""
    people = report["annotators"]
    many = len(people) > 2
    yield (
        "n: traces in which two or more have a verdict on the mode; of categories and pooled, "
        "traces × modes. present: the share of that verdict, "
        + ("lowest and highest." if many else f"{' / '.join(people) or 'of nobody'}.")
    )
    if many:
        yield from rotating_note(report)
        yield from _fleiss_note(report)
    yield intervals_note(report["bootstrap"], report["traces"]["finished_by_two"])
    people_only = {key: report[key] for key in _OF_PEOPLE}
    yield from withheld_notes(people_only)
    yield _macro_note(report, many)
    yield from _left_out(report)
    marked = [code for code, mode in report["modes"].items() if is_kappa_paradox(mode)]
    marked += [one["name"] for one in report["categories"].values() if is_kappa_paradox(one)]
    if is_kappa_paradox(report["pooled"]):
        marked.append("pooled")
    if marked:
        yield (
            f"{_PARADOX_MARK} {', '.join(marked)}: κ is low although raw agreement is high. Nearly "
            "all verdicts are the same there, so almost all agreement counts as chance: "
            "read AC1, Ppos and Pneg beside it."
        )
    yield from halving_notes(report)


def _fleiss_note(report: Report) -> Iterator[str]:
    """On how many units Fleiss' κ rests, where these are fewer than those of the other figures."""
    tables = [*report["modes"].items(), ("pooled", report["pooled"])]
    if any(one["n_complete"] < one["n"] for _, one in tables):
        counts = ", ".join(f"{name} {one['n_complete']}" for name, one in tables)
        yield f"Fleiss κ rests on what all of them judged only: {counts}."


def rotating_note(report: Report | Mapping[str, Any]) -> Iterator[str]:
    """That pairs share few traces, where they do, and what to read there."""
    shared = report["pooled"].get("few_shared_by_pair")
    if shared is not None:
        told = ", ".join(f"{pair.replace('|', ' and ')} {n}" for pair, n in shared.items())
        yield (
            f"Traces that two of them share: {told}. So few pull κ of a pair, and mean κ, down: "
            "lead with Krippendorff's α."
        )


def interval_method(bootstrap: Mapping[str, Any], traces: int, percentiles: str) -> str:
    """What the intervals of figures on so many traces come from, with ``percentiles`` of many."""
    if traces < MANY:
        return "Student's t and the jackknife over the traces"
    return f"{percentiles} {bootstrap['rounds']} resamples of the traces (seed {bootstrap['seed']})"


def intervals_note(bootstrap: Mapping[str, Any], traces: int) -> str:
    """How the intervals came about."""
    if not bootstrap["rounds"]:
        return "No intervals: there were no rounds of resampling."
    told = f"[ ]: 95 % interval from {interval_method(bootstrap, traces, 'the percentiles of')}; "
    if traces < MANY:
        return f"{told}none where no trace makes a difference."
    return f"{told}none where all resamples are alike, or half of them leave the figure undefined."


def _macro_note(report: Report, many: bool) -> str:
    defined = report["macro"]["modes_defined"]
    total = len(report["modes"])
    fewer = [
        f"{title} {defined[key]}"
        for key, title in (*OBSERVED, *corrected(many, rotates(report)))
        if defined[key] < total
    ]
    counted = f" (of {total} modes: {', '.join(fewer)})" if fewer else ""
    return (
        f"macro: the mean over the modes where it is defined{counted}. "
        "pooled: traces × modes in one table."
    )


_LEFT_OUT: Final = (
    ("unfinished", "begun and not finished", "traces"),
    ("alone", "finished by nobody else", "traces"),
    ("examples", "examples in the judge's prompt", "traces"),
    ("unsure", "unsure, counted as missing", "verdicts"),
    ("open", "left open in finished traces", "verdicts"),
    ("not_in_study", "not in the study (--annotators counts them)", "traces"),
)


def _left_out(report: Report) -> Iterator[str]:
    """What no figure rests on, in one line."""
    counts = cast("Mapping[str, Mapping[str, int]]", report["left_out"])
    parts = []
    for key, what, unit in _LEFT_OUT:
        told = [f"{name} {n}" for name, n in counts[key].items() if n]
        if told:
            parts.append(f"{what}: {', '.join(told)} {unit}")
    only = report["traces"].get("only_seen_by")
    if only is not None:
        yield f"Only traces that {only} has finished or adjudicates count; all others are left out."
    if parts or only is None:
        yield f"Left out: {'; '.join(parts)}." if parts else "Nothing was left out."


def halving_notes(report: Report) -> Iterator[str]:
    """How many more traces, labelled twice, would halve the interval of κ, by mode."""
    wanted: dict[int, list[str]] = {}
    untold: dict[str, list[str]] = {}
    for code, plan in report["halving"].items():
        more = plan["more_traces"]
        if more is not None:
            wanted.setdefault(more, []).append(code)
        else:
            untold.setdefault(str(plan.get("undefined")).replace("_", " "), []).append(code)
    if wanted:
        told = "; ".join(f"about {more}: {', '.join(wanted[more])}" for more in sorted(wanted))
        none = "".join(f"; {why}: {', '.join(codes)}" for why, codes in untold.items())
        yield f"More traces labelled twice that would halve the interval of κ: {told}{none}."
