"""Runs that can be repeated: what a model answered goes into a file, and comes from it again.

A line for each answer, as JSON: ``request``, the SHA-256 of what was asked; ``about``, the trace's
id; ``room``, the tokens that the answer might take; and ``reply``, or why there was none in
``unanswered`` or ``too_long``. The mark that is drawn for each run is no part of what was asked;
keys, addresses and headers stand in no line.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, SupportsInt

import orjson

from mast_tui.errors import MastError
from mast_tui.judges.llm.errors import ContextOverflow, RunStops, Unanswered
from mast_tui.judges.llm.request import (
    MOST_TOKENS,
    Correction,
    ModelClient,
    Parameters,
    Reply,
    Request,
)
from mast_tui.judges.llm.run.running import Connect, Tell, connect_to_server
from mast_tui.judges.llm.run.setup import Setup
from mast_tui.safe_text import one_line
from mast_tui.traces.io.private_files import open_private
from mast_tui.workspace import Usage


@dataclass(frozen=True, slots=True)
class _TooLong:
    """The note that a request was too long, and the longest answer that there was room for."""

    words: str
    longest_answer: int | None


_Outcome = Reply | _TooLong | str
"""An answer, the note of a request that was too long, or why there was no answer."""

_Answers = Mapping[str, Mapping[int, _Outcome]]
"""What a line tells, by question and by the room for its answer."""


class RecordingError(MastError):
    """A file of recorded answers cannot be used; the message says why, and what to do."""


def open_record(path: Path) -> IO[bytes]:
    """Open a file to write answers behind those in it; made for its owner alone, as they quote
    the traces.

    Raises:
        RecordingError: Something else stands in it.
        OSError: From the file system.
    """
    if path.exists() and path.stat().st_size:
        _read(path)
    file = os.fdopen(open_private(path), "r+b")
    whole = file.read().rfind(b"\n") + 1  # a run that was broken off may have left half a line
    file.truncate(whole)
    file.seek(whole)
    return file


def recording(file: IO[bytes]) -> Connect:
    """Ask as ever, and write every answer down, behind what stands in the file.

    Args:
        file: As ``open_record`` opens it.
    """

    @asynccontextmanager
    async def connect(
        setup: Setup, spent: Usage, on_wait: Tell, on_remark: Tell
    ) -> AsyncIterator[ModelClient]:
        async with connect_to_server(setup, spent, on_wait, on_remark) as asks:
            yield _Recorder(asks, setup.parameters, file)

    return connect


def replaying(path: Path) -> Connect:
    """Answer from a file of recorded answers; nothing is sent.

    Raises:
        RecordingError: The file cannot be read, or is none of recorded answers.
    """
    answers = _read(path)

    @asynccontextmanager
    async def connect(
        setup: Setup, _spent: Usage, _on_wait: Tell, _on_remark: Tell
    ) -> AsyncIterator[ModelClient]:
        yield _Player(answers, setup.parameters, path)

    return connect


class _SentRoom:
    """The room for an answer that was read last, which is that of the request that was sent."""

    def __init__(self, answer_tokens: SupportsInt) -> None:
        self._answer_tokens = answer_tokens
        self.tokens = 0

    def __int__(self) -> int:
        self.tokens = int(self._answer_tokens)
        return self.tokens


class _Recorder(ModelClient):
    """Asks somebody else, and keeps what was answered."""

    def __init__(self, asks: ModelClient, parameters: Parameters, file: IO[bytes]) -> None:
        self._asks, self._parameters, self._file = asks, parameters, file

    async def ask(
        self, request: Request, answer_tokens: SupportsInt, correction: Correction | None = None
    ) -> Reply:
        """Ask, and write down what came of it."""
        key = _key(request, self._parameters, correction)
        room = _SentRoom(answer_tokens)

        def write(**outcome: object) -> None:
            line = {"request": key, "about": request.about, "room": room.tokens, **outcome}
            self._file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
            self._file.flush()

        try:
            reply = await self._asks.ask(request, room, correction)
        except ContextOverflow as error:
            write(too_long=str(error), longest_answer=error.answer_room)
            raise
        except Unanswered as error:
            write(unanswered=str(error))
            raise
        write(reply=asdict(reply))
        return reply

    def note(self, problem: str | None) -> None:
        """Pass on whether the last answer could be used."""
        self._asks.note(problem)


class _Player(ModelClient):
    """Answers as somebody did before."""

    def __init__(
        self,
        answers: _Answers,
        parameters: Parameters,
        path: Path,
    ) -> None:
        self._answers, self._parameters, self._path = answers, parameters, path

    async def ask(
        self, request: Request, answer_tokens: SupportsInt, correction: Correction | None = None
    ) -> Reply:
        """Give what was answered to this question.

        How much room an answer gets depends on what others took before; one that was given in
        more room, or else in less, answers the question too.
        """
        answers_by_room = self._answers.get(_key(request, self._parameters, correction))
        if answers_by_room is None:
            raise RunStops(
                f"{self._path.name} has no answer to what is asked about "
                f"{one_line(request.about, 80)}: it was recorded with another model, other options "
                "or other traces"
            )
        room_needed = int(answer_tokens)
        line = answers_by_room[
            min(
                (room for room in answers_by_room if room >= room_needed),
                default=max(answers_by_room),
            )
        ]
        if isinstance(line, Reply):
            return line
        if isinstance(line, _TooLong):
            raise ContextOverflow(line.words, answer_room=line.longest_answer)
        raise Unanswered(line)


def _key(request: Request, parameters: Parameters, correction: Correction | None) -> str:
    """What is asked of which model, and how; not the mark, and not the room for the answer."""
    digest = hashlib.sha256(request.fingerprint.encode())
    corrected = None if correction is None else [correction.answer, correction.problem]
    digest.update(
        orjson.dumps(
            [
                parameters.model,
                parameters.temperature,
                sorted(parameters.extra_body),
                request.schema,
                corrected,
            ]
        )
    )
    return digest.hexdigest()


def _recorded(line: Mapping[str, object]) -> _Outcome:
    """Read what came of a question; raises ``ValueError`` where a line does not tell."""
    if "reply" in line:
        return Reply.read(line["reply"])
    message = line["too_long"] if "too_long" in line else line["unanswered"]
    if not isinstance(message, str):
        raise ValueError("no words")
    if "too_long" not in line:
        return message
    room = line.get("longest_answer")
    if room is not None and (type(room) is not int or not 0 < room < MOST_TOKENS):
        raise ValueError("no such room")
    return _TooLong(message, room)


def _read(path: Path) -> _Answers:
    """Read what was answered last to each question."""
    answers: dict[str, dict[int, _Outcome]] = {}
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read: {error.strerror or error}") from error
    for number, line in enumerate(lines, 1):
        try:
            fields = orjson.loads(line)
            answers.setdefault(str(fields["request"]), {})[int(fields["room"])] = _recorded(fields)
        except (ValueError, TypeError, KeyError) as error:
            if number == len(lines) and number > 1:
                break  # a run was broken off while it was written
            raise RecordingError(
                f"{path}, line {number}: no recorded answer; name a file that --record has written"
            ) from error
    return answers
