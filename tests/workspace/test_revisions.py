"""Texts of a taxonomy, which may change under one version, and modes, which may not."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import combinations
from pathlib import Path

import pytest
from msgspec.structs import replace

from mast_tui.errors import WorkspaceError
from mast_tui.exchange.jsonl import merge_content, read_jsonl, workspace_lines
from mast_tui.labels import VerdictValue
from mast_tui.taxonomy.model import Mode, differences
from mast_tui.workspace import NewEvent, Workspace
from mast_tui.workspace.events.types import PassFinished, VerdictSet
from mast_tui.workspace.merging import merge
from mast_tui.workspace.registers.taxonomies import Revision
from tests.taxonomy.rewording import changed, reworded
from tests.workspace.build import MAST, MODES, TRACE, label, open_workspaces, start_pass, state
from tests.workspace.version_one import WITHOUT_TASKS, without_remedies

REWORDED = reworded(MAST)


def hashes(workspace: Workspace) -> list[str]:
    return [revision["hash"] for revision in workspace.revisions_read(MAST.ref)]


def test_new_text_keeps_labels_and_each_text_has_its_date(workspace: Workspace) -> None:
    assert differences(MAST, REWORDED) == ()
    assert MAST.identity == REWORDED.identity
    assert MAST.content_hash != REWORDED.content_hash
    assert workspace.as_worded(MAST) == MAST
    workspace.add_taxonomy(MAST)
    assert workspace.as_worded(REWORDED) == REWORDED  # unknown here: a newer program brings it
    start_pass(workspace, label(workspace))
    workspace.append([NewEvent("alice", TRACE, MAST.ref, 1, PassFinished())])
    state_before = state(workspace)
    workspace.add_taxonomy(REWORDED)
    workspace.add_taxonomy(REWORDED)
    assert workspace.as_worded(MAST) == REWORDED
    assert state(workspace) == state_before
    assert workspace.taxonomies() == (REWORDED,)
    assert workspace.taxonomy(MAST.ref).modes[0].definition == "Put otherwise."
    first, second = workspace.revisions_read(MAST.ref)
    assert (first["hash"], second["hash"]) == (MAST.content_hash, REWORDED.content_hash)
    assert first["since"] is not None
    assert first["since"] < (second["since"] or "")
    assert (first["passes"], second["passes"]) == (1, 0)
    assert [revision.taxonomy for revision in workspace.revisions()] == [MAST, REWORDED]
    workspace.add_taxonomy(MAST)
    assert workspace.taxonomies() == (MAST,)
    assert hashes(workspace) == [MAST.content_hash, REWORDED.content_hash, MAST.content_hash]


CHANGES: list[tuple[Callable[[list[Mode]], list[Mode]], str]] = [
    (lambda modes: modes[1:], "'disobey_task_specification' is gone"),
    (lambda modes: modes[::-1], "the modes are in another order"),
    (lambda modes: [replace(modes[0], code="9.9"), *modes[1:]], "has the code 9.9, not 1.1"),
    (
        lambda modes: [replace(modes[0], category=modes[-1].category), *modes[1:]],
        "is under 'task_verification', not",
    ),
    (lambda modes: [*modes, Mode("more", "3.4", "More", modes[-1].category)], "'more' is new"),
]


def test_other_modes_under_the_same_version_are_refused(workspace: Workspace) -> None:
    workspace.add_taxonomy(MAST)
    for change, difference in CHANGES:

        def without_links(
            modes: list[Mode], change: Callable[[list[Mode]], list[Mode]] = change
        ) -> list[Mode]:
            return change([replace(mode, confusable=()) for mode in modes])

        other = changed(MAST, without_links)
        assert any(difference in line for line in differences(MAST, other))
        for in_use in (True, False):
            with pytest.raises(WorkspaceError, match="raise the version"):
                workspace.add_taxonomy(other, in_use=in_use)
        assert workspace.taxonomies() == (MAST,)


def test_imported_text_does_not_replace_the_one_in_use(workspace: Workspace) -> None:
    workspace.add_taxonomy(REWORDED)
    workspace.add_taxonomy(MAST, in_use=False)
    assert workspace.taxonomies() == (REWORDED,)
    assert hashes(workspace) == [REWORDED.content_hash]


def test_merging_in_any_order_gives_the_same_texts() -> None:
    third = reworded(MAST, "A third way to say it.")
    texts = [
        Revision(MAST, "2026-01-01T00:00:00.000000Z"),
        Revision(REWORDED, "2026-03-01T00:00:00.000000Z"),
        Revision(third, "2026-02-01T00:00:00.000000Z"),
        Revision(third, ""),
    ]
    outcomes = set()
    for first in combinations(texts, 2):
        with open_workspaces(2) as (left, right):
            left.add_revisions(first)
            right.add_revisions([text for text in texts if text not in first])
            merge(left, right)
            merge(right, left)
            assert left.revisions() == right.revisions()
            outcomes.add((left.revisions(), left.taxonomies()))
    ((revisions, taxonomies),) = outcomes
    assert [revision.since[:7] for revision in revisions] == ["", "2026-01", "2026-02", "2026-03"]
    assert taxonomies == (REWORDED,)


def test_export_brings_every_text_with_its_date_if_it_has_one(
    workspace: Workspace, other: Workspace, tmp_path: Path
) -> None:
    workspace.add_taxonomy(MAST)
    early = [json.loads(line) for line in workspace_lines(workspace)]
    start_pass(workspace, label(workspace))
    absent = VerdictSet(MODES[1], None, VerdictValue.ABSENT)
    workspace.append([NewEvent("alice", TRACE, MAST.ref, 1, absent)])
    workspace.add_taxonomy(REWORDED)
    file = tmp_path / "whole.jsonl"
    file.write_text("".join(workspace_lines(workspace)))
    merge_content(read_jsonl(file), other)
    assert other.revisions() == workspace.revisions()
    assert other.revisions_read(MAST.ref) == workspace.revisions_read(MAST.ref)
    assert list(workspace_lines(other)) == list(workspace_lines(workspace))
    # Exports of earlier versions have no dates.
    for line in early:
        line.pop("since", None)
    file.write_text("".join(json.dumps(line) + "\n" for line in early))
    with closing(Workspace.open(":memory:")) as third:
        third.add_taxonomy(REWORDED)
        merge_content(read_jsonl(file), third)
        assert third.taxonomies() == (REWORDED,)
        first, second = third.revisions_read(MAST.ref)
        assert (first["since"] is None, second["since"] is None) == (True, False)


def test_text_of_a_file_of_version_6_is_dated_by_its_first_event(tmp_path: Path) -> None:
    file = tmp_path / "old.db"
    other = changed(MAST, lambda modes: modes, version="9")
    with closing(Workspace.open(file)) as workspace:
        workspace.add_taxonomy(MAST)
        workspace.add_taxonomy(other)
        start_pass(workspace, label(workspace))
        first = min(event.at for event in workspace.events())
        state_before = state(workspace)
    with closing(sqlite3.connect(file)) as raw, raw:
        without_remedies(raw)
        for statement in (*WITHOUT_TASKS, "DROP TABLE taxonomy_revisions"):
            raw.execute(statement)
        raw.execute("PRAGMA user_version = 6")
    with closing(Workspace.open(file)) as workspace:
        assert state(workspace) == state_before
        assert workspace.revisions() == (Revision(MAST, first), Revision(other, ""))
        workspace.add_taxonomy(REWORDED)
        assert hashes(workspace) == [MAST.content_hash, REWORDED.content_hash]
