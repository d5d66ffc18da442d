"""Records of Claude Code to spans: keys, calls with their results, tokens counted once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from mast_tui.traces.keys import UniqueKeys
from mast_tui.traces.model import Role, Span, SpanKind, SpanStatus, Tokens
from mast_tui.traces.readers.claude_code.facts import Facts, Place, Seen
from mast_tui.traces.readers.claude_code.records import AGENT, SPAWNING_TOOLS
from mast_tui.traces.readers.claude_code.trace import SpanRows

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
        for one in facts.seen:
            number = one.part.number
            place_key = own if number < 2 else f"{own}/{number}"
            if one.part.kind is SpanKind.TOOL_CALL:
                self._add_call(facts, one, voice, place_key)
            elif one.part.kind is SpanKind.TOOL_RESULT:
                self._add_result(facts, one, voice, place_key)
            else:
                self._append(facts, one, voice, place_key)
        self._note_tokens(facts, voice, own, before)

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
            asked = (one.part.number for one in facts.seen if one.part.role is Role.USER)
            number = next(asked, None)
            self.first_prompt = None if number is None else (facts.first, number)

    def call_of(self, tool_id: str | None) -> Span | None:
        """The call with this id, where it has come."""
        index = None if tool_id is None else self._calls.get(tool_id)
        return None if index is None else self.rows.spans[index]

    def _add_call(self, facts: Facts, one: Seen, voice: Voice, place_key: str) -> None:
        tool_id = one.part.tool_id
        index = self._append(facts, one, voice, f"{tool_id}:call" if tool_id else place_key)
        if tool_id is not None:
            self._calls[tool_id] = index

    def _add_result(self, facts: Facts, one: Seen, voice: Voice, place_key: str) -> None:
        tool_id = one.part.tool_id
        call = self.call_of(tool_id)
        key = f"{tool_id}:result" if tool_id else place_key
        index = self._append(facts, one, voice, key, call)
        if call is not None and facts.time is not None:
            self.rows.spans[call.index] = replace(call, end=facts.time)
        if call is not None and call.name in SPAWNING_TOOLS:
            worker = facts.worker or facts.worker_in_text
            if worker is not None:
                self.spawned.setdefault(worker, self.rows.spans[index].key)

    def _append(
        self, facts: Facts, one: Seen, voice: Voice, key: str, call: Span | None = None
    ) -> int:
        part = one.part
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
            preview=one.preview,
            whole=one.whole,
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
