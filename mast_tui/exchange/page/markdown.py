"""A run with its labels as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import quote

from mast_tui.counts import offset
from mast_tui.exchange.page.content import PageLabel, PageStep, RunPage
from mast_tui.safe_text import display_lines, one_line
from mast_tui.traces.model import SpanStatus
from mast_tui.traces.usage import UsageTable

_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>#|])")
_BACKTICKS: Final = re.compile("`+")


def render_page_markdown(page: RunPage) -> str:
    """Return the Markdown of a run: facts, labels, verdicts, and every span with its whole text."""
    return "\n".join(_page_lines(page)) + "\n"


def render_index_markdown(titles: Mapping[str, str]) -> str:
    """Return the Markdown list of runs, from their titles by file name."""
    rows = [f"- [{_escaped_line(title)}]({quote(file)})\n" for file, title in titles.items()]
    return f"# Runs\n\n{''.join(rows)}"


def _page_lines(page: RunPage) -> Iterator[str]:
    """Yield the lines of a run's page."""
    yield f"# {_escaped_line(page.title)}"
    yield ""
    for name, value in page.facts:
        yield f"- {name}: {_escaped_line(value)}"
    if page.trace.meta.task:
        yield ""
        yield "Task:"
        yield ""
        yield from _fenced_lines(page.trace.meta.task)
    for table in page.usage:
        yield ""
        yield from _table_lines([column.title for column in table.columns], _usage_rows(table))
    yield ""
    yield "## Labels"
    yield ""
    if not page.labels:
        yield "There are no labels."
    for label in page.labels:
        yield from _label_lines(label)
    if page.verdicts:
        yield ""
        yield "## Verdicts"
        yield ""
        yield from _verdict_lines(page)
    files = page.files
    if files:
        yield ""
        yield "## Files changed"
        yield ""
    for path, edits in files.items():
        steps = (f"#{edit.index + 1}{' failed' if edit.failed else ''}" for edit in edits)
        yield f"- {_escaped_line(path)}: {', '.join(steps)}"
    for name, entries in page.answer_key.sections():
        yield ""
        yield f"## Answer key: {name.replace('_', ' ')}"
        for entry, value in entries:
            yield ""
            yield f"{_escaped_line(entry)}:"
            yield ""
            yield from _fenced_lines(value)
    yield ""
    yield "## Run"
    for step in page.steps():
        yield from _step_lines(page, step)


def _step_lines(page: RunPage, step: PageStep) -> Iterator[str]:
    """Yield the lines of a span with its text, pictures, labels and notes."""
    span = step.span
    for agent in step.opened:
        yield ""
        yield f"*Sub-agent {_escaped_line(agent)} begins.*"
    parts = [span.agent, span.kind.value.replace("_", " "), span.name or ""]
    if span.status is SpanStatus.ERROR:
        parts.append("failed")
    if step.elapsed is not None:
        parts.append(offset(step.elapsed))
    yield ""
    yield f"### #{span.index + 1} {_escaped_line(', '.join(filter(None, parts)))}"
    yield ""
    yield from _fenced_lines(page.trace.text(span.index))
    for picture in step.pictures:
        yield ""
        yield f"*Picture: {_escaped_line(picture.description)}*"
    if step.labels or step.notes:
        yield ""
    for label in step.labels:
        yield from _label_lines(label)
    for author, text in step.notes:
        yield f"- Note, {_escaped_line(author)}: {_escaped_line(text)}"
    if step.closed:
        yield ""
        yield "*The sub-agent ends.*"


def _label_lines(label: PageLabel) -> Iterator[str]:
    """Yield the list item of a label, with its quote and note."""
    facts = ", ".join((label.location, label.author, *label.details))
    mode = f"{_escaped_line(label.mode.code)} {_escaped_line(label.mode.name)}"
    yield f"- **{mode}** ({_escaped_line(facts)})"
    if label.quote:
        yield f"  - Quote: “{_escaped_line(label.quote)}”"
    if label.note:
        yield f"  - {_escaped_line(label.note)}"


def _verdict_lines(page: RunPage) -> Iterator[str]:
    """Yield the table of verdicts, with a column for each annotator."""
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


def _usage_rows(table: UsageTable) -> Iterator[list[str]]:
    for row in table.rows:
        yield [column.cell(row) for column in table.columns]


def _table_lines(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table."""
    yield f"| {' | '.join(map(_escaped_line, columns))} |"
    yield f"|{' --- |' * len(columns)}"
    for cells in rows:
        yield f"| {' | '.join(map(_escaped_line, cells))} |"


def _escaped_line(text: str) -> str:
    """Return a text on one line, in which no character is markup."""
    return _SPECIAL.sub(r"\\\1", one_line(text))


def _fenced_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text within a fence that is longer than any in the text."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}text"
    yield from display_lines(text)
    yield fence
