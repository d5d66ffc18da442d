"""Finishing a trace, and seeing what was hidden until then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Literal

from mast_tui.labels import VerdictValue
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Mode
from mast_tui.ui.annotate.open_modes import FinishScreen
from mast_tui.ui.annotate.reading import Reading
from mast_tui.ui.dialogs.question import Ask

if TYPE_CHECKING:
    from mast_tui.session import Session
    from mast_tui.ui.annotate.screen import AnnotateScreen


MOST_SCORES: Final = 2
"""So many scores are told at once when what was hidden is shown; all stand in the answer key."""


def ranges_in_words(stretches: Sequence[range], most: int = 6) -> str:
    """Stretches of spans by their numbers (from 1): ``#3, #7 to #9 and 4 more places``."""
    words = [
        f"#{one.start + 1}" if len(one) == 1 else f"#{one.start + 1} to #{one.stop}"
        for one in stretches[:most]
    ]
    more = len(stretches) - most
    if more > 0:
        return f"{', '.join(words)} and {more} more place{'' if more == 1 else 's'}"
    return ", ".join(words)


def _comes_back(session: Session) -> bool:
    """Whether the annotator's finished traces may come back under a study: told of all alike, so
    that it gives none away."""
    study = session.workspace.study(session.taxonomy.ref)
    return study is not None and study.retests > 0 and session.annotator in study.annotators


def finished_words(
    unread: Sequence[range],
    total: int,
    was_open: int,
    open_modes: Literal["leave", "absent"],
    *,
    fixed: bool,
) -> str:
    """What finishing did, in one line: how much was read, and what became of open modes.

    Where the answer was ``fixed``, and so nobody was asked, it names the first unread places too.
    """
    words = [f"finished · {total - sum(map(len, unread))} of {total} spans read"]
    if was_open:
        became = "left open" if open_modes == "leave" else "set absent"
        words.append(f"open modes {became}{' (fixed by the study)' if fixed else ''}")
    if unread and fixed:
        words.append(f"not {ranges_in_words(unread, most=2)}")
    return " · ".join(words)


class Finish:
    """The end of a pass."""

    def __init__(self, screen: AnnotateScreen, reading: Reading) -> None:
        """Begin.

        Args:
            screen: Whose part it is.
            reading: What was read by then.
        """
        self._screen = screen
        self._state = screen.state
        self._hints = screen.hints
        self._commands = screen.commands
        self._reading = reading

    def end_pass(self) -> None:
        """Finish the trace; asks once where spans were not read."""
        if self._state.has_spans:
            self._commands.with_session(self._finish, here=True)

    def _finish(self, session: Session) -> None:
        if session.finished:
            self._hints.say(
                "This pass is finished already · > next trace · r shows what others say"
            )
            return
        assert self._state.trace is not None
        if not self._state.trace.loaded.complete:
            self._hints.say("Still reading this trace; finish when it is all there", error=True)
            return
        self._reading.write()
        unread = session.unread()
        answer = session.open_modes_answer
        if answer is not None:
            self._end(session, answer, fixed=bool(unread))
            return
        total, missed = len(self._state.trace), sum(map(len, unread))

        def say(mode: Mode, value: VerdictValue | None, then: Callable[[], None]) -> None:
            def write() -> None:
                self._commands.changed(lambda s: s.set_verdict(mode.slug, value))
                then()

            self._screen.context.writes.do(write)

        def answered(answer: str | None) -> None:
            if answer == "o":
                self._screen.context.writes.do(lambda: self._end(session, "leave"))
            elif answer == "j":
                self._screen.context.writes.do(lambda: self._end(session, "absent"))
            elif answer == "g":
                self._screen.timeline.go_to(unread[0].start)
                self._screen.show_span()

        question = FinishScreen(
            f"{total - missed} of {total} spans read",
            f"Not read: {ranges_in_words(unread)}.",
            [mode for mode in self._state.taxonomy.modes if session.verdict(mode.slug) is None],
            session.verdict,
            say,
        )
        self._screen.app.push_screen(question, answered)

    def _codes_open(self, session: Session) -> list[str]:
        modes = self._state.taxonomy.modes
        return [mode.code for mode in modes if session.verdict(mode.slug) is None]

    def _end(
        self, session: Session, open_modes: Literal["leave", "absent"], *, fixed: bool = False
    ) -> None:
        """Finish, and say in one line what came of it; ``fixed``: a study gave the answer."""
        assert self._state.trace is not None
        total, was_open = len(self._state.trace), len(self._codes_open(session))
        unread = session.unread()
        if self._commands.changed(lambda s: s.finish(open_modes=open_modes)) is None:
            return
        then = "> next trace · u undoes it"
        if not fixed:
            then += " · r shows what was hidden"
        stay = [] if open_modes == "leave" else self._codes_open(session)
        words = finished_words(unread, total, was_open - len(stay), open_modes, fixed=fixed)
        if stay:
            words += f" · {', '.join(stay)} open, as the codebook has changed"
        self._hints.say(f"{words} · {then}")

    def reveal(self) -> None:
        """After finishing: others' labels, the outcome, and what else was hidden."""
        if self._state.has_spans:
            self._commands.with_session(self._reveal, here=True)

    def _reveal(self, session: Session) -> None:
        if not session.finished:
            self._hints.say("What others say is shown after you have finished the trace (D)")
            return
        if session.others_shown or not _comes_back(session):
            self._show_hidden(session)
            return

        def answered(answer: str | None) -> None:
            if answer == "s" and self._state.session is session:
                self._screen.context.writes.do(lambda: self._show_hidden(session))

        question = Ask(
            "See what was hidden?",
            "In this study some finished traces repeat: they are labelled again, without "
            "sight of anything. One that you have looked into by then is left out of that. "
            "Looking is recorded.",
            (("s", "see it"), ("n", "leave it hidden")),
            default="n",
        )
        self._screen.app.push_screen(question, answered)

    def _show_hidden(self, session: Session) -> None:
        self._commands.changed(lambda s: s.reveal())
        self._screen.session_changed()
        assert self._state.trace is not None
        people = sorted({label.annotator for label in session.others})
        scores = self._state.trace.meta.answer_key.scores
        hidden = [f"{one_line(k)}: {one_line(v, 60)}" for k, v in scores[:MOST_SCORES]]
        if self._state.trace.meta.hidden:
            hidden.append("i shows the answer key")
        words = (
            [f"{len(session.others)} labels of {', '.join(map(one_line, people))}"]
            if people
            else ["Nobody else has labelled this trace"]
        )
        self._hints.say(" · ".join([*words, *hidden]))
