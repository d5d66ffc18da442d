"""Magentic-One: AutoGen's console output, with a heading between dashes before each turn."""

from __future__ import annotations

import re
from typing import Final

from mast_tui.traces.model import Role, SpanKind
from mast_tui.traces.readers.frameworks.base import (
    Framework,
    Reading,
    Transcript,
    recognised_by_line,
)

_START_LINE: Final = re.compile(
    r"^(?:SCENARIO\.PY STARTING !#!#|export AUTOGEN_TESTBED_SETTING="
    r"|-{10} (?:\w+ \()?MagenticOneOrchestrator\)? -{10}[ \t]*$)",
    re.MULTILINE,
)
_HEADING: Final = re.compile(
    r"^(?:-{10} (?:(?P<event>\w+) \((?P<source>[^()\n]{1,80})\)|(?P<agent>[^\s-][^\n]{0,80}?))"
    r" -{10}[ \t]*$|(?P<marker>(?:SCENARIO\.PY|RUN\.SH|MAIN TASK) [^\n]*!#!#)[ \t]*$)",
    re.MULTILINE,
)
_USER_NAMES: Final = frozenset({"user", "human", "userproxy", "user_proxy"})


def _add_steps(transcript: Transcript, reading: Reading) -> None:
    """Add the steps of the log; a block that begins with a marker is a log entry."""
    for block in reading.blocks(transcript.text, _HEADING):
        if marker := block.match["marker"]:
            reading.add_log(block, f"{marker}\n{block.body}".rstrip())
        else:
            agent = block.match["source"] or block.match["agent"]
            _add_turn(reading, block.key, agent, block.match["event"] or "", block.body)


def _add_turn(reading: Reading, key: str, agent: str, event: str, text: str) -> None:
    """Add the step of a turn; the parent of a result is the call directly before it."""
    is_user = agent.lower() in _USER_NAMES
    kind = SpanKind.MESSAGE
    role = Role.USER if is_user else Role.AGENT
    if event.startswith("ToolCallRequest"):
        kind = SpanKind.TOOL_CALL
    elif event.startswith("ToolCallExecution"):
        kind = SpanKind.TOOL_RESULT
        role = Role.TOOL
    elif event == "ThoughtEvent":
        kind = SpanKind.REASONING
    parent = None
    if kind is SpanKind.TOOL_RESULT and reading.steps.steps:
        last_step = reading.steps.steps[-1]
        parent = last_step.key if last_step.kind is SpanKind.TOOL_CALL else None
    reading.steps.add(key, kind, role, agent, text, parent=parent)


READER: Final = Framework(
    "magentic-one", "Magentic-One", recognised_by_line(_START_LINE), _add_steps
)
