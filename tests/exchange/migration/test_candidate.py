"""New modes made of open codes, and maps from a codebook to its next version."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.migration.mapping import (
    ModeChange,
    candidate_map,
    codebook_map,
    taxonomy_toml,
    with_mode,
)
from mast_tui.exchange.migration.migrate import migrate
from mast_tui.labels import VerdictValue
from mast_tui.session import Session
from mast_tui.session.open_codes import open_coding
from mast_tui.taxonomy.loader import TaxonomyError, from_dict, load_mast
from mast_tui.taxonomy.model import OPEN_CODE_SLUG
from mast_tui.workspace import Workspace
from mast_tui.workspace.merging import merge
from tests.exchange.migration.codebooks import (
    DROPPED,
    FIRST,
    INTO,
    MAP,
    MERGED,
    NAMED,
    NEXT,
    RENAMED,
    SECOND,
    SPLIT,
    TARGETS,
)
from tests.exchange.migration.test_migrate import tables
from tests.session.build import put, span
from tests.session.studies import Class
from tests.workspace.build import MAST, MODES

CATEGORY = MAST.categories[0].id
WITH_ASKS = with_mode(MAST, "Asks twice", CATEGORY, definition="It asks what it was told.")
ASKS = "asks_twice"


@pytest.fixture
def study() -> Iterator[Class]:
    study = Class(4)
    yield study
    study.workspace.close()


def add_open_code(session: Session, note: str, number: int = 0) -> None:
    session.edit_label(put(session, OPEN_CODE_SLUG, span(number)), note=note)


def make_mode(workspace: Workspace, search: str) -> None:
    codes = open_coding(workspace, MAST, None, None).matching(search).codes
    done = migrate(workspace, candidate_map(MAST, WITH_ASKS, ASKS, codes), None)
    assert (done.lost, done.look_again, done.dropped) == ([], [], [])


def labels_of(workspace: Workspace, mode: str) -> set[tuple[str, str, str | None, str]]:
    return {
        (label.annotator, label.trace_id, label.target.first, label.note)
        for label in workspace.labels(taxonomy=WITH_ASKS.ref)
        if label.mode == mode
    }


# The taxonomy


def test_the_new_mode_is_the_last_of_its_category_or_refused() -> None:
    assert WITH_ASKS.ref == "mast@3+1"
    assert WITH_ASKS.mode(ASKS).code == "1.6"
    assert [mode for mode in WITH_ASKS.modes if mode.slug != ASKS] == list(MAST.modes)
    position = [mode.slug for mode in WITH_ASKS.modes].index(ASKS)
    assert {mode.category for mode in WITH_ASKS.modes[: position + 1]} == {CATEGORY}
    extended = with_mode(WITH_ASKS, "Another", MAST.categories[1].id, used_versions=["mast@3+2"])
    assert (extended.version, extended.mode("another").code) == ("3+3", "2.7")
    for name, changes, message in [
        ("Step repetition", {}, "already names"),
        ("New", {"code": "1.1"}, "already names"),
        ("New", {"slug": "No"}, "'slug' is 'No'"),
        ("?!", {}, "no slug can be made"),
        ("New", {"version": "a b"}, "'version'"),
    ]:
        with pytest.raises((ExchangeError, TaxonomyError), match=message):
            with_mode(MAST, name, CATEGORY, **changes)
        with pytest.raises(ExchangeError, match="has no category 'nowhere'"):
            with_mode(MAST, "New", "nowhere")


def test_a_taxonomy_file_is_complete() -> None:
    for taxonomy in [load_mast(), WITH_ASKS]:
        assert from_dict(tomllib.loads(taxonomy_toml(taxonomy))) == taxonomy


@settings(max_examples=20)
@given(st.text(min_size=1), st.text())
def test_any_text_can_be_in_a_taxonomy_file(name: str, definition: str) -> None:
    values = {
        "id": "x",
        "version": "1",
        "open": {"code": "Z"},
        "categories": [{"id": "all"}],
        "modes": [{"slug": "a", "name": name, "category": "all", "definition": definition}],
    }
    try:
        taxonomy = from_dict(values)
    except TaxonomyError:
        return
    assert from_dict(tomllib.loads(taxonomy_toml(taxonomy))) == taxonomy


# The labels


def test_open_codes_become_labels_of_their_authors(study: Class) -> None:
    session = study.open("t00")
    add_open_code(session, "asks twice")
    session.note_span("k1", "asks twice here too")
    session.finish(open_modes="absent")
    add_open_code(study.open("t01", "bob"), "asks twice")
    add_open_code(study.open("t01", "bob"), "something else", 1)
    study.finish("t02", mode=MODES[0])
    make_mode(study.workspace, "asks twice")
    assert labels_of(study.workspace, ASKS) == {
        ("alice", "t00", "k0", "asks twice"),
        ("alice", "t00", "k1", "asks twice here too"),
        ("bob", "t01", "k0", "asks twice"),
    }
    assert labels_of(study.workspace, OPEN_CODE_SLUG) == {("bob", "t01", "k1", "something else")}
    assert labels_of(study.workspace, MODES[0]) == {("alice", "t02", "k0", "")}
    values = {
        (verdict.trace_id, verdict.annotator): verdict.value
        for verdict in study.workspace.verdicts(taxonomy=WITH_ASKS.ref)
        if verdict.mode == ASKS
    }
    # No one has looked for the mode in other traces.
    assert values == {("t00", "alice"): VerdictValue.PRESENT, ("t01", "bob"): VerdictValue.PRESENT}
    (note,) = study.workspace.span_notes(taxonomy=WITH_ASKS.ref)
    assert note.text == "asks twice here too"
    passes = study.workspace.passes(taxonomy=WITH_ASKS.ref)
    finished = {labelling.trace_id for labelling in passes if labelling.finished}
    assert finished == {"t00", "t02"}


def test_open_codes_of_every_pass_become_labels(study: Class) -> None:
    session = study.open("t00")
    add_open_code(session, "asks twice")
    session.finish(open_modes="absent")
    session.edit_label(session.labels[0].id, note="asks twice, and again")
    make_mode(study.workspace, "asks twice")
    labels = study.workspace.labels(taxonomy=WITH_ASKS.ref, pass_number=None)
    assert [(label.pass_number, label.mode) for label in labels] == [(1, ASKS), (2, ASKS)]


@pytest.mark.slow
def test_the_same_mode_made_on_two_machines_merges(study: Class) -> None:
    session = study.open("t00")
    add_open_code(session, "asks twice")
    session.note_span("k1", "asks twice")
    with closing(Workspace.open(":memory:")) as other:
        merge(other, study.workspace)
        make_mode(study.workspace, "asks twice")
        make_mode(other, "asks twice")
        migrated = tables(study.workspace)
        merge(other, study.workspace)
        assert tables(other) == migrated


# Maps between versions


MAP_TEXT = f"""
[modes]
{RENAMED} = "{NAMED}"
"1.2" = "1.3"
{SPLIT} = ["{FIRST}", "{SECOND}"]
{DROPPED} = []
"""


def test_a_map_names_what_changes_in_toml_and_json(tmp_path: Path) -> None:
    file = tmp_path / "map.toml"
    file.write_text(MAP_TEXT)
    mapping = codebook_map(MAST, NEXT, file)
    assert mapping.targets == TARGETS == MAP.targets
    assert mapping.sources[INTO] == (MERGED, INTO)
    assert mapping.added == ()
    changes = {slug: mapping.change(slug) for slug in MODES[:6]}
    assert list(changes.values()) == [
        ModeChange.RENAMED,
        ModeChange.MERGED,
        ModeChange.MERGED,
        ModeChange.SPLIT,
        ModeChange.DROPPED,
        ModeChange.SAME,
    ]
    file = tmp_path / "map.json"
    modes: dict[str, object] = {RENAMED: NAMED, MERGED: INTO, SPLIT: [FIRST, SECOND], DROPPED: []}
    file.write_text(json.dumps({MAST.ref: modes, "other@1": {"x": "y"}}))
    assert codebook_map(MAST, NEXT, file).targets == TARGETS


def test_impossible_maps_are_refused_also_onto_the_same_version(tmp_path: Path) -> None:
    for text, message in [
        (None, "has no mode 'disobey_task_specification'.*of --map FILE"),
        ("[modes]\nnowhere = []\n", "'nowhere' is not a mode of mast@3"),
        (f"{MAP_TEXT}step_repetition = 'nowhere'\n", "'nowhere' is not a mode of mast@4"),
        (f"{MAP_TEXT}[\"mast@3\"]\n{DROPPED} = '1.3'\n", "both dropped and kept"),
        ("['other@1']\nx = 'y'\n", "maps no mode of mast@3"),
        ("modes = 1\n", "outside a table"),
        ("[modes]\nx = 1\n", "needs a code"),
        ("[modes\n", "not valid TOML"),
    ]:
        file = None
        if text is not None:
            file = tmp_path / "map.toml"
            file.write_text(text)
        with pytest.raises(ExchangeError, match=message):
            codebook_map(MAST, NEXT, file)
    with pytest.raises(ExchangeError, match="give the new one another version"):
        codebook_map(MAST, MAST, None)
