"""A trace whose spans a test defines."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path

from mast_tui.traces.byte_prefilter import Prefilter
from mast_tui.traces.index.document import ColumnsOfSteps, StepSpans
from mast_tui.traces.model import (
    Candidates,
    Loaded,
    Span,
    SpanColumns,
    Trace,
    TraceIdentity,
    TraceMeta,
)


class SyntheticTrace(Trace):
    """A trace whose subclass makes the spans; by default it is read to its end."""

    loaded: Loaded = Loaded(0, 0, True)

    def __init__(
        self, trace_id: str, path: Path, reader: str = "test", meta: TraceMeta | None = None
    ) -> None:
        identity = TraceIdentity(trace_id, "0" * 64, 0, reader, 1, True)
        super().__init__(identity, path, StepSpans(()), meta=meta or TraceMeta())
        self._columns = ColumnsOfSteps()

    @abstractmethod
    def __len__(self) -> int: ...
    @abstractmethod
    def span(self, index: int, /) -> Span: ...
    @abstractmethod
    def text(self, index: int, /) -> str: ...
    @abstractmethod
    def index_of(self, key: str, /) -> int | None: ...

    def advance(self, _max_bytes: int = 1 << 20, /) -> bool:
        return False

    def columns(self, first: int, end: int, /) -> SpanColumns:
        return self._columns.columns(first, map(self.span, range(first, min(end, len(self)))))

    def has_one_thread(self, _first: int, _end: int, /) -> bool:
        return False

    def candidates(
        self, _prefilter: Prefilter | None, begin: int, limit: int, _max_bytes: int, /
    ) -> Candidates:
        end = min(limit, begin + 512)
        return Candidates(end, [(index, self.text(index)) for index in range(begin, end)])
