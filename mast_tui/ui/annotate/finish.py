"""Finishing a trace, and seeing what was hidden until then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from mast_tui.safe_text import one_line
from mast_tui.ui.annotate.base import AnnotateBase

if TYPE_CHECKING:
    from mast_tui.session import Session


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


class Finishing(AnnotateBase):
    """The end of a pass."""

    def action_finish(self) -> None:
        """Finish the trace; asks once where spans were not read."""
        if self.has_spans:
            self.with_session(self._finish, here=True)

    def _finish(self, session: Session) -> None:
        if session.finished:
            self.hints.say("This pass is finished already · > next trace · r shows what others say")
            return
        assert self.trace is not None
        if not self.trace.loaded.complete:
            self.hints.say("Still reading this trace; finish when it is all there", error=True)
            return
        self.write_read()
        unread = session.unread()
        answer = session.open_modes_answer
        if answer is not None:
            self._end(session, answer, fixed=bool(unread))
            return
        total, missed = len(self.trace), sum(map(len, unread))
        open_modes = self._open_modes(session)
        from mast_tui.ui.dialogs.question import Ask

        def answered(answer: str | None) -> None:
            if answer == "o":
                self.writes.do(lambda: self._end(session, "leave"))
            elif answer == "j":
                self.writes.do(lambda: self._end(session, "absent"))
            elif answer == "g":
                self.timeline.go_to(unread[0].start)
                self.show_span()

        self.app.push_screen(
            Ask(
                f"{total - missed} of {total} spans read",
                f"Not read: {ranges_in_words(unread)}.\n\n"
                f"{open_modes} of {len(self.taxonomy.modes)} modes have no verdict yet. "
                "Unseen is not negative: left open, they count in no figure.",
                (
                    ("o", "finish, leave them open"),
                    ("j", "I have judged the whole trace: set them absent"),
                    ("g", "go to the first unread span"),
                ),
                default="o",
            ),
            answered,
        )

    def _open_modes(self, session: Session) -> int:
        return sum(session.verdict(mode.slug) is None for mode in self.taxonomy.modes)

    def _end(
        self, session: Session, open_modes: Literal["leave", "absent"], *, fixed: bool = False
    ) -> None:
        """Finish, and say in one line what came of it; ``fixed``: a study gave the answer."""
        assert self.trace is not None
        total, was_open = len(self.trace), self._open_modes(session)
        unread = session.unread()
        if self.changed(lambda s: s.finish(open_modes=open_modes)) is None:
            return
        self.finished_one()
        then = "> next trace · u takes it back"
        if not fixed:
            then += " · r shows what was hidden"
        self.hints.say(
            f"{finished_words(unread, total, was_open, open_modes, fixed=fixed)} · {then}"
        )

    def action_reveal(self) -> None:
        """After finishing: others' labels, the outcome, and what else was hidden."""
        if self.has_spans:
            self.with_session(self._reveal, here=True)

    def _reveal(self, session: Session) -> None:
        if not session.finished:
            self.hints.say("What others say is shown after you have finished the trace (D)")
            return
        if session.others_shown or not _comes_back(session):
            self._show_hidden(session)
            return
        from mast_tui.ui.dialogs.question import Ask

        def answered(answer: str | None) -> None:
            if answer == "s" and self.session is session:
                self.writes.do(lambda: self._show_hidden(session))

        self.app.push_screen(
            Ask(
                "See what was hidden?",
                "In this study some finished traces repeat: they are labelled again, without "
                "sight of anything. One that you have looked into by then is left out of that. "
                "Looking is recorded.",
                (("s", "see it"), ("n", "leave it hidden")),
                default="n",
            ),
            answered,
        )

    def _show_hidden(self, session: Session) -> None:
        self.changed(lambda s: s.reveal())
        self.show_state()
        assert self.trace is not None
        people = sorted({label.annotator for label in session.others})
        hidden = [f"{one_line(k)}: {one_line(v, 60)}" for k, v in self.trace.meta.hidden]
        words = (
            [f"{len(session.others)} labels of {', '.join(map(one_line, people))}"]
            if people
            else ["Nobody else has labelled this trace"]
        )
        self.hints.say(" · ".join([*words, *hidden]))

    def write_read(self) -> None:
        """Write what has been on screen."""
        raise NotImplementedError

    def finished_one(self) -> None:
        """One more trace is finished."""
        raise NotImplementedError
