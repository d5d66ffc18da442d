"""A trace as it is sent to a model: task, names and texts, redacted and safe in JSON."""

from __future__ import annotations

import re
from array import array
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from mast_tui.judges.llm.errors import TraceFails
from mast_tui.judges.llm.prompt.tokens import estimate
from mast_tui.redaction.engine import Redacted, Redaction, RedactionTooSlow, SecretNumbers
from mast_tui.safe_text import one_line
from mast_tui.traces.file_edits import file_edits
from mast_tui.traces.model import STATUSES, Role, SpanKind, SpanStatus, Trace

KEPT_CHARS: Final = 1_000_000
"""The most characters of texts that are cached."""

NAME_CHARS: Final = 60
"""The most code points of the name of an agent or a tool."""

_READ_CHARS: Final = 1_000
"""The most code points of a name that are redacted before it is cut."""

_KEPT_NAMES: Final = 1_000

_TASK_WITHIN: Final = 20
"""The number of first spans that are searched for the task."""

_LONG_TASK: Final = 20
"""The fewest characters of a task that is recognised within a message."""

_SUBMITTED: Final = frozenset({"submission", "model_patch", "git_patch"})
"""The names of patches that the run itself made."""

_NUMBER: Final = re.compile(r"#(\d{1,12})\b")

_UNFIT: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_CONTROLS: Final = bytes((*range(9), *range(11, 32), 127))


def fit(text: str) -> str:
    """Replace the characters that JSON or a server may fail on; the length stays the same.

    Control characters but for line break and tab become their visible symbols, a carriage return
    becomes a space, a lone surrogate U+FFFD.
    """
    return text if _is_fit(text) else _UNFIT.sub(_replacement, text)


def _is_fit(text: str) -> bool:
    """Check whether no character needs replacement; several times faster than a pattern."""
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        return False
    return len(encoded.translate(None, _CONTROLS)) == len(encoded)


def _replacement(match: re.Match[str]) -> str:
    char = match[0]
    if char == "\r":
        return " "
    if char == "\x7f":
        return "␡"
    return chr(0x2400 + ord(char)) if char < " " else "�"


@dataclass(frozen=True, slots=True)
class RedactedSpan:
    """A span as it is sent: the fields of its header, and its text.

    ``agent`` and ``tool`` are one line each, redacted, empty if there is none. ``answers`` is the
    index of the call of a result, None if it is unknown.
    """

    index: int
    kind: SpanKind
    role: Role
    agent: str
    tool: str
    failed: bool
    answers: int | None
    text: str


class RedactedView:
    """A trace as it is sent; the index of the trace must be complete.

    The first access to a text reads all texts in order, so that the numbers of secrets do not
    depend on the access. About ``KEPT_CHARS`` characters are cached; other texts are read again.

    Spans are sent with numbers from ``first_number``, while the timeline counts from 1. ``number``
    and ``index_of`` convert these numbers, ``with_numbers_sent`` and ``with_own_numbers`` those in
    sentences.
    """

    def __init__(self, trace: Trace, redaction: Redaction, first_number: int = 1) -> None:
        self._trace = trace
        self._redaction = redaction
        self._first_number = first_number
        self._numbers = SecretNumbers()
        self._cache: OrderedDict[int, Redacted] = OrderedDict()
        self._cached_chars = 0
        self._names: dict[str, str] = {}
        self._tokens: array[int] | None = None
        self.task_span, task = self._find_task(trace.meta.task or "")
        self.task = self._apply(fit(task)).text

    def __len__(self) -> int:
        return len(self._trace)

    @property
    def trace_id(self) -> str:
        """The id of the trace."""
        return self._trace.identity.trace_id

    def agents(self) -> frozenset[str]:
        """Return the names of all agents as they are sent."""
        shapes = self._trace.columns(0, len(self._trace)).shape_list
        return frozenset(self._name(agent) for _kind, _role, agent, _tool in shapes)

    @property
    def tokens(self) -> array[int]:
        """The estimated tokens of the text of each span."""
        if self._tokens is None:
            self._tokens = self._read_all()
        return self._tokens

    def text(self, index: int) -> str:
        """Return the redacted text of a span."""
        return self._redacted(index).text

    @cached_property
    def artefacts(self) -> str:
        """The final patch and the test results, redacted; empty where there are none.

        Without a patch it is the changes of files that the calls made. The patch that would have
        been right, scores and verdicts are not among it.
        """
        _ = self.tokens  # reads the spans, whose secrets have the first numbers
        key = self._trace.meta.answer_key
        patches = [(name, text) for name, text in key.patch if name in _SUBMITTED]
        if not patches:
            edits = file_edits(self._trace, len(self._trace))
            patches = [
                (f"{edit.path}, changed in #{self.number(edit.index)}", "\n".join(edit.lines()))
                for edit in edits
                if not edit.failed
            ]
        return "\n\n".join(
            f"{self.redacted(name)}:\n{self._apply(fit(text)).text}"
            for name, text in (*patches, *key.tests)
        )

    def redacted(self, text: str) -> str:
        """Redact a sentence about the trace, and put it on one line."""
        return self._apply(fit(one_line(text, _READ_CHARS))).text

    def _apply(self, text: str) -> Redacted:
        try:
            return self._redaction.apply(text, self._numbers)
        except RedactionTooSlow as error:
            raise TraceFails(str(error)) from None

    def number(self, index: int) -> int:
        """Return the number with which a span is sent."""
        return index + self._first_number

    def named(self, first: int, last: int) -> str:
        """Write a range of spans: ``#12``, ``#12 to #14``.

        Args:
            first: The index of the first span.
            last: The index of the last span.
        """
        name = f"#{self.number(first)}"
        return name if first == last else f"{name} to #{self.number(last)}"

    def index_of(self, number: int) -> int | None:
        """Return the index of the span with this number, or None."""
        index = number - self._first_number
        return index if 0 <= index < len(self._trace) else None

    def with_numbers_sent(self, text: str) -> str:
        """Replace the timeline's numbers of spans in a text by those with which they are sent."""
        return self._renumbered(text, 1, self._first_number)

    def with_own_numbers(self, text: str) -> str:
        """Replace the numbers of spans in a text by those of the timeline."""
        return self._renumbered(text, self._first_number, 1)

    def _renumbered(self, text: str, first_number: int, new_first_number: int) -> str:
        if first_number == new_first_number:
            return text

        def renumber(match: re.Match[str]) -> str:
            index = int(match[1]) - first_number
            return f"#{index + new_first_number}" if 0 <= index < len(self._trace) else match[0]

        return _NUMBER.sub(renumber, text)

    def key(self, index: int) -> str:
        """Return the key of a span in the trace."""
        return self._trace.span(index).key

    def span(self, index: int) -> RedactedSpan:
        """Return a span as it is sent."""
        [span] = self.spans(index, index)
        return span

    def spans(self, first: int, last: int) -> Iterator[RedactedSpan]:
        """Yield the spans from ``first`` to ``last``, both included, as they are sent."""
        columns = self._trace.columns(first, last + 1)
        names: dict[int, tuple[str, str]] = {}
        for row, shape in enumerate(columns.shapes):
            index = first + row
            kind, role, agent, tool = columns.shape_list[shape]
            if shape not in names:
                names[shape] = self._name(agent), self._name(tool or "")
            yield RedactedSpan(
                index,
                kind,
                role,
                *names[shape],
                failed=STATUSES[columns.statuses[row]] is SpanStatus.ERROR,
                answers=self._answered(index) if kind is SpanKind.TOOL_RESULT else None,
                text=self._redacted(index).text,
            )

    def to_original(self, index: int, start: int, end: int) -> tuple[int, int]:
        """Convert a range of ``text(index)`` to the range in the trace's text of that span.

        Args:
            index: The index of the span.
            start: The first code point of the range.
            end: The code point after the range.
        """
        return self._redacted(index).to_original(start, end)

    def _redacted(self, index: int) -> Redacted:
        cached = self._cache.get(index)
        if cached is not None:
            self._cache.move_to_end(index)
            return cached
        if self._tokens is None:
            self._tokens = self._read_all()
        return self._read(index)

    def _read_all(self) -> array[int]:
        return array("Q", (estimate(self._read(i).text) for i in range(len(self._trace))))

    def _read(self, index: int) -> Redacted:
        redacted = self._apply(fit(self._trace.text(index)))
        self._cache[index] = redacted
        self._cached_chars += len(redacted.text)
        while self._cached_chars > KEPT_CHARS and len(self._cache) > 1:
            _, dropped = self._cache.popitem(last=False)
            self._cached_chars -= len(dropped.text)
        return redacted

    def _name(self, name: str) -> str:
        cached = self._names.get(name)
        if cached is None:
            redacted = self._apply(one_line(name, _READ_CHARS)).text
            cached = one_line(redacted, NAME_CHARS).replace("|", "¦")
            if len(self._names) < _KEPT_NAMES:
                self._names[name] = cached
        return cached

    def _answered(self, index: int) -> int | None:
        parent = self._trace.span(index).parent
        return None if parent is None else self._trace.index_of(parent)

    def _find_task(self, task: str) -> tuple[int | None, str]:
        """Return the first message with the task, if there is one, and the text of the task.

        A reader may have kept only the head of a message; then the task is the whole message. If
        the task is unknown, it is the first message of the user.
        """
        head = task.strip()
        for index in range(min(_TASK_WITHIN, len(self._trace))):
            span = self._trace.span(index)
            if span.kind is not SpanKind.MESSAGE or (not head and span.role is not Role.USER):
                continue
            text = self._trace.text(index)
            if text.strip().startswith(head):
                return index, text
            if len(head) >= _LONG_TASK and head in text:
                return index, task
        return None, task
