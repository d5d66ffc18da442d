"""The facts of a run in a record beside its messages: task, outcome, answer key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mast_tui.traces.index.document import Step
from mast_tui.traces.io.json_values import as_number, as_text
from mast_tui.traces.model import Outcome, Role, SpanKind, TraceMeta
from mast_tui.traces.preview import task_of_text
from mast_tui.traces.readers.answer_keys import answer_key_of
from mast_tui.traces.readers.json_fields import Fields, flag_in, text_in

_TASK_ID_FIELDS: Final = ("task_id", "instance_id", "question_ID", "question_id", "problem_id")
_MAX_ID_CHARS: Final = 200

_OUTCOME_BY_NAME: Final = {
    "failed": Outcome.FAILED,
    "failure": Outcome.FAILED,
    "fail": Outcome.FAILED,
    "succeeded": Outcome.SUCCEEDED,
    "success": Outcome.SUCCEEDED,
    "passed": Outcome.SUCCEEDED,
}


def facts_of_record(record: Fields, steps: Sequence[Step]) -> TraceMeta:
    """Return the facts in a record's fields; a missing task is the first message of a user.

    A benchmark's reward, answer and labels go to the answer key.

    Args:
        record: The record.
        steps: The steps of the run.
    """
    scores = map(clamp_score, map(record.get, ("reward", "score")))
    return TraceMeta(
        task=task_of(record.get("question"), record.get("task"), steps=steps),
        system=text_in(record, "system_name", "mas_name", "framework"),
        model=text_in(record, "llm_name", "model", "model_name"),
        benchmark=text_in(record, "benchmark_name", "benchmark"),
        outcome=_outcome_of_record(record),
        score=next((score for score in scores if score is not None), None),
        answer_key=answer_key_of(record),
        task_id=task_id_of(*map(record.get, _TASK_ID_FIELDS)),
        trial=trial_of(record.get("trial")),
    )


def task_id_of(*candidates: object) -> str | None:
    """Return the first candidate that may be a task's id, else None.

    An id is an integer, or a short text on one line.
    """
    for candidate in candidates:
        if isinstance(candidate, int) and not isinstance(candidate, bool):
            return str(candidate)
        if (text := as_text(candidate)) and len(text) <= _MAX_ID_CHARS and "\n" not in text:
            return text
    return None


def trial_of(value: object) -> int | None:
    """Return a value as the number of a trial; None unless it is an integer from 0 on."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def trial_number(text: str) -> int | None:
    """Return the number of a trial in a cell of a table; None if it is no integer."""
    # A column of whole numbers with holes is written with a fraction by pandas.
    digits = text.removesuffix(".0")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None


def task_of(*candidates: object, steps: Sequence[Step]) -> str | None:
    """Return the first candidate that is a text, else the first message of a user, in short form.

    Return None if there is neither.
    """
    for candidate in candidates:
        if text := as_text(candidate):
            return task_of_text(text)
    return next(
        (
            task_of_text(step.text)
            for step in steps
            if step.role is Role.USER and step.kind is SpanKind.MESSAGE and step.text.strip()
        ),
        None,
    )


def clamp_score(value: object) -> float | None:
    """Return a number, limited to the range from 0 to 1; None for any other value."""
    number = as_number(value)
    return None if number is None else min(1.0, max(0.0, number))


def outcome_of_reward(value: object) -> Outcome:
    """Return the outcome of a reward: success from 1 on, failure below, unknown for no number."""
    number = as_number(value)
    if number is None:
        return Outcome.UNKNOWN
    return Outcome.SUCCEEDED if number >= 1 else Outcome.FAILED


def outcome_of_flag(flag: object) -> Outcome:
    """Return the outcome of a flag: true is success, false failure, anything else unknown."""
    if not isinstance(flag, bool):
        return Outcome.UNKNOWN
    return Outcome.SUCCEEDED if flag else Outcome.FAILED


def _outcome_of_record(record: Fields) -> Outcome:
    """Return the outcome that a record names, else that of its flags, else of its reward."""
    outcome_name = as_text(record.get("outcome"))
    if outcome_name is not None:
        return _OUTCOME_BY_NAME.get(outcome_name.strip().lower(), Outcome.UNKNOWN)
    if (flag := flag_in(record, "success", "resolved", "is_correct")) is not None:
        return outcome_of_flag(flag)
    if record.get("is_corrected") is False:
        return Outcome.FAILED
    return outcome_of_reward(record.get("reward"))
