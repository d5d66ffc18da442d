"""The page on onset: where in the run failures set on, which mode is first, and what follows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from mast_tui.safe_text import one_line
from mast_tui.ui.signature_bars import count_bar, percent, rate_bar, spread_bar
from mast_tui.ui.signature_behind import Wanted
from mast_tui.ui.signature_words import beyond_words, counted, rate_words
from mast_tui.ui.widgets.column_table import Column, TableRow

if TYPE_CHECKING:
    from mast_tui.figures.signatures.places import AfterFatalJson, PlacesJson
    from mast_tui.ui.signature_figures import Signatures

MOST_STEPS: Final = 15
"""Steps from one mode to the next that are listed."""

NO_PLACES: Final = "No label names spans that are known here, so nothing can be said of places."


@dataclass(frozen=True, slots=True)
class _Entry:
    """One row: what it shows with bars of so many cells, its words, and the traces behind it."""

    id: str
    what: str
    bar: str
    kind: str
    number: str
    words: str
    wanted: Wanted | None


@dataclass(frozen=True)
class OnsetPage:
    """Where failures stand along the run; ``every`` is over all traces, else over failed ones."""

    found: Signatures
    group: str
    every: bool

    @cached_property
    def _places(self) -> PlacesJson | None:
        places = self.found.group(self.group)["places"]
        return None if places is None else places["all" if self.every else "failed"]

    @property
    def _which(self) -> str:
        return "traces" if self.every else "failed traces"

    @property
    def _outcome(self) -> str | None:
        return None if self.every else "failed"

    @property
    def columns(self) -> Sequence[Column]:
        """What, a bar, and a number."""
        return (
            Column("what", f"along the run, {self._which}", shrinks=True),
            Column("bar", ""),
            Column("number", "", keeps=95),
        )

    @property
    def choice(self) -> Sequence[str]:
        """There is one bar in a row."""
        return ()

    def rows(self, bar: int) -> Sequence[TableRow]:
        """The parts of the run, then modes by how often they are first, then what follows."""
        if self._places is None or not self._places["traces"]:
            return ()
        return [
            TableRow(
                one.id,
                {"what": one.what, "bar": one.bar, "number": one.number},
                " ",
                {"what": "head" if one.kind == "head" else "figure", "bar": one.kind},
            )
            for one in self._entries(self._places, bar)
        ]

    def nothing(self) -> str:
        """Why there is nothing about places."""
        if self.found.pending:
            return "Reading the traces and finding the places of their labels …"
        if self._places is not None:
            return (
                f"None of these {self._which} has a label with a place.\n\n"
                "a counts all traces, whatever their outcome."
            )
        lines = [NO_PLACES, ""]
        given = self.found.given
        if given is not None and given.unplaced:
            lines.append(
                "The labels' traces are not at hand: open the folder that holds them once, with "
                "mast-tui FOLDER, so that the workspace knows their files."
            )
        lines.append("Labels on spans are given with the cursor on the span, not with t.")
        return "\n".join(lines)

    def title(self, row: str) -> str:
        """What the row is about."""
        one = self._entry(row)
        return "" if one is None else one.what.strip()

    def words(self, row: str, column: str | None) -> str:
        """The row, and what all of the page rests on."""
        one, places = self._entry(row), self._places
        if one is None or places is None:
            return ""
        lines = [one.words, *self._about(places), *beyond_words(self.found, self.group)]
        return "\n".join(lines)

    def wanted(self, row: str, column: str | None) -> Wanted | None:
        """The traces behind the row."""
        one = self._entry(row)
        return None if one is None else one.wanted

    def _entry(self, row: str) -> _Entry | None:
        if self._places is None:
            return None
        return next((one for one in self._entries(self._places, 10) if one.id == row), None)

    def _about(self, places: PlacesJson) -> Iterator[str]:
        yield (
            f"Over {counted(places['traces'], 'trace')} with a place, of {places['of']:,} "
            f"{self._which} that show a failure. a: failed or all traces."
        )
        if places["uncounted"]:
            yield (
                f"{counted(places['uncounted'], 'trace')} without a position, as nobody counted "
                "their spans."
            )
        for after in places["after_fatal"]:
            yield from _after(after, self._which)

    def _entries(self, places: PlacesJson, bar: int) -> Iterator[_Entry]:
        yield from self._tenths(places, bar)
        yield from self._firsts(places, bar)
        yield from self._steps(places, bar)
        yield from self._onsets(places, bar)

    def _head(self, id: str, what: str, words: str) -> _Entry:
        return _Entry(id, what, "", "head", "", words, None)

    def _tenths(self, places: PlacesJson, bar: int) -> Iterator[_Entry]:
        first = places["first_failure"]
        words = "No position is known."
        if first["median"] is not None and first["quartiles"] is not None:
            low, high = (percent(end) for end in first["quartiles"])
            words = (
                f"The first failure stands at {percent(first['median'])} of the run in the median "
                f"(quartiles {low} to {high}; {counted(first['n'], 'trace')})."
            )
        yield self._head("tenths", "Where the first failure stands", words)
        most = max(first["bins"])
        for tenth, count in enumerate(first["bins"]):
            what = f"{10 * tenth}–{10 * tenth + 10}% of the run"
            yield _Entry(
                f"tenth {tenth}",
                f"  {what}",
                count_bar(count, most, bar),
                "failed",
                f"{count:,}",
                f"In {count:,} of {counted(first['n'], 'trace')} the first failure stands at "
                f"{what}. {words}",
                Wanted(f"first failure at {what}", self._outcome, tenth=tenth) if count else None,
            )

    def _firsts(self, places: PlacesJson, bar: int) -> Iterator[_Entry]:
        tied = (
            f" In {counted(places['tied'], 'trace')} several modes set on at the first span; each "
            "of them counts."
            if places["tied"]
            else ""
        )
        words = f"Which mode sets on first, in how many traces with a place.{tied}"
        yield self._head("firsts", "Which mode comes first", words)
        ordered = sorted(places["first_mode"].items(), key=lambda item: -item[1]["count"])
        for code, rate in ordered:
            yield _Entry(
                f"first {code}",
                f"  {self._named(code)}",
                rate_bar(rate, bar),
                "failed",
                f"{rate['count']:,} · {percent(rate['rate'])}",
                f"{code} comes first of all modes: {rate_words(rate)}.{tied}".replace(
                    "judged", "traces with a place"
                ),
                Wanted(f"{code} first, {self._which}", self._outcome, modes=(code,), first=code),
            )

    def _steps(self, places: PlacesJson, bar: int) -> Iterator[_Entry]:
        steps = places["transitions"]
        if not steps:
            return
        words = "A → B: in how many traces the onset of B is the next after that of A."
        yield self._head("steps", "What follows what", words)
        most = max(step["count"] for step in steps)
        for step in steps[:MOST_STEPS]:
            first, second = step["modes"]
            order = next(
                (one for one in places["order"] if set(one["modes"]) == {first, second}), None
            )
            more = ""
            if order is not None:
                swapped = order["modes"][0] != first
                before, after = order["before"], order["after"]
                before, after = (after, before) if swapped else (before, after)
                more = (
                    f" Of {counted(order['n'], 'trace')} with both, {first} sets on earlier in "
                    f"{before:,}, later in {after:,}, at the same span in {order['together']:,}."
                )
            yield _Entry(
                f"step {first} {second}",
                f"  {first} → {second}  {self._name(second)}",
                count_bar(step["count"], most, bar),
                "failed",
                f"{step['count']:,}",
                f"After {first} the next to set on is {second} in "
                f"{counted(step['count'], 'trace')}.{more}",
                Wanted(f"{first} → {second}", self._outcome, step=(first, second)),
            )

    def _onsets(self, places: PlacesJson, bar: int) -> Iterator[_Entry]:
        words = "Where each mode sets on, from the start of the run to its end: quartiles, median."
        yield self._head("onsets", "Where each mode sets on", words)
        for code, at in places["onset"].items():
            if at["median"] is None or at["quartiles"] is None:
                continue
            low, high = at["quartiles"]
            yield _Entry(
                f"onset {code}",
                f"  {self._named(code)}",
                spread_bar(low, at["median"], high, bar),
                "figure",
                percent(at["median"]),
                f"{code} sets on at {percent(at['median'])} of the run in the median (quartiles "
                f"{percent(low)} to {percent(high)}; {counted(at['n'], 'trace')}).",
                Wanted(f"{code}, {self._which}", self._outcome, modes=(code,), placed=True),
            )

    def _name(self, code: str) -> str:
        return one_line(self.found.group(self.group)["modes"][code]["name"])

    def _named(self, code: str) -> str:
        return f"{one_line(code, 8)} {self._name(code)}"


def _after(after: AfterFatalJson, which: str) -> Iterator[str]:
    on = after["spans_after"]
    if on["median"] is None or on["quartiles"] is None:
        return
    by = "labels say" if after["by"] == "labels" else "the class of its mode says"
    yield (
        f"After the first fatal failure, as {by}, a run went on for {on['median']:.0f} spans in "
        f"the median (quartiles {on['quartiles'][0]:.0f} to {on['quartiles'][1]:.0f}; "
        f"{on['n']:,} {which})."
    )
