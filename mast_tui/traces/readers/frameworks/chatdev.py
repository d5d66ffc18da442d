"""ChatDev: a log of phases in which two roles talk, between much bookkeeping."""

from __future__ import annotations

import re
from typing import Final

from mast_tui.traces.model import Role
from mast_tui.traces.readers.frameworks.base import (
    Framework,
    Reading,
    Transcript,
    recognised_by_line,
)
from mast_tui.traces.times import parse_time

_RECORD: Final = re.compile(
    r"^\[(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?P<level>[A-Z]+)\] ", re.MULTILINE
)
_START_LINE: Final = re.compile(
    r"^\[\d{4}-\d\d-\d\d [\d:]{8} [A-Z]+\] \*\*\[Preprocessing\]\*\*|^\*\*ChatDev Starts\*\*",
    re.MULTILINE,
)
_TURN: Final = re.compile(
    r"(?P<role>[^:\n]{1,80}): \*\*(?:[^*\n]{1,80}<->[^*\n]{1,80} on : [^*\n]{1,80}, turn \d+"
    r"|(?P<prompt>\[Start Chat\]))\*\*\s*(?s:\[.*?\]\n\n)?"
)
"""The heading of an answer, with the role's prompt, which each turn repeats in brackets."""

_TESTS: Final = re.compile(r"\*\*\[Test Reports\]\*\*")
_TASK: Final = re.compile(r"^\*\*task_prompt\*\*: (?P<task>.*(?:\n(?!\*\*).*)*)", re.MULTILINE)
_MODEL: Final = re.compile(r"^\| \*\*model_type\*\* \| ModelType\.(?P<model>\w+) \|", re.MULTILINE)


def _add_steps(transcript: Transcript, reading: Reading) -> None:
    """Add the steps of the log, and set the task and the model."""
    text = transcript.text
    if task := _TASK.search(text):
        reading.task = task["task"].strip()
    if model := _MODEL.search(text):
        reading.model = model["model"].lower().replace("_", "-")
    for block in reading.blocks(text, _RECORD):
        # ChatDev writes the day before the month; a date that does not fit is read as usual.
        time = block.match["time"]
        start = parse_time(time, "%Y-%d-%m %H:%M:%S")
        start = parse_time(time, "%Y-%m-%d %H:%M:%S") if start is None else start
        if turn := _TURN.match(block.body):
            role = Role.SYSTEM if turn["prompt"] else Role.AGENT
            reading.add_message(block, turn["role"], block.body, role, start=start, lead=turn.end())
        elif _TESTS.match(block.body):
            reading.steps.result(block.key, "ChatDev", block.body, name="test run", start=start)
        else:
            reading.add_log(block, block.body, start=start, level=block.match["level"])


READER: Final = Framework("chatdev", "ChatDev", recognised_by_line(_START_LINE), _add_steps)
