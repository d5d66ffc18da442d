"""Which call of a Codex rollout a result belongs to, and which span has a model call's tokens."""

from __future__ import annotations

from typing import Final

from mast_tui.traces.index.span_table import SpanTable
from mast_tui.traces.io.json_values import as_count
from mast_tui.traces.model import Role, SpanKind, SpanStatus
from mast_tui.traces.readers.codex.records import text_of_output, thread_in_answer
from mast_tui.traces.times import unix_seconds

# A member of an enum takes longer to look up than a name of the module.
_CALL, _RESULT = SpanKind.TOOL_CALL, SpanKind.TOOL_RESULT
_AGENT, _TOOL = Role.AGENT, Role.TOOL


class CallBook:
    """Knows the calls of a rollout by their ids, most of which the table's keys tell."""

    def __init__(self, table: SpanTable) -> None:
        self._table = table
        self._again: dict[str, int] = {}
        """The last call of each id that repeats."""
        self._reported: dict[str, SpanStatus] = {}
        self._spawning: dict[str, tuple[str, ...]] = {}

    def add_call(
        self, line: int, start: float | None, agent: str, call_id: str | None, name: str | None
    ) -> int:
        """Append the call on this line; return its index."""
        table = self._table
        repeats, key = table.repeats, None if call_id is None else f"{call_id}:call"
        shape = (_CALL, _AGENT, agent, name)
        index = table.add(line, line, shape, key, None, start)
        if call_id is not None and table.repeats != repeats:  # else its key tells of it
            self._again[call_id] = index
        return index

    def add_result(
        self,
        line: int,
        time: float | None,
        agent: str,
        call_id: str | None,
        call: int | None,
        status: SpanStatus,
    ) -> int:
        """Append the result on this line of the call at the index ``call``; return its index."""
        name = None
        if call is not None:
            name = self._table.name_of(call)
            self._table.set_end(call, time)
            if self._reported and call_id is not None:
                status = self._reported.pop(call_id, status)
        shape = (_RESULT, _TOOL, agent, name)
        key = None if call_id is None else f"{call_id}:result"
        return self._table.add(line, line, shape, key, call, time, status)

    def call_of(self, call_id: str) -> int | None:
        """The index of the last call with this id."""
        if self._again and call_id in self._again:
            return self._again[call_id]
        call = self._table.find_own(f"{call_id}:call")
        return None if call is None or self._table.kind_of(call) is not _CALL else call

    def result_of(self, call_id: str) -> int | None:
        """The index of the result of the call with this id, where it has come."""
        return self._table.find_own(f"{call_id}:result")

    def reported(self, call_id: str, status: SpanStatus) -> None:
        """A report tells how the call went, whether or not its result has come."""
        result = self.result_of(call_id)
        if result is None:
            self._reported[call_id] = status
        else:
            self._table.set_status(result, status)

    def spawned(self, call_id: str, thread: str) -> None:
        """The call has begun a sub-agent's thread, which was at work before its result."""
        result = self.result_of(call_id)
        if result is None:
            self._spawning[call_id] = (*self._spawning.get(call_id, ()), thread)
        else:
            self._table.spawned.setdefault(thread, self._table.key_of(result))

    def answered(self, call_id: str, call: int | None, result: int, output: object) -> None:
        """A call has its result: sub-agents that it began were at work before this."""
        name = None if call is None else self._table.name_of(call)
        if name is None or "spawn" not in name:
            return
        named = thread_in_answer(text_of_output(output))
        key = self._table.key_of(result)
        for thread in (*self._spawning.pop(call_id, ()), *((named,) if named else ())):
            self._table.spawned.setdefault(thread, key)


_BATCH_SECONDS: Final = 0.25
"""Within which a build that counts first writes the items; a model call takes longer."""


class TokenBook:
    """Gives each model call's tokens to the last of its spans.

    Builds since late 2025 write a call's items as they come and the ``token_count`` after them.
    Older ones wrote the ``token_count`` first and then all items in one go: those follow within
    milliseconds. A count that is repeated, as happens with news of rate limits, is passed over.
    """

    def __init__(self, table: SpanTable) -> None:
        self._table = table
        self._last: tuple[object, ...] = ()
        self._open: int | None = None
        self._early: tuple[int | None, int | None] | None = None
        self._early_time: float | None = None
        self._early_span: int | None = None

    def item_shown(self, index: int, time: float | None) -> None:
        """The model has made the span at ``index``."""
        if self._early is None:
            self._open = index
        elif time is None or self._early_time is None or time - self._early_time <= _BATCH_SECONDS:
            self._early_span = index
        else:
            self._settle()
            self._open = index

    def counted(self, stamp: object, counts: tuple[object, ...]) -> None:
        """A ``token_count`` has come with this time stamp, and with these counts: what the call
        took, what it gave, and the sums so far, where those are told."""
        if counts == self._last:
            return
        taken, given = as_count(counts[0]), as_count(counts[1])
        if taken is None and given is None:
            return
        self._last = counts
        self._settle()
        if self._open is None:
            self._early, self._early_time = (taken, given), unix_seconds(stamp)
        else:
            self._table.set_counts(self._open, taken, given)
            self._open = None

    def finish(self) -> None:
        """No more is to come, unless the file grows."""
        if self._early_span is not None:
            self._settle()

    def _settle(self) -> None:
        if self._early is not None and self._early_span is not None:
            self._table.set_counts(self._early_span, *self._early)
        self._early = self._early_time = self._early_span = None
