"""Sessions of coding agents: damaged, as a list, and as folders with a file for each message."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.library import read_file, scan
from mast_tui.traces.model import Trace
from mast_tui.traces.readers import recognising_readers
from tests.traces.checks import check_sound, read_one, span_lines, write_json, write_json_lines
from tests.traces.golden import golden_inputs, golden_text

SESSIONS: Final = {golden.name[4:]: golden for golden in golden_inputs("sessions")}
DOCUMENTS: Final = [name for name, golden in SESSIONS.items() if golden.opened.endswith(".json")]
LINES: Final = [name for name in SESSIONS if name not in DOCUMENTS]


def read(path: Path) -> Trace:
    """Return the only trace of a file, which exactly one reader claims."""
    (reader,) = recognising_readers(Source(path))
    return read_one(reader, path)


def write_session(name: str, folder: Path) -> tuple[Path, list[str]]:
    """Write a session to a folder; return its path and its spans."""
    path = SESSIONS[name].write_to(folder)
    return path, span_lines(read(path))


def problems_of(path: Path) -> list[str]:
    """Return the messages of all problems of a file, with their places."""
    report = read_file(path, named=True)
    problems = [
        *report.problems,
        *(problem for trace in report.traces for problem in trace.problems),
    ]
    return [f"{problem.place}: {problem.message}" for problem in problems]


@pytest.mark.parametrize("name", LINES)
def test_a_broken_line_loses_no_other_record(name: str, tmp_path: Path) -> None:
    path, spans = write_session(name, tmp_path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:2], '{"type": "assistant", "mess', *lines[2:], ""]))
    assert span_lines(read(path)) == spans
    assert any(problem.startswith("line 3: not JSON") for problem in problems_of(path))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_that_is_cut_off_is_read_up_to_the_cut(name: str, tmp_path: Path) -> None:
    path, spans = write_session(name, tmp_path)
    text = path.read_text()
    path.write_text(text[: text.rindex(":")])
    assert span_lines(read(path))[:2] == spans[:2]
    problems = problems_of(path)
    assert any("cut off" in problem for problem in problems)
    assert not any("not JSON" in problem for problem in problems)


@pytest.mark.parametrize("name", LINES)
def test_a_list_of_records_is_read_as_its_lines_are(name: str, tmp_path: Path) -> None:
    path, spans = write_session(name, tmp_path)
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert span_lines(read(write_json(tmp_path / "list.json", records))) == spans


def test_sub_agents_of_claude_code_do_not_join_a_session_of_qwen_code(tmp_path: Path) -> None:
    path, _spans = write_session("qwen", tmp_path)
    message = {"role": "user", "content": "Look."}
    worker = {"sessionId": read(path).identity.trace_id, "agentId": "w", "isSidechain": True}
    worker |= {"uuid": "w1", "parentUuid": None, "type": "user", "message": message}
    write_json_lines(tmp_path / "agent-w.jsonl", worker)
    formats = {report.format for report in scan([tmp_path]) if report.traces}
    assert formats == {"claude-code", "qwen-code"}


def test_a_folder_with_a_file_per_message_is_one_session(tmp_path: Path) -> None:
    _path, spans = write_session("strands", tmp_path)
    records = map(json.loads, golden_text("sessions", "strands").splitlines())
    session = tmp_path / "session_mill"
    messages = session / "agents" / "agent_default" / "messages"
    write_json(session / "session.json", {"session_id": "mill"})
    for number, record in zip((0, 2, 10), records, strict=True):
        write_json(messages / f"message_{number}.json", record)
    write_json(messages.parent / "agent.json", {"agent_id": "default"})
    for folder, session_id in ((session, "mill"), (messages.parent, None), (messages, None)):
        (trace,) = (trace for report in scan([folder]) for trace in report.traces)
        check_sound(trace)
        assert span_lines(trace) == spans
        assert trace.identity.native is (session_id is not None)
    (messages / "message_2.json").write_text("{")
    (report,) = (report for report in scan([session]) if report.traces)
    assert len(report.traces[0]) == 2
    assert any("message_2.json" in problem.place for problem in report.problems)


@pytest.mark.parametrize("flat", [False, True], ids=["by message", "in one folder"])
def test_a_folder_with_a_file_per_part_is_one_session(tmp_path: Path, flat: bool) -> None:
    path, spans = write_session("opencode", tmp_path)
    document = json.loads(path.read_text())
    folder = tmp_path / "storage"
    write_json(folder / "session/mill/ses_m.json", document["info"])
    for message in document["messages"]:
        name = message["info"]["id"]
        write_json(folder / f"message/ses_m/{name}.json", message["info"])
        parts = folder / "part" if flat else folder / "part" / name
        for number, part in enumerate(message["parts"]):
            part_record = {**part, "messageID": name} if flat else part
            write_json(parts / f"prt_{name}_{number}.json", part_record)
    (trace,) = (trace for report in scan([folder]) for trace in report.traces)
    check_sound(trace)
    assert span_lines(trace) == spans
    assert (trace.identity.trace_id, trace.meta.version) == ("ses_m", "2.1.0")
