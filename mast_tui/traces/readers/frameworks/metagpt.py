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
_HUMANS: Final = frozenset({"human", "user"})


def _sniff(transcript: Transcript) -> bool:
    return _record(transcript) is not None or _POOL_TITLE.search(transcript.text) is not None


def _split(transcript: Transcript, reading: Reading) -> None:
    record = _record(transcript)
    if record is None:
        _split_pool(transcript.text, reading)
    else:
        reading.task = as_text(record["prompt"])
        _split_logger(dump_text(record["content"]), reading)


def _record(transcript: Transcript) -> Fields | None:
    """Return the JSON record of one run, whose ``content`` is the logger's output."""
    record = fields_of(transcript.json)
    has_shape = {"run_id", "prompt"} <= record.keys() and isinstance(record.get("content"), str)
    return record if has_shape else None


def _split_logger(text: str, reading: Reading) -> None:
    for block in reading.blocks(text, LOGURU_LINE):
        start = unix_seconds(block.match["time"])
        if actor := _ACTOR.match(block.body):
            reading.say(block, actor["role"], block.body, start=start)
        else:
            reading.log(block, block.body, start=start, level=block.match["level"])


def _split_pool(text: str, reading: Reading) -> None:
    for block in reading.blocks(text, _POOL_RECORD):
        if block.match["end"]:
            reading.log(block, block.match[0] + block.body)
            continue
        start = unix_seconds(block.match["time"])
        body = _RULE.sub("", block.body).rstrip()
        if sender := block.match["sender"]:
            role = Role.USER if sender.strip().lower() in _HUMANS else Role.AGENT
            content = _CONTENT.search(body)
            lead = content.end() if content else 0
            reading.say(block, sender.strip(), body, role, start=start, lead=lead)
            if role is Role.USER and reading.task is None and content:
                reading.task = body[lead:].strip() or None
        elif speaker := _SPEAKER.match(body):
            agent = speaker["speaker"].strip()
            reading.say(block, agent, body, start=start, lead=speaker.end())
        else:
            reading.log(block, body, start=start)


READER: Final = Framework("metagpt", "MetaGPT", _sniff, _split)
