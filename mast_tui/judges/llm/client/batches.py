"""A client of a vendor's Batch API: upload requests, create a batch, download its answers.

The API is described at https://platform.openai.com/docs/api-reference/batch (November 2026).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import httpx2
import openai
import orjson

from mast_tui.judges.llm.client.api_errors import (
    ErrorKind,
    api_error_of,
    error_kind_of,
    read_api_error,
)
from mast_tui.judges.llm.client.bounded_http import BoundedClient, openai_client
from mast_tui.judges.llm.client.endpoint import Endpoint
from mast_tui.judges.llm.errors import RunStops
from mast_tui.safe_text import one_line

MOST_COUNTED: Final = 10**9
"""The limit for a plausible number of requests in a batch."""

ENDED: Final = frozenset({"completed", "failed", "expired", "cancelled"})

_MISSING_STATUS: Final = frozenset({404, 405, 501})
_TEMPORARY_ERRORS: Final = frozenset({ErrorKind.BUSY, ErrorKind.TEMPORARY, ErrorKind.LOADING})


class ServerUnreachable(RunStops):
    """A server that cannot be reached, or that asks to try later."""


class BatchGone(RunStops):
    """A batch that the server does not know any more."""


class _FileClient(BoundedClient):
    """An HTTP client for files of answers, which are as long as all answers together."""

    max_bytes = 1 << 30


@dataclass(frozen=True, slots=True)
class BatchState:
    """The state of a batch.

    Attributes:
        id: The id of the batch.
        status: The status as the vendor names it.
        done: The number of answered requests.
        failed: The number of failed requests.
        total: The number of all requests.
        files: The ids of the files of answers and of errors.
        problem: The reason why the batch failed; empty if it did not.
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
        """True if there will be no more answers."""
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

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
        """Return the state of the batch of a file, or None if it is not among the last 100."""
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
        with self._translated_errors(gone=batch):
            response = await self._openai.batches.with_raw_response.retrieve(batch)
            return self._read_state(self._read_body(response.content))

    async def download(self, file: str, to: Path) -> None:
        """Download a file of answers.

        Args:
            file: The id of the file.
            to: The path to write to.
        """
        with self._translated_errors(gone=file):
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
        raise RunStops(f"{self._host} does not answer as a Batch API does; leave out --batch")

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
        raise RunStops(f"{self._host} gave a batch or its file no id; leave out --batch")

    @contextmanager
    def _translated_errors(self, *, gone: str | None = None) -> Iterator[None]:
        """Return a context that translates the errors of the SDK to ``RunStops``.

        Args:
            gone: The id of the file or batch that is requested, if it may no longer exist.
        """
        try:
            yield
        except openai.APIStatusError as error:
            raise self._translate_error(error, gone) from error
        except (openai.OpenAIError, httpx2.HTTPError) as error:
            reason = self._endpoint.clean(str(error.__cause__ or error)) or type(error).__name__
            raise ServerUnreachable(
                f"{self._host} is not reached: {reason}; the same command goes on"
            ) from error

    def _translate_error(self, error: openai.APIStatusError, gone: str | None) -> RunStops:
        """Return the error to raise for an error response of the server.

        Args:
            error: The error of the SDK.
            gone: The requested batch or file, None if the request was for neither.
        """
        response = error.response
        api_error = read_api_error(response.status_code, response.headers, response.content)
        reason = "a web page" if api_error.page else self._endpoint.clean(api_error.message)
        reason += f" ({api_error.status})"
        error_kind = error_kind_of(api_error)
        if api_error.status in _MISSING_STATUS:
            if gone is not None:
                return BatchGone(f"{self._host} knows no {one_line(gone, 80)}: {reason}")
            return RunStops(
                f"{self._host} has no Batch API: {reason}; --write-batch FILE writes the requests "
                "for vLLM's run-batch, or leave out --batch"
            )
        if error_kind in _TEMPORARY_ERRORS:
            return ServerUnreachable(
                f"{self._host} does not do it now: {reason}; the same command goes on"
            )
        if error_kind in (ErrorKind.KEY, ErrorKind.DENIED):
            return RunStops(
                f"{self._host} refuses the key that {self._endpoint.key_variable} holds: {reason}"
            )
        return RunStops(f"{self._host} refuses the batch: {reason}")


def _text_or_empty(value: object) -> str:
    """Return a text, an empty one for any other value."""
    return value if isinstance(value, str) else ""


def _request_count(counts: object, name: str) -> int:
    """Return a number of requests, 0 for any other value."""
    value = counts.get(name) if isinstance(counts, dict) else None
    return value if type(value) is int and 0 <= value <= MOST_COUNTED else 0
