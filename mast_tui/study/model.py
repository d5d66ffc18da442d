"""The plan of a study, which is fixed once so that its figures can be published."""

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
    """The verdict that finishing gives to open modes where spans were not read."""

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
        """Return whether it is valid for a batch, counted from 0."""
        return self.first <= lot and (self.end is None or lot < self.end)


class Release(NamedTuple):
    """Traces that an annotator has not finished and gives back: others label them."""

    annotator: str
    traces: tuple[str, ...]


class Assignment(NamedTuple):
    """The annotators of a trace that are fixed by name and not dealt."""

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
        used_names = [item.annotator for item in self.memberships]
        used_names += [item.annotator for item in self.releases]
        used_names += [name for item in self.assignments for name in item.annotators]
        for name in used_names:
            if name not in self.annotators:
                raise InvalidStudy(f"{name!r} is no annotator of the study")
        if any(not 0 < item.weight < inf for item in self.memberships):
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
        known_ids = frozenset(self.traces)
        seen: set[str] = set()
        for trace_id, names in self.assignments:
            if trace_id not in known_ids:
                raise InvalidStudy(f"trace {trace_id!r} is not in the study")
            if trace_id in seen or not names or len(set(names)) < len(names):
                raise InvalidStudy(f"who labels trace {trace_id!r} is said twice, or not at all")
            seen.add(trace_id)

    def members(self, lot: int) -> tuple[str, ...]:
        """Return the annotators who are dealt traces of a batch, counted from 0."""
        with_membership = {membership.annotator for membership in self.memberships}
        active = {membership.annotator for membership in self.memberships if membership.holds(lot)}
        return tuple(
            name for name in self.annotators if name in active or name not in with_membership
        )

    def weight(self, annotator: str, lot: int) -> float:
        """Return an annotator's weight in the dealing of a batch, counted from 0.

        Args:
            annotator: The annotator's name.
            lot: The batch, counted from 0.
        """
        memberships = [x for x in self.memberships if x.annotator == annotator and x.holds(lot)]
        return memberships[-1].weight if memberships else 1.0

    @property
    def participants(self) -> tuple[str, ...]:
        """The annotators and adjudicators, each named once."""
        return tuple(dict.fromkeys((*self.annotators, *self.adjudicators)))

    @property
    def present(self) -> tuple[str, ...]:
        """The annotators who are dealt the traces of the next batch."""
        return self.members(len(self.batches))

    @property
    def chances_alike(self) -> bool:
        """True if each trace came into the study with the same chance.

        That is so where all lots were taken in whole, and where they are samples of the same
        traces, a later one of those that the earlier had left.
        """
        if not self.draws:
            return True
        lots = [len(batch) for batch in self.batches]
        sizes = {draw.lot: draw.of for draw in self.draws if not draw.chances}
        return all(sizes.get(lot) == sizes.get(0, 0) - sum(lots[:lot]) for lot in range(len(lots)))

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
        whole = draws[0].of
        earlier = 0
        weights: dict[str, float] = {}
        batch_weights: dict[str, float] = {}
        for lot, batch in enumerate(self.batches):
            draw = draws.get(lot)
            if draw is None or draw.of != whole - earlier:
                return None
            earlier += len(batch)
            chances = draw.chances or (len(batch) / draw.of,) * len(batch)
            done = {
                trace_id: c
                for trace_id, c in zip(batch, chances, strict=True)
                if trace_id in labelled
            }
            if not done:
                continue
            had = len(weights)
            n = had + len(done)
            each = len(batch) / len(done)
            part = had * (whole - n) / (n * (whole - had)) if had else 0.0
            weights = {
                trace_id: part * weight + (1 - part) * batch_weights[trace_id]
                for trace_id, weight in weights.items()
            }
            weights |= {trace_id: (1 - part) * each / chance for trace_id, chance in done.items()}
            batch_weights |= dict.fromkeys(done, each)
        return weights

    @property
    def traces(self) -> tuple[str, ...]:
        """The ids of all traces of the study."""
        return tuple(trace_id for batch in self.batches for trace_id in batch)


def changes_to_figures(old: Study, after: Study) -> tuple[str, ...]:
    """Return the changed parts of a protocol on which figures rest, in words.

    Taking in traces as a further lot, who is there from the next lot on, what is given back,
    adjudicators, retests and how adjudication goes may change. The order in which annotators are
    named says nothing.

    Args:
        old: The study before.
        after: The study afterwards.
    """
    changes = []
    lots = range(len(old.batches)) or range(1)
    if any(set(old.members(lot)) != set(after.members(lot)) for lot in lots):
        changes.append("the annotators")
    elif any(
        old.weight(name, lot) != after.weight(name, lot)
        for lot in lots
        for name in old.members(lot)
    ):
        changes.append("the annotators' weights")
    for field, title in (
        ("per_trace", "how many label a trace"),
        ("overlap", "the overlap"),
        ("seed", "the seed"),
        ("blind", "blind or suggestions shown"),
        ("withheld", "the share without suggestions"),
        ("open_modes", "what becomes of open modes"),
    ):
        if getattr(old, field) != getattr(after, field):
            changes.append(title)
    if after.batches[: len(old.batches)] != old.batches:
        changes.append("the traces taken in")
    fixed = len(old.assignments)
    known_ids = frozenset(old.traces)
    if after.assignments[:fixed] != old.assignments or any(
        assignment.trace_id in known_ids for assignment in after.assignments[fixed:]
    ):
        changes.append("who labels which trace")
    if after.releases[: len(old.releases)] != old.releases:
        changes.append("the traces given back")
    return tuple(changes)
