"""A run with a vendor's Batch API; one or several commands send and collect its batches.

The workspace records a batch before it is made and until its answers are stored. So the next
command can continue after an interruption at any moment. The API is described at
https://platform.openai.com/docs/api-reference/batch (November 2026).
"""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import httpx2
import msgspec
import openai
import orjson
from msgspec import Struct, structs

from mast_tui.judges.llm.client.api_errors import (
    ErrorKind,
    api_error_of,
    error_kind_of,
    read_api_error,
)
from mast_tui.judges.llm.client.bounded_http import BoundedClient, openai_client
from mast_tui.judges.llm.client.endpoint import Endpoint
from mast_tui.judges.llm.client.rate_limiter import Timing
from mast_tui.judges.llm.request import RunStops
from mast_tui.judges.llm.run.batch_files import MOST_REQUESTS, AnswerFiles, Batch, RequestFiles
from mast_tui.judges.llm.run.running import ModelRunSummary, run_lock
from mast_tui.judges.llm.run.setup import Setup
from mast_tui.safe_text import one_line
from mast_tui.workspace import Workspace

MOST_COUNTED: Final = 10**9
"""The limit of a plausible number of requests in a batch."""

ENDED: Final = frozenset({"completed", "failed", "expired", "cancelled"})

_MISSING_STATUS: Final = frozenset({404, 405, 501})
_TEMPORARY_ERRORS: Final = frozenset({ErrorKind.BUSY, ErrorKind.TEMPORARY, ErrorKind.LOADING})


class ServerUnreachable(RunStops):
    """A server that cannot be reached, or that asks to try later."""


class BatchGone(RunStops):
    """A batch that the server no longer knows."""


class _FileClient(BoundedClient):
    """An HTTP client for files with all answers of a batch."""

    max_bytes = 1 << 30


@dataclass(frozen=True, slots=True)
class BatchState:
    """The state of a batch.

    Attributes:
        id: The id of the batch.
        status: The vendor's name of the status.
        done: The number of answered requests.
        failed: The number of failed requests.
        total: The number of all requests.
        files: The ids of the files of answers and of errors.
        problem: The reason why the batch failed, otherwise empty.
    """

    id: str
    status: str
    done: int = 0
    failed: int = 0
    total: int = 0
    files: tuple[str, ...] = ()
    problem: str = ""

    @property
    def ended(self) -> bool:
        """True if no more answers will come."""
        return self.status in ENDED


class BatchClient:
    """A client of one server's Batch API.

    Raises:
        RunStops: The address is not allowed; from every method: the server refuses.
        ServerUnreachable: From every method: the call may succeed later.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._host = endpoint.host
        self._openai = openai_client(endpoint, _FileClient)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._openai.close()

    async def upload(self, path: Path) -> str:
        """Upload a file of requests, and return its id."""
        with self._translated_errors():
            files = self._openai.files.with_raw_response
            response = await files.create(file=path, purpose="batch")
            return self._read_id(self._read_body(response.content))

    async def create(self, file: str) -> BatchState:
        """Create the batch of an uploaded file."""
        with self._translated_errors():
            response = await self._openai.batches.with_raw_response.create(
                input_file_id=file,
                endpoint="/v1/chat/completions",
                completion_window="24h",
            )
            return self._read_state(self._read_body(response.content))

    async def find(self, file: str) -> BatchState | None:
        """Return the state of a file's batch, or None if it is not among the last 100 batches."""
        with self._translated_errors():
            response = await self._openai.batches.with_raw_response.list(limit=100)
        batches = self._read_body(response.content).get("data")
        for batch in batches if isinstance(batches, list) else ():
            if isinstance(batch, dict) and batch.get("input_file_id") == file:
                return self._read_state(batch)
        return None

    async def state(self, batch: str) -> BatchState:
        """Request the state of a batch.

        Raises:
            BatchGone: There is no such batch.
        """
        with self._translated_errors(requested=batch):
            response = await self._openai.batches.with_raw_response.retrieve(batch)
            return self._read_state(self._read_body(response.content))

    async def download(self, file: str, to: Path) -> None:
        """Download a file of answers.

        Args:
            file: The id of the file.
            to: The path to write to.
        """
        with self._translated_errors(requested=file):
            response = await self._openai.files.content(file)
            to.write_bytes(response.content)

    def _read_body(self, content: bytes) -> Mapping[str, object]:
        """Read the JSON object of a response, which the SDK does not check.

        Raises:
            RunStops: The response is not a JSON object.
        """
        try:
            body = orjson.loads(content)
        except orjson.JSONDecodeError:
            body = None
        if isinstance(body, dict):
            return body
        raise RunStops(f"{self._host} does not answer like a Batch API; leave out --batch")

    def _read_state(self, batch: Mapping[str, object]) -> BatchState:
        """Read the state of a batch from its JSON object.

        Raises:
            RunStops: The batch has no id.
        """
        counts = batch.get("request_counts")
        errors = batch.get("errors")
        if isinstance(errors, dict):
            errors = errors.get("data")
        files = (batch.get("output_file_id"), batch.get("error_file_id"))
        return BatchState(
            self._read_id(batch),
            _text_or_empty(batch.get("status")),
            done=_request_count(counts, "completed"),
            failed=_request_count(counts, "failed"),
            total=_request_count(counts, "total"),
            files=tuple(file for file in files if isinstance(file, str) and file),
            problem=self._endpoint.clean(api_error_of(errors, 0).message) if errors else "",
        )

    def _read_id(self, file_or_batch: Mapping[str, object]) -> str:
        """Return the id of a file or a batch.

        Raises:
            RunStops: There is no id.
        """
        identifier = _text_or_empty(file_or_batch.get("id"))
        if identifier:
            return identifier
        raise RunStops(f"{self._host} returned no id for a batch or its file; leave out --batch")

    @contextmanager
    def _translated_errors(self, *, requested: str | None = None) -> Iterator[None]:
        """Raise errors of the SDK as ``RunStops`` or its subclasses.

        ``requested`` is the id of a file or batch that may no longer exist.
        """
        try:
            yield
        except openai.APIStatusError as error:
            raise self._translate_error(error, requested) from error
        except (openai.OpenAIError, httpx2.HTTPError) as error:
            reason = self._endpoint.clean(str(error.__cause__ or error)) or type(error).__name__
            raise ServerUnreachable(
                f"{self._host} cannot be reached: {reason}; the same command continues"
            ) from error

    def _translate_error(self, error: openai.APIStatusError, requested: str | None) -> RunStops:
        """Return the error to raise for an error response.

        ``requested`` is the id of the requested file or batch, or None.
        """
        response = error.response
        api_error = read_api_error(response.status_code, response.headers, response.content)
        reason = "a web page" if api_error.is_web_page else self._endpoint.clean(api_error.message)
        reason += f" ({api_error.status})"
        error_kind = error_kind_of(api_error)
        if api_error.status in _MISSING_STATUS:
            if requested is not None:
                return BatchGone(f"{self._host} has no {one_line(requested, 80)}: {reason}")
            return RunStops(
                f"{self._host} has no Batch API: {reason}; --write-batch FILE writes the requests "
                "for vLLM's run-batch, or leave out --batch"
            )
        if error_kind in _TEMPORARY_ERRORS:
            return ServerUnreachable(
                f"{self._host} cannot run the batch now: {reason}; the same command continues"
            )
        if error_kind in (ErrorKind.KEY, ErrorKind.DENIED):
            return RunStops(
                f"{self._host} refuses the key in {self._endpoint.key_variable}: {reason}"
            )
        return RunStops(f"{self._host} refuses the batch: {reason}")


def _text_or_empty(value: object) -> str:
    return value if isinstance(value, str) else ""


def _request_count(counts: object, name: str) -> int:
    """Return a number of requests, 0 for other values."""
    value = counts.get(name) if isinstance(counts, dict) else None
    return value if type(value) is int and 0 <= value <= MOST_COUNTED else 0


FIRST_WAIT: Final = 2.0
MOST_WAIT: Final = 120.0
"""The seconds before the first request for a batch's state, and the most between two requests."""

_WAIT_FACTOR: Final = 1.5

MOST_UNREACHED: Final = 10
"""The most consecutive requests for a batch's state that may fail."""

BatchJudge = Callable[[Batch], Awaitable[ModelRunSummary]]
"""A function that judges all traces with the answers of a batch."""


class _PendingBatch(Struct, frozen=True):
    """A file of requests on the server.

    Attributes:
        file: The id of the file.
        batch: The id of its batch, if it is known.
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
        say: Receives messages on the progress.
        timing: The clock.
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
        # The setting of the workspace that records the pending batches.
        self._setting = f"judge.batches:{setup.judge}:{setup.host}{':again' if again else ''}"
        self.batch: Batch | None = None
        """The batch of the last pass over the traces."""
        self.submitted = 0
        """The number of requests that this command has sent."""
        self.ids: list[str] = []
        """The ids of the batches that this command has waited for."""

    @property
    def is_pending(self) -> bool:
        """True if the server may have a batch of this judge."""
        return bool(self._load_pending())

    async def run(self, judge: BatchJudge) -> ModelRunSummary:
        """Send the missing requests unless a batch is pending, wait, and judge the traces.

        Args:
            judge: Judges the traces with the answers of a batch.

        Returns:
            The summary of the last judging.

        Raises:
            RunStops: The server has no batches, or another process uses them.
        """
        client = BatchClient(self._setup.endpoint())
        lock = run_lock(self._workspace.path, f"{self._setup.judge} batches")
        with (
            lock,
            tempfile.TemporaryDirectory(prefix="mast-tui-") as folder,
            ExitStack() as open_files,
        ):
            async with client:
                if not self.is_pending:
                    summary = await self._judge_and_send(client, judge, Path(folder))
                    # Nothing was sent: all answers are stored, or the judging stopped early.
                    if not self.is_pending:
                        return summary
                paths = await self._collect_answers(client, Path(folder))
            answers = AnswerFiles(paths, open_files)
            self.batch = Batch(self._setup, self._workspace, again=self._again, answers=answers)
            summary = await judge(self.batch)
            if summary.stopped is None:
                self._save_pending([])
            return summary

    async def _judge_and_send(
        self, client: BatchClient, judge: BatchJudge, folder: Path
    ) -> ModelRunSummary:
        """Judge all traces with the stored answers, and send the requests without an answer.

        Nothing is sent if the judging stops early.
        """
        requests = RequestFiles(folder / "requests.jsonl", most_requests=MOST_REQUESTS)
        self.batch = Batch(self._setup, self._workspace, again=self._again, requests=requests)
        summary = await judge(self.batch)
        requests.finish()
        if summary.stopped is not None:
            return summary
        for path, count in zip(requests.paths, requests.counts, strict=True):
            file = await client.upload(path)
            # Saved before the batch exists, so that the next command can find it after an
            # interruption.
            new_pending = _PendingBatch(file, batch=None, requests=count)
            self._save_pending([*self._load_pending(), new_pending])
            await self._create_batch(client, file)
            self.submitted += count
        return summary

    async def _create_batch(self, client: BatchClient, file: str) -> str:
        """Create the batch of a file, and record it; forget a file that the server refuses."""
        try:
            state = await client.create(file)
        except ServerUnreachable:
            raise  # the server may have created the batch
        except RunStops:
            self._save_pending(
                [pending for pending in self._load_pending() if pending.file != file]
            )
            raise
        self._record_batch_id(file, state)
        self._say(f"{state.id} is under way at {self._setup.host}")
        return state.id

    def _record_batch_id(self, file: str, state: BatchState) -> None:
        """Record the id of a file's batch."""
        self._save_pending(
            [
                structs.replace(pending, batch=state.id) if pending.file == file else pending
                for pending in self._load_pending()
            ]
        )

    async def _collect_answers(self, client: BatchClient, folder: Path) -> list[Path]:
        """Wait for all pending batches, and download their answers to ``folder``.

        A batch that the server no longer knows is reported and skipped.
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
                self._say(f"{error}; its requests are sent again")
        return paths

    async def _find_or_create(self, client: BatchClient, file: str) -> str:
        """Return the id of a file's batch; create the batch if the server has none."""
        # An interrupted command may have created the batch without recording its id.
        state = await client.find(file)
        if state is None:
            return await self._create_batch(client, file)
        self._record_batch_id(file, state)
        return state.id

    async def _wait_for_end(self, client: BatchClient, batch: str, requests: int) -> BatchState:
        """Report changes of a batch until it ends, and return its last state.

        Raises:
            ServerUnreachable: The server cannot be reached several times in a row.
            BatchGone: The server no longer knows the batch.
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
        stored = self._workspace.get_setting(self._setting) or "[]"
        return msgspec.json.decode(stored, type=list[_PendingBatch])

    def _save_pending(self, pending: list[_PendingBatch]) -> None:
        self._workspace.set_setting(self._setting, msgspec.json.encode(pending).decode())
