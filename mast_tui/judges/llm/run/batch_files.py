"""Files of requests, and files of their answers in any order.

The lines have the form of the OpenAI Batch API and of vLLM's ``run-batch``. A request has
``custom_id``, ``method``, ``url`` and ``body``; an answer has ``custom_id``, ``response`` and
``error``.
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
from typing import IO, Any, Final, NamedTuple, SupportsInt

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
from mast_tui.judges.llm.client.endpoint import scrub
from mast_tui.judges.llm.client.replies import UnusableReply, read_body, was_cut
from mast_tui.judges.llm.prompt.prompt import messages
from mast_tui.judges.llm.request import (
    ContextOverflow,
    Correction,
    Deferred,
    Form,
    ModelClient,
    Reply,
    Request,
    Unanswered,
)
from mast_tui.judges.llm.run.run_journal import RunRecord, reply_from_record
from mast_tui.judges.llm.run.running import Report
from mast_tui.judges.llm.run.setup import Setup
from mast_tui.safe_text import one_line
from mast_tui.traces.io.private_files import open_private
from mast_tui.workspace import Asked, Usage, Workspace

ENDPOINT: Final = "/v1/chat/completions"

MOST_REQUESTS: Final = 50_000
MOST_BYTES: Final = 200_000_000
"""A vendor's limits of one file (platform.openai.com/docs/guides/batch, November 2026)."""

_KEY_DIGITS: Final = 32
_TEMPORARY_ERRORS: Final = frozenset(
    (
        ErrorKind.BUSY,
        ErrorKind.TEMPORARY,
        ErrorKind.LOADING,
        ErrorKind.KEY,
        ErrorKind.DENIED,
        ErrorKind.MONEY,
    )
)
"""The errors that do not concern the request itself, so that it is written again."""

_MESSAGE_CHARS: Final = 200

_BAD_RESPONSE_STATUS: Final = 502
_NOT_SENT_STATUS: Final = 503
"""The status of errors without a status. The requests are written again."""


def custom_id(request: Request, key: str, answer_count: int) -> str:
    """Return the name of a request in a batch, of at most 64 characters.

    Args:
        request: The request.
        key: The hash of all that its answer depends on.
        answer_count: The number of earlier answers to it.
    """
    trace_hash = hashlib.sha256(request.about.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{trace_hash}-{request.sample}-{key[:_KEY_DIGITS]}-{answer_count}"


class RequestFiles:
    """Files of requests, one request in each line, as many files as the limits require.

    The files are ``F.jsonl``, ``F-2.jsonl`` and so on. Only their owner may read them. ``finish``
    puts them in place of older files.

    Args:
        path: The path of the first file.
        most_requests: The most requests of a file.
        most_bytes: The most bytes of a file.

    Raises:
        MastError: The path holds something other than requests.
    """

    def __init__(
        self, path: Path, *, most_requests: int = MOST_REQUESTS, most_bytes: int = MOST_BYTES
    ) -> None:
        if path.exists() and path.stat().st_size and not _holds_requests(path):
            raise MastError(
                f"{path}: contains something other than requests, which would be lost; give "
                "another file"
            )
        self._path = path
        self._most_requests = most_requests
        self._most_bytes = most_bytes
        self._file: IO[bytes] | None = None
        self._byte_count = 0
        """The bytes of the last file."""
        self.paths: list[Path] = []
        self.counts: list[int] = []
        """The number of requests in each file."""

    def write(self, name: str, body: Mapping[str, object]) -> None:
        """Write one request, to a new file if the last one is full.

        Args:
            name: The ``custom_id`` of the request.
            body: The body of the request.
        """
        line = orjson.dumps(
            {"custom_id": name, "method": "POST", "url": ENDPOINT, "body": body},
            option=orjson.OPT_APPEND_NEWLINE,
        )
        # An empty file accepts a request of any length.
        if self._file is None or (self._is_full(len(line)) and self.counts[-1]):
            self._file = self._open_next_file()
        self._file.write(line)
        self.counts[-1] += 1
        self._byte_count += len(line)

    def _is_full(self, line_bytes: int) -> bool:
        if self.counts[-1] >= self._most_requests:
            return True
        return self._byte_count + line_bytes > self._most_bytes

    def finish(self) -> None:
        """Rename the partial files to their paths, and delete older files with higher numbers."""
        if self._file is not None:
            self._file.close()
        for path in self.paths:
            _partial_path(path).replace(path)
        if not self.paths:
            return
        number = len(self.paths) + 1
        older_path = self._numbered_path(number)
        while older_path.exists() and _holds_requests(older_path):
            older_path.unlink()
            number += 1
            older_path = self._numbered_path(number)

    def give_up(self) -> None:
        """Delete the partial files."""
        if self._file is not None:
            self._file.close()
        for path in self.paths:
            _partial_path(path).unlink(missing_ok=True)

    def _open_next_file(self) -> IO[bytes]:
        """Close the current file of requests, and return the next one."""
        if self._file is not None:
            self._file.close()
        self.paths.append(self._numbered_path(len(self.paths) + 1))
        self._byte_count = 0
        self.counts.append(0)
        return os.fdopen(open_private(_partial_path(self.paths[-1]), empty=True), "wb")

    def _numbered_path(self, number: int) -> Path:
        path = self._path
        return path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")


def _partial_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def _holds_requests(path: Path) -> bool:
    """Check whether the first line of a file is a request."""
    with path.open("rb") as file:
        first_line = file.readline()
    try:
        fields = orjson.loads(first_line)
    except orjson.JSONDecodeError:
        return False
    return isinstance(fields, dict) and {"custom_id", "body"} <= fields.keys()


class _AnswerLocation(NamedTuple):
    """The location of an answer: the number of its file, and the offset of its line."""

    file_number: int
    offset: int
    is_success: bool


class AnswerFiles:
    """The answers in files, by the names of their requests; the lines stay on disk.

    Of several answers with one name, the last successful one counts.

    Args:
        paths: The files.
        files: Closes the files.

    Raises:
        MastError: A file cannot be read, or none of its lines is an answer.
    """

    def __init__(self, paths: Sequence[Path], files: ExitStack) -> None:
        self._files: list[IO[bytes]] = []
        self._locations: dict[str, _AnswerLocation] = {}
        self._found_names: set[str] = set()
        """The names with which ``find`` was successful."""
        self.broken_count = 0
        """The number of lines that are no answers."""
        for path in paths:
            try:
                self._files.append(files.enter_context(path.open("rb")))
                self._index_answers(path, len(self._files) - 1)
            except OSError as error:
                reason = error.strerror or str(error)
                raise MastError(f"{path}: cannot be read: {reason}") from error

    def __len__(self) -> int:
        return len(self._locations)

    def _index_answers(self, path: Path, file_number: int) -> None:
        """Record the location of each answer in a file.

        Raises:
            MastError: No line of the file is an answer.
        """
        line_count = 0
        broken_count = 0
        offset = 0
        for line in self._files[file_number]:
            if line.strip():
                line_count += 1
                answer = _parse_answer(line)
                if answer is None:
                    broken_count += 1
                else:
                    name = str(answer["custom_id"])
                    location = _AnswerLocation(file_number, offset, _is_success(answer))
                    earlier_location = self._locations.get(name)
                    has_success = earlier_location is not None and earlier_location.is_success
                    # The last answer counts, but an error does not replace a success.
                    if location.is_success or not has_success:
                        self._locations[name] = location
            offset += len(line)
        if line_count and line_count == broken_count:
            raise MastError(
                f"{path}: contains no answer of a batch; give the file that the Batch API or "
                "vllm run-batch -o wrote"
            )
        self.broken_count += broken_count

    def find(self, name: str) -> Mapping[str, Any] | None:
        """Return the answer to the request of a name, or None, and record that it was found."""
        location = self._locations.get(name)
        if location is None:
            return None
        self._found_names.add(name)
        file = self._files[location.file_number]
        file.seek(location.offset)
        return _parse_answer(file.readline())

    def count_strangers(self, keys: Iterable[str]) -> int:
        """Count the answers to neither a request of this run nor an earlier request.

        Args:
            keys: The keys of the stored answers.
        """
        answered_keys = {key[:_KEY_DIGITS] for key in keys}
        stranger_count = 0
        for name in self._locations.keys() - self._found_names:
            parts = name.split("-")  # as ``custom_id`` joins them; the third part is the key
            if len(parts) != 4 or parts[2] not in answered_keys:
                stranger_count += 1
        return stranger_count


def _parse_answer(line: bytes) -> Mapping[str, Any] | None:
    """Return the fields of a line in a result file; None if the line is no answer."""
    try:
        answer = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(answer, dict) or not isinstance(answer.get("custom_id"), str):
        return None
    return answer if {"response", "error"} & answer.keys() else None


def _is_success(answer: Mapping[str, Any]) -> bool:
    response = answer.get("response")
    return isinstance(response, dict) and not answer.get("error") and _status_of(response) < 400


def _status_of(response: Mapping[str, Any]) -> int:
    status = response.get("status_code", 200)
    return status if isinstance(status, int) else _BAD_RESPONSE_STATUS


class Batch:
    """The files of one command: answers to read, and requests without an answer to write.

    Args:
        setup: The judge and its settings.
        workspace: The workspace with the stored answers.
        again: True to ignore the answers of earlier runs.
        answers: The files of answers, or None.
        requests: The files for requests, or None.
    """

    def __init__(
        self,
        setup: Setup,
        workspace: Workspace,
        *,
        again: bool,
        answers: AnswerFiles | None = None,
        requests: RequestFiles | None = None,
    ) -> None:
        # A run that judges again uses only the answers of its own earlier part.
        run = RunRecord(setup, workspace, again=again).previous_run if again else None
        run_id = None if run is None else run.id
        self.unusable_by_key: dict[str, list[Asked]] = defaultdict(list)
        """The stored unusable answers by the key of their request, in their order. They are a part
        of a request's name, so reading a file twice changes nothing."""
        for unusable in workspace.unusable_answers():
            if not again or unusable.run_id == run_id:
                self.unusable_by_key[unusable.key].append(unusable)
        self._answer_keys = workspace.answer_keys()
        self.answers = answers
        self.requests = requests
        self.read_count = 0
        """The number of answers that this command has read."""
        self.troubles: Counter[str] = Counter()
        """The number of lines without a usable answer, by problem."""

    def count_strangers(self) -> int:
        """Count the answers in the files that belong to no request of this run."""
        if self.answers is None:
            return 0
        return self.answers.count_strangers((*self._answer_keys, *self.unusable_by_key))

    @asynccontextmanager
    async def connect(
        self, setup: Setup, spent: Usage, _on_wait: Report, on_remark: Report
    ) -> AsyncIterator[ModelClient]:
        """Open a client that answers from the files.

        Args:
            setup: The judge and its settings.
            spent: The usage of the run so far.
            on_remark: Receives settings that the server refuses.
        """
        budget = Budget(setup.allowance, prices=setup.prices, used=spent)
        yield _BatchClient(self, setup, budget, on_remark)


class _BatchClient(ModelClient):
    """A client that answers from files, and writes and defers the other requests."""

    def __init__(self, batch: Batch, setup: Setup, budget: Budget, on_remark: Report) -> None:
        self._batch = batch
        self._setup = setup
        self._budget = budget
        self._capabilities = ApiCapabilities(setup.parameters, setup.host, on_remark)
        self._boundary_secret = secrets.token_bytes(32)
        self._api_key = os.environ.get(setup.key_variable, "").strip()
        self._answer_count_by_key: Counter[str] = Counter()
        """The number of answers read for each key."""

    async def ask(
        self, request: Request, answer_tokens: SupportsInt, correction: Correction | None = None
    ) -> Reply:
        """Return the answer to a request from the result files, or write the request.

        Args:
            request: The request.
            answer_tokens: The token limit of the answer.
            correction: The previous unusable answer and its problem, if there is one.

        Raises:
            Deferred: There is no answer yet; the request was written.
            ContextOverflow: The request was too long.
            Unanswered: The request was refused; it was written again.
        """
        answer_limit = int(answer_tokens)
        key = self._setup.prompt.answer_key(request, answer_limit)
        unusable_answers = self._batch.unusable_by_key.get(key, [])
        if correction is None:
            # For an unusable answer, the caller asks again: with a correction or more tokens.
            stored_reply = _reply_to_ask_about(unusable_answers)
            if stored_reply is not None:
                return stored_reply
        name = custom_id(request, key, len(unusable_answers) + self._answer_count_by_key[key])
        line = None if self._batch.answers is None else self._batch.answers.find(name)
        if line is not None:
            try:
                reply = self._read_reply(line, request)
            except Unanswered:
                await self._write_request(name, request, answer_limit, correction)
                raise
            if reply is not None:
                self._batch.read_count += 1
                self._answer_count_by_key[key] += 1
                return reply
        await self._write_request(name, request, answer_limit, correction)
        raise Deferred("its answer has not arrived yet")

    async def _write_request(
        self, name: str, request: Request, answer_tokens: int, correction: Correction | None
    ) -> None:
        """Write a request if the command writes requests, and charge its estimate to the budget."""
        if self._batch.requests is None:
            return
        reserved = await self._budget.reserve(request.tokens, answer_tokens)
        self._budget.settle(reserved, reserved.tokens_in, reserved.tokens_out)
        request_form = self._capabilities.request_form
        chat_messages = messages(request, self._boundary_secret, correction)
        body = self._capabilities.body(request_form, chat_messages, request.schema, answer_tokens)
        self._batch.requests.write(name, body)

    def _read_reply(self, line: Mapping[str, Any], request: Request) -> Reply | None:
        """Return the reply in a line of a result file, without the API key.

        Return None if the request must be sent again.

        Raises:
            ContextOverflow: The request was too long, or the server read only a part of it.
            Unanswered: The request was refused.
        """
        form = self._capabilities.request_form.answer_format
        outcome = outcome_of(line, form, request.tokens)
        host = self._setup.host
        if isinstance(outcome, UnusableReply):
            self._batch.troubles[f"the response contained {outcome.content}"] += 1
            return None
        if isinstance(outcome, ApiError):
            return self._reply_to_error(outcome, form)
        if was_cut(outcome, messages(request, self._boundary_secret), request.tokens):
            raise ContextOverflow(
                f"{host} read only {outcome.tokens_in:,} tokens of about {request.tokens:,}: "
                "it cuts off text beyond its context; give it a larger context",
            )
        if not self._api_key:
            return outcome
        return replace(outcome, text=scrub(outcome.text, self._api_key))

    def _reply_to_error(self, error: ApiError, form: Form) -> Reply | None:
        """Return the reply for a filtered request; None if the request must be sent again.

        Raises:
            ContextOverflow: The request was too long.
            Unanswered: The request was refused.
        """
        message = one_line(scrub(error.message, self._api_key).strip().rstrip("."), _MESSAGE_CHARS)
        error_kind = error_kind_of(error)
        if error_kind in _TEMPORARY_ERRORS:
            self._batch.troubles[message] += 1
            return None
        if error_kind is ErrorKind.OVERFLOW:
            raise ContextOverflow(f"the request is too long: {message}")
        if error_kind is ErrorKind.FILTERED:
            return Reply(message, "refusal", form, tokens_in=0, tokens_out=0, counted=False)
        problem = f"the request was refused: {message} ({error.status})"
        self._batch.troubles[problem] += 1
        raise Unanswered(problem)


def _reply_to_ask_about(unusable: Sequence[Asked]) -> Reply | None:
    """Return the last unusable answer to a request if the caller can ask again because of it.

    For an answer that was cut, the caller always asks again, with more tokens. A complete answer
    (``stop``) is corrected once. Otherwise the request is sent again from the beginning.
    """
    last = unusable[-1] if unusable else None
    if last is None or last.finish == "refusal":
        return None
    if last.finish == "stop":
        complete_count = 0
        for asked in reversed(unusable):
            if asked.finish != "stop":
                break
            complete_count += 1
        # Of consecutive complete answers, every second one is the answer to a correction.
        if complete_count % 2 == 0:
            return None
    return reply_from_record(last)


def outcome_of(
    line: Mapping[str, Any], form: Form, sent_tokens: int
) -> Reply | ApiError | UnusableReply:
    """Read a line of a result file: a reply, or the error of the server.

    Args:
        line: The JSON fields of the line.
        form: The requested form of the answer.
        sent_tokens: The estimated tokens of the request.
    """
    response = line.get("response")
    error = line.get("error")
    if isinstance(response, dict) and _is_success(line):
        return read_body(response.get("body", response), form=form, sent_tokens=sent_tokens)
    if not isinstance(response, dict):
        # An expired or cancelled request has no status, because no model got it.
        return api_error_of(error, _NOT_SENT_STATUS)
    status = _status_of(response)
    if status < 400:
        status = _BAD_RESPONSE_STATUS
    return api_error_of(response.get("body") or error, status)
