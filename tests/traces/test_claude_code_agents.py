"""Sub-agents of Claude Code in the file of their session and in files of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import Thread
from mast_tui.traces.readers.claude_code.reader import READER
from tests.traces.checks import keys_of, read_file, spans_of, write_json_lines
from tests.traces.claude_sessions import (
    SESSION,
    Record,
    agent,
    call,
    report_of,
    result,
    trace_of,
    user,
)


def side_chain(name: str, *records: Record, **fields: object) -> list[Record]:
    """Return the records as a side chain, linked in order, with uuids that begin with ``name``."""
    linked_records = []
    parent: str | None = None
    for number, chain_record in enumerate(records):
        uuid = f"{name}{number}"
        linked_records.append(
            {**chain_record, "uuid": uuid, "parentUuid": parent, "isSidechain": True, **fields}
        )
        parent = uuid
    return linked_records


GO = user("u1", None, "go")
TWO_CALLS = agent("a1", "u1", call("t1", "Task", prompt="same"), call("t2", "Task", prompt="same"))
TWO_CALLS_BEGUN = [GO, TWO_CALLS]
FIRST_CHAIN = side_chain("w", user("", None, "same"), agent("", None, "w says"))
SECOND_CHAIN = side_chain("x", user("", None, "same"), agent("", None, "x says"))
FIRST_CHAIN_WITH_ID = [{**record, "agentId": "one"} for record in FIRST_CHAIN]
SECOND_CHAIN_WITH_ID = [{**record, "agentId": "two"} for record in SECOND_CHAIN]
SECOND_CHAIN_FIRST: dict[str, str | None] = {
    "u1": None,
    "t1:call": None,
    "t2:call": None,
    "two/x0": "t1:call",
    "two/x1": "t1:call",
    "t1:result": "t1:call",
    "one/w0": "t2:call",
    "one/w1": "t2:call",
    "t2:result": "t2:call",
}
OUTER_CHAIN = (
    user("", None, "outer"),
    agent("", None, call("t2", "Agent", prompt="inner", subagent_type="Plan")),
    result("", None, "t2", "agentId: in"),
)
SELF_CALLING_CHAIN = (
    user("", None, "again"),
    agent("", None, call("t1", "Agent", prompt="again")),
    result("", None, "t1", "agentId: odd"),
)

SESSIONS: dict[str, tuple[list[Record], dict[str, str | None], dict[str, str]]] = {
    "concurrent": (
        [
            *(GO, TWO_CALLS, FIRST_CHAIN[0], *SECOND_CHAIN, FIRST_CHAIN[1]),
            *(result("r2", "a1", "t2"), result("r1", "a1", "t1")),
        ],
        {
            "u1": None,
            "t1:call": None,
            "t2:call": None,
            "x0/x0": "t2:call",
            "x0/x1": "t2:call",
            "t2:result": "t2:call",
            "w0/w0": "t1:call",
            "w0/w1": "t1:call",
            "t1:result": "t1:call",
        },
        {},
    ),
    "named by results despite equal prompts": (
        [
            *(GO, TWO_CALLS, *FIRST_CHAIN_WITH_ID, *SECOND_CHAIN_WITH_ID),
            result("r1", "a1", "t1", toolUseResult={"agentId": "two"}),
            result("r2", "a1", "t2", "fine\nagentId: one (for resuming)"),
        ],
        SECOND_CHAIN_FIRST,
        {"two": "t1:result", "one": "t2:result"},
    ),
    "a prompt matches no call whose result names another": (
        [
            *(GO, TWO_CALLS, *FIRST_CHAIN_WITH_ID, *SECOND_CHAIN_WITH_ID),
            result("r1", "a1", "t1", toolUseResult={"agentId": "two"}),
            result("r2", "a1", "t2"),
        ],
        SECOND_CHAIN_FIRST,
        {"two": "t1:result"},
    ),
    "without a call, and without a result": (
        [
            *side_chain("v", user("", None, "Warmup"), agent("", None, "ready"), agentId="a1b2"),
            *(GO, agent("a1", "u1", call("t1", "Task", prompt="same")), *FIRST_CHAIN),
        ],
        {
            "a1b2/v0": None,
            "a1b2/v1": None,
            "u1": None,
            "t1:call": None,
            "w0/w0": "t1:call",
            "w0/w1": "t1:call",
        },
        {},
    ),
    "nested": (
        [
            *(GO, agent("a1", "u1", call("t1", "Agent", prompt="outer"))),
            *side_chain("x", user("", None, "inner"), agent("", None, "deep"), agentId="in"),
            *side_chain("w", *OUTER_CHAIN, agentId="out"),
            result("r1", "a1", "t1", "agentId: out"),
        ],
        {
            "u1": None,
            "t1:call": None,
            "out/w0": "t1:call",
            "out/t2:call": "t1:call",
            "in/x0": "out/t2:call",
            "in/x1": "out/t2:call",
            "out/t2:result": "out/t2:call",
            "t1:result": "t1:call",
        },
        {"in": "out/t2:result", "out": "t1:result"},
    ),
    "calls itself": (
        [GO, *side_chain("w", *SELF_CALLING_CHAIN, agentId="odd")],
        {"u1": None, "odd/w0": None, "odd/t1:call": None, "odd/t1:result": "odd/t1:call"},
        {"odd": "odd/t1:result"},
    ),
    "on an abandoned branch": (
        [
            *(GO, user("u2", "u1", "first"), agent("a2", "u2", call("t1", "Task", prompt="same"))),
            *(*FIRST_CHAIN, result("r1", "a2", "t1"), user("u3", "u1", "second")),
        ],
        {"u1": None, "u3": None},
        {},
    ),
    "in files of their own": (
        [
            GO,
            agent("a1", "u1", call("t1", "Agent", prompt="x"), call("t2", "Read")),
            result("r1", "a1", "t1", [{"type": "text", "text": "done\nagentId: a5f3b2c"}]),
            result("r2", "a1", "t2", "says agentId: other", toolUseResult={"agentId": "no"}),
        ],
        {
            "u1": None,
            "t1:call": None,
            "t2:call": None,
            "t1:result": "t1:call",
            "t2:result": "t2:call",
        },
        {"a5f3b2c": "t1:result"},
    ),
}


@pytest.mark.parametrize("name", SESSIONS)
def test_sub_agents_are_read_before_the_results_of_their_calls(tmp_path: Path, name: str) -> None:
    records, parents, spawned = SESSIONS[name]
    report = report_of(tmp_path, *records)
    (trace,) = report.traces
    assert [(span.key, span.parent) for span in spans_of(trace)] == list(parents.items())
    assert trace.spawned == spawned
    assert report.thread == Thread(SESSION)


def test_deeply_nested_sub_agents_are_read(tmp_path: Path) -> None:
    depth = 1100
    records = [user("u1", None, "go"), agent("a1", "u1", call("t0", "Agent", prompt="p0"))]
    for level in range(depth):
        records += side_chain(
            f"w{level}-",
            user("", None, f"p{level}"),
            agent("", None, call(f"t{level + 1}", "Agent", prompt=f"p{level + 1}")),
            result("", None, f"t{level + 1}"),
        )
    trace = trace_of(tmp_path, *records, result("r1", "a1", "t0"))
    assert len(trace) == 3 + 3 * depth
    assert keys_of(trace)[-1] == "t0:result"
    assert keys_of(trace)[depth * 2 + 1].startswith(f"w{depth - 1}-0/")


def write_agent_file(path: Path, *more_records: Record) -> Path:
    """Write the file of a sub-agent with a prompt, an answer and more records; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    records = side_chain("w", user("", None, "look"), agent("", None, "found"), agentId="a5f3b2c9d")
    return write_json_lines(path, *records, *more_records)


def test_a_file_of_a_sub_agent_in_each_layout(tmp_path: Path) -> None:
    folders = ("", f"{SESSION}/subagents", f"{SESSION}/subagents/workflows/wf_1")
    for folder in folders:
        report = read_file(READER, write_agent_file(tmp_path / folder / "agent-a5f3b2c9d.jsonl"))
        (trace,) = report.traces
        assert report.thread == Thread("a5f3b2c9d", SESSION)
        assert trace.identity.trace_id == f"{SESSION}/a5f3b2c9d"
        assert trace.identity.native
        assert keys_of(trace) == ["a5f3b2c9d/w0", "a5f3b2c9d/w1"]
        assert [span.agent for span in spans_of(trace)] == ["claude-code", "sub-agent a5f3b2c9"]


def progress(agent_id: str) -> list[Record]:
    """Return the records of a sub-agent in the progress records of its session."""
    return [
        {
            **user(f"p{number}", "a1", ""),
            "type": "progress",
            "data": {"type": "agent_progress", "agentId": agent_id, "message": message},
        }
        for number, message in enumerate(
            side_chain("w", user("", None, "look"), agent("", None, "found"))
        )
    ]


@pytest.mark.parametrize("agent_id", ["a7", "x" * 5000, "../a7", "a\0b"])
def test_progress_records_are_read_if_the_sub_agent_has_no_file(
    tmp_path: Path, agent_id: str
) -> None:
    trace = trace_of(tmp_path, *TWO_CALLS_BEGUN, *progress(agent_id))
    assert [span.preview for span in spans_of(trace)][-2:] == ["look", "found"]


@pytest.mark.parametrize("folder", ["", f"{SESSION}/subagents", f"{SESSION}/subagents/workflows/w"])
def test_progress_records_of_a_sub_agent_with_a_file_are_ignored(
    tmp_path: Path, folder: str
) -> None:
    write_agent_file(tmp_path / folder / "agent-a5f3b2c9d.jsonl")
    path = write_json_lines(tmp_path / f"{SESSION}.jsonl", *TWO_CALLS_BEGUN, *progress("a5f3b2c9d"))
    (trace,) = READER.read(Source(path)).traces
    assert "found" not in [span.preview for span in spans_of(trace)]


def test_the_type_of_a_sub_agent_is_in_its_meta_file(tmp_path: Path) -> None:
    path = write_agent_file(tmp_path / "agent-a5f3b2c9d.jsonl")
    meta_file = tmp_path / "agent-a5f3b2c9d.meta.json"
    for content, expected in (
        (json.dumps({"agentType": "Explore", "description": "x"}), "Explore"),
        (json.dumps({"agentType": 7}), "sub-agent a5f3b2c9"),
        ("[broken", "sub-agent a5f3b2c9"),
    ):
        meta_file.write_text(content, encoding="utf-8")
        (trace,) = READER.read(Source(path)).traces
        assert trace.span(1).agent == expected


def test_a_sub_agent_in_a_file_of_its_own_may_be_rewound_and_have_sub_agents(
    tmp_path: Path,
) -> None:
    side_chain_fields = {"isSidechain": True, "agentId": "a5f3b2c9d"}
    path = write_agent_file(
        tmp_path / "agent-a5f3b2c9d.jsonl",
        {**user("w2", "w1", "no"), **side_chain_fields},
        {**user("w3", "w1", "yes"), **side_chain_fields},
        {**agent("w4", "w3", call("t1", "Agent", prompt="p")), **side_chain_fields},
        {**result("w5", "w4", "t1", toolUseResult={"agentId": "deep"}), **side_chain_fields},
    )
    (trace,) = read_file(READER, path).traces
    suffixes = ("w0", "w1", "w3", "t1:call", "t1:result")
    assert keys_of(trace) == [f"a5f3b2c9d/{key}" for key in suffixes]
    assert trace.spawned == {"deep": "a5f3b2c9d/t1:result"}
    assert [problem.place for problem in trace.problems] == ["line 3"]
