"""Texts on screen for numbers, times, targets, names of traces, and titles.

Titles and paragraphs hold foreign text, which is never markup.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from mast_tui.counts import counted as counted
from mast_tui.safe_text import display_lines, one_line
from mast_tui.traces.model import Outcome, Span, Trace

if TYPE_CHECKING:
    from textual.content import Content

    from mast_tui.labels import Target
    from mast_tui.workspace import TraceRecord


def trace_names(records: Iterable[TraceRecord]) -> dict[str, str]:
    """Return the names of traces by id: the file that each was last seen in, with its record."""
    return {
        record.trace_id: record.path.name
        if record.record is None
        else f"{record.path.name}#{record.record}"
        for record in records
        if record.path is not None
    }


def names_under(roots: Sequence[Path]) -> Callable[[Trace], str]:
    """Return a function that names a trace by its path in one of the folders, and its record."""
    beginnings = ["" if str(root) == "." else str(root / "_")[:-1] for root in roots]

    def name_of(trace: Trace) -> str:
        path = trace.file
        inside = [
            path[len(beginning) :]
            for beginning in beginnings
            if path.startswith(beginning) and (beginning or not path.startswith(os.sep))
        ]
        name = min(inside, key=len, default="") or path.rpartition(os.sep)[2]
        return name if trace.record is None else f"{name}#{trace.record}"

    return name_of


def distinct_names(trace: Trace, listed: Iterable[Trace]) -> str:
    """Return the name of a trace for a title: its file without the ending.

    Folders are added until the name differs from all other files of that name.

    Args:
        trace: The trace.
        listed: All listed traces, which may include it.
    """
    path = trace.file
    parts = trace.path.parts
    alike = [
        other.path.parts
        for other in listed
        if other.file != path and other.file.endswith(f"{os.sep}{parts[-1]}")
    ]
    length = 1
    while length < len(parts) and any(other[-length:] == parts[-length:] for other in alike):
        length += 1
    name = str(Path(*parts[-length:]).with_suffix(""))
    return name if trace.record is None else f"{name}#{trace.record}"


def natural(name: str) -> str:
    """Return a sort key that puts ``2.json`` before ``10.json``, and numbers before letters."""
    parts = _DIGITS.split(name.casefold())
    # Without leading zeros a longer number is greater.
    parts[1::2] = [f"\0{chr(len(digits))}{digits}" for digits in map(_plain, parts[1::2])]
    return "".join(parts)


_DIGITS: Final = re.compile(r"(\d+)")


def _plain(digits: str) -> str:
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
    file = name.rpartition("/")[2]
    if cell_len(file) < cells:
        return f"…{last_cells(name, cells - 1)}"
    end = cells // 3
    return f"{set_cell_size(file, max(0, cells - 1 - end))}…{last_cells(file, end)}"


# Targets


def place_words(target: Target, index_of: IndexOf, *, quoted: bool = True) -> str:
    """Return a target as text: ``#13``, ``#13 to #18``, ``“…” in #13``, ``the whole trace``.

    Spans that the trace does not have are shown by their key. Fit for display.

    Args:
        target: The target.
        index_of: Returns the index of a span key, or None.
        quoted: Whether to show the quote.
    """
    if target.first is None or target.last is None:
        return "the whole trace"
    spans = []
    for key in dict.fromkeys((target.first, target.last)):
        index = index_of(key)
        spans.append(f"#{index + 1}" if index is not None else one_line(key, 24))
    text = " to ".join(spans)
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
    """Return the name of a trace, its model, its outcome, and how much of it was read.

    Args:
        trace: The trace.
        outcome: The outcome, if it may be shown.
        waiting: The progress of another process that reads it, or None.
        name: The name among other traces; None for the name of its file.
    """
    record = "" if trace.record is None else f"#{trace.record}"
    parts = [one_line(f"{trace.path.stem}{record}" if name is None else name)]
    parts += [one_line(part, 40) for part in (trace.meta.model or trace.meta.system,) if part]
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
    """Return the source of a span, and the tokens of its model call.

    Args:
        span: The span.
        pictures: The type and size of its pictures.
    """
    counts = [pictures] if pictures else []
    if span.tokens is not None:
        tokens_in = span.tokens.input
        tokens_out = span.tokens.output
        if tokens_in is not None:
            counts.append(f"{tokens_in:,} tokens in")
        if tokens_out:
            noun = "tokens out" if tokens_in is None else "out"
            counts.append(f"{tokens_out:,} {noun}")
    return plain_title(" · ".join([*counts, span.place]))


def plain_lines(text: str) -> Content:
    """Return a text of several lines with visible control characters, never markup."""
    from textual.content import Content  # the line mode (cli/read.py) has no Textual

    return Content("\n".join(display_lines(text)))
