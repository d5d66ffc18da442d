"""The annotators of each trace and their order, which follow from the study alone.

Traces are dealt out batch by batch. A batch depends on earlier batches and never on later ones, so
that more traces change nothing for those of the study. Shares are counted over all batches so far,
so that the whole study has its share even if traces are added one by one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise
from typing import Final

from mast_tui.study.chance import drawn, rounded, stem
from mast_tui.study.model import Study

RETEST_GAP: Final = 10
"""After how many other finished traces one comes back, while there is anything else to do."""


def assigned(study: Study, annotator: str) -> tuple[str, ...]:
    """Return the ids of an annotator's traces in the order in which they come; nobody else's order.

    Traces of earlier batches come first. Empty for whoever is no annotator of the study.

    Args:
        study: The study.
        annotator: The annotator's name.
    """
    return _plan(study).assigned.get(annotator, ())


def annotators_of(study: Study, trace_id: str) -> tuple[str, ...]:
    """Return the annotators of a trace, by name; none if it is not in the study.

    Args:
        study: The study.
        trace_id: The trace's id.
    """
    return _plan(study).annotators.get(trace_id, ())


def overlap_traces(study: Study) -> tuple[str, ...]:
    """Return the ids of the traces that several label, in the order of the study."""
    return _plan(study).overlap


def withheld_traces(study: Study, annotator: str) -> frozenset[str]:
    """Return the ids of the traces on which the study hides suggestions from somebody.

    From an annotator these are a share of their own traces. From somebody who has no part in the
    study they are all traces that any annotator labels without suggestions.

    Args:
        study: The study.
        annotator: The person's name.
    """
    withheld = _plan(study).withheld
    if annotator in study.participants:
        return withheld.get(annotator, frozenset())
    return frozenset[str]().union(*withheld.values())


def retest_traces(study: Study, annotator: str) -> tuple[str, ...]:
    """Return the ids of an annotator's traces for retests, in the annotator's order.

    Of each batch they are taken from what comes early, so that enough is left to come between.

    Args:
        study: The study.
        annotator: The annotator's name.
    """
    return _plan(study).retests.get(annotator, ())


def retests_due(
    study: Study,
    annotator: str,
    finished_in_order: Sequence[str],
    *,
    retested: Collection[str] = (),
) -> tuple[str, ...]:
    """Return the ids of the traces that come back now, those finished longest ago first.

    ``finished_in_order`` are the annotator's finished traces, each once, the earliest first;
    ``retested`` those that have come back already. A trace is due when ``RETEST_GAP`` others were
    finished after it. Once no trace of the annotator is left unfinished, one other is enough.

    Args:
        study: The study.
        annotator: The annotator's name.
        finished_in_order: The annotator's finished traces, each once, the earliest first.
        retested: The traces that were labelled again already.
    """
    finished = list(dict.fromkeys(finished_in_order))
    nothing_left = set(assigned(study, annotator)) <= set(finished)
    gap = 1 if nothing_left else RETEST_GAP
    planned = set(retest_traces(study, annotator)).difference(retested)
    early = finished[: max(len(finished) - gap, 0)]
    return tuple(trace_id for trace_id in early if trace_id in planned)


@dataclass(frozen=True, slots=True)
class _Plan:
    """All that follows from a study; by annotator, but for ``annotators``, which is by trace."""

    annotators: Mapping[str, tuple[str, ...]]
    overlap: tuple[str, ...]
    assigned: Mapping[str, tuple[str, ...]]
    withheld: Mapping[str, frozenset[str]]
    retests: Mapping[str, tuple[str, ...]]


@lru_cache(maxsize=4)
def _plan(study: Study) -> _Plan:
    dealing = _Dealing(study)
    overlap: list[str] = []
    queues: dict[str, list[str]] = {name: [] for name in study.annotators}
    held: dict[str, set[str]] = defaultdict(set)
    back: dict[str, list[str]] = defaultdict(list)
    earlier = 0

    def take(name: str, ids: Sequence[str]) -> None:
        """Append the traces that an annotator was dealt at once to their queue.

        Args:
            name: The annotator's name.
            ids: The ids.
        """
        in_order = _in_order(study, name, ids)
        queue = queues[name]
        held[name] |= set(_spread(study, "withheld", name, in_order, len(queue), study.withheld))
        room = RETEST_GAP
        back[name] += _spread(study, "retest", name, in_order, len(queue), study.retests, room=room)
        queue += in_order

    for number, batch in enumerate(study.batches):
        several = _several(study, batch, earlier)
        earlier += len(batch)
        dealing.deal(batch, several, number)
        overlap += [trace_id for trace_id in batch if dealing.shared(trace_id, several)]
        for name in queues:
            take(name, [trace_id for trace_id in batch if name in dealing.annotators[trace_id]])
    passed_on = dealing.pass_on()
    for name in queues:
        take(name, passed_on[name])

    def still(name: str, ids: Iterable[str]) -> tuple[str, ...]:
        """Return the ids that an annotator was dealt and has not given back.

        Args:
            name: The name.
            ids: The ids.
        """
        return tuple(trace_id for trace_id in ids if name in dealing.annotators[trace_id])

    return _Plan(
        dealing.annotators,
        tuple(overlap),
        {name: still(name, queue) for name, queue in queues.items()},
        {name: frozenset(still(name, ids)) for name, ids in held.items()},
        {name: still(name, ids) for name, ids in back.items()},
    )


def _several(study: Study, batch: Sequence[str], earlier: int) -> frozenset[str]:
    """Return the traces of a batch that several annotators label."""
    if study.per_trace == 1:
        return frozenset()
    count = rounded(study.overlap, earlier + len(batch)) - rounded(study.overlap, earlier)
    places = sorted(
        range(len(batch)), key=lambda i: (drawn(study.seed, "overlap", stem(batch[i])), i)
    )
    return frozenset(batch[index] for index in places[:count])


class _Dealing:
    """Deals traces out, each to those who have fewest of its kind in the batch.

    Among these to those who have met least on a trace, then to those who have fewest in all.
    """

    def __init__(self, study: Study) -> None:
        self.annotators: dict[str, tuple[str, ...]] = {}
        self._study = study
        self._met: Counter[tuple[str, str]] = Counter()
        self._all: Counter[str] = Counter()
        self._fixed = {
            assignment.trace_id: tuple(sorted(assignment.annotators))
            for assignment in study.assignments
        }

    def deal(self, batch: Sequence[str], several: Collection[str], batch_number: int) -> None:
        """Deal out a batch, of which ``several`` go to more than one.

        What is fixed comes first, so that the others get more of what is dealt.

        Args:
            batch: The ids of the traces of a batch.
            several: The ids of the traces that several annotators label.
            batch_number: The batch, counted from 0.
        """
        weights = {
            name: self._study.weight(name, batch_number)
            for name in self._study.members(batch_number)
        }
        for shared, how_many in ((True, self._study.per_trace), (False, 1)):
            had: Counter[str] = Counter()
            ids = [trace_id for trace_id in batch if self.shared(trace_id, several) is shared]
            for trace_id in (trace_id for trace_id in ids if trace_id in self._fixed):
                self._give(trace_id, self._fixed[trace_id], had)
            for trace_id in (trace_id for trace_id in ids if trace_id not in self._fixed):
                self._give(trace_id, self._choose(trace_id, how_many, had, weights), had)

    def shared(self, trace_id: str, several: Collection[str]) -> bool:
        """Return whether several annotators label a trace.

        Args:
            trace_id: The trace's id.
            several: The ids of the traces that several annotators label.
        """
        fixed = self._fixed.get(trace_id)
        return trace_id in several if fixed is None else len(fixed) > 1

    def pass_on(self) -> Mapping[str, list[str]]:
        """Give to others what was given back, each to whoever has fewest; by name who got what.

        Where nobody else is left a trace has one annotator less.
        """
        received: dict[str, list[str]] = defaultdict(list)
        had_it: dict[str, set[str]] = defaultdict(set)
        for release in self._study.releases:
            for trace_id in release.traces:
                if release.annotator not in self.annotators.get(trace_id, ()):
                    continue
                had_it[trace_id].update(self.annotators[trace_id])
                candidates = [name for name in self._study.present if name not in had_it[trace_id]]
                stay = {*self.annotators[trace_id]} - {release.annotator}
                self._all[release.annotator] -= 1
                if candidates:
                    draws = self._draws(trace_id, candidates)
                    batch_number = len(self._study.batches)
                    chosen = min(
                        candidates,
                        key=lambda x: (
                            (self._all[x] + 1) / self._study.weight(x, batch_number),
                            draws[x],
                            x,
                        ),
                    )
                    received[chosen].append(trace_id)
                    self._all[chosen] += 1
                    stay.add(chosen)
                self.annotators[trace_id] = tuple(sorted(stay))
        return received

    def _draws(self, trace_id: str, people: Iterable[str]) -> dict[str, int]:
        root = stem(trace_id)
        return {name: drawn(self._study.seed, "deal", root, name) for name in people}

    def _choose(
        self, trace_id: str, how_many: int, had: Counter[str], weights: Mapping[str, float]
    ) -> tuple[str, ...]:
        draws = self._draws(trace_id, weights)
        chosen: list[str] = []

        def rank(name: str) -> tuple[float, int, float, int, str]:
            met = sum(self._met[min(name, other), max(name, other)] for other in chosen)
            # With the one that is dealt, so that the first goes to whoever is to get most.
            load = (had[name] + 1) / weights[name]
            total_load = (self._all[name] + 1) / weights[name]
            return load, met, total_load, draws[name], name

        for _ in range(min(how_many, len(weights))):
            chosen.append(min((name for name in draws if name not in chosen), key=rank))
        return tuple(sorted(chosen))

    def _give(self, trace_id: str, names: tuple[str, ...], had: Counter[str]) -> None:
        had.update(names)
        self._all.update(names)
        self._met.update(combinations(names, 2))
        self.annotators[trace_id] = names


def _in_order(study: Study, name: str, ids: Sequence[str]) -> list[str]:
    draws = [
        (drawn(study.seed, "order", name, stem(trace_id)), index)
        for index, trace_id in enumerate(ids)
    ]
    return [ids[index] for _, index in sorted(draws)]


def _spread(
    study: Study,
    purpose: str,
    name: str,
    ids: Sequence[str],
    earlier: int,
    share: float,
    *,
    room: int = 0,
) -> list[str]:
    """Return a share of an annotator's traces of a batch, after so many in earlier batches.

    One is drawn from each of as many equal stretches, so that they lie evenly over the time in
    which the annotator learns and tires. Where it can be, the last ``room`` are not drawn.
    """
    count = rounded(share, earlier + len(ids)) - rounded(share, earlier)
    pool = ids[: max(len(ids) - room, count)]
    ends = [len(pool) * part // count for part in range(count + 1)] if count else []
    return [
        min(
            pool[start:end],
            key=lambda trace_id: (drawn(study.seed, purpose, name, stem(trace_id)), trace_id),
        )
        for start, end in pairwise(ends)
    ]
