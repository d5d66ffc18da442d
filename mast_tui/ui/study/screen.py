"""The study screen: what was set up, how far everybody is, and setting it up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from msgspec.structs import replace
from textual import work

from mast_tui.adjudication import SpanOrders, conflicts_by_trace
from mast_tui.columns import ColumnWidth, TableColumn
from mast_tui.errors import MastError
from mast_tui.labels import checked_person
from mast_tui.safe_text import one_line
from mast_tui.session import (
    Progress,
    known_trace,
    progress,
    sample_texts,
    set_study,
    with_annotator,
    with_released_traces,
    with_traces,
    without_annotator,
)
from mast_tui.session.retests import Retests
from mast_tui.study import Study, annotators_of, overlap_traces
from mast_tui.traces.model import Trace
from mast_tui.ui.actions.registry import Where
from mast_tui.ui.dialogs.note import NoteScreen
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.study.setup import Lot, PlannedStudy, StudySetup, assignment_words, lots_here
from mast_tui.ui.styles import BASE_SCREEN, RUNS, STUDY
from mast_tui.ui.table_screen import TableScreen
from mast_tui.ui.widgets.column_table import SOME, name_width, sign_column
from mast_tui.ui.wording import counted, joined, plain_title
from mast_tui.workspace import Workspace
from mast_tui.writes import piece_of_work

BAR_CELLS: Final = 24


@dataclass(frozen=True, slots=True)
class Overlap:
    """The traces that several label: how many, how many all of theirs have finished, and how many
    only some have."""

    traces: int
    finished: int
    begun: int


@dataclass(frozen=True, slots=True)
class StudyView:
    """A study and how far it is, as one person may know it.

    ``back`` is whether it is told what came back to be labelled once more, and ``conflicts`` what
    is left to decide; None where that would tell an annotator what others say, or is not counted.
    """

    study: Study
    progress: Sequence[Progress]
    overlap: Overlap
    back: bool
    conflicts: int | None


def study_view(
    opened: OpenWorkspace, known: Sequence[Trace] = (), *, counted: bool = True
) -> StudyView | None:
    """The study under the taxonomy that is open, None without one. Slow: for workers.

    ``known`` are the traces at hand. Without ``counted`` it is not counted what is left to decide,
    for which files may have to be read. Raises ``WorkspaceError`` in words.
    """
    workspace, study = opened.workspace, opened.study()
    if study is None:
        return None
    labels = opened.annotator in study.annotators
    conflicts = None
    if counted and not labels:
        # Whether two ranges overlap follows from the order of spans: without it, more would seem
        # to be left here than in adjudication.
        orders = SpanOrders(workspace, known)
        found = conflicts_by_trace(
            workspace, opened.taxonomy, annotators=study.annotators, order_of=orders
        )
        conflicts = sum(len(found.get(trace_id, ())) for trace_id in study.traces)
    return StudyView(
        study=study,
        progress=progress(workspace, study),
        overlap=_overlap(opened, study),
        back=not labels,
        conflicts=conflicts,
    )


def _overlap(opened: OpenWorkspace, study: Study) -> Overlap:
    ref = study.taxonomy
    done = {name: opened.workspace.finished_traces(name, ref) for name in study.annotators}
    by_all = by_some = 0
    shared = overlap_traces(study)
    for trace_id in shared:
        finished = [trace_id in done[name] for name in annotators_of(study, trace_id)]
        by_all += all(finished)
        by_some += any(finished) and not all(finished)
    return Overlap(len(shared), by_all, by_some)


def bar(done: int, begun: int, of: int, cells: int = BAR_CELLS) -> str:
    """How far something is: ``█`` finished, ``▒`` begun, ``·`` not yet.

    What there is of either shows in a cell at least, and nothing looks full that is not.
    """
    if of <= 0:
        return "·" * cells
    full = _cells(done, of, cells)
    open_cells = min(_cells(begun, of, cells), cells - full - (done + begun < of))
    if begun and open_cells < 1 < full:
        full, open_cells = full - 1, 1
    return "█" * full + "▒" * open_cells + "·" * (cells - full - open_cells)


def _cells(part: int, of: int, cells: int) -> int:
    if part >= of:
        return cells
    return min(max(round(part * cells / of), 1 if part else 0), cells - 1)


SEVERAL: Final = ""
"""The name in the row of the traces that several label."""


def table_rows(view: StudyView) -> list[Progress]:
    """Return the progress of each annotator, and that of the traces that several label."""
    rows = list(view.progress)
    shared = view.overlap
    if shared.traces:
        several = Progress(
            name=SEVERAL,
            assigned=shared.traces,
            shared=shared.traces,
            withheld=0,
            finished=shared.finished,
            begun=shared.begun,
            planned=0,
            retests=Retests(),
        )
        rows.append(several)
    return rows


def table_columns(view: StudyView, me: str) -> tuple[TableColumn[Progress], ...]:
    """Return the columns of the progress.

    Args:
        view: The study.
        me: The annotator who looks at it.
    """

    # To annotators what has come back is ordinary work that is not done.
    def finished(row: Progress) -> int:
        return row.finished - (0 if view.back else len(row.retests.now))

    def begun(row: Progress) -> int:
        return row.begun + (0 if view.back else len(row.retests.begun))

    def sign(row: Progress) -> str:
        if row.name == SEVERAL:
            return " "
        if finished(row) == row.assigned:
            return "●"
        return "◐" if finished(row) or begun(row) else "○"

    def _own(row: Progress, number: int, has_any: bool) -> str:
        # An annotator is told so much of their own share alone, as by the command.
        return f"{number:,}" if has_any and (view.back or row.name == me) else ""

    def repeated(row: Progress) -> str:
        if not view.back or not row.planned:
            return ""
        lost = len(row.retests.lost)
        return f"{len(row.retests.done)} of {row.planned}" + (f", {lost} lost" if lost else "")

    def style(row: Progress) -> str:
        return "total" if row.name == SEVERAL else "figure"

    def _counts(title: str, cell: Callable[[Progress], str], keeps: int) -> TableColumn[Progress]:
        return TableColumn(title, cell, style, ColumnWidth(keeps, filled=SOME), right=True)

    return (
        sign_column(sign),
        TableColumn(
            "annotator",
            lambda row: "by several" if row.name == SEVERAL else one_line(row.name),
            lambda row: "name" if row.name == me else style(row),
            name_width(),
        ),
        TableColumn(
            "█ finished  ▒ open",
            lambda row: bar(finished(row), begun(row), row.assigned),
            style,
            ColumnWidth(60),
        ),
        _counts("assigned", lambda row: f"{row.assigned:,}", 90),
        _counts("finished", lambda row: f"{finished(row):,}", 95),
        _counts("open", lambda row: f"{begun(row):,}", 80),
        _counts("left", lambda row: f"{row.assigned - finished(row):,}", 85),
        _counts("with others", lambda row: _own(row, row.shared, row.shared < row.assigned), 40),
        _counts("without suggestions", lambda row: _own(row, row.withheld, row.withheld > 0), 45),
        _counts("repeat", repeated, 50),
    )


def progress_words(view: StudyView) -> str:
    """How far the whole study is, in a few words."""
    shared = view.overlap
    done, of = shared.finished, shared.traces
    words = f"{done:,} of {of:,} finished by all of theirs"
    if not of:
        done, of = sum(p.finished for p in view.progress), sum(p.assigned for p in view.progress)
        words = f"{done:,} of {of:,} finished"
    if view.conflicts is None:
        return words
    return f"{words} · {counted(view.conflicts, 'conflict')} left"


def protocol_words(view: StudyView, adjudicate_key: str) -> str:
    """Return what was set up, in sentences.

    Args:
        view: The study and how far it is.
        adjudicate_key: The key that opens the adjudication.
    """
    study, shared = view.study, view.overlap.traces
    lots = f" in {len(study.batches)} lots" if len(study.batches) > 1 else ""
    count = len(study.traces)
    lines = [
        f"{counted(count, 'trace')}{lots}, under {one_line(study.taxonomy)}.",
        *(f"{line[0].upper()}{line[1:]}." for line in sample_texts(study)),
        _people(study),
        _dealt(study, shared, count),
        _conditions(study),
        _finishing(study),
    ]
    if study.retests:
        lines.append(
            f"{study.retests:.0%} of everybody's finished traces repeat: they are labelled again, "
            "without sight of the first time."
        )
    lines.append(_deciding(study))
    if view.conflicts is None and view.back:
        lines += ["", "Counting what is left to decide …"]
    elif view.conflicts is None:
        lines += ["", "What is left to decide is told to those who label nothing in the study."]
    else:
        lines += ["", f"{view.conflicts:,} left to decide: {adjudicate_key} opens them."]
    return "\n".join(lines)


def _people(study: Study) -> str:
    present = study.present
    words = f"{_named(present)} label{'s' if len(present) == 1 else ''}"
    gone = [name for name in study.annotators if name not in present]
    left = ""
    if gone:
        left = f" {_named(gone)} {'has' if len(gone) == 1 else 'have'} left; "
        left += "what they finished counts."
    if study.per_trace == 1:
        return f"{words}.{left}"
    deciders = "anybody may decide"
    if study.adjudicators:
        one = len(study.adjudicators) == 1
        deciders = f"{_named(study.adjudicators)} decide{'s' if one else ''}"
    return f"{words}; where they differ {deciders}.{left}"


def _named(names: Iterable[str]) -> str:
    return joined([one_line(name) for name in names])


def _dealt(study: Study, shared: int, count: int) -> str:
    if study.per_trace == 1:
        return f"Each trace is labelled by one of them, drawn by seed {study.seed}."
    everybody = study.per_trace == len(study.annotators)
    who = "all of them" if everybody else f"{study.per_trace} of them"
    rest = f", {count - shared:,} by one" if count > shared else ""
    return (
        f"{counted(shared, 'trace')} ({study.overlap:.0%}) labelled by {who}"
        f"{rest}; seed {study.seed}, and everybody has an order of their own."
    )


def _conditions(study: Study) -> str:
    if study.blind:
        return "They work blind: what judges say and the outcome are hidden until they finish."
    if not study.withheld:
        return "They work with suggestions shown: what judges say is on screen."
    return (
        f"They work with suggestions shown; on {study.withheld:.0%} of everybody's traces without "
        "suggestions until they finish, so that the pull of suggestions can be measured."
    )


def _finishing(study: Study) -> str:
    became = {
        "ask": "asks what becomes of open modes",
        "leave": "leaves open modes open",
        "absent": "sets open modes absent",
    }[study.open_modes.value]
    return f"Finishing with spans unread {became}."


def _deciding(study: Study) -> str:
    words = [
        f"names {'hidden until a key shows them' if study.names_hidden else 'shown'}",
        f"the judge shown {'before and after' if study.judge_first else 'after'} the decision",
    ]
    if study.boundaries:
        words.append("overlapping places with different ends are conflicts")
    if study.reasons:
        words.append("each decision asks for a reason")
    return f"In adjudication: {', '.join(words)}."


def _about(study: Study, ids: Iterable[str]) -> Study:
    """The same study about these traces alone, drawn as it says where they are as many."""
    batch = tuple(sorted(set(ids)))
    draws = study.draws if len(batch) == len(study.traces) else ()
    return replace(study, batches=(batch,), draws=draws)


def no_study_words(key: str) -> str:
    """Return what a study is for and how to set one up; ``key`` sets one up."""
    return (
        "No study is set up here, so every trace is everybody's.\n\n"
        "A study fixes once who labels which traces, in which order and under which conditions, "
        "and keeps that with the labels. Each annotator then has a queue of what is theirs to do, "
        "figures say what they rest on, and a reader can tell how the gold came about.\n\n"
        f"{key} sets one up: a form over the traces of the library, of which only the names need a "
        "look. The form shows who would label how much before anything is written; until somebody "
        f"finishes a trace, {key} changes all of it."
    )


KEPT_AT_ONCE: Final = 100
"""Traces that are made known in one transaction, so that others can write in between."""


class StudyScreen(TableScreen[Progress]):
    """The progress of each annotator. What would tell an annotator what others say is left out."""

    CSS_PATH = [BASE_SCREEN, RUNS, STUDY]
    where = Where.STUDY
    table_id = "people"
    row_key = attrgetter("name")

    def __init__(self) -> None:
        super().__init__()
        self.view: StudyView | None = None

    def on_mount(self) -> None:
        """Read the study as soon as the workspace is open."""
        super().on_mount()
        self.mast.workspace.when_ready(self._start)

    def on_screen_resume(self) -> None:
        """Somebody may have gone on meanwhile."""
        if self.view is not None and self.mast.opened is not None:
            self._start(self.mast.opened)

    def _start(self, opened: OpenWorkspace) -> None:
        if self.view is None:
            self.show_words("Reading the study …")
        self.read_study(opened, first=self.view is None)

    @work(thread=True, group="study", exclusive=True)
    def read_study(self, opened: OpenWorkspace, *, first: bool = False) -> None:
        """Read what was set up, and count how far everybody is; at ``first`` show that before it
        is counted what is left to decide."""
        try:
            if first:
                view = study_view(opened, counted=False)
                if view is not None:
                    self.call_later(self._show_study, view)
            view = study_view(opened, list(self.mast.catalog.traces.values()))
        except MastError as error:
            self.call_later(self._show_study, None, one_line(str(error)))
            return
        self.call_later(self._show_study, view)

    def _show_study(self, view: StudyView | None, problem: str | None = None) -> None:
        """Show the study; without one what it is good for, or why it could not be read."""
        self.view = view
        if view is None:
            nothing = no_study_words(self.mast.key_of("study.set_up"))
            self.show_words(nothing if problem is None else problem)
        else:
            opened = self.mast.opened
            self.remove_class("-empty")
            me = "" if opened is None else opened.annotator
            self.main_list.columns = table_columns(view, me)
            self.main_list.show(table_rows(view))
            if self.focused is None:
                self.main_list.focus()
            self.detail.border_title = plain_title("What was set up")
            key_of = self.mast.key_of
            self.detail.border_subtitle = plain_title(
                f"{key_of('study.set_up')} changes it · "
                f"{key_of('study.text_down')} {key_of('study.text_up')} scroll"
            )
            self.detail.show_text(protocol_words(view, key_of("everywhere.adjudicate")))
        self.show_title()

    def show_title(self) -> None:
        """What is open, and who works."""
        left = ["Study"]
        if self.view is not None:
            left.append(progress_words(self.view))
        self.title_bar.show(tuple(left), self.who())

    # Setting it up

    def action_set_up(self) -> None:
        """Set the study up, or change it."""
        if self.mast.refused is not None:
            self.hints.say("No workspace is open, so nothing can be set up", error=True)
            return
        self.mast.workspace.when_ready(self._ask)

    @piece_of_work
    async def _ask(self, opened: OpenWorkspace) -> None:
        before = await self.mast.workspace.carry_out(opened.study)
        lots = await self._lots(opened, before)
        if not lots:
            return

        def answered(wanted: PlannedStudy) -> None:
            self.hints.prompt("Setting the study up …")
            self.set_up(opened, wanted.study, wanted.lot)

        self.app.push_screen(StudySetup(opened, before, lots, answered))

    async def _lots(self, opened: OpenWorkspace, before: Study | None) -> tuple[Lot, ...]:
        """The traces that a study can be about; none, which is said, where they are not known."""
        catalog = self.mast.catalog
        if not catalog.complete:
            self.hints.say("Traces are still being looked for; try again when that is done")
            return ()
        records = await self.mast.workspace.carry_out(opened.workspace.traces)
        known = [record.trace_id for record in records or ()]
        lots = lots_here(list(catalog.traces.values()), self.mast.trace_queue.ids, known, before)
        if not lots:
            self.hints.say("No trace is known here: start mast-tui with a folder of them")
        return lots

    async def _study(self) -> tuple[OpenWorkspace, Study] | None:
        """Read the study, also where the screen has not counted it yet; say so if there is none."""
        opened = self.mast.opened
        study = None if opened is None else await self.mast.workspace.carry_out(opened.study)
        if opened is not None and study is not None:
            return opened, study
        key = self.mast.key_of("study.set_up")
        self.hints.say(f"There is no study yet: {key} sets one up")
        return None

    @piece_of_work
    async def action_add(self) -> None:
        """Take traces in that are not in the study yet, as a further lot."""
        read = await self._study()
        if read is None:
            return
        opened, study = read
        lots = await self._lots(opened, study)
        there = frozenset(study.traces)
        new = [lot for lot in lots[1:] if not there.issuperset(lot.ids)]
        offered = dict(zip("ylk", new, strict=False))
        if not offered:
            if lots:
                self.hints.say("All traces of the library are in the study already")
            return

        def answered(answer: str | None) -> None:
            if answer in offered:
                self.hints.prompt("Taking traces in …")
                self.set_up(opened, study, offered[answer], more=True)

        first = next(iter(offered.values()))
        after = with_traces(study, first.ids)
        taking = (
            (key, f"take in those of {lot.title}" if key != "y" else "take them in")
            for key, lot in offered.items()
        )
        self.mast.ask_key(
            f"Take in {counted(len(after.traces) - len(there), 'trace')}?",
            "They come as a further lot, after the others in every queue. Who labels those "
            "stays as it is. Traces cannot be taken out again once somebody has finished one."
            f"\n\n{assignment_words(study, after)}",
            (*taking, ("n", "leave the study as it is")),
            answered,
            default="y",
        )

    # Who is there

    @piece_of_work
    async def action_join(self) -> None:
        """Ask who joins as an annotator, from the next lot on."""
        if await self._study() is None:
            return

        def answered(name: str | None) -> None:
            if name:
                self._offer(
                    lambda study: with_annotator(study, name),
                    f"Let {name} join?",
                    "They are dealt traces of the lots to come, and what others give back.",
                )

        self.app.push_screen(NoteScreen("Who joins?", check=checked_person), answered)

    def action_leave_study(self) -> None:
        """Let the annotator under the cursor leave."""
        self._of_person(
            without_annotator,
            "Let {} leave?",
            "What they have finished stays; the rest goes to the others.",
        )

    def action_give_back(self) -> None:
        """Give what the annotator under the cursor has not finished to the others."""
        self._of_person(
            with_released_traces,
            "Give back what {} has not finished?",
            "It goes to the others, each trace to whoever has fewest. They stay, and get of later "
            "lots.",
        )

    @piece_of_work
    async def _of_person(
        self, change: Callable[[Workspace, Study, str], Study], title: str, words: str
    ) -> None:
        read = await self._study()
        if read is None:
            return
        workspace = read[0].workspace
        row = self.main_list.row
        name = "" if row is None else row.name
        if not name:
            self.hints.say("Put the cursor on an annotator")
            return
        self._offer(lambda study: change(workspace, study, name), title.format(name), words)

    @piece_of_work
    async def _offer(self, change: Callable[[Study], Study], title: str, words: str) -> None:
        """Say what a change of who is there comes to, and make it if that is agreed."""
        read = await self._study()
        if read is None:
            return
        opened, before = read
        after = await self.mast.workspace.carry_out(lambda: change(before))
        if after is None:
            return
        if after == before:
            self.hints.say("Nothing is left to give back")
            return

        def answered(answer: str | None) -> None:
            if answer == "y":
                self.hints.prompt("Changing the study …")
                self.set_up(opened, after, None)

        self.mast.ask_key(
            one_line(title),
            f"{words}\n\n{assignment_words(before, after)}",
            (("y", "yes, change the study"), ("n", "leave the study as it is")),
            answered,
            default="n",
        )

    @work(thread=True, group="take-in", exclusive=True)
    def set_up(
        self, opened: OpenWorkspace, study: Study, lot: Lot | None, *, more: bool = False
    ) -> None:
        """Set a study up.

        Args:
            opened: The workspace, and who works in it.
            study: The study.
            lot: The traces it is about, which become known; None for those that it has.
            more: Whether these come on top of those that it has.
        """
        ids: list[str] = []
        try:
            if lot is not None:
                for first in range(0, len(lot.traces), KEPT_AT_ONCE):
                    some = lot.traces[first : first + KEPT_AT_ONCE]
                    with opened.workspace.transaction():
                        ids += [known_trace(opened.workspace, trace.anew()) for trace in some]
                ids = ids or list(lot.ids)
                whole = with_traces(study, ids) if more else _about(study, ids)
            else:
                whole = study
            set_study(opened.workspace, opened.annotator, whole)
        except MastError as error:
            self.call_later(self._not_set_up, str(error))
            return
        words = "The study is set up as you said"
        if lot is not None:
            count = len(whole.traces) - (len(study.traces) if more else 0)
            key = self.mast.key_of("everywhere.library")
            then = f"{key} opens the library"
            if opened.annotates:
                then = f"{key} shows what is yours to do"
            words = f"{counted(count, 'trace')} taken in · {then}"
        self.call_later(self._is_set_up, opened, words)

    def _not_set_up(self, problem: str) -> None:
        self.hints.clear()
        self.mast.show_error(problem)

    def _is_set_up(self, opened: OpenWorkspace, words: str) -> None:
        """Say what came of it, and show the study as it is now."""
        self.mast.study_changed()
        self.show_title()
        self.read_study(opened)
        self.hints.say(words)
