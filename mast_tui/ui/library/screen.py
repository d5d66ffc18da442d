"""The library: the list of all traces, with the annotator's progress on each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from mast_tui.safe_text import one_line
from mast_tui.traces.same_runs import same_runs
from mast_tui.ui.actions.registry import Where, hint_while_typing
from mast_tui.ui.actions.tables import moves
from mast_tui.ui.base_screen import MainScreen
from mast_tui.ui.context import JudgeProgress, RunsToWrite, ShowSideBySide, ShowTrace
from mast_tui.ui.dialogs.finder import FinderChoice, FinderDialog
from mast_tui.ui.library.contents import Contents, HitList
from mast_tui.ui.library.queues import (
    REVEALING_QUEUES,
    CurrentQueue,
    QueueName,
    QueueTraces,
    continued_queue,
    empty_queue_text,
)
from mast_tui.ui.library.trace_list import (
    LibraryList,
    LibraryRow,
    Sort,
    TraceListing,
    row_of,
    tells_outcome,
)
from mast_tui.ui.services.trace_catalog import Catalog, OneByOne
from mast_tui.ui.styles import LIBRARY
from mast_tui.ui.trace_view.span_view import SpanView
from mast_tui.ui.widgets.bars import TextLine
from mast_tui.ui.widgets.virtual_lines import VirtualLines
from mast_tui.ui.wording import counted, joined_names, names_under, plain_title
from mast_tui.writes import HeldKeys

if TYPE_CHECKING:
    from mast_tui.session import LibraryEntry
    from mast_tui.traces.model import Trace


def reading_progress(catalog: Catalog) -> str:
    """Return the progress of reading the files."""
    if catalog.being_read:
        return catalog.being_read
    if not catalog.total:
        return "reading …"
    return f"reading {catalog.looked_at:,} of {catalog.total:,} …"


FILTER_HINT: Final = "a name, task or model; unread; with suggestions; failed …"
"""The hint in the empty filter."""

MOST_PROBLEMS: Final = 5
"""The most files without a trace that the empty library names."""

MOST_TRACE_PROBLEMS: Final = 20
"""The most problems of one trace that are shown."""

ROW_ACTIONS: Final = frozenset(
    ("library.open", "library.compare", *(action.id for action in moves(Where.LIBRARY)))
)
"""The actions on the row under the cursor."""


ACTIONS_ON_THE_LIST: Final = ("sort", "queue", "compare")
"""The names of actions that have no effect while search hits are listed."""

NEXT_STEPS: Final[Mapping[str, str]] = {
    name: name for name in ("open", "filter", "queue", "agreement", "adjudicate", "export")
}
"""The texts of the first hints once the annotator has finished a trace, by action."""


class LibraryScreen(MainScreen):
    """The list of traces.

    The listed rows are the queue of the annotate screen.
    """

    CSS_PATH = LIBRARY
    AUTO_FOCUS = "LibraryList"
    where = Where.LIBRARY
    keys_left_out = ("back",)

    def __init__(self) -> None:
        super().__init__()
        self.sort = Sort.QUEUE
        self.queue = CurrentQueue(self)
        self.contents = Contents(self)
        self._filter = TextLine(placeholder=FILTER_HINT, id="filter")
        self._about_pane = SpanView(id="about")
        self._listing = TraceListing()
        self._entry_by_trace: Mapping[str, LibraryEntry] = {}
        self._outcomes_visible = False
        self._shown_change_count = 0
        """The number of changes of the catalog that the rows show."""
        self._same_runs: Mapping[str, tuple[str, ...]] = {}
        """The ids of equal runs, by trace id."""
        self._compared_change_count = 0
        """The number of changes of the catalog at the last comparison of runs."""
        self._opens_first = False
        """Whether the first trace opens once the queue is known."""

    _widget_count = -1
    """The number of widgets of the complete screen. It differs while the screen opens or closes."""

    def compose(self) -> ComposeResult:
        """Yield the table, the facts of the trace under the cursor, and the input lines."""
        yield self.title_bar
        table = LibraryList(id="traces")
        yield table.heading_line
        yield table
        yield self.contents.list
        with Vertical(id="empty"):
            yield Static(id="empty-words", markup=False)
        yield self._about_pane
        yield self._filter
        yield self.contents.line
        yield self.hints

    def on_mount(self) -> None:
        """List the traces that were found so far."""
        self._widget_count = len([*self.walk_children()])
        for widget in (self._filter, self.contents.line, self.contents.list):
            widget.display = False
        self._about_pane.can_focus = False
        self.sort = Sort(self.mast.trace_queue.sort or Sort.QUEUE)
        self.refresh_rows()
        self.mast.workspace.when_ready(lambda _: self._labels_changed())

    def on_screen_resume(self) -> None:
        """Go to the trace that was left, and read labels and facts of traces again."""
        queue = self.mast.trace_queue
        if queue.left_trace_id is not None:
            self.table.go_to(queue.left_trace_id)
            queue.left_trace_id = None
        self.mast.catalog.learn()
        self._labels_changed()

    def leave_for_a_while(self) -> None:
        """Keep the order and the trace under the cursor for the library of another annotator.

        In a study, each annotator begins at the first trace of their own order.
        """
        queue = self.mast.trace_queue
        if queue.of_study:
            return
        queue.sort = self.sort
        if queue.left_trace_id is None and self.table.row is not None:
            queue.left_trace_id = self.table.row.trace_id

    @property
    def table(self) -> LibraryList:
        """The traces."""
        return self.query_one(LibraryList)

    @property
    def has_all_content(self) -> bool:
        """True if no key has to wait."""
        lists_traces = bool(self.table.row_count) or self.mast.catalog.complete
        return lists_traces and not self._opens_first

    def awaits_content(self, action: str | None) -> bool:
        """Return whether an action has to wait.

        Actions on a row wait for the first trace. All keys but the one that cancels wait for a
        trace that is about to open, because they may be for that trace.
        """
        if self._opens_first:
            return action != "everywhere.back"
        return action in ROW_ACTIONS and not self.has_all_content

    def refresh_rows(self) -> None:
        """Update the rows of changed traces.

        Once all files are read, find equal runs in a worker.
        """
        if self._widget_count < 0 or not self.query(LibraryList):
            return  # the screen is being opened, or is being closed and has lost its list
        catalog = self.mast.catalog
        changed_ids = dict.fromkeys(catalog.changes[self._shown_change_count :])
        self._shown_change_count = len(catalog.changes)
        self._update_rows(changed_ids)
        self._show_matching_rows(keeps_position=True)
        self.contents.list_further_hits()
        if catalog.complete and self._compared_change_count != len(catalog.changes):
            self._compared_change_count = len(catalog.changes)
            traces = list(catalog.traces.values())
            self.work.run("same-runs", lambda: same_runs(traces), self._update_same_runs)

    def _update_same_runs(self, same_runs_by_id: Mapping[str, tuple[str, ...]]) -> None:
        """Update the rows of traces that are equal to other runs, or no longer are.

        Args:
            same_runs_by_id: The ids of the other traces of a run, by trace id.
        """
        previous_same_runs = self._same_runs
        self._same_runs = same_runs_by_id
        changed_ids = [
            trace_id
            for trace_id in (previous_same_runs.keys() | same_runs_by_id)
            if previous_same_runs.get(trace_id) != same_runs_by_id.get(trace_id)
        ]
        if changed_ids:
            self._update_rows(changed_ids)
            self._show_matching_rows(keeps_position=True)

    def _labels_changed(self) -> None:
        """Read the progress of all annotators again in the background, because a server may be
        slow.
        """
        self.mast.writes.do(self._read_labels, HeldKeys.NOTHING)

    async def _read_labels(self) -> None:
        await self._read_view()
        await self.mast.trace_queue.count_finished()
        self.refresh_rows()
        self.queue.read_again()

    async def _read_view(self) -> None:
        opened = self.mast.opened
        if opened is None or not self.is_mounted:
            return
        entry_by_trace = await self.mast.workspace.carry_out(opened.library_view)
        if entry_by_trace is not None and self.is_mounted:
            self._update_entries(entry_by_trace, outcomes_visible=not opened.blind)

    async def _read_view_and_arrange(self) -> None:
        await self._read_view()
        self._show_matching_rows(keeps_position=True)

    def show_queue(self, traces: QueueTraces, *, is_chosen: bool) -> None:
        """Show a queue, and the facts that were hidden until it was opened.

        Args:
            traces: The traces of the queue.
            is_chosen: Whether the user has just chosen the queue.
        """
        self._listing.narrow(traces.trace_ids, keeps_order=traces.keeps_order)
        if is_chosen and traces.request.name in REVEALING_QUEUES:
            # The queue is shown at once, and the facts follow in the background.
            self.mast.writes.do(self._read_view_and_arrange, HeldKeys.NOTHING)
        if is_chosen:
            self.sort = Sort.QUEUE
            self.hints.clear()
        self._show_matching_rows(keeps_position=not is_chosen)

    def _update_entries(
        self, entry_by_trace: Mapping[str, LibraryEntry], *, outcomes_visible: bool
    ) -> None:
        """Replace the annotator's entries, and update the rows that may have changed.

        ``outcomes_visible`` is for traces without an entry.
        """
        previous_entries = self._entry_by_trace
        self._entry_by_trace = entry_by_trace
        visibility_changed = outcomes_visible != self._outcomes_visible
        self._outcomes_visible = outcomes_visible
        traces = self.mast.catalog.traces

        def may_have_changed(trace_id: str) -> bool:
            if entry_by_trace.get(trace_id) != previous_entries.get(trace_id):
                return True
            return visibility_changed and trace_id in traces and tells_outcome(traces[trace_id])

        self._update_rows([row.trace_id for row in self._listing if may_have_changed(row.trace_id)])

    def _update_rows(self, trace_ids: Collection[str]) -> None:
        """Make the rows of some traces again, and remove the rows of missing traces."""
        if not trace_ids:
            return
        traces = self.mast.catalog.traces
        name_of = names_under(self.mast.options.paths)
        self._listing.drop(trace_id for trace_id in trace_ids if trace_id not in traces)
        self._listing.put(
            row_of(
                traces[trace_id],
                name_of(traces[trace_id]),
                self._entry_by_trace.get(trace_id),
                outcomes_visible=self._outcomes_visible,
                same_as=self._same_run_names(trace_id, name_of),
            )
            for trace_id in trace_ids
            if trace_id in traces
        )

    def _same_run_names(self, trace_id: str, name_of: Callable[[Trace], str]) -> tuple[str, ...]:
        """Return the names of the traces that are the same run as a trace."""
        same_run_ids = self._same_runs.get(trace_id, ())
        traces = self.mast.catalog.traces
        return tuple(
            name_of(traces[same_run_id]) for same_run_id in same_run_ids if same_run_id in traces
        )

    def _show_matching_rows(self, *, keeps_position: bool = False) -> None:
        """Filter, sort and show the rows, and pass their order to the queue of the annotate screen.

        A filter also hides the unreadable files.

        Args:
            keeps_position: True if the rows on screen keep their position.
        """
        needle = self._filter.value
        rows = self._listing.arranged(needle, self.sort)
        trace_ids = [row.trace_id for row in rows]
        queue = self.mast.trace_queue
        queue.filter_text = needle
        queue.ids = continued_queue(
            queue.ids, trace_ids, self.mast.open_trace_id, self.queue.traces.retests
        )
        self.table.show(
            rows, () if needle else self.mast.catalog.unreadable, keeps_position=keeps_position
        )
        self.show_listed()
        self._open_awaited()

    def _show_title(self) -> None:
        """Show the queue, the number of traces, the progress of reading and problems, and hints."""
        if self.contents.lists_hits:
            parts = ("Text search", *self.contents.title_parts())
            self.hints.leave_out(ACTIONS_ON_THE_LIST, first={"open": "open", "back": "all traces"})
        else:
            parts = ("Library", *self._list_title_parts())
            # A judge shows nothing to a blind annotator.
            is_blind = self.mast.opened is not None and self.mast.opened.blind
            self.hints.leave_out(
                (*self.keys_left_out, *(["judge"] if is_blind else [])),
                first=NEXT_STEPS if self.mast.trace_queue.has_finished else {},
            )
        self.title_bar.show(parts, self.right_title_parts())

    def _list_title_parts(self) -> Iterator[str]:
        """Yield the parts of the title of the list of traces."""
        catalog = self.mast.catalog
        queue = self.queue.traces
        shows_queue = queue.request.name is not QueueName.ALL
        if not catalog.complete and not catalog.checking:
            # On a narrow screen the progress is more useful than the number of traces.
            yield reading_progress(catalog)
        if shows_queue:
            yield queue.request.title
        yield self._count_text()
        if self._filter.value and not self._filter.has_focus:
            back_key = self.mast.key_of("everywhere.back")
            yield f"filter “{one_line(self._filter.value, 20)}”, {back_key} removes it"
        if catalog.unreadable:
            yield f"{counted(len(catalog.unreadable), 'file')} not read"
        if catalog.skipped and not self.mast.options.samples:
            yield f"{counted(len(catalog.skipped), 'file')} skipped"
        if shows_queue and queue.precision_text:
            yield queue.precision_text
        missing_count = sum(trace_id not in catalog.traces for trace_id in queue.trace_ids or ())
        if missing_count and catalog.complete:
            yield f"{counted(missing_count, 'trace')} not in these files"
        if catalog.checking:
            yield "checking …"
        if self.sort is not Sort.QUEUE:
            yield f"by {self.sort}"
        problem_count = len(catalog.troubles) - len(catalog.unreadable)
        problem_count += sum(row.problems for row in self._listing)
        if problem_count:
            yield f"{counted(problem_count, 'problem')}, see mast-tui inspect"

    def _count_text(self) -> str:
        """Return the number of listed traces, and of all traces if that is larger."""
        listed_count = len(self.table.rows)
        total = len(self._listing)
        count_text = counted(total, "sample trace" if self.mast.options.samples else "trace")
        if listed_count != total:
            count_text = f"{listed_count} of {count_text}"
        return f"{count_text}, no exact match" if self._listing.similar_only else count_text

    def still_reading(self, _progress: str) -> None:
        """Show the progress of reading a big document."""
        if self.is_mounted:
            self._show_title()
            self._show_list_or_reason()

    def workspace_failed(self) -> None:
        """Show that there is no workspace. Traces can be read without one."""
        self._show_title()
        self._open_awaited()

    def right_title_parts(self) -> tuple[str, ...]:
        """Return the annotator, the role, and the number of finished traces."""
        if self.mast.opened is None:
            return super().right_title_parts()
        return (*super().right_title_parts(), *self.mast.trace_queue.finished_parts())

    def _show_list_or_reason(self) -> None:
        """Show the list of traces or of search hits, or the reason why it is empty."""
        contents = self.contents
        is_empty = not (contents.list.rows if contents.lists_hits else self.table.rows)
        self.table.display = not is_empty and not contents.lists_hits
        contents.list.display = not is_empty and contents.lists_hits
        self.table.heading_line.display = self.table.display
        self._about_pane.display = not is_empty
        self.query_one("#empty").display = is_empty
        if is_empty:
            self.query_one("#empty-words", Static).update(Content(self._empty_text()))

    def _empty_text(self) -> str:
        """Return why nothing is listed, and what to do."""
        needle = one_line(self._filter.value, 60)
        if self.contents.lists_hits:
            return self.contents.empty_text()
        if needle and self._listing.matches_elsewhere:
            matches = counted(self._listing.matches_elsewhere, "match", "matches")
            return (
                f"No trace of this queue matches “{needle}”: {matches} outside of it.\n\n"
                f"{self.mast.key_of('library.queue')} chooses another queue."
            )
        if needle:
            back = self.mast.key_of("everywhere.back")
            return f"No trace matches “{needle}”.\n\n{back} removes the filter."
        if self.queue.traces.request.name is not QueueName.ALL and self._listing:
            return empty_queue_text(self.queue.traces, self.mast.key_of)
        catalog = self.mast.catalog
        if not catalog.complete:
            return f"Looking for traces …\n\n{one_line(catalog.being_read)}".rstrip()
        return self._no_traces_text()

    def _no_traces_text(self) -> str:
        """Return a text about missing traces, with the first problems and the readable formats."""
        catalog = self.mast.catalog
        paths = ", ".join(one_line(str(path)) for path in self.mast.options.paths)
        first_problems = islice(chain(catalog.troubles, catalog.skipped), MOST_PROBLEMS)
        problem_lines = [one_line(problem.text) for problem in first_problems]
        further_count = len(catalog.troubles) + len(catalog.skipped) - MOST_PROBLEMS
        if further_count > 0:
            problem_lines.append(f"and {further_count} more; mast-tui inspect PATH names them all")
        if problem_lines:
            problem_lines.append("")
        return "\n".join(
            [
                f"No traces in {paths}.",
                "",
                *problem_lines,
                "mast-tui reads sessions of Codex and Claude Code, message lists, OpenTelemetry "
                "and other tracing exports, benchmark trajectories, MAST-Data and logs; the "
                "README lists them all.",
                "",
                "mast-tui without a path opens the sample traces.",
            ]
        )

    def _show_about(self) -> None:
        """Show the facts of the trace, unreadable file or search hit under the cursor."""
        hit_row = self.contents.list.row if self.contents.lists_hits else None
        row = None if self.contents.lists_hits else self.table.row
        unreadable_file = None if self.contents.lists_hits else self.table.trouble
        trace = None if row is None else self.mast.catalog.traces.get(row.trace_id)
        if hit_row is not None:
            title = f"{hit_row.name} · #{hit_row.hit.span + 1}"
            self._describe(title, hit_row.hit.place, hit_row.hit.preview)
        elif unreadable_file is not None:
            self._describe(unreadable_file.path, "not read", unreadable_file.message)
        elif row is not None and trace is not None:
            title = f"{row.name} · {row.trace_id}"
            # The filter also finds what the list does not show, or not in a narrow window.
            names = dict.fromkeys((trace.format, row.system, row.benchmark, row.task_id))
            self._describe(title, " · ".join(filter(None, names)), self._facts_text(row, trace))
        else:
            self._about_pane.show_text("")

    def _describe(self, title: str, subtitle: str, text: str) -> None:
        self._about_pane.show_titles(plain_title(title), plain_title(subtitle))
        self._about_pane.show_text(text)

    def _facts_text(self, row: LibraryRow, trace: Trace) -> str:
        """Return why a trace is in the queue, its equal runs, its problems and its task."""
        task = trace.meta.task.strip() if trace.meta.task else "This trace has no task."
        problems = trace.problems[:MOST_TRACE_PROBLEMS]
        lines = [f"{problem.place}: {problem.message}" for problem in problems]
        queued_modes = self.queue.traces.modes.get(row.trace_id)  # why the trace is in the queue
        if queued_modes:
            titles = {mode.slug: f"{mode.code} {mode.name}" for mode in self.mast.taxonomy.modes}
            lines.insert(
                0,
                "In this queue for: " + ", ".join(titles.get(slug, slug) for slug in queued_modes),
            )
        if row.same_as:
            lines.insert(0, f"≡ The same run as {joined_names(row.same_as)}")
        return "\n".join([*lines, "", task] if lines else [task])

    def show_listed(self) -> None:
        """Show the listed traces or search hits, with the title and the row under the cursor."""
        self._show_title()
        self._show_list_or_reason()
        self._show_about()

    @on(Input.Submitted, "#contents")
    def _contents_submitted(self, event: Input.Submitted) -> None:
        """Search the contents of all traces, or leave the search if the line is empty."""
        if event.value.strip():
            self.contents.start()
        else:
            self.action_back()

    @property
    def pane(self) -> LibraryList | HitList:
        """The list on screen: the traces or the hits."""
        return self.contents.list if self.contents.lists_hits else self.table

    @on(VirtualLines.Moved, "#traces, #hits")
    def _row_moved(self) -> None:
        self._show_about()
        self.hints.clear()

    @on(VirtualLines.Chosen, "#traces, #hits")
    def action_open(self) -> None:
        """Open the trace or search hit under the cursor, or show a hint for an unreadable file.

        The first trace opens once the queue is known, because the queue may begin with another.
        """
        if self.contents.lists_hits:
            self.contents.open_hit()
            return
        row = self.table.row
        if row is not None and not self.table.cursor and not self.queue.is_ready:
            self._opens_first = True
            back = self.mast.key_of("everywhere.back")
            self.hints.say(f"Still loading; then the first of the queue opens · {back} cancels")
        elif row is not None:
            self.mast.go(ShowTrace(self.mast.catalog.traces[row.trace_id]))
        elif self.table.trouble is not None:
            self.hints.say("This file could not be read; see the reason below")

    def _open_awaited(self) -> None:
        """Open the first trace if that was asked for, and deliver the keys that wait for it."""
        if self._opens_first and self.queue.is_ready:
            self._opens_first = False
            self.hints.clear()
            self.action_open()
            self.mast.input_queue.resume()

    def on_screen_suspend(self) -> None:
        """Open no trace below a dialog that has opened meanwhile, and drop the keys for it."""
        if not isinstance(self.app.screen, ModalScreen):
            self.queue.forget_sizes()
        if self._opens_first:
            self.mast.input_queue.resume()
            self._opens_first = False

    def action_filter(self) -> None:
        """Open the filter of names."""
        self.contents.leave()
        self._filter.display = True
        self.set_focus(self._filter)
        keymap = self.mast.keys_set
        contents_hint = hint_while_typing("library.other_search", "finds text", keymap)
        back_hint = hint_while_typing("everywhere.back", "shows all", keymap)
        self.hints.prompt(f"Name, task or model · Enter keeps{contents_hint}{back_hint}")

    def action_contents(self) -> None:
        """Switch between the filter of names and the search of contents, keeping the typed text.

        If neither is open, open the search.
        """
        name_filter = self._filter
        if self.contents.line.has_focus:
            text = self.contents.line.value
            self.action_filter()
            name_filter.value = text or name_filter.value
            return
        if name_filter.has_focus:
            self.contents.line.value = name_filter.value
            name_filter.value = ""
            name_filter.display = False
        self.contents.open()

    @on(Input.Changed, "#filter")
    def _filter_changed(self) -> None:
        self._show_matching_rows()

    @on(Input.Submitted, "#filter")
    def _filter_submitted(self) -> None:
        self._filter.display = bool(self._filter.value)
        self.set_focus(self.table)
        self.hints.clear()
        self._show_title()

    def action_back(self) -> None:
        """Drop the awaited trace, leave the contents or the filter, or show how to quit."""
        if self._opens_first:
            self._opens_first = False
        elif not self._leave_search():
            key_of = self.mast.key_of
            self.hints.say(
                f"{key_of('everywhere.leave')} quits · {key_of('everywhere.help')} shows all keys"
            )

    def _leave_search(self) -> bool:
        """Close the search of contents, or else the filter.

        Return False if neither is open.
        """
        name_filter = self._filter
        if self.contents.leave():
            self.set_focus(self.table)
            self.hints.clear()
        elif name_filter.value or name_filter.display:
            row = self.table.row
            name_filter.value = ""
            name_filter.display = False
            self.set_focus(self.table)
            self.hints.clear()
            self._show_matching_rows()
            if row in self.table.rows:
                self.table.move_to(self.table.rows.index(row))
        else:
            return False
        return True

    def action_close(self) -> None:
        """Leave a search, or ask whether to quit."""
        if self._leave_search():
            return

        self.mast.ask_key(
            "Quit mast_tui?",
            "Everything is saved already.",
            (("q", "quit"), ("n", "stay")),
            {"q": self.mast.leave},
            default="q",
        )

    def queue_changed(self) -> None:
        """Read the queue again, because something was finished."""
        self.queue.changed()

    def reset_queue(self) -> None:
        """Show the initial queue, because a study was set up."""
        self.queue.restart()

    def action_queue(self) -> None:
        """Choose another queue."""
        if not self._refuse_for_hits():
            self.queue.choose()

    def _refuse_for_hits(self) -> bool:
        """Show, while search hits are listed, that a key acts on the list of traces only."""
        if self.contents.lists_hits:
            back = self.mast.key_of("everywhere.back")
            self.hints.say(f"This key acts on the list of traces: {back} shows it")
        return self.contents.lists_hits

    def action_text(self, delta: int) -> None:
        """Scroll the facts of the trace by a screen."""
        self._about_pane.move_page(delta)

    def action_sort(self) -> None:
        """Sort by the next order of `Sort` that sorts something."""
        if self._refuse_for_hits():
            return
        self.sort = self.sort.following()
        while self.sort is not Sort.QUEUE and not self._listing.differ_by(self.sort):
            self.sort = self.sort.following()
        self._show_matching_rows()
        self.hints.say(f"Sorted by {self.sort}")

    def action_compare(self) -> None:
        """Ask for a run to show beside the run under the cursor.

        Runs of the same task come first, and among them runs with another outcome.
        """
        if self._refuse_for_hits():
            return
        row = self.table.row
        traces = self.mast.catalog.traces
        candidates = {
            candidate.trace_id: candidate
            for candidate in self._listing
            if candidate.trace_id in traces
        }
        if row is None or candidates.pop(row.trace_id, None) is None or not candidates:
            self.hints.say("There is no other run to compare this run with", error=True)
            return

        def run_chosen(trace_id: str) -> None:
            names = (_name_and_outcome(row), _name_and_outcome(candidates[trace_id]))
            self.mast.go(ShowSideBySide(traces[row.trace_id], traces[trace_id], names))

        self.mast.ask(_choice_of_other_run(row, candidates.values(), traces), run_chosen)

    def report_to_write(self) -> RunsToWrite:
        """Return the run under the cursor and all listed runs."""
        traces = self.mast.catalog.traces
        row = None if self.contents.lists_hits else self.table.row
        run = None if row is None else traces.get(row.trace_id)
        return RunsToWrite(run, self._listed_traces)

    @property
    def _listed_traces(self) -> list[Trace]:
        """The traces on screen, or those with a search hit."""
        traces = self.mast.catalog.traces
        rows = self.contents.list.rows if self.contents.lists_hits else self.table.rows
        ids = dict.fromkeys(row.trace_id for row in rows)
        return [traces[trace_id] for trace_id in ids if trace_id in traces]

    def action_judge(self) -> None:
        """Run a judge on the listed traces; if one is at work, offer to cancel it."""
        traces = OneByOne(self._listed_traces)
        if traces:
            self.mast.judge_traces(traces)
        else:
            self.hints.say("No traces are listed", error=True)

    def show_judge_progress(self, message: JudgeProgress) -> None:
        """Show the result of the judge, and read the labels again."""
        message.show_in(self.hints)
        if message.done:
            self.queue.forget_sizes()
            self._labels_changed()

    def show_changes_of_others(self) -> None:
        """Read the labels again, because another window or program has written."""
        # With another number of widgets, the screen is being opened or closed.
        if self.is_current and len([*self.walk_children()]) == self._widget_count:
            self.queue.forget_sizes()
            self._labels_changed()

    def action_undo(self) -> None:
        """Show that undo works on an open trace."""
        key_of = self.mast.key_of
        self.hints.say(
            f"Undo works on an open trace: {key_of('library.open')} opens it, "
            f"{key_of('everywhere.undo')} undoes"
        )

    def go_to_place(self, text: str) -> bool:
        """Move to a trace by its number in the list, its id, or its name or a part of the name.

        Listed hits are replaced by the traces. Return False for an unknown trace.
        """
        target = text.strip().removeprefix("#")
        if self.contents.lists_hits:
            self.contents.leave()
            self.set_focus(self.table)
        rows = self.table.rows
        positions = [
            position
            for position, row in enumerate(rows)
            if target in (str(position + 1), row.trace_id, row.name)
        ] or [
            position
            for position, row in enumerate(rows)
            if target.casefold() in row.name.casefold()
        ]
        if not positions:
            return False
        self.table.move_to(positions[0])
        if len(positions) > 1:
            key = self.mast.key_of("library.filter")
            count = counted(len(positions), "trace")
            self.hints.say(f"The first of {count} with “{one_line(target)}” · {key} filters them")
        return True


def _choice_of_other_run(
    row: LibraryRow, candidates: Iterable[LibraryRow], traces: Mapping[str, Trace]
) -> FinderDialog:
    """Return the dialog that offers the runs to show beside a run.

    Runs of the same task come first, and among them runs with another outcome.
    """
    task = traces[row.trace_id].summary.task

    def sort_key(candidate: LibraryRow) -> tuple[bool, bool, str]:
        is_other_task = not task or traces[candidate.trace_id].summary.task != task
        return (is_other_task, candidate.outcome == row.outcome, candidate.natural)

    choices = [
        FinderChoice(
            candidate.trace_id,
            candidate.outcome,
            candidate.name,
            traces[candidate.trace_id].summary.task or "",
        )
        for candidate in sorted(candidates, key=sort_key)
    ]
    return FinderDialog(f"{row.name} beside …", choices, placeholder="a name, an outcome, a task")


def _name_and_outcome(row: LibraryRow) -> str:
    return f"{row.name} · {row.outcome}" if row.outcome else row.name
