"""Tool results that stand before their calls, as files off the ATIF standard have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from mast_tui.traces.readers.atif.fields import (
    AGENT_SOURCES,
    call_id_of,
    calls_of,
    field,
    follows_the_standard,
    results_of,
    source_of,
)

_NONE: Final[tuple[tuple[int, Mapping[str, object]], ...]] = ()


class LateResults:
    """Which steps of a trajectory are results of calls that come after them.

    A result that names its call belongs to it wherever it stands. One that names none belongs to a
    later call only where nothing else can be meant: in a file that does not say it is ATIF, as many
    steps of the system as the next step has calls stand directly before it, after some other step,
    and no other result answers those calls. ``moved`` holds the numbers of those steps.
    """

    def __init__(self, record: Mapping[str, object], steps: Sequence[object]) -> None:
        self._steps = steps
        self._made = dict(_calls_by_id(steps))
        self._before: dict[int, tuple[int, ...]] = {}
        self.moved: frozenset[int] = frozenset()
        if not follows_the_standard(record):
            self._pair()

    def comes_later(self, call_id: str, number: int) -> bool:
        """Whether the call with this id is made in a step after ``number``."""
        return self._made.get(call_id, -1) > number

    def before(self, number: int) -> Sequence[tuple[int, Mapping[str, object]]]:
        """The steps that hold the results of the calls of step ``number``, one for each call."""
        if number not in self._before:
            return _NONE
        found = ((place, self._steps[place]) for place in self._before[number])
        return [(place, step) for place, step in found if isinstance(step, Mapping)]

    def _pair(self) -> None:
        answered = set(_answered(self._steps))
        moved: set[int] = set()
        for number, step in enumerate(self._steps):
            if not isinstance(step, Mapping) or source_of(step) not in AGENT_SOURCES:
                continue
            calls = calls_of(step)
            if not calls or results_of(step):
                continue
            if any(call_id_of(call) in answered for call in calls):
                continue
            first = number - len(calls)
            if first <= 0 or self._is_loose(first - 1):
                continue
            places = tuple(range(first, number))
            if all(map(self._is_loose, places)):
                self._before[number] = places
                moved.update(places)
        self.moved = frozenset(moved)

    def _is_loose(self, number: int) -> bool:
        """Whether a step is words of the system that name no call."""
        step = self._steps[number]
        return (
            isinstance(step, Mapping)
            and source_of(step) == "system"
            and call_id_of(step) is None
            and not calls_of(step)
            and not results_of(step)
            and field(step, "is_copied_context") is not True
        )


def _calls_by_id(steps: Sequence[object]) -> Iterator[tuple[str, int]]:
    """The id of each call and the step that makes it last, of those that are shown."""
    for number, step in enumerate(steps):
        if isinstance(step, Mapping) and field(step, "is_copied_context") is not True:
            for call in calls_of(step):
                if call_id := call_id_of(call):
                    yield call_id, number


def _answered(steps: Sequence[object]) -> Iterator[str]:
    for step in steps:
        if not isinstance(step, Mapping):
            continue
        for value in (step, *(result for _place, result in results_of(step))):
            if call_id := call_id_of(value):
                yield call_id
