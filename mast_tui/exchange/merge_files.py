"""The merge of whole workspaces from ``jsonl`` files: all files, or none if one is refused."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from msgspec import to_builtins

from mast_tui.counts import counted
from mast_tui.errors import ChangedElsewhere
from mast_tui.exchange.batches import EVENTS_AT_ONCE, batched, let_others_write
from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.import_batch import undone_id
from mast_tui.exchange.jsonl import JsonlContent, merge_content, register_content
from mast_tui.labels import is_judge
from mast_tui.session import outside_work_text
from mast_tui.study import Study
from mast_tui.traces.model import Outcome
from mast_tui.workspace import Event, PersonChanges, Workspace, WorkspaceError
from mast_tui.workspace.events.chain import ForeignEvents
from mast_tui.workspace.events.changes import InForce
from mast_tui.workspace.events.foreign import ForeignGrowth
from mast_tui.workspace.events.model import now
from mast_tui.workspace.events.types import (
    Decided,
    Fact,
    GuidelineSet,
    LabelAdded,
    LabelChanged,
    LabelRemoved,
    ReviewSet,
    SpanNoteSet,
    StudySet,
    VerdictSet,
)
from mast_tui.workspace.records import EventConflict, HistoryRelation, MergeRefused
from mast_tui.workspace.registers.imports import ImportRecord, ImportState

REPLACED: Final = "replaced:"
"""The prefix of settings that record replaced work, and who allowed it."""


@dataclass(slots=True)
class MergeResult:
    """The result of a merge.

    Attributes:
        new: The number of added events.
        known: The number of events that the workspace had before.
        people: The changes to each annotator's work.
        refused: The changes of refused files, by file. If there are any, nothing was written.
        notes: Sentences for the user.
    """

    new: int = 0
    known: int = 0
    people: list[PersonChanges] = field(default_factory=list)
    refused: dict[Path, tuple[PersonChanges, ...]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def merge_files(
    contents: Mapping[Path, JsonlContent],
    workspace: Workspace,
    *,
    request_key: str,
    replacing: Collection[str] = (),
    imported_by: str | None = None,
) -> MergeResult:
    """Merge files into a workspace.

    The files are first merged into a copy. If one is refused there, nothing is written. Otherwise
    each of these parts is written in one transaction:

    - a batch of traces
    - all other contents except events
    - a batch of the events of an annotator, if they only continue the history in the workspace
    - all events of any other annotator

    An interrupted import is continued by the same request.

    Args:
        contents: The contents of the files.
        workspace: The workspace.
        request_key: The text by which a repeated import continues an interrupted one.
        replacing: The annotators with work that may be replaced.
        imported_by: The name of the user; None if unknown.

    Returns:
        The added events and changes, or the changes of a refused import.

    Raises:
        ExchangeError: Only the lead of a study may replace its work.
        WorkspaceError: A file cannot be merged, or another process has changed the workspace
            meanwhile.
    """
    merged = _try_merge(contents, workspace, request_key, replacing)
    if merged.refused:
        refused_changes = [changes for people in merged.refused.values() for changes in people]
        return MergeResult(people=refused_changes, refused=merged.refused)
    _check_leads(merged.people, workspace, imported_by)
    record = workspace.begin_import(
        "jsonl", [str(file) for file in contents], request_key=request_key, annotator=imported_by
    )
    for file, content in contents.items():
        try:
            _FileWriter(file, content, workspace, record, replacing, imported_by).write()
        except (ChangedElsewhere, MergeRefused) as error:
            raise WorkspaceError(
                f"{file}: {error}; everything before that was imported. Import the file again "
                "to finish"
            ) from error
    workspace.finish_import(record)
    merged.notes += _undone_in_words(contents, workspace)
    return merged


def _try_merge(
    contents: Mapping[Path, JsonlContent],
    workspace: Workspace,
    request_key: str,
    replacing: Collection[str],
) -> MergeResult:
    """Merge files into a copy of the workspace, and return the expected result."""
    earlier_ids = frozenset[str]()
    for earlier_import in workspace.imports():
        is_unfinished = earlier_import.state is ImportState.UNFINISHED
        if is_unfinished and earlier_import.asked == request_key:
            earlier_ids = workspace.imported_event_ids(earlier_import)
    # The copy lacks the events that an interrupted import has written. The merge counts them as
    # new, but they are known.
    merged = MergeResult(new=-len(earlier_ids), known=len(earlier_ids))
    with workspace.trial(without=earlier_ids) as trial:
        for file, content in contents.items():
            try:
                _merge_into_trial(file, content, trial, merged, replacing)
            except MergeRefused as error:
                merged.refused[file] = error.people
            except WorkspaceError as error:
                raise WorkspaceError(f"{file}: {error}") from error
    return merged


def _undone_in_words(contents: Mapping[Path, JsonlContent], workspace: Workspace) -> Iterator[str]:
    """Yield a sentence on events that stay undone.

    An event keeps its id when it is undone, so an import of the same event does not add it again.
    """
    has_undone_files = any(
        earlier_import.undo_begun_at and earlier_import.keeps_actions
        for earlier_import in workspace.imports()
    )
    if not has_undone_files:
        return
    ids = {event.id for content in contents.values() for event in content.foreign.events}
    undone_count = len(workspace.known_facts([undone_id(event_id) for event_id in ids]))
    if undone_count:
        yield (
            f"{counted(undone_count, 'event')} of these files "
            f"{'was' if undone_count == 1 else 'were'} undone here with 'mast-tui import "
            "--undo' and stay undone"
        )


class _FileWriter:
    """A writer of one checked file into the workspace."""

    def __init__(
        self,
        file: Path,
        content: JsonlContent,
        workspace: Workspace,
        record: ImportRecord,
        replacing: Collection[str],
        imported_by: str | None,
    ) -> None:
        self._file = file
        self._content = content
        self._workspace = workspace
        self._record = record
        self._replacing = replacing
        """The annotators with work that may be replaced."""
        self._in_force: InForce = {}
        """The valid decisions, guidelines and studies before this file."""
        self._imported_by = imported_by

    def write(self) -> None:
        """Write all other contents, then the events of one annotator after the other."""
        foreign = register_content(self._content, self._workspace)
        # They are read before the first event, since the trial compared all annotators with the
        # same entries.
        self._in_force = self._workspace.entries_in_force()
        for name, events in groupby(foreign.events, key=lambda event: event.annotator):
            own_events = tuple(events)
            # At most one entry: the event at which the annotator's chain of hashes breaks.
            broken = {
                author: event for author, event in foreign.first_broken.items() if author == name
            }
            growth = self._workspace.growth_of(own_events, is_broken=bool(broken))
            if growth.is_plain:  # the file only continues the history here
                self._append_growth(growth)
            else:
                self._merge_history(ForeignEvents(own_events, broken))

    def _append_growth(self, growth: ForeignGrowth) -> None:
        """Append the events in batches."""
        # Events with the same sequence number stay together, so that each batch begins with a later
        # number.
        events_by_seq = [
            tuple(events) for _, events in groupby(growth.new_events, key=lambda event: event.seq)
        ]
        for batch in batched(events_by_seq, len, EVENTS_AT_ONCE):
            events = [event for same_seq in batch for event in same_seq]
            with self._workspace.transaction(without_savepoints=True):
                growth = self._workspace.grow(growth, events)
                self._workspace.record_imported_events(self._record, [event.id for event in events])
            let_others_write()

    def _merge_history(self, foreign: ForeignEvents) -> None:
        """Merge the events of an annotator in one transaction, then let other programs write."""
        with self._workspace.transaction():
            growth = self._workspace.growth_of(foreign.events, is_broken=bool(foreign.first_broken))
            report = self._workspace.merge_events(
                foreign, replacing=self._replacing, in_force=self._in_force
            )
            self._workspace.record_imported_events(
                self._record, [event.id for event in growth.new_events]
            )
            for changes in report.people:
                if changes.replaced:
                    _record_replacement(self._workspace, changes, self._file, self._imported_by)
        let_others_write()


def _merge_into_trial(
    file: Path,
    content: JsonlContent,
    workspace: Workspace,
    merged: MergeResult,
    replacing: Collection[str],
) -> None:
    """Merge a file into a trial copy of the workspace, and add the result to ``merged``."""
    events = content.foreign.events
    study_events = new_study_events(workspace, events)
    earlier_studies = studies_under(workspace, study_events)
    earlier_facts = _Facts.of(workspace)
    report = merge_content(content, workspace, replacing=replacing)
    merged.new += report.added
    merged.known += report.known
    merged.people += report.people
    for changes in report.people:
        if changes.replaced:
            merged.notes.append(f"{file}: replaced, as requested: {changes_in_words(changes)}")
    merged.notes += branches_in_words(report.people)
    merged.notes += conflicts_in_words(workspace, report.conflicts)
    merged.notes += studies_in_words(workspace, study_events, earlier_studies)
    merged.notes += earlier_facts.change_sentences(file, _Facts.of(workspace))
    altered_count = count_different(workspace, events, report.altered)
    if altered_count:
        merged.notes.append(
            f"{file}: {counted(altered_count, 'event is', 'events are')} already here with other "
            "content; the content here stays"
        )


@dataclass(frozen=True, slots=True)
class _Facts:
    """The facts that a file may update and that belong to no annotator.

    ``content_hashes`` are by the taxonomy's reference. ``outcomes`` are the known outcomes and
    scores by trace id.
    """

    content_hashes: Mapping[str, str]
    outcomes: Mapping[str, tuple[Outcome, float | None]]

    @classmethod
    def of(cls, workspace: Workspace) -> _Facts:
        """Read the facts of a workspace."""
        return cls(
            {taxonomy.ref: taxonomy.content_hash for taxonomy in workspace.taxonomies()},
            {
                trace.trace_id: (trace.outcome, trace.score)
                for trace in workspace.traces()
                if trace.outcome is not Outcome.UNKNOWN or trace.score is not None
            },
        )

    def change_sentences(self, file: Path, after: _Facts) -> Iterator[str]:
        """Yield sentences on the taxonomies and traces that a file changes.

        Args:
            file: The file.
            after: The facts after the merge.
        """
        changed_refs = [
            ref
            for ref, content_hash in self.content_hashes.items()
            if after.content_hashes.get(ref) != content_hash
        ]
        if changed_refs:
            yield (
                f"{file}: the texts of {', '.join(changed_refs)} are newer in the file and are "
                "used from now on; the earlier ones are kept"
            )
        changed_count = sum(
            after.outcomes.get(trace_id) != outcome for trace_id, outcome in self.outcomes.items()
        )
        if changed_count:
            has = counted(changed_count, "trace has", "traces have")
            yield f"{file}: {has} another outcome or score in the file, used from now on"


def _record_replacement(
    workspace: Workspace, changes: PersonChanges, file: Path, imported_by: str | None
) -> None:
    """Record the replaced work in a setting, and who allowed this."""
    time = now()
    entry = {"at": time, "by": imported_by, "file": str(file), "changes": to_builtins(changes)}
    workspace.set_setting(f"{REPLACED}{time}:{changes.annotator}", json.dumps(entry))


def _check_leads(
    people: Iterable[PersonChanges], workspace: Workspace, imported_by: str | None
) -> None:
    """Check that the user leads each study with replaced work.

    Work under no taxonomy, such as the setting of blind work, may be replaced by any lead.

    Raises:
        ExchangeError: The user is not the lead.
    """
    lead_by_taxonomy = workspace.study_leads()
    for changes in people:
        if not lead_by_taxonomy or not changes.replaced:
            continue
        if changes.replaced_under:
            refs = [ref for ref in changes.replaced_under if ref in lead_by_taxonomy]
        elif imported_by in lead_by_taxonomy.values():
            refs = []
        else:
            refs = sorted(lead_by_taxonomy)
        for ref in refs:
            lead = lead_by_taxonomy[ref]
            if lead == imported_by:
                continue
            remedy = f"give your name: --annotator {lead}"
            if imported_by:
                remedy = f"your name here is {imported_by}"
            raise ExchangeError(
                f"the work of {changes.annotator} belongs to a study under {ref}, so only "
                f"{lead}, who set it up, may use --replace; {remedy}. Nothing was written"
            )


_COUNTS: Final = (
    ("labels_added", "label added", "labels added"),
    ("labels_changed", "label changed", "labels changed"),
    ("labels_removed", "label removed", "labels removed"),
    ("verdicts_added", "verdict added", "verdicts added"),
    ("verdicts_changed", "verdict changed", "verdicts changed"),
    ("passes_added", "start on a trace", "starts on traces"),
    ("passes_joined", "open trace added to", "open traces added to"),
    ("passes_finished", "finish of a trace", "finishes of traces"),
    ("passes_reopened", "finished trace reopened", "finished traces reopened"),
    ("passes_changed", "finished trace changed", "finished traces changed"),
    ("decisions_added", "decision made", "decisions made"),
    ("decisions_changed", "decision changed", "decisions changed"),
    ("decisions_taken_back", "decision undone", "decisions undone"),
    ("guidelines_written", "guideline written", "guidelines written"),
    ("studies_set", "study set up or changed", "studies set up or changed"),
    ("edited", "event has other content here", "events have other content here"),
)
_OVERRULED: Final = {"decisions": "decision", "guidelines": "guideline", "studies": "study"}
"""The singular nouns for the kinds of entries in ``overruled``."""
_BLIND_WORK_NAMES: Final = {True: "blind", False: "assisted"}
_VISIBILITY_WORDS: Final = {True: "blind", False: "with suggestions shown"}
"""The words for the setting of blind work."""


def changes_to_dict(changes: PersonChanges) -> dict[str, Any]:
    """Return the changes as JSON values."""
    blind_work = None if changes.blind is None else _BLIND_WORK_NAMES[changes.blind]
    return {**to_builtins(changes), "sight": blind_work}


def changes_in_words(changes: PersonChanges) -> str:
    """Return an annotator's changes as text, such as ``mira: 69 labels removed``."""
    parts = []
    if changes.broken is not None:
        parts.append(f"the history in the file was edited at or before step {changes.broken}")
    for name, singular, plural in _COUNTS:
        count = getattr(changes, name)
        if count:
            counted_noun = singular if count == 1 else plural
            if is_judge(changes.annotator):
                counted_noun = counted_noun.replace("label", "suggestion")
            parts.append(f"{count} {counted_noun}")
    for other_name, replaced in changes.overruled.items():
        for table, count in replaced.items():
            noun = _OVERRULED[table] if count == 1 else table
            parts.append(f"{count} {noun} of {other_name} replaced")
    if changes.blind is not None:
        parts.append(f"works {_VISIBILITY_WORDS[changes.blind]} from now on")
    if not parts:
        verb = "changes" if changes.events == 1 else "change"
        parts.append(
            f"{counted(changes.events, 'event')} that {verb} no label, verdict or decision"
        )
    return f"{changes.annotator}: {', '.join(parts)}"


def branches_in_words(people: Iterable[PersonChanges]) -> Iterator[str]:
    """Yield a sentence for each annotator with separate histories here and in the file.

    Replaced histories are left out.
    """
    for changes in people:
        if changes.replaced:
            continue
        if changes.history is HistoryRelation.FORKED:
            yield (
                f"{changes.annotator}'s work was changed in two copies: both changes are kept; "
                "check the result"
            )
        elif changes.history is HistoryRelation.APART:
            kind = "judge" if is_judge(changes.annotator) else "person"
            yield (
                f"{changes.annotator} has worked here and, separately, in the file: both are "
                f"kept; make sure that it is the same {kind}"
            )


def refusal_in_words(file: object, people: Iterable[PersonChanges]) -> str:
    """Return the reason why a file is refused, with the options to accept it.

    Args:
        file: The path or name of the file.
        people: The changes that the file would make.
    """
    all_changes = list(people)
    replaced_names = dict.fromkeys(name for changes in all_changes for name in changes.needs)
    options = " ".join(f"--replace {_quoted_name(name)}" for name in replaced_names)
    return (
        f"{file} was edited, or would replace work in this workspace: "
        f"{'; '.join(map(changes_in_words, all_changes))}. Nothing was written. To accept this, "
        f"use {options}"
    )


def _quoted_name(name: str) -> str:
    return f"'{name}'" if " " in name else name


_CONFLICTS_SHOWN = 20


def conflicts_in_words(workspace: Workspace, conflicts: Sequence[EventConflict]) -> Iterator[str]:
    """Yield a sentence for each of the first conflicts, and one on the rest.

    Args:
        workspace: The workspace after the merge.
        conflicts: Different events of an annotator with the same sequence number.
    """
    first_conflicts = conflicts[:_CONFLICTS_SHOWN]
    event_ids = {event_id for conflict in first_conflicts for event_id in conflict.events}
    events = {
        event.id: event
        for annotator in dict.fromkeys(conflict.annotator for conflict in first_conflicts)
        for event in workspace.events(annotator=annotator)
        if event.id in event_ids
    }
    for conflict in first_conflicts:
        descriptions = [
            _quoted_description(events[event_id])
            for event_id in conflict.events
            if event_id in events
        ]
        yield (
            f"{conflict.annotator} worked in two copies at once: step {conflict.seq} is "
            f"{' in one and '.join(descriptions)} in the other; both are kept, so check the "
            "result"
        )
    if len(conflicts) > len(first_conflicts):
        yield f"and {len(conflicts) - len(first_conflicts)} more such steps"


def count_different(
    workspace: Workspace, file_events: Iterable[Event], altered_ids: Collection[str]
) -> int:
    """Count the events with other content here than in the file.

    Times do not count, since they differ if a file was imported on two machines.

    Args:
        workspace: The workspace.
        file_events: The events of the file.
        altered_ids: The ids of events that differ in any way.
    """
    if not altered_ids:
        return 0
    altered_id_set = set(altered_ids)
    altered_by_id = {event.id: event for event in file_events if event.id in altered_id_set}
    return sum(
        _comparable_content(event) != _comparable_content(altered_by_id[event.id])
        for name in sorted({event.annotator for event in altered_by_id.values()})
        for event in workspace.events(annotator=name)
        if event.id in altered_by_id
    )


def _comparable_content(event: Event) -> tuple[object, ...]:
    where = (event.annotator, event.trace_id, event.taxonomy, event.pass_number)
    return (*where, event.kind, event.fact, event.replaces)


def _quoted_description(event: Event) -> str:
    where = "" if event.trace_id is None else f" on {event.trace_id}"
    return f"'{_fact_description(event.fact, event)}{where}'"


def _fact_description(fact: Fact, event: Event) -> str:
    """Return a short text for a fact, such as ``label step_repetition``."""
    match fact:
        case LabelAdded(label):
            return f"label {label.mode}"
        case LabelRemoved(label):
            return f"remove label {label.mode}"
        case LabelChanged(_, label):
            return f"change label {label.mode}"
        case VerdictSet(mode, _, value):
            return f"{mode} is {'open' if value is None else value.value}"
        case ReviewSet(_, _, review):
            return "undo an answer" if review is None else f"{review.answer.value} a suggestion"
        case SpanNoteSet(key):
            return f"note beside {key}"
        case Decided(item, _, decision):
            return f"decide {item if decision is None else decision.mode}"
        case GuidelineSet(_, before, after):
            guideline = after or before
            return f"write a guideline on {guideline.mode if guideline else 'a mode'}"
        case _:
            return event.kind.replace("_", " ")


StudiesByRef = dict[str, Study | None]
"""The studies by the reference of their taxonomy; None without a study."""


def new_study_events(workspace: Workspace, file_events: Iterable[Event]) -> tuple[Event, ...]:
    """Return the events on studies that the workspace lacks.

    Args:
        workspace: The workspace.
        file_events: The events of the file.
    """
    study_events = [event for event in file_events if isinstance(event.fact, StudySet)]
    stored_ids = {
        event.id
        for name in dict.fromkeys(event.annotator for event in study_events)
        for event in workspace.events(annotator=name)
    }
    return tuple(event for event in study_events if event.id not in stored_ids)


def studies_under(workspace: Workspace, events: Sequence[Event]) -> StudiesByRef:
    """Return the study of each taxonomy in the events; None without a study.

    Args:
        workspace: The workspace.
        events: The events.
    """
    refs = dict.fromkeys(event.taxonomy for event in events if event.taxonomy is not None)
    return {ref: workspace.study(ref) for ref in refs}


def studies_in_words(
    workspace: Workspace, events: Sequence[Event], earlier: StudiesByRef
) -> Iterator[str]:
    """Yield sentences for studies with other settings in the file, and on work outside them.

    The later settings are valid after the merge.

    Args:
        workspace: The workspace after the merge.
        events: The new events on studies.
        earlier: The studies before the merge.
    """
    for ref, earlier_study in earlier.items():
        study = workspace.study(ref)
        if study != earlier_study and (outside_text := outside_work_text(workspace, study)):
            yield outside_text
        if earlier_study is None:
            continue
        authors = [event.annotator for event in events if event.taxonomy == ref]
        names = ", ".join(dict.fromkeys(authors))
        if study != earlier_study:
            yield (
                f"the study under {ref} was later set up differently by {names}; their plan "
                "applies from now on; see 'mast-tui study show'"
            )
        elif not any(
            isinstance(event.fact, StudySet) and event.fact.after == earlier_study
            for event in events
        ):
            yield (
                f"the study under {ref} was earlier set up differently by {names}; the study "
                "here stays; see 'mast-tui study show'"
            )
