"""MAST's own versions of 18, 17 and 14 modes, replayed on its human labels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mast_tui.exchange.apply import apply_incoming
from mast_tui.exchange.crosswalk import find_crosswalk, read_crosswalk
from mast_tui.exchange.importers.mast_human import read_mast_human
from mast_tui.exchange.migration.mapping import ModeChange, codebook_map
from mast_tui.exchange.migration.migrate import Migrated, migrate
from mast_tui.figures.source.agreement import study_from_workspace
from mast_tui.taxonomy.loader import load_mast
from mast_tui.workspace import Workspace
from tests.figures.agreement.tables import agreement_document
from tests.traces.checks import CORPUS, needs_corpus

pytestmark = pytest.mark.slow

MAST = load_mast()
PEOPLE = ("annotator_1", "annotator_2", "annotator_3")
LABELS = CORPUS / "mast-human" / "annotations_rounds_1_2.json"
EARLIER = {"early-mast-18": 18, "interim-mast-17": 17}


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    with closing(Workspace.open(":memory:")) as database:
        incoming = read_mast_human([LABELS])
        apply_incoming(
            incoming,
            database,
            source="mast-human",
            skip_errors=False,
            files=[],
            request_key="",
            imported_by=None,
        )
        yield database


def migrate_to_mast(workspace: Workspace, name: str) -> Migrated:
    path = find_crosswalk(Path(f"{name}-to-mast"))
    mapping = codebook_map(workspace.taxonomy(f"{name}@1"), MAST, path)
    return migrate(workspace, mapping, None)


def kappa(workspace: Workspace, ref: str) -> tuple[int, float | None]:
    """Return the traces finished by all three, and the mean pooled κ of their pairs."""
    study = study_from_workspace(
        workspace, workspace.taxonomy(ref), annotators=PEOPLE, which="first"
    )
    report = agreement_document(study, rounds=0)
    return report["traces"]["finished_by_all"], report["pooled"]["cohen_kappa"].get("value")


@pytest.mark.parametrize(("name", "modes"), EARLIER.items())
def test_every_mode_of_an_earlier_version_is_linked_once(name: str, modes: int) -> None:
    entries = read_crosswalk(find_crosswalk(Path(f"{name}-to-mast")))
    assert {entry.taxonomy for entry in entries} == {f"{name}@1"}
    assert len(entries) == len({entry.source for entry in entries}) == modes
    targets = [target for entry in entries for target in entry.targets]
    assert sorted(targets) == sorted(mode.code for mode in MAST.modes)


@needs_corpus
@pytest.mark.parametrize(("name", "modes"), EARLIER.items())
def test_crosswalks_fit_the_headings(workspace: Workspace, name: str, modes: int) -> None:
    taxonomy = workspace.taxonomy(f"{name}@1")
    mapping = codebook_map(taxonomy, MAST, find_crosswalk(Path(f"{name}-to-mast")))
    assert len(taxonomy.modes) == modes
    kinds = {mapping.change(mode.slug) for mode in taxonomy.modes}
    assert kinds == {ModeChange.SAME, ModeChange.RENAMED, ModeChange.DROPPED}
    assert mapping.added == ()


@needs_corpus
def test_three_versions_are_in_one_workspace_without_loss(workspace: Workspace) -> None:
    early, interim = (migrate_to_mast(workspace, name) for name in EARLIER)
    assert (early.lost, interim.lost) == ([], [])
    assert (len(early.carried), len(interim.carried)) == (66, 21)
    assert (early.look_again, interim.look_again) == ([], [])
    assert [label.mode for label in early.dropped] == ["waiting_for_known_information"] * 6
    assert interim.dropped == []
    figures = {
        ref: kappa(workspace, ref) for ref in ("early-mast-18@1", "interim-mast-17@1", MAST.ref)
    }
    assert figures == {
        "early-mast-18@1": (5, 1.0),
        "interim-mast-17@1": (5, 1.0),
        MAST.ref: (10, 1.0),
    }
    # The study published the same verdicts on these traces under the present names.
    verdicts = {
        name: {
            (verdict.trace_id, verdict.mode): verdict.value
            for verdict in workspace.verdicts(annotator=name, taxonomy=MAST.ref)
        }
        for name in (*PEOPLE, "mast-consensus")
    }
    assert all(verdicts[name] == verdicts["mast-consensus"] for name in PEOPLE)
