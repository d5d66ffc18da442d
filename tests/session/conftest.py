"""The workspace that tests of sessions start with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.session.build import Desk


@pytest.fixture
def desk() -> Iterator[Desk]:
    """A workspace in memory, and a trace of five spans."""
    one = Desk.set_up()
    yield one
    one.workspace.close()
