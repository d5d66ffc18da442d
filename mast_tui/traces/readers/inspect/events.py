"""The events of an Inspect sample to spans, in the order in which a person follows the run.

What scorers do is left out, and kept for those who may see it: it tells the ground truth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heappop, heappush
from typing import Final

from mast_tui.traces.io.json_values import as_count, as_number, as_text, tokens_of
from mast_tui.traces.model import SpanStatus, Tokens
from mast_tui.traces.readers.inspect.attachments import Attachments, json_text
from mast_tui.traces.readers.inspect.messages import (
    Acting,
    History,
    MessagePool,
    MessageSpans,
)
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_at,
    fields_of,
    items_of,
    name_set,
    short_name,
)
from mast_tui.traces.times import unix_seconds

_DEEPEST: Final = 30
_COMPARED_RESULTS: Final = 8
_BLANKS: Final = 64
_GRADING_CHARS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Scope:
    """A stretch of the run: who acts in it, and under which span."""

    history: History = field(default_factory=History)
    agent: str | None = None
    parent: str | None = None
    grading: bool = False
    begun: str | None = None
    """The key of the span that tells of an agent's beginning, which its end belongs to."""


@dataclass(slots=True)
class _Waiting:
    """What came back at some later time; it is shown then, after what happened meanwhile."""

    text: str
    show: Callable[[], object]
    call_id: str | None = None
    shown: bool = False


class EventWalk:
    """Adds the spans of a sample's events."""

    def __init__(self, sample: Fields, spans: MessageSpans) -> None:
        self.spans = spans
        self.pool = MessagePool(sample, spans)
        self.root = Scope()
        self.grading: list[str] = []
        """What the models of scorers said."""
        self.scored: list[tuple[str, Fields]] = []
        """The scores that were given, each with the key of its span."""
        self.errors: set[str] = set()
        """The texts of the errors that have spans."""
        self.limits = 0
        """How many limits stopped the run."""
        self._attachments = spans.attachments
        self._scopes: dict[str, Scope] = {}
        self._agent_calls: dict[str, str] = {}
        self._waiting: list[tuple[float, int, _Waiting]] = []
        self._waiting_by_call: dict[str, _Waiting] = {}
        self._latest: dict[str, _Waiting] = {}
        self._subtasks: dict[str, str] = {}
        self._answered: set[str] = set()
        self._number = 0
        self._grading_left = _GRADING_CHARS

    def walk(self, events: Sequence[object], *, answered: bool = False) -> None:
        """Add the spans of all events; ``answered`` says that messages have shown the results."""
        if answered:
            self._answered = set(self.spans.calls)
        self._walk(events, "/events", self.root, 0)
        self._show_until(None)

    def _walk(self, events: Sequence[object], pointer: str, base: Scope, depth: int) -> None:
        stack = [base]
        for number, event in enumerate(events):
            here = f"{pointer}/{number}"
            if not isinstance(event, Mapping):
                self.spans.log(json_text(event), here, Acting(parent=base.parent))
                self.spans.add_problem(here, "not an event but a bare value")
                continue
            if (time := unix_seconds(event.get("timestamp"))) is not None:
                self._show_until(time)
            span_id = event.get("span_id")
            scope = self._scopes.get(span_id) if isinstance(span_id, str) else None
            self._event(event, here, scope or stack[-1], stack, depth)

    def _event(
        self, event: Fields, pointer: str, scope: Scope, stack: list[Scope], depth: int
    ) -> None:
        kind = event.get("event")
        if kind == "span_begin":
            outer = event.get("parent_id")
            found = self._scopes.get(outer) if isinstance(outer, str) else None
            span_id = as_text(event.get("id")) or as_text(event.get("span_id"))
            inner = self._opened(event, pointer, found or stack[-1], span_id)
            if span_id is not None:
                self._scopes[span_id] = inner
        elif kind == "span_end":
            ended = as_text(event.get("id")) or as_text(event.get("span_id"))
            self._closed(self._scopes.get(ended or ""), event)
        elif kind == "step":
            if event.get("action") == "begin":
                stack.append(self._opened(event, pointer, stack[-1], None))
            elif len(stack) > 1:
                self._closed(stack.pop(), event)
        elif kind == "model":
            self._model(event, pointer, scope)
        elif scope.grading and kind not in ("error", "sample_limit", "score"):
            self._note_grading(event)
        elif kind == "tool":
            self._tool(event, pointer, scope, depth)
        elif kind == "subtask":
            self._subtask(event, pointer, scope, depth)
        elif kind == "input":
            self._input(event, pointer, scope)
        elif not (isinstance(kind, str) and kind in NOISE):
            self._record(event, pointer, scope)

    def _opened(self, event: Fields, pointer: str, outer: Scope, span_id: str | None) -> Scope:
        kind = event.get("type")
        name = short_name(event.get("name"))
        if kind in ("scorer", "scorers"):
            return Scope(History(), name or outer.agent, outer.parent, grading=True)
        if outer.grading:
            return outer
        if kind == "agent":
            parent = self._agent_calls.get(span_id or "") or outer.parent
            start = unix_seconds(event.get("timestamp"))
            acting = Acting(parent=parent, start=start)
            text = f"agent {name} begins" if name else "an agent begins"
            key = self.spans.log(text, pointer, acting, as_text(event.get("uuid")) or span_id)
            return Scope(History(), name or "agent", key, begun=key)
        if kind == "tool":
            return replace(outer, history=History(), parent=self._open_call(name) or outer.parent)
        if kind == "subtask":
            parent = self._subtasks.get(name) or outer.parent
            return replace(outer, history=History(), parent=parent)
        return outer

    def _closed(self, scope: Scope | None, event: Fields) -> None:
        end = unix_seconds(event.get("timestamp"))
        if scope is not None and scope.begun is not None and end is not None:
            self.spans.steps.amend(scope.begun, end=end)

    def _open_call(self, name: str) -> str | None:
        """The key of the call of this tool that is being carried out."""
        waiting = self._latest.get(name)
        call = self.spans.calls.get(waiting.call_id or "") if waiting else None
        return None if call is None or waiting is None or waiting.shown else call.key

    def _model(self, event: Fields, pointer: str, scope: Scope) -> None:
        if scope.grading:
            self._note_grading(event)
            return
        start, end = _times(event)
        output = fields_of(event.get("output"))
        took = as_number(output.get("time"))
        if end is None and start is not None and took is not None:
            end = start + took
        for message, place in self._asked(event, pointer, scope):
            fields = fields_of(message)
            if fields.get("role") == "tool":
                waiting = self._waiting_by_call.get(as_text(fields.get("tool_call_id")) or "")
                if waiting is not None and not waiting.shown:
                    self._show(waiting)
                    continue
            self.spans.add(
                message, place, Acting(parent=scope.parent, start=start), scope.history, None
            )
        agent = scope.agent or short_name(event.get("role")) or "assistant"
        acting = Acting(agent, scope.parent, start, end)
        key = as_text(event.get("uuid"))
        error = event.get("error") or output.get("error")
        last: str | None = None
        for number, choice in enumerate(items_of(output.get("choices"))):
            message = choice.get("message") if isinstance(choice, Mapping) else choice
            if error is not None and _says_nothing(message):
                continue
            place = f"{pointer}/output/choices/{number}/message"
            last = self.spans.add(message, place, acting, scope.history, key) or last
        if error is not None:
            last = self._failed(error, pointer, acting, key)
        if last is not None and (tokens := _tokens(output.get("usage"))) is not None:
            self.spans.steps.amend(last, tokens=tokens)

    def _asked(self, event: Fields, pointer: str, scope: Scope) -> Iterator[tuple[object, str]]:
        """What of a call's input has not been shown."""
        given = event.get("input")
        refs = event.get("input_refs")
        if not given and isinstance(refs, list):
            yield from self.pool.new_in(refs, f"{pointer}/input_refs", scope.history)
            return
        scope.history.counts = Counter()
        scope.history.ranges = []
        if isinstance(given, str):
            given = [{"role": "user", "content": given}]
        for number, message in enumerate(items_of(given)):
            identity = self.spans.identity(message)
            if self.spans.is_new(message, identity, scope.history):
                yield message, f"{pointer}/input/{number}"

    def _failed(self, error: object, pointer: str, acting: Acting, key: str | None) -> str:
        text = self._attachments.error(error)
        self.errors.add(text)
        own_key = f"{key}/error" if key else f"{pointer}/error"
        return self.spans.log(text, pointer, acting, own_key, status=SpanStatus.ERROR)

    def _tool(self, event: Fields, pointer: str, scope: Scope, depth: int) -> None:
        call_id = as_text(event.get("id"))
        if call_id is not None and call_id in self._answered:
            return
        start, end = _times(event)
        acting = Acting(scope.agent or "assistant", scope.parent, start)
        call = self.spans.calls.get(call_id) if call_id else None
        call_key = call.key if call else self.spans.call(event, pointer, acting)
        if (agent_span := as_text(event.get("agent_span_id"))) is not None:
            self._agent_calls[agent_span] = call_key
        nested = self._nested(
            event, pointer, replace(scope, history=History(), parent=call_key), depth
        )
        if event.get("pending") is True and event.get("result") in (None, ""):
            return
        text = self._attachments.content(event.get("result"))
        text, failed = self._attachments.with_error(text, event.get("error"))
        name = short_name(event.get("function")) or None
        acting = Acting(acting.agent, call_key, start if end is None else end, end)

        def show() -> None:
            if call_id:
                message = {"id": as_text(event.get("message_id"))}
                self.spans.mark(("tool", call_id), scope.history, message)
            self.spans.result(
                call_id,
                text,
                pointer,
                acting,
                name=name,
                status=SpanStatus.ERROR
                if failed or event.get("failed") is True
                else SpanStatus.UNKNOWN,
                key=f"{as_text(event.get('uuid')) or pointer}/result",
            )

        waiting = _Waiting(text, show, call_id)
        if call_id:
            self._waiting_by_call[call_id] = waiting
            self._latest[name or ""] = waiting
        self._wait(waiting, None if nested else end)

    def _subtask(self, event: Fields, pointer: str, scope: Scope, depth: int) -> None:
        start, end = _times(event)
        name = short_name(event.get("name"))
        text = f"subtask {name} begins".replace("  ", " ")
        if event.get("input"):
            text = f"{text}\n{self._attachments.piece(event['input'])}"
        own_key = as_text(event.get("uuid"))
        key = self.spans.log(text, pointer, Acting(parent=scope.parent, start=start), own_key)
        self._subtasks[name] = key
        nested = self._nested(event, pointer, replace(scope, history=History(), parent=key), depth)
        if event.get("result") is None:
            return
        text = f"subtask {name} ends\n".replace("  ", " ")
        text += self._attachments.piece(event["result"])
        acting = Acting(parent=key, start=start if end is None else end, end=end)
        key = f"{own_key or pointer}/result"
        show = partial(self.spans.log, text, pointer, acting, key)
        self._wait(_Waiting(text, show), None if nested else end)

    def _nested(self, event: Fields, pointer: str, scope: Scope, depth: int) -> bool:
        """Add the spans of the events that old logs keep within an event; whether there are any."""
        events = event.get("events")
        if not isinstance(events, list) or not events:
            return False
        here = f"{pointer}/events"
        if depth >= _DEEPEST:
            self.spans.add_problem(here, "nested too deeply; shown as it stands")
            self.spans.log(json_text(events), here, Acting(parent=scope.parent))
        else:
            self._walk(events, here, scope, depth + 1)
        return True

    def _input(self, event: Fields, pointer: str, scope: Scope) -> None:
        asked, said = as_text(event.get("message")), as_text(event.get("input"))
        text = "\n".join(self._attachments.piece(part) for part in (asked, said) if part)
        acting = Acting(parent=scope.parent, start=unix_seconds(event.get("timestamp")))
        message = {"role": "user", "content": text}
        self.spans.add(message, pointer, acting, scope.history, as_text(event.get("uuid")))

    def _record(self, event: Fields, pointer: str, scope: Scope) -> None:
        if event.get("event") == "sandbox" and self._is_a_result(event.get("output")):
            event = {name: value for name, value in event.items() if name != "output"}
        record = record_of(event, self._attachments)
        name = record.name
        if event.get("event") == "score" and scope.grading and scope.agent:
            record = replace(record, text=f"scored by {scope.agent}")
        elif event.get("event") == "error":
            self.errors.add(record.text)
        elif event.get("event") == "sample_limit":
            self.limits += 1
        start, end = _times(event)
        acting = Acting(parent=scope.parent, start=start, end=end)
        key = as_text(event.get("uuid"))
        key = self.spans.log(record.text, pointer, acting, key, name=name, status=record.status)
        if event.get("event") == "score":
            self.scored.append((key, event))

    def _is_a_result(self, output: object) -> bool:
        """Whether a sandbox's output is what the tool that used it gives back."""
        if not isinstance(output, str) or not output.strip():
            return False
        text = self._attachments.text(output).strip()
        return any(
            abs(len(one.text) - len(text)) <= _BLANKS and one.text.strip() == text
            for _time, _number, one in self._waiting[:_COMPARED_RESULTS]
        )

    def _note_grading(self, event: Fields) -> None:
        for choice in items_of(fields_of(event.get("output")).get("choices")):
            content = fields_at(choice, "message").get("content")
            text = self._attachments.content(content)[: self._grading_left]
            self._grading_left -= len(text)
            if text:
                self.grading.append(text)

    def _wait(self, waiting: _Waiting, until: float | None) -> None:
        if until is None:
            self._show(waiting)
        else:
            self._number += 1
            heappush(self._waiting, (until, self._number, waiting))

    def _show_until(self, time: float | None) -> None:
        """Show what had come back by then; all of it at the end."""
        while self._waiting and (time is None or self._waiting[0][0] <= time):
            waiting = heappop(self._waiting)[2]
            if not waiting.shown:
                self._show(waiting)

    def _show(self, waiting: _Waiting) -> None:
        waiting.shown = True
        waiting.show()


def _times(event: Fields) -> tuple[float | None, float | None]:
    return unix_seconds(event.get("timestamp")), unix_seconds(event.get("completed"))


def _says_nothing(message: object) -> bool:
    return isinstance(message, Mapping) and not (
        message.get("content") or message.get("tool_calls") or message.get("reasoning")
    )


def _tokens(usage: object) -> Tokens | None:
    """The tokens of a call; what was read from or written to a cache was taken in, too."""
    counts = fields_of(usage)
    counted = ("input_tokens", "input_tokens_cache_read", "input_tokens_cache_write")
    parts = [count for name in counted if (count := as_count(counts.get(name))) is not None]
    return tokens_of(sum(parts) if parts else None, counts.get("output_tokens"))


NOISE: Final = frozenset({"state", "store", "sample_init", "span_end", "anchor", "checkpoint"})
"""Events without anything to read: state is told by the messages that it consists of."""

_FRAME: Final = name_set(
    "uuid span_id timestamp working_start working_time completed pending metadata"
)
_FAILED_LEVELS: Final = frozenset({"error", "critical"})


@dataclass(frozen=True, slots=True)
class Record:
    """The text of a log span, who wrote it, and whether it tells of an error."""

    text: str
    status: SpanStatus = SpanStatus.UNKNOWN
    name: str = "log"


def record_of(event: Fields, attachments: Attachments) -> Record:
    """What an event tells, whatever its kind."""
    kind = event.get("event")
    teller = _TELLERS.get(kind) if isinstance(kind, str) else None
    if teller is not None and (record := teller(event, attachments)) is not None:
        return record
    rest = {name: value for name, value in event.items() if name not in _FRAME}
    return Record(attachments.dumped(rest))


def _error(event: Fields, attachments: Attachments) -> Record | None:
    if event.get("error") is None:
        return None
    return Record(attachments.error(event["error"]), SpanStatus.ERROR)


def _limit(event: Fields, attachments: Attachments) -> Record | None:
    message = as_text(event.get("message"))
    return None if message is None else Record(attachments.text(message))


def _info(event: Fields, attachments: Attachments) -> Record:
    name = short_name(event.get("source")) or "log"
    return Record(attachments.dumped(event.get("data")), name=name)


def _logger(event: Fields, attachments: Attachments) -> Record | None:
    logged = event.get("message")
    if not isinstance(logged, Mapping):
        return None
    level = short_name(logged.get("level"))
    text = attachments.piece(logged.get("message"))
    status = SpanStatus.ERROR if level.lower() in _FAILED_LEVELS else SpanStatus.UNKNOWN
    name = short_name(logged.get("name")) or "log"
    return Record(f"{level}: {text}" if level else text, status, name)


def _approval(event: Fields, attachments: Attachments) -> Record | None:
    decision = as_text(event.get("decision"))
    if decision is None:
        return None
    name = short_name(event.get("approver")) or short_name(event.get("reviewer"))
    tool = short_name(fields_of(event.get("call")).get("function"))
    lines = [f"{decision} {tool}".rstrip()]
    if explanation := as_text(event.get("explanation")):
        lines.append(attachments.piece(explanation))
    if event.get("modified") is not None:
        lines.append(attachments.piece(event["modified"]))
    return Record("\n".join(lines), name=name or "log")


def _sandbox(event: Fields, attachments: Attachments) -> Record | None:
    action = as_text(event.get("action"))
    if action is None:
        return None
    subject = as_text(event.get("cmd")) or as_text(event.get("file")) or ""
    lines = [f"{action}: {attachments.piece(subject)}"]
    lines += [
        attachments.piece(text)
        for field in ("input", "output")
        if (text := as_text(event.get(field)))
    ]
    result = event.get("result")
    if isinstance(result, bool) or not isinstance(result, int) or action != "exec":
        return Record("\n".join(lines), name="sandbox")
    status = SpanStatus.ERROR if result else SpanStatus.OK
    if result:
        lines.append(f"[exit code {result}]")
    return Record("\n".join(lines), status, "sandbox")


def _compaction(event: Fields, _attachments: Attachments) -> Record:
    before, after = as_count(event.get("tokens_before")), as_count(event.get("tokens_after"))
    if before is None or after is None:
        return Record("history compacted")
    return Record(f"history compacted from {before} to {after} tokens")


def _interrupt(event: Fields, _attachments: Attachments) -> Record:
    source = short_name(event.get("source")) or "somebody"
    doing = short_name(event.get("interrupted")) or "the run"
    return Record(f"interrupted by {source} during {doing}")


def _score(_event: Fields, _attachments: Attachments) -> Record:
    # What it came to is the ground truth that a blind annotator must not see.
    return Record("scored")


_TELLERS: Final[Mapping[str, Callable[[Fields, Attachments], Record | None]]] = {
    "error": _error,
    "sample_limit": _limit,
    "info": _info,
    "logger": _logger,
    "approval": _approval,
    "review": _approval,
    "sandbox": _sandbox,
    "compaction": _compaction,
    "interrupt": _interrupt,
    "score": _score,
    "score_edit": _score,
}
