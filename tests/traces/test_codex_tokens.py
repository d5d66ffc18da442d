"""Tokens of model calls in Codex rollouts."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.traces.model import Tokens
from tests.traces.checks import spans_of
from tests.traces.rollouts import (
    call,
    event,
    message,
    meta,
    output,
    reasoning,
    record,
    tokens,
    trace_of,
    write,
)


def tokens_by_key(folder: Path, *records: object) -> list[tuple[str, Tokens]]:
    spans = spans_of(trace_of(write(folder, meta(), *records)))
    return [(span.key, span.tokens) for span in spans if span.tokens is not None]


def test_the_last_span_of_each_call_has_its_tokens(tmp_path: Path) -> None:
    actual = tokens_by_key(
        tmp_path,
        message("user", "go"),
        reasoning("hm", second=1),
        call("a", second=1),
        call("b", second=1),
        tokens(100, 10, 110, second=1),
        output("a", second=4),
        output("b", second=5),
        message("assistant", "done", 8),
        tokens(200, 20, 330, second=8),
    )
    assert actual == [("b:call", Tokens(100, 10)), ("line 9", Tokens(200, 20))]


@pytest.mark.parametrize("before", [True, False])
def test_a_count_that_is_repeated_counts_once(tmp_path: Path, before: bool) -> None:
    actual = tokens_by_key(
        tmp_path,
        *([tokens(5, 5, 10, second=0)] * 2 if before else []),
        call("a", second=2),
        output("a", second=3),
        tokens(100, 10, 120, second=3),
        tokens(100, 10, 120, second=4),
        call("b", second=6),
        tokens(100, 10, 120, second=6),
        tokens(200, 20, 340, second=6),
        tokens(200, 20, 340, second=7),
    )
    assert actual == [("a:call", Tokens(100, 10)), ("b:call", Tokens(200, 20))]


def test_two_calls_with_equal_counts_count_twice(tmp_path: Path) -> None:
    actual = tokens_by_key(tmp_path, call("a"), tokens(7, 7, 14), call("b"), tokens(7, 7, 28))
    assert actual == [("a:call", Tokens(7, 7)), ("b:call", Tokens(7, 7))]


def test_rate_limit_events_do_not_separate_a_call_from_its_tokens(tmp_path: Path) -> None:
    actual = tokens_by_key(tmp_path, call("a"), event("token_count", info=None), tokens(3, 2, 5))
    assert actual == [("a:call", Tokens(3, 2))]


def test_token_usage_records_of_newer_builds_count_nothing_twice(tmp_path: Path) -> None:
    usage = {"usage": {"input_tokens": 3, "output_tokens": 2}, "response_id": "r"}
    account = record("token_usage_record", usage)
    trace = trace_of(write(tmp_path, meta(), call("a"), tokens(3, 2, 5), account))
    assert [span.tokens for span in spans_of(trace)] == [Tokens(3, 2)]


def test_messages_of_other_agents_have_no_tokens(tmp_path: Path) -> None:
    letter = record(
        "response_item",
        {
            "type": "agent_message",
            "author": "/root/a",
            "recipient": "/root",
            "content": [{"type": "input_text", "text": "found it"}],
        },
    )
    assert tokens_by_key(tmp_path, call("a"), letter, tokens(3, 2, 5)) == [("a:call", Tokens(3, 2))]


def test_the_first_of_several_models_stays(tmp_path: Path) -> None:
    contexts = [record("turn_context", {"model": name}) for name in ("one", "two")]
    assert trace_of(write(tmp_path, meta(), *contexts)).meta.model == "one"
