"""A trace as it is sent to a model: task, names and texts, redacted and safe in JSON."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from mast_tui.judges.llm.prompt.tokens import estimate
from mast_tui.judges.llm.request import TraceFails
from mast_tui.redaction.engine import Redacted, Redaction, RedactionTooSlow, SecretNumbers
from mast_tui.safe_text import one_line
from mast_tui.traces.file_edits import file_edits
from mast_tui.traces.index.lines import LruCache
from mast_tui.traces.model import STATUSES, Role, SpanKind, SpanStatus, Trace

MOST_CACHED_CHARS: Final = 1_000_000
"""The most characters of texts that are cached."""

NAME_CHARS: Final = 60
"""The most code points of the name of an agent or a tool."""

_READ_CHARS: Final = 1_000
"""The most code points of a name that are redacted before it is cut."""

_MOST_CACHED_NAMES: Final = 1_000

_TASK_WITHIN: Final = 20
"""The number of first spans that are searched for the task."""

_LONG_TASK: Final = 20
"""The fewest characters of a task that is recognised inside a message."""

_SUBMITTED: Final = frozenset({"submission", "model_patch", "git_patch"})
"""The names of patches by the run itself."""

_NUMBER: Final = re.compile(r"#(\d{1,12})\b")

_NOT_SENDABLE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_CONTROLS: Final = bytes((*range(9), *range(11, 32), 127))


def sendable(text: str) -> str:
    """Replace characters that JSON or a server may reject; the length stays the same.

    - A carriage return becomes a space.
    - Other control characters become visible symbols, except line break and tab.
    - A lone surrogate becomes U+FFFD.
    """
    return text if _is_sendable(text) else _NOT_SENDABLE.sub(_replacement_character, text)


def _is_sendable(text: str) -> bool:
    """Check whether a text needs no replacement; several times faster than the pattern."""
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        return False
    return len(encoded.translate(None, _CONTROLS)) == len(encoded)


def _replacement_character(match: re.Match[str]) -> str:
    """Return the visible character for a control character or a lone surrogate."""
    char = match[0]
    if char == "\r":
        return " "
    if char == "\x7f":
        return "␡"
    # U+2400 and the following characters are pictures of the control characters.
    return chr(0x2400 + ord(char)) if char < " " else "�"


@dataclass(frozen=True, slots=True)
class RedactedSpan:
    """A span as it is sent: the fields of its header, and its text.

    Attributes:
        index: The index of the span in the trace.
        kind: The kind of the span.
        role: The role of the message.
        agent: The redacted name of the agent, on one line; empty without an agent.
        tool: The redacted name of the tool, on one line; empty without a tool.
        failed: True if the status of the span is an error.
        answers: The index of the call that a result answers; None if it is unknown.
        text: The redacted text.
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

    The first access to a text redacts all texts in order, so that the numbers of secrets do not
    depend on the order of access.

    Spans are sent with numbers from ``first_number``, while the timeline counts from 1.
    """

    def __init__(self, trace: Trace, redaction: Redaction, first_number: int = 1) -> None:
        """Redact the task of the trace; spans are redacted on demand.

        Args:
            trace: The trace.
            redaction: The redaction of its texts.
            first_number: The number of the first span in the sent texts.
        """
        self._trace = trace
        self._redaction = redaction
        self._first_number = first_number
        self._secret_numbers = SecretNumbers()
        self._cache = LruCache[Redacted](MOST_CACHED_CHARS, lambda redacted: len(redacted.text))
        self._redacted_name_by_name: dict[str, str] = {}
        self.task_span, task = self._find_task(trace.meta.task or "")
        self.task = self._redact_text(sendable(task)).text

    def __len__(self) -> int:
        return len(self._trace)

    @property
    def trace_id(self) -> str:
        """The id of the trace."""
        return self._trace.identity.trace_id

    def agents(self) -> frozenset[str]:
        """Return the names of all agents as they are sent."""
        shapes = self._trace.columns(0, len(self._trace)).shape_list
        return frozenset(self._redacted_name(agent) for _kind, _role, agent, _tool in shapes)

    @cached_property
    def tokens(self) -> array[int]:
        """The estimated tokens of each span's text."""
        return array("Q", (estimate(self._read_text(i).text) for i in range(len(self._trace))))

    def text(self, index: int) -> str:
        """Return the redacted text of a span."""
        return self._redacted_text(index).text

    @cached_property
    def artefacts(self) -> str:
        """The final patch and the test results, redacted; empty without either.

        Without a patch, the file changes by the calls of the run replace it.
        """
        # Secrets are numbered in the order of redaction, and those of the spans come first.
        _ = self.tokens
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
            f"{self.redacted(name)}:\n{self._redact_text(sendable(text)).text}"
            for name, text in (*patches, *key.tests)
        )

    def redacted(self, text: str) -> str:
        """Redact a sentence about the trace, and put it on one line."""
        return self._redact_text(sendable(one_line(text, _READ_CHARS))).text

    def _redact_text(self, text: str) -> Redacted:
        """Redact a text.

        Raises:
            TraceFails: A pattern takes too long on the text.
        """
        try:
            return self._redaction.apply(text, self._secret_numbers)
        except RedactionTooSlow as error:
            raise TraceFails(str(error)) from None

    def number(self, index: int) -> int:
        """Return the number of a span in the sent texts."""
        return index + self._first_number

    def range_name(self, first: int, last: int) -> str:
        """Write a range of spans as ``#12`` or ``#12 to #14``.

        Args:
            first: The index of the first span.
            last: The index of the last span.
        """
        name = f"#{self.number(first)}"
        return name if first == last else f"{name} to #{self.number(last)}"

    def index_of(self, number: int) -> int | None:
        """Return the index of the span with a sent number, or None."""
        index = number - self._first_number
        return index if 0 <= index < len(self._trace) else None

    def with_numbers_sent(self, text: str) -> str:
        """Replace span numbers of the timeline by sent numbers."""
        return self._with_other_numbers(text, 1, self._first_number)

    def with_timeline_numbers(self, text: str) -> str:
        """Replace sent span numbers by numbers of the timeline."""
        return self._with_other_numbers(text, self._first_number, 1)

    def _with_other_numbers(self, text: str, first_number: int, new_first_number: int) -> str:
        """Renumber the spans in a text from one first number to another."""
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
        """Yield a range of spans as they are sent.

        Args:
            first: The index of the first span.
            last: The index of the last span.
        """
        columns = self._trace.columns(first, last + 1)
        # A shape is a combination of kind, role, agent and tool.
        for row, shape in enumerate(columns.shapes):
            index = first + row
            kind, role, agent, tool = columns.shape_list[shape]
            yield RedactedSpan(
                index,
                kind,
                role,
                self._redacted_name(agent),
                self._redacted_name(tool or ""),
                failed=STATUSES[columns.statuses[row]] is SpanStatus.ERROR,
                answers=self._call_index(index) if kind is SpanKind.TOOL_RESULT else None,
                text=self._redacted_text(index).text,
            )

    def to_original(self, index: int, start: int, end: int) -> tuple[int, int]:
        """Convert a range of ``text(index)`` to a range of the trace's own text.

        Args:
            index: The index of the span.
            start: The first code point of the range.
            end: The code point after the range.
        """
        return self._redacted_text(index).to_original(start, end)

    def _redacted_text(self, index: int) -> Redacted:
        """Return the redacted text of a span, from the cache if possible."""
        redacted = self._cache.get(index)
        if redacted is None:
            _ = self.tokens  # redacts all spans in their order first
            redacted = self._read_text(index)
        return redacted

    def _read_text(self, index: int) -> Redacted:
        redacted = self._redact_text(sendable(self._trace.text(index)))
        self._cache.add(index, redacted)
        return redacted

    def _redacted_name(self, name: str) -> str:
        """Return the name of an agent or a tool: redacted, short, on one line, without ``|``."""
        redacted_name = self._redacted_name_by_name.get(name)
        if redacted_name is None:
            # A cut could split a secret, so redact a longer part of the name first.
            redacted_text = self._redact_text(one_line(name, _READ_CHARS)).text
            redacted_name = one_line(redacted_text, NAME_CHARS).replace("|", "¦")
            if len(self._redacted_name_by_name) < _MOST_CACHED_NAMES:
                self._redacted_name_by_name[name] = redacted_name
        return redacted_name

    def _call_index(self, index: int) -> int | None:
        parent = self._trace.span(index).parent
        return None if parent is None else self._trace.index_of(parent)

    def _find_task(self, task: str) -> tuple[int | None, str]:
        """Find the message with the task among the first spans.

        Return the index of the message, or None, and the text of the task.
        """
        head = task.strip()
        for index in range(min(_TASK_WITHIN, len(self._trace))):
            span = self._trace.span(index)
            if span.kind is not SpanKind.MESSAGE or (not head and span.role is not Role.USER):
                continue
            text = self._trace.text(index)
            # The metadata may hold only the beginning of the task. Without metadata, the first
            # message of the user is the task.
            if text.strip().startswith(head):
                return index, text
            # A short task can occur in a message by chance.
            if len(head) >= _LONG_TASK and head in text:
                return index, task
        return None, task
