"""A run by a vendor's Batch API: batches are sent and collected by one command or by several.

The workspace records a batch from before it is made until its answers are stored, so that the next
command continues one that ended at any moment.
"""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

import orjson

from mast_tui.judges.llm.client.batches import BatchClient, BatchGone, BatchState, ServerUnreachable
from mast_tui.judges.llm.client.rate_limiter import Timing
from mast_tui.judges.llm.errors import RunStops
from mast_tui.judges.llm.run.batch_files import MOST_REQUESTS, AnswerFiles, Batch, RequestFiles
from mast_tui.judges.llm.run.run_lock import run_lock
from mast_tui.judges.llm.run.running import ModelRunSummary
from mast_tui.judges.llm.run.setup import Setup
from mast_tui.workspace import Workspace

FIRST_WAIT: Final = 2.0
MOST_WAIT: Final = 120.0
"""The seconds until the first request for the state of a batch, and at most between two."""

_WAIT_FACTOR: Final = 1.5

MOST_UNREACHED: Final = 10
"""The number of requests for the state of a batch in a row that may fail."""

BatchJudge = Callable[[Batch], Awaitable[ModelRunSummary]]
"""Judges all traces, with the answers of a batch."""


@dataclass(frozen=True, slots=True)
class _PendingBatch:
    """A file that was sent.

    Attributes:
        file: The id of the file.
        batch: The id of its batch; None if it is unknown.
        requests: The number of its requests.
    """

    file: str
    batch: str | None
    requests: int


class VendorBatches:
    """The batches of one judge at one server.

    Args:
        setup: The judge and its server.
        workspace: The workspace that records pending batches.
        again: True to ignore stored answers.
        say: Called with messages on the progress.
        timing: The way to wait.
    """

    def __init__(
        self,
        setup: Setup,
        workspace: Workspace,
        *,
        again: bool,
        say: Callable[[str], None],
        timing: Timing | None = None,
    ) -> None:
        self._setup = setup
        self._workspace = workspace
        self._again = again
        self._say = say
        self._timing = timing or Timing()
        self._setting = f"judge.batches:{setup.judge}:{setup.host}{':again' if again else ''}"
        self.batch: Batch | None = None
        """The batch of the last pass over the traces."""
        self.submitted = 0
        """The number of requests that this command has sent."""
        self.ids: list[str] = []
        """The ids of the batches that this command has waited for."""

    @property
    def is_pending(self) -> bool:
        """True if there may be a batch on the server."""
        return bool(self._load_pending())

    async def run(self, judge: BatchJudge) -> ModelRunSummary:
        """Send the requests unless a batch is pending, wait for the batch, and judge its answers.

        Return the summary of the last judging, which is the first if nothing had to be sent.

        Args:
            judge: Judges the traces with the answers of a batch.

        Raises:
            RunStops: The server has no batches, or another process uses them.
        """
        client = BatchClient(self._setup.endpoint())
        lock = run_lock(self._workspace.path, f"{self._setup.judge} batches")
        with lock, tempfile.TemporaryDirectory(prefix="mast-tui-") as folder, ExitStack() as files:
            async with client:
                if not self.is_pending:
                    summary = await self._judge_and_send(client, judge, Path(folder))
                    # Nothing was sent: all answers are stored, or the judging stopped early.
                    if not self.is_pending:
                        return summary
                paths = await self._collect_answers(client, Path(folder))
            answers = AnswerFiles(paths, files)
            self.batch = self._make_batch(answers=answers)
            summary = await judge(self.batch)
            if summary.stopped is None:
                self._save_pending([])
            return summary

    def _make_batch(
        self, *, answers: AnswerFiles | None = None, requests: RequestFiles | None = None
    ) -> Batch:
        """Return a batch that reads answers from files, or writes requests into files."""
        return Batch(
            self._setup, self._workspace, again=self._again, answers=answers, requests=requests
        )

    async def _judge_and_send(
        self, client: BatchClient, judge: BatchJudge, folder: Path
    ) -> ModelRunSummary:
        """Judge all traces by stored answers, and send the requests without an answer.

        Nothing is sent if the judging stops early.
        """
        requests = RequestFiles(folder / "requests.jsonl", most_requests=MOST_REQUESTS)
        self.batch = self._make_batch(requests=requests)
        summary = await judge(self.batch)
        requests.finish()
        if summary.stopped is not None:
            return summary
        for path, count in zip(requests.paths, requests.counts, strict=True):
            file = await client.upload(path)
            self._save_pending([*self._load_pending(), _PendingBatch(file, None, count)])
            await self._create_batch(client, file)
            self.submitted += count
        return summary

    async def _create_batch(self, client: BatchClient, file: str) -> str:
        """Create the batch of a file, and record it; forget a file that the server refuses."""
        try:
            state = await client.create(file)
        except ServerUnreachable:
            raise  # the server may have created it
        except RunStops:
            self._save_pending(
                [pending for pending in self._load_pending() if pending.file != file]
            )
            raise
        self._record_batch_id(file, state)
        self._say(f"{state.id} is under way at {self._setup.host}")
        return state.id

    def _record_batch_id(self, file: str, state: BatchState) -> None:
        """Record in the workspace which batch of the vendor answers a file of requests."""
        self._save_pending(
            [
                replace(pending, batch=state.id) if pending.file == file else pending
                for pending in self._load_pending()
            ]
        )

    async def _collect_answers(self, client: BatchClient, folder: Path) -> list[Path]:
        """Wait for all pending batches, and download their answers into files in ``folder``.

        A batch that the server no longer knows is reported and left out.
        """
        paths: list[Path] = []
        for pending in self._load_pending():
            batch = pending.batch or await self._find_or_create(client, pending.file)
            self.ids.append(batch)
            try:
                state = await self._wait_for_end(client, batch, pending.requests)
                for file in state.files:
                    paths.append(folder / f"answers-{len(paths)}.jsonl")
                    await client.download(file, paths[-1])
            except BatchGone as error:
                self._say(f"{error}; what it held is asked again")
        return paths

    async def _find_or_create(self, client: BatchClient, file: str) -> str:
        """Return the id of the batch of a file whose command ended before it recorded the id."""
        state = await client.find(file)
        if state is None:
            return await self._create_batch(client, file)
        self._record_batch_id(file, state)
        return state.id

    async def _wait_for_end(self, client: BatchClient, batch: str, requests: int) -> BatchState:
        """Wait until a batch has ended, and return its state; report each change.

        Raises:
            ServerUnreachable: The server cannot be reached several times in a row.
            BatchGone: The server does not know the batch any more.
        """
        wait = FIRST_WAIT
        last_message = ""
        unreached_count = 0
        while True:
            try:
                state = await client.state(batch)
                unreached_count = 0
            except ServerUnreachable as error:
                unreached_count += 1
                if unreached_count >= MOST_UNREACHED:
                    raise
                message = str(error)
            else:
                message = f"{state.done + state.failed:,} of {state.total or requests:,} done"
                if state.ended:
                    self._report_end(state, message)
                    return state
                message += f" ({state.status.replace('_', ' ')})"
            if message != last_message:
                self._say(f"{batch}: {message}")
                last_message = message
            await self._timing.sleep(wait)
            wait = min(wait * _WAIT_FACTOR, MOST_WAIT)

    def _report_end(self, state: BatchState, progress: str) -> None:
        """Report the end of a batch, with the reason if it was not completed."""
        if state.status == "completed":
            self._say(f"{state.id}: {progress}")
        else:
            reason = f": {state.problem}" if state.problem else ""
            self._say(f"{state.id} {state.status}, {progress}{reason}")

    def _load_pending(self) -> list[_PendingBatch]:
        records = orjson.loads(self._workspace.get_setting(self._setting) or "[]")
        return [_PendingBatch(**fields) for fields in records]

    def _save_pending(self, pending: list[_PendingBatch]) -> None:
        records = [asdict(batch) for batch in pending]
        self._workspace.set_setting(self._setting, orjson.dumps(records).decode())
