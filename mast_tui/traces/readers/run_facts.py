"""What a record beside its messages says about the run: task, outcome, what to hide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from mast_tui.traces.index.document import Step
from mast_tui.traces.io.json_values import as_number, as_text, dump_text
from mast_tui.traces.model import Outcome, Role, SpanKind, TraceMeta
from mast_tui.traces.preview import TASK_CHARS

_HIDDEN_FIELDS: Final = (
    "reward",
    "score",
    "success",
    "resolved",
    "outcome",
    "is_correct",
    "is_corrected",
    "ground_truth",
    "groundtruth",
    "answer",
    "labels",
    "mast_annotation",
    "human_labels",
    "human_label_summary",
    "failures",
    "root_cause",
)
_HIDDEN_PREFIX: Final = "mistake_"
_OUTCOMES: Final = {
    "failed": Outcome.FAILED,
    "failure": Outcome.FAILED,
    "fail": Outcome.FAILED,
    "succeeded": Outcome.SUCCEEDED,
    "success": Outcome.SUCCEEDED,
    "passed": Outcome.SUCCEEDED,
}


def facts_of_record(record: Mapping[str, object], steps: Sequence[Step]) -> TraceMeta:
    """The facts in a record's own fields, and where it has none in the spans.

    A benchmark's reward, answer and labels go to ``hidden``.
    """
    return TraceMeta(
        task=task_of(record.get("question"), record.get("task"), steps=steps),
        system=_first_text(record, "system_name", "mas_name", "framework"),
        model=_first_text(record, "llm_name", "model", "model_name"),
        benchmark=_first_text(record, "benchmark_name", "benchmark"),
        outcome=_outcome(record),
        score=_score(record),
        hidden=hidden_fields(record),
    )


def task_of(*candidates: object, steps: Sequence[Step]) -> str | None:
    """The first candidate that is a text, else the first message of a user, cut short."""
    for candidate in candidates:
        if text := as_text(candidate):
            return text[:TASK_CHARS]
    return next(
        (
            step.text[:TASK_CHARS]
            for step in steps
            if step.role is Role.USER and step.kind is SpanKind.MESSAGE and step.text.strip()
        ),
        None,
    )


def hidden_fields(
    record: Mapping[str, object], also: Iterable[str] = ()
) -> tuple[tuple[str, str], ...]:
    """Names and texts of the fields that an annotator working blind must not see."""
    wanted = {*_HIDDEN_FIELDS, *also}
    return tuple(
        (name, dump_text(value))
        for name, value in record.items()
        if value not in (None, "", [], {}) and (name in wanted or name.startswith(_HIDDEN_PREFIX))
    )


def clamp_score(value: object) -> float | None:
    """A number in [0, 1]; None for anything that is no number."""
    number = as_number(value)
    return None if number is None else min(1.0, max(0.0, number))


def outcome_of_reward(value: object) -> Outcome:
    """A reward of 1 is success, less than that failure."""
    number = as_number(value)
    if number is None:
        return Outcome.UNKNOWN
    return Outcome.SUCCEEDED if number >= 1 else Outcome.FAILED


def _outcome(record: Mapping[str, object]) -> Outcome:
    said = as_text(record.get("outcome"))
    if said is not None:
        return _OUTCOMES.get(said.strip().lower(), Outcome.UNKNOWN)
    for field in ("success", "resolved", "is_correct"):
        flag = record.get(field)
        if isinstance(flag, bool):
            return Outcome.SUCCEEDED if flag else Outcome.FAILED
    if record.get("is_corrected") is False:
        return Outcome.FAILED
    return outcome_of_reward(record.get("reward"))


def _score(record: Mapping[str, object]) -> float | None:
    for field in ("reward", "score"):
        if (score := clamp_score(record.get(field))) is not None:
            return score
    return None


def _first_text(record: Mapping[str, object], *fields: str) -> str | None:
    return next((text for field in fields if (text := as_text(record.get(field)))), None)
