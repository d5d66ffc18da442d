"""Steps of a run from recorded calls: each text once, in order, in the tree of the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.traces.model import Role, SpanKind, SpanStatus, Tokens
from mast_tui.traces.readers.span_tree.rows import Message, RowKind, SpanRow
from mast_tui.traces.readers.span_tree.steps import observed_steps
from tests.traces.recorded_rows import (
    ANSWER,
    QUESTION,
    SYSTEM,
    agent,
    call,
    model,
    other,
    result,
    steps_of,
    tool,
)


def test_white_space_and_missing_call_ids_make_no_new_message() -> None:
    repeated = [SYSTEM, {"role": "user", "content": "Is  it\nraining? "}]
    steps = steps_of(
        model("m1", 1, [SYSTEM, QUESTION], [call()]),
        tool("t1", 2, call_id="c1"),
        model("m2", 3, [*repeated, call('{"city":"Bern"}', None), result(call_id=None)], [ANSWER]),
    )
    assert [step.key for step in steps] == [
        "m1/asked/0",
        "m1/asked/1",
        "c1:call",
        "c1:result",
        "m2/answered/0",
    ]


def test_a_shortened_history_repeats_nothing() -> None:
    questions = [
        {"role": "user", "content": f"question number {number} " * 4} for number in range(4)
    ]
    steps = steps_of(
        model("m1", 1, [SYSTEM, *questions[:3]], [ANSWER]),
        model("m2", 2, [SYSTEM, *questions[1:3], ANSWER, questions[3]], [ANSWER]),
    )
    assert [step.key for step in steps if step.role is Role.USER] == [
        "m1/asked/1",
        "m1/asked/2",
        "m1/asked/3",
        "m2/asked/4",
    ]
    assert [step.key for step in steps if step.role is Role.AGENT] == [
        "m1/answered/0",
        "m2/answered/0",
    ]


def test_an_answer_reworded_in_the_history_is_shown_once() -> None:
    answer: Message = {"role": "assistant", "content": "<think>rain?</think>No, it is dry."}
    reworded: Message = {"role": "assistant", "content": "No, it is dry."}
    steps = steps_of(
        model("m1", 1, [QUESTION], [answer]),
        model("m2", 2, [QUESTION, reworded, {"role": "user", "content": "Sure?"}], [ANSWER]),
    )
    assert [step.key for step in steps] == [
        "m1/asked/0",
        "m1/answered/0",
        "m2/asked/2",
        "m2/answered/0",
    ]


def test_a_question_repeated_at_the_end_is_shown_again() -> None:
    question: Message = {"role": "user", "content": "Is it raining now? " * 5}
    steps = steps_of(
        model("m1", 1, [question], [ANSWER]), model("m2", 2, [question, ANSWER, question], [ANSWER])
    )
    assert [step.key for step in steps] == [
        "m1/asked/0",
        "m1/answered/0",
        "m2/asked/2",
        "m2/answered/0",
    ]


def test_equal_texts_of_two_conversations_are_both_shown() -> None:
    yes: Message = {"role": "user", "content": "yes"}
    first: Message = {"role": "user", "content": "Shall I?"}
    steps = steps_of(
        model("m1", 1, [QUESTION, yes], [ANSWER]), model("m2", 2, [first, yes], [ANSWER])
    )
    assert [step.text for step in steps] == [
        "Is it raining?",
        "yes",
        "No.",
        "Shall I?",
        "yes",
        "No.",
    ]


def test_a_system_prompt_is_shown_once_for_each_agent() -> None:
    rows = [
        agent("a", "Planner", 0),
        agent("b", "Doer", 4, "a"),
        model("m1", 1, [SYSTEM, QUESTION], [ANSWER], "a"),
        model("m2", 5, [SYSTEM, QUESTION, ANSWER], [ANSWER], "b"),
        model("m3", 7, [SYSTEM, QUESTION, ANSWER, ANSWER], [ANSWER], "b"),
    ]
    steps = steps_of(*rows)
    assert [step.key for step in steps] == [
        "a",
        "m1/asked/0",
        "m1/asked/1",
        "m1/answered/0",
        "b",
        "m2/asked/0",
        "m2/answered/0",
        "m3/answered/0",
    ]
    assert [step.agent for step in steps] == [
        "Planner",
        "system",
        "user",
        "Planner",
        "Doer",
        "system",
        "Doer",
        "Doer",
    ]
    assert [step.parent for step in steps] == [None, "a", "a", "a", "a", "b", "b", "b"]
    assert steps[4].text == "agent Doer begins"


def test_a_tool_row_answers_the_call_with_its_id_else_with_its_arguments() -> None:
    calls = call('{"city": "Basel"}', "c1"), call('{"city": "Bern"}', None)
    steps = steps_of(
        model("m1", 1, [QUESTION], calls),
        tool("t1", 3, input={"city": "Bern"}, output="dry"),
        tool("t2", 4, input={"city": "Basel"}, output="wet", call_id="c1"),
    )
    results = [step for step in steps if step.kind is SpanKind.TOOL_RESULT]
    assert [(step.key, step.parent, step.text) for step in results] == [
        ("t1", "m1/answered/1/tool_calls/0", "dry"),
        ("c1:result", "c1:call", "wet"),
    ]
    ends = {step.key: step.end for step in steps if step.kind is SpanKind.TOOL_CALL}
    assert ends == {"c1:call": 5, "m1/answered/1/tool_calls/0": 4}


def test_a_tool_row_without_a_call_shows_the_call_once() -> None:
    steps = steps_of(
        model("m1", 1, [QUESTION], [{"role": "assistant", "content": "I look."}]),
        tool("t1", 2),
        model("m2", 4, [QUESTION, call(call_id=None), result(call_id=None)], [ANSWER]),
    )
    assert [step.key for step in steps] == [
        "m1/asked/0",
        "m1/answered/0",
        "t1/call",
        "t1",
        "m2/answered/0",
    ]


def test_missing_results_of_tool_rows_come_from_the_history() -> None:
    steps = steps_of(
        model("m1", 1, [QUESTION], [call()]),
        tool("t1", 2, call_id="c1", output=None),
        model("m2", 4, [QUESTION, call(), result("dry")], [ANSWER]),
    )
    assert [step.key for step in steps][2:] == ["c1:result", "m2/answered/0"]
    assert steps[1].end == 3


def test_results_without_ids_answer_the_calls_in_their_order() -> None:
    calls = [call('{"city": "Bern"}', None), call('{"city": "Basel"}', None)]
    results = [result("dry", None), result("wet", None)]
    steps = steps_of(
        model("m1", 1, [QUESTION], calls), model("m2", 2, [QUESTION, *calls, *results], [ANSWER])
    )
    assert [(step.text, step.parent) for step in steps if step.kind is SpanKind.TOOL_RESULT] == [
        ("dry", "m1/answered/0/tool_calls/0"),
        ("wet", "m1/answered/1/tool_calls/0"),
    ]


def test_a_failed_tool_shows_its_error() -> None:
    steps = steps_of(
        tool("t1", 1, output=None, error="no net", status=SpanStatus.ERROR),
        tool("t2", 2, output="half of it", error="cut off", status=SpanStatus.ERROR),
    )
    assert [(step.text, step.status) for step in steps[1::2]] == [
        ("no net", SpanStatus.ERROR),
        ("half of it\ncut off", SpanStatus.ERROR),
    ]


def test_rows_within_a_tool_are_between_its_call_and_result() -> None:
    steps = steps_of(
        tool("t", 1, name="ask_doer", input="do it", output="done"),
        agent("a", "Doer", 2, "t"),
        model(
            "m",
            3,
            [{"role": "user", "content": "do it"}],
            [{"role": "assistant", "content": "done"}],
            "a",
        ),
    )
    assert [(step.key, step.parent) for step in steps] == [
        ("t/call", None),
        ("a", "t/call"),
        ("m/asked/0", "a"),
        ("m/answered/0", "a"),
        ("t", "t/call"),
    ]


def test_a_tool_row_within_an_equal_one_is_the_same_execution() -> None:
    steps = steps_of(tool("outer", 1, output=None), tool("inner", 1.1, "outer"))
    assert [(step.key, step.text) for step in steps[1:]] == [("outer", "dry")]


def test_a_call_recorded_by_two_libraries_counts_once() -> None:
    tokens = Tokens(5, 2)
    steps = steps_of(
        model("outer", 1, [QUESTION], [ANSWER], tokens=tokens),
        model("inner", 1.1, [QUESTION], [ANSWER], "outer", tokens=tokens),
    )
    assert [(step.key, step.tokens) for step in steps] == [
        ("inner/asked/0", None),
        ("inner/answered/0", tokens),
    ]


def test_a_model_around_others_shows_only_new_messages() -> None:
    steps = steps_of(
        model("outer", 1, [QUESTION], [ANSWER]),
        model("inner", 1.1, [QUESTION], [call()], "outer"),
        tool("t", 2, "outer", call_id="c1"),
    )
    assert [step.key for step in steps] == [
        "inner/asked/0",
        "c1:call",
        "c1:result",
        "outer/answered/0",
    ]


def test_tokens_and_errors_are_on_the_last_span_of_a_call() -> None:
    failure: dict[str, Any] = {
        "error": "overloaded",
        "status": SpanStatus.ERROR,
        "tokens": Tokens(3, None),
    }
    steps = steps_of(
        model(
            "m1",
            1,
            [QUESTION],
            [{"role": "assistant", "content": "I look."}, call()],
            tokens=Tokens(4, 1),
        ),
        model("m2", 2, [QUESTION], **failure),
    )
    assert [(step.key, step.tokens, step.status) for step in steps] == [
        ("m1/asked/0", None, SpanStatus.UNKNOWN),
        ("m1/answered/0", None, SpanStatus.UNKNOWN),
        ("c1:call", Tokens(4, 1), SpanStatus.UNKNOWN),
        ("m2", Tokens(3, None), SpanStatus.ERROR),
    ]
    assert steps[-1].text == "overloaded"


def test_a_tool_row_before_its_call_is_shown_once() -> None:
    steps = steps_of(
        tool("t1", 1, call_id="c1"),
        model("m1", 2, [QUESTION], [call()], tokens=Tokens(3, 4)),
        model("m2", 3, [QUESTION, call(), result()], [ANSWER]),
    )
    assert [step.key for step in steps] == ["c1:call", "c1:result", "m1/asked/0", "m2/answered/0"]
    assert steps[0].tokens == Tokens(3, 4)


def test_a_system_prompt_beside_the_messages_is_shown_once() -> None:
    steps_with_message = steps_of(
        agent("a", "Planner", 0, instructions="Be brief."),
        model("m1", 1, [SYSTEM, QUESTION], [ANSWER], "a"),
    )
    steps_with_instructions = steps_of(
        agent("a", "Planner", 0, instructions="Be brief."),
        model("m1", 1, [QUESTION], [ANSWER], "a"),
        model("m2", 2, [SYSTEM, QUESTION, ANSWER], [ANSWER], "a"),
    )
    prompts = [
        [step.key for step in steps if step.role is Role.SYSTEM]
        for steps in (steps_with_message, steps_with_instructions)
    ]
    assert prompts == [["m1/asked/0"], ["a/instructions"]]


def test_children_of_hidden_chains_belong_to_the_next_row_above() -> None:
    rows = [
        agent("a", "Planner", 0),
        other("chain", 1, "a", input="x", output="y"),
        model("m", 2, [QUESTION], [ANSWER], "chain"),
        other("docs", 4, "chain", output="a page on rain", has_readable_output=True),
        other("guard", 5, "chain", output="allowed", has_readable_output=True),
    ]
    steps = steps_of(*rows)
    assert [(step.key, step.parent, step.text) for step in steps[1:]] == [
        ("m/asked/0", "a", "Is it raining?"),
        ("m/answered/0", "a", "No."),
        ("docs", "a", "a page on rain"),
        ("guard", "a", "allowed"),
    ]


def test_an_error_is_shown_at_the_row_where_it_arose() -> None:
    failed: dict[str, Any] = {"error": "no net", "status": SpanStatus.ERROR}
    steps = steps_of(
        other("flow", 0, **failed),
        other("step", 1, "flow", **failed),
        tool("t", 2, "step", output=None, **failed),
        other("last", 5, "flow", error="gave up", status=SpanStatus.ERROR),
    )
    assert [(step.key, step.text) for step in steps if step.status is SpanStatus.ERROR] == [
        ("t", "no net"),
        ("last", "gave up"),
    ]


def test_a_root_shows_texts_that_no_model_row_has() -> None:
    without_model = steps_of(
        other("flow", 0, input="Is it raining?", output={"answer": "No."}), tool("t", 1, "flow")
    )
    assert [(step.key, step.role) for step in without_model] == [
        ("flow/input", Role.USER),
        ("t/call", Role.AGENT),
        ("t", Role.TOOL),
        ("flow/output", Role.AGENT),
    ]
    with_model = steps_of(
        other("flow", 0, input="Is it raining?", output="No."),
        model("m", 1, [{"role": "user", "content": "Task: Is it raining?"}], [ANSWER], "flow"),
    )
    assert [step.key for step in with_model] == ["m/asked/0", "m/answered/0"]


def test_rows_of_no_known_kind_are_all_shown() -> None:
    steps = steps_of(other("GET /", 0, output="http.status: 200"), other("SELECT", 1, "GET /"))
    assert [(step.kind, step.text, step.parent) for step in steps] == [
        (SpanKind.LOG, "http.status: 200", None),
        (SpanKind.LOG, "SELECT", "GET /"),
    ]


def test_the_agent_is_the_row_else_the_agent_above_else_the_service() -> None:
    def actors(*rows: SpanRow) -> list[str]:
        return [step.agent for step in steps_of(*rows, service="shop") if step.key.startswith("m")]

    row = model("m", 1, (), [ANSWER])
    assert actors(row) == ["shop"]
    assert actors(agent("a", "Planner", 0), replace(row, parent="a")) == ["Planner"]
    assert actors(agent("a", "Planner", 0), replace(row, parent="a", agent="Aide")) == ["Aide"]


def test_every_row_is_found_by_its_id() -> None:
    rows = [
        other("flow", 0),
        agent("a", "Planner", 1, "flow"),
        other("chain", 2, "a"),
        model("m", 3, [QUESTION], [{"role": "assistant", "content": "I look."}, call()], "chain"),
        tool("t", 5, "chain", call_id="c1"),
        tool("silent", 7, "chain", output=None, input={"city": "Basel"}),
    ]
    steps = steps_of(*rows, every_row=True)
    assert {row.id for row in rows} <= {step.key for step in steps}
    assert all(step.key.split("/")[0] in {row.id for row in rows} for step in steps)
    assert next(step.text for step in steps if step.key == "m") == '{"city": "Bern"}'
    assert next(step.text for step in steps if step.key == "t") == "dry"


def test_children_are_ordered_by_time_and_cycles_end() -> None:
    loop = [other("x", 3, "y"), other("y", 2, "x"), other("self", 1, "self")]
    steps = steps_of(*loop, other("late", 9, "gone"), other("early", 0, "gone"))
    assert [step.key for step in steps] == ["early", "self", "late", "x", "y"]


@pytest.mark.slow
def test_a_deeply_nested_row_is_reached() -> None:
    chain = [other(f"r{n}", n, f"r{n - 1}") for n in range(20_000)]
    steps = steps_of(*chain, model("m", 1, [QUESTION], [ANSWER], "r19999"))
    assert [step.key for step in steps] == ["m/asked/0", "m/answered/0"]


_MESSAGES = st.sampled_from(
    [SYSTEM, QUESTION, ANSWER, call(), call(call_id=None), result(), result(call_id=None)]
)
_ROWS = st.builds(
    lambda number, kind, parent, start, request, answer, readable: SpanRow(
        f"r{number}",
        None if parent is None else f"r{parent}",
        kind,
        "weather",
        f"/{number}",
        start,
        request=tuple(request) if kind is RowKind.MODEL else (),
        answer=tuple(answer) if kind is RowKind.MODEL else (),
        output=None if readable else "dry",
        call_id="c1" if readable else None,
        has_readable_output=readable,
    ),
    st.integers(0, 6),
    st.sampled_from(RowKind),
    st.none() | st.integers(0, 7),
    st.none() | st.floats(0, 9),
    st.lists(_MESSAGES, max_size=5),
    st.lists(_MESSAGES, max_size=2),
    st.booleans(),
)


@given(st.lists(_ROWS, max_size=8), st.booleans())
def test_any_rows_give_a_sound_timeline(rows: list[SpanRow], every_row: bool) -> None:
    steps = observed_steps(rows, every_row=every_row).steps
    repeated = observed_steps(rows, every_row=every_row).steps
    assert steps == repeated
    earlier_keys: set[str] = set()
    for step in steps:
        assert step.parent is None or step.parent in earlier_keys
        assert step.key not in earlier_keys
        assert step.agent
        earlier_keys.add(step.key)
    if every_row:
        assert {row.id for row in rows} <= earlier_keys


def test_a_result_with_an_id_answers_an_earlier_call_without_one() -> None:
    named_result: dict[str, Any] = {**result(call_id="c9"), "name": "weather"}
    steps = steps_of(
        agent("a", "Planner", 0),
        model("m", 1, [QUESTION], [call(call_id=None)], "a"),
        model("n", 3, [QUESTION, call(call_id=None), named_result], [ANSWER], "a"),
    )
    call_step = next(step for step in steps if step.kind is SpanKind.TOOL_CALL)
    answers = [step for step in steps if step.kind is SpanKind.TOOL_RESULT]
    assert [step.parent for step in answers] == [call_step.key]
    assert [step.agent for step in answers] == [call_step.agent]
