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
from typing import Final

from mast_tui.exchange.exporters.scores import TOOLS
from mast_tui.exchange.registry import FORMATS as LABEL_FORMATS

ROOT: Final = Path(__file__).resolve().parent.parent
FORMATS: Final = ROOT / "mast_tui" / "traces" / "readers" / "formats.toml"
PUBLIC_FILES: Final = ROOT / "tests" / "traces" / "public_files.csv"
BEGIN: Final = "<!-- formats -->"
END: Final = "<!-- /formats -->"
_OWN_PAGES: Final = {"page": "#a-page-to-hand-over"}
"""The section on an imported format, if it is not in exam.md."""


def format_rows() -> list[dict[str, object]]:
    """Return the rows of the data: title, names, note, recognised_by, spans, keys, checked."""
    rows: list[dict[str, object]] = tomllib.loads(FORMATS.read_text("utf-8"))["format"]
    return rows


def format_table() -> str:
    """Return the table of formats of traces in Markdown."""
    with PUBLIC_FILES.open(encoding="utf-8", newline="") as file:
        public_formats = {row["format"] for row in csv.DictReader(file) if row["result"] == "read"}
    lines = ["| format | good to know |", "|---|---|"]
    for title, row in _rows_by_title():
        names = row["names"]
        assert isinstance(names, list)
        only_docs = row["checked"] == "docs" and public_formats.isdisjoint(names)
        star = " \\*" if only_docs else ""
        lines.append(f"| {title}{star} | {row['note']} |")
    return "\n".join(lines)


def _rows_by_title() -> Iterator[tuple[str, dict[str, object]]]:
    """Yield each row with its title.

    Rows without a name and a note that were checked alike are one row with all of their titles.
    """

    def group(row: dict[str, object]) -> object:
        return (row["names"] or row["note"] or None) and row["title"], row["checked"]

    for _, rows in groupby(format_rows(), key=group):
        alike = list(rows)
        yield ", ".join(str(row["title"]) for row in alike), alike[0]


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
    page = path.read_text("utf-8")
    head = page.partition(BEGIN)[0]
    foot = page.partition(END)[2]
    return f"{head}{BEGIN}\n{PAGES[path]()}\n{END}{foot}"


def main() -> int:
    """Rewrite or check the tables, and return the exit code."""
    expected = {path: page_with_table(path) for path in PAGES}
    if sys.argv[1:] == ["--check"]:
        return int(any(path.read_text("utf-8") != page for path, page in expected.items()))
    for path, page in expected.items():
        path.write_text(page, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
