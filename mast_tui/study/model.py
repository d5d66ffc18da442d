"""What a study fixes once, so that its figures can be published."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

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
    (exclusive); None while there is no end."""

    annotator: str
    first: int
    end: int | None = None


class Release(NamedTuple):
    """Traces that an annotator has not finished and gives back: others label them."""

    annotator: str
    traces: tuple[str, ...]


class Draw(NamedTuple):
    """The traces of a lot, counted from 0, were drawn from ``of`` traces, each with the same
    chance, by systematic sampling over the values of ``by``."""

    lot: int
    of: int
    by: tuple[str, ...]
    seed: int


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
    is there all the time. ``releases`` are what was given back, in the order in which it was.
    ``draws`` tell of those lots that are samples; every other one was taken in whole.

    In adjudication ``names_hidden`` shows sides without names until asked, ``judge_first`` shows
    the judge before the decision too, ``boundaries`` makes different places of one mode a
    conflict, and ``reasons`` asks for a reason at each decision. Raises ``InvalidStudy`` for a
    protocol that cannot be kept.
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

    def __post_init__(self) -> None:
        if not self.annotators:
            raise InvalidStudy("a study has at least one annotator")
        for names in (self.annotators, self.adjudicators, self.traces):
            if len(set(names)) < len(names):
                twice = next(name for name in names if names.count(name) > 1)
                raise InvalidStudy(f"{twice!r} stands in the study twice")
        if not 1 <= self.per_trace <= len(self.annotators):
            raise InvalidStudy(
                f"{self.per_trace} annotators a trace need as many in the study, which has "
                f"{len(self.annotators)}"
            )
        told = [one.annotator for one in self.memberships]
        told += [one.annotator for one in self.releases]
        for name in told:
            if name not in self.annotators:
                raise InvalidStudy(f"{name!r} is no annotator of the study")
        for draw in self.draws:
            if not 0 <= draw.lot < len(self.batches) or draw.of < len(self.batches[draw.lot]):
                raise InvalidStudy(f"lot {draw.lot + 1} cannot be a sample of {draw.of} traces")
        for name in ("overlap", "withheld", "retests"):
            share = getattr(self, name)
            if not 0 <= share <= 1:
                raise InvalidStudy(f"{name} is a share between 0 and 1, not {share}")
        if self.blind and self.withheld:
            raise InvalidStudy("a blind study shows no suggestions at all, so no share is without")

    def members(self, lot: int) -> tuple[str, ...]:
        """Those who are dealt traces of a lot, counted from 0."""
        told = {one.annotator for one in self.memberships}
        there = {
            one.annotator
            for one in self.memberships
            if one.first <= lot and (one.end is None or lot < one.end)
        }
        return tuple(name for name in self.annotators if name in there or name not in told)

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
        of = {draw.lot: draw.of for draw in self.draws}
        return all(of.get(lot) == of.get(0, 0) - sum(lots[:lot]) for lot in range(len(lots)))

    @property
    def traces(self) -> tuple[str, ...]:
        """The ids of all traces of the study."""
        return tuple(trace_id for batch in self.batches for trace_id in batch)
