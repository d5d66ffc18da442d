"""The loop that asks a question until its answer can be used."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import SupportsInt

import pytest

from mast_tui.judges.llm.answer.parsing import Malformed
from mast_tui.judges.llm.request import (
    AllowanceSpent,
    ContextOverflow,
    Correction,
    Finish,
    Reply,
    Request,
    RunStops,
    TraceFails,
    Unanswered,
)
from mast_tui.judges.llm.run.request_loop import AnswerLimits, RequestLoop
from tests.judges.llm.scripted_model import FakeLedger

REQUEST = Request(("judge",), ("data",), {}, 10)
ROOM = 100


def reply(text: str, finish: Finish = "stop") -> Reply:
    return Reply(text, finish, "json_schema", 7, 3)


@dataclass
class Scripted:
    """A client with scripted answers, of which exceptions are raised."""

    script: list[Reply | Exception]
    rooms: list[int] = field(default_factory=list)
    corrections: list[Correction | None] = field(default_factory=list)
    problems: list[str | None] = field(default_factory=list)

    def record_problem(self, problem: str | None) -> None:
        self.problems.append(problem)

    async def ask(
        self, request: Request, answer_tokens: SupportsInt, correction: Correction | None = None
    ) -> Reply:
        self.rooms.append(int(answer_tokens))
        self.corrections.append(correction)
        await asyncio.sleep(0)
        outcome = self.script.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def parse(text: str) -> int:
    """Parse the answer of these tests, a number."""
    if not text.isdigit():
        raise Malformed(f"{text!r} is no number")
    return int(text)


def loop_of(client: Scripted, ledger: FakeLedger, room: AnswerLimits | None = None) -> RequestLoop:
    return RequestLoop(
        client, ledger, room or AnswerLimits(ROOM), lambda request, room: f"{request.user} {room}"
    )


async def ask(ledger: FakeLedger, *script: Reply | Exception) -> tuple[int, list[int]]:
    client = Scripted(list(script))
    answer = await loop_of(client, ledger).answer(REQUEST, parse, "#1 to #4")
    assert not client.script
    return answer, client.rooms


QUESTIONS: list[tuple[list[Reply | Exception], int, list[int]]] = [
    ([reply("0")], 0, [ROOM]),
    ([reply("nonsense"), reply("7")], 7, [ROOM, ROOM]),
    ([reply(""), reply("7")], 7, [ROOM, ROOM]),
    ([reply("12", "length"), reply("123")], 123, [ROOM, 2 * ROOM]),
    ([ContextOverflow("too long", answer_room=60), reply("7")], 7, [ROOM, 60]),
    # A cut and a useless answer are each forgiven once.
    ([reply("x"), reply("1", "length"), reply("123")], 123, [ROOM, ROOM, 2 * ROOM]),
    ([reply("1", "length"), reply("x"), reply("123")], 123, [ROOM, 2 * ROOM, 2 * ROOM]),
]


async def test_a_question_is_asked_until_its_answer_is_usable_and_never_again() -> None:
    for script, answer, rooms in QUESTIONS:
        ledger = FakeLedger()
        assert await ask(ledger, *script) == (answer, rooms)
        replies = [item for item in script if isinstance(item, Reply)]
        assert ledger.all == [(item, item is replies[-1]) for item in replies]
        assert await ask(ledger) == (answer, [])


async def test_two_unusable_answers_fail_the_trace() -> None:
    for script, message in [
        ([reply("a"), reply("b")], "#1 to #4 was unusable twice: 'b' is no number; it began"),
        ([reply("12", "length"), reply("123", "length")], "#1 to #4 was cut twice"),
        ([reply("x"), reply("1", "length"), reply("y")], "was unusable twice"),
    ]:
        ledger = FakeLedger()
        with pytest.raises(TraceFails, match=message):
            await ask(ledger, *script)
        assert not any(usable for _, usable in ledger.all)
        assert await ask(ledger, reply("7")) == (7, [ROOM])


THOUGHT = replace(reply("", "length"), tokens_in=5_000, tokens_out=4_000)
"""A model that thought until its room was used up."""


async def test_a_thinking_model_gets_four_times_the_room() -> None:
    client = Scripted([THOUGHT, reply("7"), reply("8")])
    ledger = FakeLedger()
    room = AnswerLimits(4_000)
    assert await loop_of(client, ledger, room).answer(REQUEST, parse, "#1") == 7
    other = replace(REQUEST, user=("more",))
    assert await loop_of(client, ledger, room).answer(other, parse, "#1") == 8
    assert client.rooms == [4_000, 16_000, 16_000]
    endless = Scripted([THOUGHT] * 3)
    with pytest.raises(
        Unanswered, match=r"reasoning about #1 used up the 32,000 .*--answer-tokens"
    ):
        await loop_of(endless, FakeLedger(), AnswerLimits(4_000)).answer(REQUEST, parse, "#1")
    assert endless.rooms == [4_000, 16_000, 32_000]


async def test_the_second_request_has_the_problem_of_the_first_answer() -> None:
    client = Scripted([reply("x"), reply("y")])
    with pytest.raises(Unanswered, match="it began “y”"):
        await loop_of(client, FakeLedger()).answer(REQUEST, parse, "#1")
    assert client.corrections == [None, Correction("x", "'x' is no number")]
    assert client.problems == ["'x' is no number", "'y' is no number"]


async def test_a_refusal_is_reported_briefly() -> None:
    ledger = FakeLedger()
    text = "I will not\n\x1b[31m" + "judge this " * 100
    with pytest.raises(TraceFails) as error:
        await ask(ledger, reply(text, "refusal"))
    assert "refused to judge #1 to #4: I will not" in str(error.value)
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 300
    assert ledger.all == [(reply(text, "refusal"), False)]


async def test_an_overflow_is_recorded() -> None:
    overflow = ContextOverflow("too long")
    scripts: list[list[Reply | Exception]] = [[overflow], [reply("1", "length"), overflow]]
    for script in scripts:
        ledger = FakeLedger()
        for replies in (script, []):
            with pytest.raises(ContextOverflow):
                await ask(ledger, *replies)


async def test_requests_over_a_known_limit_are_not_sent() -> None:
    client = Scripted([ContextOverflow("too long"), reply("7"), reply("8")])
    limits = AnswerLimits(ROOM)
    loop = RequestLoop(client, FakeLedger(), limits, lambda request, room: f"{request} {room}")
    for tokens, attempts in ((100, 1), (101, 1), (100, 1)):
        with pytest.raises(ContextOverflow):
            await loop.answer(replace(REQUEST, tokens=tokens), parse, "#1")
        assert len(client.rooms) == attempts
    assert await loop.answer(replace(REQUEST, tokens=99), parse, "#1") == 7
    loop.forget_limits()
    assert await loop.answer(replace(REQUEST, tokens=101), parse, "#1") == 8


async def test_fatal_errors_are_passed_on() -> None:
    for error in [AllowanceSpent("spent"), RunStops("no"), TraceFails("hm")]:
        ledger = FakeLedger()
        with pytest.raises(type(error)):
            await ask(ledger, reply("x"), error)
        assert ledger.all == [(reply("x"), False)]


async def test_an_unreadable_recorded_answer_is_requested_again() -> None:
    ledger = FakeLedger()
    await ask(ledger, reply("7"))
    ledger.usable = dict.fromkeys(ledger.usable, reply("of another time"))
    assert await ask(ledger, reply("8")) == (8, [ROOM])


CUT = replace(reply("word " * 60, "length"), tokens_in=3_596, tokens_out=60)


FULL_CONTEXTS: list[tuple[list[Reply | Exception], int]] = [
    # all that was left is too little
    ([ContextOverflow("too long", answer_room=60), CUT], 3_656),
    ([replace(CUT, tokens_in=4_036)], 4_096),  # the context was full before the limit
    ([replace(CUT, tokens_in=4_035)], 4_095),
]


async def test_an_answer_without_room_needs_a_shorter_request() -> None:
    for script, limit in FULL_CONTEXTS:
        ledger = FakeLedger()
        with pytest.raises(ContextOverflow) as caught:
            await ask(ledger, *script)
        assert caught.value.context_limit == limit
        assert [(recorded.text, usable) for recorded, usable in ledger.all] == [
            (CUT.text, False),
            ("", True),
        ]
        with pytest.raises(ContextOverflow):
            await ask(ledger)


async def test_an_answer_cut_by_its_limit_gets_more_room() -> None:
    for tokens in [(3_596, 60), (4_000, 96)]:
        cut = replace(CUT, tokens_in=tokens[0], tokens_out=tokens[1])
        assert await ask(FakeLedger(), cut, reply("123")) == (123, [ROOM, 2 * ROOM])


async def test_usage_of_a_cut_request_is_recorded_and_similar_answers_withdrawn() -> None:
    cut = replace(reply("7"), tokens_in=4_096, tokens_out=9)
    ledger = FakeLedger()
    with pytest.raises(ContextOverflow):
        await ask(
            ledger, ContextOverflow("it was cut", context_limit=4_096, truncated_usage=cut.usage)
        )
    assert ledger.taken_back == [4_096]
    ((note, usable),) = ledger.all
    assert (note.text, note.finish, note.tokens_in, note.tokens_out) == ("", "length", 4_096, 9)
    assert usable


async def test_one_task_asks_until_an_answer_is_usable() -> None:
    room = AnswerLimits(4_000)
    client = Scripted([THOUGHT, *(reply(str(n)) for n in range(4))])
    loops = [loop_of(client, FakeLedger(), room) for _ in range(4)]
    questions = (loop.answer(REQUEST, parse, "#1") for loop in loops)
    assert sorted(await asyncio.gather(*questions)) == [0, 1, 2, 3]
    assert client.rooms == [4_000, 16_000, 16_000, 16_000, 16_000]
