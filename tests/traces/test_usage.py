"""Sums of time and tokens by agent and by tool."""

from __future__ import annotations

from mast_tui.traces.model import Role, Span, SpanKind, SpanStatus, Tokens
from mast_tui.traces.usage import UsageSums, usage_of_spans, usage_tables

AGENT = (SpanKind.MESSAGE, Role.AGENT)
CALL = (SpanKind.TOOL_CALL, Role.AGENT)
RESULT = (SpanKind.TOOL_RESULT, Role.TOOL)


def span(
    shape: tuple[SpanKind, Role],
    agent: str,
    start: float | None,
    *,
    name: str | None = None,
    end: float | None = None,
    failed: bool = False,
    tokens: Tokens | None = None,
) -> Span:
    status = SpanStatus.ERROR if failed else SpanStatus.OK
    return Span(0, "k", *shape, agent, name, None, start, end, status, "line 1", "", True, tokens)


SPANS = (
    span((SpanKind.MESSAGE, Role.USER), "user", 100),
    span(AGENT, "planner", 104, tokens=Tokens(1000, 20)),
    span(CALL, "planner", 105, name="bash"),
    span(RESULT, "planner", 135, name="bash", failed=True),
    span(CALL, "coder", 140, name="bash", end=150, tokens=Tokens(None, 7)),
    span(RESULT, "coder", 150, name="bash"),
    span(AGENT, "coder", None),
    span(CALL, "coder", 160, name=None),
    span(AGENT, "planner", 158),
)


def test_time_and_tokens_count_once() -> None:
    usage = usage_of_spans(SPANS)
    assert usage.agents == (
        UsageSums("coder", 3, 0, 15.0, 0, 7),
        UsageSums("planner", 3, 0, 5.0, 1000, 20),
        UsageSums("user", 1),
    )
    assert usage.tools == (UsageSums("bash", 2, 1, 40.0), UsageSums("a tool without a name", 1))
    assert sum(row.seconds for row in (*usage.agents, *usage.tools)) == 160 - 100


def test_tables_have_the_columns_that_have_a_value() -> None:
    agents, tools = usage_tables(usage_of_spans(SPANS), lambda read, written: read / 500 + written)
    assert [column.title for column in agents.columns] == [
        *("name", "steps", "time", "tokens read", "tokens written", "cost")
    ]
    assert [[column.cell(row) for column in agents.columns] for row in agents.rows] == [
        ["coder", "3", "15.0s", "", "7", "7"],
        ["planner", "3", "5.0s", "1,000", "20", "22"],
        ["user", "1", "", "", "", ""],
    ]
    assert [column.title for column in tools.columns] == ["name", "steps", "errors", "time"]
    assert list(usage_tables(usage_of_spans(()))) == []
