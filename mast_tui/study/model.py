"""The plan of a study, which is fixed so that its figures can be published."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from enum import StrEnum
from math import inf
from typing import Final

from msgspec import Struct, field

from mast_tui.counts import counted
from mast_tui.errors import MastError
from mast_tui.labels import WholeNumber

_HEXADECIMAL: Final = re.compile("(?:[0-9a-f]{2})*")


class InvalidStudy(MastError, ValueError):
    """A study that contradicts itself or has a value out of range."""


class OpenModes(StrEnum):
    """The verdict that finishing gives to modes without a verdict if spans were not read."""

    ASK = "ask"
    LEAVE = "leave"
    ABSENT = "absent"


class Membership(Struct, frozen=True):
    """The batches in which an annotator gets traces.

    Attributes:
        annotator: The annotator's name.
        first: The first batch, counted from 0.
        end: The batch after the last one; None while there is no last one.
        weight: The share of traces. An annotator with 2 gets twice as many as an annotator with 1.
    """

    annotator: str
    first: WholeNumber
    end: WholeNumber | None = None
    weight: float = 1.0

    def holds(self, batch_number: int) -> bool:
        """Return whether the annotator gets traces of a batch, counted from 0."""
        return self.first <= batch_number and (self.end is None or batch_number < self.end)


class Release(Struct, frozen=True, omit_defaults=True):
    """Unfinished traces that an annotator has given back to the others.

    Attributes:
        annotator: The annotator who gave them back.
        traces: Their ids.
        successors: The next annotator of each trace, "" for none. Studies of earlier versions have
            no successors: their traces go to the annotators who are present now.
    """

    annotator: str
    traces: tuple[str, ...]
    successors: tuple[str, ...] = ()


class Assignment(Struct, frozen=True):
    """The annotators of a trace that were chosen by name."""

    trace_id: str
    annotators: tuple[str, ...]


class Draw(Struct, frozen=True, omit_defaults=True):
    """The random draw of a batch.

    Attributes:
        batch_number: The batch, counted from 0.
        population: The number of traces from which the batch was drawn.
        strata: The properties by which the sample is stratified, if all chances are equal.
        seed: The seed of the draw.
        chances: The chances of the batch's traces in their order; empty if all are equal.
        judge: The judge whose uncertain verdicts determine the chances.
    """

    batch_number: WholeNumber = field(name="lot")
    population: WholeNumber = field(name="of")
    strata: tuple[str, ...] = field(name="by")
    seed: WholeNumber
    chances: tuple[float, ...] = ()
    judge: str = ""


# The hash is kept, since a study is the key of its cached plan, which is looked up for each trace.
class Study(Struct, frozen=True, cache_hash=True):
    """The protocol of a labelling study under one taxonomy (``id@version``).

    ``batches`` are the ids of the traces in the order of their batches. Traces are dealt out batch
    by batch, so that later traces change nothing for earlier ones. ``overlap`` is the share of each
    batch that ``per_trace`` annotators label; each other trace has one annotator. ``seed``
    determines all random choices.

    ``blind`` annotators work without judges' suggestions. ``withheld`` is the share of traces on
    which assisted annotators see no suggestions either, so that their effect can be measured.
    ``retests`` is the share of an annotator's traces to label again without seeing the first
    labels. ``open_modes`` is the answer on modes without a verdict at finishing.

    ``memberships`` are the batches of annotators who joined, left or have a weight; all others take
    part in all batches with the weight 1. ``releases`` are the traces that were given back, in
    order. ``assignments`` are the traces with fixed annotators. ``draws`` are the draws of sampled
    batches; other batches were added whole.

    In adjudication ``names_hidden`` hides the names of annotators until asked, ``judge_first``
    shows the judge before the decision, ``boundaries`` makes overlapping span ranges of one mode a
    conflict if their ends differ, and ``reasons`` asks for a reason with each decision.

    ``redact`` masks personal data and secrets in the texts of traces for everyone.
    ``redact_patterns`` are lines of further patterns (see ``redaction.engine.read_rules``).
    ``redact_key`` is the hexadecimal key of the masks, so that everyone sees the same masks.

    Raises:
        InvalidStudy: Two parts of the study contradict each other, or a value is not valid.
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
    redact: bool = False
    redact_patterns: tuple[str, ...] = ()
    redact_key: str = ""

    def __post_init__(self) -> None:
        """Check the study."""
        self._check_people()
        if _HEXADECIMAL.fullmatch(self.redact_key) is None:
            raise InvalidStudy("the key of the masks is not a hexadecimal number")
        self._check_assignments()
        self._check_draws()
        for name in ("overlap", "withheld", "retests"):
            share = getattr(self, name)
            if not 0 <= share <= 1:
                raise InvalidStudy(f"{name} must be from 0 to 1, not {share}")
        if self.blind and self.withheld:
            raise InvalidStudy(
                "a blind study shows no suggestions, so no share of traces can be without them"
            )

    def _check_people(self) -> None:
        """Raise ``InvalidStudy`` for missing or repeated names or wrong weights."""
        if not self.annotators:
            raise InvalidStudy("a study needs at least one annotator")
        for names in (self.annotators, self.adjudicators, self.traces):
            if len(set(names)) < len(names):
                twice = next(name for name in names if names.count(name) > 1)
                raise InvalidStudy(f"{twice!r} appears twice in the study")
        if not 1 <= self.per_trace <= len(self.annotators):
            raise InvalidStudy(
                f"each trace needs {counted(self.per_trace, 'annotator')}, the study has "
                f"{len(self.annotators)}: name more annotators"
            )
        self._check_former_annotators()
        if any(not 0 < item.weight < inf for item in self.memberships):
            raise InvalidStudy("an annotator's weight must be greater than 0")

    def _check_former_annotators(self) -> None:
        """Raise ``InvalidStudy`` if the list of annotators lacks a name that the study uses."""
        used_names = [item.annotator for item in self.memberships]
        for release in self.releases:
            if release.successors and len(release.successors) != len(release.traces):
                raise InvalidStudy(f"{release.annotator!r} gave back traces without successors")
            used_names += [release.annotator, *filter(None, release.successors)]
        used_names += [name for item in self.assignments for name in item.annotators]
        for name in used_names:
            if name not in self.annotators:
                raise InvalidStudy(
                    f"{name!r} has joined or left the study or has assigned traces, so the "
                    "list of annotators must keep the name: "
                    f"{','.join((*self.annotators, name))}"
                )

    def _check_draws(self) -> None:
        """Raise ``InvalidStudy`` if a draw does not fit its batch."""
        for draw in self.draws:
            traces = counted(draw.population, "trace")
            if not 0 <= draw.batch_number < len(self.batches) or draw.population < len(
                self.batches[draw.batch_number]
            ):
                raise InvalidStudy(f"batch {draw.batch_number + 1} cannot be a sample of {traces}")
            if draw.chances and (
                len(draw.chances) != len(self.batches[draw.batch_number])
                or not all(0 < chance <= 1 for chance in draw.chances)
            ):
                raise InvalidStudy(
                    f"each trace of batch {draw.batch_number + 1} needs a chance greater than 0 "
                    "and at most 1"
                )

    def _check_assignments(self) -> None:
        """Raise ``InvalidStudy`` for an assignment without a known trace or with wrong names."""
        study_ids = frozenset(self.traces)
        assigned_ids: set[str] = set()
        for assignment in self.assignments:
            trace_id = assignment.trace_id
            names = assignment.annotators
            if trace_id not in study_ids:
                raise InvalidStudy(f"trace {trace_id!r} is not in the study")
            if trace_id in assigned_ids or not names or len(set(names)) < len(names):
                raise InvalidStudy(f"trace {trace_id!r} has no annotator, or is assigned twice")
            assigned_ids.add(trace_id)

    def members(self, batch_number: int) -> tuple[str, ...]:
        """Return the annotators who get traces of a batch, counted from 0.

        Annotators without a membership get traces of every batch.
        """
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
        """Return an annotator's weight in a batch, in proportion to which traces are dealt.

        Args:
            annotator: The annotator's name.
            batch_number: The batch, counted from 0.
        """
        memberships = [
            membership
            for membership in self.memberships
            if membership.annotator == annotator and membership.holds(batch_number)
        ]
        return memberships[-1].weight if memberships else 1.0

    @property
    def participants(self) -> tuple[str, ...]:
        """The annotators and adjudicators, without repeats."""
        return tuple(dict.fromkeys((*self.annotators, *self.adjudicators)))

    def is_adjudicator(self, name: str) -> bool:
        """Return whether a person is to decide; anyone is if no adjudicators are named."""
        return not self.adjudicators or name in self.adjudicators

    def counts_decisions_of(self, name: str) -> bool:
        """Return whether a person's decisions count. Those of annotators do, too."""
        return self.is_adjudicator(name) or name in self.annotators

    @property
    def present(self) -> tuple[str, ...]:
        """The annotators who get traces of the next batch."""
        return self.members(len(self.batches))

    @property
    def chances_alike(self) -> bool:
        """True if each trace came into the study with the same chance.

        No batch is a sample, or each batch is a sample with equal chances from the traces that
        earlier batches have left.
        """
        draws = self._successive_draws
        return not self.draws or (draws is not None and not any(draw.chances for draw in draws))

    @property
    def _successive_draws(self) -> Sequence[Draw] | None:
        """The draws of all batches, each a sample of the traces that were left before it.

        None if a batch is no such sample.
        """
        draw_by_batch = {draw.batch_number: draw for draw in self.draws}
        draws: list[Draw] = []
        earlier_count = 0
        for batch_number, batch in enumerate(self.batches):
            draw = draw_by_batch.get(batch_number)
            if draw is None or (draws and draw.population != draws[0].population - earlier_count):
                return None
            draws.append(draw)
            earlier_count += len(batch)
        return draws

    def trace_weights(self, labelled: Collection[str]) -> dict[str, float] | None:
        """Return the number of traces of the population that each labelled trace represents.

        Each batch is drawn from the traces that earlier batches have left. A trace drawn with the
        chance p represents 1/p of these traces, so each batch gives an estimate of the population.
        The estimates are averaged batch by batch; an estimate with more labelled traces weighs
        more. The average has no bias for any weights (Des Raj 1956, Journal of the American
        Statistical Association 51:269-284).

        Args:
            labelled: The ids of the labelled traces, taken as a random part of each batch.

        Returns:
            The weights by trace id; None if the batches are not drawn from one population.
        """
        draws = self._successive_draws
        if not draws:
            return None
        weights: dict[str, float] = {}
        # The number of traces of its own batch that each labelled trace represents.
        batch_weights: dict[str, float] = {}
        for draw, batch in zip(draws, self.batches, strict=True):
            chances = draw.chances or (len(batch) / draw.population,) * len(batch)
            labelled_chances = {
                trace_id: chance
                for trace_id, chance in zip(batch, chances, strict=True)
                if trace_id in labelled
            }
            if not labelled_chances:
                continue
            batch_weight = len(batch) / len(labelled_chances)
            earlier_share = _share_of_earlier_estimate(
                len(weights), len(labelled_chances), population=draws[0].population
            )
            # In the estimate of this batch, earlier batches represent only their own traces.
            weights = {
                trace_id: earlier_share * weight + (1 - earlier_share) * batch_weights[trace_id]
                for trace_id, weight in weights.items()
            }
            weights |= {
                trace_id: (1 - earlier_share) * batch_weight / chance
                for trace_id, chance in labelled_chances.items()
            }
            batch_weights |= dict.fromkeys(labelled_chances, batch_weight)
        return weights

    @property
    def traces(self) -> tuple[str, ...]:
        """The ids of all traces of the study."""
        return tuple(trace_id for batch in self.batches for trace_id in batch)


def _share_of_earlier_estimate(
    earlier_labelled: int, labelled_in_batch: int, *, population: int
) -> float:
    """Return the weight of the earlier batches' estimate in its average with the next estimate.

    The arguments are numbers of traces.
    """
    if not earlier_labelled:
        return 0.0
    labelled_count = earlier_labelled + labelled_in_batch
    return (
        earlier_labelled
        * (population - labelled_count)
        / (labelled_count * (population - earlier_labelled))
    )


_TITLES_OF_FIXED_FIELDS: Final = {
    "per_trace": "the number of annotators per trace",
    "overlap": "the overlap",
    "seed": "the seed",
    "blind": "the visibility (blind or suggestions shown)",
    "withheld": "the share without suggestions",
    "open_modes": "the handling of open modes",
}
"""The titles of the fields that must not change once there are figures."""


def changes_to_figures(previous: Study, changed: Study) -> tuple[str, ...]:
    """Name the changed parts of a study on which figures depend.

    Figures do not depend on added batches and releases, annotators of later batches, adjudicators,
    retests, the rules of adjudication, the order of annotators, or the assignment of unfinished
    traces.

    Args:
        previous: The study before the change.
        changed: The study after the change.
    """
    changes = _membership_changes(previous, changed)
    changes += [
        title
        for field, title in _TITLES_OF_FIXED_FIELDS.items()
        if getattr(previous, field) != getattr(changed, field)
    ]
    if changed.batches[: len(previous.batches)] != previous.batches:
        changes.append("the traces added before")
    changed_ids = {assignment.trace_id for assignment in changed.assignments}
    if any(assignment.trace_id not in changed_ids for assignment in previous.assignments):
        changes.append("the assignments")
    if changed.releases[: len(previous.releases)] != previous.releases:
        changes.append("the released traces")
    return tuple(changes)


def _membership_changes(previous: Study, changed: Study) -> list[str]:
    """Name a change of the annotators of previous batches, or else of their weights."""
    # A study without batches already has annotators for its first batch.
    batch_numbers = range(max(1, len(previous.batches)))
    if any(
        set(previous.members(number)) != set(changed.members(number)) for number in batch_numbers
    ):
        return ["the annotators"]
    if any(
        previous.weight(name, number) != changed.weight(name, number)
        for number in batch_numbers
        for name in previous.members(number)
    ):
        return ["the annotators' weights"]
    return []
