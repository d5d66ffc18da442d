"""``judge --batch``: a batch is sent to a vendor, polled and collected."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator

import pytest

from mast_tui.judges.llm.run import vendor_batches
from tests.cli.batches import BatchDesk, Line, completion, expired, response, right_answer
from tests.cli.conftest import Cli
from tests.judges.llm.server import Action, ModelServer, close, status


@pytest.fixture
def desk() -> BatchDesk:
    """The files and batches of the server."""
    return BatchDesk()


@pytest.fixture
def server(desk: BatchDesk) -> Iterator[ModelServer]:
    """A server with a Batch API."""
    with ModelServer() as server:
        server.desk = desk
        yield server


@pytest.fixture
def judge(new_cli: Callable[..., Cli], server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command for four runs."""
    monkeypatch.setattr(vendor_batches, "FIRST_WAIT", 0.01)
    return new_cli(server, 4, "--json", "--batch")


def test_a_batch_is_sent_waited_for_and_collected(
    judge: Cli, server: ModelServer, desk: BatchDesk
) -> None:
    ended = judge.ok()
    assert ended.json["traces"] == {"judged": 4, "known": 0, "failed": 0, "left": 0}
    assert ended.json["tokens"] == {"in": 12_000, "out": 2_000, "cached": 0}
    batch = ended.json["batch"]
    assert (batch["submitted"], batch["read"], batch["batches"]) == (4, 4, ["batch_0"])
    assert "batch_0: 0 of 4 done (in progress)" in ended.err
    assert "batch_0: 4 of 4 done" in ended.err
    request = desk.batches["batch_0"]
    assert (request["endpoint"], request["completion_window"]) == ("/v1/chat/completions", "24h")
    assert server.chats == []
    second_run = judge()
    assert (second_run.code, second_run.json["traces"]["known"]) == (0, 4)
    assert len(desk.batches) == 1


def test_requests_without_an_answer_are_in_the_next_batch(judge: Cli, desk: BatchDesk) -> None:
    def answers(body: Line, n: int) -> Line:
        if "run 0 " in str(body):
            return expired()
        return response(completion("what?")) if "run 1 " in str(body) else right_answer(body, n)

    desk.says = answers
    desk.ends = "expired"
    first = judge.refused(says="batch_0 expired")
    assert first.json["traces"] == {"judged": 2, "known": 0, "failed": 0, "left": 2}
    assert len(first.json["batch"]["troubles"]) == 1
    desk.says = right_answer
    desk.ends = "completed"
    second = judge.ok()
    assert (second.json["batch"]["submitted"], second.json["traces"]["judged"]) == (2, 2)
    assert second.json["requests"] == {"run": 5, "now": 2}


def test_after_ctrl_c_the_batch_is_collected_later(
    judge: Cli, desk: BatchDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vendor_batches, "FIRST_WAIT", 600.0)
    polled = threading.Event()

    def after(method: str, path: str) -> Action | None:
        if (method, path) == ("GET", "/batches/batch_0") and not polled.is_set():
            polled.set()
            os.kill(os.getpid(), signal.SIGINT)
        return None

    desk.after = after
    ended = judge()
    assert ended.code == 130
    assert "under way at 127.0.0.1" in ended.err
    monkeypatch.setattr(vendor_batches, "FIRST_WAIT", 0.01)
    collected = judge.ok()
    assert collected.json["traces"]["judged"] == 4
    assert collected.json["batch"]["submitted"] == 0
    assert len(desk.batches) == 1


def test_no_request_is_sent_twice_after_a_lost_connection(
    judge: Cli, desk: BatchDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vendor_batches, "MOST_UNREACHED", 1)
    for number, lost_call in enumerate(
        (
            ("POST", "/files"),
            ("POST", "/batches"),
            ("GET", "/batches/batch_{}"),
            ("GET", "/files/batch_{}-output/content"),
        )
    ):
        workspace = ("--workspace", f"{number}.db")
        call = (lost_call[0], lost_call[1].format(number))
        desk.after = lambda *made, call=call: close() if made == call else None
        judge.refused(*workspace, says="the same command continues")
        desk.after = lambda *_: None
        assert judge.ok(*workspace).json["traces"]["judged"] == 4
        assert len(desk.batches) == number + 1, "the created batch is continued"


def test_problems_of_the_server_are_reported_with_advice(
    judge: Cli, desk: BatchDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge.refused("--write-batch", "a.jsonl", code=2)
    desk.refuses = lambda _method, _path: status(401, "no", code="invalid_api_key")
    judge.refused(says="OPENAI_API_KEY")
    desk.refuses = lambda _method, _path: status(404, "Not Found")
    judge.refused(says=("has no Batch API", "--write-batch"))
    desk.refuses = lambda _method, path: status(404, "no") if path == "/batches" else None
    judge.refused(says="--write-batch")
    # A server that is away for a while is polled again; many requests are several batches.
    polls = iter(range(100))

    def is_away(method: str, path: str) -> Action | None:
        away = path.startswith("/batches/") and next(polls) < 3
        return status(503, "come back") if away else None

    desk.refuses = is_away
    monkeypatch.setattr(vendor_batches, "MOST_REQUESTS", 3)
    ended = judge.ok()
    assert "come back" in ended.err
    assert ended.json["batch"]["batches"] == ["batch_0", "batch_1"]
    assert ended.json["traces"]["judged"] == 4


def test_a_batch_that_failed_or_is_gone_is_sent_again(judge: Cli, desk: BatchDesk) -> None:
    desk.ends = "failed"
    desk.problem = "line 1: model not found"
    failed = judge.refused(says=("batch_0 failed", "model not found"))
    assert failed.json["traces"]["left"] == 4
    desk.ends = "completed"
    desk.after = lambda _method, path: status(404, "gone") if "batch_1" in path else None
    judge.refused(says="sent again")
    desk.after = lambda *_: None
    assert judge().json["traces"]["judged"] == 4
