"""The annotators of each trace and their order, which follow from the study alone.

Traces are dealt out batch by batch. A batch depends on earlier batches and never on later ones, so
that more traces change nothing for those of the study. Shares are counted over all batches so far,
so that the whole study has its share even if traces are added one by one. Random draws follow from
a seed and texts alone, so that they are the same on every machine.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from itertools import accumulate, combinations, pairwise
from math import floor
from typing import Final

from mast_tui.study.model import Study

_COPY_SUFFIX: Final = re.compile(r"(?:~\d+)+\Z")


def random_number(seed: int, *texts: str) -> int:
    """Return a pseudo-random number from 0 to 2^64 − 1 that follows from a seed and texts."""
    text = "\0".join((str(seed), *texts)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big")


def original_id(trace_id: str) -> str:
    """Return the id of a trace for draws: without a suffix ``~2``, which a merge may add."""
    return _COPY_SUFFIX.sub("", trace_id)


def rounded(share: float, count: int) -> int:
    """Return a share of a count, rounded to the nearest whole number; a half is rounded up.

    Args:
        share: The share between 0 and 1, taken as a decimal number: 0.145 of 100 is 14.5, not less.
        count: The count.
    """
    exact = Decimal(str(share)) * count
    return int(exact.quantize(Decimal(1), rounding=ROUND_HALF_UP))


def _draw_key(seed: int, *texts: str) -> Callable[[str], tuple[int, str]]:
    """Return a sort key for ids of traces: a random order that follows from the seed and texts."""
    # The ids before a merge, and the word "lot" for a batch, keep earlier draws reproducible.
    return lambda trace_id: (random_number(seed, *texts, original_id(trace_id)), trace_id)


def random_sample(ids: Iterable[str], seed: int, n: int) -> tuple[str, ...]:
    """Return ``n`` of the ids, each once, in the order in which they are drawn.

    A larger sample of the same ids begins with the smaller one. A suffix that a merge has added to
    an id does not change the draw.

    Args:
        ids: The ids.
        seed: The seed of the draw.
        n: The number of ids.
    """
    return tuple(sorted(dict.fromkeys(ids), key=_draw_key(seed, "sample"))[:n])


def stratified_sample(
    strata: Mapping[str, Sequence[str]], n: int, seed: int, *, batch_number: int = 0
) -> tuple[str, ...]:
    """Draw traces with equal chances; each stratum gets its share, at most one trace more or less.

    It is a systematic sample: the N traces are sorted by stratum, in random order within each. From
    a random start every (N/n)th is drawn, so that each has the chance n/N (Madow and Madow 1944,
    Annals of Mathematical Statistics 15:1-24).

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
    # Positions are counted in nths of a trace, so that a step of N/n traces is a whole number: N.
    indices = [(start + step * len(frame)) // n for step in range(n)]
    return tuple(sorted(frame[index] for index in indices))


def weighted_sample(
    sizes: Mapping[str, float], n: int, seed: int, *, batch_number: int = 0
) -> dict[str, float]:
    """Draw traces with chances in proportion to a size.

    It is a systematic sample with unequal chances: the traces lie on a line in random order, each
    as long as its chance. From a random start, the trace at each step of length 1 is drawn (Madow
    1949, Annals of Mathematical Statistics 20:333-354).

    Args:
        sizes: The size of each trace by id, above 0.
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
    # The chances add up to n except for rounding, which must not leave out a trace.
    ends[-1] = float(round(ends[-1]))
    # A trace is drawn if ``start`` plus a whole number lies on its part of the line.
    sample = [
        trace_id
        for trace_id, (range_start, range_end) in zip(frame, pairwise(ends), strict=True)
        if floor(range_end - start) > floor(range_start - start)
    ]
    return {trace_id: chances[trace_id] for trace_id in sorted(sample)}


def _inclusion_chances(sizes: Mapping[str, float], n: int) -> dict[str, float]:
    """Return for each trace a chance in proportion to its size; the chances add up to ``n``.

    A trace whose chance would exceed 1 gets the chance 1, and the others share the remaining draws.
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
"""The number of traces that are finished between a trace and its retest, if there are as many."""


def assigned(study: Study, annotator: str) -> tuple[str, ...]:
    """Return the ids of an annotator's traces in the annotator's own order.

    Traces of earlier batches come first. Empty if the person is no annotator of the study.

    Args:
        study: The study.
        annotator: The annotator's name.
    """
    return _plan_of_study(study).share_of(annotator).assigned


def annotators_of(study: Study, trace_id: str) -> tuple[str, ...]:
    """Return the annotators of a trace, sorted by name; none if it is not in the study.

    Args:
        study: The study.
        trace_id: The trace's id.
    """
    return _plan_of_study(study).annotators.get(trace_id, ())


def overlap_traces(study: Study) -> tuple[str, ...]:
    """Return the ids of the traces that several annotators label, in the order of the study."""
    return _plan_of_study(study).overlap


def withheld_traces(study: Study, annotator: str) -> frozenset[str]:
    """Return the ids of the traces on which the study hides suggestions from a person.

    For an annotator these are a share of the annotator's traces. For a person without a part in the
    study they are all traces on which suggestions are hidden from any annotator.

    Args:
        study: The study.
        annotator: The person's name.
    """
    plan = _plan_of_study(study)
    if annotator in study.participants:
        return plan.share_of(annotator).withheld
    return frozenset[str]().union(*(share.withheld for share in plan.shares.values()))


def retest_traces(study: Study, annotator: str) -> tuple[str, ...]:
    """Return the ids of an annotator's traces for retests, in the annotator's order.

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
    """Return the ids of the traces whose retest is due, the earliest finished first.

    A trace is due when ``RETEST_GAP`` others were finished after it. If all traces of the annotator
    are finished, one other is enough.

    Args:
        study: The study.
        annotator: The annotator's name.
        finished_in_order: The annotator's finished traces, the earliest first. Repeats do not
            count.
        retested: The traces that were labelled again already.
    """
    finished = list(dict.fromkeys(finished_in_order))
    all_finished = set(assigned(study, annotator)) <= set(finished)
    gap = 1 if all_finished else RETEST_GAP
    planned = set(retest_traces(study, annotator)).difference(retested)
    old_enough = finished[: max(len(finished) - gap, 0)]
    return tuple(trace_id for trace_id in old_enough if trace_id in planned)


@dataclass(frozen=True, slots=True)
class _Share:
    """One annotator's share of a study.

    Attributes:
        assigned: The annotator's traces, in the annotator's order.
        withheld: Those of them on which suggestions are hidden.
        retests: Those of them that the annotator labels twice.
    """

    assigned: tuple[str, ...] = ()
    withheld: frozenset[str] = frozenset()
    retests: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Plan:
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
        """Return an annotator's share; it is empty for other people."""
        return self.shares.get(annotator, _Share())


@lru_cache(maxsize=4)
def _plan_of_study(study: Study) -> _Plan:
    """Return the plan of a study.

    It says who labels which traces, which of them with hidden suggestions, and which of them twice.
    The batches are dealt out one by one. Then traces that annotators gave back get new annotators.
    """
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
    for name, trace_ids in dealing.deal_released_traces().items():
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
    """Return an annotator's share: the traces of several portions, without those given back.

    A portion is the annotator's part of one batch, or the traces that others gave back. The traces
    without suggestions and those for retests are drawn from each portion by itself. ``annotators``
    are the final annotators of each trace.
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
    """Return the traces of a batch that several annotators label.

    Their share is rounded over all batches so far, so ``earlier_count`` is the number of traces in
    earlier batches.
    """
    if study.per_trace == 1:
        return frozenset()
    count = _share_of_batch(study.overlap, len(batch), earlier_count)
    # The order is random, but depends on the ids alone, so it is the same in every workspace.
    indices = sorted(
        range(len(batch)),
        key=lambda index: (
            random_number(study.seed, "overlap", original_id(batch[index])),
            index,
        ),
    )
    return frozenset(batch[index] for index in indices[:count])


def _share_of_batch(share: float, count: int, earlier_count: int) -> int:
    """Return how many traces of a batch complete a share of all traces so far."""
    return rounded(share, earlier_count + count) - rounded(share, earlier_count)


class _Dealing:
    """Deals traces out to annotators.

    A trace goes to the annotators with the fewest traces of its kind in the batch for their weight.
    Among equal ones it goes to those who share the fewest traces, then to those with the fewest
    traces in all, then by lot.
    """

    def __init__(self, study: Study) -> None:
        self.annotators: dict[str, tuple[str, ...]] = {}
        """The names of the annotators of each trace, sorted, by trace id."""
        self._study = study
        self._meeting_counts: Counter[tuple[str, str]] = Counter()
        """The number of traces that two annotators share."""
        self._total_counts: Counter[str] = Counter()
        """The number of traces of each annotator."""
        self._fixed_annotators = {
            assignment.trace_id: tuple(sorted(assignment.annotators))
            for assignment in study.assignments
        }

    def deal(self, batch: Sequence[str], overlap_ids: Collection[str], batch_number: int) -> None:
        """Deal out the traces of a batch to its annotators.

        Traces whose annotators are fixed come first, so that the other traces make up for
        differences between annotators.

        Args:
            batch: The ids of the traces of a batch.
            overlap_ids: The ids of the traces that several annotators label.
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
        """Check whether several annotators label a trace.

        Args:
            trace_id: The trace's id.
            overlap_ids: The ids of the traces that several annotators label.
        """
        fixed = self._fixed_annotators.get(trace_id)
        return trace_id in overlap_ids if fixed is None else len(fixed) > 1

    def deal_released_traces(self) -> Mapping[str, list[str]]:
        """Assign traces that were given back to new annotators; return them by new annotator.

        A trace goes to the annotator with the fewest traces in proportion to the weight. If every
        annotator has already had it, no one replaces the annotator who gave it back.
        """
        received: dict[str, list[str]] = defaultdict(list)
        earlier_annotators: dict[str, set[str]] = defaultdict(set)
        for release in self._study.releases:
            for trace_id in release.traces:
                names = self.annotators.get(trace_id, ())
                if release.annotator not in names:
                    continue
                earlier_annotators[trace_id].update(names)
                self._total_counts[release.annotator] -= 1
                new_names = {*names} - {release.annotator}
                successor = self._successor(trace_id, earlier_annotators[trace_id])
                if successor is not None:
                    received[successor].append(trace_id)
                    self._total_counts[successor] += 1
                    new_names.add(successor)
                self.annotators[trace_id] = tuple(sorted(new_names))
        return received

    def _successor(self, trace_id: str, earlier_names: Collection[str]) -> str | None:
        """Return the annotator who gets a trace that was given back; None if all had it before."""
        candidates = [name for name in self._study.present if name not in earlier_names]
        draws = self._draws_of_annotators(trace_id, candidates)
        batch_number = len(self._study.batches)

        def rank(name: str) -> tuple[float, int, str]:
            load = (self._total_counts[name] + 1) / self._study.weight(name, batch_number)
            return load, draws[name], name

        return min(candidates, key=rank, default=None)

    def _draws_of_annotators(self, trace_id: str, people: Iterable[str]) -> dict[str, int]:
        """Return a pseudo-random number for each person, which decides between equal ones."""
        root = original_id(trace_id)
        return {name: random_number(self._study.seed, "deal", root, name) for name in people}

    def _chosen_annotators(
        self,
        trace_id: str,
        annotator_count: int,
        batch_counts: Counter[str],
        weights: Mapping[str, float],
    ) -> tuple[str, ...]:
        """Choose the annotators of a trace, and return their names sorted.

        ``weights`` has all annotators of the batch. ``batch_counts`` is the number of traces of the
        batch that each of them has already.
        """
        draws = self._draws_of_annotators(trace_id, weights)
        chosen: list[str] = []

        def rank(name: str) -> tuple[float, int, float, int, str]:
            """Return the sort key of an annotator; the lowest key is chosen next."""
            # Pairs that have met least come first, so that agreement is measured between all.
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
        """Record the annotators of a trace, and count it for each of them and each pair."""
        batch_counts.update(names)
        self._total_counts.update(names)
        self._meeting_counts.update(combinations(names, 2))
        self.annotators[trace_id] = names


def _order_of_annotator(study: Study, name: str, ids: Sequence[str]) -> list[str]:
    """Return ids in the order in which an annotator gets them: random, by the study's seed."""
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

    The traces are divided into equal parts, and one is drawn from each part, because annotators
    learn and tire with time. If possible, ``traces_after`` others follow each drawn trace.
    ``earlier_count`` is the number of the annotator's traces in earlier batches.
    """
    count = _share_of_batch(share, len(ids), earlier_count)
    pool = ids[: max(len(ids) - traces_after, count)]
    borders = [len(pool) * part // count for part in range(count + 1)] if count else []
    draw_key = _draw_key(study.seed, purpose, name)
    return [min(pool[start:end], key=draw_key) for start, end in pairwise(borders)]
