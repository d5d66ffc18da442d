"""Files that resemble ATIF: another version, results before their calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.traces.readers.atif import READER
from tests.traces.checks import read_one, spans_of, write_json
from tests.traces.test_atif import Json, user


def published_off_standard(*steps: Json) -> Json:
    """A file that says version 1.4, names the model in its own way, and puts results first."""
    return {
        "schema_version": "1.4",
        "session_id": "off-1",
        "agent": {"name": "coder", "model": "m-1"},
        "steps": [{"step_id": number, **step} for number, step in enumerate(steps, 1)],
    }


def off_standard_call(*calls: str) -> Json:
    made = [{"id": call, "name": "shell", "arguments": {"n": call}} for call in calls]
    return {"source": "agent", "message": "", "tool_calls": made}


PLAIN: Json = {"source": "system", "message": "x"}


def test_results_with_another_field_for_their_text_are_read(tmp_path: Path) -> None:
    result: Json = {"source": "system", "content": "the result"}
    run = published_off_standard(user("go"), result, off_standard_call("a"))
    trace = read_one(READER, write_json(tmp_path / "t.json", run))
    assert (trace.text(2), trace.span(2).parent) == ("the result", "a:call")


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([PLAIN, off_standard_call("a")], id="prompt"),
        pytest.param([user("go"), PLAIN, PLAIN, off_standard_call("a")], id="too many"),
        pytest.param(
            [
                user("go"),
                PLAIN,
                off_standard_call("a"),
                {"source": "system", "message": "of a", "tool_call_id": "a"},
            ],
            id="answered elsewhere",
        ),
        pytest.param(
            [
                user("go"),
                PLAIN,
                {**off_standard_call("b"), "is_copied_context": True},
                off_standard_call("a"),
            ],
            id="copied call",
        ),
    ],
)
def test_a_step_that_may_be_no_result_stays_in_its_place(tmp_path: Path, steps: list[Json]) -> None:
    trace = read_one(READER, write_json(tmp_path / "t.json", published_off_standard(*steps)))
    messages = [span for span in spans_of(trace) if trace.text(span.index) == "x"]
    assert {span.kind.value for span in messages} == {"message"}
    call = trace.index_of("a:call")
    assert call is not None
    assert max(span.index for span in messages) < call
