"""The assignment of traces to annotators and their order, computed from the study alone.

Traces are dealt out batch by batch. A batch depends on earlier batches only, so that more traces
change nothing for the others. Shares are counted over all batches so far, so that they hold even if
traces are added one by one. Random choices follow from a seed and texts, so that they are the same
on every machine.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from itertools import accumulate, combinations, pairwise
from math import floor
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mast_tui.study.model import Release, Study

_COPY_SUFFIX: Final = re.compile(r"(?:~\d+)+\Z")


def random_number(seed: int, *texts: str) -> int:
    """Return a number from 0 to 2^64 − 1 that a hash of the seed and the texts gives."""
    text = "\0".join((str(seed), *texts)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big")


def original_id(trace_id: str) -> str:
    """Return the id of a trace without a suffix such as ``~2``, which a merge may have added."""
    return _COPY_SUFFIX.sub("", trace_id)


def rounded(share: float, count: int) -> int:
    """Return a share of a count, rounded to the nearest whole number; a half is rounded up.

    Args:
        share: The share from 0 to 1, taken as a decimal number: 0.145 of 100 is exactly 14.5.
        count: The count.
    """
    exact = Decimal(str(share)) * count
    return int(exact.quantize(Decimal(1), rounding=ROUND_HALF_UP))


def _draw_key(seed: int, *texts: str) -> Callable[[str], tuple[int, str]]:
    """Return a sort key that puts ids of traces in a random order by a seed and texts."""
    # The id before a merge keeps the draw the same.
    return lambda trace_id: (random_number(seed, *texts, original_id(trace_id)), trace_id)


def random_sample(ids: Iterable[str], seed: int, n: int) -> tuple[str, ...]:
    """Draw ``n`` of the ids without repeats, and return them in the order of the draw.

    A larger sample of the same ids begins with the smaller one.

    Args:
        ids: The ids.
        seed: The seed of the draw.
        n: The number of ids.
    """
    return tuple(sorted(dict.fromkeys(ids), key=_draw_key(seed, "sample"))[:n])


def stratified_sample(
    strata: Mapping[str, Sequence[str]], n: int, seed: int, *, batch_number: int = 0
) -> tuple[str, ...]:
    """Draw traces with equal chances; each stratum gets its share, to within one trace.

    The sample is systematic: the N traces are sorted by stratum, in random order within each. From
    a random start, each (N/n)th trace is drawn (Madow and Madow 1944, Annals of Mathematical
    Statistics 15:1-24).

    Args:
        strata: The ids of the traces by the name of their stratum.
        n: The number of traces to draw; all if there are fewer.
        seed: The seed of the draw.
        batch_number: The number of the batch; each batch has another draw.

    Returns:
        The ids, sorted.
    """
    frame = [
        trace_id
        for name in sorted(strata)
        for trace_id in sorted(strata[name], key=_draw_key(seed, f"lot {batch_number}"))
    ]
    if n >= len(frame):
        return tuple(sorted(frame))
    start = random_number(seed, f"start {batch_number}") % len(frame)
    # Positions are counted in nths of a trace, so that a step of N/n traces is the whole number N.
    indices = [(start + step * len(frame)) // n for step in range(n)]
    return tuple(sorted(frame[index] for index in indices))


def weighted_sample(
    sizes: Mapping[str, float], n: int, seed: int, *, batch_number: int = 0
) -> dict[str, float]:
    """Draw traces with chances in proportion to their sizes.

    The sample is systematic: the traces lie on a line in random order, each as long as its chance.
    From a random start, the trace at each step of length 1 is drawn (Madow 1949, Annals of
    Mathematical Statistics 20:333-354).

    Args:
        sizes: The size of each trace by id, greater than 0.
        n: The number of traces to draw; all if there are fewer.
        seed: The seed of the draw.
        batch_number: The number of the batch; each batch has another draw.

    Returns:
        The chances of the drawn traces by id, sorted by id.
    """
    chances = _inclusion_chances(sizes, min(n, len(sizes)))
    frame = sorted(sizes, key=_draw_key(seed, f"lot {batch_number}"))
    start = random_number(seed, f"start {batch_number}") / 2**64
    ends = [0.0, *accumulate(chances[trace_id] for trace_id in frame)]
    # Rounding of the sum must not leave out the last trace.
    ends[-1] = float(round(ends[-1]))
    # A trace is drawn if its part of the line contains ``start`` plus a whole number.
    sample = [
        trace_id
        for trace_id, (range_start, range_end) in zip(frame, pairwise(ends), strict=True)
        if floor(range_end - start) > floor(range_start - start)
    ]
    return {trace_id: chances[trace_id] for trace_id in sorted(sample)}


def _inclusion_chances(sizes: Mapping[str, float], n: int) -> dict[str, float]:
    """Return chances in proportion to sizes that add up to ``n``.

    A trace with a chance above 1 gets the chance 1, and the others share the remaining draws.
    """
    certain_ids: set[str] = set()
    while True:
        total_size = sum(size for trace_id, size in sizes.items() if trace_id not in certain_ids)
        draw_count = n - len(certain_ids)
        new_ids = {
            trace_id
            for trace_id, size in sizes.items()
            if trace_id not in certain_ids and size * draw_count >= total_size
        }
        if not new_ids:
            break
        certain_ids |= new_ids
    return {
        trace_id: 1.0 if trace_id in certain_ids else size * draw_count / total_size
        for trace_id, size in sizes.items()
    }


RETEST_GAP: Final = 10
"""The number of traces to finish between a trace and its retest, if there are as many."""


def assigned(study: Study, annotator: str) -> tuple[str, ...]:
    """Return the ids of an annotator's traces in the annotator's own order.

    Empty for other people.

    Args:
        study: The study.
        annotator: The annotator's name.
    """
    return _plan_of_study(study).share_of(annotator).assigned


def annotators_of(study: Study, trace_id: str) -> tuple[str, ...]:
    """Return the annotators of a trace, sorted by name.

    Args:
        study: The study.
        trace_id: The trace's id.
    """
    return _plan_of_study(study).annotators.get(trace_id, ())


def with_release(study: Study, annotator: str, trace_ids: Sequence[str]) -> Study:
    """Give an annotator's traces to others.

    The successors are recorded, so that later changes of the study do not move traces on which they
    have worked.

    Args:
        study: The study.
        annotator: The annotator's name.
        trace_ids: The ids of the traces.
    """

    def released(*successors: str) -> Study:
        release = Release(annotator, tuple(trace_ids), successors)
        return replace(study, releases=(*study.releases, release))

    dealt = released()
    new_names = (
        set(annotators_of(dealt, trace_id)).difference(annotators_of(study, trace_id))
        for trace_id in trace_ids
    )
    return released(*(next(iter(names), "") for names in new_names))


def is_expected(study: Study | None, annotator: str, trace_id: str) -> bool:
    """Return whether a person may have begun a trace in order to finish it.

    This is False for an annotator of the study who has only looked at a trace of others.

    Args:
        study: The study, if there is one.
        annotator: The person's name.
        trace_id: The trace's id.
    """
    if study is None or annotator not in study.annotators:
        return True
    return annotator in annotators_of(study, trace_id)


def overlap_traces(study: Study) -> tuple[str, ...]:
    """Return the ids of the traces with several annotators, in the order of the study."""
    plan = _plan_of_study(study)
    # A released trace may have one annotator left.
    return tuple(trace_id for trace_id in plan.overlap if len(plan.annotators[trace_id]) > 1)


def withheld_traces(study: Study, annotator: str) -> frozenset[str]:
    """Return the ids of the traces on which the study hides suggestions from a person.

    For a person outside of the study these are all traces on which suggestions are hidden from any
    annotator.

    Args:
        study: The study.
        annotator: The person's name.
    """
    plan = _plan_of_study(study)
    if annotator in study.participants:
        return plan.share_of(annotator).withheld
    return frozenset[str]().union(*(share.withheld for share in plan.shares.values()))


def retest_traces(study: Study, annotator: str) -> tuple[str, ...]:
    """Return the ids of the traces that an annotator labels again, in the annotator's order.

    These are early traces of each batch, so that enough traces follow before the retest.

    Args:
        study: The study.
        annotator: The annotator's name.
    """
    return _plan_of_study(study).share_of(annotator).retests


def retests_due(
    study: Study,
    annotator: str,
    finished_in_order: Sequence[str],
    *,
    retested: Collection[str] = (),
) -> tuple[str, ...]:
    """Return the ids of the traces with a due retest, the earliest finished trace first.

    A retest is due once ``RETEST_GAP`` other traces were finished after the trace, or one if all
    traces of the annotator are finished. None is due for an annotator who has left the study.

    Args:
        study: The study.
        annotator: The annotator's name.
        finished_in_order: The annotator's finished traces, the earliest first; may have repeats.
        retested: The traces that were labelled again already.
    """
    if annotator not in study.present:
        return ()
    finished = list(dict.fromkeys(finished_in_order))
    all_finished = set(assigned(study, annotator)) <= set(finished)
    gap = 1 if all_finished else RETEST_GAP
    planned = set(retest_traces(study, annotator)).difference(retested)
    old_enough = finished[: max(len(finished) - gap, 0)]
    return tuple(trace_id for trace_id in old_enough if trace_id in planned)


class _Share(Struct, frozen=True):
    """One annotator's share of a study.

    Attributes:
        assigned: The annotator's traces, in the annotator's order.
        withheld: The assigned traces on which suggestions are hidden.
        retests: The assigned traces that the annotator labels twice.
    """

    assigned: tuple[str, ...] = ()
    withheld: frozenset[str] = frozenset()
    retests: tuple[str, ...] = ()


class _Plan(Struct, frozen=True):
    """The plan that follows from a study.

    Attributes:
        annotators: The annotators, by trace.
        overlap: The traces that several annotators label.
        shares: The share of each annotator, by name.
    """

    annotators: Mapping[str, tuple[str, ...]]
    overlap: tuple[str, ...]
    shares: Mapping[str, _Share]

    def share_of(self, annotator: str) -> _Share:
        """Return the share of an annotator, or an empty share for other people."""
        return self.shares.get(annotator, _Share())


@lru_cache(maxsize=4)
def _plan_of_study(study: Study) -> _Plan:
    """Deal out the batches one by one, and then the traces that were given back."""
    dealing = _Dealing(study)
    overlap: list[str] = []
    portions: dict[str, list[list[str]]] = {name: [] for name in study.annotators}
    earlier_count = 0
    for batch_number, batch in enumerate(study.batches):
        overlap_ids = _overlap_of_batch(study, batch, earlier_count)
        earlier_count += len(batch)
        dealing.deal(batch, overlap_ids, batch_number)
        overlap += [
            trace_id for trace_id in batch if dealing.has_several_annotators(trace_id, overlap_ids)
        ]
        for name, portions_of_name in portions.items():
            portions_of_name.append(
                [trace_id for trace_id in batch if name in dealing.annotators[trace_id]]
            )
    for name, trace_ids in dealing.deal_released_traces():
        portions[name].append(trace_ids)
    shares = {
        name: _share_of_portions(study, name, portions[name], dealing.annotators)
        for name in portions
    }
    return _Plan(dealing.annotators, tuple(overlap), shares)


def _share_of_portions(
    study: Study,
    name: str,
    portions: Iterable[Sequence[str]],
    annotators: Mapping[str, Sequence[str]],
) -> _Share:
    """Return an annotator's share: the traces of all portions, without those given back.

    A portion is the annotator's part of one batch, or the traces received from others. Traces
    without suggestions and traces for retests are drawn from each portion.
    """
    queue: list[str] = []
    withheld: list[str] = []
    retests: list[str] = []
    for portion in portions:
        in_order = _order_of_annotator(study, name, portion)
        withheld += _spread_sample(study, "withheld", name, in_order, len(queue), study.withheld)
        retests += _spread_sample(
            study, "retest", name, in_order, len(queue), study.retests, traces_after=RETEST_GAP
        )
        queue += in_order

    def kept(trace_ids: Iterable[str]) -> Iterator[str]:
        return (trace_id for trace_id in trace_ids if name in annotators[trace_id])

    return _Share(tuple(kept(queue)), frozenset(kept(withheld)), tuple(kept(retests)))


def _overlap_of_batch(study: Study, batch: Sequence[str], earlier_count: int) -> frozenset[str]:
    """Draw the traces of a batch that several annotators label.

    ``earlier_count`` is the number of traces in earlier batches.
    """
    if study.per_trace == 1:
        return frozenset()
    count = _share_of_batch(study.overlap, len(batch), earlier_count)
    # The order depends on the seed and the ids alone, so it is the same in every workspace.
    indices = sorted(
        range(len(batch)),
        key=lambda index: (
            random_number(study.seed, "overlap", original_id(batch[index])),
            index,
        ),
    )
    return frozenset(batch[index] for index in indices[:count])


def _share_of_batch(share: float, count: int, earlier_count: int) -> int:
    """Return the number of traces of a batch that completes a share of all traces so far."""
    return rounded(share, earlier_count + count) - rounded(share, earlier_count)


class _Dealing:
    """The dealing of traces to annotators.

    A trace goes to the annotators with the fewest traces of its kind in the batch, relative to
    their weights. Among equals it goes to those who share the fewest traces, then to those with the
    fewest traces in all, then by lot.
    """

    def __init__(self, study: Study) -> None:
        self.annotators: dict[str, tuple[str, ...]] = {}
        """The sorted names of the annotators of each trace, by trace id."""
        self._study = study
        self._meeting_counts: Counter[tuple[str, str]] = Counter()
        """The number of traces that a pair of annotators shares."""
        self._total_counts: Counter[str] = Counter()
        """The number of traces of each annotator."""
        self._fixed_annotators = {
            assignment.trace_id: tuple(sorted(assignment.annotators))
            for assignment in study.assignments
        }

    def deal(self, batch: Sequence[str], overlap_ids: Collection[str], batch_number: int) -> None:
        """Deal out the traces of a batch to its annotators.

        Traces with fixed annotators come first, so that the other traces make up for differences.

        Args:
            batch: The ids of the traces.
            overlap_ids: The ids of the traces for several annotators.
            batch_number: The batch, counted from 0.
        """
        weights = {
            name: self._study.weight(name, batch_number)
            for name in self._study.members(batch_number)
        }
        for is_shared, annotator_count in ((True, self._study.per_trace), (False, 1)):
            batch_counts: Counter[str] = Counter()
            ids = [
                trace_id
                for trace_id in batch
                if self.has_several_annotators(trace_id, overlap_ids) is is_shared
            ]
            fixed_ids = [trace_id for trace_id in ids if trace_id in self._fixed_annotators]
            dealt_ids = [trace_id for trace_id in ids if trace_id not in self._fixed_annotators]
            for trace_id in fixed_ids:
                self._assign(trace_id, self._fixed_annotators[trace_id], batch_counts)
            for trace_id in dealt_ids:
                names = self._chosen_annotators(trace_id, annotator_count, batch_counts, weights)
                self._assign(trace_id, names, batch_counts)

    def has_several_annotators(self, trace_id: str, overlap_ids: Collection[str]) -> bool:
        """Return whether several annotators label a trace.

        Args:
            trace_id: The trace's id.
            overlap_ids: The ids of the traces that several annotators label.
        """
        fixed = self._fixed_annotators.get(trace_id)
        return trace_id in overlap_ids if fixed is None else len(fixed) > 1

    def deal_released_traces(self) -> list[tuple[str, list[str]]]:
        """Give each trace that was given back to its successor; return annotators with traces.

        Without a recorded successor, a trace goes to the annotator with the fewest traces relative
        to the weight. Nobody gets it if every annotator has had it.
        """
        # Traces without recorded successors form one portion of an annotator.
        received: dict[tuple[str, int], list[str]] = defaultdict(list)
        earlier_annotators: dict[str, set[str]] = defaultdict(set)
        for number, release in enumerate(self._study.releases):
            successors = release.successors or (None,) * len(release.traces)
            for trace_id, recorded in zip(release.traces, successors, strict=True):
                names = self.annotators.get(trace_id, ())
                if release.annotator not in names:
                    continue
                earlier_annotators[trace_id].update(names)
                self._total_counts[release.annotator] -= 1
                new_names = {*names} - {release.annotator}
                successor = recorded
                if recorded is None:
                    successor = self._successor(trace_id, earlier_annotators[trace_id])
                if successor:
                    received[successor, -1 if recorded is None else number].append(trace_id)
                    self._total_counts[successor] += 1
                    new_names.add(successor)
                self.annotators[trace_id] = tuple(sorted(new_names))
        return [(name, trace_ids) for (name, _), trace_ids in received.items()]

    def _successor(self, trace_id: str, earlier_names: Collection[str]) -> str | None:
        """Return the next annotator of a trace that was given back; None if all had it before."""
        candidates = [name for name in self._study.present if name not in earlier_names]
        draws = self._draws_of_annotators(trace_id, candidates)
        batch_number = len(self._study.batches)

        def rank(name: str) -> tuple[float, int, str]:
            load = (self._total_counts[name] + 1) / self._study.weight(name, batch_number)
            return load, draws[name], name

        return min(candidates, key=rank, default=None)

    def _draws_of_annotators(self, trace_id: str, people: Iterable[str]) -> dict[str, int]:
        """Return a random number for each person, which decides between equal people."""
        root = original_id(trace_id)
        return {name: random_number(self._study.seed, "deal", root, name) for name in people}

    def _chosen_annotators(
        self,
        trace_id: str,
        annotator_count: int,
        batch_counts: Counter[str],
        weights: Mapping[str, float],
    ) -> tuple[str, ...]:
        """Choose the annotators of a trace, and return their sorted names.

        ``batch_counts`` is the number of traces of the batch that each annotator has already.
        """
        draws = self._draws_of_annotators(trace_id, weights)
        chosen: list[str] = []

        def rank(name: str) -> tuple[float, int, float, int, str]:
            """Return the sort key of an annotator; the annotator with the lowest key is next."""
            # Pairs with few common traces come first, so that agreement is measured for all pairs.
            pairs = [(min(name, other), max(name, other)) for other in chosen]
            meeting_count = sum(self._meeting_counts[pair] for pair in pairs)
            # Loads include this trace, so that the first trace goes to the greatest weight.
            load = (batch_counts[name] + 1) / weights[name]
            total_load = (self._total_counts[name] + 1) / weights[name]
            return load, meeting_count, total_load, draws[name], name

        for _ in range(min(annotator_count, len(weights))):
            chosen.append(min((name for name in draws if name not in chosen), key=rank))
        return tuple(sorted(chosen))

    def _assign(self, trace_id: str, names: tuple[str, ...], batch_counts: Counter[str]) -> None:
        """Record the annotators of a trace, and count the trace for each annotator and pair."""
        batch_counts.update(names)
        self._total_counts.update(names)
        self._meeting_counts.update(combinations(names, 2))
        self.annotators[trace_id] = names


def _order_of_annotator(study: Study, name: str, ids: Sequence[str]) -> list[str]:
    """Return ids in the annotator's random order, which follows from the study's seed."""
    draws = [
        (random_number(study.seed, "order", name, original_id(trace_id)), index)
        for index, trace_id in enumerate(ids)
    ]
    return [ids[index] for _, index in sorted(draws)]


def _spread_sample(
    study: Study,
    purpose: str,
    name: str,
    ids: Sequence[str],
    earlier_count: int,
    share: float,
    *,
    traces_after: int = 0,
) -> list[str]:
    """Draw a share of an annotator's traces of a batch, spread evenly over their order.

    One trace is drawn from each of several equal parts, because annotators learn and tire with
    time. If possible, ``traces_after`` others follow each drawn trace.
    """
    count = _share_of_batch(share, len(ids), earlier_count)
    pool = ids[: max(len(ids) - traces_after, count)]
    borders = [len(pool) * part // count for part in range(count + 1)] if count else []
    draw_key = _draw_key(study.seed, purpose, name)
    return [min(pool[start:end], key=draw_key) for start, end in pairwise(borders)]
