"""A run with its labels as one HTML file that needs nothing beside it, and the index of several.

Every word of a trace is escaped, with control characters made visible. The policy of the page lets
no script run but its own, and nothing is loaded.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from markupsafe import Markup, escape

from mast_tui.counts import counted, duration, offset
from mast_tui.exchange.page.content import PageLabel, PageStep, RunPage
from mast_tui.exchange.page.records import ELEMENT_ID, embedded_json
from mast_tui.reports.render.html import colour_variables, own_script, page_environment
from mast_tui.safe_text import COLOUR_SEQUENCE, safe_line
from mast_tui.traces.io.json_values import InvalidJSON, load_json
from mast_tui.traces.model import Role, SpanKind, SpanStatus
from mast_tui.traces.pictures import Picture
from mast_tui.traces.times import iso_time

_TEMPLATES: Final = Path(__file__).with_name("templates")

LONGEST_WHOLE: Final = 1_600
"""The most characters of a text that is shown without a fold."""

MOST_LINES: Final = 18
"""The most lines of a text that is shown without a fold."""

_PROSE: Final = (SpanKind.MESSAGE, SpanKind.REASONING)
_SPEAKERS: Final = (Role.AGENT, Role.USER)

_HEAD_LINES: Final = 10
_HEAD_CHARS: Final = 1_000

Quote = tuple[int, int, PageLabel]


@dataclass(frozen=True, slots=True)
class _ShownStep:
    """A step as the template shows it.

    Attributes:
        look: ``prose`` for texts of people and models, otherwise ``code``.
        time: The time since the beginning of the run, and how long the step took.
        iso: The start as ISO 8601, empty if it is not known.
        head: The text, or the beginning of a long text.
        tail: The rest of a long text, which is folded.
        more: The size of the rest in words.
        is_open: True if the fold is open because a quote is in it.
    """

    step: PageStep
    number: int
    look: str
    title: str
    time: str
    iso: str
    failed: bool
    head: Markup
    tail: Markup
    more: str
    is_open: bool
    pictures: Sequence[_ShownPicture]


class _ShownPicture(NamedTuple):
    """A picture as the template shows it; ``source`` is empty if its data is missing."""

    source: Markup
    size: tuple[int, int] | None
    description: str


class IndexRow(NamedTuple):
    """The line of one page in the index of a folder."""

    file: str
    page: RunPage


def render_page(page: RunPage) -> str:
    """Return the HTML page of a run."""
    environment = page_environment(_TEMPLATES)
    return environment.get_template("page.html.j2").render(
        page=page,
        steps=_shown_steps(page),
        element_id=ELEMENT_ID,
        records=Markup(embedded_json(page.records)) if page.records else None,
        lines=lambda text: Markup(escape(_displayable_text(text))),
        style=Markup(_style_sheet()),
        **own_script(_TEMPLATES / "page.js"),
    )


def render_index(rows: Sequence[IndexRow]) -> str:
    """Return the HTML index of the pages in a folder."""
    environment = page_environment(_TEMPLATES)
    return environment.get_template("index.html.j2").render(rows=rows, style=Markup(_style_sheet()))


def _style_sheet() -> str:
    return f"{colour_variables()}\n{(_TEMPLATES / 'page.css').read_text('utf-8')}"


def _shown_steps(page: RunPage) -> Iterator[_ShownStep]:
    """Yield the steps of a page, with quotes highlighted and long texts folded."""
    quotes_by_span = page.quotes_by_span()
    for step in page.steps():
        span = step.span
        text = page.trace.text(span.index)
        quotes = quotes_by_span.get(span.index, [])
        if span.kind is SpanKind.TOOL_CALL and not quotes:
            text = _readable_call(text)
        cut = _head_end(text)
        tail = text[cut:]
        tail_size = ""
        if tail:
            line_count = counted(tail.count("\n") + 1, "more line")
            tail_size = f"{line_count}, {counted(len(tail), 'character')}"
        time = "" if step.elapsed is None else offset(step.elapsed)
        if step.took is not None and step.took >= 1:
            time = f"{time} took {duration(step.took)}"
        yield _ShownStep(
            step=step,
            number=span.index + 1,
            look="prose" if span.kind in _PROSE and span.role in _SPEAKERS else "code",
            title=" ".join(filter(None, (span.kind.value.replace("_", " "), span.name))),
            time=time,
            iso="" if span.start is None else iso_time(span.start) or "",
            failed=span.status is SpanStatus.ERROR,
            head=_highlighted_part(text, 0, cut, quotes),
            tail=_highlighted_part(text, cut, len(text), quotes),
            more=tail_size,
            is_open=any(end > cut for _start, end, _label in quotes),
            pictures=[_shown_picture(picture) for picture in step.pictures],
        )


def _shown_picture(picture: Picture) -> _ShownPicture:
    """Return a picture with its bytes in the address of the image."""
    source = ""
    if picture.data is not None:
        source = f"data:{picture.media_type};base64,{b64encode(picture.data).decode()}"
    return _ShownPicture(Markup(source), picture.size, safe_line(picture.description))


def _readable_call(text: str) -> str:
    """Return the arguments of a call with a line for each; any other text unchanged."""
    if not text.startswith("{"):
        return text
    try:
        arguments = load_json(text.encode())
    except (InvalidJSON, UnicodeEncodeError):
        return text
    if not isinstance(arguments, dict) or not arguments:
        return text
    return "\n".join(f"{name}: {_readable_value(value)}" for name, value in arguments.items())


def _readable_value(value: object) -> str:
    """Return the value of an argument: a text as it is, a list of texts side by side, else JSON.

    A text of several lines begins on a new line.
    """
    if isinstance(value, str):
        return f"\n{value}" if "\n" in value else value
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        parts = (f"\n{item}" if "\n" in item else item for item in value)
        return " ".join(parts)
    return json.dumps(value, ensure_ascii=False)


def _head_end(text: str) -> int:
    """Return the end of the part of a text that a page shows unfolded.

    This is all of a short text, else its first lines, else the words at its beginning.
    """
    if len(text) <= LONGEST_WHOLE and text.count("\n", 0, LONGEST_WHOLE) < MOST_LINES:
        return len(text)
    end = 0
    for _ in range(_HEAD_LINES):
        line_end = text.find("\n", end)
        if line_end < 0 or line_end > _HEAD_CHARS:
            break
        end = line_end + 1
    if end:
        return end
    space = text.rfind(" ", _HEAD_CHARS // 2, _HEAD_CHARS)
    return _HEAD_CHARS if space < 0 else space + 1


def _highlighted_part(text: str, start: int, end: int, quotes: Iterable[Quote]) -> Markup:
    """Return a part of a text with the quotes in it highlighted.

    Args:
        text: The text.
        start: The beginning of the part.
        end: The end of the part, exclusive.
        quotes: The quotes in the text, which may overlap.
    """
    clipped_quotes = [
        (max(quote_start, start), min(quote_end, end), label)
        for quote_start, quote_end, label in quotes
        if quote_start < end and quote_end > start
    ]
    if not clipped_quotes:
        return Markup(escape(_displayable_text(text[start:end])))
    borders = {start, end}
    for quote_start, quote_end, _label in clipped_quotes:
        borders |= {quote_start, quote_end}
    parts: list[str] = []
    for part_start, part_end in pairwise(sorted(borders)):
        html_text = escape(_displayable_text(text[part_start:part_end]))
        labels = [
            label
            for quote_start, quote_end, label in clipped_quotes
            if quote_start <= part_start and part_end <= quote_end
        ]
        if labels:
            title = escape("; ".join(f"{label.mode.code} {label.mode.name}" for label in labels))
            html_text = Markup(f'<mark title="{title}">{html_text}</mark>')
        parts.append(html_text)
    return Markup("".join(parts))


def _displayable_text(text: str) -> str:
    """Return a text with visible control characters; its line breaks stay."""
    text = COLOUR_SEQUENCE.sub("", text).replace("\r\n", "\n")
    return "\n".join(map(safe_line, text.split("\n")))
