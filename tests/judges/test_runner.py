"""Runs of a judge over files."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec.structs import replace

from mast_tui.judges.llm.prompt.redacted_view import RedactedView
from mast_tui.judges.rules import RulesJudge
from mast_tui.judges.runner import Progress, TraceStatus, run_judge
from mast_tui.labels import Finding, Judgement, VerdictValue
from mast_tui.redaction.engine import Redaction
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.index import lines
from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import Trace
from mast_tui.workspace import Workspace, WorkspaceError
from tests.judges.llm.bench import traces
from tests.traces.rollouts import message, meta, write

MAST = load_mast()


@dataclass
class Echo:
    """A judge that finds step repetition in the last span and records the judged traces."""

    name: str = "judge:echo@1"
    looks_at: tuple[str, ...] = ("step_repetition", "conversation_reset", "of_another_world")
    seen: list[str] = field(default_factory=list)
    fails_on: str = ""

    def judge(self, trace: Trace, /) -> Judgement:
        self.seen.append(trace.path.name)
        if trace.path.name == self.fails_on:
            raise OSError(5, "the disk is gone")
        span = trace.span(len(trace) - 1)
        modes = ("step_repetition", "of_another_world")
        return Judgement(tuple(Finding(mode, span.key, span.key, "again", 0.5) for mode in modes))


def write_run(folder: Path, name: str, turns: int = 2) -> None:
    messages = [
        {"role": ("user", "assistant")[turn % 2], "content": f"{name} {turn}"}
        for turn in range(turns)
    ]
    (folder / name).write_text(json.dumps(messages))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.json", "b.json", "c.json"):
        write_run(tmp_path, name)
    return tmp_path


def test_every_trace_is_judged_and_stored(folder: Path) -> None:
    workspace = Workspace.open(":memory:")
    progress: list[Progress] = []
    summary = run_judge(Echo(), MAST, traces(folder), workspace, on_progress=progress.append)
    assert (summary.suggestions, dict(summary.traces)) == (3, {TraceStatus.JUDGED: 3})
    assert summary.by_mode == {"step_repetition": 3}
    assert [(p.done, p.path.name, p.suggestions) for p in progress] == [
        (1, "a.json", 1),
        (2, "b.json", 1),
        (3, "c.json", 1),
    ]
    [run] = workspace.runs()
    assert run.id == summary.run_id
    assert run.finished_at is not None
    assert len(run.traces) == 3
    verdicts = {v.mode: v.value for v in workspace.verdicts(trace_id=progress[0].trace_id)}
    # Nothing is stored about modes of other taxonomies.
    assert verdicts == {
        "step_repetition": VerdictValue.PRESENT,
        "conversation_reset": VerdictValue.ABSENT,
    }


def test_an_interrupted_run_is_resumed(folder: Path) -> None:
    workspace = Workspace.open(":memory:")
    first = Echo()
    summary = run_judge(first, MAST, traces(folder), workspace, stop=lambda: len(first.seen) == 2)
    assert summary.stopped
    assert workspace.runs()[0].finished_at is None
    second = Echo()
    summary = run_judge(second, MAST, traces(folder), workspace)
    assert second.seen == ["c.json"]
    assert dict(summary.traces) == {TraceStatus.KNOWN: 2, TraceStatus.JUDGED: 1}
    third = run_judge(Echo(), MAST, traces(folder), workspace)
    assert third.run_id is None
    assert len(workspace.runs()) == 2


def test_a_new_version_or_content_is_judged_again(folder: Path) -> None:
    workspace = Workspace.open(":memory:")
    run_judge(Echo(), MAST, traces(folder), workspace)
    newer = Echo(name="judge:echo@2")
    run_judge(newer, MAST, traces(folder), workspace)
    assert newer.seen == ["a.json", "b.json", "c.json"]
    write_run(folder, "b.json", turns=4)
    rerun = Echo()
    run_judge(rerun, MAST, traces(folder), workspace)
    assert rerun.seen == ["b.json"]
    everything = Echo()
    run_judge(everything, MAST, traces(folder), workspace, covered_by=None)
    assert len(everything.seen) == 3


def test_an_unreadable_trace_is_reported_and_retried(folder: Path) -> None:
    workspace = Workspace.open(":memory:")
    summary = run_judge(Echo(fails_on="b.json"), MAST, traces(folder), workspace)
    assert dict(summary.traces) == {TraceStatus.JUDGED: 2, TraceStatus.FAILED: 1}
    assert [(p.path.name, p.problem) for p in summary.failed] == [("b.json", "the disk is gone")]
    problems = [trace.problem for trace in workspace.runs()[0].traces]
    assert sorted(problems, key=str) == [None, None, "the disk is gone"]
    retried = Echo()
    run_judge(retried, MAST, traces(folder), workspace)
    assert retried.seen == ["b.json"]


def test_a_judge_without_a_mode_of_the_taxonomy_is_refused(folder: Path) -> None:
    foreign = replace(MAST, id="own", modes=(replace(MAST.modes[0], slug="loops"),))
    workspace = Workspace.open(":memory:")
    with pytest.raises(WorkspaceError, match="supports no mode of own@3"):
        run_judge(Echo(), foreign, traces(folder), workspace)
    assert workspace.taxonomies() == ()


# Changed files


@pytest.fixture
def changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trace:
    """A rollout that was cut after it was read, without cached texts."""
    monkeypatch.setattr(lines, "_CACHED_CHARS", 0)
    messages = [message("assistant", f"{number} " + "word " * 40_000) for number in range(3)]
    path = write(tmp_path, meta(), message("user", "go"), *messages, name="run.jsonl")
    (trace,) = read_file(path, named=True).traces
    read_fully(trace)
    path.write_bytes(path.read_bytes()[:1000])
    return trace


def test_a_changed_file_is_neither_judged_nor_sent(changed: Trace) -> None:
    with pytest.raises(OSError, match="the file has been cut"):
        RulesJudge().judge(changed)
    with pytest.raises(OSError, match="the file has been cut"):
        list(RedactedView(changed, Redaction()).spans(0, 3))
