"""Two runs of judges side by side, or one beside the gold: per mode, and trace by trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Final

from textual import on, work
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static
from textual.worker import get_current_worker

from mast_tui.adjudication import GuidelineBook, TraceWords, words_by_trace
from mast_tui.columns import ColumnWidth, TableColumn
from mast_tui.errors import MastError
from mast_tui.gold import Order
from mast_tui.gold.overlaps import in_reading_order
from mast_tui.judges.comparing import (
    Case,
    Comparison,
    Mark,
    ModeCounts,
    Outcome,
    Side,
    compare,
    side_of,
)
from mast_tui.judges.llm.teaching import (
    MarkedMistake,
    make_default,
    mark_mistake,
    restore_default,
)
from mast_tui.labels import VerdictValue
from mast_tui.safe_text import one_line
from mast_tui.session import library_view, record_reveal, visible_traces_for_agreement
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.model import Trace
from mast_tui.ui.actions.registry import KeyOf, Where
from mast_tui.ui.context import JudgeProgress, TraceLocation
from mast_tui.ui.dialogs.note import NoteScreen
from mast_tui.ui.judge_runs.alignment import (
    ALL_MODES,
    Alignment,
    Rates,
    read_alignment,
    reasons,
    test_words,
)
from mast_tui.ui.judge_runs.teaching import AlignedRun, TeachingScreen
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.services.trace_loader import TraceLoader
from mast_tui.ui.styles import BASE_SCREEN, RUNS
from mast_tui.ui.suggestion_wording import judge_name
from mast_tui.ui.table_screen import OpensTraces
from mast_tui.ui.trace_view.span_view import SpanView
from mast_tui.ui.widgets.column_table import (
    SOME,
    ColumnTable,
    figure_column,
    name_width,
    sign_column,
)
from mast_tui.ui.widgets.virtual_lines import VirtualLines
from mast_tui.ui.wording import place_words, plain_title
from mast_tui.workspace import Run, WorkspaceError
from mast_tui.workspace.ids import now
from mast_tui.workspace.registers.hold_out import TracePart, trace_part
from mast_tui.writes import piece_of_work


@dataclass(frozen=True, slots=True)
class RunComparison:
    """What there is to show.

    ``traces`` were compared. ``examples`` of the traces are left out because they stood in a
    prompt, ``hidden`` because the annotator may not know of them yet. ``judge_seen`` verdicts
    were settled with a judge on screen and are left out unless ``with_seen``. ``alignment`` and
    ``words``, which people say of the traces, belong to a comparison with gold.
    """

    comparison: Comparison
    at_hand: TraceLoader
    traces: int
    examples: int
    hidden: int
    judge_seen: int = 0
    with_seen: bool = False
    alignment: Alignment = field(default_factory=Alignment)
    words: Mapping[str, TraceWords] = field(default_factory=dict)


def compare_runs(
    opened: OpenWorkspace, first: Run, second: Run, known: Sequence[Trace]
) -> RunComparison:
    """Two runs over the traces that both have judged. Slow: for workers only.

    Raises ``WorkspaceError``.
    """
    workspace, ref = opened.workspace, opened.taxonomy.ref
    view = library_view(workspace, opened.annotator, ref, blind=opened.blind)
    shared = _judged_in(opened, first) & _judged_in(opened, second)
    visible = {t for t in shared if t in view and view[t].suggestions_visible}
    examples = workspace.run_examples(first.judge) | workspace.run_examples(second.judge)
    counted = visible - examples
    at_hand = TraceLoader(workspace, known)
    found = compare(
        _side_of_judge(opened, first.judge),
        _side_of_judge(opened, second.judge),
        counted,
        [mode.slug for mode in opened.taxonomy.modes],
        at_hand.orders,
    )
    return RunComparison(
        comparison=found,
        at_hand=at_hand,
        traces=len(counted),
        examples=len(visible & examples),
        hidden=len(shared - visible),
    )


def compare_with_gold(
    opened: OpenWorkspace, run: Run, known: Sequence[Trace], *, with_seen: bool
) -> RunComparison:
    """A run beside the gold, over traces that the annotator has finished or adjudicated.

    That it is shown is recorded where it tells what was hidden. Verdicts that were settled with a
    judge on screen count only ``with_seen``. Slow: for workers only. Raises ``MastError``.
    """
    workspace, taxonomy = opened.workspace, opened.taxonomy
    words = words_by_trace(workspace, taxonomy)
    with_gold = _judged_in(opened, run) & words.keys()
    visible = with_gold & visible_traces_for_agreement(workspace, opened.annotator, taxonomy.ref)
    examples = workspace.run_examples(run.judge)
    at_hand = TraceLoader(workspace, known)
    golds = {t: words[t].gold(taxonomy, at_hand.orders(t)) for t in sorted(visible)}
    alignment = read_alignment(opened, run.judge, golds, with_seen=with_seen)
    counted = {
        trace_id
        for trace_id in visible - examples
        if trace_part(workspace, trace_id) is TracePart.DEVELOPMENT
    }
    verdicts: dict[tuple[str, str], VerdictValue] = {}
    marks: dict[tuple[str, str], tuple[Mark, ...]] = {}
    seen: set[tuple[str, str]] = set()
    for trace_id in counted:
        gold = golds[trace_id]
        for verdict in gold.verdicts:
            if verdict.value is None:
                continue
            verdicts[trace_id, verdict.mode] = verdict.value
            if verdict.judge_seen:
                seen.add((trace_id, verdict.mode))
        for label in gold.labels:
            key = (trace_id, label.mode)
            marks[key] = (*marks.get(key, ()), Mark(label.target))
    found = compare(
        _side_of_judge(opened, run.judge),
        Side(verdicts, marks),
        counted,
        [mode.slug for mode in taxonomy.modes],
        at_hand.orders,
        left_out=frozenset() if with_seen else seen,
    )
    kept_back = counted if opened.blind else opened.withheld()
    told = [t for t in counted if t in kept_back or _others_spoke(opened, words[t])]
    record_reveal(workspace, opened.annotator, taxonomy.ref, sorted(told))
    hidden = len(with_gold - visible)
    examples_left_out = len(visible & examples)
    return RunComparison(
        comparison=found,
        at_hand=at_hand,
        traces=len(counted),
        examples=examples_left_out,
        hidden=hidden,
        judge_seen=len(seen),
        with_seen=with_seen,
        alignment=alignment,
        words={trace_id: words[trace_id] for trace_id in counted},
    )


def _others_spoke(opened: OpenWorkspace, words: TraceWords) -> bool:
    names = (*words.passes, *(decision.decided_by for decision in words.decisions))
    return any(name != opened.annotator for name in names)


def _judged_in(opened: OpenWorkspace, run: Run) -> set[str]:
    """The run's traces on which its judge has come to a judgement."""
    judged = {
        one.trace_id
        for one in opened.workspace.judgements(annotator=run.judge, taxonomy=run.taxonomy)
    }
    return judged & {trace.trace_id for trace in run.traces}


def _side_of_judge(opened: OpenWorkspace, judge: str) -> Side:
    workspace, ref = opened.workspace, opened.taxonomy.ref
    verdicts = {
        (verdict.trace_id, verdict.mode): verdict.value
        for verdict in workspace.verdicts(annotator=judge, taxonomy=ref)
    }
    return side_of(workspace.labels(annotator=judge, taxonomy=ref), verdicts)


MOST_PLACES: Final = 4
"""Places of one side that are named in a row."""

RUN_TITLES: Final = ("both", "same place", "only A", "only B")
GOLD_TITLES: Final = ("in gold", "place", "not in gold", "missed")
"""The headings of what both sides say, of that at the same place, and of what one side says."""


def mode_code(slug: str, taxonomy: Taxonomy) -> str:
    """Return the code of a mode; nothing for all modes together.

    Args:
        slug: The mode, or ``ALL_MODES``.
        taxonomy: The taxonomy of the mode.
    """
    return "" if slug == ALL_MODES else one_line(taxonomy.mode(slug).code, 8)


def mode_name(slug: str, taxonomy: Taxonomy) -> str:
    """Return the name of a mode, or that of all modes together.

    Args:
        slug: The mode, or ``ALL_MODES``.
        taxonomy: The taxonomy of the mode.
    """
    return "all modes" if slug == ALL_MODES else one_line(taxonomy.mode(slug).name)


def _share(share: float | None) -> str:
    return "—" if share is None else f"{share:.2f}"


def _same_places(counts: ModeCounts) -> str:
    with_places = counts.meet + counts.apart
    return f"{counts.meet} of {with_places}" if with_places else "—"


def _differs(counts: ModeCounts) -> bool:
    return bool(counts.first or counts.second or counts.apart)


def _counts_sign(counts: ModeCounts) -> str:
    if _differs(counts):
        return "≠"
    return "=" if counts.both else " "


def count_columns(
    taxonomy: Taxonomy, *, gold: bool, rates: Mapping[str, Rates] | None = None
) -> tuple[TableColumn[ModeCounts], ...]:
    """Return the columns of the counts of each mode.

    Args:
        taxonomy: The taxonomy of the modes.
        gold: Whether a run is compared with gold, not with another run.
        rates: The judge's rates beside the gold, by the slug of the mode.
    """
    known = rates or {}
    both, same_place, first, second = GOLD_TITLES if gold else RUN_TITLES
    columns: tuple[TableColumn[ModeCounts], ...] = (
        sign_column(_counts_sign, lambda row: "doubt" if _differs(row) else "quiet"),
        TableColumn(
            "", lambda row: mode_code(row.mode, taxonomy), "name", ColumnWidth(filled=SOME)
        ),
        TableColumn(
            "mode",
            lambda row: mode_name(row.mode, taxonomy),
            lambda row: "total" if row.mode == ALL_MODES else "figure",
            name_width(),
        ),
        figure_column(both, lambda row: str(row.both), 95),
        figure_column(same_place, _same_places, 70),
        figure_column(first, lambda row: str(row.first), 94, "doubt"),
        figure_column(second, lambda row: str(row.second), 93, "doubt"),
        figure_column("neither", lambda row: str(row.neither), 42),
        figure_column("undecided", lambda row: str(row.undecided), 40),
    )
    if not gold:
        return columns
    return (
        *columns,
        figure_column("precision", lambda row: _share(row.precision), 55),
        figure_column("TPR", lambda row: known.get(row.mode, Rates()).tpr, 57),
        figure_column("TNR", lambda row: known.get(row.mode, Rates()).tnr, 56),
    )


def case_columns(
    taxonomy: Taxonomy, at_hand: TraceLoader, *, gold: bool, with_mode: bool
) -> tuple[TableColumn[Case], ...]:
    """Return the columns of the traces behind a mode's counts.

    Args:
        taxonomy: The taxonomy of the modes.
        at_hand: The traces, for their names and the numbers of their spans.
        gold: Whether a run is compared with gold, not with another run.
        with_mode: Whether the traces are those of several modes.
    """

    def style(case: Case) -> str:
        return "doubt" if case.differs else "quiet"

    def _places(case: Case, marks: tuple[Mark, ...], silent: Outcome) -> str:
        order = at_hand.known_order(case.trace_id)
        return places_words(marks, order, said=case.outcome is not silent)

    return (
        sign_column(lambda row: "≠" if row.differs else "=", style),
        TableColumn(
            "trace", lambda row: one_line(at_hand.name_of(row.trace_id)), "name", name_width()
        ),
        TableColumn(
            "",
            lambda row: mode_code(row.mode, taxonomy) if with_mode else "",
            "name",
            ColumnWidth(90, filled=SOME),
        ),
        TableColumn(
            "", lambda row: outcome_words(row, gold=gold), style, ColumnWidth(95, filled=SOME)
        ),
        TableColumn(
            "judge" if gold else "A",
            lambda row: _places(row, row.first, Outcome.SECOND),
            width=name_width(80),
        ),
        TableColumn(
            "gold" if gold else "B",
            lambda row: _places(row, row.second, Outcome.FIRST),
            width=name_width(79),
        ),
    )


def outcome_words(case: Case, *, gold: bool) -> str:
    """Who says it, and whether at the same place."""
    if case.outcome is Outcome.FIRST:
        return "not in gold" if gold else "only A"
    if case.outcome is Outcome.SECOND:
        return "missed" if gold else "only B"
    if case.meet is None:
        return "both"
    return "both, same place" if case.meet else "both, elsewhere"


def places_words(marks: tuple[Mark, ...], order: Order, *, said: bool) -> str:
    """Where a side marks a mode; ``—`` where it does not say it."""
    if not said:
        return "—"
    if not marks:
        return "no place"
    in_order = in_reading_order(marks, lambda mark: mark.target, order)
    words = [place_words(mark.target, order, quoted=False) for mark in in_order[:MOST_PLACES]]
    more = len(marks) - MOST_PLACES
    return ", ".join(words) + (f" and {more} more" if more > 0 else "")


def about_words(found: RunComparison, key_of: KeyOf, *, gold: bool) -> str:
    """Return how much was compared, and what was left out and why.

    Args:
        found: The comparison.
        key_of: Returns how the key of an action is shown.
        gold: Whether the run is compared with gold.
    """
    count = found.traces
    words = [f"{count} trace{'' if count == 1 else 's'} compared"]
    if found.examples:
        stood = "an example" if found.examples == 1 else "examples"
        words.append(f"{found.examples} left out, {stood} in a prompt")
    if found.hidden:
        words.append(f"{found.hidden} hidden until you have finished them")
    if gold and found.judge_seen:
        some = f"{found.judge_seen} verdict{'' if found.judge_seen == 1 else 's'}"
        counted = "counted too: no independent figure"
        became = counted
        if not found.with_seen:
            became = f"left out ({key_of('comparison.seen')} counts them)"
        words.append(f"{some} settled with a judge on screen {became}")
    if found.alignment.held_out:
        words.append(f"{found.alignment.held_out} held out")
    if found.alignment.is_default:
        words.append(f"the judge that {key_of('runs.judge')} asks")
    lines = [" · ".join(words), test_words(found.alignment)]
    return "\n".join(line for line in lines if line)


def nothing_words(found: RunComparison, key_of: KeyOf, *, gold: bool) -> str:
    """Return why there is nothing to compare, and what to do.

    Args:
        found: The comparison.
        key_of: Returns how the key of an action is shown.
        gold: Whether the run is compared with gold.
    """
    if gold:
        lines = [
            "No trace of this run has gold that you may see and that is independent.\n",
            f"Gold is what people have finished ({key_of('annotate.finish')}) and settled "
            f"({key_of('everywhere.adjudicate')}) on the same traces.",
        ]
    else:
        lines = [
            "These two judges have judged no trace in common that you may see.\n",
            f"{key_of('everywhere.runs')}, then {key_of('runs.judge')}, runs a judge on all traces "
            "of the library.",
        ]
    if found.examples:
        lines.append(f"{found.examples} left out: their text stood as examples in a prompt.")
    if found.hidden:
        lines.append(f"{found.hidden} hidden from you until you have finished them.")
    lines += ["", f"{key_of('everywhere.back')} goes back."]
    return "\n".join(lines)


MOST_READ: Final = 60
"""Traces of one list that are read so that their places have numbers."""


GOLD_ACTIONS: Final = ("wrong", "guideline", "teach", "default", "seen")
"""The actions that only a comparison with gold has."""


class ComparisonScreen(OpensTraces):
    """Counts above, the traces behind the row under the cursor below."""

    CSS_PATH = [BASE_SCREEN, RUNS]
    AUTO_FOCUS = "#counts"
    where = Where.COMPARISON

    def __init__(self, first: Run, second: Run | None) -> None:
        """Without a ``second`` run it is the gold."""
        super().__init__()
        self._first = first
        self._second = second
        self._with_seen = False
        self._found: RunComparison | None = None
        self.keys_left_out = () if second is None else GOLD_ACTIONS

    @property
    def _gold(self) -> bool:
        return self._second is None

    def compose_panes(self) -> ComposeResult:
        """The counts, and the traces behind them."""
        yield Static(id="about", markup=False)
        yield Static(id="counts-heading", classes="heading", markup=False)
        columns = count_columns(self.mast.taxonomy, gold=self._gold)
        yield ColumnTable[ModeCounts](attrgetter("mode"), columns, id="counts")
        yield Static(id="cases-heading", classes="heading", markup=False)
        yield ColumnTable[Case](attrgetter("mode", "trace_id"), id="cases")
        if self._gold:
            yield SpanView(id="reasons", classes="detail")

    @property
    def main_list(self) -> ColumnTable[ModeCounts]:
        """The counts."""
        return self.query_one("#counts", ColumnTable)

    @property
    def cases(self) -> ColumnTable[Case]:
        """The traces behind the row under the cursor."""
        return self.query_one("#cases", ColumnTable)

    def on_mount(self) -> None:
        """Compare as soon as the workspace is open."""
        self.show_words("Comparing …")
        self.show_title()
        for reasons_pane in self.query(SpanView):
            reasons_pane.can_focus = False
            reasons_pane.border_title = plain_title("What judge and people say")
        self.mast.workspace.when_ready(self._compare)

    def show_title(self) -> None:
        """What is compared, and who works."""
        first = judge_name(self._first.judge)
        second = "gold" if self._second is None else f"B {judge_name(self._second.judge)}"
        left = (first if self._gold else f"A {first}", f"beside {second}")
        self.title_bar.show(left, self.who())

    # Comparing

    @work(thread=True, group="comparison", exclusive=True)
    def _compare(self, opened: OpenWorkspace) -> None:
        known = list(self.mast.catalog.traces.values())
        try:
            if self._second is None:
                found = compare_with_gold(opened, self._first, known, with_seen=self._with_seen)
            else:
                found = compare_runs(opened, self._first, self._second, known)
        except MastError as error:
            self.call_later(self._show_problem, one_line(str(error)))
            return
        self.call_later(self._show_found, found)

    def _show_problem(self, words: str) -> None:
        self._found = None
        self.show_words(words)

    def _show_found(self, found: RunComparison) -> None:
        self._found = found
        if not (found.judge_seen or (found.traces and found.comparison.total.compared)):
            self.show_words(nothing_words(found, self.mast.key_of, gold=self._gold))
            return
        self.remove_class("-empty")
        about = about_words(found, self.mast.key_of, gold=self._gold)
        self.query_one("#about", Static).update(Content(about))
        rates = found.alignment.rates
        self.main_list.columns = count_columns(self.mast.taxonomy, gold=self._gold, rates=rates)
        self.main_list.show([found.comparison.total, *found.comparison.counts])
        if self.focused is None:
            self.main_list.focus()
        self._show_cases()

    # Showing

    @property
    def _mode(self) -> str:
        """The mode of the row under the cursor, empty for all of them."""
        row = self.main_list.row
        return ALL_MODES if row is None else row.mode

    def _cases_here(self) -> list[Case]:
        if self._found is None:
            return []
        by_mode = self._found.comparison.cases
        if self._mode:
            return list(by_mode.get(self._mode, ()))
        every = [case for cases in by_mode.values() for case in cases]
        return sorted(every, key=lambda case: not case.differs)

    def _show_cases(self, *, read: bool = True) -> None:
        found = self._found
        if found is None:
            return
        cases = self._cases_here()
        taxonomy = self.mast.taxonomy
        several = self._mode == ALL_MODES
        columns = case_columns(taxonomy, found.at_hand, gold=self._gold, with_mode=several)
        self.cases.columns = columns
        self.cases.show(cases)
        name = f"{mode_code(self._mode, taxonomy)} {mode_name(self._mode, taxonomy)}".strip()
        self.cases.border_title = plain_title(f"{name}: {len(cases)}" if cases else f"{name}: none")
        self._show_reasons()
        if read and cases:
            ids = [
                case.trace_id
                for case in cases[:MOST_READ]
                if found.at_hand.lacks_order(
                    case.trace_id, (mark.target for mark in (*case.first, *case.second))
                )
            ]
            self._read_places(self._mode, found.at_hand, ids)

    @work(thread=True, group="places", exclusive=True)
    def _read_places(self, mode: str, at_hand: TraceLoader, trace_ids: list[str]) -> None:
        worker = get_current_worker()
        try:
            more = at_hand.read_more(trace_ids, MOST_READ, lambda: worker.is_cancelled)
        except (WorkspaceError, OSError):
            return  # the places keep the names of their spans
        if more:
            self.call_later(self._name_places, mode)

    def _name_places(self, mode: str) -> None:
        """Name the places by their numbers, now that their traces were read."""
        if mode == self._mode:
            self._show_cases(read=False)

    @on(ColumnTable.ColumnsFitted)
    def _fitted(self, event: ColumnTable.ColumnsFitted) -> None:
        event.stop()
        heading = self.query_one(f"#{event.table.id}-heading", Static)
        heading.update(Content(event.table.heading()))

    @on(VirtualLines.Moved, "#counts")
    def _moved(self, event: VirtualLines.Moved) -> None:
        event.stop()
        self.hints.clear()
        self.cases.move_to(0)
        self._show_cases()

    @on(VirtualLines.Moved, "#cases")
    def _case_moved(self, event: VirtualLines.Moved) -> None:
        event.stop()
        self.hints.clear()
        self._show_reasons()

    def _show_reasons(self) -> None:
        """Show what both sides say of the case under the cursor, and why."""
        if not self._gold:
            return
        case, opened = self.cases.row, self.mast.opened
        if case is None or opened is None or self._found is None:
            self.query_one("#reasons", SpanView).show_text("")
            return
        self._read_reasons(opened, self._found, case)

    @work(thread=True, group="reasons", exclusive=True)
    def _read_reasons(self, opened: OpenWorkspace, found: RunComparison, case: Case) -> None:
        marked = found.alignment.marked.get((case.trace_id, case.mode), "")
        words = found.words[case.trace_id]
        try:
            lines = reasons(opened, self._first.judge, case, words, marked)
        except WorkspaceError as error:
            lines = [str(error)]
        self.call_later(self._show_read_reasons, case, lines)

    def _show_read_reasons(self, case: Case, lines: list[str]) -> None:
        if case is self.cases.row:
            self.query_one("#reasons", SpanView).show_text("\n".join(lines))

    @on(VirtualLines.Chosen)
    def _chosen(self, event: VirtualLines.Chosen) -> None:
        event.stop()
        self.action_open()

    # Keys

    def action_open(self) -> None:
        """From the counts to the traces behind them, from there into the trace."""
        if self.pane is not self.cases:
            if self.cases.rows:
                self.cases.focus()
            else:
                self.hints.say("Neither has found this mode in any trace")
            return
        cases, found = self._cases_here(), self._found
        if cases and found is not None:
            case = cases[self.cases.cursor]
            self.open_at(evidence_of(case, found.at_hand.known_order(case.trace_id)))

    def action_pane(self) -> None:
        """The other list."""
        if self.pane is self.cases or not self.cases.rows:
            self.main_list.focus()
        else:
            self.cases.focus()

    def action_back(self) -> None:
        """From the traces to the counts, then to the runs."""
        if self.focused is self.cases:
            self.main_list.focus()
        else:
            super().action_back()

    def action_seen(self) -> None:
        """Count also what was settled with a judge on screen, or leave it out again."""
        if not self._gold:
            self.hints.say("Here judges are compared, not people")
        elif self._found is not None and not self._found.judge_seen:
            self.hints.say("No verdict was settled with a judge on screen")
        else:
            self._with_seen = not self._with_seen
            self.mast.workspace.when_ready(self._compare)

    def _case_in_doubt(self) -> Case | None:
        """Return the case under the cursor, or say how to choose one."""
        case = self.cases.row
        if not self._gold:
            self.hints.say("Here judges are compared, not people")
        elif case is None or self.pane is not self.cases:
            key = self.mast.key_of("comparison.pane")
            self.hints.say(f"Choose a trace in the lower list first: {key} goes there")
        else:
            return case
        return None

    def action_wrong(self) -> None:
        """Mark the judge as wrong on the case under the cursor, with a reason."""
        case, found = self._case_in_doubt(), self._found
        if case is None or found is None:
            return
        if case.outcome is Outcome.BOTH:
            self.hints.say("Judge and people agree that the mode shows here")
            return
        mode = self.mast.taxonomy.mode(case.mode)

        def written(text: str | None) -> None:
            if text is not None:
                self._mark(case, text.strip())

        missed = case.outcome is Outcome.SECOND
        title = f"Why is {mode.code} {'missed' if missed else 'not shown'} here?"
        before = found.alignment.marked.get((case.trace_id, case.mode), "")
        self.app.push_screen(NoteScreen(title, before), written)

    def _mark(self, case: Case, reason: str) -> None:
        def step(opened: OpenWorkspace) -> str:
            mistake = MarkedMistake(
                self._first.judge, case.trace_id, case.mode, reason, opened.annotator, now()
            )
            mark_mistake(opened.workspace, opened.taxonomy.ref, mistake)
            if not reason:
                return "The mark is removed"
            return f"Marked as wrong: {self.mast.key_of('comparison.teach')} teaches the judge"

        self._change(step)

    def action_guideline(self) -> None:
        """Write a guideline for the mode under the cursor."""
        case, opened = self.cases.row, self.mast.opened
        slug = self._mode or ("" if case is None else case.mode)
        if not self._gold or not slug or opened is None:
            self.hints.say("Choose a mode first: a guideline is about one mode")
            return
        study = opened.study()
        if study is not None and study.adjudicators and opened.annotator not in study.adjudicators:
            self.hints.say("In this study the adjudicators write guidelines")
            return
        mode = self.mast.taxonomy.mode(slug)

        def written(text: str | None) -> None:
            if text is not None and text.strip():
                self._change(lambda opened: _write_guideline(opened, slug, text))

        title = f"What we agreed {mode.code} {mode.name} means here"
        self.app.push_screen(NoteScreen(title), written)

    def action_teach(self) -> None:
        """See what the judge would be taught, and what that takes."""
        if self._found is None or not self._gold:
            self.hints.say("Compare a run with gold first: people teach a judge")
        else:
            found = self._found
            aligned = AlignedRun(self._first, found.comparison.cases, found.alignment, found.words)
            self.app.push_screen(TeachingScreen(aligned))

    def action_default(self) -> None:
        """Make this judge the one that is asked from now on."""

        def step(opened: OpenWorkspace) -> str:
            make_default(opened.workspace, opened.taxonomy.ref, self._first.judge)
            return f"{judge_name(self._first.judge)} is the judge that is asked from now on"

        if self._gold:
            self._change(step)
        else:
            self.hints.say("Compare a run with gold first: that tells whether it is better")

    def action_undo(self) -> None:
        """Go back to the judge that was the default before."""

        def step(opened: OpenWorkspace) -> str:
            judge = restore_default(opened.workspace, opened.taxonomy.ref)
            name = "the judge of the configuration" if judge is None else judge_name(judge)
            return f"Back to {name}"

        self._change(step)

    @piece_of_work
    async def _change(self, step: Callable[[OpenWorkspace], str]) -> None:
        """Change something in the workspace, report it, and compare anew."""
        opened = self.mast.opened
        if opened is None:
            return
        try:
            report = await self.writes.run(partial(step, opened))
        except MastError as error:
            self.say_error(error)
            return
        self.hints.say(report)
        self.mast.workspace.when_ready(self._compare)

    def judged(self, message: JudgeProgress) -> None:
        """Say how far a judge at work has come.

        Args:
            message: The progress.
        """
        message.tell(self.hints)


def _write_guideline(opened: OpenWorkspace, mode: str, text: str) -> str:
    GuidelineBook(opened.workspace, opened.taxonomy, opened.annotator).write(mode, text)
    return "Written down: the next version of the judge reads it"


def evidence_of(case: Case, order: Order) -> TraceLocation:
    """Where to look: at what the first says, else at what only the second does."""
    marks = in_reading_order(case.first or case.second, lambda mark: mark.target, order)
    if not marks:
        return TraceLocation(case.trace_id)
    return TraceLocation(case.trace_id, suggestion=marks[0].label, key=marks[0].target.first)
