"""OpenManus: its logger's lines. A sign at their beginning marks thoughts, calls and results."""

from __future__ import annotations

import re
from typing import Final

from mast_tui.traces.index.document import More
from mast_tui.traces.io.python_literals import read_literal
from mast_tui.traces.model import Role, SpanKind
from mast_tui.traces.readers.frameworks.base import (
    LOGURU_LINE,
    Framework,
    LogBlock,
    Reading,
    Transcript,
    recognised_by_line,
)
from mast_tui.traces.result_status import status_of_result
from mast_tui.traces.times import unix_seconds

_LOGGER_LINE: Final = re.compile(
    r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? \| [A-Z]+ *\| app\.(?:agent|flow|llm)\b",
    re.MULTILINE,
)
_PROMPT: Final = re.compile(r"Enter your prompt[^:\n]*: ?(?P<task>[^\n]+)")
_THOUGHTS: Final = re.compile(r"✨ (?P<agent>[^\n]{1,60}?)'s thoughts: ?")
_TOOLS_PREPARED: Final = re.compile(r"🧰 Tools being prepared: (?P<names>\[[^\n]*\])")
_ARGUMENTS: Final = re.compile(r"🔧 Tool arguments: ?")
_TOOL_ACTIVATED: Final = re.compile(r"🔧 Activating tool: '(?P<name>[^'\n]*)'")
_RESULT: Final = re.compile(r"🎯 Tool '(?P<name>[^'\n]*)' completed its mission! Result: ?")
_RESULT_HEADING: Final = re.compile(r"\AObserved output of cmd `[^`\n]*` executed:\s*")


class _OpenManusRun:
    """The steps of a log, with the tools that the current agent has prepared and called.

    A tool is logged up to three times: in the list of prepared tools, with its arguments, and when
    it is activated. The line with the arguments names no tool, so it belongs to the first of the
    prepared tools.
    """

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._agent = "OpenManus"
        self._prepared_tools: list[str] = []
        self._announced_tool: str | None = None  # Empty if the tool has no name.
        self._open_calls_by_tool: dict[str, list[str]] = {}

    def add(self, block: LogBlock) -> None:
        """Add the step of a block: a thought, a call, a result or a log."""
        match = block.match
        body = block.body
        start = unix_seconds(match["time"])
        if thoughts := _THOUGHTS.match(body):
            self._agent = thoughts["agent"]
            text = body[thoughts.end() :]
            if text.strip():
                self._reading.steps.add(
                    block.key, SpanKind.REASONING, Role.AGENT, self._agent, text, start=start
                )
            else:
                self._reading.add_log(block, body, start=start)
        elif arguments := _ARGUMENTS.match(body):
            self._announced_tool = self._prepared_tools[0] if self._prepared_tools else ""
            self._add_call(block, self._announced_tool or None, body[arguments.end() :], start)
        elif activation := _TOOL_ACTIVATED.match(body):
            name = activation["name"]
            if self._announced_tool in ("", name):
                # The line with the arguments of this tool has been added as its call.
                self._reading.add_log(block, body, start=start)
            else:
                self._add_call(block, name, body, start)
            self._announced_tool = None
        elif result := _RESULT.match(body):
            self._add_result(block, result["name"], body[result.end() :], start)
        else:
            if prepared := _TOOLS_PREPARED.match(body):
                tool_names = read_literal(prepared["names"])
                tool_names = tool_names if isinstance(tool_names, list) else []
                self._prepared_tools = [name for name in tool_names if isinstance(name, str)]
            self._reading.add_log(block, body, start=start, level=match["level"])

    def _add_call(self, block: LogBlock, name: str | None, text: str, start: float | None) -> None:
        """Add a call of the current agent; it stays open until the result of the tool."""
        key = self._reading.steps.call(block.key, self._agent, text, name=name, start=start)
        self._open_calls_by_tool.setdefault(name or "", []).append(key)

    def _add_result(self, block: LogBlock, name: str, text: str, start: float | None) -> None:
        """Add a tool's result under the tool's first open call, else under an unnamed open call."""
        open_calls = self._open_calls_by_tool.get(name) or self._open_calls_by_tool.get("") or []
        parent = open_calls.pop(0) if open_calls else None
        status = status_of_result(_RESULT_HEADING.sub("", text, count=1))
        more = More(name=name, parent=parent, start=start, status=status)
        self._reading.steps.result(block.key, self._agent, text, **more)


def _add_steps(transcript: Transcript, reading: Reading) -> None:
    """Add the steps of the log, and set the task."""
    if prompt := _PROMPT.search(transcript.text):
        reading.task = prompt["task"].strip()
    run = _OpenManusRun(reading)
    for block in reading.blocks(transcript.text, LOGURU_LINE):
        run.add(block)


READER: Final = Framework("openmanus", "OpenManus", recognised_by_line(_LOGGER_LINE), _add_steps)
