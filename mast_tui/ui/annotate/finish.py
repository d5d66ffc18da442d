"""Finishing a trace: the question about unread spans and open modes, and what was hidden."""

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

MAX_DELAYS: Final = 4
"""The number of times that writing the read spans waits for a pause between keys.

After it rows are drawn again, which would delay a user who scrolls.
"""


class DrawnSpans:
    """The spans whose text was drawn: in the span view, or whole in their rows.

    Reading one step of a folded run of equal steps counts for all of them; a run may be long, so it
    is kept as a range. While the end of a growing trace is followed, nothing counts as read.
    """

    def __init__(self, screen: AnnotateScreen) -> None:
        self._screen = screen
        self._state = screen.state
        self._timeline = screen.timeline
        self._delays = 0
        self.begin()

    def begin(self) -> None:
        """Begin with another trace, of which nothing was drawn."""
        self._keys: set[str] = set()
        self._runs: tuple[range, ...] = ()
        self._last_run: FoldedRun | None = None
        self._text_index = -1
        """The span in the span view; -1 for none."""

    def record(self, index: int) -> None:
        """Record the spans on screen, with the one in the span view."""
        self._text_index = index
        self._keys |= self.visible_keys()

    def visible_keys(self) -> set[str]:
        """Return the keys of the spans that can be read on screen.

        Records a run of equal steps at the same time.
        """
        assert self._state.trace is not None
        if self._timeline.follows_end:
            return set()
        keys = set(self._timeline.fully_visible_keys())
        if self._text_index < 0:
            return keys
        keys.add(self._state.trace.span(self._text_index).key)
        fold = self._timeline.rows.folded_at(self._text_index)
        if isinstance(fold, FoldedRun) and not fold.near and fold != self._last_run:
            self._last_run = fold
            self._runs = (*self._runs, range(fold.first, fold.end))
        return keys

    def write_between_keys(self) -> None:
        """Write the read spans, unless keys arrive and it was delayed less than ``MAX_DELAYS``
        times.
        """
        if self._delays < MAX_DELAYS and self._screen.context.keys_come:
            self._delays += 1
        else:
            self.write()

    def write(self) -> None:
        """Queue the writing of the spans that were read since the last time, in one transaction."""
        unwritten = self._take_unwritten()
        if unwritten is not None:
            self._screen.context.writes.do(partial(self._write, *unwritten), HeldKeys.NOTHING)

    async def write_now(self) -> None:
        """Write them within the current piece of work."""
        unwritten = self._take_unwritten()
        if unwritten is not None:
            await self._write(*unwritten)

    def _take_unwritten(self) -> tuple[Session, Sequence[str], tuple[range, ...]] | None:
        """Return the session with the keys and runs to write, and reset them; None if there are
        none.
        """
        self._delays = 0
        session = self._state.session
        trace = self._state.trace
        if session is None or trace is None or not len(trace) or not self._screen.is_active:
            return None
        keys = self._keys | self.visible_keys()
        self._keys = set()
        runs = self._runs
        self._runs = ()
        new = [key for key in keys if key not in session.read]
        return (session, new, runs) if new or runs else None

    async def _write(self, session: Session, keys: Sequence[str], runs: tuple[range, ...]) -> None:
        """Record the spans as read; if that is refused, keep them for the next write."""
        commands = self._screen.commands
        try:
            await commands.note(lambda s: s.mark_read(keys, runs), session)
        except MastError as error:
            commands.show_refusal(error, session)
            if session is self._state.session:  # written with the next spans
                self._keys.update(keys)
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
"""The keys of modes, without those of answers."""

NAME_CELLS: Final = 22
NEXT_VERDICT: Final[dict[VerdictValue | None, VerdictValue | None]] = {
    None: VerdictValue.ABSENT,
    VerdictValue.ABSENT: VerdictValue.UNSURE,
    VerdictValue.UNSURE: None,
}
"""The verdict that the key of a mode sets, by its present verdict."""

MAX_SCORES: Final = 2
"""The number of scores in the message after hidden parts are shown; the answer key has all."""


def ranges_in_words(ranges: Sequence[range], limit: int = 6) -> str:
    """Return ranges of spans by their numbers (from 1): ``#3, #7 to #9 and 4 more places``.

    Args:
        ranges: The ranges.
        limit: The number of ranges to name.
    """
    names = [
        f"#{span_range.start + 1}"
        if len(span_range) == 1
        else f"#{span_range.start + 1} to #{span_range.stop}"
        for span_range in ranges[:limit]
    ]
    more = len(ranges) - limit
    if more > 0:
        return f"{', '.join(names)} and {more} more place{'' if more == 1 else 's'}"
    return ", ".join(names)


def _may_repeat(session: Session) -> bool:
    """Check if the study may repeat finished traces for this annotator.

    The answer is the same for all traces, so that it does not reveal which ones repeat.
    """
    study = session.workspace.study(session.taxonomy.ref)
    return study is not None and study.retests > 0 and session.annotator in study.annotators


def finish_report(
    unread: Sequence[range],
    total: int,
    was_open: int,
    open_modes: Literal["leave", "absent"],
    *,
    fixed: bool,
) -> str:
    """Return the message after a trace was finished.

    Args:
        unread: The spans that were not read.
        total: The number of spans.
        was_open: The number of modes that had no verdict.
        open_modes: What happened to these modes.
        fixed: Whether the study decided that without a question; then the first unread spans are
            named too.
    """
    parts = [f"finished · {total - sum(map(len, unread))} of {total} spans read"]
    if was_open:
        became = "left open" if open_modes == "leave" else "set absent"
        parts.append(f"open modes {became}{' (fixed by the study)' if fixed else ''}")
    if unread and fixed:
        parts.append(f"not {ranges_in_words(unread, limit=2)}")
    return " · ".join(parts)


class FinishScreen(KeyDialog[str]):
    """The dialog before a trace is finished. It returns the key of an answer, or None after Escape.

    The key of a mode changes its verdict at once.
    """

    default = "o"
    dialog_keys: ClassVar = (
        *(("o", "finishes"), ("j", "all judged"), ("g", "goes to the unread")),
        ("Esc", "back"),
    )

    def __init__(
        self,
        title: str,
        missing: str,
        modes: Sequence[Mode],
        verdict: Callable[[str], VerdictValue | None],
        set_verdict: Callable[[Mode, VerdictValue | None, Callable[[], None]], None],
    ) -> None:
        """Show what is unread and which modes are open.

        Args:
            title: How many spans were read.
            missing: The spans that were not, and the suggestions without an answer.
            modes: The modes without a verdict.
            verdict: Returns the present verdict of a mode (a slug).
            set_verdict: Sets a mode absent, unsure or open, and calls its third argument when that
                is on disk.
        """
        super().__init__()
        self._title = title
        self._missing = missing
        self._count = len(modes)
        self._modes = dict(zip(LETTERS, modes, strict=False))
        self._mode_rows = {key: KeyRow(key) for key in self._modes}
        self._verdict = verdict
        self._set_verdict = set_verdict

    def compose(self) -> ComposeResult:
        """Yield the unread spans, the open modes and the answers."""
        more = self._count - len(self._modes)
        with Vertical(classes="dialog finish") as box:
            box.border_title = plain_title(self._title)
            yield Static(plain_lines(self._missing))
            if self._modes:
                without_key = f", {more} of them without a key" if more > 0 else ""
                text = f"{counted(self._count, 'mode')} without a verdict{without_key}:"
                yield Static(text, classes="heading")
                with Grid():
                    yield from self._mode_rows.values()
                text = (
                    "A letter sets its mode: once absent, twice unsure, three times open. "
                    "Esc goes back."
                )
                yield Static(text, classes="hint")
            with Vertical(classes="answers"):
                for key, text in ANSWERS:
                    yield KeyRow(key, f" {text}{'  ↵' * (key == self.default)}")

    def on_mount(self) -> None:
        """Show the verdicts."""
        self.show()

    def show(self) -> None:
        """Show the verdict of each mode."""
        for key, mode in self._modes.items():
            name = shortened(one_line(f"{mode.code} {mode.name}"), NAME_CELLS)
            value = self._verdict(mode.slug)
            verdict = (value.value, "bold") if value else "open"
            self._mode_rows[key].show(f" {set_cell_size(name, NAME_CELLS)} ", verdict)

    def take(self, key: str) -> bool:
        """Give an answer, or change the verdict of a mode."""
        mode = self._modes.get(key)
        if mode is not None:
            self._set_verdict(mode, NEXT_VERDICT.get(self._verdict(mode.slug)), self.show)
        elif key in dict(ANSWERS):
            self.dismiss(key)
        else:
            return False
        return True


class Finish:
    """The end of a pass, and the look at what was hidden during it."""

    def __init__(self, screen: AnnotateScreen, reading: DrawnSpans) -> None:
        """Begin.

        Args:
            screen: The screen that owns this part.
            reading: The spans that were read.
        """
        self._screen = screen
        self._state = screen.state
        self._hints = screen.hints
        self._key_of = screen.context.key_of
        self._commands = screen.commands
        self._run = screen.context.writes.run
        self._reading = reading

    def end_pass(self) -> None:
        """Finish the trace; ask once if spans were not read or modes are open."""
        if self._state.has_spans:
            self._commands.when_session_opens(self._finish)

    async def _finish(self, session: Session) -> None:
        """Finish the trace, after a question unless the study has decided about open modes."""
        if session.finished:
            self._hints.say(
                f"This pass is finished already · {self._key_of('annotate.next_trace')} next trace "
                f"· {self._key_of('annotate.reveal')} shows what others say"
            )
            return
        assert self._state.trace is not None
        if not self._state.trace.loaded.complete:
            self._hints.say(
                "Still reading this trace: finish it when all spans are there", error=True
            )
            return
        await self._reading.write_now()
        unread = session.unread()
        fixed_answer = session.open_modes_answer
        if fixed_answer is not None:
            await self._finish_with(session, fixed_answer, unread)
            return
        total = len(self._state.trace)
        missed = sum(map(len, unread))

        def set_verdict(mode: Mode, value: VerdictValue | None, done: Callable[[], None]) -> None:
            async def write() -> None:
                await self._commands.change(lambda s: s.set_verdict(mode.slug, value))
                done()

            self._screen.context.writes.do(write)

        def answered(answer: str | None) -> None:
            if answer == "o":
                self._screen.context.writes.do(lambda: self._end(session, "leave"))
            elif answer == "j":
                self._screen.context.writes.do(lambda: self._end(session, "absent"))
            elif answer == "g":
                self._screen.timeline.go_to(unread[0].start)
                self._screen.show_span()

        missing = f"Not read: {ranges_in_words(unread)}."
        if session.pending:
            count = counted(len(session.pending), "suggestion")
            keys = f"{self._key_of('everywhere.back')}, then"
            next_key = self._key_of("annotate.next_suggestion")
            missing += f"\n{count} without your answer: {keys} {next_key} goes there."
        question = FinishScreen(
            f"{total - missed} of {total} spans read",
            missing,
            [mode for mode in self._state.taxonomy.modes if session.verdict(mode.slug) is None],
            session.verdict,
            set_verdict,
        )
        self._screen.app.push_screen(question, answered)

    async def _finish_with(
        self,
        session: Session,
        open_modes: Literal["leave", "absent"],
        unread: Sequence[range],
    ) -> None:
        """Finish a trace with a known answer for open modes; ask if suggestions have no answer."""
        finish = partial(self._end, session, open_modes, fixed=bool(unread))
        if not session.pending:
            await finish()
            return

        def answered(answer: str | None) -> None:
            if answer == "o":
                self._screen.context.writes.do(finish)
            elif answer == "g":
                self._screen.suggestions.go_to_next(1)

        question = Ask(
            f"{counted(len(session.pending), 'suggestion')} without your answer",
            "You have neither accepted nor rejected them.",
            (("g", "go to the next one"), ("o", "finish all the same")),
            default="g",
        )
        self._screen.app.push_screen(question, answered)

    def _codes_open(self, session: Session) -> list[str]:
        modes = self._state.taxonomy.modes
        return [mode.code for mode in modes if session.verdict(mode.slug) is None]

    async def _end(
        self, session: Session, open_modes: Literal["leave", "absent"], *, fixed: bool = False
    ) -> None:
        """Finish and report the result; ``fixed`` if the study decided about open modes."""
        assert self._state.trace is not None
        total = len(self._state.trace)
        was_open = len(self._codes_open(session))
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
            next_steps = await self._after_the_last(session)
        else:
            next_steps = f"{self._key_of('annotate.next_trace')} next trace"
        next_steps += f" · {self._key_of('everywhere.undo')} undoes it"
        if not fixed:
            next_steps += f" · {self._key_of('annotate.reveal')} shows what was hidden"
        still_open = [] if open_modes == "leave" else self._codes_open(session)
        report = finish_report(unread, total, was_open - len(still_open), open_modes, fixed=fixed)
        if still_open:
            report += f" · {', '.join(still_open)} open, as the codebook has changed"
        if session.pending:
            report += f" · {counted(len(session.pending), 'suggestion')} unanswered"
        self._hints.say(f"{report} · {next_steps}")

    async def _after_the_last(self, session: Session) -> str:
        """Return the next steps after the last trace of the annotator."""
        study = await self._run(partial(session.workspace.study, session.taxonomy.ref))
        if study is not None and session.annotator in study.annotators:
            next_step = f"{self._key_of('everywhere.study')} shows the study"
        else:
            next_step = f"{self._key_of('everywhere.export')} exports"
        agreement = self._key_of("everywhere.agreement")
        return f"all your traces are finished: {next_step} · {agreement} shows agreement"

    def reveal(self) -> None:
        """Show others' labels, the outcome, and what else was hidden; only after finishing."""
        if self._state.has_spans:
            self._commands.when_session_opens(self._reveal)

    async def _reveal(self, session: Session) -> None:
        """Show what is hidden; ask first if that keeps the trace from repeating in the study."""
        if not session.finished:
            key = self._key_of("annotate.finish")
            self._hints.say(f"What others say is shown after you have finished the trace ({key})")
            return
        if session.others_shown or not await self._run(partial(_may_repeat, session)):
            await self._show_hidden(session)
            return

        def answered(answer: str | None) -> None:
            if answer == "s" and self._state.session is session:
                self._screen.context.writes.do(lambda: self._show_hidden(session))

        question = Ask(
            "See what was hidden?",
            "In this study some finished traces repeat: you label them again, with everything "
            "hidden. A trace that you look into now does not repeat. Looking is recorded.",
            (("s", "see it"), ("n", "leave it hidden")),
            default="n",
        )
        self._screen.app.push_screen(question, answered)

    async def _show_hidden(self, session: Session) -> None:
        """Show the hidden parts, record that, and report the number of others' labels."""
        await self._commands.change(lambda s: s.reveal())
        self._screen.session_changed()
        assert self._state.trace is not None
        annotators = sorted({label.annotator for label in session.others})
        scores = self._state.trace.meta.answer_key.scores
        hidden = [f"{one_line(k)}: {one_line(v, 60)}" for k, v in scores[:MAX_SCORES]]
        if self._state.trace.meta.hidden:
            hidden.append(f"{self._key_of('annotate.answer_key')} shows the answer key")
        parts = (
            [f"{len(session.others)} labels of {', '.join(map(one_line, annotators))}"]
            if annotators
            else ["No one else has labelled this trace"]
        )
        self._hints.say(" · ".join([*parts, *hidden]))
