"""A trace of Claude Code: its spans in memory, its texts read from the file when asked for.

What becomes of a record: keys, calls with their results, tokens counted once.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from errno import ESTALE
from typing import Final

from mast_tui.traces.byte_prefilter import Prefilter
from mast_tui.traces.index.line_index import LineIndex
from mast_tui.traces.index.lines import Lines
from mast_tui.traces.index.span_columns import ColumnsOfSteps
from mast_tui.traces.io.source import Source
from mast_tui.traces.keys import UniqueKeys
from mast_tui.traces.model import (
    Candidates,
    Loaded,
    Problem,
    Role,
    Span,
    SpanColumns,
    SpanKind,
    Spans,
    SpanStatus,
    Tokens,
    Trace,
    TraceMeta,
)
from mast_tui.traces.preview import task_of_text
from mast_tui.traces.readers.base import Reader, identity_of
from mast_tui.traces.readers.claude_code.records import AGENT, SPAWNING_TOOLS, Facts, Part, Place

_READ_AT_ONCE: Final = 4 << 20
"""How much of a file is taken in at a time, in bytes."""

TextsOf = Callable[[bytes], Mapping[int, str]]
"""Makes the texts of some lines, by the number of the part."""


def lines_of(index: LineIndex) -> Iterator[tuple[int, bytes, bool]]:
    """Every line with its number from 1, and whether it is a last one that nothing ends."""
    while not index.complete:
        number = len(index)
        lines = index.advance(_READ_AT_ONCE)
        for offset, line in enumerate(lines, 1):
            yield number + offset, line, index.ends_open and offset == len(lines)


class RecordSpans(Spans):
    """Spans that are all known from the beginning, with texts that are read when asked for.

    Those of the lines asked for last are kept.
    """

    def __init__(
        self, index: LineIndex, made: SpanMaker, texts_of: TextsOf, spawned: Mapping[str, str]
    ) -> None:
        self._index = index
        self._made = made
        self._texts_of = texts_of
        self._kept: tuple[tuple[int, int], Mapping[int, str]] | None = None
        self._spawned = spawned
        self._columns = ColumnsOfSteps()

    @property
    def spawned(self) -> Mapping[str, str]:
        """By sub-agent the key of the result before which its spans belong."""
        return self._spawned

    @property
    def loaded(self) -> Loaded:
        """Always complete."""
        return Loaded(self._index.done, self._index.size, complete=True)

    def __len__(self) -> int:
        return len(self._made.spans)

    def span(self, index: int, /) -> Span:
        """The span at ``index``; nothing is read for it."""
        return self._made.spans[index]

    def text(self, index: int, /) -> str:
        """The whole text of the span at ``index``, read from the file."""
        lines = (self._made.first[index], self._made.last[index])
        kept = self._kept
        if kept is None or kept[0] != lines:
            kept = (lines, self._texts_of(self._index.read(*lines)))
            self._kept = kept if kept[1] else None
        text = kept[1].get(self._made.part[index])
        if text is None:
            raise OSError(ESTALE, "the file has changed")
        return text

    def candidates(
        self, prefilter: Prefilter | None, begin: int, limit: int, max_bytes: int, /
    ) -> Candidates:
        """The texts that may hold what is looked for; one that cannot be read holds none."""
        lines = Lines(self._index, self._made.first, self._made.last)
        try:
            end, found = lines.candidates(prefilter, begin, limit, max_bytes)
        except OSError:
            return Candidates(limit, [])
        texts: list[tuple[int, str]] = []
        data, parts = b"", self._texts_of(b"")
        for index, own in found:
            if own != data:  # several spans lie on one line
                data, parts = own, self._texts_of(own)
            text = parts.get(self._made.part[index])
            if text is not None:
                texts.append((index, text))
        return Candidates(end, texts)

    def columns(self, first: int, end: int, /) -> SpanColumns:
        """What is known of the spans from ``first`` up to ``end`` (exclusive)."""
        return self._columns.columns(first, self._made.spans[first:end])

    def index_of(self, key: str, /) -> int | None:
        """The index of the span with this key, or None."""
        return self._made.keys.find(key)


_SIDES: Final = {Role.SYSTEM: "system", Role.LOG: "log"}


@dataclass(frozen=True, slots=True)
class Voice:
    """Whose records they are: what their keys begin with, who acts, who asks.

    ``call`` is the id of the tool call that began the thread.
    """

    prefix: str = ""
    agent: str = AGENT
    asker: str = "user"
    call: str | None = None


def short_name(thread: str) -> str:
    """The name of a sub-agent of which nothing but its id is known."""
    return f"sub-agent {thread[:8]}"


class SpanMaker:
    """Makes the spans of one trace from its records, given in reading order.

    The text of each stands on the lines ``first`` to ``last``, and is the one numbered ``part`` of
    what stands there.
    """

    def __init__(self, voice: Voice) -> None:
        self.voice = voice
        """Whose trace it is."""
        self.spans: list[Span] = []
        self.first = array("Q")
        self.last = array("Q")
        self.part = array("Q")
        self.keys = UniqueKeys()
        self.spawned: dict[str, str] = {}
        self._first_prompt: tuple[int, int] | None = None  # its line and its part
        self._calls: dict[str, int] = {}
        self._last_of: dict[str, int] = {}
        self._tokens_of: dict[str, Tokens] = {}

    def add(self, facts: Facts, voice: Voice) -> None:
        """Append the spans of one record."""
        own = facts.uuid or f"line {facts.first}"
        for part in facts.parts:
            self._append(facts, part, voice, own)
        if facts.type == "assistant":
            response = f"{voice.prefix}{facts.response or own}"
            if facts.tokens is not None:
                self._tokens_of[response] = facts.tokens
            if facts.parts:
                self._last_of[response] = len(self.spans) - 1
        if self._first_prompt is None and voice is self.voice and facts.place is Place.PROMPT:
            asked = (part.number for part in facts.parts if part.role is Role.USER)
            number = next(asked, None)
            self._first_prompt = None if number is None else (facts.first, number)

    def set_tokens(self) -> None:
        """Give the tokens of each model call to the last of its spans."""
        for response, tokens in self._tokens_of.items():
            index = self._last_of.get(response)
            if index is not None:
                self.spans[index] = replace(self.spans[index], tokens=tokens)

    def set_failed(self, index: int) -> None:
        """Tell that the step at ``index`` was an error."""
        self.spans[index] = replace(self.spans[index], status=SpanStatus.ERROR)

    def trace(
        self,
        reader: Reader,
        source: Source,
        index: LineIndex,
        texts_of: TextsOf,
        *,
        native: str | None,
        model: str | None,
        version: str | None,
        problems: Iterable[Problem],
        spawned: Mapping[str, str],
    ) -> Trace:
        """Make the trace of the spans.

        Args:
            reader: Who has read it.
            source: The file that it was read from.
            index: The lines of the file.
            texts_of: Makes the texts of some lines, by the number of the part.
            native: The id that it brings itself, if any.
            model: The model that was asked.
            version: The version of the agent.
            problems: What of it could not be read.
            spawned: By sub-agent the key of the result before which its spans belong.
        """
        task = None
        if self._first_prompt is not None:
            line, part = self._first_prompt
            task = task_of_text(texts_of(index.read(line, line)).get(part, "")) or None
        identity = identity_of(reader, source.path, source.head, native=native)
        spans = RecordSpans(index, self, texts_of, spawned)
        meta = TraceMeta(system=AGENT, model=model, task=task, version=version)
        return Trace(identity, source.path, spans, meta=meta, problems=problems)

    def _call_of(self, tool_id: str | None) -> Span | None:
        """The call with this id, where it has come."""
        index = None if tool_id is None else self._calls.get(tool_id)
        return None if index is None else self.spans[index]

    def _append(self, facts: Facts, part: Part, voice: Voice, own: str) -> None:
        index, tool_id, call = len(self.spans), part.tool_id, None
        key = own if part.number < 2 else f"{own}/{part.number}"
        above = self._call_of(voice.call)
        if part.kind is SpanKind.TOOL_RESULT:
            above = call = self._call_of(tool_id)
            key = f"{tool_id}:result" if tool_id else key
        elif part.kind is SpanKind.TOOL_CALL and tool_id:
            key, self._calls[tool_id] = f"{tool_id}:call", index
        agent = voice.asker if part.role is Role.USER else _SIDES.get(part.role, voice.agent)
        span = Span(
            index=index,
            key=self.keys.take(voice.prefix + key),
            kind=part.kind,
            role=part.role,
            agent=part.speaker or agent,
            name=part.name or (call.name if call else None),
            parent=above.key if above else None,
            start=facts.time,
            end=None,
            status=part.status,
            place=f"line {facts.first}",
            preview=part.preview,
            whole=part.whole,
        )
        self.spans.append(span)
        self.first.append(facts.first)
        self.last.append(facts.last)
        self.part.append(part.number)
        if call is not None and facts.time is not None:
            self.spans[call.index] = replace(call, end=facts.time)
        if call is not None and call.name in SPAWNING_TOOLS:
            worker = facts.worker or facts.worker_in_text
            if worker is not None:
                self.spawned.setdefault(worker, span.key)
