"""Narrowing the timeline: by kind, error, label, suggestion and match, and leaving that again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import SpanKind
from mast_tui.ui.annotate.filter import FilterChoice, SpanFilter
from tests.traces import rollouts
from tests.ui.settle import settle
from tests.ui.stage import Stage, finding, read_trace, stage, suggest, write_trace


@pytest.fixture
def workspace(tmp_path: Path, small: Path) -> Path:
    """Suggestions on #4 and on #9."""
    place = tmp_path / "workspace.db"
    trace = read_trace(small)
    suggest(place, trace, [finding(trace, "1.3", 4, 4), finding(trace, "2.6", 9, 9)])
    return place


def shown(on: Stage) -> list[int]:
    """The numbers of the spans in the timeline."""
    timeline = on.annotate.timeline
    return [timeline.rows.index_at(row) + 1 for row in range(timeline.row_count)]


def title(on: Stage) -> str:
    return str(on.annotate.timeline.border_title)


def choice(on: Stage) -> str:
    """What the dialog shows."""
    assert isinstance(on.app.screen, FilterChoice)
    return on.text


async def test_kinds_are_chosen_by_single_keys_and_kept(small: Path) -> None:
    async with stage(small) as on:
        await on.press("j", "j", "F", "c")
        assert "tool calls · 4 of 12" in choice(on)
        assert shown(on) == [3, 5, 7, 10]
        await on.press("o")
        assert shown(on) == [3, 4, 5, 6, 7, 8, 10, 11]
        await on.press("o", "enter")
        assert shown(on) == [3, 5, 7, 10]
        assert title(on) == "Timeline · tool calls · 4 of 12"
        assert on.number == 3
        await on.press("j")
        assert on.number == 5
        await on.press("1", "3")
        assert on.labels == {("1.3", 5, 5)}


async def test_a_range_goes_by_what_is_shown(small: Path) -> None:
    async with stage(small) as on:
        await on.press("F", "c", "enter")
        await on.press("g", "v", "j", "1", "3")
        assert on.labels == {("1.3", 3, 5)}


async def test_escape_x_and_an_empty_choice_show_everything(small: Path) -> None:
    async with stage(small) as on:
        await on.press("j", "F", "c", "escape")
        assert len(shown(on)) == 12
        assert on.number == 2
        assert title(on) == "Timeline"
        await on.press("F", "c")
        await on.press("enter")
        assert len(shown(on)) < 12
        await on.press("escape")
        assert len(shown(on)) == 12
        assert on.number == 3
        assert title(on) == "Timeline"
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


async def test_escape_takes_back_first_what_was_set_last(small: Path) -> None:
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


async def test_labelled_and_suggested_spans(small: Path, workspace: Path) -> None:
    async with stage(small, workspace=workspace) as on:
        await on.press("j", "v", "j", "1", "1", "F", "l", "enter")
        assert shown(on) == [2, 3]
        await on.press("F", "l", "s", "enter")
        assert shown(on) == [4, 9]
        assert title(on) == "Timeline · suggested · 2 of 12"


async def test_a_filter_and_a_search_at_once(small: Path) -> None:
    async with stage(small) as on:
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
        assert len(shown(on)) == 12
        assert on.number == 4
        await on.press("n")
        assert on.number == 6


async def test_going_to_what_is_not_shown_leaves_the_filter_and_says_so(
    small: Path, workspace: Path
) -> None:
    async with stage(small, workspace=workspace) as on:
        await on.press("F", "m", "enter")
        assert 4 not in shown(on)
        await on.press("]")
        assert on.number == 4
        assert len(shown(on)) == 12
        assert "Filter removed: #4 does not match" in on.message
        assert title(on) == "Timeline"


async def test_whoever_is_blind_is_offered_no_suggestions(small: Path, workspace: Path) -> None:
    async with stage(small, workspace=workspace, blind=True) as on:
        await on.press("F")
        assert "suggested" not in choice(on)
        await on.press("s")
        assert len(shown(on)) == 12
        assert on.annotate.filter.present_filter.shows_all


async def test_another_trace_is_shown_as_a_whole(small: Path, tmp_path: Path) -> None:
    other = write_trace(tmp_path / "z.json")
    async with stage(small, other) as on:
        await on.press("enter", "F", "c", "enter")
        assert len(shown(on)) == 4
        await on.press(">")
        assert len(shown(on)) == 12
        assert title(on) == "Timeline"


async def test_rows_are_clicked_and_one_key_leaves_out_log_records(small: Path) -> None:
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


async def test_search_and_filter_go_on_into_what_the_index_gains(tmp_path: Path) -> None:
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


async def test_a_filter_takes_in_what_an_index_gains(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    path.write_text(
        "".join(
            json.dumps(record) + "\n"
            for record in [
                rollouts.meta(),
                *(rollouts.message("user", f"{number} " + "x" * 900) for number in range(2000)),
            ]
        ),
        "utf-8",
    )
    async with stage(path) as on:
        screen, trace = on.annotate, read_file(path, named=True).traces[0]
        first = len(trace)
        assert first < 2000
        screen.state.trace = screen.timeline.trace = trace
        screen.filter.apply(SpanFilter(kinds=frozenset({SpanKind.MESSAGE})))
        await settle(on.pilot)
        assert screen.timeline.row_count == first
        read_fully(trace)
        screen.filter.check_new_spans()
        await settle(on.pilot)
        assert screen.timeline.row_count == 2000
        assert title(on) == "Timeline · messages · 2,000 of 2,000"
