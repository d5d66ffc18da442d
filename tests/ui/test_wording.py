"""Texts of times, places and names, and the columns of the timeline."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from mast_tui.counts import duration, offset
from mast_tui.labels import WHOLE_TRACE, Target
from mast_tui.safe_text import one_line
from mast_tui.traces.model import SpanKind
from mast_tui.ui.trace_view.background_index import TraceFacts
from mast_tui.ui.trace_view.timeline import (
    actor_text,
    columns_fitting,
    distinct_names,
    row_text,
    time_bar,
)
from mast_tui.ui.wording import QUOTE_CHARS, name_within, place_text
from tests.ui.build import SmallTrace


@given(st.data(), st.floats(1, 1e6), st.integers(1, 30))
def test_a_time_bar_marks_its_step(data: st.DataObject, total: float, cells: int) -> None:
    start = data.draw(st.floats(0, total))
    end = data.draw(st.floats(start, total))
    bar = time_bar(start, end, total, cells)
    assert len(bar) == len(time_bar(-end, start, total, cells)) == cells
    first = len(bar) - len(bar.lstrip())
    last = len(bar.rstrip()) - 1
    assert bar.strip()
    assert " " not in bar.strip()
    assert first == min(cells - 1, int(start / total * cells))
    assert last == min(cells - 1, int(end / total * cells))


def test_bars_of_short_and_empty_runs() -> None:
    bars = [time_bar(0, end, 80, 8) for end in (1, 5, 9)]
    assert ([bar.strip() for bar in bars], time_bar(0, 0, 0, 8)) == (["▏", "▌", "█"], " " * 8)


def test_offsets_and_durations() -> None:
    offsets = {-3: "0:00", 41.9: "0:41", 725: "12:05", 3599.9: "59:59", 3723: "1:02:03"}
    assert {seconds: offset(seconds) for seconds in offsets} == offsets
    durations = {
        -1: "0ms",
        0.34: "340ms",
        0.9999: "1.0s",
        4.2: "4.2s",
        59.99: "1m00s",
        372: "6m12s",
        7500: "2h05m",
    }
    assert {seconds: duration(seconds) for seconds in durations} == durations


@given(st.floats(0, 1e6))
def test_durations_use_the_right_unit(seconds: float) -> None:
    text = duration(seconds)
    number, unit = re.findall(r"(\d+(?:\.\d)?)(ms|s|m|h)", text)[-1]
    assert float(number) < (1000 if unit == "ms" else 60)


@pytest.mark.parametrize(
    ("name", "cells", "expected"),
    [
        ("cart/run-1.json", 15, "cart/run-1.json"),
        ("recorded/otel/q01_kettle.otel", 25, "…ded/otel/q01_kettle.otel"),
        ("recorded/otel/q01_kettle.otel", 20, "…tel/q01_kettle.otel"),
        ("recorded/otel/q01_kettle.otel", 15, "q01_kettl….otel"),
        ("rollout-2026-09-21T14-13-05.jsonl#12", 17, "rollout-202…nl#12"),
    ],
)
def test_names_are_cut_in_the_middle(name: str, cells: int, expected: str) -> None:
    assert name_within(name, cells) == expected


@given(st.text(max_size=60), st.integers(1, 40))
def test_names_fit_their_cells(name: str, cells: int) -> None:
    fitted = name_within(one_line(name), cells)
    assert cell_len(fitted) <= cells
    if cell_len(one_line(name)) <= cells:
        assert fitted == one_line(name)


INDEX_OF = SmallTrace("a", "b", "c", "d").index_of


def test_places_are_described() -> None:
    assert place_text(Target("k0", "k0"), INDEX_OF) == "#1"
    assert place_text(Target("k1", "k3"), INDEX_OF) == "#2 to #4"
    assert place_text(WHOLE_TRACE, INDEX_OF) == "the whole trace"
    assert place_text(Target("gone\x1b", "k1"), INDEX_OF) == "gone␛ to #2"
    target = Target("k1", "k1", "retry\n" + "x" * 100, 0, 106)
    text = place_text(target, INDEX_OF)
    assert text.startswith("“retry x")
    assert text.endswith("…” in #2")
    assert len(text) == QUOTE_CHARS + len("“” in #2")
    assert place_text(target, INDEX_OF, quoted=False) == "#2"


def test_times_fit_their_column() -> None:
    for total in (0.0, 59.9, 600.0, 3599.0, 3600.0, 36_000.0, 360_000.0, 4e6):
        columns = columns_fitting(10, TraceFacts(10, 5.0, total), 100)
        assert columns.time >= len(offset(total))
        assert columns.time in (5, len(offset(total)))


def test_columns_of_names_and_times() -> None:
    facts = TraceFacts(10, agents=("planner", "coder"), name_cells=7)
    assert columns_fitting(10, facts, 100).actor > columns_fitting(10, facts, 33).actor
    assert columns_fitting(10, facts, 33).text_cells(33, 0) > 15
    assert columns_fitting(10, TraceFacts(10), 100).time == 0


@pytest.mark.parametrize(
    ("names", "expected"),
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
def test_cut_names_stay_distinct(names: list[str], expected: list[str]) -> None:
    assert list(distinct_names(tuple(names), 14).values()) == expected


@given(st.lists(st.text("ab_ 界", max_size=20), unique=True, max_size=5), st.integers(3, 14))
def test_distinct_names_fit_their_cells(names: list[str], cells: int) -> None:
    distinct = distinct_names(tuple(names), cells)
    assert list(distinct) == names
    assert all(cell_len(text) <= cells for text in distinct.values())


TOOL_SPAN = replace(SmallTrace("a").span(0), kind=SpanKind.TOOL_CALL, name="create", agent="log")


def test_rows_name_agent_and_tool_once_and_escape_controls() -> None:
    assert row_text(replace(TOOL_SPAN, preview="create a.py")) == "create a.py"
    assert row_text(replace(TOOL_SPAN, preview="path=a.py")) == "create path=a.py"
    assert row_text(replace(TOOL_SPAN, preview="creates a.py")) == "create creates a.py"
    assert actor_text(replace(TOOL_SPAN, kind=SpanKind.LOG), "log".ljust(7), 15).split() == ["log"]
    assert actor_text(TOOL_SPAN, "log", 15).split() == ["log", "tool"]
    message = replace(TOOL_SPAN, kind=SpanKind.MESSAGE)
    assert actor_text(message, "Computer_t…", 19) == "Computer_t… agent  "
    span = replace(TOOL_SPAN, name=None, preview="\x1b[31mred\x1b[0m \x1b[2J")
    assert row_text(span) == "red ␛[2J"
