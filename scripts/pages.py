"""Tables in pages and CSV files of the documentation."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path


def with_table(path: Path, name: str, table: str) -> str:
    """Return a page with another table between the comments of its place.

    Args:
        path: The page, with ``<!-- NAME -->`` and ``<!-- /NAME -->``.
        name: The name in the comments.
        table: The table in Markdown.

    Raises:
        ValueError: The page does not have both comments.
    """
    begin = f"<!-- {name} -->"
    end = f"<!-- /{name} -->"
    head, has_begin, body = path.read_text("utf-8").partition(begin)
    _, has_end, foot = body.partition(end)
    if not has_begin or not has_end:
        raise ValueError(f"{path} must have {begin} and {end}")
    return f"{head}{begin}\n\n{table}\n\n{end}{foot}"


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as CSV.

    Args:
        header: The names of the columns.
        rows: The rows.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def write_or_check(files: Mapping[Path, str]) -> int:
    """Write files, or with ``--check`` compare them, and return the exit code.

    ``files`` has the text of each file.
    """
    if sys.argv[1:] == ["--check"]:
        return int(
            any(
                not path.exists() or path.read_text("utf-8") != text for path, text in files.items()
            )
        )
    for path, text in files.items():
        path.write_text(text, "utf-8")
    return 0
