"""The record of a run in the workspace: judged traces, stored answers, suggestions.

One thread writes to the workspace, so that commits do not delay requests.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from msgspec import structs

from mast_tui.judges.llm.request import Finish, Form, Reply, is_context_size, was_truncated
from mast_tui.judges.llm.run.judging import TraceResult
from mast_tui.judges.llm.run.setup import Setup
from mast_tui.labels import Judgement, Label
from mast_tui.traces.model import Trace
from mast_tui.workspace import (
    Asked,
    Run,
    RunTrace,
    TraceRecord,
    Usage,
    Workspace,
    store_judgement,
)
from mast_tui.workspace.records import SpanIndex

T = TypeVar("T")

Together = Callable[[], AbstractContextManager[object]]
"""A function that returns a context in which all writes are one transaction."""


@dataclass(frozen=True, slots=True)
class _Task:
    """A piece of work with the future of its result; ``alone`` if it needs its own transaction."""

    work: Callable[[], Any]
    result: Future[Any]
    alone: bool


class WriterThread:
    """A thread that does work in the order of arrival, for the tasks of one event loop.

    All work is done, even if the waiting task is cancelled, so that a paid answer is stored.
    Waiting work shares a transaction. If that fails, each piece is done again alone.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="workspace")
        self.together: Together | None = None
        """A function for shared transactions; None to do all work alone."""
        self._queued_tasks: deque[_Task] = deque()

    async def do(self, work: Callable[[], T]) -> T:
        """Do work, and return its result once it is stored, or raise its exception."""
        future = self._queue_work(work, alone=self.together is None)
        return await asyncio.wrap_future(future)

    def hand_over(self, work: Callable[[], object]) -> None:
        """Queue work with its own transaction, and ignore its exceptions."""
        self._queue_work(work, alone=True)

    async def close(self) -> None:
        """Wait until all work is done."""
        await asyncio.to_thread(self._thread.shutdown)

    def _queue_work(self, work: Callable[[], T], *, alone: bool) -> Future[T]:
        """Queue work, and return the future of its result; ``alone`` work shares no transaction."""
        task = _Task(work, Future(), alone)
        # Running work must not be cancelled with the waiting task.
        task.result.set_running_or_notify_cancel()
        self._queued_tasks.append(task)
        self._thread.submit(self._do_queued)
        return task.result

    def _do_queued(self) -> None:
        """Do the queued tasks that may share a transaction, or the next task alone."""
        tasks = self._take_tasks()  # empty if an earlier call did the work
        if len(tasks) > 1 and self._do_together(tasks):
            return
        for task in tasks:
            _do_alone(task)

    def _take_tasks(self) -> list[_Task]:
        """Remove the next task from the queue, with the tasks that may share its transaction."""
        tasks: list[_Task] = []
        while self._queued_tasks:
            if tasks and (self._queued_tasks[0].alone or tasks[0].alone):
                break
            tasks.append(self._queued_tasks.popleft())
        return tasks

    def _do_together(self, tasks: Sequence[_Task]) -> bool:
        """Do tasks in one transaction; return False, without any result, if it fails."""
        assert self.together is not None
        try:
            with self.together():
                results = [task.work() for task in tasks]
        except BaseException:  # noqa: BLE001 - each task is done again alone
            return False
        for task, result in zip(tasks, results, strict=True):
            task.result.set_result(result)
        return True


def _do_alone(task: _Task) -> None:
    """Do one task, and set its result or exception."""
    try:
        result = task.work()
    except BaseException as error:  # noqa: BLE001 - raised again in the waiting task
        task.result.set_exception(error)
    else:
        task.result.set_result(result)


IGNORES_STORED_ANSWERS: Final = "again"
"""The note of a run that ignores stored answers."""


@dataclass(frozen=True, slots=True)
class StartedTrace:
    """A trace with its id in the workspace, and its state for this judge.

    Attributes:
        record: The trace as it is now.
        trace_id: The id in the workspace; for a new trace, its own id.
        judged: True if the trace need not be judged again.
        new: True if the trace is not registered in the workspace.
        grown: True if the trace was judged when it was shorter.
    """

    record: TraceRecord
    trace_id: str
    judged: bool
    new: bool = False
    grown: bool = False


class JudgedBefore:
    """The traces that this judge judged, before this run and in it."""

    def __init__(self, setup: Setup, workspace: Workspace) -> None:
        self._workspace = workspace
        # A trace with a problem is judged again, so its judgement does not count.
        failed_traces = {
            (run.id, trace.trace_id)
            for run in workspace.runs()
            for trace in run.traces
            if trace.problem is not None
        }
        self._judged_ids = {
            judgement.trace_id
            for judgement in workspace.judgements(
                annotator=setup.judge, taxonomy=setup.taxonomy.ref
            )
            if (judgement.run, judgement.trace_id) not in failed_traces
        }

    def find(self, record: TraceRecord) -> TraceRecord | None:
        """Return the workspace's record of a judged trace; None for other traces."""
        earlier_record = self._workspace.find_trace(record) if self._judged_ids else None
        if earlier_record is None or earlier_record.trace_id not in self._judged_ids:
            return None
        return earlier_record

    def has(self, record: TraceRecord) -> bool:
        """Check whether a trace was judged with the same number of spans."""
        earlier_record = self.find(record)
        return earlier_record is not None and not earlier_record.has_grown(record)

    def add(self, trace_id: str) -> None:
        self._judged_ids.add(trace_id)

    def remove(self, trace_id: str) -> bool:
        """Record that a trace must be judged again; return whether it was judged."""
        was_judged = trace_id in self._judged_ids
        self._judged_ids.discard(trace_id)
        return was_judged


@dataclass(frozen=True, slots=True)
class WithdrawnTrace:
    """A trace with a withdrawn judgement: its path, the reason, and the suggestions."""

    trace_id: str
    path: Path
    problem: str
    suggestions: tuple[Label, ...]


class RunRecord:
    """The record of a run in the workspace.

    It continues the latest unfinished run of the same judge with the same settings.

    Args:
        setup: The judge and its settings.
        workspace: The workspace.
        again: True to ignore the judgements and answers of earlier runs.
    """

    def __init__(self, setup: Setup, workspace: Workspace, *, again: bool) -> None:
        self._setup = setup
        self._workspace = workspace
        self._judges_again = again
        self._note = IGNORES_STORED_ANSWERS if again else ""
        self._taxonomy_ref = setup.taxonomy.ref
        self.judge = setup.judge
        self._judged_before = JudgedBefore(setup, workspace)
        self._answer_keys = set(workspace.answer_keys())
        self.previous_run = self._unfinished_run()
        self.id: str | None = None if self.previous_run is None else self.previous_run.id
        self._answer_form: str | None = None
        traces = () if self.previous_run is None else self.previous_run.traces
        # The unfinished run judged these traces, so this run skips them.
        self._resumed_trace_ids = frozenset(
            trace.trace_id for trace in traces if trace.problem is None
        )
        self._failed_trace_ids = frozenset(
            trace.trace_id for trace in traces if trace.problem is not None
        )
        self._withdrawn_traces: set[str] = set()
        """The traces with withdrawn answers, which must be requested again."""
        self._suspect_traces: set[str] = set()
        """The traces with a request that the server may have truncated. Its token count is a usual
        context size."""
        self._answers_by_token_count: dict[int, list[tuple[Asked, int]]] = defaultdict(list)
        """Pairs of an answer and the estimated tokens of its request, by the server's token count.
        The server may have truncated these requests."""

    @property
    def spent(self) -> Usage:
        """The usage of the run before it was continued."""
        return Usage() if self.previous_run is None else self.previous_run.usage

    def has_failed_before(self, trace_id: str) -> bool:
        """Check whether a trace failed before the run was continued."""
        return trace_id in self._failed_trace_ids

    def _unfinished_run(self) -> Run | None:
        """Return the run to continue, or None."""
        run = self._workspace.unfinished_run(self.judge, self._taxonomy_ref)
        if run is None or run.settings is None or run.note != self._note:
            return None
        return run if _has_settings(run, self._setup) else None

    def begin(self, trace: Trace) -> StartedTrace:
        """Return the state of a trace that was read to its end."""
        record = TraceRecord.from_trace(trace)
        earlier_record = self._judged_before.find(record)
        if earlier_record is None:
            return StartedTrace(record, record.trace_id, judged=False, new=True)
        # The new length is stored only with the new judgement. Otherwise, after an interruption,
        # the old judgement would seem to be of the longer trace.
        grown = earlier_record.has_grown(record)
        # A run that judges all traces again skips the traces that it judged before a pause.
        may_count = not self._judges_again or earlier_record.trace_id in self._resumed_trace_ids
        return StartedTrace(
            record, earlier_record.trace_id, judged=may_count and not grown, grown=grown
        )

    def register(self, started: StartedTrace) -> StartedTrace:
        """Register a new trace in the workspace, and return it with its id."""
        if not started.new:
            return started
        # Outside a transaction, the workspace would first search for the trace.
        with self._workspace.transaction():
            trace_id = self._workspace.register_trace(started.record)
        return replace(started, trace_id=trace_id, new=False)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Make all writes in a context one transaction; an error undoes all of them."""
        # An error must also undo the changes of these fields in the transaction.
        saved_state = self.id, self._answer_form
        try:
            with self._workspace.transaction():
                yield
        except BaseException:
            self.id, self._answer_form = saved_state
            raise

    def run_id(self) -> str:
        """Return the id of the run; the first call records a new run."""
        if self.id is None:
            self.id = self._workspace.start_run(
                self.judge, self._taxonomy_ref, note=self._note, settings=self._setup.settings()
            )
        return self.id

    def may_know(self, key: str) -> bool:
        """Check without a query whether an answer may be stored for a key; safe in any thread."""
        return key in self._answer_keys

    def find(self, key: str) -> Reply | None:
        """Return the stored answer of a key, or None.

        A run that judges all traces again finds only its own answers.
        """
        stored_answer = self._workspace.find_answer(key)
        if stored_answer is None or (self._judges_again and stored_answer.run_id != self.id):
            return None
        return reply_from_record(stored_answer)

    def keep(self, trace_id: str, key: str, reply: Reply, usable: bool, sent: int) -> None:
        """Store an answer, and note whether the server may have truncated its request.

        Args:
            trace_id: The id of the trace.
            key: The hash of all that the answer depends on.
            reply: The answer.
            usable: True if the answer need not be requested again.
            sent: The estimated tokens of the request.
        """
        stored_answer = Asked(
            run_id=self.run_id(),
            trace_id=trace_id,
            key=key,
            answer=reply.text,
            finish=reply.finish,
            form=reply.form,
            tokens_in=reply.tokens_in,
            tokens_out=reply.tokens_out,
            usable=usable,
            counted=reply.counted,
            tokens_cached=reply.tokens_cached,
        )
        self._workspace.record_asked(stored_answer)
        if usable:
            self._answer_keys.add(key)
        # A count below the estimate may be the limit to which the server truncated the request.
        if usable and reply.counted and sent > reply.tokens_in:
            self._answers_by_token_count[reply.tokens_in].append(
                (structs.replace(stored_answer, answer=""), sent)
            )
            if is_context_size(reply.tokens_in):
                self._suspect_traces.add(trace_id)
        if reply.form != self._answer_form:
            self._workspace.set_run_answer_form(self.run_id(), reply.form)
            self._answer_form = reply.form

    def reject(self, key: str) -> None:
        """Mark the last answer of a key as unusable."""
        self._workspace.reject_answer(self.run_id(), key)

    def take_back(self, limit: int, sent: int) -> list[WithdrawnTrace]:
        """Withdraw the answers to truncated requests, and the judgements that use them.

        Args:
            limit: The token count of a truncated request. Other requests with this count may be
                truncated too.
            sent: The estimated tokens of the truncated request.

        Returns:
            The traces with withdrawn judgements, and their suggestions.
        """
        truncated_answers = [
            stored_answer
            for stored_answer, tokens in self._answers_by_token_count.pop(limit, [])
            if was_truncated(limit, tokens, sent)
        ]
        withdrawn_traces: list[WithdrawnTrace] = []
        with self._workspace.transaction():
            for stored_answer in truncated_answers:
                self._workspace.reject_answer(stored_answer.run_id, stored_answer.key)
                # This overflow note, a record that the request is too long, prevents sending it
                # again.
                note = structs.replace(
                    stored_answer, finish="length", tokens_in=0, tokens_out=0, tokens_cached=0
                )
                self._workspace.record_asked(note)
            for trace_id in dict.fromkeys(
                stored_answer.trace_id for stored_answer in truncated_answers
            ):
                self._withdrawn_traces.add(trace_id)
                if self._judged_before.remove(trace_id):
                    withdrawn_traces.append(self._withdraw_judgement(trace_id, limit))
        return withdrawn_traces

    def _withdraw_judgement(self, trace_id: str, tokens_read: int) -> WithdrawnTrace:
        """Remove the suggestions on a trace that the server truncated, and record it as failed."""
        labels = self._workspace.labels(
            trace_id=trace_id, annotator=self.judge, taxonomy=self._taxonomy_ref
        )
        problem = (
            f"it was judged although the server had read only {tokens_read:,} tokens of it; the "
            "same command judges it again"
        )
        # A judgement without verdicts replaces the earlier one.
        self.replace_suggestions(trace_id, Judgement(judged_modes=()))
        self.note_failed(trace_id, problem)
        path = self._workspace.trace(trace_id).path or Path()
        return WithdrawnTrace(trace_id, path, problem, labels)

    def is_suspect(self, trace_id: str) -> bool:
        """Check whether the server may have truncated a request on a trace."""
        return trace_id in self._suspect_traces

    def pop_withdrawn(self, trace_id: str) -> bool:
        """Check whether answers on a trace were withdrawn, and forget it."""
        has_withdrawn = trace_id in self._withdrawn_traces
        self._withdrawn_traces.discard(trace_id)
        return has_withdrawn

    def store(
        self, started: StartedTrace, result: TraceResult, indices: Mapping[str, SpanIndex]
    ) -> int:
        """Store a judgement and the record of its trace in one transaction.

        Args:
            started: The trace.
            result: The result of judging it.
            indices: The indices of the spans of the findings, by key.

        Returns:
            The number of suggestions.
        """
        judgement = result.judgement
        run_trace = RunTrace(
            started.trace_id,
            len(judgement.findings),
            quotes=result.quotes,
            windows=result.windows,
            remarks=result.remarks,
        )
        with self._workspace.transaction():
            if started.grown:
                # The new length is stored only with the new judgement (see ``begin``).
                self._workspace.register_trace(started.record)
            count = self.replace_suggestions(
                started.trace_id, judgement, trace=run_trace, indices=indices
            )
        self._judged_before.add(started.trace_id)
        return count

    def replace_suggestions(
        self,
        trace_id: str,
        judgement: Judgement,
        *,
        trace: RunTrace | None = None,
        partial: bool = False,
        indices: Mapping[str, SpanIndex] | None = None,
    ) -> int:
        """Replace the suggestions on a trace, and return their number.

        Args:
            trace_id: The id of the trace.
            judgement: The findings and verdicts.
            trace: The record of the trace in the run, if it is complete.
            partial: True if more findings will follow.
            indices: The indices of the spans of the findings, by key.
        """
        modes = (
            self._setup.prompt.modes if judgement.judged_modes is None else judgement.judged_modes
        )
        return store_judgement(
            self._workspace,
            judge=self.judge,
            taxonomy=self._taxonomy_ref,
            trace_id=trace_id,
            looks_at=modes,
            findings=judgement.findings,
            unsure=judgement.unsure,
            run_id=self.run_id(),
            trace=trace,
            partial=partial,
            indices=indices,
        )

    def note_failed(self, trace_id: str, problem: str) -> None:
        """Record that a trace was not judged.

        Args:
            trace_id: The id of the trace.
            problem: The reason.
        """
        self._workspace.note_run_trace(
            self.run_id(), RunTrace(trace_id, findings=0, problem=problem)
        )

    def end(self, ending: str | None = None) -> None:
        """Record the end of the run, with the reason if not all traces were judged."""
        if self.id is not None:
            self._workspace.finish_run(self.id, ending=ending)

    def usage(self) -> Usage:
        """Return the total usage of the run."""
        return Usage() if self.id is None else self._workspace.usage(self.id)


class KeptAnswers:
    """A store of the answers on one trace, in the workspace."""

    def __init__(
        self,
        record: RunRecord,
        writer: WriterThread,
        trace_id: str,
        on_reply: Callable[[Reply], None],
        on_withdrawn: Callable[[WithdrawnTrace], None],
    ) -> None:
        self._record = record
        self._on_withdrawn = on_withdrawn
        self._writer = writer
        self._trace_id = trace_id
        self._on_reply = on_reply

    async def find_answer(self, key: str) -> Reply | None:
        """Return the stored answer of a key, or None."""
        if not self._record.may_know(key):
            return None
        return await self._writer.do(partial(self._record.find, key))

    async def keep(self, key: str, reply: Reply, usable: bool, sent: int = 0) -> None:
        """Store an answer, and return when it is on disk.

        Args:
            key: The key of the request.
            reply: The answer.
            usable: True if the answer need not be requested again.
            sent: The estimated tokens of the request.
        """
        keep = partial(self._record.keep, self._trace_id, key, reply, usable, sent)
        await self._writer.do(keep)
        self._on_reply(reply)

    async def reject(self, key: str) -> None:
        """Mark the last answer of a key as unusable."""
        await self._writer.do(partial(self._record.reject, key))

    async def take_back(self, limit: int, sent: int) -> None:
        """Withdraw the answers and judgements that depend on truncated requests.

        Args:
            limit: The server's token count of a truncated request.
            sent: The estimated tokens of that request.
        """
        for withdrawn in await self._writer.do(partial(self._record.take_back, limit, sent)):
            self._on_withdrawn(withdrawn)


def reply_from_record(stored_answer: Asked) -> Reply:
    """Convert a stored answer to a reply."""
    return Reply(
        stored_answer.answer,
        cast("Finish", stored_answer.finish),
        cast("Form", stored_answer.form),
        tokens_in=stored_answer.tokens_in,
        tokens_out=stored_answer.tokens_out,
        counted=stored_answer.counted,
        tokens_cached=stored_answer.tokens_cached,
        kept=True,
    )


def _has_settings(run: Run, setup: Setup) -> bool:
    """Check whether a run has the settings of a setup.

    Examples, the form of answers and the order of parameters do not count.
    """
    if run.settings is None:
        return False
    settings = setup.settings()
    if sorted(settings.parameters) != sorted(run.settings.parameters):
        return False
    main_settings = structs.replace(settings, parameters=(), examples=(), form=None)
    return main_settings == structs.replace(run.settings, parameters=(), examples=(), form=None)
