"""``judge --batch``: sent, waited for and collected through a vendor's Batch API."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from mast_tui.judges.llm.run import vendor_batches
from tests.cli.batches import BatchDesk, Line, completion, done, expired, right
from tests.cli.conftest import Judge
from tests.judges.llm.server import Action, ModelServer, close, status
from tests.waiting import PATIENCE


@pytest.fixture
def desk() -> BatchDesk:
    """What the server has of files and batches."""
    return BatchDesk()


@pytest.fixture
def server(desk: BatchDesk) -> Iterator[ModelServer]:
    """A server with a Batch API."""
    with ModelServer() as server:
        server.desk = desk
        yield server


@pytest.fixture
def judge(
    judging: Callable[..., Judge], server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> Judge:
    """The command over four runs."""
    monkeypatch.setattr(vendor_batches, "FIRST_WAIT", 0.01)
    return judging(server, 4, "--json", "--batch")


def test_a_batch_is_sent_waited_for_and_collected(
    judge: Judge, server: ModelServer, desk: BatchDesk
) -> None:
    ended = judge()
    assert ended.code == 0, ended.err
    assert ended.json["traces"] == {"judged": 4, "known": 0, "failed": 0, "left": 0}
    assert ended.json["tokens"] == {"in": 12_000, "out": 2_000, "cached": 0}
    told = ended.json["batch"]
    assert (told["submitted"], told["read"], told["batches"]) == (4, 4, ["batch_0"])
    assert "batch_0: 0 of 4 done (in progress)" in ended.err
    assert "batch_0: 4 of 4 done" in ended.err
    made = desk.batches["batch_0"]
    assert (made["endpoint"], made["completion_window"]) == ("/v1/chat/completions", "24h")
    assert server.chats == []
    second_run = judge()
    assert (second_run.code, second_run.json["traces"]["known"]) == (0, 4)
    assert len(desk.batches) == 1


def test_what_a_batch_did_not_answer_goes_into_the_next(judge: Judge, desk: BatchDesk) -> None:
    def says(body: Line, n: int) -> Line:
        if "run 0 " in str(body):
            return expired()
        return done(completion("what?")) if "run 1 " in str(body) else right(body, n)

    desk.says, desk.ends = says, "expired"
    first = judge()
    assert first.code == 1
    assert "batch_0 expired" in first.err
    assert first.json["traces"] == {"judged": 2, "known": 0, "failed": 0, "left": 2}
    assert len(first.json["batch"]["troubles"]) == 1
    desk.says, desk.ends = right, "completed"
    second = judge()
    assert second.code == 0, second.err
    assert (second.json["batch"]["submitted"], second.json["traces"]["judged"]) == (2, 2)
    assert second.json["requests"] == {"run": 5, "now": 2}


def test_ctrl_c_leaves_it_running_and_the_same_command_collects(
    judge: Judge, desk: BatchDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vendor_batches, "FIRST_WAIT", 600.0)
    looked = threading.Event()

    def after(method: str, path: str) -> Action | None:
        if (method, path) == ("GET", "/batches/batch_0") and not looked.is_set():
            looked.set()
            os.kill(os.getpid(), signal.SIGINT)
        return None

    desk.after = after
    ended = judge()
    assert ended.code == 130
    assert "under way at 127.0.0.1" in ended.err
    monkeypatch.setattr(vendor_batches, "FIRST_WAIT", 0.01)
    collected = judge()
    assert collected.code == 0, collected.err
    assert collected.json["traces"]["judged"] == 4
    assert collected.json["batch"]["submitted"] == 0
    assert len(desk.batches) == 1


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/files"),
        ("POST", "/batches"),
        ("GET", "/batches/batch_0"),
        ("GET", "/files/batch_0-output/content"),
    ],
)
def test_broken_off_after_any_step_nothing_is_asked_twice(
    judge: Judge,
    desk: BatchDesk,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    path: str,
) -> None:
    monkeypatch.setattr(vendor_batches, "MOST_UNREACHED", 1)
    desk.after = lambda *call: close() if call == (method, path) else None
    broken = judge()
    assert broken.code == 1
    assert "the same command goes on" in broken.err
    desk.after = lambda *_: None
    ended = judge()
    assert ended.code == 0, ended.err
    assert ended.json["traces"]["judged"] == 4
    assert len(desk.batches) == 1, "the batch that was made is found again"


def test_killed_as_a_batch_is_made_the_next_command_takes_it_up(
    judge: Judge, server: ModelServer, desk: BatchDesk
) -> None:
    started = threading.Event()
    at_work: list[subprocess.Popen[bytes]] = []

    def after(*call: str) -> Action | None:
        if call != ("POST", "/batches"):
            return None
        assert started.wait(PATIENCE)
        at_work[0].kill()
        return close()

    desk.after = after
    arguments = ("judge", "runs", "--judge", "llm", "--model", "test-model", "--batch")
    command = (sys.executable, "-m", "mast_tui", *arguments, "--base-url", server.base_url)
    at_work.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
    started.set()
    assert at_work[0].wait(PATIENCE) == -signal.SIGKILL
    desk.after = lambda *_: None
    ended = judge()
    assert ended.code == 0, ended.err
    assert ended.json["traces"]["judged"] == 4
    assert ended.json["batch"]["submitted"] == 0
    assert len(desk.batches) == 1


def test_a_server_that_is_away_for_a_while_is_looked_at_again(
    judge: Judge, desk: BatchDesk
) -> None:
    looks = iter(range(100))

    def refuses(method: str, path: str) -> Action | None:
        if path.startswith("/batches/") and next(looks) < 3:
            return status(503, "come back")
        return None

    desk.refuses = refuses
    ended = judge()
    assert ended.code == 0, ended.err
    assert "come back" in ended.err


def test_a_server_without_batches_leads_to_the_files(judge: Judge, desk: BatchDesk) -> None:
    desk.refuses = lambda _method, _path: status(404, "Not Found")
    ended = judge()
    assert ended.code == 1
    assert "has no Batch API" in ended.err
    assert "--write-batch" in ended.err
    desk.refuses = lambda _method, path: status(404, "no") if path == "/batches" else None
    assert "--write-batch" in judge().err
    desk.refuses = lambda _method, _path: None
    assert judge().code == 0


def test_a_batch_that_failed_or_is_gone_is_told_and_sent_anew(
    judge: Judge, desk: BatchDesk
) -> None:
    desk.ends, desk.problem = "failed", "line 1: model not found"
    failed = judge()
    assert failed.code == 1
    assert "batch_0 failed" in failed.err
    assert "model not found" in failed.err
    assert failed.json["traces"]["left"] == 4
    desk.ends = "completed"
    desk.after = lambda _method, path: status(404, "gone") if "batch_1" in path else None
    gone = judge()
    assert gone.code == 1
    assert "asked again" in gone.err
    desk.after = lambda *_: None
    assert judge().json["traces"]["judged"] == 4


def test_a_wrong_key_is_told_by_its_variable(judge: Judge, desk: BatchDesk) -> None:
    desk.refuses = lambda _method, _path: status(401, "no", code="invalid_api_key")
    ended = judge()
    assert ended.code == 1
    assert "OPENAI_API_KEY" in ended.err


def test_more_than_a_vendor_takes_at_once_is_several_batches(
    judge: Judge, desk: BatchDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vendor_batches, "MOST_REQUESTS", 3)
    ended = judge()
    assert ended.code == 0, ended.err
    assert ended.json["batch"]["batches"] == ["batch_0", "batch_1"]
    assert ended.json["traces"]["judged"] == 4


def test_it_excludes_the_files(judge: Judge) -> None:
    assert judge("--write-batch", "a.jsonl").code == 2
