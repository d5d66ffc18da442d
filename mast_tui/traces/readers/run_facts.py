"""The facts of a run in a record beside its messages: task, outcome, answer key.

The answer key is the expected course of a run, and its scores. The name of a field determines its
section in all formats. A reader adds the fields that only its format has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeGuard

from mast_tui.traces.io.json_values import as_number, as_text, dump_text
from mast_tui.traces.model import AnswerKey, Named, Outcome, Role, SpanKind, TraceMeta
from mast_tui.traces.preview import task_of_text
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    flag_in,
    items_of,
    name_set,
    names,
    text_in,
)

if TYPE_CHECKING:
    from mast_tui.traces.index.document import Step

_MAX_ID_CHARS: Final = 200
_MAX_TRIAL_DIGITS: Final = 18  # fits into 64 bits

_OUTCOME_BY_NAME: Final = {
    "failed": Outcome.FAILED,
    "failure": Outcome.FAILED,
    "fail": Outcome.FAILED,
    "succeeded": Outcome.SUCCEEDED,
    "success": Outcome.SUCCEEDED,
    "passed": Outcome.SUCCEEDED,
}


def facts_of_record(record: Fields, steps: Sequence[Step]) -> TraceMeta:
    """Return the facts of a run in a record's fields, with a benchmark's answers in the answer key.

    Args:
        record: The record.
        steps: The steps of the run; the default task is the first message of a user.
    """
    scores = map(clamp_score, map(record.get, ("reward", "score")))
    return TraceMeta(
        task=task_of(*map(record.get, ("question", "task", "Question")), steps=steps),
        system=text_in(record, "system_name", "mas_name", "framework"),
        model=text_in(record, "llm_name", "model", "model_name", "selectedModel"),
        benchmark=text_in(record, "benchmark_name", "benchmark"),
        outcome=_outcome_of_record(record),
        score=next((score for score in scores if score is not None), None),
        answer_key=answer_key_of(record),
        task_id=task_id_of(
            *map(record.get, ("task_id", "instance_id", "question_ID", "question_id", "problem_id"))
        ),
        trial=trial_of(record.get("trial")),
    )


def task_id_of(*candidates: object) -> str | None:
    """Return the first candidate that may be a task's id: an integer, or a short line."""
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
    # In a column with empty cells, pandas writes numbers with a fraction.
    digits = text.removesuffix(".0")
    is_integer = digits.isascii() and digits.isdigit() and len(digits) <= _MAX_TRIAL_DIGITS
    return int(digits) if is_integer else None


def task_of(*candidates: object, steps: Sequence[Step]) -> str | None:
    """Return the first candidate that is a text, else the first message of a user.

    A long text is shortened.
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
    """Return the outcome of a reward: success from 1 on, failure below; else unknown."""
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
    """Return the outcome in a record's text, else in its flags, else in its reward."""
    outcome_name = as_text(record.get("outcome"))
    if outcome_name is not None:
        return _OUTCOME_BY_NAME.get(outcome_name.strip().lower(), Outcome.UNKNOWN)
    if (flag := flag_in(record, "success", "resolved", "is_correct")) is not None:
        return outcome_of_flag(flag)
    if record.get("is_corrected") is False:  # a field of Who&When
        return Outcome.FAILED
    return outcome_of_reward(record.get("reward"))


Section = Literal[
    "expected_actions",
    "reference",
    "scores",
    "explanations",
    "step_scores",
    "patch",
    "tests",
    "failures",
    "other",
]

_SECTIONS: Final[Mapping[Section, tuple[str, ...]]] = {
    "expected_actions": ("expected_actions", "gold_actions"),
    "reference": (
        *names("""
            ground_truth groundtruth answer correct_answer gold_answer reference_answer
            reference_outputs expected expected_answer expected_output expected_result
            success_criteria
        """),
        "Final answer",
        "Annotator Metadata",
    ),
    "scores": names("""
        reward rewards reward_info score scores success resolved outcome is_correct is_corrected
        is_resolved feedback feedback_stats assessments judge
    """),
    "explanations": ("judge_reason",),
    "patch": ("gold_patch", "test_patch"),
    "tests": ("test_result", "parser_results", "FAIL_TO_PASS", "PASS_TO_PASS"),
    "failures": names(
        "labels mast_annotation human_labels human_label_summary failures root_cause note"
    ),
}
_SECTION_BY_NAME: Final[Mapping[str, Section]] = {
    name: section for section, names in _SECTIONS.items() for name in names
}
_AMBIGUOUS_NAMES: Final = frozenset(
    {"note", "FAIL_TO_PASS", "PASS_TO_PASS", "feedback", "expected"}
)
"""Names that are too common for an answer key; only a reader that knows them adds their fields."""

_MISTAKE_PREFIX: Final = "mistake_"
_EXPLANATION_NAMES: Final = name_set(
    "comment explanation feedback justification rationale reason reasoning why"
)
"""The names of fields with a scorer's explanation."""

_VALUE_NAMES: Final = frozenset({"score", "value", "feedback", "expectation"})
_EMPTY_VALUES: Final[tuple[object, ...]] = (None, "", [], {})
_MAX_DEPTH: Final = 3
_ARGUMENT_FIELDS: Final = ("kwargs", "arguments", "args", "input", "parameters")


class AnswerKeyDraft:
    """An answer key while a reader collects it."""

    def __init__(self) -> None:
        self._sections: dict[str, list[tuple[str, str]]] = {}

    def add(self, section: Section, name: str, value: object) -> None:
        """Add an entry to a section, unless it is empty; a value that is no text becomes JSON.

        Args:
            section: The section.
            name: The name of the entry.
            value: The value.
        """
        if value not in _EMPTY_VALUES:
            self._sections.setdefault(section, []).append((name, dump_text(value)))

    def add_fields(
        self, record: Fields, further_sections: Mapping[str, Section] | None = None
    ) -> None:
        """Add those fields of a record whose names belong to a section.

        Args:
            record: The record.
            further_sections: The sections of fields that only this kind of record has, by name.
        """
        for name, value in record.items():
            section = (further_sections or {}).get(name)
            if section is None and name.startswith(_MISTAKE_PREFIX):
                section = "failures"
            elif section is None and name not in _AMBIGUOUS_NAMES:
                section = _SECTION_BY_NAME.get(name)
            if section is not None:
                self.add_value(name, value, section)

    def add_value(self, name: str, value: object, section: Section | None = None) -> None:
        """Add a value to a section, in the form of that section.

        Args:
            name: The name of the entry.
            value: The value.
            section: The section; by default that of the name, or ``other``.
        """
        section = section or _SECTION_BY_NAME.get(name, "other")
        match section:
            case "expected_actions":
                self.add_actions(value)
            case "scores":
                self.add_score(name, value)
            case "patch" if isinstance(value, list):
                self.add(section, name, "\n".join(map(dump_text, value)))
            case _:
                self.add(section, name, value)

    def add_actions(self, value: object) -> None:
        """Add one or several tool calls, each under the tool's name with its arguments as JSON."""
        for action in value if isinstance(value, list) else [value]:
            fields = fields_of(action)
            name = as_text(fields.get("name"))
            if name is None:
                self.add("expected_actions", "action", action)
                continue
            arguments = next((fields[field] for field in _ARGUMENT_FIELDS if field in fields), {})
            entries = self._sections.setdefault("expected_actions", [])
            entries.append((name, dump_text(arguments)))

    def add_score(self, name: str, value: object, depth: int = 0) -> None:
        """Add the scores and explanations in a value.

        - Each object of a list of objects with names is added under its own name.
        - Each field of another object is added as a score or as an explanation.
        - Any other value, and an object nested ``_MAX_DEPTH`` times, is added as one score.

        Args:
            name: The name of the score.
            value: The value.
            depth: The number of objects around the value.
        """
        values = value if isinstance(value, list) else [value]
        named_scores = [score for score in values if _has_name(score)]
        if named_scores and len(named_scores) == len(values):
            for score in named_scores:
                self._add_named_score(score, depth)
            return

        if len(values) == 1:
            value = values[0]
        if not isinstance(value, Mapping) or depth >= _MAX_DEPTH:
            self.add("scores", name, value)
            return
        for field_name, field_value in value.items():
            if field_name in _EXPLANATION_NAMES and not isinstance(field_value, Mapping):
                self.add("explanations", f"{name} {field_name}", field_value)
            elif field_name in _VALUE_NAMES:
                # The field holds the score itself, so its name adds nothing.
                self.add_score(name, field_value, depth + 1)
            else:
                self.add_score(f"{name} {field_name}", field_value, depth + 1)

    def _add_named_score(self, score: Fields, depth: int) -> None:
        """Add the score in an object with a name, and its other fields to ``other``.

        ``depth`` is the number of objects around the object.
        """
        name = str(score["name"])
        verdict: dict[str, object] = {}
        other_fields: dict[str, object] = {}
        for field_name, value in score.items():
            if field_name in _VALUE_NAMES or field_name in _EXPLANATION_NAMES:
                verdict[field_name] = value
            elif field_name != "name":
                other_fields[field_name] = value
        self.add_score(name, verdict, depth + 1)
        self.add("other", name, other_fields)

    def key(self) -> AnswerKey:
        """Return the answer key with all entries."""
        return AnswerKey(**{name: tuple(entries) for name, entries in self._sections.items()})


def _has_name(score: object) -> TypeGuard[Fields]:
    return isinstance(score, Mapping) and as_text(score.get("name")) is not None


def answer_key_of(
    record: Fields, further_sections: Mapping[str, Section] | None = None
) -> AnswerKey:
    """Return the answer key with those fields of a record whose names belong to a section.

    Args:
        record: The record.
        further_sections: The sections of fields that only this kind of record has, by name.
    """
    draft = AnswerKeyDraft()
    draft.add_fields(record, further_sections)
    return draft.key()


def sorted_into_sections(entries: Iterable[tuple[str, str]]) -> AnswerKey:
    """Return the answer key of entries without sections, which older versions of this app wrote."""
    draft = AnswerKeyDraft()
    for name, text in entries:
        is_mistake = name.startswith(_MISTAKE_PREFIX)
        section = "failures" if is_mistake else _SECTION_BY_NAME.get(name, "other")
        draft.add(section, name, text)
    return draft.key()


def as_json(key: AnswerKey) -> dict[str, list[dict[str, str]]]:
    """Return the sections with entries, each as a list of ``{"name", "text"}``."""
    return {
        section: [{"name": name, "text": text} for name, text in entries]
        for section, entries in key.sections()
    }


def answer_key_from_json(value: object) -> AnswerKey:
    """Return the answer key that ``as_json`` wrote, without values of any other form."""
    fields = fields_of(value)
    return AnswerKey(**{name: _named_entries(fields.get(name)) for name in AnswerKey._fields})


def _named_entries(value: object) -> Named:
    """Return the entries in a list of ``{"name", "text"}``."""
    return tuple(
        (as_text(entry.get("name")) or "", dump_text(entry.get("text")))
        for entry in items_of(value)
        if isinstance(entry, Mapping)
    )
