"""What becomes of a file of requests, as vLLM's ``run-batch`` and the Batch API write it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.judges.llm.made_answers import said
from tests.judges.llm.server import MODEL

Line = dict[str, Any]
Answers = Callable[[Line, int], Line]
"""What is said to the body of the ``n``-th request."""


def requests_in(path: Path) -> list[Line]:
    """The requests of a file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def completion(text: str, *, finish: str = "stop", tokens_in: int = 3_000) -> Line:
    """The body of a right response."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": MODEL,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": finish,
            }
        ],
        "usage": {
            "prompt_tokens": tokens_in,
            "completion_tokens": 500,
            "total_tokens": tokens_in + 500,
        },
    }


def done(body: Line) -> Line:
    """A response with this body."""
    return {
        "response": {"status_code": 200, "request_id": "vllm-batch-1", "body": body},
        "error": None,
    }


def refused(status: int, message: str) -> Line:
    """A request that was refused, as vLLM writes it: the words stand beside an empty response."""
    return {
        "response": {"status_code": status, "request_id": "vllm-batch-1", "body": None},
        "error": {"error": {"message": message, "type": "BadRequestError", "code": status}},
    }


def expired() -> Line:
    """A request whose time was up, as OpenAI writes it."""
    words = "This request could not be executed before the completion window expired."
    return {"response": None, "error": {"code": "batch_expired", "message": words}}


def right(body: Line, _: int) -> Line:
    """A right answer to whatever is asked."""
    return done(completion(said(body)))


def run_batch(requests: Path, answers: Path, says: Answers = right) -> int:
    """Answer all requests of a file, the last first; how many they were."""
    lines = [
        json.dumps({"id": f"vllm-{n}", "custom_id": line["custom_id"], **says(line["body"], n)})
        for n, line in enumerate(requests_in(requests))
    ]
    answers.write_text("\n".join(reversed(lines)) + "\n", "utf-8")
    return len(lines)
