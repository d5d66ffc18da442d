"""Whole workspaces from ``jsonl`` files into one: all files, or none where one is refused."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from mast_tui.exchange.change_words import branches_in_words, changes_in_words
from mast_tui.exchange.conflict_words import conflicts_in_words, told_differently
from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.jsonl import Content, merge_content
from mast_tui.exchange.study_words import new_set_ups, studies_in_words, studies_under
from mast_tui.workspace import MergeRefused, PersonChanges, Workspace, WorkspaceError
from mast_tui.workspace.ids import now

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


class _Refused(Exception):
    """Takes the transaction back."""


def merge_files(
    contents: Mapping[Path, Content],
    workspace: Workspace,
    *,
    replacing: Collection[str] = (),
    asked_by: str | None = None,
) -> Merged:
    """Bring what the files hold into a workspace, in one transaction.

    Args:
        contents: what the files hold.
        workspace: what takes it.
        replacing: the people whose earlier word may change by it.
        asked_by: who says so, None where nobody is known.

    Returns:
        What was added and changed, or what would have been.

    Raises:
        ExchangeError: ``asked_by`` may not say so: under a study its lead alone may.
        WorkspaceError: with the file's name; nothing was written.
    """
    if replacing:
        _check_lead(workspace, asked_by)
    merged = Merged()
    try:
        with workspace.transaction():
            for file, content in contents.items():
                try:
                    _merge_file(file, content, workspace, merged, replacing, asked_by)
                except MergeRefused as error:
                    merged.refused[file] = error.people
                except WorkspaceError as error:
                    raise WorkspaceError(f"{file}: {error}") from error
            if merged.refused:
                raise _Refused
    except _Refused:
        would = [changes for people in merged.refused.values() for changes in people]
        return Merged(people=would, refused=merged.refused)
    return merged


def _merge_file(
    file: Path,
    content: Content,
    workspace: Workspace,
    merged: Merged,
    replacing: Collection[str],
    asked_by: str | None,
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
            _record(workspace, changes, file, asked_by)
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
