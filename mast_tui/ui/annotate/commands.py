"""Commands of the session, in the order of their keys, as soon as there is a session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from mast_tui.errors import ChangedMeanwhile, MastError
from mast_tui.safe_text import one_line
from mast_tui.traces.model import Trace
from mast_tui.ui.wording import counted
from mast_tui.writes import HeldKeys

if TYPE_CHECKING:
    from mast_tui.session import Change, Session
    from mast_tui.ui.annotate.screen import AnnotateScreen

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a key has asked for on a trace before there was a session on it.

    With ``here`` it only makes sense while that trace is on screen.
    """

    trace: Trace
    work: Callable[[Session], object]
    here: bool


class SessionCommands:
    """Runs what keys ask of the session, and shows what it did; every command is on disk first."""

    def __init__(self, screen: AnnotateScreen) -> None:
        self._screen = screen
        self._state = screen.state
        self._hints = screen.hints
        self._waiting: list[Waiting] = []
        self._unseen: Session | None = None

    @property
    def on_screen(self) -> bool:
        """Whether what is done is shown: not so for a trace that was left meanwhile."""
        return self._unseen is None

    def with_session(self, work: Callable[[Session], object], *, here: bool = False) -> None:
        """Do ``work`` with the session, now or as soon as the workspace is open, in order.

        Args:
            work: What to do. Where the trace has been left by then, it is done without being shown.
            here: Leave it undone in that case, and say so.
        """
        state = self._state
        if state.trace is None:
            return
        if state.session is None and self._screen.context.refused is not None:
            self._hints.say("No workspace is open, so nothing can be labelled", error=True)
        elif state.session is None:
            self._waiting.append(Waiting(state.trace, work, here))
            self._hints.say("Opening the workspace; keys wait their turn")
        else:
            self._screen.context.writes.do(partial(self.attempt, work, state.session))

    def change(
        self, command: Callable[[Session], Change | None], holds: HeldKeys = HeldKeys.ALL
    ) -> None:
        """Run one command of the session in its turn, and show what it did.

        Args:
            command: What to run.
            holds: Which keys wait for it.
        """
        self._screen.context.writes.do(partial(self.changed, command), holds)

    def changed(self, command: Callable[[Session], Change | None]) -> Change | None:
        """Run one command of the session and show what it did; errors are said in words.

        Only called once the session is there, and as a part of what is done in its turn.

        Returns:
            What it did, or None where it was refused or did nothing.
        """
        session = self._unseen or self._state.session
        assert session is not None
        finished = session.finished
        change = self.attempt(command, session)
        if session.finished is not finished:
            self._screen.finish_changed()
        if change is not None and self.on_screen and session is self._state.session:
            self._screen.session_changed()
            if not self._screen.typing:
                self._hints.say(one_line(change.message))
        return change

    def attempt(self, command: Callable[[Session], Result], session: Session) -> Result | None:
        """Run ``command``; what the session or the workspace refuses is said in the last line.

        Args:
            command: What to run.
            session: What to run it with: that of this screen, or of a trace that was left.

        Raises:
            MastError: On a trace that was left, where whoever serves it says so.
        """
        if not self.on_screen:
            return command(session)
        try:
            return command(session)
        except MastError as error:
            if isinstance(error, ChangedMeanwhile) and session is self._state.session:
                self._screen.session_changed()
            self._hints.say(one_line(str(error)), error=True)
            return None

    def note(self, command: Callable[[Session], object], session: Session) -> None:
        """Run a command that no key has asked for and nobody waits for, in its turn.

        Args:
            command: What to run.
            session: What to run it with.
        """
        self._screen.context.writes.do(partial(self.attempt, command, session), HeldKeys.NOTHING)

    def session_ready(self, session: Session) -> bool:
        """Do what keys have asked for before there was a session on the trace on screen.

        Returns:
            Whether there was anything.
        """
        steps = self._waiting_on(session.trace)
        for step in steps:
            self._screen.context.writes.do(partial(step.work, session))
        return bool(steps)

    def serve_unseen(self, session: Session) -> None:
        """Do what keys have asked for on a trace that was left before the workspace was open."""
        undone = 0
        for step in self._waiting_on(session.trace):
            if step.here:
                undone += 1
                continue
            self._screen.context.writes.do(partial(self._serve, session, step))
        if undone:
            self._screen.context.show_error(
                f"{session.trace.path.name} was left before the workspace was open: "
                f"{counted(undone, 'key')} pressed there did nothing"
            )

    def forget(self) -> None:
        """Leave undone what keys have asked for: there will be no session."""
        self._waiting = []

    def _waiting_on(self, trace: Trace) -> list[Waiting]:
        """What keys have asked for on a trace; it waits no longer."""
        found = [step for step in self._waiting if step.trace is trace]
        self._waiting = [step for step in self._waiting if step.trace is not trace]
        return found

    def _serve(self, session: Session, step: Waiting) -> None:
        self._unseen = session
        try:
            self._screen.context.guarded(partial(step.work, session))
        finally:
            self._unseen = None
