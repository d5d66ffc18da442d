"""A server to practise with: it speaks the OpenAI chat API on this machine, and has no model.

It answers the questions of ``mast-tui judge --judge llm`` by three plain rules of its own, with
real quotes, so that the whole way can be tried offline and for nothing::

    python scripts/practice_server.py --port 8765
    mast-tui judge runs/ --judge llm --model practice --base-url http://127.0.0.1:8765/v1

What it finds says nothing about any trace: equal tool calls in a row, words of success after an
error that nothing followed up, and a thanks or a farewell that is repeated. Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import groupby
from typing import Any, Final

MODEL: Final = "practice"

REPETITION, NO_VERIFICATION, NO_END = "1.3", "3.2", "1.5"
"""The codes of the modes that it knows something to say about."""

_MARK: Final = re.compile(r"\[(\w+) data begins\]")
_ASKED: Final = re.compile(r"Judge these modes, one entry for each: ([^\n]*?)\. ")
_SUCCESS: Final = re.compile(r"[^.\n]*\b(?:resolved|fixed|completed|successful\w*|done)\b[^.\n]*")
_ERROR: Final = re.compile(r"\b(?:error|failed|failure|traceback|exception|refused)\b", re.I)
_FAREWELL: Final = re.compile(
    r"[^.\n]*\b(?:thank you|thanks|goodbye|you're welcome)\b[^.\n]*", re.I
)

_LONGEST_QUOTE: Final = 160


@dataclass(frozen=True)
class Span:
    """A span as the request shows it: its number, what its header says, and its text."""

    number: int
    header: str
    text: str

    @property
    def is_call(self) -> bool:
        return self.header.startswith("tool call")

    @property
    def failed(self) -> bool:
        return self.header.endswith("| error") or (
            self.header.startswith("tool result") and _ERROR.search(self.text) is not None
        )


def spans_of(user: str) -> list[Span]:
    """The spans of the message that holds the data."""
    mark = _MARK.match(user)
    if mark is None:
        return []
    header = re.compile(rf"^\[{mark[1]} ([^\n]*)$", re.MULTILINE)
    parts = header.split(user)[1:]
    found = []
    for said, text in zip(parts[::2], parts[1::2], strict=True):
        number = re.match(r"#(\d+)\] (.*)", said)
        if number is not None:
            found.append(Span(int(number[1]), number[2], text.strip("\n")))
    return found


def findings(spans: Sequence[Span]) -> Iterator[tuple[str, dict[str, Any]]]:
    """What the rules find, each with its mode's code."""
    calls = [span for span in spans if span.is_call]
    for _, group in groupby(calls, key=lambda span: (span.header, span.text)):
        same = list(group)
        if len(same) >= 3:
            why = f"the same call {len(same)} times, from #{same[0].number} on"
            yield REPETITION, _finding(same[0], same[-1], same[0].text, why, 0.7)
    last_error = max((span.number for span in spans if span.failed), default=None)
    for span in spans[-4:]:
        claim = _SUCCESS.search(span.text[:4_000]) if span.header.startswith("agent") else None
        if claim is not None and last_error is not None and last_error < span.number:
            checked = any(last_error < call.number < span.number for call in calls)
            if not checked:
                why = (
                    f"success is claimed, and nothing was checked after the error in #{last_error}"
                )
                yield NO_VERIFICATION, _finding(span, span, claim[0], why, 0.6)
    polite = [span for span in spans if len(span.text) < 400 and _FAREWELL.search(span.text)]
    if len(polite) >= 3:
        said = _FAREWELL.search(polite[1].text)
        assert said is not None
        yield NO_END, _finding(polite[1], polite[-1], said[0], "they go on taking their leave", 0.5)


def _finding(first: Span, last: Span, quote: str, why: str, confidence: float) -> dict[str, Any]:
    line = next((line for line in quote.splitlines() if line.strip()), "")
    return {
        "first": first.number,
        "last": last.number,
        "quote": line.strip()[:_LONGEST_QUOTE] or None,
        "rationale": why,
        "confidence": confidence,
        "decisive": None,
    }


def answer_to(body: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request, as the model's JSON object."""
    user = str(body["messages"][-1].get("content", ""))
    if "Does the finding hold?" in user:
        return {
            "shows": "",
            "definition": "",
            "boundary": None,
            "verdict": "holds",
            "confidence": 0.5,
        }
    if "decisive step" in user.splitlines()[-1]:
        found = sorted(findings(spans_of(user)), key=lambda one: one[1]["first"])
        if not found:
            return {"notes": "", "decisive": [], "digest": ""}
        code, finding = found[0]
        remedy = {"correction": "Stop and look at what came back", "then": "It goes on from there"}
        return {"notes": "", "decisive": [finding | remedy | {"mode": code}], "digest": ""}
    asked = _ASKED.search(f"{user} ")
    codes = asked[1].split(", ") if asked else []
    spans = spans_of(user)
    by_mode: dict[str, list[dict[str, Any]]] = {}
    for code, finding in findings(spans):
        by_mode.setdefault(code, []).append(finding)
    answer: dict[str, Any] = {
        "modes": {
            code: {
                "notes": "",
                "findings": by_mode.get(code, []),
                "verdict": "present" if code in by_mode else "absent",
            }
            for code in codes
        }
    }
    if "give the digest too" in user and spans:
        errors = ", ".join(f"#{span.number}" for span in spans if span.failed)[:200]
        answer["digest"] = (
            f"#{spans[0].number} to #{spans[-1].number} were read; errors: {errors or 'none'}"
        )
    return answer


class Handler(BaseHTTPRequestHandler):
    """Answers ``/v1/chat/completions`` and ``/v1/models``."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    seconds = 0.0

    def do_GET(self) -> None:
        self._send(200, {"object": "list", "data": [{"id": MODEL, "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", "0"))))
        if not self.path.endswith("/chat/completions"):
            self._send(404, {"error": {"message": "there is only /v1/chat/completions"}})
            return
        time.sleep(self.seconds)
        text = json.dumps(answer_to(body))
        sent = sum(len(str(message.get("content", ""))) for message in body["messages"]) // 4
        said = {"role": "assistant", "content": text}
        self._send(
            200,
            {
                "id": "practice",
                "object": "chat.completion",
                "created": int(time.time()),
                "model": MODEL,
                "choices": [{"index": 0, "message": said, "finish_reason": "stop"}],
                "usage": {
                    "prompt_tokens": sent,
                    "completion_tokens": len(text) // 4,
                    "total_tokens": sent + len(text) // 4,
                },
            },
        )

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing of single requests."""

    def _send(self, status: int, document: dict[str, Any]) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until somebody presses Ctrl-C."""
    parser = argparse.ArgumentParser(description="A server to practise with; it has no model.")
    parser.add_argument("--port", type=int, default=8765, help="0 takes any that is free")
    parser.add_argument("--seconds", type=float, default=0.0, help="before each answer")
    chosen = parser.parse_args(arguments)
    handler = type("Slow", (Handler,), {"seconds": chosen.seconds})
    with ThreadingHTTPServer(("127.0.0.1", chosen.port), handler) as server:
        print(f"http://127.0.0.1:{server.server_address[1]}/v1", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    main()
