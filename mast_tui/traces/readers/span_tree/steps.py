"""The timeline of a run from the rows that a tracing tool kept of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mast_tui.traces.index.document import StepList
from mast_tui.traces.io.json_values import as_text, dump_text
from mast_tui.traces.model import Role, SpanKind
from mast_tui.traces.readers.span_tree.board import Board, Frame, asked_of
from mast_tui.traces.readers.span_tree.builder import Row, RowKind
from mast_tui.traces.readers.span_tree.calls import ModelRows, ToolRows
from mast_tui.traces.readers.span_tree.texts import holds, plain_text
from mast_tui.traces.readers.span_tree.tree import RowTree

_NOBODY: Final = "agent"
_LAST_STEPS: Final = 6


@dataclass(frozen=True, slots=True)
class Observed:
    """The spans of a run, and by row id the key of the span that stands for the row.

    A row that shows nothing goes by the first span under it, else by the span it belongs to.
    """

    steps: StepList
    keys: Mapping[str, str]


def observed_steps(
    rows: Sequence[Row],
    *,
    service: str | None = None,
    prefix: str = "",
    every_row: bool = False,
) -> Observed:
    """Make the spans of one run from its rows, which may come in any order.

    Rows are read as a tree: parents before children, children by start time, then as they stand
    in ``rows``. ``service`` is who acts where neither a row nor an agent's row above it tells;
    ``prefix`` goes before every key (``<thread id>/``).

    - A model's row shows of ``asked`` what the run has not shown before, then ``answered``. Its
      ``input`` and ``output`` take the place of messages that are missing. Tokens and an error
      are on its last span. Of models' rows within each other the innermost with content counts.
    - A tool's row answers the call that a model's row showed (same ``call_id``, else same name
      and arguments), or shows the call itself; its result comes after what is under it. A history
      that repeats that result shows nothing.
    - An agent's row is a ``log`` span ``agent NAME begins``; what is under it has it for parent.
    - Any other row is a ``log`` span where it ``speaks`` or failed by itself, or where there are
      no other kinds of rows at all. Of a root the input and the output are shown as messages
      where nothing under it tells them.

    Keys: ``<row id>`` for the row's own span (agent, log, a model's row without messages, the
    result of a tool without a call id), ``<row id>/call``, ``<row id>/input``, ``<row
    id>/output``, ``<row id>/error``, ``<row id>/asked/3`` and ``<row id>/answered/0`` with
    ``MessageMapper``'s pointer behind it; calls and results with a call id are ``<call id>:call``
    and ``<call id>:result``. Places are those of the rows.

    With ``every_row`` each row has a span under its bare id, for labels that name rows: call ids
    are not used in keys, the last span of a model's answer has the bare id, and a row that would
    be left out is a ``log`` span with its name.
    """
    return _Timeline(RowTree(rows), service, prefix, every_row).read()


class _Timeline:
    def __init__(
        self, tree: RowTree, service: str | None, prefix: str, every_row: bool = False
    ) -> None:
        self._board = Board(tree, prefix, every_row)
        self._models = ModelRows(self._board)
        self._tools = ToolRows(self._board)
        self._service = as_text(service)
        self._keys: dict[str, str] = {}
        self._frames: list[Frame] = []
        self._only_others = all(visit.row.kind is RowKind.OTHER for visit in tree.visits)

    def read(self) -> Observed:
        for number, visit in enumerate(self._board.tree.visits):
            while self._frames and self._frames[-1].last < number:
                self._leave()
            frame = self._frame(visit.row, number, number + visit.size)
            match visit.row.kind:
                case RowKind.MODEL:
                    self._models.enter(frame)
                case RowKind.TOOL:
                    self._tools.enter(frame)
                case RowKind.AGENT:
                    self._enter_agent(frame)
                case RowKind.OTHER:
                    self._enter_other(frame)
            self._frames.append(frame)
        while self._frames:
            self._leave()
        return Observed(self._board.steps, self._keys)

    def _frame(self, row: Row, number: int, last: int) -> Frame:
        above = self._frames[-1] if self._frames else None
        acting = above.acting if above else None
        if row.kind is RowKind.AGENT:
            agent = as_text(row.agent) or as_text(row.name) or acting or _NOBODY
        else:
            agent = as_text(row.agent) or acting or self._service or _NOBODY
        frame = Frame(row, number, last, len(self._board.steps), agent, output=row.output)
        frame.acting = agent if row.kind is RowKind.AGENT else acting
        if above is not None:
            frame.within, frame.tool, frame.in_model = above.within, above.tool, above.in_model
        return frame

    def _leave(self) -> None:
        frame = self._frames.pop()
        row = frame.row
        match row.kind:
            case RowKind.TOOL:
                self._tools.leave(frame)
            case RowKind.MODEL:
                self._models.leave(frame)
            case RowKind.AGENT:
                self._output(frame)
                self._own_error(frame)
            case RowKind.OTHER:
                self._leave_other(frame)
        key = frame.own
        if key is None and len(self._board.steps) > frame.before:
            key = self._board.steps.steps[frame.before].key
        if (key := key or frame.within) is not None:
            self._keys.setdefault(row.id, key)

    def _enter_agent(self, frame: Frame) -> None:
        row = frame.row
        if self._frames and self._frames[-1].acting == frame.agent:
            self._board.mark(frame)
            return
        lines = [f"agent {frame.agent} begins"]
        told_here = self._untold_input(frame)
        if told_here is not None and self._frames:
            lines.append(told_here)
        frame.own = frame.within = self._board.log(
            frame, row.id, "\n\n".join(lines), role=Role.AGENT
        )
        if told_here is not None and not self._frames:
            self._board.message(frame, "input", told_here, Role.USER)

    def _enter_other(self, frame: Frame) -> None:
        row = frame.row
        if self._only_others:
            frame.own = frame.within = self._board.log(frame, row.id, _record(row))
        elif row.speaks:
            if frame.last == frame.number:
                frame.own = self._board.log(frame, row.id, _record(row))
        else:
            self._board.mark(frame)
            told_here = None if self._frames else self._untold_input(frame)
            if told_here is not None:
                self._board.message(frame, "input", told_here, Role.USER)

    def _leave_other(self, frame: Frame) -> None:
        if self._only_others:
            return
        if frame.row.speaks:
            if frame.own is None:
                frame.own = self._board.log(frame, frame.row.id, _record(frame.row))
            return
        if not self._frames:
            self._output(frame)
        self._own_error(frame)

    def _own_error(self, frame: Frame) -> None:
        row = frame.row
        if self._board.tree.fails_by_itself(frame.number):
            key = f"{row.id}/error" if frame.own else row.id
            own = self._board.log(frame, key, row.error or f"{row.name} failed")
            frame.own = frame.own or own

    def _untold_input(self, frame: Frame) -> str | None:
        """What went into a row, where it is a text and the first model under it does not tell."""
        row = frame.row
        if row.input is None:
            return None
        model = self._board.tree.first_model(frame.number)
        text = plain_text(row.input)
        if model is None or not asked_of(model):
            return text or as_text(dump_text(row.input))
        if (
            text is None
            or self._board.parts.content(SpanKind.MESSAGE, text) in self._board.history.shown
        ):
            return None
        parts = [part for message in asked_of(model) for part in self._board.parts.of(message)]
        return None if holds(text, (part.step.text for part in parts)) else text

    def _output(self, frame: Frame) -> None:
        """What came out of a row, where nothing under it tells that."""
        row = frame.row
        if row.output is None:
            return
        text = plain_text(row.output)
        if text is None and self._board.tree.first_model(frame.number) is None:
            text = as_text(dump_text(row.output))
        if (
            text is None
            or self._board.parts.content(SpanKind.MESSAGE, text) in self._board.history.shown
        ):
            return
        under = self._board.steps.steps[max(frame.before, len(self._board.steps) - _LAST_STEPS) :]
        if not holds(text, (step.text for step in under)):
            self._board.message(frame, "output", text, Role.AGENT)


def _record(row: Row) -> str:
    """What a row that stands for itself says: what went in, what came out, what went wrong."""
    told = (
        plain_text(row.input) or dump_text(row.input),
        plain_text(row.output) or dump_text(row.output),
        row.error or "",
    )
    return "\n\n".join(text for text in told if text.strip()) or row.name
