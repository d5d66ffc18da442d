"""The comparison of two judge runs, or of a run with the gold, per mode and per trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Final

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from mast_tui.adjudication import GuidelineBook, TraceSides, read_work_by_trace
from mast_tui.columns import ColumnWidth, TableColumn
from mast_tui.figures.record import FigureTable
from mast_tui.gold import GoldTrace, Order
from mast_tui.gold.overlaps import in_reading_order
from mast_tui.judges.comparing import (
    Case,
    Mark,
    ModeCounts,
    PresentSide,
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
from mast_tui.safe_text import one_line
from mast_tui.session import library_view, record_reveal, visible_traces_for_agreement
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.model import Trace
from mast_tui.ui.actions.registry import KeyOf, Where
from mast_tui.ui.context import JudgeProgress, TraceLocation
from mast_tui.ui.dialogs.dialog import NoteScreen
from mast_tui.ui.judge_runs.alignment import (
    ALL_MODES,
    RunComparison,
    rate_text,
    read_alignment,
    reason_lines,
    version_test_text,
)
from mast_tui.ui.judge_runs.teaching import TeachingScreen
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.services.trace_loader import TraceLoader
from mast_tui.ui.styles import BASE_SCREEN, RUNS
from mast_tui.ui.suggestion_wording import judge_name
from mast_tui.ui.table_screen import MOST_READ, OpensTraces
from mast_tui.ui.trace_view.span_view import SpanView
from mast_tui.ui.widgets.virtual_lines import (
    ANY_FILLED,
    ColumnTable,
    VirtualLines,
    figure_column,
    name_width,
    sign_column,
)
from mast_tui.ui.wording import counted, hidden_traces_text, place_text, plain_title
from mast_tui.workspace import Run, Workspace
from mast_tui.workspace.events.model import now
from mast_tui.workspace.registers.hold_out import TracePart, trace_part
from mast_tui.writes import piece_of_work


def compare_runs(
    opened: OpenWorkspace, first: Run, second: Run, open_traces: Sequence[Trace]
) -> RunComparison:
    """Compare two runs over the traces that both have judged. This is slow, so call it in a worker.

    Args:
        opened: The open workspace.
        first: The run on side A.
        second: The run on side B.
        open_traces: The traces that the library lists.

    Returns:
        The comparison, without traces with hidden suggestions and traces with their text in a
        prompt.

    Raises:
        WorkspaceError: The workspace cannot be read.
    """
    workspace = opened.workspace
    view = library_view(workspace, opened.annotator, opened.taxonomy.ref, blind=opened.blind)
    shared_ids = _judged_trace_ids(opened, first) & _judged_trace_ids(opened, second)
    visible_ids = {
        trace_id
        for trace_id in shared_ids
        if trace_id in view and view[trace_id].suggestions_visible
    }
    example_ids = workspace.run_examples(first.judge) | workspace.run_examples(second.judge)
    compared_ids = visible_ids - example_ids
    loader = TraceLoader(workspace, open_traces, opened.masks)
    comparison = compare(
        _side_of_judge(opened, first.judge),
        _side_of_judge(opened, second.judge),
        compared_ids,
        [mode.slug for mode in opened.taxonomy.modes],
        loader.orders,
    )
    return RunComparison(
        run=first,
        comparison=comparison,
        loader=loader,
        trace_count=len(compared_ids),
        example_count=len(visible_ids & example_ids),
        hidden_count=len(shared_ids - visible_ids),
    )


def compare_with_gold(
    opened: OpenWorkspace, run: Run, open_traces: Sequence[Trace], *, counts_seen_verdicts: bool
) -> RunComparison:
    """Compare a run with the gold, over traces that the annotator has finished or adjudicated.

    Record in the workspace on which traces this reveals work. This is slow, so call it in a worker.

    Args:
        opened: The open workspace.
        run: The run of a judge.
        open_traces: The traces that the library lists.
        counts_seen_verdicts: Whether to count verdicts that were decided with a judge on screen.

    Returns:
        The comparison, without traces with hidden gold and traces with their text in the judge's
        prompt.

    Raises:
        MastError: The workspace cannot be read, or the reveal cannot be recorded.
    """
    workspace = opened.workspace
    taxonomy = opened.taxonomy
    work_by_trace = read_work_by_trace(workspace, taxonomy)
    gold_ids = _judged_trace_ids(opened, run) & work_by_trace.keys()
    visible_ids = gold_ids & visible_traces_for_agreement(workspace, opened.annotator, taxonomy.ref)
    example_ids = workspace.run_examples(run.judge)
    loader = TraceLoader(workspace, open_traces, opened.masks)
    gold_by_trace = {
        trace_id: work_by_trace[trace_id].gold(taxonomy, loader.orders(trace_id))
        for trace_id in sorted(visible_ids)
    }
    gold_by_part = _gold_by_part(workspace, gold_by_trace)
    # Held-out traces stay unknown until they measure a judge.
    counted_gold = {
        trace_id: gold
        for trace_id, gold in gold_by_part[TracePart.DEVELOPMENT].items()
        if trace_id not in example_ids
    }
    comparison = replace(
        _compare_with_gold_side(opened, run, loader, counted_gold, counts_seen_verdicts),
        example_count=len(visible_ids & example_ids),
        hidden_count=len(gold_ids - visible_ids),
        alignment=read_alignment(opened, run.judge, gold_by_part, with_seen=counts_seen_verdicts),
        work_by_trace={trace_id: work_by_trace[trace_id] for trace_id in counted_gold},
    )
    _record_reveal_of_work(opened, comparison.work_by_trace)
    return comparison


def _compare_with_gold_side(
    opened: OpenWorkspace,
    run: Run,
    loader: TraceLoader,
    gold_by_trace: Mapping[str, GoldTrace],
    counts_seen_verdicts: bool,
) -> RunComparison:
    """Compare the verdicts of a run with those of the gold."""
    gold_side = _side_of_gold(gold_by_trace)
    judge_side = _side_of_judge(opened, run.judge)
    seen_subjects = _seen_subjects(gold_by_trace)
    omitted_subjects = frozenset() if counts_seen_verdicts else seen_subjects
    compared_subjects = (gold_side.verdicts.keys() & judge_side.verdicts.keys()) - omitted_subjects
    comparison = compare(
        judge_side,
        gold_side,
        gold_by_trace.keys(),
        [mode.slug for mode in opened.taxonomy.modes],
        loader.orders,
        left_out=omitted_subjects,
    )
    return RunComparison(
        run,
        comparison,
        loader,
        trace_count=len({trace_id for trace_id, _ in compared_subjects}),
        seen_verdict_count=len(seen_subjects),
        counts_seen_verdicts=counts_seen_verdicts,
    )


def _gold_by_part(
    workspace: Workspace, gold_by_trace: Mapping[str, GoldTrace]
) -> dict[TracePart, dict[str, GoldTrace]]:
    gold_by_part: dict[TracePart, dict[str, GoldTrace]] = {part: {} for part in TracePart}
    for trace_id, gold in gold_by_trace.items():
        gold_by_part[trace_part(workspace, trace_id)][trace_id] = gold
    return gold_by_part


def _record_reveal_of_work(opened: OpenWorkspace, work_by_trace: Mapping[str, TraceSides]) -> None:
    """Record on which traces the annotator now sees hidden suggestions or work of others."""
    hidden_ids = work_by_trace.keys() if opened.blind else opened.hidden_traces()
    revealed_ids = [
        trace_id
        for trace_id, trace_work in work_by_trace.items()
        if trace_id in hidden_ids or _has_work_of_others(opened, trace_work)
    ]
    record_reveal(opened.workspace, opened.annotator, opened.taxonomy.ref, sorted(revealed_ids))


def _has_work_of_others(opened: OpenWorkspace, trace_work: TraceSides) -> bool:
    """Return whether another person has a pass or decision on a trace."""
    names = (*trace_work.passes, *(decision.decided_by for decision in trace_work.decisions))
    return any(name != opened.annotator for name in names)


def _judged_trace_ids(opened: OpenWorkspace, run: Run) -> set[str]:
    """Return the ids of the run's traces that its judge has judged."""
    judged_ids = {
        judgement.trace_id
        for judgement in opened.workspace.judgements(annotator=run.judge, taxonomy=run.taxonomy)
    }
    return judged_ids & {trace.trace_id for trace in run.traces}


def _side_of_gold(gold_by_trace: Mapping[str, GoldTrace]) -> Side:
    """Return the verdicts and labels of the gold as a side of the comparison."""
    verdicts = {
        (trace_id, verdict.mode): verdict.value
        for trace_id, gold in gold_by_trace.items()
        for verdict in gold.verdicts
        if verdict.value is not None
    }
    marks: dict[tuple[str, str], tuple[Mark, ...]] = {}
    for trace_id, gold in gold_by_trace.items():
        for label in gold.labels:
            subject = (trace_id, label.mode)
            marks[subject] = (*marks.get(subject, ()), Mark(label.target))
    return Side(verdicts, marks)


def _seen_subjects(gold_by_trace: Mapping[str, GoldTrace]) -> frozenset[tuple[str, str]]:
    """Return the trace and mode of each verdict that was decided with a judge's answer on
    screen.
    """
    return frozenset(
        (trace_id, verdict.mode)
        for trace_id, gold in gold_by_trace.items()
        for verdict in gold.verdicts
        if verdict.judge_seen and verdict.value is not None
    )


def _side_of_judge(opened: OpenWorkspace, judge: str) -> Side:
    """Return the verdicts and labels of a judge as a side of the comparison."""
    workspace = opened.workspace
    ref = opened.taxonomy.ref
    verdicts = {
        (verdict.trace_id, verdict.mode): verdict.value
        for verdict in workspace.verdicts(annotator=judge, taxonomy=ref)
    }
    return side_of(workspace.labels(annotator=judge, taxonomy=ref), verdicts)


MOST_RANGES: Final = 4
"""The most span ranges that a row names for one side."""


@dataclass(frozen=True, slots=True)
class SideTexts:
    """The names of two sides, and the headings of counts of traces.

    Attributes:
        first: The first side.
        second: The second side.
        both: The traces in which both sides say present.
        same_place: The traces in which the span ranges of both sides overlap.
        only_first: The traces in which only the first side says present.
        only_second: The traces in which only the second side says present.
    """

    first: str
    second: str
    both: str
    same_place: str
    only_first: str
    only_second: str


RUN_TEXTS: Final = SideTexts("A", "B", "both", "same place", "only A", "only B")
GOLD_TEXTS: Final = SideTexts("judge", "gold", "in gold", "place", "not in gold", "missed")

_MAX_CODE_CHARS: Final = 8


def mode_code(slug: str, taxonomy: Taxonomy) -> str:
    """Return the code of a mode; empty for all modes together.

    Args:
        slug: The mode, or ``ALL_MODES``.
        taxonomy: The taxonomy of the mode.
    """
    return "" if slug == ALL_MODES else one_line(taxonomy.mode(slug).code, _MAX_CODE_CHARS)


def mode_name(slug: str, taxonomy: Taxonomy) -> str:
    """Return the name of a mode, or ``all modes``.

    Args:
        slug: The mode, or ``ALL_MODES``.
        taxonomy: The taxonomy of the mode.
    """
    return "all modes" if slug == ALL_MODES else one_line(taxonomy.mode(slug).name)


def _share_text(share: float | None) -> str:
    return "—" if share is None else f"{share:.2f}"


def _same_places(counts: ModeCounts) -> str:
    place_count = counts.meet + counts.apart
    return f"{counts.meet} of {place_count}" if place_count else "—"


def _has_difference(counts: ModeCounts) -> bool:
    return bool(counts.first or counts.second or counts.apart)


def _counts_sign(counts: ModeCounts) -> str:
    if _has_difference(counts):
        return "≠"
    return "=" if counts.both else " "


def count_columns(taxonomy: Taxonomy, texts: SideTexts) -> tuple[TableColumn[ModeCounts], ...]:
    """Return the columns of the counts of each mode.

    The number of a column is its rank: a short line drops columns by rank.

    Args:
        taxonomy: The taxonomy of the modes.
        texts: The headings.
    """
    return (
        sign_column(_counts_sign, lambda row: "doubt" if _has_difference(row) else "quiet"),
        TableColumn(
            "", lambda row: mode_code(row.mode, taxonomy), "name", ColumnWidth(filled=ANY_FILLED)
        ),
        TableColumn(
            "mode",
            lambda row: mode_name(row.mode, taxonomy),
            lambda row: "total" if row.mode == ALL_MODES else "figure",
            name_width(),
        ),
        figure_column(texts.both, lambda row: str(row.both), 95),
        figure_column(texts.same_place, _same_places, 70),
        figure_column(texts.only_first, lambda row: str(row.first), 94, "doubt"),
        figure_column(texts.only_second, lambda row: str(row.second), 93, "doubt"),
        figure_column("neither", lambda row: str(row.neither), 42),
        figure_column("undecided", lambda row: str(row.undecided), 40),
    )


def rate_columns(rates: Mapping[str, FigureTable]) -> tuple[TableColumn[ModeCounts], ...]:
    """Return the columns of a judge's rates, given by the slug of the mode."""
    return (
        figure_column("precision", lambda row: _share_text(row.precision), 55),
        figure_column("TPR", lambda row: rate_text(rates[row.mode].get("true_positive_rate")), 57),
        figure_column("TNR", lambda row: rate_text(rates[row.mode].get("true_negative_rate")), 56),
    )


def case_columns(
    taxonomy: Taxonomy, loader: TraceLoader, texts: SideTexts, *, with_mode: bool
) -> tuple[TableColumn[Case], ...]:
    """Return the columns of cases.

    A case is a mode in a trace in which at least one side says present.

    Args:
        taxonomy: The taxonomy of the modes.
        loader: Returns the names of traces and the order of their spans.
        texts: The names of the sides.
        with_mode: Whether to show the mode's code, for cases of several modes.
    """

    return (
        sign_column(lambda row: "≠" if row.differs else "=", _case_style),
        TableColumn(
            "trace", lambda row: one_line(loader.name_of(row.trace_id)), "name", name_width()
        ),
        TableColumn(
            "",
            lambda row: mode_code(row.mode, taxonomy) if with_mode else "",
            "name",
            ColumnWidth(90, filled=ANY_FILLED),
        ),
        TableColumn(
            "",
            lambda row: outcome_text(row, texts),
            _case_style,
            ColumnWidth(95, filled=ANY_FILLED),
        ),
        TableColumn(
            texts.first,
            lambda row: _ranges_of_side(row, PresentSide.FIRST, row.first, loader),
            width=name_width(80),
        ),
        TableColumn(
            texts.second,
            lambda row: _ranges_of_side(row, PresentSide.SECOND, row.second, loader),
            width=name_width(79),
        ),
    )


def _ranges_of_side(
    case: Case, side: PresentSide, marks: tuple[Mark, ...], loader: TraceLoader
) -> str:
    """Return the span ranges that a side marks, or a dash if it does not say present."""
    if case.outcome not in (side, PresentSide.BOTH):
        return "—"
    return ranges_text(marks, loader.known_order(case.trace_id))


def _case_style(case: Case) -> str:
    return "doubt" if case.differs else "quiet"


def outcome_text(case: Case, texts: SideTexts) -> str:
    """Return which side says present. If both do, also return whether their ranges overlap.

    Args:
        case: The mode and the trace on which the sides are compared.
        texts: The names of the sides.
    """
    if case.outcome is PresentSide.FIRST:
        return texts.only_first
    if case.outcome is PresentSide.SECOND:
        return texts.only_second
    if case.meet is None:
        return "both"
    return "both, same place" if case.meet else "both, elsewhere"


def ranges_text(marks: tuple[Mark, ...], order: Order) -> str:
    """Return the first span ranges of some marks, and the number of further ranges.

    Args:
        marks: The marks of the side.
        order: The order of the spans of the trace.
    """
    if not marks:
        return "no place"
    ordered_marks = in_reading_order(marks, lambda mark: mark.target, order)
    ranges = [place_text(mark.target, order, quoted=False) for mark in ordered_marks[:MOST_RANGES]]
    further_count = len(marks) - MOST_RANGES
    return ", ".join(ranges) + (f" and {further_count} more" if further_count > 0 else "")


def comparison_summary(comparison: RunComparison, key_of: KeyOf) -> str:
    """Return the number of compared traces, and how many were left out and why.

    For a taught version, a second line has the result of its test.

    Args:
        comparison: The comparison.
        key_of: Returns how the key of an action is shown.
    """
    parts = [f"{counted(comparison.trace_count, 'trace')} compared"]
    if comparison.example_count:
        noun = "an example" if comparison.example_count == 1 else "examples"
        parts.append(f"{comparison.example_count} left out, {noun} in a prompt")
    if comparison.hidden_count:
        parts.append(f"{comparison.hidden_count} hidden until you have finished them")
    if comparison.seen_verdict_count:
        treatment = f"left out ({key_of('comparison.seen')} counts them)"
        if comparison.counts_seen_verdicts:
            treatment = "counted, so the figures are not independent"
        verdicts = counted(comparison.seen_verdict_count, "verdict")
        parts.append(f"{verdicts} decided with a judge on screen: {treatment}")
    if comparison.alignment.held_out:
        parts.append(f"{comparison.alignment.held_out} held out")
    chosen_count = len(comparison.alignment.unmeasured & comparison.work_by_trace.keys())
    if chosen_count:
        parts.append(f"{chosen_count} chosen for earlier errors, not in TPR and TNR")
    if comparison.alignment.is_default:
        parts.append(f"the default judge ({key_of('runs.judge')} asks it)")
    lines = [" · ".join(parts), version_test_text(comparison.alignment)]
    return "\n".join(line for line in lines if line)


def empty_comparison_text(comparison: RunComparison, key_of: KeyOf, *, gold: bool) -> str:
    """Return why there is nothing to compare, and what to do.

    Args:
        comparison: The comparison.
        key_of: Returns how the key of an action is shown.
        gold: Whether the run is compared with gold.
    """
    if gold:
        lines = [
            "No trace of this run has gold that you may see and that is independent.\n",
            f"A trace has gold once people have finished it ({key_of('annotate.finish')}) and its "
            f"conflicts are resolved ({key_of('everywhere.adjudicate')}).",
        ]
    else:
        lines = [
            "These two judges have judged no trace in common that you may see.\n",
            f"{key_of('everywhere.runs')}, then {key_of('runs.judge')}, runs a judge on all traces "
            "of the library.",
        ]
    if comparison.example_count:
        traces_text = counted(
            comparison.example_count, "trace is an example", "traces are examples"
        )
        lines.append(f"Left out: {traces_text} in a prompt.")
    if comparison.hidden_count:
        keys = f"{key_of('everywhere.signatures')}, then {key_of('signatures.look')},"
        lines.append(f"{hidden_traces_text(comparison.hidden_count, keys)}.")
    lines += ["", f"{key_of('everywhere.back')} goes back."]
    return "\n".join(lines)


GOLD_ACTIONS: Final = ("wrong", "guideline", "teach", "default", "seen")
"""The actions that only a comparison with gold has."""

ONLY_WITH_GOLD: Final = "This key works only in a comparison with gold"


class ComparisonScreen(OpensTraces):
    """The counts of each mode, and below them the traces of the mode under the cursor."""

    CSS_PATH = [BASE_SCREEN, RUNS]
    AUTO_FOCUS = "#counts"
    where = Where.COMPARISON

    def __init__(self, first: Run, second: Run | None) -> None:
        """Compare a run with another run, or with the gold if ``second`` is None."""
        super().__init__()
        self._first = first
        self._second = second
        self._counts_seen_verdicts = False
        """True to count verdicts that were decided with a judge on screen."""
        self._comparison: RunComparison | None = None
        self.hints.leave_out(() if second is None else GOLD_ACTIONS)

    @property
    def _with_gold(self) -> bool:
        return self._second is None

    @property
    def _texts(self) -> SideTexts:
        return GOLD_TEXTS if self._with_gold else RUN_TEXTS

    def compose_panes(self) -> ComposeResult:
        """Yield the counts, the traces and, with gold, the reasons of both sides."""
        self.set_class(self._with_gold, "-gold")
        yield Static(id="about", markup=False)
        counts = ColumnTable[ModeCounts](attrgetter("mode"), id="counts")
        cases = ColumnTable[Case](attrgetter("mode", "trace_id"), id="cases")
        for table in (counts, cases):
            yield table.heading_line
            yield table
        if self._with_gold:
            yield SpanView(id="reasons", classes="detail")

    @property
    def main_list(self) -> ColumnTable[ModeCounts]:
        """The counts."""
        return self.query_one("#counts", ColumnTable)

    @property
    def cases(self) -> ColumnTable[Case]:
        """The traces of the mode under the cursor."""
        return self.query_one("#cases", ColumnTable)

    def on_mount(self) -> None:
        """Start the comparison as soon as the workspace is open."""
        self.show_message_only("Comparing …")
        self.show_title()
        for reasons_pane in self.query(SpanView):
            reasons_pane.can_focus = False
            reasons_pane.border_title = plain_title("What judge and people say")
        self.mast.workspace.when_ready(self._read_comparison)

    def show_title(self) -> None:
        first_title = judge_name(self._first.judge)
        second_title = "gold"
        if self._second is not None:
            first_title = f"A {first_title}"
            second_title = f"B {judge_name(self._second.judge)}"
        self.title_bar.show((first_title, f"beside {second_title}"), self.right_title_parts())

    def _read_comparison(self, opened: OpenWorkspace) -> None:
        """Compare the runs, or the run with the gold, in a worker; show the result or the error."""
        open_traces = list(self.mast.catalog.traces.values())
        counts_seen_verdicts = self._counts_seen_verdicts

        def compare_sides() -> RunComparison:
            if self._second is not None:
                return compare_runs(opened, self._first, self._second, open_traces)
            return compare_with_gold(
                opened, self._first, open_traces, counts_seen_verdicts=counts_seen_verdicts
            )

        self.work.run("comparison", compare_sides, self._show_comparison, self._show_problem)

    def _show_problem(self, problem: str) -> None:
        self._comparison = None
        self.show_message_only(problem)

    def _show_comparison(self, comparison: RunComparison) -> None:
        """Show the counts and traces, or the reason why there is nothing to compare."""
        self._comparison = comparison
        is_empty = not comparison.trace_count or not comparison.comparison.total.compared
        # The summary says how to count verdicts that were decided with a judge on screen. So it is
        # shown if there are any.
        if is_empty and not comparison.seen_verdict_count:
            self.show_message_only(
                empty_comparison_text(comparison, self.mast.key_of, gold=self._with_gold)
            )
            return
        self.remove_class("-empty")
        summary = comparison_summary(comparison, self.mast.key_of)
        self.query_one("#about", Static).update(Content(summary))
        columns = count_columns(self.mast.taxonomy, self._texts)
        if self._with_gold:
            columns += rate_columns(comparison.alignment.rates)
        self.main_list.columns = columns
        self.main_list.show([comparison.comparison.total, *comparison.comparison.counts])
        if self.focused is None:
            self.main_list.focus()
        self._show_cases()

    @property
    def _mode_slug(self) -> str:
        """The slug of the mode in the row under the cursor, or ``ALL_MODES``."""
        row = self.main_list.row
        return ALL_MODES if row is None else row.mode

    def _visible_cases(self) -> list[Case]:
        """Return the cases of the mode under the cursor.

        For all modes together, the cases with a difference come first.
        """
        if self._comparison is None:
            return []
        cases_by_mode = self._comparison.comparison.cases
        if self._mode_slug:
            return list(cases_by_mode.get(self._mode_slug, ()))
        all_cases = [case for cases in cases_by_mode.values() for case in cases]
        return sorted(all_cases, key=lambda case: not case.differs)

    def _show_cases(self) -> None:
        """Show the traces of the mode under the cursor.

        Then read the traces with marked spans of unknown number.
        """
        cases = self._visible_cases()
        self._list_cases(cases)
        if self._comparison is not None:
            places = [
                (case.trace_id, [mark.target for mark in (*case.first, *case.second)])
                for case in cases[:MOST_READ]
            ]
            self.read_orders(
                self._comparison.loader, places, partial(self._refresh_ranges, self._mode_slug)
            )

    def _list_cases(self, cases: Sequence[Case]) -> None:
        comparison = self._comparison
        if comparison is None:
            return
        taxonomy = self.mast.taxonomy
        self.cases.columns = case_columns(
            taxonomy, comparison.loader, self._texts, with_mode=self._mode_slug == ALL_MODES
        )
        self.cases.show(cases)
        name = (
            f"{mode_code(self._mode_slug, taxonomy)} {mode_name(self._mode_slug, taxonomy)}".strip()
        )
        self.cases.border_title = plain_title(f"{name}: {len(cases)}" if cases else f"{name}: none")
        self._show_reasons()

    def _refresh_ranges(self, mode: str) -> None:
        """Show the span ranges by number, unless the cursor is on another mode now."""
        if mode == self._mode_slug:
            self._list_cases(self.cases.rows)

    def row_moved(self) -> None:
        """Show the traces of another mode."""
        self.hints.clear()
        self.cases.move_to(0)
        self._show_cases()

    @on(VirtualLines.Moved, "#cases")
    def _case_moved(self) -> None:
        self.hints.clear()
        self._show_reasons()

    def _show_reasons(self) -> None:
        """Show the answers and reasons on the case under the cursor, if there is gold."""
        if not self._with_gold:
            return
        show_text = self.query_one("#reasons", SpanView).show_text
        case = self.cases.row
        opened = self.mast.opened
        if case is None or opened is None or self._comparison is None:
            self.work.stop("reasons")
            show_text("")
            return
        read_lines = partial(reason_lines, opened, self._comparison, case)
        self.work.run("reasons", lambda: "\n".join(read_lines()), show_text, show_text)

    @on(VirtualLines.Chosen, "#cases")
    def action_open(self) -> None:
        """Open the trace of the case under the cursor at its evidence.

        In the list of modes, focus the list of cases instead.
        """
        if self.pane is not self.cases:
            if self.cases.rows:
                self.cases.focus()
            else:
                self.hints.say("Neither side has this mode in any trace")
            return
        case = self.cases.row
        comparison = self._comparison
        if case is not None and comparison is not None:
            self.open_at(evidence_of(case, comparison.loader.known_order(case.trace_id)))

    def action_pane(self) -> None:
        """Focus the other list."""
        if self.pane is self.cases or not self.cases.rows:
            self.main_list.focus()
        else:
            self.cases.focus()

    def action_back(self) -> None:
        """Return from the traces to the counts, or from there to the runs."""
        if self.focused is self.cases:
            self.main_list.focus()
        else:
            super().action_back()

    def action_seen(self) -> None:
        """Count the verdicts that were decided with a judge on screen, or leave them out."""
        if not self._with_gold:
            self.hints.say(ONLY_WITH_GOLD)
        elif self._comparison is not None and not self._comparison.seen_verdict_count:
            self.hints.say("No verdict was decided with a judge on screen")
        else:
            self._counts_seen_verdicts = not self._counts_seen_verdicts
            self.mast.workspace.when_ready(self._read_comparison)

    def _require_case(self) -> Case | None:
        """Return the case under the cursor, or show a hint and return None.

        A case is needed in a comparison with gold, with the focus on the lower list.
        """
        case = self.cases.row
        if not self._with_gold:
            self.hints.say(ONLY_WITH_GOLD)
        elif case is None or self.pane is not self.cases:
            key = self.mast.key_of("comparison.pane")
            self.hints.say(f"Choose a trace in the lower list first: {key} goes there")
        else:
            return case
        return None

    def action_wrong(self) -> None:
        """Ask why the judge is wrong on the case under the cursor, and mark it."""
        case = self._require_case()
        comparison = self._comparison
        if case is None or comparison is None:
            return
        if case.outcome is PresentSide.BOTH:
            self.hints.say("Judge and people agree that the mode is present here")
            return
        mode = self.mast.taxonomy.mode(case.mode)
        is_missed = case.outcome is PresentSide.SECOND  # only the gold says present
        title = f"Why is {mode.code} {'present' if is_missed else 'absent'} here?"
        previous_reason = comparison.alignment.mistake_reasons.get((case.trace_id, case.mode), "")
        self._ask_text(title, previous_reason, partial(self._mark_mistake, case))

    def _ask_text(self, title: str, text: str, write: Callable[[OpenWorkspace, str], str]) -> None:
        """Ask for a text, and write it.

        Args:
            title: The title of the question.
            text: The text to begin with.
            write: Writes the text, and returns a message about it.
        """
        self.mast.ask_to_write(
            partial(NoteScreen, title, text),
            lambda new_text, ask_again: self._change_and_compare(
                lambda opened: write(opened, new_text), failed=ask_again
            ),
        )

    def _mark_mistake(self, case: Case, opened: OpenWorkspace, text: str) -> str:
        """Record that the judge is wrong on a case, and return a message about it.

        An empty reason removes the mark.
        """
        reason = text.strip()
        mistake = MarkedMistake(
            self._first.judge, case.trace_id, case.mode, reason, opened.annotator, now()
        )
        mark_mistake(opened.workspace, opened.taxonomy.ref, mistake)
        if not reason:
            return "The mark is removed"
        return f"Marked as wrong: {self.mast.key_of('comparison.teach')} teaches the judge"

    def action_guideline(self) -> None:
        """Write a guideline for the mode under the cursor."""
        case = self.cases.row
        opened = self.mast.opened
        slug = self._mode_slug or ("" if case is None else case.mode)
        if not self._with_gold or not slug or opened is None:
            self.hints.say("Choose a mode first: a guideline is about one mode")
            return
        study = opened.study()
        if study is not None and not study.is_adjudicator(opened.annotator):
            self.hints.say("In this study the adjudicators write guidelines")
            return
        mode = self.mast.taxonomy.mode(slug)
        title = f"Guideline for {mode.code} {mode.name}"
        self._ask_text(title, "", partial(_write_guideline, slug))

    def action_teach(self) -> None:
        """Open the screen for the next version of the judge."""
        if self._comparison is None or not self._with_gold:
            self.hints.say("Compare a run with gold first: people teach a judge")
        elif self._first.settings is None:
            name = judge_name(self._first.judge)
            self.hints.say(f"{name} has asked no model here, so it cannot be taught")
        else:
            self.app.push_screen(TeachingScreen(self._comparison))

    def action_default(self) -> None:
        """Make the judge of the compared run the default judge."""

        def write_default(opened: OpenWorkspace) -> str:
            make_default(opened.workspace, opened.taxonomy.ref, self._first.judge)
            return f"{judge_name(self._first.judge)} is the default judge now"

        if self._with_gold:
            self._change_and_compare(write_default)
        else:
            self.hints.say("Compare a run with gold first: that tells whether it is better")

    def action_undo(self) -> None:
        """Make the previous default judge the default again."""

        def write_previous_default(opened: OpenWorkspace) -> str:
            judge = restore_default(opened.workspace, opened.taxonomy.ref)
            name = "the judge of the configuration" if judge is None else judge_name(judge)
            return f"The default judge is {name} again"

        self._change_and_compare(write_previous_default)

    @piece_of_work
    async def _change_and_compare(
        self,
        write_change: Callable[[OpenWorkspace], str],
        failed: Callable[[], None] = lambda: None,
    ) -> None:
        """Change the workspace, show a message about it, and compare anew.

        ``write_change`` returns the message. Its errors are shown, then ``failed`` is called.
        """
        opened = self.mast.opened
        if opened is None:
            return
        message = await self.run_or_show_error(partial(write_change, opened))
        if message is None:
            failed()
            return
        self.hints.say(message)
        self.mast.workspace.when_ready(self._read_comparison)

    def show_judge_progress(self, message: JudgeProgress) -> None:
        """Show the progress of a judge at work."""
        message.show_in(self.hints)


def _write_guideline(mode: str, opened: OpenWorkspace, text: str) -> str:
    if not text.strip():
        return "No guideline was written"
    GuidelineBook(opened.workspace, opened.taxonomy, opened.annotator).write(mode, text)
    return "Saved: the next version of the judge reads it"


def evidence_of(case: Case, order: Order) -> TraceLocation:
    """Return the location of the first span that the first side marks, with the mark's label.

    If that side has no marks, use those of the second side. Without any mark, return the location
    of the trace.

    Args:
        case: The trace and its marks.
        order: The order of the spans of the trace.
    """
    marks = in_reading_order(case.first or case.second, lambda mark: mark.target, order)
    if not marks:
        return TraceLocation(case.trace_id)
    first_mark, *_ = marks
    return TraceLocation(case.trace_id, suggestion=first_mark.label, key=first_mark.target.first)
