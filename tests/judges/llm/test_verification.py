"""The second look at each finding."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from mast_tui.judges.llm.answer.json_object import Malformed
from mast_tui.judges.llm.errors import ContextOverflow, Unanswered
from mast_tui.judges.llm.prompt.verification import parse_verification
from mast_tui.judges.llm.request import Parameters, Reply, Request
from mast_tui.labels import VerdictValue
from tests.judges.llm.scripted_model import (
    MAST,
    Kept,
    Model,
    answer,
    finding,
    is_about_modes,
    judge,
    run_of,
    shown_by,
)
from tests.judges.llm.views import view_of

VERIFYING = Parameters("a-model", verify=True)
SMALL = Parameters("a-model", window_tokens=1_200, answer_tokens=500, verify=True)

Says = Callable[[Request], Mapping[str, object]]


def is_second_look(request: Request) -> bool:
    return "verdict" in request.schema["properties"]  # type: ignore[operator]


def looked_at(says: Says, first: Callable[[Request], Reply]) -> Model:
    """Return a model that judges by ``first``, and answers second looks by ``says``."""

    def reply(request: Request, room: int) -> Reply:
        if not is_second_look(request):
            return first(request)
        return Reply(json.dumps(says(request)), "stop", "json_schema", request.tokens, 40)

    return Model(reply)


def said(verdict: str, confidence: float = 0.9) -> dict[str, object]:
    looked = {"shows": "…", "definition": f"it is {verdict}", "boundary": None}
    return {**looked, "verdict": verdict, "confidence": confidence}


def text_of(request: Request) -> str:
    return "MARK".join(request.user)


def repeats_at(span: int) -> Callable[[Request], Reply]:
    return lambda r: answer(r, m1_3=[finding(span, f"This is step {span - 1} of the work.")])


async def test_refuted_findings_are_dropped_and_others_explained() -> None:
    model = looked_at(
        lambda r: said("fails" if "#4" in text_of(r).partition("finding]")[2] else "holds"),
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
    assert "step_repetition" in (result.judgement.judged or ())
    assert "step_repetition" not in result.judgement.unsure
    assert "1 finding did not hold on a second look" in result.remarks
    assert len(model.asked) == 3


async def test_with_samples_confidence_stays_their_share() -> None:
    seen = iter((True, False))
    model = looked_at(
        lambda r: said("holds"),
        lambda r: answer(r, m1_3=[finding(4, "This is step 3 of the work.")] if next(seen) else []),
    )
    result = await judge(run_of(10), model, parameters=replace(VERIFYING, samples=2))
    assert [found.confidence for found in result.judgement.findings] == [0.5]
    assert len(model.asked) == 3, "a finding is looked at once, whatever the samples"


async def test_altered_quotes_come_first_with_both_wordings() -> None:
    model = looked_at(
        lambda r: said("unsure", 0.3),
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
    model = looked_at(lambda r: said("holds"), repeats_at(30))
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
    await judge(run_of(60, words=2), plain, parameters=SMALL)
    windows = [shown_by(request) for request in plain.asked if is_about_modes(request)]
    at = next(n for n in range(2, 60) if sum(first <= n <= last for first, last in windows) == 2)
    saw = next(window for window in windows if window[0] <= at <= window[1])

    def first(request: Request) -> Reply:
        found = [finding(at, f"This is step {at - 1} of the work.")]
        is_there = is_about_modes(request) and shown_by(request) == saw
        return answer(request, m1_3=found if is_there else [])

    model = looked_at(lambda r: said("fails"), first)
    result = await judge(run_of(60, words=2), model, parameters=SMALL)
    [look] = [request for request in model.asked if is_second_look(request)]
    assert "found none of this mode there" in text_of(look)
    assert result.judgement.findings == ()
    assert result.judgement.unsure == ()


async def test_a_second_look_is_redacted_and_not_repeated() -> None:
    ledger, model = Kept(), looked_at(lambda r: said("holds"), repeats_at(4))
    before = await judge(run_of(10), model, ledger, parameters=VERIFYING)
    again = looked_at(lambda r: said("fails"), repeats_at(4))
    assert await judge(run_of(10), again, ledger, parameters=VERIFYING) == before
    assert again.asked == []
    quoting = looked_at(
        lambda r: said("holds"),
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
            return Reply(json.dumps(said("holds")), "stop", "json_schema", 1, 1)

        result = await judge(run_of(60, words=80), Model(says), parameters=VERIFYING)
        assert [found.confidence for found in result.judgement.findings] == [confidence]
        unseen = "a finding was not looked at again: the model reads too little"
        assert (unseen in result.remarks) == (reads == 0)


async def test_an_unusable_second_look_fails_the_trace() -> None:
    model = looked_at(lambda r: {"opinion": "fine"}, repeats_at(4))
    with pytest.raises(Unanswered, match="a finding in #4 could not be used, twice"):
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
