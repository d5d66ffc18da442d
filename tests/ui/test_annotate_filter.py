"""The filter of the timeline by kind, error, label, suggestion and match."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.ui.annotate.filter import FilterChoice
from tests.traces import rollouts
from tests.ui.stage import Stage, finding, read_trace, stage, suggest, write_trace


@pytest.fixture
def workspace(tmp_path: Path, small: Path) -> Path:
    """Suggestions on #4 and on #9."""
    place = tmp_path / "workspace.db"
    trace = read_trace(small)
    suggest(place, trace, [finding(trace, "1.3", 4, 4), finding(trace, "2.6", 9, 9)])
    return place


def shown(on: Stage) -> list[int]:
    timeline = on.annotate.timeline
    return [timeline.rows.index_at(row) + 1 for row in range(timeline.row_count)]


def title(on: Stage) -> str:
    return str(on.annotate.timeline.border_title)


def choice(on: Stage) -> str:
    on.screen(FilterChoice)
    return on.text


async def test_kinds_are_chosen_by_keys_and_ranges_follow_the_filter(small: Path) -> None:
    async with stage(small) as on:
        await on.press("j", "j", "F", "c")
        assert "tool calls · 4 of 12" in choice(on)
        assert shown(on) == [3, 5, 7, 10]
        await on.press("o")
        assert shown(on) == [3, 4, 5, 6, 7, 8, 10, 11]
        await on.press("o", "enter")
        assert (shown(on), title(on)) == ([3, 5, 7, 10], "Timeline · tool calls · 4 of 12")
        assert on.number == 3
        await on.press("j")
        assert on.number == 5
        await on.press("1", "3")
        assert on.labels == {("1.3", 5, 5)}
        await on.press("u", "escape")
        await on.press("F", "c", "enter")
        await on.press("g", "v", "j", "1", "3")
        assert on.labels == {("1.3", 3, 5)}


async def test_everything_is_shown_again(small: Path) -> None:
    async with stage(small) as on:
        await on.press("j", "F", "c", "escape")
        assert (len(shown(on)), on.number, title(on)) == (12, 2, "Timeline")
        await on.press("F", "c")
        await on.press("enter")
        assert len(shown(on)) < 12
        await on.press("escape")
        assert (len(shown(on)), on.number, title(on)) == (12, 3, "Timeline")
        await on.press("F", "c", "e", "x")
        assert "all 12 spans" in choice(on)
        await on.press("enter")
        assert len(shown(on)) == 12
        await on.press("g")
        await on.press("j", "F", "g")
        assert "log records · 0 of 12" in choice(on)
        assert shown(on) == []
        await on.press("enter")
        assert len(shown(on)) == 12
        assert "Filter removed: no span matches" in on.message
        assert on.number == 2


async def test_escape_undoes_filter_and_search_in_reverse_order(small: Path) -> None:
    async with stage(small) as on:
        everything = len(shown(on))
        await on.press("/", *"pod", "enter")
        await on.press("F", "c", "enter")
        assert (on.annotate.state.needle, len(shown(on))) == ("pod", 4)
        await on.press("escape")
        assert (on.annotate.state.needle, len(shown(on))) == ("pod", everything)
        await on.press("escape")
        assert on.annotate.state.needle == ""
        await on.press("F", "c", "enter")
        narrowed = len(shown(on))
        await on.press("/", *"zzz", "enter")
        await on.press("escape")
        assert (on.annotate.state.needle, len(shown(on))) == ("", narrowed)
        await on.press("escape")
        assert len(shown(on)) == everything
        await on.press("g")
        await on.press("/", *"restart", "enter")
        await on.press("F", "/", "enter")
        assert shown(on) == [1, 9, 10, 11]
        await on.press("/", *"ed")
        assert shown(on) == [11]
        await on.press("escape")
        assert len(shown(on)) == 12
        assert "the search has ended" in on.message
        await on.press("g")
        await on.press("F", "m", "enter")
        await on.press("/", *"crashloop", "enter")
        assert (len(shown(on)), on.number) == (12, 4)
        await on.press("n")
        assert on.number == 6


async def test_labelled_and_suggested_spans_and_leaving_the_filter(
    small: Path, workspace: Path
) -> None:
    async with stage(small, workspace=workspace) as on:
        await on.press("j", "v", "j", "1", "1", "F", "l", "enter")
        assert shown(on) == [2, 3]
        await on.press("F", "l", "s", "enter")
        assert (shown(on), title(on)) == ([4, 9], "Timeline · suggested · 2 of 12")
        await on.press("escape", "g")
        await on.press("F", "m", "enter")
        assert 4 not in shown(on)
        await on.press("]")
        assert (on.number, len(shown(on))) == (4, 12)
        assert "Filter removed: #4 does not match" in on.message
        assert title(on) == "Timeline"


async def test_blind_annotators_are_offered_no_suggestions(small: Path, workspace: Path) -> None:
    async with stage(small, workspace=workspace, blind=True) as on:
        await on.press("F")
        assert "suggested" not in choice(on)
        await on.press("s")
        assert len(shown(on)) == 12
        assert on.annotate.filter.present_filter.shows_all


async def test_another_trace_is_not_filtered(small: Path, tmp_path: Path) -> None:
    other = write_trace(tmp_path / "z.json")
    async with stage(small, other) as on:
        await on.press("enter", "F", "c", "enter")
        assert len(shown(on)) == 4
        await on.press(">")
        assert (len(shown(on)), title(on)) == (12, "Timeline")


async def test_kinds_are_clicked_and_log_records_left_out(small: Path) -> None:
    async with stage(small) as on:
        await on.press("F")
        await on.pilot.click(".offer")
        await on.press("enter")
        assert shown(on) == [1, 2, 9, 12]
        await on.press("escape")
        await on.press("F", "n")
        assert "no log records · 12 of 12" in choice(on)
        assert "[x] all but log records" in choice(on)
        await on.press("c", "enter")
        assert title(on) == "Timeline · tool calls, no log records · 4 of 12"


async def test_search_and_filter_cover_spans_that_are_read_later(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    filler = "word " * 60
    records = [rollouts.meta()]
    for number in range(1500):
        records.append(rollouts.call(f"c{number}", f'{{"command": ["{filler}"]}}'))
        records.append(rollouts.output(f"c{number}", f"{filler} zebra {number}"))
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    async with stage(path, settled=False) as on:
        await on.press("/", *"zebra", "enter")
        assert on.annotate.state.hits.total == 1500
        await on.press("escape", "F", "c", "enter")
        assert title(on) == "Timeline · tool calls · 1,500 of 3,000"
        assert on.annotate.timeline.row_count == 1500
