"""Files of Python literals, which look like JSON except for their quotes."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.traces.io.json_values import DEEPEST, MOST_CHARS, python_literal
from mast_tui.traces.library import read_file
from tests.traces.checks import keys_of, texts_of

MESSAGES = (
    "[{'content': 'it\\'s late', 'role': 'user', 'n': 1},\n"
    " {'content': \"don't\\n\", 'role': 'assistant', 'ok': True, 'tool_calls': None}]"
)


def test_a_list_of_messages_as_python_prints_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(MESSAGES)
    report = read_file(tmp_path / "run.json", named=False)
    assert (report.format, report.problems) == ("message-list", ())
    (trace,) = report.traces
    assert texts_of(trace) == ["it's late", "don't\n"]
    assert keys_of(trace) == ["/0", "/1"]
    assert trace.problems == ()


def test_values_become_values_of_json() -> None:
    value = python_literal("{'a': (1, 2.5, None), 2: b'x', None: {'c', 'b'}, True: 1 + 2j}")
    assert value == {"a": [1, 2.5, None], "2": "x", "null": ["b", "c"], "true": "(1+2j)"}


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',  # JSON is for another reader
        "{'a': open('x')}",
        "{'a': __import__('os')}",
        "{'a': [",
        "{'a': " + "[" * (DEEPEST + 1) + "]" * (DEEPEST + 1) + "}",
        "{'a': " + "[" * 5_000 + "]" * 5_000 + "}",
        "{'a': " + "-" * 100_000 + "1}",
        "",
    ],
)
def test_other_texts_are_no_literals(text: str) -> None:
    assert python_literal(text) is None


def test_a_literal_over_the_limit_is_not_read() -> None:
    assert python_literal("{'a': '" + "x" * MOST_CHARS + "'}") is None


def test_a_file_of_literals_that_is_no_trace_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[{'numbers': [1, 2]}]")
    report = read_file(tmp_path / "a.json", named=False)
    assert report.skipped == "Python values of no known trace format"
