"""The suggestions of a trace: going to them, answering and editing them, and their panel."""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property, partial
from operator import attrgetter, ge, le
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec import Struct, structs
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from mast_tui.labels import QuoteDoubt, ReviewAnswer, Target
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Mode
from mast_tui.traces.model import Span
from mast_tui.ui.annotate.part import ScreenPart
from mast_tui.ui.annotate.state import Marking, Selection
from mast_tui.ui.context import TraceLocation, context_of
from mast_tui.ui.dialogs.dialog import KeyDialog
from mast_tui.ui.suggestion_wording import (
    SuggestionLine,
    judge_name,
    name_without_version,
    rule_text,
    suggestion_source_text,
    warnings_on,
)
from mast_tui.ui.text.highlighting import TextPart
from mast_tui.ui.trace_view.gutter import span_range_of
from mast_tui.ui.trace_view.span_view import SpanView
from mast_tui.ui.wording import counted, joined_names, plain_title

if TYPE_CHECKING:
    from mast_tui.session import Change, Session, Suggestion
    from mast_tui.ui.annotate.screen import AnnotateScreen
    from mast_tui.ui.context import MastApp

REJECT: Final = "x"
"""The key that rejects the suggestions."""

ACCEPT: Final = "a"
"""The key that accepts the suggestions."""

RULE_CHARS: Final = 32
"""The code points of a reason that stand for its rule."""

HIDE: Final = "h"
"""The key that hides the suggestions on all traces without answering them."""

SHOW_ALL: Final = "w"
"""The key that shows hidden suggestions again, and ends all answers for later traces."""

_LATER_ANSWERS_ENDED: Final = " · answering on later traces has stopped"
"""The end of a message after that."""


class Breadth(StrEnum):
    """The property shared by suggestions that are answered together."""

    RULE = "r"
    MODE = "m"
    JUDGE = "b"
    ALL = "s"


def _rule_of(suggestion: Suggestion) -> tuple[str, str, str]:
    return suggestion.judge, suggestion.mode, rule_text(suggestion.rationale)


_SHARED_PROPERTIES: Final[Mapping[Breadth, Callable[[Suggestion], object]]] = {
    Breadth.RULE: _rule_of,
    Breadth.MODE: attrgetter("judge", "mode"),
    Breadth.JUDGE: attrgetter("judge"),
    Breadth.ALL: lambda _: None,
}


class ConfidenceLimit(StrEnum):
    """A limit on the confidence of the judge, in words that lack the confidence."""

    NONE = "confidence: any"
    AT_MOST = "confidence: at most {:.2f}, as here"
    AT_LEAST = "confidence: at least {:.2f}, as here"


class SuggestionScope(Struct, frozen=True):
    """The suggestions of a trace that share a property with the suggestion ``example``.

    Attributes:
        example: The suggestion to compare with.
        breadth: The shared property.
        limit: The limit on the confidence, compared with that of ``example``. With a limit,
            suggestions without a confidence are excluded.
    """

    example: Suggestion
    breadth: Breadth
    limit: ConfidenceLimit = ConfidenceLimit.NONE

    def covers(self, other: Suggestion) -> bool:
        """Check if a suggestion is in the scope."""
        example = self.example
        if self.limit is not ConfidenceLimit.NONE:
            confidence = other.confidence
            limit = example.confidence
            is_within = le if self.limit is ConfidenceLimit.AT_MOST else ge
            if confidence is None or limit is None or not is_within(confidence, limit):
                return False
        shared_property = _SHARED_PROPERTIES[self.breadth]
        if shared_property(other) != shared_property(example):
            return False
        # Reasons without words do not show that suggestions share a rule.
        has_rule = self.breadth is not Breadth.RULE or bool(rule_text(example.rationale))
        return has_rule or other.id == example.id

    def select(self, suggestions: Sequence[Suggestion]) -> tuple[Suggestion, ...]:
        """Return the suggestions that are in the scope."""
        return tuple(filter(self.covers, suggestions))

    def with_next_limit(self) -> SuggestionScope:
        """Return the scope with the next limit on the confidence.

        The limits are a cycle: none, at most that of ``example``, at least that of ``example``.
        """
        limits = (*ConfidenceLimit, ConfidenceLimit.NONE)
        return structs.replace(self, limit=limits[limits.index(self.limit) + 1])


class ManyAnswered(Struct, frozen=True):
    """The answer to the suggestions of a scope.

    Attributes:
        scope: The answered suggestions.
        answer: The key of the answer: ``REJECT``, ``ACCEPT``, ``HIDE`` or ``SHOW_ALL``.
        for_later_traces: True to answer on each trace opened from now on, too.
    """

    scope: SuggestionScope
    answer: str
    for_later_traces: bool = False


class ManyScreen(KeyDialog[ManyAnswered]):
    """The dialog that asks which suggestions to answer, and how.

    It returns None after Escape.
    """

    dialog_keys: ClassVar = (
        *((REJECT, "rejects"), (ACCEPT, "accepts"), (HIDE, "hides"), ("Esc", "cancels")),
    )

    def __init__(
        self,
        example: Suggestion,
        pending: Sequence[Suggestion],
        mode_title: str,
        hidden_count: int,
        later_answer_count: int,
    ) -> None:
        """Begin with the suggestions of a rule, or of the mode if the rule has one suggestion.

        Args:
            example: The suggestion under the cursor.
            pending: The visible suggestions without an answer.
            mode_title: The code and name of the example's mode.
            hidden_count: The number of hidden suggestions without an answer.
            later_answer_count: The number of answers for later traces.
        """
        super().__init__("Answer many suggestions")
        self.scope = SuggestionScope(example, Breadth.RULE)
        if len(self.scope.select(pending)) <= 1:
            self.scope = SuggestionScope(example, Breadth.MODE)
        self._example = example
        self._pending = pending
        self._mode_title = mode_title
        self._hidden_count = hidden_count
        self._later_answer_count = later_answer_count
        self._for_later_traces = False
        """True to give the answer on later traces too."""

    def compose_rows(self) -> ComposeResult:
        """Yield empty rows for scopes, limits and answers. ``_show_choice`` fills them."""
        key_of = context_of(self).key_of
        undo_key = key_of("everywhere.undo")
        dialog_key = key_of("annotate.answer_many")
        yield Static("Which suggestions", classes="heading")
        yield Static(id="scopes")
        yield Static("Limits (the key changes the limit)", classes="heading")
        yield Static(id="limits", classes="question")
        yield Static(id="answers")
        yield Static(
            Content(f"{undo_key} undoes all of it · {dialog_key}, then w shows hidden ones again"),
            classes="hint",
        )

    def on_mount(self) -> None:
        """Show the choice."""
        self._show_choice()

    def _scope_rows(self) -> list[tuple[str, str]]:
        """Return the keys and descriptions of the breadths, with the numbers of suggestions."""
        code = self._mode_title.partition(" ")[0]
        names = {
            Breadth.RULE: f"of {code} by this rule: "
            f"“{one_line(self._example.rationale, RULE_CHARS)}”",
            Breadth.MODE: f"of {self._mode_title} by {judge_name(self._example.judge)}",
            Breadth.JUDGE: f"by {judge_name(self._example.judge)}",
            Breadth.ALL: "by any judge",
        }
        rows = []
        for breadth, name in names.items():
            scope = structs.replace(self.scope, breadth=breadth)
            count = len(scope.select(self._pending))
            radio_dot = "●" if breadth is self.scope.breadth else " "
            rows.append((breadth.value, f"({radio_dot}) {count} {name}"))
        return rows

    def _show_choice(self) -> None:
        """Show the scopes, limits and answers with the present choice."""
        selected_text = counted(len(self.scope.select(self._pending)), "suggestion")
        self._show_key_rows("#scopes", self._scope_rows())
        limits = []
        if self._example.confidence is not None:
            limits.append(("c", self.scope.limit.format(self._example.confidence)))
        traces = (
            "traces: this one, and each that you open from now on"
            if self._for_later_traces
            else "traces: only this one"
        )
        limits.append(("q", traces))
        self._show_key_rows("#limits", limits)
        addition = " and similar ones on later traces" if self._for_later_traces else ""
        answers = [
            (REJECT, f"reject {selected_text}{addition}"),
            (ACCEPT, f"accept {selected_text}{addition}"),
            (HIDE, f"hide {selected_text} and similar ones on all traces (no answer)"),
        ]
        if self._show_all_text:
            answers.append((SHOW_ALL, self._show_all_text))
        self._show_key_rows("#answers", answers)

    @property
    def _show_all_text(self) -> str:
        """The effect of the key ``SHOW_ALL`` in words; empty for none."""
        effects = []
        if self._hidden_count:
            effects.append(f"show hidden ones again ({self._hidden_count} here)")
        if self._later_answer_count:
            effects.append("stop answering on later traces")
        return ", ".join(effects)

    def _show_key_rows(self, selector: str, rows: Sequence[tuple[str, str]]) -> None:
        lines = [Content.assemble((f" {key} ", "bold"), f" {text}") for key, text in rows]
        self.query_one(selector, Static).update(Content("\n").join(lines))

    def take(self, key: str) -> bool:
        """Change the scope or its use for later traces, or close with an answer.

        An answer to no suggestion is ignored. Return False for any other key.
        """
        if key in (REJECT, ACCEPT, HIDE):
            if self.scope.select(self._pending):
                self.dismiss(ManyAnswered(self.scope, key, self._for_later_traces))
            return True
        if key == SHOW_ALL and self._show_all_text:
            self.dismiss(ManyAnswered(self.scope, key, self._for_later_traces))
            return True
        if key in tuple(Breadth):
            self.scope = structs.replace(self.scope, breadth=Breadth(key))
        elif key == "c" and self._example.confidence is not None:
            self.scope = self.scope.with_next_limit()
        elif key == "q":
            self._for_later_traces = not self._for_later_traces
        else:
            return False
        self._show_choice()
        return True


RULES_JUDGE: Final = "rules"

ANSWER_NAMES: Final = ("accept", "reject", "edit")
"""The actions with keys in the panel."""


class SuggestionPanel(SpanView):
    """The panel with one suggestion, or with the number of waiting suggestions.

    It takes the focus only if its text does not fit.
    """

    css_parts = ("head", "warning")

    def show(
        self, title: str, mode: str, source: str, warnings: Sequence[SuggestionLine], body: str
    ) -> None:
        """Show a suggestion. All texts but the title may be foreign text.

        Args:
            title: The number of the suggestion.
            mode: The name of its mode.
            source: The judge and the span.
            warnings: The lines about doubts, and other lines above the rationale.
            body: The rationale.
        """
        mode = one_line(mode)
        key_of = context_of(self).key_of
        keys = "  ".join(f"{key_of(f'annotate.{name}')} {name}" for name in ANSWER_NAMES)
        self.show_titles(plain_title(title), plain_title(keys))
        text = f"{mode}  {one_line(source)}"
        styled_parts = [TextPart(0, len(mode), "head")]
        for line in warnings:
            offset = len(text) + 1
            if line.warns:
                styled_parts.append(TextPart(offset, offset + len(line.text), "warning"))
            styled_parts += [
                TextPart(offset + start, offset + end, "match") for start, end in line.highlights
            ]
            text = f"{text}\n{line.text}"
        self._replace_text(f"{text}\n{body}", styled_parts)
        self.set_class(False, "-idle")

    def show_message(self, title: str, message: str) -> None:
        """Show a message while no suggestion is under the cursor.

        Args:
            title: The title of the panel.
            message: The message.
        """
        self.show_titles(plain_title(title))
        self._replace_text(message)
        self.set_class(True, "-idle")

    @property
    def overflows(self) -> bool:
        """True if the text does not fit."""
        return self.row_count > self.scrollable_content_region.height

    def _replace_text(self, text: str, styled_parts: Sequence[TextPart] = ()) -> None:
        """Show a text if it has changed, and adapt the height."""
        if text != self.text:
            previous_row_count = self.row_count
            self.show_text(text, styled_parts)
            if self.row_count != previous_row_count:
                self.refresh(layout=True)


class _PendingSuggestions:
    """The visible suggestions without an answer, with lookups made on demand.

    The lookups are for a trace with ``span_count`` spans.
    """

    def __init__(
        self,
        all_pending: tuple[Suggestion, ...],
        hidden_scopes: tuple[SuggestionScope, ...],
        span_count: int,
        index_of: Callable[[Suggestion], int],
        range_of: Callable[[Suggestion], range],
    ) -> None:
        self.key = (all_pending, hidden_scopes, span_count)
        """The arguments. A new object is made when they change."""
        self._index_of = index_of
        self._range_of = range_of
        self.visible = tuple(
            suggestion
            for suggestion in all_pending
            if not any(scope.covers(suggestion) for scope in hidden_scopes)
        )

    @cached_property
    def by_id(self) -> Mapping[str, Suggestion]:
        """The suggestions by their ids."""
        return {suggestion.id: suggestion for suggestion in self.visible}

    @cached_property
    def rule_counts(self) -> Counter[tuple[str, str, str]]:
        """The number of suggestions by each rule."""
        return Counter(map(_rule_of, self.visible))

    @cached_property
    def by_index(self) -> Mapping[int, Sequence[Suggestion]]:
        """The suggestions by the index of their span."""
        by_index: dict[int, list[Suggestion]] = {}
        for suggestion in self.visible:
            by_index.setdefault(self._index_of(suggestion), []).append(suggestion)
        return by_index

    @cached_property
    def on_ranges(self) -> Sequence[tuple[range, Suggestion]]:
        """The suggestions on several spans with their indices, the shortest range first."""
        with_ranges = ((self._range_of(suggestion), suggestion) for suggestion in self.visible)
        several = [(indices, suggestion) for indices, suggestion in with_ranges if len(indices) > 1]
        return sorted(several, key=lambda item: len(item[0]))


def _no_suggestion_text(session: Session, context: MastApp) -> str:
    """Return the reason why there is no suggestion to go to."""
    if not session.suggestions_visible:
        key = context.key_of("annotate.reveal")
        if session.finished:
            return f"Suggestions are hidden: {key} shows them, and what others say"
        subject = (
            "The study hides suggestions here" if session.outcome_visible else "You work blind"
        )
        return f"{subject}: after you finish the trace, {key} shows suggestions"
    if session.suggestions:
        return "All suggestions on this trace are answered"
    key = context.key_of("annotate.judge")
    if not session.judged_by:
        if context.configuration.judge.model is None:
            return f"No suggestions on this trace; {key} runs a judge on this machine"
        return f"No suggestions on this trace; {key} asks which judge to run"
    names = list(dict.fromkeys(map(name_without_version, session.judged_by)))
    text = f"The {joined_names(names)} {'judge' if len(names) == 1 else 'judges'} found nothing."
    # The twins judge does not count, because only reading other runs tells if it can run.
    model = context.configuration.judge.model
    if RULES_JUDGE not in names or (model is not None and one_line(model, 40) not in names):
        return f"{text} {key} runs another judge."
    return text


class Suggestions(ScreenPart):
    """The suggestions of the open trace, and the one under the cursor.

    A judge may add suggestions at any time. They do not move the cursor, and only the user answers
    them.
    """

    def __init__(self, screen: AnnotateScreen, marking: Marking) -> None:
        """Begin without a suggestion under the cursor.

        Args:
            screen: The screen with this part.
            marking: The target of an edited suggestion.
        """
        super().__init__(screen)
        self.panels = (SuggestionPanel(id="suggestion-below"), SuggestionPanel(id="suggestion"))
        """The panel under the timeline for narrow screens, and the panel beside it."""
        self._commands = screen.commands
        self._marking = marking
        self._visited_id: str | None = None
        """The id of the suggestion to which the user went last."""
        self._pending_suggestions = _PendingSuggestions((), (), 0, self.index_of, self._range_of)
        self._hidden_scopes: tuple[SuggestionScope, ...] = ()
        """The scopes of suggestions that are hidden on every trace."""
        self._answers_for_later_traces: tuple[ManyAnswered, ...] = ()
        """The answers given on every trace that is opened."""
        self._answered_traces: set[str] = set()
        """The ids of the traces that have received these answers. Each trace receives them once."""
        self.begin_trace()

    def begin_trace(self) -> None:
        """Begin with another trace."""
        self._current_id: str | None = None
        """The id of the selected suggestion."""
        self.edited_id: str | None = None
        """The id of the suggestion that is being edited."""

    @property
    def pending(self) -> tuple[Suggestion, ...]:
        """The visible suggestions without an answer."""
        return self._waiting.visible

    @property
    def pending_by_id(self) -> Mapping[str, Suggestion]:
        """The suggestions of ``pending`` by their ids."""
        return self._waiting.by_id

    @property
    def _waiting(self) -> _PendingSuggestions:
        """The visible suggestions without an answer. They are cached until they change."""
        session = self._state.session
        trace = self._state.trace
        all_pending = () if session is None else session.pending
        key = (all_pending, self._hidden_scopes, 0 if trace is None else len(trace))
        if key != self._pending_suggestions.key:
            self._pending_suggestions = _PendingSuggestions(*key, self.index_of, self._range_of)
        return self._pending_suggestions

    def current(self) -> Suggestion | None:
        """Return the selected suggestion, or None."""
        if self._state.session is None or self._current_id is None:
            return None
        return self.pending_by_id.get(self._current_id)

    def select_at(self, span: Span) -> None:
        """Select the first suggestion on a span, unless the selected one is on it or is edited.

        A suggestion with its evidence on the span comes before one with a range around it.
        """
        if self._state.session is None:
            self._current_id = None
            return
        if self.edited_id is not None:
            return
        span_suggestions = self._waiting.by_index.get(span.index) or [
            suggestion for indices, suggestion in self._waiting.on_ranges if span.index in indices
        ]
        if not any(suggestion.id == self._current_id for suggestion in span_suggestions):
            # Without ``evidence_key`` the quote was not found, and the suggestion is listed at its
            # first span. Such a suggestion is selected only when the user goes to it.
            selectable_ids = (
                suggestion.id
                for suggestion in span_suggestions
                if not suggestion.doubt or suggestion.evidence_key is not None
            )
            self._current_id = next(selectable_ids, None)

    def go_to_next(self, step: int) -> None:
        """Go to the evidence of the next (``step`` 1) or previous (-1) suggestion."""
        self._commands.when_session_opens(lambda session: self._go_to_pending(session, step))

    def _go_to_pending(self, session: Session, step: int, *, after: int | None = None) -> bool:
        """Put the cursor on the evidence of the next (``step`` 1) or previous (-1) suggestion.

        Count from the selected suggestion. Without one, count from the span ``after``, or from the
        cursor. If no suggestion waits, show the reason and return False.
        """
        pending = self.pending
        if not pending:
            self._current_id = None
            self._screen.show_span()
            self._hints.say(self._none_pending_text(session))
            return False
        start_position = next((i for i, s in enumerate(pending) if self._is_counted_from(s)), None)
        if start_position is not None:
            position = (start_position + step) % len(pending)
        else:
            start_index = self._state.index if after is None else after
            position = self._next_position(pending, start_index, step)
        self.show(pending[position])
        return True

    def _is_counted_from(self, suggestion: Suggestion) -> bool:
        """Check if going to the next suggestion counts from this one, not from the cursor.

        The cursor must be on its evidence. Doubtful suggestions are not in the order of spans, so
        the user must also have gone to it.
        """
        return (
            suggestion.id == self._current_id
            and self._state.index == self.index_of(suggestion)
            and (not suggestion.doubt or suggestion.id == self._visited_id)
        )

    def _next_position(
        self,
        pending: Sequence[Suggestion],
        span_index: int,
        step: int,
        doubt: QuoteDoubt = QuoteDoubt.NONE,
    ) -> int:
        """Return the position in ``pending`` of the next suggestion from a span on.

        Args:
            pending: The suggestions in groups by the doubt about their quote, those without a doubt
                first. Each group is in reading order.
            span_index: The index of the span.
            step: 1 for the first suggestion at or after the span, -1 for the last one before it.
            doubt: The group to look in.
        """
        index_of = self._state.open_trace.index_of

        def evidence_index(suggestion: Suggestion) -> int:
            key = suggestion.evidence_key
            index = 0 if key is None else index_of(key)
            # Spans that were not read yet come last.
            return sys.maxsize if index is None else index

        group_start = bisect_left(pending, doubt, key=attrgetter("doubt"))
        group_end = bisect_right(pending, doubt, key=attrgetter("doubt"))
        position = bisect_left(pending, span_index, group_start, group_end, key=evidence_index)
        # The first suggestion follows the last one.
        return (position if step > 0 else position - 1) % len(pending)

    def show(self, suggestion: Suggestion) -> None:
        """Select a suggestion, and put the cursor on its evidence and its mode."""
        self._current_id = suggestion.id
        self._visited_id = suggestion.id
        self._timeline.go_to(self.index_of(suggestion))
        self._modes.go_to(suggestion.mode)
        self._screen.show_span()
        if suggestion.quote_offsets is not None:
            self._screen.span_view.reveal(*suggestion.quote_offsets)

    def index_of(self, suggestion: Suggestion) -> int:
        """Return the index of the span of a suggestion.

        It is the span of the evidence, else an end of the target, else 0.
        """
        for key in (suggestion.evidence_key, suggestion.target.first, suggestion.target.last):
            index = self._state.open_trace.index_of(key) if key is not None else None
            if index is not None:
                return index
        return 0

    def _range_of(self, suggestion: Suggestion) -> range:
        """Return the indices of the spans of a suggestion's target; empty without any."""
        span_range = span_range_of(suggestion.target, self._state.open_trace.index_of)
        return range(0) if span_range is None else range(span_range[0], span_range[1] + 1)

    def answer(self, accept: bool) -> None:
        """Accept or reject the suggestion under the cursor, and go to the next one."""
        self._commands.when_session_opens(partial(self._answer_current, accept=accept))

    async def _answer_current(self, session: Session, *, accept: bool) -> None:
        """Answer the suggestion under the cursor, and go to the next one.

        Without a suggestion under the cursor, only go to the next one. After a refusal, stay.
        """
        suggestion = self.current()
        if suggestion is None:
            if self._go_to_pending(session, step=1):
                self._hints.say(
                    f"Here is the next suggestion: {self._key_of('annotate.accept')} accepts, "
                    f"{self._key_of('annotate.reject')} rejects, "
                    f"{self._key_of('annotate.edit')} edits"
                )
            return
        select_next = partial(self._select_after, suggestion, self.index_of(suggestion))
        change = await self._commands.run_command(
            lambda s: s.accept(suggestion.id) if accept else s.reject(suggestion.id), select_next
        )
        if change is None:
            return
        next_suggestion = self.current()
        if next_suggestion is not None:
            self.show(next_suggestion)
        else:
            self._screen.show_span()
        hint = "" if accept else self._absent_hint(session, suggestion.mode)
        self._hints.say(f"{self._message_of(change)}{hint}")

    def _message_of(self, change: Change) -> str:
        """Return the message about an answer, with the number of suggestions to go."""
        count = len(self.pending)
        remaining = f"{count} to go" if count else "all suggestions answered"
        return f"{one_line(change.message)} · {remaining}"

    def _absent_hint(self, session: Session, slug: str) -> str:
        """Return the keys that set a mode absent, for a message; empty if it has a verdict."""
        if session.verdict(slug) is not None:
            return ""
        taxonomy = self._state.taxonomy
        mode = taxonomy.mode(slug)
        digits = " ".join(taxonomy.keys_of(mode))
        keys = f"{self._key_of('annotate.absent')} {digits}"
        return f" · press {keys} to mark {mode.code} absent"

    def _select_after(self, answered: Suggestion, index: int) -> None:
        """Select the suggestion that follows an answered one, if any is pending.

        This happens before drawing, so that the panel shows nothing else meanwhile.
        """
        pending = self.pending
        self._current_id = None
        if pending:
            next_position = self._next_position(pending, index, step=1, doubt=answered.doubt)
            self._current_id = pending[next_position].id

    def edit(self, when_marked: Callable[[], None]) -> None:
        """Edit the suggestion under the cursor: mark its target, then type the mode.

        Args:
            when_marked: Called when the target is marked.
        """
        self._commands.when_session_opens(lambda s: self._begin_edit(s, when_marked))

    async def _begin_edit(self, session: Session, when_marked: Callable[[], None]) -> None:
        """Mark the range of the suggestion under the cursor, and call ``when_marked``.

        Without a suggestion under the cursor, go to the next one.
        """
        suggestion = self.current()
        if suggestion is None:
            await self._answer_current(session, accept=True)  # without one, this answers nothing
            if not self.pending:
                subject = f"Nothing to edit: #{self._state.index + 1} has no label of yours"
                self._hints.say(f"{subject} · {self._none_pending_text(session)}")
            return
        self.edited_id = suggestion.id
        indices = self._range_of(suggestion)
        if len(indices) > 1:
            self._timeline.go_to(indices[-1])
            self._marking.mark(Selection(range_from=indices[0]))
        when_marked()
        self.show_panel()

    def end_edit(self) -> str | None:
        """End the editing of a suggestion, and return its id or None."""
        suggestion_id = self.edited_id
        self.edited_id = None
        return suggestion_id

    async def finish_edit(
        self, session: Session, suggestion_id: str, mode: Mode, target: Target
    ) -> None:
        """Accept a suggestion with another mode or target, and go to the next one.

        Args:
            session: The session on the trace.
            suggestion_id: The id of the suggestion.
            mode: The mode of the label.
            target: The target of the label.
        """
        index = self._state.index
        change = await self._commands.run_command(
            lambda s: s.edit(suggestion_id, mode.slug, target)
        )
        if change is None:
            return
        self._current_id = None
        if self.pending:
            self._go_to_pending(session, 1, after=index)
        self._hints.say(self._message_of(change))

    # Finished judges, and jumps from other screens

    def go_to_location(self, session: Session, location: TraceLocation) -> None:
        """Show the pending suggestion of a location, or go to the location's span if it was read.

        The span is that of an answered suggestion, else that of the key or the position.

        Args:
            session: The session on the trace.
            location: The location.
        """
        suggestion = _suggestion_at(session, location)
        if suggestion is not None and suggestion.id in self.pending_by_id:
            self._screen.arrival.index = self.index_of(suggestion)
            self.show(suggestion)
            return
        if suggestion is not None:
            index: int | None = self.index_of(suggestion)
        elif location.key is not None:
            index = self._state.open_trace.index_of(location.key)
        else:
            index = location.position
        if index is not None and index < len(self._state.open_trace):
            self._screen.arrival.index = index
            self._screen.go_to(index)

    def show_panel(self) -> None:
        """Show the suggestion under the cursor, or how to get to one."""
        session = self._state.session
        suggestion = self.current()
        if session is None or suggestion is None:
            text = self._idle_text(session)
            for panel in self.panels:
                panel.show_message("Suggestions", text)
            return
        index_of = self._state.open_trace.index_of
        mode_title = self._mode_title(suggestion.mode)
        same_rule_count = self._waiting.rule_counts[_rule_of(suggestion)]
        warnings = list(warnings_on(suggestion, index_of))
        if same_rule_count > 1:
            code = mode_title.partition(" ")[0]
            key = self._key_of("annotate.answer_many")
            text = f"{same_rule_count} suggestions of {code} by this rule: {key} answers them all"
            warnings.append(SuggestionLine(text, warns=False))
        # The number counts all suggestions, so answers do not change it.
        all_ids = [s.id for s in session.suggestions]
        number = f"{all_ids.index(suggestion.id) + 1} of {len(all_ids)}"
        source = suggestion_source_text(suggestion, index_of)
        for panel in self.panels:
            panel.show(f"Suggestion {number}", mode_title, source, warnings, suggestion.rationale)
            if self.edited_id == suggestion.id:
                panel.show_titles(plain_title(f"Editing suggestion {number}"))

    def _idle_text(self, session: Session | None) -> str:
        """Return the text of the panel while no suggestion is under the cursor."""
        if session is None:
            if self._screen.mast.workspace.no_workspace_reason is not None:
                return "No suggestions without a workspace"
            return "Opening the workspace …"
        count = len(self.pending)
        if not count:
            return self._none_pending_text(session)
        key = self._key_of("annotate.next_suggestion")
        return f"{count} wait{'s' if count == 1 else ''} for an answer: {key} goes to the next"

    def _mode_title(self, slug: str) -> str:
        """Return the code and name of a mode, or its slug if the taxonomy does not have it."""
        mode = next((m for m in self._state.taxonomy.modes if m.slug == slug), None)
        return f"{mode.code} {mode.name}" if mode else slug

    def _none_pending_text(self, session: Session) -> str:
        """Return the reason why no suggestion is visible, and the key that changes that."""
        hidden_count = len(session.pending) - len(self.pending)
        if hidden_count:
            key = self._key_of("annotate.answer_many")
            return f"{counted(hidden_count, 'waiting suggestion')} hidden: {key}, then w shows them"
        return _no_suggestion_text(session, self._screen.mast)

    def answer_many(self) -> None:
        """Ask which suggestions to answer together, and how."""
        self._commands.when_session_opens(self._ask_many)

    def _ask_many(self, session: Session) -> None:
        """Open the dialog that answers, hides or shows several suggestions.

        If no suggestion waits, end the answers for later traces, or show why there is none.
        """
        visible = self.pending
        hidden_count = len(session.pending) - len(visible)
        # If all are hidden, the dialog opens too, because one of its keys shows them.
        candidates = visible or session.pending
        if not candidates:
            message = _no_suggestion_text(session, self._screen.mast)
            if self._answers_for_later_traces:
                self._end_answers_for_later_traces()
                message = f"No suggestion waits{_LATER_ANSWERS_ENDED}"
            self._hints.say(message)
            return
        example = self.current() or candidates[0]
        dialog = ManyScreen(
            example,
            visible,
            self._mode_title(example.mode),
            hidden_count,
            len(self._answers_for_later_traces),
        )
        queue = self._screen.mast.writes.do
        self._screen.mast.ask(dialog, lambda answer: queue(partial(self._answer_many, answer)))

    async def _answer_many(self, dialog_answer: ManyAnswered) -> None:
        """Carry out the answer of the dialog."""
        selected_suggestions = dialog_answer.scope.select(self.pending)
        if dialog_answer.answer == SHOW_ALL:
            self._hidden_scopes = ()
            addition = _LATER_ANSWERS_ENDED if self._answers_for_later_traces else ""
            self._end_answers_for_later_traces()
            self._show_visibility_changed(f"All suggestions are shown again{addition}")
        elif dialog_answer.answer == HIDE:
            self._hidden_scopes = (*self._hidden_scopes, dialog_answer.scope)
            key = self._key_of("annotate.answer_many")
            self._show_visibility_changed(
                f"{counted(len(selected_suggestions), 'suggestion')} hidden, not answered: {key}, "
                "then w shows them again"
            )
        else:
            await self._answer_selected(dialog_answer, selected_suggestions)

    async def _answer_selected(
        self, dialog_answer: ManyAnswered, suggestions: Sequence[Suggestion]
    ) -> None:
        """Accept or reject suggestions, and remember the answer for later traces if asked to."""
        change = await self._commands.run_command(
            lambda s: _answer_all(s, dialog_answer.answer, suggestions)
        )
        if change is None:
            return
        message = self._message_of(change)
        if dialog_answer.for_later_traces:
            session = self._state.session
            assert session is not None
            self._answers_for_later_traces = (*self._answers_for_later_traces, dialog_answer)
            self._answered_traces.add(session.trace_id)
            message = f"{one_line(change.message)}; the same on each trace you open"
        self._current_id = None
        self._screen.show_span()
        self._hints.say(f"{message} · {self._key_of('everywhere.undo')} undoes it")

    def _show_visibility_changed(self, message: str) -> None:
        """Draw the screen after suggestions were hidden or shown, with a message."""
        self._screen.session_changed()
        self._screen.show_span()
        self._hints.say(message)

    def _end_answers_for_later_traces(self) -> None:
        self._answers_for_later_traces = ()
        self._answered_traces.clear()

    def repeat_answers(self) -> None:
        """Give the answers that the annotator chose for all later traces.

        An unfinished trace receives them once. Each answer is one change.
        """
        if self._answers_for_later_traces:
            self._commands.when_session_opens(self._repeat_answers)

    async def _repeat_answers(self, session: Session) -> None:
        """Answer the suggestions of a session, unless it is finished or already has the answers."""
        is_open = session is self._state.session
        if not is_open or session.finished or session.trace_id in self._answered_traces:
            return
        self._answered_traces.add(session.trace_id)
        messages: list[str] = []
        for later_answer in self._answers_for_later_traces:
            selected_suggestions = later_answer.scope.select(self.pending)
            if not selected_suggestions:
                continue
            change = await self._commands.run_command(
                partial(_answer_all, key=later_answer.answer, suggestions=selected_suggestions)
            )
            if change is not None and change.message:
                messages.append(one_line(change.message))
        if messages:
            self._screen.show_span()
            key = self._key_of("everywhere.undo")
            self._hints.say(f"{'; '.join(messages)}, as on earlier traces · {key} undoes it")


def _answer_all(session: Session, key: str, suggestions: Sequence[Suggestion]) -> Change:
    return session.answer_all(
        [suggestion.id for suggestion in suggestions],
        ReviewAnswer.ACCEPT if key == ACCEPT else ReviewAnswer.REJECT,
    )


def _suggestion_at(session: Session, location: TraceLocation) -> Suggestion | None:
    """Return the first suggestion with the id or the judge of a location, or None.

    Pending suggestions come first.
    """
    suggestions = (
        suggestion
        for suggestion in (*session.pending, *session.suggestions)
        if suggestion.id == location.suggestion or suggestion.judge == location.judge
    )
    return next(suggestions, None)
