"""The texts of a taxonomy may change under one version; its modes may not."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from mast_tui.errors import WorkspaceError
from mast_tui.exchange.jsonl import merge_content, read_jsonl, workspace_lines
from mast_tui.labels import VerdictValue
from mast_tui.taxonomy.model import Mode, differences
from mast_tui.workspace import NewEvent, Workspace
from mast_tui.workspace.events.types import PassFinished, VerdictSet
from mast_tui.workspace.merging import merge
from mast_tui.workspace.registers.taxonomies import Revision
from tests.taxonomy.rewording import changed, reworded
from tests.workspace.build import MAST, MODES, TRACE, label, started, state
from tests.workspace.version_one import WITHOUT_TASKS, without_remedies

NEW = reworded(MAST)


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    with closing(Workspace.open(":memory:")) as opened:
        yield opened


def finish(workspace: Workspace, trace_id: str) -> None:
    event = NewEvent("alice", trace_id, MAST.ref, 1, PassFinished())
    workspace.append([event])


def hashes(workspace: Workspace) -> list[str]:
    return [one["hash"] for one in workspace.revisions_read(MAST.ref)]


def test_a_corrected_definition_keeps_every_label(workspace: Workspace) -> None:
    workspace.add_taxonomy(MAST)
    started(workspace, label(workspace))
    before = state(workspace)
    workspace.add_taxonomy(NEW)
    assert state(workspace) == before
    assert workspace.taxonomies() == (NEW,)
    assert workspace.taxonomy(MAST.ref).modes[0].definition == "Put otherwise."


def test_each_text_is_kept_with_the_date_from_which_on_it_held(workspace: Workspace) -> None:
    workspace.add_taxonomy(MAST)
    started(workspace)
    finish(workspace, TRACE)
    workspace.add_taxonomy(NEW)
    workspace.add_taxonomy(NEW)
    first, second = workspace.revisions_read(MAST.ref)
    assert (first["hash"], second["hash"]) == (MAST.content_hash, NEW.content_hash)
    assert (first["since"] or "") < (second["since"] or "")
    assert first["since"] is not None
    assert (first["passes"], second["passes"]) == (1, 0)
    assert [one.taxonomy for one in workspace.revisions()] == [MAST, NEW]


def test_a_text_that_comes_back_holds_again(workspace: Workspace) -> None:
    for one in (MAST, NEW, MAST):
        workspace.add_taxonomy(one)
    assert workspace.taxonomies() == (MAST,)
    assert hashes(workspace) == [MAST.content_hash, NEW.content_hash, MAST.content_hash]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda modes: modes[1:], "'disobey_task_specification' is gone"),
        (lambda modes: modes[::-1], "the modes stand in another order"),
        (lambda modes: [replace(modes[0], code="9.9"), *modes[1:]], "has the code 9.9, not 1.1"),
        (
            lambda modes: [replace(modes[0], category=modes[-1].category), *modes[1:]],
            "is under 'task_verification', not",
        ),
        (lambda modes: [*modes, Mode("more", "3.4", "More", modes[-1].category)], "'more' is new"),
    ],
)
def test_other_modes_under_the_same_version_are_refused(
    workspace: Workspace, change: Callable[[list[Mode]], list[Mode]], told: str
) -> None:
    def without_links(modes: list[Mode]) -> list[Mode]:
        return change([replace(mode, confusable=()) for mode in modes])

    workspace.add_taxonomy(MAST)
    other = changed(MAST, without_links)
    assert any(told in words for words in differences(MAST, other))
    with pytest.raises(WorkspaceError, match="raise the version"):
        workspace.add_taxonomy(other)
    with pytest.raises(WorkspaceError, match="raise the version"):
        workspace.add_taxonomy(other, in_use=False)
    assert workspace.taxonomies() == (MAST,)


def test_differences_of_words_are_none() -> None:
    assert differences(MAST, NEW) == ()
    assert MAST.identity == NEW.identity
    assert MAST.content_hash != NEW.content_hash


def test_what_an_import_brings_does_not_reword_what_is_read_here(workspace: Workspace) -> None:
    workspace.add_taxonomy(NEW)
    workspace.add_taxonomy(MAST, in_use=False)
    assert workspace.taxonomies() == (NEW,)
    assert hashes(workspace) == [NEW.content_hash]


def test_a_text_of_the_program_is_taken_once_and_a_later_one_stays(workspace: Workspace) -> None:
    assert workspace.as_worded(MAST) == MAST
    workspace.add_taxonomy(MAST)
    assert workspace.as_worded(NEW) == NEW  # not known here: a newer program brings it
    workspace.add_taxonomy(NEW)
    assert workspace.as_worded(MAST) == NEW


def test_machines_that_merge_come_to_the_same_texts_in_any_order() -> None:
    third = reworded(MAST, "A third way to say it.")
    texts = [
        Revision(MAST, "2026-01-01T00:00:00.000000Z"),
        Revision(NEW, "2026-03-01T00:00:00.000000Z"),
        Revision(third, "2026-02-01T00:00:00.000000Z"),
        Revision(third, ""),
    ]
    found = set()
    for first in combinations(texts, 2):
        rest = [text for text in texts if text not in first]
        with closing(Workspace.open(":memory:")) as here, closing(Workspace.open(":memory:")) as at:
            here.add_revisions(first)
            at.add_revisions(rest)
            merge(here, at)
            merge(at, here)
            assert here.revisions() == at.revisions()
            found.add((here.revisions(), here.taxonomies()))
    assert len(found) == 1
    ((revisions, kept),) = found
    assert [one.since[:7] for one in revisions] == ["", "2026-01", "2026-02", "2026-03"]
    assert kept == (NEW,)


def test_an_export_brings_every_text_with_its_date(workspace: Workspace, tmp_path: Path) -> None:
    workspace.add_taxonomy(MAST)
    started(workspace, label(workspace))
    absent = VerdictSet(MODES[1], None, VerdictValue.ABSENT)
    workspace.append([NewEvent("alice", TRACE, MAST.ref, 1, absent)])
    workspace.add_taxonomy(NEW)
    file = tmp_path / "whole.jsonl"
    file.write_text("".join(workspace_lines(workspace)))
    with closing(Workspace.open(":memory:")) as other:
        merge_content(read_jsonl(file), other)
        assert other.revisions() == workspace.revisions()
        assert other.revisions_read(MAST.ref) == workspace.revisions_read(MAST.ref)
        assert list(workspace_lines(other)) == list(workspace_lines(workspace))


def test_an_export_of_earlier_times_brings_its_text_without_a_date(
    workspace: Workspace, tmp_path: Path
) -> None:
    workspace.add_taxonomy(MAST)
    file = tmp_path / "whole.jsonl"
    lines = [json.loads(line) for line in workspace_lines(workspace)]
    for line in lines:
        line.pop("since", None)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with closing(Workspace.open(":memory:")) as other:
        other.add_taxonomy(NEW)
        merge_content(read_jsonl(file), other)
        assert other.taxonomies() == (NEW,)
        assert [one["since"] is None for one in other.revisions_read(MAST.ref)] == [True, False]


def test_a_file_of_the_version_before_has_one_text_since_its_first_event(tmp_path: Path) -> None:
    file = tmp_path / "old.db"
    other = changed(MAST, lambda modes: modes, version="9")
    with closing(Workspace.open(file)) as workspace:
        workspace.add_taxonomy(MAST)
        workspace.add_taxonomy(other)
        started(workspace, label(workspace))
        first = min(event.at for event in workspace.events())
        before = state(workspace)
    with closing(sqlite3.connect(file)) as raw, raw:
        without_remedies(raw)
        for statement in WITHOUT_TASKS:
            raw.execute(statement)
        raw.execute("DROP TABLE taxonomy_revisions")
        raw.execute("PRAGMA user_version = 6")
    with closing(Workspace.open(file)) as workspace:
        assert state(workspace) == before
        assert workspace.revisions() == (Revision(MAST, first), Revision(other, ""))
        workspace.add_taxonomy(NEW)
        assert hashes(workspace) == [MAST.content_hash, NEW.content_hash]
