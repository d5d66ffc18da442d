"""Which spans of a trace are shown: a choice of kinds, agents and marks, and how it is applied."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from mast_tui.traces.model import STATUSES, Shape, SpanColumns, SpanKind, SpanStatus, Trace

KIND_NAMES: Final[Mapping[SpanKind, str]] = {
    SpanKind.MESSAGE: "messages",
    SpanKind.REASONING: "reasoning",
    SpanKind.TOOL_CALL: "tool calls",
    SpanKind.TOOL_RESULT: "tool results",
    SpanKind.LOG: "log records",
}
"""What several spans of a kind are called."""

FLAG_WORDS: Final[Mapping[str, str]] = {
    "no_logs": "no log records",
    **{flag: flag for flag in ("errors", "labelled", "suggested", "matches")},
}
"""What else may be asked for, with how it is said."""

_ERROR: Final = STATUSES.index(SpanStatus.ERROR)


@dataclass(frozen=True, slots=True)
class SpanFilter:
    """What is shown: of several kinds, or of several agents, each; all else must hold at once.

    Without any kind every kind is shown, and so with agents; ``no_logs`` leaves out one kind.
    """

    kinds: frozenset[SpanKind] = frozenset()
    agents: frozenset[str] = frozenset()
    no_logs: bool = False
    errors: bool = False
    labelled: bool = False
    suggested: bool = False
    matches: bool = False

    @property
    def shows_all(self) -> bool:
        """Whether nothing is left out."""
        return self == EVERYTHING

    def with_kind(self, kind: SpanKind) -> SpanFilter:
        """The same with this kind chosen, or no longer."""
        return replace(self, kinds=self.kinds ^ {kind})

    def with_agent(self, agent: str) -> SpanFilter:
        """The same with this agent chosen, or no longer."""
        return replace(self, agents=self.agents ^ {agent})

    def toggled(self, flag: str) -> SpanFilter:
        """The same with something else asked for, or no longer: one of ``FLAG_WORDS``."""
        changed: dict[str, Any] = {flag: not getattr(self, flag)}
        return replace(self, **changed)

    @property
    def words(self) -> str:
        """What is shown, in a few words; empty where that is everything."""
        parts = [name for kind, name in KIND_NAMES.items() if kind in self.kinds]
        words = [" or ".join(parts)] if parts else []
        if self.agents:
            words.append(f"by {' or '.join(sorted(self.agents))}")
        words += [said for flag, said in FLAG_WORDS.items() if getattr(self, flag)]
        return ", ".join(words)


EVERYTHING: Final = SpanFilter()


class Indices(Protocol):
    """Indices of spans, in order."""

    def within(self, first: int, end: int, /) -> Sequence[int]:
        """Those from ``first`` up to ``end`` (exclusive)."""


class Stretches:
    """Spans that lie in any of some ranges; asked for some it looks at few of them."""

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._first = array("Q")
        self._last = array("Q")
        for first, last in sorted(ranges):
            if self._last and first <= self._last[-1] + 1:
                self._last[-1] = max(self._last[-1], last)
            else:
                self._first.append(first)
                self._last.append(last)

    def within(self, first: int, end: int, /) -> Sequence[int]:
        """The spans from ``first`` up to ``end`` (exclusive) that lie in any of the ranges."""
        found: list[int] = []
        place = bisect_left(self._last, first)
        while place < len(self._first) and self._first[place] < end:
            found += range(max(first, self._first[place]), min(end, self._last[place] + 1))
            place += 1
        return found


_NONE: Final = Stretches()


@dataclass(frozen=True, slots=True)
class Marked:
    """Which spans have labels, suggestions and matches, by their indices."""

    labelled: Indices = _NONE
    suggested: Indices = _NONE
    matches: Indices = _NONE


class Narrowing:
    """Applies a filter to a trace slice by slice, and to what the trace gains later.

    ``seen`` spans have been looked at: their columns, and of what is marked only what lies there.
    """

    def __init__(self, trace: Trace, chosen: SpanFilter, marked: Marked) -> None:
        self.trace = trace
        self.chosen = chosen
        wanted = (
            (chosen.labelled, marked.labelled),
            (chosen.suggested, marked.suggested),
            (chosen.matches, marked.matches),
        )
        self._among = [indices for asked, indices in wanted if asked]
        self._by_shape = bool(chosen.kinds or chosen.agents or chosen.no_logs)
        self.seen = 0

    def step(self, most: int) -> array[int]:
        """Look at up to ``most`` more spans; the indices of those that are shown."""
        first, end = self.seen, min(len(self.trace), self.seen + most)
        self.seen = max(first, end)
        indices: Sequence[int] = range(first, end)
        for number, among in enumerate(self._among):
            found = among.within(first, end)
            indices = found if number == 0 else sorted({*indices} & {*found})
        if indices and (self._by_shape or self.chosen.errors):
            indices = self._in_columns(self.trace.columns(first, end), indices)
        return array("Q", indices)

    def _in_columns(self, known: SpanColumns, indices: Sequence[int]) -> Sequence[int]:
        """Of these spans those of the kinds and agents that are chosen, and errors."""
        first, shapes, statuses = known.first, known.shapes, known.statuses
        if self.chosen.errors:
            indices = [index for index in indices if statuses[index - first] == _ERROR]
        if self._by_shape:
            kept = {number for number, shape in enumerate(known.shape_list) if self._keeps(shape)}
            indices = [index for index in indices if shapes[index - first] in kept]
        return indices

    def _keeps(self, shape: Shape) -> bool:
        kind, _role, agent, _name = shape
        kinds, agents = self.chosen.kinds, self.chosen.agents
        if kind is SpanKind.LOG and self.chosen.no_logs:
            return False
        return (not kinds or kind in kinds) and (not agents or agent in agents)
