"""Texts on screen for numbers, times, targets, traces and titles.

Titles and paragraphs may contain foreign text, and are never markup.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from mast_tui.counts import counted as counted
from mast_tui.counts import joined_names as joined_names
from mast_tui.safe_text import display_lines, one_line, quote_line
from mast_tui.traces.file_places import name_with_record
from mast_tui.traces.model import Outcome, Span, Trace

if TYPE_CHECKING:
    from textual.content import Content

    from mast_tui.labels import Target
    from mast_tui.workspace import TraceRecord


def trace_names(records: Iterable[TraceRecord]) -> dict[str, str]:
    """Return a name for each trace id: its last known file, with its record.

    A file name that several traces share has its folder. Traces without a known file are left out.
    """
    located = [(record, record.path) for record in records if record.path is not None]
    count_by_name = Counter((path.name, record.record) for record, path in located)
    return {
        record.trace_id: name_with_record(
            "/".join(path.parts[-2:]) if count_by_name[path.name, record.record] > 1 else path.name,
            record.record,
        )
        for record, path in located
    }


def names_under(roots: Sequence[Path]) -> Callable[[Trace], str]:
    """Return a function that names a trace by its path in one of the folders, and its record.

    A trace outside of the folders is named by its file.
    """
    # Each prefix ends with exactly one separator, also that of the root "/".
    prefixes = ["" if str(root) == "." else str(root / "_")[:-1] for root in roots]

    def name_of(trace: Trace) -> str:
        """Return the shortest path of a trace below a folder, or its file name."""
        path = trace.file
        relative_paths = [
            path[len(prefix) :]
            for prefix in prefixes
            if path.startswith(prefix) and (prefix or not path.startswith(os.sep))
        ]
        name = min(relative_paths, key=len, default="") or path.rpartition(os.sep)[2]
        return name_with_record(name, trace.record)

    return name_of


def natural(name: str) -> str:
    """Return a sort key that puts ``2.json`` before ``10.json``, and numbers before letters."""
    parts = _DIGITS.split(name.casefold())
    # Every second part is a number. Without leading zeros, a longer number is greater.
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
"""Returns the index of a span key, or None for an unknown key."""

QUOTE_CHARS: Final = 30
"""The most code points of a quote in the text of a target."""


SURE: Final = "█"
"""The part of a bar below the 95 % interval."""

BELOW: Final = "▓"
"""The part of a bar from the start of the interval to the share."""

ABOVE: Final = "░"
"""The part of a bar from the share to the end of the interval."""


def hidden_traces_text(count: int, key: str) -> str:
    """Return a hint that traces are hidden, with the key that shows them.

    The text is the same for finished traces that wait for a retest, because the annotator must not
    know them.

    Args:
        count: The number of traces.
        key: The key that shows them.
    """
    traces = counted(count, "trace is", "traces are")
    pronoun = "it" if count == 1 else "them"
    return (
        f"{traces} hidden from you: finish your work on {pronoun}, or {key} shows {pronoun} to you "
        "as adjudicator"
    )


def short_count(number: int) -> str:
    """Return a number in at most five characters: ``812``, ``4.1k``, ``812k``, ``1.2M``."""
    if number < 1_000:
        return str(number)
    for size, unit in ((1_000, "k"), (1_000_000, "M"), (1_000_000_000, "G")):
        value = number / size
        if value < 999.5:  # from there on it would be rounded to 1000
            return f"{value:.1f}{unit}" if value < 9.95 else f"{value:.0f}{unit}"
    return f"{number / 1e9:.0f}G"


def cost_text(cost: float) -> str:
    """Return an amount of money in the currency of the prices."""
    return "<0.01" if 0 < cost < 0.01 else f"{cost:,.2f}"


def last_cells(text: str, cells: int) -> str:
    """Return the end of a text that fits into some cells.

    Args:
        text: The text.
        cells: The most cells.
    """
    while cell_len(text) > cells:
        # An ASCII character has one cell. At least one character is removed, so that the loop ends.
        text = text[max(1, len(text) - cells) :] if text.isascii() else text[1:]
    return text


def name_within(name: str, cells: int) -> str:
    """Shorten the name of a trace so that it still differs from its neighbours.

    The folders are cut first. A long file name loses its middle, because its beginning and end
    distinguish it.

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


def span_text(key: str, index_of: IndexOf) -> str:
    """Return the number of a span from 1 (``#3``), or its key if the span is not in the trace.

    Args:
        key: The key of the span.
        index_of: Returns the index of a span key, or None.
    """
    index = index_of(key)
    return one_line(key, 24) if index is None else f"#{index + 1}"


def place_text(target: Target, index_of: IndexOf, *, quoted: bool = True) -> str:
    """Return a target as text: ``#13``, ``#13 to #18``, ``“…” in #13``, ``the whole trace``.

    Spans that are not in the trace are shown by their key.

    Args:
        target: The target.
        index_of: Returns the index of a span key, or None.
        quoted: True to show the quote.
    """
    if target.first is None or target.last is None:
        return "the whole trace"
    keys = dict.fromkeys((target.first, target.last))
    text = " to ".join(span_text(key, index_of) for key in keys)
    if quoted and target.quote:
        return f"“{quote_line(target.quote, QUOTE_CHARS)}” in {text}"
    return text


def places_text(
    targets: Sequence[Target], index_of: IndexOf, most: int, *, quoted: bool = False
) -> str:
    """Return the first of several targets as text: ``#3, #5 to #7 …``; empty without targets.

    Args:
        targets: The targets, in the order of the text.
        index_of: Returns the index of a span key, or None.
        most: The most targets to name.
        quoted: True to show quotes.
    """
    places = [place_text(target, index_of, quoted=quoted) for target in targets[:most]]
    return ", ".join(places) + (" …" if len(targets) > most else "")


def plain_title(text: str) -> Text:
    """Return a border title: one line with visible control characters, never markup."""
    return Text(one_line(text), end="")


def trace_title(
    trace: Trace,
    outcome: Outcome = Outcome.UNKNOWN,
    waiting: str | None = None,
    name: str | None = None,
) -> list[str]:
    """Return the parts of a title: name, model or system, outcome, and progress.

    Args:
        trace: The trace.
        outcome: The outcome if it is visible.
        waiting: The progress of another process that reads the trace; None without such a process.
        name: The name; None for the name of its file.
    """
    if name is None:
        name = name_with_record(trace.path.stem, trace.record)
    parts = [one_line(name)]
    model = trace.meta.model or trace.meta.system
    if model:
        parts.append(one_line(model, 40))
    if outcome is not Outcome.UNKNOWN:
        parts.append(str(outcome))
    return [*parts, waiting] if waiting is not None else [*parts, *_progress_parts(trace)]


def _progress_parts(trace: Trace) -> list[str]:
    """Return the number of spans so far, and the share that was read unless all was read."""
    loaded = trace.loaded
    # An earlier reading may have counted more spans than this one has reached.
    count = max(len(trace), loaded.spans)
    parts = [f"{count} span{'' if count == 1 else 's'}"]
    if not loaded.complete and not loaded.all_spans:
        parts.append(f"{loaded.done / max(1, loaded.total):.0%} read")
    return parts


def span_title_parts(span: Span) -> list[str]:
    """Return the number and kind of a span, its agent, and its name if it has one."""
    parts = [f"#{span.index + 1} {span.kind.replace('_', ' ')}", span.agent]
    return [*parts, span.name] if span.name else parts


def origin_title(span: Span, pictures: str = "") -> Text:
    """Return a title with the pictures of a span, its tokens, and its source.

    Args:
        span: The span.
        pictures: The type and size of its pictures; empty for none.
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
    parts.append(f"file {span.place}" if span.place.startswith("line ") else span.place)
    return plain_title(" · ".join(parts))


def plain_lines(text: str) -> Content:
    """Return a text of several lines with visible control characters, never markup."""
    from textual.content import Content  # the line mode (cli/read.py) has no Textual

    return Content("\n".join(display_lines(text)))
