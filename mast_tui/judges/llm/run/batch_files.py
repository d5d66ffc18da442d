"""Requests that are written into files, and answers that come back in others, whatever their order.

A line is as the OpenAI Batch API and vLLM's ``run-batch`` take it: ``custom_id``, ``method``,
``url``, ``body``; and as they give it: ``custom_id``, ``response``, ``error``. The ``custom_id``
follows from the trace, the reading of it, all that the answer depends on, and how often it was
asked before; the mark that is drawn for each file is no part of it.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Final, SupportsInt

import orjson

from mast_tui.errors import MastError
from mast_tui.judges.llm.client.api_capabilities import ApiCapabilities
from mast_tui.judges.llm.client.api_errors import (
    ApiError,
    ErrorKind,
    api_error_of,
    error_kind_of,
)
from mast_tui.judges.llm.client.budget import Budget
from mast_tui.judges.llm.client.keys import scrub
from mast_tui.judges.llm.client.replies import UnusableReply, read_body, was_cut
from mast_tui.judges.llm.errors import ContextOverflow, Deferred, Unanswered
from mast_tui.judges.llm.prompt.prompt import boundary_of, messages
from mast_tui.judges.llm.request import Correction, Form, ModelClient, Reply, Request
from mast_tui.judges.llm.run.run_journal import RunRecord, kept_reply
from mast_tui.judges.llm.run.running import Report
from mast_tui.judges.llm.run.setup import Setup
from mast_tui.safe_text import one_line
from mast_tui.traces.io.private_files import open_private
from mast_tui.workspace import Asked, Usage, Workspace

ENDPOINT: Final = "/v1/chat/completions"

MOST_REQUESTS: Final = 50_000
MOST_BYTES: Final = 200_000_000
"""What a vendor takes in one file (platform.openai.com/docs/guides/batch, November 2026)."""

_KEY_DIGITS: Final = 32
_LATER: Final = frozenset(
    (
        ErrorKind.BUSY,
        ErrorKind.AGAIN,
        ErrorKind.LOADING,
        ErrorKind.KEY,
        ErrorKind.DENIED,
        ErrorKind.MONEY,
    )
)
"""Errors that say nothing of the request: it is asked again."""

_WORDS: Final = 200


class BatchFileError(MastError):
    """A file of requests or answers cannot be used; the message says why, and what to do."""


def custom_id(request: Request, key: str, asked: int) -> str:
    """Name a request, in at most 64 characters.

    Args:
        request: What is asked.
        key: The hash of all that its answer depends on.
        asked: How many answers to it could not be used.
    """
    about = hashlib.sha256(request.about.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{about}-{request.sample}-{key[:_KEY_DIGITS]}-{asked}"


class RequestFiles:
    """Writes requests, a line each, into as many files as a vendor's limits want.

    The first has the name that is given, ``F.jsonl``, the others ``F-2.jsonl`` and so on. They are
    made for their owner alone, and take the place of older ones when ``done``.

    Raises:
        BatchFileError: Something else than requests stands there.
    """

    def __init__(
        self, path: Path, *, most_requests: int = MOST_REQUESTS, most_bytes: int = MOST_BYTES
    ) -> None:
        if path.exists() and path.stat().st_size and not _holds_requests(path):
            raise BatchFileError(
                f"{path}: it holds something else than requests, which would be lost; "
                "name another file"
            )
        self._path = path
        self._most_requests, self._most_bytes = most_requests, most_bytes
        self._file: IO[bytes] | None = None
        self._bytes = 0
        self.paths: list[Path] = []
        """Where they stand."""
        self.counts: list[int] = []
        """How many each holds."""

    def write(self, name: str, body: Mapping[str, object]) -> None:
        """Write one request."""
        line = orjson.dumps(
            {"custom_id": name, "method": "POST", "url": ENDPOINT, "body": body},
            option=orjson.OPT_APPEND_NEWLINE,
        )
        if self._file is None or (self._is_full(len(line)) and self.counts[-1]):
            self._file = self._next()
        self._file.write(line)
        self.counts[-1] += 1
        self._bytes += len(line)

    def _is_full(self, more: int) -> bool:
        return self.counts[-1] >= self._most_requests or self._bytes + more > self._most_bytes

    def done(self) -> None:
        """Put the files in their places, and take away older ones behind them."""
        if self._file is not None:
            self._file.close()
        for path in self.paths:
            _half(path).replace(path)
        if not self.paths:
            return
        number = len(self.paths) + 1
        while (old := self._named(number)).exists() and _holds_requests(old):
            old.unlink()
            number += 1

    def give_up(self) -> None:
        """Leave nothing behind of what is not done."""
        if self._file is not None:
            self._file.close()
        for path in self.paths:
            _half(path).unlink(missing_ok=True)

    def _next(self) -> IO[bytes]:
        if self._file is not None:
            self._file.close()
        self.paths.append(self._named(len(self.paths) + 1))
        self._bytes = 0
        self.counts.append(0)
        return os.fdopen(open_private(_half(self.paths[-1]), empty=True), "wb")

    def _named(self, number: int) -> Path:
        path = self._path
        return path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")


def _half(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def _holds_requests(path: Path) -> bool:
    with path.open("rb") as file:
        first = file.readline()
    try:
        line = orjson.loads(first)
    except orjson.JSONDecodeError:
        return False
    return isinstance(line, dict) and {"custom_id", "body"} <= line.keys()


class AnswerFiles:
    """Finds answers in files by their names; the lines stay on disk.

    Where several have one name, the last right answer counts. ``broken`` is how many lines are no
    answers.

    Raises:
        BatchFileError: A file cannot be read, or holds no answer at all.
    """

    def __init__(self, paths: Sequence[Path], files: ExitStack) -> None:
        self._files: list[IO[bytes]] = []
        self._places: dict[str, tuple[int, int, bool]] = {}
        self._found: set[str] = set()
        self.broken = 0
        for path in paths:
            try:
                self._files.append(files.enter_context(path.open("rb")))
                self._read(path, len(self._files) - 1)
            except OSError as error:
                reason = error.strerror or str(error)
                raise BatchFileError(f"{path}: cannot be read: {reason}") from error

    def __len__(self) -> int:
        return len(self._places)

    def _read(self, path: Path, number: int) -> None:
        lines = broken = offset = 0
        for raw in self._files[number]:
            if raw.strip():
                lines += 1
                line = _answer_line(raw)
                if line is None:
                    broken += 1
                else:
                    right = _is_right(line)
                    name = str(line["custom_id"])
                    if right or not self._places.get(name, (0, 0, False))[2]:
                        self._places[name] = (number, offset, right)
            offset += len(raw)
        if lines and lines == broken:
            raise BatchFileError(
                f"{path}: no line in it is an answer of a batch; name the file that the Batch API "
                "or vllm run-batch -o has written"
            )
        self.broken += broken

    def find(self, name: str) -> Mapping[str, Any] | None:
        """Give the line of this name, and note that it belongs here."""
        position = self._places.get(name)
        if position is None:
            return None
        self._found.add(name)
        file = self._files[position[0]]
        file.seek(position[1])
        return _answer_line(file.readline())

    def strangers(self, keys: Iterable[str]) -> int:
        """Count the answers that belong to nothing that is asked here.

        Args:
            keys: The keys of what was answered here before.
        """
        answered_keys = {key[:_KEY_DIGITS] for key in keys}
        left = (name.split("-") for name in self._places.keys() - self._found)
        return sum(len(parts) != 4 or parts[2] not in answered_keys for parts in left)


def _answer_line(raw: bytes) -> Mapping[str, Any] | None:
    try:
        line = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(line, dict) or not isinstance(line.get("custom_id"), str):
        return None
    return line if {"response", "error"} & line.keys() else None


def _is_right(line: Mapping[str, Any]) -> bool:
    response = line.get("response")
    return isinstance(response, dict) and not line.get("error") and _status(response) < 400


def _status(response: Mapping[str, Any]) -> int:
    status = response.get("status_code", 200)
    return status if isinstance(status, int) else 502


class Batch:
    """Answers from files, and what has no answer written into others, for one command.

    What an earlier command read and could not use goes on where it was, so that reading a file
    twice changes nothing.
    """

    def __init__(
        self,
        setup: Setup,
        workspace: Workspace,
        *,
        again: bool,
        answers: AnswerFiles | None,
        requests: RequestFiles | None,
    ) -> None:
        before = RunRecord(setup, workspace, again=again).before if again else None
        bad = workspace.unusable_answers()
        if again:
            bad = tuple(asked for asked in bad if before is not None and asked.run_id == before.id)
        self.bad: dict[str, list[Asked]] = defaultdict(list)
        for asked in bad:
            self.bad[asked.key].append(asked)
        self._keys = workspace.answer_keys()
        self.answers, self.requests = answers, requests
        self.read = 0
        """How many answers were read now."""
        self.troubles: Counter[str] = Counter()
        """What kept others from being answers, in words."""

    def strangers(self) -> int:
        """Count the answers in the files that belong to no request of this run."""
        return 0 if self.answers is None else self.answers.strangers((*self._keys, *self.bad))

    @asynccontextmanager
    async def connect(
        self, setup: Setup, spent: Usage, _on_wait: Report, on_remark: Report
    ) -> AsyncIterator[ModelClient]:
        """Answer from the files."""
        budget = Budget(setup.allowance, prices=setup.prices, used=spent)
        yield _BatchClient(self, setup, budget, on_remark)


class _BatchClient(ModelClient):
    """Gives the answers that are there, and puts off the rest."""

    def __init__(self, batch: Batch, setup: Setup, budget: Budget, on_remark: Report) -> None:
        self._batch, self._setup, self._budget = batch, setup, budget
        self._capabilities = ApiCapabilities(setup.parameters, setup.host, on_remark)
        self._secret = secrets.token_bytes(32)
        self._key = os.environ.get(setup.key_variable, "").strip()
        self._given: Counter[str] = Counter()

    async def ask(
        self, request: Request, answer_tokens: SupportsInt, correction: Correction | None = None
    ) -> Reply:
        """Give the answer, or write the request down.

        Raises:
            Deferred: There is no answer yet.
            ContextOverflow: The request was too long.
            Unanswered: It was refused; it is written down once more.
        """
        room = int(answer_tokens)
        key = self._setup.prompt.answer_key(request, room)
        bad = self._batch.bad.get(key, [])
        if correction is None and (stored_reply := _still_open(bad)) is not None:
            return stored_reply
        name = custom_id(request, key, len(bad) + self._given[key])
        line = None if self._batch.answers is None else self._batch.answers.find(name)
        if line is not None:
            try:
                reply = self._read(line, request)
            except Unanswered:
                await self._write(name, request, room, correction)
                raise
            if reply is not None:
                self._batch.read += 1
                self._given[key] += 1
                return reply
        await self._write(name, request, room, correction)
        raise Deferred("its answer is still to come")

    async def _write(
        self, name: str, request: Request, answer_tokens: int, correction: Correction | None
    ) -> None:
        if self._batch.requests is None:
            return
        reserved = await self._budget.reserve(request.tokens, answer_tokens)
        self._budget.settle(reserved, reserved.tokens_in, reserved.tokens_out)
        request_form = self._capabilities.request_form
        texts = messages(request, boundary_of(request, self._secret), correction)
        body = self._capabilities.body(request_form, texts, request.schema, answer_tokens)
        self._batch.requests.write(name, body)

    def _read(self, line: Mapping[str, Any], request: Request) -> Reply | None:
        """The answer in a line; None where it has to be asked again."""
        form = self._capabilities.request_form.form
        got = outcome_of(line, form, request.tokens)
        host = self._setup.host
        if isinstance(got, UnusableReply):
            self._batch.troubles[f"the response held {got.content}"] += 1
            return None
        if isinstance(got, ApiError):
            return self._refused(got, form)
        texts = messages(request, boundary_of(request, self._secret))
        if was_cut(got, (text["content"] for text in texts), request.tokens):
            raise ContextOverflow(
                f"{host} read only {got.tokens_in:,} tokens of about {request.tokens:,}: it cuts "
                "what is longer than its context; let it read more",
            )
        if not self._key:
            return got
        return replace(got, text=scrub(got.text, self._key))

    def _refused(self, error: ApiError, form: Form) -> Reply | None:
        message = one_line(scrub(error.message, self._key).strip().rstrip("."), _WORDS)
        error_kind = error_kind_of(error)
        if error_kind in _LATER:
            self._batch.troubles[message] += 1
            return None
        if error_kind is ErrorKind.OVERFLOW:
            raise ContextOverflow(f"the request is too long: {message}")
        if error_kind is ErrorKind.FILTERED:
            return Reply(message, "refusal", form, 0, 0, counted=False)
        problem = f"the request was refused: {message} ({error.status})"
        self._batch.troubles[problem] += 1
        raise Unanswered(problem)


def _still_open(bad: Sequence[Asked]) -> Reply | None:
    """The last answer that could not be used, where what follows from it is still to be asked."""
    last = bad[-1] if bad else None
    if last is None or last.finish == "refusal":
        return None
    if last.finish == "stop":
        cut_answers = (
            number for number, asked in enumerate(reversed(bad)) if asked.finish != "stop"
        )
        if next(cut_answers, len(bad)) % 2 == 0:
            return None  # it was asked twice, and begins anew
    return kept_reply(last)


def outcome_of(line: Mapping[str, Any], form: Form, sent: int) -> Reply | ApiError | UnusableReply:
    """Read what came of a request.

    Args:
        line: The line of the answer.
        form: The form of answer that was asked for.
        sent: An estimate of the request's tokens.
    """
    response, error = line.get("response"), line.get("error")
    if isinstance(response, dict) and _is_right(line):
        body = response.get("body", response)
        return read_body(body, form=form, sent_tokens=sent)
    status, body = 503, error  # what expired or was cancelled has no status: it was not asked
    if isinstance(response, dict):
        status = _status(response)
        status = 502 if status < 400 else status
        body = response.get("body") or error
    return api_error_of(body, status)
