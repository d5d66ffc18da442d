"""Answers without bounds end in an error and take bounded memory."""

from __future__ import annotations

import json
import subprocess
import sys
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

import pytest

from mast_tui.judges.llm.answer.parsing import (
    MOST_ENTRIES,
    MOST_FINDINGS,
    QUOTE_CHARS,
    RATIONALE_CHARS,
    Answer,
    Malformed,
    parse_answer,
)
from mast_tui.judges.llm.client.bounded_http import MOST_BYTES
from mast_tui.judges.llm.request import RunStops, TraceFails, Window
from mast_tui.labels import Evidence
from tests.judges.llm.asking import asking, error_from, reply_to
from tests.judges.llm.server import MODEL, Action, ModelServer, answer, endless, raw, status, zipped
from tests.judges.llm.views import MAST, trace_of, view_of

TOO_LONG: Final = f"longer than {MOST_BYTES >> 20} MB"

ROOM: Final = 1 << 30
"""The address space of the asking process in bytes; an unbounded answer takes more."""

CLIENT_SCRIPT: Final = f"""
import asyncio, resource, sys
from mast_tui.judges.llm.client.client import Client
from mast_tui.judges.llm.client.endpoint import Endpoint
from mast_tui.judges.llm.client.rate_limiter import RateLimiter
from mast_tui.judges.llm.request import AskError
from mast_tui.judges.llm.request import Parameters
from tests.judges.llm.asking import a_request
from tests.judges.llm.fake_time import FakeTime

resource.setrlimit(resource.RLIMIT_AS, ({ROOM}, {ROOM}))

async def ask(url, timeout):
    async with Client(
        Parameters({MODEL!r}), Endpoint(url, "none", timeout=timeout),
        tries=2, limiter=RateLimiter(timing=FakeTime().timing),
    ) as client:
        try:
            return f"answered: {{len((await client.ask(a_request(), 100)).text)}}"
        except AskError as error:
            return f"{{type(error).__name__}}: {{error}}"

for line in sys.stdin:
    url, timeout = line.split()
    print(asyncio.run(ask(url, float(timeout))), flush=True)
"""


def compressed_nothing() -> Action:
    """Return three megabytes of compressed blocks without content."""
    packer = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    head = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
    return Action(200, head + b"\0\0\0\xff\xff" * 600_000, (("content-encoding", "gzip"),))


def expanded_by_charset() -> Action:
    """Return a body that its charset would expand to gigabytes."""
    packer = zlib.compressobj()
    head = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
    piece = packer.compress(b" " * 2**20) + packer.flush(zlib.Z_FULL_FLUSH)
    return Action(200, head + piece * 1_500, content_type="application/json; charset=zlib")


MANY_FINDINGS: Final = {"modes": [{"mode": "1.3", "findings": [{}] * 1_000_000}]}
HOSTILE: Final[dict[str, tuple[Callable[[], Action], float, str]]] = {
    "2 GB of gzip": (lambda: zipped(2_000), 60, TOO_LONG),
    "2 GB of gzip in an error": (lambda: zipped(2_000, code=400), 60, TOO_LONG),
    "endless": (endless, 60, TOO_LONG),
    "endless error": (lambda: endless(code=503), 60, TOO_LONG),
    "a lot of packed nothing": (compressed_nothing, 60, "an empty body"),
    "packed by its charset": (expanded_by_charset, 60, "no JSON"),
    "an endless drip": (
        lambda: Action(200, b" ", endless=True, drip=0.02), 0.5, "no complete answer within 0.5 s"
    ),
    "a million findings": (lambda: answer(json.dumps(MANY_FINDINGS)), 60, TOO_LONG),
}  # fmt: skip
"""Answers of servers, the timeout in seconds, and the text of the error."""


@pytest.fixture(scope="module")
def errors() -> dict[str, str]:
    """The errors of a process with little memory that asks each server."""
    with ExitStack() as stack:
        lines = ""
        for action, seconds, _ in HOSTILE.values():
            response = action()
            server = stack.enter_context(ModelServer(lambda _body, _n, response=response: response))  # type: ignore[misc]
            lines += f"{server.base_url} {seconds}\n"
        process = subprocess.run(
            [sys.executable, "-c", CLIENT_SCRIPT],
            input=lines,
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=300,
        )
    assert (process.returncode, process.stderr) == (0, "")
    return dict(zip(HOSTILE, process.stdout.splitlines(), strict=True))


@pytest.mark.slow
def test_an_unbounded_answer_is_abandoned(errors: dict[str, str]) -> None:
    for name, (_, _, message) in HOSTILE.items():
        assert errors[name].startswith("Unanswered: "), name
        assert message in errors[name], name
        assert "in 2 tries" in errors[name], name


async def test_answers_at_the_bound_and_compressed_ones_are_read() -> None:
    twice = Action(200, b"", (("content-encoding", "gzip, gzip"),))
    assert "answer is compressed more than once" in str(await error_from(twice))

    def compress(action: Action) -> Action:
        packer = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
        body = packer.compress(action.body) + packer.flush()
        return Action(action.status, body, (("content-encoding", "gzip"),))

    assert (await reply_to(compress(answer("ok")))).text == "ok"
    message = "roles must alternate"
    assert message in str(await error_from(compress(status(400, message))))
    text = "x" * (MOST_BYTES - len(answer("").body))
    assert (await reply_to(answer(text))).text == text
    assert TOO_LONG in str(await error_from(answer(f"{text}x")))


async def test_an_unbounded_model_list_is_ignored() -> None:
    for listing in (endless(), raw(b'{"data": [{"id": ' + b"[" * 900 + b"]" * 900 + b"}]}")):
        async with asking(status(404, "The model `test-model` does not exist")) as chat:
            chat.server.listing = listing
            await chat.fails(RunStops, "has no model")


NESTED: Final = 1_000
"""Deeper than functions may call themselves, and not too deep for a reader of JSON."""


@pytest.mark.slow
async def test_errors_of_any_shape_are_reported_briefly() -> None:
    for body in [
        b'{"error":' * NESTED + b'"x"' + b"}" * NESTED,
        b'{"error":{"message":' + b"[" * NESTED + b'"x"' + b"]" * NESTED + b"}}",
        b'{"error":{"code":' + b"[" * NESTED + b"]" * NESTED + b',"message":"x"}}',
        b'{"error":{"loc":[' + b"[" * NESTED + b"]" * NESTED + b'],"message":"x"}}',
        b'{"error":{"code":"' + b"9" * 5_000 + b'","message":"x"}}',
        b'{"error":{"code":' + b"9" * 5_000 + b',"message":"x"}}',
        b'{"error":{"message":"' + b"model " * 100_000 + b'"}}',
        b'{"error":{"type":"' + b"max_tokens exceed " * 50_000 + b'","message":"x"}}',
        b"[" * 100_000,
    ]:
        for code in (200, 400, 404, 429, 500):
            error = await error_from(raw(body, code=code))
            assert isinstance(error, TraceFails | RunStops)
            assert len(str(error)) < 1_000


# Contents of answers

WINDOW = Window(0, 3, True, tuple(mode.slug for mode in MAST.modes))


def parsed(text: str) -> Answer:
    return parse_answer(text, MAST, WINDOW, view_of(trace_of(["x"] * 4)))


def test_findings_and_their_texts_are_limited() -> None:
    findings = [{"first": 1, "quote": f"q{n}", "confidence": 0.5} for n in range(30_000)]
    mode = {"mode": "1.3", "verdict": "present", "findings": findings}
    other = {"mode": "1.5", "verdict": "present", "findings": [{"first": 2, "quote": "q"}]}
    read = parsed(json.dumps({"modes": [mode, mode, other]}))
    quotes = [f"q{n}" for n in range(MOST_FINDINGS)]
    assert [finding.evidence for finding in read.findings] == [
        Evidence(key=None, quote=quote) for quote in (*quotes, "q")
    ]
    assert f"1.3 has more than {MOST_FINDINGS} findings: the first are taken" in read.remarks
    long = {"first": 1, "quote": "q" * 50_000, "rationale": "r" * 50_000, "confidence": 1}
    document = {"modes": [{"mode": "1.3", "verdict": "present", "findings": [long]}]}
    read = parsed(json.dumps(document))
    (finding,) = read.findings
    assert finding.evidence == Evidence(key=None, quote="q" * QUOTE_CHARS)
    assert finding.rationale == "r" * RATIONALE_CHARS
    assert any("has a quote of more than" in remark for remark in read.remarks)


def test_entries_and_broken_beginnings_are_limited() -> None:
    names = ["1.3", *(f"x{n}" for n in range(3 * MOST_ENTRIES))]
    by_name = dict.fromkeys(names, "absent")
    as_list = [{"mode": name, "verdict": "absent"} for name in names]
    for answered in (by_name, {"modes": by_name}, {"modes": as_list}):
        read = parsed(json.dumps(answered))
        assert len(read.verdicts) == 1
        assert len(read.remarks) <= MOST_ENTRIES
    text = "x" + '{"a": [' + '{"a": 0}, ' * 150_000
    with pytest.raises(Malformed, match="not a complete JSON object"):
        parsed(text)
