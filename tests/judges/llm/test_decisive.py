"""Requests for the decisive step."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import pytest

from mast_tui.judges.llm.errors import ContextOverflow, TraceFails, Unanswered
from mast_tui.judges.llm.prompt.prompt import Prompt
from mast_tui.judges.llm.request import Parameters, Reply, Request
from mast_tui.labels import Match
from tests.judges.llm.scripted_model import MAST, Model, asks_for, judge, notes, run_of, shown_by

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
    assert result.judgement.judged == (found.mode,), "of other modes nothing is said"
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
    said = step(4, fits=False, agent="the planner", mode="FM-2.6")
    result = await judge(run_of(10), Model(lambda r, _: says(r, said)), parameters=WHOLE)
    [found] = result.judgement.findings
    assert found.rationale == "see #4 It meets the definition of no mode; this one comes closest."
    assert found.mode == "reasoning_action_mismatch"
    [remark] = result.remarks
    assert remark.startswith("the decisive step is called the planner's")


async def test_unusable_steps_are_requested_once_more_and_other_shapes_read() -> None:
    for said, words in [
        ({"first": 99}, "no span that exists"),
        ({"mode": "9.9"}, "no mode"),
        ({"correction": " "}, "no correction"),
    ]:
        answer = step(4) | said
        model = Model(partial(lambda answer, r, _: says(r, answer), answer))
        with pytest.raises(Unanswered, match=words):
            await judge(run_of(10), model, parameters=WHOLE)
        assert len(model.asked) == 2
    for said, found in (({"decisive": step(4)}, 1), ({"decisive": None}, 0), ({"decisive": []}, 0)):
        model = Model(lambda r, _, said=said: Reply(json.dumps(said), "stop", "text", 1, 1))  # type: ignore[misc]
        result = await judge(run_of(10), model, parameters=WHOLE)
        assert len(result.judgement.findings) == len(result.judgement.judged or ()) == found
    with pytest.raises(Unanswered):
        await judge(run_of(10), Model(lambda r, _: Reply("{}", "stop", "text", 1, 1)), None, WHOLE)


def test_the_way_of_asking_is_part_of_the_judge_s_name() -> None:
    verifying = Parameters("a-model", verify=True)
    ways = (Parameters("a-model"), WHOLE, STEPS, verifying)
    assert len({Prompt(MAST, parameters).hash for parameters in ways}) == 4
