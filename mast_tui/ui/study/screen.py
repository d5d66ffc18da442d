"""The study screen: the protocol, the progress of each annotator, and changes of the study."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Final

from msgspec.structs import replace

from mast_tui.adjudication import SpanOrders, conflicts_by_trace
from mast_tui.columns import ColumnWidth, TableColumn
from mast_tui.labels import checked_person
from mast_tui.safe_text import one_line
from mast_tui.session import (
    LOST_RETEST_NOTE,
    StudyProgress,
    annotator_counts_text,
    progress,
    register_opened_trace,
    sample_texts,
    set_study,
    with_annotator,
    with_released_traces,
    with_traces,
    without_annotator,
)
from mast_tui.study import Study, annotators_of, overlap_traces
from mast_tui.traces.model import Trace
from mast_tui.ui.actions.registry import Where
from mast_tui.ui.base_screen import Stopped
from mast_tui.ui.dialogs.dialog import NoteScreen
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.study.setup import (
    PlannedStudy,
    StudySetup,
    TraceSelection,
    assignment_text,
    trace_selections,
)
from mast_tui.ui.styles import BASE_SCREEN, RUNS, STUDY
from mast_tui.ui.table_screen import TableScreen
from mast_tui.ui.widgets.virtual_lines import ANY_FILLED, name_width, sign_column
from mast_tui.ui.wording import counted, joined_names
from mast_tui.workspace import Workspace
from mast_tui.writes import piece_of_work

BAR_CELLS: Final = 24


@dataclass(frozen=True, slots=True)
class Overlap:
    """The progress on the traces that several annotators label.

    Attributes:
        traces: The number of traces.
        finished: The number of traces that all of their annotators have finished.
        begun: The number of traces that some of their annotators have finished.
    """

    traces: int
    finished: int
    begun: int


@dataclass(frozen=True, slots=True)
class StudyView:
    """A study and its progress, as far as the annotator may know it.

    Attributes:
        study: The study.
        progress: The progress of each annotator.
        overlap: The progress on the traces with several annotators.
        is_for_annotator: Whether the reader is an annotator of the study, who sees neither the
            retests of others nor the open conflicts.
        conflicts: The number of open conflicts; None if it is hidden or not counted yet.
    """

    study: Study
    progress: Sequence[StudyProgress]
    overlap: Overlap
    is_for_annotator: bool
    conflicts: int | None


def study_view(
    opened: OpenWorkspace, open_traces: Sequence[Trace] = (), *, count_conflicts: bool = True
) -> StudyView | None:
    """Read the study with the open taxonomy. This is slow, so call it in a worker.

    Args:
        opened: The open workspace.
        open_traces: The traces of the library.
        count_conflicts: Whether to count open conflicts, which may read files of traces.

    Returns:
        The study, or None without one.

    Raises:
        WorkspaceError: The workspace cannot be read.
    """
    workspace = opened.workspace
    study = opened.study()
    if study is None:
        return None
    is_annotator = opened.annotator in study.annotators
    conflicts = None
    if count_conflicts and not is_annotator:
        # Without the order of spans, overlapping ranges would count as conflicts.
        orders = SpanOrders(workspace, open_traces)
        traces_with_conflicts = conflicts_by_trace(
            workspace, opened.taxonomy, annotators=study.annotators, order_of=orders
        )
        conflicts = sum(len(traces_with_conflicts.get(trace_id, ())) for trace_id in study.traces)
    return StudyView(
        study=study,
        progress=progress(workspace, study),
        overlap=_count_overlap(opened, study),
        is_for_annotator=is_annotator,
        conflicts=conflicts,
    )


def _count_overlap(opened: OpenWorkspace, study: Study) -> Overlap:
    """Return the progress on the traces with several annotators."""
    ref = study.taxonomy
    finished_by = {name: opened.workspace.finished_traces(name, ref) for name in study.annotators}
    finishes_by_trace = [
        [trace_id in finished_by[name] for name in annotators_of(study, trace_id)]
        for trace_id in overlap_traces(study)
    ]
    return Overlap(
        traces=len(finishes_by_trace),
        finished=sum(map(all, finishes_by_trace)),
        begun=sum(any(finishes) and not all(finishes) for finishes in finishes_by_trace),
    )


def bar(finished: int, begun: int, total: int, cells: int = BAR_CELLS) -> str:
    """Return progress as a bar: ``█`` finished, ``▒`` begun, ``·`` neither.

    Each part above 0 has at least one cell, and the bar is full only if all is finished.

    Args:
        finished: The number of finished traces.
        begun: The number of begun traces.
        total: The number of all traces.
        cells: The width of the bar.
    """
    if total <= 0:
        return "·" * cells
    finished_cells = _bar_cells(finished, total, cells)
    least_empty_cells = 1 if finished + begun < total else 0
    free_cells = cells - finished_cells - least_empty_cells
    begun_cells = min(_bar_cells(begun, total, cells), free_cells)
    if begun and begun_cells == 0 and finished_cells > 1:
        finished_cells -= 1
        begun_cells = 1
    return "█" * finished_cells + "▒" * begun_cells + "·" * (cells - finished_cells - begun_cells)


def _bar_cells(part: int, total: int, cells: int) -> int:
    """Return the cells of a part of the bar.

    Only the whole total has all cells, and only 0 has none.
    """
    if part >= total:
        return cells
    return min(max(round(part * cells / total), 1 if part else 0), cells - 1)


SEVERAL_ANNOTATORS: Final = ""
"""The name in the row of traces with several annotators."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRow:
    """A row of the table, with counts that the reader may see.

    Attributes:
        name: The annotator, or ``SEVERAL_ANNOTATORS``.
        is_reader: True in the reader's own row.
        assigned: The number of assigned traces.
        finished: The number of finished traces.
        begun: The number of begun traces.
        shared: The number of traces that others label too; empty if hidden or needless.
        withheld: The number of traces without suggestions; empty if hidden or 0.
        retest: The progress of retests; empty if hidden or not planned.
    """

    name: str
    is_reader: bool = False
    assigned: int
    finished: int
    begun: int
    shared: str = ""
    withheld: str = ""
    retest: str = ""

    @property
    def title(self) -> str:
        """The name of the annotator, safe to display."""
        return "shared traces" if self.name == SEVERAL_ANNOTATORS else one_line(self.name)

    @property
    def sign(self) -> str:
        """The sign of the progress: all finished, begun, or not begun."""
        if self.name == SEVERAL_ANNOTATORS:
            return " "
        if self.finished == self.assigned:
            return "●"
        return "◐" if self.finished or self.begun else "○"

    @property
    def style(self) -> str:
        """The style of the counts."""
        return "total" if self.name == SEVERAL_ANNOTATORS else "figure"


def table_rows(view: StudyView, reader: str) -> list[StudyRow]:
    """Return a row for each annotator, and a row for traces with several annotators.

    The last row is left out if there are no such traces.

    Args:
        view: The study.
        reader: The annotator who looks at the table.
    """
    rows = [_row_of(row, reader, view) for row in view.progress]
    overlap = view.overlap
    if overlap.traces:
        rows.append(
            StudyRow(
                name=SEVERAL_ANNOTATORS,
                assigned=overlap.traces,
                finished=overlap.finished,
                begun=overlap.begun,
            )
        )
    return rows


def _row_of(progress: StudyProgress, reader: str, view: StudyView) -> StudyRow:
    """Return the row of an annotator as far as the reader may see it.

    An annotator sees current retests and shares of traces only in the own row, as in ``mast-tui
    study``.
    """
    row = StudyRow(
        name=progress.name,
        is_reader=progress.name == reader,
        assigned=progress.assigned,
        finished=progress.finished,
        begun=progress.begun,
        shared=f"{progress.shared:,}" if progress.shared < progress.assigned else "",
        withheld=f"{progress.withheld:,}" if progress.withheld else "",
        retest=_retest_text(progress),
    )
    if not view.is_for_annotator:
        return row
    retest_count = len(progress.retests.current)
    return dataclasses.replace(
        row,
        shared=row.shared if row.is_reader else "",
        withheld=row.withheld if row.is_reader else "",
        retest=f"{retest_count} to do" if row.is_reader and retest_count else "",
    )


def _retest_text(progress: StudyProgress) -> str:
    """Return the number of finished retests; empty if none are planned."""
    if not progress.planned:
        return ""
    lost_count = len(progress.retests.lost)
    lost_text = f", {lost_count} not possible" if lost_count else ""
    return f"{len(progress.retests.done)} of {progress.planned}{lost_text}"


def _count_column(
    title: str, cell: Callable[[StudyRow], str], drop_rank: int
) -> TableColumn[StudyRow]:
    width = ColumnWidth(drop_rank, filled=ANY_FILLED)
    return TableColumn(title, cell, attrgetter("style"), width, right=True)


COLUMNS: Final[Sequence[TableColumn[StudyRow]]] = (
    sign_column(attrgetter("sign")),
    TableColumn(
        "annotator",
        attrgetter("title"),
        lambda row: "name" if row.is_reader else row.style,
        name_width(),
    ),
    TableColumn(
        "█ finished  ▒ begun",
        lambda row: bar(row.finished, row.begun, row.assigned),
        attrgetter("style"),
        ColumnWidth(60),
    ),
    _count_column("assigned", lambda row: f"{row.assigned:,}", 90),
    _count_column("finished", lambda row: f"{row.finished:,}", 95),
    _count_column("begun", lambda row: f"{row.begun:,}", 80),
    _count_column("left", lambda row: f"{row.assigned - row.finished:,}", 85),
    _count_column("shared", attrgetter("shared"), 40),
    _count_column("without suggestions", attrgetter("withheld"), 45),
    _count_column("retest", attrgetter("retest"), 50),
)
"""The columns of the table of all annotators' progress."""


def progress_text(view: StudyView) -> str:
    """Return the number of finished traces, and of open conflicts if known."""
    overlap = view.overlap
    text = f"{overlap.finished:,} of {overlap.traces:,} shared traces finished by all"
    if not overlap.traces:
        finished_count = sum(row.finished for row in view.progress)
        text = f"{finished_count:,} of {sum(row.assigned for row in view.progress):,} finished"
    if view.conflicts is None:
        return text
    return f"{text} · {counted(view.conflicts, 'conflict')} left"


def protocol_text(view: StudyView, adjudicate_key: str) -> str:
    """Return the protocol of the study in sentences.

    Args:
        view: The study and its progress.
        adjudicate_key: The key that opens the adjudication.
    """
    study = view.study
    batches_text = f" in {len(study.batches)} batches" if len(study.batches) > 1 else ""
    labelled = annotator_counts_text(study)
    lines = [
        f"{counted(len(study.traces), 'trace')}{batches_text}, under {one_line(study.taxonomy)}.",
        *(f"{line[0].upper()}{line[1:]}." for line in sample_texts(study)),
        _people_text(study),
        f"{labelled.capitalize()}; each annotator in their own order; seed {study.seed}.",
        _conditions_text(study),
        _finishing_text(study),
    ]
    if study.retests:
        lines.append(
            f"{study.retests:.0%} of each annotator's finished traces have a retest: they are "
            "labelled again, without the first labels on screen."
        )
        if not view.is_for_annotator and any(row.retests.lost for row in view.progress):
            lines.append(LOST_RETEST_NOTE)
    lines += [_adjudication_rules(study), "", _conflicts_text(view, adjudicate_key)]
    return "\n".join(lines)


def _conflicts_text(view: StudyView, adjudicate_key: str) -> str:
    if view.conflicts:
        return f"{counted(view.conflicts, 'conflict')} left to decide: {adjudicate_key} opens them."
    if view.conflicts == 0:
        return "No conflict is left to decide."
    if view.is_for_annotator:
        return (
            "Hidden from annotators: how many conflicts are left, and the blank cells of the table."
        )
    return "Counting what is left to decide …"


def _people_text(study: Study) -> str:
    """Return the sentences on annotators, adjudicators and former annotators."""
    present_annotators = study.present
    annotators_text = (
        f"{_joined_names(present_annotators)} label{'s' if len(present_annotators) == 1 else ''}"
    )
    former_annotators = [name for name in study.annotators if name not in present_annotators]
    former_text = ""
    if former_annotators:
        verb = "has" if len(former_annotators) == 1 else "have"
        former_text = (
            f" {_joined_names(former_annotators)} {verb} left; their finished traces count."
        )
    if study.per_trace == 1:  # no one can differ
        return f"{annotators_text}.{former_text}"
    adjudicators_text = "anyone may decide"
    if study.adjudicators:
        verb = "decides" if len(study.adjudicators) == 1 else "decide"
        adjudicators_text = f"{_joined_names(study.adjudicators)} {verb}"
    return f"{annotators_text}; where they differ {adjudicators_text}.{former_text}"


def _joined_names(names: Iterable[str]) -> str:
    return joined_names([one_line(name) for name in names])


def _conditions_text(study: Study) -> str:
    """Return the sentence on hidden suggestions, with the share of these traces."""
    if study.blind:
        return (
            "Annotators work blind: suggestions and outcomes are hidden until they finish a trace "
            "and ask for them."
        )
    if not study.withheld:
        return "Annotators work with suggestions on screen."
    return (
        f"Annotators work with suggestions on screen. On {study.withheld:.0%} of each annotator's "
        "traces suggestions are hidden until the annotator finishes the trace and asks for them, "
        "to measure how far suggestions influence people."
    )


def _finishing_text(study: Study) -> str:
    """Return the sentence on the effect of finishing a trace with unread spans."""
    action = {
        "ask": "asks about open modes (without a verdict)",
        "leave": "leaves open modes (without a verdict) open",
        "absent": "sets open modes (without a verdict) absent",
    }[study.open_modes.value]
    return f"Finishing a trace with unread spans {action}."


def _adjudication_rules(study: Study) -> str:
    """Return the sentence on the rules of adjudication."""
    rules = [
        f"names {'hidden until a key shows them' if study.names_hidden else 'shown'}",
        f"the judge shown {'before and after' if study.judge_first else 'after'} the decision",
    ]
    if study.boundaries:
        rules.append("overlapping places with different ends are conflicts")
    if study.reasons:
        rules.append("each decision asks for a reason")
    masked_text = " Personal data and secrets in traces are masked." if study.redact else ""
    return f"In adjudication: {', '.join(rules)}.{masked_text}"


def _with_only_traces(study: Study, ids: Iterable[str]) -> Study:
    """Return the study with these traces alone, as a single batch.

    They are the traces of the study, with new ids from their registration. If their number has
    changed, the record of the draw no longer fits and is dropped.
    """
    batch = tuple(sorted(set(ids)))
    draws = study.draws if len(batch) == len(study.traces) else ()
    return replace(study, batches=(batch,), draws=draws)


def _selections_to_add(
    study: Study, selections: Sequence[TraceSelection]
) -> Sequence[TraceSelection]:
    """Return the selections with traces outside the study.

    The first selection is left out, because it is the study's own.
    """
    study_ids = frozenset(study.traces)
    return [selection for selection in selections[1:] if not study_ids.issuperset(selection.ids)]


def _write_with_traces(
    opened: OpenWorkspace, study: Study, selection: TraceSelection, *, adds_traces: bool
) -> str:
    """Register traces, write the study with them, and return a message.

    With ``adds_traces`` the traces are added to the study, else they replace its traces.
    """
    trace_ids: list[str] = []
    for start in range(0, len(selection.traces), BATCH_SIZE):
        batch = selection.traces[start : start + BATCH_SIZE]
        with opened.workspace.transaction():
            trace_ids += [register_opened_trace(opened.workspace, trace.anew()) for trace in batch]
    change_traces = with_traces if adds_traces else _with_only_traces
    # Traces that are registered already have no entry in ``traces``, only their ids.
    new_study = change_traces(study, trace_ids or list(selection.ids))
    set_study(opened.workspace, opened.annotator, new_study)
    if not adds_traces:
        return "The study is set up"
    return f"{counted(len(new_study.traces) - len(study.traces), 'trace')} added"


def no_study_text(key: str) -> str:
    """Return the text for an app without a study: its purpose, and the key to set one up."""
    return (
        "There is no study yet, so everyone labels all traces.\n\n"
        "A study fixes who labels which traces, in which order and under which conditions, and "
        "stores this with the labels. Each annotator then has a queue of their own, "
        "and readers can see how the gold was made.\n\n"
        f"{key} opens a form for the traces in the library. Type the names of the annotators; "
        "the other fields can stay as they are. Before anything is saved, the form shows how many "
        f"traces each annotator gets. Until one of these traces is finished, {key} can change "
        "everything."
    )


BATCH_SIZE: Final = 100
"""The number of traces registered in one transaction. Others can write between transactions."""


class StudyScreen(TableScreen[StudyRow]):
    """The progress of each annotator.

    An annotator sees nothing that reveals answers of others.
    """

    CSS_PATH = [BASE_SCREEN, RUNS, STUDY]
    where = Where.STUDY
    table_id = "people"
    row_key = attrgetter("name")

    def __init__(self) -> None:
        super().__init__()
        self.view: StudyView | None = None

    def on_mount(self) -> None:
        """Show that the study is being read, as soon as the workspace is open."""
        self.mast.workspace.when_ready(lambda _: self.show_message_only("Reading the study …"))

    def read_rows(self, opened: OpenWorkspace) -> None:
        """Read the study and its progress in a worker, then show it or the problem.

        The first time, the study is shown before its conflicts are counted.
        """
        is_first = self.view is None
        open_traces = list(self.mast.catalog.traces.values())

        def read_study(_stopped: Stopped) -> Iterator[StudyView | None]:
            if is_first:
                view = study_view(opened, count_conflicts=False)
                if view is not None:
                    yield view
            yield study_view(opened, open_traces)

        self.work.run_stages("study", read_study, self._show_study, partial(self._show_study, None))

    def _show_study(self, view: StudyView | None, problem: str | None = None) -> None:
        """Show the study, a problem, or the purpose of a study."""
        self.view = view
        if view is None:
            text = no_study_text(self.mast.key_of("study.set_up"))
            self.show_message_only(text if problem is None else problem)
        else:
            opened = self.mast.opened
            annotator = "" if opened is None else opened.annotator
            self.hints.leave_out((), first={"set_up": "change"})
            self.show_rows(COLUMNS, table_rows(view, annotator))
            key_of = self.mast.key_of
            self.describe(
                "What was set up",
                protocol_text(view, key_of("everywhere.adjudicate")),
                f"{key_of('study.set_up')} changes it · "
                f"{key_of('study.text_down')} {key_of('study.text_up')} scroll",
            )
        self.show_title()

    def show_title(self) -> None:
        """Show the progress of the study, and the annotator."""
        parts = ["Study"]
        if self.view is not None:
            parts.append(progress_text(self.view))
        self.title_bar.show(tuple(parts), self.right_title_parts())

    def action_set_up(self) -> None:
        """Open the form of the study, or show an error if no workspace is open."""
        self.mast.workspace.when_ready_or_refuse(self._open_setup_form, "nothing can be set up")

    @piece_of_work
    async def _open_setup_form(self, opened: OpenWorkspace) -> None:
        """Open the form of the study, and set up the accepted result."""
        previous = await self.mast.workspace.carry_out(opened.study)
        selections = await self._possible_selections(opened, previous)
        if not selections:
            return

        def write(planned: PlannedStudy) -> str:
            return self._write_study(opened, planned.study, planned.selection)

        show_success = partial(self._show_success, opened)
        self.app.push_screen(StudySetup(opened, previous, selections, write, show_success))

    async def _possible_selections(
        self, opened: OpenWorkspace, previous: Study | None
    ) -> tuple[TraceSelection, ...]:
        """Return the selections of traces for a study; if there are none, show the reason."""
        catalog = self.mast.catalog
        if not catalog.complete:
            self.hints.say("The library is still being read; try again when that is done")
            return ()
        records = await self.mast.workspace.carry_out(opened.workspace.traces)
        selections = trace_selections(
            list(catalog.traces.values()),
            self.mast.trace_queue.ids,
            [record.trace_id for record in records or ()],
            previous,
        )
        if not selections:
            self.hints.say("There are no traces: start mast-tui with a folder of them")
        return selections

    async def _require_study(self) -> tuple[OpenWorkspace, Study] | None:
        """Return the workspace and its study, or show a hint and return None."""
        opened = self.mast.opened
        study = None if opened is None else await self.mast.workspace.carry_out(opened.study)
        if opened is not None and study is not None:
            return opened, study
        self.hints.say(f"There is no study yet: {self.mast.key_of('study.set_up')} sets one up")
        return None

    @piece_of_work
    async def action_add(self) -> None:
        """Ask which traces to add to the study as a further batch, and add them."""
        opened_study = await self._require_study()
        if opened_study is None:
            return
        opened, study = opened_study
        selections = await self._possible_selections(opened, study)
        new_selections = _selections_to_add(study, selections)
        selection_by_key = dict(zip("ylk", new_selections, strict=False))  # by answer keys
        if not selection_by_key:
            if selections:
                self.hints.say("All traces of the library are in the study already")
            return

        def add(selection: TraceSelection) -> None:
            self.hints.prompt("Adding traces …")
            self._set_up(opened, study, selection, adds_traces=True)

        planned = with_traces(study, new_selections[0].ids)
        answers = (
            (key, f"add those {selection.title}" if key != "y" else "add them")
            for key, selection in selection_by_key.items()
        )
        self.mast.ask_key(
            f"Add {counted(len(planned.traces) - len(study.traces), 'trace')}?",
            "They become a new batch, at the end of each queue; earlier batches do not change. "
            "After someone finishes a trace, no trace can be removed from the study."
            f"\n\n{assignment_text(study, planned)}",
            (*answers, ("n", "leave the study as it is")),
            {key: partial(add, selection) for key, selection in selection_by_key.items()},
            default="y",
        )

    @piece_of_work
    async def action_join(self) -> None:
        """Ask for the name of a new annotator, and offer to add this person to the study."""
        if await self._require_study() is None:
            return

        def offer_to_join(name: str) -> None:
            self._offer_change(
                lambda study: with_annotator(study, name),
                f"Let {name} join?",
                "They get traces of later batches, and those that others give back.",
            )

        self.mast.ask(NoteScreen("Who joins?", check=checked_person), offer_to_join)

    def action_leave_study(self) -> None:
        """Ask whether the annotator under the cursor leaves the study."""
        self._offer_change_of_annotator(
            without_annotator,
            "Let {} leave?",
            "Their finished traces stay; the others get the rest.",
        )

    def action_give_back(self) -> None:
        """Ask whether others get the unfinished traces of the annotator under the cursor."""
        self._offer_change_of_annotator(
            with_released_traces,
            "Give back what {} has not finished?",
            "Each trace goes to the other annotator with the fewest traces. {} stays in the study, "
            "and gets traces of later batches.",
        )

    @piece_of_work
    async def _offer_change_of_annotator(
        self, change: Callable[[Workspace, Study, str], Study], title: str, effect: str
    ) -> None:
        """Offer a change of the annotator under the cursor.

        In ``title``, the question, and in ``effect``, ``{}`` is the name.
        """
        opened_study = await self._require_study()
        if opened_study is None:
            return
        opened, _ = opened_study
        row = self.main_list.row
        name = "" if row is None else row.name
        if not name:
            self.hints.say("Move the cursor to an annotator")
            return
        self._offer_change(
            lambda study: change(opened.workspace, study, name),
            title.format(name),
            effect.format(one_line(name)),
        )

    @piece_of_work
    async def _offer_change(
        self, change: Callable[[Study], Study], title: str, effect: str
    ) -> None:
        """Show the effect of a change of the annotators, and make it if the user agrees."""
        opened_study = await self._require_study()
        if opened_study is None:
            return
        opened, previous_study = opened_study
        changed_study = await self.mast.workspace.carry_out(lambda: change(previous_study))
        if changed_study is None:
            return
        if changed_study == previous_study:  # only giving traces back can change nothing
            self.hints.say("Nothing is left to give back")
            return

        def change_study() -> None:
            self.hints.prompt("Changing the study …")
            self._set_up(opened, changed_study, selection=None)

        self.mast.ask_key(
            one_line(title),
            f"{effect}\n\n{assignment_text(previous_study, changed_study)}",
            (("y", "yes, change the study"), ("n", "leave the study as it is")),
            {"y": change_study},
            default="n",
        )

    def _set_up(
        self,
        opened: OpenWorkspace,
        study: Study,
        selection: TraceSelection | None,
        *,
        adds_traces: bool = False,
    ) -> None:
        """Write a study in a worker, then show the result. See ``_write_study``."""
        self.work.run(
            "take-in",
            partial(self._write_study, opened, study, selection, adds_traces=adds_traces),
            partial(self._show_success, opened),
            self._show_failure,
        )

    def _write_study(
        self,
        opened: OpenWorkspace,
        study: Study,
        selection: TraceSelection | None,
        *,
        adds_traces: bool = False,
    ) -> str:
        """Register the traces of a study, write it, and return a message.

        A ``selection`` of None keeps its present traces. With ``adds_traces`` the selection is
        added to them instead of replacing them.
        """
        if selection is None:
            set_study(opened.workspace, opened.annotator, study)
            return "The study is changed"
        message = _write_with_traces(opened, study, selection, adds_traces=adds_traces)
        next_step = "shows your traces" if opened.annotates else "opens the library"
        return f"{message} · {self.mast.key_of('everywhere.library')} {next_step}"

    def _show_failure(self, problem: str) -> None:
        self.hints.clear()
        self.mast.show_error(problem)

    def _show_success(self, opened: OpenWorkspace, message: str) -> None:
        self.mast.study_changed()
        self.show_title()
        self.read_rows(opened)
        self.hints.say(message)
