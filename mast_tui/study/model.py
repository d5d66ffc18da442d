"""The plan of a study, which is fixed once so that its figures can be published."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from math import inf

from msgspec import Struct

from mast_tui.counts import counted
from mast_tui.errors import MastError
from mast_tui.labels import WholeNumber


class InvalidStudy(MastError, ValueError):
    """A protocol that cannot be kept."""


class OpenModes(StrEnum):
    """The verdict that finishing gives to open modes where spans were not read."""

    ASK = "ask"
    LEAVE = "leave"
    ABSENT = "absent"


class Membership(Struct, frozen=True):
    """An annotator is dealt traces of the batches from ``first`` on, counted from 0, up to ``end``
    (exclusive); None while there is no end. With a ``weight`` of 2 they get twice as many as
    somebody with 1."""

    annotator: str
    first: WholeNumber
    end: WholeNumber | None = None
    weight: float = 1.0

    def holds(self, batch_number: int) -> bool:
        """Return whether it is valid for a batch, counted from 0."""
        return self.first <= batch_number and (self.end is None or batch_number < self.end)


class Release(Struct, frozen=True):
    """Traces that an annotator has not finished and gives back: others label them."""

    annotator: str
    traces: tuple[str, ...]


class Assignment(Struct, frozen=True):
    """The annotators of a trace that are fixed by name and not dealt."""

    trace_id: str
    annotators: tuple[str, ...]


class Draw(Struct, frozen=True, omit_defaults=True):
    """The systematic sample of ``of`` traces that a batch is; ``lot`` counts batches from 0.

    Either each trace had the same chance, and the sample is spread over the values of ``by``; or
    each had its own of the ``chances``, in the order of the batch's traces. Those follow from the
    doubt that the labels of ``judge`` leave.
    """

    lot: WholeNumber
    of: WholeNumber
    by: tuple[str, ...]
    seed: WholeNumber
    chances: tuple[float, ...] = ()
    judge: str = ""


class Study(Struct, frozen=True):
    """The protocol of a labelling study under one taxonomy (``id@version``).

    ``batches`` are the traces by id, in the batches in which they were added. Traces are dealt out
    batch by batch, so that later traces change nothing for earlier ones. ``per_trace`` annotators
    label each trace of the ``overlap``, a share of every batch; each other trace has one annotator.
    ``seed`` decides who labels which traces, and in what order.

    ``blind`` says whether annotators work without judges' suggestions. Assisted annotators see none
    on a share of ``withheld`` traces either, so that the effect of suggestions can be measured.
    ``retests`` is the share of an annotator's finished traces that they label once more without
    seeing their first labels. ``open_modes`` fixes the answer at finishing.

    ``memberships`` are the times of annotators who joined or left; all others take part all the
    time, with a weight of 1. ``releases`` are the traces that were given back, in their order.
    ``assignments`` are the traces that are not dealt, because their annotators are fixed.
    ``draws`` are the batches that are samples; every other batch was added whole.

    In adjudication ``names_hidden`` shows sides without names until asked, ``judge_first`` shows
    the judge before the decision too, ``boundaries`` makes overlapping places of one mode
    with different ends a conflict, and ``reasons`` asks for a reason at each decision. Raises
    ``InvalidStudy`` for a protocol that cannot be kept.
    """

    taxonomy: str
    annotators: tuple[str, ...]
    adjudicators: tuple[str, ...] = ()
    batches: tuple[tuple[str, ...], ...] = ()
    per_trace: WholeNumber = 2
    overlap: float = 1.0
    seed: WholeNumber = 0
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
        for assignment in self.assignments:
            trace_id = assignment.trace_id
            names = assignment.annotators
            if trace_id not in known_ids:
                raise InvalidStudy(f"trace {trace_id!r} is not in the study")
            if trace_id in seen or not names or len(set(names)) < len(names):
                raise InvalidStudy(f"who labels trace {trace_id!r} is said twice, or not at all")
            seen.add(trace_id)

    def members(self, batch_number: int) -> tuple[str, ...]:
        """Return the annotators who are dealt traces of a batch, counted from 0."""
        with_membership = {membership.annotator for membership in self.memberships}
        active = {
            membership.annotator
            for membership in self.memberships
            if membership.holds(batch_number)
        }
        return tuple(
            name for name in self.annotators if name in active or name not in with_membership
        )

    def weight(self, annotator: str, batch_number: int) -> float:
        """Return an annotator's weight in the dealing of a batch, counted from 0.

        Args:
            annotator: The annotator's name.
            batch_number: The batch, counted from 0.
        """
        memberships = [
            x for x in self.memberships if x.annotator == annotator and x.holds(batch_number)
        ]
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

        That is so where all batches were taken in whole, and where they are samples of the same
        traces, a later one of those that the earlier had left.
        """
        if not self.draws:
            return True
        batch_sizes = [len(batch) for batch in self.batches]
        sizes = {draw.lot: draw.of for draw in self.draws if not draw.chances}
        return all(
            sizes.get(number) == sizes.get(0, 0) - sum(batch_sizes[:number])
            for number in range(len(batch_sizes))
        )

    def trace_weights(self, labelled: Collection[str]) -> dict[str, float] | None:
        """Return how many traces of the whole each labelled trace represents.

        A batch represents, by one over its chances, the traces that were left when it was drawn;
        with the traces of earlier batches these are the whole. The estimate of the earlier batches
        alone and the estimate with the batch are joined in proportion to the traces on which each
        rests. This has no bias for any proportion (Des Raj 1956, Journal of the American
        Statistical Association 51:269-284). If all chances are equal, all weights are equal.

        Args:
            labelled: The traces that are counted; of each batch they are taken for a random part.

        Returns:
            The weights by trace id; None where the batches are no samples of one whole.
        """
        draws = {draw.lot: draw for draw in self.draws}
        if 0 not in draws:
            return None
        whole = draws[0].of
        earlier = 0
        weights: dict[str, float] = {}
        batch_weights: dict[str, float] = {}
        for number, batch in enumerate(self.batches):
            draw = draws.get(number)
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

    Taking in traces as a further batch, who is there from the next batch on, what is given back,
    adjudicators, retests and how adjudication goes may change. The order in which annotators are
    named says nothing.

    Args:
        old: The study before.
        after: The study afterwards.
    """
    changes = []
    numbers = range(len(old.batches)) or range(1)
    if any(set(old.members(number)) != set(after.members(number)) for number in numbers):
        changes.append("the annotators")
    elif any(
        old.weight(name, number) != after.weight(name, number)
        for number in numbers
        for name in old.members(number)
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
