"""The calls of models and of tools among a run's rows, as spans."""

from __future__ import annotations

from typing import Final

from mast_tui.traces.io.json_values import dump_text
from mast_tui.traces.model import Role, SpanKind, SpanStatus
from mast_tui.traces.readers.span_tree.board import Board, Frame, answered_of, asked_of
from mast_tui.traces.readers.span_tree.builder import Row
from mast_tui.traces.readers.span_tree.history import Call, Part, canonical
from mast_tui.traces.readers.span_tree.texts import output_text
from mast_tui.traces.readers.span_tree.tree import tells

_NAMELESS: Final = frozenset({"assistant", "agent", "ai", "model"})


class ModelRows:
    """Shows the calls of models: what was new to them, and what they answered."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def enter(self, frame: Frame) -> None:
        """Show what is new in the call, unless a row under it tells it."""
        row = frame.row
        inner = self._board.tree.first_model(frame.number)
        frame.hidden = inner is not None or (frame.in_model and not tells(row))
        frame.in_model = frame.in_model or tells(row)
        if not frame.hidden:
            self._ask(frame)
            self._answer(frame)
            return
        self._board.mark(frame)
        if inner is not None and not inner.asked:
            self._ask(frame)

    def leave(self, frame: Frame) -> None:
        """Show of a row around another model's what that one did not tell."""
        if not frame.hidden:
            return
        said = [
            part.content
            for message in answered_of(frame.row)
            for part in self._board.parts.of(message)
        ]
        if said and not any(content in self._board.history.shown for content in said):
            self._answer(frame)

    def _ask(self, frame: Frame) -> None:
        row = frame.row
        keys: list[str] = []
        parts: list[Part] = []
        for number, message in enumerate(asked_of(row)):
            for part in self._board.parts.of(message):
                keys.append(f"{row.id}/asked/{number}")
                parts.append(part)
        for new in self._board.history.ask(parts, frame.agent):
            part = parts[new.number]
            self._show(frame, part, self._key(keys[new.number], part), new.node, call=new.call)

    def _answer(self, frame: Frame) -> None:
        row = frame.row
        keys: list[str] = []
        parts: list[Part] = []
        for number, message in enumerate(answered_of(row)):
            for part in self._board.parts.of(message):
                keys.append(f"{row.id}/answered/{number}")
                parts.append(part)
        places = self._board.history.answer(parts)
        for number, (part, node) in enumerate(zip(parts, places, strict=True), 1):
            own_key = row.id if number == len(parts) and self._board.every_row else None
            key = own_key or self._key(keys[number - 1], part)
            frame.own = self._show(frame, part, key, node, answered=True)
        last = frame.own
        if last is None or row.error is not None:
            text = row.error or "the answer was not recorded"
            last = self._board.log(frame, row.id if last is None else f"{row.id}/error", text)
        frame.own = frame.own or last
        self._board.steps.amend(last, tokens=row.tokens)

    def _key(self, message: str, part: Part) -> str:
        """The key of a message's part: by the call's id where that counts, else by its place."""
        if part.call_id is None or self._board.every_row:
            pointer = "" if part.call_id is None else f"/{part.call_id}"
            return message + (pointer or part.step.key)
        kind = "call" if part.step.kind is SpanKind.TOOL_CALL else "result"
        return f"{part.call_id}:{kind}"

    def _show(
        self,
        frame: Frame,
        part: Part,
        key: str,
        node: int,
        *,
        answered: bool = False,
        call: Call | None = None,
    ) -> str:
        """Add the span of a part of a message; returns its key."""
        row, step = frame.row, part.step
        agent, parent, status = step.agent, frame.within, step.status
        if answered or (step.role is Role.AGENT and agent in _NAMELESS):
            agent = frame.agent
        if answered and status is SpanStatus.UNKNOWN:
            status = row.status
        if step.kind is SpanKind.TOOL_RESULT and call is not None:
            agent, parent = call.agent, call.key
        shown = self._board.steps.add(
            self._board.prefix + key,
            step.kind,
            step.role,
            agent,
            step.text,
            place=row.place,
            name=step.name or (call.name if call else None),
            parent=parent,
            start=row.start if step.start is None else step.start,
            end=row.end if answered else None,
            status=status,
        )
        self._board.history.shown.add(part.content)
        if step.kind is SpanKind.TOOL_CALL:
            made = Call(shown, agent, step.name, not canonical(step.text))
            self._board.calls.asked(made, part.call_id, step.text)
            self._board.history.show_call(node, made)
        elif step.kind is SpanKind.TOOL_RESULT and call is not None:
            call.result = shown
        return shown


class ToolRows:
    """Shows the calls of tools: each beside the model's call that it answers."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def enter(self, frame: Frame) -> None:
        """Find the call that the row carried out, or show it."""
        row, outer = frame.row, frame.tool
        if outer is not None and _same_call(outer.row, row):
            frame.hidden = True
            outer.output = row.output if outer.output is None else outer.output
            self._board.mark(frame)
            return
        frame.tool = frame
        text = dump_text(row.input)
        call = self._board.calls.of_row(row.name, row.input, row.call_id)
        if call is None:
            content = self._board.parts.content(SpanKind.TOOL_CALL, text, row.name)
            key = self._board.steps.add(
                self._board.prefix + self._key(row, "call", f"{row.id}/call"),
                SpanKind.TOOL_CALL,
                Role.AGENT,
                frame.agent,
                text,
                place=row.place,
                name=row.name,
                parent=frame.within,
                start=row.start,
                end=row.end,
            )
            call = Call(key, frame.agent, row.name, not canonical(text))
            self._board.calls.performed(call, row.call_id, text)
            self._board.history.shown.add(content)
        frame.call, frame.within = call, call.key

    def leave(self, frame: Frame) -> None:
        """Show the result."""
        row, call = frame.row, frame.call
        if call is None:
            return
        text = "" if frame.output is None else output_text(frame.output)
        if row.error is not None and row.error not in text:
            text = f"{text}\n{row.error}" if text else row.error
        frame.own = call.result or call.key
        self._board.steps.amend(call.key, end=row.end)
        if frame.output is None and row.error is None:
            if row.status is SpanStatus.ERROR:
                self._board.steps.amend(call.key, status=row.status)
            if self._board.every_row:
                frame.own = self._board.log(frame, row.id, f"{row.name}: no output was recorded")
            return
        content = self._board.parts.content(SpanKind.TOOL_RESULT, text)
        if (
            call.result is not None
            and content in self._board.history.shown
            and not self._board.every_row
        ):
            return
        self._board.history.shown.add(content)
        call.result = frame.own = self._board.steps.add(
            self._board.prefix + self._key(row, "result", row.id),
            SpanKind.TOOL_RESULT,
            Role.TOOL,
            call.agent,
            text,
            place=row.place,
            name=row.name,
            parent=call.key,
            start=row.start,
            end=row.end,
            status=SpanStatus.ERROR if row.error is not None else row.status,
        )

    def _key(self, row: Row, part: str, without: str) -> str:
        return without if self._board.every_row or not row.call_id else f"{row.call_id}:{part}"


def _same_call(outer: Row, row: Row) -> bool:
    """Whether a tool's row within another is the same execution, recorded by another library."""
    if outer.name != row.name:
        return False
    return row.input is None or canonical(outer.input) == canonical(row.input)
