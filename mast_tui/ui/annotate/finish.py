"""Finishing a trace, with a question where not all was read, and what was hidden until then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from rich.cells import set_cell_size
from textual.app import ComposeResult
from textual.containers import Grid, Vertical
from textual.widgets import Static

from mast_tui.columns import shortened
from mast_tui.errors import MastError
from mast_tui.labels import VerdictValue
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Mode
from mast_tui.ui.dialogs.dialog import Ask, KeyDialog, KeyRow
from mast_tui.ui.trace_view.folding import FoldedRun
from mast_tui.ui.wording import counted, plain_lines, plain_title
from mast_tui.writes import HeldKeys

if TYPE_CHECKING:
    from mast_tui.session import Session
    from mast_tui.ui.annotate.screen import AnnotateScreen

PASSED_OVER: Final = 4
"""How many times at most it waits that keys come no more until what was read is written: rows are
drawn again for that, which somebody who scrolls on would wait for."""


class DrawnSpans:
    """The spans whose text was drawn: in the span view, or whole in their rows.

    One member counts for a fold of equal steps, which may be long: it is kept as a run. What
    rushes by while the end of a trace is followed counts for nothing.
    """

    def __init__(self, screen: AnnotateScreen) -> None:
        self._screen = screen
        self._state = screen.state
        self._timeline = screen.timeline
        self._passed_over = 0
        self.begin()

    def begin(self) -> None:
        """Begin with another trace, of which nothing was on screen."""
        self._shown: set[str] = set()
        self._runs: tuple[range, ...] = ()
        self._counted: FoldedRun | None = None
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
        keys = set(self._timeline.fully_visible_keys())
        if self._seen < 0:
            return keys
        keys.add(self._state.trace.span(self._seen).key)
        fold = self._timeline.rows.folded_at(self._seen)
        if isinstance(fold, FoldedRun) and not fold.near and fold != self._counted:
            self._counted = fold
            self._runs = (*self._runs, range(fold.first, fold.end))
        return keys

    def write_between_keys(self) -> None:
        """Write what was read, unless keys come and it has waited for less than a while."""
        if self._passed_over < PASSED_OVER and self._screen.context.keys_come:
            self._passed_over += 1
        else:
            self.write()

    def write(self) -> None:
        """Have written what has been on screen since the last time, in one transaction."""
        unwritten = self._take_unwritten()
        if unwritten is not None:
            self._screen.context.writes.do(partial(self._write, *unwritten), HeldKeys.NOTHING)

    async def write_now(self) -> None:
        """Write the same as a part of the piece of work that is carried out."""
        unwritten = self._take_unwritten()
        if unwritten is not None:
            await self._write(*unwritten)

    def _take_unwritten(self) -> tuple[Session, Sequence[str], tuple[range, ...]] | None:
        self._passed_over = 0
        session, trace = self._state.session, self._state.trace
        if session is None or trace is None or not len(trace) or not self._screen.is_active:
            return None
        shown, self._shown = self._shown | self.on_screen(), set()
        runs, self._runs = self._runs, ()
        new = [key for key in shown if key not in session.read]
        return (session, new, runs) if new or runs else None

    async def _write(self, session: Session, keys: Sequence[str], runs: tuple[range, ...]) -> None:
        commands = self._screen.commands
        try:
            await commands.note(lambda s: s.mark_read(keys, runs), session)
        except MastError as error:
            commands.show_refusal(error, session)
            if session is self._state.session:  # it goes with what is read next
                self._shown.update(keys)
                self._runs = (*runs, *self._runs)
            return
        if session is self._state.session:
            self._timeline.show_read(session.read)


ANSWERS: Final = (
    ("o", "finish: unanswered modes are left out of all figures"),
    ("j", "I have judged the whole trace: set unanswered modes absent"),
    ("g", "go to the first unread span"),
)
LETTERS: Final = "abcdefhiklmnpqrstuvwxyz"
"""Keys of modes: no key of an answer is among them."""

NAME_CELLS: Final = 22
AFTER: Final[dict[VerdictValue | None, VerdictValue | None]] = {
    None: VerdictValue.ABSENT,
    VerdictValue.ABSENT: VerdictValue.UNSURE,
    VerdictValue.UNSURE: None,
}
"""What a mode's key says of it, after what stands."""

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


class FinishScreen(KeyDialog[str]):
    """Gives back the key of an answer, None after Escape; what a mode's key says is said at once.

    One may be labelled as well: Escape goes back to where that is done.
    """

    default = "o"
    dialog_keys: ClassVar = (
        *(("o", "finishes"), ("j", "all judged"), ("g", "goes to the unread")),
        ("Esc", "back"),
    )

    def __init__(
        self,
        title: str,
        unread: str,
        modes: Sequence[Mode],
        verdict: Callable[[str], VerdictValue | None],
        say: Callable[[Mode, VerdictValue | None, Callable[[], None]], None],
    ) -> None:
        """Begin.

        Args:
            title: How much was read.
            unread: What was not.
            modes: Those that have no verdict.
            verdict: Gives what stands of a mode (a slug).
            say: Writes down that a mode is absent, unsure or open, and calls when it is done.
        """
        super().__init__()
        self._title = title
        self._unread = unread
        self._count = len(modes)
        self._modes = dict(zip(LETTERS, modes, strict=False))
        self._mode_rows = {key: KeyRow(key) for key in self._modes}
        self._verdict = verdict
        self._say = say

    def compose(self) -> ComposeResult:
        """What was not read, the open modes, and the answers."""
        more = self._count - len(self._modes)
        with Vertical(classes="dialog finish") as box:
            box.border_title = plain_title(self._title)
            yield Static(plain_lines(self._unread))
            if self._modes:
                named = f", {more} of them without a key" if more > 0 else ""
                words = f"{counted(self._count, 'mode')} without a verdict{named}:"
                yield Static(words, classes="heading")
                with Grid():
                    yield from self._mode_rows.values()
                words = "Press a letter: absent, again unsure, again open. Esc goes back."
                yield Static(words, classes="hint")
            with Vertical(classes="answers"):
                for key, words in ANSWERS:
                    yield KeyRow(key, f" {words}{'  ↵' * (key == self.default)}")

    def on_mount(self) -> None:
        """Show what stands."""
        self.show()

    def show(self) -> None:
        """Show what stands of each mode."""
        for key, mode in self._modes.items():
            name = shortened(one_line(f"{mode.code} {mode.name}"), NAME_CELLS)
            value = self._verdict(mode.slug)
            said = (value.value, "bold") if value else "open"
            self._mode_rows[key].show(f" {set_cell_size(name, NAME_CELLS)} ", said)

    def take(self, key: str) -> bool:
        """Take an answer, or say the next thing of a mode."""
        mode = self._modes.get(key)
        if mode is not None:
            self._say(mode, AFTER.get(self._verdict(mode.slug)), self.show)
        elif key in dict(ANSWERS):
            self.dismiss(key)
        else:
            return False
        return True


class Finish:
    """The end of a pass."""

    def __init__(self, screen: AnnotateScreen, reading: DrawnSpans) -> None:
        """Begin.

        Args:
            screen: Whose part it is.
            reading: What was read by then.
        """
        self._screen = screen
        self._state = screen.state
        self._hints = screen.hints
        self._key_of = screen.context.key_of
        self._commands = screen.commands
        self._run = screen.context.writes.run
        self._reading = reading

    def end_pass(self) -> None:
        """Finish the trace; asks once where spans were not read."""
        if self._state.has_spans:
            self._commands.when_session_opens(self._finish)

    async def _finish(self, session: Session) -> None:
        if session.finished:
            self._hints.say(
                f"This pass is finished already · {self._key_of('annotate.next_trace')} next trace "
                f"· {self._key_of('annotate.reveal')} shows what others say"
            )
            return
        assert self._state.trace is not None
        if not self._state.trace.loaded.complete:
            self._hints.say("Still reading this trace; finish when it is all there", error=True)
            return
        await self._reading.write_now()
        unread = session.unread()
        answer = session.open_modes_answer
        if answer is not None:
            await self._end(session, answer, fixed=bool(unread))
            return
        total, missed = len(self._state.trace), sum(map(len, unread))

        def say(mode: Mode, value: VerdictValue | None, then: Callable[[], None]) -> None:
            async def write() -> None:
                await self._commands.change(lambda s: s.set_verdict(mode.slug, value))
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

    async def _end(
        self, session: Session, open_modes: Literal["leave", "absent"], *, fixed: bool = False
    ) -> None:
        """Finish, and say in one line what came of it; ``fixed``: a study gave the answer."""
        assert self._state.trace is not None
        total, was_open = len(self._state.trace), len(self._codes_open(session))
        unread = session.unread()
        try:
            split = await self._run(partial(session.before_finish, open_modes))
        except MastError as error:
            self._commands.show_refusal(error, session)
            return
        change = await self._commands.change(
            lambda s: s.finish(open_modes=open_modes, split_modes=split)
        )
        if change is None:
            return
        if self._screen.context.trace_queue.all_finished:
            then = await self._after_the_last(session)
        else:
            then = f"{self._key_of('annotate.next_trace')} next trace"
        then += f" · {self._key_of('everywhere.undo')} undoes it"
        if not fixed:
            then += f" · {self._key_of('annotate.reveal')} shows what was hidden"
        stay = [] if open_modes == "leave" else self._codes_open(session)
        words = finished_words(unread, total, was_open - len(stay), open_modes, fixed=fixed)
        if stay:
            words += f" · {', '.join(stay)} open, as the codebook has changed"
        self._hints.say(f"{words} · {then}")

    async def _after_the_last(self, session: Session) -> str:
        """Name the next steps once all of the annotator's traces are finished."""
        study = await self._run(partial(session.workspace.study, session.taxonomy.ref))
        if study is not None and session.annotator in study.annotators:
            next_step = f"{self._key_of('everywhere.study')} shows the study"
        else:
            next_step = f"{self._key_of('everywhere.export')} exports"
        agreement = self._key_of("everywhere.agreement")
        return f"all your traces are finished: {next_step} · {agreement} shows agreement"

    def reveal(self) -> None:
        """After finishing: others' labels, the outcome, and what else was hidden."""
        if self._state.has_spans:
            self._commands.when_session_opens(self._reveal)

    async def _reveal(self, session: Session) -> None:
        if not session.finished:
            key = self._key_of("annotate.finish")
            self._hints.say(f"What others say is shown after you have finished the trace ({key})")
            return
        if session.others_shown or not await self._run(partial(_comes_back, session)):
            await self._show_hidden(session)
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

    async def _show_hidden(self, session: Session) -> None:
        await self._commands.change(lambda s: s.reveal())
        self._screen.session_changed()
        assert self._state.trace is not None
        people = sorted({label.annotator for label in session.others})
        scores = self._state.trace.meta.answer_key.scores
        hidden = [f"{one_line(k)}: {one_line(v, 60)}" for k, v in scores[:MOST_SCORES]]
        if self._state.trace.meta.hidden:
            hidden.append(f"{self._key_of('annotate.answer_key')} shows the answer key")
        words = (
            [f"{len(session.others)} labels of {', '.join(map(one_line, people))}"]
            if people
            else ["Nobody else has labelled this trace"]
        )
        self._hints.say(" · ".join([*words, *hidden]))
