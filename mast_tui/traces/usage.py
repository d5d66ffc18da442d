"""The time and tokens that a run took, by agent and by tool."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from mast_tui.columns import TableColumn
from mast_tui.counts import duration
from mast_tui.traces.model import Span, SpanKind, SpanStatus, Trace

_TOOL_KINDS: Final = (SpanKind.TOOL_CALL, SpanKind.TOOL_RESULT)

CostOf = Callable[[int, int], float]
"""Returns the cost of tokens that were read and written."""


@dataclass(slots=True)
class UsageSums:
    """The sums of one agent or tool: steps, failed steps, seconds, and tokens."""

    name: str
    steps: int = 0
    failed: int = 0
    seconds: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0


@dataclass(frozen=True, slots=True)
class RunUsage:
    """The sums of a run by agent and by tool, the longest time first.

    - A call of a tool counts as a step of its agent and of the tool.
    - Time counts once. The time before a result and the time of a running call belong to the tool,
      all other time to the agent or person who acts next.
    - Tokens belong to the agent.
    """

    agents: tuple[UsageSums, ...]
    tools: tuple[UsageSums, ...]


def usage_of(trace: Trace) -> RunUsage:
    """Return the sums of the spans of a trace that were read so far."""
    return usage_of_spans(trace.span(index) for index in range(len(trace)))


def usage_of_spans(spans: Iterable[Span]) -> RunUsage:
    """Return the sums of spans, which must be in reading order."""
    agents: dict[str, UsageSums] = {}
    tools: dict[str, UsageSums] = {}
    latest: float | None = None
    for span in spans:
        agent = agents.setdefault(span.agent, UsageSums(span.agent))
        tool = None
        if span.kind in _TOOL_KINDS:
            name = span.name or "a tool without a name"
            tool = tools.setdefault(name, UsageSums(name))
        if span.kind is SpanKind.TOOL_RESULT:
            assert tool is not None
            tool.failed += span.status is SpanStatus.ERROR
        else:
            agent.steps += 1
            agent.failed += span.status is SpanStatus.ERROR
            if tool is not None:
                tool.steps += 1
        if span.tokens is not None:
            agent.tokens_in += span.tokens.input or 0
            agent.tokens_out += span.tokens.output or 0
        latest = _add_times(span, latest, agent, tool)
    return RunUsage(_longest_first(agents), _longest_first(tools))


def _add_times(
    span: Span, latest: float | None, agent: UsageSums, tool: UsageSums | None
) -> float | None:
    """Add the time of a span to its agent or tool, and return the latest time so far."""
    if span.start is None:
        return latest
    if latest is not None and span.start > latest:
        gap = span.start - latest
        if tool is not None and span.kind is SpanKind.TOOL_RESULT:
            tool.seconds += gap
        else:
            agent.seconds += gap
    latest = span.start if latest is None else max(latest, span.start)
    if span.end is not None and span.end > latest:
        owner = agent if tool is None else tool
        owner.seconds += span.end - latest
        latest = span.end
    return latest


def _longest_first(sums_by_name: dict[str, UsageSums]) -> tuple[UsageSums, ...]:
    """Return the sums that are not zero, the longest time first."""
    active = (sums for sums in sums_by_name.values() if sums.steps or sums.seconds or sums.failed)
    return tuple(sorted(active, key=lambda sums: (-sums.seconds, -sums.steps, sums.name)))


class UsageTable(NamedTuple):
    """The sums of the agents or of the tools as a table."""

    title: str
    columns: Sequence[TableColumn[UsageSums]]
    rows: Sequence[UsageSums]


def usage_tables(usage: RunUsage, cost_of: CostOf | None = None) -> Iterator[UsageTable]:
    """Yield the tables of agents and tools, without empty columns and tables.

    Args:
        usage: The sums of the run.
        cost_of: Returns the cost of tokens; None without prices.
    """

    def cost_text(row: UsageSums) -> str:
        if cost_of is None or not (row.tokens_in or row.tokens_out):
            return ""
        return f"{cost_of(row.tokens_in, row.tokens_out):.3g}"

    def count_text(number: int) -> str:
        return f"{number:,}" if number else ""

    columns: tuple[TableColumn[UsageSums], ...] = (
        TableColumn("name", lambda row: row.name),
        TableColumn("steps", lambda row: count_text(row.steps), right=True),
        TableColumn("errors", lambda row: count_text(row.failed), right=True),
        TableColumn("time", lambda row: duration(row.seconds) if row.seconds else "", right=True),
        TableColumn("tokens read", lambda row: count_text(row.tokens_in), right=True),
        TableColumn("tokens written", lambda row: count_text(row.tokens_out), right=True),
        TableColumn("cost", cost_text, right=True),
    )
    for title, rows in (("By agent", usage.agents), ("By tool", usage.tools)):
        filled_columns = [column for column in columns if any(map(column.cell, rows))]
        if rows:
            yield UsageTable(title, filled_columns, rows)
