"""Traces that no prompt may show: held-out shares, splits, and examples of runs."""

from __future__ import annotations

from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mast_tui.workspace import RunSettings, RunTrace, TraceRecord, Workspace, WorkspaceError
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


def held_out_traces(workspace: Workspace) -> set[str]:
    return {trace_id for trace_id in IDS if held_out(workspace, trace_id)}


def parts(workspace: Workspace) -> dict[str, TracePart]:
    return {trace_id: trace_part(workspace, trace_id) for trace_id in IDS}


def assert_share(count: int, share: float) -> None:
    """Fail beyond five standard deviations of a fair choice."""
    assert abs(count / len(IDS) - share) < 5 * (share * (1 - share) / len(IDS)) ** 0.5


def settings_showing(*examples: str) -> RunSettings:
    return RunSettings("m-1", "0123abcd", "models.example", examples=examples)


def test_split_has_three_parts_of_its_shares_and_survives_a_merge(
    workspace: Workspace, other: Workspace
) -> None:
    for calibration, test in ((0.5, 0.5), (0.2, 0), (-0.1, 0.2), (0, 1)):
        with pytest.raises(WorkspaceError, match="shares of the traces"):
            set_split(workspace, calibration, test)
    set_split(workspace, 0.2, 0.3)
    split = parts(workspace)
    for part, share in zip(TracePart, (0.5, 0.2, 0.3), strict=True):
        assert_share([*split.values()].count(part), share)
    assert held_out_traces(workspace) == {t for t in IDS if split[t] is not TracePart.DEVELOPMENT}
    merge(other, workspace)
    assert parts(other) == split
    set_split(other, 0.2, 0.3)
    for calibration, test in ((0.1, 0.3), (0.2, 0.2), (0, 0.3)):
        with pytest.raises(WorkspaceError, match="already set aside in this workspace"):
            set_split(other, calibration, test)
    assert parts(other) == split


def test_share_lies_between_0_and_1_and_cannot_be_changed(workspace: Workspace) -> None:
    for share in (0.0, 1.0, -0.5, float("nan")):
        with pytest.raises(WorkspaceError, match="between 0 and 1"):
            set_aside(workspace, share)
    assert shares_set_aside(workspace) == {}
    set_aside(workspace, 0.25, seed=3)
    ids_before = held_out_traces(workspace)
    for share, seed in ((0.5, 3), (0.1, 3), (0.25, 4)):
        with pytest.raises(WorkspaceError, match=r"0\.25 .* set aside"):
            set_aside(workspace, share, seed=seed)
    assert held_out_traces(workspace) == ids_before


@pytest.mark.slow
def test_seeds_choose_differently_and_greater_shares_hold_the_smaller(
    workspace: Workspace, other: Workspace
) -> None:
    set_aside(workspace, 0.2)
    set_aside(other, 0.4)
    assert held_out_traces(workspace) < held_out_traces(other)
    with closing(Workspace.open(":memory:")) as third:
        set_aside(third, 0.2, seed=1)
        assert held_out_traces(third) != held_out_traces(workspace)


@given(st.lists(st.tuples(texts, st.integers(2, 99)), min_size=1))
@settings(max_examples=20, deadline=None)
def test_traces_of_one_base_id_are_in_the_same_part(variants: list[tuple[str, int]]) -> None:
    with closing(Workspace.open(":memory:")) as workspace:
        set_aside(workspace, 0.5)
        for trace_id, number in [*variants, ("run-1~2", 3)]:
            assert held_out(workspace, f"{trace_id}~{number}") == held_out(workspace, trace_id)


def test_examples_of_runs_are_recorded_unless_they_are_held_out(workspace: Workspace) -> None:
    assert workspace.run_examples(JUDGE) == frozenset()
    set_aside(workspace, 0.5)
    inside = sorted(held_out_traces(workspace))
    first, second, third, fourth = sorted(set(IDS) - set(inside))[:4]
    workspace.start_run("judge:n@1", MAST.ref, settings=settings_showing(inside[0]))
    workspace.register_trace(TraceRecord(inside[0]))
    with pytest.raises(WorkspaceError, match=f"'{inside[0]}' is set aside"):
        workspace.start_run(JUDGE, MAST.ref, settings=settings_showing(first, inside[0]))
    assert len(workspace.runs()) == 1
    for examples in ((first, second), (second, third), ()):
        workspace.start_run(JUDGE, MAST.ref, settings=settings_showing(*examples))
    workspace.start_run(JUDGE, MAST.ref)
    workspace.start_run("judge:m-2@0123abcd", MAST.ref, settings=settings_showing(fourth))
    assert workspace.run_examples(JUDGE) == {first, second, third}
    # Traces chosen for errors do not measure a judge that has judged no others.
    settings = RunSettings("m-1", "1", "here", chosen=("x",), chosen_from="judge:before@1")
    before = workspace.start_run("judge:before@1", MAST.ref)
    taught = workspace.start_run(JUDGE, MAST.ref, settings=settings)
    for run, trace in ((before, "x"), (before, "y"), (taught, "x")):
        workspace.note_run_trace(run, RunTrace(trace, 0))
    assert workspace.unmeasured_traces(JUDGE) == {"x", first, second, third}
    workspace.note_run_trace(taught, RunTrace("y", 0))
    assert workspace.unmeasured_traces(JUDGE) == {first, second, third}


@pytest.mark.slow
def test_merging_brings_examples_and_held_out_traces(
    workspace: Workspace, other: Workspace
) -> None:
    workspace.register_trace(TraceRecord.from_trace(trace_of("one")))
    other.register_trace(TraceRecord.from_trace(trace_of("another")))
    other.start_run(JUDGE, MAST.ref, settings=settings_showing(TRACE, "elsewhere"))
    set_aside(workspace, 0.2)
    set_aside(other, 0.3)
    theirs = held_out_traces(other)
    merge(workspace, other)
    assert workspace.run_examples(JUDGE) == {f"{TRACE}~2", "elsewhere"}
    assert held_out_traces(workspace) == theirs
    assert shares_set_aside(workspace) == {0: 0.3}
    with closing(Workspace.open(":memory:")) as third:
        set_aside(third, 0.1)
        merge(workspace, third)
    assert held_out_traces(workspace) == theirs


@pytest.mark.slow
def test_choices_of_two_seeds_are_both_kept_in_either_order(
    workspace: Workspace, other: Workspace
) -> None:
    set_aside(workspace, 0.5, seed=1)
    set_aside(other, 0.5, seed=2)
    both = held_out_traces(workspace) | held_out_traces(other)
    merge(workspace, other)
    merge(other, workspace)
    assert held_out_traces(workspace) == held_out_traces(other) == both
    assert shares_set_aside(workspace) == shares_set_aside(other) == {1: 0.5, 2: 0.5}
