"""Magentic-One: AutoGen's console output, one ruled heading per turn, after much noise."""

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

_SNIFF: Final = re.compile(
    r"^(?:SCENARIO\.PY STARTING !#!#|export AUTOGEN_TESTBED_SETTING="
    r"|-{10} (?:\w+ \()?MagenticOneOrchestrator\)? -{10}[ \t]*$)",
    re.MULTILINE,
)
_HEADING: Final = re.compile(
    r"^(?:-{10} (?:(?P<event>\w+) \((?P<source>[^()\n]{1,80})\)|(?P<agent>[^\s-][^\n]{0,80}?))"
    r" -{10}[ \t]*$|(?P<marker>(?:SCENARIO\.PY|RUN\.SH|MAIN TASK) [^\n]*!#!#)[ \t]*$)",
    re.MULTILINE,
)
_USERS: Final = frozenset({"user", "human", "userproxy", "user_proxy"})


def _add_steps(transcript: Transcript, reading: Reading) -> None:
    for block in reading.blocks(transcript.text, _HEADING):
        if marker := block.match["marker"]:
            reading.log(block, f"{marker}\n{block.body}".rstrip())
        else:
            agent = block.match["source"] or block.match["agent"]
            _add_turn(reading, block.key, agent, block.match["event"] or "", block.body)


def _add_turn(reading: Reading, key: str, agent: str, event: str, text: str) -> None:
    user = agent.lower() in _USERS
    kind = SpanKind.MESSAGE
    role = Role.USER if user else Role.AGENT
    if event.startswith("ToolCallRequest"):
        kind = SpanKind.TOOL_CALL
    elif event.startswith("ToolCallExecution"):
        kind = SpanKind.TOOL_RESULT
        role = Role.TOOL
    elif event == "ThoughtEvent":
        kind = SpanKind.REASONING
    parent = None
    if kind is SpanKind.TOOL_RESULT and reading.steps.steps:
        last = reading.steps.steps[-1]
        parent = last.key if last.kind is SpanKind.TOOL_CALL else None
    reading.steps.add(key, kind, role, agent, text, parent=parent)


READER: Final = Framework("magentic-one", "Magentic-One", recognised_by_line(_SNIFF), _add_steps)
