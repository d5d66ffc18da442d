"""Many traces judged by a model at once: resumable, in bounded memory, within an allowance."""

from __future__ import annotations

import asyncio
import re
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final, SupportsInt

from mast_tui.judges.llm.client.budget import Budget
from mast_tui.judges.llm.client.rate_limiter import FIRST, RAMP, RateLimiter
from mast_tui.judges.llm.errors import AllowanceSpent, Deferred, RunStops, TraceFails, Unanswered
from mast_tui.judges.llm.request import Correction, ModelClient, Reply, Request
from mast_tui.judges.llm.run.judging import TraceJudge, TraceResult
from mast_tui.judges.llm.run.request_loop import AnswerRoom
from mast_tui.judges.llm.run.run_journal import Begun, KeptAnswers, RunRecord, TakenBack
from mast_tui.judges.llm.run.run_lock import run_lock
from mast_tui.judges.llm.run.setup import Setup
from mast_tui.judges.llm.run.writer_thread import WriterThread
from mast_tui.judges.protocol import Judgement
from mast_tui.judges.runner import (
    CANCELLED,
    Progress,
    RunSummary,
    TraceStatus,
    finding_indices,
)
from mast_tui.labels import QuoteCounts
from mast_tui.traces.library import read_fully
from mast_tui.traces.model import Trace
from mast_tui.workspace import Usage, Workspace, WorkspaceError

LEAST_READ_AHEAD: Final = 2
READ_AHEAD: Final = 2
"""For each so many traces that are judged at once one more is read ahead, and at least so many in
all, so that a request is ready when an answer comes."""

ALLOWANCE_SPENT: Final = "allowance spent"
"""The ending of a run that used up its allowance."""

CHECKED_AGAIN: Final = "kept answers were checked again, by the rules of today"
"""The remark on known traces whose quotes were searched again."""

MOST_IN_A_ROW: Final = 3
"""The number of traces that fail in a row for one reason and so end a run."""

MOST_SUSPECTS: Final = 64
"""The most traces that are kept open because they may have to be judged again."""

_NUMBERS: Final = re.compile(r"\d[\d,.]*")
_OF_SHORTENED: Final = ("shortened", "the task is shortened")
"""The beginnings of remarks on shortened texts, which name spans and so differ by trace."""

Report = Callable[[str], None]
Connect = Callable[[Setup, Usage, Report, Report], AbstractAsyncContextManager[ModelClient]]
"""Opens a client of the model, given the usage so far and two functions: one is called with the
reason when requests wait, the other with settings that the server does not accept."""


def _nothing(*_: object) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Watch:
    """The observers of a run, which are called in the thread of its event loop.

    ``on_trace`` is called after each trace, ``on_use`` with the usage so far, ``on_wait`` with the
    reason when requests wait. With ``on_part`` the findings are stored after each window, and it is
    called with the id of the trace and the findings. ``on_cancelled`` is called with the counts of
    a cancelled run.
    """

    on_trace: Callable[[Progress], object] = _nothing
    on_use: Callable[[Usage], object] = _nothing
    on_wait: Report = _nothing
    on_part: Callable[[str, Judgement], object] | None = None
    on_cancelled: Callable[[ModelRunSummary], object] = _nothing


@dataclass(slots=True)
class ModelRunSummary(RunSummary):
    """The counts of a run so far.

    ``usage`` is that of the whole run, also before it was continued; ``asked`` counts the requests
    answered now. ``quotes`` counts the quotes of the suggestions by their matches. ``shortened``
    counts the traces with shortened texts, ``remarks`` the traces with each other remark.
    ``ending`` is the reason of a run that ended before its traces, ``allowance`` its usage then; a
    run that was ``stopped`` can be continued. ``waiting`` counts the traces whose answers come with
    another command.
    """

    usage: Usage = field(default_factory=Usage)
    asked: int = 0
    quotes: QuoteCounts = field(default_factory=QuoteCounts)
    form: str | None = None
    shortened: int = 0
    remarks: Counter[str] = field(default_factory=Counter)
    resumed: bool = False
    ending: str | None = None
    allowance: str | None = None
    waiting: int = 0


async def run_model_judge(
    setup: Setup,
    traces: Iterable[Trace],
    workspace: Workspace,
    *,
    again: bool = False,
    watch: Watch | None = None,
    connect: Connect | None = None,
    deferred: bool = False,
) -> ModelRunSummary:
    """Judge traces with a model, several at once; each judgement is stored in one transaction.

    A trace that this judge has judged with the same number of spans is skipped. An unfinished run
    of the same judge is continued within its allowance, and stored answers are not requested again.
    A trace that cannot be read, or gets no answer, is recorded, and the run continues. A cancelled
    task keeps all answers.

    Args:
        setup: The judge and its server.
        traces: The traces, which are read in a thread, one after the other.
        workspace: The workspace in which answers and suggestions are stored.
        again: Whether to judge all traces again, without stored answers.
        watch: The observers of the run.
        connect: Opens a client of the model.
        deferred: Whether answers come with other commands. Then one trace does not change the
            requests on others, and traces that fail for one reason do not end the run.

    Raises:
        WorkspaceError: The workspace fails.
        RunStops: Another process runs this judge on the workspace.
    """
    run = _Run(setup, workspace, watch or Watch(), again, deferred)
    with run_lock(workspace.path, setup.judge):
        return await run.judge_all(traces, connect or connect_to_server)


@asynccontextmanager
async def connect_to_server(
    setup: Setup,
    spent: Usage,
    on_wait: Report = _nothing,
    on_remark: Report = _nothing,
    budget: Budget | None = None,
) -> AsyncIterator[ModelClient]:
    """Open a client of the setup's server.

    Args:
        setup: The judge and its server.
        spent: The usage of the run so far.
        on_wait: Called with the reason when requests wait.
        on_remark: Called with settings that the server does not accept.
        budget: The budget, if it is not that of the setup.

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
    """A trace that was read to its end, with its state and, unless it is known, its judge.

    ``problem`` is the reason if it cannot be judged.
    """

    trace: Trace
    begun: Begun
    trace_judge: TraceJudge | None
    problem: str | None


class _NothingAsked(ModelClient):
    """A client without answers, for traces whose answers are stored."""

    async def ask(
        self, request: Request, answer_tokens: SupportsInt, correction: Correction | None = None
    ) -> Reply:
        """Defer the request."""
        raise Deferred("nothing is asked")


class _Feed:
    """The traces of a run, each read to its end, one after the other in a thread."""

    def __init__(
        self,
        traces: Iterable[Trace],
        begin: Callable[[Trace], Begun],
        read: Callable[[Trace], TraceJudge],
    ) -> None:
        self._traces: Iterator[Trace] = iter(traces)
        self._begin = begin
        self._read = read
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="traces")
        self._turn = asyncio.Lock()
        self._over = False
        self._ended = False
        self._put_back: deque[Trace] = deque()

    async def next(self) -> _LoadedTrace | None:
        """Return the next trace, or None after the last."""
        async with self._turn:
            if self._over:
                return None
            loaded = await asyncio.get_running_loop().run_in_executor(self._thread, self._next)
            # A trace may have been put back meanwhile.
            self._over = self._ended or (loaded is None and not self._put_back)
            return loaded

    def put_back(self, trace: Trace) -> None:
        """Return a trace once more, unless the feed has ended; the caller calls ``next`` again."""
        self._put_back.append(trace)
        self._over = self._ended

    def end(self) -> None:
        """Return no more traces."""
        self._over = True
        self._ended = True

    def close(self) -> None:
        """Read no more traces; the thread finishes the current one by itself."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _next(self) -> _LoadedTrace | None:
        trace = self._put_back.popleft() if self._put_back else next(self._traces, None)
        if trace is None:
            return None
        problem = None
        try:
            read_fully(trace)
        except OSError as error:
            problem = _words_of(error)
        begun = self._begin(trace)
        trace_judge = None
        try:
            if problem is None and (begun.stale or not begun.known):
                trace_judge = self._read(trace)
        except (TraceFails, OSError) as error:
            problem = _words_of(error)
        return _LoadedTrace(trace, begun, trace_judge, problem)


def _words_of(error: TraceFails | OSError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


class _Run:
    """The state of a run."""

    def __init__(
        self, setup: Setup, workspace: Workspace, watch: Watch, again: bool, deferred: bool
    ) -> None:
        taxonomy_modes = {mode.slug for mode in setup.taxonomy.modes}
        if not taxonomy_modes.intersection(setup.prompt.modes):
            raise WorkspaceError(f"{setup.judge} knows no mode of {setup.taxonomy.ref}")
        self._setup = setup
        self._workspace = workspace
        self._watch = watch
        self._again = again
        self._writer = WriterThread()
        self._feed: _Feed | None = None
        self._so_far = ModelRunSummary(setup.judge, setup.taxonomy.ref)
        self._room = AnswerRoom(setup.parameters.answer_tokens, learns=not deferred)
        self._deferred = deferred
        self._judged_now: set[str] = set()
        self._suspects: dict[str, Trace] = {}
        """Open traces that were judged by requests which may have been truncated."""
        self._last_failure = ""
        self._failures_in_a_row = 0
        """The number of traces that failed in a row for the last reason."""
        self._common_failure: str | None = None
        """The reason for which enough traces failed in a row to end the run."""

    async def judge_all(self, traces: Iterable[Trace], connect: Connect) -> ModelRunSummary:
        """Judge all traces, and return the counts of the run."""
        stopped: str | None = None
        try:
            self._record = await self._writer.do(self._open)
            self._writer.together = self._record.together
            self._so_far.usage = spent = self._record.spent
            self._so_far.resumed = self._record.before is not None
            self._feed = feed = _Feed(traces, self._record.begin, self._trace_judge)
            try:
                connection = connect(self._setup, spent, self._watch.on_wait, self._on_remark)
                async with connection as client:
                    await self._judge_feed(feed, client)
            except RunStops as error:
                stopped = str(error)
            except asyncio.CancelledError:
                await self._writer.do(partial(self._sum_up, CANCELLED))
                self._watch.on_cancelled(self._so_far)
                raise
            await self._writer.do(partial(self._sum_up, stopped))
            return self._so_far
        finally:
            if self._feed is not None:
                self._feed.close()
            await self._writer.close()

    def _open(self) -> RunRecord:
        self._workspace.add_taxonomy(self._setup.taxonomy)
        return RunRecord(self._setup, self._workspace, again=self._again)

    async def _judge_feed(self, feed: _Feed, client: ModelClient) -> None:
        concurrency = self._setup.concurrency
        ready = max(LEAST_READ_AHEAD, concurrency // READ_AHEAD)
        workers = [
            asyncio.create_task(self._work(feed, client)) for _ in range(concurrency + ready)
        ]
        try:
            done, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
        for worker in done:
            worker.result()

    async def _work(self, feed: _Feed, client: ModelClient) -> None:
        while (loaded := await feed.next()) is not None:
            try:
                self._watch.on_trace(self._so_far.add(await self._judge(loaded, client)))
            except Deferred:
                self._so_far.waiting += 1
            except AllowanceSpent as error:
                # The requests of other traces are paid for, so the run waits for their answers.
                self._so_far.allowance = str(error)
                feed.end()
            else:
                if self._common_failure is not None:
                    raise RunStops(
                        f"{MOST_IN_A_ROW} traces in a row failed for the same reason:"
                        f" {self._common_failure}"
                    )
            del loaded

    async def _judge(self, loaded: _LoadedTrace, client: ModelClient) -> Progress:
        """Judge one trace and store the result."""
        begun = loaded.begun
        trace_judge = loaded.trace_judge
        if begun.new:  # not in the thread that reads, which would wait for each commit
            begun = await self._writer.do(partial(self._record.register, begun))
        progress = partial(Progress, 0, begun.trace_id, loaded.trace.path)
        if begun.stale and trace_judge is not None:
            await self._check_again(trace_judge, begun, loaded.trace)
        if begun.stale or (loaded.problem is None and trace_judge is None):
            return progress(TraceStatus.KNOWN)
        try:
            if trace_judge is None:
                raise TraceFails(loaded.problem or "")
            result = await self._ask(trace_judge, begun, client)
            if self._record.is_to_be_asked_anew(begun.trace_id):
                result = await self._ask(trace_judge, begun, client)
        except (TraceFails, OSError) as error:
            reason = _words_of(error)
            is_first_failure = not self._record.failed_before(begun.trace_id)
            await self._writer.do(partial(self._record.note_failed, begun.trace_id, reason))
            if isinstance(error, Unanswered) and is_first_failure:
                # After the record, so that the failure that ends the run is reported too.
                self._count_failure(reason)
            return progress(TraceStatus.FAILED, problem=reason)
        indices = finding_indices(loaded.trace, result.judgement.findings)
        count = await self._writer.do(partial(self._record.store, begun, result, indices))
        self._note(result)
        self._judged_now.add(begun.trace_id)
        if self._record.is_suspect(begun.trace_id) and len(self._suspects) < MOST_SUSPECTS:
            self._suspects[begun.trace_id] = loaded.trace
        self._failures_in_a_row = 0
        return progress(TraceStatus.JUDGED, count)

    async def _check_again(self, trace_judge: TraceJudge, begun: Begun, trace: Trace) -> None:
        """Read the stored answers on a trace again, with the current search; send nothing."""
        answers = self._answers_about(begun)
        try:
            result = await trace_judge.judge(_NothingAsked(), answers, self._room, None)
        except (Deferred, TraceFails, OSError):
            return  # the stored judgement stays
        indices = finding_indices(trace, result.judgement.findings)
        await self._writer.do(partial(self._record.store, begun, result, indices))
        self._so_far.remarks[CHECKED_AGAIN] += 1

    def _count_failure(self, reason: str) -> None:
        """Count the traces that fail in a row for one reason; numbers in it do not count."""
        if self._deferred:
            return
        failure = _NUMBERS.sub("0", reason)
        is_same = failure == self._last_failure
        self._failures_in_a_row = self._failures_in_a_row + 1 if is_same else 1
        self._last_failure = failure
        if self._failures_in_a_row == MOST_IN_A_ROW:
            self._common_failure = reason

    def _trace_judge(self, trace: Trace) -> TraceJudge:
        setup = self._setup
        return TraceJudge(trace, setup.prompt, setup.parameters, setup.redaction)

    async def _ask(self, trace_judge: TraceJudge, begun: Begun, asks: ModelClient) -> TraceResult:
        answers = self._answers_about(begun)
        on_part = None
        if self._watch.on_part is not None:
            on_part = partial(self._on_part, begun.trace_id)
        return await trace_judge.judge(asks, answers, self._room, on_part)

    def _answers_about(self, begun: Begun) -> KeptAnswers:
        return KeptAnswers(
            self._record, self._writer, begun.trace_id, self._on_reply, self._on_taken_back
        )

    def _on_part(self, trace_id: str, judgement: Judgement) -> None:
        """Store the findings so far, and call the observer once they are stored."""
        loop = asyncio.get_running_loop()
        on_part = self._watch.on_part

        def store() -> None:
            self._record.store_part(trace_id, judgement)
            if on_part is not None:
                loop.call_soon_threadsafe(on_part, trace_id, judgement)

        self._writer.hand_over(store)

    def _on_reply(self, reply: Reply) -> None:
        so_far = self._so_far
        so_far.usage += reply.usage
        so_far.asked += 1
        so_far.form = reply.form
        self._watch.on_use(so_far.usage)

    def _on_taken_back(self, trace: TakenBack) -> None:
        """Judge a trace again if it is open, else count it as failed."""
        so_far = self._so_far
        if trace.trace_id in self._judged_now:
            self._judged_now.discard(trace.trace_id)
            so_far.traces[TraceStatus.JUDGED] -= 1
            so_far.by_mode.subtract(label.mode for label in trace.suggestions)
            so_far.quotes -= QuoteCounts.count(label.evidence for label in trace.suggestions)
        suspect = self._suspects.pop(trace.trace_id, None)
        if suspect is not None and self._feed is not None:
            self._feed.put_back(suspect)
            return
        failed = Progress(0, trace.trace_id, trace.path, TraceStatus.FAILED, problem=trace.problem)
        self._watch.on_trace(so_far.add(failed))

    def _on_remark(self, remark: str) -> None:
        self._so_far.remarks[remark] += 1
        self._watch.on_wait(remark)

    def _note(self, result: TraceResult) -> None:
        so_far = self._so_far
        so_far.by_mode.update(finding.mode for finding in result.judgement.findings)
        shortened = {remark for remark in result.remarks if remark.startswith(_OF_SHORTENED)}
        so_far.shortened += bool(shortened)
        so_far.remarks.update(set(result.remarks) - shortened)
        so_far.quotes += result.quotes

    def _sum_up(self, stopped: str | None) -> None:
        so_far = self._so_far
        so_far.stopped = stopped
        if stopped is not None:
            so_far.allowance = None
        so_far.ending = None if so_far.allowance is None else ALLOWANCE_SPENT
        if stopped is None and not so_far.waiting:
            self._record.end(so_far.ending)
        so_far.run_id = self._record.id
        so_far.usage = self._record.usage()
