"""Finishing a trace, and seeing what was hidden until then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from mast_tui.safe_text import one_line
from mast_tui.ui.screens.annotate_base import AnnotateBase

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
        if not unread:
            self._end(session, "absent")
            return
        total, missed = len(self.trace), sum(map(len, unread))
        open_modes = [m for m in self.taxonomy.modes if session.verdict(m.slug) is None]
        from mast_tui.ui.screens.ask import Ask

        def answered(answer: str | None) -> None:
            if answer == "o":
                self._end(session, "leave")
            elif answer == "j":
                self._end(session, "absent")
            elif answer == "g":
                self.timeline.go_to(unread[0].start)
                self.show_span()

        self.app.push_screen(
            Ask(
                f"{total - missed} of {total} spans read",
                f"Not read: {ranges_in_words(unread)}.\n\n"
                f"{len(open_modes)} of {len(self.taxonomy.modes)} modes have no verdict yet. "
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

    def _end(self, session: Session, open_modes: Literal["leave", "absent"]) -> None:
        change = self.changed(lambda s: s.finish(open_modes=open_modes))
        if change is not None:
            self.finished_one()
            words = "> next trace · u takes it back · r shows what was hidden"
            self.hints.say(f"{one_line(change.message)} · {words}")

    def action_reveal(self) -> None:
        """After finishing: others' labels, the outcome, and what else was hidden."""
        if self.has_spans:
            self.with_session(self._reveal, here=True)

    def _reveal(self, session: Session) -> None:
        if not session.finished:
            self.hints.say("What others say is shown after you have finished the trace (D)")
            return
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
