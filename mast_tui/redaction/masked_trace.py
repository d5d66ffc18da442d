"""A trace with masks in place of personal data and secrets.

Offsets of stored quotes refer to the text without masks.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Final

from msgspec import structs

from mast_tui.redaction.engine import MASK_FORM, Redacted, Redaction, rules_of_lines
from mast_tui.traces.index.lines import LruCache
from mast_tui.traces.model import (
    AnswerKey,
    Loaded,
    Problem,
    Shape,
    Span,
    SpanColumns,
    SpanKind,
    Spans,
    Trace,
    TraceMeta,
)
from mast_tui.traces.preview import call_preview, preview

_CODE_LETTERS: Final = 5
MASK_PATTERN: Final = rf"\[[A-Za-z][\w -]{{0,39}} [a-z2-7]{{{_CODE_LETTERS}}}\]"
"""The pattern of a mask of ``MASK_FORM`` with a code of ``SecretCodes``."""

_CACHED_CHARS: Final = 1_000_000
"""The most characters of masked texts that are cached."""


class SecretCodes:
    """Codes for secrets: with one key, equal secrets have equal codes in all traces.

    A code is the beginning of a keyed hash of the secret, so nothing is stored.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def number(self, name: str, secret: str) -> str:
        """Return the code of a secret.

        Args:
            name: The name of the rule.
            secret: The secret.
        """
        data = f"{name}\n{secret}".encode("utf-8", "surrogatepass")
        digest = hmac.digest(self._key, data, "sha256")
        return base64.b32encode(digest)[:_CODE_LETTERS].decode().lower()


class Masks:
    """The masks of personal data and secrets; equal secrets have equal masks in all texts."""

    def __init__(self, redaction: Redaction, key: bytes) -> None:
        """Prepare the masks.

        Args:
            redaction: The rules that find secrets.
            key: The secret key of the codes. The same key gives the same masks.
        """
        self._redaction = redaction
        self._codes = SecretCodes(key)

    def with_patterns(self, patterns: Iterable[str]) -> Masks:
        """Return masks that also hide the matches of a study's patterns.

        Raises:
            RedactionError: A pattern is unusable.
        """
        masks = copy(self)
        rules = rules_of_lines(patterns, "the patterns of the study")
        masks._redaction = self._redaction.with_rules(rules)
        return masks

    def apply(self, text: str) -> Redacted:
        """Return a text with its masks and their ranges."""
        return self._redaction.apply(text, self._codes)

    def text(self, text: str) -> str:
        """Return a text with masks."""
        return self.apply(text).text

    def meta(self, meta: TraceMeta) -> TraceMeta:
        """Return the metadata of a run with masks in its texts and in the answer key."""
        sections = {
            # The names of step scores are keys of spans, which stay.
            name: tuple(
                (entry if name == "step_scores" else self.text(entry), self.text(value))
                for entry, value in entries
            )
            for name, entries in meta.answer_key.sections()
        }
        return meta._replace(
            task=meta.task and self.text(meta.task),
            system=meta.system and self.text(meta.system),
            model=meta.model and self.text(meta.model),
            benchmark=meta.benchmark and self.text(meta.benchmark),
            answer_key=AnswerKey()._replace(**sections),
        )

    def spans(self, spans: Spans) -> MaskedSpans:
        """Return spans with masks in their texts."""
        return MaskedSpans(spans, self)


def requested_masks(redact: bool, patterns: Path | None, key: Callable[[], bytes]) -> Masks | None:
    """Return the masks for the options ``--redact`` and ``--redact-file``; None without them.

    Args:
        redact: True to mask personal data and secrets.
        patterns: A file of the user's own patterns, or None.
        key: Returns the secret key of the masks; called only if it is needed.

    Raises:
        RedactionError: A library is missing, or the file is unusable.
    """
    if not redact and patterns is None:
        return None
    redaction = Redaction.personal() if redact else Redaction(form=MASK_FORM)
    if patterns is not None:
        redaction = redaction.with_file(patterns)
    return Masks(redaction, key())


def masks_of_same_length(patterns: Iterable[str], key: bytes) -> Masks:
    """Return masks of personal data and secrets that are as long as their secrets.

    Args:
        patterns: Lines with the user's own patterns.
        key: The secret key of the masks.

    Raises:
        RedactionError: A library is missing, or a pattern is unusable.
    """
    redaction = replace(Redaction.personal(), keeps_length=True)
    return Masks(redaction, key).with_patterns(patterns)


class MaskedSpans(Spans):
    """The spans of a trace with masks in their texts, previews and names.

    They have no stored totals and no source lines, which would be without masks.
    """

    def __init__(self, spans: Spans, masks: Masks) -> None:
        self.unmasked: Final = spans
        """The spans without masks."""
        self._masks = masks
        self._cache = LruCache[Redacted](_CACHED_CHARS, lambda redacted: len(redacted.text))
        self._shapes: list[Shape] = []

    @property
    def loaded(self) -> Loaded | None:
        """The progress of reading the source."""
        return self.unmasked.loaded

    @property
    def meta(self) -> TraceMeta:
        """The metadata of the run, without masks."""
        return self.unmasked.meta

    @property
    def spawned(self) -> Mapping[str, str]:
        """The key of the span before which a sub-agent's spans belong, by thread id."""
        return self.unmasked.spawned

    @property
    def problems(self) -> Sequence[Problem]:
        """The problems of the source."""
        return self.unmasked.problems

    @property
    def waiting(self) -> str | None:
        """The progress of another process that reads the file, in words."""
        return self.unmasked.waiting

    @property
    def opened(self) -> Trace | None:
        """The trace in the file after it was read, without masks."""
        return self.unmasked.opened

    def __len__(self) -> int:
        return len(self.unmasked)

    def index_of(self, key: str, /) -> int | None:
        """Return the index of the span with a key, or None."""
        return self.unmasked.index_of(key)

    def advance(self, max_bytes: int, /) -> bool:
        """Read about this number of further bytes; return False if nothing is left."""
        return self.unmasked.advance(max_bytes)

    def change_reason(self) -> str | None:
        """Return why a file beside the trace's file is no longer the same, or None."""
        return self.unmasked.change_reason()

    def has_grown(self) -> bool:
        """Check whether a file beside the trace's file has grown."""
        return self.unmasked.has_grown()

    def resume(self, size: int, /) -> bool:
        """Let ``advance`` continue in a file that has grown to ``size`` bytes."""
        return self.unmasked.resume(size)

    def load_cached(self) -> None:
        """Load the index that an earlier reading stored."""
        self.unmasked.load_cached()

    def read_in_background(self) -> None:
        """Start another process that reads the rest of the source, if the rest is long."""
        self.unmasked.read_in_background()

    def stop_background_read(self) -> None:
        """Stop the other process that reads the file."""
        self.unmasked.stop_background_read()

    def text(self, index: int, /) -> str:
        """Return the whole text of the span at ``index``, with masks."""
        return self.redacted(index).text

    def redacted(self, index: int) -> Redacted:
        """Return the text of a span with the ranges of its masks, from the cache if possible."""
        redacted = self._cache.get(index)
        if redacted is None:
            redacted = self._masks.apply(self.unmasked.text(index))
            self._cache.add(index, redacted)
        return redacted

    def span(self, index: int, /) -> Span:
        """Return a span with masks in its names, its location and its preview.

        A preview of a part of the text may end within a secret, so it is made again from the masked
        text.
        """
        mask = self._masks.text
        span = self.unmasked.span(index)
        name = None if span.name is None else mask(span.name)
        span = replace(span, agent=mask(span.agent), name=name, place=mask(span.place))
        if span.preview_is_complete:
            return replace(span, preview=mask(span.preview))
        redacted = self.redacted(index)
        if not redacted.cuts:
            return span
        make_preview = call_preview if span.kind is SpanKind.TOOL_CALL else preview
        line, is_whole = make_preview(redacted.text)
        return replace(span, preview=line, preview_is_complete=is_whole)

    def columns(self, first: int, end: int, /) -> SpanColumns:
        """Return columns of spans, with masks in the names of agents and tools.

        Args:
            first: The index of the first span.
            end: The index after the last span.
        """
        columns = self.unmasked.columns(first, end)
        # The list of shapes (kind, role, agent, name) only grows, so each shape is masked once.
        # Another thread may do the same, and then makes an equal list.
        shapes = self._shapes
        new_shapes = columns.shape_list[len(shapes) :]
        if new_shapes:
            shapes = self._shapes = [*shapes, *map(self._masked_shape, new_shapes)]
        return structs.replace(columns, shape_list=shapes)

    def _masked_shape(self, shape: Shape) -> Shape:
        kind, role, agent, name = shape
        return kind, role, self._masks.text(agent), None if name is None else self._masks.text(name)

    def has_one_thread(self, first: int, end: int, /) -> bool:
        """Check whether the keys of spans name at most one thread; False if unsure.

        Args:
            first: The index of the first span.
            end: The index after the last span.
        """
        return self.unmasked.has_one_thread(first, end)


def redacted_span(trace: Trace, key: str) -> Redacted | None:
    """Return the text of a span of a masked trace with its masks; None for an unknown span.

    Args:
        trace: A trace with masks.
        key: The key of the span.
    """
    index = trace.index_of(key)
    assert isinstance(trace.spans, MaskedSpans), "the trace has no masks"
    return None if index is None else trace.spans.redacted(index)


RedactedOf = Callable[[str, str], Redacted | None]
"""A function that returns the text of a span with its masks, by the trace's id and the span's key;
None if the text cannot be read."""
