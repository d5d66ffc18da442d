"""The answer key from the fields of a file: the expected course of a run, and its scores.

The section of each field follows from its name, for all readers; a reader that knows
more of its format adds the rest itself.
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
_SECTION_OF: Final[Mapping[str, Section]] = {
    name: section for section, names in _SECTIONS.items() for name in names
}
_ASKED_FOR: Final = frozenset({"note", "FAIL_TO_PASS", "PASS_TO_PASS", "feedback", "expected"})
"""Names too common to be taken for an answer key unless a reader knows them to be one."""

_MISTAKE: Final = "mistake_"
_EXPLANATION_NAMES: Final = name_set(
    "comment explanation feedback justification rationale reason reasoning why"
)
"""The names of fields in which a scorer explains its verdict."""

_VALUES: Final = frozenset({"score", "value", "feedback", "expectation"})
_NOTHING: Final[tuple[object, ...]] = (None, "", [], {})
_DEEPEST: Final = 3
_ARGUMENTS: Final = ("kwargs", "arguments", "args", "input", "parameters")


class AnswerKeyDraft:
    """An answer key while a reader collects it."""

    def __init__(self) -> None:
        self._sections: dict[str, list[tuple[str, str]]] = {}

    def add(self, section: Section, name: str, value: object) -> None:
        """Add one text, or the JSON of any other value, unless it is empty.

        Args:
            section: The section.
            name: The name of the entry.
            value: The value.
        """
        if value not in _NOTHING:
            self._sections.setdefault(section, []).append((name, dump_text(value)))

    def add_fields(self, record: Fields, also: Mapping[str, Section] | None = None) -> None:
        """Add the fields of a record that are known by their names.

        Args:
            record: The record.
            also: Fields that only this kind of record has, and the section of each.
        """
        for name, value in record.items():
            section = (also or {}).get(name)
            if section is None and name.startswith(_MISTAKE):
                section = "failures"
            elif section is None and name not in _ASKED_FOR:
                section = _SECTION_OF.get(name)
            if section is not None:
                self.add_value(name, value, section)

    def add_value(self, name: str, value: object, section: Section | None = None) -> None:
        """Add one value in the form of its section.

        Args:
            name: The name of the entry.
            value: The value.
            section: The section; None for the one that the name belongs to.
        """
        section = section or _SECTION_OF.get(name, "other")
        if section == "expected_actions":
            self.add_actions(value)
        elif section == "scores":
            self.add_score(name, value)
        elif section == "patch" and isinstance(value, list):
            self.add(section, name, "\n".join(map(dump_text, value)))
        else:
            self.add(section, name, value)

    def add_actions(self, value: object) -> None:
        """Add a list of tool calls, each under the tool's name with its arguments as JSON."""
        for action in value if isinstance(value, list) else [value]:
            name = as_text(action.get("name")) if isinstance(action, Mapping) else None
            if not isinstance(action, Mapping) or name is None:
                self.add("expected_actions", "action", action)
                continue
            arguments: object = next((action[field] for field in _ARGUMENTS if field in action), {})
            entries = self._sections.setdefault("expected_actions", [])
            entries.append((name, dump_text(arguments)))

    def add_score(self, name: str, value: object, depth: int = 0) -> None:
        """Add a verdict: its parts under their names, texts among the explanations.

        Args:
            name: The name of the verdict.
            value: The verdict.
            depth: The number of verdicts around it.
        """
        listed = value if isinstance(value, list) else [value]
        named = [score for score in listed if _is_named(score)]
        if named and len(named) == len(listed):
            for score in named:
                self._named_score(score, depth)
            return
        if len(listed) == 1:
            value = listed[0]
        if not isinstance(value, Mapping) or depth >= _DEEPEST:
            self.add("scores", name, value)
            return
        for part, part_value in value.items():
            if part in _EXPLANATION_NAMES and not isinstance(part_value, Mapping):
                self.add("explanations", f"{name} {part}", part_value)
            elif part in _VALUES:
                self.add_score(name, part_value, depth + 1)
            else:
                self.add_score(f"{name} {part}", part_value, depth + 1)

    def _named_score(self, score: Fields, depth: int) -> None:
        """Add a score with a name; parts that are neither value nor explanation are ``other``."""
        name = str(score["name"])
        verdict = {
            part: value
            for part, value in score.items()
            if part in _VALUES or part in _EXPLANATION_NAMES
        }
        self.add_score(name, verdict, depth + 1)
        other_parts = {
            part: v for part, v in score.items() if part not in verdict and part != "name"
        }
        self.add("other", name, other_parts)

    def key(self) -> AnswerKey:
        """Return the answer key of all that was added."""
        return AnswerKey(**{name: tuple(entries) for name, entries in self._sections.items()})


def _is_named(score: object) -> TypeGuard[Fields]:
    return isinstance(score, Mapping) and as_text(score.get("name")) is not None


def answer_key_of(record: Fields, also: Mapping[str, Section] | None = None) -> AnswerKey:
    """Return the answer key of the fields of a record that are known by their names.

    Args:
        record: The record.
        also: Fields that only this kind of record has, and the section of each.
    """
    draft = AnswerKeyDraft()
    draft.add_fields(record, also)
    return draft.key()


def sorted_by_name(entries: Iterable[tuple[str, str]]) -> AnswerKey:
    """Sort an answer key of names and texts alone into sections, as older versions wrote them."""
    draft = AnswerKeyDraft()
    for name, text in entries:
        section = "failures" if name.startswith(_MISTAKE) else _SECTION_OF.get(name, "other")
        draft.add(section, name, text)
    return draft.key()


def as_json(key: AnswerKey) -> dict[str, list[dict[str, str]]]:
    """Return the sections that hold something, each a list of ``{"name", "text"}``."""
    return {
        section: [{"name": name, "text": text} for name, text in entries]
        for section, entries in key.sections()
    }


def from_json(value: object) -> AnswerKey:
    """Return the answer key that ``as_json`` wrote; values of another shape are left out."""
    fields = fields_of(value)
    return AnswerKey(**{name: _entries(fields.get(name)) for name in AnswerKey._fields})


def _entries(value: object) -> Named:
    return tuple(
        (as_text(entry.get("name")) or "", dump_text(entry.get("text")))
        for entry in items_of(value)
        if isinstance(entry, Mapping)
    )
