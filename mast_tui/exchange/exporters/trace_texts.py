"""The texts of a workspace's traces, for formats that carry what was labelled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mast_tui.adjudication import traces_from_files
from mast_tui.traces.model import Trace
from mast_tui.workspace import Workspace


@dataclass(frozen=True, slots=True)
class SpanText:
    """One span: its key, who speaks in it and as what, and its whole text as read."""

    key: str
    author: str
    text: str


TextsOf = Callable[[str], tuple[SpanText, ...] | None]
"""The spans of a trace, by its id; None where its file is not at hand."""


def texts_from_files(workspace: Workspace) -> TextsOf:
    """The texts of the workspace's traces, read from their files as ``traces_from_files`` does."""
    trace_of = traces_from_files(workspace)

    def texts(trace_id: str) -> tuple[SpanText, ...] | None:
        trace = trace_of(trace_id)
        return None if trace is None else tuple(_texts_of(trace))

    return texts


def _texts_of(trace: Trace) -> Iterator[SpanText]:
    for index in range(len(trace)):
        span = trace.span(index)
        words = (f"#{index + 1}", span.agent, span.kind.value, span.name or "")
        yield SpanText(span.key, " ".join(filter(None, words)), trace.text(index))
