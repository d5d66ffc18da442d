"""Judging by a model into shards, with many processes; answers are stored with the shards."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

import msgspec
import orjson

from mast_tui.judges.llm.client.budget import Budget
from mast_tui.judges.llm.request import (
    MOST_TOKENS,
    ModelClient,
    Reply,
    RunStops,
    TraceFails,
    Unanswered,
    was_truncated,
)
from mast_tui.judges.llm.run.judging import TraceJudge
from mast_tui.judges.llm.run.request_loop import AnswerLimits
from mast_tui.judges.llm.run.running import connect_to_server
from mast_tui.judges.llm.run.setup import Setup
from mast_tui.judges.runner import JudgedTrace, finding_indices
from mast_tui.labels import Judgement
from mast_tui.scale.judging import UnitResult
from mast_tui.scale.shards import RequestSize, ShardFolder, read_requests
from mast_tui.scale.shared_allowance import SharedAllowanceAddress, SharedBudget
from mast_tui.traces.io.remote import fetch_all
from mast_tui.traces.library import read_fully
from mast_tui.traces.model import FileReport, Trace
from mast_tui.traces.scan.scanning import Scan, Unit
from mast_tui.workspace import TraceRecord, Usage

ANSWERS: Final = "answers"
"""The folder in that of the shards with a file for each answer, named by its request."""

_TRUNCATED: Final = "truncated-"
"""The prefix of files that record the number of tokens to which a server truncated requests."""


@dataclass(frozen=True)
class JudgeUnitsByModel:
    """A judge by a model of the traces in files, which can be sent to other processes.

    Attributes:
        setup: The model, its prompt and parameters, and the number of concurrent requests of this
            process.
        folder: The folder of the shards, which stores the answers.
        allowance: The address of the shared allowance; None without a limit.
    """

    setup: Setup
    folder: ShardFolder
    allowance: SharedAllowanceAddress | None = None

    @property
    def name(self) -> str:
        """The judge's name."""
        return self.setup.judge

    @property
    def looks_at(self) -> Sequence[str]:
        """The slugs of the modes on which it gives verdicts."""
        return self.setup.prompt.modes

    def outdated(self, shards: Iterable[str], /) -> Collection[str]:
        """Return the shards to judge again, because the server truncated some of their requests.

        Once a truncation is found, the sizes of earlier requests show which it had truncated too.
        """
        truncations = _read_truncations(self.folder)
        if not truncations:
            return ()
        return frozenset(
            shard
            for shard in shards
            if any(
                _was_request_truncated(request_size, truncations)
                for request_size in read_requests(self.folder, shard)
            )
        )

    def __call__(self, units: Sequence[Unit], /) -> list[UnitResult]:
        """Judge the traces of each unit."""
        fetch_all(path for unit in units for path in unit.files)
        return asyncio.run(self._judge_units(units))

    async def _judge_units(self, units: Sequence[Unit]) -> list[UnitResult]:
        """Judge the traces of units; if the run stops, return a single result with the reason."""
        setup = self.setup
        if setup.redaction.rules:  # the setup is sent to processes without the key
            secret = os.environ.get(setup.key_variable, "").strip()
            setup = replace(setup, redaction=setup.redaction.with_secret(secret))
        budget: Budget = Budget()
        requests: frozenset[RequestSize] = frozenset()
        try:
            if self.allowance is not None:
                budget = SharedBudget(self.allowance, setup.allowance, setup.prices)
            connection = connect_to_server(setup, Usage(), budget=budget)
            async with connection as client:
                answers = ShardAnswers(self.folder)
                judged_units = await _ConcurrentJudging(setup, answers, client).judge(units)
                requests = frozenset(answers.requests)
        except RunStops as error:
            judged_units = [UnitResult(stopped=str(error))]
        finally:
            if isinstance(budget, SharedBudget):
                budget.close()
        if not judged_units:
            return []
        # The first result has the usage and the requests of all.
        return [replace(judged_units[0], usage=budget.used, requests=requests), *judged_units[1:]]


class _ConcurrentJudging:
    """The judging of several traces by a model at the same time."""

    def __init__(self, setup: Setup, answers: ShardAnswers, client: ModelClient) -> None:
        self._setup = setup
        self._client = client
        self._answers = answers
        self._answer_limits = AnswerLimits(setup.parameters.answer_tokens)
        self._free_slots = asyncio.Semaphore(setup.concurrency)
        """The number of further traces that may be in memory and judged."""

    async def judge(self, units: Iterable[Unit]) -> list[UnitResult]:
        """Judge all traces of units; the result of a unit lists its traces without an answer."""
        scan = Scan(())  # without paths, because it only reads the units
        started_units: list[tuple[list[asyncio.Task[UnitResult]], list[FileReport]]] = []
        for unit in units:
            tasks: list[asyncio.Task[UnitResult]] = []
            reports = []
            for report in map(scan.with_outcomes, scan.read(unit)):
                for trace in report.traces:
                    await self._free_slots.acquire()
                    tasks.append(asyncio.create_task(self._judge_trace(trace)))
                reports.append(report._replace(traces=()))
            started_units.append((tasks, reports))
        judged_units = []
        for tasks, reports in started_units:
            results = [await task for task in tasks]
            judged = tuple(trace for result in results for trace in result.judged)
            unanswered = tuple(path for result in results for path in result.unanswered)
            stopped = next(filter(None, (result.stopped for result in results)), None)
            judged_units.append(UnitResult(judged, tuple(reports), unanswered, stopped))
        return judged_units

    async def _judge_trace(self, trace: Trace) -> UnitResult:
        """Judge one trace, and return a judgement, a problem or no answer."""
        try:
            trace_judge = await asyncio.to_thread(self._trace_judge, trace)
            result = await trace_judge.judge(
                self._client, self._answers, self._answer_limits, on_window=None
            )
            return UnitResult((await asyncio.to_thread(_judged_trace, trace, result.judgement),))
        except RunStops as error:
            return UnitResult(stopped=str(error))
        except Unanswered as error:
            return UnitResult(unanswered=((str(trace.path), str(error)),))
        except (TraceFails, OSError) as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
            return UnitResult((JudgedTrace(TraceRecord.from_trace(trace), problem=reason),))
        finally:
            self._free_slots.release()  # ``judge`` has acquired it

    def _trace_judge(self, trace: Trace) -> TraceJudge:
        setup = self._setup
        read_fully(trace)
        return TraceJudge(trace, setup.prompt, setup.parameters, setup.redaction)


def _judged_trace(trace: Trace, judgement: Judgement) -> JudgedTrace:
    """Combine a trace that was read to its end with the judgement on it."""
    indices = finding_indices(trace, judgement.findings)
    return JudgedTrace(TraceRecord.from_trace(trace), judgement, indices=indices)


class ShardAnswers:
    """The stored answers, one file for each request, named by the request's key.

    Attributes:
        requests: The sizes of requests whose answers this process used.
    """

    def __init__(self, folder: ShardFolder) -> None:
        self._folder = folder
        self._read_truncations = _read_truncations(folder)
        self.requests: set[RequestSize] = set()

    async def find_answer(self, key: str) -> Reply | None:
        """Return the stored answer to a request by its key, if there is an intact one.

        For a truncated request, return an empty answer that ends with ``length``, as if it were cut
        off.
        """
        content = await asyncio.to_thread(self._folder.read, _answer_file(key))
        try:
            fields = None if content is None else orjson.loads(content)
            if not isinstance(fields, dict):
                return None
            # Earlier versions stored no estimate. Such a request may have had any size.
            estimated_tokens = int(fields.pop("sent", MOST_TOKENS))
            reply = replace(msgspec.convert(fields, Reply), kept=True)
        except (ValueError, TypeError):
            return None
        # Only the server's own count of tokens shows that it has truncated a request.
        if reply.counted and _was_request_truncated(
            RequestSize(reply.tokens_in, estimated_tokens), self._read_truncations
        ):
            return Reply("", "length", reply.form, 0, 0, kept=True)
        self._note_used(reply, estimated_tokens)
        return reply

    async def keep(self, key: str, reply: Reply, usable: bool, sent: int = 0) -> None:
        """Store a usable answer; it is on disk when this method returns.

        Args:
            key: The key of the request.
            reply: The answer.
            usable: False for an answer that is not stored.
            sent: The estimated tokens of the request.
        """
        if usable:
            self._note_used(reply, sent)
            content = orjson.dumps(asdict(reply) | {"sent": sent})
            await asyncio.shield(asyncio.to_thread(self._folder.write, _answer_file(key), content))

    def _note_used(self, reply: Reply, estimated_tokens: int) -> None:
        if reply.finish == "stop" and reply.counted and estimated_tokens > reply.tokens_in:
            self.requests.add(RequestSize(reply.tokens_in, estimated_tokens))

    async def reject(self, key: str) -> None:
        """Do nothing, because each answer is read again, and requested again, before it counts."""

    async def take_back(self, limit: int, sent: int) -> None:
        """Record that the server truncates requests, so that stored answers to them are not used.

        ``JudgeUnitsByModel.outdated`` then finds the shards that used one.

        Args:
            limit: The number of tokens to which the server truncates.
            sent: The estimated tokens of the request that showed the truncation.
        """
        earlier_estimates = self._read_truncations.get(limit, ())
        # At most three estimates are stored: the least, the greatest, and this one.
        noticed_by = tuple(sorted({*earlier_estimates[:1], *earlier_estimates[-1:], sent}))
        self._read_truncations[limit] = noticed_by
        content = orjson.dumps(noticed_by)
        await asyncio.to_thread(self._folder.write, f"{_TRUNCATED}{limit}.json", content)


def _read_truncations(folder: ShardFolder) -> dict[int, tuple[int, ...]]:
    """Return the recorded truncations.

    The key is the number of tokens to which a server truncated requests. The values are the
    estimated tokens of requests that showed it.
    """
    truncations: dict[int, tuple[int, ...]] = {}
    for name in folder.names():
        limit = name.removeprefix(_TRUNCATED).removesuffix(".json")
        if name.startswith(_TRUNCATED) and limit.isdecimal():
            truncations[int(limit)] = tuple(orjson.loads(folder.read(name) or b"[]"))
    return truncations


def _was_request_truncated(size: RequestSize, truncations: Mapping[int, tuple[int, ...]]) -> bool:
    """Return whether the server truncated a request of this size.

    ``truncations`` has the estimated tokens of truncated requests, by the server's count.
    """
    return any(
        was_truncated(size.counted, size.estimated, truncated_estimate)
        for truncated_estimate in truncations.get(size.counted, ())
    )


def _answer_file(key: str) -> str:
    return f"{ANSWERS}/{key}.json"
