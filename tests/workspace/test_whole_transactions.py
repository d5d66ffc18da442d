"""Transactions of which no part may fail by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mast_tui.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """An empty one."""
    with closing(Workspace.open(tmp_path / "w.db")) as opened:
        yield opened


def fail_in_a_part(workspace: Workspace, *, whole: bool) -> None:
    """Write, fail in a part, and go on as if nothing had happened."""
    with workspace.transaction(whole=whole):
        workspace.set_setting("before", "1")
        try:
            with workspace.transaction():
                workspace.set_setting("within", "1")
                raise KeyError
        except KeyError:
            pass


def test_nothing_is_kept_of_a_whole_transaction_in_which_a_part_failed(
    workspace: Workspace,
) -> None:
    with pytest.raises(AssertionError, match="has to end the transaction"):
        fail_in_a_part(workspace, whole=True)
    assert workspace.get_setting("before") is None
    assert workspace.get_setting("within") is None
    with workspace.transaction(whole=True):
        workspace.set_setting("after", "1")
    assert workspace.get_setting("after") == "1"


def test_a_part_of_any_other_transaction_fails_by_itself(workspace: Workspace) -> None:
    fail_in_a_part(workspace, whole=False)
    assert workspace.get_setting("before") == "1"
    assert workspace.get_setting("within") is None
