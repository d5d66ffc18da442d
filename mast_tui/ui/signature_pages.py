"""The pages of the signatures screen: failed against successful traces, and which show together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Final, Protocol

from mast_tui.safe_text import one_line
from mast_tui.ui.signature_bars import LEGEND, p_words, percent, points, rate_bar
from mast_tui.ui.signature_behind import Wanted
from mast_tui.ui.signature_words import beyond_words, counted, mode_words, rate_words, severity_cell
from mast_tui.ui.widgets.column_table import Column, TableRow

if TYPE_CHECKING:
    from mast_tui.figures.signatures.co_occurrence import TogetherJson
    from mast_tui.figures.signatures.modes import ModeJson
    from mast_tui.figures.signatures.rates import RateJson
    from mast_tui.ui.signature_figures import Signatures


class PageName(StrEnum):
    """What can be looked at, in the order of their keys."""

    MODES = "modes"
    ONSET = "onset"
    TOGETHER = "together"
    TRACES = "traces"


class Page(Protocol):
    """One page of one group: its table, what stands behind a cell, and that in words."""

    @property
    def columns(self) -> Sequence[Column]:
        """The columns of the table."""

    @property
    def choice(self) -> Sequence[str]:
        """The columns among which one is chosen."""

    def rows(self, bar: int) -> Sequence[TableRow]:
        """The rows, with bars of so many cells; none where there is nothing."""

    def nothing(self) -> str:
        """Why there is no row, and what to do."""

    def title(self, row: str) -> str:
        """What a row is about."""

    def words(self, row: str, column: str | None) -> str:
        """What the figures of a cell rest on."""

    def wanted(self, row: str, column: str | None) -> Wanted | None:
        """Which traces stand behind a cell, None where there is nothing to list."""


@dataclass(frozen=True)
class ModesPage:
    """How often each mode shows in failed and in successful traces."""

    found: Signatures
    group: str

    @cached_property
    def _modes(self) -> dict[str, ModeJson]:
        return self.found.group(self.group)["modes"]

    @cached_property
    def _sides(self) -> tuple[str, ...]:
        """The outcomes that are there; without any it is all traces."""
        table = self.found.group(self.group)
        return ("failed", "succeeded") if table["failed"] or table["succeeded"] else ("all",)

    @property
    def columns(self) -> Sequence[Column]:
        """Code, name, a bar and a share for either outcome, and what follows."""
        table = self.found.group(self.group)
        numbers = {
            "failed": table["failed"],
            "succeeded": table["succeeded"],
            "all": table["traces"],
        }
        bars = [
            column
            for side in self._sides
            for column in (
                Column(f"{side} bar", f"{side} ({numbers[side]:,})"),
                Column(side, "", figure=True),
            )
        ]
        after = [
            Column("difference", "diff", figure=True, keeps=90),
            Column("interval", "interval", figure=True, keeps=40),
            Column("p", "p adj", figure=True, keeps=50),
            Column("severity", "class", keeps=95),
            Column("stated", "stated", keeps=60),
        ]
        if self._sides == ("all",):
            after = [Column("of", "of", figure=True), after[-1]]
        return [Column("code", ""), Column("mode", "mode", shrinks=True), *bars, *after]

    @property
    def choice(self) -> Sequence[str]:
        """Either bar."""
        return self._sides

    def rows(self, bar: int) -> Sequence[TableRow]:
        """A row per mode."""
        return [self._row(code, mode, bar) for code, mode in self._modes.items()]

    def _rate(self, mode: ModeJson, side: str) -> RateJson:
        return {"failed": mode["failed"], "succeeded": mode["succeeded"]}.get(side, mode["all"])

    def _row(self, code: str, mode: ModeJson, bar: int) -> TableRow:
        ends = mode["difference_ci_pp"]
        cells = {
            "code": one_line(code, 8),
            "mode": one_line(mode["name"]),
            "difference": points(mode["difference_pp"]),
            "interval": "" if ends is None else f"{points(ends[0])}…{points(ends[1])}",
            "p": p_words(mode["p_adjusted"]),
            "severity": severity_cell(mode),
            "stated": mode["stated"] or "",
            "of": f"{mode['count']:,} of {mode['n']:,}",
        }
        for side in self._sides:
            rate = self._rate(mode, side)
            cells[f"{side} bar"] = rate_bar(rate, bar)
            cells[side] = percent(rate["rate"])
        styles = {
            "code": "name",
            "failed bar": "failed",
            "succeeded bar": "succeeded",
            "all bar": "name",
            "interval": "quiet",
            "p": "quiet",
            "stated": "quiet",
            "severity": {"fatal": "doubt", "benign": "succeeded"}.get(mode["severity"], "quiet"),
        }
        return TableRow(code, cells, " ", styles)

    def nothing(self) -> str:
        """Every taxonomy has modes."""
        return "This taxonomy has no modes."

    def title(self, row: str) -> str:
        """The mode."""
        return f"{row} {self._modes[row]['name']}"

    def words(self, row: str, column: str | None) -> str:
        """The mode's figures."""
        lines = mode_words(self.found, self.group, row)
        return f"{lines}\nBars: {LEGEND}."

    def wanted(self, row: str, column: str | None) -> Wanted | None:
        """The traces behind one of the bars."""
        outcome = None if column == "all" else column
        if column is None or not self._rate(self._modes[row], column)["count"]:
            return None
        what = f"{row} in {outcome or 'all'} traces"
        return Wanted(what, outcome=outcome, modes=(row,))


_SAME: Final = "="


@dataclass(frozen=True)
class TogetherPage:
    """How many traces show both of two modes; on the diagonal how many show one."""

    found: Signatures
    group: str
    every: bool

    @cached_property
    def _pairs(self) -> dict[tuple[str, str], TogetherJson]:
        table = self.found.group(self.group)["together"]
        pairs = {}
        for pair in table["all" if self.every else "failed"]:
            first, second = pair["modes"]
            pairs[first, second] = pairs[second, first] = pair
        return pairs

    @cached_property
    def _seen(self) -> dict[str, int]:
        """The modes that show, and in how many traces."""
        modes = self.found.group(self.group)["modes"]
        counts = {c: m["all" if self.every else "failed"]["count"] for c, m in modes.items()}
        return {code: count for code, count in counts.items() if count}

    @property
    def columns(self) -> Sequence[Column]:
        """A column per mode."""
        modes = [Column(code, one_line(code, 6), figure=True) for code in self._seen]
        return [Column("code", ""), Column("mode", self._which, shrinks=True), *modes]

    @property
    def choice(self) -> Sequence[str]:
        """The columns of modes."""
        return tuple(self._seen)

    def rows(self, bar: int) -> Sequence[TableRow]:
        """A row per mode."""
        names = self.found.group(self.group)["modes"]
        found = []
        for code in self._seen:
            cells = {"code": one_line(code, 8), "mode": one_line(names[code]["name"])}
            styles = {"code": "name"}
            for other in self._seen:
                count, often = self._cell(code, other)
                cells[other] = f"{_SAME}{count}" if code == other else str(count or "·")
                styles[other] = "quiet" if not count or code == other else "figure"
                if often:
                    styles[other] = "total"
            found.append(TableRow(code, cells, " ", styles))
        return found

    def _cell(self, code: str, other: str) -> tuple[int, bool]:
        """How many traces show both, and whether those are most of the ones with either."""
        if code == other:
            return self._seen[code], False
        pair = self._pairs.get((code, other))
        return (0, False) if pair is None else (pair["both"], pair["jaccard"] >= 0.5)

    @property
    def _which(self) -> str:
        return "traces" if self.every else "failed traces"

    def nothing(self) -> str:
        """No mode shows."""
        if self.every:
            return "No mode shows in these traces."
        return "No failed trace shows a mode here.\n\na counts all traces, whatever their outcome."

    def title(self, row: str) -> str:
        """The mode of the row."""
        return f"{row} {self.found.group(self.group)['modes'][row]['name']}"

    def words(self, row: str, column: str | None) -> str:
        """The two modes."""
        modes = self.found.group(self.group)["modes"]
        pair = None if column is None else self._pairs.get((row, column))
        if column is None or column == row:
            side = modes[row]["all" if self.every else "failed"]
            lines = [f"{row} shows in {self._which}: {rate_words(side)}."]
        elif pair is None:
            lines = [f"{row} and {column}: no trace was judged on both and shows one of them."]
        else:
            lines = _pair_words(pair, self._which)
        legend = (
            f"A cell is how many {self._which} show both modes; {_SAME} how many show the one. "
            "Bold: both in half or more of those with either. a: failed or all traces."
        )
        return "\n".join([*lines, legend, *beyond_words(self.found, self.group)])

    def wanted(self, row: str, column: str | None) -> Wanted | None:
        """The traces with both modes."""
        if column is None or not self._cell(row, column)[0]:
            return None
        codes = (row,) if column == row else (row, column)
        what = f"{' and '.join(codes)} in {self._which}"
        return Wanted(what, outcome=None if self.every else "failed", modes=codes)


def _pair_words(pair: TogetherJson, which: str) -> list[str]:
    first, second = pair["modes"]
    words = (
        f"{first} and {second}: both in {pair['both']:,} of {pair['n']:,} {which} judged on both; "
        f"only {first} in {pair['only_first']:,}, only {second} in {pair['only_second']:,}, "
        f"neither in {pair['neither']:,}."
    )
    often = f"Of the traces with either, {percent(pair['jaccard'])} have both (Jaccard)"
    if pair["phi"] is None:
        return [words, f"{often}; no correlation, as one of them shows in every trace."]
    return [words, f"{often}; correlation phi {pair['phi']:+.2f}."]


def left_words(count: int, most: int) -> str:
    """That a list was cut, or nothing."""
    return f"{counted(count, 'trace')}, the first {most:,} are listed" if count > most else ""
