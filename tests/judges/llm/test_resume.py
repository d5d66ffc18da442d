"""Resumption of runs after kills and signals."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mast_tui.workspace import Workspace
from mast_tui.workspace.events.types import Judged
from tests.judges.llm.made_answers import judgement, request_spans, write_conversations
from tests.judges.llm.server import Action, ModelServer, answer

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]

TRACES = 48
KILLS = 4
CONCURRENCY = 4


@dataclass
class Runner:
    """Runs of commands in a folder, in processes of their own."""

    folder: Path
    program: subprocess.Popen[str]

    def begin(self, server: ModelServer, traces: str) -> int:
        """Start a run over a file; return its process id, or the exit code of the first run."""
        arguments = (
            *("judge", traces, "--judge", "llm", "--model", "test-model"),
            *("--base-url", server.base_url, "--concurrency", str(CONCURRENCY)),
            *("--quiet", "--json", "--workspace", f"{traces}.db"),
        )
        assert self.program.stdin is not None
        self.program.stdin.write(json.dumps(arguments) + "\n")
        self.program.stdin.flush()
        return self.wait()

    def wait(self) -> int:
        """Wait for the end of the run; return its exit code or negative signal number."""
        assert self.program.stdout is not None
        line = self.program.stdout.readline()
        assert line, "the program has gone"
        return int(line)

    def read_output(self, name: str) -> str:
        return (self.folder / name).read_text()

    @contextmanager
    def workspace(self, traces: str) -> Iterator[Workspace]:
        with closing(Workspace.open(self.folder / f"{traces}.db")) as workspace:
            yield workspace


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    folder = tmp_path_factory.mktemp("runs")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")},
        "HOME": str(folder / "home"),
        "XDG_CONFIG_HOME": str(folder / "home"),
        "PYTHONPATH": str(ROOT),
    }
    program = subprocess.Popen(
        [sys.executable, "-m", "tests.judges.llm.forked_runs", str(folder)],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with program, ModelServer(valid_answer) as server:
        runner = Runner(folder, program)
        write_conversations(folder / "first.jsonl", 1)
        assert runner.begin(server, "first.jsonl") == 0  # in the program: it loads all there is
        yield runner
        assert program.stdin is not None
        program.stdin.close()


def valid_answer(body: dict[str, Any], _: int) -> Action:
    return answer(judgement(body), tokens_in=3_000, tokens_out=500).after(0.004)


class KillingScript:
    """A server script that kills the client soon after a certain request."""

    def __init__(self) -> None:
        self._random = random.Random(5)
        self._request: int | None = None
        self._pid = 0
        self._lock = threading.Lock()

    def kill_at(self, request: int, pid: int) -> None:
        with self._lock:
            self._request = request
            self._pid = pid

    def __call__(self, body: dict[str, Any], n: int) -> Action:
        with self._lock:
            if self._request is not None and n >= self._request:
                self._request = None
                soon = self._random.uniform(0.0, 0.025)
                threading.Timer(soon, os.kill, (self._pid, signal.SIGKILL)).start()
        return valid_answer(body, n)


def test_a_killed_run_loses_and_doubles_nothing(runner: Runner) -> None:
    traces = "killed.jsonl"
    write_conversations(runner.folder / traces, TRACES)
    script = KillingScript()
    with ModelServer(script) as server:
        for kill in range(KILLS):
            script.kill_at(len(server.chats) + 3 + kill % 5, runner.begin(server, traces))
            assert runner.wait() == -signal.SIGKILL
        assert len(server.chats) < TRACES, "the kills came too late to interrupt anything"
        runner.begin(server, traces)
        assert runner.wait() == 0
        chats = server.chats
    assert len(chats) <= TRACES + KILLS * CONCURRENCY
    assert len({request_spans(chat.body)[0] for chat in chats}) == TRACES
    summary = json.loads(runner.read_output("out.txt"))
    with runner.workspace(traces) as workspace:
        assert_all_judged_once(workspace)
        [run] = workspace.runs()
        assert (run.id, run.finished_at is not None) == (summary["run"], True)
        assert {trace.problem for trace in run.traces} == {None}
        # What was answered and kept was not asked again: the rest are requests under way when
        # a process died.
        assert run.usage.requests == TRACES
        state_before = state(workspace)
        workspace.rebuild()
        assert state(workspace) == state_before


def assert_all_judged_once(workspace: Workspace) -> None:
    judged = [event.trace_id for event in workspace.events() if isinstance(event.fact, Judged)]
    labelled = [label.trace_id for label in workspace.labels()]
    for ids in (judged, labelled):
        assert len(ids) == len(set(ids)) == TRACES == len(workspace.traces())
    passes = workspace.passes()
    assert len(passes) == TRACES
    assert all(annotator_pass.finished for annotator_pass in passes)


def state(workspace: Workspace) -> tuple[object, ...]:
    return workspace.labels(), workspace.verdicts(), workspace.passes()


@pytest.mark.parametrize("name", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_cleanly(runner: Runner, name: signal.Signals) -> None:
    traces = f"{name.name}.jsonl"
    write_conversations(runner.folder / traces, 20)
    pid = 0

    def script(body: dict[str, Any], n: int) -> Action:
        if n == 6:
            os.kill(pid, name)
        return valid_answer(body, n)

    with ModelServer(script) as server:
        pid = runner.begin(server, traces)
        assert runner.wait() == 128 + name
        errors = runner.read_output("err.txt")
        assert errors.count("\n") == 1, errors
        assert "the same command continues the run" in errors
        document = json.loads(runner.read_output("out.txt"))
        assert document["stopped"] == "cancelled"
        assert 1 <= document["requests"]["now"] <= document["requests"]["run"]
        with runner.workspace(traces) as workspace:
            [run] = workspace.runs()
            assert run.finished_at is None
            assert run.usage.requests >= 1
        runner.begin(server, traces)
        assert runner.wait() == 0
        assert len(server.chats) <= 20 + CONCURRENCY
    with runner.workspace(traces) as workspace:
        assert workspace.usage(run.id).requests == 20
        assert len(workspace.labels()) == 20
