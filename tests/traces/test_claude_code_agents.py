"""Sub-agents of Claude Code: among the records of their session, and in files of their own."""

from __future__ import annotations

import json
from pathlib import Path

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import Role, Thread, Trace
from mast_tui.traces.readers.claude_code.reader import READER
from tests.traces.checks import keys_of, read_file, spans_of, write_json_lines
from tests.traces.claude_sessions import (
    SESSION,
    Record,
    agent,
    answer,
    call,
    report_of,
    trace_of,
    user,
)

SIDE = {"isSidechain": True}


def side(name: str, *records: Record, **fields: object) -> list[Record]:
    """Records of a side chain, each following the one before it; uuids begin with its name."""
    linked = []
    parent: str | None = None
    for number, one in enumerate(records):
        uuid = f"{name}{number}"
        linked.append({**one, "uuid": uuid, "parentUuid": parent, "isSidechain": True, **fields})
        parent = uuid
    return linked


def spawned_by(trace: Trace) -> dict[str, str]:
    return dict(trace.spawned)


def test_a_side_chain_stands_before_the_result_of_its_call(tmp_path: Path) -> None:
    found = side("w", user("", None, "look"), agent("", None, "looking", call("t2", "Grep")))
    found += side("w", answer("", None, "t2"), agent("", None, "found it"))
    found[2] |= {"uuid": "w2", "parentUuid": "w1"}
    found[3] |= {"uuid": "w3", "parentUuid": "w2"}
    trace = trace_of(
        tmp_path,
        user("u1", None, "go"),
        agent("a1", "u1", call("t1", "Task", prompt="look", subagent_type="Explore")),
        *found,
        answer("r1", "a1", "t1", "found it"),
        agent("a2", "r1", "done"),
    )
    spans = spans_of(trace)
    assert [(one.key, one.agent) for one in spans] == [
        ("u1", "user"),
        ("t1:call", "claude-code"),
        ("w0/w0", "claude-code"),
        ("w0/w1", "Explore"),
        ("w0/t2:call", "Explore"),
        ("w0/t2:result", "Explore"),
        ("w0/w3", "Explore"),
        ("t1:result", "claude-code"),
        ("a2", "claude-code"),
    ]
    assert [one.parent for one in spans[2:8]] == [
        "t1:call",
        "t1:call",
        "t1:call",
        "w0/t2:call",
        "t1:call",
        "t1:call",
    ]
    assert (spans[2].role, trace.meta.task) == (Role.USER, "go")


def test_side_chains_that_ran_at_once_are_read_one_after_the_other(tmp_path: Path) -> None:
    one = side("w", user("", None, "same"), agent("", None, "w says"))
    two = side("x", user("", None, "same"), agent("", None, "x says"))
    trace = trace_of(
        tmp_path,
        user("u1", None, "go"),
        agent("a1", "u1", call("t1", "Task", prompt="same"), response="m"),
        agent("a2", "a1", call("t2", "Agent", prompt="same"), response="m"),
        one[0],
        two[0],
        two[1],
        one[1],
        answer("r2", "a2", "t2"),
        answer("r1", "a1", "t1"),
    )
    assert keys_of(trace)[3:] == [
        "x0/x0",
        "x0/x1",
        "t2:result",
        "w0/w0",
        "w0/w1",
        "t1:result",
    ]
    assert spans_of(trace)[4].agent == "sub-agent x0"


def test_the_result_tells_whose_it_is_before_the_prompt_does(tmp_path: Path) -> None:
    one = side("w", user("", None, "same"), agent("", None, "w says"), agentId="agent-one")
    two = side("x", user("", None, "same"), agent("", None, "x says"), agentId="agent-two")
    trace = trace_of(
        tmp_path,
        user("u1", None, "go"),
        agent("a1", "u1", call("t1", "Task", prompt="same"), call("t2", "Task", prompt="same")),
        *one,
        *two,
        answer("r1", "a1", "t1", toolUseResult={"agentId": "agent-two"}),
        answer("r2", "a1", "t2", "fine\nagentId: agent-one (for resuming)"),
    )
    assert keys_of(trace)[3:] == [
        "agent-two/x0",
        "agent-two/x1",
        "t1:result",
        "agent-one/w0",
        "agent-one/w1",
        "t2:result",
    ]
    assert spawned_by(trace) == {"agent-two": "t1:result", "agent-one": "t2:result"}


def test_a_call_whose_result_names_one_sub_agent_is_not_anothers(tmp_path: Path) -> None:
    one = side("w", user("", None, "same"), agent("", None, "w says"), agentId="agent-one")
    two = side("x", user("", None, "same"), agent("", None, "x says"), agentId="agent-two")
    trace = trace_of(
        tmp_path,
        user("u1", None, "go"),
        agent("a1", "u1", call("t1", "Task", prompt="same"), call("t2", "Task", prompt="same")),
        *one,
        *two,
        answer("r1", "a1", "t1", toolUseResult={"agentId": "agent-two"}),
        answer("r2", "a1", "t2"),
    )
    own = [one.key for one in spans_of(trace) if one.parent == "t1:call"]
    assert own == ["agent-two/x0", "agent-two/x1", "t1:result"]
    others = [one.key for one in spans_of(trace) if one.parent == "t2:call"]
    assert others == ["agent-one/w0", "agent-one/w1", "t2:result"]


def test_a_side_chain_without_a_call_or_a_result_stands_at_its_lines(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        *side("w", user("", None, "Warmup"), agent("", None, "ready")),
        user("u1", None, "go"),
        agent("a1", "u1", call("t1", "Task", prompt="look")),
        *side("x", user("", None, "look"), agent("", None, "cut short")),
    )
    assert keys_of(trace) == ["w0/w0", "w0/w1", "u1", "t1:call", "x0/x0", "x0/x1"]
    parents = [one.parent for one in spans_of(trace)]
    assert parents == [None, None, None, None, "t1:call", "t1:call"]


def test_a_session_that_begins_with_a_sub_agent_is_no_file_of_a_sub_agent(tmp_path: Path) -> None:
    warm = side("w", user("", None, "Warmup"), agent("", None, "ready"), agentId="a1b2")
    report = report_of(tmp_path, *warm, user("u1", None, "go"), agent("a1", "u1", "ok"))
    (trace,) = report.traces
    assert report.thread == Thread(SESSION)
    assert keys_of(trace) == ["a1b2/w0", "a1b2/w1", "u1", "a1"]


def test_a_sub_agent_within_a_sub_agent(tmp_path: Path) -> None:
    inner = side("x", user("", None, "inner"), agent("", None, "deep"), agentId="in")
    outer = side(
        "w",
        user("", None, "outer"),
        agent("", None, call("t2", "Agent", prompt="inner", subagent_type="Plan")),
        answer("", None, "t2", "agentId: in"),
        agentId="out",
    )
    trace = trace_of(
        tmp_path,
        user("u1", None, "go"),
        agent("a1", "u1", call("t1", "Agent", prompt="outer")),
        *inner,
        *outer,
        answer("r1", "a1", "t1", "agentId: out"),
    )
    assert keys_of(trace) == [
        "u1",
        "t1:call",
        "out/w0",
        "out/t2:call",
        "in/x0",
        "in/x1",
        "out/t2:result",
        "t1:result",
    ]
    assert trace.span(5).agent == "Plan"
    assert trace.span(5).parent == "out/t2:call"
    assert spawned_by(trace) == {"in": "out/t2:result", "out": "t1:result"}


def test_a_sub_agent_that_seems_to_call_itself_is_shown_all_the_same(tmp_path: Path) -> None:
    odd = side(
        "w",
        user("", None, "again"),
        agent("", None, call("t1", "Agent", prompt="again")),
        answer("", None, "t1", "agentId: odd"),
        agentId="odd",
    )
    trace = trace_of(tmp_path, user("u1", None, "go"), *odd)
    assert keys_of(trace) == ["u1", "odd/w0", "odd/t1:call", "odd/t1:result"]


def test_deeply_nested_sub_agents_are_read(tmp_path: Path) -> None:
    depth = 1100
    records = [user("u1", None, "go"), agent("a1", "u1", call("t0", "Agent", prompt="p0"))]
    for level in range(depth):
        records += side(
            f"w{level}-",
            user("", None, f"p{level}"),
            agent("", None, call(f"t{level + 1}", "Agent", prompt=f"p{level + 1}")),
            answer("", None, f"t{level + 1}"),
        )
    trace = trace_of(tmp_path, *records, answer("r1", "a1", "t0"))
    assert len(trace) == 3 + 3 * depth
    assert keys_of(trace)[-1] == "t0:result"
    assert keys_of(trace)[depth * 2 + 1].startswith(f"w{depth - 1}-0/")


def test_what_a_sub_agent_did_on_an_abandoned_branch_is_not_shown(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        user("u1", None, "go"),
        agent("a1", "u1", "ready"),
        user("u2", "a1", "first"),
        agent("a2", "u2", call("t1", "Task", prompt="look")),
        *side("w", user("", None, "look"), agent("", None, "found")),
        answer("r1", "a2", "t1"),
        user("u3", "a1", "second"),
        agent("a3", "u3", "done"),
    )
    assert keys_of(trace) == ["u1", "a1", "u3", "a3"]
    assert spawned_by(trace) == {}


def test_the_main_file_tells_where_sub_agents_of_other_files_belong(tmp_path: Path) -> None:
    quoted = "a transcript says agentId: other"
    report = report_of(
        tmp_path,
        user("u1", None, "go"),
        agent("a1", "u1", call("t1", "Agent", prompt="x"), call("t2", "Read"), response="m"),
        answer("r1", "a1", "t1", [{"type": "text", "text": "done\nagentId: a5f3b2c"}]),
        answer("r2", "a1", "t2", quoted, toolUseResult={"agentId": "no"}),
    )
    (trace,) = report.traces
    assert report.thread == Thread(SESSION)
    assert spawned_by(trace) == {"a5f3b2c": "t1:result"}


def test_messages_of_a_team_are_said_by_who_sent_them(tmp_path: Path) -> None:
    sent = '<teammate-message teammate_id="alice" color="blue">\ntests pass\n</teammate-message>'
    gone = '<teammate-message teammate_id="system">alice has left</teammate-message>'
    trace = trace_of(
        tmp_path,
        user("u1", None, sent),
        agent("a1", "u1", "thanks"),
        user("u2", "a1", gone),
        user("u3", "u2", "what is <teammate-message teammate_id='x'> for?"),
    )
    assert [(one.agent, one.role.value) for one in spans_of(trace)] == [
        ("alice", "agent"),
        ("claude-code", "agent"),
        ("system", "system"),
        ("user", "user"),
    ]
    assert trace.text(0) == sent
    assert (trace.meta.task or "").startswith("what is")


def own_file(path: Path, *more: Record) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    records = side("w", user("", None, "look"), agent("", None, "found"), agentId="a5f3b2c9d")
    return write_json_lines(path, *records, *more)


def test_a_file_of_a_sub_agent_in_each_layout(tmp_path: Path) -> None:
    folders = ("", f"{SESSION}/subagents", f"{SESSION}/subagents/workflows/wf_1")
    for folder in folders:
        report = read_file(READER, own_file(tmp_path / folder / "agent-a5f3b2c9d.jsonl"))
        (trace,) = report.traces
        assert report.thread == Thread("a5f3b2c9d", SESSION)
        assert trace.identity.trace_id == f"{SESSION}/a5f3b2c9d"
        assert trace.identity.native
        assert keys_of(trace) == ["a5f3b2c9d/w0", "a5f3b2c9d/w1"]
        assert [one.agent for one in spans_of(trace)] == ["claude-code", "sub-agent a5f3b2c9"]


def test_the_file_beside_it_tells_the_type_of_a_sub_agent(tmp_path: Path) -> None:
    path = own_file(tmp_path / "agent-a5f3b2c9d.jsonl")
    beside = tmp_path / "agent-a5f3b2c9d.meta.json"
    for content, expected in (
        (json.dumps({"agentType": "Explore", "description": "x"}), "Explore"),
        (json.dumps({"agentType": 7}), "sub-agent a5f3b2c9"),
        ("[broken", "sub-agent a5f3b2c9"),
    ):
        beside.write_text(content, encoding="utf-8")
        (trace,) = READER.read(Source(path)).traces
        assert trace.span(1).agent == expected


def test_a_sub_agent_in_a_file_of_its_own_may_be_rewound_and_have_sub_agents(
    tmp_path: Path,
) -> None:
    mark = {**SIDE, "agentId": "a5f3b2c9d"}
    path = own_file(
        tmp_path / "agent-a5f3b2c9d.jsonl",
        {**user("w2", "w1", "no"), **mark},
        {**user("w3", "w1", "yes"), **mark},
        {**agent("w4", "w3", call("t1", "Agent", prompt="p")), **mark},
        {**answer("w5", "w4", "t1", toolUseResult={"agentId": "deep"}), **mark},
    )
    (trace,) = read_file(READER, path).traces
    own = ("w0", "w1", "w3", "t1:call", "t1:result")
    assert keys_of(trace) == [f"a5f3b2c9d/{key}" for key in own]
    assert spawned_by(trace) == {"deep": "a5f3b2c9d/t1:result"}
    assert [problem.place for problem in trace.problems] == ["line 3"]
