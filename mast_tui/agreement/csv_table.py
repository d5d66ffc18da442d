"""Every figure of the agreement report as one row: tidy, long, for R, pandas or a spreadsheet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mast_tui.figures.agreement.report import Report

COLUMNS: Final = (
    "scope",
    "mode",
    "name",
    "statistic",
    "value",
    "ci_low",
    "ci_high",
    "undefined",
    "n",
    "annotators",
    "ci_withheld",
)
"""The columns of a row; ``annotators`` are parted by ``|``, as names hold none."""

Values = Mapping[str, Any]
_COUNTS: Final = (
    "true_positives",
    "false_positives",
    "false_negatives",
    "true_negatives",
)


@dataclass(frozen=True, slots=True)
class _About:
    """What the rows of one table are about."""

    scope: str
    mode: str = ""
    name: str = ""
    n: int | None = None
    annotators: str = ""

    def row(self, statistic: str, figure: Values) -> dict[str, str]:
        ends: Sequence[float | None] = figure.get("ci") or (None, None)
        return {
            "scope": self.scope,
            "mode": self.mode,
            "name": self.name,
            "statistic": statistic,
            "value": _text(figure["value"]),
            "ci_low": _text(ends[0]),
            "ci_high": _text(ends[1]),
            "undefined": figure.get("undefined", ""),
            "n": _text(self.n),
            "annotators": self.annotators,
            "ci_withheld": figure.get("ci_withheld", ""),
        }

    def figures(self, table: Values) -> Iterator[dict[str, str]]:
        """A row for each coefficient of a table; what else stands in it is passed over."""
        for statistic, figure in table.items():
            if isinstance(figure, Mapping) and "value" in figure:
                # Fleiss' κ rests on what everybody judged only.
                fewer = table.get("n_complete") if statistic == "fleiss_kappa" else None
                about = self if fewer is None else replace(self, n=fewer)
                yield about.row(statistic, figure)


def tidy_rows(report: Report) -> Iterator[dict[str, str]]:
    """All figures of a report, by the columns of ``COLUMNS``; an empty cell is no value.

    ``scope`` is ``mode``, ``category``, ``macro``, ``pooled``, ``pair`` (of a mode, or pooled),
    ``round``, ``sets``, ``retest``, ``halving``, ``left_out``, ``spans``, ``span_pair``, ``judge``
    and those that begin with ``judge_``. Numbers are written in full. An undefined figure has no
    value and its reason under ``undefined``, an interval that would not hold under
    ``ci_withheld``.
    """
    people = "|".join(report["annotators"])
    yield from _whole_traces(report, people)
    yield from _around(report, people)
    yield from _spans(report["spans"], people)
    yield from _judge(report["judge"])


def _text(value: float | None) -> str:
    return "" if value is None else repr(value)


def _plain(value: float | None) -> Values:
    """A plain number as a figure; there is none only where nothing can be compared."""
    return {"value": value} if value is not None else {"value": None, "undefined": "no_overlap"}


def _whole_traces(report: Values, people: str) -> Iterator[dict[str, str]]:
    for code, mode in report["modes"].items():
        yield from _table(_About("mode", code, mode["name"], mode["n"], people), mode)
    for group in report["categories"].values():
        yield from _table(_About("category", "", group["name"], group["n"], people), group)
    macro = report["macro"]
    for statistic, figure in macro.items():
        if statistic != "modes_defined":
            about = _About("macro", n=macro["modes_defined"][statistic], annotators=people)
            yield about.row(statistic, figure)
    yield from _table(
        _About("pooled", n=report["pooled"]["n"], annotators=people), report["pooled"]
    )


def _table(about: _About, table: Values) -> Iterator[dict[str, str]]:
    yield from about.figures(table)
    for name, share in table["prevalence"].items():
        # Of several people each may have judged another number of these units.
        n = table["prevalence_n"][name]
        own = _About(about.scope, about.mode, about.name, n, name)
        yield own.row("prevalence", _plain(share))
    if about.scope not in ("mode", "pooled"):
        return
    for pair, one in table["pairs"].items():
        yield from _About("pair", about.mode, about.name, one["n"], pair).figures(one)


def _around(report: Values, people: str) -> Iterator[dict[str, str]]:
    for name, one in report["rounds"].items():
        about = _About("round", "", name, one["pooled"]["n"], people)
        yield from about.figures(one["pooled"])
    yield from _About("sets", n=report["sets"]["n"], annotators=people).figures(report["sets"])
    for name, one in report["retests"].items():
        yield from _About("retest", n=one["n"], annotators=name).figures(one)
    for code, plan in report["halving"].items():
        mode = report["modes"][code]
        about = _About("halving", code, mode["name"], mode["n"], people)
        figure = {"value": plan["more_traces"], "undefined": plan.get("undefined", "")}
        yield about.row("more_traces", figure)
    for reason, counts in report["left_out"].items():
        for name, count in counts.items():
            yield _About("left_out", annotators=name).row(reason, _plain(count))
    blocks = _About("blocks", annotators=people)
    yield blocks.row("traces", _plain(report["blocks"]["traces"]))
    yield blocks.row("distinct_blocks", _plain(report["blocks"]["distinct"]))
    shared = sum(len(block["traces"]) for block in report["identical_blocks"])
    yield blocks.row("traces_that_share_a_block", _plain(shared))


def _spans(report: Values | None, people: str) -> Iterator[dict[str, str]]:
    if report is None:
        return
    yield from _span_figures("spans", report["all"], people)
    for pair, one in report["pairs"].items():
        yield from _span_figures("span_pair", one, pair)


def _span_figures(scope: str, found: Values, people: str) -> Iterator[dict[str, str]]:
    for name in ("finding", "finding_and_naming"):
        yield from _f1(_About(scope, "", name, found[name]["places"], people), found[name])
    about = _About(scope, "", "", found["spans"], people)
    yield about.row("krippendorff_alpha_u", found["krippendorff_alpha_u"])
    yield _About(scope, annotators=people).row("no_places", _plain(found["no_places"]))
    for code, mode in found["modes"].items():
        yield from _f1(_About(scope, code, mode["name"], mode["f1"]["places"], people), mode["f1"])
        for statistic, of in (("krippendorff_alpha", "spans"), ("krippendorff_alpha_u", "units")):
            about = _About(scope, code, mode["name"], mode[of], people)
            yield about.row(statistic, mode[statistic])
        about = _About(scope, code, mode["name"], annotators=people)
        yield about.row("no_places", _plain(mode["no_places"]))


def _f1(about: _About, figures: Values) -> Iterator[dict[str, str]]:
    yield about.row("f1_exact", figures["exact"])
    for level, figure in figures["overlap"].items():
        yield about.row(f"f1_overlap_{level}", figure)


def _judge(report: Values | None) -> Iterator[dict[str, str]]:
    if report is None:
        return
    sides = f"{report['judge']}|{report['against']}"
    for code, mode in report["modes"].items():
        yield from _judged(_About("judge", code, mode["name"], mode["n"], sides), mode)
    macro = report["macro"]
    for statistic, figure in macro.items():
        if statistic != "modes_defined":
            about = _About("judge_macro", n=macro["modes_defined"][statistic], annotators=sides)
            yield about.row(statistic, figure)
    pooled = report["pooled"]
    yield from _judged(_About("judge_pooled", n=pooled["n"], annotators=sides), pooled)
    yield from _judge_parts(report, sides)


def _judged(about: _About, table: Values) -> Iterator[dict[str, str]]:
    yield from about.figures(table)
    for statistic in (*_COUNTS, "mcnemar_p", "mcnemar_p_adjusted"):
        if statistic in table:
            yield about.row(statistic, _plain(table[statistic]))
    for side, share in table["prevalence"].items():
        yield about.row(f"prevalence_{side}", _plain(share))


def _judge_parts(report: Values, sides: str) -> Iterator[dict[str, str]]:
    truth, answers, places = (report[k] for k in ("calibration", "answers", "localisation"))
    yield from _About("judge_calibration", n=truth["n"], annotators=sides).figures(truth)
    for right in truth["bins"]:
        bounds = f"{right['low']:.1f} to {right['high']:.1f}"
        about = _About("judge_calibration_bin", "", bounds, right["n"], sides)
        yield about.row("mean_confidence", _plain(right["mean_confidence"]))
        yield about.row("right", right["right"])
    yield from _About("judge_answers", n=answers["n"], annotators=sides).figures(answers)
    for name, n in (("right_place", places["n"]), ("places_found", places["places"])):
        yield _About("judge_places", n=n, annotators=sides).row(name, places[name])
    for code, one in report["prevalence"].items():
        name = report["modes"][code]["name"]
        about = _About("judge_prevalence", code, name, one["n_unlabelled"], sides)
        yield from about.figures(one)
    pull = report["withheld"]
    for key, parts in () if pull is None else pull.items():
        if isinstance(parts, Mapping) and "difference" in parts:
            yield from _About("judge_withheld", "", key, pull["traces"], sides).figures(parts)
    for reason, count in report["left_out"].items():
        yield _About("judge_left_out", annotators=sides).row(reason, _plain(count))
