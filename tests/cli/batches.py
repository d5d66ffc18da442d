"""Answers to a file of requests, as vLLM's ``run-batch`` and the Batch API write them."""

from __future__ import annotations

import email
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.judges.llm.made_answers import judgement
from tests.judges.llm.server import MODEL, Action, Seen, document, raw, status

Line = dict[str, Any]
Answers = Callable[[Line, int], Line]
"""A function that makes the response to the body of the ``n``-th request."""


def requests_in(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def completion(text: str, *, finish: str = "stop", tokens_in: int = 3_000) -> Line:
    """Return the body of a right response."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": MODEL,
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
        ],
        "usage": {
            "prompt_tokens": tokens_in,
            "completion_tokens": 500,
            "total_tokens": tokens_in + 500,
        },
    }


def response(body: Line) -> Line:
    return {
        "response": {"status_code": 200, "request_id": "vllm-batch-1", "body": body},
        "error": None,
    }


def refusal(status: int, message: str) -> Line:
    """Return a refusal as vLLM writes it: an empty response and an error with the message."""
    return {
        "response": {"status_code": status, "request_id": "vllm-batch-1", "body": None},
        "error": {"error": {"message": message, "type": "BadRequestError", "code": status}},
    }


def expired() -> Line:
    """Return the error of a request that has expired, as OpenAI writes it."""
    message = "This request could not be executed before the completion window expired."
    return {"response": None, "error": {"code": "batch_expired", "message": message}}


def right_answer(body: Line, _: int) -> Line:
    return response(completion(judgement(body)))


def run_batch(requests: Path, answers: Path, says: Answers = right_answer) -> int:
    """Answer all requests of a file in reverse order, and return their number."""
    lines = [
        json.dumps({"id": f"vllm-{n}", "custom_id": line["custom_id"], **says(line["body"], n)})
        for n, line in enumerate(requests_in(requests))
    ]
    answers.write_text("\n".join(reversed(lines)) + "\n", "utf-8")
    return len(lines)


@dataclass
class BatchDesk:
    """A vendor's files and batches, for ``ModelServer.desk``.

    A batch is in progress for ``looks`` polls, and ends with the status ``ends``. ``says`` makes
    the responses to its requests, in reverse order; errors are in a separate file. ``refuses``
    may answer a call, by method and path, before it has an effect; ``after`` may do so afterwards.
    """

    says: Answers = right_answer
    looks: int = 1
    ends: str = "completed"
    problem: str = ""
    refuses: Callable[[str, str], Action | None] = lambda _method, _path: None
    after: Callable[[str, str], Action | None] = lambda _method, _path: None
    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[str, Line] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)

    def __call__(self, request: Seen, content: bytes) -> Action | None:
        path = request.path.split("?")[0].removeprefix("/v1")
        if not path.startswith(("/files", "/batches")):
            return None
        action = self.refuses(request.method, path)
        if action is None:
            answer = self._answer_request(request, path, content)
            action = self.after(request.method, path) or answer
        return action

    def _answer_request(self, request: Seen, path: str, content: bytes) -> Action:
        """Upload a file, return a file, or create or return a batch."""
        if path == "/files":
            name = f"file-{len(self.files)}"
            self.files[name] = _uploaded(content, request.headers["content-type"])
            return document({"id": name, "object": "file", "bytes": 1, "purpose": "batch"})
        if path.startswith("/files/"):
            stored = self.files.get(path.split("/")[2])
            return status(404, "no such file") if stored is None else raw(stored)
        if request.method == "POST":
            return document(self._created_batch(request.body))
        if path == "/batches":
            return document({"object": "list", "data": [*self.batches.values()], "has_more": False})
        batch = self.batches.get(path.split("/")[2])
        return (
            status(404, "no such batch") if batch is None else document(self._polled_batch(batch))
        )

    def _created_batch(self, request: Line) -> Line:
        """Add a batch for an uploaded file of requests, and return it."""
        count = len(self.files[str(request["input_file_id"])].splitlines())
        name = f"batch_{len(self.batches)}"
        self.batches[name] = {
            **request,
            "id": name,
            "object": "batch",
            "created_at": 1,
            "status": "validating",
            "request_counts": {"total": count, "completed": 0, "failed": 0},
        }
        return self.batches[name]

    def _polled_batch(self, batch: Line) -> Line:
        """Return a batch; it ends after enough polls."""
        name = batch["id"]
        self.seen[name] = self.seen.get(name, 0) + 1
        if self.seen[name] <= self.looks:
            batch["status"] = "in_progress"
        elif batch["status"] != self.ends:
            batch["status"] = self.ends
            if self.ends == "failed":
                batch["errors"] = {"object": "list", "data": [{"message": self.problem}]}
            else:
                self._complete_batch(batch)
        return batch

    def _complete_batch(self, batch: Line) -> None:
        """Write the files of answers and errors of a batch, in reversed order."""
        requests = [json.loads(line) for line in self.files[batch["input_file_id"]].splitlines()]
        answers: list[str] = []
        errors: list[str] = []
        for number, line in enumerate(requests):
            result = {
                "id": f"r{number}",
                "custom_id": line["custom_id"],
                **self.says(line["body"], number),
            }
            (errors if result["error"] else answers).append(json.dumps(result))
        for kind, lines in (("output", answers), ("error", errors)):
            if lines:
                name = f"{batch['id']}-{kind}"
                self.files[name] = "\n".join(reversed(lines)).encode()
                batch[f"{kind}_file_id"] = name
        counts = batch["request_counts"]
        batch["request_counts"] = {**counts, "completed": len(answers), "failed": len(errors)}


def _uploaded(content: bytes, kind: str) -> bytes:
    """Return the file in an uploaded form."""
    parts = email.message_from_bytes(f"content-type: {kind}\r\n\r\n".encode() + content)
    for part in parts.walk():
        if part.get_filename():
            payload = part.get_payload(decode=True)
            assert isinstance(payload, bytes)
            return payload.strip()
    raise AssertionError("no file was sent")
