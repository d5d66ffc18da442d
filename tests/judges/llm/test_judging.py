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
from mast_tui.labels import Judgement, Match, QuoteCounts, VerdictValue
from tests.judges.llm.scripted_model import (
    MAST,
    SMALL,
    FakeLedger,
    Model,
    answer,
    claim,
    codes_of,
    field_of,
    is_about_modes,
    judge,
    notes,
    numbers_of,
    run_of,
)
from tests.judges.llm.views import view_of
from tests.judges.memory_trace import MemoryTrace


async def test_a_claim_becomes_a_finding_with_its_quote() -> None:
    trace = run_of(10)
    model = Model(lambda r, _: answer(r, m1_3=[claim(4, "This is step 3 of the work.")]))
    result = await judge(trace, model)
    [finding] = result.judgement.findings
    assert (finding.mode, finding.first, finding.last) == ("step_repetition", "line 4", "line 4")
    assert finding.evidence is not None
    assert finding.evidence.match is Match.EXACT
    assert (finding.decisive, finding.confidence) == (True, 0.75)
    assert (result.quotes, result.windows) == (QuoteCounts(exact=1), 1)
    assert result.judgement.judged_modes == tuple(mode.slug for mode in MAST.modes)
    assert result.remarks == ()


async def test_doubtful_findings_are_remarked() -> None:
    def respond(request: Request, room: int) -> Reply:
        wrong_span = claim(9, "This is step 3 of the work.")
        wrong_quote = claim(2, "nobody has ever said this")
        reply = answer(request, m1_3=[wrong_span, wrong_quote], m2_2=None)
        return Reply(reply.text, "stop", "text", 1, 1)

    result = await judge(run_of(10), Model(respond))
    assert result.quotes == QuoteCounts(exact=1, not_found=1)
    assert "fail_to_ask_for_clarification" not in (result.judgement.judged_modes or ())
    remarks = "\n".join(result.remarks)
    assert "1 quote is elsewhere than the model named" in remarks
    assert "1 quote was not found in the trace" in remarks
    assert "not answered in all parts: 2.2" in remarks
    assert "answers as text" in remarks


async def test_windows_are_summarised_then_judged_with_the_story() -> None:
    trace = run_of(40)
    judgements: list[Judgement] = []

    def respond(request: Request, room: int) -> Reply:
        if field_of(request) == "summary":
            first, last = numbers_of(request)
            text = json.dumps({"summary": f"what #{first} to #{last} show"})
            return Reply(text, "stop", "json_schema", 1, 1)
        if field_of(request) == "story":
            return Reply('{"story": "it began and it ended"}', "stop", "json_schema", 1, 1)
        first, _ = numbers_of(request)
        return answer(request, m1_3=[claim(first + 1, None)])

    model = Model(respond)
    result = await judge(trace, model, parameters=SMALL, on_window=judgements.append)
    kinds = [field_of(request) for request in model.requests]
    windows = result.windows
    assert windows == len(judgements) > 2
    assert kinds == ["summary"] * windows + ["story"] + ["modes"] * windows
    assert model.most_waiting == windows, "all windows are judged at a time"
    story = "".join(model.requests[windows].user)
    for number, request in enumerate(model.requests[:windows], 1):
        first, last = numbers_of(request)
        assert f"part {number}: #{first} to #{last}]\nwhat #{first} to #{last} show" in story
    for request in model.requests[windows + 1 :]:
        assert "story]\nit began and it ended\n" in "".join(request.user)
    counts = [len(part.findings) for part in judgements]
    assert counts == sorted(counts)
    assert judgements[-1].findings == result.judgement.findings
    assert set(judgements[0].judged_modes or ()) == {"step_repetition"}
    assert "premature_termination" in (result.judgement.judged_modes or ())


async def test_too_long_windows_are_split() -> None:
    trace = run_of(40)
    judged: list[tuple[int, int]] = []
    other_requests: list[str] = []

    def respond(request: Request, room: int) -> Reply:
        if request.tokens > 5_000:
            raise ContextOverflow("too long")
        if not is_about_modes(request):
            other_requests.append(field_of(request))
            return answer(request)
        judged.append(numbers_of(request))
        return answer(request, m1_3=[claim(judged[-1][0], None)])

    ledger = FakeLedger()
    parameters = Parameters("a-model", samples=2)
    model = Model(respond)
    result = await judge(trace, model, ledger, parameters)
    assert len(judged) == 2 * result.windows > 2
    covered = {n for first, last in judged for n in range(first, last + 1)}
    assert covered == set(range(1, 41))
    assert sum(not reply.text for reply, _ in ledger.all) == len(model.requests) - len(
        judged
    ) - len(other_requests)
    assert await judge(trace, Model(unasked), ledger, parameters) == result


def reads_nothing(request: Request, room: int) -> Reply:
    raise ContextOverflow("too long")


async def test_a_model_that_reads_nothing_fails_the_trace() -> None:
    ledger = FakeLedger()
    for _ in range(2):
        with pytest.raises(TraceFails, match="context is too small"):
            await judge(run_of(30), Model(reads_nothing), ledger)
    model = Model(lambda request, _: answer(request, m1_3=[claim(2, "step 1 of")]))
    result = await judge(run_of(30), model, ledger)
    assert (result.windows, len(model.requests), result.quotes.found) == (1, 1, 1)
    with pytest.raises(TraceFails, match="no spans"):
        await judge(MemoryTrace(), Model(unasked))


def unasked(request: Request, room: int) -> Reply:
    raise AssertionError("nothing should be asked any more")


async def test_samples_are_asked_separately_and_counted() -> None:
    def respond(request: Request, room: int) -> Reply:
        findings = [claim(4, "This is step 3 of the work.")] if request.sample < 2 else []
        return answer(request, m1_3=findings, m1_1="unsure" if request.sample else [])

    parameters = Parameters("a-model", samples=3)
    model = Model(respond)
    ledger = FakeLedger()
    result = await judge(run_of(10), model, ledger, parameters)
    assert [request.sample for request in model.requests] == [0, 1, 2]
    [finding] = result.judgement.findings
    assert finding.confidence == pytest.approx(2 / 3)
    assert result.judgement.unsure == ("disobey_task_specification",)
    assert await judge(run_of(10), Model(unasked), ledger, parameters) == result


class RandomModel(ModelClient):
    """A model whose answers are right, wrong or missing by chance, from a seed."""

    def __init__(self, seed: int, trace: MemoryTrace) -> None:
        self._seed = seed
        self._trace = trace
        self.request_count = 0

    async def ask(
        self, request: Request, answer_tokens: SupportsInt, correction: Correction | None = None
    ) -> Reply:
        self.request_count += 1
        chance = random.Random(f"{self._seed} {request.fingerprint} {self.request_count}")
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
        if field_of(request) in ("summary", "story"):
            return json.dumps({field_of(request): f"seen {chance.random()}"})
        if field_of(request) == "shows":
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
    judgement = result.judgement
    targets = [(f.mode, f.target) for f in judgement.findings]
    assert len(targets) == len(set(targets))
    judged = judgement.judged_modes or ()
    assert {f.mode for f in judgement.findings} | set(judgement.unsure) <= set(judged)
    assert not {f.mode for f in judgement.findings} & set(judgement.unsure)
    for finding in judgement.findings:
        evidence = finding.evidence
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
    ledger = FakeLedger()
    parameters = Parameters("m", samples=samples, window_tokens=window_tokens)

    async def judge_until_done() -> None:
        model = RandomModel(seed, trace)
        result = None
        for _ in range(60):
            with contextlib.suppress(TraceFails, RunStops):
                result = await judge(trace, model, ledger, parameters)
                break
        if result is not None:
            check(trace, result)
            assert await judge(trace, Model(unasked), ledger, parameters) == result

    asyncio.run(judge_until_done())


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


def verified_model(verify: SecondLook, first: Callable[[Request], Reply]) -> Model:
    """Return a model that judges by ``first``, and answers second looks by ``says``."""

    def reply(request: Request, room: int) -> Reply:
        if not is_second_look(request):
            return first(request)
        return Reply(json.dumps(verify(request)), "stop", "json_schema", request.tokens, 40)

    return Model(reply)


def second_look(verdict: str, confidence: float = 0.9) -> dict[str, object]:
    fields = {"shows": "…", "definition": f"it is {verdict}", "boundary": None}
    return {**fields, "verdict": verdict, "confidence": confidence}


def text_of(request: Request) -> str:
    return "MARK".join(request.user)


def repeats_at(span: int) -> Callable[[Request], Reply]:
    return lambda r: answer(r, m1_3=[claim(span, f"This is step {span - 1} of the work.")])


async def test_refuted_findings_are_dropped_and_others_explained() -> None:
    model = verified_model(
        lambda r: second_look("fails" if "#4" in text_of(r).partition("finding]")[2] else "holds"),
        lambda r: answer(
            r,
            m1_3=[claim(4, "This is step 3 of the work.")],
            m2_2=[claim(6, "This is step 5 of the work.")],
        ),
    )
    result = await judge(run_of(10), model, parameters=VERIFYING)
    [finding] = result.judgement.findings
    assert (finding.mode, finding.confidence) == ("fail_to_ask_for_clarification", 0.9)
    assert finding.rationale == "see #6 On a second look: it is holds"
    assert "step_repetition" in (result.judgement.judged_modes or ())
    assert "step_repetition" not in result.judgement.unsure
    assert "1 finding did not hold on a second look" in result.remarks
    assert len(model.requests) == 3


async def test_with_samples_confidence_stays_their_share() -> None:
    findings = iter(([claim(4, "This is step 3 of the work.")], []))
    model = verified_model(lambda r: second_look("holds"), lambda r: answer(r, m1_3=next(findings)))
    result = await judge(run_of(10), model, parameters=replace(VERIFYING, samples=2))
    assert [finding.confidence for finding in result.judgement.findings] == [0.5]
    assert len(model.requests) == 3, "a finding is looked at once, whatever the samples"


async def test_altered_quotes_come_first_with_both_wordings() -> None:
    model = verified_model(
        lambda r: second_look("unsure", 0.3),
        lambda r: answer(
            r,
            m1_3=[claim(4, "This is step 3 of the work.")],
            m1_5=[claim(8, "nobody has ever said anything like that")],
            m2_2=[claim(6, "This is step 77 of the work.")],
        ),
    )
    result = await judge(run_of(10), model, parameters=VERIFYING)
    looks = [text_of(request) for request in model.requests[1:]]
    assert [look.partition("finding]\n")[2][:3] for look in looks] == ["2.2", "1.5", "1.3"]
    assert "quote: This is step 77 of the work." in looks[0]
    assert "the record has: This is step 5 of the work." in looks[0]
    assert "the record has no such words" in looks[1]
    assert {finding.confidence for finding in result.judgement.findings} == {0.3}


async def test_the_request_has_definition_boundaries_and_context() -> None:
    model = verified_model(lambda r: second_look("holds"), repeats_at(30))
    await judge(run_of(60, word_count=80), model, parameters=VERIFYING)
    look = model.requests[-1]
    first, last = numbers_of(look)
    assert 1 < first < 30 < last < 60
    mode = MAST.mode("step_repetition")
    assert mode.definition in text_of(look)
    assert all(other.difference in text_of(look) for other in mode.confusable)
    assert MAST.mode("task_derailment").definition not in text_of(look)
    assert look.tokens < 8_000


async def test_contradicting_windows_are_mentioned() -> None:
    """Two windows show a span; one finds the mode there, and the other does not."""
    plain = Model(lambda request, _: answer(request))
    await judge(run_of(60, word_count=2), plain, parameters=SMALL_VERIFYING)
    windows = [numbers_of(request) for request in plain.requests if is_about_modes(request)]
    span = next(n for n in range(2, 60) if sum(first <= n <= last for first, last in windows) == 2)
    finding_window = next(window for window in windows if window[0] <= span <= window[1])

    def first(request: Request) -> Reply:
        findings = [claim(span, f"This is step {span - 1} of the work.")]
        is_there = is_about_modes(request) and numbers_of(request) == finding_window
        return answer(request, m1_3=findings if is_there else [])

    model = verified_model(lambda r: second_look("fails"), first)
    result = await judge(run_of(60, word_count=2), model, parameters=SMALL_VERIFYING)
    [look] = [request for request in model.requests if is_second_look(request)]
    assert "found none of this mode there" in text_of(look)
    assert result.judgement.findings == ()
    assert result.judgement.unsure == ()


async def test_a_second_look_is_redacted_and_not_repeated() -> None:
    ledger = FakeLedger()
    model = verified_model(lambda r: second_look("holds"), repeats_at(4))
    result = await judge(run_of(10), model, ledger, parameters=VERIFYING)
    repeating = verified_model(lambda r: second_look("fails"), repeats_at(4))
    assert await judge(run_of(10), repeating, ledger, parameters=VERIFYING) == result
    assert repeating.requests == []
    quoting = verified_model(
        lambda r: second_look("holds"),
        lambda r: answer(r, m1_1=[claim(1, "tell [redacted e-mail 1] when it is done")]),
    )
    await judge(run_of(6), quoting, parameters=VERIFYING)
    assert "finding]" in text_of(quoting.requests[-1])
    assert "bob@example.com" not in text_of(quoting.requests[-1])


async def test_less_context_is_shown_to_a_model_that_reads_less() -> None:
    for reads, confidence in [(3_600, 0.9), (0, 0.75)]:

        def respond(request: Request, room: int, reads: int = reads) -> Reply:
            if not is_second_look(request):
                return repeats_at(30)(request)
            if request.tokens > reads:
                raise ContextOverflow("too long")
            return Reply(json.dumps(second_look("holds")), "stop", "json_schema", 1, 1)

        result = await judge(run_of(60, word_count=80), Model(respond), parameters=VERIFYING)
        assert [finding.confidence for finding in result.judgement.findings] == [confidence]
        remark = "a finding was not checked again: the model's context is too small"
        assert (remark in result.remarks) == (reads == 0)


async def test_an_unusable_second_look_fails_the_trace() -> None:
    model = verified_model(lambda r: {"opinion": "fine"}, repeats_at(4))
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


WHOLE_RUN = Parameters("a-model", decisive="whole run")
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


def naming(request: Request, *steps: dict[str, object]) -> Reply:
    body: dict[str, object] = {"notes": "", "decisive": list(steps)}
    return notes(request) or Reply(json.dumps(body), "stop", "json_schema", request.tokens, 50)


async def test_the_decisive_step_is_a_finding_with_a_remedy() -> None:
    result = await judge(run_of(10), Model(lambda r, _: naming(r, step(4))), parameters=WHOLE_RUN)
    [finding] = result.judgement.findings
    assert (finding.mode, finding.first, finding.last) == (
        "fail_to_ask_for_clarification",
        "line 4",
        "line 4",
    )
    assert (finding.decisive, finding.confidence) == (True, 0.75)
    assert finding.remedy == "Ask first. Then: the cart would have been mended."
    assert finding.evidence is not None
    assert finding.evidence.match is Match.EXACT
    assert result.judgement.judged_modes == (finding.mode,), "of other modes nothing is said"
    assert result.remarks == ()


async def test_the_surest_window_and_most_samples_count() -> None:
    def answers(request: Request, _: int) -> Reply:
        if field_of(request) != "notes":
            return naming(request)
        first, last = numbers_of(request)
        return naming(request, step(first + 1, confidence=0.9 if first < 10 < last else 0.4))

    parameters = replace(WHOLE_RUN, window_tokens=1_200)
    model = Model(answers)
    result = await judge(run_of(40), model, parameters=parameters)
    assert len(model.requests) > 2
    [finding] = result.judgement.findings
    assert finding.confidence == 0.9
    # Of samples the step counts that most of them name.
    steps = iter((7, 4, 4))
    sampled = Model(lambda r, _: naming(r, step(next(steps), confidence=0.1)))
    result = await judge(run_of(10), sampled, parameters=replace(WHOLE_RUN, samples=3))
    [finding] = result.judgement.findings
    assert finding.first == "line 4"
    assert finding.confidence == pytest.approx(2 / 3)


async def test_step_by_step_ends_with_the_first_step() -> None:
    def answers(request: Request, _: int) -> Reply:
        _, last = numbers_of(request)
        return naming(request, *([step(last)] if last in (5, 8) else []))

    model = Model(answers)
    result = await judge(run_of(10), model, parameters=STEPS)
    assert [numbers_of(request) for request in model.requests] == [(1, n) for n in (2, 3, 4, 5)]
    assert {field_of(request) for request in model.requests} == {"notes"}
    assert [finding.first for finding in result.judgement.findings] == ["line 5"]


async def test_step_by_step_needs_a_short_run() -> None:
    model = Model(lambda r, _: naming(r, step(61)))
    await judge(run_of(61, word_count=1), model, parameters=STEPS)
    assert len(model.requests) == 1

    def reads_nothing(request: Request, _: int) -> Reply:
        raise ContextOverflow("too long")

    with pytest.raises(TraceFails, match="step by step"):
        await judge(run_of(10), Model(reads_nothing), parameters=STEPS)


async def test_misfits_of_mode_and_agent_are_remarked() -> None:
    misfit = step(4, fits=False, agent="the planner", mode="FM-2.6")
    result = await judge(run_of(10), Model(lambda r, _: naming(r, misfit)), parameters=WHOLE_RUN)
    [finding] = result.judgement.findings
    assert finding.rationale == "see #4 It meets the definition of no mode; this one comes closest."
    assert finding.mode == "reasoning_action_mismatch"
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
        model = Model(partial(lambda answer, r, _: naming(r, answer), answer))
        with pytest.raises(Unanswered, match=message):
            await judge(run_of(10), model, parameters=WHOLE_RUN)
        assert len(model.requests) == 2
    for shape, count in ((step(4), 1), (None, 0), ([], 0)):
        reply = Reply(json.dumps({"decisive": shape}), "stop", "text", 1, 1)
        model = Model(partial(lambda reply, *_: reply, reply))
        result = await judge(run_of(10), model, parameters=WHOLE_RUN)
        assert len(result.judgement.findings) == len(result.judgement.judged_modes or ()) == count
    model = Model(lambda *_: Reply("{}", "stop", "text", 1, 1))
    with pytest.raises(Unanswered):
        await judge(run_of(10), model, None, WHOLE_RUN)
