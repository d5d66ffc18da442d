"""Abandoned branches of Claude Code sessions after rewinds."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mast_tui.traces.io.source import Source
from mast_tui.traces.readers.claude_code.reader import READER
from tests.traces.checks import keys_of, write_json_lines
from tests.traces.claude_sessions import (
    SESSION,
    Record,
    agent,
    call,
    record,
    result,
    trace_of,
    user,
)

COMMAND = "<command-message>review</command-message><command-name>/review</command-name>"


def session(outline: str) -> list[Record]:
    """Return the records of a session from an outline; each follows the previous one.

    In the outline, ``u3<a1`` follows ``a1``, ``u3<`` follows nothing, and ``s1<=a1`` is a
    compaction that continues ``a1``. The first letter is the kind of the record:

    - ``u`` a prompt, ``k`` a command, ``m`` a text of the program
    - ``a`` an answer, ``e`` a failed request
    - ``c2`` the call ``t2``, ``r2`` its result
    - ``s`` and ``h`` notes, ``p`` progress
    - ``=a3`` a record that names ``a3`` as the end of the conversation
    """
    records: list[Record] = []
    previous: str | None = None
    for word in outline.split():
        uuid, link, parent_name = word.partition("<")
        if parent_name.startswith("="):
            records.append({**record_of_kind(uuid, None), "logicalParentUuid": parent_name[1:]})
        else:
            records.append(record_of_kind(uuid, (parent_name or None) if link else previous))
        previous = uuid
    return records


def record_of_kind(uuid: str, parent: str | None) -> Record:
    """Return the record of the kind that the first letter of its id stands for."""
    tool_id = f"t{uuid[1:]}"
    makers: dict[str, Callable[[], Record]] = {
        "u": lambda: user(uuid, parent, f"ask {uuid}"),
        "k": lambda: user(uuid, parent, COMMAND),
        "m": lambda: user(uuid, parent, "a skill", isMeta=True),
        "a": lambda: agent(uuid, parent, f"say {uuid}"),
        "e": lambda: agent(uuid, parent, "API Error: 529", isApiErrorMessage=True),
        "c": lambda: agent(uuid, parent, call(tool_id), response="m"),
        "r": lambda: result(uuid, parent, tool_id),
        "s": lambda: record(uuid, parent, "system", subtype="note", content="x"),
        "h": lambda: record(uuid, parent, "attachment", attachment={"type": "hook"}),
        "p": lambda: record(uuid, parent, "progress"),
        "=": lambda: {"type": "last-prompt", "leafUuid": uuid[1:], "sessionId": SESSION},
    }
    return makers[uuid[0]]()


def key_of(uuid: str) -> str:
    """Return the span key of a record of the outline."""
    number = re.sub(r"[cr](\d)", r"t\1", uuid)
    return {"c": f"{number}:call", "r": f"{number}:result"}.get(uuid[0], uuid)


REWINDS = {
    "a rewind": ("u1 a1 u2 a2 u3 a3 u9<a1 a9", "u2 a2 u3 a3", {3: 4}),
    "two rewinds": ("u1 a1 u2 u3<a1 a3 u4 a4 u5<a3 a5", "u2 u4 a4", {3: 1, 6: 2}),
    "a rewind before a rewind": (
        "u1 a1 u2 a2 u3 a3 u4<a2 a4 u9<a1 a9",
        "u2 a2 u3 a3 u4 a4",
        {3: 6},
    ),
    "notes before the prompt": ("u1 a1 s1 p1 m1 u2 a2 h1<a1 u9 a9", "u2 a2", {6: 2}),
    "a command": ("u1 a1 k1 m2 a2 u2<a1 a3", "k1 m2 a2", {3: 3}),
    "a late note of an earlier turn": ("u1 a1 u2 a2 u9<a1 a9 s1<a2 =", "u2 a2 s1", {3: 3}),
    "a result of a call that is shown": ("u1 c1 u2 r1 u3<c1 a3", "u2", {3: 1}),
    "a missing parent": ("u1 a1 u2<zz a2 u3<zz a3 u4 a4 u5<a3 a5", "u4 a4", {7: 2}),
    "a compaction on another branch": ("u1 a1 u2 a2 s1<=a1 u3 a3", "u2 a2", {3: 2}),
    "a compaction taken back": ("u1 a1 u2 a2 s1<=a2 u3 a3 u9<a1 a9", "u2 a2 s1 u3 a3", {3: 5}),
    "a new beginning": ("u1 a1 u2< a2 u3< a3 =a3", "u1 a1 u2 a2", {1: 2, 3: 2}),
}
NO_REWINDS = {
    "turns after a command": "k1 m1 a1 u2 a2 u3 a3",
    "parallel calls": "u1 c1 c2 c3 r1<c1 r3<c3 r2<c2 a4<r3 u2 a5",
    "a skill beside a call": "u1 c1 c2 r1<c1 m1 r2<c2 a3",
    "a prompt after earlier progress": "u1 c1 p1 p2 r1<c1 a2 u2 a3 u3<p2 a4",
    "a hook beside the answer": "u1 a1 s1<u1 u2 a2",
    "a request repeated": "u1 e1 a2<u1",
    "a prompt while the agent continues": "u1 c1 u2 r1<c1 a2",
    "a branch in which the agent continues": "u1 a1 s1 a2 u2<s1 a3 u3<a1 a4",
    "compactions": "u1 a1 u2 a2 s1<=a2 m2 a3 u3 a4 s3< u4 a5",
    "prompts that follow nothing": "u1 a1 u2< a2",
    "an end within the first tree": "u1 a1 u2 a2 u3< a3 =a2",
    "a parent that comes later": "u1 h1<a1 a1<u1 u2 a2",
    "a circle": "u1<a2 a1 u2 a2 u3<u3",
    "a circle beside the conversation": "u1 a1 u8<a9 a9 u2<a1 a2",
}


@pytest.mark.parametrize("name", [*REWINDS, *NO_REWINDS])
def test_records_of_abandoned_branches_are_left_out_and_counted(name: str, tmp_path: Path) -> None:
    outline, left_out, counts = REWINDS.get(name) or (NO_REWINDS[name], "", {})
    trace = trace_of(tmp_path, *session(outline))
    uuids = (word.partition("<")[0] for word in outline.split())
    expected = [uuid for uuid in uuids if uuid[0] not in "p=" and uuid not in left_out.split()]
    assert keys_of(trace) == [key_of(uuid) for uuid in expected]
    singular = "record of an abandoned branch is"
    plural = "records of an abandoned branch are"
    messages = {
        f"line {line}": f"{count} {singular if count == 1 else plural} not shown"
        for line, count in counts.items()
    }
    assert {problem.place: problem.message for problem in trace.problems} == messages
    first = next(uuid for uuid in expected if uuid[0] in "uk")
    assert trace.meta.task == ("/review" if first[0] == "k" else f"ask {first}")


@pytest.mark.slow
def test_a_long_session_with_many_forks_is_read_in_linear_time(tmp_path: Path) -> None:
    records: list[Record] = [user("u", None, "go")]
    for number in range(3000):
        parent = f"p{number - 1}" if number else "u"
        records.append(record(f"p{number}", parent, "progress"))
        records.append(user(f"m{number}", parent, "meta", isMeta=True))
    records += [user("v", "p2999", "ask"), agent("w", "v", "say")]
    path = write_json_lines(tmp_path / "s.jsonl", *records)
    calls = 0

    def count_calls(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count_calls)
    try:
        (trace,) = READER.read(Source(path)).traces
    finally:
        sys.setprofile(None)
    assert len(trace) == 3003
    assert calls < 200 * len(records)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(st.sampled_from("upas"), st.integers(-2, 12)), min_size=1, max_size=12))
def test_every_record_is_shown_or_counted_as_left_out(
    tmp_path: Path, outline: list[tuple[str, int]]
) -> None:
    """Every record is a span or counted as abandoned; the last message is a span."""
    records: list[Record] = []
    for number, (kind, link) in enumerate(outline):
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
    conversation = [f"n{number}" for number, (kind, _link) in enumerate(outline) if kind in "ua"]
    assert not conversation or conversation[-1] in keys_of(trace)
