"""The rendering of a run as a self-contained HTML file or as Markdown, and an index of runs.

In HTML all text of a trace is escaped. The page's policy allows only its own script, and loads
nothing.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from markupsafe import Markup, escape

from mast_tui.counts import counted, duration, offset
from mast_tui.exchange.page.content import (
    ELEMENT_ID,
    PageLabel,
    PageStep,
    RunPage,
    embedded_json,
    file_name_of,
)
from mast_tui.output_files import Outputs
from mast_tui.reports.render.html import colour_variables, own_script, page_environment
from mast_tui.safe_text import COLOUR_SEQUENCE, display_lines, one_line, safe_line
from mast_tui.traces.file_edits import FileEdit
from mast_tui.traces.io.json_values import InvalidJSON, load_json
from mast_tui.traces.model import Role, SpanKind, SpanStatus
from mast_tui.traces.pictures import Picture
from mast_tui.traces.times import iso_time

_TEMPLATES: Final = Path(__file__).with_name("templates")

LONGEST_WHOLE: Final = 1_600
"""The most characters of an unfolded text."""

MOST_LINES: Final = 18
"""The most lines of an unfolded text."""

_PROSE: Final = (SpanKind.MESSAGE, SpanKind.REASONING)
_SPEAKERS: Final = (Role.AGENT, Role.USER)

_HEAD_LINES: Final = 10
_HEAD_CHARS: Final = 1_000

Quote = tuple[int, int, PageLabel]


@dataclass(frozen=True, slots=True)
class _ShownStep:
    """A step for the template.

    Attributes:
        look: ``prose`` for texts of people and models, else ``code``.
        time: The time since the start of the run, and the duration.
        iso: The start as ISO 8601; empty if unknown.
        head: The unfolded part of the text.
        tail: The folded part of the text.
        more: The size of the folded part in words.
        is_open: True if the fold is open, to show a quote.
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
    """A picture for the template. ``source`` is empty without data."""

    source: Markup
    size: tuple[int, int] | None
    description: str


class IndexRow(NamedTuple):
    """A line in the index of a folder."""

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


def add_page(outputs: Outputs, file: Path, page: RunPage, *, markdown: bool = False) -> None:
    """Add the file of a run's page.

    Args:
        outputs: The files to write.
        file: The file.
        page: The page.
        markdown: Write Markdown instead of HTML.
    """

    def text() -> Iterator[bytes]:
        """Yield the text when it is written, so that only one page is in memory."""
        rendered = render_page_markdown(page) if markdown else render_page(page)
        yield rendered.encode("utf-8", "replace")

    outputs.add(file, text())


def add_page_folder(
    outputs: Outputs, folder: Path, pages: Iterable[RunPage], *, markdown: bool = False
) -> None:
    """Add a folder with a file for each page, and an index.

    Args:
        outputs: The files to write.
        folder: The folder.
        pages: The pages.
        markdown: Write Markdown instead of HTML.
    """
    outputs.add_folder(folder)
    suffix = "md" if markdown else "html"
    rows: list[IndexRow] = []
    used_names: set[str] = {f"index.{suffix}"}
    for page in pages:
        name = _free_name(file_name_of(page.title, suffix), used_names)
        used_names.add(name.lower())
        add_page(outputs, folder / name, page, markdown=markdown)
        rows.append(IndexRow(name, page))
    if markdown:
        titles = {row.file: row.page.title for row in rows}
        outputs.add(folder / "index.md", render_index_markdown(titles))
    else:
        outputs.add(folder / "index.html", render_index(rows))


def _free_name(name: str, used_names: set[str]) -> str:
    """Return a file name, with a number if it is used in any case."""
    stem, _, suffix = name.rpartition(".")
    number = 1
    while name.lower() in used_names:
        number += 1
        name = f"{stem}-{number}.{suffix}"
    return name


def _style_sheet() -> str:
    return f"{colour_variables()}\n{(_TEMPLATES / 'page.css').read_text('utf-8')}"


def _shown_steps(page: RunPage) -> Iterator[_ShownStep]:
    """Yield the steps of a page with highlighted quotes and folded texts."""
    quotes_by_span = page.quotes_by_span()
    for step in page.steps():
        span = step.span
        text = page.trace.text(span.index)
        quotes = quotes_by_span.get(span.index, [])
        # Quotes have offsets in the original text, so only a text without quotes can be changed.
        if span.kind is SpanKind.TOOL_CALL and not quotes:
            text = _readable_call(text)
        head_end = _head_end(text)
        tail = text[head_end:]
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
            head=_highlighted_part(text, 0, head_end, quotes),
            tail=_highlighted_part(text, head_end, len(text), quotes),
            more=tail_size,
            is_open=any(quote_end > head_end for _start, quote_end, _label in quotes),
            pictures=[_shown_picture(picture) for picture in step.pictures],
        )


def _shown_picture(picture: Picture) -> _ShownPicture:
    """Return a picture for the template, with its data as a ``data:`` URL."""
    source = ""
    if picture.data is not None:
        source = f"data:{picture.media_type};base64,{b64encode(picture.data).decode()}"
    return _ShownPicture(Markup(source), picture.size, safe_line(picture.description))


def _readable_call(text: str) -> str:
    """Return the arguments of a call, a JSON object, one per line."""
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
    """Return the value of an argument as text.

    A list of texts becomes their sequence, and a text of several lines begins on a new line. Other
    values are JSON.
    """
    if isinstance(value, str):
        return f"\n{value}" if "\n" in value else value
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        parts = (f"\n{item}" if "\n" in item else item for item in value)
        return " ".join(parts)
    return json.dumps(value, ensure_ascii=False)


def _head_end(text: str) -> int:
    """Return the end of the unfolded part of a text.

    It is the whole of a short text, else its first lines. If the first line is too long, it is the
    first words.
    """
    if len(text) <= LONGEST_WHOLE and text.count("\n", 0, LONGEST_WHOLE) < MOST_LINES:
        return len(text)
    # These lines end within the first ``_HEAD_CHARS`` characters.
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
    """Return a part of a text with highlighted quotes.

    Args:
        text: The text.
        start: The start of the part.
        end: The end of the part, exclusive.
        quotes: The quotes in the text. They may overlap.
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
    """Return a text with visible control characters and its line breaks."""
    text = COLOUR_SEQUENCE.sub("", text).replace("\r\n", "\n")
    return "\n".join(map(safe_line, text.split("\n")))


_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>#|])")
_BACKTICKS: Final = re.compile("`+")


def render_page_markdown(page: RunPage) -> str:
    """Return the Markdown of a run."""
    return "\n".join(_page_lines(page)) + "\n"


def render_index_markdown(titles: Mapping[str, str]) -> str:
    """Return the Markdown list of runs.

    ``titles`` are by file name.
    """
    rows = [f"- [{_escaped_line(title)}]({quote(file)})\n" for file, title in titles.items()]
    return f"# Runs\n\n{''.join(rows)}"


def _page_lines(page: RunPage) -> Iterator[str]:
    yield from _fact_lines(page)
    yield from ("", "## Labels", "")
    if not page.labels:
        yield "There are no labels."
    yield from chain.from_iterable(map(_label_lines, page.labels))
    if page.verdicts:
        yield from ("", "## Verdicts", "")
        yield from _verdict_lines(page)
    files = page.files
    if files:
        yield from ("", "## Files changed", "")
        yield from _file_lines(files)
    for name, entries in page.answer_key.sections():
        yield from ("", f"## Answer key: {name.replace('_', ' ')}")
        for entry, value in entries:
            yield from ("", f"{_escaped_line(entry)}:", "")
            yield from _fenced_lines(value)
    yield from ("", "## Run")
    for step in page.steps():
        yield from _step_lines(page, step)


def _fact_lines(page: RunPage) -> Iterator[str]:
    """Yield the title, the facts, the task, and the tables of time and tokens."""
    yield from (f"# {_escaped_line(page.title)}", "")
    for name, value in page.facts:
        yield f"- {name}: {_escaped_line(value)}"
    if page.trace.meta.task:
        yield from ("", "Task:", "")
        yield from _fenced_lines(page.trace.meta.task)
    for table in page.usage:
        yield from ("", f"{table.title}:", "")
        yield from _table_lines(
            [column.title for column in table.columns],
            ([column.cell(row) for column in table.columns] for row in table.rows),
        )


def _file_lines(files: Mapping[str, Sequence[FileEdit]]) -> Iterator[str]:
    """Yield a line for each file with the spans that changed it."""
    for path, edits in files.items():
        steps = (f"#{edit.index + 1}{' failed' if edit.failed else ''}" for edit in edits)
        yield f"- {_escaped_line(path)}: {', '.join(steps)}"


def _step_lines(page: RunPage, step: PageStep) -> Iterator[str]:
    """Yield the lines of a span."""
    span = step.span
    for agent in step.opened:
        yield from ("", f"*Sub-agent {_escaped_line(agent)} begins.*")
    parts = [span.agent, span.kind.value.replace("_", " "), span.name or ""]
    if span.status is SpanStatus.ERROR:
        parts.append("failed")
    if step.elapsed is not None:
        parts.append(offset(step.elapsed))
    title = _escaped_line(", ".join(filter(None, parts)))
    yield from ("", f"### #{span.index + 1} {title}", "")
    yield from _fenced_lines(page.trace.text(span.index))
    for picture in step.pictures:
        yield from ("", f"*Picture: {_escaped_line(picture.description)}*")
    if step.labels or step.notes:
        yield ""
    yield from chain.from_iterable(map(_label_lines, step.labels))
    for author, text in step.notes:
        yield f"- Note, {_escaped_line(author)}: {_escaped_line(text)}"
    if step.closed:
        yield from ("", "*The sub-agent ends.*")


def _label_lines(label: PageLabel) -> Iterator[str]:
    facts = ", ".join((label.location, label.author, *label.details))
    mode = f"{_escaped_line(label.mode.code)} {_escaped_line(label.mode.name)}"
    yield f"- **{mode}** ({_escaped_line(facts)})"
    if label.quote:
        yield f"  - Quote: “{_escaped_line(label.quote)}”"
    if label.note:
        yield f"  - {_escaped_line(label.note)}"


def _verdict_lines(page: RunPage) -> Iterator[str]:
    rows = (
        [
            f"{verdict.mode.code} {verdict.mode.name}",
            verdict.gold,
            verdict.source,
            *(verdict.by_author.get(author, "") for author in page.authors),
        ]
        for verdict in page.verdicts
    )
    yield from _table_lines(["Mode", "Gold", "Source", *page.authors], rows)


def _table_lines(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(map(_escaped_line, columns))} |"
    yield f"|{' --- |' * len(columns)}"
    for cells in rows:
        yield f"| {' | '.join(map(_escaped_line, cells))} |"


def _escaped_line(text: str) -> str:
    """Return a text on one line without markup."""
    return _SPECIAL.sub(r"\\\1", one_line(text))


def _fenced_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text in a fence.

    The fence is longer than any in the text.
    """
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}text"
    yield from display_lines(text)
    yield fence
