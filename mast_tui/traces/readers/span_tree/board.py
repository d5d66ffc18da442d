"""What is shared by all that makes spans of a run's rows: the rows above, and what was shown."""

from __future__ import annotations

from dataclasses import dataclass

from mast_tui.traces.index.document import StepList
from mast_tui.traces.io.json_values import dump_text
from mast_tui.traces.model import Role, SpanKind, SpanStatus
from mast_tui.traces.readers.span_tree.builder import Message, Row
from mast_tui.traces.readers.span_tree.history import Call, Calls, History, Parts
from mast_tui.traces.readers.span_tree.texts import plain_text
from mast_tui.traces.readers.span_tree.tree import RowTree


@dataclass(slots=True)
class Frame:
    """A row under which the reading stands.

    ``within`` is the key of the span to which what is under the row belongs, ``own`` that of the
    row's own span, ``acting`` the name of the nearest agent's row, and ``tool`` the nearest tool's
    row, this one counted.
    """

    row: Row
    number: int
    last: int
    before: int
    agent: str
    within: str | None = None
    own: str | None = None
    acting: str | None = None
    tool: Frame | None = None
    in_model: bool = False
    hidden: bool = False
    call: Call | None = None
    output: object = None


class Board:
    """The spans of a run so far, and what they have said."""

    def __init__(self, tree: RowTree, prefix: str, every_row: bool) -> None:
        self.tree = tree
        self.prefix = prefix
        self.every_row = every_row
        self.steps = StepList()
        self.parts = Parts()
        self.calls = Calls()
        self.history = History(self.calls)

    def was_said(self, text: str) -> bool:
        """Whether a message with this text was shown."""
        return self.parts.content(SpanKind.MESSAGE, text) in self.history.shown

    def mark(self, frame: Frame) -> None:
        """A span with no more than its name for a row that has nothing to say."""
        if self.every_row:
            frame.own = frame.within = self.log(frame, frame.row.id, frame.row.name)

    def message(self, frame: Frame, part: str, text: str, role: Role) -> None:
        """A message that is a row's whole input or output."""
        row = frame.row
        self.history.shown.add(self.parts.content(SpanKind.MESSAGE, text))
        self.steps.add(
            f"{self.prefix}{row.id}/{part}",
            SpanKind.MESSAGE,
            role,
            frame.agent if role is Role.AGENT else "user",
            text,
            place=row.place,
            parent=frame.within,
            start=row.start if role is Role.USER else row.end,
        )

    def log(self, frame: Frame, key: str, text: str, *, role: Role = Role.LOG) -> str:
        """A log span of a row; returns its key."""
        row = frame.row
        return self.steps.add(
            self.prefix + key,
            SpanKind.LOG,
            role,
            frame.agent,
            text,
            place=row.place,
            name=row.name or None,
            parent=frame.within,
            start=row.start,
            end=row.end,
            status=SpanStatus.ERROR if row.error is not None else row.status,
        )


def asked_of(row: Row) -> tuple[Message, ...]:
    """What a model was asked: its messages, else its input as one."""
    if row.asked or row.input is None:
        return row.asked
    return ({"role": "user", "content": _content(row.input)},)


def answered_of(row: Row) -> tuple[Message, ...]:
    """What a model answered: its messages, else its output as one."""
    if row.answered or row.output is None:
        return row.answered
    return ({"role": "assistant", "content": _content(row.output)},)


def _content(value: object) -> str:
    return value if isinstance(value, str) else plain_text(value) or dump_text(value)
