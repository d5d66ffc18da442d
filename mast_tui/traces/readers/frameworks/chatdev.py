"""ChatDev: a log of phases in which two roles talk, between much bookkeeping."""

from __future__ import annotations

import re
from typing import Final

from mast_tui.traces.model import Role
from mast_tui.traces.readers.frameworks.base import (
    Framework,
    Reading,
    Transcript,
    add_log,
    add_message,
    blocks,
    told_by,
)
from mast_tui.traces.times import parse_time

_RECORD: Final = re.compile(
    r"^\[(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?P<level>[A-Z]+)\] ", re.MULTILINE
)
_SNIFF: Final = re.compile(
    r"^\[\d{4}-\d\d-\d\d [\d:]{8} [A-Z]+\] \*\*\[Preprocessing\]\*\*|^\*\*ChatDev Starts\*\*",
    re.MULTILINE,
)
_TURN: Final = re.compile(
    r"(?P<role>[^:\n]{1,80}): \*\*[^*\n]{1,80}<->[^*\n]{1,80} on : [^*\n]{1,80}, turn \d+\*\*"
)
_PROMPT_TURN: Final = re.compile(r"(?P<role>[^:\n]{1,80}): \*\*\[Start Chat\]\*\*")
_TESTS: Final = re.compile(r"\*\*\[Test Reports\]\*\*")
_TASK: Final = re.compile(r"^\*\*task_prompt\*\*: (?P<task>.*(?:\n(?!\*\*).*)*)", re.MULTILINE)
_MODEL: Final = re.compile(r"^\| \*\*model_type\*\* \| ModelType\.(?P<model>\w+) \|", re.MULTILINE)


def _split(transcript: Transcript, reading: Reading) -> None:
    text = transcript.text
    if task := _TASK.search(text):
        reading.task = task["task"].strip()
    if model := _MODEL.search(text):
        reading.model = model["model"].lower().replace("_", "-")
    for block in blocks(text, _RECORD):
        if block.match is None:
            add_log(reading, block, block.body)
            continue
        # ChatDev writes the day before the month.
        time = block.match["time"]
        start = parse_time(time, "%Y-%d-%m %H:%M:%S")
        if start is None:
            start = parse_time(time, "%Y-%m-%d %H:%M:%S")
        if turn := _TURN.match(block.body):
            lead = _prompt_end(block.body, turn.end())
            add_message(reading, block, turn["role"], block.body, start=start, lead=lead)
        elif prompt := _PROMPT_TURN.match(block.body):
            lead = _prompt_end(block.body, prompt.end())
            add_message(
                reading, block, prompt["role"], block.body, role=Role.SYSTEM, start=start, lead=lead
            )
        elif _TESTS.match(block.body):
            reading.steps.result(block.key, "ChatDev", block.body, name="test run", start=start)
        else:
            add_log(reading, block, block.body, start=start, level=block.match["level"])


def _prompt_end(body: str, begin: int) -> int:
    """Where the answer begins: behind the role's prompt, which each turn repeats in brackets."""
    while begin < len(body) and body[begin].isspace():
        begin += 1
    if body[begin : begin + 1] != "[":
        return begin
    end = body.find("]\n\n", begin)
    return begin if end < 0 else end + 3


READER: Final = Framework("chatdev", "ChatDev", told_by(_SNIFF), _split)
