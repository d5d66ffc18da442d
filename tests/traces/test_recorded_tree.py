"""The tree of recorded rows: hidden rows, agents, errors and order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.traces.model import Role, SpanKind, SpanStatus
from mast_tui.traces.readers.span_tree.rows import RowKind, SpanRow
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
