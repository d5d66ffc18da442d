"""Titles and paragraphs that are never markup."""

from __future__ import annotations

from rich.text import Text
from textual.content import Content

from mast_tui.safe_text import display_lines, one_line
from mast_tui.traces.model import Outcome, Span, Trace


def plain_title(text: str) -> Text:
    """A border title: one line, control characters made visible, brackets as they are."""
    return Text(one_line(text), end="")


def trace_title(
    trace: Trace, outcome: Outcome = Outcome.UNKNOWN, awaited: str | None = None
) -> list[str]:
    """What a trace is called, who made it, how it came out, and how far it has been read.

    ``awaited`` tells how far another process has come with it, where one reads it.
    """
    record = "" if trace.record is None else f"#{trace.record}"
    words = [one_line(f"{trace.path.stem}{record}")]
    words += [one_line(part, 40) for part in (trace.meta.model or trace.meta.system,) if part]
    if outcome is not Outcome.UNKNOWN:
        words.append(str(outcome))
    if awaited is not None:
        return [*words, awaited]
    count = len(trace)
    words.append(f"{count} span{'' if count == 1 else 's'}")
    if not trace.loaded.complete:
        words.append(f"{trace.loaded.done / max(1, trace.loaded.total):.0%} read")
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
    return Content("\n".join(display_lines(text)))
