"""Traces of any length that create their spans on demand and count them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import get_ident

from mast_tui.traces.model import Role, Span, SpanColumns, SpanKind, SpanStatus
from tests.traces.synthetic_trace import SyntheticTrace

Change = Callable[[Span], Span]


class LongTrace(SyntheticTrace):
    """``length`` messages made on demand, with the keys ``k0``, ``k1``, …; ``change`` alters them.

    ``asked`` counts the spans that this thread has asked for, ``asked_behind`` those of others.
    """

    def __init__(self, length: int, change: Change | None = None) -> None:
        super().__init__(f"long-{length}", Path("long.jsonl"))
        self.length = length
        self.change = change
        self.asked = 0
        self.asked_behind: Counter[int] = Counter()
        self._home = get_ident()

    def __len__(self) -> int:
        return self.length

    def span(self, index: int, /) -> Span:
        if not 0 <= index < self.length:
            raise IndexError(index)
        if get_ident() == self._home:
            self.asked += 1
        else:
            self.asked_behind[index] += 1
        return self.made(index)

    def made(self, index: int) -> Span:
        """Create a span without counting it."""
        span = Span(
            index=index,
            key=f"k{index}",
            kind=SpanKind.MESSAGE,
            role=Role.AGENT,
            agent="agent",
            name=None,
            parent=None,
            start=float(index),
            end=index + 1.0,
            status=SpanStatus.OK,
            place=f"line {index + 1}",
            preview=f"step {index:b}".replace("0", "o").replace("1", "i"),
            preview_is_complete=True,
        )
        return self.change(span) if self.change is not None else span

    def text(self, index: int, /) -> str:
        return self.span(index).preview

    def index_of(self, key: str, /) -> int | None:
        index = int(key[1:]) if key[1:].isdigit() else -1
        return index if 0 <= index < self.length else None


class GlancedTrace(LongTrace):
    """A long trace that also returns columns of spans."""

    def __init__(self, length: int, change: Change | None = None) -> None:
        super().__init__(length, change)
        self.glanced_at = 0

    def columns(self, first: int, end: int, /) -> SpanColumns:
        end = min(end, len(self))
        self.glanced_at += end - first
        return self._columns.columns(first, map(self.made, range(first, end)))

    def has_one_thread(self, first: int, end: int, /) -> bool:
        return not any("/" in self.made(index).key for index in range(first, end))


def calling(span: Span, arguments: str, *, tool: str = "look") -> Span:
    """Return the span as a call of a tool."""
    return replace(span, kind=SpanKind.TOOL_CALL, name=tool, preview=arguments)
