"""HyperAgent: its logger's lines, as text or as a JSON list of physical lines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from typing import Final

from mast_tui.traces.io.json_values import content_text
from mast_tui.traces.readers.frameworks.base import (
    Framework,
    Reading,
    Transcript,
    add_log,
    add_message,
    blocks,
    study_key,
)

_RECORD: Final = re.compile(r"^HyperAgent_\S+ - (?P<level>[A-Z]+) - ", re.MULTILINE)
_RESPONSE: Final = re.compile(r"(?P<actor>[\w-]{1,60})'s Response: ?")
_HANDOVER: Final = re.compile(r"(?P<actor>[\w-]{1,60})->[\w-]{1,60}: ?")
_LINES_LOOKED_AT: Final = 400


def _sniff(transcript: Transcript) -> bool:
    lines = _lines(transcript)
    if lines is None:
        return _RECORD.search(transcript.text) is not None
    return any(_RECORD.match(line) for line in islice(lines, _LINES_LOOKED_AT))


def _split(transcript: Transcript, reading: Reading) -> None:
    lines = _lines(transcript)
    if lines is None:
        text = transcript.text
    else:
        text = "\n".join(lines)
        record = transcript.json
        if isinstance(record, Mapping):
            reading.task = content_text(record.get("problem_statement")) or None
            reading.answer_key = study_key(record)
    for block in blocks(text, _RECORD):
        if block.match is None:
            add_log(reading, block, block.body)
        elif response := _RESPONSE.match(block.body):
            said = block.body[response.end() :]
            add_message(reading, block, response["actor"], said)
        elif handover := _HANDOVER.match(block.body):
            add_message(reading, block, handover["actor"], block.body)
        else:
            add_log(reading, block, block.body, level=block.match["level"])


def _lines(transcript: Transcript) -> list[str] | None:
    """The log's physical lines where the run is a JSON record; other values become their text."""
    record = transcript.json
    lines = record.get("trajectory") if isinstance(record, Mapping) else record
    if not isinstance(lines, list) or not any(isinstance(line, str) for line in lines):
        return None
    return [content_text(line) for line in lines]


READER: Final = Framework("hyperagent", "HyperAgent", _sniff, _split)
