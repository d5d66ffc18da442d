"""The filter of the timeline by kind, agent and marks, its dialog, and its background run."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from math import inf, isnan
from time import sleep
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, Protocol, TypeAlias

from msgspec import Struct
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from mast_tui.safe_text import one_line
from mast_tui.traces.model import STATUSES, Shape, SpanColumns, SpanKind, SpanStatus, Trace
from mast_tui.ui.annotate.part import ScreenPart
from mast_tui.ui.base_screen import Stopped
from mast_tui.ui.dialogs.dialog import KeyDialog, KeyRow
from mast_tui.ui.trace_view.gutter import span_range_of
from mast_tui.ui.wording import counted, plain_title

if TYPE_CHECKING:
    from mast_tui.ui.annotate.screen import AnnotateScreen

KIND_NAMES: Final[Mapping[SpanKind, str]] = {
    SpanKind.MESSAGE: "messages",
    SpanKind.REASONING: "reasoning",
    SpanKind.TOOL_CALL: "tool calls",
    SpanKind.TOOL_RESULT: "tool results",
    SpanKind.LOG: "log records",
}
"""The names of several spans of a kind."""

FLAG_NAMES: Final[Mapping[str, str]] = {
    "no_logs": "no log records",
    **{flag: flag for flag in ("errors", "slow", "idle", "labelled", "suggested", "matches")},
}
"""The names of the other conditions of a filter."""

SLOW_SECONDS: Final = 10.0
"""The least seconds of a slow step."""

IDLE_SECONDS: Final = 60.0
"""The least seconds without any step after which the run counts as idle."""

_ERROR_NUMBER: Final = STATUSES.index(SpanStatus.ERROR)


class Condition(NamedTuple):
    """A condition of a filter."""

    name: str
    """``kind``, ``agent``, or a name of ``FLAG_NAMES``."""

    value: str = ""
    """The kind or the agent."""


SpanFilter: TypeAlias = frozenset[Condition]
"""A filter for spans.

A span passes if it has one of the kinds and one of the agents, and meets all other conditions.
Without kinds or agents, any kind or agent passes.
"""

NO_FILTER: Final = SpanFilter()


def values_of(name: str, span_filter: SpanFilter) -> Set[str]:
    """Return the kinds or the agents of a filter.

    Args:
        name: ``kind`` or ``agent``.
        span_filter: The filter.
    """
    return {condition.value for condition in span_filter if condition.name == name}


def filter_description(span_filter: SpanFilter) -> str:
    """Return the conditions of a filter in a few words; empty without conditions."""
    kinds = values_of("kind", span_filter)
    agents = sorted(values_of("agent", span_filter))
    parts = (
        " or ".join(name for kind, name in KIND_NAMES.items() if kind in kinds),
        f"by {' or '.join(agents)}" if agents else "",
        *(name for flag, name in FLAG_NAMES.items() if Condition(flag) in span_filter),
    )
    return ", ".join(filter(None, parts))


class Indices(Protocol):
    """Sorted indices of spans."""

    def within(self, first: int, end: int, /) -> Sequence[int]:
        """Return the indices in a range of spans.

        Args:
            first: The first span.
            end: The span after the last one.
        """


class SpanRanges:
    """The spans in some ranges. Ranges that touch are joined."""

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        """Sort ranges of first and last spans, and join ranges that touch or overlap."""
        self._starts = array("Q")
        self._lasts = array("Q")
        for first, last in sorted(ranges):
            if self._lasts and first <= self._lasts[-1] + 1:
                self._lasts[-1] = max(self._lasts[-1], last)
            else:
                self._starts.append(first)
                self._lasts.append(last)

    def within(self, first: int, end: int, /) -> Sequence[int]:
        """Return the indices from ``first`` up to ``end`` (exclusive) that are in a range.

        Args:
            first: The first span.
            end: The span after the last one.
        """
        indices: list[int] = []
        position = bisect_left(self._lasts, first)  # the first range that ends at or after it
        while position < len(self._starts) and self._starts[position] < end:
            range_end = self._lasts[position] + 1
            indices += range(max(first, self._starts[position]), min(end, range_end))
            position += 1
        return indices


_NO_SPANS: Final = SpanRanges()


class MarkedSpans(Struct, frozen=True):
    """The spans with labels, with suggestions, and with matches of the search.

    Each field has the name of the condition for these spans.
    """

    labelled: Indices = _NO_SPANS
    suggested: Indices = _NO_SPANS
    matches: Indices = _NO_SPANS


class FilterScan:
    """The check of a trace against a filter, slice by slice.

    Attributes:
        trace: The trace; it may gain spans during the scan.
        checked_count: The number of spans checked so far.
    """

    def __init__(self, trace: Trace, span_filter: SpanFilter, marked_spans: MarkedSpans) -> None:
        """Begin at the first span."""
        self.trace = trace
        self._required_marks = [
            getattr(marked_spans, name)
            for name in marked_spans.__struct_fields__
            if Condition(name) in span_filter
        ]
        """The spans with each mark that the filter requires."""
        self._names = {condition.name for condition in span_filter}
        self._kinds = values_of("kind", span_filter)
        self._agents = values_of("agent", span_filter)
        self._needs_times = not self._names.isdisjoint(("slow", "idle"))
        self._needs_columns = not self._names.issubset(marked_spans.__struct_fields__)
        """True if the filter has conditions other than marks."""
        self._latest_time = -inf
        """The latest time of the checked spans."""
        self.checked_count = 0

    def check_more(self, limit: int) -> array[int]:
        """Check up to ``limit`` more spans, and return the spans that pass."""
        first = self.checked_count
        end = max(first, min(len(self.trace), first + limit))
        self.checked_count = end
        indices: Sequence[int] = range(first, end)
        for spans_with_mark in self._required_marks:
            marked_indices = set(spans_with_mark.within(first, end))
            indices = [index for index in indices if index in marked_indices]
        # Each time is compared with earlier times, so no slice may be skipped.
        if self._needs_times or (indices and self._needs_columns):
            indices = self._passing_indices(self.trace.columns(first, end), indices)
        return array("Q", indices)

    def _passing_indices(self, columns: SpanColumns, indices: Sequence[int]) -> Sequence[int]:
        """Return the spans among ``indices`` that pass by time, status, kind and agent."""
        first = columns.first
        if self._needs_times:
            slow_or_idle = self._slow_or_idle_indices(columns)
            indices = [index for index in indices if index in slow_or_idle]
        if "errors" in self._names:
            statuses = columns.statuses
            indices = [index for index in indices if statuses[index - first] == _ERROR_NUMBER]
        if self._kinds or self._agents or "no_logs" in self._names:
            passing_shapes = {
                number
                for number, shape in enumerate(columns.shape_list)
                if self._is_shape_chosen(shape)
            }
            shapes = columns.shapes
            indices = [index for index in indices if shapes[index - first] in passing_shapes]
        return indices

    def _slow_or_idle_indices(self, columns: SpanColumns) -> set[int]:
        """Return the slow spans, the idle spans or both, as the filter requires.

        Also record the latest time, to compare it with the next spans.
        """
        indices: set[int] = set()
        for row, (start, end) in enumerate(zip(columns.starts, columns.ends, strict=True)):
            if isnan(start):
                continue
            # Before the first span with a time, no wait can be measured.
            wait = start - self._latest_time if self._latest_time > -inf else 0.0
            duration = 0.0 if isnan(end) else end - start
            # During the wait for a result, the tool works. During any other wait, nothing happens.
            if columns.kind_at(row) is SpanKind.TOOL_RESULT:
                is_slow = max(duration, wait) >= SLOW_SECONDS
                is_idle = False
            else:
                is_slow = duration >= SLOW_SECONDS
                is_idle = wait >= IDLE_SECONDS
            if (is_slow and "slow" in self._names) or (is_idle and "idle" in self._names):
                indices.add(columns.first + row)
            self._latest_time = max(self._latest_time, start if isnan(end) else end)
        return indices

    def _is_shape_chosen(self, shape: Shape) -> bool:
        """Check if the filter lets spans of a shape (kind and agent) pass."""
        kind, _role, agent, _name = shape
        if kind is SpanKind.LOG and "no_logs" in self._names:
            return False
        return (not self._kinds or kind in self._kinds) and (
            not self._agents or agent in self._agents
        )


KIND_KEYS: Final[dict[SpanKind, str]] = {
    SpanKind.MESSAGE: "m",
    SpanKind.REASONING: "r",
    SpanKind.TOOL_CALL: "c",
    SpanKind.TOOL_RESULT: "o",
    SpanKind.LOG: "g",
}
MAX_AGENTS: Final = 9
"""The number of agents with a digit as their key."""


def filter_offers(
    agents: Sequence[str], *, labelled: bool, suggested: bool, matches: bool
) -> dict[str, tuple[str, Condition]]:
    """Return the conditions to choose from with their texts, by their keys.

    Args:
        agents: The agents of the trace.
        labelled: True to offer spans with labels.
        suggested: True to offer spans with suggestions.
        matches: True to offer matches of the search.
    """
    offers = {KIND_KEYS[kind]: (name, Condition("kind", kind)) for kind, name in KIND_NAMES.items()}
    offers["n"] = ("all but log records", Condition("no_logs"))
    offers["e"] = ("errors", Condition("errors"))
    offers["w"] = (f"slow: took {SLOW_SECONDS:.0f} s or more", Condition("slow"))
    offers["i"] = (f"idle: after {IDLE_SECONDS:.0f} s without a step", Condition("idle"))
    if labelled:
        offers["l"] = ("labelled by you", Condition("labelled"))
    if suggested:
        offers["s"] = ("with unanswered suggestions", Condition("suggested"))
    if matches:
        offers["/"] = ("matches of the search", Condition("matches"))
    if len(agents) > 1:
        for digit, agent in enumerate(agents[:MAX_AGENTS], start=1):
            offers[str(digit)] = (f"by {one_line(agent, 24)}", Condition("agent", agent))
    return offers


class FilterChoice(KeyDialog[bool]):
    """The dialog of the filter. It returns True if the user keeps the choice.

    Each choice is applied at once.
    """

    default = "enter"
    dialog_keys: ClassVar = (("x", "clears"), ("Enter", "keeps"), ("Esc", "shows all"))

    def __init__(
        self,
        offers: Mapping[str, tuple[str, Condition]],
        span_filter: SpanFilter,
        apply_filter: Callable[[SpanFilter], None],
    ) -> None:
        """Begin with the present filter.

        Args:
            offers: The conditions to choose from with their texts, by their keys.
            span_filter: The present filter.
            apply_filter: Receives every new choice.
        """
        super().__init__("Show only", kind="filter")
        self.present_filter = span_filter
        self._offers = offers
        self._key_rows = {key: KeyRow(key, classes="offer") for key in offers}
        self._apply_filter = apply_filter
        self._status = Static(classes="hint")
        """The number of spans that pass, and the keys."""

    def compose_rows(self) -> ComposeResult:
        """Yield a row for each condition."""
        yield from self._key_rows.values()
        yield self._status

    def on_mount(self) -> None:
        """Show the choice."""
        self._show_choice()

    def say(self, status: str) -> None:
        """Show the number of spans that pass."""
        self._status.update(Content(f"{status}\nx clears · Enter keeps · Esc shows all"))

    def _change_choice(self, span_filter: SpanFilter) -> None:
        self.present_filter = span_filter
        self._show_choice()
        self._apply_filter(span_filter)

    def _show_choice(self) -> None:
        for key, (text, condition) in self._offers.items():
            cross = "x" if condition in self.present_filter else " "
            self._key_rows[key].show(f"[{cross}] {text}")

    def take(self, key: str) -> bool:
        """Switch the condition of a key, remove all conditions (``x``), or keep the choice (Enter).

        Return False for any other key.
        """
        if key in self._offers:
            self._change_choice(self.present_filter ^ {self._offers[key][1]})
        elif key == "x":
            self._change_choice(NO_FILTER)
        elif key == "enter":
            self.dismiss(True)  # the user keeps the choice
        else:
            return False
        return True


SLICE_SPANS: Final = 5000
"""The number of spans that one step checks."""

NO_MATCH: Final = "no span matches"


def _passing_spans(scan: FilterScan, stopped: Stopped) -> Iterator[array[int]]:
    """Check all spans that the trace has now, and yield the passing spans together.

    They are shown only when all are checked, so that the cursor finds the nearest span.
    """
    passing_indices = array("Q")
    all_checked = False
    while not all_checked and not stopped():
        passing_indices += scan.check_more(SLICE_SPANS)
        all_checked = scan.checked_count >= len(scan.trace)
        sleep(0)  # let other threads run
    yield passing_indices


class Filter(ScreenPart):
    """The filter of the timeline.

    Labels and suggestions count as they were when the filter was chosen.
    """

    def __init__(self, screen: AnnotateScreen) -> None:
        """Begin without a filter."""
        super().__init__(screen)
        self._forget_filter()
        self._last_message = ""
        """The last message that the filter has shown."""
        self._dialog: FilterChoice | None = None
        """The dialog while it is open."""

    def _forget_filter(self) -> None:
        self.present_filter: SpanFilter = NO_FILTER
        """The present filter."""
        self._scan: FilterScan | None = None
        """The check of all spans; None without a filter."""
        self._is_scanning = False
        """True while spans are checked in the background."""
        self._is_applied = False
        """True once the check has ended and the timeline shows only spans that pass."""
        self._visible_indices: array[int] | None = None
        """The spans that pass; None while all spans are shown."""

    def choose(self) -> None:
        """Open the dialog of the filter.

        Escape removes the filter and restores the cursor.
        """
        if not self._state.has_spans:
            return
        session = self._state.session
        offers = filter_offers(
            self._timeline.facts.agents,
            labelled=session is not None,
            # Hidden suggestions are not in ``suggestions``, so the offer does not reveal them.
            suggested=session is not None and bool(session.suggestions),
            matches=bool(self._state.needle),
        )
        self._dialog = FilterChoice(offers, self.present_filter, self.apply)
        self._screen.app.push_screen(self._dialog, partial(self._close_dialog, self._state.index))
        self._dialog.say(self._status_text())

    def _close_dialog(self, cursor_before: int, keep: bool | None) -> None:
        """Keep the filter of the dialog, or remove it and restore the cursor."""
        self._dialog = None
        if keep:
            self._state.newest_filter = "filter"
            self._report_choice()
        else:
            self.apply(NO_FILTER)
            self._timeline.go_to(cursor_before)
            self._hints.say("All spans are shown")
        self._screen.show_span()

    def apply(self, span_filter: SpanFilter) -> None:
        """Show the spans that pass a filter, after all spans were checked."""
        self.reset()
        self.present_filter = span_filter
        trace = self._state.trace
        if not span_filter or trace is None:
            if self._timeline.is_filtered:
                self._timeline.set_filter(indices=None)
            self.show_titles()
            self._screen.catch_up()
            return
        self._visible_indices = array("Q")
        self._scan = FilterScan(trace, span_filter, self._marked_spans())
        self._continue_scan()
        self.show_titles()

    def reset(self) -> None:
        """Forget the filter and stop checking spans, without changing the timeline."""
        self._screen.work.stop("filter")
        self._forget_filter()

    def _marked_spans(self) -> MarkedSpans:
        """Return the spans with labels, suggestions or matches.

        The spans of a suggestion are its target and its evidence.
        """
        trace = self._state.open_trace
        session = self._state.session
        if session is None:
            return MarkedSpans(matches=self._state.hits)
        label_ranges = [span_range_of(label.target, trace.index_of) for label in session.labels]
        suggestion_ranges = []
        for suggestion in session.pending:
            suggestion_ranges.append(span_range_of(suggestion.target, trace.index_of))
            key = suggestion.evidence_key
            evidence_index = None if key is None else trace.index_of(key)
            if evidence_index is not None:
                suggestion_ranges.append((evidence_index, evidence_index))
        # Without a range are targets on the whole trace and on spans that were not read yet.
        return MarkedSpans(
            SpanRanges(filter(None, label_ranges)),
            SpanRanges(filter(None, suggestion_ranges)),
            self._state.hits,
        )

    def check_new_spans(self) -> None:
        """Check the spans that the trace has gained, unless a check is running."""
        if self._scan is not None and not self._is_scanning:
            self._continue_scan()

    def search_changed(self) -> None:
        """Apply a filter by matches again, because the search has changed.

        If the search has ended, remove the filter.
        """
        if Condition("matches") not in self.present_filter:
            return
        if self._state.needle:
            self.apply(self.present_filter)
        else:
            self._remove_filter("the search has ended")

    def _continue_scan(self) -> None:
        assert self._scan is not None
        self._is_scanning = True
        self._screen.work.run_stages(
            "filter", partial(_passing_spans, self._scan), self._show_passing
        )

    def _show_passing(self, passing_indices: array[int]) -> None:
        """Add the spans that passed the last check, and report a new filter in the last line.

        Then check spans that the trace has gained meanwhile.
        """
        assert self._scan is not None
        assert self._visible_indices is not None
        self._visible_indices.extend(passing_indices)
        is_first_report = not self._is_applied
        self._is_applied = True
        self._is_scanning = False
        self._timeline.set_filter(self._visible_indices)
        self.show_titles()
        self._screen.catch_up()
        if is_first_report and self._dialog is None:
            self._report_choice()
        if self._scan.checked_count < len(self._scan.trace):
            self.check_new_spans()

    def show_titles(self) -> None:
        """Show labels on the whole trace and the filter in the title of the timeline.

        Also update the dialog of the filter, and the position in the overview.
        """
        status = self._status_text()
        parts = ["Timeline"]
        codes = self._state.codes_on_whole_trace()
        if codes:
            parts.append(f"whole trace: {' '.join(codes)}")
        if self.present_filter:
            parts.append(status)
        self._timeline.border_title = plain_title(" · ".join(parts))
        if self._dialog is not None:
            self._dialog.say(status)
        if self._timeline.is_filtered:
            self._screen.call_after_refresh(self._screen.show_position)

    def _status_text(self) -> str:
        """Return the conditions of the filter, with the numbers of passing and of all spans."""
        span_count = 0 if self._state.trace is None else len(self._state.trace)
        if not self.present_filter or self._visible_indices is None:
            return f"all {counted(span_count, 'span')}"
        description = one_line(filter_description(self.present_filter), 60)
        return f"{description} · {len(self._visible_indices):,} of {span_count:,}"

    def _report_choice(self) -> None:
        """Show a message about an applied filter, or remove a filter that no span passes.

        While the search line is open, there is no message about an applied filter.
        """
        if not self.present_filter:
            self._hints.say("All spans are shown")
        elif self._is_applied and not self._visible_indices:
            self._remove_filter(NO_MATCH)
        elif self._is_applied and not self._screen.search.is_open:
            self._hints.say(
                f"Shown: {self._status_text()} · {self._key_of('annotate.filter')} changes that · "
                f"{self._key_of('everywhere.back')} shows all"
            )
            self._last_message = self._hints.message

    def remove(self) -> bool:
        """Remove the filter; return False if there is none."""
        if not self.present_filter:
            return False
        self.apply(NO_FILTER)
        self._screen.show_span()
        return True

    def remove_if_cursor_excluded(self) -> None:
        """Remove the filter if it excludes the span under the cursor."""
        if self._is_applied and not self._timeline.is_filtered:
            self._remove_filter(f"#{self._state.index + 1} does not match")

    def _remove_filter(self, reason: str) -> None:
        self.apply(NO_FILTER)
        self._screen.call_later(self._report_removal, f"Filter removed: {reason}")

    def _report_removal(self, text: str) -> None:
        """Show a message, after the message that the last key has shown."""
        key_message = self._hints.message  # of the key, unless the filter has shown it
        if key_message not in ("", self._last_message):
            text = f"{text} · {key_message}"
        self._hints.say(text)
