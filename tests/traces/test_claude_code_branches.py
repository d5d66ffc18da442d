"""Rewinds of Claude Code sessions: what the user took back is left out, and nothing else is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import Problem, Trace
from mast_tui.traces.readers.claude_code.reader import READER
from tests.traces.checks import keys_of, said, write_json_lines
from tests.traces.claude_sessions import (
    SESSION,
    Record,
    agent,
    answer,
    call,
    record,
    trace_of,
    user,
)


def turn(prompt: str, reply: str, parent: str | None) -> list[Record]:
    return [user(prompt, parent, f"ask {prompt}"), agent(reply, prompt, f"say {reply}")]


def problems_of(trace: Trace) -> list[Problem]:
    return list(trace.problems)


def nothing_is_missing(trace: Trace) -> bool:
    return not trace.problems


def test_a_rewind_leaves_out_what_was_taken_back_and_says_so(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        *turn("u1", "a1", None),
        *turn("u2", "a2", "a1"),
        *turn("u3", "a3", "a2"),
        *turn("u2b", "a2b", "a1"),
    )
    assert keys_of(trace) == ["u1", "a1", "u2b", "a2b"]
    assert problems_of(trace) == [
        Problem("line 3", "4 records of an abandoned branch are not shown")
    ]


def test_each_of_several_rewinds_is_named(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        *turn("u1", "a1", None),
        user("u2", "a1", "typed, and taken back at once"),
        *turn("u3", "a3", "a1"),
        *turn("u4", "a4", "a3"),
        *turn("u5", "a5", "a3"),
    )
    assert keys_of(trace) == ["u1", "a1", "u3", "a3", "u5", "a5"]
    assert problems_of(trace) == [
        Problem("line 3", "1 record of an abandoned branch is not shown"),
        Problem("line 6", "2 records of an abandoned branch are not shown"),
    ]


def test_a_rewind_from_a_rewind_back_before_it(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        *turn("u1", "a1", None),
        *turn("u2", "a2", "a1"),
        *turn("u3", "a3", "a2"),
        *turn("u3b", "a3b", "a2"),
        *turn("u2b", "a2b", "a1"),
    )
    assert keys_of(trace) == ["u1", "a1", "u2b", "a2b"]
    assert [problem.place for problem in trace.problems] == ["line 3"]


def test_what_the_harness_wrote_before_a_prompt_does_not_hide_the_rewind(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        *turn("u1", "a1", None),
        record("s1", "a1", "system", subtype="stop_hook_summary", content="hooks ran"),
        record("p1", "s1", "progress"),
        user("m1", "p1", "a skill", isMeta=True),
        *turn("u2", "a2", "m1"),
        record("h1", "a1", "attachment", attachment={"type": "hook"}),
        *turn("u2b", "a2b", "h1"),
    )
    assert keys_of(trace) == ["u1", "a1", "s1", "m1", "h1", "u2b", "a2b"]
    assert [problem.place for problem in trace.problems] == ["line 6"]


def test_a_command_can_be_taken_back_too(tmp_path: Path) -> None:
    typed = "<command-message>review</command-message><command-name>/review</command-name>"
    trace = trace_of(
        tmp_path,
        *turn("u1", "a1", None),
        user("c1", "a1", typed),
        user("c2", "c1", "the command's prompt", isMeta=True),
        agent("a2", "c2", "reviewed"),
        *turn("u2", "a3", "a1"),
    )
    assert keys_of(trace) == ["u1", "a1", "u2", "a3"]


def test_records_appended_to_a_session_leave_the_keys_as_they_were(tmp_path: Path) -> None:
    before = [*turn("u1", "a1", None), *turn("u2", "a2", "a1")]
    assert keys_of(trace_of(tmp_path, *before)) == ["u1", "a1", "u2", "a2"]
    after = [*before, *turn("u3", "a3", "a2")]
    assert keys_of(trace_of(tmp_path, *after)) == ["u1", "a1", "u2", "a2", "u3", "a3"]


def test_parallel_calls_with_their_results_are_no_rewind(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        user("u1", None, "go"),
        agent("a1", "u1", call("t1"), response="m"),
        agent("a2", "a1", call("t2"), response="m"),
        agent("a3", "a2", call("t3"), response="m"),
        answer("r1", "a1", "t1"),
        answer("r3", "a3", "t3"),
        answer("r2", "a2", "t2"),
        agent("a4", "r3", "done"),
        *turn("u2", "a5", "a4"),
    )
    assert len(trace) == 10
    assert nothing_is_missing(trace)


def test_a_skill_beside_another_call_is_no_rewind(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        user("u1", None, "go"),
        agent("a1", "u1", call("t1", "Skill"), response="m"),
        agent("a2", "a1", call("t2", "Read"), response="m"),
        answer("r1", "a1", "t1"),
        user("m1", "r1", "the body of the skill", isMeta=True),
        answer("r2", "a2", "t2"),
        agent("a3", "r2", "done"),
    )
    assert "the body of the skill" in said(trace)
    assert nothing_is_missing(trace)


def test_progress_that_the_story_forks_at_is_no_rewind(tmp_path: Path) -> None:
    """A prompt may be hung on a hook's progress in the middle of a turn long past."""
    trace = trace_of(
        tmp_path,
        user("u1", None, "go"),
        agent("a1", "u1", call("t1")),
        record("p1", "a1", "progress"),
        record("p2", "p1", "progress"),
        answer("r1", "a1", "t1"),
        agent("a2", "r1", "done"),
        *turn("u2", "a3", "a2"),
        *turn("u3", "a4", "p2"),
    )
    assert keys_of(trace)[-4:] == ["u2", "a3", "u3", "a4"]
    assert nothing_is_missing(trace)


def test_an_answer_and_a_hook_that_follow_the_same_record_are_no_rewind(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        user("u1", None, "go"),
        agent("a1", "u1", "the answer"),
        record("s1", "u1", "system", subtype="stop_hook_summary", content="hooks ran"),
        *turn("u2", "a2", "s1"),
    )
    assert keys_of(trace) == ["u1", "a1", "s1", "u2", "a2"]
    assert nothing_is_missing(trace)


def test_a_request_that_failed_and_was_repeated_is_no_rewind(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        user("u1", None, "go"),
        agent("a1", "u1", "API Error: 529", isApiErrorMessage=True),
        agent("a2", "u1", "done"),
    )
    assert keys_of(trace) == ["u1", "a1", "a2"]
    assert nothing_is_missing(trace)


def test_late_records_of_an_earlier_turn_do_not_decide_where_the_story_ends(
    tmp_path: Path,
) -> None:
    trace = trace_of(
        tmp_path,
        *turn("u1", "a1", None),
        *turn("u2", "a2", "a1"),
        *turn("u2b", "a2b", "a1"),
        record("s1", "a2", "system", subtype="local_command", content="resume cancelled"),
        {"type": "last-prompt", "lastPrompt": "x", "sessionId": SESSION},
    )
    assert keys_of(trace) == ["u1", "a1", "u2b", "a2b"]


def test_a_result_on_the_other_branch_whose_call_is_shown_is_kept(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        user("u1", None, "go"),
        agent("a1", "u1", call("t1")),
        user("u2", "a1", "hurry"),
        answer("r1", "u2", "t1"),
        *turn("u3", "a3", "a1"),
    )
    assert keys_of(trace) == ["u1", "t1:call", "t1:result", "u3", "a3"]


def test_a_prompt_beside_which_the_agent_went_on_is_kept(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        user("u1", None, "go"),
        agent("a1", "u1", call("t1")),
        user("u2", "a1", "hurry"),
        answer("r1", "a1", "t1"),
        agent("a2", "r1", "done"),
    )
    assert keys_of(trace) == ["u1", "t1:call", "u2", "t1:result", "a2"]
    assert nothing_is_missing(trace)


def test_a_branch_in_which_the_agent_went_on_too_is_kept(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        *turn("u1", "a1", None),
        record("s1", "a1", "system", subtype="note", content="x"),
        agent("a2", "s1", "by the way"),
        *turn("u2", "a3", "s1"),
        *turn("u3", "a4", "a1"),
    )
    assert len(trace) == 8
    assert nothing_is_missing(trace)


def test_a_link_to_a_record_that_is_missing_loses_nothing(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        *turn("u1", "a1", None),
        *turn("u2", "a2", "never written"),
        *turn("u3", "a3", "never written"),
        *turn("u4", "a4", "a3"),
        *turn("u5", "a5", "a3"),
    )
    assert keys_of(trace) == ["u1", "a1", "u2", "a2", "u3", "a3", "u5", "a5"]


def test_a_compaction_goes_on_where_the_session_was(tmp_path: Path) -> None:
    boundary: Record = {"subtype": "compact_boundary", "content": "Conversation compacted"}
    trace = trace_of(
        tmp_path,
        *turn("u1", "a1", None),
        *turn("u2", "a2", "a1"),
        record("c1", None, "system", logicalParentUuid="a2", **boundary),
        user("c2", "c1", "This session is being continued", isCompactSummary=True),
        agent("a3", "c2", "going on"),
        *turn("u3", "a4", "a3"),
        record("c3", None, "system", **boundary),
        *turn("u4", "a5", "c3"),
    )
    assert len(trace) == 12
    assert nothing_is_missing(trace)


def test_a_compaction_after_a_rewind_goes_on_with_the_branch_that_it_names(
    tmp_path: Path,
) -> None:
    trace = trace_of(
        tmp_path,
        *turn("u1", "a1", None),
        *turn("u2", "a2", "a1"),
        record("c1", None, "system", subtype="compact_boundary", logicalParentUuid="a1"),
        *turn("u3", "a3", "c1"),
    )
    assert keys_of(trace) == ["u1", "a1", "c1", "u3", "a3"]


def test_a_rewind_to_before_a_compaction(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        *turn("u1", "a1", None),
        *turn("u2", "a2", "a1"),
        record("c1", None, "system", subtype="compact_boundary", logicalParentUuid="a2"),
        *turn("u3", "a3", "c1"),
        *turn("u2b", "a2b", "a1"),
    )
    assert keys_of(trace) == ["u1", "a1", "u2b", "a2b"]
    assert [problem.place for problem in trace.problems] == ["line 3"]


def test_prompts_that_follow_nothing_are_all_shown(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, *turn("u1", "a1", None), *turn("u2", "a2", None))
    assert keys_of(trace) == ["u1", "a1", "u2", "a2"]
    assert nothing_is_missing(trace)


def test_a_rewind_to_the_very_beginning_where_the_file_tells_so(tmp_path: Path) -> None:
    tip = {"type": "last-prompt", "leafUuid": "a3", "sessionId": SESSION}
    trace = trace_of(
        tmp_path,
        *turn("u1", "a1", None),
        *turn("u2", "a2", None),
        *turn("u3", "a3", None),
        tip,
    )
    assert keys_of(trace) == ["u3", "a3"]
    assert [problem.place for problem in trace.problems] == ["line 1", "line 3"]
    assert trace.meta.task == "ask u3"


def test_a_file_that_ends_within_its_first_tree_has_not_begun_again(tmp_path: Path) -> None:
    tip = {"type": "last-prompt", "leafUuid": "a2", "sessionId": SESSION}
    records = [*turn("u1", "a1", None), *turn("u2", "a2", "a1"), *turn("u3", "a3", None), tip]
    assert len(trace_of(tmp_path, *records)) == 6


def test_a_record_may_name_one_that_comes_later(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        user("u1", None, "go"),
        record("h1", "a1", "attachment", attachment={"type": "hook"}),
        agent("a1", "u1", "done"),
        *turn("u2", "a2", "a1"),
    )
    assert keys_of(trace) == ["u1", "h1", "a1", "u2", "a2"]


def test_records_that_follow_one_another_in_a_circle_are_all_shown(tmp_path: Path) -> None:
    circle = [user("u1", "a2", "one"), agent("a1", "u1", "two"), user("u2", "a1", "three")]
    trace = trace_of(tmp_path, *circle, agent("a2", "u2", "four"), user("u3", "u3", "five"))
    assert keys_of(trace) == ["u1", "a1", "u2", "a2", "u3"]


def test_a_circle_beside_the_story_is_shown_too(tmp_path: Path) -> None:
    circle = [user("c1", "c2", "one"), agent("c2", "c1", "two")]
    trace = trace_of(tmp_path, *turn("u1", "a1", None), *circle, *turn("u2", "a2", "a1"))
    assert keys_of(trace) == ["u1", "a1", "c1", "c2", "u2", "a2"]


@pytest.mark.slow
def test_a_long_session_with_many_forks_is_read_in_linear_time(tmp_path: Path) -> None:
    records: list[Record] = [user("u", None, "go")]
    for number in range(3000):
        above = f"p{number - 1}" if number else "u"
        records.append(record(f"p{number}", above, "progress"))
        records.append(user(f"m{number}", above, "meta", isMeta=True))
    records += turn("v", "w", "p2999")
    path = write_json_lines(tmp_path / "s.jsonl", *records)
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        (trace,) = READER.read(Source(path)).traces
    finally:
        sys.setprofile(None)
    assert len(trace) == 3003
    assert calls < 200 * len(records)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None
)
@given(st.lists(st.tuples(st.sampled_from("upas"), st.integers(-2, 12)), min_size=1, max_size=12))
def test_whatever_the_links_are_nothing_is_left_out_unsaid(
    tmp_path: Path, shape: list[tuple[str, int]]
) -> None:
    """Kept and abandoned records together are all, and the last one is always there."""
    records: list[Record] = []
    for number, (kind, link) in enumerate(shape):
        parent = None if link < 0 else f"n{link}"
        uuid = f"n{number}"
        if kind == "u":
            records.append(user(uuid, parent, "ask"))
        elif kind == "a":
            records.append(agent(uuid, parent, "say"))
        else:
            records.append(record(uuid, parent, "system", subtype="note", content="x"))
    trace = trace_of(tmp_path, *records)
    left_out = sum(int(problem.message.split()[0]) for problem in trace.problems)
    assert len(trace) + left_out == len(records)
    talk = [f"n{number}" for number, (kind, _link) in enumerate(shape) if kind in "ua"]
    assert not talk or talk[-1] in keys_of(trace)
