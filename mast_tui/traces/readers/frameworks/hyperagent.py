"""HyperAgent: its logger's lines, as text or as a JSON list of physical lines.

Each time the program is started again it adds a handler to its logger. From then on every record
is printed once more. Such repeated records are one span, whose preview says how often it was
printed.
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
    study_answer_key,
)

_RECORD: Final = re.compile(r"^HyperAgent_\S+ - (?P<level>[A-Z]+) - ", re.MULTILINE)
_RESPONSE: Final = re.compile(r"(?P<actor>[\w-]{1,60})'s Response: ?")
_HANDOVER: Final = re.compile(r"(?P<actor>[\w-]{1,60})->[\w-]{1,60}: ?")
_PROGRAM_START: Final = re.compile(r"Initialized HyperAgent instance\b")
_CHECKED_LINES: Final = 400


def _is_hyperagent_log(transcript: Transcript) -> bool:
    """Return whether one of the first lines is a record of HyperAgent's logger."""
    lines = _trajectory_lines(transcript)
    if lines is None:
        return _RECORD.search(transcript.text) is not None
    return any(_RECORD.match(line) for line in islice(lines, _CHECKED_LINES))


def _add_steps(transcript: Transcript, reading: Reading) -> None:
    """Add the steps of the log; copies of a record are one step, with a note in its preview."""
    lines = _trajectory_lines(transcript)
    record = transcript.json
    if lines is not None and isinstance(record, Mapping):
        reading.task = content_text(record.get("problem_statement")) or None
        reading.answer_key = study_answer_key(record)
    text = transcript.text if lines is None else "\n".join(lines)
    for block, print_count in _distinct_records(reading.blocks(text, _RECORD)):
        if response := _RESPONSE.match(block.body):
            answer = block.body[response.end() :]
            reading.add_message(
                block, response["actor"], answer, shown=_repeated_preview(answer, print_count)
            )
            continue
        block_preview = _repeated_preview(block.body, print_count)
        if handover := _HANDOVER.match(block.body):
            reading.add_message(block, handover["actor"], block.body, shown=block_preview)
        else:
            reading.add_log(block, block.body, block.match["level"], shown=block_preview)


def _distinct_records(blocks: Iterable[LogBlock]) -> Iterator[tuple[LogBlock, int]]:
    """Yield each record with the number of its copies in the log.

    Each handler that printed the start of the program prints a copy of every record after it. A
    record with more copies than handlers was written several times, and is yielded several times.
    """
    handler_count = 1
    for (_head, body), group in groupby(blocks, key=lambda block: (block.match[0], block.body)):
        equal_blocks = list(group)
        if _PROGRAM_START.match(body):
            handler_count = len(equal_blocks)
        for start in range(0, len(equal_blocks), handler_count):
            copies = equal_blocks[start : start + handler_count]
            yield copies[0], len(copies)


def _repeated_preview(text: str, print_count: int) -> str | None:
    """Return the preview of a text that was printed several times; None if it was printed once."""
    return f"printed {print_count}× · {preview(text)[0]}" if print_count > 1 else None


def _trajectory_lines(transcript: Transcript) -> list[str] | None:
    """Return the lines of a log that is a JSON list, or is in a JSON record; None for a text."""
    record = transcript.json
    lines = record.get("trajectory") if isinstance(record, Mapping) else record
    if not isinstance(lines, list) or not any(isinstance(line, str) for line in lines):
        return None
    return [content_text(line) for line in lines]


READER: Final = Framework("hyperagent", "HyperAgent", _is_hyperagent_log, _add_steps)
