"""A judge on the annotate screen: starting it, taking in what it finds, going to evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_tui.ui.annotate.suggestions import Suggesting
from mast_tui.ui.context import TraceLocation
from mast_tui.ui.services.judging import Judged

if TYPE_CHECKING:
    from mast_tui.session import Session, Suggestion


class JudgingHere(Suggesting):
    """What a judge finds comes while one works; it moves no cursor and answers nothing."""

    def action_judge(self) -> None:
        """Have a judge look at this trace; ask to cancel one that is at work."""
        if not self.has_spans:
            return
        assert self.trace is not None
        if not self.trace.loaded.complete:
            self.hints.say("Still reading this trace; run the judge when it is all there")
            return
        self.with_session(lambda _: self.run_judge(), here=True)

    def run_judge(self) -> None:
        """Have a judge look at this trace."""
        raise NotImplementedError

    def judged(self, message: Judged) -> None:
        """Take in what a judge has found on this trace, and say how it ended."""
        session = self.session
        here = session is not None and message.trace_id in (None, session.trace_id)
        if session is not None and here and session.suggestions_visible:
            session.refresh_suggestions()
            self.show_state()
            self.show_span()
        if message.done:
            then = "" if message.problem or session is None else self._what_now(session)
            message.tell(self.hints, then)

    def _what_now(self, session: Session) -> str:
        """What a key would do next, unless one is being waited for."""
        if self.entry.begun or self._editing is not None or not self.selection.is_plain:
            return ""
        pending = len(session.pending)
        if not pending:
            return "" if session.suggestions_visible else self.no_suggestion_words(session)
        return f"{pending} suggestion{' waits' if pending == 1 else 's wait'}: ] goes to the next"

    def look_at(self, at: TraceLocation) -> None:
        """Go to the evidence, as soon as the workspace is open."""

        def look(session: Session) -> None:
            assert self.trace is not None
            found = _suggestion_at(session, at)
            if found is not None and found.id in session.pending_by_id:
                self.show_suggestion(found)
                return
            index = self.trace.index_of(at.key) if at.key is not None else at.index
            if found is not None:
                index = self.index_of_suggestion(found)
            if index is not None and index < len(self.trace):
                self.timeline.go_to(index)
                self.show_span()

        self.with_session(look, here=True)


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
