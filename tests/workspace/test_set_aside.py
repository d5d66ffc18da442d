"""The traces that no prompt may show."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mast_tui.workspace import RunSettings, TraceRecord, Workspace, WorkspaceError
from mast_tui.workspace.merging import merge
from mast_tui.workspace.registers.hold_out import (
    TracePart,
    held_out,
    set_aside,
    set_split,
    shares_set_aside,
    trace_part,
)
from tests.workspace.build import MAST, TRACE, trace_of
from tests.workspace.facts import texts

JUDGE = "judge:m-1@0123abcd"
IDS = tuple(f"run-{number}" for number in range(120))


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    with closing(Workspace.open(":memory:")) as opened:
        yield opened


@pytest.fixture
def other() -> Iterator[Workspace]:
    with closing(Workspace.open(":memory:")) as opened:
        yield opened


def out(workspace: Workspace) -> set[str]:
    return {trace_id for trace_id in IDS if held_out(workspace, trace_id)}


def shown(*examples: str) -> RunSettings:
    return RunSettings("m-1", "0123abcd", "models.example", examples=examples)


def test_without_a_share_nothing_is_set_aside(workspace: Workspace) -> None:
    assert shares_set_aside(workspace) == {}
    assert out(workspace) == set()


def test_the_share_holds_for_every_trace_and_after_opening_again(tmp_path: Path) -> None:
    with closing(Workspace.open(tmp_path / "w.db")) as workspace:
        set_aside(workspace, 0.25)
        first = out(workspace)
        # Five standard deviations of a fair choice.
        assert abs(len(first) / len(IDS) - 0.25) < 5 * (0.25 * 0.75 / len(IDS)) ** 0.5
    with closing(Workspace.open(tmp_path / "w.db")) as workspace:
        set_aside(workspace, 0.25)
        assert shares_set_aside(workspace) == {0: 0.25}
        assert out(workspace) == first


def parts(workspace: Workspace) -> dict[str, TracePart]:
    return {trace_id: trace_part(workspace, trace_id) for trace_id in IDS}


def test_a_split_has_three_parts_of_about_its_shares_and_survives_a_merge(
    workspace: Workspace, other: Workspace
) -> None:
    set_split(workspace, 0.2, 0.3)
    split = parts(workspace)
    for part, share in zip(TracePart, (0.5, 0.2, 0.3), strict=True):
        found = sum(each is part for each in split.values()) / len(IDS)
        # Five standard deviations of a fair choice.
        assert abs(found - share) < 5 * (share * (1 - share) / len(IDS)) ** 0.5
    assert out(workspace) == {one for one in IDS if split[one] is not TracePart.DEVELOPMENT}
    merge(other, workspace)
    assert parts(other) == split
    set_split(other, 0.2, 0.3)
    for calibration, test in ((0.1, 0.3), (0.2, 0.2), (0, 0.3)):
        with pytest.raises(WorkspaceError, match="set aside in this workspace already"):
            set_split(other, calibration, test)
    assert parts(other) == split


@pytest.mark.parametrize(("calibration", "test"), [(0.5, 0.5), (0.2, 0), (-0.1, 0.2), (0, 1)])
def test_a_split_leaves_something_for_development_and_tests(
    workspace: Workspace, calibration: float, test: float
) -> None:
    with pytest.raises(WorkspaceError, match="shares of the traces"):
        set_split(workspace, calibration, test)


def test_another_share_or_seed_is_refused_once_there_is_one(workspace: Workspace) -> None:
    set_aside(workspace, 0.25, seed=3)
    before = out(workspace)
    for share, seed in ((0.5, 3), (0.1, 3), (0.25, 4)):
        with pytest.raises(WorkspaceError, match=r"0\.25 .* set aside"):
            set_aside(workspace, share, seed=seed)
    assert out(workspace) == before


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, float("nan")])
def test_a_share_lies_between_none_and_all(workspace: Workspace, share: float) -> None:
    with pytest.raises(WorkspaceError, match="between 0 and 1"):
        set_aside(workspace, share)
    assert shares_set_aside(workspace) == {}


@pytest.mark.slow
def test_a_seed_makes_another_choice_and_a_greater_share_holds_the_smaller(
    workspace: Workspace, other: Workspace
) -> None:
    set_aside(workspace, 0.2)
    set_aside(other, 0.4)
    assert out(workspace) < out(other)
    with closing(Workspace.open(":memory:")) as third:
        set_aside(third, 0.2, seed=1)
        assert out(third) != out(workspace)


@given(st.lists(st.tuples(texts, st.integers(2, 99)), min_size=1))
@settings(max_examples=20, deadline=None)
def test_twins_of_one_id_stand_on_one_side(twins: list[tuple[str, int]]) -> None:
    with closing(Workspace.open(":memory:")) as workspace:
        set_aside(workspace, 0.5)
        for trace_id, number in [*twins, ("run-1~2", 3)]:
            assert held_out(workspace, f"{trace_id}~{number}") == held_out(workspace, trace_id)


def test_a_prompt_may_not_show_what_is_set_aside(workspace: Workspace) -> None:
    set_aside(workspace, 0.5)
    inside = sorted(out(workspace))
    outside = sorted(set(IDS) - set(inside))
    with pytest.raises(WorkspaceError, match=f"'{inside[0]}' is set aside"):
        workspace.start_run(JUDGE, MAST.ref, settings=shown(outside[0], inside[0]))
    assert workspace.runs() == ()
    workspace.start_run(JUDGE, MAST.ref, settings=shown(*outside[:2]))
    assert workspace.run_examples(JUDGE) == set(outside[:2])


def test_every_trace_that_stood_in_a_prompt_is_remembered(workspace: Workspace) -> None:
    assert workspace.run_examples(JUDGE) == frozenset()
    for examples in (("a", "b"), ("b", "c"), ()):
        workspace.start_run(JUDGE, MAST.ref, settings=shown(*examples))
    workspace.start_run(JUDGE, MAST.ref)
    workspace.start_run("judge:m-2@0123abcd", MAST.ref, settings=shown("d"))
    assert workspace.run_examples(JUDGE) == {"a", "b", "c"}


@pytest.mark.slow
def test_merging_brings_what_was_shown_and_what_was_set_aside(
    workspace: Workspace, other: Workspace
) -> None:
    workspace.register_trace(TraceRecord.from_trace(trace_of("one")))
    other.register_trace(TraceRecord.from_trace(trace_of("another")))
    other.start_run(JUDGE, MAST.ref, settings=shown(TRACE, "elsewhere"))
    set_aside(workspace, 0.2)
    set_aside(other, 0.3)
    theirs = out(other)
    merge(workspace, other)
    assert workspace.run_examples(JUDGE) == {f"{TRACE}~2", "elsewhere"}
    assert out(workspace) == theirs
    assert shares_set_aside(workspace) == {0: 0.3}
    with closing(Workspace.open(":memory:")) as third:
        set_aside(third, 0.1)
        merge(workspace, third)
    assert out(workspace) == theirs


@pytest.mark.slow
def test_choices_of_two_seeds_are_both_kept_in_either_order(
    workspace: Workspace, other: Workspace
) -> None:
    set_aside(workspace, 0.5, seed=1)
    set_aside(other, 0.5, seed=2)
    both = out(workspace) | out(other)
    merge(workspace, other)
    merge(other, workspace)
    assert out(workspace) == out(other) == both
    assert shares_set_aside(workspace) == shares_set_aside(other) == {1: 0.5, 2: 0.5}
