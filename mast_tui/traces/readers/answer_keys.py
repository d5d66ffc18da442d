"""The answer key from the fields of a file: the expected course of a run, and its scores.

A field's name determines its section, whatever the format of the file. A reader itself adds the
fields that only its format has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeGuard

from mast_tui.traces.io.json_values import as_text, dump_text
from mast_tui.traces.model import AnswerKey, Named
from mast_tui.traces.readers.json_fields import Fields, fields_of, items_of, name_set, names

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
    "reference": names("""
        ground_truth groundtruth answer correct_answer gold_answer reference_answer
        reference_outputs expected expected_answer expected_output expected_result
        success_criteria
    """),
    "scores": names("""
        reward rewards reward_info score scores success resolved outcome is_correct is_corrected
        is_resolved feedback feedback_stats assessments
    """),
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
"""Names that are too common for an answer key. Only a reader that knows them adds their fields."""

_MISTAKE_PREFIX: Final = "mistake_"
_EXPLANATION_NAMES: Final = name_set(
    "comment explanation feedback justification rationale reason reasoning why"
)
"""The names of fields in which a scorer explains its verdict."""

_VALUE_NAMES: Final = frozenset({"score", "value", "feedback", "expectation"})
_EMPTY_VALUES: Final[tuple[object, ...]] = (None, "", [], {})
_MAX_DEPTH: Final = 3
_ARGUMENT_FIELDS: Final = ("kwargs", "arguments", "args", "input", "parameters")


class AnswerKeyDraft:
    """An answer key while a reader collects it."""

    def __init__(self) -> None:
        self._sections: dict[str, list[tuple[str, str]]] = {}

    def add(self, section: Section, name: str, value: object) -> None:
        """Add an entry to a section: a text, or any other value as JSON. Skip empty values.

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
        """Add a value in the form of its section.

        Args:
            name: The name of the entry.
            value: The value.
            section: The section; None for the section of the name, or ``other``.
        """
        section = section or _SECTION_BY_NAME.get(name, "other")
        if section == "expected_actions":
            self.add_actions(value)
        elif section == "scores":
            self.add_score(name, value)
        elif section == "patch" and isinstance(value, list):
            self.add(section, name, "\n".join(map(dump_text, value)))
        else:
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

        - A list of objects with names: each object is added under its own name.
        - An object: each field is added as a score or as an explanation.
        - Any other value, and an object within ``_MAX_DEPTH`` others: it is added as one score.

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
                # The field holds the score itself, so its name says nothing new.
                self.add_score(name, field_value, depth + 1)
            else:
                self.add_score(f"{name} {field_name}", field_value, depth + 1)

    def _add_named_score(self, score: Fields, depth: int) -> None:
        """Add a score and its explanation under its name; its other fields go to ``other``."""
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
    """Return the answer key of entries that have no sections, as older versions wrote them."""
    draft = AnswerKeyDraft()
    for name, text in entries:
        section = (
            "failures" if name.startswith(_MISTAKE_PREFIX) else _SECTION_BY_NAME.get(name, "other")
        )
        draft.add(section, name, text)
    return draft.key()


def as_json(key: AnswerKey) -> dict[str, list[dict[str, str]]]:
    """Return the sections with entries, each as a list of ``{"name", "text"}``."""
    return {
        section: [{"name": name, "text": text} for name, text in entries]
        for section, entries in key.sections()
    }


def answer_key_from_json(value: object) -> AnswerKey:
    """Return the answer key that ``as_json`` wrote; values of any other form are left out."""
    fields = fields_of(value)
    return AnswerKey(**{name: _named_entries(fields.get(name)) for name in AnswerKey._fields})


def _named_entries(value: object) -> Named:
    """Return the entries in a list of ``{"name", "text"}``; other items are left out."""
    return tuple(
        (as_text(entry.get("name")) or "", dump_text(entry.get("text")))
        for entry in items_of(value)
        if isinstance(entry, Mapping)
    )
