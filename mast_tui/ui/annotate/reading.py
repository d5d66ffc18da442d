"""What of a trace has been on screen, which the session is told some times a second."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from mast_tui.ui.annotate.commands import SessionCommands
from mast_tui.ui.annotate.state import AnnotateView
from mast_tui.ui.trace_view.folding import Run
from mast_tui.writes import HeldKeys

if TYPE_CHECKING:
    from mast_tui.session import Session


PASSED_OVER: Final = 4
"""How many times at most it waits that keys come no more until what was read is written: rows are
drawn again for that, which somebody who scrolls on would wait for."""


class ReadingView(AnnotateView, Protocol):
    """What is asked of the screen to know what was read."""

    @property
    def commands(self) -> SessionCommands: ...
    @property
    def is_active(self) -> bool: ...
    def show_news(self, session: Session) -> None: ...


class Reading:
    """The spans whose text was drawn: in the span view, or whole in their rows.

    One member counts for a fold of equal steps, which may be long: it is kept as a run. What
    rushes by while the end of a trace is followed counts for nothing.
    """

    def __init__(self, view: ReadingView) -> None:
        self._view = view
        self._state = view.state
        self._timeline = view.timeline
        self._passed_over = 0
        self.begin()

    def begin(self) -> None:
        """Begin with another trace, of which nothing was on screen."""
        self._shown: set[str] = set()
        self._runs: tuple[range, ...] = ()
        self._counted: Run | None = None
        self._seen = -1
        """The span whose text the span view shows."""

    def drawn(self, index: int) -> None:
        """Count what is on screen now, with the span whose text was drawn in the span view."""
        self._seen = index
        self._shown |= self.on_screen()

    def on_screen(self) -> set[str]:
        """Return the keys of the spans that are read now; a run of equal steps is kept aside."""
        assert self._state.trace is not None
        if self._timeline.follows_end:
            return set()
        keys = set(self._timeline.fully_shown())
        if self._seen < 0:
            return keys
        keys.add(self._state.trace.span(self._seen).key)
        fold = self._timeline.rows.folded_at(self._seen)
        if isinstance(fold, Run) and not fold.near and fold != self._counted:
            self._counted = fold
            self._runs = (*self._runs, range(fold.first, fold.end))
        return keys

    def write_between_keys(self) -> None:
        """Write what was read, unless keys come and it has waited for less than a while."""
        if self._passed_over < PASSED_OVER and self._view.context.input_priority.keys_come:
            self._passed_over += 1
        else:
            self.write()

    def write(self) -> None:
        """Write what has been on screen since the last time, in one transaction."""
        self._passed_over = 0
        session, trace = self._state.session, self._state.trace
        if session is None or trace is None or not len(trace) or not self._view.is_active:
            return
        shown, self._shown = self._shown | self.on_screen(), set()
        runs, self._runs = self._runs, ()
        new = [key for key in shown if key not in session.read]
        if new or runs:
            write = partial(self._write, session, new, runs)
            self._view.context.writes.do(write, HeldKeys.NOTHING)

    def _write(self, session: Session, keys: Sequence[str], runs: tuple[range, ...]) -> None:
        def write(session: Session) -> bool:
            session.mark_read(keys, runs)
            return True

        written = self._view.commands.attempt(write, session)
        if session is not self._state.session:
            return
        if written:
            self._timeline.show_read(session.read)
            if session.has_news:
                self._view.show_news(session)
        else:  # it goes with what is read next
            self._shown.update(keys)
            self._runs = (*runs, *self._runs)
