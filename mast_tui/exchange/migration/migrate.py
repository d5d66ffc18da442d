"""Carrying all that was said under one codebook over to the next, in one import that can be undone.

Nothing under the old codebook changes, so figures of both can be had. What is carried has ids that
follow from what it comes from: the same migration on two machines is one when they merge.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from mast_tui.exchange.batches import EVENTS_AT_ONCE, batched, let_others_write
from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.migration.carrying import CarriedWork, Names, carried_of_study
from mast_tui.exchange.migration.mapping import CodebookMap, ModeChange
from mast_tui.labels import AnnotatorKind, Label, annotator_kind
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.workspace import Event, NewEvent, Workspace
from mast_tui.workspace.events.types import StudySet
from mast_tui.workspace.registers.imports import MIGRATION, ImportRecord, ImportState

Work = tuple[str, str]
"""Annotator and trace id."""

OWN_WORK: Final = "own_work"
"""Why a reading is left: something was said under the new codebook that was not carried over."""

GONE_ON: Final = "gone_on"
"""Why a reading is left: it was carried over, and has gone on under the old codebook since."""


@dataclass(frozen=True, slots=True)
class Left:
    """A reading that stays as it is, and why: ``OWN_WORK`` or ``GONE_ON``."""

    annotator: str
    trace_id: str
    why: str


@dataclass(frozen=True, slots=True)
class LookAgain:
    """A trace that an annotator is to look at again for ``modes`` of the new codebook.

    ``places`` are the labels of split modes that they had there.
    """

    annotator: str
    trace_id: str
    modes: tuple[str, ...]
    places: tuple[Label, ...]


@dataclass(slots=True)
class Migrated:
    """The result of a migration.

    ``carried`` holds the labels of the old codebook that are there under the new one, by id, in
    all passes; ``joined`` those of them that are one label with another now. ``dropped`` are
    labels of modes that are no more, in the last passes. ``left`` are readings that stay as they
    are, but for those that were carried over before and are as they were.
    ``lost`` should be empty: labels that should have been carried and are not there.
    """

    record: ImportRecord | None = None
    events: int = 0
    works: list[Work] = field(default_factory=list)
    carried: dict[str, Label] = field(default_factory=dict)
    joined: set[str] = field(default_factory=set)
    look_again: list[LookAgain] = field(default_factory=list)
    dropped: list[Label] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    lost: list[Label] = field(default_factory=list)


def migrate(workspace: Workspace, mapping: CodebookMap, author: str | None) -> Migrated:
    """Carry what was said under the old codebook over; what is there already stays as it is.

    Args:
        workspace: Where it was said; for a trial, a copy.
        mapping: What becomes of each mode.
        author: Who migrates, None where nobody is known.

    Returns:
        What came of it.

    Raises:
        ExchangeError: Nothing was said under the old codebook.
        WorkspaceError: It cannot be written, or the new taxonomy has other modes here.
    """
    works, of_study = _works(workspace, mapping.old.ref)
    if not works and not of_study:
        raise ExchangeError(f"nobody has labelled under {mapping.old.ref} here")
    workspace.add_taxonomy(mapping.new)
    refs = [mapping.old.ref, mapping.new.ref]
    places = [
        [author, trace_id, at.first, at.last, at.quote, at.char_start, at.char_end, kind, mode]
        for (author, trace_id, at, kind), mode in mapping.places.items()
    ]
    asked = json.dumps([MIGRATION, *refs, mapping.targets, *sorted(places, key=str)])
    record = workspace.begin_import(MIGRATION, refs, asked=asked, annotator=author)
    migration = _Migration(workspace, mapping, record)
    migration.study(of_study)
    for batch in batched(
        migration.works(works), lambda batch_work: len(batch_work[1]), EVENTS_AT_ONCE
    ):
        with workspace.transaction():
            for _, events in batch:
                migration.append(events)
        let_others_write()
    workspace.finish_import(record)
    return migration.done(works)


def check_lead(workspace: Workspace, old: Taxonomy, author: str | None) -> None:
    """Refuse whoever does not lead the study under a codebook that is to be carried over.

    Args:
        workspace: Where it would be carried over.
        old: The codebook.
        author: Who asks; None where nobody is known.

    Raises:
        ExchangeError: Somebody else set the study up.
    """
    lead = workspace.study_leads().get(old.ref)
    if lead is not None and author != lead:
        raise ExchangeError(
            f"a study is set up under {old.ref}, so only {lead}, who set it up, may carry it over; "
            + (f"you are {author} here" if author else f"say who you are: --annotator {lead}")
        )


def standing_migrations(workspace: Workspace) -> tuple[ImportRecord, ...]:
    """Return the migrations that were made here and not taken back, the earliest first."""
    return tuple(
        record
        for record in workspace.imports()
        if record.format == MIGRATION and record.state is not ImportState.UNDONE
    )


def _works(
    workspace: Workspace, ref: str
) -> tuple[Mapping[Work, Sequence[Event]], Sequence[Event]]:
    """Return the events under a taxonomy by work, judges' first, and those without a trace."""
    works: dict[Work, list[Event]] = defaultdict(list)
    of_study = []
    for event in workspace.events(taxonomy=ref):
        if event.trace_id is None:
            of_study.append(event)
        else:
            works[event.annotator, event.trace_id].append(event)
    judges_first = sorted(works, key=lambda work: (not _is_judge(work[0]), *work))
    return {work: works[work] for work in judges_first}, of_study


def _is_judge(name: str) -> bool:
    return annotator_kind(name) is AnnotatorKind.JUDGE


class _Migration:
    """One migration on its way."""

    def __init__(self, workspace: Workspace, mapping: CodebookMap, record: ImportRecord) -> None:
        self._workspace = workspace
        self._map = mapping
        self._record = record
        # What an import that was taken back had brought cannot come again under its ids.
        attempt = sum(
            other.format == MIGRATION and other.files == record.files
            for other in workspace.imports()
            if other.state is ImportState.UNDONE
        )
        self._names = Names(mapping.new.ref, attempt)
        own_works = {(work[0], work[1]) for work, _ in workspace.import_works(record)}
        self._existing = {
            (own_pass.annotator, own_pass.trace_id)
            for own_pass in workspace.passes(taxonomy=mapping.new.ref)
        } - own_works
        self._old = workspace.labels(taxonomy=mapping.old.ref, pass_number=None)
        self._labelled = {
            (label.trace_id, label.mode) for label in self._old if not _is_judge(label.annotator)
        }
        self._owners: dict[str, str] = {}
        self._repeated: dict[Work, tuple[str, ...]] = {}
        self._done = Migrated(record)

    def study(self, events: Iterable[Event]) -> None:
        """Carry the study and its guidelines, where there is none under the new codebook."""
        if self._workspace.study(self._map.new.ref) is not None:
            events = [event for event in events if not _sets_study(event)]
        carried = (carried_of_study(self._map, self._names, event) for event in events)
        self.append([event for event in carried if event is not None])

    def works(
        self, works: Mapping[Work, Sequence[Event]]
    ) -> Iterator[tuple[Work, Sequence[NewEvent]]]:
        """Yield the events of each work, except of those that stay as they are."""
        for work, events in works.items():
            carried = CarriedWork(self._map, self._names, self._labelled)
            new = list(carried.carried(events))
            if work in self._existing:
                self._leave(work, new)
                continue
            self._owners |= carried.owners
            if carried.look_again:
                self._repeated[work] = carried.look_again
            self._done.works.append(work)
            yield work, new

    def _leave(self, work: Work, events: Sequence[NewEvent]) -> None:
        """Note why a work is left, unless it was carried over as it is."""
        known_facts = self._workspace.known_facts(
            [event.id for event in events if event.id is not None]
        )
        if len(known_facts) < len(events):
            self._done.left.append(Left(*work, GONE_ON if known_facts else OWN_WORK))

    def append(self, events: Sequence[NewEvent]) -> None:
        """Record what is carried."""
        recorded = self._workspace.append(events, action=self._record.action)
        self._done.events += len(recorded)

    def done(self, works: Mapping[Work, Sequence[Event]]) -> Migrated:
        """Hold what is there now against what was there before."""
        done = self._done
        carried_works = set(self._done.works)
        new = self._workspace.labels(taxonomy=self._map.new.ref, pass_number=None)
        new_ids = {label.id for label in new}
        owned = set[str]()
        for label in self._old:
            if (label.annotator, label.trace_id) not in carried_works or self._map.of_label(
                label
            ) is None:
                continue
            owner = self._owners.get(label.id)
            if owner not in new_ids:
                done.lost.append(label)
                continue
            done.carried[label.id] = label
            if owner in owned:
                done.joined.add(label.id)
            owned.add(owner or "")
        last = self._workspace.labels(taxonomy=self._map.old.ref)
        places: dict[Work, list[Label]] = defaultdict(list)
        for label in last:
            if self._map.change(label.mode) is ModeChange.SPLIT:
                places[label.annotator, label.trace_id].append(label)
        done.dropped = [
            label
            for label in last
            if (label.annotator, label.trace_id) in carried_works
            and self._map.change(label.mode) is ModeChange.DROPPED
        ]
        done.look_again = [
            LookAgain(*work, self._repeated[work], tuple(places[work]))
            for work in works
            if work in self._repeated
        ]
        return done


def _sets_study(event: Event) -> bool:
    return isinstance(event.fact, StudySet)
