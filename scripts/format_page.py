"""Writes the table of trace formats in docs/formats.md from the data of the readers.

    .venv/bin/python scripts/format_page.py            rewrites the table
    .venv/bin/python scripts/format_page.py --check    exit code 1 where it is not up to date

A row comes from ``mast_tui/traces/readers/formats.toml``. Its last column adds how many public
files of ``tests/traces/public_files.csv`` are read. The table stands between two comments, and
nothing else of the page is touched.
"""

from __future__ import annotations

import csv
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Final

from mast_tui.counts import counted

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "formats.md"
FORMATS: Final = ROOT / "mast_tui" / "traces" / "readers" / "formats.toml"
PUBLIC_FILES: Final = ROOT / "tests" / "traces" / "public_files.csv"
BEGIN: Final = "<!-- formats -->"
END: Final = "<!-- /formats -->"


def format_rows() -> list[dict[str, object]]:
    """Return the rows of the data: title, names, recognised_by, spans, keys, checked."""
    rows: list[dict[str, object]] = tomllib.loads(FORMATS.read_text("utf-8"))["format"]
    return rows


def format_table() -> str:
    """Return the table in Markdown."""
    with PUBLIC_FILES.open(encoding="utf-8", newline="") as file:
        public_files = Counter(
            row["format"] for row in csv.DictReader(file) if row["result"] == "read"
        )
    lines = [
        "| format | recognised by | spans made of it | keys | checked with |",
        "|---|---|---|---|---|",
    ]
    for row in format_rows():
        names = row["names"]
        assert isinstance(names, list)
        count = sum(public_files[name] for name in names)
        listed = [counted(count, "public file")] if count else []
        checked = "; ".join([*filter(None, [str(row["checked"])]), *listed])
        cells = (row["title"], row["recognised_by"], row["spans"], row["keys"], checked)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def page_with_table(page: str) -> str:
    """Return the page with the table of today."""
    head = page.partition(BEGIN)[0]
    foot = page.partition(END)[2]
    return f"{head}{BEGIN}\n{format_table()}\n{END}{foot}"


def main() -> int:
    """Rewrite the table, or say whether it is up to date."""
    page = PAGE.read_text("utf-8")
    expected = page_with_table(page)
    if sys.argv[1:] == ["--check"]:
        return int(page != expected)
    PAGE.write_text(expected, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
