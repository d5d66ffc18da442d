"""What a study fixes once, so that its figures can be published."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import NamedTuple

from mast_tui.counts import counted
from mast_tui.errors import MastError


class InvalidStudy(MastError, ValueError):
    """A protocol that cannot be kept."""


class OpenModes(StrEnum):
    """What finishing does with modes without a verdict where spans were not read."""

    ASK = "ask"
    LEAVE = "leave"
    ABSENT = "absent"


class Membership(NamedTuple):
    """An annotator is dealt traces of the lots from ``first`` on, counted from 0, up to ``end``
    (exclusive); None while there is no end. With a ``weight`` of 2 they get twice as many as
    somebody with 1."""

    annotator: str
    first: int
    end: int | None = None
    weight: float = 1.0

    def holds(self, lot: int) -> bool:
        """Whether it is for a lot, counted from 0."""
        return self.first <= lot and (self.end is None or lot < self.end)


class Release(NamedTuple):
    """Traces that an annotator has not finished and gives back: others label them."""

    annotator: str
    traces: tuple[str, ...]


class Assignment(NamedTuple):
    """Who labels a trace, where that was fixed by name and not dealt."""

    trace_id: str
    annotators: tuple[str, ...]


class Draw(NamedTuple):
    """The traces of a lot, counted from 0, were drawn from ``of`` traces, by systematic sampling.

    Each had the same chance, and they are spread over the values of ``by``; or each had its own of
    the ``chances``, in the order of the lot's traces, by how much what ``judge`` says of it leaves
    in doubt.
    """

    lot: int
    of: int
    by: tuple[str, ...]
    seed: int
    chances: tuple[float, ...] = ()
    judge: str = ""


@dataclass(frozen=True, slots=True)
class Study:
    """The protocol of a labelling study under one taxonomy (``id@version``).

    ``batches`` are the traces by id, in the lots in which they were taken in: who labels what is
    dealt out lot by lot, so that later traces change nothing for earlier ones. ``per_trace``
    annotators label each trace of the ``overlap``, a share of every lot; each other trace has one.
    ``seed`` decides who, which and in what order.

    ``blind`` says whether annotators work without judges' suggestions; assisted, of a share of
    ``withheld`` traces they see none all the same, so that the pull of suggestions can be measured.
    Of a share of ``retests`` an annotator's finished traces come back to be labelled once more
    without sight of the first time. ``open_modes`` fixes the answer at finishing.

    ``memberships`` tell of those annotators who joined or left when; one of whom they tell nothing
    is there all the time, with a weight of 1. ``releases`` are what was given back, in the order in
    which it was. ``assignments`` are of traces that are not dealt, as it is fixed who labels them.
    ``draws`` tell of those lots that are samples; every other one was taken in whole.

    In adjudication ``names_hidden`` shows sides without names until asked, ``judge_first`` shows
    the judge before the decision too, ``boundaries`` makes overlapping places of one mode
    with different ends a conflict, and ``reasons`` asks for a reason at each decision. Raises
    ``InvalidStudy`` for a protocol that cannot be kept.
    """

    taxonomy: str
    annotators: tuple[str, ...]
    adjudicators: tuple[str, ...] = ()
    batches: tuple[tuple[str, ...], ...] = ()
    per_trace: int = 2
    overlap: float = 1.0
    seed: int = 0
    blind: bool = True
    withheld: float = 0.0
    retests: float = 0.0
    open_modes: OpenModes = OpenModes.ASK
    names_hidden: bool = True
    judge_first: bool = False
    boundaries: bool = False
    reasons: bool = False
    memberships: tuple[Membership, ...] = ()
    releases: tuple[Release, ...] = ()
    draws: tuple[Draw, ...] = ()
    assignments: tuple[Assignment, ...] = ()

    def __post_init__(self) -> None:
        if not self.annotators:
            raise InvalidStudy("a study has at least one annotator")
        for names in (self.annotators, self.adjudicators, self.traces):
            if len(set(names)) < len(names):
                twice = next(name for name in names if names.count(name) > 1)
                raise InvalidStudy(f"{twice!r} stands in the study twice")
        if not 1 <= self.per_trace <= len(self.annotators):
            raise InvalidStudy(
                f"{counted(self.per_trace, 'annotator')} a trace need as many in the study, which "
                f"has {len(self.annotators)}"
            )
        told = [one.annotator for one in self.memberships]
        told += [one.annotator for one in self.releases]
        told += [name for one in self.assignments for name in one.annotators]
        for name in told:
            if name not in self.annotators:
                raise InvalidStudy(f"{name!r} is no annotator of the study")
        if any(not 0 < one.weight < inf for one in self.memberships):
            raise InvalidStudy("an annotator's weight is a number over 0")
        self._check_assignments()
        self._check_draws()
        for name in ("overlap", "withheld", "retests"):
            share = getattr(self, name)
            if not 0 <= share <= 1:
                raise InvalidStudy(f"{name} is a share between 0 and 1, not {share}")
        if self.blind and self.withheld:
            raise InvalidStudy("a blind study shows no suggestions at all, so no share is without")

    def _check_draws(self) -> None:
        for draw in self.draws:
            traces = counted(draw.of, "trace")
            if not 0 <= draw.lot < len(self.batches) or draw.of < len(self.batches[draw.lot]):
                raise InvalidStudy(f"lot {draw.lot + 1} cannot be a sample of {traces}")
            if draw.chances and (
                len(draw.chances) != len(self.batches[draw.lot])
                or not all(0 < chance <= 1 for chance in draw.chances)
            ):
                raise InvalidStudy(f"each trace of lot {draw.lot + 1} has a chance over 0, up to 1")

    def _check_assignments(self) -> None:
        there = frozenset(self.traces)
        seen: set[str] = set()
        for trace_id, names in self.assignments:
            if trace_id not in there:
                raise InvalidStudy(f"trace {trace_id!r} is not in the study")
            if trace_id in seen or not names or len(set(names)) < len(names):
                raise InvalidStudy(f"who labels trace {trace_id!r} is said twice, or not at all")
            seen.add(trace_id)

    def members(self, lot: int) -> tuple[str, ...]:
        """Those who are dealt traces of a lot, counted from 0."""
        told = {one.annotator for one in self.memberships}
        there = {one.annotator for one in self.memberships if one.holds(lot)}
        return tuple(name for name in self.annotators if name in there or name not in told)

    def weight(self, annotator: str, lot: int) -> float:
        """How much of a lot, counted from 0, an annotator is dealt beside the others."""
        own = [x for x in self.memberships if x.annotator == annotator and x.holds(lot)]
        return own[-1].weight if own else 1.0

    @property
    def participants(self) -> tuple[str, ...]:
        """The annotators and adjudicators, each named once."""
        return tuple(dict.fromkeys((*self.annotators, *self.adjudicators)))

    @property
    def present(self) -> tuple[str, ...]:
        """Those who are there now, and are dealt the traces to come."""
        return self.members(len(self.batches))

    @property
    def chances_alike(self) -> bool:
        """Whether each trace came into the study with the same chance.

        That is so where all lots were taken in whole, and where they are samples of the same
        traces, a later one of those that the earlier had left.
        """
        if not self.draws:
            return True
        lots = [len(batch) for batch in self.batches]
        of = {draw.lot: draw.of for draw in self.draws if not draw.chances}
        return all(of.get(lot) == of.get(0, 0) - sum(lots[:lot]) for lot in range(len(lots)))

    def trace_weights(self, labelled: Collection[str]) -> dict[str, float] | None:
        """Tell how many traces of the whole each labelled trace stands for.

        A lot speaks, by one over its chances, for what was left when it was drawn; beside the
        traces of the lots before it that is the whole. What the lots before say by themselves, and
        what they say with it, are joined in proportion to the traces that either rests on, which
        has no bias whatever that proportion is (Des Raj 1956, Journal of the American Statistical
        Association 51:269-284). Where all chances are alike, all weights are.

        Args:
            labelled: The traces that are counted; of each lot they are taken for a random part.

        Returns:
            The weights by trace id; None where the lots are no samples of one whole.
        """
        draws = {draw.lot: draw for draw in self.draws}
        if 0 not in draws:
            return None
        whole, before = draws[0].of, 0
        found: dict[str, float] = {}
        own: dict[str, float] = {}
        for lot, batch in enumerate(self.batches):
            draw = draws.get(lot)
            if draw is None or draw.of != whole - before:
                return None
            before += len(batch)
            chances = draw.chances or (len(batch) / draw.of,) * len(batch)
            done = {one: c for one, c in zip(batch, chances, strict=True) if one in labelled}
            if not done:
                continue
            had, n, each = len(found), len(found) + len(done), len(batch) / len(done)
            part = had * (whole - n) / (n * (whole - had)) if had else 0.0
            found = {one: part * weight + (1 - part) * own[one] for one, weight in found.items()}
            found |= {one: (1 - part) * each / chance for one, chance in done.items()}
            own |= dict.fromkeys(done, each)
        return found

    @property
    def traces(self) -> tuple[str, ...]:
        """The ids of all traces of the study."""
        return tuple(trace_id for batch in self.batches for trace_id in batch)


def changes_to_figures(before: Study, after: Study) -> tuple[str, ...]:
    """What of a protocol is changed that figures rest on, in words; nothing where all may change.

    Taking in traces as a further lot, who is there from the next lot on, what is given back,
    adjudicators, retests and how adjudication goes may change. The order in which annotators are
    named says nothing.
    """
    found = []
    lots = range(len(before.batches)) or range(1)
    if any(set(before.members(lot)) != set(after.members(lot)) for lot in lots):
        found.append("the annotators")
    elif any(
        before.weight(name, lot) != after.weight(name, lot)
        for lot in lots
        for name in before.members(lot)
    ):
        found.append("the annotators' weights")
    for field, words in (
        ("per_trace", "how many label a trace"),
        ("overlap", "the overlap"),
        ("seed", "the seed"),
        ("blind", "blind or suggestions shown"),
        ("withheld", "the share without suggestions"),
        ("open_modes", "what becomes of open modes"),
    ):
        if getattr(before, field) != getattr(after, field):
            found.append(words)
    if after.batches[: len(before.batches)] != before.batches:
        found.append("the traces taken in")
    fixed, there = len(before.assignments), frozenset(before.traces)
    if after.assignments[:fixed] != before.assignments or any(
        one.trace_id in there for one in after.assignments[fixed:]
    ):
        found.append("who labels which trace")
    if after.releases[: len(before.releases)] != before.releases:
        found.append("the traces given back")
    return tuple(found)
