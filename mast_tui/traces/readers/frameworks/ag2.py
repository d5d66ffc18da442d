"""AG2: a JSON record whose trajectory is a list of messages; their texts are lists of lines."""

from __future__ import annotations

from typing import Final

from mast_tui.traces.io.json_values import content_text
from mast_tui.traces.readers.chat.messages import MessageMapper
from mast_tui.traces.readers.chat.pieces import speaks_by_name
from mast_tui.traces.readers.frameworks.base import Framework, Reading, Transcript, study_answer_key
from mast_tui.traces.readers.json_fields import Fields, fields_of, items_of
from mast_tui.traces.readers.run_facts import outcome_of_flag


def _is_ag2_record(transcript: Transcript) -> bool:
    return _record_of_run(transcript) is not None


def _add_steps(transcript: Transcript, reading: Reading) -> None:
    """Add the steps of the trajectory, and set the facts in the record."""
    record = _record_of_run(transcript)
    if record is None:  # The transcript is of another framework.
        return
    messages = items_of(record["trajectory"])
    mapper = MessageMapper(reading.steps, by_name=speaks_by_name(messages))
    for number, message in enumerate(messages):
        mapper.add(message, f"/trajectory/{number}")
    reading.problems.extend(mapper.problems)
    reading.task = content_text(record.get("problem_statement")) or None
    reading.answer_key = study_answer_key(record)
    reading.outcome = outcome_of_flag(fields_of(record.get("other_data")).get("correct"))


def _record_of_run(transcript: Transcript) -> Fields | None:
    """Return the record whose ``trajectory`` has a run's messages; None for other transcripts."""
    record = fields_of(transcript.json)
    messages = items_of(record.get("trajectory"))
    has_shape = messages and {"content", "role", "name"} <= fields_of(messages[0]).keys()
    return record if has_shape else None


READER: Final = Framework("ag2", "AG2", _is_ag2_record, _add_steps)
