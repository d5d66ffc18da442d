"""An answer key as a text: how a run should have gone, and how it was scored."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mast_tui.traces.model import AnswerKey, Named, Trace
from mast_tui.ui.text.highlighting import TextPart

if TYPE_CHECKING:
    from mast_tui.ui.actions.registry import KeyOf

TITLES: Final = {
    "expected_actions": "Expected actions",
    "reference": "Reference answer",
    "scores": "Rewards and scores",
    "explanations": "In the scorer's words",
    "step_scores": "Scores on the way",
    "patch": "Patches",
    "tests": "Tests",
    "failures": "What others say went wrong",
    "other": "What else the benchmark keeps",
}
"""The headings of the sections, in the words of people who read them."""

NOTHING: Final = (
    "This trace brings no answer key.\n\n"
    "What would: expected actions (τ-bench), a reference answer or ground truth (Who&When, "
    "Inspect), rewards and scores with their explanations, a patch and its tests (SWE-agent, "
    "OpenHands, Terminal-Bench), labels that the file carries. An outcomes.csv beside the "
    "traces tells how they ended."
)
_SHORT: Final = 70
_MOST_JSON: Final = 1 << 16
_ONE_LINE: Final = 200
"""Longer texts begin on a line of their own."""


@dataclass(frozen=True, slots=True)
class AnswerPage:
    """An answer key as one text, with the parts of it that stand out."""

    text: str
    parts: tuple[TextPart, ...]


def page_of(key: AnswerKey, number_of: Callable[[str], int | None]) -> AnswerPage:
    """Set an answer key out, section by section.

    Args:
        key: What is known of the run.
        number_of: The index of the span with a key, or None where there is none.

    Returns:
        The text; headings and names stand out in it.
    """
    lines: list[tuple[str, str | None]] = []
    for section, found in key.sections():
        if lines:
            lines.append(("", None))
        count = f" ({len(found)})" if section in ("expected_actions", "tests") else ""
        lines.append((f"{TITLES[section]}{count}", "heading"))
        if section == "expected_actions":
            lines += _actions(found)
        elif section == "step_scores":
            lines += _entries(tuple((_place(k, number_of), text) for k, text in found))
        else:
            lines += _entries(found)
    parts, offset = [], 0
    for line, style in lines:
        if style is not None:
            end = line.find(":") + 1 if style == "key" and ":" in line else len(line)
            parts.append(TextPart(offset, offset + end, style))
        offset += len(line) + 1
    return AnswerPage("\n".join(line for line, _style in lines), tuple(parts))


def _actions(found: Named) -> Iterator[tuple[str, str | None]]:
    """Each action by its number and name, its arguments below it, one a line."""
    wide = len(str(len(found)))
    for number, (name, arguments) in enumerate(found, 1):
        yield f"{number:>{wide}}. {name}", "name"
        try:
            values = json.loads(arguments)
        except ValueError:
            values = None
        if isinstance(values, dict):
            for argument, value in values.items():
                said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                yield f"{'':{wide}}    {argument}: {said}", None
        elif arguments:
            yield f"{'':{wide}}    {arguments}", None


def _entries(found: Named) -> Iterator[tuple[str, str | None]]:
    """A short text behind its name, a longer one below it."""
    for name, text in found:
        lines = _compact(text).replace("\r\n", "\n").strip("\n").split("\n")
        if len(lines) == 1 and len(lines[0]) <= _ONE_LINE:
            yield f"{name}: {lines[0]}", "key"
        else:
            yield f"{name}:", "key"
            yield from ((line, None) for line in lines)


def _compact(text: str) -> str:
    """A list or an object on one line where it fits, a list of texts one a line; else as it is."""
    if text[:1] not in ("[", "{") or len(text) > _MOST_JSON:
        return text
    try:
        value = json.loads(text)
    except ValueError:
        return text
    short = json.dumps(value, ensure_ascii=False)
    if len(short) <= _SHORT:
        return short
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return "\n".join(f"- {one}" for one in value)
    return text


def _place(key: str, number_of: Callable[[str], int | None]) -> str:
    index = number_of(key)
    return key if index is None else f"#{index + 1}"


def hidden_words(key_of: KeyOf) -> str:
    """Return why the answer key is hidden, and which keys show it."""
    finish = key_of("annotate.finish")
    reveal = key_of("annotate.reveal")
    return f"The answer key is hidden: finish the trace ({finish}), then reveal it ({reveal})"


def answer_page(trace: Trace) -> AnswerPage:
    """Set out what is known of how a run should have gone, or say what would tell it."""
    key = trace.meta.answer_key
    return page_of(key, trace.index_of) if key.entries() else AnswerPage(NOTHING, ())
