"""A practice server of the OpenAI chat API without a model.

It answers the requests of ``mast-tui judge --judge llm`` by three simple rules of its own, with
quotes of the trace, so that you can try the judge offline and at no cost::

    python scripts/practice_server.py --port 8765
    mast-tui judge runs/ --judge llm --model practice --base-url http://127.0.0.1:8765/v1

Its findings are worthless: equal tool calls in a row, a claim of success after an error that
nothing checked, and repeated thanks or farewells. Ctrl-C ends it.

It can make errors, which guidelines and examples in the prompt correct::

    python scripts/practice_server.py --false-alarm "2.6=I restart" --overlook 1.3 --noise 0.05

``--false-alarm`` reports a mode wherever some words are, and ``--overlook`` never reports a mode,
until the prompt has a guideline or a fitting example for it. ``--noise`` reverses a share of all
verdicts at random; the same prompt and trace have the same errors.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import groupby
from typing import Any, Final

MODEL: Final = "practice"

REPETITION: Final = "1.3"
NO_END: Final = "1.5"
NO_VERIFICATION: Final = "3.2"

_MARK: Final = re.compile(r"\[(\w+) data begins\]")
_ASKED: Final = re.compile(r"Judge these modes, one entry for each: ([^\n]*?)\. ")
_SUCCESS: Final = re.compile(r"[^.\n]*\b(?:resolved|fixed|completed|successful\w*|done)\b[^.\n]*")
_ERROR: Final = re.compile(r"\b(?:error|failed|failure|traceback|exception|refused)\b", re.I)
_FAREWELL: Final = re.compile(
    r"[^.\n]*\b(?:thank you|thanks|goodbye|you're welcome)\b[^.\n]*", re.I
)

_LONGEST_QUOTE: Final = 160


@dataclass(frozen=True)
class ShownSpan:
    """A span as a request shows it: number, header and text."""

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


def spans_of(user: str) -> list[ShownSpan]:
    """Return the spans of the message with the data."""
    mark = _MARK.match(user)
    if mark is None:
        return []
    header = re.compile(rf"^\[{mark[1]} ([^\n]*)$", re.MULTILINE)
    parts = header.split(user)[1:]
    spans = []
    for title, text in zip(parts[::2], parts[1::2], strict=True):
        number = re.match(r"#(\d+)\] (.*)", title)
        if number is not None:
            spans.append(ShownSpan(int(number[1]), number[2], text.strip("\n")))
    return spans


def findings(spans: Sequence[ShownSpan]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the findings of the rules, each with the code of its mode."""
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
        farewell = _FAREWELL.search(polite[1].text)
        assert farewell is not None
        why = "they go on taking their leave"
        yield NO_END, _finding(polite[1], polite[-1], farewell[0], why, 0.5)


def _finding(
    first: ShownSpan, last: ShownSpan, quote: str, why: str, confidence: float
) -> dict[str, Any]:
    line = next((line for line in quote.splitlines() if line.strip()), "")
    return {
        "first": first.number,
        "last": last.number,
        "quote": line.strip()[:_LONGEST_QUOTE] or None,
        "rationale": why,
        "confidence": confidence,
        "decisive": None,
    }


@dataclass(frozen=True)
class Errors:
    """The errors of the server.

    Attributes:
        false_alarms: The text that raises a false alarm, by the code of its mode.
        overlooked: The codes of overlooked modes.
        noise: The share of verdicts that are reversed at random.
    """

    false_alarms: Mapping[str, str] = field(default_factory=dict)
    overlooked: frozenset[str] = frozenset()
    noise: float = 0.0

    def apply(
        self, system: str, spans: Sequence[ShownSpan], by_mode: dict[str, list[dict[str, Any]]]
    ) -> None:
        """Make the errors that the prompt does not correct.

        Args:
            system: The first message of the request.
            spans: The spans of the trace.
            by_mode: The findings by the code of their mode, which are changed.
        """
        for code, text in self.false_alarms.items():
            if not taught(system, code, "absent"):
                for span in spans:
                    if text in span.text:
                        why = f"it says “{text}”"
                        by_mode.setdefault(code, []).append(_finding(span, span, text, why, 0.6))
        for code in self.overlooked:
            if not taught(system, code, "present"):
                by_mode.pop(code, None)

    def reverses(self, system: str, code: str, spans: Sequence[ShownSpan]) -> bool:
        """Return whether chance reverses the verdict on a mode.

        Args:
            system: The first message of the request.
            code: The code of the mode.
            spans: The spans of the trace.
        """
        prompt = system.split("# The mark of this request")[0]
        text = "\0".join((prompt, code, *(span.text for span in spans)))
        digest = hashlib.sha256(text.encode("utf-8", "replace")).digest()
        return int.from_bytes(digest[:6], "big") / (1 << 48) < self.noise


def taught(system: str, code: str, verdict: str) -> bool:
    """Return whether a prompt has a guideline on a mode, or an example with a verdict.

    Args:
        system: The first message of a request.
        code: The code of the mode.
        verdict: The verdict of the example.
    """
    section = re.search(rf"^### {re.escape(code)} .*?(?=^##)", system, re.S | re.M)
    if section is not None and "As this team has agreed:" in section[0]:
        return True
    return f'"mode": "{code}", "verdict": "{verdict}"' in system


def answer_to(body: dict[str, Any], errors: Errors | None = None) -> dict[str, Any]:
    """Return the answer to a request as the JSON object of a model.

    Args:
        body: The request.
        errors: The errors to make, if any.
    """
    user = str(body["messages"][-1].get("content", ""))
    if "Does the finding hold?" in user:
        return {
            "shows": "",
            "definition": "",
            "boundary": None,
            "verdict": "holds",
            "confidence": 0.5,
        }
    last_line = user.splitlines()[-1]
    if "Summarise these spans." in last_line:
        spans = spans_of(user)
        failed = ", ".join(f"#{span.number}" for span in spans if span.failed)[:200]
        read = f"#{spans[0].number} to #{spans[-1].number} were read" if spans else "No spans"
        return {"summary": f"{read}; errors: {failed or 'none'}"}
    if "Tell the whole run." in last_line:
        parts = re.findall(r"^#\d+ to #\d+ were read; errors: .*$", user, re.MULTILINE)
        return {"story": "\n".join(parts) or "There is nothing to tell."}
    if "decisive step" in last_line:
        return _decisive_step(spans_of(user))
    asked = _ASKED.search(f"{user} ")
    codes = asked[1].split(", ") if asked else []
    return _verdicts(codes, str(body["messages"][0].get("content", "")), spans_of(user), errors)


def _decisive_step(spans: Sequence[ShownSpan]) -> dict[str, Any]:
    """Return the answer that names the earliest finding as the decisive step."""
    matches = sorted(findings(spans), key=lambda match: match[1]["first"])
    if not matches:
        return {"notes": "", "decisive": []}
    code, finding = matches[0]
    remedy = {"correction": "Stop and look at what came back", "then": "It goes on from there"}
    return {"notes": "", "decisive": [finding | remedy | {"mode": code}]}


def _verdicts(
    codes: Sequence[str], system: str, spans: Sequence[ShownSpan], errors: Errors | None
) -> dict[str, Any]:
    """Return the answer with a verdict and the findings of each mode."""
    by_mode: dict[str, list[dict[str, Any]]] = {}
    for code, finding in findings(spans):
        by_mode.setdefault(code, []).append(finding)
    if errors is not None and spans:
        errors.apply(system, spans, by_mode)
        for code in codes:
            if errors.reverses(system, code, spans) and by_mode.pop(code, None) is None:
                last = spans[-1]
                by_mode[code] = [_finding(last, last, last.text, "by chance", 0.5)]
    return {
        "modes": {
            code: {
                "notes": "" if code in by_mode or not errors else "No span shows it.",
                "findings": by_mode.get(code, []),
                "verdict": "present" if code in by_mode else "absent",
            }
            for code in codes
        }
    }


class Handler(BaseHTTPRequestHandler):
    """A handler of ``/v1/chat/completions`` and ``/v1/models``."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    seconds = 0.0
    errors: Errors | None = None

    def do_GET(self) -> None:
        self._send(200, {"object": "list", "data": [{"id": MODEL, "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", "0"))))
        if not self.path.endswith("/chat/completions"):
            self._send(404, {"error": {"message": "there is only /v1/chat/completions"}})
            return
        time.sleep(self.seconds)
        text = json.dumps(answer_to(body, self.errors))
        sent = sum(len(str(message.get("content", ""))) for message in body["messages"]) // 4
        self._send(
            200,
            {
                "id": "practice",
                "object": "chat.completion",
                "created": int(time.time()),
                "model": MODEL,
                "choices": [
                    {
                        "index": 0,
                        "message": {"role": "assistant", "content": text},
                        "finish_reason": "stop",
                    }
                ],
                "usage": {
                    "prompt_tokens": sent,
                    "completion_tokens": len(text) // 4,
                    "total_tokens": sent + len(text) // 4,
                },
            },
        )

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

    def _send(self, status: int, document: dict[str, Any]) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until the user presses Ctrl-C."""
    parser = argparse.ArgumentParser(description="A practice server without a model.")
    parser.add_argument("--port", type=int, default=8765, help="0 for any free port")
    parser.add_argument("--seconds", type=float, default=0.0, help="before each answer")
    parser.add_argument(
        "--false-alarm", action="append", default=[], metavar="CODE=WORDS", help="an error to make"
    )
    parser.add_argument("--overlook", action="append", default=[], metavar="CODE", help="another")
    parser.add_argument("--noise", type=float, default=0.0, help="the share of random errors")
    options = parser.parse_args(arguments)
    alarms = dict(text.split("=", 1) for text in options.false_alarm)
    errors = None
    if alarms or options.overlook or options.noise:
        errors = Errors(alarms, frozenset(options.overlook), options.noise)
    handler = type("Slow", (Handler,), {"seconds": options.seconds, "errors": errors})
    with ThreadingHTTPServer(("127.0.0.1", options.port), handler) as server:
        print(f"http://127.0.0.1:{server.server_address[1]}/v1", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    main()
