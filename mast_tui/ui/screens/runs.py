"""The runs of judges that the workspace keeps, and how one has answered what they found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.binding import BindingType
from textual.message import Message

from mast_tui.labels import AnnotatorKind
from mast_tui.safe_text import one_line
from mast_tui.ui.actions import Where, bindings_for
from mast_tui.ui.background import Judged
from mast_tui.ui.run_rows import RunRow, run_rows, run_words
from mast_tui.ui.screens.table_room import TableRoom
from mast_tui.ui.titles import plain_title
from mast_tui.ui.trace_names import trace_names
from mast_tui.ui.widgets.run_list import RunList
from mast_tui.ui.widgets.virtual_lines import VirtualLines

if TYPE_CHECKING:
    from mast_tui.ui.desk import Desk
    from mast_tui.workspace.records import Run

NO_RUNS = """No judge has run in this workspace yet.

J runs the rules judge on all traces of the library: it needs no network and no model.
mast-tui judge PATH --judge rules does the same without the app.

What a judge finds waits as a suggestion in each trace: ] goes to it, a accepts, x rejects."""

NO_RUNS_BLIND = f"""{NO_RUNS}

You work blind: suggestions are shown to you once you have finished a trace."""


class RunsScreen(TableRoom):
    """Counts of answers are this annotator's own; working blind, nothing found is counted."""

    CSS_PATH = ["room.tcss", "runs.tcss"]
    AUTO_FOCUS = "#runs"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for(Where.RUNS, Where.EVERYWHERE)
    where = Where.RUNS

    @dataclass
    class Listed(Message):
        """What the workspace keeps of runs, or why it could not be read."""

        runs: dict[str, Run] = field(default_factory=dict)
        rows: list[RunRow] = field(default_factory=list)
        names: dict[str, str] = field(default_factory=dict)
        problem: str | None = None

    def __init__(self) -> None:
        super().__init__()
        self._runs: dict[str, Run] = {}
        self._names: dict[str, str] = {}
        self._judging = False

    def make_table(self) -> RunList:
        """The runs."""
        return RunList(id="runs")

    @property
    def main_list(self) -> RunList:
        """The runs."""
        return self.query_one(RunList)

    def on_mount(self) -> None:
        """List the runs as soon as the workspace is open."""
        super().on_mount()
        self.mast.when_ready(self._start)

    def _start(self, desk: Desk) -> None:
        self.read_runs(desk)

    @work(thread=True, group="runs", exclusive=True)
    def read_runs(self, desk: Desk) -> None:
        """Read the runs, and how this annotator has answered."""
        from mast_tui.workspace import WorkspaceError

        workspace = desk.workspace
        try:
            runs = workspace.runs()
            judges = [i.name for i in workspace.annotators() if i.kind is AnnotatorKind.JUDGE]
            suggestions = (
                []
                if desk.blind
                else [label for judge in judges for label in workspace.labels(annotator=judge)]
            )
            reviews = workspace.reviews(annotator=desk.annotator, pass_number=None)
            names = trace_names(workspace.traces())
            rows = run_rows(runs, suggestions, reviews, hidden=desk.blind)
        except WorkspaceError as error:
            self.post_message(self.Listed(problem=str(error)))
            return
        self.post_message(self.Listed({run.id: run for run in runs}, rows, names))

    def on_runs_screen_listed(self, message: Listed) -> None:
        """Show what was read."""
        if message.problem is not None:
            self.show_words(one_line(message.problem))
            return
        self._runs, self._names = message.runs, message.names
        if message.rows:
            self._fill(message.rows)
        else:
            desk = self.mast.desk
            self.show_words(NO_RUNS_BLIND if desk is not None and desk.blind else NO_RUNS)
        self.show_title()

    def _fill(self, rows: list[RunRow]) -> None:
        self.remove_class("-empty")
        self.main_list.show(rows)
        self.main_list.focus()
        self._show_detail()

    def show_title(self) -> None:
        """What is open, and who works."""
        count = len(self._runs)
        words = f"{count} run{'' if count == 1 else 's'}"
        self.title_bar.show(("Judge runs", words) if count else ("Judge runs",), self.who())

    def _show_detail(self) -> None:
        row = self.main_list.row
        run = self._runs.get(row.run_id) if row is not None else None
        if row is None or run is None:
            self.detail.show_text("")
            return
        self.detail.border_title = plain_title(f"{row.judge} · {row.when}")
        self.detail.show_text(run_words(run, row, self._names))

    @on(VirtualLines.Moved, "#runs")
    def _moved(self, event: VirtualLines.Moved) -> None:
        event.stop()
        self._show_detail()
        self.hints.clear()

    def action_judge(self) -> None:
        """Run the rules judge on all traces of the library."""
        traces = list(self.mast.catalog.traces.values())
        if not traces:
            self.hints.say("No traces are listed in the library", error=True)
            return
        if self._judging:
            self.hints.say("The rules judge is at work already")
            return
        self._judging = True
        self.hints.say(f"The rules judge looks at {len(traces)} traces …")

        def run(desk: Desk) -> None:
            self.mast.run_rules(traces, desk)

        self.mast.when_ready(run)

    def judged(self, message: Judged) -> None:
        """Say how far the judge has come; once it is done, list its run."""
        if message.problem is not None:
            self.hints.say(one_line(message.problem), error=True)
        elif not message.done:
            self.hints.say(f"The rules judge: {message.traces} traces done …")
        else:
            self.hints.say(f"The rules judge has looked at {message.traces} traces")
        if message.done:
            self._judging = False
            desk = self.mast.desk
            if desk is not None and self.is_attached:
                self.read_runs(desk)
