"""A bench for runs of a model judge."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mast_tui.workspace import Workspace
from tests.judges.llm.bench import Bench
from tests.judges.llm.server import ModelServer


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with closing(Workspace.open(tmp_path / "workspace.db")) as workspace, ModelServer() as server:
        yield Bench(tmp_path, server, workspace)
