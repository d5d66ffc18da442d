"""The rows of ``agree --csv`` are those that scripts rely on, row by row."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from mast_tui.agreement import csv_table
from mast_tui.reports.render.csv import csv_columns, tidy_rows
from tests.figures.agreement.build_reports import DEGENERATE, whole
from tests.reports.documents import agreement

DOCUMENTS: dict[str, Any] = {
    "all parts": agreement(),
    "two": whole({"ann": "11010010" * 3, "bob": "11001011" * 3}, (20, 5, 10, 15)),
    "three": whole({"ann": "110", "bob": "111", "cat": "010"}, (2, 1, 1, 2)),
    "rotating": whole({"ann": "1101", "bob": "10··", "cat": "··11"}, (1, 1, 1, 1)),
    **{name: whole(said, (0, 0, 0, 0)) for name, (said, _) in DEGENERATE.items()},
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_row_is_lost_or_new_or_other(name: str) -> None:
    document = DOCUMENTS[name]
    before = Counter(tuple(row.items()) for row in csv_table.tidy_rows(document))
    now = Counter(tuple(row.items()) for row in tidy_rows(document))
    assert csv_columns(document) == csv_table.COLUMNS
    assert sorted((before - now).elements()) == []
    assert sorted((now - before).elements()) == []
