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
from mast_tui.judges.runner import CANCELLED, Progress, RunSummary, TraceStatus, finding_indices
from mast_tui.labels import QuoteCounts
from mast_tui.traces.library import read_fully
from mast_tui.traces.model import Trace
from mast_tui.workspace import Usage, Workspace, WorkspaceError

LEAST_READ_AHEAD: Final = 2
READ_AHEAD: Final = 2
"""Beside each so many traces that are asked about one more is opened, at least so many in all: its
request is ready when an answer comes."""

ALLOWANCE_SPENT: Final = "allowance spent"
"""The ending of a run that used up what it was allowed."""

CHECKED_AGAIN: Final = "kept answers were checked again, by the rules of today"
"""The remark on traces that were judged before."""

MOST_IN_A_ROW: Final = 3
"""So many traces that fail in a row for one reason end a run: others would fail alike."""

MOST_SUSPECTS: Final = 64
"""So many traces that may have to be judged anew are kept at hand."""

_NUMBERS: Final = re.compile(r"\d[\d,.]*")
_OF_SHORTENED: Final = ("shortened", "the task is shortened")
"""How remarks on what was not shown whole begin; they name spans, so each is another."""

Tell = Callable[[str], None]
Connect = Callable[[Setup, Usage, Tell, Tell], AbstractAsyncContextManager[ModelClient]]
"""Opens the way to the model: what was spent already counts, and it is told in words why requests
wait and what the server does not take."""


def _nothing(*_: object) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Watch:
    """Who wants to know how a run comes along; everything is called in the thread of its loop.

    ``on_trace`` is told of each trace that is through, ``on_use`` what this run has used so far,
    ``on_wait`` why requests wait. With ``on_part`` what was found is kept, and told by the trace's
    id, after each window already. ``on_cancelled`` is told what came of a run until it was
    cancelled.
    """

    on_trace: Callable[[Progress], object] = _nothing
    on_use: Callable[[Usage], object] = _nothing
    on_wait: Tell = _nothing
    on_part: Callable[[str, Judgement], object] | None = None
    on_cancelled: Callable[[ModelRunSummary], object] = _nothing


@dataclass(slots=True)
class ModelRunSummary(RunSummary):
    """What came of a run, as far as it is.

    ``usage`` is that of the whole run, also of what came before it was broken off; ``asked`` are
    the requests answered now. ``quotes`` counts the quotes on which the suggestions rest, by how
    they were found. ``shortened`` counts the traces of which not all was shown, ``remarks`` those
    of which each other thing was said. ``ending`` says why the run is over before its traces are,
    ``allowance`` what was used by then; one that was ``stopped`` can go on.
    ``waiting`` counts the traces whose answers are to come with another command.
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
    """Let a model judge traces, several at once, and keep each judgement in one transaction.

    A trace that this judge has judged with as many spans is passed over. A run of the same judge
    that was broken off goes on, within what is left of its allowance; answers that were kept are
    not asked for again. With ``again`` all traces are judged anew and everything is asked anew.
    ``traces`` is drawn from in a thread, one trace after the other. A trace that cannot be read,
    or gets no answer, is noted and the run goes on. Cancelling the task keeps what was answered.
    With ``deferred`` answers come with other commands: what one trace teaches does not change what
    is asked about others, and traces that fail alike stop nothing, as nothing more is paid.
    Raises ``WorkspaceError`` where the workspace fails, ``RunStops`` where another process has
    this judge at work in it.
    """
    run = _Run(setup, workspace, watch or Watch(), again, deferred)
    with run_lock(workspace.path, setup.judge):
        return await run.over(traces, connect or connect_to_server)


@asynccontextmanager
async def connect_to_server(
    setup: Setup,
    spent: Usage,
    on_wait: Tell = _nothing,
    on_remark: Tell = _nothing,
    budget: Budget | None = None,
) -> AsyncIterator[ModelClient]:
    """A client of the server that the setup names, for as long as it is needed.

    With a ``budget`` that says what may be spent, in the place of the setup's.

    Raises:
        RunStops: The address may not be asked, or there is no key for it.
    """
    # It brings the library, slow to import, without which answers that are at hand are read.
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
class _AtHand:
    """A trace that was read to its end and looked for, with its first question where it has to be
    asked about; ``problem`` says why that failed."""

    trace: Trace
    begun: Begun
    trace_judge: TraceJudge | None
    problem: str | None


class _NothingAsked(ModelClient):
    """Has no answer to what is not kept."""

    async def ask(
        self, request: Request, answer_tokens: SupportsInt, correction: Correction | None = None
    ) -> Reply:
        """Put it off."""
        raise Deferred("nothing is asked")


class _Feed:
    """Traces one after the other, each read to its end, in a thread of its own."""

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

    async def next(self) -> _AtHand | None:
        """The next trace; None after the last."""
        async with self._turn:
            if self._over:
                return None
            at_hand = await asyncio.get_running_loop().run_in_executor(self._thread, self._next)
            # A trace may have been put back meanwhile.
            self._over = self._ended or (at_hand is None and not self._put_back)
            return at_hand

    def put_back(self, trace: Trace) -> None:
        """Hand a trace out once more, unless the feed was ended; the caller draws again itself."""
        self._put_back.append(trace)
        self._over = self._ended

    def end(self) -> None:
        """Hand out no more."""
        self._over = self._ended = True

    def close(self) -> None:
        """Read no more; a trace that is being read is read to its end by the thread alone."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _next(self) -> _AtHand | None:
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
        return _AtHand(trace, begun, trace_judge, problem)


def _words_of(error: TraceFails | OSError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


class _Run:
    """A run as far as it has come."""

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
        """Traces at hand that were judged by requests which may have been cut."""
        self._failing = ""
        self._in_a_row = 0
        """How many traces have failed one after the other, and as what."""
        self._fail_alike: str | None = None
        """The reason for which as many failed in a row as end a run."""

    async def over(self, traces: Iterable[Trace], connect: Connect) -> ModelRunSummary:
        """Judge all traces, and sum up."""
        stopped: str | None = None
        try:
            self._record = await self._writer.do(self._open)
            self._writer.together = self._record.together
            self._so_far.usage = spent = self._record.spent
            self._so_far.resumed = self._record.before is not None
            self._feed = feed = _Feed(traces, self._record.begin, self._trace_judge)
            try:
                way = connect(self._setup, spent, self._watch.on_wait, self._on_remark)
                async with way as asks:
                    await self._all(feed, asks)
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

    async def _all(self, feed: _Feed, asks: ModelClient) -> None:
        asked_at_once = self._setup.concurrency
        ready = max(LEAST_READ_AHEAD, asked_at_once // READ_AHEAD)
        workers = [
            asyncio.create_task(self._work(feed, asks)) for _ in range(asked_at_once + ready)
        ]
        try:
            done, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
        for worker in done:
            worker.result()

    async def _work(self, feed: _Feed, asks: ModelClient) -> None:
        while (at_hand := await feed.next()) is not None:
            try:
                self._watch.on_trace(self._so_far.add(await self._one(at_hand, asks)))
            except Deferred:
                self._so_far.waiting += 1
            except AllowanceSpent as error:
                # What others have asked already is paid for: their answers are waited for.
                self._so_far.allowance = str(error)
                feed.end()
            else:
                if self._fail_alike is not None:
                    raise RunStops(
                        f"{MOST_IN_A_ROW} traces in a row failed for the same reason:"
                        f" {self._fail_alike}"
                    )
            del at_hand

    async def _one(self, at_hand: _AtHand, asks: ModelClient) -> Progress:
        """Judge one trace and keep what came of it."""
        begun, trace_judge = at_hand.begun, at_hand.trace_judge
        if begun.new:  # not by the thread that reads, which would wait for each commit
            begun = await self._writer.do(partial(self._record.register, begun))
        progress = partial(Progress, 0, begun.trace_id, at_hand.trace.path)
        if begun.stale and trace_judge is not None:
            await self._check_again(trace_judge, begun, at_hand.trace)
        if begun.stale or (at_hand.problem is None and trace_judge is None):
            return progress(TraceStatus.KNOWN)
        try:
            if trace_judge is None:
                raise TraceFails(at_hand.problem or "")
            result = await self._ask(trace_judge, begun, asks)
            if self._record.is_to_be_asked_anew(begun.trace_id):
                result = await self._ask(trace_judge, begun, asks)
        except (TraceFails, OSError) as error:
            reason = _words_of(error)
            is_first_failure = not self._record.failed_before(begun.trace_id)
            await self._writer.do(partial(self._record.note_failed, begun.trace_id, reason))
            if isinstance(error, Unanswered) and is_first_failure:
                # Once it is kept, so that the failure that ends the run is told as well.
                self._note_unanswered(reason)
            return progress(TraceStatus.FAILED, problem=reason)
        indices = finding_indices(at_hand.trace, result.judgement.findings)
        count = await self._writer.do(partial(self._record.store, begun, result, indices))
        self._note(result)
        self._judged_now.add(begun.trace_id)
        if self._record.is_suspect(begun.trace_id) and len(self._suspects) < MOST_SUSPECTS:
            self._suspects[begun.trace_id] = at_hand.trace
        self._in_a_row = 0
        return progress(TraceStatus.JUDGED, count)

    async def _check_again(self, trace_judge: TraceJudge, begun: Begun, trace: Trace) -> None:
        """Read the kept answers about a trace by the rules of today; nothing is asked."""
        answers = self._answers_about(begun)
        try:
            result = await trace_judge.judge(_NothingAsked(), answers, self._room, None)
        except (Deferred, TraceFails, OSError):
            return  # what stands was right by the rules of its time
        indices = finding_indices(trace, result.judgement.findings)
        await self._writer.do(partial(self._record.store, begun, result, indices))
        self._so_far.remarks[CHECKED_AGAIN] += 1

    def _note_unanswered(self, reason: str) -> None:
        """Count how many traces have failed in a row for one reason, whatever their numbers."""
        if self._deferred:
            return
        kind = _NUMBERS.sub("0", reason)
        self._in_a_row = self._in_a_row + 1 if kind == self._failing else 1
        self._failing = kind
        if self._in_a_row == MOST_IN_A_ROW:
            self._fail_alike = reason

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
        """Keep what was found so far, and tell of it once it is kept."""
        loop, tell = asyncio.get_running_loop(), self._watch.on_part

        def keep() -> None:
            self._record.store_part(trace_id, judgement)
            if tell is not None:
                loop.call_soon_threadsafe(tell, trace_id, judgement)

        self._writer.hand_over(keep)

    def _on_reply(self, reply: Reply) -> None:
        so_far = self._so_far
        so_far.usage += reply.usage
        so_far.asked += 1
        so_far.form = reply.form
        self._watch.on_use(so_far.usage)

    def _on_taken_back(self, trace: TakenBack) -> None:
        """Judge a trace anew where it is at hand, else count it as failed."""
        so_far = self._so_far
        if trace.trace_id in self._judged_now:
            self._judged_now.discard(trace.trace_id)
            so_far.traces[TraceStatus.JUDGED] -= 1
            so_far.by_mode.subtract(label.mode for label in trace.suggestions)
            so_far.quotes -= QuoteCounts.of(label.evidence for label in trace.suggestions)
        at_hand = self._suspects.pop(trace.trace_id, None)
        if at_hand is not None and self._feed is not None:
            self._feed.put_back(at_hand)
            return
        failed = Progress(0, trace.trace_id, trace.path, TraceStatus.FAILED, problem=trace.problem)
        self._watch.on_trace(so_far.add(failed))

    def _on_remark(self, remark: str) -> None:
        self._so_far.remarks[remark] += 1
        self._watch.on_wait(remark)

    def _note(self, result: TraceResult) -> None:
        so_far = self._so_far
        so_far.by_mode.update(finding.mode for finding in result.judgement.findings)
        cut = {remark for remark in result.remarks if remark.startswith(_OF_SHORTENED)}
        so_far.shortened += bool(cut)
        so_far.remarks.update(set(result.remarks) - cut)
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
