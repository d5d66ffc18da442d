"""Hostile servers of a model judge."""

from __future__ import annotations

import json
import random
import shutil
import socket
import struct
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from mast_tui.cli.command_line import split_command
from mast_tui.cli.dispatch import run
from mast_tui.judges.llm.client import client, rate_limiter
from tests.attack.trying import (
    DB,
    ROOM,
    SAMPLES,
    Outcome,
    Setting,
    bad_end,
    forked,
    result_of,
    serving,
    unsound,
    wait_for,
)
from tests.judges.llm.fake_time import FakeTime
from tests.judges.llm.server import Action, answer, close, document, empty, html, raw, status
from tests.terminal.hostile import HOSTILE

KEY: Final = "sk-attack-5f0c1d7be2a94c6f8a31"
TRACE: Final = "support_desk_exchange.json"
SECONDS: Final = 2.0
"""The timeout of the command for one answer."""

MEGABYTE: Final = b" " * (1 << 20)


def _endless(write: Callable[[bytes], object], start: bytes = b"") -> None:
    write(start)
    for _ in range(1 << 14):
        write(MEGABYTE)


def _packed(write: Callable[[bytes], object]) -> None:
    packer = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    write(packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH))
    # After a full flush nothing refers to what came before, so the same bytes can be repeated.
    piece = packer.compress(MEGABYTE) + packer.flush(zlib.Z_FULL_FLUSH)
    for _ in range(1 << 14):
        write(piece)


def _answer(text: object, **changed: Any) -> Action:
    return answer(text, **{"tokens_in": 10_000, **changed})


def _finding(**changed: object) -> Action:
    finding = {"first": 1, "last": 1, "quote": "the", "rationale": "why", "confidence": 0.5}
    modes = [{"mode": "1.3", "verdict": "present", "findings": [{**finding, **changed}]}]
    return _answer(json.dumps({"modes": modes}))


def _modes(modes: object) -> Action:
    return _answer(json.dumps({"modes": modes}))


def _header(name: str, value: str, code: int = 429) -> Action:
    return status(code, headers={name: value})


DATE: Final = "Mon, 01 Jan 99999999999999999999999 00:00:00 GMT"
DEEP: Final = "[" * 50_000 + "]" * 50_000

ACTIONS: Final[Mapping[str, Callable[[], Action]]] = {
    "an empty body": empty,
    "a web page": html,
    "a web page as an error": lambda: html(502),
    "no answer to the connection": close,
    "half an answer": lambda: _answer("{}").cut(20),
    "a reset in the midst": lambda: _answer("{}").cut(20, reset=True),
    "an answer a byte at a time": lambda: _answer("{}").dripping(0.05),
    "a list as the document": lambda: document([]),
    "a number as the document": lambda: document(1e300),
    "no choices": lambda: document({"choices": []}),
    "choices of another type": lambda: document({"choices": {"0": None}}),
    "a text of another type": lambda: _answer(["x", {"type": "text", "text": "{}"}]),
    "no text": lambda: _answer(None),
    "a refusal": lambda: _answer(None, refusal="I will not"),
    "cut off by length": lambda: _answer('{"modes": [', finish="length"),
    "usage of minus one": lambda: _answer("{}", tokens_in=-1, tokens_out=-1),
    "usage without bounds": lambda: _answer("{}", tokens_in=10**400),
    "NaN and Infinity": lambda: raw(b'{"choices": [{"message": {"content": NaN}}]}'),
    "not UTF-8": lambda: raw(b'{"choices": "\xff\xfe\x00"}'),
    "half a character": lambda: _answer('{"modes": "\\ud800"}'),
    "a deep document": lambda: raw(DEEP.encode()),
    "a deep answer": lambda: _answer(DEEP),
    "keys that are there twice": lambda: _answer('{"modes": [], "modes": {}, "modes": 1}'),
    "words around the answer": lambda: _answer('Sure!\n```json\n{"modes": []}\n```\nBye.'),
    "an unknown mode": lambda: _modes([{"mode": "9.9", "verdict": "present"}]),
    "modes of other types": lambda: _modes([None, 1, [], {"mode": {}}, {"mode": "1.3"}]),
    "a hundred thousand findings": lambda: _modes(
        [{"mode": "1.3", "verdict": "present", "findings": [{}] * 100_000}]
    ),
    "spans that are not there": lambda: _finding(first=-5, last=10**30),
    "a quote of a megabyte": lambda: _finding(quote="x" * (1 << 20)),
    "a reason that a terminal obeys": lambda: _finding(rationale=HOSTILE),
    "a quote that a terminal obeys": lambda: _finding(quote=HOSTILE),
    "confidence that is no number": lambda: _finding(confidence="very"),
    "an error that a terminal obeys": lambda: status(400, HOSTILE),
    "the key in an error": lambda: status(401, f"Bearer {KEY} is wrong; {KEY[::-1]}"),
    "the key in an answer": lambda: _finding(rationale=f"the key is {KEY}"),
    "no such model": lambda: status(404, "no such model"),
    "no money": lambda: status(429, "quota", code="insufficient_quota"),
    "too long a request": lambda: status(400, "too long", code="context_length_exceeded"),
    "a date without bounds to wait for": lambda: _header("retry-after", DATE),
    "a zone without bounds": lambda: _header(
        "retry-after", "Mon, 01 Jan 2027 00:00:00 +99999999999999999999"
    ),
    "seconds without bounds": lambda: _header("retry-after", "9" * 400),
    "minus a second": lambda: _header("retry-after", "-1"),
    "limits that are none": lambda: _header("x-ratelimit-remaining-requests", "NaN", 200),
    "a header of 60 kB": lambda: _header("x-long", "y" * 60_000, 200),
    "an error of five": lambda: status(500),
    "a redirect elsewhere": lambda: Action(
        307, b"", (("location", "http://127.0.0.1:9/v1/chat/completions"),)
    ),
    "a redirect to itself": lambda: Action(308, b"", (("location", "chat/completions"),)),
    "a status of its own": lambda: raw(b"{}", code=799),
}
"""Complete answers."""

OK: Final = "HTTP/1.1 200 OK\r\n"
GZIP: Final = "content-encoding: gzip\r\n"
TEXT: Final = b'{"choices": [{"message": {"content": "'
STREAMS: Final[Mapping[str, tuple[str, Callable[[Callable[[bytes], object]], object]]]] = {
    "an endless answer": (OK, _endless),
    "an endless error": ("HTTP/1.1 503 No\r\n", _endless),
    "16 GB of gzip": (OK + GZIP, _packed),
    "16 GB of gzip as an error": (f"HTTP/1.1 400 No\r\n{GZIP}", _packed),
    "an endless text": (OK, lambda write: _endless(write, TEXT)),
    "gzip that is none": (OK + GZIP, lambda write: write(b"no gzip")),
}
"""Answers without an end: the first lines, and the writer of the rest."""

WHOLE: Final = 2 * (len(ACTIONS) + len(STREAMS))


class Hostile(BaseHTTPRequestHandler):
    """Does to each request what the first part of its address says."""

    protocol_version = "HTTP/1.1"
    folder = Path()
    """The folder of a file for each behaviour that was asked for."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing of single requests."""

    def do_GET(self) -> None:
        """List no models."""
        self._send(html(404))

    def do_POST(self) -> None:
        """Misbehave."""
        self.rfile.read(int(self.headers.get("content-length", "0")))
        number = int(self.path.split("/")[1])
        (self.folder / f"asked-{number}").touch()
        if number < len(ACTIONS):
            self._send([*ACTIONS.values()][number]())
            return
        head, stream = [*STREAMS.values()][number - len(ACTIONS)]
        self.close_connection = True
        with suppress(OSError):
            head += "content-type: application/json\r\nconnection: close\r\n\r\n"
            self.wfile.write(head.encode())
            stream(self.wfile.write)

    def _send(self, action: Action) -> None:
        if action.close:
            self.close_connection = True
            return
        self.send_response(action.status)
        self.send_header("content-type", action.content_type)
        self.send_header("content-length", str(len(action.body)))
        for name, value in action.headers:
            self.send_header(name, value)
        self.end_headers()
        with suppress(OSError):
            body = action.body[: action.cut_after]
            for start in range(0, len(body), 1) if action.drip else ():
                self.wfile.write(body[start : start + 1])
                time.sleep(action.drip or 0.0)
            self.wfile.write(b"" if action.drip else body)
        if action.reset:
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.close_connection = action.cut_after is not None


def serve(folder: Path, tell: Callable[[str], None]) -> None:
    """Misbehave until it is killed."""
    handler = type("Counting", (Hostile,), {"folder": folder})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients go away
        tell(f"http://127.0.0.1:{server.server_address[1]}")
        server.serve_forever()


def _judge(arguments: Sequence[str]) -> int:
    timing = FakeTime().timing
    for module in (client, rate_limiter):
        vars(module)["Timing"] = lambda: timing  # only in this process
    (client.Client.__init__.__kwdefaults__ or {})["tries"] = 2
    return run(split_command(arguments))


def attack(setting: Setting, behaviour: int, url: str) -> Outcome:
    """Have a trace judged by one of the servers, with little memory and a key in the open."""
    names = [*ACTIONS, *STREAMS]
    arguments: tuple[str, ...] = ("judge", TRACE, "--judge", "llm", "--model", "m")
    arguments = (*arguments, "--base-url", f"{url}/{behaviour}/v1", "--workspace", DB)
    arguments = (*arguments, "--timeout", str(SECONDS))
    with setting.home() as home:
        shutil.copy(SAMPLES / TRACE, home / TRACE)
        surroundings = {"OPENAI_API_KEY": KEY}
        work = partial(_judge, arguments)
        done = result_of(home, wait_for(forked(home, work, room=ROOM, surroundings=surroundings)))
        asked = setting.folder / f"asked-{behaviour}"
        failure = bad_end(home, done) or ("" if asked.exists() else f"nobody was asked: {done.err}")
        if KEY in done.out + done.err:
            failure = failure or "the key is shown"
        if (home / DB).exists():
            failure = failure or unsound(home / DB)
            data = b"".join(path.read_bytes() for path in home.glob(f"{DB}*"))
            failure = failure or ("the key is in the workspace" if KEY.encode() in data else "")
    title = f"{len(ACTIONS)} answers, errors and headers"
    if behaviour >= len(ACTIONS):
        title = f"{len(STREAMS)} streams without an end, and bombs"
    return Outcome(setting.kind, title, failure and f"{names[behaviour]}: {failure}")


def tries(setting: Setting) -> Iterator[Outcome]:
    """Every behaviour twice, in an order by chance."""
    behaviours = 2 * [*range(len(ACTIONS) + len(STREAMS))]
    random.Random(setting.seed).shuffle(behaviours)
    numbers = setting.numbers(WHOLE)
    if numbers:
        with serving(partial(serve, setting.folder)) as url:
            for number in numbers:
                yield attack(setting, behaviours[number], url)
