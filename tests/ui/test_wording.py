"""Times of a run, and names of traces, as people read them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from mast_tui.counts import duration, offset
from mast_tui.safe_text import one_line
from mast_tui.ui.trace_view.timeline import time_bar
from mast_tui.ui.wording import name_within

seconds = st.floats(-1e6, 1e6)


@given(seconds, seconds, st.one_of(st.floats(-1, 0), st.floats(1e-6, 1e6)), st.integers(1, 30))
def test_a_bar_is_as_wide_as_asked(start: float, end: float, total: float, cells: int) -> None:
    assert len(time_bar(start, end, total, cells)) == cells


@given(st.data(), st.floats(1, 1e6), st.integers(1, 30))
def test_a_step_inside_the_run_leaves_a_mark_where_it_stands(
    data: st.DataObject, total: float, cells: int
) -> None:
    start = data.draw(st.floats(0, total))
    end = data.draw(st.floats(start, total))
    bar = time_bar(start, end, total, cells)
    first = len(bar) - len(bar.lstrip())
    last = len(bar.rstrip()) - 1
    assert bar.strip()
    assert " " not in bar.strip()
    assert first == min(cells - 1, int(start / total * cells))
    assert last == min(cells - 1, int(end / total * cells))


def test_a_longer_step_in_one_cell_fills_more_of_it() -> None:
    bars = [time_bar(0, end, 80, 8) for end in (1, 5, 9)]
    assert [bar.strip() for bar in bars] == ["▏", "▌", "█"]


def test_a_run_without_a_length_has_an_empty_bar() -> None:
    assert time_bar(0, 0, 0, 8) == " " * 8


@pytest.mark.parametrize(
    ("given_seconds", "shown"),
    [
        (-3, "0:00"),
        (41.9, "0:41"),
        (725, "12:05"),
        (3599.9, "59:59"),
        (3723, "1:02:03"),
    ],
)
def test_an_offset_is_read_like_a_clock(given_seconds: float, shown: str) -> None:
    assert offset(given_seconds) == shown


@pytest.mark.parametrize(
    ("given_seconds", "shown"),
    [
        (-1, "0ms"),
        (0.34, "340ms"),
        (0.9999, "1.0s"),
        (4.2, "4.2s"),
        (59.99, "1m00s"),
        (372, "6m12s"),
        (7500, "2h05m"),
    ],
)
def test_a_length_of_time_is_rounded_to_what_matters(given_seconds: float, shown: str) -> None:
    assert duration(given_seconds) == shown


@given(st.floats(0, 1e6))
def test_no_unit_overflows_into_the_next(given_seconds: float) -> None:
    shown = duration(given_seconds)
    number, unit = re.findall(r"(\d+(?:\.\d)?)(ms|s|m|h)", shown)[-1]
    assert float(number) < (1000 if unit == "ms" else 60)


@pytest.mark.parametrize(
    ("name", "cells", "shown"),
    [
        ("cart/run-1.json", 15, "cart/run-1.json"),
        ("recorded/otel/q01_kettle.otel", 25, "…ded/otel/q01_kettle.otel"),
        ("recorded/otel/q01_kettle.otel", 20, "…tel/q01_kettle.otel"),
        ("recorded/otel/q01_kettle.otel", 15, "q01_kettl….otel"),
        ("rollout-2026-09-21T14-13-05.jsonl#12", 17, "rollout-202…nl#12"),
    ],
)
def test_a_trace_keeps_of_its_name_what_tells_it_from_others(
    name: str, cells: int, shown: str
) -> None:
    assert name_within(name, cells) == shown


@given(st.text(max_size=60), st.integers(1, 40))
def test_a_name_takes_no_more_room_than_there_is(name: str, cells: int) -> None:
    shown = name_within(one_line(name), cells)
    assert cell_len(shown) <= cells
    if cell_len(one_line(name)) <= cells:
        assert shown == one_line(name)
