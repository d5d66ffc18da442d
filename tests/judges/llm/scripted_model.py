"""A model that answers as a test says, a ledger in memory, and runs to judge with them."""

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
from mast_tui.judges.protocol import Judgement
from mast_tui.redaction.engine import Redaction
from mast_tui.taxonomy.loader import load_mast
from tests.judges.memory_trace import MemoryTrace

MAST = load_mast()
SMALL = Parameters("a-model", window_tokens=1_200, answer_tokens=500)
ONE = Parameters("a-model")


def run_of(spans: int, words: int = 40) -> MemoryTrace:
    """Return a run of so many messages with different words."""
    trace = MemoryTrace().user("Mend the cart and tell bob@example.com when it is done.")
    for n in range(1, spans):
        trace.say(f"This is step {n} of the work. " + f"word{n} " * words)
    return trace


def codes_of(request: Request) -> list[str]:
    modes = request.schema["properties"]["modes"]  # type: ignore[index]
    return list(modes["properties"])


def asks_for(request: Request) -> str:
    """Return the first field of the requested answer."""
    return str(next(iter(request.schema["properties"])))  # type: ignore[call-overload]


def is_about_modes(request: Request) -> bool:
    return asks_for(request) == "modes"


def shown_by(request: Request) -> tuple[int, int]:
    """Return the numbers of the first and last span in a request."""
    marks = [piece.partition("]")[0].strip() for piece in request.user[1:]]
    numbers = [int(mark[1:]) for mark in marks if mark[:1] == "#" and mark[1:].isdigit()]
    return numbers[0], numbers[-1]


def finding(first: int, quote: str | None, last: int | None = None) -> dict[str, object]:
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
    said: dict[str, object] = {
        "summary": {"summary": "so far so good"},
        "story": {"story": "all in all it went well"},
        "shows": {"shows": "it", "definition": "met", "boundary": None, "verdict": "holds"},
    }
    body = said.get(asks_for(request))
    if body is None:
        return None
    return Reply(json.dumps(body), "stop", "json_schema", request.tokens, 50)


def answer(request: Request, **found: object) -> Reply:
    """Return all modes as absent but those in ``found``, by code with ``_`` for the dot."""
    told = notes(request)
    if told is not None:
        return told
    modes: dict[str, object] = {}
    for code in codes_of(request):
        said = found.get("m" + code.replace(".", "_"), [])
        if said == "unsure":
            modes[code] = {"notes": "", "findings": [], "verdict": "unsure"}
        elif said is not None:
            verdict = "present" if said else "absent"
            modes[code] = {"notes": "", "findings": said, "verdict": verdict}
    body: dict[str, object] = {"modes": modes}
    return Reply(json.dumps(body), "stop", "json_schema", request.tokens, 50)


@dataclass
class Model(ModelClient):
    """A model that answers by a function and records the requests."""

    says: Callable[[Request, int], Reply]
    asked: list[Request] = field(default_factory=list)
    waiting: int = 0
    most_waiting: int = 0

    async def ask(
        self, request: Request, answer_tokens: SupportsInt, correction: Correction | None = None
    ) -> Reply:
        self.asked.append(request)
        self.waiting += 1
        self.most_waiting = max(self.most_waiting, self.waiting)
        await asyncio.sleep(0)
        self.waiting -= 1
        return self.says(request, int(answer_tokens))


@dataclass
class Kept:
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
        place = self._last[key]
        self.all[place] = (self.all[place][0], False)
        del self.usable[key]

    async def take_back(self, limit: int, sent: int) -> None:
        self.taken_back.append(limit)


async def judge(
    trace: MemoryTrace,
    model: ModelClient,
    ledger: Kept | None = None,
    parameters: Parameters = ONE,
    on_window: Callable[[Judgement], object] | None = None,
) -> TraceResult:
    trace_judge = TraceJudge(trace, Prompt(MAST, parameters), parameters, Redaction.default())
    ledger = Kept() if ledger is None else ledger
    return await trace_judge.judge(model, ledger, AnswerLimits(parameters.answer_tokens), on_window)
