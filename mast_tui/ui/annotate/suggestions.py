"""The suggestions of a trace: going to one, answering or editing it, and their panel."""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Literal

from mast_tui.labels import QuoteDoubt, ReviewAnswer, Target
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Mode
from mast_tui.traces.model import Span
from mast_tui.ui.annotate.many import ManyAnswered, ManyScreen, SuggestionScope
from mast_tui.ui.annotate.marking import Marking
from mast_tui.ui.annotate.state import Selection
from mast_tui.ui.context import TraceLocation, context_of
from mast_tui.ui.suggestion_wording import (
    SuggestionLine,
    judge_name,
    rule_words,
    source_words,
    warnings_on,
)
from mast_tui.ui.text.highlighting import TextPart
from mast_tui.ui.trace_view.span_view import SpanView
from mast_tui.ui.wording import plain_title

if TYPE_CHECKING:
    from mast_tui.session import Change, Session, Suggestion
    from mast_tui.ui.annotate.screen import AnnotateScreen
    from mast_tui.ui.context import MastApp


RULES_JUDGE: Final = "rules"


class SuggestionPanel(SpanView):
    """The panel with one suggestion, or with the number of suggestions that wait.

    It can be focused only if its text does not fit.
    """

    css_parts = ("head", "warning")

    def show(
        self, title: str, mode: str, source: str, warnings: Sequence[SuggestionLine], body: str
    ) -> None:
        """Show a suggestion. All texts but the title may come from a judge.

        Args:
            title: The number of the suggestion.
            mode: The name of its mode.
            source: Its judge and its span.
            warnings: Lines to read before trusting it.
            body: Its rationale.
        """
        mode = one_line(mode)
        key_of = context_of(self).key_of
        keys = (f"{key_of(f'annotate.{name}')} {name}" for name in ("accept", "reject", "edit"))
        self.show_titles(plain_title(title), plain_title("  ".join(keys)))
        head = f"{mode}  {one_line(source)}"
        marked = [TextPart(0, len(mode), "head")]
        for line in warnings:
            offset = len(head) + 1
            if line.warns:
                marked.append(TextPart(offset, offset + len(line.text), "warning"))
            marked += [
                TextPart(offset + start, offset + end, "match") for start, end in line.highlights
            ]
            head = f"{head}\n{line.text}"
        self._fill(f"{head}\n{body}", marked)
        self.set_class(False, "-idle")

    def idle(self, title: str, message: str) -> None:
        """Show a message while no suggestion is under the cursor.

        Args:
            title: The title of the panel.
            message: The message.
        """
        self.show_titles(plain_title(title))
        self._fill(message)
        self.set_class(True, "-idle")

    @property
    def overflows(self) -> bool:
        """True if the text does not fit."""
        return self.row_count > self.scrollable_content_region.height

    def _fill(self, text: str, marked: Sequence[TextPart] = ()) -> None:
        if text != self.text:
            rows = self.row_count
            self.show_text(text, marked)
            if self.row_count != rows:
                self.refresh(layout=True)


@dataclass(frozen=True, slots=True)
class _PendingByIndex:
    """The suggestions that wait, by the span of their evidence, in a trace of so many spans."""

    pending: tuple[Suggestion, ...]
    spans: int
    by_index: Mapping[int, Sequence[Suggestion]]


def no_suggestion_text(session: Session, context: MastApp) -> str:
    """Return the reason why there is no suggestion to go to.

    Args:
        session: The work on the open trace.
        context: The app, for its keys and the configured model.
    """
    if not session.suggestions_visible:
        if session.finished:
            key = context.key_of("annotate.reveal")
            return f"Suggestions are hidden until you look at what others say ({key})"
        if session.hidden_visible:
            return "The study shows no suggestions here before you have finished the trace"
        return "You work blind: suggestions are shown after you have finished the trace"
    if session.suggestions:
        return "All suggestions on this trace are answered"
    key = context.key_of("annotate.judge")
    if not session.judged_by:
        return f"No suggestions on this trace; {key} runs a judge"
    names = ", ".join(dict.fromkeys(map(_name_without_version, session.judged_by)))
    text = f"Judges run: {names}. Nothing found."
    if _has_another_judge(session.judged_by, context.configuration.judge.model):
        return f"{text} {key} runs another judge."
    return text


def _name_without_version(judge: str) -> str:
    """Return a judge's name without the version of its rules or the hash of its prompt."""
    return judge_name(judge).rpartition("@")[0] or judge_name(judge)


def _has_another_judge(judges: Collection[str], model: str | None) -> bool:
    """Check if the rules or the configured model have not judged yet.

    The twins judge is left out: to know if it can run, the other runs of the task must be read.
    """
    names = {_name_without_version(judge) for judge in judges}
    return RULES_JUDGE not in names or (model is not None and one_line(model, 40) not in names)


class Suggestions:
    """The suggestions of the open trace, with the one under the cursor.

    A judge may add suggestions at any time; they move no cursor and are never answered by
    themselves.
    """

    def __init__(self, screen: AnnotateScreen, marking: Marking) -> None:
        """Begin without a suggestion under the cursor.

        Args:
            screen: The screen that owns this part.
            marking: The target of a suggestion that is edited.
        """
        self.panels = (SuggestionPanel(id="suggestion-below"), SuggestionPanel(id="suggestion"))
        """The panel under the timeline for narrow screens, and the one beside it."""
        self._screen = screen
        self._state = screen.state
        self._timeline = screen.timeline
        self._hints = screen.hints
        self._modes = screen.modes
        self._commands = screen.commands
        self._key_of = screen.context.key_of
        self._marking = marking
        self._id: str | None = None
        """The id of the suggestion under the cursor."""
        self._visited: str | None = None
        self.editing: str | None = None
        """The id of the suggestion that is being edited."""
        self._by_index: _PendingByIndex | None = None
        self._hidden: tuple[SuggestionScope, ...] = ()
        """The suggestions that the user has hidden, on every trace."""
        self._standing_answers: tuple[ManyAnswered, ...] = ()
        """The answers that the user gives on every trace that is opened."""
        self._answered_traces: set[str] = set()
        """The traces that have had these answers, so that undoing them lasts."""
        self._visible_key: object = None
        self._visible: tuple[Suggestion, ...] = ()
        self._rule_counts: tuple[tuple[Suggestion, ...], Counter[tuple[str, str, str]]] | None = (
            None
        )

    def begin(self) -> None:
        """Begin with another trace."""
        self._id = self.editing = None

    @property
    def pending(self) -> tuple[Suggestion, ...]:
        """The suggestions that wait for an answer and are not hidden."""
        session = self._state.session
        waiting = () if session is None else session.pending
        if not self._hidden:
            return waiting
        if self._visible_key != (waiting, self._hidden):
            visible = (
                suggestion
                for suggestion in waiting
                if not any(scope.covers(suggestion) for scope in self._hidden)
            )
            self._visible_key = (waiting, self._hidden)
            self._visible = tuple(visible)
        return self._visible

    @property
    def pending_by_id(self) -> Mapping[str, Suggestion]:
        """The pending suggestions by their ids."""
        session = self._state.session
        if session is None:
            return {}
        if not self._hidden:
            return session.pending_by_id
        return {suggestion.id: suggestion for suggestion in self.pending}

    def current(self) -> Suggestion | None:
        """Return the suggestion that the answer keys refer to, or None."""
        session = self._state.session
        if session is None or self._id is None:
            return None
        return self.pending_by_id.get(self._id)

    def select_at(self, span: Span) -> None:
        """Select a suggestion on a span; the one visited stays selected if it is there."""
        session = self._state.session
        if session is None:
            self._id = None
            return
        on_span = self._pending_on(session, span.index)
        if not any(s.id == self._id for s in on_span):
            # A suggestion whose quote was not found is listed at the first span. It is selected
            # only after the user has gone to it.
            placed = (s.id for s in on_span if not s.doubt or s.evidence_key is not None)
            self._id = next(placed, None)

    def go_to_next(self, step: int) -> None:
        """Go to the next or previous suggestion that waits, at its evidence."""
        self._commands.when_session_opens(lambda session: self._go_to_pending(session, step))

    def _go_to_pending(self, session: Session, step: int, *, after: int | None = None) -> bool:
        """Put the cursor on the evidence of the next suggestion; return False if none waits."""
        pending = self.pending
        if not pending:
            self._id = None
            self._screen.show_span()
            self._hints.say(self._none_text(session))
            return False
        current = next((i for i, s in enumerate(pending) if self._is_current(s)), None)
        if current is not None:
            position = (current + step) % len(pending)
        else:
            position = self._position_near(
                pending, self._state.index if after is None else after, step
            )
        self.show(pending[position])
        return True

    def _is_current(self, suggestion: Suggestion) -> bool:
        """Check if the next suggestion is the one after this one.

        That is so for the suggestion under the cursor. If its quote is in doubt, it is out of
        reading order, and the user must have gone to it.
        """
        selected = suggestion.id == self._id
        return selected and (not suggestion.doubt or suggestion.id == self._visited)

    def _position_near(
        self,
        pending: Sequence[Suggestion],
        span_index: int,
        step: int,
        doubt: QuoteDoubt = QuoteDoubt.NONE,
    ) -> int:
        """Return the position of the next suggestion, or the previous one, from a span on.

        Suggestions are in reading order within each doubt about their quote, those without a
        doubt first. ``doubt`` selects the group to look in.
        """
        assert self._state.trace is not None
        index_of = self._state.trace.index_of

        def evidence_index(suggestion: Suggestion) -> int:
            key = suggestion.evidence_key
            index = 0 if key is None else index_of(key)
            return sys.maxsize if index is None else index

        first = bisect_left(pending, doubt, key=attrgetter("doubt"))
        end = bisect_right(pending, doubt, key=attrgetter("doubt"))
        position = bisect_left(pending, span_index, first, end, key=evidence_index)
        return (position if step > 0 else position - 1) % len(pending)

    def show(self, suggestion: Suggestion) -> None:
        """Put the cursor on the evidence of a suggestion."""
        self._id = self._visited = suggestion.id
        self._timeline.go_to(self.index_of(suggestion))
        self._modes.go_to(suggestion.mode)
        self._screen.show_span()
        if suggestion.quote_offsets is not None:
            self._screen.span_view.reveal(*suggestion.quote_offsets)

    def _pending_on(self, session: Session, index: int) -> Sequence[Suggestion]:
        """Return the visible suggestions that wait on a span."""
        assert self._state.trace is not None
        pending = self.pending
        spans = len(self._state.trace)
        cached = self._by_index
        if cached is None or cached.pending is not pending or cached.spans != spans:
            by_index: dict[int, list[Suggestion]] = {}
            for suggestion in pending:
                by_index.setdefault(self.index_of(suggestion), []).append(suggestion)
            self._by_index = cached = _PendingByIndex(pending, spans, by_index)
        return cached.by_index.get(index, ())

    def index_of(self, suggestion: Suggestion) -> int:
        """Return the span of the evidence of a suggestion; the first span if it is not in the
        trace.
        """
        assert self._state.trace is not None
        for key in (suggestion.evidence_key, suggestion.target.first, suggestion.target.last):
            index = self._state.trace.index_of(key) if key is not None else None
            if index is not None:
                return index
        return 0

    def answer(self, *, accept: bool) -> None:
        """Accept or reject the suggestion under the cursor, and go to the next."""
        self._commands.when_session_opens(partial(self._answer, accept=accept))

    async def _answer(self, session: Session, *, accept: bool) -> None:
        """Answer the suggestion under the cursor, and go to the next one in any case."""
        suggestion = self.current()
        if suggestion is None:
            if self._go_to_pending(session, 1):
                key_of = self._key_of
                self._hints.say(
                    f"Here is the next suggestion: {key_of('annotate.accept')} accepts, "
                    f"{key_of('annotate.reject')} rejects, {key_of('annotate.edit')} edits"
                )
            return
        index = self.index_of(suggestion)

        def answer(session: Session) -> Change:
            return session.accept(suggestion.id) if accept else session.reject(suggestion.id)

        def select_next() -> None:
            # Selected at once, so that the panel shows nothing else in between.
            pending = self.pending
            self._id = None
            if pending:
                self._id = pending[self._position_near(pending, index, 1, suggestion.doubt)].id

        done = await self._commands.change(answer, select_next)
        if done is None:
            return
        following = self.current()
        if following is not None:
            self.show(following)
            remaining = f"{len(self.pending)} to go"
        else:
            self._screen.show_span()
            remaining = "all suggestions answered"
        message = f"{one_line(done.message)} · {remaining}"
        if not accept and session.verdict(suggestion.mode) is None:
            code = self._state.taxonomy.mode(suggestion.mode).code
            message += f" · {one_line(code)} stays open"
        self._hints.say(message)

    def edit(self, begun: Callable[[], None]) -> None:
        """Edit the suggestion under the cursor: mark its target, then type the mode.

        Args:
            begun: Called when its target is marked.
        """
        self._commands.when_session_opens(lambda s: self._begin_edit(s, begun))

    async def _begin_edit(self, session: Session, begun: Callable[[], None]) -> None:
        """Mark the range of the suggestion under the cursor for editing."""
        suggestion = self.current()
        if suggestion is None:
            await self._answer(session, accept=True)
            return
        assert self._state.trace is not None
        self.editing = suggestion.id
        first = suggestion.target.first
        start = self._state.trace.index_of(first) if first is not None else None
        last = suggestion.target.last
        end = self._state.trace.index_of(last) if last is not None else None
        if start is not None and end is not None and end > start:
            self._timeline.go_to(end)
            self._marking.mark(Selection(range_from=start))
        begun()

    def take_edit(self) -> str | None:
        """End the editing of a suggestion, and return its id or None."""
        editing = self.editing
        self.editing = None
        return editing

    async def finish_edit(
        self, session: Session, suggestion_id: str, mode: Mode, target: Target
    ) -> None:
        """Accept a suggestion with another mode or target.

        Args:
            session: The work on its trace.
            suggestion_id: Its id.
            mode: The mode of the label.
            target: The target of the label.
        """
        index = self._state.index
        done = await self._commands.change(lambda s: s.edit(suggestion_id, mode.slug, target))
        if done is None:
            return
        self._id = None
        if self.pending:
            self._go_to_pending(session, 1, after=index)
        self._hints.say(one_line(done.message))

    # Finished judges, and jumps from other screens

    def next_step_text(self, session: Session) -> str:
        """Return the next step after a judge has finished, in a few words."""
        if not self.pending:
            if session.suggestions_visible:
                return ""
            return no_suggestion_text(session, self._screen.context)
        return f"{self._key_of('annotate.next_suggestion')} goes there"

    def look_at(self, location: TraceLocation) -> None:
        """Go to a location as soon as the workspace is open."""

        def look(session: Session) -> None:
            assert self._state.trace is not None
            suggestion = _suggestion_at(session, location)
            if suggestion is not None and suggestion.id in self.pending_by_id:
                self.show(suggestion)
                return
            index = (
                self._state.trace.index_of(location.key)
                if location.key is not None
                else location.position
            )
            if suggestion is not None:
                index = self.index_of(suggestion)
            if index is not None and index < len(self._state.trace):
                self._timeline.go_to(index)
                self._screen.show_span()

        self._commands.when_session_opens(look)

    # The panel

    def show_panel(self) -> None:
        """Show the suggestion under the cursor, or how to get to one."""
        session = self._state.session
        suggestion = self.current()
        if session is None or suggestion is None:
            text = self._idle_text(session)
            for panel in self.panels:
                panel.idle("Suggestions", text)
            return
        assert self._state.trace is not None
        index_of = self._state.trace.index_of
        name = self._name_of(suggestion.mode)
        same_rule = self._same_rule_count(suggestion)
        warnings = list(warnings_on(suggestion, index_of))
        if same_rule > 1:
            code = name.partition(" ")[0]
            key = self._key_of("annotate.answer_many")
            text = f"{code} ×{same_rule}, same rule: {key} answers them together"
            warnings.append(SuggestionLine(text, warns=False))
        # Its number stays the same while others are answered.
        ids = [other.id for other in session.suggestions]
        title = f"Suggestion {ids.index(suggestion.id) + 1} of {len(ids)}"
        source = source_words(suggestion, index_of)
        for panel in self.panels:
            panel.show(title, name, source, warnings, suggestion.rationale)

    def _idle_text(self, session: Session | None) -> str:
        """Return the text of the panel while no suggestion is under the cursor."""
        if session is None:
            refused = self._screen.context.refused is not None
            return "No suggestions without a workspace" if refused else "Opening the workspace …"
        count = len(self.pending)
        if not count:
            return self._none_text(session)
        key = self._key_of("annotate.next_suggestion")
        return f"{count} wait{'s' if count == 1 else ''} for an answer: {key} goes to the next"

    def _name_of(self, slug: str) -> str:
        """Return the code and name of a mode, or its slug if the taxonomy does not have it."""
        mode = next((m for m in self._state.taxonomy.modes if m.slug == slug), None)
        return f"{mode.code} {mode.name}" if mode else slug

    def _same_rule_count(self, suggestion: Suggestion) -> int:
        """Return how many suggestions of the same rule wait."""
        cached = self._rule_counts
        if cached is None or cached[0] is not self.pending:
            rules = Counter(map(_rule_of, self.pending))
            self._rule_counts = cached = (self.pending, rules)
        return cached[1][_rule_of(suggestion)]

    def _none_text(self, session: Session) -> str:
        hidden = len(session.pending) - len(self.pending)
        if hidden:
            key = self._key_of("annotate.answer_many")
            return f"All that wait are hidden ({hidden}): {key}, then w shows them"
        return no_suggestion_text(session, self._screen.context)

    # Many at once

    def answer_many(self) -> None:
        """Ask which suggestions to answer together, and how."""
        self._commands.when_session_opens(self._ask_many)

    def _ask_many(self, session: Session) -> None:
        """Open the dialog about several suggestions, if any wait."""
        pending = self.pending
        hidden = len(session.pending) - len(pending)
        like = self.current() or next(iter(pending or session.pending), None)
        if like is None:
            if self._standing_answers:
                self._end_standing_answers()
                self._hints.say(
                    "No suggestion waits; traces that you open are not answered any more"
                )
            else:
                self._hints.say(no_suggestion_text(session, self._screen.context))
            return

        def answered(done: ManyAnswered | None) -> None:
            if done is not None:
                self._screen.context.writes.do(lambda: self._answer_many(done))

        standing = len(self._standing_answers)
        question = ManyScreen(like, pending, self._name_of(like.mode), hidden, standing)
        self._screen.app.push_screen(question, answered)

    async def _answer_many(self, done: ManyAnswered) -> None:
        """Carry out the answer of the dialog."""
        selected = done.scope.select(self.pending)
        if done.answer in ("h", "w"):
            self._hidden = () if done.answer == "w" else (*self._hidden, done.scope)
            key = self._key_of("annotate.answer_many")
            message = f"{len(selected)} hidden, unanswered: {key}, then w shows them again"
            if done.answer == "w":
                ended = " and answered one by one" if self._standing_answers else ""
                message = f"All suggestions are shown again{ended}"
                self._end_standing_answers()
            self._screen.session_changed()
            self._screen.show_span()
            self._hints.say(message)
            return
        change = await self._commands.change(lambda s: _answer_those(s, done.answer, selected))
        if change is None:
            return
        message = f"{one_line(change.message)} · {len(self.pending)} to go"
        if done.onward:
            session = self._state.session
            assert session is not None
            self._standing_answers = (*self._standing_answers, done)
            self._answered_traces.add(session.trace_id)
            message = f"{one_line(change.message)}; the same on each trace you open"
        self._id = None
        self._screen.show_span()
        self._hints.say(f"{message} · {self._key_of('everywhere.undo')} undoes it")

    def _end_standing_answers(self) -> None:
        self._standing_answers = ()
        self._answered_traces.clear()

    def repeat_answers(self) -> None:
        """Give the answers for every trace on the trace that was opened.

        Each trace has them once, as one change for each answer. A finished trace has none.
        """
        if self._standing_answers:
            self._commands.when_session_opens(self._repeat_answers)

    async def _repeat_answers(self, session: Session) -> None:
        """Give the standing answers on the open trace, unless it is finished or has had them."""
        open_now = session is self._state.session
        if not open_now or session.finished or session.trace_id in self._answered_traces:
            return
        self._answered_traces.add(session.trace_id)
        messages = []
        for standing in self._standing_answers:
            selected = standing.scope.select(self.pending)
            if selected:
                change = await self._commands.change(
                    partial(_answer_those, key=standing.answer, suggestions=selected)
                )
                messages.append("" if change is None else one_line(change.message))
        if messages := list(filter(None, messages)):
            self._screen.show_span()
            key = self._key_of("everywhere.undo")
            self._hints.say(f"{'; '.join(messages)} · as on earlier traces, {key} undoes it")


def _answer_those(session: Session, key: str, suggestions: Sequence[Suggestion]) -> Change:
    """Accept (``a``) or reject suggestions, as one change."""
    answer: Literal[ReviewAnswer.ACCEPT, ReviewAnswer.REJECT]
    answer = ReviewAnswer.ACCEPT if key == "a" else ReviewAnswer.REJECT
    return session.answer_all([suggestion.id for suggestion in suggestions], answer)


def _rule_of(suggestion: Suggestion) -> tuple[str, str, str]:
    return suggestion.judge, suggestion.mode, rule_words(suggestion.rationale)


def _suggestion_at(session: Session, location: TraceLocation) -> Suggestion | None:
    """Return the suggestion of a location, or the first of its judge, waiting ones first."""
    return next(
        (
            suggestion
            for suggestion in (*session.pending, *session.suggestions)
            if suggestion.id == location.suggestion or suggestion.judge == location.judge
        ),
        None,
    )
