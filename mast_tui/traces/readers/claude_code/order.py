"""In which order the records of a Claude Code file are read: sub-agents stand before their results.

The file's own thread keeps the order of its lines. The records of a sub-agent that stand among
them are read together before the result of the call that began it; a sub-agent whose call is not
found stands where its first record does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mast_tui.traces.model import SpanKind
from mast_tui.traces.readers.claude_code.facts import Facts
from mast_tui.traces.readers.claude_code.records import AGENT, SPAWNING_TOOLS, Part
from mast_tui.traces.readers.claude_code.spans import Voice, short_name


@dataclass(slots=True)
class Worker:
    """A sub-agent at work within a file, and the call that began it where that is known."""

    id: str
    records: list[Facts] = field(default_factory=list)
    call: Part | None = None


def workers_among(records: Iterable[Facts]) -> dict[str, Worker]:
    """The sub-agents to which these records belong: by their own id, else by their first record."""
    workers: dict[str, Worker] = {}
    worker_of: dict[str, str] = {}
    last: str | None = None
    for record in records:
        own = record.uuid or f"line {record.first}"
        name = record.agent_id
        if name is None and record.parent is not None:
            name = worker_of.get(record.parent, last)
        name = name or own
        worker_of.setdefault(own, name)
        workers.setdefault(name, Worker(name)).records.append(record)
        last = name
    return workers


def find_calls(workers: Mapping[str, Worker], records: Sequence[Facts]) -> None:
    """Tell each sub-agent the call that began it.

    That is the one whose result names the sub-agent, else the first one with its very prompt.
    """
    calls: dict[str, Part] = {}
    by_prompt: dict[str, deque[Part]] = {}
    taken: set[str] = set()
    for part in _parts(records, SpanKind.TOOL_CALL):
        if part.name in SPAWNING_TOOLS and part.tool_id is not None:
            calls[part.tool_id] = part
            if part.prompt is not None:
                by_prompt.setdefault(part.prompt, deque()).append(part)
    for record in records:
        worker = workers.get(record.worker or "") or workers.get(record.worker_in_text or "")
        if worker is None or worker.call is not None:
            continue
        for part in _parts([record], SpanKind.TOOL_RESULT):
            call = calls.get(part.tool_id or "")
            if call is not None and part.tool_id is not None:
                worker.call = call
                taken.add(part.tool_id)
                break
    for worker in workers.values():
        said = worker.records[0].said
        waiting = by_prompt.get(str(said)) if worker.call is None and said is not None else None
        while waiting:
            call = waiting.popleft()
            if call.tool_id not in taken:
                worker.call = call
                break


def in_reading_order(
    own: Sequence[Facts], voice: Voice, workers: Mapping[str, Worker]
) -> Iterator[tuple[Facts, Voice]]:
    """The records of the file's thread with those of its sub-agents, and whose each is.

    A sub-agent whose call is in ``workers`` but whose result is nowhere stands at its own lines.
    """
    voices = {name: _voice(worker, voice) for name, worker in workers.items()}
    before = _by_result(workers, [*own, *(one for w in workers.values() for one in w.records)])
    named = {name for names in before.values() for name in names}
    free = [name for name in workers if name not in named]
    waiting: list[Facts | str] = [*own]
    waiting.extend(free)
    waiting.sort(
        key=lambda one: workers[one].records[0].first if isinstance(one, str) else one.first
    )
    begun: set[str] = set()
    yield from _walk(waiting, voice, workers, voices, before, begun)
    lost: list[Facts | str] = [name for name in workers if name not in begun]
    yield from _walk(lost, voice, workers, voices, before, begun)


def _walk(
    items: Sequence[Facts | str],
    voice: Voice,
    workers: Mapping[str, Worker],
    voices: Mapping[str, Voice],
    before: Mapping[str, Sequence[str]],
    begun: set[str],
) -> Iterator[tuple[Facts, Voice]]:
    waiting: list[tuple[Facts | str, Voice]] = [(item, voice) for item in reversed(items)]
    while waiting:
        item, speaker = waiting.pop()
        if isinstance(item, str):
            if item not in begun:
                begun.add(item)
                records = reversed(workers[item].records)
                waiting.extend((record, voices[item]) for record in records)
            continue
        names = [
            name
            for part in _parts([item], SpanKind.TOOL_RESULT)
            for name in before.get(part.tool_id or "", ())
            if name not in begun
        ]
        if names:
            waiting.append((item, speaker))
            waiting.extend((name, speaker) for name in reversed(names))
        else:
            yield item, speaker


def _by_result(workers: Mapping[str, Worker], records: Sequence[Facts]) -> dict[str, list[str]]:
    """By the id of a call that has a result, the sub-agents that it began."""
    answered = {part.tool_id for part in _parts(records, SpanKind.TOOL_RESULT)}
    found: dict[str, list[str]] = {}
    for name, worker in workers.items():
        tool_id = worker.call.tool_id if worker.call is not None else None
        if tool_id is not None and tool_id in answered:
            found.setdefault(tool_id, []).append(name)
    return found


def _voice(worker: Worker, outer: Voice) -> Voice:
    call = worker.call
    return Voice(
        prefix=f"{worker.id}/",
        agent=(call.agent_type if call else None) or short_name(worker.id),
        asker=AGENT,
        call=call.tool_id if call else None,
    )


def _parts(records: Iterable[Facts], kind: SpanKind) -> Iterator[Part]:
    return (one.part for record in records for one in record.seen if one.part.kind is kind)
