"""Spans with a preview that is made on first use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Final

from mast_tui.traces.model import Role, Span, SpanKind, SpanStatus, Tokens

_FIELDS: Final = tuple(field.name for field in fields(Span))
_PREVIEW_FIELDS: Final = ("preview", "preview_is_complete")
_OTHER_FIELDS: Final = tuple(name for name in _FIELDS if name not in _PREVIEW_FIELDS)
_set: Final = object.__setattr__


class LazySpan(Span):
    """A span that calls ``make_preview`` when its preview is first read.

    ``make_preview`` returns ``preview`` and ``preview_is_complete``. Most loops over all spans read
    neither.
    """

    __slots__ = ("make_preview",)

    make_preview: Callable[[], tuple[str, bool]]

    def __getattr__(self, name: str) -> str | bool:
        """Make the preview when one of its two fields is first read, and return that field."""
        if name not in _PREVIEW_FIELDS:
            raise AttributeError(name)
        line, is_complete = self.make_preview()
        _set(self, "preview", line)
        _set(self, "preview_is_complete", is_complete)
        return line if name == "preview" else is_complete

    def __eq__(self, other: object) -> bool:
        """Compare all fields of two spans."""
        if not isinstance(other, Span):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in _FIELDS)

    def __hash__(self) -> int:
        """Return a hash that is equal for equal lazy spans, without making the preview."""
        return hash(tuple(getattr(self, name) for name in _OTHER_FIELDS))


def lazy_span(
    make_preview: Callable[[], tuple[str, bool]],
    index: int,
    key: str,
    kind: SpanKind,
    role: Role,
    agent: str,
    name: str | None,
    parent: str | None,
    start: float | None,
    end: float | None,
    status: SpanStatus,
    location: str,
    tokens: Tokens | None,
) -> Span:
    """Return a span with a preview that is made on first use.

    Args:
        make_preview: Returns the preview, and True if it is the entire text.
        index: The index of the span.
        key: Its key.
        kind: Its kind.
        role: The side that acts.
        agent: The name of the acting agent, person or tool.
        name: The name of the tool.
        parent: The key of the span above it.
        start: The start in Unix seconds.
        end: The end in Unix seconds.
        status: The result of the step.
        location: Its location in the source.
        tokens: The tokens of the model call.
    """
    span = LazySpan.__new__(LazySpan)
    _set(span, "make_preview", make_preview)
    _set(span, "index", index)
    _set(span, "key", key)
    _set(span, "kind", kind)
    _set(span, "role", role)
    _set(span, "agent", agent)
    _set(span, "name", name)
    _set(span, "parent", parent)
    _set(span, "start", start)
    _set(span, "end", end)
    _set(span, "status", status)
    _set(span, "place", location)
    _set(span, "tokens", tokens)
    return span


def relocated_span(span: Span, index: int, location: str, parent: str | None) -> Span:
    """Return a span as a part of another trace, without making its preview.

    Args:
        span: The span.
        index: Its index in the other trace.
        location: Its location in the source of the other trace.
        parent: The key of the span above it.
    """
    return lazy_span(
        lambda: (span.preview, span.preview_is_complete),
        index,
        span.key,
        span.kind,
        span.role,
        span.agent,
        span.name,
        parent,
        span.start,
        span.end,
        span.status,
        location,
        span.tokens,
    )
