"""The timeline of a run from the rows that a tracing tool kept of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from mast_tui.traces.index.document import More, StepList
from mast_tui.traces.io.json_values import as_text, dump_text
from mast_tui.traces.model import Problem, Role, SpanKind, SpanStatus
from mast_tui.traces.readers.chat.values import message_text
from mast_tui.traces.readers.json_fields import fields_of, json_in, names, value_in
from mast_tui.traces.readers.span_tree.history import (
    Calls,
    MessagePart,
    Parts,
    ShownCall,
    ShownHistory,
    canonical_arguments,
)
from mast_tui.traces.readers.span_tree.messages import last_answer
from mast_tui.traces.readers.span_tree.rows import Message, RowKind, RowTree, SpanRow, has_messages

_DEFAULT_AGENT: Final = "agent"
_LAST_STEPS: Final = 6
_MOST_STEPS: Final = 200
_MOST_TEXTS: Final = 20
_NAMELESS: Final = frozenset({"assistant", "agent", "ai", "model"})


def observed_steps(
    rows: Sequence[SpanRow],
    *,
    service: str | None = None,
    every_row: bool = False,
    problems: list[Problem] | None = None,
) -> StepList:
    """Make the spans of one run from its rows, which may come in any order.

    Rows are read as a tree: parents before children, children by start time, then in the order of
    ``rows``.

    - A model's row shows of ``asked`` what the run has not shown before, then ``answered``. Its
      ``input`` and ``output`` take the place of messages that are missing. Tokens and an error
      are on its last span. Of models' rows within each other the innermost with content counts.
    - A tool's row answers the call that a model's row showed (same ``call_id``, else same name
      and arguments), or shows the call itself; its result comes after what is under it. A history
      that repeats that result shows nothing.
    - An agent's row is a ``log`` span ``agent NAME begins``; what is under it has it for parent.
    - Any other row is a ``log`` span where it ``speaks`` or failed by itself, or where there are
      no other kinds of rows at all. Of a root the input and the output are shown as messages
      where nothing under it has them.
    - The system prompt beside the messages of an agent's row or a root is a message where the
      first model under it does not have it.

    Keys: ``<row id>`` for the row's own span (agent, log, a model's row without messages, the
    result of a tool without a call id), ``<row id>/call``, ``<row id>/instructions``,
    ``<row id>/input``, ``<row id>/output``, ``<row id>/error``, ``<row id>/asked/3`` and
    ``<row id>/answered/0`` with the pointer to a piece of the message behind it; calls and results
    with a call id are ``<call id>:call`` and ``<call id>:result``. Places are those of the rows.

    Args:
        rows: The rows of the run.
        service: The agent where neither a row nor an agent's row above it names one.
        every_row: Whether each row has a span under its bare id, for labels that name rows: call
            ids are not used in keys, the last span of a model's answer has the bare id, and a row
            that would be left out is a ``log`` span with its name.
        problems: The list to which problems of messages are added.
    """
    timeline = _Timeline(RowTree(rows), service, every_row)
    steps = timeline.read()
    if problems is not None:
        problems += timeline.problems
    return steps


@dataclass(slots=True)
class _Frame:
    """An open row, under which rows are being read.

    ``within`` is the key of the span to which what is under the row belongs, ``acting`` the name of
    the nearest agent's row, and ``tool`` the nearest tool's row, this one counted. ``has_span``
    says whether the row itself has a span, ``first_step`` how many steps there were before it.
    """

    row: SpanRow
    number: int
    last: int
    first_step: int
    agent: str
    within: str | None = None
    acting: str | None = None
    tool: _Frame | None = None
    in_model: bool = False
    hidden: bool = False
    has_span: bool = False
    call: ShownCall | None = None
    output: object = None


class _Timeline:
    """The spans of a run so far, and the rows that are open."""

    def __init__(self, tree: RowTree, service: str | None, every_row: bool) -> None:
        self.problems: list[Problem] = []
        self._tree = tree
        self._every_row = every_row
        self._service = as_text(service)
        self._steps = StepList()
        self._parts = Parts()
        self._calls = Calls()
        self._history = ShownHistory(self._calls)
        self._early_results: dict[str, str] = {}
        self._frames: list[_Frame] = []
        self._only_others = all(row.kind is RowKind.OTHER for row in tree.rows)

    def read(self) -> StepList:
        for number, row in enumerate(self._tree.rows):
            while self._frames and self._frames[-1].last < number:
                self._leave()
            frame = self._frame(row, number, number + self._tree.sizes[number])
            match row.kind:
                case RowKind.MODEL:
                    self._enter_model(frame)
                case RowKind.TOOL:
                    self._enter_tool(frame)
                case RowKind.AGENT:
                    self._enter_agent(frame)
                case RowKind.OTHER:
                    self._enter_other(frame)
            self._frames.append(frame)
        while self._frames:
            self._leave()
        return self._steps

    def _frame(self, row: SpanRow, number: int, last: int) -> _Frame:
        above = self._frames[-1] if self._frames else None
        acting = above.acting if above else None
        if row.kind is RowKind.AGENT:
            agent = as_text(row.agent) or as_text(row.name) or acting or _DEFAULT_AGENT
        else:
            agent = as_text(row.agent) or acting or self._service or _DEFAULT_AGENT
        frame = _Frame(row, number, last, len(self._steps), agent, output=row.output)
        frame.acting = agent if row.kind is RowKind.AGENT else acting
        if above is not None:
            frame.within = above.within
            frame.tool = above.tool
            frame.in_model = above.in_model
        return frame

    def _leave(self) -> None:
        frame = self._frames.pop()
        match frame.row.kind:
            case RowKind.TOOL:
                self._leave_tool(frame)
            case RowKind.MODEL:
                self._leave_model(frame)
            case RowKind.AGENT:
                self._output(frame)
                self._own_error(frame)
            case RowKind.OTHER:
                self._leave_other(frame)

    def _enter_agent(self, frame: _Frame) -> None:
        row = frame.row
        if self._frames and self._frames[-1].acting == frame.agent:
            self._mark(frame)
            return
        lines = [f"agent {frame.agent} begins"]
        unshown = self._unshown_input(frame)
        if unshown is not None and self._frames:
            lines.append(unshown)
        frame.within = self._log(frame, row.id, "\n\n".join(lines), role=Role.AGENT)
        frame.has_span = True
        self._instructions(frame)
        if unshown is not None and not self._frames:
            self._message(frame, "input", unshown, Role.USER)

    def _enter_other(self, frame: _Frame) -> None:
        row = frame.row
        if self._only_others:
            frame.within = self._log(frame, row.id, _record(row))
        elif row.speaks:
            if frame.last == frame.number:
                self._log(frame, row.id, _record(row))
        else:
            self._mark(frame)
            if self._frames:
                return
            self._instructions(frame)
            unshown = self._unshown_input(frame)
            if unshown is not None:
                self._message(frame, "input", unshown, Role.USER)

    def _leave_other(self, frame: _Frame) -> None:
        if self._only_others:
            return
        if frame.row.speaks:
            if frame.last > frame.number:
                self._log(frame, frame.row.id, _record(frame.row))
            return
        if not self._frames:
            self._output(frame)
        self._own_error(frame)

    def _own_error(self, frame: _Frame) -> None:
        row = frame.row
        if self._tree.fails_by_itself(frame.number):
            key = f"{row.id}/error" if frame.has_span else row.id
            self._log(frame, key, row.error or f"{row.name} failed")

    def _instructions(self, frame: _Frame) -> None:
        """Show the system prompt of a row, unless the first model under it has it."""
        row = frame.row
        if row.instructions is None:
            return
        content = self._parts.content(SpanKind.MESSAGE, row.instructions)
        model = self._tree.first_model(frame.number)
        if model is not None and any(
            part.content == content
            for message in input_messages(model)
            for part in self._parts.parts_of(message)
        ):
            return
        if self._history.show_instructions(frame.agent, content):
            more = More(place=row.location, parent=frame.within, start=row.start)
            key = f"{row.id}/instructions"
            self._steps.add(key, SpanKind.MESSAGE, Role.SYSTEM, "system", row.instructions, **more)

    def _unshown_input(self, frame: _Frame) -> str | None:
        """Return a row's input, if it is a text that the first model under it does not have."""
        row = frame.row
        if row.input is None:
            return None
        model = self._tree.first_model(frame.number)
        text = plain_text(row.input)
        if model is None or not input_messages(model):
            return text or as_text(dump_text(row.input))
        if text is None or self._was_shown(text):
            return None
        parts = [
            part for message in input_messages(model) for part in self._parts.parts_of(message)
        ]
        return None if occurs_in(text, (part.piece.text for part in parts)) else text

    def _output(self, frame: _Frame) -> None:
        """Show the output of a row, unless a span under it has it."""
        row = frame.row
        text = None if row.output is None else self._unshown_output(frame)
        if text is None or self._was_shown(text):
            return
        under = self._steps.steps[max(frame.first_step, len(self._steps) - _LAST_STEPS) :]
        if not occurs_in(text, (step.text for step in under)):
            self._message(frame, "output", text, Role.AGENT)

    def _unshown_output(self, frame: _Frame) -> str | None:
        """Return a row's output as text: its only or last message, or all of it where that is new.

        An object beside calls of a model is all of it only for a root: others hold a graph's state.
        """
        output = frame.row.output
        if (text := plain_text(output)) is not None:
            return text
        if self._tree.first_model(frame.number) is None:
            return as_text(dump_text(output))
        if self._frames:
            return None
        if messages := last_answer(output):
            parts = [part for message in messages for part in self._parts.parts_of(message)]
            texts = [part.piece.text for part in parts if part.piece.kind is SpanKind.MESSAGE]
            return as_text("\n".join(texts))
        inner_texts = list(islice(texts_within(value_in(output)), _MOST_TEXTS))
        shown_texts = [step.text for step in self._steps.steps[-_MOST_STEPS:]]
        if not inner_texts or all(occurs_in(text, shown_texts) for text in inner_texts):
            return None
        return as_text(dump_text(output))

    def _enter_model(self, frame: _Frame) -> None:
        """Show what is new in the call, unless a row under it has it."""
        row = frame.row
        inner = self._tree.first_model(frame.number)
        frame.hidden = inner is not None or (frame.in_model and not has_messages(row))
        frame.in_model = frame.in_model or has_messages(row)
        if not frame.hidden:
            self._show_request(frame)
            self._show_answer(frame)
            return
        self._mark(frame)
        if inner is not None and not inner.asked:
            self._show_request(frame)

    def _leave_model(self, frame: _Frame) -> None:
        """Show the answer of a row around another model's row, unless that one has shown it."""
        if not frame.hidden:
            return
        contents = [
            part.content
            for message in output_messages(frame.row)
            for part in self._parts.parts_of(message)
        ]
        if contents and not any(content in self._history.shown for content in contents):
            self._show_answer(frame)

    def _show_request(self, frame: _Frame) -> None:
        keyed = self._parts_of(frame.row, "asked", input_messages(frame.row))
        for new in self._history.ask([part for _key, part in keyed], frame.agent):
            self._show(frame, *keyed[new.number], new.node, call=new.call)

    def _show_answer(self, frame: _Frame) -> None:
        row = frame.row
        keyed = self._parts_of(row, "answered", output_messages(row))
        if keyed and self._every_row:
            keyed[-1] = row.id, keyed[-1][1]
        nodes = self._history.answer([part for _, part in keyed])
        last = None
        for (key, part), node in zip(keyed, nodes, strict=True):
            call = None
            if part.piece.kind is SpanKind.TOOL_CALL and not self._every_row:
                call = self._calls.performed_before(part.piece.call_id)
            if call is None:
                last = self._show(frame, key, part, node, answered=True)
            else:  # the tool began, or was exported, before the answer that calls it
                last = call.key
                self._history.show_call(node, call)
        if last is None or row.error is not None:
            text = row.error or "the answer was not recorded"
            last = self._log(frame, row.id if last is None else f"{row.id}/error", text)
        self._steps.amend(last, tokens=row.tokens)

    def _parts_of(
        self, row: SpanRow, side: str, messages: Sequence[Message]
    ) -> list[tuple[str, MessagePart]]:
        """Return the parts of messages, each with its key."""
        keyed = []
        for number, message in enumerate(messages):
            for part in self._parts.parts_of(message):
                key = f"{row.id}/{side}/{number}{part.piece.key_suffix}"
                if part.piece.call_id is not None and self._every_row:
                    key = f"{row.id}/{side}/{number}/{part.piece.call_id}"
                elif part.piece.call_id is not None:
                    kind = "call" if part.piece.kind is SpanKind.TOOL_CALL else "result"
                    key = f"{part.piece.call_id}:{kind}"
                keyed.append((key, part))
        return keyed

    def _show(
        self,
        frame: _Frame,
        key: str,
        part: MessagePart,
        node: int,
        *,
        answered: bool = False,
        call: ShownCall | None = None,
    ) -> str:
        """Add the span of a part of a message; return its key."""
        row = frame.row
        piece = part.piece
        agent = piece.agent
        parent = frame.within
        status = piece.status
        if answered or (piece.role is Role.AGENT and agent in _NAMELESS):
            agent = frame.agent
        if answered and status is SpanStatus.UNKNOWN:
            status = row.status
        if piece.kind is SpanKind.TOOL_RESULT and call is not None:
            agent = call.agent
            parent = call.key
        more = More(
            place=row.location,
            name=piece.name or (call.name if call else None),
            parent=parent,
            start=row.start if part.start is None else part.start,
            end=row.end if answered else None,
            status=status,
        )
        key = self._steps.add(key, piece.kind, piece.role, agent, piece.text, **more)
        self._history.shown.add(part.content)
        if piece.problem is not None:
            self.problems.append(Problem(row.location, piece.problem))
        if piece.kind is SpanKind.TOOL_CALL:
            shown_call = ShownCall(
                key,
                agent,
                piece.name,
                has_id=piece.call_id is not None,
                bare=not canonical_arguments(piece.text),
            )
            self._calls.add_model_call(shown_call, piece.call_id, piece.text)
            self._history.show_call(node, shown_call)
            early = self._early_results.pop(piece.call_id or "", None)
            if early is not None:
                self._steps.move_after_call(early, key)
                shown_call.result = early
        elif piece.kind is SpanKind.TOOL_RESULT and call is not None:
            call.result = key
        elif piece.kind is SpanKind.TOOL_RESULT and piece.call_id is not None:
            self._early_results[piece.call_id] = key
        return key

    def _enter_tool(self, frame: _Frame) -> None:
        """Find the call that a row carried out, or show it."""
        row = frame.row
        outer = frame.tool
        if outer is not None and _same_call(outer.row, row):
            frame.hidden = True
            outer.output = row.output if outer.output is None else outer.output
            self._mark(frame)
            return
        frame.tool = frame
        text = dump_text(row.input)
        call = self._calls.of_row(row.name, row.input, row.call_id)
        if call is None:
            content = self._parts.content(SpanKind.TOOL_CALL, text, row.name)
            key = self._key_of_tool(row, "call", f"{row.id}/call")
            more = More(place=row.location, name=row.name, parent=frame.within)
            more |= More(start=row.start, end=row.end)
            key = self._steps.call(key, frame.agent, text, **more)
            call = ShownCall(
                key,
                frame.agent,
                row.name,
                has_id=row.call_id is not None,
                bare=not canonical_arguments(text),
            )
            self._calls.add_tool_call(call, row.call_id, text)
            self._history.shown.add(content)
        elif call.bare and canonical_arguments(text):
            # The model's answer was recorded without the arguments.
            self._steps.amend(call.key, text=text)
            call.bare = False
        frame.call = call
        frame.within = call.key

    def _leave_tool(self, frame: _Frame) -> None:
        """Show the result."""
        row = frame.row
        call = frame.call
        if call is None:
            return
        text = "" if frame.output is None else output_text(frame.output)
        if row.error is not None and row.error not in text:
            text = f"{text}\n{row.error}" if text else row.error
        self._steps.amend(call.key, end=row.end)
        if frame.output is None and row.error is None:
            if row.status is SpanStatus.ERROR:
                self._steps.amend(call.key, status=row.status)
            if self._every_row:
                self._log(frame, row.id, f"{row.name}: no output was recorded")
            return
        content = self._parts.content(SpanKind.TOOL_RESULT, text)
        if call.result is not None and content in self._history.shown and not self._every_row:
            return
        self._history.shown.add(content)
        more = More(place=row.location, name=row.name, parent=call.key)
        more |= More(start=row.start, end=row.end, status=_status(row))
        key = self._key_of_tool(row, "result", row.id)
        call.result = self._steps.result(key, call.agent, text, **more)

    def _key_of_tool(self, row: SpanRow, part: str, without: str) -> str:
        return without if self._every_row or not row.call_id else f"{row.call_id}:{part}"

    def _was_shown(self, text: str) -> bool:
        """Return whether a message with this text was shown."""
        return self._parts.content(SpanKind.MESSAGE, text) in self._history.shown

    def _mark(self, frame: _Frame) -> None:
        """Add a span with its name for a row without a text, where every row needs a span."""
        if self._every_row:
            frame.within = self._log(frame, frame.row.id, frame.row.name)
            frame.has_span = True

    def _message(self, frame: _Frame, part: str, text: str, role: Role) -> None:
        """Add a message that is a row's whole input or output."""
        row = frame.row
        self._history.shown.add(self._parts.content(SpanKind.MESSAGE, text))
        agent = frame.agent if role is Role.AGENT else "user"
        start = row.end if role is Role.AGENT else row.start
        more = More(place=row.location, parent=frame.within, start=start)
        key = f"{row.id}/{part}"
        self._steps.add(key, SpanKind.MESSAGE, role, agent, text, **more)

    def _log(self, frame: _Frame, key: str, text: str, *, role: Role = Role.LOG) -> str:
        """Add a log span of a row; return its key."""
        row = frame.row
        more = More(place=row.location, name=row.name or None, parent=frame.within)
        more |= More(start=row.start, end=row.end, status=_status(row))
        return self._steps.add(key, SpanKind.LOG, role, frame.agent, text, **more)


def _record(row: SpanRow) -> str:
    """Return a row's input, output and error as text."""
    texts = (
        plain_text(row.input) or dump_text(row.input),
        plain_text(row.output) or dump_text(row.output),
        row.error or "",
    )
    return "\n\n".join(text for text in texts if text.strip()) or row.name


def _status(row: SpanRow) -> SpanStatus:
    return row.status if row.error is None else SpanStatus.ERROR


def _same_call(outer: SpanRow, row: SpanRow) -> bool:
    """Return whether a tool's row within another is the same execution, traced twice."""
    if outer.name != row.name:
        return False
    return row.input is None or canonical_arguments(outer.input) == canonical_arguments(row.input)


def input_messages(row: SpanRow) -> tuple[Message, ...]:
    """Return the messages that a model was asked, else its input as one."""
    if row.asked or row.input is None:
        return row.asked
    return ({"role": "user", "content": _content(row.input)},)


def output_messages(row: SpanRow) -> tuple[Message, ...]:
    """Return the messages that a model answered, else its output as one."""
    if row.answered or row.output is None:
        return row.answered
    return ({"role": "assistant", "content": _content(row.output)},)


def _content(value: object) -> str:
    return value if isinstance(value, str) else plain_text(value) or dump_text(value)


_SAYING: Final = names("output input answer result response content text question query task")
_MCP_HEAD: Final = 40
_MCP_RESULT: Final = frozenset({"content", "isError", "is_error"})
_LOOKED_INTO: Final = 16 * 1024


def plain_text(value: object) -> str | None:
    """Return the text that an input or output is, or that is in its only or main field.

    None for anything with more structure than that, and for a blank text.
    """
    for _wrapping in range(3):
        if isinstance(value, str):
            parsed = json_in(value)
            if parsed is None:
                return as_text(value)
            value = parsed
        if not isinstance(value, Mapping):
            return None
        if len(value) == 1:
            (value,) = value.values()
        else:
            value = next((value[name] for name in _SAYING if as_text(value.get(name))), None)
    return None


def texts_within(value: object) -> Iterator[str]:
    """Yield the texts in a JSON value, deeper ones later."""
    waiting = deque([value])
    while waiting:
        value = waiting.popleft()
        if isinstance(value, str):
            if text := as_text(value):
                yield text
        elif isinstance(value, Mapping):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)


def output_text(value: object) -> str:
    """Return a tool's output as text: the texts of a list of parts, else all of it."""
    looks_wrapped = not isinstance(value, str) or '"content"' in value[:_MCP_HEAD]
    wrapped = fields_of(json_in(value)) if looks_wrapped else {}
    if isinstance(wrapped.get("content"), list) and wrapped.keys() <= _MCP_RESULT:
        value = wrapped["content"]
    if isinstance(value, list) and value and all(map(_is_part, value)):
        return message_text(value)
    return dump_text(value)


def occurs_in(text: str, texts: Iterable[str]) -> bool:
    """Return whether one of the texts is ``text``, or has it near its beginning.

    Args:
        text: The text that is searched for.
        texts: The texts to search. Of a long one only the beginning is searched, so that the cost
            stays within that of reading ``text``.
    """
    needle = text.strip()
    return any(other.find(needle, 0, len(needle) + _LOOKED_INTO) >= 0 for other in texts)


def _is_part(value: object) -> bool:
    """Return whether a value is a text part, or a part of a result as Bedrock writes it."""
    if not isinstance(value, Mapping):
        return False
    if value.get("type") == "text" or value.keys() == {"text"}:
        return isinstance(value.get("text"), str)
    return value.keys() == {"json"}
