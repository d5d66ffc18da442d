"""The records that the user took back by a rewind.

They stay in the file. Every record names the one that it follows, and after a rewind two prompts
follow the same record. The prompt that leads to the last record counts, and the other one is
abandoned with all that follows it. Every other fork is kept whole: results of parallel calls,
hooks, progress and retries make forks too.

A record whose parent is missing follows the record before it, so that nothing is lost before a
broken link, a resumption or a compaction. Only where the file itself says that its last prompt is
in a tree of its own did the user go back to the very beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from mast_tui.traces.readers.claude_code.records import Entry, RecordKind

_ROOT: Final = -1
"""The parent of the first record; the last of the lists of children is its own."""


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
