"""The end of a pass: the question about missing work, and the view of hidden parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from textual.app import ComposeResult
from textual.containers import Grid, Vertical
from textual.widgets import Static

from mast_tui.columns import shortened
from mast_tui.errors import MastError
from mast_tui.labels import PassKind, VerdictValue
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Mode, Taxonomy
from mast_tui.ui.annotate.labelling import DigitEntry, type_digit
from mast_tui.ui.annotate.part import ScreenPart
from mast_tui.ui.dialogs.dialog import KeyDialog, KeyRow
from mast_tui.ui.trace_view.folding import FoldedRun
from mast_tui.ui.wording import counted, plain_lines
from mast_tui.writes import HeldKeys

if TYPE_CHECKING:
    from mast_tui.session import Session
    from mast_tui.ui.annotate.screen import AnnotateScreen

MAX_DELAYS: Final = 4
"""The number of times that a write of read spans waits for a pause between keys.

Each write draws rows again, and would delay a user who scrolls.
"""


class _ReadSpans(NamedTuple):
    """Spans that were read, but are not written to the workspace yet.

    Attributes:
        session: The session on the trace.
        keys: The keys of the spans.
        runs: The indices of folded runs that count as read.
    """

    session: Session
    keys: Sequence[str]
    runs: tuple[range, ...]


class DrawnSpans(ScreenPart):
    """The spans with their complete text on screen, in the span view or in their rows.

    Reading one step of a folded run of equal steps counts for all of them. A run may be long, so it
    is stored as a range. While the end of a growing trace is followed, nothing counts as read.

    The first spans on screen begin no pass: they are written once the user moves the cursor or
    changes something. So a trace that is only passed through stays unread.
    """

    def __init__(self, screen: AnnotateScreen) -> None:
        """Begin with no drawn spans."""
        super().__init__(screen)
        self._delay_count = 0
        """The number of times that the next write was delayed."""
        self.begin_trace()

    def begin_trace(self) -> None:
        """Begin with another trace, without drawn spans."""
        self._unwritten_keys: set[str] = set()
        self._unwritten_runs: tuple[range, ...] = ()
        """The indices of the folded runs that count as read."""
        self._last_run: FoldedRun | None = None
        """The folded run that was recorded last."""
        self._text_index = -1
        """The index of the span in the span view; -1 for none."""
        self._has_moved = False
        """True once another span was drawn than those at which the trace opened."""

    def record(self, index: int) -> None:
        """Record the spans on screen as read."""
        self._text_index = index
        self._has_moved |= index not in (0, self._screen.arrival.index)
        self._record_visible()

    def _record_visible(self) -> None:
        """Record the spans on screen as read.

        If the span view shows a step of a folded run of equal steps, record the whole run.
        """
        self._unwritten_keys |= self.readable_keys()
        # A timeline that follows the end moves too fast to be read.
        if self._text_index < 0 or self._timeline.follows_end:
            return
        fold = self._timeline.rows.folded_at(self._text_index)
        if isinstance(fold, FoldedRun) and not fold.nearly_equal and fold != self._last_run:
            self._last_run = fold
            self._unwritten_runs = (*self._unwritten_runs, range(fold.first, fold.end))

    def readable_keys(self) -> set[str]:
        """Return the keys of the spans that can be read on screen.

        There are none while the timeline follows the end of the trace, because rows pass too fast.
        """
        if self._timeline.follows_end:
            return set()
        keys = set(self._timeline.fully_visible_keys())
        if self._text_index >= 0:
            keys.add(self._state.open_trace.span(self._text_index).key)
        return keys

    def write_between_keys(self) -> None:
        """Write the read spans. While keys arrive, delay this up to ``MAX_DELAYS`` times."""
        if self._delay_count < MAX_DELAYS and self._screen.mast.input_queue.keys_come:
            self._delay_count += 1
        else:
            self.write()

    def write(self) -> None:
        """Queue a write of the spans that were read since the last write."""
        read_spans = self._take_unwritten()
        if read_spans is not None:
            write_spans = partial(self._write_if_begun, read_spans, has_moved=self._has_moved)
            self._screen.mast.writes.do(write_spans, HeldKeys.NOTHING)

    async def _write_if_begun(self, read_spans: _ReadSpans, *, has_moved: bool) -> None:
        """Record spans as read, or keep them if the user has only opened the trace."""
        if has_moved or read_spans.session.current is not None:
            await self._write_spans(read_spans)
        else:
            self._keep(read_spans)

    async def write_now(self) -> None:
        """Write the spans that were read since the last write, as part of queued work.

        This begins a pass.
        """
        read_spans = self._take_unwritten()
        if read_spans is not None:
            await self._write_spans(read_spans)

    def _take_unwritten(self) -> _ReadSpans | None:
        """Take the read spans that are not written yet, or None.

        Return None also while the screen cannot record them.
        """
        self._delay_count = 0
        session = self._state.session
        trace = self._state.trace
        if session is None or trace is None or not len(trace) or not self._screen.is_active:
            return None
        self._record_visible()
        keys = self._unwritten_keys
        self._unwritten_keys = set()
        runs = self._unwritten_runs
        self._unwritten_runs = ()
        new_keys = [key for key in keys if key not in session.read]
        return _ReadSpans(session, new_keys, runs) if new_keys or runs else None

    async def _write_spans(self, read_spans: _ReadSpans) -> None:
        """Record spans as read. If that is refused, keep them for the next write."""
        session = read_spans.session
        commands = self._screen.commands
        try:
            await commands.write_record(
                lambda s: s.mark_read(read_spans.keys, read_spans.runs), session
            )
        except MastError as error:
            commands.show_refusal(error, session)
            self._keep(read_spans)
            return
        if session is self._state.session:
            self._timeline.show_read(session.read)

    def _keep(self, read_spans: _ReadSpans) -> None:
        """Keep spans for the next write, if their trace is still open."""
        if read_spans.session is self._state.session:
            self._unwritten_keys.update(read_spans.keys)
            self._unwritten_runs = (*read_spans.runs, *self._unwritten_runs)


OpenModes = Literal["leave", "absent"]
"""The treatment of modes without a verdict at the end of a pass: leave them open, or set them
absent.
"""

Answers = tuple[tuple[str, str], ...]
"""The keys of the answers, with their effects."""

TO_UNREAD: Final = ("g", "go to the first unread span")
ANSWERS: Final[Answers] = (
    ("o", "finish; modes left open do not count in agreement"),
    ("W", "set them absent and finish: only if you looked for each"),
    TO_UNREAD,
)
ANSWERS_BY_STUDY: Final[Mapping[OpenModes, Answers]] = {
    "leave": (("o", "finish; open modes stay open (study rule)"), TO_UNREAD),
    "absent": (("o", "finish; open modes become absent (study rule)"), TO_UNREAD),
}
"""The answers if the study decides about modes without a verdict."""
ANSWERS_ALL_JUDGED: Final[Answers] = (("o", "finish"), TO_UNREAD)
"""The answers if each mode has a verdict."""

VERDICT_KEYS: Final[Mapping[str, VerdictValue]] = {
    "-": VerdictValue.ABSENT,
    "_": VerdictValue.UNSURE,
}
"""The keys before the digits of a mode; without one, the mode becomes absent."""

DIALOG_CELLS: Final = 98
"""The width of the dialog; a narrow screen makes it narrower (``.finish`` in ``dialogs.tcss``)."""
FRAME_CELLS: Final = 4
"""The cells beside the two columns of modes."""
KEY_CELLS: Final = 5
"""The cells of the digits of a mode."""

MAX_SCORES: Final = 2
"""The most scores in the message about hidden parts. The answer key has all."""


def ranges_text(ranges: Sequence[range], limit: int = 6) -> str:
    """Return ranges of span indices as text: ``#3, #7 to #9 and 4 more ranges``.

    Args:
        ranges: The ranges.
        limit: The most ranges to name.
    """
    range_texts = []
    for span_range in ranges[:limit]:
        text = f"#{span_range.start + 1}"
        if len(span_range) != 1:
            text += f" to #{span_range.stop}"  # the last span, as numbers begin at 1
        range_texts.append(text)
    unnamed_count = len(ranges) - limit
    if unnamed_count > 0:
        return f"{', '.join(range_texts)} and {counted(unnamed_count, 'more range')}"
    return ", ".join(range_texts)


def _may_retest(session: Session) -> bool:
    """Check if the study may ask this annotator to label finished traces again (retests).

    The answer is the same for all traces, so it does not reveal which are retests.
    """
    study = session.workspace.study(session.taxonomy.ref)
    return study is not None and study.retests > 0 and session.annotator in study.annotators


def _read_text(unread: Sequence[range], span_count: int) -> str:
    """Return the number of spans that were read, and of all spans: ``3 of 9 spans read``."""
    return f"{span_count - sum(map(len, unread))} of {span_count} spans read"


class FinishScreen(KeyDialog[str]):
    """The dialog before a trace is finished.

    The two digits of a mode change its verdict at once.
    """

    default = "o"

    def __init__(
        self,
        title: str,
        missing_text: str,
        taxonomy: Taxonomy,
        answers: Sequence[tuple[str, str]],
        verdict_of: Callable[[str], VerdictValue | None],
        set_verdict: Callable[[Mode, VerdictValue, Callable[[], None]], None],
    ) -> None:
        """Show the unread spans and the modes without a verdict.

        Args:
            title: The question, with the number of read spans.
            missing_text: The unread spans, and the suggestions without an answer.
            taxonomy: The modes; those without a verdict are listed.
            answers: The keys of the answers, with their effects.
            verdict_of: Returns the verdict that a mode (a slug) has now.
            set_verdict: Gives a mode a verdict, or removes the verdict if the mode has it already,
                and calls its third argument when that is on disk.
        """
        super().__init__(title, kind="finish")
        self._missing_text = missing_text
        self._answers = answers
        self._taxonomy = taxonomy
        self._rows_by_mode = {
            mode: KeyRow(mode.code if taxonomy.coded_by_digits else taxonomy.keys_of(mode))
            for mode in taxonomy.modes
            if verdict_of(mode.slug) is None
        }
        self._verdict_of = verdict_of
        self._set_verdict = set_verdict
        self._entry = DigitEntry(VerdictValue.ABSENT)
        self._heading = Static(classes="heading")
        example = next(iter(self._rows_by_mode), taxonomy.modes[0])
        keys = " ".join(taxonomy.keys_of(example))
        self._digits_text = (
            f"Here {keys} sets {example.code} absent, _ {keys} unsure. "
            "The same keys again undo this."
        )

    def compose_rows(self) -> ComposeResult:
        """Yield the unread spans, the answers, and the modes without a verdict."""
        yield Static(plain_lines(self._missing_text))
        with Vertical(classes="answers"):
            for key, text in self._answers:
                enter_mark = "  ↵" if key == self.default else ""
                yield KeyRow(key, f" {text}{enter_mark}")
        if self._rows_by_mode:
            yield self._heading
            with Grid():
                yield from self._rows_by_mode.values()
            yield Static(self._digits_text, classes="hint")

    @property
    def dialog_keys(self) -> tuple[tuple[str, str], ...]:
        """The keys of the answers, and the key that closes the dialog."""
        effects = {"o": "finish", "W": "set absent and finish", "g": "first unread"}
        return (*((key, effects[key]) for key, _ in self._answers), ("Esc", "back"))

    def on_mount(self) -> None:
        """Show the verdicts."""
        self.show()

    def show(self) -> None:
        """Show the verdict of each mode, and the number of modes without one."""
        open_count = sum(self._verdict_of(mode.slug) is None for mode in self._rows_by_mode)
        mode_count = counted(len(self._taxonomy.modes), "mode")
        set_count = len(self._rows_by_mode) - open_count
        set_text = f" · {set_count} set here" if set_count else ""
        self._heading.update(f"Open (no verdict): {open_count} of {mode_count}{set_text}")
        column_cells = (min(DIALOG_CELLS, self.app.size.width) - FRAME_CELLS) // 2
        # A scrollbar leaves less. Before the first layout the rows have no width.
        row_widths = (row.size.width for row in self._rows_by_mode.values())
        column_cells = min(filter(None, row_widths), default=column_cells)
        for mode, row in self._rows_by_mode.items():
            verdict = self._verdict_of(mode.slug)
            verdict_text = f"{verdict.value} " if verdict else ""
            name = mode.name if row.key == mode.code else f"{mode.code} {mode.name}"
            name_cells = column_cells - KEY_CELLS - len(verdict_text)
            row.show((verdict_text, "bold"), shortened(one_line(name), name_cells))

    def take(self, key: str) -> bool:
        """Close the dialog with an answer, or add a digit of the mode that gets a verdict.

        Between the digits another key only forgets the first one. Return False if the key has no
        meaning here.
        """
        digits = key.replace(".", "")  # a click on a mode sends its whole code
        if digits.isdecimal() and self._rows_by_mode:
            for digit in digits:
                self._add_digit(digit)
        elif key in VERDICT_KEYS and self._rows_by_mode:
            self._entry = DigitEntry(VERDICT_KEYS[key], has_begun=True)
            self.say_below(self._entry.prompt)
        elif self._entry.has_begun and key.isprintable():  # Escape is not
            self._entry = DigitEntry(VerdictValue.ABSENT)
            self.say_below(f"Nothing set: {key} is no second digit", error=True)
        elif key in dict(self._answers):
            self.dismiss(key)
        else:
            return False
        return True

    def _add_digit(self, digit: str) -> None:
        """Add a digit; the second one sets or removes the verdict of the mode."""
        typed_digit = type_digit(self._entry, digit, self._taxonomy)
        mode = typed_digit.mode
        if mode is None and typed_digit.refusal is None:
            self._entry = typed_digit.entry
            self.say_below(self._entry.prompt)
            return
        value = self._entry.purpose
        self._entry = DigitEntry(VerdictValue.ABSENT)
        if mode is None:
            self.say_below(f"Nothing set: {typed_digit.refusal}", error=True)
        elif mode not in self._rows_by_mode:
            self.say_below(f"Nothing set: {mode.code} has a verdict already", error=True)
        else:
            self.say_below(self._digits_text)
            self._set_verdict(mode, value, self.show)

    def action_leave(self) -> None:
        """Close the dialog; between two digits, only forget the first one."""
        if not self._entry.has_begun:
            super().action_leave()
            return
        self._entry = DigitEntry(VerdictValue.ABSENT)
        self.say_below(self._digits_text)


class Finish(ScreenPart):
    """The end of a pass, and the view of parts that were hidden during it."""

    def __init__(self, screen: AnnotateScreen, drawn_spans: DrawnSpans) -> None:
        """Begin without an open question.

        Args:
            screen: The screen with this part.
            drawn_spans: The spans that count as read.
        """
        super().__init__(screen)
        self._commands = screen.commands
        self._run = screen.mast.writes.run
        self._drawn_spans = drawn_spans

    def end_pass(self) -> None:
        """Finish the trace, after a question if work is missing."""
        if self._state.has_spans:
            self._commands.when_session_opens(self._finish_or_ask)

    async def _finish_or_ask(self, session: Session) -> None:
        """Finish the trace if all its spans were read, else open the question.

        A finished or incomplete trace is refused with a message.
        """
        if session.finished:
            parts = ["This trace is finished already", *await self._reveal_hint(session)]
            parts.append(f"{self._key_of('annotate.next_trace')} next trace")
            self._hints.say(" · ".join(parts))
            return
        if not self._state.open_trace.loaded.complete:
            self._hints.say(
                "Still reading this trace: finish it when all spans are there", error=True
            )
            return
        await self._drawn_spans.write_now()
        unread = session.unread()
        if unread:
            self._open_question(session, unread, len(self._state.open_trace))
        elif session.pending:
            self._ask_about_suggestions(session)
        else:  # Modes without a verdict become absent.
            await self._finish(session, "absent")

    def _open_question(self, session: Session, unread: Sequence[range], span_count: int) -> None:
        """Open the question about unread spans and modes without a verdict."""
        rule = session.open_modes_answer
        answers = ANSWERS if rule is None else ANSWERS_BY_STUDY[rule]
        question = FinishScreen(
            f"Finish? {_read_text(unread, span_count)}",
            self._missing_text(session, unread),
            self._state.taxonomy,
            answers if self._open_modes(session) else ANSWERS_ALL_JUDGED,
            session.verdict,
            self._queue_verdict,
        )
        # Without a rule of the study, ``o`` leaves modes without a verdict open.
        finish = partial(self._finish, session, rule or "leave", is_set_by_study=rule is not None)
        set_absent = partial(self._finish, session, "absent")
        queue = self._screen.mast.writes.do
        effects: Mapping[str, Callable[[], object]] = {
            "o": partial(queue, finish),
            "W": partial(queue, set_absent),
            "g": partial(self._screen.go_to, unread[0].start),
        }
        self._screen.mast.ask(question, lambda key: effects[key]())

    def _missing_text(self, session: Session, unread: Sequence[range]) -> str:
        """Return a text about unread spans and unanswered suggestions."""
        text = (
            f"Not read: {ranges_text(unread)}. A span is read once the cursor stayed on it for "
            "a moment, or its line in the timeline showed its whole text."
        )
        if not session.pending:
            return text
        pending_count = counted(len(session.pending), "suggestion")
        back_key = self._key_of("everywhere.back")
        next_key = self._key_of("annotate.next_suggestion")
        return (
            f"{text}\n{pending_count} without your answer: {back_key}, then {next_key} goes there."
        )

    def _queue_verdict(
        self, mode: Mode, value: VerdictValue, when_written: Callable[[], None]
    ) -> None:
        """Queue the verdict of a mode.

        ``when_written`` is called once it is on disk.
        """
        write_verdict = partial(
            self._commands.run_command, lambda s: s.set_verdict(mode.slug, value), when_written
        )
        self._screen.mast.writes.do(write_verdict)

    def _ask_about_suggestions(self, session: Session) -> None:
        """Ask whether to finish a read trace with unanswered suggestions."""
        self._screen.mast.ask_key(
            f"{counted(len(session.pending), 'suggestion')} without your answer",
            "You have neither accepted nor rejected them.",
            (("g", "go to the next one"), ("o", "finish all the same")),
            {
                "o": partial(self._screen.mast.writes.do, partial(self._finish, session, "absent")),
                "g": partial(self._screen.suggestions.go_to_next, 1),
            },
            default="g",
        )

    def _open_modes(self, session: Session) -> list[Mode]:
        return [mode for mode in self._state.taxonomy.modes if session.verdict(mode.slug) is None]

    async def _finish(
        self, session: Session, open_modes: OpenModes, *, is_set_by_study: bool = False
    ) -> None:
        """Finish the trace, and show the result with the keys for the next steps.

        ``is_set_by_study`` says that a rule of the study has determined ``open_modes``.
        """
        parts = [f"finished · {_read_text(session.unread(), len(self._state.open_trace))}"]
        open_count = len(self._open_modes(session))
        if not await self._record_finish(session, open_modes):
            return
        # If the codebook has split a mode, its parts stay open even with "absent".
        still_open = [] if open_modes == "leave" else self._open_modes(session)
        changed_count = open_count - len(still_open)
        if changed_count:
            result = "left open" if open_modes == "leave" else "set absent"
            rule = " (study rule)" if is_set_by_study else ""
            parts.append(f"{counted(changed_count, 'mode')} {result}{rule}")
        parts.append(f"{self._key_of('everywhere.undo')} undoes it")
        if still_open:
            codes = ", ".join(mode.code for mode in still_open)
            parts.append(f"{codes} left open, as the codebook has changed")
        if session.pending:
            parts.append(f"{counted(len(session.pending), 'suggestion')} unanswered")
        parts.append(await self._next_steps(session))
        if not is_set_by_study:
            parts += await self._reveal_hint(session)
        if session.current is not None and session.current.kind is PassKind.SECOND_LOOK:
            agreement, passes = map(self._key_of, ("everywhere.agreement", "agreement.passes"))
            parts.append(
                f"agreement counts your first finish: {agreement}, then {passes} counts this one"
            )
        self._hints.say(" · ".join(parts))

    async def _reveal_hint(self, session: Session) -> list[str]:
        """Return the hint of the key for hidden parts; empty if there are none."""
        if session.suggestions_visible and not await self._run(session.may_show_others):
            return []
        return [f"{self._key_of('annotate.reveal')} shows what others say"]

    async def _record_finish(self, session: Session, open_modes: OpenModes) -> bool:
        """Write the end of the pass. If it is refused, show the reason and return False."""
        try:
            split_modes = await self._run(partial(session.before_finish, open_modes))
        except MastError as error:
            self._commands.show_refusal(error, session)
            return False
        change = await self._commands.run_command(
            lambda s: s.finish(open_modes=open_modes, split_modes=split_modes)
        )
        return change is not None

    async def _next_steps(self, session: Session) -> str:
        """Return the keys for the next steps after a trace was finished."""
        queue = self._screen.mast.trace_queue
        if not queue.all_finished:
            next_step = f"{self._key_of('annotate.next_trace')} next trace"
            if queue.last_retests:
                retests = counted(queue.last_retests, "retest")
                return f"only {retests} left · {next_step}: label it as if it were new"
            return next_step
        study = await self._run(partial(session.workspace.study, session.taxonomy.ref))
        if study is not None and session.annotator in study.annotators:
            next_step = f"{self._key_of('everywhere.study')} shows the study"
        else:
            next_step = f"{self._key_of('everywhere.export')} exports"
        agreement_step = f"{self._key_of('everywhere.agreement')} shows agreement"
        return f"all your traces are finished: {next_step} · {agreement_step}"

    def reveal(self) -> None:
        """Show the hidden parts of a finished trace, such as labels of other annotators."""
        if self._state.has_spans:
            self._commands.when_session_opens(self._reveal_or_ask)

    async def _reveal_or_ask(self, session: Session) -> None:
        """Ask whether to show what is hidden, as it cannot be undone; before the finish, refuse."""
        if not session.finished:
            key = self._key_of("annotate.finish")
            self._hints.say(f"What others say is shown after you have finished the trace ({key})")
            return
        if session.others_shown:
            await self._show_hidden(session)
            return
        may_show_others = await self._run(session.may_show_others)
        if session.suggestions_visible and not may_show_others:
            self._hints.say("No one else has labelled this trace, so there is nothing to show")
            return
        question = "Looking is recorded, and you can no longer undo the finish."
        if not may_show_others:
            question = f"No one else has labelled this trace. {question}"
        if await self._run(partial(_may_retest, session)):
            question += (
                " This study asks you to label some traces a second time, with everything hidden. "
                "It will not ask for this trace once you have looked."
            )

        def show_hidden() -> None:
            if self._state.session is session:
                self._screen.mast.writes.do(lambda: self._show_hidden(session))

        self._screen.mast.ask_key(
            "See what others say?" if may_show_others else "See suggestions and the outcome?",
            question,
            (("y", "show it"), ("n", "leave it hidden")),
            {"y": show_hidden},
            default="n",
        )

    async def _show_hidden(self, session: Session) -> None:
        """Show the hidden parts, and record that in the workspace.

        Then report the labels of other annotators, the first scores, and the key to the answer key.
        """
        await self._commands.run_command(lambda s: s.reveal())
        self._screen.session_changed()
        message_parts = self._others_texts(session, await self._run(session.other_people))
        scores = self._state.open_trace.meta.answer_key.scores[:MAX_SCORES]
        score_texts = [f"{one_line(name)} = {one_line(score, 60)}" for name, score in scores]
        if scores:
            message_parts.append(f"in the file: {', '.join(score_texts)}")
        if self._state.open_trace.meta.hidden:
            message_parts.append(f"{self._key_of('annotate.answer_key')} shows the answer key")
        self._hints.say(" · ".join(message_parts))

    def _others_texts(self, session: Session, people: Sequence[str]) -> list[str]:
        """Return texts on the labels of other people, and on people without a label."""
        if not people:
            return ["No one else has labelled this trace"]
        labels = session.others
        labellers = {label.annotator for label in labels}
        texts = []
        if labels:
            names = ", ".join(map(one_line, sorted(labellers)))
            texts.append(f"{counted(len(labels), 'label')} of {names}")
        codes = [
            self._state.taxonomy.mode(label.mode).code for label in labels if label.target.is_whole
        ]
        if codes:
            texts.append(f"on the whole trace: {', '.join(codes)}")
        indices = (
            session.trace.index_of(label.target.first)
            for label in labels
            if label.target.first is not None
        )
        first_index = next((index for index in indices if index is not None), None)
        if first_index is not None:
            texts.append(f"○ in the timeline, first at #{first_index + 1}")
        names_without = ", ".join(one_line(name) for name in people if name not in labellers)
        if names_without:
            texts.append(f"no label of {names_without}")
        return texts
