"""The records of a session that count, and the order in which they are read.

The session's own records keep the order of their lines. Those of a sub-agent are read together
before the result of the call that started it; a sub-agent without such a call is read at the line
of its first record.

What the user took back by a rewind stays in the file. Every record names the one that it follows,
and after a rewind two prompts follow the same record. The prompt that leads to the last record
counts, and the other one is abandoned with all that follows it. Every other fork is kept whole:
results of parallel calls, hooks, progress and retries make forks too. A record whose parent is
missing follows the record before it, so that nothing is lost before a broken link, a resumption or
a compaction. Only where the file itself says that its last prompt is in a tree of its own did the
user go back to the very beginning.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from mast_tui.traces.readers.claude_code.records import Entry, RecordKind, Spawn
from mast_tui.traces.readers.claude_code.spans import AgentThread

_ROOT: Final = -1
"""The parent of the first record; the last of the lists of children is its own."""


@dataclass(slots=True)
class SubAgent:
    """A sub-agent with its records, and the call that started it where that is known."""

    id: str
    entries: list[Entry] = field(default_factory=list)
    spawn: Spawn | None = None

    @property
    def line(self) -> int:
        """The line of its first record."""
        return self.entries[0].line

    @property
    def thread(self) -> AgentThread:
        """The thread of its records."""
        if self.spawn is None:
            return AgentThread.of_sub_agent(self.id, None)
        return AgentThread.of_sub_agent(self.id, self.spawn.agent_type, self.spawn.call_id)


def sub_agents_among(entries: Iterable[Entry]) -> dict[str, SubAgent]:
    """Return the sub-agents of these records: by their own id, else by their first record's."""
    agents: dict[str, SubAgent] = {}
    agent_of: dict[str, str] = {}
    previous: str | None = None
    for entry in entries:
        agent_id = entry.agent_id
        if agent_id is None and entry.parent is not None:
            agent_id = agent_of.get(entry.parent, previous)
        previous = agent_id or entry.key
        agent_of.setdefault(entry.key, previous)
        agents.setdefault(previous, SubAgent(previous)).entries.append(entry)
    return agents


def assign_spawns(agents: Mapping[str, SubAgent], entries: Sequence[Entry]) -> None:
    """Give each sub-agent the call that started it.

    That is the one whose result names the sub-agent, else the first one with its very prompt.

    Args:
        agents: The sub-agents by id.
        entries: All records of the file.
    """
    spawns: dict[str, Spawn] = {}
    by_prompt: dict[int | None, deque[Spawn]] = {}
    for entry in entries:
        for spawn in entry.spawns:
            spawns[spawn.call_id] = spawn
            if spawn.prompt is not None:
                by_prompt.setdefault(spawn.prompt, deque()).append(spawn)
    for entry in entries:
        agent = next((agents[name] for name in entry.sub_agents if name in agents), None)
        if agent is not None and agent.spawn is None:
            calls = (spawns[call_id] for call_id in entry.results if call_id in spawns)
            agent.spawn = next(calls, None)
    assigned = {agent.spawn.call_id for agent in agents.values() if agent.spawn is not None}
    for agent in agents.values():
        candidates = by_prompt.get(agent.entries[0].prompt)
        while candidates and agent.spawn is None:
            spawn = candidates.popleft()
            if spawn.call_id not in assigned:
                agent.spawn = spawn


def in_reading_order(
    entries: Sequence[Entry], thread: AgentThread, agents: Mapping[str, SubAgent]
) -> Iterator[tuple[Entry, AgentThread]]:
    """Yield the records of a file's thread and of its sub-agents, each with its thread.

    Args:
        entries: The records of the file's own thread.
        thread: That thread.
        agents: The sub-agents by id.
    """
    waiting = _by_result(agents, entries)
    awaited = {agent.id for listed in waiting.values() for agent in listed}
    items: list[Entry | SubAgent] = [*entries]
    items += [agent for agent in agents.values() if agent.id not in awaited]
    items.sort(key=lambda item: item.line)
    items += agents.values()  # where the result that would begin them is read nowhere
    # A stack, because sub-agents may be nested more deeply than Python calls.
    stack = [(item, thread) for item in reversed(items)]
    begun: set[str] = set()
    while stack:
        item, item_thread = stack.pop()
        if isinstance(item, SubAgent):
            if item.id not in begun:
                begun.add(item.id)
                stack += [(entry, item.thread) for entry in reversed(item.entries)]
            continue
        spawned = [
            agent
            for call_id in item.results
            for agent in waiting.get(call_id, ())
            if agent.id not in begun
        ]
        if spawned:
            stack.append((item, item_thread))
            stack += [(agent, item_thread) for agent in reversed(spawned)]
        else:
            yield item, item_thread


def _by_result(
    agents: Mapping[str, SubAgent], entries: Sequence[Entry]
) -> dict[str, list[SubAgent]]:
    """Return the sub-agents that were started by each call that has a result."""
    of_agents = (entry for agent in agents.values() for entry in agent.entries)
    results = {
        call_id for listed in (entries, of_agents) for entry in listed for call_id in entry.results
    }
    waiting: dict[str, list[SubAgent]] = {}
    for agent in agents.values():
        if agent.spawn is not None and agent.spawn.call_id in results:
            waiting.setdefault(agent.spawn.call_id, []).append(agent)
    return waiting


def abandoned_branches(entries: Sequence[Entry], tip: str | None) -> list[list[Entry]]:
    """Return the records of each branch that the user took back, its prompt first.

    Args:
        entries: The records of one thread that have ids, in file order.
        tip: The record that the file itself calls the end of the conversation.
    """
    parents = _parents(entries, tip)
    children: list[list[int]] = [[] for _ in (*entries, _ROOT)]
    for index, parent in enumerate(parents):
        if parent is not None:
            children[parent].append(index)
    openings = _openings(entries, children)
    prompts: list[int] = []
    for parent, child in _way_to_last(entries, parents):
        if openings[child] is RecordKind.PROMPT:
            for sibling in children[parent]:
                if sibling != child and openings[sibling] is RecordKind.PROMPT:
                    prompts += _first_prompts(entries, children, sibling)
    return [
        [entries[index] for index in sorted(_descendants(children, prompt))]
        for prompt in sorted(prompts)
    ]


def _parents(entries: Sequence[Entry], tip: str | None) -> list[int | None]:
    """Return the index of each record's parent; None for a record that follows itself."""
    indices: dict[str | None, int] = {}
    for index, entry in enumerate(entries):
        indices.setdefault(entry.uuid, index)
    restarted = _has_restarted(entries, indices, tip)
    parents: list[int | None] = []
    for index, entry in enumerate(entries):
        parent = indices.get(entry.parent)
        if parent is None or entry.parent == entry.uuid:
            begins = restarted and entry.is_root and entry.kind is RecordKind.PROMPT
            parent = _ROOT if index == 0 or begins else index - 1
        parents.append(parent)
    _cut_circles(parents)
    return parents


def _has_restarted(entries: Sequence[Entry], indices: dict[str | None, int], tip: object) -> bool:
    """Tell whether the conversation that leads to the tip began with a prompt after others."""
    index = indices.get(tip) if isinstance(tip, str) else None
    passed: set[int] = set()
    while index is not None and index not in passed:
        passed.add(index)
        entry = entries[index]
        if entry.parent is None:
            return index > 0 and entry.kind is RecordKind.PROMPT
        index = indices.get(entry.parent)
    return False


def _cut_circles(parents: list[int | None]) -> None:
    """Take the parent from one record of each circle."""
    sound: set[int | None] = {_ROOT, None}
    for start in range(len(parents)):
        walked: set[int | None] = set()
        index: int | None = start
        while index is not None and index not in sound and index not in walked:
            walked.add(index)
            index = parents[index]
        if index is not None and index in walked:
            parents[index] = None
        sound |= walked


def _way_to_last(entries: Sequence[Entry], parents: Sequence[int | None]) -> list[tuple[int, int]]:
    """Return the steps from the root to the last record that is no note, as parent and child."""
    talk = (index for index, entry in enumerate(entries) if entry.kind is not RecordKind.NOTE)
    index: int | None = max(talk, default=None)
    way: list[tuple[int, int]] = []
    while index is not None and index != _ROOT:
        parent = parents[index]
        if parent is None:
            return []
        way.append((parent, index))
        index = parent
    return way


def _openings(entries: Sequence[Entry], children: Sequence[Sequence[int]]) -> list[RecordKind]:
    """Return for each record the kind that it begins with; for a note that of what follows it."""
    openings = [entry.kind for entry in entries]
    for index in reversed(list(_descendants(children, _ROOT))):
        if index != _ROOT and openings[index] is RecordKind.NOTE:
            following = (openings[child] for child in children[index])
            openings[index] = max(following, default=RecordKind.NOTE)
    return openings


def _descendants(children: Sequence[Sequence[int]], start: int) -> Iterator[int]:
    """Yield a record and all that follow it, parents first."""
    stack = [start]
    while stack:
        index = stack.pop()
        yield index
        stack += children[index]


def _first_prompts(
    entries: Sequence[Entry], children: Sequence[Sequence[int]], start: int
) -> Iterator[int]:
    """Yield the prompts that follow a record with nothing but notes between."""
    stack = [start]
    while stack:
        index = stack.pop()
        if entries[index].kind is RecordKind.PROMPT:
            yield index
        else:
            stack += children[index]
