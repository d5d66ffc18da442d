"""A trace of Claude Code: its spans in memory, its texts read from the file when asked for.

What becomes of a record: keys, calls with their results, tokens counted once.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from errno import ESTALE
from typing import Final

from mast_tui.traces.byte_prefilter import Prefilter
from mast_tui.traces.index.line_index import LineIndex
from mast_tui.traces.index.lines import Lines
from mast_tui.traces.index.span_columns import ColumnsOfSteps
from mast_tui.traces.keys import UniqueKeys
from mast_tui.traces.model import (
    Candidates,
    Loaded,
    Role,
    Span,
    SpanColumns,
    SpanKind,
    Spans,
    SpanStatus,
    Tokens,
)
from mast_tui.traces.preview import task_of_text
from mast_tui.traces.readers.claude_code.records import AGENT, SPAWNING_TOOLS, Facts, Part, Place

_READ_AT_ONCE: Final = 4 << 20
"""How much of a file is taken in at a time, in bytes."""

_CHANGED: Final = "the file has changed"


def lines_of(index: LineIndex) -> Iterator[tuple[int, bytes, bool]]:
    """Every line with its number from 1, and whether it is a last one that nothing ends."""
    while not index.complete:
        number = len(index)
        lines = index.advance(_READ_AT_ONCE)
        for offset, line in enumerate(lines, 1):
            yield number + offset, line, index.ends_open and offset == len(lines)


class SpanRows:
    """Spans, each with the lines that hold its text and its part of what stands there."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.index: dict[str, int] = {}
        self.first = array("Q")
        self.last = array("Q")
        self.part = array("Q")

    def add(self, span: Span, lines: tuple[int, int], part: int) -> None:
        """Append a span whose index is the next one."""
        self.index[span.key] = len(self.spans)
        self.spans.append(span)
        self.first.append(lines[0])
        self.last.append(lines[1])
        self.part.append(part)


class RecordSpans(Spans):
    """Spans that are all known from the beginning, with texts that are read when asked for.

    ``texts_of`` makes the texts of some lines, by the number of the part; those of the lines asked
    for last are kept.
    """

    def __init__(
        self,
        index: LineIndex,
        rows: SpanRows,
        texts_of: Callable[[bytes], Mapping[int, str]],
        spawned: Mapping[str, str],
    ) -> None:
        self._index = index
        self._rows = rows
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
        return len(self._rows.spans)

    def span(self, index: int, /) -> Span:
        """The span at ``index``; nothing is read for it."""
        return self._rows.spans[index]

    def text(self, index: int, /) -> str:
        """The whole text of the span at ``index``, read from the file."""
        lines = (self._rows.first[index], self._rows.last[index])
        kept = self._kept
        if kept is None or kept[0] != lines:
            kept = (lines, self._texts_of(self._index.read(*lines)))
            self._kept = kept if kept[1] else None
        text = kept[1].get(self._rows.part[index])
        if text is None:
            raise OSError(ESTALE, _CHANGED)
        return text

    def candidates(
        self, prefilter: Prefilter | None, begin: int, limit: int, max_bytes: int, /
    ) -> Candidates:
        """The texts that may hold what is looked for; one that cannot be read holds none."""
        lines = Lines(self._index, self._rows.first, self._rows.last)
        try:
            end, found = lines.candidates(prefilter, begin, limit, max_bytes)
        except OSError:
            return Candidates(limit, [])
        texts: list[tuple[int, str]] = []
        data, parts = b"", self._texts_of(b"")
        for index, own in found:
            if own != data:  # several spans lie on one line
                data, parts = own, self._texts_of(own)
            text = parts.get(self._rows.part[index])
            if text is not None:
                texts.append((index, text))
        return Candidates(end, texts)

    def columns(self, first: int, end: int, /) -> SpanColumns:
        """What is known of the spans from ``first`` up to ``end`` (exclusive)."""
        return self._columns.columns(first, self._rows.spans[first:end])

    def index_of(self, key: str, /) -> int | None:
        """The index of the span with this key, or None."""
        return self._rows.index.get(key)


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
    """Makes the spans of one trace from its records, given in reading order."""

    def __init__(self) -> None:
        self.rows = SpanRows()
        self.spawned: dict[str, str] = {}
        self.first_prompt: tuple[int, int] | None = None
        """The line and the part of what the user asked for first."""
        self._keys = UniqueKeys()
        self._calls: dict[str, int] = {}
        self._last_of: dict[str, int] = {}
        self._tokens_of: dict[str, Tokens] = {}

    def add(self, facts: Facts, voice: Voice) -> None:
        """Append the spans of one record."""
        own = facts.uuid or f"line {facts.first}"
        before = len(self.rows.spans)
        for part in facts.parts:
            number = part.number
            place_key = own if number < 2 else f"{own}/{number}"
            if part.kind is SpanKind.TOOL_CALL:
                self._add_call(facts, part, voice, place_key)
            elif part.kind is SpanKind.TOOL_RESULT:
                self._add_result(facts, part, voice, place_key)
            else:
                self._append(facts, part, voice, place_key)
        self._note_tokens(facts, voice, own, before)

    def task(self, index: LineIndex, texts_of: Callable[[bytes], Mapping[int, str]]) -> str | None:
        """What the user asked for first, cut short."""
        if self.first_prompt is None:
            return None
        line, part = self.first_prompt
        return task_of_text(texts_of(index.read(line, line)).get(part, "")) or None

    def set_tokens(self) -> None:
        """Give the tokens of each model call to the last of its spans."""
        for response, tokens in self._tokens_of.items():
            index = self._last_of.get(response)
            if index is not None:
                self.rows.spans[index] = replace(self.rows.spans[index], tokens=tokens)

    def set_failed(self, index: int) -> None:
        """Tell that the step at ``index`` was an error."""
        self.rows.spans[index] = replace(self.rows.spans[index], status=SpanStatus.ERROR)

    def note_prompt(self, facts: Facts) -> None:
        """Remember the record's prompt where it is the first one."""
        if self.first_prompt is None and facts.place is Place.PROMPT:
            asked = (part.number for part in facts.parts if part.role is Role.USER)
            number = next(asked, None)
            self.first_prompt = None if number is None else (facts.first, number)

    def call_of(self, tool_id: str | None) -> Span | None:
        """The call with this id, where it has come."""
        index = None if tool_id is None else self._calls.get(tool_id)
        return None if index is None else self.rows.spans[index]

    def _add_call(self, facts: Facts, part: Part, voice: Voice, place_key: str) -> None:
        tool_id = part.tool_id
        index = self._append(facts, part, voice, f"{tool_id}:call" if tool_id else place_key)
        if tool_id is not None:
            self._calls[tool_id] = index

    def _add_result(self, facts: Facts, part: Part, voice: Voice, place_key: str) -> None:
        tool_id = part.tool_id
        call = self.call_of(tool_id)
        key = f"{tool_id}:result" if tool_id else place_key
        index = self._append(facts, part, voice, key, call)
        if call is not None and facts.time is not None:
            self.rows.spans[call.index] = replace(call, end=facts.time)
        if call is not None and call.name in SPAWNING_TOOLS:
            worker = facts.worker or facts.worker_in_text
            if worker is not None:
                self.spawned.setdefault(worker, self.rows.spans[index].key)

    def _append(
        self, facts: Facts, part: Part, voice: Voice, key: str, call: Span | None = None
    ) -> int:
        above = call or (None if part.kind is SpanKind.TOOL_RESULT else self.call_of(voice.call))
        index = len(self.rows.spans)
        agent = voice.asker if part.role is Role.USER else _SIDES.get(part.role, voice.agent)
        agent = part.speaker or agent
        span = Span(
            index=index,
            key=self._keys.take(voice.prefix + key),
            kind=part.kind,
            role=part.role,
            agent=agent,
            name=part.name or (call.name if call else None),
            parent=above.key if above else None,
            start=facts.time,
            end=None,
            status=part.status,
            place=f"line {facts.first}",
            preview=part.preview,
            whole=part.whole,
        )
        self.rows.add(span, (facts.first, facts.last), part.number)
        return index

    def _note_tokens(self, facts: Facts, voice: Voice, own: str, before: int) -> None:
        if facts.type != "assistant":
            return
        response = f"{voice.prefix}{facts.response or own}"
        if facts.tokens is not None:
            self._tokens_of[response] = facts.tokens
        if len(self.rows.spans) > before:
            self._last_of[response] = len(self.rows.spans) - 1
