"""Which span of a Codex rollout has the tokens of which model call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mast_tui.traces.index.span_table import SpanTable
from mast_tui.traces.io.json_values import as_count, tokens_of
from mast_tui.traces.model import Tokens
from mast_tui.traces.times import unix_seconds

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

    def counted(self, payload: Mapping[str, object], record: Mapping[str, object]) -> None:
        """A ``token_count`` has come with this record."""
        info = payload.get("info")
        if not isinstance(info, dict):
            return
        usage, total = info.get("last_token_usage"), info.get("total_token_usage")
        if not isinstance(usage, dict):
            return
        # Compared to tell a new call from one that is told of again.
        counts: tuple[object, ...] = (usage.get("input_tokens"), usage.get("output_tokens"))
        if isinstance(total, dict):
            counts += (
                total.get("total_tokens"),
                total.get("input_tokens"),
                total.get("output_tokens"),
            )
        if counts == self._last:
            return
        taken, given = as_count(counts[0]), as_count(counts[1])
        if taken is None and given is None:
            return
        self._last = counts
        self._settle()
        if self._open is None:
            self._early, self._early_time = (taken, given), unix_seconds(record.get("timestamp"))
        else:
            self._table.set_counts(self._open, taken, given)
            self._open = None

    def finish(self) -> None:
        """No more is to come."""
        self._settle()

    def _settle(self) -> None:
        if self._early is not None and self._early_span is not None:
            self._table.set_counts(self._early_span, *self._early)
        self._early = self._early_time = self._early_span = None


def usage_of(usage: Mapping[str, object]) -> Tokens | None:
    """Tokens as Codex counts them: cached ones are part of the input, reasoning of the output."""
    return tokens_of(usage.get("input_tokens"), usage.get("output_tokens"))
