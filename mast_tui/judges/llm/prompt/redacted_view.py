"""What of a trace is sent to a model: task, names and texts, redacted and fit for JSON."""

from __future__ import annotations

import re
from array import array
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mast_tui.judges.llm.prompt.redaction import Numbers, Redacted, Redaction
from mast_tui.judges.llm.prompt.tokens import estimate
from mast_tui.safe_text import one_line
from mast_tui.traces.model import STATUSES, Role, SpanKind, SpanStatus, Trace

KEPT_CHARS: Final = 1_000_000
"""How many characters of texts are kept at most, so that they need not be read again."""

NAME_CHARS: Final = 60
"""Length to which the name of an agent or a tool is cut, in code points."""

_LOOKED_AT: Final = 1_000
"""So much of a name is looked at before it is cut."""

_KEPT_NAMES: Final = 1_000

_TASK_WITHIN: Final = 20
"""Among so many first spans the user's message is looked for where no task is known."""

_SURELY_THE_TASK: Final = 20
"""A task of so many characters that stands in a message is the task there too."""

_NUMBER: Final = re.compile(r"#(\d{1,12})\b")

_UNFIT: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_CONTROLS: Final = bytes((*range(9), *range(11, 32), 127))


def fit(text: str) -> str:
    """The text with one visible character for each that JSON or a server may trip over.

    Controls but for line break and tab become their pictures, a carriage return a space, a lone
    surrogate U+FFFD. The length stays the same.
    """
    return text if _is_fit(text) else _UNFIT.sub(_shown, text)


def _is_fit(text: str) -> bool:
    """Whether nothing in the text is unfit; bytes tell that several times sooner than a pattern."""
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        return False
    return len(encoded.translate(None, _CONTROLS)) == len(encoded)


def _shown(match: re.Match[str]) -> str:
    char = match[0]
    if char == "\r":
        return " "
    if char == "\x7f":
        return "␡"
    return chr(0x2400 + ord(char)) if char < " " else "�"


@dataclass(frozen=True, slots=True)
class RedactedSpan:
    """A span as it is sent: what its header says, and its text.

    ``agent`` and ``tool`` are one line each, redacted, empty where there is none. ``answers`` is
    the index of the call to which a result belongs, None where it is not known.
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
    """What of a trace is sent; the trace's index must be complete.

    All texts are read once, in order, when the first one is asked for: that gives every value
    that is taken out the same number whatever is asked for first, and the length of each text in
    tokens. About ``KEPT_CHARS`` of texts are kept after that, others are read again.

    The spans are numbered from ``first_number`` on, which people do from 1: what is sent and what
    comes back has the numbers of ``number`` and ``index_of``, and in prose those of
    ``with_numbers_sent``, until ``with_own_numbers`` makes them people's again.
    """

    def __init__(self, trace: Trace, redaction: Redaction, first_number: int = 1) -> None:
        self._trace = trace
        self._redaction = redaction
        self._first_number = first_number
        self._numbers = Numbers()
        self._kept: OrderedDict[int, Redacted] = OrderedDict()
        self._kept_chars = 0
        self._names: dict[str, str] = {}
        self._tokens: array[int] | None = None
        self.task_span, task = self._find_task(trace.meta.task or "")
        self.task = redaction.apply(fit(task), self._numbers).text

    def __len__(self) -> int:
        return len(self._trace)

    @property
    def trace_id(self) -> str:
        """The trace's id."""
        return self._trace.identity.trace_id

    def agents(self) -> frozenset[str]:
        """Return the names of all agents as they are sent."""
        shapes = self._trace.columns(0, len(self._trace)).shape_list
        return frozenset(self._name(agent) for _kind, _role, agent, _tool in shapes)

    @property
    def tokens(self) -> array[int]:
        """For each span about how many tokens its text takes."""
        if self._tokens is None:
            self._tokens = self._read_all()
        return self._tokens

    def text(self, index: int) -> str:
        """The text of a span as it is sent where nothing of it is left out."""
        return self._redacted(index).text

    def redacted(self, text: str) -> str:
        """Words about the trace as they may be sent, on one line."""
        return self._redaction.apply(fit(one_line(text, _LOOKED_AT)), self._numbers).text

    def number(self, index: int) -> int:
        """The number by which a span is sent."""
        return index + self._first_number

    def named(self, first: int, last: int) -> str:
        """What spans are called, from the first to the last: ``#12``, ``#12 to #14``."""
        one = f"#{self.number(first)}"
        return one if first == last else f"{one} to #{self.number(last)}"

    def index_of(self, number: int) -> int | None:
        """The span that has this number, None where none has."""
        index = number - self._first_number
        return index if 0 <= index < len(self._trace) else None

    def with_numbers_sent(self, text: str) -> str:
        """Prose about the trace, with the numbers by which its spans are sent."""
        return self._renumbered(text, 1, self._first_number)

    def with_own_numbers(self, text: str) -> str:
        """What was said of the trace, with the numbers by which people know its spans."""
        return self._renumbered(text, self._first_number, 1)

    def _renumbered(self, text: str, before: int, now: int) -> str:
        if before == now:
            return text

        def other(match: re.Match[str]) -> str:
            index = int(match[1]) - before
            return f"#{index + now}" if 0 <= index < len(self._trace) else match[0]

        return _NUMBER.sub(other, text)

    def key(self, index: int) -> str:
        """The key by which the trace itself knows a span."""
        return self._trace.span(index).key

    def span(self, index: int) -> RedactedSpan:
        """One span as it is sent."""
        [span] = self.spans(index, index)
        return span

    def spans(self, first: int, last: int) -> Iterator[RedactedSpan]:
        """The spans from ``first`` to ``last`` (both of them) as they are sent."""
        seen = self._trace.columns(first, last + 1)
        named: dict[int, tuple[str, str]] = {}
        for place, shape in enumerate(seen.shapes):
            index = first + place
            kind, role, agent, tool = seen.shape_list[shape]
            if shape not in named:
                named[shape] = self._name(agent), self._name(tool or "")
            yield RedactedSpan(
                index,
                kind,
                role,
                *named[shape],
                failed=STATUSES[seen.statuses[place]] is SpanStatus.ERROR,
                answers=self._answered(index) if kind is SpanKind.TOOL_RESULT else None,
                text=self._redacted(index).text,
            )

    def to_original(self, index: int, start: int, end: int) -> tuple[int, int]:
        """Where ``text(index)[start:end]`` stands in the trace's own text of that span."""
        return self._redacted(index).to_original(start, end)

    def _redacted(self, index: int) -> Redacted:
        kept = self._kept.get(index)
        if kept is not None:
            self._kept.move_to_end(index)
            return kept
        if self._tokens is None:
            self._tokens = self._read_all()
        return self._read(index)

    def _read_all(self) -> array[int]:
        return array("Q", (estimate(self._read(i).text) for i in range(len(self._trace))))

    def _read(self, index: int) -> Redacted:
        read = self._redaction.apply(fit(self._trace.text(index)), self._numbers)
        self._kept[index] = read
        self._kept_chars += len(read.text)
        while self._kept_chars > KEPT_CHARS and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._kept_chars -= len(dropped.text)
        return read

    def _name(self, name: str) -> str:
        known = self._names.get(name)
        if known is None:
            shown = self._redaction.apply(one_line(name, _LOOKED_AT), self._numbers).text
            known = one_line(shown, NAME_CHARS).replace("|", "¦")
            if len(self._names) < _KEPT_NAMES:
                self._names[name] = known
        return known

    def _answered(self, index: int) -> int | None:
        parent = self._trace.span(index).parent
        return None if parent is None else self._trace.index_of(parent)

    def _find_task(self, task: str) -> tuple[int | None, str]:
        """The message among the first that holds the task, if one does, and the task's words.

        A reader may have kept the head of a message only; then the task is all of it. Where no
        task is known it is the first message of the user.
        """
        wanted = task.strip()
        for index in range(min(_TASK_WITHIN, len(self._trace))):
            span = self._trace.span(index)
            if span.kind is not SpanKind.MESSAGE or (not wanted and span.role is not Role.USER):
                continue
            text = self._trace.text(index)
            if text.strip().startswith(wanted):
                return index, text
            if len(wanted) >= _SURELY_THE_TASK and wanted in text:
                return index, task
        return None, task
