"""HyperAgent: its logger's lines, as text or as a JSON list of physical lines.

Each time the program is started again it adds a handler to its logger, so that from then on every
record is printed once more. What is printed several times for that reason is one span, which says
how often.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, islice
from typing import Final

from mast_tui.traces.io.json_values import content_text
from mast_tui.traces.preview import preview
from mast_tui.traces.readers.frameworks.base import (
    Framework,
    LogBlock,
    Reading,
    Transcript,
    study_key,
)

_RECORD: Final = re.compile(r"^HyperAgent_\S+ - (?P<level>[A-Z]+) - ", re.MULTILINE)
_RESPONSE: Final = re.compile(r"(?P<actor>[\w-]{1,60})'s Response: ?")
_HANDOVER: Final = re.compile(r"(?P<actor>[\w-]{1,60})->[\w-]{1,60}: ?")
_STARTED: Final = re.compile(r"Initialized HyperAgent instance\b")
_CHECKED_LINES: Final = 400


def _sniff(transcript: Transcript) -> bool:
    lines = _lines(transcript)
    if lines is None:
        return _RECORD.search(transcript.text) is not None
    return any(_RECORD.match(line) for line in islice(lines, _CHECKED_LINES))


def _split(transcript: Transcript, reading: Reading) -> None:
    lines = _lines(transcript)
    record = transcript.json
    if lines is not None and isinstance(record, Mapping):
        reading.task = content_text(record.get("problem_statement")) or None
        reading.answer_key = study_key(record)
    text = transcript.text if lines is None else "\n".join(lines)
    for block, printed in _once(reading.blocks(text, _RECORD)):
        if response := _RESPONSE.match(block.body):
            answer = block.body[response.end() :]
            reading.say(block, response["actor"], answer, shown=_repeated_preview(answer, printed))
            continue
        block_preview = _repeated_preview(block.body, printed)
        if handover := _HANDOVER.match(block.body):
            reading.say(block, handover["actor"], block.body, shown=block_preview)
        else:
            reading.log(block, block.body, block.match["level"], shown=block_preview)


def _once(blocks: Iterable[LogBlock]) -> Iterator[tuple[LogBlock, int]]:
    """Yield each record once, with the number of times it was printed.

    Each handler that printed the start of the program also prints every record after it. A record
    that is printed more often than that was written more than once.
    """
    handlers = 1
    for (_head, body), same in groupby(blocks, key=lambda block: (block.match[0], block.body)):
        records = list(same)
        if _STARTED.match(body):
            handlers = len(records)
        for first in range(0, len(records), handlers):
            yield records[first], len(records[first : first + handlers])


def _repeated_preview(text: str, printed: int) -> str | None:
    """Return the preview of a text that was printed several times; None for any other."""
    return f"printed {printed}× · {preview(text)[0]}" if printed > 1 else None


def _lines(transcript: Transcript) -> list[str] | None:
    """Return the log's physical lines where the run is a JSON record."""
    record = transcript.json
    lines = record.get("trajectory") if isinstance(record, Mapping) else record
    if not isinstance(lines, list) or not any(isinstance(line, str) for line in lines):
        return None
    return [content_text(line) for line in lines]


READER: Final = Framework("hyperagent", "HyperAgent", _sniff, _split)
