"""A run over many traces, asked through the real client of a scripted server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mast_tui.configuration import Prices
from mast_tui.judges.llm.client import client
from mast_tui.judges.llm.client.budget import Allowance
from mast_tui.judges.llm.client.rate_limiter import FIRST
from mast_tui.judges.llm.errors import RunStops, TraceFails
from mast_tui.judges.llm.prompt.redaction import Redaction, SecretRule
from mast_tui.judges.llm.prompt.tokens import estimate
from mast_tui.judges.llm.request import Parameters
from mast_tui.judges.llm.run.run_lock import run_lock
from mast_tui.judges.llm.run.running import ALLOWANCE_SPENT, ModelRunSummary, Watch, run_model_judge
from mast_tui.judges.llm.run.setup import Setup
from mast_tui.judges.runner import Progress, Step
from mast_tui.labels import QuoteCounts, VerdictValue
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.library import scan
from mast_tui.traces.model import Trace
from mast_tui.workspace import Usage, Workspace
from mast_tui.workspace.events.types import EventKind
from tests.judges.llm.made_answers import said, user_text, write_runs
from tests.judges.llm.server import Action, ModelServer, Script, answer, hang, status

pytestmark = pytest.mark.slow

MAST = load_mast()


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    write_runs(folder, 6)
    return folder


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Twelve runs."""
    write_runs(tmp_path / "many", 12)
    return tmp_path / "many"


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    place = Workspace.open(tmp_path / "workspace.db")
    yield place
    place.close()


def traces(folder: Path) -> Iterator[Trace]:
    for report in scan([folder]):
        yield from report.traces


def reply(text: str, *, finish: str = "stop") -> Action:
    """An answer with the tokens that such a request really takes."""
    return answer(text, tokens_in=3_000, tokens_out=500, finish=finish)


def right(body: dict[str, Any], n: int) -> Action:
    """A right answer, whatever is asked."""
    return reply(said(body))


def read_by(body: dict[str, Any]) -> int:
    """About the tokens of a request, as a server counts them that reads all of it."""
    return estimate("".join(message["content"] for message in body["messages"]))


def setup_for(server: ModelServer, **changes: Any) -> Setup:
    setup = Setup(
        taxonomy=MAST,
        parameters=Parameters("test-model"),
        base_url=server.base_url,
        concurrency=3,
    )
    return replace(setup, **changes)


def judged(
    server: ModelServer,
    folder: Path,
    workspace: Workspace,
    *,
    again: bool = False,
    watch: Watch | None = None,
    **changes: Any,
) -> ModelRunSummary:
    setup = setup_for(server, **changes)
    run = run_model_judge(setup, traces(folder), workspace, again=again, watch=watch)
    return asyncio.run(run)


def judgements_per_trace(workspace: Workspace) -> dict[str, int]:
    """How often each trace was judged, by the events."""
    counts: dict[str, int] = {}
    for event in workspace.events():
        if event.kind is EventKind.JUDGED and event.trace_id is not None:
            counts[event.trace_id] = counts.get(event.trace_id, 0) + 1
    return counts


def assert_each_judged_once(workspace: Workspace, count: int) -> None:
    assert sorted(judgements_per_trace(workspace).values()) == [1] * count
    ids = [label.id for label in workspace.labels()]
    assert len(ids) == len(set(ids)) == count


def test_every_trace_is_judged_once_with_places_that_were_checked(
    runs: Path, workspace: Workspace
) -> None:
    told: list[Progress] = []
    used: list[Usage] = []
    with ModelServer(right) as server:
        watch = Watch(on_trace=told.append, on_use=used.append)
        summary = judged(server, runs, workspace, watch=watch)
        assert len(server.chats) == 6
    assert dict(summary.steps) == {Step.JUDGED: 6}
    assert summary.by_mode == {"step_repetition": 6}
    assert summary.quotes == QuoteCounts(exact=6)
    assert summary.usage == Usage(6, 18_000, 3_000) == used[-1]
    assert [progress.done for progress in told] == [1, 2, 3, 4, 5, 6]
    assert_each_judged_once(workspace, 6)
    label = workspace.labels()[0]
    assert label.evidence is not None
    assert label.evidence.placed
    assert label.decisive is True
    values = {verdict.value for verdict in workspace.verdicts(trace_id=label.trace_id)}
    assert values == {VerdictValue.PRESENT, VerdictValue.ABSENT}
    [run] = workspace.runs()
    assert run.id == summary.run_id
    assert run.finished_at is not None
    assert run.ending is None
    assert (run.quotes, run.usage) == (summary.quotes, summary.usage)
    assert run.settings is not None
    assert run.settings.form == "json_schema"


def test_what_was_judged_is_passed_over_and_again_asks_anew(
    runs: Path, workspace: Workspace
) -> None:
    with ModelServer(right) as server:
        judged(server, runs, workspace)
        second = judged(server, runs, workspace)
        assert (dict(second.steps), second.run_id) == ({Step.KNOWN: 6}, None)
        assert len(server.chats) == 6
        third = judged(server, runs, workspace, again=True)
        assert dict(third.steps) == {Step.JUDGED: 6}
        assert len(server.chats) == 12
    assert len({label.id for label in workspace.labels()}) == 6


def test_a_grown_trace_is_judged_anew_also_when_the_first_try_fails(
    runs: Path, workspace: Workspace
) -> None:
    with ModelServer(right) as server:
        judged(server, runs, workspace)
        write_runs(runs, 1, spans=7)
        server.script = lambda _body, _n: status(400, "no such thing")
        failed = judged(server, runs, workspace)
        assert failed.steps[Step.FAILED] == 1
        server.script = right
        summary = judged(server, runs, workspace)
    assert dict(summary.steps) == {Step.KNOWN: 5, Step.JUDGED: 1}


def test_a_trace_without_an_answer_is_told_and_tried_again_by_the_same_command(
    runs: Path, workspace: Workspace
) -> None:
    def sometimes(body: dict[str, Any], n: int) -> Action:
        return reply("no JSON at all") if "run 3 " in str(body) else right(body, n)

    with ModelServer(sometimes) as server:
        summary = judged(server, runs, workspace)
        assert dict(summary.steps) == {Step.JUDGED: 5, Step.FAILED: 1}
        [failure] = summary.failed
        assert failure.path.name == "run-0003.json"
        assert failure.problem
        [run] = workspace.runs()
        assert [trace.problem for trace in run.traces if trace.problem] == [failure.problem]
        before = len(server.chats)
        server.script = right
        summary = judged(server, runs, workspace)
        assert len(server.chats) == before + 1
    assert dict(summary.steps) == {Step.KNOWN: 5, Step.JUDGED: 1}
    assert_each_judged_once(workspace, 6)


def busy_once(body: dict[str, Any], n: int) -> Action:
    return status(429, headers={"retry-after": "0"}) if n == 1 else right(body, n)


def down_once(body: dict[str, Any], n: int) -> Action:
    return status(503) if n == 1 else right(body, n)


def cut_once(body: dict[str, Any], n: int) -> Action:
    return right(body, n).cut(40) if n == 1 else right(body, n)


def cut_answer_once(body: dict[str, Any], n: int) -> Action:
    text = said(body)
    return reply(text[: len(text) // 2], finish="length") if n == 1 else reply(text)


def no_schema(body: dict[str, Any], n: int) -> Action:
    if "response_format" in body:
        return status(400, "'response_format' is not supported", param="response_format")
    return right(body, n)


def in_prose(body: dict[str, Any], n: int) -> Action:
    return reply(f"<think>so</think>Here it is:\n```json\n{said(body)}\n```")


@pytest.mark.parametrize(
    "script", [busy_once, down_once, cut_once, cut_answer_once, no_schema, in_prose]
)
def test_whatever_the_server_does_nothing_is_lost_and_nothing_doubled(
    runs: Path, workspace: Workspace, script: Script
) -> None:
    heard: list[str] = []
    with ModelServer(script) as server:
        summary = judged(server, runs, workspace, watch=Watch(on_wait=heard.append))
    assert dict(summary.steps) == {Step.JUDGED: 6}
    assert_each_judged_once(workspace, 6)
    [run] = workspace.runs()
    assert run.settings is not None
    assert run.settings.form == summary.form == ("text" if script is no_schema else "json_schema")
    assert any("takes no JSON schema" in words for words in heard) == (script is no_schema)
    assert script is not no_schema or set(heard) <= set(summary.remarks)


@pytest.mark.parametrize(
    ("script", "word"),
    [
        (lambda _body, _n: status(401, "bad key sk-…"), "OPENAI_API_KEY"),
        (lambda _body, _n: status(404, "gone", code="model_not_found"), "test-model"),
    ],
)
def test_what_stops_a_run_is_told_and_the_same_command_goes_on(
    runs: Path, workspace: Workspace, script: Script, word: str
) -> None:
    with ModelServer(lambda body, n: right(body, n) if n < 2 else script(body, n)) as server:
        summary = judged(server, runs, workspace, concurrency=1)
        assert summary.stopped is not None
        assert word in summary.stopped
        [run] = workspace.runs()
        assert (run.finished_at, run.usage.requests) == (None, 2)
        server.script = right
        summary = judged(server, runs, workspace, concurrency=1)
        assert summary.resumed
        assert summary.run_id == run.id
        assert summary.steps[Step.JUDGED] >= 4
        assert len(server.chats) == 7, "what was answered is not asked again"
    assert workspace.runs()[0].finished_at is not None
    assert_each_judged_once(workspace, 6)


@pytest.mark.parametrize(
    "allowance", [Allowance(tokens=9_000), Allowance(cost=0.009)], ids=["tokens", "cost"]
)
def test_an_allowance_is_kept_and_the_next_run_has_a_new_one(
    runs: Path, workspace: Workspace, allowance: Allowance
) -> None:
    prices = Prices(1.0, 1.0)
    chosen: dict[str, Any] = {"allowance": allowance, "prices": prices, "concurrency": 1}
    with ModelServer(right) as server:
        asked = 0
        spent = 0
        for _ in range(20):
            summary = judged(server, runs, workspace, **chosen)
            used = summary.usage.tokens_in + summary.usage.tokens_out
            assert used <= 9_000
            asked += summary.asked
            if summary.ending is None:
                break
            assert summary.ending == ALLOWANCE_SPENT
            assert summary.stopped is None
            spent += 1
        assert spent >= 2, "one allowance was enough for all"
        assert len(server.chats) == asked == 6
    endings = [run.ending for run in workspace.runs()]
    assert endings == [ALLOWANCE_SPENT] * spent + [None]
    assert_each_judged_once(workspace, 6)


def test_a_run_that_was_broken_off_goes_on_within_its_allowance(
    runs: Path, workspace: Workspace
) -> None:
    def counted(body: dict[str, Any], n: int) -> Action:
        return hang() if n >= 2 else right(body, n)

    async def cancelled(server: ModelServer) -> None:
        told = asyncio.Event()
        seen: list[Progress] = []

        def on_trace(progress: Progress) -> None:
            seen.append(progress)
            if len(seen) == 2:
                told.set()

        setup = setup_for(server, concurrency=1)
        task = asyncio.create_task(
            run_model_judge(setup, traces(runs), workspace, watch=Watch(on_trace=on_trace))
        )
        await told.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with ModelServer(counted) as server:
        asyncio.run(cancelled(server))
        [run] = workspace.runs()
        assert (run.finished_at, run.usage) == (None, Usage(2, 6_000, 1_000))
        server.script = right
        summary = judged(server, runs, workspace, allowance=Allowance(tokens=9_000), concurrency=1)
    assert summary.ending == ALLOWANCE_SPENT, "what was spent before counts"
    assert summary.usage.tokens_in + summary.usage.tokens_out <= 9_000
    assert summary.run_id == run.id


def test_a_judge_that_another_process_has_at_work_is_not_asked_twice(
    runs: Path, workspace: Workspace
) -> None:
    with ModelServer(right) as server:
        with run_lock(workspace.path, setup_for(server).judge), pytest.raises(RunStops):
            judged(server, runs, workspace)
        assert not server.chats
        assert judged(server, runs, workspace).steps == {Step.JUDGED: 6}


def test_few_more_traces_are_open_than_are_asked_about(many: Path, workspace: Workspace) -> None:
    drawn: list[Trace] = []
    open_ones: list[int] = []

    def counted() -> Iterator[Trace]:
        for trace in traces(many):
            drawn.append(trace)
            yield trace

    def on_trace(_: Progress) -> None:
        open_ones.append(len(drawn) - len(open_ones))

    with ModelServer(right) as server:
        setup = setup_for(server, concurrency=4)
        watch = Watch(on_trace=on_trace)
        asyncio.run(run_model_judge(setup, counted(), workspace, watch=watch))
    assert len(drawn) == len(open_ones) == 12
    assert 4 <= max(open_ones) <= 6


def test_as_many_requests_are_under_way_as_were_allowed(many: Path, workspace: Workspace) -> None:
    def once_one_was_usable(body: dict[str, Any], n: int) -> Action:
        action = right(body, n)
        return action if n <= FIRST else action.when_together(4)

    with ModelServer(once_one_was_usable) as server:
        judged(server, many, workspace, concurrency=4)
        assert server.most_in_flight == 4


def test_what_is_found_in_each_window_is_kept_at_once(tmp_path: Path, workspace: Workspace) -> None:
    write_runs(tmp_path / "long", 1, spans=120)
    parts: list[int] = []

    def on_part(trace_id: str, _: object) -> None:
        parts.append(len(workspace.labels(trace_id=trace_id)))

    def counting(body: dict[str, Any], _n: int) -> Action:
        return answer(said(body), tokens_in=len(json.dumps(body["messages"])) // 4)

    with ModelServer(counting) as server:
        parameters = Parameters("test-model", window_tokens=1_500)
        watch = Watch(on_part=on_part)
        summary = judged(server, tmp_path / "long", workspace, watch=watch, parameters=parameters)
        windows = len(server.chats)
    assert windows > 2
    assert len(parts) == windows
    assert summary.suggestions == windows
    assert len(workspace.labels()) == windows
    [run] = workspace.runs()
    assert run.traces[0].windows == windows


USELESS: dict[str, Action] = {
    "no server behind it": status(500, "boom"),
    "no answer": reply("I see no failure."),
    "an answer that is cut": reply('{"modes": {', finish="length"),
    "a model that only thinks": answer(None, tokens_in=3_000, tokens_out=4_000, finish="length"),
    "a refused form": status(400, "response_format is not supported"),
    "a bad request": status(400, "no such thing"),
}


@pytest.mark.parametrize("name", USELESS)
def test_a_run_in_which_every_request_fails_ends_after_eight(
    name: str, many: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "back_off", lambda *_: 0.0)
    with ModelServer(lambda _body, _n: USELESS[name]) as server:
        summary = judged(server, many, workspace, concurrency=8)
        assert len(server.chats) <= 8
    assert summary.stopped is not None
    assert "in a row failed for the same reason" in summary.stopped or "none of 8" in (
        summary.stopped
    )
    assert not summary.by_mode


def test_traces_that_fail_for_one_reason_end_a_run_also_later(
    many: Path, workspace: Workspace
) -> None:
    def script(body: dict[str, Any], n: int) -> Action:
        return right(body, n) if n < 4 else status(400, f"no such thing as {n}")

    with ModelServer(script) as server:
        summary = judged(server, many, workspace, concurrency=1)
        assert len(server.chats) < 12, "but for those that were at hand already"
    assert summary.steps[Step.JUDGED] == 4
    assert summary.steps[Step.FAILED] >= 3
    assert summary.stopped is not None
    assert "3 traces in a row failed for the same reason" in summary.stopped
    with ModelServer(right) as server:
        again = judged(server, many, workspace, concurrency=1)
    assert dict(again.steps) == {Step.KNOWN: 4, Step.JUDGED: 8}


def test_traces_that_failed_before_do_not_end_the_run_that_goes_on(
    many: Path, workspace: Workspace
) -> None:
    with ModelServer(lambda _body, _n: status(400, "no such thing")) as server:
        first = judged(server, many, workspace, concurrency=1)
        assert first.stopped is not None
        [run] = workspace.runs()
        failed = [trace.trace_id.split("-")[1] for trace in run.traces]
        assert 3 <= len(failed) < 12

        def script(body: dict[str, Any], n: int) -> Action:
            again = any(f"run {int(number)} says" in user_text(body) for number in failed)
            return status(400, "no such thing") if again else right(body, n)

        server.script = script
        second = judged(server, many, workspace, concurrency=1)
    assert second.stopped is None
    assert second.steps == {Step.FAILED: len(failed), Step.JUDGED: 12 - len(failed)}


def test_what_is_taken_out_is_part_of_the_judges_name(runs: Path, tmp_path: Path) -> None:
    patterns = tmp_path / "patterns.txt"
    patterns.write_text("customer = cust-[0-9]{6}\n", "utf-8")
    with ModelServer(right) as server:
        usual = setup_for(server)
        keyed = setup_for(server, redaction=Redaction.default().with_secret("a-secret-of-mine"))
        own = setup_for(server, redaction=Redaction.default().with_file(patterns))
        bare = setup_for(server, redaction=Redaction.none())
    assert keyed.judge == usual.judge, "a key shapes no answers"
    assert len({usual.judge, own.judge, bare.judge}) == 3
    assert dict(usual.settings().parameters)["redaction"] == "default"
    assert dict(bare.settings().parameters)["redaction"] == "none"


def test_a_text_on_which_a_pattern_takes_too_long_fails_its_trace_only(
    runs: Path, workspace: Workspace
) -> None:
    def places(text: str) -> Iterator[tuple[int, int]]:
        if "run 4" in text:
            raise TraceFails("the pattern “x.*?y|x” takes too long")
        yield from ()

    with ModelServer(right) as server:
        summary = judged(
            server, runs, workspace, redaction=Redaction((SecretRule("text", places),))
        )
    assert dict(summary.steps) == {Step.JUDGED: 5, Step.FAILED: 1}
    (failed,) = summary.failed
    assert failed.path.name == "run-0004.json"
    assert failed.problem == "the pattern “x.*?y|x” takes too long"


def test_texts_that_are_not_shown_whole_are_counted(tmp_path: Path, workspace: Workspace) -> None:
    write_runs(tmp_path / "long", 2)
    path = tmp_path / "long" / "run-0001.json"
    path.write_text(path.read_text().replace("line 2", "line 2 " + "word " * 40_000))
    with ModelServer(lambda body, _n: answer(said(body), tokens_in=read_by(body))) as server:
        summary = judged(server, tmp_path / "long", workspace)
    assert (dict(summary.steps), summary.shortened) == ({Step.JUDGED: 2}, 1)
    assert summary.remarks == {}
    noted = [trace.remarks for trace in workspace.runs()[0].traces]
    assert sum(bool(remarks) for remarks in noted) == 1
