"""All figures of a report, with their titles and notes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from mast_tui.signatures import figure_counts as counts
from mast_tui.signatures import figure_grids as grids
from mast_tui.signatures import figure_places as places
from mast_tui.signatures.figure_model import Figure, file_names, group_words, source_words
from mast_tui.signatures.figure_rates import (
    FAILED,
    SUCCEEDED,
    Row,
    Side,
    bars,
    differences,
)

if TYPE_CHECKING:
    from mast_tui.figures.signatures.groups import GroupJson
    from mast_tui.figures.signatures.report import Report
    from mast_tui.reports.render.svg import Drawing

MOST_CHAINS: Final = 10

_STUDY_MARK: Final = "study"


def report_figures(report: Report) -> list[Figure]:
    """The figures of every group, in the order of the page, then of the groups compared.

    What has no data has no figure.
    """
    parts = file_names(report["groups"])
    found: list[Figure] = []
    for name, group in report["groups"].items():
        found += _OfGroup(report, name, parts[name], group).figures()
    if report["comparison"] is not None:
        found += _compared(report, parts)
    return found


class _OfGroup:
    """The figures of one group."""

    def __init__(self, report: Report, name: str, part: str, group: GroupJson) -> None:
        self.report, self.name, self.part, self.group = report, name, part, group
        self.names = [(code, mode["name"]) for code, mode in group["modes"].items()]
        self.sides = f"{group['failed']} failed and {group['succeeded']} successful traces"

    def figure(self, kind: str, title: str, note: str, drawing: Drawing) -> Figure:
        """A figure with the words that all of them end in."""
        whole = f"{note} {source_words(self.report)}"
        return Figure(
            name=f"{kind}-{self.part}",
            kind=kind,
            group=self.name,
            heading=title,
            title=f"{title}: {group_words(self.report, self.name)}",
            note=whole,
            drawing=drawing,
        )

    def figures(self) -> list[Figure]:
        """Those for which there are data."""
        group = self.group
        found = []
        if group["failed"] and group["modes_per_failed_trace"]["complete"]:
            found += [self.distribution(), self.shapes()]
        if any(one["failed"]["n"] or one["succeeded"]["n"] for one in group["modes"].values()):
            found.append(self.prevalence())
        if any(one["difference_pp"] is not None for one in group["modes"].values()):
            found.append(self.difference())
        sides = [
            one[side] for one in group["categories"].values() for side in ("failed", "succeeded")
        ]
        if any(one["count"] for one in sides):
            found.append(self.categories())
        found += self.of_places()
        if group["together"]["failed"]:
            found.append(self.together())
        return found

    def distribution(self) -> Figure:
        """Modes per failed trace."""
        found = self.group["modes_per_failed_trace"]
        note = (
            f"Bars: failed traces by how many modes they show; n = {found['complete']} of "
            f"{found['n']} failed traces, those judged on all of {found['modes']} modes. Dot and "
            "line: mean number of modes over all failed traces, with its 95 % interval "
            f"({self.report['bootstrap']['rounds']} resamples of traces)."
        )
        return self.figure(
            "distribution", "Modes per failed trace", note, counts.distribution(found)
        )

    def shapes(self) -> Figure:
        """Isolated and cascading failures."""
        rules = self.report["rules"]
        words = {
            "none": "no mode",
            "isolated": f"isolated ({_modes(rules['isolated'])})",
            "between": "between",
            "cascading": f"cascading ({rules['cascading']} modes or more)",
            "open": "open",
        }
        parts = [(words[name], count) for name, count in self.group["shapes"].items()]
        note = (
            f"Parts of the bar: shares of n = {self.group['failed']} failed traces, counts in "
            "brackets. Open: modes not judged could change the word."
        )
        drawing = counts.shares([("failed traces", parts)])
        return self.figure("shapes", "Isolated and cascading failures", note, drawing)

    def rows(self) -> list[Row]:
        """A row of shares for each mode."""
        return [
            Row(
                code,
                mode["name"],
                mode["failed"],
                mode["succeeded"],
                mode,
                mode["severity"],
                mode["stated"] or "–",
            )
            for code, mode in self.group["modes"].items()
        ]

    def prevalence(self) -> Figure:
        """Failed against successful traces."""
        note = (
            "Bars: share of traces that show the mode, of those judged on it; lines: Wilson 95 % "
            f"intervals; right: share and counts, and the class that follows. n = {self.sides}."
        )
        drawing = bars(self.rows(), (FAILED, SUCCEEDED))
        return self.figure("prevalence", "Failed against successful traces", note, drawing)

    def difference(self) -> Figure:
        """Differences and classes."""
        rules, stated = self.report["rules"], self.report["stated"]
        note = (
            "Dots: share in failed less share in successful traces, in points; lines: Newcombe "
            f"95 % intervals; n = {self.sides}. Fatal: more often in failed traces, Fisher's exact "
            f"test, p < {rules['alpha']:g} after Benjamini-Hochberg. Benign: in {rules['least']} "
            "successful traces or more, the interval ending at most at "
            f"{rules['margin_pp']:g} points. Unclear: anything else."
        )
        if stated is not None:
            note += f" {_STUDY_MARK.capitalize()}: the word of the {stated['source']}, not ours."
        drawing = differences(self.rows(), ("class", "" if stated is None else _STUDY_MARK))
        return self.figure("difference", "Difference and class of each mode", note, drawing)

    def categories(self) -> Figure:
        """Shares of categories."""
        found = self.group["categories"].values()
        failed = sum(one["failed"]["count"] for one in found)
        succeeded = sum(one["succeeded"]["count"] for one in found)
        note = (
            "Parts of the bars: share of each category among what shows, a mode in a trace "
            f"counting once; n = {failed} in {self.group['failed']} failed and {succeeded} in "
            f"{self.group['succeeded']} successful traces."
        )
        drawing = counts.categories(self.group["categories"])
        return self.figure("categories", "Categories of failure", note, drawing)

    def of_places(self) -> Iterator[Figure]:
        """Onset, order and chains, of failed traces where there are any, else of all."""
        both = self.group["places"]
        if both is None:
            return
        found, which = both["failed"], "failed traces"
        if not found["traces"]:
            found, which = both["all"], "traces"
        if found["onset"]:
            note = (
                f"Bars: {which} by the tenth of the run in which they first fail; strips: the same "
                "for each mode's first span, the darker the more traces. Dots: medians; lines: "
                f"quartiles. n = {found['first_failure']['n']} of {found['of']} {which} with a "
                "failure, those whose labels name spans."
            )
            drawing = places.onset(found, self.names)
            yield self.figure("onset", "Where in the run failures set on", note, drawing)
        if found["order"]:
            note = (
                "Cells: in how many of the traces with both modes the mode of the row sets on "
                f"before that of the column; the darker, the larger the share. n = "
                f"{found['traces']} {which} whose labels name spans."
            )
            drawing = grids.order(found["order"], self.names)
            yield self.figure("order", "Which mode sets on first", note, drawing)
        if found["chains"]:
            chains = [(one["steps"], one["count"]) for one in found["chains"]]
            drawing, many = counts.chain_rows(chains, MOST_CHAINS)
            note = (
                f"Rows: modes in the order of their onset, those of one span joined by +; bars: "
                f"number of traces. n = {found['traces']} {which} whose labels name spans; the "
                f"{many} most frequent chains."
            )
            yield self.figure("chains", "Chains of failure", note, drawing)

    def together(self) -> Figure:
        """Co-occurrence in failed traces."""
        note = (
            "Cells: number of failed traces that show both modes; the darker, the larger their "
            f"share of the traces with either. n = {self.group['failed']} failed traces."
        )
        drawing = grids.together(self.group["together"]["failed"], self.names)
        return self.figure("together", "Modes that show together", note, drawing)


def _modes(most: int) -> str:
    return "1 mode" if most == 1 else f"1 to {most} modes"


def _compared(report: Report, parts: dict[str, str]) -> list[Figure]:
    """The shares of two groups, and their differences."""
    found = report["comparison"]
    assert found is not None
    if not any(one["first"]["n"] or one["second"]["n"] for one in found["modes"].values()):
        return []
    first, second = found["groups"]
    rows = [
        Row(code, mode["name"], mode["first"], mode["second"], mode)
        for code, mode in found["modes"].items()
    ]
    sides = (Side(first, "v-first"), Side(second, "v-second"))
    groups, pair = report["groups"], f"{parts[first]}-{parts[second]}"
    traces = (
        f"n = {groups[first]['failed']} failed traces of {first} and "
        f"{groups[second]['failed']} of {second}. {source_words(report)}"
    )
    shares = (
        "Bars: share of failed traces that show the mode, of those judged on it; lines: Wilson "
        f"95 % intervals. {traces}"
    )
    points = (
        f"Dots: share in the failed traces of {first} less that of {second}, in points; lines: "
        f"Newcombe 95 % intervals. {traces}"
    )
    title = f"Failed traces of {first} and {second}"
    less = f"Failed traces of {first} less {second}"
    return [
        Figure(f"compared-{pair}", "compared", "", title, title, shares, bars(rows, sides)),
        Figure(f"less-{pair}", "compared", "", less, less, points, differences(rows, ("", ""))),
    ]
