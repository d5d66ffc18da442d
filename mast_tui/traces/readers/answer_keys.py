"""What files tell of how a run should have gone and how it was scored, sorted into an answer key.

Which field belongs to which section is told here by its name, for all readers; a reader that knows
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
_WORDS: Final = name_set(
    "comment explanation feedback justification rationale reason reasoning why"
)
"""Under which names a scorer tells in words how it came to what it says."""

_VALUES: Final = frozenset({"score", "value", "feedback", "expectation"})
_NOTHING: Final[tuple[object, ...]] = (None, "", [], {})
_DEEPEST: Final = 3
_ARGUMENTS: Final = ("kwargs", "arguments", "args", "input", "parameters")


class AnswerKeyDraft:
    """An answer key while a reader collects it."""

    def __init__(self) -> None:
        self._sections: dict[str, list[tuple[str, str]]] = {}

    def add(self, section: Section, name: str, value: object) -> None:
        """Add one text, or the JSON of any other value; nothing where it is empty."""
        if value not in _NOTHING:
            self._sections.setdefault(section, []).append((name, dump_text(value)))

    def fields(self, record: Fields, also: Mapping[str, Section] | None = None) -> None:
        """Add what stands in the fields of a record that are known by their names.

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
                self.take(name, value, section)

    def take(self, name: str, value: object, section: Section | None = None) -> None:
        """Add one value in the way of its section, else of that which its name belongs to."""
        section = section or _SECTION_OF.get(name, "other")
        if section == "expected_actions":
            self.actions(value)
        elif section == "scores":
            self.scored(name, value)
        elif section == "patch" and isinstance(value, list):
            self.add(section, name, "\n".join(map(dump_text, value)))
        else:
            self.add(section, name, value)

    def actions(self, value: object) -> None:
        """Add a list of tool calls, each under the tool's name with its arguments as JSON."""
        for action in value if isinstance(value, list) else [value]:
            name = as_text(action.get("name")) if isinstance(action, Mapping) else None
            if not isinstance(action, Mapping) or name is None:
                self.add("expected_actions", "action", action)
                continue
            arguments: object = next((action[one] for one in _ARGUMENTS if one in action), {})
            found = self._sections.setdefault("expected_actions", [])
            found.append((name, dump_text(arguments)))

    def scored(self, name: str, value: object, depth: int = 0) -> None:
        """Add a verdict: parts one by one under their names, words among the explanations."""
        listed = value if isinstance(value, list) else [value]
        named = [one for one in listed if _is_named(one)]
        if named and len(named) == len(listed):
            for one in named:
                self._named_score(one, depth)
            return
        if len(listed) == 1:
            value = listed[0]
        if not isinstance(value, Mapping) or depth >= _DEEPEST:
            self.add("scores", name, value)
            return
        for part, of_part in value.items():
            if part in _WORDS and not isinstance(of_part, Mapping):
                self.add("explanations", f"{name} {part}", of_part)
            elif part in _VALUES:
                self.scored(name, of_part, depth + 1)
            else:
                self.scored(f"{name} {part}", of_part, depth + 1)

    def _named_score(self, score: Fields, depth: int) -> None:
        """Add a score that brings its name; what is neither value nor words stands apart."""
        name = str(score["name"])
        told = {part: value for part, value in score.items() if part in _VALUES or part in _WORDS}
        self.scored(name, told, depth + 1)
        rest = {part: v for part, v in score.items() if part not in told and part != "name"}
        self.add("other", name, rest)

    def key(self) -> AnswerKey:
        """What was collected."""
        return AnswerKey(**{name: tuple(found) for name, found in self._sections.items()})


def _is_named(score: object) -> TypeGuard[Fields]:
    return isinstance(score, Mapping) and as_text(score.get("name")) is not None


def answer_key_of(record: Fields, also: Mapping[str, Section] | None = None) -> AnswerKey:
    """What the fields of a record tell that are known by their names.

    Args:
        record: The record.
        also: Fields that only this kind of record has, and the section of each.
    """
    draft = AnswerKeyDraft()
    draft.fields(record, also)
    return draft.key()


def sorted_by_name(entries: Iterable[tuple[str, str]]) -> AnswerKey:
    """An answer key of names and texts alone, as older versions wrote them."""
    draft = AnswerKeyDraft()
    for name, text in entries:
        section = "failures" if name.startswith(_MISTAKE) else _SECTION_OF.get(name, "other")
        draft.add(section, name, text)
    return draft.key()


def as_json(key: AnswerKey) -> dict[str, list[dict[str, str]]]:
    """The sections that hold something, each a list of ``{"name", "text"}``."""
    return {
        section: [{"name": name, "text": text} for name, text in entries]
        for section, entries in key.sections()
    }


def from_json(value: object) -> AnswerKey:
    """What ``as_json`` wrote; what is of another shape is left out."""
    told = fields_of(value)
    return AnswerKey(**{name: _entries(told.get(name)) for name in AnswerKey._fields})


def _entries(value: object) -> Named:
    return tuple(
        (as_text(entry.get("name")) or "", dump_text(entry.get("text")))
        for entry in items_of(value)
        if isinstance(entry, Mapping)
    )
