"""The timeline of a run from the rows of a tracing tool."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from mast_tui.traces.index.document import StepDetails, StepList
from mast_tui.traces.io.json_values import as_text, dump_text
from mast_tui.traces.model import Problem, Role, SpanKind, SpanStatus, Trace, TraceMeta
from mast_tui.traces.readers.chat.values import message_text
from mast_tui.traces.readers.document_traces import RunOrigin, trace_of_steps
from mast_tui.traces.readers.json_fields import fields_of, json_in, names, value_in
from mast_tui.traces.readers.run_facts import task_of
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
from mast_tui.traces.result_status import worst_status

_DEFAULT_AGENT: Final = "agent"
_COMPARED_STEPS_OF_ROW: Final = 6
"""The number of last steps under a row that may contain its output."""

_COMPARED_STEPS: Final = 200
"""The number of last steps of the run that may contain a root's output."""

_COMPARED_TEXTS: Final = 20
"""The number of texts of a root's output to search for."""

_GENERIC_AGENTS: Final = frozenset({"assistant", "agent", "ai", "model"})
"""Names in messages that do not identify an agent."""


def observed_steps(
    rows: Sequence[SpanRow],
    *,
    service: str | None = None,
    every_row: bool = False,
    problems: list[Problem] | None = None,
) -> StepList:
    """Make the spans of one run from its rows, which may come in any order.

    Rows are read as a tree: parents before children, children by start time.

    - A model's row shows the new messages of ``request``, then ``answer``. Its last span has the
      tokens and an error. Of nested models' rows, only the innermost row with content is shown.
    - A tool's row answers the call in a model's row with the same ``call_id``, else with the same
      name and arguments. Without such a call, the tool's row shows the call itself. The result
      comes after the spans of the rows under it, and is not repeated for later requests.
    - An agent's row is a ``log`` span ``agent NAME begins``, the parent of the spans under it.
    - Any other row is a ``log`` span if it has readable output, if it failed by itself, or if all
      rows are of this kind. A root's input and output are messages, unless a row under it has them.
    - The system prompt of an agent's row or a root is a message, unless the first model under it
      has it.

    Keys are ``<row id>`` for the row's own span (agent, log, a model's row without messages, the
    result of a tool without a call id), and ``<row id>`` followed by ``/call``, ``/instructions``,
    ``/input``, ``/output``, ``/error``, or by ``/asked/3`` or ``/answered/0`` and the pointer to a
    piece of the message. Calls and results with a call id are ``<call id>:call`` and
    ``<call id>:result``.

    Args:
        rows: The rows of the run.
        service: The default agent, for rows without an agent of their own or above them.
        every_row: Whether each row has a span under its bare id, for labels that name rows. Then
            call ids are not used in keys, and the last span of a model's answer has the bare id.
        problems: The list to which problems of messages are added.
    """
    timeline = _Timeline(RowTree(rows), service, every_row)
    steps = timeline.read()
    if problems is not None:
        problems += timeline.problems
    return steps


def trace_of_rows(
    origin: RunOrigin,
    rows: Sequence[SpanRow],
    meta: TraceMeta,
    *,
    service: str | None = None,
    every_row: bool = False,
    problems: Iterable[Problem] = (),
) -> Trace:
    """Return the trace of one run from its rows, which also have the task and the model.

    Args:
        origin: The reader, the file and the identity of the run.
        rows: The rows of the run.
        meta: The other facts of the run; the default task is the first prompt.
        service: The default agent.
        every_row: Whether each row has a span whose key is the row's id; see ``observed_steps``.
        problems: The problems that reading the rows had.
    """
    problems = list(problems)
    steps = observed_steps(rows, service=service, every_row=every_row, problems=problems)
    model = next((row.model for row in rows if row.model), meta.model)
    meta = meta._replace(task=task_of(meta.task, steps=steps.steps), model=model)
    return trace_of_steps(origin, steps, meta, problems)


@dataclass(slots=True)
class _OpenRow:
    """A row whose descendants are being read.

    Attributes:
        row: The row.
        row_index: The index of the row in the tree.
        last_index: The index of the row's last descendant.
        step_count_before: The number of steps before the row.
        agent: The agent of the row's spans.
        parent_key: The key of the span that is the parent of the spans under the row.
        acting_agent: The agent of the nearest agent's row: this row or one above it.
        nearest_tool_row: The nearest tool's row: this row or one above it.
        is_in_model: Whether this row or a row above it is a model's row with content.
        is_hidden: Whether another model's row shows the messages of this model's row.
        has_span: Whether the row has a span of its own.
        call: The tool call that the row carried out.
        output: The output of the row, or of another record of the same execution.
    """

    row: SpanRow
    row_index: int
    last_index: int
    step_count_before: int
    agent: str
    parent_key: str | None = None
    acting_agent: str | None = None
    nearest_tool_row: _OpenRow | None = None
    is_in_model: bool = False
    is_hidden: bool = False
    has_span: bool = False
    call: ShownCall | None = None
    output: object = None

    @property
    def has_rows_under_it(self) -> bool:
        """True if the row has descendants."""
        return self.last_index > self.row_index

    def complete_by(self, inner_row: SpanRow) -> None:
        """Complete a tool's row by another record of the same execution.

        Args:
            inner_row: The other record, a row under this one.
        """
        self.output = inner_row.output if self.output is None else self.output
        status = worst_status(self.row.status, inner_row.status)
        self.row = replace(self.row, status=status, error=self.row.error or inner_row.error)


class _Timeline:
    """The spans of a run so far, and the rows that are open."""

    def __init__(self, tree: RowTree, service: str | None, every_row: bool) -> None:
        self.problems: list[Problem] = []
        self._tree = tree
        self._shows_every_row = every_row
        self._service = as_text(service)
        """The agent of rows for which no row names one."""
        self._steps = StepList()
        self._parts = Parts()
        self._calls = Calls()
        self._history = ShownHistory(self._calls)
        self._early_result_keys: dict[str, str] = {}
        """The keys of results without a shown call, by call id."""
        self._open_rows: list[_OpenRow] = []  # The row being read and the rows around it.
        self._are_all_rows_other = all(row.kind is RowKind.OTHER for row in tree.rows)

    def read(self) -> StepList:
        """Read all rows of the tree in order, and return the steps made from them."""
        for row_index, row in enumerate(self._tree.rows):
            while self._open_rows and self._open_rows[-1].last_index < row_index:
                self._leave_innermost_row()
            open_row = self._new_open_row(row, row_index)
            match row.kind:
                case RowKind.MODEL:
                    self._enter_model_row(open_row)
                case RowKind.TOOL:
                    self._enter_tool_row(open_row)
                case RowKind.AGENT:
                    self._enter_agent_row(open_row)
                case RowKind.OTHER:
                    self._enter_other_row(open_row)
            self._open_rows.append(open_row)
        while self._open_rows:
            self._leave_innermost_row()
        return self._steps

    def _new_open_row(self, row: SpanRow, row_index: int) -> _OpenRow:
        """Return a row as an open row, with the agent and the parent of the row around it."""
        outer = self._open_rows[-1] if self._open_rows else None
        acting_agent = outer.acting_agent if outer else None
        if row.kind is RowKind.AGENT:
            agent = as_text(row.agent) or as_text(row.name) or acting_agent or _DEFAULT_AGENT
        else:
            agent = as_text(row.agent) or acting_agent or self._service or _DEFAULT_AGENT

        last_index = row_index + self._tree.sizes[row_index]
        open_row = _OpenRow(row, row_index, last_index, len(self._steps), agent, output=row.output)
        open_row.acting_agent = agent if row.kind is RowKind.AGENT else acting_agent
        if outer is not None:
            open_row.parent_key = outer.parent_key
            open_row.nearest_tool_row = outer.nearest_tool_row
            open_row.is_in_model = outer.is_in_model
        return open_row

    def _leave_innermost_row(self) -> None:
        """Remove the innermost open row, and show its output and error unless a span has them."""
        open_row = self._open_rows.pop()
        match open_row.row.kind:
            case RowKind.TOOL:
                self._leave_tool_row(open_row)
            case RowKind.MODEL:
                self._leave_model_row(open_row)
            case RowKind.AGENT:
                self._show_output(open_row)
                self._show_own_error(open_row)
            case RowKind.OTHER:
                self._leave_other_row(open_row)

    def _enter_agent_row(self, open_row: _OpenRow) -> None:
        """Add the span ``agent NAME begins``, unless the row around it has the same agent."""
        row = open_row.row
        if self._open_rows and self._open_rows[-1].acting_agent == open_row.agent:
            self._add_name_span(open_row)
            return
        is_root = not self._open_rows
        lines = [f"agent {open_row.agent} begins"]
        # Below the root, the span has the input too. At the root, the input is a user's message.
        input_text = self._unshown_input(open_row)
        if input_text is not None and not is_root:
            lines.append(input_text)
        open_row.parent_key = self._add_log(open_row, row.id, "\n\n".join(lines), role=Role.AGENT)
        open_row.has_span = True
        self._show_instructions(open_row)
        if input_text is not None and is_root:
            self._add_message(open_row, "input", input_text, Role.USER)

    def _enter_other_row(self, open_row: _OpenRow) -> None:
        """Show a row of kind ``OTHER`` as a log span, or the system prompt and input of a root."""
        row = open_row.row
        if self._are_all_rows_other:
            open_row.parent_key = self._add_log(open_row, row.id, _row_text(row))
            return
        if row.has_readable_output:
            # With rows under it, the output is shown after those.
            if not open_row.has_rows_under_it:
                self._add_log(open_row, row.id, _row_text(row))
            return

        self._add_name_span(open_row)
        is_root = not self._open_rows
        if is_root:
            self._show_instructions(open_row)
            input_text = self._unshown_input(open_row)
            if input_text is not None:
                self._add_message(open_row, "input", input_text, Role.USER)

    def _leave_other_row(self, open_row: _OpenRow) -> None:
        """Show the output and the error of a row of kind ``OTHER`` that are not shown yet."""
        if self._are_all_rows_other:
            return
        if open_row.row.has_readable_output:
            if open_row.has_rows_under_it:
                self._add_log(open_row, open_row.row.id, _row_text(open_row.row))
            return
        is_root = not self._open_rows
        if is_root:
            self._show_output(open_row)
        self._show_own_error(open_row)

    def _show_own_error(self, open_row: _OpenRow) -> None:
        """Add a log span for the error of a row that failed by itself."""
        row = open_row.row
        if self._tree.fails_by_itself(open_row.row_index):
            key = f"{row.id}/error" if open_row.has_span else row.id
            self._add_log(open_row, key, row.error or f"{row.name} failed")

    def _show_instructions(self, open_row: _OpenRow) -> None:
        """Show the system prompt of a row, unless the first model under the row shows it."""
        row = open_row.row
        if row.instructions is None:
            return
        content = self._parts.content_number(SpanKind.MESSAGE, row.instructions)
        first_model = self._tree.first_model(open_row.row_index)
        request: tuple[Message, ...] = () if first_model is None else first_model.request
        request_parts = (part for message in request for part in self._parts.parts_of(message))
        if any(part.content == content for part in request_parts):
            return
        if self._history.record_prompt(open_row.agent, content):
            details = StepDetails(place=row.location, parent=open_row.parent_key, start=row.start)
            key = f"{row.id}/instructions"
            text = row.instructions
            self._steps.add(key, SpanKind.MESSAGE, Role.SYSTEM, "system", text, **details)

    def _unshown_input(self, open_row: _OpenRow) -> str | None:
        """Return a row's input as text; None if a message contains it.

        An input that is no plain text is assumed to be in the request of the first model under the
        row.
        """
        row = open_row.row
        if row.input is None:
            return None
        first_model = self._tree.first_model(open_row.row_index)
        request: tuple[Message, ...] = () if first_model is None else first_model.request
        text = plain_text(row.input)
        if not request:
            return text or as_text(dump_text(row.input))
        if text is None or self._is_message_shown(text):
            return None
        parts = [part for message in request for part in self._parts.parts_of(message)]
        return None if occurs_in(text, (part.piece.text for part in parts)) else text

    def _show_output(self, open_row: _OpenRow) -> None:
        """Show the output of a row, unless one of the last spans under the row contains it."""
        row = open_row.row
        text = None if row.output in _NO_OUTPUTS else self._unshown_output(open_row)
        if text is None or self._is_message_shown(text):
            return
        first_step = max(open_row.step_count_before, len(self._steps) - _COMPARED_STEPS_OF_ROW)
        if not occurs_in(text, (step.text for step in self._steps.steps[first_step:])):
            self._add_message(open_row, "output", text, Role.AGENT)

    def _unshown_output(self, open_row: _OpenRow) -> str | None:
        """Return a row's output as text; None if there is nothing to show.

        The output of a row within a graph is the graph's state, which is not shown. Of a root's
        output, only the last messages are shown, if it has any.
        """
        output = open_row.row.output
        if (text := plain_text(output)) is not None:
            return text
        if self._tree.first_model(open_row.row_index) is None:
            return as_text(dump_text(output))
        is_root = not self._open_rows
        if not is_root:
            return None
        if last_messages := last_answer(output):
            parts = [part for message in last_messages for part in self._parts.parts_of(message)]
            texts = [part.piece.text for part in parts if part.piece.kind is SpanKind.MESSAGE]
            return as_text("\n".join(texts))

        inner_texts = list(islice(texts_within(value_in(output)), _COMPARED_TEXTS))
        shown_texts = [step.text for step in self._steps.steps[-_COMPARED_STEPS:]]
        if not inner_texts or all(occurs_in(text, shown_texts) for text in inner_texts):
            return None
        return as_text(dump_text(output))

    def _enter_model_row(self, open_row: _OpenRow) -> None:
        """Show the new messages of a model's call.

        If several nested rows record one call, only the innermost row with messages is shown.
        """
        row = open_row.row
        # ``is_in_model`` is still that of the outer rows here.
        inner_model = self._tree.first_model(open_row.row_index)
        repeats_outer_row = open_row.is_in_model and not has_messages(row)
        open_row.is_hidden = inner_model is not None or repeats_outer_row
        open_row.is_in_model = open_row.is_in_model or has_messages(row)
        if not open_row.is_hidden:
            self._show_request(open_row)
            self._show_answer(open_row)
            return
        self._add_name_span(open_row)
        inner_model_lacks_request = inner_model is not None and not inner_model.request
        if inner_model_lacks_request:
            self._show_request(open_row)

    def _leave_model_row(self, open_row: _OpenRow) -> None:
        """Show the answer of a hidden model's row, unless another row has shown a part of it."""
        if not open_row.is_hidden:
            return
        contents = [
            part.content
            for message in open_row.row.answer
            for part in self._parts.parts_of(message)
        ]
        if contents and not any(content in self._history.shown_contents for content in contents):
            self._show_answer(open_row)

    def _show_request(self, open_row: _OpenRow) -> None:
        """Add a span for each part of a model's request that is new in the run."""
        keyed_parts = self._keyed_parts(open_row.row, "asked", open_row.row.request)
        parts = [part for _key, part in keyed_parts]
        for new_part in self._history.new_request_parts(parts, open_row.agent):
            key, part = keyed_parts[new_part.part_index]
            self._show_part(open_row, key, part, new_part.node, call=new_part.call)

    def _show_answer(self, open_row: _OpenRow) -> None:
        """Add the spans of a model's answer and of its error; the last span has the tokens."""
        row = open_row.row
        keyed_parts = self._keyed_parts(row, "answered", row.answer)
        if keyed_parts and self._shows_every_row:
            # The row's id is the key of the last span, because existing labels name the row.
            _key, last_part = keyed_parts[-1]
            keyed_parts[-1] = row.id, last_part

        nodes = self._history.add_answer([part for _key, part in keyed_parts])
        last_key = None
        for (key, part), node in zip(keyed_parts, nodes, strict=True):
            call = None
            if part.piece.kind is SpanKind.TOOL_CALL and not self._shows_every_row:
                call = self._calls.pop_row_call(part.piece.call_id)
            if call is None:
                # A tool that the vendor runs has its result in the model's answer.
                is_result = part.piece.kind is SpanKind.TOOL_RESULT
                answered_call = (
                    self._calls.by_id.get(part.piece.call_id or "") if is_result else None
                )
                last_key = self._show_part(
                    open_row, key, part, node, is_answer=True, call=answered_call
                )
            else:  # The tool's row has shown the call before.
                last_key = call.key
                self._history.set_call(node, call)

        if last_key is None or row.error is not None:
            text = row.error or "the answer was not recorded"
            key = row.id if last_key is None else f"{row.id}/error"
            last_key = self._add_log(open_row, key, text)
        self._steps.amend(last_key, tokens=row.tokens)

    def _keyed_parts(
        self, row: SpanRow, key_part: str, messages: Sequence[Message]
    ) -> list[tuple[str, MessagePart]]:
        """Return the parts of messages with the keys of their spans.

        ``key_part`` is ``asked`` for a request and ``answered`` for an answer.
        """
        keyed_parts = []
        for message_index, message in enumerate(messages):
            for part in self._parts.parts_of(message):
                piece = part.piece
                message_key = f"{row.id}/{key_part}/{message_index}"
                # Several rows may show one call then, so its id alone is no key.
                if piece.call_id is not None and self._shows_every_row:
                    key = f"{message_key}/{piece.call_id}"
                else:
                    key = piece.call_span_key or message_key + piece.key_suffix
                keyed_parts.append((key, part))
        return keyed_parts

    def _show_part(
        self,
        open_row: _OpenRow,
        key: str,
        part: MessagePart,
        node: int,
        *,
        is_answer: bool = False,
        call: ShownCall | None = None,
    ) -> str:
        """Add the span of a part of a message; return the span's key.

        A tool call and its result are linked, whichever comes first.

        Args:
            node: The part's node in the history.
            is_answer: Whether the part is of the row's answer; it then has the row's agent, status
                and end.
            call: The call that a result answers.
        """
        row = open_row.row
        piece = part.piece
        agent = piece.agent
        parent = open_row.parent_key
        status = piece.status
        if is_answer or (piece.role is Role.AGENT and agent in _GENERIC_AGENTS):
            agent = open_row.agent
        if is_answer and status is SpanStatus.UNKNOWN:
            status = row.status
        if piece.kind is SpanKind.TOOL_RESULT and call is not None:
            agent = call.agent
            parent = call.key

        details = StepDetails(
            place=row.location,
            name=piece.name or (call.name if call else None),
            parent=parent,
            start=row.start if part.start is None else part.start,
            end=row.end if is_answer else None,
            status=status,
        )
        key = self._steps.add(key, piece.kind, piece.role, agent, piece.text, **details)
        self._history.shown_contents.add(part.content)
        if piece.problem is not None:
            self.problems.append(Problem(row.location, piece.problem))

        if piece.kind is SpanKind.TOOL_CALL:
            shown_call = _shown_call(key, agent, piece.name, piece.call_id, piece.text)
            self._calls.add_model_call(shown_call, piece.call_id, piece.text)
            self._history.set_call(node, shown_call)
            self._move_early_result(shown_call, piece.call_id)
        elif piece.kind is SpanKind.TOOL_RESULT and call is not None:
            call.result_key = key
        elif piece.kind is SpanKind.TOOL_RESULT and piece.call_id is not None:
            self._early_result_keys[piece.call_id] = key
        return key

    def _move_early_result(self, call: ShownCall, call_id: str | None) -> None:
        """Move a result that was shown before its call to the place after the call."""
        early_result_key = self._early_result_keys.pop(call_id or "", None)
        if early_result_key is not None:
            self._steps.move_after_call(early_result_key, call.key)
            call.result_key = early_result_key

    def _enter_tool_row(self, open_row: _OpenRow) -> None:
        """Set the call of a tool's row as the parent of the spans under the row.

        A row that repeats the execution of the tool's row around it completes that row.
        """
        row = open_row.row
        outer = open_row.nearest_tool_row
        if outer is not None and _is_same_execution(outer.row, row):
            outer.complete_by(row)
            self._add_name_span(open_row)
            return

        open_row.nearest_tool_row = open_row
        text = dump_text(row.input)
        call = self._calls.call_of_row(row.name, row.input, row.call_id)
        if call is None:
            call = self._show_call_of_row(open_row, text)
        elif call.lacks_arguments and canonical_arguments(text):
            # The model's answer has the call without the arguments.
            self._steps.amend(call.key, text=text)
            call.lacks_arguments = False
        open_row.call = call
        open_row.parent_key = call.key

    def _show_call_of_row(self, open_row: _OpenRow, arguments: str) -> ShownCall:
        """Add and return the call of a tool's row that no model's row has shown."""
        row = open_row.row
        content = self._parts.content_number(SpanKind.TOOL_CALL, arguments, row.name)
        key = self._steps.call(
            self._tool_span_key(row, "call", f"{row.id}/call"),
            open_row.agent,
            arguments,
            place=row.location,
            name=row.name,
            parent=open_row.parent_key,
            start=row.start,
            end=row.end,
        )
        call = _shown_call(key, open_row.agent, row.name, row.call_id, arguments)
        self._calls.add_row_call(call, row.call_id, arguments)
        self._history.shown_contents.add(content)
        return call

    def _leave_tool_row(self, open_row: _OpenRow) -> None:
        """Set the end of the call of a tool's row, and add its result unless a span shows it."""
        row = open_row.row
        call = open_row.call
        if call is None:  # the row around this one has the call
            return
        text = "" if open_row.output is None else output_text(open_row.output)
        if row.error is not None and row.error not in text:
            text = f"{text}\n{row.error}" if text else row.error
        self._steps.amend(call.key, end=row.end)
        if open_row.output is None and row.error is None:
            if row.status is SpanStatus.ERROR:
                self._steps.amend(call.key, status=row.status)
            if self._shows_every_row:
                self._add_log(open_row, row.id, f"{row.name}: no output was recorded")
            return

        content = self._parts.content_number(SpanKind.TOOL_RESULT, text)
        is_shown = call.result_key is not None and content in self._history.shown_contents
        if is_shown and not self._shows_every_row:
            return
        self._history.shown_contents.add(content)
        call.result_key = self._steps.result(
            self._tool_span_key(row, "result", row.id),
            call.agent,
            text,
            place=row.location,
            name=row.name,
            parent=call.key,
            start=row.start,
            end=row.end,
            status=_row_status(row),
        )

    def _tool_span_key(self, row: SpanRow, part: str, key_without_id: str) -> str:
        has_key_of_call = bool(row.call_id) and not self._shows_every_row
        return f"{row.call_id}:{part}" if has_key_of_call else key_without_id

    def _is_message_shown(self, text: str) -> bool:
        return self._parts.content_number(SpanKind.MESSAGE, text) in self._history.shown_contents

    def _add_name_span(self, open_row: _OpenRow) -> None:
        """Add a log span with the row's name if every row needs a span."""
        if self._shows_every_row:
            open_row.parent_key = self._add_log(open_row, open_row.row.id, open_row.row.name)
            open_row.has_span = True

    def _add_message(self, open_row: _OpenRow, part: str, text: str, role: Role) -> None:
        """Add a row's whole input or output as a message; ``part`` is the end of its key."""
        row = open_row.row
        self._history.shown_contents.add(self._parts.content_number(SpanKind.MESSAGE, text))
        agent = open_row.agent if role is Role.AGENT else "user"
        start = row.end if role is Role.AGENT else row.start
        details = StepDetails(place=row.location, parent=open_row.parent_key, start=start)
        key = f"{row.id}/{part}"
        self._steps.add(key, SpanKind.MESSAGE, role, agent, text, **details)

    def _add_log(self, open_row: _OpenRow, key: str, text: str, *, role: Role = Role.LOG) -> str:
        """Add a log span of a row; return its key."""
        row = open_row.row
        return self._steps.add(
            key,
            SpanKind.LOG,
            role,
            open_row.agent,
            text,
            place=row.location,
            name=row.name or None,
            parent=open_row.parent_key,
            start=row.start,
            end=row.end,
            status=_row_status(row),
        )


def _shown_call(
    key: str, agent: str, name: str | None, call_id: str | None, arguments: str
) -> ShownCall:
    """Return a call with the key of its new span."""
    has_id = call_id is not None
    lacks_arguments = not canonical_arguments(arguments)
    return ShownCall(key, agent, name, has_id=has_id, lacks_arguments=lacks_arguments)


def _row_text(row: SpanRow) -> str:
    """Return a row's input, output and error as text, or its name if all are blank."""
    texts = (
        plain_text(row.input) or dump_text(row.input),
        plain_text(row.output) or dump_text(row.output),
        row.error or "",
    )
    return "\n\n".join(text for text in texts if text.strip()) or row.name


def _row_status(row: SpanRow) -> SpanStatus:
    return row.status if row.error is None else SpanStatus.ERROR


def _is_same_execution(outer_row: SpanRow, row: SpanRow) -> bool:
    """Return whether a tool's row within another is the same execution, recorded twice."""
    has_same_name = row.name == outer_row.name
    has_same_id = row.call_id is not None and row.call_id == outer_row.call_id
    is_same_call = has_same_name or (has_same_id and row.output is None)
    return is_same_call and (
        row.input is None or canonical_arguments(outer_row.input) == canonical_arguments(row.input)
    )


_NO_OUTPUTS: Final = (None, "null", "None")
_MAIN_FIELDS: Final = names("output input answer result response content text question query task")
"""The fields with the main text of an input or output, the most important first."""

_MAX_WRAPPERS: Final = 3
"""The maximum number of objects and JSON texts around a text."""

_MCP_HEAD: Final = 40
"""The number of first characters that show whether a text is the result of an MCP tool."""

_MCP_RESULT_FIELDS: Final = frozenset({"content", "isError", "is_error"})
_SEARCHED_CHARS: Final = 16 * 1024
"""The number of characters beyond the length of a text to search for it."""


def plain_text(value: object) -> str | None:
    """Return the text of an input or output: the value itself, or its only or its main field.

    Return None for any other structure, and for a blank text.
    """
    for _wrapper in range(_MAX_WRAPPERS):
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
            value = next((value[name] for name in _MAIN_FIELDS if as_text(value.get(name))), None)
    return None


def texts_within(value: object) -> Iterator[str]:
    """Yield the nonblank texts in a JSON value, those in outer objects and lists first."""
    values = deque([value])
    while values:
        value = values.popleft()
        if isinstance(value, str):
            if text := as_text(value):
                yield text
        elif isinstance(value, Mapping):
            values.extend(value.values())
        elif isinstance(value, list):
            values.extend(value)


def output_text(value: object) -> str:
    """Return a tool's output as text: the texts of a list of parts, else the whole value."""
    # The result of an MCP tool has a list of parts in ``content``. Only a text with such a
    # beginning is parsed as JSON, because texts can be long.
    may_be_mcp_result = not isinstance(value, str) or '"content"' in value[:_MCP_HEAD]
    result = fields_of(json_in(value)) if may_be_mcp_result else {}
    if isinstance(result.get("content"), list) and result.keys() <= _MCP_RESULT_FIELDS:
        value = result["content"]
    if isinstance(value, list) and value and all(map(_is_result_part, value)):
        return message_text(value)
    return dump_text(value)


def occurs_in(text: str, texts: Iterable[str]) -> bool:
    """Return whether one of ``texts`` has ``text`` at or near its beginning.

    Args:
        text: The text to search for.
        texts: The texts to search; only the beginning of a long text is searched.
    """
    needle = text.strip()
    search_end = len(needle) + _SEARCHED_CHARS
    return any(searched.find(needle, 0, search_end) >= 0 for searched in texts)


def _is_result_part(value: object) -> bool:
    """Return whether a value is a text part, or a part of a result of Bedrock."""
    fields = fields_of(value)
    if fields.get("type") == "text" or fields.keys() == {"text"}:
        return isinstance(fields.get("text"), str)
    return fields.keys() == {"json"}
