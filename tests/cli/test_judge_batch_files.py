"""``judge --write-batch`` and ``--read-batch``: requests and answers that go through files."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mast_tui.judges.llm.run import batch_files
from mast_tui.judges.llm.run.batch_files import BatchFileError, RequestFiles
from mast_tui.workspace import Workspace
from tests.cli.batches import (
    Line,
    completion,
    done,
    expired,
    refused,
    requests_in,
    right,
    run_batch,
)
from tests.cli.conftest import Cli, Judge
from tests.judges.llm.made_answers import write_runs
from tests.judges.llm.server import ModelServer


@pytest.fixture
def judge(judging: Callable[..., Judge], server: ModelServer) -> Judge:
    """The command over four runs."""
    return judging(server, 4, "--json")


def labels(cli: Cli, judge: str, *where: str) -> list[dict[str, str]]:
    options = (*where, "-o", "labels.csv", "--labels", judge)
    assert cli("export", "--format", "csv-long", *options).code == 0
    with Path("labels.csv").open(encoding="utf-8", newline="") as file:
        return [{**row, "created_at": ""} for row in csv.DictReader(file)]


def kept() -> tuple[Any, ...]:
    """All that a run leaves in the workspace."""
    workspace = Workspace.open(Path(".mast-tui/workspace.db"))
    runs = workspace.runs()
    answers = [
        workspace.answers_about(run.id, trace.trace_id) for run in runs for trace in run.traces
    ]
    found = (runs, tuple(answers), workspace.unusable_answers())
    workspace.close()
    return found


@pytest.mark.parametrize("more", [(), ("--samples", "3")])
def test_written_answered_in_another_order_and_read_it_is_as_if_it_were_asked(
    judge: Judge, cli: Cli, server: ModelServer, more: tuple[str, ...]
) -> None:
    written = judge("--write-batch", "ask.jsonl", *more)
    assert written.code == 0, written.err
    count = 4 * (3 if more else 1)
    assert written.json["batch"]["written"] == count
    assert written.json["batch"]["files"] == ["ask.jsonl"]
    assert (written.json["run"], written.json["traces"]["left"]) == (None, 4)
    assert run_batch(Path("ask.jsonl"), Path("out.jsonl")) == count
    read = judge("--read-batch", "out.jsonl", *more)
    assert read.code == 0, read.err
    assert read.json["traces"] == {"judged": 4, "known": 0, "failed": 0, "left": 0}
    assert read.json["tokens"] == {"in": 3_000 * count, "out": 500 * count, "cached": 0}
    assert read.json["batch"]["read"] == count
    assert server.requests == []
    asked = judge("--workspace", "other.db", *more)
    assert len(server.chats) == count
    for name in ("judge", "suggestions", "modes", "quotes", "tokens", "traces"):
        assert read.json[name] == asked.json[name], name
    name = read.json["judge"]
    assert labels(cli, name) == labels(cli, name, "--workspace", "other.db")


def test_requests_are_as_a_batch_takes_them_and_only_the_mark_is_drawn_anew(judge: Judge) -> None:
    judge("--write-batch", "one.jsonl")
    judge("--write-batch", "two.jsonl")
    one = {line["custom_id"]: line for line in requests_in(Path("one.jsonl"))}
    two = {line["custom_id"]: line for line in requests_in(Path("two.jsonl"))}
    assert one.keys() == two.keys()
    assert len(one) == 4
    marks = set()
    for name, line in one.items():
        assert len(name) <= 64
        assert (line["method"], line["url"]) == ("POST", "/v1/chat/completions")
        assert line["body"]["model"] == "test-model"
        assert line["body"]["response_format"]["type"] == "json_schema"
        assert line["body"] != two[name]["body"]
        text = line["body"]["messages"][1]["content"]
        marks.add(text.split("[", 1)[1].split(" ", 1)[0])
    assert len(marks) == 4, "each trace has a mark of its own"
    assert Path("one.jsonl").stat().st_mode & 0o77 == 0


def test_what_is_taken_out_is_taken_out_of_the_file_and_nothing_says_it_is_sent(
    judge: Judge, tmp_path: Path
) -> None:
    secret = "sk-" + "a1B2" * 8
    run = [{"role": "user", "content": f"use {secret}"}, {"role": "assistant", "content": "no"}]
    (tmp_path / "runs" / "secret.json").write_text(json.dumps(run))
    written = judge("--write-batch", "ask.jsonl")
    assert secret not in Path("ask.jsonl").read_text()
    assert "Nothing is sent" in written.err
    assert "e-mail" in written.err


def test_reading_twice_changes_nothing(judge: Judge) -> None:
    def says(body: Line, n: int) -> Line:
        return done(completion("what?")) if "run 2 " in str(body) else right(body, n)

    judge("--write-batch", "ask.jsonl")
    run_batch(Path("ask.jsonl"), Path("out.jsonl"), says)
    first = judge("--read-batch", "out.jsonl")
    assert first.code == 1
    assert first.json["traces"] == {"judged": 3, "known": 0, "failed": 0, "left": 1}
    assert first.json["requests"]["run"] == 4
    before = kept()
    second_run = judge("--read-batch", "out.jsonl")
    assert kept() == before
    assert second_run.json["traces"] == {"judged": 0, "known": 3, "failed": 0, "left": 1}
    assert (second_run.json["batch"]["read"], second_run.json["batch"]["strangers"]) == (0, 0)


def test_what_could_not_be_used_is_asked_once_more_in_the_next_file(judge: Judge) -> None:
    def says(body: Line, n: int) -> Line:
        return done(completion("what?")) if "run 2 " in str(body) else right(body, n)

    judge("--write-batch", "ask.jsonl")
    run_batch(Path("ask.jsonl"), Path("out.jsonl"), says)
    both = judge("--read-batch", "out.jsonl", "--write-batch", "ask.jsonl")
    assert both.code == 0, both.err
    assert both.json["batch"]["written"] == 1
    (line,) = requests_in(Path("ask.jsonl"))
    assert [message["role"] for message in line["body"]["messages"]][2:] == ["assistant", "user"]
    assert line["body"]["messages"][2]["content"] == "what?"
    later = judge("--write-batch", "ask.jsonl")  # another command finds the same
    assert requests_in(Path("ask.jsonl"))[0]["custom_id"] == line["custom_id"]
    assert later.json["batch"]["written"] == 1
    run_batch(Path("ask.jsonl"), Path("out2.jsonl"), says)
    failed = judge("--read-batch", "out2.jsonl")
    assert failed.code == 1
    assert "could not be used, twice" in failed.json["failed"][0]["reason"]
    assert judge("--write-batch", "ask.jsonl").json["batch"]["written"] == 1
    (anew,) = requests_in(Path("ask.jsonl"))
    assert len(anew["body"]["messages"]) == 2
    run_batch(Path("ask.jsonl"), Path("out3.jsonl"))
    last = judge("--read-batch", "out3.jsonl")
    assert last.code == 0, last.err
    assert last.json["traces"] == {"judged": 1, "known": 3, "failed": 0, "left": 0}
    assert sum(run.usage.tokens_in for run in kept()[0]) == 3_000 * 6


def test_windows_that_follow_come_in_the_files_that_follow(judge: Judge, tmp_path: Path) -> None:
    write_runs(tmp_path / "runs", 4, spans=30)
    more = ("--window-tokens", "1000")
    judged = rounds = asked = 0
    while True:
        written = judge("--write-batch", "ask.jsonl", *more)
        if not written.json["batch"]["written"]:
            break
        rounds += 1
        asked += run_batch(Path("ask.jsonl"), Path("out.jsonl"))
        read = judge("--read-batch", "out.jsonl", *more)
        judged += read.json["traces"]["judged"]
    assert rounds > 2
    assert (judged, read.json["requests"]["run"]) == (4, asked)


def test_errors_what_expired_and_what_is_missing_are_told_and_left_for_the_next_file(
    judge: Judge,
) -> None:
    def says(body: Line, n: int) -> Line:
        text = str(body)
        if "run 0 " in text:
            return expired()
        if "run 1 " in text:
            return refused(500, "engine died")
        return refused(400, "messages: too odd") if "run 2 " in text else right(body, n)

    judge("--write-batch", "ask.jsonl")
    run_batch(Path("ask.jsonl"), Path("out.jsonl"), says)
    read = judge("--read-batch", "out.jsonl", "--write-batch", "next.jsonl")
    assert read.json["traces"] == {"judged": 1, "known": 0, "failed": 1, "left": 2}
    assert "too odd" in read.json["failed"][0]["reason"]
    troubles = read.json["batch"]["troubles"]
    assert any("expired" in words for words in troubles)
    assert any("engine died" in words for words in troubles)
    assert any("too odd" in words for words in troubles)
    assert len(requests_in(Path("next.jsonl"))) == 3
    assert judge("--write-batch", "next.jsonl").json["batch"]["written"] == 3


def test_without_either_option_what_is_left_is_asked(judge: Judge, server: ModelServer) -> None:
    def says(body: Line, n: int) -> Line:
        return expired() if "run 0 " in str(body) else right(body, n)

    judge("--write-batch", "ask.jsonl")
    run_batch(Path("ask.jsonl"), Path("out.jsonl"), says)
    judge("--read-batch", "out.jsonl")
    asked = judge()
    assert asked.code == 0, asked.err
    assert asked.json["traces"] == {"judged": 1, "known": 3, "failed": 0, "left": 0}
    assert len(server.chats) == 1


def test_a_request_that_is_too_long_is_split_in_the_next_file(judge: Judge) -> None:
    def says(body: Line, n: int) -> Line:
        long = "run 0 " in str(body)
        return refused(400, "maximum context length is 512 tokens") if long else right(body, n)

    judge("--write-batch", "ask.jsonl")
    run_batch(Path("ask.jsonl"), Path("out.jsonl"), says)
    names = {line["custom_id"] for line in requests_in(Path("ask.jsonl"))}
    read = judge("--read-batch", "out.jsonl", "--write-batch", "next.jsonl")
    assert (read.json["traces"]["judged"], read.json["batch"]["written"]) == (3, 2)
    # The summaries of both halves.
    assert names.isdisjoint(line["custom_id"] for line in requests_in(Path("next.jsonl")))


def test_answers_of_another_run_are_counted_and_not_taken(judge: Judge) -> None:
    judge("--write-batch", "other.jsonl", "--temperature", "0.5")
    run_batch(Path("other.jsonl"), Path("out.jsonl"))
    with Path("out.jsonl").open("a") as file:
        file.write('{"custom_id": "of somebody else", "response": null, "error": null}\n')
    read = judge("--read-batch", "out.jsonl")
    assert read.code == 1
    assert (read.json["batch"]["strangers"], read.json["batch"]["read"]) == (5, 0)
    assert read.json["traces"]["left"] == 4


def test_the_allowance_holds_for_what_is_written_and_a_batch_costs_half(
    judge: Judge, tmp_path: Path
) -> None:
    path = tmp_path / "config" / "mast-tui" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text('[judge.prices."test-model"]\ninput = 1\noutput = 2\n')
    few = judge("--write-batch", "few.jsonl", "--max-tokens-total", "12000")
    assert few.code == 1
    assert 0 < few.json["batch"]["written"] < 4
    assert few.json["ending"] == "allowance spent"
    full = judge("--dry-run").json["cost"]
    assert judge("--dry-run", "--write-batch", "x.jsonl").json["cost"] == pytest.approx(full / 2)
    judge("--write-batch", "ask.jsonl")
    run_batch(Path("ask.jsonl"), Path("out.jsonl"))
    read = judge("--read-batch", "out.jsonl")
    assert read.json["cost"] == pytest.approx((12_000 * 1 + 2_000 * 2) / 1e6 / 2)


def test_nothing_but_requests_is_written_over(judge: Judge) -> None:
    Path("answers.jsonl").write_text('{"custom_id": "a", "response": {}, "error": null}\n')
    done = judge("--write-batch", "answers.jsonl")
    assert done.code == 1
    assert "name another file" in done.err
    assert "response" in Path("answers.jsonl").read_text()
    assert not list(Path().glob("*.part"))


def test_a_file_without_answers_is_told_and_broken_lines_are_counted(judge: Judge) -> None:
    judge("--write-batch", "ask.jsonl")
    wrong = judge("--read-batch", "ask.jsonl")
    assert wrong.code == 1
    assert "no line in it is an answer" in wrong.err
    run_batch(Path("ask.jsonl"), Path("out.jsonl"))
    half = Path("out.jsonl").read_bytes()[:-200]
    Path("out.jsonl").write_bytes(half)
    read = judge("--read-batch", "out.jsonl")
    assert (read.json["batch"]["broken"], read.json["traces"]["judged"]) == (1, 3)


def test_it_excludes_what_asks(judge: Judge) -> None:
    assert judge("--write-batch", "a.jsonl", "--replay", "b.jsonl").code == 2


def test_a_vendors_limits_make_several_files_and_older_ones_behind_them_go(tmp_path: Path) -> None:
    path = tmp_path / "ask.jsonl"
    first = RequestFiles(path, most_requests=2)
    for n in range(5):
        first.write(str(n), {"n": n})
    assert not path.exists()
    first.finish()
    assert [path.name for path in first.paths] == ["ask.jsonl", "ask-2.jsonl", "ask-3.jsonl"]
    assert [len(requests_in(path)) for path in first.paths] == [2, 2, 1]
    size = len(json.dumps(requests_in(path)[0], separators=(",", ":"))) + 1
    second = RequestFiles(path, most_bytes=3 * size)
    for n in range(5):
        second.write(str(n), {"n": n})
    second.finish()
    assert [len(requests_in(path)) for path in second.paths] == [3, 2]
    assert not (tmp_path / "ask-3.jsonl").exists()
    (tmp_path / "mine.jsonl").write_text("mine\n")
    with pytest.raises(BatchFileError, match="name another file"):
        RequestFiles(tmp_path / "mine.jsonl")
    assert (batch_files.MOST_REQUESTS, batch_files.MOST_BYTES) == (50_000, 200_000_000)
