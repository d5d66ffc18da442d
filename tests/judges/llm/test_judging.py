"""Judging of one trace: windows, second looks, decisive steps."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import SupportsInt

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mast_tui.judges.llm.answer.parsing import Malformed
from mast_tui.judges.llm.prompt.verification import parse_verification
from mast_tui.judges.llm.request import (
    AllowanceSpent,
    ContextOverflow,
    Correction,
    ModelClient,
    Parameters,
    Reply,
    Request,
    RunStops,
    TraceFails,
    Unanswered,
)
from mast_tui.judges.llm.run.judging import TraceResult
from mast_tui.judges.protocol import Judgement
from mast_tui.labels import Match, QuoteCounts, VerdictValue
from tests.judges.llm.scripted_model import (
    MAST,
    SMALL,
    Kept,
    Model,
    answer,
    asks_for,
    codes_of,
    finding,
    is_about_modes,
    judge,
    notes,
    run_of,
    shown_by,
)
from tests.judges.llm.views import view_of
from tests.judges.memory_trace import MemoryTrace


async def test_a_claim_becomes_a_finding_with_its_quote() -> None:
    trace = run_of(10)
    model = Model(lambda r, _: answer(r, m1_3=[finding(4, "This is step 3 of the work.")]))
    result = await judge(trace, model)
    [found] = result.judgement.findings
    assert (found.mode, found.first, found.last) == ("step_repetition", "line 4", "line 4")
    assert found.evidence is not None
    assert (found.evidence.match, found.decisive, found.confidence) == (Match.EXACT, True, 0.75)
    assert (result.quotes, result.windows) == (QuoteCounts(exact=1), 1)
    assert result.judgement.judged_modes == tuple(mode.slug for mode in MAST.modes)
    assert result.remarks == ()


async def test_doubtful_findings_are_remarked() -> None:
    def says(request: Request, room: int) -> Reply:
        wrong_span = finding(9, "This is step 3 of the work.")
        wrong_quote = finding(2, "nobody has ever said this")
        answered = answer(request, m1_3=[wrong_span, wrong_quote], m2_2=None)
        return Reply(answered.text, "stop", "text", 1, 1)

    result = await judge(run_of(10), Model(says))
    assert result.quotes == QuoteCounts(exact=1, not_found=1)
    assert "fail_to_ask_for_clarification" not in (result.judgement.judged_modes or ())
    remarks = "\n".join(result.remarks)
    assert "1 quote is elsewhere than the model named" in remarks
    assert "1 quote was not found in the trace" in remarks
    assert "not answered in all parts: 2.2" in remarks
    assert "answers as text" in remarks


async def test_windows_are_summarised_then_judged_with_the_story() -> None:
    trace = run_of(40)
    seen: list[Judgement] = []

    def says(request: Request, room: int) -> Reply:
        if asks_for(request) == "summary":
            first, last = shown_by(request)
            text = json.dumps({"summary": f"what #{first} to #{last} show"})
            return Reply(text, "stop", "json_schema", 1, 1)
        if asks_for(request) == "story":
            return Reply('{"story": "it began and it ended"}', "stop", "json_schema", 1, 1)
        first, _ = shown_by(request)
        return answer(request, m1_3=[finding(first + 1, None)])

    model = Model(says)
    result = await judge(trace, model, parameters=SMALL, on_window=seen.append)
    kinds = [asks_for(request) for request in model.asked]
    windows = result.windows
    assert windows == len(seen) > 2
    assert kinds == ["summary"] * windows + ["story"] + ["modes"] * windows
    assert model.most_waiting == windows, "all windows are judged at a time"
    story = "".join(model.asked[windows].user)
    for number, request in enumerate(model.asked[:windows], 1):
        first, last = shown_by(request)
        assert f"part {number}: #{first} to #{last}]\nwhat #{first} to #{last} show" in story
    for request in model.asked[windows + 1 :]:
        assert "story]\nit began and it ended\n" in "".join(request.user)
    counts = [len(part.findings) for part in seen]
    assert counts == sorted(counts)
    assert seen[-1].findings == result.judgement.findings
    assert set(seen[0].judged_modes or ()) == {"step_repetition"}
    assert "premature_termination" in (result.judgement.judged_modes or ())


async def test_too_long_windows_are_split() -> None:
    trace = run_of(40)
    judged: list[tuple[int, int]] = []
    other_requests: list[str] = []

    def says(request: Request, room: int) -> Reply:
        if request.tokens > 5_000:
            raise ContextOverflow("too long")
        if not is_about_modes(request):
            other_requests.append(asks_for(request))
            return answer(request)
        judged.append(shown_by(request))
        return answer(request, m1_3=[finding(judged[-1][0], None)])

    ledger = Kept()
    parameters = Parameters("a-model", samples=2)
    model = Model(says)
    result = await judge(trace, model, ledger, parameters)
    assert len(judged) == 2 * result.windows > 2
    covered = {n for first, last in judged for n in range(first, last + 1)}
    assert covered == set(range(1, 41))
    assert sum(not reply.text for reply, _ in ledger.all) == len(model.asked) - len(judged) - len(
        other_requests
    )
    assert await judge(trace, Model(fails), ledger, parameters) == result


def reads_nothing(request: Request, room: int) -> Reply:
    raise ContextOverflow("too long")


async def test_a_model_that_reads_nothing_fails_the_trace() -> None:
    ledger = Kept()
    for _ in range(2):
        with pytest.raises(TraceFails, match="context is too small"):
            await judge(run_of(30), Model(reads_nothing), ledger)
    model = Model(lambda request, _: answer(request, m1_3=[finding(2, "step 1 of")]))
    result = await judge(run_of(30), model, ledger)
    assert (result.windows, len(model.asked), result.quotes.found) == (1, 1, 1)
    with pytest.raises(TraceFails, match="no spans"):
        await judge(MemoryTrace(), Model(fails))


def fails(request: Request, room: int) -> Reply:
    raise AssertionError("nothing should be asked any more")


async def test_samples_are_asked_separately_and_counted() -> None:
    def says(request: Request, room: int) -> Reply:
        findings = [finding(4, "This is step 3 of the work.")] if request.sample < 2 else []
        return answer(request, m1_3=findings, m1_1="unsure" if request.sample else [])

    parameters = Parameters("a-model", samples=3)
    model = Model(says)
    ledger = Kept()
    result = await judge(run_of(10), model, ledger, parameters)
    assert [request.sample for request in model.asked] == [0, 1, 2]
    [found] = result.judgement.findings
    assert found.confidence == pytest.approx(2 / 3)
    assert result.judgement.unsure == ("disobey_task_specification",)
    assert await judge(run_of(10), Model(fails), ledger, parameters) == result


class Whims(ModelClient):
    """A model whose answers are right, wrong or missing by chance, from a seed."""

    def __init__(self, seed: int, trace: MemoryTrace) -> None:
        self._seed = seed
        self._trace = trace
        self.asked = 0

    async def ask(
        self, request: Request, answer_tokens: SupportsInt, correction: Correction | None = None
    ) -> Reply:
        self.asked += 1
        chance = random.Random(f"{self._seed} {request.fingerprint} {self.asked}")
        whim = chance.random()
        if whim < 0.1:
            raise ContextOverflow("too long")
        if whim < 0.13:
            raise chance.choice([TraceFails("no answer"), AllowanceSpent("spent")])
        text = self._answer(request, chance)
        if whim < 0.2:
            return Reply(text[: chance.randint(0, len(text))], "length", "text", 5, 5)
        if whim < 0.25:
            text = chance.choice(["", "no", "{}", "[1]", text[:-5], '{"modes": [{}]}'])
        return Reply(text, "refusal" if 0.25 < whim < 0.27 else "stop", "json_object", 5, 5)

    def _answer(self, request: Request, chance: random.Random) -> str:
        if asks_for(request) in ("summary", "story"):
            return json.dumps({asks_for(request): f"seen {chance.random()}"})
        if asks_for(request) == "shows":
            verdict = chance.choice(["holds", "fails", "unsure", "?"])
            return json.dumps({"shows": "", "definition": "because", "verdict": verdict})
        modes = [
            {
                "mode": code,
                "verdict": chance.choice(["present", "absent", "unsure", "yes", "?"]),
                "findings": [self._finding(chance) for _ in range(chance.choice([0, 0, 0, 1, 3]))],
            }
            for code in codes_of(request)
            if chance.random() < 0.95
        ]
        return json.dumps({"modes": modes})

    def _finding(self, chance: random.Random) -> dict[str, object]:
        spans = len(self._trace)
        text = self._trace.text(chance.randrange(spans))
        start = chance.randrange(len(text))
        quote = text[start : start + chance.choice([3, 20, 60, 400])]
        wrapped = (f'"{quote}"', quote.replace(" ", "\n"), quote[::-1], "made up", None)
        dressed = [quote, quote, *wrapped]
        return {
            "first": chance.choice([None, 1, "#3", spans, spans + 9, -1, chance.randint(1, spans)]),
            "last": chance.choice([None, 2, "7", spans, chance.randint(1, spans)]),
            "quote": chance.choice(dressed),
            "rationale": "because",
            "confidence": chance.choice([0.5, "80%", 7, None, 1e400, "nan"]),
            "decisive": chance.choice([True, None, "no"]),
        }


def check(trace: MemoryTrace, result: TraceResult) -> None:
    """Check what holds for every result."""
    judgement = result.judgement
    places = [(f.mode, f.target) for f in judgement.findings]
    assert len(places) == len(set(places))
    judged = judgement.judged_modes or ()
    assert {f.mode for f in judgement.findings} | set(judgement.unsure) <= set(judged)
    assert not {f.mode for f in judgement.findings} & set(judgement.unsure)
    for result_finding in judgement.findings:
        evidence = result_finding.evidence
        if evidence is not None and evidence.char_start is not None and evidence.key is not None:
            span = trace.index_of(evidence.key)
            assert span is not None
            assert trace.text(span)[evidence.char_start : evidence.char_end] == evidence.quote
            assert evidence.match is not None
    quotes = [f.evidence for f in judgement.findings if f.evidence is not None]
    assert result.quotes.all == len(quotes)
    assert result.quotes.not_found == sum(evidence.char_start is None for evidence in quotes)
    assert all(remark.isprintable() for remark in result.remarks)
    assert len(result.remarks) == len(set(result.remarks))


@settings(max_examples=settings().max_examples // 2)
@example(260, 16, 3, 1_000)  # a note that a request was too long, beside a longer answer to it
@example(601_232, 5, 2, 1_000)  # one that a cut answer refutes
@given(
    st.integers(0, 1_000_000),
    st.integers(1, 20),
    st.integers(1, 3),
    st.sampled_from([1_000, 3_000, 24_000]),
)
def test_any_model_gives_a_sound_result_or_an_error(
    seed: int, spans: int, samples: int, window_tokens: int
) -> None:
    trace = run_of(spans)
    ledger = Kept()
    parameters = Parameters("m", samples=samples, window_tokens=window_tokens)

    async def many() -> None:
        model = Whims(seed, trace)
        result = None
        for _ in range(60):
            with contextlib.suppress(TraceFails, RunStops):
                result = await judge(trace, model, ledger, parameters)
                break
        if result is not None:
            check(trace, result)
            assert await judge(trace, Model(fails), ledger, parameters) == result

    asyncio.run(many())


async def test_remarks_are_limited() -> None:
    def odd(request: Request, _: int) -> Reply:
        body = json.loads(answer(request).text)
        body["modes"] |= {f"mode {n}": "absent" for n in range(900)}
        return Reply(json.dumps(body), "stop", "json_schema", request.tokens, 50)

    remarks = (await judge(run_of(4), Model(odd))).remarks
    assert len(remarks) == 20
    assert remarks[-1] == "and 881 more remarks"


# Second looks


VERIFYING = Parameters("a-model", verify=True)
SMALL_VERIFYING = Parameters("a-model", window_tokens=1_200, answer_tokens=500, verify=True)

SecondLook = Callable[[Request], Mapping[str, object]]


def is_second_look(request: Request) -> bool:
    return "verdict" in request.schema["properties"]  # type: ignore[operator]


def looked_at(says: SecondLook, first: Callable[[Request], Reply]) -> Model:
    """Return a model that judges by ``first``, and answers second looks by ``says``."""

    def reply(request: Request, room: int) -> Reply:
        if not is_second_look(request):
            return first(request)
        return Reply(json.dumps(says(request)), "stop", "json_schema", request.tokens, 40)

    return Model(reply)


def second_look(verdict: str, confidence: float = 0.9) -> dict[str, object]:
    looked = {"shows": "…", "definition": f"it is {verdict}", "boundary": None}
    return {**looked, "verdict": verdict, "confidence": confidence}


def text_of(request: Request) -> str:
    return "MARK".join(request.user)


def repeats_at(span: int) -> Callable[[Request], Reply]:
    return lambda r: answer(r, m1_3=[finding(span, f"This is step {span - 1} of the work.")])


async def test_refuted_findings_are_dropped_and_others_explained() -> None:
    model = looked_at(
        lambda r: second_look("fails" if "#4" in text_of(r).partition("finding]")[2] else "holds"),
        lambda r: answer(
            r,
            m1_3=[finding(4, "This is step 3 of the work.")],
            m2_2=[finding(6, "This is step 5 of the work.")],
        ),
    )
    result = await judge(run_of(10), model, parameters=VERIFYING)
    [found] = result.judgement.findings
    assert (found.mode, found.confidence) == ("fail_to_ask_for_clarification", 0.9)
    assert found.rationale == "see #6 On a second look: it is holds"
    assert "step_repetition" in (result.judgement.judged_modes or ())
    assert "step_repetition" not in result.judgement.unsure
    assert "1 finding did not hold on a second look" in result.remarks
    assert len(model.asked) == 3


async def test_with_samples_confidence_stays_their_share() -> None:
    seen = iter((True, False))
    model = looked_at(
        lambda r: second_look("holds"),
        lambda r: answer(r, m1_3=[finding(4, "This is step 3 of the work.")] if next(seen) else []),
    )
    result = await judge(run_of(10), model, parameters=replace(VERIFYING, samples=2))
    assert [found.confidence for found in result.judgement.findings] == [0.5]
    assert len(model.asked) == 3, "a finding is looked at once, whatever the samples"


async def test_altered_quotes_come_first_with_both_wordings() -> None:
    model = looked_at(
        lambda r: second_look("unsure", 0.3),
        lambda r: answer(
            r,
            m1_3=[finding(4, "This is step 3 of the work.")],
            m1_5=[finding(8, "nobody has ever said anything like that")],
            m2_2=[finding(6, "This is step 77 of the work.")],
        ),
    )
    result = await judge(run_of(10), model, parameters=VERIFYING)
    looks = [text_of(request) for request in model.asked[1:]]
    assert [look.partition("finding]\n")[2][:3] for look in looks] == ["2.2", "1.5", "1.3"]
    assert "quote: This is step 77 of the work." in looks[0]
    assert "the record has: This is step 5 of the work." in looks[0]
    assert "the record has no such words" in looks[1]
    assert {found.confidence for found in result.judgement.findings} == {0.3}


async def test_the_request_has_definition_boundaries_and_context() -> None:
    model = looked_at(lambda r: second_look("holds"), repeats_at(30))
    await judge(run_of(60, words=80), model, parameters=VERIFYING)
    look = model.asked[-1]
    first, last = shown_by(look)
    assert 1 < first < 30 < last < 60
    mode = MAST.mode("step_repetition")
    assert mode.definition in text_of(look)
    assert all(other.difference in text_of(look) for other in mode.confusable)
    assert MAST.mode("task_derailment").definition not in text_of(look)
    assert look.tokens < 8_000


async def test_contradicting_windows_are_mentioned() -> None:
    """A span that two windows show, one of which found the mode there and one none of it."""
    plain = Model(lambda request, _: answer(request))
    await judge(run_of(60, words=2), plain, parameters=SMALL_VERIFYING)
    windows = [shown_by(request) for request in plain.asked if is_about_modes(request)]
    span = next(n for n in range(2, 60) if sum(first <= n <= last for first, last in windows) == 2)
    saw = next(window for window in windows if window[0] <= span <= window[1])

    def first(request: Request) -> Reply:
        findings = [finding(span, f"This is step {span - 1} of the work.")]
        is_there = is_about_modes(request) and shown_by(request) == saw
        return answer(request, m1_3=findings if is_there else [])

    model = looked_at(lambda r: second_look("fails"), first)
    result = await judge(run_of(60, words=2), model, parameters=SMALL_VERIFYING)
    [look] = [request for request in model.asked if is_second_look(request)]
    assert "found none of this mode there" in text_of(look)
    assert result.judgement.findings == ()
    assert result.judgement.unsure == ()


async def test_a_second_look_is_redacted_and_not_repeated() -> None:
    ledger = Kept()
    model = looked_at(lambda r: second_look("holds"), repeats_at(4))
    result = await judge(run_of(10), model, ledger, parameters=VERIFYING)
    repeating = looked_at(lambda r: second_look("fails"), repeats_at(4))
    assert await judge(run_of(10), repeating, ledger, parameters=VERIFYING) == result
    assert repeating.asked == []
    quoting = looked_at(
        lambda r: second_look("holds"),
        lambda r: answer(r, m1_1=[finding(1, "tell [redacted e-mail 1] when it is done")]),
    )
    await judge(run_of(6), quoting, parameters=VERIFYING)
    assert "finding]" in text_of(quoting.asked[-1])
    assert "bob@example.com" not in text_of(quoting.asked[-1])


async def test_less_context_is_shown_to_a_model_that_reads_less() -> None:
    for reads, confidence in [(3_600, 0.9), (0, 0.75)]:

        def says(request: Request, room: int, reads: int = reads) -> Reply:
            if not is_second_look(request):
                return repeats_at(30)(request)
            if request.tokens > reads:
                raise ContextOverflow("too long")
            return Reply(json.dumps(second_look("holds")), "stop", "json_schema", 1, 1)

        result = await judge(run_of(60, words=80), Model(says), parameters=VERIFYING)
        assert [found.confidence for found in result.judgement.findings] == [confidence]
        unseen = "a finding was not checked again: the model's context is too small"
        assert (unseen in result.remarks) == (reads == 0)


async def test_an_unusable_second_look_fails_the_trace() -> None:
    model = looked_at(lambda r: {"opinion": "fine"}, repeats_at(4))
    with pytest.raises(Unanswered, match="a finding in #4 was unusable twice"):
        await judge(run_of(10), model, parameters=VERIFYING)


def test_answers_are_read_in_other_words_or_refused() -> None:
    for text, verdict, confidence in (
        ('{"verdict": "holds", "confidence": 0.8}', VerdictValue.PRESENT, 0.8),
        ('{"verdict": "Not met.", "confidence": "20%"}', VerdictValue.ABSENT, 0.2),
        ('so:\n```json\n{"verdict": false, "confidence": 4}\n```', VerdictValue.ABSENT, 0.8),
        ('{"verdict": "unsure"}', VerdictValue.UNSURE, None),
    ):
        read = parse_verification(text, view_of(run_of(3)))
        assert (read.verdict, read.confidence) == (verdict, confidence)
    for text in ("", "it holds", '{"verdict": "perhaps"}', '{"verdict": "ho'):
        with pytest.raises(Malformed):
            parse_verification(text, view_of(run_of(3)))


# Decisive steps


WHOLE = Parameters("a-model", decisive="whole run")
STEPS = Parameters("a-model", decisive="step by step")


def step(first: int, **more: object) -> dict[str, object]:
    return {
        "rationale": f"see #{first}",
        "quote": f"This is step {first - 1} of the work.",
        "first": first,
        "agent": "agent",
        "correction": "Ask first",
        "then": "the cart would have been mended",
        "mode": "2.2",
        "fits": True,
        "confidence": 0.75,
        **more,
    }


def says(request: Request, *steps: dict[str, object]) -> Reply:
    body: dict[str, object] = {"notes": "", "decisive": list(steps)}
    return notes(request) or Reply(json.dumps(body), "stop", "json_schema", request.tokens, 50)


async def test_the_decisive_step_is_a_finding_with_a_remedy() -> None:
    result = await judge(run_of(10), Model(lambda r, _: says(r, step(4))), parameters=WHOLE)
    [found] = result.judgement.findings
    assert (found.mode, found.first, found.last) == (
        "fail_to_ask_for_clarification",
        "line 4",
        "line 4",
    )
    assert (found.decisive, found.confidence) == (True, 0.75)
    assert found.remedy == "Ask first. Then: the cart would have been mended."
    assert found.evidence is not None
    assert found.evidence.match is Match.EXACT
    assert result.judgement.judged_modes == (found.mode,), "of other modes nothing is said"
    assert result.remarks == ()


async def test_the_surest_window_and_most_samples_count() -> None:
    def answers(request: Request, _: int) -> Reply:
        if asks_for(request) != "notes":
            return says(request)
        first, last = shown_by(request)
        return says(request, step(first + 1, confidence=0.9 if first < 10 < last else 0.4))

    parameters = replace(WHOLE, window_tokens=1_200)
    model = Model(answers)
    result = await judge(run_of(40), model, parameters=parameters)
    assert len(model.asked) > 2
    [found] = result.judgement.findings
    assert found.confidence == 0.9
    # Of samples the step counts that most of them name.
    places = iter((7, 4, 4))
    sampled = Model(lambda r, _: says(r, step(next(places), confidence=0.1)))
    result = await judge(run_of(10), sampled, parameters=replace(WHOLE, samples=3))
    [found] = result.judgement.findings
    assert found.first == "line 4"
    assert found.confidence == pytest.approx(2 / 3)


async def test_step_by_step_ends_with_the_first_step() -> None:
    def answers(request: Request, _: int) -> Reply:
        _, last = shown_by(request)
        return says(request, *([step(last)] if last in (5, 8) else []))

    model = Model(answers)
    result = await judge(run_of(10), model, parameters=STEPS)
    assert [shown_by(request) for request in model.asked] == [(1, n) for n in (2, 3, 4, 5)]
    assert {asks_for(request) for request in model.asked} == {"notes"}
    assert [found.first for found in result.judgement.findings] == ["line 5"]


async def test_step_by_step_needs_a_short_run() -> None:
    model = Model(lambda r, _: says(r, step(61)))
    await judge(run_of(61, words=1), model, parameters=STEPS)
    assert len(model.asked) == 1

    def reads_nothing(request: Request, _: int) -> Reply:
        raise ContextOverflow("too long")

    with pytest.raises(TraceFails, match="step by step"):
        await judge(run_of(10), Model(reads_nothing), parameters=STEPS)


async def test_misfits_of_mode_and_agent_are_remarked() -> None:
    misfit = step(4, fits=False, agent="the planner", mode="FM-2.6")
    result = await judge(run_of(10), Model(lambda r, _: says(r, misfit)), parameters=WHOLE)
    [found] = result.judgement.findings
    assert found.rationale == "see #4 It meets the definition of no mode; this one comes closest."
    assert found.mode == "reasoning_action_mismatch"
    [remark] = result.remarks
    assert remark.startswith("the decisive step is called the planner's")


UNUSABLE: list[tuple[dict[str, object], str]] = [
    ({"first": 99}, "no span that exists"),
    ({"mode": "9.9"}, "no mode"),
    ({"correction": " "}, "no correction"),
]


async def test_unusable_steps_are_requested_once_more_and_other_shapes_read() -> None:
    for change, message in UNUSABLE:
        answer = step(4) | change
        model = Model(partial(lambda answer, r, _: says(r, answer), answer))
        with pytest.raises(Unanswered, match=message):
            await judge(run_of(10), model, parameters=WHOLE)
        assert len(model.asked) == 2
    for shape, count in ((step(4), 1), (None, 0), ([], 0)):
        reply = Reply(json.dumps({"decisive": shape}), "stop", "text", 1, 1)
        model = Model(partial(lambda reply, *_: reply, reply))
        result = await judge(run_of(10), model, parameters=WHOLE)
        assert len(result.judgement.findings) == len(result.judgement.judged_modes or ()) == count
    with pytest.raises(Unanswered):
        await judge(run_of(10), Model(lambda r, _: Reply("{}", "stop", "text", 1, 1)), None, WHOLE)
