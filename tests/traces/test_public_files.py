"""Real trace files of public repositories: each listed file is read as the list says.

The files are not in this repository. ``MAST_TUI_PUBLIC_FILES`` names a folder that holds them under
``OWNER+NAME/PATH``; files that are absent are skipped and counted.
"""

from __future__ import annotations

import csv
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.readers import read_recognised
from mast_tui.traces.scan.file_reader import read_one
from tests.traces.checks import check_sound

LIST = Path(__file__).with_name("public_files.csv")
FOLDER = Path(os.environ.get("MAST_TUI_PUBLIC_FILES", "public-files-are-absent"))


@dataclass(frozen=True)
class PublicFile:
    """One row of the list; ``result`` is ``read``, or the reason why the file is not read."""

    format: str
    repository: str
    commit: str
    path: str
    sha256: str
    result: str

    @property
    def local_path(self) -> Path:
        """Return the path of the file on this machine."""
        return FOLDER / self.repository.replace("/", "+") / self.path


def listed_files() -> list[PublicFile]:
    """Return the rows of the list."""
    with LIST.open(encoding="utf-8", newline="") as rows:
        return [PublicFile(**row) for row in csv.DictReader(rows)]


def test_the_list_names_each_file_with_its_commit_and_hash() -> None:
    """A row without a commit or a hash cannot be found again; no file is listed twice."""
    files = listed_files()
    for file in files:
        assert "/" in file.repository
        assert len(file.commit) == 40, file
        assert len(file.sha256) == 64, file
        assert file.result, file
    assert len({(file.repository, file.path) for file in files}) == len(files)


def test_listed_files_are_read() -> None:
    """Every present file with the result ``read`` gives sound traces of its format with spans."""
    files = listed_files()
    present = [file for file in files if file.local_path.is_file()]
    for file in present:
        data = file.local_path.read_bytes()
        assert hashlib.sha256(data).hexdigest() == file.sha256, file
        report = read_recognised(Source(file.local_path)) or read_one(file.local_path, named=True)
        traces = report.traces if report is not None else ()
        if file.result != "read":
            continue
        assert report is not None, f"{file.path}: not recognised"
        assert report.format == file.format, file
        assert traces, file
        for trace in traces:
            check_sound(trace)
            assert len(trace), file
    absent = len(files) - len(present)
    if absent:
        pytest.skip(f"{len(present)} of {len(files)} public files checked; {absent} are absent")
