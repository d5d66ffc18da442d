"""Small traces built in memory, span by span."""

from __future__ import annotations

import json
from pathlib import Path

from mast_tui.traces.model import PREVIEW_CHARS, Role, Span, SpanKind, SpanStatus, TraceMeta
from tests.traces.synthetic_trace import SyntheticTrace


class MemoryTrace(SyntheticTrace):
    """A trace whose spans are added one by one."""

    def __init__(self, trace_id: str = "memory", meta: TraceMeta | None = None) -> None:
        super().__init__(trace_id, Path("memory"), reader="memory", meta=meta)
        self._added: list[Span] = []
        self._texts: list[str] = []
        self._calls = 0

    def __len__(self) -> int:
        return len(self._added)

    def span(self, index: int, /) -> Span:
        return self._added[index]

    def text(self, index: int, /) -> str:
        return self._texts[index]

    def index_of(self, key: str, /) -> int | None:
        return next((span.index for span in self._added if span.key == key), None)

    def add(
        self,
        kind: SpanKind,
        role: Role,
        agent: str,
        text: str,
        *,
        key: str | None = None,
        name: str | None = None,
        parent: str | None = None,
        status: SpanStatus = SpanStatus.UNKNOWN,
        start: float | None = None,
    ) -> MemoryTrace:
        index = len(self._added)
        self._added.append(
            Span(
                index=index,
                key=key or f"line {index + 1}",
                kind=kind,
                role=role,
                agent=agent,
                name=name,
                parent=parent,
                start=start,
                end=None,
                status=status,
                place=f"line {index + 1}",
                preview=text[:PREVIEW_CHARS],
                preview_is_complete=len(text) <= PREVIEW_CHARS,
            )
        )
        self._texts.append(text)
        return self

    def user(self, text: str) -> MemoryTrace:
        return self.add(SpanKind.MESSAGE, Role.USER, "user", text)

    def say(self, text: str, agent: str = "agent") -> MemoryTrace:
        return self.add(SpanKind.MESSAGE, Role.AGENT, agent, text)

    def think(self, text: str, agent: str = "agent") -> MemoryTrace:
        return self.add(SpanKind.REASONING, Role.AGENT, agent, text)

    def log(self, text: str) -> MemoryTrace:
        return self.add(SpanKind.LOG, Role.LOG, "log", text)

    def call(
        self,
        tool: str,
        arguments: str,
        result: str | None = "",
        *,
        agent: str = "agent",
        failed: bool = False,
        start: float | None = None,
    ) -> MemoryTrace:
        self._calls += 1
        key = f"call_{self._calls}:call"
        self.add(SpanKind.TOOL_CALL, Role.AGENT, agent, arguments, key=key, name=tool, start=start)
        if result is not None:
            status = SpanStatus.ERROR if failed else SpanStatus.OK
            self.add(
                SpanKind.TOOL_RESULT, Role.TOOL, agent, result,
                key=f"call_{self._calls}:result", name=tool, parent=key, status=status,
            )  # fmt: skip
        return self

    def run(
        self,
        command: str,
        result: str | None = "",
        *,
        failed: bool = False,
        start: float | None = None,
    ) -> MemoryTrace:
        arguments = json.dumps({"command": ["bash", "-lc", command]})
        return self.call("shell", arguments, result, failed=failed, start=start)
