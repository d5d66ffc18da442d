"""The time and tokens that a run took, by agent and by tool."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from mast_tui.traces.model import Span, SpanKind, SpanStatus, Trace

_TOOL_KINDS: Final = (SpanKind.TOOL_CALL, SpanKind.TOOL_RESULT)

Cost = Callable[[int, int], float]
"""Returns the cost of tokens that were read and written."""


@dataclass(slots=True)
class UsageTotals:
    """The sums of one agent or tool: steps, failed ones, seconds, and tokens."""

    name: str
    steps: int = 0
    failed: int = 0
    seconds: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0

    def cost(self, cost_of: Cost) -> float:
        """Return the cost of the tokens."""
        return cost_of(self.tokens_in, self.tokens_out)


@dataclass(frozen=True, slots=True)
class RunUsage:
    """The sums of a run by agent and by tool, those that took longest first.

    A call of a tool counts as a step of its agent and of the tool. Time counts once: from the step
    before to a result, and while a call runs, it is the tool's; all other time is that of the agent
    or person who acts next. Tokens are the agent's.
    """

    agents: tuple[UsageTotals, ...]
    tools: tuple[UsageTotals, ...]


def usage_of(trace: Trace) -> RunUsage:
    """Return the sums of a trace, as far as its index has been read."""
    return usage_of_spans(trace.span(index) for index in range(len(trace)))


def usage_of_spans(spans: Iterable[Span]) -> RunUsage:
    """Return the sums of spans in reading order."""
    agents: dict[str, UsageTotals] = {}
    tools: dict[str, UsageTotals] = {}
    latest: float | None = None
    for span in spans:
        agent = agents.setdefault(span.agent, UsageTotals(span.agent))
        tool = None
        if span.kind in _TOOL_KINDS:
            name = span.name or "a tool without a name"
            tool = tools.setdefault(name, UsageTotals(name))
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
    span: Span, latest: float | None, agent: UsageTotals, tool: UsageTotals | None
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
    reached = span.start if latest is None else max(latest, span.start)
    if span.end is not None and span.end > reached:
        (agent if tool is None else tool).seconds += span.end - reached
        reached = span.end
    return reached


def _longest_first(usages: dict[str, UsageTotals]) -> tuple[UsageTotals, ...]:
    used = (usage for usage in usages.values() if usage.steps or usage.seconds or usage.failed)
    return tuple(sorted(used, key=lambda usage: (-usage.seconds, -usage.steps, usage.name)))
