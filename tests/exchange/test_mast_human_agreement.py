"""The agreement of the people whose labels the MAST study released, and what stands behind it."""

from __future__ import annotations

import json
from itertools import combinations, groupby
from pathlib import Path
from typing import Any

import krippendorff
import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from mast_tui.exchange.apply import apply_incoming
from mast_tui.exchange.importers.mast_human import read_mast_human
from mast_tui.figures.source.agreement import study_from_workspace
from mast_tui.workspace import Workspace
from tests.exchange.corpus import corpus
from tests.figures.agreement.tables import agreement_document


def records() -> list[dict[str, object]]:
    """The label records of both rounds."""
    path = corpus("mast-human") / "annotations_rounds_1_2.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(found, list)
    return found


def answers_by_heading(record: dict[str, object]) -> dict[str, dict[str, bool]]:
    """The answers of a record by heading and annotator."""
    found = record["hf_annotations"]
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """A report for each round; each has a taxonomy of its own.

    The label records stand alone here, so the traces keep the ids that the records name.
    """
    folder: Path = tmp_path_factory.mktemp("rounds")
    labels = folder / "labels.json"
    labels.write_text(json.dumps(records()), encoding="utf-8")
    workspace = Workspace.open(":memory:")
    applied = apply_incoming(read_mast_human([labels]), workspace, source="test")
    assert applied.written
    return {
        taxonomy.id: agreement_document(study_from_workspace(workspace, taxonomy), rounds=100)
        for taxonomy in workspace.taxonomies()
    }


@pytest.mark.slow
def test_every_pair_has_a_kappa_of_one_in_both_rounds(reports: dict[str, dict[str, Any]]) -> None:
    assert set(reports) == {"early-mast-18", "interim-mast-17"}
    for report in reports.values():
        assert report["annotators"] == ["annotator_1", "annotator_2", "annotator_3"]
        assert report["traces"]["finished_by_all"] == 5
        pairs = report["pooled"]["pairs"]
        assert len(pairs) == 3
        assert {pair["cohen_kappa"]["value"] for pair in pairs.values()} == {1.0}
        assert report["pooled"]["krippendorff_alpha"]["value"] == 1.0
        assert report["sets"]["krippendorff_alpha_masi"]["value"] == 1.0


def test_the_blocks_that_stand_behind_several_traces_are_named(
    reports: dict[str, dict[str, Any]],
) -> None:
    def block(record: dict[str, object]) -> str:
        return json.dumps(record["hf_annotations"], sort_keys=True)

    for report in reports.values():
        named = {frozenset(one["traces"]) for one in report["identical_blocks"]}
        scheme = report["taxonomy"].partition("@")[0]
        of_round = sorted((r for r in records() if r["hf_label_scheme"] == scheme), key=block)
        groups = [list(group) for _, group in groupby(of_round, key=block)]
        shared = [frozenset(str(record["trace_id"]) for record in group) for group in groups]
        present = [
            sum(any(answers.values()) for answers in answers_by_heading(group[0]).values())
            for group in groups
        ]
        copied = {
            traces
            for traces, modes in zip(shared, present, strict=True)
            if len(traces) > 1 and modes > 1  # agreeing on one mode is no sign of a copy
        }
        assert copied
        assert named == copied
        assert report["blocks"] == {"traces": 5, "distinct": len(shared)}
        assert len(shared) == 2


def test_the_figures_are_those_of_scikit_learn_and_krippendorff(
    reports: dict[str, dict[str, Any]],
) -> None:
    for report in reports.values():
        scheme = report["taxonomy"].partition("@")[0]
        names = report["annotators"]
        cells = [
            [said.get(name) for name in names]
            for record in records()
            if record["hf_label_scheme"] == scheme
            for said in answers_by_heading(record).values()
        ]
        by_annotator = np.array(cells, dtype=float).T
        pairs = report["pooled"]["pairs"]
        for pair, (one, other) in zip(pairs.values(), combinations(by_annotator, 2), strict=True):
            expected = cohen_kappa_score(one, other)
            assert pair["cohen_kappa"]["value"] == pytest.approx(expected)
        expected = krippendorff.alpha(by_annotator, level_of_measurement="nominal")
        assert report["pooled"]["krippendorff_alpha"]["value"] == pytest.approx(expected)
