"""Runs of a model judge over files, their lock and their writer thread."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mast_tui.configuration import Prices
from mast_tui.judges.llm.client import client
from mast_tui.judges.llm.client.budget import Allowance
from mast_tui.judges.llm.client.rate_limiter import FIRST
from mast_tui.judges.llm.prompt.tokens import estimate
from mast_tui.judges.llm.request import Parameters, RunStops, TraceFails
from mast_tui.judges.llm.run.judging import gather_results
from mast_tui.judges.llm.run.run_journal import WriterThread
from mast_tui.judges.llm.run.running import ALLOWANCE_SPENT, Watch, run_lock, run_model_judge
from mast_tui.judges.runner import Progress, TraceStatus
from mast_tui.labels import QuoteCounts, VerdictValue
from mast_tui.redaction.engine import Redaction
from mast_tui.redaction.rules import SecretRule
from mast_tui.traces.model import Trace
from mast_tui.workspace import Usage
from tests.judges.llm.bench import Bench, traces
from tests.judges.llm.made_answers import judgement, user_text
from tests.judges.llm.server import Action, Script, answer, hang, status

pytestmark = pytest.mark.slow

Body = dict[str, Any]


def reply(text: str, *, finish: str = "stop") -> Action:
    return answer(text, tokens_in=3_000, tokens_out=500, finish=finish)


def valid_answer(body: Body, n: int) -> Action:
    return reply(judgement(body))


@pytest.fixture
def six(bench: Bench) -> Bench:
    """A bench with six runs and a server that answers correctly."""
    bench.write(6)
    bench.server.script = valid_answer
    return bench


@pytest.fixture
def many(bench: Bench) -> Bench:
    """A bench with twelve runs and a server that answers correctly."""
    bench.write(12)
    bench.server.script = valid_answer
    return bench


def test_a_run_stores_labels_verdicts_and_usage(six: Bench) -> None:
    reports: list[Progress] = []
    usages: list[Usage] = []
    summary = six.judge(watch=Watch(on_trace=reports.append, on_use=usages.append))
    assert len(six.chats) == 6
    assert dict(summary.traces) == {TraceStatus.JUDGED: 6}
    assert summary.by_mode == {"step_repetition": 6}
    assert summary.quotes == QuoteCounts(exact=6)
    assert summary.usage == Usage(6, 18_000, 3_000) == usages[-1]
    assert [progress.done for progress in reports] == [1, 2, 3, 4, 5, 6]
    six.assert_each_judged_once(6)
    label = six.workspace.labels()[0]
    assert label.evidence is not None
    assert label.evidence.placed
    assert label.decisive is True
    values = {verdict.value for verdict in six.workspace.verdicts(trace_id=label.trace_id)}
    assert values == {VerdictValue.PRESENT, VerdictValue.ABSENT}
    [run] = six.workspace.runs()
    assert (run.id, run.ending) == (summary.run_id, None)
    assert run.finished_at is not None
    assert (run.quotes, run.usage) == (summary.quotes, summary.usage)


def test_traces_are_judged_once_and_again_when_they_have_grown(six: Bench) -> None:
    six.judge()
    second = six.judge()
    assert (dict(second.traces), second.run_id) == ({TraceStatus.KNOWN: 6}, None)
    assert len(six.chats) == 6
    assert dict(six.judge(again=True).traces) == {TraceStatus.JUDGED: 6}
    assert len(six.chats) == 12
    assert len({label.id for label in six.workspace.labels()}) == 6
    # A grown trace is judged again, also if the first try fails.
    six.write(1, spans=7)
    six.server.script = lambda _body, _n: status(400, "no such thing")
    assert six.judge().traces[TraceStatus.FAILED] == 1
    six.server.script = valid_answer
    assert dict(six.judge().traces) == {TraceStatus.KNOWN: 5, TraceStatus.JUDGED: 1}


def test_a_failed_trace_is_reported_and_retried_by_the_same_command(six: Bench) -> None:
    six.server.script = lambda body, n: (
        reply("no JSON at all") if "run 3 " in str(body) else valid_answer(body, n)
    )
    summary = six.judge()
    assert dict(summary.traces) == {TraceStatus.JUDGED: 5, TraceStatus.FAILED: 1}
    [failure] = summary.failed
    assert failure.path.name == "run-0003.json"
    assert failure.problem
    [run] = six.workspace.runs()
    assert [trace.problem for trace in run.traces if trace.problem] == [failure.problem]
    earlier = len(six.chats)
    six.server.script = valid_answer
    assert dict(six.judge().traces) == {TraceStatus.KNOWN: 5, TraceStatus.JUDGED: 1}
    assert len(six.chats) == earlier + 1
    six.assert_each_judged_once(6)


def once(action: Action) -> Script:
    return lambda body, n: action if n == 1 else valid_answer(body, n)


def cut_answer_once(body: Body, n: int) -> Action:
    text = judgement(body)
    return reply(text[: len(text) // 2], finish="length") if n == 1 else reply(text)


def no_schema(body: Body, n: int) -> Action:
    if "response_format" in body:
        return status(400, "'response_format' is not supported", param="response_format")
    return valid_answer(body, n)


ODD_SERVERS: dict[str, Script] = {
    "busy once": once(status(429, headers={"retry-after": "0"})),
    "down once": once(status(503)),
    "cut once": once(reply("a long answer").cut(40)),
    "cut answer once": cut_answer_once,
    "no schema": no_schema,
    "in prose": lambda body, _n: reply(f"<think>so</think>Here:\n```json\n{judgement(body)}\n```"),
}


@pytest.mark.parametrize("name", ODD_SERVERS)
def test_odd_servers_lose_and_double_nothing(six: Bench, name: str) -> None:
    waits: list[str] = []
    six.server.script = ODD_SERVERS[name]
    summary = six.judge(watch=Watch(on_wait=waits.append))
    assert dict(summary.traces) == {TraceStatus.JUDGED: 6}
    six.assert_each_judged_once(6)
    [run] = six.workspace.runs()
    assert run.settings is not None
    is_accepted = name != "no schema"
    assert run.settings.form == summary.form == ("json_schema" if is_accepted else "text")
    assert any("does not accept a JSON schema" in message for message in waits) is not is_accepted
    assert is_accepted or set(waits) <= set(summary.remarks)


@pytest.mark.parametrize(
    ("action", "word"),
    [
        (status(401, "bad key sk-…"), "OPENAI_API_KEY"),
        (status(404, "gone", code="model_not_found"), "test-model"),
    ],
)
def test_a_stopped_run_is_resumed_by_the_same_command(
    six: Bench, action: Action, word: str
) -> None:
    six.server.script = lambda body, n: valid_answer(body, n) if n < 2 else action
    summary = six.judge(concurrency=1)
    assert summary.stopped is not None
    assert word in summary.stopped
    [run] = six.workspace.runs()
    assert (run.finished_at, run.usage.requests) == (None, 2)
    six.server.script = valid_answer
    summary = six.judge(concurrency=1)
    assert (summary.resumed, summary.run_id) == (True, run.id)
    assert summary.traces[TraceStatus.JUDGED] >= 4
    assert len(six.chats) == 7, "what was answered is not asked again"
    assert six.workspace.runs()[0].finished_at is not None
    six.assert_each_judged_once(6)


@pytest.mark.parametrize(
    "allowance", [Allowance(tokens=9_000), Allowance(cost=0.009)], ids=["tokens", "cost"]
)
def test_each_run_keeps_to_its_allowance(six: Bench, allowance: Allowance) -> None:
    asked = spent = 0
    for _ in range(20):
        summary = six.judge(allowance=allowance, prices=Prices(1.0, 1.0), concurrency=1)
        assert summary.usage.tokens_in + summary.usage.tokens_out <= 9_000
        asked += summary.asked
        if summary.ending is None:
            break
        assert (summary.ending, summary.stopped) == (ALLOWANCE_SPENT, None)
        spent += 1
    assert spent >= 2, "one allowance was enough for all"
    assert len(six.chats) == asked == 6
    endings = [run.ending for run in six.workspace.runs()]
    assert endings == [ALLOWANCE_SPENT] * spent + [None]
    six.assert_each_judged_once(6)


def test_a_resumed_run_keeps_its_allowance(six: Bench) -> None:
    async def cancelled() -> None:
        seen: list[Progress] = []
        two = asyncio.Event()

        def on_trace(progress: Progress) -> None:
            seen.append(progress)
            if len(seen) == 2:
                two.set()

        watch = Watch(on_trace=on_trace)
        run = run_model_judge(
            six.setup(concurrency=1), traces(six.runs), six.workspace, watch=watch
        )
        task = asyncio.create_task(run)
        await two.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    six.server.script = lambda body, n: hang() if n >= 2 else valid_answer(body, n)
    asyncio.run(cancelled())
    [run] = six.workspace.runs()
    assert (run.finished_at, run.usage) == (None, Usage(2, 6_000, 1_000))
    six.server.script = valid_answer
    summary = six.judge(allowance=Allowance(tokens=9_000), concurrency=1)
    assert summary.ending == ALLOWANCE_SPENT, "what was spent before counts"
    assert summary.usage.tokens_in + summary.usage.tokens_out <= 9_000
    assert summary.run_id == run.id


def test_a_judge_runs_in_one_process_at_a_time(six: Bench) -> None:
    with run_lock(six.workspace.path, six.setup().judge), pytest.raises(RunStops):
        six.judge()
    assert not six.chats
    assert six.judge().traces == {TraceStatus.JUDGED: 6}


def test_few_traces_are_open_at_once(many: Bench) -> None:
    opened: list[Trace] = []
    open_counts: list[int] = []

    def counted() -> Iterator[Trace]:
        for trace in traces(many.runs):
            opened.append(trace)
            yield trace

    def on_trace(_: Progress) -> None:
        open_counts.append(len(opened) - len(open_counts))

    many.server.script = lambda body, n: (
        valid_answer(body, n) if n <= FIRST else valid_answer(body, n).when_together(4)
    )
    watch = Watch(on_trace=on_trace)
    asyncio.run(run_model_judge(many.setup(concurrency=4), counted(), many.workspace, watch=watch))
    assert len(opened) == len(open_counts) == 12
    assert 4 <= max(open_counts) <= 6
    assert many.server.most_in_flight == 4


def test_findings_are_stored_after_each_window(bench: Bench) -> None:
    bench.write(1, spans=120)
    counts: list[int] = []
    bench.server.script = lambda body, _n: answer(
        judgement(body), tokens_in=len(json.dumps(body["messages"])) // 4
    )
    watch = Watch(on_window=lambda key, _: counts.append(len(bench.workspace.labels(trace_id=key))))
    summary = bench.judge(watch=watch, parameters=Parameters("test-model", window_tokens=1_500))
    windows = sum("Judge these modes" in user_text(chat.body) for chat in bench.chats)
    assert windows > 2
    assert len(counts) == windows
    assert summary.suggestions == len(bench.workspace.labels()) == windows
    [run] = bench.workspace.runs()
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
def test_a_run_of_failures_stops_after_eight_requests(
    name: str, many: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "back_off", lambda *_: 0.0)
    many.server.script = lambda _body, _n: USELESS[name]
    stopped = many.judge(concurrency=8).stopped
    assert len(many.chats) <= 8
    assert stopped is not None
    assert "in a row failed for the same reason" in stopped or "none of 8" in stopped
    assert not many.workspace.labels()


@pytest.mark.parametrize(
    "failure",
    [
        lambda n: status(400, f"no such thing as {n}"),
        lambda n: reply(f"I see no {'good ' * n} reason."),
    ],
    ids=["numbers in the reason", "an answer in the reason"],
)
def test_repeated_failures_stop_a_run_also_later(
    failure: Callable[[int], Action], many: Bench
) -> None:
    many.server.script = lambda body, n: valid_answer(body, n) if n < 4 else failure(n)
    summary = many.judge(concurrency=1)
    assert summary.traces[TraceStatus.JUDGED] == 4
    assert 3 <= summary.traces[TraceStatus.FAILED] < 8, "requests under way end first"
    assert summary.stopped is not None
    assert "3 traces in a row failed for the same reason" in summary.stopped
    many.server.script = valid_answer
    assert dict(many.judge(concurrency=1).traces) == {TraceStatus.KNOWN: 4, TraceStatus.JUDGED: 8}


def test_earlier_failures_do_not_stop_a_resumed_run(many: Bench) -> None:
    refused = status(400, "no such thing")
    many.server.script = lambda _body, _n: refused
    assert many.judge(concurrency=1).stopped is not None
    [run] = many.workspace.runs()
    failed = [f"run {int(trace.trace_id.split('-')[1])} says" for trace in run.traces]
    assert 3 <= len(failed) < 12
    many.server.script = lambda body, n: (
        refused if any(text in user_text(body) for text in failed) else valid_answer(body, n)
    )
    second = many.judge(concurrency=1)
    assert second.stopped is None
    assert second.traces == {TraceStatus.FAILED: len(failed), TraceStatus.JUDGED: 12 - len(failed)}


def test_the_name_of_a_judge_depends_on_its_redaction(bench: Bench, tmp_path: Path) -> None:
    patterns = tmp_path / "patterns.txt"
    patterns.write_text("customer = cust-[0-9]{6}\n", "utf-8")
    keyed = bench.setup(redaction=Redaction.default().with_secret("a-secret-of-mine"))
    with_patterns = bench.setup(redaction=Redaction.default().with_file(patterns))
    bare = bench.setup(redaction=Redaction.none())
    usual = bench.setup()
    assert keyed.judge == usual.judge, "a key shapes no answers"
    assert len({usual.judge, with_patterns.judge, bare.judge}) == 3
    assert dict(usual.settings().parameters)["redaction"] == "default"
    assert dict(bare.settings().parameters)["redaction"] == "none"


def test_a_slow_pattern_fails_its_trace_only(six: Bench) -> None:
    message = "the pattern “x.*?y|x” takes too long"

    def ranges(text: str) -> Iterator[tuple[int, int]]:
        if "run 4" in text:
            raise TraceFails(message)
        yield from ()

    summary = six.judge(redaction=Redaction((SecretRule("text", ranges),)))
    assert dict(summary.traces) == {TraceStatus.JUDGED: 5, TraceStatus.FAILED: 1}
    (failed,) = summary.failed
    assert (failed.path.name, failed.problem) == ("run-0004.json", message)


def test_shortened_texts_are_counted(bench: Bench) -> None:
    bench.write(2)
    path = bench.runs / "run-0001.json"
    path.write_text(path.read_text().replace("line 2", "line 2 " + "word " * 40_000))
    bench.server.script = lambda body, _n: answer(
        judgement(body),
        tokens_in=estimate("".join(message["content"] for message in body["messages"])),  # type: ignore[attr-defined]
    )
    summary = bench.judge()
    assert (dict(summary.traces), summary.shortened) == ({TraceStatus.JUDGED: 2}, 1)
    assert summary.remarks == {}
    trace_remarks = [trace.remarks for trace in bench.workspace.runs()[0].traces]
    assert sum(bool(remarks) for remarks in trace_remarks) == 1


# The lock of a run


JUDGE = "judge:m@12345678"


def test_one_process_runs_a_judge_on_a_workspace(tmp_path: Path) -> None:
    database = tmp_path / "workspace.db"
    with run_lock(database, JUDGE):
        with (
            pytest.raises(RunStops, match="another process is running judge:m@12345678"),
            run_lock(database, JUDGE),
        ):
            pass
        with run_lock(database, "judge:n@12345678"), run_lock(tmp_path / "other.db", JUDGE):
            pass
    with run_lock(database, JUDGE):
        pass
    assert list(tmp_path.iterdir()) == []
    # Without a file there is no lock.
    for unlocked in (None, tmp_path / "nowhere" / "workspace.db"):
        with run_lock(unlocked, JUDGE), run_lock(unlocked, JUDGE):
            pass


def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    database = tmp_path / "workspace.db"
    pid = os.fork()
    if pid == 0:
        with run_lock(database, JUDGE):
            os._exit(0)
    os.waitpid(pid, 0)
    assert len(list(tmp_path.iterdir())) == 1
    with run_lock(database, JUDGE):
        pass
    assert list(tmp_path.iterdir()) == []


async def test_work_that_is_cancelled_before_it_starts_gives_no_warning() -> None:
    started: list[int] = []

    async def work(number: int) -> None:
        started.append(number)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        task = asyncio.create_task(gather_results(work, range(3)))
        await asyncio.sleep(0)  # its own tasks wait for the loop now
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        del task
        gc.collect()
    assert (started, caught) == ([], [])


# The writer thread


async def test_an_error_after_cancellation_is_not_printed() -> None:
    printed: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, context: printed.append(context))
    writer = WriterThread()
    failing = threading.Event()

    def fail() -> None:
        failing.wait(10)
        raise ValueError("no room")

    task = asyncio.create_task(writer.do(fail))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    failing.set()
    await writer.close()
    await asyncio.sleep(0)
    gc.collect()
    assert printed == []


class BlockStore:
    """Numbers added in blocks, all or nothing."""

    def __init__(self) -> None:
        self.blocks: list[list[int]] = []
        self._open: list[int] | None = None

    @contextmanager
    def together(self) -> Iterator[None]:
        self._open = []
        try:
            yield
            self.blocks.append(self._open)
        finally:
            self._open = None

    def add(self, number: int) -> int:
        if number < 0:
            raise ValueError("no room")
        if self._open is None:
            self.blocks.append([number])
        else:
            self._open.append(number)
        return number


async def added_while_busy(store: BlockStore, *numbers: int) -> list[int | BaseException]:
    """Return the results of additions that were requested while the thread was busy."""
    writer = WriterThread()
    busy = threading.Event()
    writer.together = store.together
    first = asyncio.create_task(writer.do(partial(busy.wait, 10)))
    await asyncio.sleep(0)
    tasks = [asyncio.create_task(writer.do(partial(store.add, number))) for number in numbers]
    await asyncio.sleep(0)
    busy.set()
    await first
    results = await asyncio.gather(*tasks, return_exceptions=True)
    await writer.close()
    return results


async def test_waiting_work_is_done_together_and_fails_separately() -> None:
    store = BlockStore()
    assert await added_while_busy(store, 1, 2, 3) == [1, 2, 3]
    assert store.blocks == [[1, 2, 3]]
    store = BlockStore()
    first, second, third = await added_while_busy(store, 1, -2, 3)
    assert [first, third] == [1, 3]
    assert isinstance(second, ValueError)
    assert store.blocks == [[1], [3]]


async def test_handed_over_work_is_done_in_order() -> None:
    store = BlockStore()
    writer = WriterThread()
    busy = threading.Event()
    writer.together = store.together
    writer.hand_over(partial(busy.wait, 10))
    first = asyncio.create_task(writer.do(partial(store.add, 1)))
    await asyncio.sleep(0)
    writer.hand_over(partial(store.add, 2))
    last = asyncio.create_task(writer.do(partial(store.add, 3)))
    await asyncio.sleep(0)
    busy.set()
    assert [await first, await last] == [1, 3]
    writer.hand_over(partial(store.add, 4))
    await writer.close()
    assert store.blocks == [[1], [2], [3], [4]]
