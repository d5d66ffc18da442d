"""Many traces judged by a model at once: resumable, in bounded memory, within an allowance."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import re
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from mast_tui.judges.llm.client.budget import Budget
from mast_tui.judges.llm.client.rate_limiter import FIRST, RAMP, RateLimiter
from mast_tui.judges.llm.request import (
    AllowanceSpent,
    Deferred,
    ModelClient,
    Reply,
    RunStops,
    TraceFails,
    Unanswered,
)
from mast_tui.judges.llm.run.judging import TraceJudge, TraceResult, gather_results
from mast_tui.judges.llm.run.request_loop import AnswerLimits
from mast_tui.judges.llm.run.run_journal import (
    KeptAnswers,
    RunRecord,
    StartedTrace,
    WithdrawnTrace,
    WriterThread,
)
from mast_tui.judges.llm.run.setup import Setup
from mast_tui.judges.runner import (
    CANCELLED,
    Progress,
    RunSummary,
    TraceStatus,
    finding_indices,
)
from mast_tui.labels import Judgement, QuoteCounts
from mast_tui.traces.library import read_fully
from mast_tui.traces.model import Trace
from mast_tui.workspace import Usage, Workspace, WorkspaceError


@contextmanager
def run_lock(workspace: Path | None, judge: str) -> Iterator[None]:
    """Hold the lock of a judge on a workspace, so that only one run of the judge uses it.

    The lock is a file beside the workspace, and ends with the process. Nothing is locked if the
    file system has no locks.

    Args:
        workspace: The file of the workspace; None for a workspace on a server.
        judge: The name of the judge.

    Raises:
        RunStops: Another process holds the lock.
    """
    lock = None if workspace is None else _lock_file(workspace, judge)
    try:
        yield
    finally:
        if lock is not None:
            path, file = lock
            path.unlink(missing_ok=True)  # before the release, so that no other lock is removed
            os.close(file)


def _lock_file(workspace: Path, judge: str) -> tuple[Path, int] | None:
    """Lock the file of a judge, and return its path and descriptor; None without a lock.

    Raises:
        RunStops: Another process holds the lock.
    """
    judge_hash = hashlib.sha256(judge.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    path = workspace.with_name(f"{workspace.name}-judge-{judge_hash}")
    while True:
        try:
            file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError:
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Another process may have removed the file between the two calls. Then try again.
            if _is_same_file(path, file):
                return path, file
        except BlockingIOError as error:
            os.close(file)
            raise RunStops(
                f"another process is running {judge} in this workspace; when it has ended, run "
                "the same command to continue"
            ) from error
        except OSError:
            os.close(file)
            return None
        os.close(file)


def _is_same_file(path: Path, file: int) -> bool:
    """Check whether an open file is still at its path."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except FileNotFoundError:
        return False


LEAST_READ_AHEAD: Final = 2
READ_AHEAD: Final = 2
"""The fewest traces that are read ahead, and the number of concurrent requests for each of them. A
request is then ready when an answer arrives."""

ALLOWANCE_SPENT: Final = "allowance spent"
"""The ending of a run that used up its allowance."""

MOST_IN_A_ROW: Final = 3
"""The number of consecutive traces that end a run by failing for one reason."""

MOST_SUSPECTS: Final = 64
"""The most traces that are kept because they may have to be judged again."""

_NUMBERS: Final = re.compile(r"\d[\d,.]*")
_SHORTENING_PREFIXES: Final = ("shortened", "the task is shortened")
"""The beginnings of remarks on shortened texts. The rest of such a remark differs by trace."""

Report = Callable[[str], None]
Connect = Callable[[Setup, Usage, Report, Report], AbstractAsyncContextManager[ModelClient]]
"""A function that opens a client of the model. Its arguments are the setup, the usage so far, and
two functions: one for the reason when requests wait, one for settings that the server refuses."""


def _ignore_call(*_: object) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Watch:
    """The observers of a run, called in the thread of its event loop.

    Attributes:
        on_trace: Called after each trace.
        on_use: Called with the usage so far.
        on_wait: Called with the reason when requests wait.
        on_window: Called after each window with the id of the trace and the findings so far.
            Without it, findings are stored only at the end of a trace.
        on_cancelled: Called with the counts of a cancelled run.
    """

    on_trace: Callable[[Progress], object] = _ignore_call
    on_use: Callable[[Usage], object] = _ignore_call
    on_wait: Report = _ignore_call
    on_window: Callable[[str, Judgement], object] | None = None
    on_cancelled: Callable[[ModelRunSummary], object] = _ignore_call


@dataclass(slots=True)
class ModelRunSummary(RunSummary):
    """The counts of a run so far.

    Attributes:
        usage: The usage of the whole run, including the time before it was continued.
        asked: The number of requests answered since the run was started or continued.
        quotes: The number of quotes of the suggestions by kind of match.
        form: The form of the answers.
        shortened: The number of traces with shortened texts.
        remarks: The number of traces with each other remark.
        resumed: True if an unfinished run was continued.
        ending: The reason if the run ended before all traces were judged.
        spent_allowance: The message that the allowance is spent, if it is.
        waiting: The number of traces that wait for the answers of a batch.
    """

    usage: Usage = field(default_factory=Usage)
    asked: int = 0
    quotes: QuoteCounts = field(default_factory=QuoteCounts)
    form: str | None = None
    shortened: int = 0
    remarks: Counter[str] = field(default_factory=Counter)
    resumed: bool = False
    ending: str | None = None
    spent_allowance: str | None = None
    waiting: int = 0


async def run_model_judge(
    setup: Setup,
    traces: Iterable[Trace],
    workspace: Workspace,
    *,
    again: bool = False,
    watch: Watch | None = None,
    connect: Connect | None = None,
    answers_deferred: bool = False,
) -> ModelRunSummary:
    """Judge traces with a model, several at once; each judgement is stored in one transaction.

    - A trace that was judged with the same number of spans is skipped.
    - An unfinished run of the same judge is continued within its allowance.
    - Stored answers are not requested again.
    - A trace without an answer is recorded as failed, and the run continues.
    - A cancelled task keeps all answers.

    Args:
        setup: The judge and its server.
        traces: The traces, which one thread reads.
        workspace: The workspace in which answers and suggestions are stored.
        again: True to judge all traces again, without stored answers.
        watch: The observers of the run.
        connect: Opens a client of the model.
        answers_deferred: True if answers come in batches. Then no trace may change the requests on
            other traces or end the run.

    Raises:
        WorkspaceError: The workspace fails.
        RunStops: Another process runs this judge on the workspace.
    """
    run = _Run(
        setup, workspace, watch or Watch(), judges_again=again, answers_deferred=answers_deferred
    )
    with run_lock(workspace.path, setup.judge):
        return await run.judge_all(traces, connect or connect_to_server)


@asynccontextmanager
async def connect_to_server(
    setup: Setup,
    spent: Usage,
    on_wait: Report = _ignore_call,
    on_remark: Report = _ignore_call,
    budget: Budget | None = None,
) -> AsyncIterator[ModelClient]:
    """Open a client of the setup's server.

    Args:
        setup: The judge and its server.
        spent: The usage of the run so far.
        on_wait: Receives the reason when requests wait.
        on_remark: Receives settings that the server refuses.
        budget: The budget; None for one with the setup's allowance.

    Raises:
        RunStops: The address is not allowed, or there is no key for it.
    """
    # The SDK is slow to import, and runs with stored answers do not need it.
    from mast_tui.judges.llm.client.client import Client

    async with Client(
        setup.parameters,
        setup.endpoint(),
        budget=budget or Budget(setup.allowance, prices=setup.prices, used=spent),
        limiter=RateLimiter(setup.concurrency, ramp=RAMP, first=FIRST),
        on_wait=on_wait,
        on_remark=on_remark,
    ) as client:
        yield client


@dataclass(frozen=True, slots=True)
class _LoadedTrace:
    """A trace that was read to its end.

    Attributes:
        trace: The trace.
        started: Its state in the run.
        trace_judge: Its judge; None if the trace needs no judging or cannot be judged.
        problem: The reason if the trace cannot be judged, otherwise None.
    """

    trace: Trace
    started: StartedTrace
    trace_judge: TraceJudge | None
    problem: str | None


class _Feed:
    """The traces of a run, which one thread reads one by one."""

    def __init__(
        self,
        traces: Iterable[Trace],
        begin: Callable[[Trace], StartedTrace],
        make_judge: Callable[[Trace], TraceJudge],
    ) -> None:
        self._traces: Iterator[Trace] = iter(traces)
        self._begin = begin
        self._make_judge = make_judge
        self._reading_thread = ThreadPoolExecutor(1, thread_name_prefix="traces")
        self._was_ended = False
        self._returned_traces: deque[Trace] = deque()  # by ``put_back``

    async def next(self) -> _LoadedTrace | None:
        """Return the next trace, or None after the last trace."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._reading_thread, self._read_next)

    def put_back(self, trace: Trace) -> None:
        """Queue a trace to be returned again by ``next``."""
        self._returned_traces.append(trace)

    def end(self) -> None:
        """Let ``next`` return no more traces."""
        self._was_ended = True

    def close(self) -> None:
        """Stop reading without waiting for the current trace."""
        self._reading_thread.shutdown(wait=False, cancel_futures=True)

    def _read_next(self) -> _LoadedTrace | None:
        """Read the next trace, and make a judge if it must be judged; return None at the end."""
        if self._was_ended:
            return None
        trace = (
            self._returned_traces.popleft() if self._returned_traces else next(self._traces, None)
        )
        if trace is None:
            return None
        problem = None
        try:
            read_fully(trace)
        except OSError as error:
            problem = _error_text(error)
        started = self._begin(trace)
        trace_judge = None
        try:
            if problem is None and not started.judged:
                trace_judge = self._make_judge(trace)
        except (TraceFails, OSError) as error:
            problem = _error_text(error)
        return _LoadedTrace(trace, started, trace_judge, problem)


def _error_text(error: TraceFails | OSError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


class _Run:
    """The state of a run."""

    def __init__(
        self,
        setup: Setup,
        workspace: Workspace,
        watch: Watch,
        *,
        judges_again: bool,
        answers_deferred: bool,
    ) -> None:
        taxonomy_modes = {mode.slug for mode in setup.taxonomy.modes}
        if not taxonomy_modes.intersection(setup.prompt.modes):
            raise WorkspaceError(f"{setup.judge} supports no mode of {setup.taxonomy.ref}")
        self._setup = setup
        self._workspace = workspace
        self._watch = watch
        self._judges_again = judges_again
        self._writer = WriterThread()
        self._feed: _Feed | None = None
        self._summary = ModelRunSummary(setup.judge, setup.taxonomy.ref)
        # In a batch, one trace must not change the requests on other traces.
        self._answer_limits = AnswerLimits(
            setup.parameters.answer_tokens, raised_for_all=not answers_deferred
        )
        self._answers_deferred = answers_deferred
        self._judged_now: set[str] = set()
        self._suspects: dict[str, Trace] = {}
        """Judged traces, by id, with requests that the server may have truncated."""
        self._last_failure = ""
        self._failures_in_a_row = 0
        """The number of consecutive traces that failed for the last reason."""
        self._common_failure: str | None = None
        """The reason for which too many traces failed."""

    async def judge_all(self, traces: Iterable[Trace], connect: Connect) -> ModelRunSummary:
        """Judge all traces, and return the counts of the run.

        Args:
            traces: The traces.
            connect: Opens a client of the model.
        """
        stopped: str | None = None
        try:
            self._run_record = await self._writer.do(self._open_record)
            # The writer can combine writes only after the record is open.
            self._writer.together = self._run_record.together
            spent = self._run_record.spent
            self._summary.usage = spent
            self._summary.resumed = self._run_record.previous_run is not None
            feed = _Feed(traces, self._run_record.begin, self._trace_judge)
            self._feed = feed
            try:
                connection = connect(self._setup, spent, self._watch.on_wait, self._on_remark)
                async with connection as client:
                    await self._judge_feed(feed, client)
            except RunStops as error:
                stopped = str(error)
            except asyncio.CancelledError:
                await self._writer.do(partial(self._finish_summary, CANCELLED))
                self._watch.on_cancelled(self._summary)
                raise
            await self._writer.do(partial(self._finish_summary, stopped))
            return self._summary
        finally:
            if self._feed is not None:
                self._feed.close()
            await self._writer.close()

    def _open_record(self) -> RunRecord:
        self._workspace.add_taxonomy(self._setup.taxonomy)
        return RunRecord(self._setup, self._workspace, again=self._judges_again)

    async def _judge_feed(self, feed: _Feed, client: ModelClient) -> None:
        """Judge all traces of a feed in concurrent tasks; the first error cancels all tasks."""
        concurrency = self._setup.concurrency
        # Some tasks prepare traces while others wait for answers, so there are more tasks than
        # concurrent requests.
        ahead_count = max(LEAST_READ_AHEAD, concurrency // READ_AHEAD)
        feeds = [feed] * (concurrency + ahead_count)  # the tasks share one feed
        await gather_results(partial(self._judge_traces, client), feeds)

    async def _judge_traces(self, client: ModelClient, feed: _Feed) -> None:
        """Judge traces of a feed one by one until it has no more.

        Raises:
            RunStops: No trace can be judged, or too many traces failed for one reason.
        """
        while (loaded := await feed.next()) is not None:
            try:
                self._watch.on_trace(self._summary.add(await self._judge_trace(loaded, client)))
            except Deferred:
                self._summary.waiting += 1
            except AllowanceSpent as error:
                # The requests of other traces must be paid, so the run waits for their answers.
                self._summary.spent_allowance = str(error)
                feed.end()
            else:
                if self._common_failure is not None:
                    raise RunStops(
                        f"{MOST_IN_A_ROW} traces in a row failed for the same reason:"
                        f" {self._common_failure}"
                    )
            del loaded  # frees the trace before the next one is read

    async def _judge_trace(self, loaded: _LoadedTrace, client: ModelClient) -> Progress:
        """Judge one trace, store the result or the failure, and return the trace's status."""
        started = loaded.started
        trace_judge = loaded.trace_judge
        if started.new:  # the reading thread would wait for each commit
            started = await self._writer.do(partial(self._run_record.register, started))
        # The summary replaces the 0 by the number of the trace.
        progress = partial(Progress, 0, started.trace_id, loaded.trace.path)
        if loaded.problem is None and trace_judge is None:
            return progress(TraceStatus.KNOWN)
        try:
            if trace_judge is None:
                raise TraceFails(loaded.problem or "")
            result = await self._ask_model(trace_judge, started, client)
            # Another task found that the server truncated requests on this trace.
            if self._run_record.pop_withdrawn(started.trace_id):
                result = await self._ask_model(trace_judge, started, client)
        except (TraceFails, OSError) as error:
            reason = _error_text(error)
            is_first_failure = not self._run_record.has_failed_before(started.trace_id)
            await self._writer.do(partial(self._run_record.note_failed, started.trace_id, reason))
            if isinstance(error, Unanswered) and is_first_failure:
                # After the record, so that the failure that ends the run is reported too.
                self._count_failure(reason, error.cause)
            return progress(TraceStatus.FAILED, problem=reason)
        indices = finding_indices(loaded.trace, result.judgement.findings)
        count = await self._writer.do(partial(self._run_record.store, started, result, indices))
        self._add_to_summary(result)
        self._judged_now.add(started.trace_id)
        # The server may have truncated a request on this trace. If so, the trace is judged again.
        if self._run_record.is_suspect(started.trace_id) and len(self._suspects) < MOST_SUSPECTS:
            self._suspects[started.trace_id] = loaded.trace
        self._failures_in_a_row = 0
        return progress(TraceStatus.JUDGED, count)

    def _count_failure(self, reason: str, cause: str) -> None:
        """Count consecutive failures for one cause; set ``_common_failure`` if there are too many.

        ``cause`` is the reason without details of the trace. Causes that differ only in numbers are
        the same.
        """
        # In a batch, a failure must not change the requests on other traces.
        if self._answers_deferred:
            return
        failure = _NUMBERS.sub("0", cause)
        is_same = failure == self._last_failure
        self._failures_in_a_row = self._failures_in_a_row + 1 if is_same else 1
        self._last_failure = failure
        if self._failures_in_a_row == MOST_IN_A_ROW:
            self._common_failure = reason

    def _trace_judge(self, trace: Trace) -> TraceJudge:
        setup = self._setup
        return TraceJudge(trace, setup.prompt, setup.parameters, setup.redaction)

    async def _ask_model(
        self, trace_judge: TraceJudge, started: StartedTrace, client: ModelClient
    ) -> TraceResult:
        """Judge a trace with stored answers and the answers of the client."""
        answers = self._answer_store(started)
        on_window = None
        if self._watch.on_window is not None:
            on_window = partial(self._on_window, started.trace_id)
        return await trace_judge.judge(client, answers, self._answer_limits, on_window)

    def _answer_store(self, started: StartedTrace) -> KeptAnswers:
        return KeptAnswers(
            self._run_record, self._writer, started.trace_id, self._on_reply, self._on_withdrawn
        )

    def _on_window(self, trace_id: str, judgement: Judgement) -> None:
        """Store the findings so far, then call the observer."""
        loop = asyncio.get_running_loop()
        on_window = self._watch.on_window

        def store() -> None:
            self._run_record.replace_suggestions(trace_id, judgement, partial=True)
            if on_window is not None:
                loop.call_soon_threadsafe(on_window, trace_id, judgement)

        self._writer.hand_over(store)

    def _on_reply(self, reply: Reply) -> None:
        """Add a reply to the counts of the run, and report the usage."""
        summary = self._summary
        summary.usage += reply.usage
        summary.asked += 1
        summary.form = reply.form
        self._watch.on_use(summary.usage)

    def _on_withdrawn(self, trace: WithdrawnTrace) -> None:
        """Subtract a trace with a withdrawn judgement from the counts.

        Judge the trace again if it was kept for that, otherwise count it as failed.
        """
        summary = self._summary
        if trace.trace_id in self._judged_now:
            self._judged_now.discard(trace.trace_id)
            summary.traces[TraceStatus.JUDGED] -= 1
            summary.by_mode.subtract(label.mode for label in trace.suggestions)
            summary.quotes -= QuoteCounts.count(label.evidence for label in trace.suggestions)
        suspect = self._suspects.pop(trace.trace_id, None)
        if suspect is not None and self._feed is not None:
            self._feed.put_back(suspect)
            return
        failed = Progress(0, trace.trace_id, trace.path, TraceStatus.FAILED, problem=trace.problem)
        self._watch.on_trace(summary.add(failed))

    def _on_remark(self, remark: str) -> None:
        self._summary.remarks[remark] += 1
        self._watch.on_wait(remark)

    def _add_to_summary(self, result: TraceResult) -> None:
        """Add the findings, quotes and remarks of a trace to the counts of the run."""
        summary = self._summary
        summary.by_mode.update(finding.mode for finding in result.judgement.findings)
        remarks = set(result.remarks)
        shortening_remarks = {
            remark for remark in remarks if remark.startswith(_SHORTENING_PREFIXES)
        }
        summary.shortened += bool(shortening_remarks)
        summary.remarks.update(remarks - shortening_remarks)
        summary.quotes += result.quotes

    def _finish_summary(self, stopped: str | None) -> None:
        """Complete the summary; record the end of the run unless it stopped or waits for answers.

        ``stopped`` is the reason why the run stopped early, or None.
        """
        summary = self._summary
        summary.stopped = stopped
        if stopped is not None:  # only this reason is reported
            summary.spent_allowance = None
        if summary.spent_allowance is not None:
            summary.ending = ALLOWANCE_SPENT
        if stopped is None and not summary.waiting:
            self._run_record.end(summary.ending)
        summary.run_id = self._run_record.id
        summary.usage = self._run_record.usage()
