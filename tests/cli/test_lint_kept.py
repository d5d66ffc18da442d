"""``mast-tui lint --judge NAME``: what a judge has suggested before, read from a workspace."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sarif_kit.validate import validation_errors

from mast_tui.judges.rules import RulesJudge
from mast_tui.labels import Evidence, Finding, Match
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.library import samples_folder
from mast_tui.workspace import Workspace, store_judgement
from tests.cli.conftest import Cli
from tests.cli.test_judge import write_run
from tests.traces.rollouts import call, message, meta, output, write

MAST = load_mast()
MODEL = "judge:some-model@12345678"


def said_by_a_model(folder: Path, *findings: Finding) -> None:
    """Keep findings of a model, which has looked at all modes, on the one trace that is known."""
    with closing(Workspace.open(folder / ".mast-tui" / "workspace.db")) as place:
        (record,) = place.traces()
        store_judgement(
            place,
            judge=MODEL,
            taxonomy=MAST.ref,
            trace_id=record.trace_id,
            looks_at=[mode.slug for mode in MAST.modes if mode.code != "2.5"],
            findings=findings,
        )


@pytest.fixture
def known(cli: Cli, tmp_path: Path) -> Path:
    """A folder whose workspace knows the one trace in it."""
    write_run(tmp_path)
    assert cli("judge", "run.json", "--judge", "rules").code == 0
    return tmp_path


def test_what_the_rules_have_said_is_what_they_say(cli: Cli, tmp_path: Path) -> None:
    shutil.copytree(samples_folder(), tmp_path / "runs")
    cli("judge", "runs", "--judge", "rules")
    fields = ("place", "spans", "mode", "quote", "reason", "confidence", "fails")

    def told(*options: str) -> list[tuple[Any, ...]]:
        done = cli("lint", "runs", *options, "--json")
        assert done.code == 3
        return [tuple(str(finding[name]) for name in fields) for finding in done.json["findings"]]

    assert sorted(told("--judge", RulesJudge().name.removeprefix("judge:"))) == sorted(told())


def test_a_model_s_findings_fail_by_what_it_calls_decisive(cli: Cli, known: Path) -> None:
    run = json.loads(cli("inspect", "run.json", "--spans", "--json").out)
    keys = [span["key"] for span in run["files"][0]["traces"][0]["span_list"]]
    words = Evidence(key=keys[1], quote="kubectl", char_start=13, char_end=20, match=Match.ALTERED)
    said_by_a_model(
        known,
        Finding("task_derailment", keys[1], keys[2], "lost its way", 0.4, False, words),
        Finding("step_repetition", keys[3], keys[4], "again", 0.9, True),
        Finding("information_withholding", None, None, "throughout", 0.5),
    )
    done = cli("lint", "run.json", "--judge", "some-model", "--fail-on", "fatal", "--json")
    assert (done.code, done.json["judge"], done.json["rules"]) == (3, MODEL, [])
    assert [
        (finding["mode"], finding["fails"], finding["rule"]) for finding in done.json["findings"]
    ] == [
        ("2.4", False, None),
        ("2.3", False, None),
        ("1.3", True, None),
    ]
    whole, altered, _ = done.json["findings"]
    assert whole["spans"] == [1, len(keys)]
    assert (altered["span"], altered["reason"]) == (2, "lost its way (quote altered)")
    log = cli("lint", "run.json", "--judge", "some-model", "--format", "sarif").json
    assert validation_errors(log) == []
    assert {result["ruleId"] for result in log["runs"][0]["results"]} == {"1.3", "2.3", "2.4"}


def test_a_trace_that_nobody_has_judged_as_it_is_now_is_no_success(cli: Cli, known: Path) -> None:
    said_by_a_model(known)
    assert cli("lint", "run.json", "--judge", MODEL).code == 0
    (known / "other.json").write_text((known / "run.json").read_text().replace("pod", "node"))
    other = cli("lint", ".", "--judge", MODEL, "--json")
    assert other.code == 1
    assert [failure["path"] for failure in other.json["failed"]] == ["other.json"]
    assert "has not judged it; run 'mast-tui judge' first" in other.err


def test_a_trace_that_has_grown_is_to_be_judged_again(cli: Cli, tmp_path: Path) -> None:
    path = write(tmp_path, meta(), message("user", "go"), call("a"), output("a"))
    assert cli("judge", path.name, "--judge", "rules").code == 0
    assert cli("lint", path.name, "--judge", "rules@").code == 0
    write(tmp_path, meta(), message("user", "go"), call("a"), output("a"), call("b"), output("b"))
    done = cli("lint", path.name, "--judge", "rules@")
    assert (done.code, f"it has grown since {RulesJudge().name}" in done.err) == (1, True)
    assert cli("judge", path.name, "--judge", "rules").code == 0
    assert cli("lint", path.name, "--judge", "rules@").code == 3


def test_nothing_is_changed_in_the_workspace(cli: Cli, known: Path) -> None:
    said_by_a_model(known)
    before = (known / ".mast-tui" / "workspace.db").read_bytes()
    assert cli("lint", "run.json", "--judge", MODEL).code == 0
    assert (known / ".mast-tui" / "workspace.db").read_bytes() == before


def test_a_judge_that_there_is_not_is_told(cli: Cli, known: Path) -> None:
    said_by_a_model(known)
    for options, code, told in (
        (("--judge", "other"), 1, "no judge 'other' in this workspace"),
        (("--judge", MODEL, "--rules", "loop"), 2, "has judged already"),
        (("--judge", MODEL, "--fail-on", "2.5"), 2, "does not look for it"),
    ):
        done = cli("lint", "run.json", *options)
        assert (done.code, done.out) == (code, "")
        assert told in done.err


def test_without_a_workspace_there_is_nobody_who_has_judged(cli: Cli, tmp_path: Path) -> None:
    write_run(tmp_path)
    done = cli("lint", "run.json", "--judge", MODEL)
    assert done.code == 1
    assert "there is no workspace" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
