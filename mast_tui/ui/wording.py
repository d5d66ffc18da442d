"""Texts on screen for numbers, times, targets, names of traces, titles, and suggestions.

Titles and paragraphs hold foreign text, which is never markup.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from mast_tui.counts import counted as counted
from mast_tui.labels import JUDGE_PREFIX, Match
from mast_tui.safe_text import display_lines, one_line
from mast_tui.traces.model import Outcome, Span, Trace

if TYPE_CHECKING:
    from textual.content import Content

    from mast_tui.labels import Evidence, Target
    from mast_tui.session import Suggestion
    from mast_tui.workspace import TraceRecord


def trace_names(records: Iterable[TraceRecord]) -> dict[str, str]:
    """Return the names of traces by id: the name of the last known file, with the record in it.

    Traces without a known file are left out.
    """
    return {
        record.trace_id: _with_record(record.path.name, record.record)
        for record in records
        if record.path is not None
    }


def _with_record(name: str, record: int | None) -> str:
    """Return the name of a file, followed by the record of a trace in it if it has one."""
    return name if record is None else f"{name}#{record}"


def names_under(roots: Sequence[Path]) -> Callable[[Trace], str]:
    """Return a function that names a trace by its path in one of the folders, and its record.

    The name of a trace outside of the folders is that of its file.
    """
    prefixes = ["" if str(root) == "." else str(root / "_")[:-1] for root in roots]

    def name_of(trace: Trace) -> str:
        """Return the shortest path of a trace below one of the folders, or its file name."""
        path = trace.file
        relative_paths = [
            path[len(prefix) :]
            for prefix in prefixes
            if path.startswith(prefix) and (prefix or not path.startswith(os.sep))
        ]
        file_name = path.rpartition(os.sep)[2]
        name = min(relative_paths, key=len, default="") or file_name
        return _with_record(name, trace.record)

    return name_of


def distinct_name(trace: Trace, listed: Iterable[Trace]) -> str:
    """Return the name of a trace for a title: its file without the ending.

    Folders are added until the name differs from the names of all other files.

    Args:
        trace: The trace.
        listed: All listed traces, which may include this one.
    """
    path = trace.file
    parts = trace.path.parts
    parts_of_same_name = [
        other.path.parts
        for other in listed
        if other.file != path and other.file.endswith(f"{os.sep}{parts[-1]}")
    ]
    part_count = 1
    while part_count < len(parts) and any(
        other_parts[-part_count:] == parts[-part_count:] for other_parts in parts_of_same_name
    ):
        part_count += 1
    name = str(Path(*parts[-part_count:]).with_suffix(""))
    return _with_record(name, trace.record)


def natural(name: str) -> str:
    """Return a sort key that puts ``2.json`` before ``10.json``, and numbers before letters."""
    parts = _DIGITS.split(name.casefold())
    # Every second part is a number. Without leading zeros a longer number is greater.
    for position in range(1, len(parts), 2):
        digits = _without_leading_zeros(parts[position])
        parts[position] = f"\0{chr(len(digits))}{digits}"
    return "".join(parts)


_DIGITS: Final = re.compile(r"(\d+)")


def _without_leading_zeros(digits: str) -> str:
    """Return a number in ASCII digits without leading zeros."""
    ascii_digits = digits if digits.isascii() else "".join(str(int(digit)) for digit in digits)
    return ascii_digits.lstrip("0")


IndexOf = Callable[[str], int | None]
"""Returns the index of a span key, or None if the trace has no such span."""

QUOTE_CHARS: Final = 30
"""The most code points of a quote in the text of a target."""

# Numbers and names


def joined(names: Sequence[str]) -> str:
    """Put names into a sentence: ``a``, ``a and b``, ``a, b and c``."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def short_count(number: int) -> str:
    """Return a number in at most five characters: ``812``, ``4.1k``, ``812k``, ``1.2M``."""
    if number < 1_000:
        return str(number)
    for size, unit in ((1_000, "k"), (1_000_000, "M"), (1_000_000_000, "G")):
        value = number / size
        if value < 999.5:
            return f"{value:.1f}{unit}" if value < 9.95 else f"{value:.0f}{unit}"
    return f"{number / 1e9:.0f}G"


def cost_words(cost: float) -> str:
    """Return an amount of money, in the currency of the prices."""
    return "<0.01" if 0 < cost < 0.01 else f"{cost:,.2f}"


def last_cells(text: str, cells: int) -> str:
    """Return the end of a text.

    Args:
        text: The text.
        cells: The most cells of the result.
    """
    while cell_len(text) > cells:
        text = text[max(1, len(text) - cells) :] if text.isascii() else text[1:]
    return text


def name_within(name: str, cells: int) -> str:
    """Shorten the name of a trace so that it still differs from its neighbours.

    The folders are cut first. A long file name loses its middle, because it often begins with a
    date or a task and ends with the number of the run.

    Args:
        name: The name.
        cells: The most cells of the result.
    """
    if cell_len(name) <= cells:
        return name
    file_name = name.rpartition("/")[2]
    if cell_len(file_name) < cells:
        return f"…{last_cells(name, cells - 1)}"
    end_cells = cells // 3
    begin_cells = max(0, cells - 1 - end_cells)
    return f"{set_cell_size(file_name, begin_cells)}…{last_cells(file_name, end_cells)}"


# Targets


def place_words(target: Target, index_of: IndexOf, *, quoted: bool = True) -> str:
    """Return a target as text: ``#13``, ``#13 to #18``, ``“…” in #13``, ``the whole trace``.

    Spans that the trace does not have are shown by their key. Fit for display.

    Args:
        target: The target.
        index_of: Returns the index of a span key, or None.
        quoted: True to show the quote.
    """
    if target.first is None or target.last is None:
        return "the whole trace"
    span_texts = []
    for key in dict.fromkeys((target.first, target.last)):
        index = index_of(key)
        span_texts.append(f"#{index + 1}" if index is not None else one_line(key, 24))
    text = " to ".join(span_texts)
    if quoted and target.quote:
        return f"“{one_line(target.quote, QUOTE_CHARS)}” in {text}"
    return text


# Titles and paragraphs


def plain_title(text: str) -> Text:
    """Return a border title: one line with visible control characters, never markup."""
    return Text(one_line(text), end="")


def trace_title(
    trace: Trace,
    outcome: Outcome = Outcome.UNKNOWN,
    waiting: str | None = None,
    name: str | None = None,
) -> list[str]:
    """Return the parts of a title: name, model or system, outcome, and progress of reading.

    Args:
        trace: The trace.
        outcome: The outcome, if it may be shown.
        waiting: The progress of another process that reads the trace; None without one.
        name: The name among other traces; None for the name of its file.
    """
    if name is None:
        name = _with_record(trace.path.stem, trace.record)
    parts = [one_line(name)]
    model = trace.meta.model or trace.meta.system
    if model:
        parts.append(one_line(model, 40))
    if outcome is not Outcome.UNKNOWN:
        parts.append(str(outcome))
    if waiting is not None:
        return [*parts, waiting]
    loaded = trace.loaded
    count = max(len(trace), loaded.spans)
    parts.append(f"{count} span{'' if count == 1 else 's'}")
    if not (loaded.complete or loaded.all_spans):
        parts.append(f"{loaded.done / max(1, loaded.total):.0%} read")
    return parts


def origin_title(span: Span, pictures: str = "") -> Text:
    """Return a title with the pictures of a span, the tokens of its model call, and its source.

    Args:
        span: The span.
        pictures: The type and size of its pictures; empty if it has none.
    """
    parts = [pictures] if pictures else []
    if span.tokens is not None:
        tokens_in = span.tokens.input
        tokens_out = span.tokens.output
        if tokens_in is not None:
            parts.append(f"{tokens_in:,} tokens in")
        if tokens_out:
            noun = "tokens out" if tokens_in is None else "out"
            parts.append(f"{tokens_out:,} {noun}")
    parts.append(span.place)
    return plain_title(" · ".join(parts))


def plain_lines(text: str) -> Content:
    """Return a text of several lines with visible control characters, never markup."""
    from textual.content import Content  # the line mode (cli/read.py) has no Textual

    return Content("\n".join(display_lines(text)))


NOT_FOUND: Final = "✗"
ALTERED: Final = "≠"
IN_PARTS: Final = "⋯"
REWORDED: Final = "≈"
MOVED: Final = "↷"
DECISIVE: Final = "!"

MAX_NAME_CHARS: Final = 40
"""The most code points of a judge's name."""

MAX_QUOTE_CHARS: Final = 300
"""The most code points of a quote that was not found."""

MAX_WORDING_CHARS: Final = 4_000
"""The most code points of a quote that is compared with the trace."""

_QUOTED: Final = re.compile(r"[“\"`‘].*?[”\"`’]")
_WORD: Final = re.compile(r"(?<![\w#/.-])[a-z]+(?![\w/.-]*[\d/_.-]\w)")
_RULE_WORDS: Final = 5
"""The number of words that identify a rule by its reason."""

_CONTEXT: Final = 36
"""The code points that are shown on each side of a difference."""

_LEFT_OUT: Final = "[…]"
_MAX_DIFFERENCES: Final = 4
_MAX_DIFFERENCE_CHARS: Final = 80


@dataclass(frozen=True, slots=True)
class SuggestionLine:
    """A line fit for display.

    Attributes:
        text: The line.
        highlights: The ranges of the line that differ from another line.
        warns: False if the line only shows a text.
    """

    text: str
    highlights: tuple[tuple[int, int], ...] = ()
    warns: bool = True


def judge_name(judge: str) -> str:
    """Return the name of a judge without its prefix.

    If the name is long, the part before ``@`` is shortened, and the hash of the prompt stays.
    """
    name = judge.removeprefix(JUDGE_PREFIX)
    model, separator, prompt_hash = name.rpartition("@")
    if not separator or len(name) <= MAX_NAME_CHARS:
        return one_line(name, MAX_NAME_CHARS)
    prompt_hash = one_line(prompt_hash, MAX_NAME_CHARS // 2)
    return f"{one_line(model, MAX_NAME_CHARS - 1 - len(prompt_hash))}@{prompt_hash}"


def rule_words(rationale: str) -> str:
    """Return the words that identify the rule that gave a reason.

    The labels of a judge do not name its rules. A rule gives the same reason everywhere, except for
    numbers, names and quotes, which are left out here.
    """
    return " ".join(_WORD.findall(_QUOTED.sub(" ", rationale))[:_RULE_WORDS])


def source_words(suggestion: Suggestion, index_of: IndexOf) -> str:
    """Return the judge of a suggestion, its confidence and its target, in one line.

    Args:
        suggestion: The suggestion.
        index_of: Returns the index of a span key, or None.
    """
    parts = [judge_name(suggestion.judge)]
    if suggestion.confidence is not None:
        parts.append(f"{suggestion.confidence:.2f}")
    return f"{'  '.join(parts)} · {place_words(suggestion.target, index_of)}"


def warnings_on(suggestion: Suggestion, index_of: IndexOf) -> tuple[SuggestionLine, ...]:
    """Return the doubts about the quote of a suggestion, and its role for the outcome, as lines.

    Args:
        suggestion: The suggestion.
        index_of: Returns the index of a span key, or None.

    Returns:
        The lines; none if the quote is as the judge gave it and the step is not decisive.
    """
    lines: list[SuggestionLine] = []
    if suggestion.evidence:
        lines += _evidence_lines(suggestion.evidence, index_of)
    if suggestion.remedy:
        lines.append(
            SuggestionLine(f"{DECISIVE} decisive step: its correction would have saved the run")
        )
        lines.append(
            SuggestionLine(f"instead: {one_line(suggestion.remedy, MAX_QUOTE_CHARS)}", warns=False)
        )
    elif suggestion.decisive:
        lines.append(SuggestionLine(f"{DECISIVE} decisive for the outcome, says the judge"))
    return tuple(lines)


def _evidence_lines(evidence: Evidence, index_of: IndexOf) -> Iterator[SuggestionLine]:
    """Yield a line for each doubt about the quote: not found, moved, or differing."""
    if not evidence.placed:
        quote = one_line(evidence.quote, MAX_QUOTE_CHARS)
        yield SuggestionLine(f"{NOT_FOUND} quote not in the trace: “{quote}”")
        return
    if evidence.named is not None:
        named_spans = [_span_text(key, index_of) for key in dict.fromkeys(evidence.named)]
        position = "elsewhere"
        if evidence.key is not None:
            position = f"in {_span_text(evidence.key, index_of)}"
        yield SuggestionLine(
            f"{MOVED} place moved: the judge named {' to '.join(named_spans)}, "
            f"the quote is {position}"
        )
    if evidence.match is Match.FUZZY:
        yield SuggestionLine(f"{REWORDED} quote found in other words, which were not compared")
    elif evidence.match is Match.IN_PARTS:
        yield SuggestionLine(f"{IN_PARTS} quote in parts: the text between them is left out")
        if evidence.wording is not None:
            yield _wording_line("judge", evidence.wording[:MAX_WORDING_CHARS], ())
    elif evidence.match in (Match.REWORDED, Match.ALTERED):
        yield from _difference_lines(evidence, evidence.match)


def _difference_lines(evidence: Evidence, match: Match) -> Iterator[SuggestionLine]:
    """Yield the differences between a quote and the text of the trace, and both wordings.

    For an altered quote, only the differences that alter its meaning count.
    """
    is_altered = match is Match.ALTERED
    verdict = f"{ALTERED if is_altered else REWORDED} {match.value}"
    if evidence.wording is None:
        yield SuggestionLine(f"{verdict} quote")
        return
    # Start-up: rarely needed, and the import takes time.
    from mast_tui.judges.word_comparison import compare

    judge_wording = evidence.wording[:MAX_WORDING_CHARS]
    trace_wording = evidence.quote[:MAX_WORDING_CHARS]
    comparison = compare(judge_wording, trace_wording, in_parts=True)
    differences = [
        difference for difference in comparison.differences if difference.altering or not is_altered
    ]
    texts = [
        _difference_text(
            judge_wording[slice(*difference.quote_range)],
            trace_wording[slice(*difference.text_range)],
        )
        for difference in differences[:_MAX_DIFFERENCES]
    ]
    if len(differences) > len(texts):
        texts.append(f"and {len(differences) - len(texts)} more")
    yield SuggestionLine(f"{verdict}: {'; '.join(texts)}" if texts else f"{verdict} quote")
    quote_ranges = [difference.quote_range for difference in differences]
    yield _wording_line("judge", judge_wording, quote_ranges)
    text_ranges = [difference.text_range for difference in differences]
    yield _wording_line("trace", trace_wording, text_ranges)


def _difference_text(quoted: str, original: str) -> str:
    """Return the text for a part that a quote has in place of a part of the original.

    Either part may be empty.
    """
    quoted_part = one_line(quoted, _MAX_DIFFERENCE_CHARS)
    original_part = one_line(original, _MAX_DIFFERENCE_CHARS)
    if not original_part:
        return f"“{quoted_part}” put in"
    if not quoted_part:
        return f"“{original_part}” left out"
    return f"{quoted_part} → {original_part}"


def _wording_line(
    source: str, wording: str, differences: Sequence[tuple[int, int]]
) -> SuggestionLine:
    """Return a wording on one line, with its differences from another wording highlighted.

    Long text between two differences is cut; without differences the whole wording is shown.
    """
    text = f"{source}: “"
    highlights = []
    shown_until = 0
    for start, end in differences:
        equal_text = wording[shown_until:start]
        text += one_line(_cut_equal_text(equal_text, after_difference=shown_until > 0))
        highlight_start = len(text)
        text += one_line(wording[start:end])
        if highlight_start < len(text):
            highlights.append((highlight_start, len(text)))
        shown_until = end
    remaining_text = wording[shown_until:]
    if differences:
        remaining_text = _cut_equal_text(
            remaining_text, after_difference=True, before_difference=False
        )
    return SuggestionLine(f"{text}{one_line(remaining_text)}”", tuple(highlights), warns=False)


def _cut_equal_text(text: str, *, after_difference: bool, before_difference: bool = True) -> str:
    """Return a text that two wordings share, with only its words next to a difference if long.

    Args:
        text: The text.
        after_difference: True if a difference comes before the text; then its begin stays.
        before_difference: True if a difference follows the text; then its end stays.
    """
    if len(text) <= 2 * _CONTEXT + len(_LEFT_OUT):
        return text
    begin = text[:_CONTEXT].rsplit(None, 1)[0] + " " if after_difference else ""
    end = " " + text[-_CONTEXT:].split(None, 1)[-1] if before_difference else ""
    return f"{begin}{_LEFT_OUT}{end}"


def _span_text(key: str, index_of: IndexOf) -> str:
    """Return the number of a span from 1 (``#3``), or its key if the trace lacks the span."""
    index = index_of(key)
    return one_line(key, 24) if index is None else f"#{index + 1}"
