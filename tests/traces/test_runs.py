"""Runs with sub-agents in files of their own."""

from __future__ import annotations

from pathlib import Path

from mast_tui.traces.library import read_file, read_fully, scan
from mast_tui.traces.model import Trace
from tests.traces.checks import check_sound, keys_of, texts_of, write_json_lines
from tests.traces.nested_runs import CHILD, MAIN, run_message, spawn_call, write_rollout, write_run
from tests.traces.rollouts import message, meta, write


def read_run(folder: Path) -> Trace:
    (trace,) = [trace for report in scan([folder]) for trace in report.traces]
    read_fully(trace)
    return trace


def test_sub_agents_are_shown_before_the_result_of_their_call(tmp_path: Path) -> None:
    write_run(tmp_path)
    run = read_run(tmp_path)
    check_sound(run)
    assert run.identity.trace_id == MAIN
    texts = texts_of(run)
    assert texts[0] == "do it"
    assert texts.index("grandchild was here") < texts.index("child has looked")
    keys = keys_of(run)
    child_result = keys.index(f"{CHILD}/call_c:result")
    assert keys.index("call_m:call") < texts.index("child has looked") < keys.index("call_m:result")
    assert texts.index("grandchild was here") == child_result - 1
    assert texts[-1] == "all done"


def test_spans_of_a_sub_agent_have_its_agent_and_place(tmp_path: Path) -> None:
    write_run(tmp_path)
    run = read_run(tmp_path)
    index = next(i for i, text in enumerate(texts_of(run)) if text == "child has looked")
    span = run.span(index)
    assert span.key.startswith(f"{CHILD}/")
    assert span.parent == "call_m:call"
    assert span.agent == "agent-2"
    assert span.place == "rollout-b.jsonl line 5"
    assert run.span(0).place == "line 2"


def test_files_of_sub_agents_are_no_traces(tmp_path: Path) -> None:
    write_run(tmp_path)
    reports = {report.path.name: report for report in scan([tmp_path])}
    for name in ("rollout-b.jsonl", "rollout-c.jsonl"):
        skipped = reports[name].skipped
        assert skipped is not None
        assert "sub-agent of the run in" in skipped
        assert "rollout-a.jsonl" in skipped


def test_a_run_named_alone_finds_its_sub_agents(tmp_path: Path) -> None:
    path = write_run(tmp_path)
    (run,) = read_file(path, named=True).traces
    read_fully(run)
    assert "child has looked" in texts_of(run)


def test_a_sub_agent_without_its_run_keeps_its_keys(tmp_path: Path) -> None:
    path = write_run(tmp_path)
    keys_in_run = [key for key in keys_of(read_run(tmp_path)) if key.startswith(f"{CHILD}/")]
    path.unlink()
    sub_agent = next(trace for report in scan([tmp_path]) for trace in report.traces)
    read_fully(sub_agent)
    assert [key for key in keys_of(sub_agent) if key.startswith(f"{CHILD}/")] == keys_in_run


def test_an_unnamed_sub_agent_is_shown_at_the_end(tmp_path: Path) -> None:
    write_rollout(
        tmp_path / "a.jsonl",
        MAIN,
        None,
        run_message(1, "user", "begin"),
        run_message(9, "user", "end"),
    )
    write_rollout(tmp_path / "b.jsonl", CHILD, MAIN, run_message(5, "assistant", "unannounced"))
    run = read_run(tmp_path)
    check_sound(run)
    assert texts_of(run) == ["begin", "end", "unannounced"]


def test_a_run_that_loads_in_slices_keeps_its_order(tmp_path: Path) -> None:
    """No span moves while a run of big files is read slice by slice."""
    filler = [run_message(30, "assistant", f"{number} " + "x" * 2000) for number in range(400)]
    write_rollout(
        tmp_path / "b.jsonl", CHILD, MAIN, *filler, run_message(31, "assistant", "child end")
    )
    write_rollout(
        tmp_path / "a.jsonl", MAIN, None, *filler, *spawn_call(40, "call_m", CHILD), *filler
    )
    (run,) = [trace for report in scan([tmp_path]) for trace in report.traces]
    previous_keys = keys_of(run)
    while run.advance(100_000):
        keys = keys_of(run)
        assert keys[: len(previous_keys)] == previous_keys
        assert run.loaded.done <= run.loaded.total
        previous_keys = keys
    check_sound(run)
    assert len(run) == 400 * 3 + 3
    assert keys_of(run).index("call_m:result") == 400 + 1 + 401


def test_a_changed_file_of_a_run_is_reported(tmp_path: Path) -> None:
    main = write_run(tmp_path)
    trace = read_run(tmp_path)
    assert trace.change_reason() is None
    child = tmp_path / "01" / "rollout-b.jsonl"
    index = next(i for i in range(len(trace)) if trace.span(i).place.startswith(child.name))
    trace.text(index)
    child.unlink()
    assert trace.change_reason() == f"{child.name}: the file is gone"
    main.unlink()
    assert trace.change_reason() == "the file is gone"


def test_equal_ids_of_two_formats_are_two_runs(tmp_path: Path) -> None:
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
