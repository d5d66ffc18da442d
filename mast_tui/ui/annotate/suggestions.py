"""Suggestions on the annotate screen: going to one, accepting, rejecting, editing."""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mast_tui.labels import Doubt
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Mode
from mast_tui.ui.annotate.base import AnnotateBase
from mast_tui.ui.annotate.selection import Selection

if TYPE_CHECKING:
    from mast_tui.labels import Target
    from mast_tui.session import Change, Session, Suggestion


def _doubt(suggestion: Suggestion) -> Doubt:
    return suggestion.doubt


@dataclass(frozen=True, slots=True)
class _Standing:
    """Where the suggestions stand that wait, in a trace of so many spans."""

    pending: tuple[Suggestion, ...]
    spans: int
    by_index: Mapping[int, Sequence[Suggestion]]


class Suggesting(AnnotateBase):
    """One key answers the suggestion under the cursor and goes on to the next."""

    _editing: str | None = None
    _gone_to: str | None = None
    _standing: _Standing | None = None

    def action_suggestion(self, step: int) -> None:
        """Go to the next or previous suggestion that waits, at its evidence."""

        def go(session: Session) -> None:
            self.go_to_suggestion(session, step)

        self.with_session(go, here=True)

    def go_to_suggestion(self, session: Session, step: int, *, after: int | None = None) -> bool:
        """Put the cursor on the evidence of the next suggestion; False where none waits."""
        pending = session.pending
        if not pending:
            self.suggestion_id = None
            self.show_span()
            self.hints.say(self.no_suggestion_words(session))
            return False
        current = next((i for i, s in enumerate(pending) if self._is_gone_from(s)), None)
        if current is not None:
            place = (current + step) % len(pending)
        else:
            place = self._place_beside(pending, self.index if after is None else after, step)
        self.show_suggestion(pending[place])
        return True

    def _is_gone_from(self, suggestion: Suggestion) -> bool:
        """Whether the way leads on from this one: it is under the cursor, and where its quote is
        in doubt somebody has gone to it, as it stands out of the reading order."""
        here = suggestion.id == self.suggestion_id
        return here and (not suggestion.doubt or suggestion.id == self._gone_to)

    def _place_beside(
        self, pending: Sequence[Suggestion], at: int, step: int, among: Doubt = Doubt.NONE
    ) -> int:
        """Which suggestion comes next from a span on.

        They are in reading order, but for those whose quote is in doubt: these come last, those of
        each doubt in an order of their own. ``among`` says which of them one is among already.
        """
        assert self.trace is not None
        index_of = self.trace.index_of

        def index(suggestion: Suggestion) -> int:
            key = suggestion.evidence_key
            found = 0 if key is None else index_of(key)
            return sys.maxsize if found is None else found

        first = bisect_left(pending, among, key=_doubt)
        end = bisect_right(pending, among, key=_doubt)
        place = bisect_left(pending, at, first, end, key=index)
        return (place if step > 0 else place - 1) % len(pending)

    def show_suggestion(self, suggestion: Suggestion) -> None:
        """Put the cursor on a suggestion's evidence."""
        self.suggestion_id = self._gone_to = suggestion.id
        self.timeline.go_to(self.index_of_suggestion(suggestion))
        self.modes.go_to(suggestion.mode)
        self.show_span()
        if suggestion.quote_offsets is not None:
            self.span_view.reveal(*suggestion.quote_offsets)

    def pending_on(self, session: Session, index: int) -> Sequence[Suggestion]:
        """The suggestions that wait and are shown at a span; a move of the cursor looks up one."""
        assert self.trace is not None
        pending, spans = session.pending, len(self.trace)
        known = self._standing
        if known is None or known.pending is not pending or known.spans != spans:
            by_index: dict[int, list[Suggestion]] = {}
            for suggestion in pending:
                by_index.setdefault(self.index_of_suggestion(suggestion), []).append(suggestion)
            self._standing = known = _Standing(pending, spans, by_index)
        return known.by_index.get(index, ())

    def index_of_suggestion(self, suggestion: Suggestion) -> int:
        """The span where a suggestion's evidence stands."""
        assert self.trace is not None
        for key in (suggestion.evidence_key, suggestion.target.first, suggestion.target.last):
            index = self.trace.index_of(key) if key is not None else None
            if index is not None:
                return index
        return 0

    @staticmethod
    def no_suggestion_words(session: Session) -> str:
        """Why there is no suggestion to go to."""
        if not session.suggestions_visible:
            if session.finished:
                return "Suggestions are hidden until you look at what others say (r)"
            if session.hidden_visible:
                return "The study shows no suggestions here before you have finished the trace"
            return "You work blind: suggestions are shown after you have finished the trace"
        if session.suggestions:
            return "All suggestions on this trace are answered"
        return "No suggestions on this trace; J runs a judge"

    def action_accept(self) -> None:
        """Accept the suggestion under the cursor and go on to the next."""
        self.with_session(lambda session: self._answer(session, accept=True), here=True)

    def action_reject(self) -> None:
        """Reject the suggestion under the cursor and go on to the next."""
        self.with_session(lambda session: self._answer(session, accept=False), here=True)

    def _answer(self, session: Session, *, accept: bool) -> None:
        suggestion = self.suggestion_here()
        if suggestion is None:
            if self.go_to_suggestion(session, 1):
                self.hints.say("Here is the next suggestion: a accepts, x rejects, e edits")
            return
        place = self.index_of_suggestion(suggestion)

        def answer(session: Session) -> Change:
            done = session.accept(suggestion.id) if accept else session.reject(suggestion.id)
            # The panel goes from one suggestion to the next without a stop between them.
            pending = session.pending
            self.suggestion_id = (
                pending[self._place_beside(pending, place, 1, suggestion.doubt)].id
                if pending
                else None
            )
            return done

        done = self.changed(answer)
        if done is None:
            return
        following = self.suggestion_here()
        if following is not None:
            self.show_suggestion(following)
            self.hints.say(f"{one_line(done.message)} · {len(session.pending)} to go")
        else:
            self.show_span()
            self.hints.say(f"{one_line(done.message)} · all suggestions answered")

    def action_edit(self) -> None:
        """Accept the suggestion with another mode or place: mark it, then type the mode."""
        self.with_session(self._begin_edit, here=True)

    def _begin_edit(self, session: Session) -> None:
        suggestion = self.suggestion_here()
        if suggestion is None:
            self._answer(session, accept=True)
            return
        assert self.trace is not None
        self._editing = suggestion.id
        first = suggestion.target.first
        start = self.trace.index_of(first) if first is not None else None
        last = suggestion.target.last
        end = self.trace.index_of(last) if last is not None else None
        if start is not None and end is not None and end > start:
            self.timeline.go_to(end)
            self.set_selection(Selection(range_from=start))
        self.show_editing()

    def show_editing(self) -> None:
        """Say what is waited for while another place for a suggestion is marked."""
        session = self.session
        suggestions = () if session is None else session.pending
        suggestion = next((s for s in suggestions if s.id == self._editing), None)
        if suggestion is None:
            return
        mode = self.taxonomy.mode(suggestion.mode)
        self.hints.prompt(
            f"edit: move, v range, w quote, t whole; then two digits "
            f"({self.taxonomy.keys_of(mode)} keeps the mode) · Esc leaves"
        )

    def finish_edit(self, session: Session, suggestion_id: str, mode: Mode, target: Target) -> None:
        place = self.index
        done = self.changed(lambda s: s.edit(suggestion_id, mode.slug, target))
        if done is None:
            return
        self.suggestion_id = None
        if session.pending:
            self.go_to_suggestion(session, 1, after=place)
        self.hints.say(one_line(done.message))
