"""The runs of judges that the workspace keeps, and how one has answered what they found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.binding import BindingType
from textual.message import Message

from mast_tui.labels import AnnotatorKind
from mast_tui.safe_text import one_line
from mast_tui.ui.actions.registry import Where, bindings_for
from mast_tui.ui.judge_runs.run_rows import COLUMNS, RunView, local_time, run_row, run_views
from mast_tui.ui.judge_runs.run_words import run_words
from mast_tui.ui.screens.table_screen import TableScreen
from mast_tui.ui.services.judging import Judged
from mast_tui.ui.services.trace_catalog import OneByOne
from mast_tui.ui.styles import BASE_SCREEN, RUNS
from mast_tui.ui.suggestion_words import judge_name
from mast_tui.ui.titles import plain_title
from mast_tui.ui.trace_names import trace_names
from mast_tui.ui.widgets.column_table import ColumnTable
from mast_tui.ui.widgets.virtual_lines import VirtualLines

if TYPE_CHECKING:
    from mast_tui.ui.services.open_workspace import OpenWorkspace

NO_RUNS = """No judge has run in this workspace yet.

J runs one on all traces of the library. The rules judge needs no network and no model; a language model is asked once config.toml names it (? tells how).
mast-tui judge PATH does the same without the app.

What a judge finds waits as a suggestion in each trace: ] goes to it, a accepts, x rejects."""  # noqa: E501

NO_RUNS_BLIND = f"""{NO_RUNS}

You work blind: suggestions are shown to you once you have finished a trace."""


class RunsScreen(TableScreen):
    """Counts of answers are this annotator's own; where it is hidden nothing found is counted."""

    CSS_PATH = [BASE_SCREEN, RUNS]
    AUTO_FOCUS = "#runs"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for(Where.RUNS, Where.EVERYWHERE)
    where = Where.RUNS

    @dataclass
    class Listed(Message):
        """What the workspace keeps of runs, or why it could not be read."""

        views: list[RunView] = field(default_factory=list)
        names: dict[str, str] = field(default_factory=dict)
        problem: str | None = None

    def __init__(self) -> None:
        super().__init__()
        self._views: dict[str, RunView] = {}
        self._names: dict[str, str] = {}
        self._marked: str | None = None

    def make_table(self) -> ColumnTable:
        """The runs."""
        return ColumnTable(COLUMNS, id="runs")

    @property
    def main_list(self) -> ColumnTable:
        """The runs."""
        return self.query_one("#runs", ColumnTable)

    @property
    def view(self) -> RunView | None:
        """The run under the cursor."""
        row = self.main_list.row
        return None if row is None else self._views.get(row.id)

    def on_mount(self) -> None:
        """List the runs as soon as the workspace is open."""
        super().on_mount()
        self.mast.when_ready(self._start)

    def on_screen_resume(self) -> None:
        """Suggestions may have been answered in the trace from which one comes back."""
        if self._views and self.mast.opened is not None:
            self._start(self.mast.opened)

    def _start(self, opened: OpenWorkspace) -> None:
        self.read_runs(opened)

    @work(thread=True, group="runs", exclusive=True)
    def read_runs(self, opened: OpenWorkspace) -> None:
        """Read the runs, and how this annotator has answered."""
        from mast_tui.workspace import WorkspaceError

        workspace = opened.workspace
        try:
            hidden = opened.judges_hidden
            runs = workspace.runs()
            judges = [i.name for i in workspace.annotators() if i.kind is AnnotatorKind.JUDGE]
            suggestions = (
                []
                if hidden
                else [label for judge in judges for label in workspace.labels(annotator=judge)]
            )
            reviews = workspace.reviews(annotator=opened.annotator, pass_number=None)
            names = trace_names(workspace.traces())
            views = run_views(runs, suggestions, reviews, hidden=hidden)
        except WorkspaceError as error:
            self.post_message(self.Listed(problem=str(error)))
            return
        self.post_message(self.Listed(views, names))

    def on_runs_screen_listed(self, message: Listed) -> None:
        """Show what was read."""
        if message.problem is not None:
            self.show_words(one_line(message.problem))
            return
        self._views = {view.run.id: view for view in message.views}
        self._names = message.names
        if message.views:
            self.remove_class("-empty")
            self._show_rows()
            self.main_list.focus()
        else:
            opened = self.mast.opened
            self.show_words(NO_RUNS_BLIND if opened is not None and opened.blind else NO_RUNS)
        self.show_title()

    def _show_rows(self) -> None:
        views = self._views.values()
        self.main_list.show([run_row(v, marked=v.run.id == self._marked) for v in views])
        self._show_detail()

    def show_title(self) -> None:
        """What is open, and who works."""
        count = len(self._views)
        words = f"{count} run{'' if count == 1 else 's'}"
        self.title_bar.show(("Judge runs", words) if count else ("Judge runs",), self.who())

    def _show_detail(self) -> None:
        view = self.view
        if view is None:
            self.detail.show_text("")
            return
        run = view.run
        self.detail.border_title = plain_title(
            f"{judge_name(run.judge)} · {local_time(run.started_at)}"
        )
        self.detail.border_subtitle = plain_title("Enter: its traces · d b scroll")
        latest = next(iter(self._views)) == run.id
        at_work = latest and self.mast.judge_at_work is not None
        words = run_words(view, self._names, self.mast.taxonomy, at_work=at_work)
        self.detail.show_text(words)

    @on(VirtualLines.Moved, "#runs")
    def _moved(self, event: VirtualLines.Moved) -> None:
        event.stop()
        self._show_detail()
        self.hints.clear()

    @on(VirtualLines.Chosen, "#runs")
    def _chosen(self, event: VirtualLines.Chosen) -> None:
        event.stop()
        self.action_open()

    # Keys

    def action_open(self) -> None:
        """The traces of the run under the cursor."""
        if self.view is None:
            self._say_no_run()
            return
        from mast_tui.ui.judge_runs.run import RunScreen

        self.app.push_screen(RunScreen(self.view, self._names))

    def _say_no_run(self) -> None:
        self.hints.say("There is no run under the cursor")

    def action_text(self, delta: int) -> None:
        """Scroll what is told of the run."""
        self.detail.move_page(delta)

    def action_mark(self) -> None:
        """Mark the run under the cursor, or take the mark off it."""
        view = self.view
        if view is None:
            self._say_no_run()
            return
        self._marked = None if self._marked == view.run.id else view.run.id
        self._show_rows()
        if self._marked is None:
            self.hints.say("No run is marked")
        else:
            name = judge_name(view.run.judge)
            self.hints.say(f"{name} is marked: go to another run, = compares the two")

    def action_compare(self) -> None:
        """Compare the marked run with the one under the cursor."""
        view, marked = self.view, self._views.get(self._marked or "")
        if view is None:
            self._say_no_run()
            return
        if marked is None:
            self.hints.say("v marks a run, = then compares it with another; c compares with gold")
        elif marked.run.id == view.run.id:
            self.hints.say("This run is the marked one: go to another, = compares the two")
        elif marked.run.taxonomy != view.run.taxonomy:
            self.hints.say("These runs are of two taxonomies, which cannot be compared", error=True)
        elif marked.run.judge == view.run.judge:
            self.hints.say(
                "Both runs are of one judge, and only what it said last stands: nothing to compare"
            )
        else:
            self._open_comparison(marked, view)

    def action_gold(self) -> None:
        """Compare the run under the cursor with the gold."""
        if self.view is None:
            self._say_no_run()
            return
        self._open_comparison(self.view, None)

    def _open_comparison(self, first: RunView, second: RunView | None) -> None:
        if first.run.taxonomy != self.mast.taxonomy.ref:
            self.hints.say(
                f"This run is of {one_line(first.run.taxonomy)}: open that with --taxonomy",
                error=True,
            )
            return
        from mast_tui.ui.judge_runs.comparison import ComparisonScreen

        self.app.push_screen(ComparisonScreen(first.run, None if second is None else second.run))

    def action_judge(self) -> None:
        """Run a judge on all traces of the library; ask to cancel one that is at work."""
        traces = OneByOne(list(self.mast.catalog.traces.values()))
        if not traces:
            self.hints.say("No traces are listed in the library", error=True)
            return
        self.mast.judge_traces(traces)

    def judged(self, message: Judged) -> None:
        """Say how far the judge has come; once it is done, list its run."""
        message.tell(self.hints)
        opened = self.mast.opened
        if message.done and opened is not None and self.is_attached:
            self.read_runs(opened)
