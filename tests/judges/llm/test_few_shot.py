"""Few-shot examples chosen from gold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from msgspec.structs import replace

from mast_tui.gold import Decision, SideAnswer, gold_of_trace
from mast_tui.judges.llm.prompt.few_shot import (
    ExampleChoice,
    FewShotError,
    GoldCase,
    built_in_examples,
    choice_parameters,
    choose_examples,
    recorded_choices,
    repeat_examples,
)
from mast_tui.labels import WHOLE_TRACE, Label, Target, TraceWork
from mast_tui.redaction.engine import Redaction
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.model import Trace
from tests.gold.build import ABSENT, PRESENT
from tests.judges.memory_trace import MemoryTrace

MAST = load_mast()
MODES = [mode.slug for mode in MAST.modes]
NONE = Redaction.none()


def trace_of(name: str) -> MemoryTrace:
    trace = MemoryTrace().user(f"{name}: find the cause")
    for step in range(6):
        trace.say(f"{name}: step {step}, I look again at mail@{name}.example and go on")
    return trace


def label(name: str, annotator: str, mode: str, target: Target, note: str = "") -> Label:
    return Label(f"{name}-{annotator}-{mode}", annotator, name, MAST.ref, mode, target, note)


def side(
    name: str, annotator: str, marks: Mapping[str, Target], absent: Sequence[str] = ()
) -> TraceWork:
    labels = tuple(label(name, annotator, m, target, f"why {m}") for m, target in marks.items())
    return TraceWork(
        annotator,
        name,
        MAST.ref,
        labels={label.id: label for label in labels},
        verdicts=dict.fromkeys(absent, ABSENT),
    )


def case(name: str, marks: Mapping[str, Target], absent: Sequence[str] = ()) -> GoldCase:
    sides = tuple(side(name, annotator, marks, absent) for annotator in ("alice", "bob"))
    return GoldCase(name, gold_of_trace(sides, (), MODES), sides)


def quote_target(name: str, step: int) -> Target:
    key = f"line {step + 2}"
    quote = f"step {step}, I look"
    start = len(name) + 2
    return Target(key, key, quote, start, start + len(quote))


def load_trace(trace_id: str) -> Trace | None:
    return None if trace_id.startswith("gone") else trace_of(trace_id)


CASES = [
    case("t1", {"step_repetition": quote_target("t1", 1)}, absent=["conversation_reset"]),
    case("t2", {"task_derailment": Target("line 3", "line 4")}),
    case("t3", {"step_repetition": quote_target("t3", 0), "premature_termination": WHOLE_TRACE}),
    case("t4", {"reasoning_action_mismatch": quote_target("t4", 2)}),
]


def test_examples_are_spread_over_modes_reproducible_and_redacted() -> None:
    chosen = choose_examples(CASES, MAST, load_trace, NONE, count=4)
    present = [example for example in chosen if example.verdict is PRESENT]
    assert len(chosen) == 4
    modes = {example.mode for example in present}
    assert modes == {"step_repetition", "task_derailment", "reasoning_action_mismatch"}
    [near_miss] = [example for example in chosen if example.verdict is ABSENT]
    # A reset does not show where a repetition does, which is easily taken for one.
    expected = ExampleChoice("conversation_reset", ABSENT, "t1")
    assert ExampleChoice.from_example(near_miss) == expected
    assert "1.3 Step repetition" in near_miss.rationale
    assert near_miss.quote is None
    examples = choose_examples(CASES, MAST, load_trace, NONE, count=3)
    assert choose_examples(CASES[::-1], MAST, load_trace, NONE, count=3) == examples
    assert any("mail@" in example.excerpt for example in examples)
    redacted = choose_examples(CASES, MAST, load_trace, Redaction.default(), count=3)
    assert all("mail@" not in example.excerpt for example in redacted)


def test_an_example_shows_quote_and_note_and_shortens_long_texts() -> None:
    [example] = choose_examples(CASES[3:], MAST, load_trace, NONE, count=1)
    expected = ExampleChoice("reasoning_action_mismatch", PRESENT, "t4")
    assert ExampleChoice.from_example(example) == expected
    assert example.quote == "step 2, I look"
    assert example.quote in example.excerpt
    assert example.rationale == "why reasoning_action_mismatch"
    assert len(example.excerpt) < 2_000
    trace = MemoryTrace().say("x " * 5_000 + "the words that prove it" + " y" * 5_000)
    target = Target("line 1", "line 1", "the words that prove it", 10_000, 10_023)
    gold = case("t", {"task_derailment": target})
    [example] = choose_examples([gold], MAST, lambda _: trace, NONE, count=1)
    assert "the words that prove it" in example.excerpt
    assert len(example.excerpt) < 2_000


def test_held_out_traces_are_never_shown() -> None:
    loaded: list[str] = []

    def load(trace_id: str) -> Trace | None:
        loaded.append(trace_id)
        return trace_of(trace_id)

    chosen = choose_examples(
        CASES, MAST, load, NONE, count=8, may_use=lambda name: name in ("t2", "t4")
    )
    assert {example.trace_id for example in chosen} == {"t2", "t4"} == set(loaded)
    with pytest.raises(FewShotError, match="set aside"):
        choose_examples(CASES, MAST, load, NONE, may_use=lambda _: False)


def test_an_overruled_label_is_a_near_miss() -> None:
    sides = (
        side("t", "alice", {"step_repetition": quote_target("t", 1)}),
        side("t", "bob", {}, absent=["step_repetition"]),
    )
    decision = Decision(
        mode="step_repetition",
        item="step_repetition",
        value=ABSENT,
        targets=(),
        sides=("bob",),
        answers=(SideAnswer("alice", PRESENT, (quote_target("t", 1),)), SideAnswer("bob", ABSENT)),
        decided_by="carol",
        decided_at="2026-01-01T00:00:00Z",
        reason="each look had another reason",
    )
    gold = GoldCase("t", gold_of_trace(sides, (decision,), MODES), sides)
    [example] = choose_examples([gold], MAST, load_trace, NONE)
    assert ExampleChoice.from_example(example) == ExampleChoice("step_repetition", ABSENT, "t")
    assert example.rationale == "each look had another reason"


def test_the_reason_for_no_examples_is_reported() -> None:
    one_person = GoldCase("t1", gold_of_trace((CASES[0].sides[0],), (), MODES))
    for cases, reason in (
        ([], "no settled gold"),
        ([one_person], "no settled gold"),
        ([case("gone-1", {"task_derailment": quote_target("gone-1", 1)})], "none of their files"),
        ([case("t9", {"task_derailment": WHOLE_TRACE})], "only on whole traces"),
    ):
        with pytest.raises(FewShotError, match=reason):
            choose_examples(cases, MAST, load_trace, NONE)


def test_a_resumed_run_keeps_its_examples() -> None:
    chosen = choose_examples(CASES, MAST, load_trace, NONE, count=3)
    choices = [ExampleChoice.from_example(example) for example in chosen]
    assert recorded_choices((("temperature", "0"), *choice_parameters(chosen))) == tuple(choices)
    more = [*CASES, case("t5", {"information_withholding": quote_target("t5", 3)})]
    repeated = repeat_examples(choices, more, MAST, load_trace, NONE)
    assert repeated == chosen
    assert repeat_examples(choices, CASES[1:], MAST, load_trace, NONE) is None


@pytest.mark.slow
def test_built_in_examples_are_a_hit_and_a_near_miss_of_each_mode() -> None:
    examples = built_in_examples(MAST, NONE)
    assert [(example.mode, example.verdict) for example in examples] == [
        (mode, verdict) for mode in MODES for verdict in (PRESENT, ABSENT)
    ]
    for example in examples:
        assert example.rationale
        assert (example.quote is None) == (example.verdict is ABSENT)
        assert example.quote is None or example.quote in example.excerpt
    assert len({example.trace_id for example in examples}) > 8
    assert examples == built_in_examples(MAST, NONE)
    other = replace(MAST, id="other", modes=(replace(MAST.modes[0], slug="of_its_own"),))
    with pytest.raises(FewShotError, match="of MAST"):
        built_in_examples(other, NONE)
