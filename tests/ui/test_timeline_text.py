"""The columns of the timeline."""

from __future__ import annotations

import pytest

from mast_tui.ui.trace_view.background_index import TraceFacts
from mast_tui.ui.trace_view.timeline import Columns
from mast_tui.ui.wording import offset


@pytest.mark.parametrize("total", [0.0, 59.9, 600.0, 3599.0, 3600.0, 36_000.0, 360_000.0, 4e6])
def test_every_time_of_a_run_has_room(total: float) -> None:
    columns = Columns.of(10, TraceFacts(10, 5.0, total), 100)
    assert columns.time >= len(offset(total))
    assert columns.time in (5, len(offset(total)))


def test_a_run_without_times_has_no_column_for_them() -> None:
    assert Columns.of(10, TraceFacts(10), 100).time == 0
