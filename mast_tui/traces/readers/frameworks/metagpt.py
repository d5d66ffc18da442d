"""MetaGPT: either its logger's lines inside a JSON record, or the log of its message pool."""

from __future__ import annotations

import re
from typing import Final

from mast_tui.traces.io.json_values import as_text, dump_text
from mast_tui.traces.model import Role
from mast_tui.traces.readers.frameworks.base import LOGURU_LINE, Framework, Reading, Transcript
from mast_tui.traces.readers.json_fields import Fields, fields_of
from mast_tui.traces.times import unix_seconds

_ACTOR: Final = re.compile(r"(?P<person>[^\s():]{1,60})\((?P<role>[^()\n]{1,60})\): ")
_POOL_TITLE: Final = re.compile(r"^=== MetaGPT Agent Communication Log", re.MULTILINE)
_POOL_RECORD: Final = re.compile(
    r"^(?:\[(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^\]\n]*)\] "
    r"(?:FROM: (?P<sender>.+?) TO: .*|(?P<new>NEW MESSAGES:)[ \t]*)$"
    r"|(?P<end>=== Communication Log Ended))",
    re.MULTILINE,
)
_SPEAKER: Final = re.compile(r"\s*(?P<speaker>[A-Za-z_][\w ]{0,60}):[ \t]*(?:\n|(?=\S))")
_CONTENT: Final = re.compile(r"^CONTENT:[ \t]*\n", re.MULTILINE)
_RULE: Final = re.compile(r"\n?-{20,}\s*\Z")
_USER_NAMES: Final = frozenset({"human", "user"})


def _is_metagpt_log(transcript: Transcript) -> bool:
    return _record_of_run(transcript) is not None or _POOL_TITLE.search(transcript.text) is not None


def _add_steps(transcript: Transcript, reading: Reading) -> None:
    """Add the steps of the logger's output in a JSON record, else those of a message pool's log."""
    record = _record_of_run(transcript)
    if record is None:
        _add_pool_steps(transcript.text, reading)
    else:
        reading.task = as_text(record["prompt"])
        _add_logger_steps(dump_text(record["content"]), reading)


def _record_of_run(transcript: Transcript) -> Fields | None:
    """Return the record of a run, whose ``content`` is the logger's output; None for other JSON."""
    record = fields_of(transcript.json)
    has_shape = {"run_id", "prompt"} <= record.keys() and isinstance(record.get("content"), str)
    return record if has_shape else None


def _add_logger_steps(text: str, reading: Reading) -> None:
    """Add the steps of the logger's output; a block without an actor is a log entry."""
    for block in reading.blocks(text, LOGURU_LINE):
        start = unix_seconds(block.match["time"])
        if actor := _ACTOR.match(block.body):
            reading.add_message(block, actor["role"], block.body, start=start)
        else:
            reading.add_log(block, block.body, start=start, level=block.match["level"])


def _add_pool_steps(text: str, reading: Reading) -> None:
    """Add the steps of a message pool's log; the first message of a user is the task."""
    for block in reading.blocks(text, _POOL_RECORD):
        if block.match["end"]:
            reading.add_log(block, block.match[0] + block.body)
            continue
        start = unix_seconds(block.match["time"])
        body = _RULE.sub("", block.body).rstrip()
        if sender := block.match["sender"]:
            role = Role.USER if sender.strip().lower() in _USER_NAMES else Role.AGENT
            content_heading = _CONTENT.search(body)
            heading_length = content_heading.end() if content_heading else 0
            reading.add_message(block, sender.strip(), body, role, start=start, lead=heading_length)
            if role is Role.USER and reading.task is None and content_heading:
                reading.task = body[heading_length:].strip() or None
        elif speaker := _SPEAKER.match(body):
            agent = speaker["speaker"].strip()
            reading.add_message(block, agent, body, start=start, lead=speaker.end())
        else:
            reading.add_log(block, body, start=start)


READER: Final = Framework("metagpt", "MetaGPT", _is_metagpt_log, _add_steps)
