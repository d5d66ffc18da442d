"""``mast-tui read``: read and label a trace line by line, for screen readers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

import click

from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.common import open_with_taxonomy, say
from mast_tui.cli.shared.options import OptionRule
from mast_tui.counts import counted
from mast_tui.errors import MastError, SessionError
from mast_tui.labels import (
    WHOLE_TRACE,
    Label,
    Target,
    VerdictValue,
    next_confidence,
    next_severity,
)
from mast_tui.safe_text import COLOUR_SEQUENCE, iter_lines, one_line, quote_line
from mast_tui.session import (
    Session,
    Suggestion,
    checked_new_name,
    outside_study_text,
    queue,
    remember_person,
    resolve_blind,
    trace_masks,
    working_person,
)
from mast_tui.session.changes import Change, ChangeMessages
from mast_tui.study import Study
from mast_tui.taxonomy.model import OPEN_CODE_SLUG, Taxonomy
from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import SpanStatus, Trace
from mast_tui.ui.text.answer_page import answer_page
from mast_tui.ui.text.json_view import pretty_json
from mast_tui.workspace import Workspace

PAGE: Final = 20
"""The number of lines of a text in one output."""

MAX_FORMATTED_JSON: Final = 1 << 18
"""The longest JSON that is formatted, in characters. Longer JSON would take too long."""

ANSWER_KEY_HIDDEN: Final = (
    "The answer key is hidden: finish the trace (D), then reveal it in the app"
)

HELP: Final = """\
Enter or j: next span. k: previous span. g: first. G: last. :12 or #12: span 12.
d: more of the text. s: this span again. E: next error. i: answer key.
/WORDS: find words. n: find them again. l WORDS: find a mode.
13: label the span with mode 1.3, or remove this label. t13: label the whole trace.
-13: mode 1.3 is absent. _13: you are unsure of it. 00: a failure that no mode describes.
v: begin a range here; at its last span, 13 labels it. w WORDS: quote words; then 13 labels them.
m WORDS: note on the span. f: severity of the last label here. c: its confidence.
M: list my labels. ]: next suggestion. [: previous suggestion. a: accept it. x: reject it.
u: undo. U: redo. D: finish. >: next trace. <: previous trace. ?: this help. q: leave.
Each label is saved at once."""

TRACE_STEPS: Final = {">": 1, "}": 1, "<": -1, "{": -1}
"""The distance, in the list of traces, to the trace that a key opens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """The options of ``mast-tui read``."""

    path: Path = options.existing_path()
    number: int | None = options.option(
        "--trace",
        type=click.IntRange(1),
        help="The number of the trace in the file; the first one by default.",
    )
    plain: bool = options.option(
        "--plain", is_flag=True, help="Print line by line, which this command always does."
    )
    common: CommonOptions = options.common()


_RULES: Final = (
    OptionRule[ReadRequest](
        "--trace is the number of a trace in a file; leave it out for a folder",
        options=("--trace",),
        when=lambda request: request.path.is_dir(),
    ),
)


@click.command()
@options.takes(ReadRequest, _RULES)
def read_command(request: ReadRequest) -> None:
    """Read and label a trace line by line, for screen readers and braille.

    PATH is the file of the trace. If it is a folder, the first trace of your queue that is in it
    opens, and > opens the next. Type the keys of the app, each followed by Enter; ? lists them.
    Printed text stays and is never overwritten. Input can also come from a file or a pipe.

    Example: mast-tui read runs/trace.jsonl --annotator alice
    """
    file_traces = None if request.path.is_dir() else _list_file(request.path, request.number)
    workspace, taxonomy = open_with_taxonomy(request.common, create=True)
    study = workspace.study(taxonomy.ref)
    name = working_person(workspace, request.common.annotator, study=study)
    if name is None:
        name = _ask_name(workspace, study)
    elif workspace.member is None:  # on a server the login is the name
        outside_text = outside_study_text(name, study)
        if outside_text is not None:
            say(outside_text)
    workspace.add_taxonomy(taxonomy)
    session_blind = resolve_blind(
        workspace,
        name,
        blind=request.common.blind,
        assisted=request.common.assisted,
        taxonomy=taxonomy.ref,
    )
    traces = file_traces or _list_queue(workspace, taxonomy, name, request.path)
    masks = trace_masks(study)
    shown_taxonomy = workspace.with_positions(taxonomy)

    def open_trace(step: int) -> Session:
        trace = traces.read(step).with_masks(masks)
        return Session.open(workspace, trace, shown_taxonomy, name, blind=session_blind)

    session = open_trace(0)
    if study is not None and name in study.annotators:
        _report_first_of_queue(session)
    lines = _typed_lines()
    next_session: Session | None = session
    while next_session is not None:
        next_session = LineReader(next_session, open_trace).run(lines)


@dataclass
class _TraceList:
    """The traces between which the keys ``TRACE_STEPS`` move.

    ``readers`` are functions that read each of them to its end.
    """

    readers: Sequence[Callable[[], Trace]]
    position: int = 0

    def read(self, step: int) -> Trace:
        """Read the trace at a distance from the current one, which it becomes.

        Raises:
            SessionError: There is no such trace, or it cannot be read.
        """
        if not 0 <= self.position + step < len(self.readers):
            raise SessionError(f"there is no {'next' if step > 0 else 'previous'} trace")
        self.position += step
        return self.readers[self.position]()


def _list_file(path: Path, number: int | None) -> _TraceList:
    """List the traces of a file.

    Args:
        path: The file.
        number: The number of the current trace, which also counts unreadable ones; None for the
            first.

    Raises:
        SessionError: The file cannot be read, or has no such trace.
    """
    report = read_file(path, named=True)
    numbers = [(trace.record or 0) + 1 for trace in report.traces]
    if not numbers or number not in (None, *numbers):
        number_text = "" if number is None else f", but none with number {number}"
        contents = f"contains {counted(len(numbers), 'trace')}{number_text}"
        raise SessionError(f"{path}: {report.failed or contents}")
    readers = [partial(_complete_trace, trace) for trace in report.traces]
    return _TraceList(readers, 0 if number is None else numbers.index(number))


def _complete_trace(trace: Trace) -> Trace:
    """Read a trace to its end.

    Raises:
        SessionError: The trace has no spans.
    """
    read_fully(trace)
    if not len(trace):
        raise SessionError(f"{trace.path}: this trace has no spans")
    return trace


def _list_queue(workspace: Workspace, taxonomy: Taxonomy, name: str, folder: Path) -> _TraceList:
    """List the traces of the annotator's queue that are in a folder.

    Raises:
        SessionError: No trace of the queue is there.
    """
    records = {record.trace_id: record for record in workspace.traces()}
    readers = list[Callable[[], Trace]]()
    for item in queue(workspace, taxonomy, name):
        record = records[item.trace_id]
        path = record.path
        if path is not None and path.exists() and path.resolve().is_relative_to(folder.resolve()):
            readers.append(partial(_read_trace, path, (record.record or 0) + 1))
    if not readers:
        raise SessionError(f"{folder}: no trace of your queue is in this folder; give a file")
    return _TraceList(readers)


def _read_trace(path: Path, number: int) -> Trace:
    return _list_file(path, number).read(0)


def _report_first_of_queue(session: Session) -> None:
    """Print the file of the first trace in the annotator's queue, unless it is the open trace."""
    for item in queue(session.workspace, session.taxonomy, session.annotator)[:1]:
        first = session.workspace.trace(item.trace_id)
        if first.trace_id != session.trace_id and first.path is not None:
            number = f" --trace {first.record + 1}" if first.record else ""
            say(f"Your queue begins with another trace: {one_line(str(first.path))}{number}")


def _ask_name(workspace: Workspace, study: Study | None) -> str:
    """Ask for the annotator's name at a terminal, and remember it.

    A person outside the study must confirm the name.

    Raises:
        click.UsageError: The input is not a terminal.
    """
    participants = "" if study is None else ", ".join(map(one_line, study.participants))
    if not sys.stdin.isatty():
        hint = f"the study has {participants}" if participants else "the annotator is unknown"
        raise click.UsageError(f"{hint}; give your name with --annotator NAME")
    if participants:
        click.echo(f"In this study: {participants}.")
    while True:
        name = checked_new_name(
            workspace, click.prompt("Who is labelling? Your labels are saved under this name")
        )
        warning = outside_study_text(name, study)
        if warning is None or click.confirm(f"{one_line(warning)}. Continue?", default=False):
            remember_person(workspace, name)
            return name


def _typed_lines() -> Iterator[str]:
    """Yield the typed lines until the input ends."""
    while True:
        sys.stdout.write("> ")
        sys.stdout.flush()
        line = sys.stdin.readline()
        if not line:
            click.echo()
            return
        yield line.strip()


class LineReader:
    """A reader of typed lines that shows the spans of a trace and labels them."""

    def __init__(
        self,
        session: Session,
        open_trace: Callable[[int], Session],
        say: Callable[[str], None] = click.echo,
    ) -> None:
        """Start at the first span.

        Args:
            session: The annotator's session on the trace.
            open_trace: Opens the trace at a distance in the list of traces, or raises an error.
            say: Prints a text.
        """
        self._lines: Iterator[str] = iter(())
        """The lines that the user types."""
        self._span_text = ""
        self._session = session
        self._open_trace = open_trace
        self._trace: Trace = session.trace
        self._taxonomy = session.taxonomy
        # The messages never name a suggestion here.
        self._messages = ChangeMessages(session.taxonomy, session.trace, lambda _suggestion: None)
        self._print = say
        self._index = 0
        self._remaining_lines: Iterator[str] = iter(())
        """The lines of the span's text that are not printed yet."""
        self._search_text = ""
        self._range_from: int | None = None
        self._quote: Target | None = None
        self._open_code: str | None = None
        """The id of a new open code without a text. The next note is its text."""
        self._suggestion: Suggestion | None = None
        self._text_commands: Mapping[str, Callable[[str], None]] = {
            "/": self._find_text,
            "m": self._add_note,
            "w": self._select_quote,
            "l": self._list_modes_with,
        }
        self._keys: Mapping[str, Callable[[], None]] = {
            "": lambda: self._move_to(self._index + 1),
            "j": lambda: self._move_to(self._index + 1),
            "k": lambda: self._move_to(self._index - 1),
            "g": lambda: self._move_to(0),
            "G": lambda: self._move_to(len(self._trace) - 1),
            "s": self._show_span,
            "d": self._show_next_page,
            "n": self._find_next,
            "v": self._toggle_range,
            "f": lambda: self._edit_last_label(
                lambda label: {"severity": next_severity(label.severity)}
            ),
            "c": lambda: self._edit_last_label(
                lambda label: {"confidence": next_confidence(label.confidence)}
            ),
            "E": self._go_to_next_error,
            "i": self._show_answer_key,
            "M": self._list_labels,
            "]": lambda: self._go_to_suggestion(1),
            "[": lambda: self._go_to_suggestion(-1),
            "a": lambda: self._answer_suggestion(session.accept),
            "x": lambda: self._answer_suggestion(session.reject),
            "u": lambda: self._report_undo(session.undo(), "Nothing to undo"),
            "U": lambda: self._report_undo(session.redo(), "Nothing to redo"),
            "D": self._finish_pass,
            "?": lambda: self._say(HELP),
        }

    def run(self, lines: Iterator[str]) -> Session | None:
        """Execute each line until the user opens another trace or leaves, or the lines end.

        Return the session on the other trace; None at the end.
        """
        self._lines = lines  # a command can read its answer from the next line
        title = one_line(self._trace.path.name)
        self._say(f"{title}, {counted(len(self._trace), 'span')}, as {self._session.annotator}.")
        self._say("? lists the keys; end each line with Enter.")
        self._show_span()
        for line in lines:
            if line in ("q", "Q"):
                break
            try:
                if line in TRACE_STEPS:
                    return self._open_trace(TRACE_STEPS[line])
                self._execute_line(line)
            except MastError as error:
                self._say(f"Not done: {one_line(str(error))}")
        return None

    def _execute_line(self, line: str) -> None:
        """Execute a line: a key, a span's number, the digits of a mode, or a command with text."""
        press_key = self._keys.get(line)
        text_command = self._text_commands.get(line[:1])
        text = line[1:].strip()
        digits = line[-2:]
        prefix = line[:-2]
        if press_key is not None:
            press_key()
        elif line[:1] in (":", "#") and text.isdecimal():
            self._move_to(int(text) - 1)
        elif digits.isdecimal() and prefix in ("", "t", "-", "_"):
            self._label_or_set_verdict(prefix, digits)
        elif text_command is not None and text:
            text_command(text)
        else:
            problem = "is not a key" if text_command is None else "needs words after it"
            self._say(f"{one_line(line, 20)} {problem}; ? lists the keys")

    def _move_to(self, index: int) -> None:
        """Go to a span and print it."""
        if not 0 <= index < len(self._trace):
            self._say("There is no such span")
            return
        self._index = index
        self._quote = None
        self._open_code = None
        self._show_span()

    def _say(self, text: str) -> None:
        """Print a text without control characters; notes and names in it can be foreign."""
        self._print("\n".join(iter_lines(text)))

    def _show_span(self) -> None:
        """Print the span, its labels and note, and the first page of its text."""
        span = self._trace.span(self._index)
        session = self._session
        names = [span.kind.replace("_", " "), span.agent, span.name or ""]
        parts = [f"#{span.index + 1} of {len(self._trace)}", *filter(None, map(one_line, names))]
        if span.status == "error":
            parts.append("error")
        self._say(", ".join(parts))
        labels = [self._mode_text(label.mode) for label in session.labels_at(span.key)]
        if labels:
            self._say(f"labelled: {'; '.join(labels)}")
        if note := session.span_notes.get(span.key):
            self._say(f"note: {one_line(note)}")
        self._span_text = self._trace.text(self._index)
        pretty = (
            pretty_json(self._span_text) if len(self._span_text) <= MAX_FORMATTED_JSON else None
        )
        text = self._span_text if pretty is None else pretty.whole()
        text = COLOUR_SEQUENCE.sub("", text)
        self._remaining_lines = iter_lines(text)
        self._show_next_page()

    def _show_next_page(self) -> None:
        """Print the next page of the span's text.

        After the last page the span counts as read.
        """
        lines = list(islice(self._remaining_lines, PAGE))
        for line in lines:
            self._say(f"  {line}")
        next_line = next(self._remaining_lines, None)
        if next_line is not None:
            self._remaining_lines = chain([next_line], self._remaining_lines)
            self._say("d shows more of this text")
        elif not lines:
            self._say("The text ends here")
        if next_line is None:
            self._session.mark_read([self._trace.span(self._index).key])

    def _find_text(self, text: str) -> None:
        """Search a text from the current span on."""
        self._search_text = text
        self._find_text_from(self._index)

    def _find_next(self) -> None:
        if self._search_text:
            self._find_text_from(self._index + 1)
        else:
            self._say("There is no search text; /words searches")

    def _find_text_from(self, first_index: int) -> None:
        searched_text = self._search_text.casefold()
        for index in range(first_index, len(self._trace)):
            if searched_text in self._trace.text(index).casefold():
                self._move_to(index)
                return
        self._say(f"Not found from #{first_index + 1} on: {one_line(self._search_text)}")

    def _go_to_next_error(self) -> None:
        for index in range(self._index + 1, len(self._trace)):
            if self._trace.span(index).status is SpanStatus.ERROR:
                self._move_to(index)
                return
        self._say("No later error")

    def _show_answer_key(self) -> None:
        text = ANSWER_KEY_HIDDEN
        if self._session.outcome_visible:
            text = answer_page(self._trace).text
        self._say(text)

    def _mode_text(self, slug: str) -> str:
        mode = self._taxonomy.mode(slug)
        return f"{mode.code} {mode.name}"

    def _label_or_set_verdict(self, prefix: str, digits: str) -> None:
        """Toggle a label of the mode with these digits, or set the verdict on it.

        The prefix ``-`` means absent, ``_`` unsure, and ``t`` a label on the whole trace.
        """
        mode = self._taxonomy.by_digits(*digits)
        if mode is None:
            self._say(f"{digits} is not a mode; l WORDS finds one")
            return
        session = self._session
        if prefix in ("-", "_"):
            value = VerdictValue.ABSENT if prefix == "-" else VerdictValue.UNSURE
            self._say(session.set_verdict(mode.slug, value).message)
            return
        target = WHOLE_TRACE if prefix == "t" else self._selected_target()
        change = session.toggle_label(
            mode.slug, target, suggestions_on_screen=bool(session.suggestions)
        )
        self._range_from = None
        self._quote = None
        self._say(change.message)
        if mode.slug == OPEN_CODE_SLUG:
            self._ask_for_open_code(target)

    def _ask_for_open_code(self, target: Target) -> None:
        """Ask for the text of a new open code on a target."""
        ids = (
            label.id
            for label in self._session.labels
            if (label.mode, label.target) == (OPEN_CODE_SLUG, target)
        )
        self._open_code = next(ids, None)
        if self._open_code is not None:
            self._say("What went wrong? Describe it with m WORDS")

    def _selected_target(self) -> Target:
        """Return the selected quote, else the selected range or the current span."""
        if self._quote is not None:
            return self._quote
        first = self._index if self._range_from is None else self._range_from
        first, last = sorted((first, self._index))
        return Target(self._trace.span(first).key, self._trace.span(last).key)

    def _toggle_range(self) -> None:
        in_range = self._range_from is not None
        self._range_from = None if in_range else self._index
        message = (
            "The range is removed"
            if in_range
            else f"Range from #{self._index + 1}: go to its last span, then label it"
        )
        self._say(message)

    def _select_quote(self, quote: str) -> None:
        """Select words of the span's text for the next label."""
        start = self._span_text.find(quote)
        if start < 0:
            self._say("This text does not contain these exact words")
            return
        key = self._trace.span(self._index).key
        self._quote = Target(key, key, quote=quote, char_start=start, char_end=start + len(quote))
        self._say(f"Quoted: {quote_line(quote, 80)}; two digits label it")

    def _add_note(self, text: str) -> None:
        """Note a text on the new open code if there is one, else on the span."""
        label_id = self._open_code
        self._open_code = None
        if label_id is not None and label_id in self._session.labels_by_id:
            self._say(self._session.edit_label(label_id, note=text).message)
            return
        self._say(self._session.note_span(self._trace.span(self._index).key, text).message)

    def _edit_last_label(self, new_values: Callable[[Label], dict[str, Any]]) -> None:
        labels = self._session.labels_at(self._trace.span(self._index).key)
        if labels:
            self._say(self._session.edit_label(labels[-1].id, **new_values(labels[-1])).message)
        else:
            self._say("No label of yours on this span")

    def _list_labels(self) -> None:
        for label in self._session.labels:
            self._say(f"{self._mode_text(label.mode)}, {self._messages.location(label.target)}")
        for slug, value in self._session.verdicts.items():
            if value is not VerdictValue.PRESENT:
                self._say(f"{self._mode_text(slug)}, {value}")
        if not self._session.labels:
            self._say("No labels yet")

    def _list_modes_with(self, text: str) -> None:
        searched_text = text.casefold()
        matches = [
            mode
            for mode in self._taxonomy.all_modes
            if searched_text in f"{mode.code} {mode.name} {mode.definition}".casefold()
        ]
        for mode in matches:
            keys = self._taxonomy.keys_of(mode)
            self._say(f"{keys}: {mode.code} {mode.name}. {one_line(mode.definition)}")
        if not matches:
            self._say("No mode has these words")

    def _go_to_suggestion(self, step: int) -> None:
        """Select the next (1) or previous (-1) suggestion, and go to its span."""
        pending = self._session.pending
        if not pending:
            self._say("No suggestion is left")
            return
        self._session.note_suggestions_on_screen()
        if self._suggestion in pending:
            position = (pending.index(self._suggestion) + step) % len(pending)
        else:
            position = 0 if step > 0 else -1
        suggestion = self._suggestion = pending[position]
        key = (
            suggestion.evidence.key if suggestion.evidence is not None else suggestion.target.first
        )
        index = None if key is None else self._trace.index_of(key)
        if index is not None:
            self._move_to(index)
        location = self._messages.location(suggestion.target)
        self._say(
            f"{one_line(suggestion.judge)} suggests {self._mode_text(suggestion.mode)}, {location}:"
        )
        self._say(f"  {one_line(suggestion.rationale)}")

    def _answer_suggestion(self, answer: Callable[[str], Change]) -> None:
        """Accept or reject the selected suggestion, as ``answer`` does."""
        if self._suggestion is None or self._suggestion not in self._session.pending:
            self._say("No suggestion is selected; ] goes to the next")
            return
        change = answer(self._suggestion.id)
        self._suggestion = None
        self._say(change.message)

    def _report_undo(self, change: object, nothing_text: str) -> None:
        """Print the message of an undone or redone change, or ``nothing_text`` without one."""
        self._say(nothing_text if change is None else getattr(change, "message", ""))

    def _finish_pass(self) -> None:
        """Finish the pass.

        If modes have no verdict, first ask whether they are absent or stay open.
        """
        answer = self._session.open_modes_answer
        if answer is None and not self._session.finished:
            unread = sum(map(len, self._session.unread()))
            verb = "was" if unread == 1 else "were"
            self._say(f"{counted(unread, 'span')} {verb} not read.")
            self._say("o: finish; modes left open do not count in agreement.")
            self._say("W: finish; open modes become absent (only if you looked for each).")
            self._say("Any other key: do not finish yet.")
            key = next(self._lines, "")
            # ``j`` was the key of earlier versions; scripts still send it.
            if key not in ("o", "W", "j"):
                self._say("Not finished")
                return
            answer = "leave" if key == "o" else "absent"
        self._say(self._session.finish(open_modes=answer or "leave").message)
