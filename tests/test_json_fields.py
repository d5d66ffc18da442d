"""The tables of JSON fields are those of the documents that commands print."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Final

import pytest

pytestmark = pytest.mark.slow  # commands run

ROOT: Final = Path(__file__).resolve().parent.parent
SCRIPT: Final = runpy.run_path(str(ROOT / "scripts" / "json_fields.py"))


def test_the_tables_are_up_to_date() -> None:
    for table, documents in SCRIPT["sample_documents"]().items():
        path = SCRIPT["FOLDER"] / f"{table}.csv"
        rows = SCRIPT["table_rows"](
            table, SCRIPT["printed_fields"](table, documents), SCRIPT["read_table"](path)
        )
        assert SCRIPT["table_text"](rows) == path.read_text("utf-8"), "run scripts/json_fields.py"
