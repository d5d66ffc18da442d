"""Forged files that overrule an adjudicator or a judge: none is accepted."""

from __future__ import annotations

import random
import shutil
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from mast_tui.exchange.jsonl import merge_content, read_jsonl
from mast_tui.traces.library import samples_folder
from mast_tui.workspace import Workspace
from mast_tui.workspace.records import MergeRefused
from tests.attack.imports import Known, guarded, overruled, takeover
from tests.attack.trying import state

SAMPLES: Final = samples_folder() / "workspace.jsonl"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace file with an adjudicator and a judge."""
    path = tmp_path_factory.mktemp("template") / "w.db"
    with closing(Workspace.open(path)) as workspace:
        merge_content(read_jsonl(SAMPLES), workspace)
    return path


def test_no_takeover_is_accepted_and_each_is_detected(template: Path, tmp_path: Path) -> None:
    before = Known.of(template)
    lines = SAMPLES.read_text("utf-8").splitlines(keepends=True)
    names = {str(row[0]) for row in before.state["labels"]}
    refused = 0
    for seed in range(6):
        file = tmp_path / "x.jsonl"
        file.write_text("".join(takeover(lines, random.Random(seed))))
        path = tmp_path / f"{seed}.db"
        shutil.copy(template, path)
        with closing(Workspace.open(path)) as workspace:
            is_taken = True
            try:
                merge_content(read_jsonl(file), workspace)
            except MergeRefused:
                is_taken = False
                refused += 1
        assert not guarded(before.state) - guarded(state(path))
        assert not overruled(before, path)
        if not is_taken:
            with closing(Workspace.open(path)) as workspace:
                merge_content(read_jsonl(file), workspace, replacing=names | {"zoe"})
            assert guarded(before.state) - guarded(state(path)) or overruled(before, path)
    assert refused > 3
