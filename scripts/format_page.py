"""Write the tables of formats in docs/formats.md and docs/exchange.md from their data.

    .venv/bin/python scripts/format_page.py            rewrites the tables
    .venv/bin/python scripts/format_page.py --check    exit code 1 if one is not up to date

The rows of formats of traces come from ``mast_tui/traces/readers/formats.toml``. A star marks a
format that was checked with its documentation alone, and with no file of
``tests/traces/public_files.csv``. The page leaves out the marks, spans and keys of a format, which
only a change of its reader needs. The rows of formats of labels come from
``mast_tui/exchange/registry.py``. Each table is between two comments.
"""

from __future__ import annotations

import csv
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

from mast_tui.exchange.exporters.scores import TOOLS
from mast_tui.exchange.registry import FORMATS as LABEL_FORMATS
from scripts.pages import with_table, write_or_check

ROOT: Final = Path(__file__).resolve().parent.parent
FORMATS: Final = ROOT / "mast_tui" / "traces" / "readers" / "formats.toml"
PUBLIC_FILES: Final = ROOT / "tests" / "traces" / "public_files.csv"
_OWN_PAGES: Final = {"page": "#a-page-to-hand-over"}
"""The section on an imported format, if it is not in exam.md."""


class FormatRow(NamedTuple):
    """The parts of a row of ``formats.toml`` that are on the page."""

    title: str
    names: tuple[str, ...]
    note: str
    checked: str


def format_rows() -> list[FormatRow]:
    """Return the rows of ``formats.toml``."""
    rows = tomllib.loads(FORMATS.read_text("utf-8"))["format"]
    return [
        FormatRow(row["title"], tuple(row["names"]), row["note"], row["checked"]) for row in rows
    ]


def format_table() -> str:
    """Return the table of formats of traces in Markdown."""
    with PUBLIC_FILES.open(encoding="utf-8", newline="") as file:
        public_formats = {row["format"] for row in csv.DictReader(file) if row["result"] == "read"}
    lines = ["| format | good to know |", "|---|---|"]
    for title, row in _rows_by_title():
        only_docs = row.checked == "docs" and public_formats.isdisjoint(row.names)
        star = " \\*" if only_docs else ""
        lines.append(f"| {title}{star} | {row.note} |")
    return "\n".join(lines)


def _rows_by_title() -> Iterator[tuple[str, FormatRow]]:
    """Yield each row with its title.

    Rows without a name and a note that were checked alike are one row with all of their titles.
    """

    def group(row: FormatRow) -> object:
        return (row.names or row.note or None) and row.title, row.checked

    for _, rows in groupby(format_rows(), key=group):
        alike = list(rows)
        yield ", ".join(row.title for row in alike), alike[0]


def label_format_table() -> str:
    """Return the table of formats of labels in Markdown."""
    lines = ["| format | import | export | what it holds |", "|---|---|---|---|"]
    for name, row in LABEL_FORMATS.items():
        anchor = f"#{name}" if row.can_be_exported else _OWN_PAGES.get(name, f"exam.md#{name}")
        if name in TOOLS:
            anchor = "#back-to-where-the-traces-came-from"
        cells = (
            f"[`{name}`]({anchor})",
            "yes" if row.can_be_imported else "",
            "yes" if row.can_be_exported else "",
            row.title,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


PAGES: Final[Mapping[Path, Callable[[], str]]] = {
    ROOT / "docs" / "formats.md": format_table,
    ROOT / "docs" / "exchange.md": label_format_table,
}
"""The function that makes the table, by page."""


def page_with_table(path: Path) -> str:
    """Return a page with its new table."""
    return with_table(path, "formats", PAGES[path]())


def main() -> int:
    """Rewrite or check the tables, and return the exit code."""
    return write_or_check({path: page_with_table(path) for path in PAGES})


if __name__ == "__main__":
    sys.exit(main())
