"""Repeatable runs: the answers of a model are recorded in a file, and replayed from it.

Each line is a JSON object for one request: ``request``, its SHA-256; ``about``, the id of the
trace; ``room``, the token limit of the answer; and ``reply``, ``unanswered`` or ``too_long``. Keys,
addresses and headers are not recorded.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO, Annotated, SupportsInt

import msgspec
import orjson
from msgspec import Meta, Struct

from mast_tui.errors import MastError
from mast_tui.judges.llm.request import (
    MOST_TOKENS,
    ContextOverflow,
    Correction,
    ModelClient,
    Parameters,
    Reply,
    Request,
    RunStops,
    Unanswered,
)
from mast_tui.judges.llm.run.running import Connect, Report, connect_to_server
from mast_tui.judges.llm.run.setup import Setup
from mast_tui.safe_text import one_line
from mast_tui.traces.io.private_files import open_private
from mast_tui.workspace import Usage


class _RecordedLine(Struct, frozen=True):
    """A line of the file: the reply to a request, or the error."""

    request: str
    room: int
    reply: Reply | None = None
    too_long: str | None = None
    longest_answer: Annotated[int, Meta(gt=0, lt=MOST_TOKENS)] | None = None
    unanswered: str | None = None

    def outcome(self) -> Reply:
        """Return the recorded reply, or raise the recorded error.

        Raises:
            ContextOverflow: The request was too long.
            Unanswered: There was no answer.
        """
        if self.reply is not None:
            return self.reply
        if self.too_long is not None:
            raise ContextOverflow(self.too_long, answer_room=self.longest_answer)
        raise Unanswered(self.unanswered or "")


_LinesByRequest = Mapping[str, Mapping[int, _RecordedLine]]
"""The recorded lines, by request and by token limit of the answer."""


def open_record(path: Path) -> IO[bytes]:
    """Open a file to append answers.

    Only its owner may read the file, because answers quote traces. An incomplete last line, which a
    killed run may have left, is removed.

    Raises:
        MastError: The file has other content.
        OSError: The file cannot be opened.
    """
    if path.exists() and path.stat().st_size:
        _read_lines(path)  # raises an error for other content
    file = os.fdopen(open_private(path), "r+b")
    end = file.read().rfind(b"\n") + 1
    file.truncate(end)
    file.seek(end)
    return file


def recording(file: IO[bytes]) -> Connect:
    """Return a function that connects to the server and appends every answer to a file.

    The file must be opened by ``open_record``.
    """

    @asynccontextmanager
    async def _connect_recorder(
        setup: Setup, spent: Usage, on_wait: Report, on_remark: Report
    ) -> AsyncIterator[ModelClient]:
        async with connect_to_server(setup, spent, on_wait, on_remark) as client:
            yield _Recorder(client, setup.parameters, file)

    return _connect_recorder


def replaying(path: Path) -> Connect:
    """Return a function that connects to a file of recorded answers instead of a server.

    Raises:
        MastError: The file cannot be read, or has other content.
    """
    lines_by_request = _read_lines(path)

    @asynccontextmanager
    async def _connect_player(
        setup: Setup, _spent: Usage, _on_wait: Report, _on_remark: Report
    ) -> AsyncIterator[ModelClient]:
        yield _Player(lines_by_request, setup.parameters, path)

    return _connect_player


class _SentRoom:
    """The token limit of an answer, with its value when a request was sent."""

    def __init__(self, answer_tokens: SupportsInt) -> None:
        self._answer_tokens = answer_tokens
        self.tokens = 0

    def __int__(self) -> int:
        self.tokens = int(self._answer_tokens)
        return self.tokens


class _Recorder(ModelClient):
    """A client that records the answers of another client."""

    def __init__(self, client: ModelClient, parameters: Parameters, file: IO[bytes]) -> None:
        self._client = client
        self._parameters = parameters
        self._file = file

    async def ask(
        self, request: Request, answer_tokens: SupportsInt, correction: Correction | None = None
    ) -> Reply:
        """Send a request, and record its outcome: a reply, an overflow, or no answer.

        Args:
            request: The request.
            answer_tokens: The token limit of the answer.
            correction: The previous unusable answer and its problem, if there is one.
        """
        key = _request_key(request, self._parameters, correction)
        room = _SentRoom(answer_tokens)  # records the limit that the client reads last

        def write_line(**outcome: object) -> None:
            """Append the outcome of the request at once, so that a crash keeps it."""
            line = {"request": key, "about": request.about, "room": room.tokens, **outcome}
            self._file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
            self._file.flush()

        try:
            reply = await self._client.ask(request, room, correction)
        except ContextOverflow as error:
            write_line(too_long=str(error), longest_answer=error.answer_room)
            raise
        except Unanswered as error:
            write_line(unanswered=str(error))
            raise
        write_line(reply=asdict(reply))
        return reply

    def record_problem(self, problem: str | None) -> None:
        self._client.record_problem(problem)


class _Player(ModelClient):
    """A client that replays recorded answers."""

    def __init__(
        self, lines_by_request: _LinesByRequest, parameters: Parameters, path: Path
    ) -> None:
        self._lines_by_request = lines_by_request
        self._parameters = parameters
        self._path = path

    async def ask(
        self, request: Request, answer_tokens: SupportsInt, correction: Correction | None = None
    ) -> Reply:
        """Return the recorded reply to a request, or raise the recorded error.

        Args:
            request: The request.
            answer_tokens: The token limit of the answer.
            correction: The previous unusable answer and its problem, if there is one.

        Raises:
            ContextOverflow: The request was too long.
            Unanswered: There was no answer.
            RunStops: The request was not recorded.
        """
        key = _request_key(request, self._parameters, correction)
        line_by_limit = self._lines_by_request.get(key)
        if line_by_limit is None:
            raise RunStops(
                f"{self._path.name} has no answer to the request about "
                f"{one_line(request.about, 80)}: it was recorded with another model, other "
                "options or other traces"
            )
        # The limit depends on earlier answers of a run, so it may differ from the recorded one.
        # Prefer the lowest recorded limit that suffices, or else the highest.
        needed_limit = int(answer_tokens)
        sufficient_limits = [limit for limit in line_by_limit if limit >= needed_limit]
        return line_by_limit[min(sufficient_limits, default=max(line_by_limit))].outcome()


def _request_key(request: Request, parameters: Parameters, correction: Correction | None) -> str:
    """Return a hash of all that an answer depends on, except its token limit."""
    digest = hashlib.sha256(request.fingerprint.encode())
    correction_fields = None if correction is None else [correction.answer, correction.problem]
    digest.update(
        orjson.dumps(
            [
                parameters.model,
                parameters.temperature,
                sorted(parameters.extra_body),
                request.schema,
                correction_fields,
            ]
        )
    )
    return digest.hexdigest()


def _read_lines(path: Path) -> _LinesByRequest:
    """Return the last outcome of each request at each token limit.

    Raises:
        MastError: The file cannot be read, or a line is no outcome.
    """
    lines_by_request: dict[str, dict[int, _RecordedLine]] = {}
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise MastError(f"{path}: cannot be read: {error.strerror or error}") from error
    for number, text in enumerate(lines, 1):
        try:
            line = msgspec.json.decode(text, type=_RecordedLine)
            if (line.reply, line.too_long, line.unanswered) == (None, None, None):
                raise ValueError("no outcome")
        except (ValueError, RecursionError) as error:
            if number == len(lines) and number > 1:
                break  # a killed run may leave an incomplete last line
            raise MastError(
                f"{path}, line {number}: not a recorded answer; give a file that --record wrote"
            ) from error
        lines_by_request.setdefault(line.request, {})[line.room] = line
    return lines_by_request
