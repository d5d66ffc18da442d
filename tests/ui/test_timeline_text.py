"""The columns of the timeline."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from mast_tui.counts import offset
from mast_tui.traces.model import SpanKind
from mast_tui.ui.trace_view.background_index import TraceFacts
from mast_tui.ui.trace_view.timeline import Columns, actor_text, distinct_names, row_text
from tests.ui.build import SmallTrace


@pytest.mark.parametrize("total", [0.0, 59.9, 600.0, 3599.0, 3600.0, 36_000.0, 360_000.0, 4e6])
def test_every_time_of_a_run_has_room(total: float) -> None:
    columns = Columns.fitting(10, TraceFacts(10, 5.0, total), 100)
    assert columns.time >= len(offset(total))
    assert columns.time in (5, len(offset(total)))


def test_a_timeline_beside_a_drawer_leaves_the_room_of_names_to_text_and_marks() -> None:
    facts = TraceFacts(10, agents=("planner", "coder"), name_cells=7)
    assert Columns.fitting(10, facts, 100).actor > Columns.fitting(10, facts, 33).actor
    assert Columns.fitting(10, facts, 33).text_cells(33, 0) > 15


def test_a_run_without_times_has_no_column_for_them() -> None:
    assert Columns.fitting(10, TraceFacts(10), 100).time == 0


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["user", "agent"], ["user", "agent"]),
        (["a_very_long_name_indeed", "user"], ["a_very_long_n…", "user"]),
        (
            ["code_execution_success", "code_execution_error", "planner"],
            ["code_e…success", "code_e…error", "planner"],
        ),
        (
            ["Chief Technology Officer", "Chief Technology Intern"],
            ["Chief…Officer", "Chief…Intern"],
        ),
        (["x" * 20 + "1", "x" * 20 + "2"], ["xxxxxxxxxxxx…1", "xxxxxxxxxxxx…2"]),
    ],
)
def test_names_that_must_be_cut_stay_apart(names: list[str], shown: list[str]) -> None:
    assert list(distinct_names(names, 14).values()) == shown


@given(st.lists(st.text("ab_ 界", max_size=20), unique=True, max_size=5), st.integers(3, 14))
def test_no_name_takes_more_than_its_cells(names: list[str], cells: int) -> None:
    shown = distinct_names(names, cells)
    assert list(shown) == names
    assert all(cell_len(text) <= cells for text in shown.values())


SPAN = replace(SmallTrace("a").span(0), kind=SpanKind.TOOL_CALL, name="create", agent="log")


def test_no_name_is_said_twice() -> None:
    assert row_text(replace(SPAN, preview="create a.py")) == "create a.py"
    assert row_text(replace(SPAN, preview="path=a.py")) == "create path=a.py"
    assert row_text(replace(SPAN, preview="creates a.py")) == "create creates a.py"
    assert actor_text(replace(SPAN, kind=SpanKind.LOG), "log".ljust(7), 15).split() == ["log"]
    assert actor_text(SPAN, "log", 15).split() == ["log", "tool"]


def test_a_row_leaves_out_colours_and_shows_what_else_a_terminal_would_obey() -> None:
    span = replace(SPAN, name=None, preview="\x1b[31mred\x1b[0m \x1b[2J")
    assert row_text(span) == "red ␛[2J"
