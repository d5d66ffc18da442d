"""Commands of the session, in the order of their keys, as soon as there is a session."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from mast_tui.errors import ChangedMeanwhile, MastError
from mast_tui.safe_text import one_line
from mast_tui.writes import HeldKeys

if TYPE_CHECKING:
    from mast_tui.session import Change, Session
    from mast_tui.ui.annotate.screen import AnnotateScreen

Result = TypeVar("Result")


class SessionCommands:
    """Runs what keys ask of the session, and shows what it did; every command is on disk first."""

    def __init__(self, screen: AnnotateScreen) -> None:
        self._screen = screen
        self._state = screen.state
        self._hints = screen.hints
        self._waiting: list[Callable[[Session], object]] = []

    @property
    def waiting(self) -> bool:
        """Whether something that a key has asked for waits for the workspace."""
        return bool(self._waiting)

    def with_session(self, work: Callable[[Session], object]) -> None:
        """Do ``work`` with the session, now or as soon as the workspace is open.

        All input that follows waits with it.
        """
        state = self._state
        if state.trace is None:
            return
        if state.session is None and self._screen.context.refused is not None:
            self._hints.say("No workspace is open, so nothing can be labelled", error=True)
        elif state.session is None:
            self._waiting.append(work)
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
        session = self._state.session
        assert session is not None
        finished = session.finished
        change = self.attempt(command, session)
        if session.finished is not finished:
            self._screen.finish_changed()
        if change is not None and session is self._state.session:
            self._screen.session_changed()
            if not self._screen.typing:
                self._hints.say(one_line(change.message))
        return change

    def attempt(self, command: Callable[[Session], Result], session: Session) -> Result | None:
        """Run ``command``; what the session or the workspace refuses is said in the last line.

        Args:
            command: What to run.
            session: What to run it with.
        """
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
        """Do what keys have asked for before there was a session.

        Returns:
            Whether there was anything.
        """
        steps = self._waiting
        self._waiting = []
        for step in steps:
            self._screen.context.writes.do(partial(self.attempt, step, session))
        return bool(steps)

    def forget(self) -> None:
        """Leave undone what keys have asked for: there will be no session."""
        self._waiting = []
