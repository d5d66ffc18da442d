"""Texts about a trace: its answer key, sums of time, tokens and money, and changed files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mast_tui.columns import table_lines
from mast_tui.safe_text import one_line
from mast_tui.traces.file_edits import FileEdit, file_text
from mast_tui.traces.model import AnswerKey, Named, Trace
from mast_tui.traces.usage import CostOf, usage_of, usage_tables
from mast_tui.ui.text.highlighting import TextPart

if TYPE_CHECKING:
    from mast_tui.ui.actions.registry import KeyOf

TITLES: Final = {
    "expected_actions": "Expected actions",
    "reference": "Reference answer",
    "scores": "Rewards and scores",
    "explanations": "Explanations of the scores",
    "step_scores": "Scores of steps",
    "patch": "Patches",
    "tests": "Tests",
    "failures": "What others say went wrong",
    "other": "Other data of the benchmark",
}
"""The headings of the sections."""

NO_ANSWER_KEY: Final = (
    "This trace has no answer key.\n\n"
    "A trace has one if its file contains expected actions (τ-bench), a reference answer or ground "
    "truth (Who&When, Inspect), rewards and scores with their explanations, a patch and its tests "
    "(SWE-agent, OpenHands, Terminal-Bench), or labels. An outcomes.csv beside the traces tells "
    "how they ended."
)
_CHANGE_STYLES: Final = {"+": "added", "-": "removed", "@": "hunk"}
_SHORT_JSON_CHARS: Final = 70
_MOST_JSON: Final = 1 << 16
_ONE_LINE_CHARS: Final = 200
"""The most characters of a text that is shown on the line of its name."""


@dataclass(frozen=True, slots=True)
class TextPage:
    """A text with its highlighted parts."""

    text: str
    parts: tuple[TextPart, ...]


StyledLine = tuple[str, str | None]
"""A line and the name of its style or None. ``key`` styles only the part before the colon."""


def page_of(key: AnswerKey, index_of: Callable[[str], int | None]) -> TextPage:
    """Return an answer key as a page of sections.

    Args:
        key: The answer key.
        index_of: Returns the index of the span with a key, or None.
    """
    lines: list[StyledLine] = []
    for section, entries in key.sections():
        if lines:
            lines.append(("", None))
        count_text = f" ({len(entries)})" if section in ("expected_actions", "tests") else ""
        lines.append((f"{TITLES[section]}{count_text}", "heading"))
        if section == "expected_actions":
            lines += _action_lines(entries)
        elif section == "step_scores":
            scores = [(_span_text(span_key, index_of), text) for span_key, text in entries]
            lines += _entry_lines(scores)
        else:
            lines += _entry_lines(entries)
    return _page_of_lines(lines)


def section_page(key: AnswerKey, section: str) -> TextPage:
    """Return one section of an answer key as a page.

    Spans are named by their keys.

    Args:
        key: The answer key.
        section: The name of the section.
    """
    return page_of(AnswerKey()._replace(**{section: getattr(key, section)}), lambda _key: None)


def file_page(path: str, edits: Sequence[FileEdit]) -> TextPage:
    """Return a page with the changes of a file, the last one first, and its text if known.

    Args:
        path: The path of the file.
        edits: The changes of the file, the first one first; at least one.
    """
    lines: list[StyledLine] = [(one_line(path), "name")]
    for edit in reversed(edits):
        result = " failed; it is not in the file" if edit.failed else ""
        lines += [("", None), (f"Change in #{edit.index + 1}{result}", "heading")]
        lines += [(line, _CHANGE_STYLES.get(line[:1])) for line in edit.lines()]
    text = file_text(edits)
    lines += [("", None), ("The whole file, unless a command has changed it otherwise", "heading")]
    if text is None:
        lines.append(("Not known: the run did not write the whole file, or has removed it.", None))
    else:
        lines += [(line, None) for line in text.splitlines()]
    return _page_of_lines(lines)


def _page_of_lines(lines: Sequence[StyledLine]) -> TextPage:
    parts = []
    offset = 0
    for line, style in lines:
        if style is not None:
            styled_length = len(line)
            if style == "key" and ":" in line:  # only the name, not its text
                styled_length = line.find(":") + 1
            parts.append(TextPart(offset, offset + styled_length, style))
        offset += len(line) + 1
    return TextPage("\n".join(line for line, _style in lines), tuple(parts))


def _action_lines(actions: Named) -> Iterator[StyledLine]:
    """Yield a line for each action, and one for each of its arguments.

    Arguments that are no JSON object become one line.
    """
    number_width = len(str(len(actions)))
    indent = " " * (number_width + 4)
    for number, (name, arguments) in enumerate(actions, start=1):
        yield f"{number:>{number_width}}. {name}", "name"
        try:
            value_by_name = json.loads(arguments)
        except ValueError:
            value_by_name = None
        if isinstance(value_by_name, dict):
            for argument, value in value_by_name.items():
                text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                yield f"{indent}{argument}: {text}", None
        elif arguments:
            yield f"{indent}{arguments}", None


def _entry_lines(entries: Sequence[tuple[str, str]]) -> Iterator[StyledLine]:
    """Yield each name with its text: a short text on the same line, a long text below."""
    for name, text in entries:
        text_lines = _compact_json(text).replace("\r\n", "\n").strip("\n").split("\n")
        if len(text_lines) == 1 and len(text_lines[0]) <= _ONE_LINE_CHARS:
            yield f"{name}: {text_lines[0]}", "key"
        else:
            yield f"{name}:", "key"
            for line in text_lines:
                yield line, None


def _compact_json(text: str) -> str:
    """Return short JSON on one line, a JSON list of texts as lines, and other texts unchanged."""
    if text[:1] not in ("[", "{") or len(text) > _MOST_JSON:
        return text
    try:
        value = json.loads(text)
    except ValueError:
        return text
    one_line_json = json.dumps(value, ensure_ascii=False)
    if len(one_line_json) <= _SHORT_JSON_CHARS:
        return one_line_json
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(f"- {item}" for item in value)
    return text


def _span_text(key: str, index_of: Callable[[str], int | None]) -> str:
    """Return the number of a span from 1 (``#3``), or its key if the span is not in the trace."""
    index = index_of(key)
    return key if index is None else f"#{index + 1}"


def hidden_sentence(key_of: KeyOf) -> str:
    """Return the message that the answer key is hidden, with the keys that show it."""
    finish_key = key_of("annotate.finish")
    reveal_key = key_of("annotate.reveal")
    return (
        f"The answer key is hidden: finish the trace ({finish_key}), then reveal it ({reveal_key})"
    )


def answer_page(trace: Trace) -> TextPage:
    """Return the answer key of a trace as a page, or a page about the files that have one."""
    key = trace.meta.answer_key
    return page_of(key, trace.index_of) if key.entries() else TextPage(NO_ANSWER_KEY, ())


def usage_page(trace: Trace, cost_of: CostOf | None) -> TextPage:
    """Return a page with the time, tokens and cost of a trace by agent and by tool.

    Args:
        trace: The trace, as far as it has been read.
        cost_of: Returns the cost of tokens; None if there are no prices.
    """
    lines: list[StyledLine] = []
    for table in usage_tables(usage_of(trace), cost_of):
        headings, *rows = table_lines(table.columns, table.rows, one_line)
        lines += [(table.title, "heading"), (headings, "key"), *((row, None) for row in rows)]
        lines.append(("", None))
    lines += [(note, None) for note in _usage_notes(trace, cost_of)]
    return _page_of_lines(lines)


def _usage_notes(trace: Trace, cost_of: CostOf | None) -> Iterator[str]:
    """Yield notes on how time is counted, on missing prices and on incomplete sums."""
    yield "Time of a tool: its calls, and the waits for its results."
    yield "Time of an agent: all other time before its steps. Tokens: those of model calls."
    if cost_of is None:
        model = trace.meta.model
        if model:
            yield f"No cost: [judge.prices] in config.toml has no prices for {one_line(model)}."
        else:
            yield "No cost: the trace does not name its model."
    if not trace.loaded.complete:
        yield "The trace is still being read; these are the sums so far."
