"""A scripted model, a ledger in memory, and traces to judge with them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import SupportsInt

from mast_tui.judges.llm.prompt.prompt import Prompt
from mast_tui.judges.llm.request import Correction, ModelClient, Parameters, Reply, Request
from mast_tui.judges.llm.run.judging import TraceJudge, TraceResult
from mast_tui.judges.llm.run.request_loop import AnswerLimits
from mast_tui.labels import Judgement
from mast_tui.redaction.engine import Redaction
from mast_tui.taxonomy.loader import load_mast
from tests.judges.memory_trace import MemoryTrace

MAST = load_mast()
SMALL = Parameters("a-model", window_tokens=1_200, answer_tokens=500)
DEFAULT = Parameters("a-model")


def run_of(spans: int, word_count: int = 40) -> MemoryTrace:
    """Return a trace of this many messages with different words."""
    trace = MemoryTrace().user("Mend the cart and tell bob@example.com when it is done.")
    for step in range(1, spans):
        trace.say(f"This is step {step} of the work. " + f"word{step} " * word_count)
    return trace


def codes_of(request: Request) -> list[str]:
    modes = request.schema["properties"]["modes"]  # type: ignore[index]
    return list(modes["properties"])


def field_of(request: Request) -> str:
    """Return the first field of the requested answer."""
    return str(next(iter(request.schema["properties"])))  # type: ignore[call-overload]


def is_about_modes(request: Request) -> bool:
    return field_of(request) == "modes"


def numbers_of(request: Request) -> tuple[int, int]:
    """Return the numbers of the first and last span in a request."""
    labels = [piece.partition("]")[0].strip() for piece in request.user[1:]]
    numbers = [int(label[1:]) for label in labels if label[:1] == "#" and label[1:].isdigit()]
    return numbers[0], numbers[-1]


def claim(first: int, quote: str | None, last: int | None = None) -> dict[str, object]:
    return {
        "first": first,
        "last": first if last is None else last,
        "quote": quote,
        "rationale": f"see #{first}",
        "confidence": 0.75,
        "decisive": True,
    }


def notes(request: Request) -> Reply | None:
    """Return the summary, story or second look that a request asks for, or None."""
    answers: dict[str, object] = {
        "summary": {"summary": "so far so good"},
        "story": {"story": "all in all it went well"},
        "shows": {"shows": "it", "definition": "met", "boundary": None, "verdict": "holds"},
    }
    body = answers.get(field_of(request))
    if body is None:
        return None
    return Reply(json.dumps(body), "stop", "json_schema", request.tokens, 50)


def answer(request: Request, **findings: object) -> Reply:
    """Return all modes as absent but those in ``findings``, by code with ``_`` for the dot."""
    prepared = notes(request)
    if prepared is not None:
        return prepared
    modes: dict[str, object] = {}
    for code in codes_of(request):
        mode_findings = findings.get("m" + code.replace(".", "_"), [])
        if mode_findings == "unsure":
            modes[code] = {"notes": "", "findings": [], "verdict": "unsure"}
        elif mode_findings is not None:
            verdict = "present" if mode_findings else "absent"
            modes[code] = {"notes": "", "findings": mode_findings, "verdict": verdict}
    body: dict[str, object] = {"modes": modes}
    return Reply(json.dumps(body), "stop", "json_schema", request.tokens, 50)


@dataclass
class Model(ModelClient):
    """A model that answers by a function and records the requests."""

    respond: Callable[[Request, int], Reply]
    requests: list[Request] = field(default_factory=list)
    waiting: int = 0
    most_waiting: int = 0

    async def ask(
        self, request: Request, answer_tokens: SupportsInt, correction: Correction | None = None
    ) -> Reply:
        self.requests.append(request)
        self.waiting += 1
        self.most_waiting = max(self.most_waiting, self.waiting)
        await asyncio.sleep(0)
        self.waiting -= 1
        return self.respond(request, int(answer_tokens))


@dataclass
class FakeLedger:
    """A ledger in memory that records every reply."""

    usable: dict[str, Reply] = field(default_factory=dict)
    all: list[tuple[Reply, bool]] = field(default_factory=list)
    taken_back: list[int] = field(default_factory=list)
    _last: dict[str, int] = field(default_factory=dict)

    async def find_answer(self, key: str) -> Reply | None:
        return self.usable.get(key)

    async def keep(self, key: str, reply: Reply, usable: bool, sent: int = 0) -> None:
        self.all.append((reply, usable))
        self._last[key] = len(self.all) - 1
        if usable:
            self.usable[key] = reply

    async def reject(self, key: str) -> None:
        position = self._last[key]
        self.all[position] = (self.all[position][0], False)
        del self.usable[key]

    async def take_back(self, limit: int, sent: int) -> None:
        self.taken_back.append(limit)


async def judge(
    trace: MemoryTrace,
    model: ModelClient,
    ledger: FakeLedger | None = None,
    parameters: Parameters = DEFAULT,
    on_window: Callable[[Judgement], object] | None = None,
) -> TraceResult:
    trace_judge = TraceJudge(trace, Prompt(MAST, parameters), parameters, Redaction.default())
    ledger = FakeLedger() if ledger is None else ledger
    return await trace_judge.judge(model, ledger, AnswerLimits(parameters.answer_tokens), on_window)
