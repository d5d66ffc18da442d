"""The parent's history that a forked Codex thread repeats at its beginning.

A fork writes its own ``session_meta``, then its parent's and all of the parent's records in one
go, under the fork's time. None of it is a step of the fork.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mast_tui.traces.json_values import as_text
from mast_tui.traces.readers.codex_records import payload_of, time_of

_BURST_SECONDS: Final = 1.0
"""Within which the history is written; a model's first answer takes longer."""

Record = Mapping[str, object]


class ReplayFilter:
    """Holds back the records of a repeated history.

    A fork's own first prompt may be written within the same second. So the last prompt before the
    first later record counts as the fork's own, unless that record itself begins a turn.
    """

    def __init__(self) -> None:
        self.thread: str | None = None
        self._own: str | None = None
        self._since: float | None = None
        self._within = False
        self._held: list[tuple[int, Record]] = []

    def begins(self, record: Record) -> bool:
        """Whether the repeated history begins with this record: its ``session_meta``."""
        kind, payload = payload_of(record)
        if kind != "session_meta":
            return False
        thread, time = as_text(payload.get("id")), time_of(record)
        if self._own is None:
            self._own, self._since = thread, time
            return False
        if self.thread is not None or thread is None or thread == self._own:
            return False
        if self._since is None or time is None or abs(time - self._since) > _BURST_SECONDS:
            return False
        self.thread, self._since, self._within = thread, time, True
        return True

    def let_through(self, number: int, record: Record) -> list[tuple[int, Record]]:
        """The records to show now that this one has come."""
        if not self._within:
            return [(number, record)]
        time = time_of(record)
        if time is not None and self._since is not None and time - self._since <= _BURST_SECONDS:
            if _is_prompt(record):
                self._held.clear()
            if self._held or _is_prompt(record):
                self._held.append((number, record))
            return []
        held = self.finish()
        return [(number, record)] if _begins_turn(record) else [*held, (number, record)]

    def finish(self) -> list[tuple[int, Record]]:
        """The history is over: the records from the last prompt on, which may be the fork's own."""
        held, self._held, self._within = self._held, [], False
        return held


def _is_prompt(record: Record) -> bool:
    kind, payload = payload_of(record)
    return (
        kind == "response_item"
        and payload.get("type") == "message"
        and payload.get("role") == "user"
    )


def _begins_turn(record: Record) -> bool:
    kind, payload = payload_of(record)
    if kind == "event_msg":
        return payload.get("type") in ("task_started", "turn_started", "user_message")
    return kind == "turn_context" or _is_prompt(record)
