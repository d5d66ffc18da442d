"""Suggestions: going to one, accepting, rejecting, editing it, and taking in what a judge finds."""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Literal

from mast_tui.labels import Answer, QuoteDoubt, Target
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
    """Shows one suggestion, or how many wait and how to get to them.

    It takes the focus only where it holds more than it can show at once.
    """

    css_parts = ("head", "warning")

    def show(
        self, title: str, mode: str, source: str, warnings: Sequence[SuggestionLine], body: str
    ) -> None:
        """Show a suggestion, with what to know before trusting it; all but that is foreign text."""
        mode = one_line(mode)
        key_of = context_of(self).key_of
        keys = (f"{key_of(f'annotate.{name}')} {name}" for name in ("accept", "reject", "edit"))
        self.show_titles(plain_title(title), plain_title("  ".join(keys)))
        head = f"{mode}  {one_line(source)}"
        marked = [TextPart(0, len(mode), "head")]
        for line in warnings:
            begin = len(head) + 1
            if line.warns:
                marked.append(TextPart(begin, begin + len(line.text), "warning"))
            marked += [TextPart(begin + start, begin + end, "match") for start, end in line.lit]
            head = f"{head}\n{line.text}"
        self._fill(f"{head}\n{body}", marked)
        self.set_class(False, "-idle")

    def idle(self, title: str, words: str) -> None:
        """Say what there is when no suggestion is under the cursor."""
        self.show_titles(plain_title(title))
        self._fill(words)
        self.set_class(True, "-idle")

    @property
    def overflows(self) -> bool:
        """Whether there is more than is on screen."""
        return self.row_count > self.scrollable_content_region.height

    def _fill(self, text: str, marked: Sequence[TextPart] = ()) -> None:
        if text != self.text:
            rows = self.row_count
            self.show_text(text, marked)
            if self.row_count != rows:
                self.refresh(layout=True)


@dataclass(frozen=True, slots=True)
class _Standing:
    """Where the suggestions stand that wait, in a trace of so many spans."""

    pending: tuple[Suggestion, ...]
    spans: int
    by_index: Mapping[int, Sequence[Suggestion]]


def no_suggestion_words(session: Session, context: MastApp) -> str:
    """Return why there is no suggestion to go to.

    Args:
        session: The work on the open trace.
        context: The app, which knows the keys and the model that is configured.
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
    words = f"Judges run: {names}. Nothing found."
    if _has_another_judge(session.judged_by, context.configuration.judge.model):
        return f"{words} {key} runs another judge."
    return words


def _name_without_version(judge: str) -> str:
    """Return a judge's name without the version of its rules or the hash of its prompt."""
    return judge_name(judge).rpartition("@")[0] or judge_name(judge)


def _has_another_judge(judges: Collection[str], model: str | None) -> bool:
    """Return whether the rules or the configured model have not judged yet.

    The twins judge does not count: whether it can run takes reading the other runs of the task.
    """
    names = {_name_without_version(judge) for judge in judges}
    return RULES_JUDGE not in names or (model is not None and one_line(model, 40) not in names)


class Suggestions:
    """One key answers the suggestion under the cursor and goes on to the next.

    What a judge finds comes while one works; it moves no cursor and answers nothing.
    """

    def __init__(self, screen: AnnotateScreen, marking: Marking) -> None:
        """Begin without a suggestion under the cursor.

        Args:
            screen: Whose part it is.
            marking: What a suggestion that is edited points at.
        """
        self.panels = (SuggestionPanel(id="suggestion-below"), SuggestionPanel(id="suggestion"))
        """The suggestion under the cursor: under the timeline where it is narrow, else beside."""
        self._screen = screen
        self._state = screen.state
        self._timeline = screen.timeline
        self._hints = screen.hints
        self._modes = screen.modes
        self._commands = screen.commands
        self._key_of = screen.context.key_of
        self._marking = marking
        self._id: str | None = None
        """The suggestion under the cursor."""
        self._gone_to: str | None = None
        self.editing: str | None = None
        """The suggestion for which another mode or place is marked."""
        self._standing: _Standing | None = None
        self._hidden: tuple[SuggestionScope, ...] = ()
        """Suggestions that nobody wants to see for now, on whatever trace."""
        self._standing_answers: tuple[ManyAnswered, ...] = ()
        """What is answered on each trace that is opened, as somebody has asked for."""
        self._came_to: set[str] = set()
        """Traces on which that has been done: what is taken back there stays taken back."""
        self._shown_for: object = None
        self._shown: tuple[Suggestion, ...] = ()
        self._counted: tuple[tuple[Suggestion, ...], Counter[tuple[str, str, str]]] | None = None

    def begin(self) -> None:
        """Begin with another trace."""
        self._id = self.editing = None

    @property
    def pending(self) -> tuple[Suggestion, ...]:
        """The suggestions that wait for an answer, without those that are hidden."""
        session = self._state.session
        waiting = () if session is None else session.pending
        if not self._hidden:
            return waiting
        if self._shown_for != (waiting, self._hidden):
            shown = (one for one in waiting if not any(h.covers(one) for h in self._hidden))
            self._shown_for, self._shown = (waiting, self._hidden), tuple(shown)
        return self._shown

    @property
    def pending_by_id(self) -> Mapping[str, Suggestion]:
        """The same by their ids."""
        session = self._state.session
        if session is None:
            return {}
        if not self._hidden:
            return session.pending_by_id
        return {one.id: one for one in self.pending}

    def here(self) -> Suggestion | None:
        """Return the suggestion that a key would answer now."""
        session = self._state.session
        if session is None or self._id is None:
            return None
        return self.pending_by_id.get(self._id)

    def pick(self, span: Span) -> None:
        """Take the suggestion that stands at a span; the one gone to stays while it is there."""
        session = self._state.session
        if session is None:
            self._id = None
            return
        here = self._pending_on(session, span.index)
        if not any(s.id == self._id for s in here):
            # What has no place of its own stands at the beginning only once it is gone to.
            placed = (s.id for s in here if not s.doubt or s.evidence_key is not None)
            self._id = next(placed, None)

    def go(self, step: int) -> None:
        """Go to the next or previous suggestion that waits, at its evidence."""
        self._commands.when_session_opens(lambda session: self._go_to_next(session, step))

    def _go_to_next(self, session: Session, step: int, *, after: int | None = None) -> bool:
        """Put the cursor on the evidence of the next suggestion; False where none waits."""
        pending = self.pending
        if not pending:
            self._id = None
            self._screen.show_span()
            self._hints.say(self._none_words(session))
            return False
        current = next((i for i, s in enumerate(pending) if self._is_gone_from(s)), None)
        if current is not None:
            place = (current + step) % len(pending)
        else:
            place = self._place_beside(pending, self._state.index if after is None else after, step)
        self.show(pending[place])
        return True

    def _is_gone_from(self, suggestion: Suggestion) -> bool:
        """Whether the way leads on from this one: it is under the cursor, and where its quote is
        in doubt somebody has gone to it, as it stands out of the reading order."""
        here = suggestion.id == self._id
        return here and (not suggestion.doubt or suggestion.id == self._gone_to)

    def _place_beside(
        self, pending: Sequence[Suggestion], at: int, step: int, among: QuoteDoubt = QuoteDoubt.NONE
    ) -> int:
        """Which suggestion comes next from a span on.

        They are in reading order, but for those whose quote is in doubt: these come last, those of
        each doubt in an order of their own. ``among`` says which of them one is among already.
        """
        assert self._state.trace is not None
        index_of = self._state.trace.index_of

        def index(suggestion: Suggestion) -> int:
            key = suggestion.evidence_key
            found = 0 if key is None else index_of(key)
            return sys.maxsize if found is None else found

        first = bisect_left(pending, among, key=attrgetter("doubt"))
        end = bisect_right(pending, among, key=attrgetter("doubt"))
        place = bisect_left(pending, at, first, end, key=index)
        return (place if step > 0 else place - 1) % len(pending)

    def show(self, suggestion: Suggestion) -> None:
        """Put the cursor on a suggestion's evidence."""
        self._id = self._gone_to = suggestion.id
        self._timeline.go_to(self.index_of(suggestion))
        self._modes.go_to(suggestion.mode)
        self._screen.show_span()
        if suggestion.quote_offsets is not None:
            self._screen.span_view.reveal(*suggestion.quote_offsets)

    def _pending_on(self, session: Session, index: int) -> Sequence[Suggestion]:
        """The suggestions that wait and are shown at a span; a move of the cursor looks up one."""
        assert self._state.trace is not None
        pending, spans = self.pending, len(self._state.trace)
        known = self._standing
        if known is None or known.pending is not pending or known.spans != spans:
            by_index: dict[int, list[Suggestion]] = {}
            for suggestion in pending:
                by_index.setdefault(self.index_of(suggestion), []).append(suggestion)
            self._standing = known = _Standing(pending, spans, by_index)
        return known.by_index.get(index, ())

    def index_of(self, suggestion: Suggestion) -> int:
        """Return the span where a suggestion's evidence stands."""
        assert self._state.trace is not None
        for key in (suggestion.evidence_key, suggestion.target.first, suggestion.target.last):
            index = self._state.trace.index_of(key) if key is not None else None
            if index is not None:
                return index
        return 0

    def answer(self, *, accept: bool) -> None:
        """Accept the suggestion under the cursor, or reject it, and go on to the next."""
        self._commands.when_session_opens(partial(self._answer, accept=accept))

    async def _answer(self, session: Session, *, accept: bool) -> None:
        suggestion = self.here()
        if suggestion is None:
            if self._go_to_next(session, 1):
                key_of = self._key_of
                self._hints.say(
                    f"Here is the next suggestion: {key_of('annotate.accept')} accepts, "
                    f"{key_of('annotate.reject')} rejects, {key_of('annotate.edit')} edits"
                )
            return
        place = self.index_of(suggestion)

        def answer(session: Session) -> Change:
            return session.accept(suggestion.id) if accept else session.reject(suggestion.id)

        def go_on() -> None:
            # The panel goes from one suggestion to the next without a stop between them.
            pending = self.pending
            self._id = (
                pending[self._place_beside(pending, place, 1, suggestion.doubt)].id
                if pending
                else None
            )

        done = await self._commands.change(answer, go_on)
        if done is None:
            return
        following = self.here()
        if following is not None:
            self.show(following)
            self._hints.say(f"{one_line(done.message)} · {len(self.pending)} to go")
        else:
            self._screen.show_span()
            self._hints.say(f"{one_line(done.message)} · all suggestions answered")

    def edit(self, begun: Callable[[], None]) -> None:
        """Accept the suggestion with another mode or place: mark it, then type the mode.

        Args:
            begun: Called when its place is marked.
        """
        self._commands.when_session_opens(lambda s: self._begin_edit(s, begun))

    async def _begin_edit(self, session: Session, begun: Callable[[], None]) -> None:
        suggestion = self.here()
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
        """Leave the editing of a suggestion, and return which one it was."""
        editing, self.editing = self.editing, None
        return editing

    async def finish_edit(
        self, session: Session, suggestion_id: str, mode: Mode, target: Target
    ) -> None:
        """Accept a suggestion in another way.

        Args:
            session: Whose suggestion it is.
            suggestion_id: Which one.
            mode: The mode that was typed.
            target: Where the label points.
        """
        place = self._state.index
        done = await self._commands.change(lambda s: s.edit(suggestion_id, mode.slug, target))
        if done is None:
            return
        self._id = None
        if self.pending:
            self._go_to_next(session, 1, after=place)
        self._hints.say(one_line(done.message))

    # What a judge has found, and what is looked at from another room

    def what_next(self, session: Session) -> str:
        """Return what a key would do next, in a few words.

        How many wait stands in the panel, and how many were found is said by the judge.
        """
        if not self.pending:
            if session.suggestions_visible:
                return ""
            return no_suggestion_words(session, self._screen.context)
        return f"{self._key_of('annotate.next_suggestion')} goes there"

    def look_at(self, at: TraceLocation) -> None:
        """Go to the evidence, as soon as the workspace is open."""

        def look(session: Session) -> None:
            assert self._state.trace is not None
            found = _suggestion_at(session, at)
            if found is not None and found.id in self.pending_by_id:
                self.show(found)
                return
            index = self._state.trace.index_of(at.key) if at.key is not None else at.position
            if found is not None:
                index = self.index_of(found)
            if index is not None and index < len(self._state.trace):
                self._timeline.go_to(index)
                self._screen.show_span()

        self._commands.when_session_opens(look)

    # The panel

    def show_panel(self) -> None:
        """Show the suggestion under the cursor, or how to get to one."""
        session, suggestion = self._state.session, self.here()
        if session is None or suggestion is None:
            words = self._idle_words(session)
            for panel in self.panels:
                panel.idle("Suggestions", words)
            return
        assert self._state.trace is not None
        index_of = self._state.trace.index_of
        name, alike = self._name_of(suggestion.mode), self._alike(suggestion)
        warnings = list(warnings_on(suggestion, index_of))
        if alike > 1:
            code = name.partition(" ")[0]
            key = self._key_of("annotate.answer_many")
            words = f"{code} ×{alike}, same rule: {key} answers them together"
            warnings.append(SuggestionLine(words, warns=False))
        # Its number stays while others are answered.
        ids = [one.id for one in session.suggestions]
        title = f"Suggestion {ids.index(suggestion.id) + 1} of {len(ids)}"
        source = source_words(suggestion, index_of)
        for panel in self.panels:
            panel.show(title, name, source, warnings, suggestion.rationale)

    def _idle_words(self, session: Session | None) -> str:
        if session is None:
            refused = self._screen.context.refused is not None
            return "Without a workspace there are none" if refused else "Opening the workspace …"
        count = len(self.pending)
        if not count:
            return self._none_words(session)
        key = self._key_of("annotate.next_suggestion")
        return f"{count} wait{'s' if count == 1 else ''} for an answer: {key} goes to the next"

    def _name_of(self, slug: str) -> str:
        """A mode by its code and name; by its slug where it is none of the taxonomy."""
        mode = next((m for m in self._state.taxonomy.modes if m.slug == slug), None)
        return f"{mode.code} {mode.name}" if mode else slug

    def _alike(self, suggestion: Suggestion) -> int:
        """How many suggestions of the same rule wait."""
        known = self._counted
        if known is None or known[0] is not self.pending:
            rules = Counter(map(_rule_of, self.pending))
            self._counted = known = (self.pending, rules)
        return known[1][_rule_of(suggestion)]

    def _none_words(self, session: Session) -> str:
        hidden = len(session.pending) - len(self.pending)
        if hidden:
            key = self._key_of("annotate.answer_many")
            return f"All that wait are hidden ({hidden}): {key}, then w shows them"
        return no_suggestion_words(session, self._screen.context)

    # Many at once

    def answer_many(self) -> None:
        """Ask which suggestions to answer together, and how."""
        self._commands.when_session_opens(self._ask_many)

    def _ask_many(self, session: Session) -> None:
        pending = self.pending
        hidden = len(session.pending) - len(pending)
        like = self.here() or next(iter(pending or session.pending), None)
        if like is None:
            if self._standing_answers:
                self._end_standing_answers()
                self._hints.say("None waits here, and none is answered any more as traces open")
            else:
                self._hints.say(no_suggestion_words(session, self._screen.context))
            return

        def answered(done: ManyAnswered | None) -> None:
            if done is not None:
                self._screen.context.writes.do(lambda: self._answer_many(done))

        standing = len(self._standing_answers)
        question = ManyScreen(like, pending, self._name_of(like.mode), hidden, standing)
        self._screen.app.push_screen(question, answered)

    async def _answer_many(self, done: ManyAnswered) -> None:
        meant = done.scope.of(self.pending)
        if done.answer in ("h", "w"):
            self._hidden = () if done.answer == "w" else (*self._hidden, done.scope)
            key = self._key_of("annotate.answer_many")
            said = f"{len(meant)} hidden, unanswered: {key}, then w shows them again"
            if done.answer == "w":
                ended = " and answered one by one" if self._standing_answers else ""
                said = f"All suggestions are shown again{ended}"
                self._end_standing_answers()
            self._screen.session_changed()
            self._screen.show_span()
            self._hints.say(said)
            return
        change = await self._commands.change(lambda s: _answer_those(s, done.answer, meant))
        if change is None:
            return
        said = f"{one_line(change.message)} · {len(self.pending)} to go"
        if done.onward:
            session = self._state.session
            assert session is not None
            self._standing_answers = (*self._standing_answers, done)
            self._came_to.add(session.trace_id)
            said = f"{one_line(change.message)}, so on each trace you open"
        self._id = None
        self._screen.show_span()
        self._hints.say(f"{said} · {self._key_of('everywhere.undo')} takes back")

    def _end_standing_answers(self) -> None:
        self._standing_answers = ()
        self._came_to.clear()

    def answer_as_asked(self) -> None:
        """Answer, on a trace that was opened, what somebody wants answered on each: once, as one
        change for each answer, and never on a finished trace."""
        if self._standing_answers:
            self._commands.when_session_opens(self._answer_as_asked)

    async def _answer_as_asked(self, session: Session) -> None:
        here = session is self._state.session
        if not here or session.finished or session.trace_id in self._came_to:
            return
        self._came_to.add(session.trace_id)
        told = []
        for standing in self._standing_answers:
            meant = standing.scope.of(self.pending)
            if meant:
                change = await self._commands.change(
                    partial(_answer_those, key=standing.answer, meant=meant)
                )
                told.append("" if change is None else one_line(change.message))
        if told := list(filter(None, told)):
            self._screen.show_span()
            key = self._key_of("everywhere.undo")
            self._hints.say(f"{'; '.join(told)} · as asked, {key} takes back")


def _answer_those(session: Session, key: str, meant: Sequence[Suggestion]) -> Change:
    """Answer suggestions with what a key stands for, as one change."""
    answer: Literal[Answer.ACCEPT, Answer.REJECT]
    answer = Answer.ACCEPT if key == "a" else Answer.REJECT
    return session.answer_all([one.id for one in meant], answer)


def _rule_of(suggestion: Suggestion) -> tuple[str, str, str]:
    return suggestion.judge, suggestion.mode, rule_words(suggestion.rationale)


def _suggestion_at(session: Session, at: TraceLocation) -> Suggestion | None:
    """The suggestion that is meant; of a judge the first that waits, else its first."""
    return next(
        (
            one
            for one in (*session.pending, *session.suggestions)
            if one.id == at.suggestion or one.judge == at.judge
        ),
        None,
    )
