"""Runs with sub-agents in files of their own."""

from __future__ import annotations

from pathlib import Path

from mast_tui.traces.library import read_file, read_fully, scan
from mast_tui.traces.model import Trace
from tests.traces.checks import check_sound, write_json_lines
from tests.traces.rollouts import message, meta, write

MAIN = "019a0000-0000-7000-8000-000000000001"
CHILD = "019a0000-0000-7000-8000-000000000002"
GRANDCHILD = "019a0000-0000-7000-8000-000000000003"


def record(second: int, kind: str, **payload: object) -> dict[str, object]:
    return {"timestamp": f"2026-03-01T10:00:{second:02}.000Z", "type": kind, "payload": payload}


def said(second: int, role: str, text: str) -> dict[str, object]:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": text}]
    return record(second, "response_item", type="message", role=role, content=content)


def spawned(second: int, call: str, thread: str) -> tuple[dict[str, object], dict[str, object]]:
    asked = record(
        second,
        "response_item",
        type="function_call",
        name="spawn_agent",
        arguments='{"message": "look"}',
        call_id=call,
    )
    output = f'{{"agent_id":"{thread}","nickname":"Ada"}}'
    payload = record(
        second + 1, "response_item", type="function_call_output", call_id=call, output=output
    )
    return asked, payload


def rollout(path: Path, thread: str, parent: str | None, *records: dict[str, object]) -> Path:
    meta: dict[str, object] = {"id": thread, "timestamp": "2026-03-01T10:00:00.000Z"}
    if parent is not None:
        meta |= {"parent_thread_id": parent, "agent_nickname": f"agent-{thread[-1]}"}
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_json_lines(path, record(0, "session_meta", **meta), *records)


def family(folder: Path) -> Path:
    """A run with a sub-agent that has one itself, in three files; the run's own file."""
    rollout(
        folder / "01" / "rollout-b.jsonl",
        CHILD,
        MAIN,
        said(20, "user", "look"),
        *spawned(22, "call_c", GRANDCHILD),
        said(29, "assistant", "child has looked"),
    )
    rollout(
        folder / "02" / "rollout-c.jsonl",
        GRANDCHILD,
        CHILD,
        said(24, "assistant", "grandchild was here"),
    )
    return rollout(
        folder / "01" / "rollout-a.jsonl",
        MAIN,
        None,
        said(10, "user", "do it"),
        *spawned(11, "call_m", CHILD),
        said(40, "assistant", "all done"),
    )


def the_run(folder: Path) -> Trace:
    (trace,) = [trace for report in scan([folder]) for trace in report.traces]
    read_fully(trace)
    return trace


def texts(trace: Trace) -> list[str]:
    return [trace.text(index) for index in range(len(trace))]


def test_sub_agents_are_shown_before_the_result_of_their_call(tmp_path: Path) -> None:
    family(tmp_path)
    run = the_run(tmp_path)
    check_sound(run)
    assert run.identity.trace_id == MAIN
    expected = texts(run)
    assert expected[0] == "do it"
    assert expected.index("grandchild was here") < expected.index("child has looked")
    keys = [run.span(index).key for index in range(len(run))]
    child_result = keys.index(f"{CHILD}/call_c:result")
    assert (
        keys.index("call_m:call") < expected.index("child has looked") < keys.index("call_m:result")
    )
    assert expected.index("grandchild was here") == child_result - 1
    assert expected[-1] == "all done"


def test_spans_of_a_sub_agent_have_its_agent_and_place(tmp_path: Path) -> None:
    family(tmp_path)
    run = the_run(tmp_path)
    inside = next(i for i, text in enumerate(texts(run)) if text == "child has looked")
    span = run.span(inside)
    assert span.key.startswith(f"{CHILD}/")
    assert span.parent == "call_m:call"
    assert span.agent == "agent-2"
    assert span.place == "rollout-b.jsonl line 5"
    assert run.span(0).place == "line 2"


def test_files_of_sub_agents_are_no_traces(tmp_path: Path) -> None:
    family(tmp_path)
    reports = {report.path.name: report for report in scan([tmp_path])}
    for name in ("rollout-b.jsonl", "rollout-c.jsonl"):
        skipped = reports[name].skipped
        assert skipped is not None
        assert "sub-agent of the run in" in skipped
        assert "rollout-a.jsonl" in skipped


def test_a_run_named_alone_finds_its_sub_agents(tmp_path: Path) -> None:
    path = family(tmp_path)
    (run,) = read_file(path, named=True).traces
    read_fully(run)
    assert "child has looked" in texts(run)


def test_a_sub_agent_without_its_run_keeps_its_keys(tmp_path: Path) -> None:
    path = family(tmp_path)
    inside_run = [key for key in keys_of(the_run(tmp_path)) if key.startswith(f"{CHILD}/")]
    path.unlink()
    alone = next(t for r in scan([tmp_path]) for t in r.traces)
    read_fully(alone)
    assert [key for key in keys_of(alone) if key.startswith(f"{CHILD}/")] == inside_run


def test_an_unnamed_sub_agent_is_shown_at_the_end(tmp_path: Path) -> None:
    rollout(tmp_path / "a.jsonl", MAIN, None, said(1, "user", "begin"), said(9, "user", "end"))
    rollout(tmp_path / "b.jsonl", CHILD, MAIN, said(5, "assistant", "unannounced"))
    run = the_run(tmp_path)
    check_sound(run)
    assert texts(run) == ["begin", "end", "unannounced"]


def test_a_run_that_loads_in_slices_keeps_its_order(tmp_path: Path) -> None:
    """Spans never move while a run is read slice by slice, however big its files are."""
    filler = [said(30, "assistant", f"{number} " + "x" * 2000) for number in range(400)]
    rollout(tmp_path / "b.jsonl", CHILD, MAIN, *filler, said(31, "assistant", "child end"))
    rollout(
        tmp_path / "a.jsonl",
        MAIN,
        None,
        *filler,
        *spawned(40, "call_m", CHILD),
        *filler,
    )
    (run,) = [trace for report in scan([tmp_path]) for trace in report.traces]
    seen = keys_of(run)
    while run.advance(100_000):
        now = keys_of(run)
        assert now[: len(seen)] == seen
        assert run.loaded.done <= run.loaded.total
        seen = now
    check_sound(run)
    assert len(run) == 400 * 3 + 3
    assert keys_of(run).index("call_m:result") == 400 + 1 + 401


def keys_of(trace: Trace) -> list[str]:
    return [trace.span(index).key for index in range(len(trace))]


def test_a_changed_file_of_a_run_is_reported(tmp_path: Path) -> None:
    main = family(tmp_path)
    trace = the_run(tmp_path)
    assert trace.change_reason() is None
    child = tmp_path / "01" / "rollout-b.jsonl"
    index = next(i for i in range(len(trace)) if trace.span(i).place.startswith(child.name))
    trace.text(index)
    child.unlink()
    assert trace.change_reason() == f"{child.name}: the file is gone"
    main.unlink()
    assert trace.change_reason() == "the file is gone"


def test_equal_ids_of_two_formats_are_two_runs(tmp_path: Path) -> None:
    """A sub-agent belongs to a run of the same program only."""
    session = "0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee"
    child = "0199aaaa-bbbb-7ccc-8ddd-ffffffffffff"
    write(
        tmp_path,
        meta(child, parent_thread_id=session),
        message("user", "go"),
        name=f"rollout-{child}.jsonl",
    )
    write_json_lines(
        tmp_path / f"{session}.jsonl",
        {
            "sessionId": session,
            "uuid": "u1",
            "parentUuid": None,
            "type": "user",
            "message": {"role": "user", "content": "another program"},
        },
    )
    reports = list(scan([tmp_path]))
    assert sorted(report.format or "" for report in reports) == ["claude-code", "codex"]
