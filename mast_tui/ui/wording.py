"""How things are put into words on screen: numbers, times, places, names of traces, titles.

Titles and paragraphs are made of foreign text: they are never markup.
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
    """What traces go by, by their ids: the file each was last seen in, and its place there."""
    return {
        record.trace_id: record.path.name
        if record.record is None
        else f"{record.path.name}#{record.record}"
        for record in records
        if record.path is not None
    }


def names_under(roots: Sequence[Path]) -> Callable[[Trace], str]:
    """Tells a trace's file as seen from the folder that was opened, with its record's number."""
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


def distinct_names(trace: Trace, others: Iterable[Trace]) -> str:
    """What a trace goes by in a title: its file's name without the ending, with as many of the
    folders before it as tell it from the other files of that name.

    Args:
        trace: The trace.
        others: All that are listed, whether it is among them or not.
    """
    path = trace.file
    parts = trace.path.parts
    alike = [
        other.path.parts
        for other in others
        if other.file != path and other.file.endswith(f"{os.sep}{parts[-1]}")
    ]
    length = 1
    while length < len(parts) and any(other[-length:] == parts[-length:] for other in alike):
        length += 1
    name = str(Path(*parts[-length:]).with_suffix(""))
    return name if trace.record is None else f"{name}#{trace.record}"


def natural(name: str) -> str:
    """A sorting key by which ``2.json`` comes before ``10.json``, and numbers before letters."""
    parts = _DIGITS.split(name.casefold())
    # Of two numbers without leading zeros the longer one is the greater.
    parts[1::2] = [f"\0{chr(len(digits))}{digits}" for digits in map(_plain, parts[1::2])]
    return "".join(parts)


_DIGITS: Final = re.compile(r"(\d+)")


def _plain(digits: str) -> str:
    ascii_digits = digits if digits.isascii() else "".join(str(int(one)) for one in digits)
    return ascii_digits.lstrip("0")


IndexOf = Callable[[str], int | None]

QUOTE_CHARS: Final = 30
"""How much of a quote stands in a place's name, in code points."""

# Numbers and names


def joined(names: Sequence[str]) -> str:
    """Put names into a sentence: ``a``, ``a and b``, ``a, b and c``."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def short_count(number: int) -> str:
    """A number in at most five characters: ``812``, ``4.1k``, ``812k``, ``1.2M``."""
    if number < 1_000:
        return str(number)
    for size, unit in ((1_000, "k"), (1_000_000, "M"), (1_000_000_000, "G")):
        value = number / size
        if value < 999.5:
            return f"{value:.1f}{unit}" if value < 9.95 else f"{value:.0f}{unit}"
    return f"{number / 1e9:.0f}G"


def cost_words(cost: float) -> str:
    """Money, in whatever currency the prices were told."""
    return "<0.01" if 0 < cost < 0.01 else f"{cost:,.2f}"


def last_cells(text: str, cells: int) -> str:
    """The end of a text, in so many cells at most."""
    while cell_len(text) > cells:
        text = text[max(1, len(text) - cells) :] if text.isascii() else text[1:]
    return text


def name_within(name: str, cells: int) -> str:
    """A trace's name in at most so many cells; what tells it from the others beside it stays.

    That is the file's name, so the folders before it are cut; of a long file name the middle, as
    it has a date or a task in front and the number of the run at its end.
    """
    if cell_len(name) <= cells:
        return name
    file = name.rpartition("/")[2]
    if cell_len(file) < cells:
        return f"…{last_cells(name, cells - 1)}"
    end = cells // 3
    return f"{set_cell_size(file, max(0, cells - 1 - end))}…{last_cells(file, end)}"


# Places


def place_words(target: Target, index_of: IndexOf, *, quoted: bool = True) -> str:
    """A target for people: ``#13``, ``#13 to #18``, ``“…” in #13``, ``the whole trace``.

    Spans that are not known go by their key. Fit for display.
    """
    if target.first is None or target.last is None:
        return "the whole trace"
    places = []
    for key in dict.fromkeys((target.first, target.last)):
        index = index_of(key)
        places.append(f"#{index + 1}" if index is not None else one_line(key, 24))
    words = " to ".join(places)
    if quoted and target.quote:
        return f"“{one_line(target.quote, QUOTE_CHARS)}” in {words}"
    return words


# Titles and paragraphs


def plain_title(text: str) -> Text:
    """A border title: one line, control characters made visible, brackets as they are."""
    return Text(one_line(text), end="")


def trace_title(
    trace: Trace,
    outcome: Outcome = Outcome.UNKNOWN,
    awaited: str | None = None,
    name: str | None = None,
) -> list[str]:
    """What a trace is called, who made it, how it came out, and how far it has been read.

    Args:
        trace: The trace.
        outcome: How it came out, where that may be told.
        awaited: How far another process has come with it, where one reads it.
        name: What it goes by among others; None: its file's name.
    """
    record = "" if trace.record is None else f"#{trace.record}"
    words = [one_line(f"{trace.path.stem}{record}" if name is None else name)]
    words += [one_line(part, 40) for part in (trace.meta.model or trace.meta.system,) if part]
    if outcome is not Outcome.UNKNOWN:
        words.append(str(outcome))
    if awaited is not None:
        return [*words, awaited]
    loaded = trace.loaded
    count = max(len(trace), loaded.spans)
    words.append(f"{count} span{'' if count == 1 else 's'}")
    if not (loaded.complete or loaded.all_spans):
        words.append(f"{loaded.done / max(1, loaded.total):.0%} read")
    return words


def origin_title(span: Span) -> Text:
    """Where a span stands in its source, and what its model call took and gave in tokens."""
    counts = []
    if span.tokens is not None:
        given, taken = span.tokens.output, span.tokens.input
        counts = [f"{taken:,} tokens in"] if taken is not None else []
        counts += [f"{given:,} out" if counts else f"{given:,} tokens out"] if given else []
    return plain_title(" · ".join([*counts, span.place]))


def plain_lines(text: str) -> Content:
    """A text of some lines: control characters made visible, brackets as they are."""
    from textual.content import Content  # the line mode (cli/read.py) has no Textual

    return Content("\n".join(display_lines(text)))
