"""A run by a vendor's Batch API: sent, waited for and collected, by one command or by several.

What is under way stands in the workspace from before a batch is made until its answers are kept,
so that a command that ends at any moment is taken up by the next.
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
"""Seconds until a batch is looked at for the first time, and at most between two looks."""

_SLOWER: Final = 1.5

MOST_UNREACHED: Final = 10
"""So many looks in a row may fail."""

Judge = Callable[[Batch], Awaitable[ModelRunSummary]]
"""Goes over all traces, with the answers that a batch has."""


@dataclass(frozen=True, slots=True)
class _UnderWay:
    """A file that was sent, its batch once that is known, and how many requests it holds."""

    file: str
    batch: str | None
    requests: int


class VendorBatches:
    """The batches of one judge at one server.

    Args:
        setup: Who is asked what, and where.
        workspace: Where what is under way is remembered.
        again: Whether everything is asked anew.
        say: Told how far it is.
        timing: How to wait.
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
        self._setup, self._workspace, self._again, self._say = setup, workspace, again, say
        self._timing = timing or Timing()
        self._setting = f"judge.batches:{setup.judge}:{setup.host}{':again' if again else ''}"
        self.batch: Batch | None = None
        """What the last going over the traces had."""
        self.submitted = 0
        """How many requests this command has sent."""
        self.ids: list[str] = []
        """The batches that this command has waited for."""

    @property
    def under_way(self) -> bool:
        """Whether the server is, or may be, at work."""
        return bool(self._load())

    async def run(self, judge: Judge) -> ModelRunSummary:
        """Send what is to be asked, unless something is under way; wait, and collect.

        Args:
            judge: Goes over the traces.

        Raises:
            RunStops: The server does not do it, or another process is at it.
        """
        client = BatchClient(self._setup.endpoint())
        lock = run_lock(self._workspace.path, f"{self._setup.judge} batches")
        with lock, tempfile.TemporaryDirectory(prefix="mast-tui-") as folder, ExitStack() as files:
            async with client:
                if not self.under_way:
                    summary = await self._send(client, judge, Path(folder))
                    if not self.under_way:
                        return summary
                paths = await self._collected(client, Path(folder))
            answers = AnswerFiles(paths, files)
            self.batch = self._batch(answers, None)
            summary = await judge(self.batch)
            if summary.stopped is None:
                self._save([])
            return summary

    def _batch(self, answers: AnswerFiles | None, requests: RequestFiles | None) -> Batch:
        return Batch(
            self._setup, self._workspace, again=self._again, answers=answers, requests=requests
        )

    async def _send(self, client: BatchClient, judge: Judge, folder: Path) -> ModelRunSummary:
        requests = RequestFiles(folder / "requests.jsonl", most_requests=MOST_REQUESTS)
        self.batch = self._batch(None, requests)
        summary = await judge(self.batch)
        requests.done()
        if summary.stopped is not None:
            return summary
        for path, count in zip(requests.paths, requests.counts, strict=True):
            file = await client.upload(path)
            self._save([*self._load(), _UnderWay(file, None, count)])
            await self._make(client, file)
            self.submitted += count
        return summary

    async def _make(self, client: BatchClient, file: str) -> str:
        """Make the batch of a file, and remember it; a file that cannot become one is let go."""
        try:
            made = await client.create(file)
        except ServerUnreachable:
            raise  # it may have been made all the same
        except RunStops:
            self._save([one for one in self._load() if one.file != file])
            raise
        self._found(file, made)
        self._say(f"{made.id} is under way at {self._setup.host}")
        return made.id

    def _found(self, file: str, state: BatchState) -> None:
        left = self._load()
        self._save([replace(one, batch=state.id) if one.file == file else one for one in left])

    async def _collected(self, client: BatchClient, folder: Path) -> list[Path]:
        """The files of answers of all that is under way, once it has ended."""
        paths: list[Path] = []
        for one in self._load():
            batch = one.batch or await self._made_before(client, one.file)
            self.ids.append(batch)
            try:
                state = await self._ended(client, batch, one.requests)
                for file in state.files:
                    paths.append(folder / f"answers-{len(paths)}.jsonl")
                    await client.download(file, paths[-1])
            except BatchGone as error:
                self._say(f"{error}; what it held is asked again")
        return paths

    async def _made_before(self, client: BatchClient, file: str) -> str:
        """The batch of a file that was sent by a command that ended before it knew of it."""
        found = await client.find(file)
        if found is None:
            return await self._make(client, file)
        self._found(file, found)
        return found.id

    async def _ended(self, client: BatchClient, batch: str, requests: int) -> BatchState:
        wait, told, unreached = FIRST_WAIT, "", 0
        while True:
            try:
                state = await client.state(batch)
                unreached = 0
            except ServerUnreachable as error:
                unreached += 1
                if unreached >= MOST_UNREACHED:
                    raise
                words = str(error)
            else:
                words = f"{state.done + state.failed:,} of {state.total or requests:,} done"
                if state.ended:
                    self._tell_end(state, words)
                    return state
                words += f" ({state.status.replace('_', ' ')})"
            if words != told:
                self._say(f"{batch}: {words}")
                told = words
            await self._timing.sleep(wait)
            wait = min(wait * _SLOWER, MOST_WAIT)

    def _tell_end(self, state: BatchState, words: str) -> None:
        if state.status == "completed":
            self._say(f"{state.id}: {words}")
        else:
            why = f": {state.problem}" if state.problem else ""
            self._say(f"{state.id} {state.status}, {words}{why}")

    def _load(self) -> list[_UnderWay]:
        kept = orjson.loads(self._workspace.get_setting(self._setting) or "[]")
        return [_UnderWay(**one) for one in kept]

    def _save(self, under_way: list[_UnderWay]) -> None:
        kept = [asdict(one) for one in under_way]
        self._workspace.set_setting(self._setting, orjson.dumps(kept).decode())
