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

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from mast_tui.traces.readers.claude_code.records import RecordEntry, RecordKind, Spawn
from mast_tui.traces.readers.claude_code.spans import AgentThread

_ROOT: Final = -1
"""The parent of the first record; the last of the lists of children is its own."""


@dataclass(slots=True)
class SubAgent:
    """A sub-agent with its records, and the call that started it where that is known."""

    id: str
    entries: list[RecordEntry] = field(default_factory=list)
    spawn: Spawn | None = None

    @property
    def line(self) -> int:
        """The line of its first record."""
        return self.entries[0].line

    def thread(self) -> AgentThread:
        """Return the thread of its records."""
        if self.spawn is None:
            return AgentThread.of_sub_agent(self.id)
        return AgentThread.of_sub_agent(self.id, self.spawn.agent_type, self.spawn.call_id)


def sub_agents_among(entries: Iterable[RecordEntry]) -> dict[str, SubAgent]:
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


def assign_spawns(agents: Mapping[str, SubAgent], entries: Sequence[RecordEntry]) -> None:
    """Give each sub-agent the call that started it.

    That is the one whose result names the sub-agent, else the first one with its very prompt.

    Args:
        agents: The sub-agents by id.
        entries: All records of the file.
    """
    spawns = {spawn.call_id: spawn for entry in entries for spawn in entry.spawns}
    for entry in entries:
        agent = next((agents[name] for name in entry.sub_agents if name in agents), None)
        if agent is not None and agent.spawn is None:
            agent.spawn = next(filter(None, map(spawns.get, entry.results)), None)
    assigned = {agent.spawn.call_id for agent in agents.values() if agent.spawn is not None}
    by_prompt: defaultdict[int | None, deque[Spawn]] = defaultdict(deque)
    for entry in entries:
        for spawn in entry.spawns:
            if spawn.prompt is not None and spawn.call_id not in assigned:
                by_prompt[spawn.prompt].append(spawn)
    for agent in agents.values():
        candidates = by_prompt[agent.entries[0].prompt]
        if candidates and agent.spawn is None:
            agent.spawn = candidates.popleft()


def in_reading_order(
    entries: Sequence[RecordEntry], thread: AgentThread, agents: Mapping[str, SubAgent]
) -> Iterator[tuple[RecordEntry, AgentThread]]:
    """Yield the records of a file's thread and of its sub-agents, each with its thread.

    Args:
        entries: The records of the file's own thread.
        thread: That thread.
        agents: The sub-agents by id.
    """
    of_agents = (agent.entries for agent in agents.values())
    results = {call_id for entry in chain(entries, *of_agents) for call_id in entry.results}
    waiting: defaultdict[str, list[SubAgent]] = defaultdict(list)
    items: list[RecordEntry | SubAgent] = [*entries]
    for agent in agents.values():
        if agent.spawn is not None and agent.spawn.call_id in results:
            waiting[agent.spawn.call_id].append(agent)
        else:
            items.append(agent)
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
                agent_thread = item.thread()
                stack += [(entry, agent_thread) for entry in reversed(item.entries)]
            continue
        started = [
            agent
            for call_id in item.results
            for agent in waiting.get(call_id, ())
            if agent.id not in begun
        ]
        if started:
            stack.append((item, item_thread))
            stack += [(agent, item_thread) for agent in reversed(started)]
        else:
            yield item, item_thread


def abandoned_branches(entries: Sequence[RecordEntry], tip: str | None) -> list[list[RecordEntry]]:
    """Return the records of each branch that the user took back, its prompt first.

    Args:
        entries: The records of one thread that have ids, in file order.
        tip: The record that the file itself calls the end of the conversation.
    """
    parents = _parents(entries, tip)
    children: list[list[int]] = [[] for _ in (*parents, _ROOT)]
    for index, parent in enumerate(parents):
        children[parent].append(index)
    # Records that follow one another in a circle are not among the root's descendants.
    connected = list(_descendants(children, _ROOT))[1:]
    openings = [entry.kind for entry in entries]
    for index in reversed(connected):
        if openings[index] is RecordKind.NOTE:
            openings[index] = max(
                (openings[child] for child in children[index]), default=RecordKind.NOTE
            )
    prompts: list[int] = []
    talk = (index for index, entry in enumerate(entries) if entry.kind is not RecordKind.NOTE)
    index = max(talk, default=_ROOT)
    if index not in set(connected):
        return []
    while index != _ROOT:
        if openings[index] is RecordKind.PROMPT:
            for sibling in children[parents[index]]:
                if sibling != index and openings[sibling] is RecordKind.PROMPT:
                    prompts += _first_prompts(entries, children, sibling)
        index = parents[index]
    return [
        [entries[index] for index in sorted(_descendants(children, prompt))]
        for prompt in sorted(prompts)
    ]


def _parents(entries: Sequence[RecordEntry], tip: str | None) -> list[int]:
    """Return the index of the record that each one follows."""
    indices: dict[str | None, int] = {}
    for index, entry in enumerate(entries):
        indices.setdefault(entry.uuid, index)
    restarted = _has_restarted(entries, indices, tip)
    parents: list[int] = []
    for index, entry in enumerate(entries):
        parent = indices.get(entry.parent)
        if parent is None or entry.parent == entry.uuid:
            begins = restarted and entry.is_root and entry.kind is RecordKind.PROMPT
            parent = _ROOT if begins else index - 1
        parents.append(parent)
    return parents


def _has_restarted(
    entries: Sequence[RecordEntry], indices: Mapping[str | None, int], tip: str | None
) -> bool:
    """Return whether the conversation that leads to the tip began with a prompt after others."""
    index = indices.get(tip)
    passed: set[int] = set()
    while index is not None and index not in passed:
        passed.add(index)
        entry = entries[index]
        if entry.parent is None:
            return index > 0 and entry.kind is RecordKind.PROMPT
        index = indices.get(entry.parent)
    return False


def _descendants(children: Sequence[Sequence[int]], start: int) -> Iterator[int]:
    """Yield a record and all that follow it, parents first."""
    stack = [start]
    while stack:
        index = stack.pop()
        yield index
        stack += children[index]


def _first_prompts(
    entries: Sequence[RecordEntry], children: Sequence[Sequence[int]], start: int
) -> Iterator[int]:
    """Yield the prompts that follow a record with nothing but notes between."""
    stack = [start]
    while stack:
        index = stack.pop()
        if entries[index].kind is RecordKind.PROMPT:
            yield index
        else:
            stack += children[index]
