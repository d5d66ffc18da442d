"""Whole workspaces from ``jsonl`` files into one: all files, or none where one is refused."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Final

from mast_tui.exchange.batches import EVENTS_AT_ONCE, batched, let_others_write
from mast_tui.exchange.change_words import branches_in_words, changes_in_words
from mast_tui.exchange.conflict_words import conflicts_in_words, told_differently
from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.import_batch import undone_id
from mast_tui.exchange.jsonl import Content, merge_content, register_content
from mast_tui.exchange.study_words import new_set_ups, studies_in_words, studies_under
from mast_tui.workspace import (
    ChangedElsewhere,
    Foreign,
    MergeRefused,
    PersonChanges,
    Workspace,
    WorkspaceError,
)
from mast_tui.workspace.events.foreign import Growth
from mast_tui.workspace.ids import now
from mast_tui.workspace.registers.imports import ImportRecord, ImportState

REPLACED: Final = "replaced:"
"""So begin the settings that tell what an import changed of others' work, and at whose word."""


@dataclass(slots=True)
class Merged:
    """What came of merging files.

    ``people`` holds what changed, by file and name; of files that were ``refused``, what would
    have. Then nothing was written. ``notes`` is what a person should know.
    """

    new: int = 0
    known: int = 0
    people: list[PersonChanges] = field(default_factory=list)
    refused: dict[Path, tuple[PersonChanges, ...]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def merge_files(
    contents: Mapping[Path, Content],
    workspace: Workspace,
    *,
    asked: str,
    replacing: Collection[str] = (),
    asked_by: str | None = None,
) -> Merged:
    """Bring what the files hold into a workspace: checked whole, then written piece by piece.

    Whether any of it is refused shows in a copy of the workspace, so that nobody waits for it and a
    refused import writes nothing. What is atomic then: the registers beside the traces; up to
    ``EVENTS_AT_ONCE`` events of somebody whose work only goes on, which are a state that it once
    had; and all that comes of anybody else, who is checked once more as it is written. An import
    that is broken off stands as not finished, and the same words go on with it.

    Args:
        contents: what the files hold.
        workspace: what takes it.
        asked: how the import is asked for, see ``Workspace.begin_import``.
        replacing: the people whose earlier word may change by it.
        asked_by: who says so, None where nobody is known.

    Returns:
        What was added and changed, or what would have been.

    Raises:
        ExchangeError: ``asked_by`` may not say so: under a study its lead alone may.
        WorkspaceError: with the file's name; nothing was written, or somebody has changed meanwhile
            what the file is about.
    """
    if replacing:
        _check_lead(workspace, asked_by)
    here = {one.asked: one for one in workspace.imports() if one.state is ImportState.UNFINISHED}
    broken_off = here.get(asked)
    brought = frozenset[str]() if broken_off is None else workspace.noted_events(broken_off)
    merged = Merged(new=-len(brought), known=len(brought))
    with workspace.trial(without=brought) as trial:
        for file, content in contents.items():
            try:
                _merge_file(file, content, trial, merged, replacing)
            except MergeRefused as error:
                merged.refused[file] = error.people
            except WorkspaceError as error:
                raise WorkspaceError(f"{file}: {error}") from error
    if merged.refused:
        would = [changes for people in merged.refused.values() for changes in people]
        return Merged(people=would, refused=merged.refused)
    record = workspace.begin_import(
        "jsonl", [str(file) for file in contents], asked=asked, who=asked_by
    )
    for file, content in contents.items():
        try:
            _Writing(file, content, workspace, record, replacing, asked_by).write()
        except (ChangedElsewhere, MergeRefused) as error:
            raise WorkspaceError(
                f"{file}: {error}; what came before that is here. Import it again to finish"
            ) from error
    workspace.finish_import(record)
    if any(one.undo_begun_at and one.keeps_actions for one in workspace.imports()):
        ids = {event.id for content in contents.values() for event in content.foreign.events}
        taken_back = len(workspace.known_facts([undone_id(event) for event in ids]))
        if taken_back:
            merged.notes.append(
                f"{taken_back} events of these files were taken back here with 'mast-tui import "
                "--undo' and stay so"
            )
    return merged


class _Writing:
    """One file on its way into the workspace, after it was checked."""

    def __init__(
        self,
        file: Path,
        content: Content,
        workspace: Workspace,
        record: ImportRecord,
        replacing: Collection[str],
        asked_by: str | None,
    ) -> None:
        self._file = file
        self._content = content
        self._workspace = workspace
        self._record = record
        self._replacing = replacing
        self._asked_by = asked_by

    def write(self) -> None:
        """Write the registers, then each annotator's events."""
        foreign = register_content(self._content, self._workspace)
        for name, events in groupby(foreign.events, key=lambda event: event.annotator):
            own = tuple(events)
            broken = {one: event for one, event in foreign.broken.items() if one == name}
            growth = self._workspace.growth_of(own, is_broken=bool(broken))
            if growth.is_plain:
                self._grow(growth)
            else:
                self._merge(Foreign(own, broken))

    def _grow(self, growth: Growth) -> None:
        # What is counted alike comes together: the rest then still is later than what is here.
        steps = [tuple(alike) for _, alike in groupby(growth.fresh, key=lambda event: event.seq)]
        for batch in batched(steps, len, EVENTS_AT_ONCE):
            events = [event for step in batch for event in step]
            with self._workspace.transaction(whole=True):
                growth = self._workspace.grow(growth, events)
                self._workspace.note_imported(self._record, [event.id for event in events])
            let_others_write()

    def _merge(self, foreign: Foreign) -> None:
        with self._workspace.transaction():
            growth = self._workspace.growth_of(foreign.events, is_broken=bool(foreign.broken))
            report = self._workspace.merge_events(foreign, replacing=self._replacing)
            self._workspace.note_imported(self._record, [event.id for event in growth.fresh])
            for changes in report.people:
                if changes.replaced:
                    _record(self._workspace, changes, self._file, self._asked_by)
        let_others_write()


def _merge_file(
    file: Path,
    content: Content,
    workspace: Workspace,
    merged: Merged,
    replacing: Collection[str],
) -> None:
    events = content.foreign.events
    set_ups = new_set_ups(workspace, events)
    before = studies_under(workspace, set_ups)
    report = merge_content(content, workspace, replacing=replacing)
    merged.new += report.added
    merged.known += report.known
    merged.people += report.people
    for changes in report.people:
        if changes.replaced:
            merged.notes.append(f"{file}: replaced as asked: {changes_in_words(changes)}")
    merged.notes += branches_in_words(report.people)
    merged.notes += conflicts_in_words(workspace, report.conflicts)
    merged.notes += studies_in_words(workspace, set_ups, before)
    altered = told_differently(workspace, events, report.altered)
    if altered:
        merged.notes.append(f"{file}: {altered} events are here with other content; ours stay")


def _record(workspace: Workspace, changes: PersonChanges, file: Path, asked_by: str | None) -> None:
    at = now()
    entry = {"at": at, "by": asked_by, "file": str(file), "changes": asdict(changes)}
    workspace.set_setting(f"{REPLACED}{at}:{changes.annotator}", json.dumps(entry))


def _check_lead(workspace: Workspace, who: str | None) -> None:
    leads = sorted(set(workspace.study_leads().values()))
    if leads and who not in leads:
        asks = f"you are {who} here" if who else f"say who you are: --annotator {leads[0]}"
        raise ExchangeError(
            f"a study is set up here, so only {' or '.join(leads)}, who set it up, may say "
            f"--replace; {asks}. Nothing was written"
        )
