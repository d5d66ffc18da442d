"""The sub-agents whose records are among those of a session, and the order in which they are read.

The session's own records keep the order of their lines. Those of a sub-agent are read together
before the result of the call that started it; a sub-agent without such a call is read at the line
of its first record.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mast_tui.traces.readers.claude_code.records import Entry, Spawn
from mast_tui.traces.readers.claude_code.spans import AgentThread


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
