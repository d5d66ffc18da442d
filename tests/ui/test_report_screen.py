"""What both reports share, on a screen that counts what a test gives it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from threading import Event
from typing import ClassVar

from mast_tui.figures.record import Sources
from mast_tui.reports.model import Column, Estimate, Kind, ReportSection, Row, Table
from mast_tui.ui.actions.registry import Where
from mast_tui.ui.annotate.screen import AnnotateScreen
from mast_tui.ui.context import TraceLocation
from mast_tui.ui.dialogs.help import HelpScreen
from mast_tui.ui.reports.agreement_traces import AgreementTracesScreen
from mast_tui.ui.reports.screen import Listing, Page, ReportScreen, Stopped, StoppedError
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.workspace import Workspace
from tests import waiting
from tests.ui.office import Office, said
from tests.ui.stage import Stage, stage
from tests.waiting import PATIENCE


def table(id: str, names: str, value: float = 0.5) -> Table:
    """A row for each letter."""
    columns = (Column("name", "name", Kind.TEXT), Column("kappa", "κ"))
    rows = tuple(
        Row(
            name,
            {"name": name, "kappa": Estimate(value)},
            sources=Sources(f"traces of {name}") if name != "z" else None,
        )
        for name in names
    )
    return Table(id, id, columns, (rows,))


class GivenScreen(ReportScreen):
    """Counts what was put in ``stages``, in turn."""

    where = Where.AGREEMENT
    traces = AgreementTracesScreen
    pages: ClassVar[Mapping[str, str]] = {"modes": "one", "categories": "two", "pairs": "none"}

    def __init__(self) -> None:
        super().__init__()
        self.stages: list[Table] = [table("first", "abcz")]
        self.found: Table | None = None
        self.waits: Event | None = None
        self.left = 0
        self.starts = 0
        self.trace = ""

    def start(self, opened: OpenWorkspace) -> None:
        self.starts += 1
        stages, waits = list(self.stages), self.waits

        def counting(stopped: Stopped) -> Iterator[Table]:
            if waits is not None:
                assert waits.wait(PATIENCE)
                if stopped():
                    self.left += 1
                    raise StoppedError
            yield from stages

        self.run_stages("all", counting, self._take, lambda problem: table(problem, ""))

    def action_passes(self) -> None:
        self.mast.workspace.when_ready(self.start)

    def start_changed(self, opened: OpenWorkspace) -> None:
        self.start(opened)

    def _take(self, found: Table) -> None:
        self.found = found
        self.show()

    def title_parts(self) -> tuple[str, ...]:
        return ("Given",)

    def open_page(self) -> Page:
        if self.found is None:
            return Page()
        if self.page == "pairs":
            return Page(text="Nothing is here. x does something.")
        return Page(ReportSection(self.page, "", (self.found,)))

    def whole_report(self) -> None:
        """Nothing is written."""

    def list_sources(self, sources: Sources) -> Callable[[OpenWorkspace], Listing | None]:
        one = Row("t", {"name": "one.json"})
        listed = Table("traces", "", (Column("name", "trace", Kind.TEXT),), ((one,),))

        def listing(_opened: OpenWorkspace) -> Listing:
            return Listing(listed, {"t": "one"}, ("1 trace",), self.opened)

        return listing

    def opened(self, _opened: OpenWorkspace, _row: str) -> TraceLocation:
        return TraceLocation(self.trace, position=4)


@asynccontextmanager
async def showing(tmp_path: Path) -> AsyncIterator[tuple[Stage, GivenScreen]]:
    """The screen over a folder of one trace."""
    office = Office(tmp_path / "set")
    office.label("alice", "one", {"1.3": (3, 8)})
    shown = GivenScreen()
    with closing(Workspace.open(office.workspace)) as store:
        shown.trace = office.trace_id(store, "one")
    async with stage(office.folder, workspace=office.workspace) as on:
        on.app.show_main(shown)
        await on.press()
        yield on, shown


def under_cursor(on: Stage) -> str:
    return next(line for line in on.lines if line.startswith("▌"))


def words(on: Stage) -> str:
    assert isinstance(on.app.screen, ReportScreen)
    return on.app.screen.detail.text


async def test_pages_have_keys_and_each_keeps_its_row(tmp_path: Path) -> None:
    async with showing(tmp_path) as (on, _):
        assert "[1 one] 2 two  3 none" in on.lines[1]
        await on.press("j", "2")
        assert "[2 two]" in on.lines[1]
        assert " b " in under_cursor(on)
        await on.press("j")
        assert " c " in under_cursor(on)
        await on.press("1")
        assert " b " in under_cursor(on)
        await on.press("tab")
        assert " c " in under_cursor(on)
        await on.press("3")
        assert "Nothing is here. x does something." in on.text
        await on.press("enter")
        assert "There is no trace to open here" in said(on)


async def test_the_row_stays_by_its_id_when_it_is_counted_anew(tmp_path: Path) -> None:
    async with showing(tmp_path) as (on, shown):
        await on.press("j")
        shown.stages = [table("first", "xyab", 0.25)]
        await on.press("p")
        assert " b " in under_cursor(on)
        assert "0.25" in under_cursor(on)
        assert "0.25" in words(on)


async def test_a_later_count_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    async with showing(tmp_path) as (on, shown):
        shown.waits, shown.stages = Event(), [table("first", "abc", 0.11)]
        await on.send("p")
        slow, shown.waits = shown.waits, None
        shown.stages = [table("first", "abc", 0.22)]
        await on.send("p")
        slow.set()
        await on.press()
        assert "0.22" in on.text
        assert "0.11" not in on.text
        for _ in waiting.until(lambda: shown.left == 1):
            await on.pilot.pause()


async def test_the_way_to_a_trace_at_its_span_and_back_counts_anew(tmp_path: Path) -> None:
    async with showing(tmp_path) as (on, shown):
        await on.press("j", "enter")
        assert isinstance(on.app.screen, AgreementTracesScreen)
        assert " b · 1 trace" in on.lines[0]
        await on.press("enter")
        assert isinstance(on.app.screen, AnnotateScreen)
        assert on.number == 5
        shown.stages = [table("first", "abcz", 0.75)]
        await on.press("escape", "escape")
        assert isinstance(on.app.screen, ReportScreen)
        assert shown.starts == 2
        assert " b " in under_cursor(on)
        assert "0.75" in under_cursor(on)
        await on.press("G", "enter")
        assert "This figure has no source traces" in said(on)
        await on.press("right")
        assert "no other cell" in said(on)


async def test_a_question_is_no_reason_to_count_anew(tmp_path: Path) -> None:
    async with showing(tmp_path) as (on, shown):
        await on.press("?")
        assert isinstance(on.app.screen, HelpScreen)
        await on.press("escape")
        assert isinstance(on.app.screen, ReportScreen)
        assert shown.starts == 1
