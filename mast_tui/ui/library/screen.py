"""The library: all traces that were found, and how far one has come with them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from mast_tui.safe_text import one_line
from mast_tui.traces.same_runs import same_runs
from mast_tui.ui.actions.registry import Where, key_while_typing
from mast_tui.ui.actions.tables import moves
from mast_tui.ui.base_screen import ListScreen
from mast_tui.ui.context import JudgeProgress, ShowSideBySide, ShowTrace
from mast_tui.ui.dialogs.finder import FinderChoice, FinderDialog
from mast_tui.ui.library.contents import Contents, HitList
from mast_tui.ui.library.queues import (
    TELLS_HIDDEN,
    QueueName,
    QueueRead,
    ShownQueue,
    empty_words,
    going_on,
)
from mast_tui.ui.library.rows import LibraryRow, Sort, TraceListing, row_of, tells_outcome
from mast_tui.ui.library.trace_list import LibraryList
from mast_tui.ui.services.trace_catalog import Catalog, OneByOne
from mast_tui.ui.styles import LIBRARY
from mast_tui.ui.trace_view.span_view import SpanView
from mast_tui.ui.widgets.column_table import ColumnTable
from mast_tui.ui.widgets.hint_bar import HintBar
from mast_tui.ui.widgets.text_line import TextLine
from mast_tui.ui.widgets.title_bar import TitleBar
from mast_tui.ui.widgets.virtual_lines import VirtualLines
from mast_tui.ui.wording import counted, joined, names_under, plain_title
from mast_tui.writes import HeldKeys

if TYPE_CHECKING:
    from mast_tui.session import LibraryEntry
    from mast_tui.traces.model import Trace


def reading_words(catalog: Catalog) -> str:
    """How far the reading has come."""
    if catalog.being_read:
        return catalog.being_read
    if not catalog.total:
        return "reading …"
    return f"reading {catalog.looked_at:,} of {catalog.total:,} …"


FILTER_WORDS: Final = "a name, task or model; unread; with suggestions; failed …"
"""What one may filter by."""

MOST_LEFT_OUT: Final = 5
"""How many files that hold no trace are named where there is no other."""


ON_ROWS: Final = frozenset(
    ("library.open", "library.compare", *(action.id for action in moves(Where.LIBRARY)))
)
"""The actions that work on the row under the cursor."""


class LibraryScreen(ListScreen):
    """What of a queue matches, as it is sorted, is what one goes through on the annotate screen."""

    CSS_PATH = LIBRARY
    AUTO_FOCUS = "LibraryList"
    where = Where.LIBRARY

    def __init__(self) -> None:
        super().__init__()
        self.sort = Sort.QUEUE
        self.queue = ShownQueue(self)
        self.contents = Contents(self)
        self._filter = TextLine(placeholder=FILTER_WORDS, id="filter")
        self._about = SpanView(id="about")
        self._listing = TraceListing()
        self._view: Mapping[str, LibraryEntry] = {}
        self._hidden_visible = False
        self._changes_seen = 0
        self._same_runs: Mapping[str, tuple[str, ...]] = {}
        self._compared = 0
        """How many changes there were when runs were compared."""

    _whole = -1
    """How many widgets the screen has while it is open."""

    def compose(self) -> ComposeResult:
        """The table, and what is known of the trace under the cursor."""
        yield TitleBar()
        yield Static(id="heading", markup=False)
        yield LibraryList(id="traces")
        yield self.contents.list
        with Vertical(id="empty"):
            yield Static(id="empty-words", markup=False)
        yield self._about
        yield self._filter
        yield self.contents.line
        yield HintBar(self.where)

    def on_mount(self) -> None:
        """List what was found so far."""
        self._whole = len([*self.walk_children()])
        for later in (self._filter, self.contents.line, self.contents.list):
            later.display = False
        self._about.can_focus = False
        self.refresh_rows()
        self.mast.workspace.when_ready(lambda _: self._labels_changed())

    def on_screen_resume(self) -> None:
        """Labels may have changed, and more be known of a trace that was open."""
        self.mast.catalog.learn()
        self._labels_changed()

    @property
    def table(self) -> LibraryList:
        """The traces."""
        return self.query_one(LibraryList)

    def awaits_content(self, action: str | None) -> bool:
        """Check if an action works on a row, and no trace has been read yet."""
        return action in ON_ROWS and not self.table.row_count and not self.mast.catalog.complete

    def refresh_rows(self) -> None:
        """Take in which traces have come, changed or gone since this was done the last time."""
        if not self.is_mounted:
            return
        catalog = self.mast.catalog
        changed = dict.fromkeys(catalog.changes[self._changes_seen :])
        self._changes_seen = len(catalog.changes)
        self._list_anew(changed)
        self._arrange(still=True)
        if catalog.complete and self._compared != len(catalog.changes):
            self._compared = len(catalog.changes)
            traces = list(catalog.traces.values())
            self.run_worker(
                partial(self._look_for_same_runs, traces),
                group="same-runs",
                exclusive=True,
                thread=True,
            )

    def _look_for_same_runs(self, traces: Sequence[Trace]) -> None:
        found = same_runs(traces)
        self.call_later(self._same_runs_found, found)

    def _same_runs_found(self, found: Mapping[str, tuple[str, ...]]) -> None:
        before, self._same_runs = self._same_runs, found
        changed = [one for one in (before.keys() | found) if before.get(one) != found.get(one)]
        if changed:
            self._list_anew(changed)
            self._arrange(still=True)

    def _labels_changed(self) -> None:
        """Ask the workspace anew how far everybody is; the screen waits for no server."""
        self.mast.writes.do(self._count_anew, HeldKeys.NOTHING)

    async def _count_anew(self) -> None:
        await self._read_view()
        await self.mast.trace_queue.count_finished()
        self.refresh_rows()
        self.queue.changed()

    async def _read_view(self) -> None:
        """Show in the rows what the workspace tells of each trace now."""
        opened = self.mast.opened
        if opened is None or not self.is_mounted:
            return
        view = await self.mast.workspace.carry_out(opened.library_view)
        if view is not None and self.is_mounted:
            self._take(view, hidden_visible=not opened.blind)

    async def _read_view_again(self) -> None:
        await self._read_view()
        self._arrange(still=True)

    def queue_shown(self, read: QueueRead, *, asked: bool) -> None:
        """Show the queue; what it has told that was hidden is hidden no longer."""
        self._listing.narrow(read.trace_ids, in_order=read.in_order)
        if asked and read.wanted.name in TELLS_HIDDEN:
            self.mast.writes.do(self._read_view_again, HeldKeys.NOTHING)
        if asked:
            self.sort = Sort.QUEUE
            self.hints.clear()
        self._arrange()

    def _take(self, view: Mapping[str, LibraryEntry], *, hidden_visible: bool) -> None:
        """Make those rows anew of which the workspace tells something else than before."""
        before, self._view = self._view, view
        uncovers = hidden_visible != self._hidden_visible
        self._hidden_visible = hidden_visible
        traces = self.mast.catalog.traces
        changed = [
            row.trace_id
            for row in self._listing
            if view.get(row.trace_id) != before.get(row.trace_id)
            or (uncovers and row.trace_id in traces and tells_outcome(traces[row.trace_id]))
        ]
        self._list_anew(changed)

    def _list_anew(self, trace_ids: Collection[str]) -> None:
        """Make the rows of these traces; there are none of traces that are no more."""
        if not trace_ids:
            return
        catalog, listing, view = self.mast.catalog, self._listing, self._view
        name_of = names_under(self.mast.options.paths)
        listing.drop(trace_id for trace_id in trace_ids if trace_id not in catalog.traces)
        # A trace of which no span has been read is as good as false.
        found = [(one, catalog.traces[one]) for one in trace_ids if one in catalog.traces]
        listing.put(
            row_of(
                trace,
                name_of(trace),
                view.get(one),
                hidden_visible=self._hidden_visible,
                same_as=self._names_of_same(one, name_of),
            )
            for one, trace in found
        )

    def _names_of_same(self, trace_id: str, name_of: Callable[[Trace], str]) -> tuple[str, ...]:
        others = self._same_runs.get(trace_id, ())
        traces = self.mast.catalog.traces
        return tuple(name_of(traces[other]) for other in others if other in traces)

    def _arrange(self, *, still: bool = False) -> None:
        needle = self._filter.value
        rows = self._listing.arranged(needle, self.sort)
        ids = [row.trace_id for row in rows]
        read = self.queue.read
        mine = read.wanted.name is QueueName.MINE
        here = self.mast.open_trace_id if mine else None
        queue = self.mast.trace_queue
        queue.ids = going_on(queue.ids, ids, here, read.anew)
        self.table.show(rows, () if needle else self.mast.catalog.unreadable, still=still)
        self._show_heading()
        self._show_title()
        self._show_empty()
        self._show_about()

    @on(ColumnTable.ColumnsFitted)
    def _show_heading(self) -> None:
        self.query_one("#heading", Static).update(Content(self.table.heading()))

    def _show_title(self) -> None:
        app = self.mast
        if self.contents.shown:
            self.title_bar.show(("Contents", *self.contents.title()), self.who())
            return
        listed, every = len(self.table.rows), len(self._listing)
        count = f"{every} trace{'' if every == 1 else 's'}"
        shown = count if listed == every else f"{listed} of {count}"
        if self._listing.similar_only:
            shown += ", none exact"
        left = ["Library", shown]
        if app.catalog.unreadable:
            left.append(f"{len(app.catalog.unreadable):,} not read")
        read, known = self.queue.read, app.catalog
        if read.wanted.name is not QueueName.ALL:
            left.insert(1, read.wanted.words)
            if read.told:
                left.append(read.told)
            gone = sum(trace_id not in known.traces for trace_id in read.trace_ids or ())
            if gone and known.complete:
                left.append(f"{gone} not in these files")
        if app.catalog.checking:
            left.append("checking …")
        elif not app.catalog.complete:
            # Where there is no room for both, it tells more than how many are listed so far.
            left.insert(1, reading_words(app.catalog))
        if self.sort is not Sort.QUEUE:
            left.append(f"by {self.sort}")
        if n := len(app.catalog.troubles) - len(app.catalog.unreadable):
            left.append(f"{n} problem{'' if n == 1 else 's'}, see mast-tui inspect")
        self.title_bar.show(tuple(left), self.who())

    def still_reading(self, _words: str) -> None:
        """Tell how far the reading of a big document has come."""
        if self.is_mounted:
            self._show_title()
            self._show_empty()

    def workspace_failed(self) -> None:
        """Nobody will work here; the traces can be read."""
        self._show_title()

    def who(self) -> tuple[str, ...]:
        """Who works, how, and how far they have come."""
        done = (self.mast.trace_queue.finished_words(),)
        return (*super().who(), *(done if self.mast.opened is not None else ()))

    def _show_empty(self) -> None:
        contents, needle = self.contents, self._filter.value
        empty = not (contents.list.rows if contents.shown else self.table.rows)
        self.table.display = not empty and not contents.shown
        contents.list.display = not empty and contents.shown
        self.query_one("#heading").display = self.table.display
        self._about.display = not empty
        box = self.query_one("#empty")
        box.display = empty
        if not empty:
            return
        catalog = self.mast.catalog
        if contents.shown:
            words = contents.empty_words()
        elif needle and self._listing.matches_elsewhere:
            elsewhere = counted(self._listing.matches_elsewhere, "match", "matches")
            words = (
                f"No trace of this queue matches “{one_line(needle, 60)}”: {elsewhere} outside of "
                f"it.\n\n{self.mast.key_of('library.queue')} chooses another queue."
            )
        elif needle:
            words = (
                f"No trace matches “{one_line(needle, 60)}”.\n\n"
                f"{self.mast.key_of('everywhere.back')} shows all {len(self._listing)}."
            )
        elif self.queue.read.wanted.name is not QueueName.ALL and self._listing:
            words = empty_words(self.queue.read, self.mast.key_of)
        elif not catalog.complete:
            words = f"Looking for traces …\n\n{one_line(catalog.being_read)}".rstrip()
        else:
            places = ", ".join(one_line(str(path)) for path in self.mast.options.paths)
            first = islice(chain(catalog.troubles, catalog.skipped), MOST_LEFT_OUT)
            left_out = [one_line(item.text) for item in first]
            more = len(catalog.troubles) + len(catalog.skipped) - MOST_LEFT_OUT
            if more > 0:
                left_out.append(f"and {more} more; mast-tui inspect PATH names them all")
            words = "\n".join(
                [
                    f"No traces in {places}.",
                    "",
                    *left_out,
                    *([""] if left_out else []),
                    "Sessions of Codex and Claude Code, message lists, OpenTelemetry and other "
                    "tracing exports, benchmark trajectories, MAST-Data and logs are read; the "
                    "README lists them all.",
                    "",
                    "mast-tui without a path opens the sample traces.",
                ]
            )
        self.query_one("#empty-words", Static).update(Content(words))

    def _show_about(self) -> None:
        about = self._about
        if self.contents.shown:
            self._show_hit()
            return
        row = self.table.row
        trace = self.mast.catalog.traces.get(row.trace_id) if row else None
        trouble = self.table.trouble
        if trouble is not None:
            about.border_title = plain_title(trouble.path)
            about.border_subtitle = "not read"
            about.show_text(trouble.message)
            return
        if row is None or trace is None:
            about.show_text("")
            return
        about.border_title = plain_title(row.trace_id)
        about.border_subtitle = plain_title(trace.identity.reader)
        task = trace.meta.task.strip() if trace.meta.task else "No task is told in this trace."
        lines = [f"{p.place}: {p.message}" for p in trace.problems[:20]]
        modes = self.queue.read.modes.get(row.trace_id)
        if modes:
            codes = {mode.slug: f"{mode.code} {mode.name}" for mode in self.mast.taxonomy.modes}
            lines.insert(0, "On: " + ", ".join(codes.get(mode, mode) for mode in modes))
        if row.same_as:
            lines.insert(0, f"≡ The same run as {joined(row.same_as)}")
        about.show_text("\n".join([*lines, "", task] if lines else [task]))

    def _show_hit(self) -> None:
        about, row = self._about, self.contents.list.row
        if row is None:
            about.show_text("")
            return
        about.border_title = plain_title(f"{row.name} · #{row.hit.span + 1}")
        about.border_subtitle = plain_title(row.hit.place)
        about.show_text(row.hit.preview)

    def contents_changed(self) -> None:
        """Show what was found in the texts of the traces, or the traces again."""
        self._show_title()
        self._show_empty()
        self._show_about()

    @on(Input.Submitted, "#contents")
    def _contents_asked(self, event: Input.Submitted) -> None:
        event.stop()
        if event.value.strip():
            self.contents.start()
        else:
            self.action_back()

    @property
    def pane(self) -> LibraryList | HitList:
        """What lists traces now: the traces themselves, or what was found in them."""
        return self.contents.list if self.contents.shown else self.table

    @on(VirtualLines.Moved, "#traces, #hits")
    def _moved(self, event: VirtualLines.Moved) -> None:
        event.stop()
        self._show_about()
        self.hints.clear()

    @on(VirtualLines.Chosen, "#traces, #hits")
    def _chosen(self, event: VirtualLines.Chosen) -> None:
        event.stop()
        self.action_open()

    def action_open(self) -> None:
        """Open the trace under the cursor."""
        if self.contents.shown:
            self.contents.open_hit()
            return
        row = self.table.row
        if row is not None:
            self.mast.go(ShowTrace(self.mast.catalog.traces[row.trace_id]))
        elif self.table.trouble is not None:
            self.hints.say("This file could not be read; the reason stands below")

    def action_filter(self) -> None:
        """Show only traces that match."""
        self.contents.leave()
        self._filter.display = True
        self.set_focus(self._filter)
        key = key_while_typing("library.contents", self.mast.keys_set)
        switch = f" · {key} in contents" if key else ""
        back = key_while_typing("everywhere.back", self.mast.keys_set)
        leave = f" · {back} shows all" if back else ""
        self.hints.prompt(f"In names · Enter keeps{switch}{leave}")

    def action_contents(self) -> None:
        """Find text in all traces; from the line where that is typed go to that for names."""
        names = self._filter
        if self.contents.line.has_focus:
            typed = self.contents.line.value
            self.action_filter()
            names.value = typed or names.value
            return
        if names.has_focus:
            self.contents.line.value = names.value
            names.value = ""
            names.display = False
        self.contents.open()

    @on(Input.Changed, "#filter")
    def _filtered(self, event: Input.Changed) -> None:
        event.stop()
        self._arrange()

    @on(Input.Submitted, "#filter")
    def _filter_kept(self, event: Input.Submitted) -> None:
        event.stop()
        self._filter.display = bool(self._filter.value)
        self.set_focus(self.table)
        self.hints.clear()

    def action_back(self) -> None:
        """Leave a search of contents; then show all traces again."""
        if not self._leave_a_search():
            key_of = self.mast.key_of
            self.hints.say(
                f"{key_of('everywhere.close')} quits · {key_of('everywhere.help')} shows all keys"
            )

    def _leave_a_search(self) -> bool:
        line = self._filter
        if self.contents.leave():
            self.set_focus(self.table)
            self.hints.clear()
        elif line.value or line.display:
            line.value = ""
            line.display = False
            self.set_focus(self.table)
            self.hints.clear()
            self._arrange()
        else:
            return False
        return True

    def action_close(self) -> None:
        """Leave what is searched for; where all traces are shown, ask whether to quit."""
        if self._leave_a_search():
            return

        def answered(answer: str | None) -> None:
            if answer == "q":
                self.mast.leave()

        self.mast.ask_key(
            "Quit mast_tui?",
            "Everything is saved already.",
            (("q", "quit"), ("n", "go on")),
            answered,
            default="q",
        )

    def queue_changed(self) -> None:
        """Read the queue anew: what is to do has changed."""
        self.queue.changed()

    def begin_anew(self) -> None:
        """Begin with what is to do: a study was set up."""
        self.queue.begin_anew()

    def action_queue(self) -> None:
        """Choose another queue."""
        self.queue.choose()

    def action_sort(self) -> None:
        """Sort by the next column."""
        self.sort = self.sort.following()
        self._arrange()
        self.hints.say(f"Sorted by {self.sort}")

    def action_compare(self) -> None:
        """Choose a run to stand beside the one under the cursor; those of its task come first."""
        row = None if self.contents.shown else self.table.row
        traces = self.mast.catalog.traces
        others = {one.trace_id: one for one in self._listing if one.trace_id in traces}
        if row is None or others.pop(row.trace_id, None) is None or not others:
            self.hints.say("There is no other run to compare it with", error=True)
            return
        task = traces[row.trace_id].summary.task

        def unlikely(one: LibraryRow) -> tuple[bool, bool, str]:
            is_other_task = not task or traces[one.trace_id].summary.task != task
            return is_other_task, one.outcome == row.outcome, one.natural

        choices = [
            FinderChoice(
                one.trace_id, one.outcome, one.name, traces[one.trace_id].summary.task or ""
            )
            for one in sorted(others.values(), key=unlikely)
        ]

        def chosen(trace_id: str | None) -> None:
            if trace_id is not None:
                pair = (row, others[trace_id])
                names = [f"{one.name} · {one.outcome}" if one.outcome else one.name for one in pair]
                a, b = (traces[one.trace_id] for one in pair)
                self.mast.go(ShowSideBySide(a, b, (names[0], names[1])))

        title = f"{row.name} beside …"
        self.mast.ask(
            FinderDialog(title, choices, placeholder="a name, an outcome, a task"), chosen
        )

    def action_judge(self) -> None:
        """Run a judge on the listed traces; ask to cancel one that is at work."""
        known = self.mast.catalog.traces
        traces = OneByOne([known[row.trace_id] for row in self.table.rows])
        hints = self.hints
        if not traces:
            hints.say("No traces are listed", error=True)
            return
        self.mast.judge_traces(traces)

    def judged(self, message: JudgeProgress) -> None:
        """Say how the judge has ended, and count anew what waits."""
        message.tell(self.hints)
        if message.done:
            self._labels_changed()

    def written_elsewhere(self) -> None:
        """Another window or program has written to the workspace: count anew."""
        if self.is_current and len([*self.walk_children()]) == self._whole:
            self._labels_changed()  # else it is just coming or going

    def action_undo(self) -> None:
        """Undo belongs to an open trace."""
        key_of = self.mast.key_of
        self.hints.say(
            f"Undo works on an open trace: {key_of('library.open')} opens it, "
            f"{key_of('everywhere.undo')} takes back"
        )

    def go_to_place(self, text: str) -> bool:
        """Go to a trace by its number in the list, its id or its file name."""
        wanted = text.strip().removeprefix("#")
        if self.contents.shown:
            self.contents.leave()
            self.set_focus(self.table)
        for place, row in enumerate(self.table.rows):
            if wanted in (str(place + 1), row.trace_id, row.name):
                self.table.move_to(place)
                return True
        return False
