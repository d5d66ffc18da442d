"""Every format of labels works as its row in the table says."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.exchange.formats import FormatContent
from mast_tui.exchange.registry import EXPORT_FORMATS, FORMATS, IMPORT_FORMATS
from tests.cli.conftest import Cli

ROWS = """trace_id,annotator,mode,value,span_first,note
t1,alice,1.3,present,k1,again
t1,alice,1.1,absent,,
t1,alice,,finished,,
t1,bob,1.3,present,k1,
t1,bob,1.1,absent,,
t1,bob,,finished,,
"""


def export(cli: Cli, folder: Path, name: str) -> Path:
    """Export what two annotators have labelled, under the suggested name."""
    source = folder / "source.csv"
    source.write_text(ROWS)
    workspace = str(folder / "w.db")
    assert cli("import", str(source), "--format", "csv-long", "--workspace", workspace).code == 0
    output = folder / EXPORT_FORMATS[name].file_name
    is_of_annotators = FORMATS[name].content in (FormatContent.LABELS, FormatContent.VERDICTS)
    labels = ("--labels", "all") if is_of_annotators else ()
    done = cli("export", "--format", name, "-o", str(output), "--workspace", workspace, *labels)
    assert done.code == 0, done.err
    return output


@pytest.mark.parametrize("name", EXPORT_FORMATS)
def test_an_export_is_the_suggested_file_or_folder(cli: Cli, tmp_path: Path, name: str) -> None:
    output = export(cli, tmp_path, name)
    assert output.is_dir() is FORMATS[name].is_folder
    assert output.exists()


@pytest.mark.parametrize("name", [name for name in EXPORT_FORMATS if name in IMPORT_FORMATS])
def test_an_import_returns_the_annotators_of_an_export(cli: Cli, tmp_path: Path, name: str) -> None:
    output = export(cli, tmp_path, name)
    workspace = str(tmp_path / "other.db")
    done = cli("import", str(output), "--format", name, "--workspace", workspace, "--json")
    assert done.code == 0, done.err
    report = done.json
    assert (report["annotators"], report["traces"], report["finished"]) == (["alice", "bob"], 1, 2)


def test_each_row_has_a_title_and_a_use() -> None:
    for name, row in FORMATS.items():
        assert row.title, name
        assert row.can_be_imported or row.can_be_exported, name
        assert bool(row.file_name) is row.can_be_exported, name
