"""Which records of a Claude Code session the user took back: rewinding leaves them in the file.

Every record names the one that it follows, and after a rewind two prompts follow the same one. The
one that leads to the file's last record counts, and what hangs on the other is abandoned. Every
other fork is kept whole: results of parallel calls, hooks, progress and retries make forks too.
A record that names a missing one, or none, is taken to follow the record before it, so that what
came before a broken link, a resumption or a compaction is not lost. Only where the file itself
says that its last prompt belongs to a tree of its own, did the user go back to the very beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from mast_tui.traces.readers.claude_code.facts import Facts, Place

_ROOT: Final = -1
_LOOSE: Final = -2


@dataclass(frozen=True, slots=True)
class Branch:
    """An abandoned branch: its records as places in the list, the first being its prompt."""

    members: tuple[int, ...]


def abandoned_branches(records: Sequence[Facts], tip: str | None) -> list[Branch]:
    """The branches that the user took back, of one thread's records in file order.

    ``tip`` is the record that the file itself calls the end of the conversation, if it does.
    """
    tree = _Tree(records, tip)
    return [Branch(tuple(tree.below(prompt))) for prompt in tree.abandoned_prompts()]


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
        found: list[int] = []
        waiting = [place]
        while waiting:
            here = waiting.pop()
            found.append(here)
            waiting.extend(self._children[here])
        return sorted(found)

    def _path(self) -> list[int]:
        """The way from the beginning to the last record of the conversation."""
        last = next(
            (
                place
                for place in range(len(self._records) - 1, -1, -1)
                if self._records[place].place is not Place.BETWEEN
            ),
            None,
        )
        path: list[int] = []
        while last is not None and last >= 0:
            path.append(last)
            last = self._parents[last]
        return path[::-1] if last == _ROOT else []

    def _openings(self) -> list[Place]:
        """For each record with what it and all that hangs on it begin.

        That is the agent's own doing where there is any in one of the branches.
        """
        openings = [record.place for record in self._records]
        order: list[int] = []
        waiting = list(self._tops)
        while waiting:
            here = waiting.pop()
            order.append(here)
            waiting.extend(self._children[here])
        for here in reversed(order):
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
