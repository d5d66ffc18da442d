"""The charts of a report, drawn from its figures; ``render/svg.py`` writes them.

The caption of a chart has the number of traces, the annotators, the taxonomy and an explanation.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import islice
from math import ceil
from typing import Final, NamedTuple

from mast_tui.figures.record import OUTCOMES, PAIR, Figure, FigureTable
from mast_tui.figures.signatures.groups import SHAPES
from mast_tui.figures.signatures.model import ALL, OVERALL
from mast_tui.figures.signatures.modes import class_of_mode
from mast_tui.figures.signatures.onset import BINS, Chain, chain_of
from mast_tui.figures.signatures.report import SignatureReport, compares_outcomes, labels_source
from mast_tui.reports.model import Chart
from mast_tui.reports.render.svg import (
    WIDTH,
    Drawing,
    clipped_text,
    on_shade,
    text_width,
    wrapped_lines,
)
from mast_tui.reports.sentences import percent

MOST_CHAINS: Final = 10

_FOLDED: Final = frozenset(
    {"occurrence", "distribution", "difference", "shapes", "order", "chains"}
)
"""The charts that a page shows folded, because its tables have the same numbers."""

_TRACES_TEXTS: Final = {"failed": "failed traces", "all": "traces"}
"""The words for the traces in a chart."""

_NAME_WIDTH: Final = 196
"""The width of the names of modes in a drawing."""

_PLOT_LEFT: Final = _NAME_WIDTH + 12
_LONGEST_NAME: Final = 48
_SHADES: Final = (0.12, 0.34, 0.58, 0.82, 1.0)
_SMALL: Final = "v-s"
_MUTED: Final = "v-m"
_SMALL_MUTED: Final = f"{_SMALL} {_MUTED}"
_BOLD: Final = "v-b"
"""The CSS classes of texts (``render/svg.py``)."""

_DARK_BARS: Final = ("v-failed", "v-first")
"""The classes of bars that are too dark for lines in the colour of ink."""

Names = Sequence[tuple[str, str]]
"""The codes and names of modes, in order."""


def group_charts(signatures: SignatureReport, name: str) -> dict[str, Chart]:
    """Draw the charts of one group of traces in a report on failure signatures.

    Args:
        signatures: The figures of the report.
        name: The name of a group, or ``OVERALL`` for all traces.

    Returns:
        The charts with data by kind, in the order of the page.
    """
    return {chart.id.partition("-")[0]: chart for chart in _GroupCharts(signatures, name).charts()}


def source_words(signatures: SignatureReport) -> str:
    """Return sentences on the labels and the taxonomy, and on bounds if the gold is unresolved."""
    inputs = signatures.inputs
    groups_text = " in all groups" if len(inputs.group_names) > 1 else ""
    sentence = f"Labels: {labels_source(inputs)}{groups_text}; taxonomy: {inputs.taxonomy_ref}."
    if inputs.gold is not None and inputs.gold["sources"].get("unresolved"):
        sentence += (
            " If more than 2 % of the verdicts on a mode are unresolved, bounds (all of them "
            "absent, or present) replace its interval."
        )
    return sentence


def group_ids(signatures: SignatureReport) -> dict[str, str]:
    """Return the id of each group, fit for file names; ``OVERALL`` is a group too."""
    ids = file_names(signatures.groups)
    has_group_all = signatures.inputs.by != ALL and "all" in ids.values()
    return {OVERALL: "all-traces" if has_group_all else "all", **ids}


def file_names(names: Iterable[str]) -> dict[str, str]:
    """Return for each name a unique lower-case text for use in file names.

    The text ends in digits of the name's hash if it would be empty, too long or not unique.
    """
    text_by_name: dict[str, str] = {}
    for name in names:
        ascii_only = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
        text_by_name[name] = re.sub(r"[^a-z0-9._]+", "-", ascii_only.lower()).strip("-._")
    texts = list(text_by_name.values())
    for name, text in text_by_name.items():
        if not text or len(text) > _LONGEST_NAME or texts.count(text) > 1:
            hash_digits = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
            text_by_name[name] = f"{text[:_LONGEST_NAME]}-{hash_digits}".lstrip("-")
    return text_by_name


@dataclass(frozen=True)
class GroupFigures:
    """The figures of one group of traces, for its charts and tables.

    Attributes:
        signatures: The figures of the report.
        name: The name of the group, or ``OVERALL`` for all traces.
    """

    signatures: SignatureReport
    name: str

    @property
    def title(self) -> str:
        """The title of the group."""
        # The single group of ``ALL`` has all traces.
        has_all_traces = self.name == OVERALL or self.signatures.inputs.by == ALL
        return "All traces" if has_all_traces else self.name

    @cached_property
    def group(self) -> FigureTable:
        """The figures of the group as a whole."""
        return self.signatures.group(self.name)

    @cached_property
    def figures_by_code(self) -> dict[str, FigureTable]:
        """The figures of each mode by its code."""
        return self.signatures.figures_by_key("mode", self.name)

    @cached_property
    def trace_counts(self) -> dict[str, int]:
        """The number of ``failed``, ``succeeded`` and ``all`` traces."""
        return {
            "all": self.group.count("traces"),
            **{side: self.group.count("traces", side) for side in OUTCOMES},
        }

    @property
    def compares(self) -> bool:
        """True if enough outcomes are known to compare failed with successful traces."""
        return compares_outcomes(self.group)


@dataclass(frozen=True)
class _GroupCharts(GroupFigures):
    """The charts of one group."""

    @property
    def names(self) -> Names:
        """The codes and names of the modes."""
        return [(mode.code, mode.name) for mode in self.signatures.inputs.modes]

    @property
    def failed(self) -> int:
        """The number of failed traces."""
        return self.trace_counts["failed"]

    @property
    def side_counts(self) -> str:
        """The numbers of failed and of successful traces, in words."""
        return f"{self.failed} failed and {self.trace_counts['succeeded']} successful"

    def chart(self, kind: str, title: str, note: str, drawing: Drawing) -> Chart:
        """Make a chart from its drawing.

        Args:
            kind: The kind, such as ``occurrence``.
            title: The title, to which the title of the group is added.
            note: The caption, to which the source of the labels is added.
            drawing: The drawing.
        """
        return Chart(
            f"{kind}-{group_ids(self.signatures)[self.name]}",
            f"{title}: {self.title}",
            f"{note} {source_words(self.signatures)}",
            drawing.width,
            drawing.height,
            tuple(drawing.parts),
            folded=kind in _FOLDED,
        )

    def charts(self) -> Iterator[Chart]:
        """Yield the charts for which there are data, in the order of the page."""
        if any(mode.find("rate", "all").n for mode in self.figures_by_code.values()):
            yield self.occurrence()
        if self.compares:
            yield from self.of_outcomes()
        yield from self.of_places()
        side = "failed" if self.compares and self.failed else "all"
        pairs = self.figures_of_side("together", side)
        if pairs:
            yield self.together(pairs, side)

    def figures_of_side(self, scope: str, side: str) -> dict[str, FigureTable]:
        """Return figures of ``failed`` or ``all`` traces, by mode, pair or chain.

        Args:
            scope: The scope without its end, such as ``together``.
            side: The traces: ``failed`` or ``all``.
        """
        return self.signatures.figures_by_key(f"{scope}_{side}", self.name)

    def of_outcomes(self) -> Iterator[Chart]:
        """Yield the charts of failed traces, and of failed against successful traces."""
        if self.failed and self.group.count("n_complete"):
            yield self.distribution()
            yield self.shapes()
        rates = [
            mode.find("rate", side) for mode in self.figures_by_code.values() for side in OUTCOMES
        ]
        if any(rate.n for rate in rates):
            yield self.prevalence()
        if any(mode.value("difference") is not None for mode in self.figures_by_code.values()):
            yield self.difference()
        category_figures = self.signatures.figures_by_key("category", self.name).values()
        if any(figures.count("shown", side) for figures in category_figures for side in OUTCOMES):
            yield self.categories()

    def occurrence(self) -> Chart:
        """Return the chart of the share of labelled traces that have each mode."""
        rows = [
            _Row(code, name, self.figures_by_code[code].find("rate", "all"))
            for code, name in self.names
        ]
        return self.chart(
            "occurrence",
            "Share of traces with each mode",
            "Bars: share of traces with the mode, among all labelled traces with a verdict on it. "
            "Lines: 95 % Wilson intervals. Right: share and counts. "
            f"n = {self.trace_counts['all']} traces.",
            bars(rows, [("all labelled traces", "v-first")]),
        )

    def distribution(self) -> Chart:
        """Return the chart of the number of modes of failed traces."""
        return self.chart(
            "distribution",
            "Modes per failed trace",
            "Bars: number of failed traces by number of modes. "
            f"n = {self.group.count('n_complete')} failed traces with verdicts on all "
            f"{self.group.count('modes_judged')} modes, of {self.failed} failed traces. Dot "
            "and line: mean number of modes over all failed traces with its 95 % interval "
            f"(percentile bootstrap over traces, {self.signatures.resampling.count:,} resamples).",
            distribution_bars(self.group),
        )

    def shapes(self) -> Chart:
        """Return the chart of the shares of isolated and cascading failures."""
        rules = self.signatures.rules
        isolated_counts = "1 mode" if rules.isolated == 1 else f"1 to {rules.isolated} modes"
        labels = {
            "none": "no mode",
            "isolated": f"isolated ({isolated_counts})",
            "between": "between",
            "cascading": f"cascading ({rules.cascading} modes or more)",
            "open": "open",
        }
        parts = [(labels[shape], self.group.count("shape", shape)) for shape in SHAPES]
        return self.chart(
            "shapes",
            "Isolated and cascading failures",
            f"Segments: shares of n = {self.failed} failed traces, counts in parentheses. Open: "
            "open modes could change the classification.",
            share_bars([("failed traces", parts)]),
        )

    def rows(self) -> list[_Row]:
        """Return a row for each mode: its shares by outcome, their difference, and its classes."""
        return [
            _Row(
                mode.code,
                mode.name,
                first=figures.find("rate", "failed"),
                second=figures.find("rate", "succeeded"),
                difference=figures["difference"],
                severity_class=class_of_mode(figures, self.signatures.rules).severity,
                published=self.signatures.published_class(mode) or "–",
            )
            for mode, figures in zip(
                self.signatures.inputs.modes, self.figures_by_code.values(), strict=True
            )
        ]

    def prevalence(self) -> Chart:
        """Return the chart of the shares of failed and successful traces with each mode."""
        return self.chart(
            "prevalence",
            "Share of failed and successful traces with each mode",
            "Bars: share of traces with the mode, among those with a verdict on it. Lines: 95 % "
            "Wilson intervals. Right: share, counts and resulting class. "
            f"n = {self.side_counts} traces.",
            bars(
                self.rows(), (("failed traces", "v-failed"), ("successful traces", "v-succeeded"))
            ),
        )

    def difference(self) -> Chart:
        """Return the chart of the difference of each mode's two shares, with the mode's classes."""
        rules = self.signatures.rules
        published_study = self.signatures.published
        note = (
            "Dots: share in failed minus share in successful traces, in points. Lines: 95 % "
            f"Newcombe intervals. n = {self.side_counts} traces. Fatal: more frequent in failed "
            f"traces (Fisher's exact test, p < {rules.alpha:g} after Benjamini-Hochberg "
            "correction). "
            f"Benign: in at least {rules.least} successful traces, with an interval that ends at "
            f"or below {100 * rules.margin:g} points. Unclear: all others."
        )
        if published_study is not None:
            note += f" Published: class in {published_study.source}, independent of these data."
        return self.chart(
            "difference",
            "Difference and class of each mode",
            note,
            difference_rows(self.rows(), ("class", "" if published_study is None else "published")),
        )

    def categories(self) -> Chart:
        """Return the chart of the categories' shares of the modes found."""
        figures_by_category = self.signatures.figures_by_key("category", self.name)
        failed, succeeded = (
            [
                (title, figures_by_category[id].count("shown", side))
                for id, title, _ in self.signatures.inputs.categories
            ]
            for side in OUTCOMES
        )
        note = (
            "Segments: share of each category in the modes found, each mode counted once per "
            f"trace. n = {sum(count for _, count in failed)} in {self.failed} failed and "
            f"{sum(count for _, count in succeeded)} in {self.trace_counts['succeeded']} "
            "successful traces."
        )
        rows = [("failed traces", failed), ("successful traces", succeeded)]
        return self.chart(
            "categories", "Categories of failure", note, share_bars(rows, "no mode in these traces")
        )

    def of_places(self) -> Iterator[Chart]:
        """Yield the charts on the positions of failures in runs: onset, order and chains.

        They show failed traces if possible, otherwise all traces.
        """
        failed_places = self.signatures.places(self.name, "failed")
        if failed_places is None:
            return
        has_failed = bool(failed_places.count("traces")) and self.compares
        side = "failed" if has_failed else "all"
        places = self.signatures.places(self.name, side)
        assert places is not None  # all traces include the failed ones
        traces_text = f"{places.count('traces')} {_TRACES_TEXTS[side]} with labels on spans"
        onsets = self.figures_of_side("onset", side)
        if onsets:
            yield self.onset(places, onsets, _TRACES_TEXTS[side])
        pairs = self.figures_of_side("order", side)
        if pairs:
            yield self.order(pairs, traces_text)
        chains = self.figures_of_side("chains", side)
        if chains:
            yield self.chains(chains, traces_text)

    def onset(
        self, places: FigureTable, onsets: Mapping[str, FigureTable], traces_text: str
    ) -> Chart:
        """Return the chart of the positions in runs at which failures first occur.

        Args:
            places: The figures of all places.
            onsets: The figures on the onset of each mode, by its code.
            traces_text: The words for the traces.
        """
        return self.chart(
            "onset",
            "Where in the run failures first occur",
            f"Bars: number of {traces_text} by the tenth of the run in which they first fail. "
            "Strips: the same for the first span of each mode; stronger colour: more traces. "
            f"Dots: medians. Lines: quartiles. n = {places['position'].n} {traces_text} with "
            f"labels on spans, of {places.count('showing')} with a failure.",
            onset_strips(places, onsets, self.names),
        )

    def order(self, pairs: Mapping[str, FigureTable], traces_text: str) -> Chart:
        """Return the chart of pairs of modes by the mode that occurs first.

        Args:
            pairs: The figures of each pair of modes.
            traces_text: The number and the kind of the traces.
        """
        return self.chart(
            "order",
            "Which of two modes occurs first",
            "Cells: number of traces with both modes in which the mode of the row first occurs "
            "before that of the column; stronger colour: larger share. n = "
            f"{traces_text}.",
            order_matrix(pairs, self.names),
        )

    def chains(self, chains: Mapping[str, FigureTable], traces_text: str) -> Chart:
        """Return the chart of the most frequent chains of failure.

        Args:
            chains: The figures of each chain.
            traces_text: The number and the kind of the traces.
        """
        most_frequent = [
            (chain_of(chain), figures.count("chains"))
            for chain, figures in islice(chains.items(), MOST_CHAINS)
        ]
        return self.chart(
            "chains",
            "Chains of failure",
            "Rows: modes in the order in which they first occur, joined by + if at the same "
            f"span. Bars: number of traces. n = {traces_text}; the {len(most_frequent)} most "
            "frequent chains.",
            chain_rows(most_frequent),
        )

    def together(self, pairs: Mapping[str, FigureTable], side: str) -> Chart:
        """Return the chart of the modes that occur in the same trace.

        Args:
            pairs: The figures of each pair of modes.
            side: The traces: ``failed`` or ``all``.
        """
        traces_text = _TRACES_TEXTS[side]
        trace_count = self.trace_counts[side]
        return self.chart(
            "together",
            "Modes that occur together",
            f"Cells: number of {traces_text} with both modes; stronger colour: larger share "
            f"of the traces with either mode. n = {trace_count} {traces_text}.",
            together_matrix(pairs, self.names),
        )


# Parts of several drawings: scales, names, legends.


def _signed_points(value: float) -> str:
    """Return a rounded difference in points as text, with its sign."""
    rounded = round(value)
    return f"{rounded:+d}".replace("-", "−") if rounded else "0"


def _tick_values(largest: int) -> list[int]:
    """Return at most six round numbers from 0 to at least ``largest``."""
    steps = [multiple * 10**exponent for exponent in range(12) for multiple in (1, 2, 5)]
    step = next((step for step in steps if largest <= 5 * step), steps[-1])
    return list(range(0, max(largest, 1) + step, step))


def _write_row_names(
    drawing: Drawing, names: Names, top: float, least_height: float
) -> Iterator[tuple[float, float]]:
    """Write the names of modes below each other; yield the middle and the bottom of each row."""
    padding = 8 if least_height > 30 else 6
    for code, name in names:
        lines = wrapped_lines(f"{code} {name}", _NAME_WIDTH)
        height = max(least_height, 14 * len(lines) + padding)
        middle = top + height / 2
        drawing.lines(0, middle + 4 - 7 * (len(lines) - 1), lines)
        top += height
        yield middle, top


def _draw_legend(drawing: Drawing, y: float, entries: Sequence[tuple[str, str]]) -> None:
    """Draw a line of coloured boxes with labels; ``entries`` are (label, CSS class of the box).

    ``y`` is the baseline of the labels.
    """
    x: float = _PLOT_LEFT
    text_room = (drawing.width - x) / len(entries) - 32  # without the box and a gap
    for label, css_class in entries:
        label = clipped_text(label, text_room)
        drawing.rect(x, y - 9, 14, 10, css_class)
        drawing.text(x + 20, y, label)
        x += 20 + text_width(label) + 20


# The shares of each mode on two sides, and their difference.

_BAR: Final = 10


@dataclass(frozen=True, slots=True)
class _Row:
    """A mode in a chart.

    Attributes:
        code: The code of the mode.
        name: The name of the mode.
        first: Its share on the first side, such as the failed traces.
        second: Its share on the second side; None for a single side.
        difference: The difference of both shares.
        severity_class: Its class, such as ``fatal``.
        published: Its published class.
    """

    code: str
    name: str
    first: Figure
    second: Figure | None = None
    difference: Figure | None = None
    severity_class: str = ""
    published: str = ""


_Side = tuple[str, str]
"""The label of a side (a group of traces), and the CSS class of its bars."""


def bars(rows: Sequence[_Row], sides: Sequence[_Side]) -> Drawing:
    """Draw the shares of each mode as bars, with Wilson's intervals, percentages and counts.

    Args:
        rows: The modes, each with a share for each side.
        sides: One or two sides, such as failed and successful traces.
    """
    drawing = Drawing(WIDTH)
    plot_right = 528
    top = 26.0
    _draw_legend(drawing, 12, sides)
    least_height = 31 if len(sides) > 1 else 24
    row_positions = list(
        _write_row_names(drawing, [(row.code, row.name) for row in rows], top, least_height)
    )
    bottom = row_positions[-1][1] if row_positions else top
    for quarter in range(5):
        x = _PLOT_LEFT + (plot_right - _PLOT_LEFT) * quarter / 4
        drawing.line(x, top, x, bottom, "v-grid" if quarter else "v-axis")
        drawing.text(x, bottom + 15, f"{25 * quarter} %", _SMALL_MUTED, "middle")
    for row, (middle, _) in zip(rows, row_positions, strict=True):
        rates = [row.first] if row.second is None else [row.first, row.second]
        bar_tops = [middle - _BAR / 2] if row.second is None else [middle - _BAR - 1, middle + 1.5]
        for rate, side, y in zip(rates, sides, bar_tops, strict=True):
            _draw_bar(drawing, y, rate, side, plot_right, f"{row.code} {row.name}")
        drawing.text(WIDTH, middle + 4, row.severity_class, _text_class(row.severity_class), "end")
    drawing.height = bottom + 22
    return drawing


def _draw_bar(
    drawing: Drawing, y: float, rate: Figure, side: _Side, plot_right: float, name: str
) -> None:
    """Draw one share as a bar with its interval and counts, or the text ``not judged``.

    ``y`` is the top of the bar, ``plot_right`` the x of 100 %, and ``name`` the mode.
    """
    baseline = y + _BAR - 1.2
    side_name, bar_class = side
    interval = rate.interval or rate.bounds
    if rate.value is None or interval is None:
        drawing.text(_PLOT_LEFT + 6, baseline, "not judged", _SMALL_MUTED)
        return
    shares = (interval[0], rate.value, interval[1])
    low, bar_end, high = (_PLOT_LEFT + (plot_right - _PLOT_LEFT) * share for share in shares)
    unresolved_text = f", {rate.unresolved} unresolved" if rate.interval is None else ""
    if rate.count:
        tooltip = (
            f"{name}, {side_name}: {rate.count} of {rate.n}, {percent(rate.value)} "
            f"({percent(interval[0])} to {percent(interval[1])}"
            f"{unresolved_text})"
        )
        drawing.rect(_PLOT_LEFT, y, bar_end - _PLOT_LEFT, _BAR, bar_class, tip=tooltip)
    middle = y + _BAR / 2
    if bar_class not in _DARK_BARS or bar_end - low < 1:
        drawing.interval(low, high, middle, set_off=False)
    else:
        # An interval is light inside a dark bar, and dark outside.
        for start, end, cap_x, css_class in (
            (low, bar_end, low, "v-in"),
            (bar_end, high, high, "v-end"),
        ):
            if end > start:
                drawing.line(start, middle, end, middle, css_class)
                drawing.line(cap_x, middle - 3, cap_x, middle + 3, css_class)
    percent_right = 568
    counts_right = 622
    drawing.text(percent_right, baseline, percent(rate.value), _SMALL, "end")
    drawing.text(counts_right, baseline, f"{rate.count}/{rate.n}", _SMALL_MUTED, "end")


def _text_class(severity_class: str) -> str:
    """Return the CSS class of the text of a severity class."""
    return {"fatal": _BOLD, "unclear": _MUTED}.get(severity_class, "")


class _PointsScale(NamedTuple):
    """The axis of differences in points.

    Attributes:
        low: The points at its left end.
        high: The points at its right end.
        right: The x of its right end.
    """

    low: int
    high: int
    right: int

    @classmethod
    def fitting(cls, rows: Iterable[_Row], right: int) -> _PointsScale:
        """Return an axis with room for all intervals.

        It begins at -25 points. If an interval begins below, 0 is in the middle of the axis.

        Args:
            rows: The modes.
            right: The x of its right end.
        """
        ends = [
            100 * end
            for row in rows
            if row.difference is not None
            for end in row.difference.interval or row.difference.bounds or ()
        ]
        high = max(25, 25 * ceil(max((abs(end) for end in ends), default=25) / 25))
        return cls(-high if any(end < -25 for end in ends) else -25, high, right)

    def x(self, points: float) -> float:
        """Return the x of a difference."""
        return _PLOT_LEFT + (self.right - _PLOT_LEFT) * (points - self.low) / (self.high - self.low)


def difference_rows(rows: Sequence[_Row], headings: tuple[str, str]) -> Drawing:
    """Draw a row for each mode: the difference of its shares with an interval, and its classes.

    Args:
        rows: The modes.
        headings: The headings of the columns ``severity_class`` and ``published``; empty for none.
    """
    drawing = Drawing(WIDTH)
    scale = _PointsScale.fitting(rows, right=496 if any(headings) else 600)
    top = 28.0
    row_positions = list(_write_row_names(drawing, [(row.code, row.name) for row in rows], top, 24))
    bottom = row_positions[-1][1] if row_positions else top
    for points in range(scale.low, scale.high + 1, 25):
        x = scale.x(points)
        drawing.line(x, top, x, bottom, "v-grid" if points else "v-axis")
        drawing.text(x, bottom + 15, _signed_points(points), _SMALL_MUTED, "middle")
    class_right = 612
    drawing.text(class_right, 14, headings[0], _SMALL_MUTED, "end")
    drawing.text(WIDTH, 14, headings[1], _SMALL_MUTED, "end")
    drawing.text((_PLOT_LEFT + scale.right) / 2, 14, "difference in points", _SMALL_MUTED, "middle")
    for row, (middle, _) in zip(rows, row_positions, strict=True):
        if row.difference is not None:
            _draw_difference(drawing, scale, row.difference, middle)
            drawing.text(
                class_right, middle + 4, row.severity_class, _text_class(row.severity_class), "end"
            )
            drawing.text(WIDTH, middle + 4, row.published, _MUTED, "end")
    drawing.height = bottom + 22
    return drawing


def _draw_difference(
    drawing: Drawing, scale: _PointsScale, difference: Figure, middle: float
) -> None:
    """Draw a difference as a dot with its interval or bounds; ``middle`` is the y of the row."""
    if difference.value is None:
        drawing.text(scale.x(0) + 6, middle + 4, "difference undefined", f"{_SMALL_MUTED} v-halo")
        return
    if difference.interval is not None:
        low_x, high_x = (scale.x(100 * end) for end in difference.interval)
        drawing.interval(low_x, high_x, middle)
    elif difference.bounds is not None:
        low_x, high_x = (scale.x(100 * bound) for bound in difference.bounds)
        drawing.line(low_x, middle, high_x, middle, "v-end")
    value = 100 * difference.value
    drawing.dot(scale.x(value), middle, 4)
    drawing.text(scale.right + 40, middle + 4, _signed_points(value), _SMALL, "end")


# Counts: modes per failed trace, and divided bars.

_SHARES_LEFT: Final = 120.0
"""The left end of divided bars."""


def distribution_bars(group: FigureTable) -> Drawing:
    """Draw the number of failed traces by their number of modes, with the mean above."""
    drawing = Drawing(WIDTH)
    left_edge = 40.0
    plot_height = 110.0
    mean = group["modes_per_failed_trace"]
    counts = {
        int(modes): int(figure.value or 0)
        for modes, figure in group.by_name("traces_with_modes").items()
    }
    highest_mean = (mean.value or 0) if mean.high is None else mean.high
    most_modes = max([*counts, int(highest_mean) + 1])
    ticks = _tick_values(max(counts.values(), default=0))
    bottom = 44.0 + plot_height
    slot_width = (WIDTH - left_edge) / (most_modes + 1)
    bar_width = min(44.0, 0.7 * slot_width)

    def x_of(modes: float) -> float:
        return left_edge + slot_width * (modes + 0.5)

    for tick in ticks:
        y = bottom - plot_height * tick / ticks[-1]
        drawing.line(left_edge, y, WIDTH, y, "v-grid" if tick else "v-axis")
        drawing.text(left_edge - 8, y + 4, str(tick), _SMALL_MUTED, "end")
    for modes in range(most_modes + 1):
        count = counts.get(modes, 0)
        middle = x_of(modes)
        if count:
            height = plot_height * count / ticks[-1]
            top = bottom - height
            tooltip = f"{count} failed traces show {modes} modes"
            drawing.rect(middle - bar_width / 2, top, bar_width, height, "v-failed", tip=tooltip)
            drawing.text(middle, top - 5, str(count), f"{_SMALL} v-halo", "middle")
        if most_modes <= 24 or modes % 5 == 0:
            drawing.text(middle, bottom + 16, str(modes), _SMALL, "middle")
    drawing.text(
        (left_edge + WIDTH) / 2,
        bottom + 34,
        "number of modes in a failed trace",
        _SMALL_MUTED,
        "middle",
    )
    drawing.text(0, 12, "traces", _SMALL_MUTED)
    _draw_mean(drawing, mean, x_of, left_edge + 20)
    drawing.height = bottom + 40
    return drawing


def _draw_mean(drawing: Drawing, mean: Figure, x_of: Callable[[float], float], left: float) -> None:
    """Draw the mean number of modes with its interval and label.

    ``x_of`` returns the x of a number of modes; the label begins at ``left`` or further right.
    """
    if mean.value is None:
        return
    label = f"mean {mean.value:.1f}"
    middle = x_of(mean.value)
    if mean.interval is not None:
        low, high = mean.interval
        label += f" ({low:.1f} to {high:.1f})"
        drawing.interval(x_of(low), x_of(high), 24)
        middle = x_of((low + high) / 2)
    drawing.dot(x_of(mean.value), 24, 4)
    # The size is 14 instead of 12, because bold letters are wider than measured.
    half_width = text_width(label, 14) / 2
    middle = min(max(middle, left + half_width), WIDTH - half_width)
    drawing.text(middle, 12, label, _BOLD, "middle")


def share_bars(
    rows: Sequence[tuple[str, Sequence[tuple[str, int]]]], placeholder: str = "nothing to share"
) -> Drawing:
    """Draw bars of equal length, divided into parts, with a legend.

    Args:
        rows: The name of each bar, and the names and counts of its parts, which are the same for
            all bars.
        placeholder: The text in place of a bar without counts.
    """
    drawing = Drawing(WIDTH)
    y = 0.0
    for name, parts in rows:
        lines = wrapped_lines(name, 112)
        drawing.lines(0, y + 19 - 7 * (len(lines) - 1), lines)
        if any(count for _, count in parts):
            _draw_share_bar(drawing, y, name, parts)
        else:
            drawing.text(_SHARES_LEFT, y + 19, placeholder, _SMALL_MUTED)
        y += 40
    parts_by_number = {
        number: part for _, parts in rows for number, (part, count) in enumerate(parts) if count
    }
    _draw_share_legend(drawing, y + 14, parts_by_number)
    return drawing


def _draw_share_bar(
    drawing: Drawing, y: float, name: str, parts: Sequence[tuple[str, int]]
) -> None:
    """Draw a bar divided by the counts of its parts; ``y`` is its top."""
    total = sum(count for _, count in parts)
    x = _SHARES_LEFT
    for number, (part, count) in enumerate(parts):
        width = (WIDTH - _SHARES_LEFT) * count / total
        if count:
            shade = _SHADES[number % len(_SHADES)]
            tooltip = f"{name}: {part} {count} of {total}, {percent(count / total)}"
            drawing.rect(x, y, width, 30, "v-cell v-paper")
            drawing.rect(x, y, width, 30, "v-heat", tip=tooltip, opacity=shade)
            # Draw the longest label that fits.
            for label in (f"{percent(count / total)} ({count})", str(count)):
                if text_width(label, 10.5) + 6 <= width:
                    drawing.text(x + width / 2, y + 19, label, on_shade(shade), "middle")
                    break
        x += width


def _draw_share_legend(drawing: Drawing, y: float, parts_by_number: Mapping[int, str]) -> None:
    """Draw the shades of parts with their names, and set the height of the drawing.

    ``y`` is the baseline of the first line. The number of a part determines its shade.
    """
    x = _SHARES_LEFT
    for number, part in sorted(parts_by_number.items()):
        label = wrapped_lines(part, WIDTH - 150, max_lines=1)[0]
        if x > _SHARES_LEFT and x + 20 + text_width(label) > WIDTH:
            x = _SHARES_LEFT
            y += 20
        drawing.rect(x, y - 9, 14, 10, "v-cell v-paper")
        drawing.rect(x, y - 9, 14, 10, "v-heat", opacity=_SHADES[number % len(_SHADES)])
        drawing.rect(x, y - 9, 14, 10, "v-cell")
        drawing.text(x + 20, y, label)
        x += 20 + text_width(label) + 20
    drawing.height = y + 8


def chain_rows(chains: Sequence[tuple[Chain, int]]) -> Drawing:
    """Draw chains of failure: the modes of a trace in boxes, in the order of their onsets.

    Args:
        chains: The chains, each with the number of traces in which it occurs.
    """
    drawing = Drawing(WIDTH)
    left_edge = 132.0
    gap = 20.0
    y = 0.0
    largest_count = max((count for _, count in chains), default=1)
    for chain, count in chains:
        drawing.text(24, y + 17, str(count), _BOLD, "end")
        drawing.rect(32, y + 5, 84 * count / largest_count, 16, "v-failed", tip=f"{count} traces")
        x = left_edge
        for number, step in enumerate(chain):  # the modes of a step begin at the same span
            label = wrapped_lines(" + ".join(step), WIDTH - left_edge - 24, max_lines=1)[0]
            box_width = text_width(label) + 16
            if number and x + gap + box_width > WIDTH:
                x = left_edge + gap
                y += 30
            if number:
                drawing.text(x + gap / 2, y + 17, "→", _MUTED, "middle")
                x += gap
            drawing.rect(x, y, box_width, 26, "v-cell", radius=5)
            drawing.text(x + box_width / 2, y + 17, label, "", "middle")
            x += box_width
        y += 34
    drawing.height = max(y - 8, 20)
    return drawing


# Where in the run failures first occur.

_RUN_RIGHT: Final = 560
"""The right end of the axis over the length of a run."""


def onset_strips(places: FigureTable, onsets: Mapping[str, FigureTable], names: Names) -> Drawing:
    """Draw the positions in runs at which traces first fail, and below those of each mode.

    Args:
        places: The figures on first failures, of any mode.
        onsets: The figures on the onset of each mode, by its code.
        names: The codes and names of the modes.
    """
    drawing = Drawing(WIDTH)
    top = 22.0
    plot_height = 70.0
    _draw_first_failures(drawing, places, top, plot_height)
    rows = [(code, name) for code, name in names if code in onsets]
    y = top + plot_height + 20
    for (code, name), (middle, end) in zip(
        rows, _write_row_names(drawing, rows, y, 24), strict=True
    ):
        _draw_onset_strip(drawing, middle, onsets[code], f"{code} {name}")
        y = end
    y += 4
    for quarter in range(5):
        x = _PLOT_LEFT + (_RUN_RIGHT - _PLOT_LEFT) * quarter / 4
        drawing.line(x, y, x, y + 4, "v-axis")
        drawing.text(x, y + 17, f"{25 * quarter} %", _SMALL_MUTED, "middle")
    drawing.line(_PLOT_LEFT, y, _RUN_RIGHT, y, "v-axis")
    drawing.text((_PLOT_LEFT + _RUN_RIGHT) / 2, y + 34, "part of the run", _SMALL_MUTED, "middle")
    drawing.height = y + 40
    return drawing


def _tenth_counts(figures: FigureTable) -> list[int]:
    return [figures.count("position_tenth", str(tenth)) for tenth in range(BINS)]


def _draw_first_failures(
    drawing: Drawing, places: FigureTable, top: float, plot_height: float
) -> None:
    """Draw bars: the number of traces by the tenth of the run in which they first fail."""
    bottom = top + plot_height
    counts = _tenth_counts(places)
    position = places["position"]
    ticks = _tick_values(max(counts, default=0))
    tenth_width = (_RUN_RIGHT - _PLOT_LEFT) / BINS
    drawing.lines(0, top + plot_height / 2 - 2, ["first failure", f"of {position.n} traces"], _BOLD)
    for tick in ticks:
        y = bottom - plot_height * tick / ticks[-1]
        drawing.line(_PLOT_LEFT, y, _RUN_RIGHT, y, "v-grid" if tick else "v-axis")
        drawing.text(_RUN_RIGHT + 8, y + 4, str(tick), _SMALL_MUTED)
    for tenth, count in enumerate(counts):
        if count:
            bar_height = plot_height * count / ticks[-1]
            tooltip = f"{count} traces first fail between {10 * tenth} and {10 * tenth + 10} %"
            drawing.rect(
                (_PLOT_LEFT + tenth_width * tenth + 2),
                bottom - bar_height,
                tenth_width - 4,
                bar_height,
                "v-failed",
                tip=tooltip,
            )
    if position.value is not None and position.interval is not None:
        _draw_median(drawing, top - 10, position.value, position.interval)
        drawing.text(WIDTH, top - 6, f"median {percent(position.value)}", _SMALL, "end")


def _draw_onset_strip(drawing: Drawing, y: float, onset: FigureTable, mode: str) -> None:
    """Draw a strip of how often a mode begins in each tenth of the run, with the median."""
    counts = _tenth_counts(onset)
    position = onset["position"]
    tenth_width = (_RUN_RIGHT - _PLOT_LEFT) / BINS
    largest_count = max(counts, default=0)
    drawing.rect(_PLOT_LEFT, y - 8, _RUN_RIGHT - _PLOT_LEFT, 16, "v-cell")
    for tenth, count in enumerate(counts):
        if count:
            tooltip = (
                f"{mode}: {count} of {position.n} between {10 * tenth} and {10 * tenth + 10} %"
            )
            x = _PLOT_LEFT + tenth_width * tenth
            shade = 0.15 + 0.55 * count / largest_count
            drawing.rect(
                x + 0.5, y - 7.5, tenth_width - 1, 15, "v-heat", tip=tooltip, opacity=shade
            )
    if position.value is None or position.interval is None:
        drawing.text(_PLOT_LEFT + 6, y + 4, "number of spans unknown", _SMALL_MUTED)
        return
    _draw_median(drawing, y, position.value, position.interval)
    drawing.text(618, y + 4, percent(position.value), _SMALL, "end")
    drawing.text(WIDTH, y + 4, f"n {position.n}", _SMALL_MUTED, "end")


def _draw_median(drawing: Drawing, y: float, median: float, quartiles: tuple[float, float]) -> None:
    """Draw a median as a dot on a line between the quartiles."""
    low, middle, high = (
        _PLOT_LEFT + (_RUN_RIGHT - _PLOT_LEFT) * share
        for share in (quartiles[0], median, quartiles[1])
    )
    drawing.interval(low, high, y)
    drawing.dot(middle, y, 4)


# Matrices of pairs of modes: occurrence together, and order.

_Cell = tuple[str, float, str]
"""The text of a cell, its shade (0 to 1), and its tooltip."""

_CELL_HEIGHT: Final = 28.0


def together_matrix(pairs: Mapping[str, FigureTable], names: Names) -> Drawing:
    """Draw a matrix of modes with the number of traces with both modes in each cell.

    The shade of a cell is the share of these traces among those with either mode.

    Args:
        pairs: The figures of each pair of modes.
        names: The codes and names of the modes.
    """
    cells: dict[tuple[str, str], _Cell] = {}
    for pair, figures in pairs.items():
        first, second = pair.split(PAIR)
        jaccard = figures["jaccard"]
        both_count = jaccard.count
        alone_count = figures.count("only_first") + figures.count("only_second")
        tooltip = (
            f"{first} and {second}: both in {both_count} of {figures['phi'].n} traces, "
            f"one alone in {alone_count}"
        )
        # With the second mode as the row, the cell is under the diagonal.
        cells[second, first] = (str(both_count), jaccard.value or 0.0, tooltip)
    return _mode_matrix(names, cells, lower_half=True)


def order_matrix(pairs: Mapping[str, FigureTable], names: Names) -> Drawing:
    """Draw a matrix of modes that shows which of two modes begins first in a trace.

    A cell counts the traces in which the mode of the row begins before the mode of the column,
    among the traces with both.

    Args:
        pairs: The figures of each pair of modes.
        names: The codes and names of the modes.
    """
    cells: dict[tuple[str, str], _Cell] = {}
    for pair, figures in pairs.items():
        first, second = pair.split(PAIR)
        # The sum is not 0, because pairs have this figure only if they occur together.
        both_count = sum(
            figures.count("sets_on", order) for order in ("before", "after", "together")
        )
        for earlier, later, order in ((first, second, "before"), (second, first, "after")):
            count = figures.count("sets_on", order)
            tooltip = (
                f"{earlier} before {later} in {count} of {both_count} traces with both, "
                f"at the same span in {figures.count('sets_on', 'together')}"
            )
            cells[earlier, later] = (f"{count}/{both_count}", count / both_count, tooltip)
    return _mode_matrix(names, cells, lower_half=False)


def _mode_matrix(
    names: Names, cells: Mapping[tuple[str, str], _Cell], *, lower_half: bool
) -> Drawing:
    """Draw a matrix of modes against modes, without modes that have no cell.

    ``cells`` are by the codes of row and column. With ``lower_half``, only the cells under the
    diagonal are drawn.
    """
    codes = {code for pair in cells for code in pair}
    shown_modes = [(code, name) for code, name in names if code in codes]
    rows = shown_modes[1:] if lower_half else shown_modes
    columns = shown_modes[:-1] if lower_half else shown_modes
    column_count = max(len(columns), 1)
    cell_width = max(26.0, min(44.0, (WIDTH - _PLOT_LEFT) / column_count))
    drawing = Drawing(max(WIDTH, _PLOT_LEFT + cell_width * column_count))
    top = 22.0
    for column, (code, _) in enumerate(columns):
        drawing.text(
            _PLOT_LEFT + cell_width * (column + 0.5),
            top - 8,
            clipped_text(code, cell_width - 2, 10.5),
            _SMALL_MUTED,
            "middle",
        )
    for row, (code, name) in enumerate(rows):
        y = top + _CELL_HEIGHT * row
        lines = wrapped_lines(f"{code} {name}", _NAME_WIDTH, 11, max_lines=2)
        drawing.lines(0, y + _CELL_HEIGHT / 2 + 4 - 6 * (len(lines) - 1), lines, _SMALL, step=12)
        for column, (column_code, _) in enumerate(columns[: row + 1] if lower_half else columns):
            x = _PLOT_LEFT + cell_width * column
            _draw_matrix_cell(drawing, x, y, cell_width, cells.get((code, column_code)))
    drawing.height = top + _CELL_HEIGHT * len(rows) + 4
    if not rows:
        drawing.text(0, 14, "no trace has two modes", _MUTED)
    return drawing


def _draw_matrix_cell(
    drawing: Drawing, x: float, y: float, width: float, cell: _Cell | None
) -> None:
    """Draw a cell of a matrix, with x and y as its upper left corner; None is an empty cell."""
    drawing.rect(x + 0.5, y + 0.5, width - 1, _CELL_HEIGHT - 1, "v-cell")
    if cell is None:
        return
    label, share, tooltip = cell
    shade = 0.9 * share
    drawing.rect(x + 1, y + 1, width - 2, _CELL_HEIGHT - 2, "v-heat", tip=tooltip, opacity=shade)
    label = clipped_text(label, width - 2, 10.5)
    drawing.text(x + width / 2, y + _CELL_HEIGHT / 2 + 4, label, on_shade(shade), "middle")
