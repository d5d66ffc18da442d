"""Migration of all work under one codebook to the next, as one import that can be undone.

Nothing under the old codebook changes, so both have figures. The ids of carried events follow from
those of the old events: when two machines that made the same migration merge, it counts once.
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
"""Reason why a reading is left: its annotator has worked under the new codebook."""

GONE_ON: Final = "gone_on"
"""Reason why a reading is left: it was carried over before, and work under the old codebook
continued since."""


@dataclass(frozen=True, slots=True)
class Left:
    """A reading that was not carried over, with the reason: ``OWN_WORK`` or ``GONE_ON``."""

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

    Attributes:
        record: The import of the migration.
        events: The number of added events.
        works: The carried works.
        carried: The carried labels of all passes, by their old id.
        joined: The old ids of labels that became part of another label.
        look_again: The traces that annotators must look at again.
        dropped: The labels of dropped modes in the last passes.
        left: The readings that were not carried over, except unchanged ones that an earlier
            migration has carried.
        lost: The labels that should have been carried but are missing. It should be empty.
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
    """Carry all work under the old codebook over; work under the new codebook stays unchanged.

    Args:
        workspace: The workspace; for a trial, a copy of it.
        mapping: The new modes of each old mode.
        author: The name of the user, None if it is not known.

    Raises:
        ExchangeError: There is no work under the old codebook.
        WorkspaceError: The workspace cannot be written, or its taxonomy of this reference has
            other modes.
    """
    works, study_events = _events_by_work(workspace, mapping.old.ref)
    if not works and not study_events:
        raise ExchangeError(f"nobody has labelled under {mapping.old.ref} here")
    workspace.add_taxonomy(mapping.new)
    taxonomy_refs = [mapping.old.ref, mapping.new.ref]
    places = [
        [author, trace_id, at.first, at.last, at.quote, at.char_start, at.char_end, kind, mode]
        for (author, trace_id, at, kind), mode in mapping.places.items()
    ]
    asked = json.dumps([MIGRATION, *taxonomy_refs, mapping.targets, *sorted(places, key=str)])
    record = workspace.begin_import(MIGRATION, taxonomy_refs, asked=asked, annotator=author)
    migration = _Migration(workspace, mapping, record)
    migration.study(study_events)
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
    """Raise an error if the user may not migrate a codebook: with a study, only its lead may.

    Args:
        workspace: The workspace.
        old: The old codebook.
        author: The name of the user, None if it is not known.

    Raises:
        ExchangeError: Another annotator has set the study up.
    """
    lead = workspace.study_leads().get(old.ref)
    if lead is not None and author != lead:
        raise ExchangeError(
            f"a study is set up under {old.ref}, so only {lead}, who set it up, may carry it over; "
            + (f"you are {author} here" if author else f"say who you are: --annotator {lead}")
        )


def standing_migrations(workspace: Workspace) -> tuple[ImportRecord, ...]:
    """Return the migrations in a workspace that were not undone, the earliest first."""
    return tuple(
        record
        for record in workspace.imports()
        if record.format == MIGRATION and record.state is not ImportState.UNDONE
    )


def _events_by_work(
    workspace: Workspace, ref: str
) -> tuple[Mapping[Work, Sequence[Event]], Sequence[Event]]:
    """Return the events on traces by work, the works of judges first, and the other events.

    ``ref`` is the taxonomy of the events. The other events are on studies.
    """
    works: dict[Work, list[Event]] = defaultdict(list)
    study_events = []
    for event in workspace.events(taxonomy=ref):
        if event.trace_id is None:
            study_events.append(event)
        else:
            works[event.annotator, event.trace_id].append(event)
    judges_first = sorted(works, key=lambda work: (not _is_judge(work[0]), *work))
    return {work: works[work] for work in judges_first}, study_events


def _is_judge(name: str) -> bool:
    return annotator_kind(name) is AnnotatorKind.JUDGE


class _Migration:
    """One migration, and its results so far."""

    def __init__(self, workspace: Workspace, mapping: CodebookMap, record: ImportRecord) -> None:
        self._workspace = workspace
        self._map = mapping
        self._record = record
        # The ids of a migration that was undone cannot be used again.
        attempt = sum(
            earlier.format == MIGRATION
            and earlier.files == record.files
            and earlier.state is ImportState.UNDONE
            for earlier in workspace.imports()
        )
        self._names = Names(mapping.new.ref, attempt)
        own_works = {(work[0], work[1]) for work, _ in workspace.import_works(record)}
        self._existing = {
            (own_pass.annotator, own_pass.trace_id)
            for own_pass in workspace.passes(taxonomy=mapping.new.ref)
        } - own_works
        self._old_labels = workspace.labels(taxonomy=mapping.old.ref, pass_number=None)
        self._labelled = {
            (label.trace_id, label.mode)
            for label in self._old_labels
            if not _is_judge(label.annotator)
        }
        self._new_label_ids: dict[str, str] = {}
        self._repeated: dict[Work, tuple[str, ...]] = {}
        self._result = Migrated(record)

    def study(self, events: Iterable[Event]) -> None:
        """Carry the guidelines, and the study if there is none under the new codebook."""
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
                self._record_left(work, new)
                continue
            self._new_label_ids |= carried.new_label_ids
            if carried.look_again:
                self._repeated[work] = carried.look_again
            self._result.works.append(work)
            yield work, new

    def _record_left(self, work: Work, events: Sequence[NewEvent]) -> None:
        """Record why a work is left, unless an earlier migration has carried it completely."""
        known_facts = self._workspace.known_facts(
            [event.id for event in events if event.id is not None]
        )
        if len(known_facts) < len(events):
            self._result.left.append(Left(*work, GONE_ON if known_facts else OWN_WORK))

    def append(self, events: Sequence[NewEvent]) -> None:
        """Record what is carried."""
        recorded = self._workspace.append(events, action=self._record.action)
        self._result.events += len(recorded)

    def done(self, works: Mapping[Work, Sequence[Event]]) -> Migrated:
        """Compare the new labels with the old ones, and return the completed result."""
        result = self._result
        carried_works = set(self._result.works)
        new_labels = self._workspace.labels(taxonomy=self._map.new.ref, pass_number=None)
        new_ids = {label.id for label in new_labels}
        used_ids = set[str]()
        for label in self._old_labels:
            is_carried = (label.annotator, label.trace_id) in carried_works
            if not is_carried or self._map.of_label(label) is None:
                continue
            new_id = self._new_label_ids.get(label.id)
            if new_id is None or new_id not in new_ids:
                result.lost.append(label)
                continue
            result.carried[label.id] = label
            if new_id in used_ids:
                result.joined.add(label.id)
            used_ids.add(new_id)
        last_labels = self._workspace.labels(taxonomy=self._map.old.ref)
        split_labels: dict[Work, list[Label]] = defaultdict(list)
        for label in last_labels:
            if self._map.change(label.mode) is ModeChange.SPLIT:
                split_labels[label.annotator, label.trace_id].append(label)
        result.dropped = [
            label
            for label in last_labels
            if (label.annotator, label.trace_id) in carried_works
            and self._map.change(label.mode) is ModeChange.DROPPED
        ]
        result.look_again = [
            LookAgain(*work, self._repeated[work], tuple(split_labels[work]))
            for work in works
            if work in self._repeated
        ]
        return result


def _sets_study(event: Event) -> bool:
    return isinstance(event.fact, StudySet)
