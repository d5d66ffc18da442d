"""Which records of a Claude Code file count, and in which order they are read.

The file's own thread keeps the order of its lines. The records of a sub-agent that stand among
them are read together before the result of the call that began it; a sub-agent whose call is not
found stands where its first record does.

What the user took back by a rewind stays in the file. Every record names the one that it follows,
and after a rewind two prompts follow the same one. The one that leads to the file's last record
counts, and what hangs on the other is abandoned. Every other fork is kept whole: results of
parallel calls, hooks, progress and retries make forks too. A record that names a missing one, or
none, is taken to follow the record before it, so that what came before a broken link, a resumption
or a compaction is not lost. Only where the file itself says that its last prompt belongs to a tree
of its own, did the user go back to the very beginning.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from mast_tui.traces.model import SpanKind
from mast_tui.traces.readers.claude_code.records import AGENT, SPAWNING_TOOLS, Facts, Part, Place
from mast_tui.traces.readers.claude_code.trace import Voice, short_name


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
    voices = {name: _voice(worker) for name, worker in workers.items()}
    before = _by_result(workers, [*own, *(one for w in workers.values() for one in w.records)])
    named = {name for names in before.values() for name in names}
    free = [name for name in workers if name not in named]
    items: list[Facts | str] = [*own, *free]
    items.sort(key=lambda one: workers[one].records[0].first if isinstance(one, str) else one.first)
    items += workers  # those that have not begun by then, as what would begin them is not reached
    waiting: list[tuple[Facts | str, Voice]] = [(item, voice) for item in reversed(items)]
    begun: set[str] = set()
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


def _voice(worker: Worker) -> Voice:
    call = worker.call
    return Voice(
        prefix=f"{worker.id}/",
        agent=(call.agent_type if call else None) or short_name(worker.id),
        asker=AGENT,
        call=call.tool_id if call else None,
    )


def _parts(records: Iterable[Facts], kind: SpanKind) -> Iterator[Part]:
    return (part for record in records for part in record.parts if part.kind is kind)


_ROOT: Final = -1
_LOOSE: Final = -2


def abandoned_branches(records: Sequence[Facts], tip: str | None) -> list[list[int]]:
    """Find the branches that the user took back.

    Args:
        records: Those of one thread, in file order.
        tip: The record that the file itself calls the end of the conversation, if it does.

    Returns:
        The records of each branch as places in the list, the first being its prompt.
    """
    tree = _Tree(records, tip)
    return [tree.below(prompt) for prompt in tree.abandoned_prompts()]


class _Tree:
    def __init__(self, records: Sequence[Facts], tip: str | None) -> None:
        self._records = records
        self._parents = _parents(records, tip)
        self._children: list[list[int]] = [[] for _ in records]
        self._tops: list[int] = []
        for place, parent in enumerate(self._parents):
            if parent >= 0:
                self._children[parent].append(place)
            elif parent == _ROOT:
                self._tops.append(place)

    def abandoned_prompts(self) -> list[int]:
        """The prompts at the beginning of the abandoned branches."""
        path = self._path()
        openings = self._openings()
        found: list[int] = []
        for above, below in zip([_ROOT, *path], path, strict=False):
            siblings = self._children[above] if above >= 0 else self._tops
            if openings[below] is Place.PROMPT:
                for sibling in siblings:
                    if sibling != below and openings[sibling] is Place.PROMPT:
                        found.extend(self._first_prompts(sibling))
        return sorted(found)

    def below(self, place: int) -> list[int]:
        """A record and everything that hangs on it, in file order."""
        return sorted(self._all_below([place]))

    def _all_below(self, places: list[int]) -> Iterator[int]:
        """These records and everything that hangs on them, each before what hangs on it."""
        waiting = list(places)
        while waiting:
            here = waiting.pop()
            yield here
            waiting.extend(self._children[here])

    def _path(self) -> list[int]:
        """The way from the beginning to the last record of the conversation."""
        told = (at for at, one in enumerate(self._records) if one.place is not Place.BETWEEN)
        last = max(told, default=_LOOSE)
        path: list[int] = []
        while last >= 0:
            path.append(last)
            last = self._parents[last]
        return path[::-1] if last == _ROOT else []

    def _openings(self) -> list[Place]:
        """For each record with what it and all that hangs on it begin.

        That is the agent's own doing where there is any in one of the branches.
        """
        openings = [record.place for record in self._records]
        for here in reversed(list(self._all_below(self._tops))):
            if openings[here] is Place.BETWEEN:
                below = {openings[child] for child in self._children[here]}
                if Place.TURN in below:
                    openings[here] = Place.TURN
                elif Place.PROMPT in below:
                    openings[here] = Place.PROMPT
        return openings

    def _first_prompts(self, place: int) -> list[int]:
        """The prompts below what the harness wrote before them."""
        prompts: list[int] = []
        waiting = [place]
        while waiting:
            here = waiting.pop()
            if self._records[here].place is Place.PROMPT:
                prompts.append(here)
            else:
                waiting.extend(self._children[here])
        return prompts


def _parents(records: Sequence[Facts], tip: str | None) -> list[int]:
    """For each record the place of the one that it follows; no circles."""
    places: dict[str, int] = {}
    for place, record in enumerate(records):
        if record.uuid is not None:
            places.setdefault(record.uuid, place)
    again = _begins_again(records, places, tip)
    parents: list[int] = []
    for place, record in enumerate(records):
        parent = None if record.parent is None else places.get(record.parent)
        if parent is None or record.parent == record.uuid:
            restart = again and record.root and record.place is Place.PROMPT
            parent = _ROOT if place == 0 or restart else place - 1
        parents.append(parent)
    _cut_circles(parents)
    return parents


def _begins_again(records: Sequence[Facts], places: dict[str, int], tip: str | None) -> bool:
    """Whether the conversation that the file ends with began with a prompt after others."""
    place = None if tip is None else places.get(tip)
    passed: set[int] = set()
    while place is not None and place not in passed:
        passed.add(place)
        record = records[place]
        if record.parent is None:
            return place > 0 and record.place is Place.PROMPT
        place = places.get(record.parent)
    return False


def _cut_circles(parents: list[int]) -> None:
    """Let a record that comes to follow itself stand alone."""
    sound: set[int] = set()
    for start in range(len(parents)):
        walked: set[int] = set()
        place = start
        while place >= 0 and place not in sound and place not in walked:
            walked.add(place)
            place = parents[place]
        if place >= 0 and place in walked:
            parents[place] = _LOOSE
        sound |= walked
