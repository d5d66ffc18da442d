"""``judge --write-batch`` and ``--read-batch``: requests and answers in files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from mast_tui.errors import MastError
from mast_tui.judges.llm.run import batch_files
from mast_tui.judges.llm.run.batch_files import RequestFiles
from tests.cli.batches import (
    Answers,
    Line,
    completion,
    expired,
    refusal,
    requests_in,
    response,
    right_answer,
    run_batch,
)
from tests.cli.conftest import Cli, configure, open_workspace
from tests.judges.llm.made_answers import write_runs
from tests.judges.llm.server import ModelServer


@pytest.fixture
def judge(new_cli: Callable[..., Cli], server: ModelServer) -> Cli:
    """The command for four runs."""
    return new_cli(server, 4, "--json")


def labels(cli: Cli, judge: str, *options: str) -> list[dict[str, str]]:
    return [{**row, "created_at": ""} for row in cli.rows(*options, labels=judge)]


def answer_batch(
    judge: Cli, answers: Answers = right_answer, special: Mapping[str, Line] = MappingProxyType({})
) -> Cli:
    """Write a batch and answer it, with special answers to some runs by their text.

    Returns:
        The judge with the answers, which reads them.
    """

    def answer(body: Line, number: int) -> Line:
        lines = (line for run, line in special.items() if run in str(body))
        return next(lines, None) or answers(body, number)

    judge("--write-batch", "ask.jsonl")
    run_batch(Path("ask.jsonl"), Path("out.jsonl"), answer)
    return Cli(lambda *more: judge("--read-batch", "out.jsonl", *more))


def trace_counts(judged: int = 0, known: int = 0, failed: int = 0, left: int = 0) -> dict[str, int]:
    return {"judged": judged, "known": known, "failed": failed, "left": left}


def stored_results() -> tuple[Any, ...]:
    """Return all that a run leaves in the workspace."""
    with open_workspace() as workspace:
        runs = workspace.runs()
        answers = [
            workspace.answers_about(run.id, trace.trace_id) for run in runs for trace in run.traces
        ]
        return runs, tuple(answers), workspace.unusable_answers()


@pytest.mark.parametrize("options", [(), ("--samples", "3")])
def test_answers_of_a_batch_count_as_those_of_a_server(
    judge: Cli, cli: Cli, server: ModelServer, options: tuple[str, ...]
) -> None:
    written = judge.ok("--write-batch", "ask.jsonl", *options).json
    count = 4 * (3 if options else 1)
    assert (written["batch"]["written"], written["batch"]["files"]) == (count, ["ask.jsonl"])
    assert (written["run"], written["traces"]["left"]) == (None, 4)
    assert run_batch(Path("ask.jsonl"), Path("out.jsonl")) == count
    read = judge.ok("--read-batch", "out.jsonl", *options).json
    assert read["traces"] == trace_counts(judged=4)
    assert read["tokens"] == {"in": 3_000 * count, "out": 500 * count, "cached": 0}
    assert read["batch"]["read"] == count
    assert server.requests == []
    from_server = judge("--workspace", "other.db", *options).json
    assert len(server.chats) == count
    for name in ("judge", "suggestions", "modes", "quotes", "tokens", "traces"):
        assert read[name] == from_server[name], name
    name = read["judge"]
    assert labels(cli, name) == labels(cli, name, "--workspace", "other.db")


def test_requests_are_lines_of_a_batch_without_secrets(judge: Cli, tmp_path: Path) -> None:
    secret = "sk-" + "a1B2" * 8
    run = [{"role": "user", "content": f"use {secret}"}, {"role": "assistant", "content": "no"}]
    (tmp_path / "runs" / "secret.json").write_text(json.dumps(run))
    err = judge("--write-batch", "one.jsonl").err
    assert "Nothing is sent" in err
    assert "e-mail" in err
    judge("--write-batch", "two.jsonl")
    first = {line["custom_id"]: line for line in requests_in(Path("one.jsonl"))}
    second = {line["custom_id"]: line for line in requests_in(Path("two.jsonl"))}
    assert first.keys() == second.keys()
    marks = set()
    for name, line in first.items():
        assert len(name) <= 64
        assert (line["method"], line["url"]) == ("POST", "/v1/chat/completions")
        assert line["body"]["model"] == "test-model"
        assert line["body"]["response_format"]["type"] == "json_schema"
        assert line["body"] != second[name]["body"], "each file has marks of its own"
        text = line["body"]["messages"][1]["content"]
        marks.add(text.split("[", 1)[1].split(" ", 1)[0])
    assert len(first) == len(marks) == 5, "each trace has a mark of its own"
    assert secret not in Path("one.jsonl").read_text()
    assert Path("one.jsonl").stat().st_mode & 0o77 == 0


def test_reading_answers_twice_changes_nothing(judge: Cli) -> None:
    read = answer_batch(judge, special={"run 2 ": response(completion("what?"))})
    first = read.refused().json
    assert first["traces"] == trace_counts(judged=3, left=1)
    assert first["requests"]["run"] == 4
    previous = stored_results()
    second = read().json
    assert stored_results() == previous
    assert second["traces"] == trace_counts(known=3, left=1)
    assert (second["batch"]["read"], second["batch"]["strangers"]) == (0, 0)


def test_the_next_file_repeats_the_request_of_an_unusable_answer(judge: Cli) -> None:
    def answers(body: Line, n: int) -> Line:
        return response(completion("what?")) if "run 2 " in str(body) else right_answer(body, n)

    written = answer_batch(judge, answers).ok("--write-batch", "ask.jsonl").json
    assert written["batch"]["written"] == 1
    (line,) = requests_in(Path("ask.jsonl"))
    assert [message["role"] for message in line["body"]["messages"]][2:] == ["assistant", "user"]
    assert line["body"]["messages"][2]["content"] == "what?"
    failed = answer_batch(judge, answers).refused().json  # another command writes the same request
    assert requests_in(Path("ask.jsonl"))[0]["custom_id"] == line["custom_id"]
    assert "was unusable twice" in failed["failed"][0]["reason"]
    last = answer_batch(judge).ok().json
    (repeated,) = requests_in(Path("ask.jsonl"))
    assert len(repeated["body"]["messages"]) == 2
    assert last["traces"] == trace_counts(judged=1, known=3)
    assert sum(run.usage.tokens_in for run in stored_results()[0]) == 3_000 * 6


def test_later_windows_are_in_later_files(judge: Cli, tmp_path: Path) -> None:
    write_runs(tmp_path / "runs", 4, spans=30)
    options = ("--window-tokens", "1000")
    judged = rounds = requests = 0
    while True:
        written = judge("--write-batch", "ask.jsonl", *options)
        if not written.json["batch"]["written"]:
            break
        rounds += 1
        requests += run_batch(Path("ask.jsonl"), Path("out.jsonl"))
        read = judge("--read-batch", "out.jsonl", *options)
        judged += read.json["traces"]["judged"]
    assert rounds > 2
    assert (judged, read.json["requests"]["run"]) == (4, requests)


def test_requests_that_failed_are_reported_and_repeated_in_the_next_file(
    judge: Cli, server: ModelServer
) -> None:
    special = {
        "run 0 ": expired(),
        "run 1 ": refusal(500, "engine died"),
        "run 2 ": refusal(400, "messages: too odd"),
    }
    read = answer_batch(judge, special=special)("--write-batch", "next.jsonl").json
    assert read["traces"] == trace_counts(judged=1, failed=1, left=2)
    assert "too odd" in read["failed"][0]["reason"]
    for problem in ("expired", "engine died", "too odd"):
        assert any(problem in text for text in read["batch"]["troubles"])
    assert len(requests_in(Path("next.jsonl"))) == 3
    assert judge("--write-batch", "next.jsonl").json["batch"]["written"] == 3
    # Without files, the other requests are sent to the server.
    assert judge.ok().json["traces"] == trace_counts(judged=3, known=1)
    assert len(server.chats) == 3


def test_a_request_that_is_too_long_is_split_in_the_next_file(judge: Cli) -> None:
    read = answer_batch(
        judge, special={"run 0 ": refusal(400, "maximum context length is 512 tokens")}
    )
    names = {line["custom_id"] for line in requests_in(Path("ask.jsonl"))}
    document = read("--write-batch", "next.jsonl").json
    assert (document["traces"]["judged"], document["batch"]["written"]) == (3, 2)
    # The requests are the summaries of both halves.
    assert names.isdisjoint(line["custom_id"] for line in requests_in(Path("next.jsonl")))


def test_an_allowance_limits_a_batch_which_costs_half(judge: Cli) -> None:
    configure('[judge.prices."test-model"]\ninput = 1\noutput = 2\n')
    few = judge.refused("--write-batch", "few.jsonl", "--max-tokens-total", "12000").json
    assert 0 < few["batch"]["written"] < 4
    assert few["ending"] == "allowance spent"
    full = judge("--dry-run").json["cost"]
    assert judge("--dry-run", "--write-batch", "x.jsonl").json["cost"] == pytest.approx(full / 2)
    read = answer_batch(judge)().json
    assert read["cost"] == pytest.approx((12_000 * 1 + 2_000 * 2) / 1e6 / 2)


def test_foreign_files_are_refused_and_foreign_lines_counted(judge: Cli) -> None:
    judge.refused("--write-batch", "a.jsonl", "--replay", "b.jsonl", code=2)
    Path("answers.jsonl").write_text('{"custom_id": "a", "response": {}, "error": null}\n')
    judge.refused("--write-batch", "answers.jsonl", says="give another file")
    assert "response" in Path("answers.jsonl").read_text()
    assert not list(Path().glob("*.part"))
    judge("--write-batch", "ask.jsonl", "--temperature", "0.5")
    judge.refused("--read-batch", "ask.jsonl", says="contains no answer of a batch")
    # Answers of another run are not used.
    run_batch(Path("ask.jsonl"), Path("out.jsonl"))
    with Path("out.jsonl").open("a") as file:
        file.write('{"custom_id": "of another program", "response": null, "error": null}\n')
    read = judge.refused("--read-batch", "out.jsonl").json
    assert (read["batch"]["strangers"], read["batch"]["read"]) == (5, 0)
    assert read["traces"]["left"] == 4
    broken = answer_batch(judge)
    Path("out.jsonl").write_bytes(Path("out.jsonl").read_bytes()[:-200])
    read = broken().json
    assert (read["batch"]["broken"], read["traces"]["judged"]) == (1, 3)


def test_a_batch_over_the_vendors_limits_is_several_files(tmp_path: Path) -> None:
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
    with pytest.raises(MastError, match="give another file"):
        RequestFiles(tmp_path / "mine.jsonl")
    assert (batch_files.MOST_REQUESTS, batch_files.MOST_BYTES) == (50_000, 200_000_000)
