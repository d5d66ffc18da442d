"""``mast-tui lint``: what fails, by which rules, with which exit code, and what is written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from mast_tui.judges.rules import RulesJudge
from mast_tui.traces.library import read_file, read_fully, samples_folder
from tests.cli.conftest import Cli
from tests.cli.test_judge import write_run


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_what_was_planted_in_the_samples_is_found(cli: Cli) -> None:
    samples = samples_folder()
    done = cli("lint", samples, "--rules", "all", "--json")
    assert done.code == 3
    findings = done.json["findings"]
    seen = {rule["mode"] for rule in done.json["rules"]}
    plants = [line for line in lines_of(samples / "planted.jsonl") if line["mechanical"]]
    plants = [failure for failure in plants if failure["mode"] in seen]
    assert len(plants) >= 15
    hit = 0
    for plant in plants:
        traces = read_file(samples / plant["trace"], named=True).traces
        (trace,) = [trace for trace in traces if trace.record == plant["record"]]
        read_fully(trace)
        first, last = trace.index_of(plant["first"]), trace.index_of(plant["last"])
        assert first is not None
        assert last is not None
        hit += any(
            finding["trace"] == trace.identity.trace_id
            and finding["mode"] == plant["mode"]
            and finding["spans"][0] <= last + 1
            and first + 1 <= finding["spans"][1]
            for finding in findings
        )
    assert hit >= 0.8 * len(plants)


def test_a_finding_names_file_and_line_where_the_source_has_lines(cli: Cli, tmp_path: Path) -> None:
    shutil.copytree(samples_folder(), tmp_path / "runs")
    findings = cli("lint", "runs", "--json").json["findings"]
    assert {finding["mode"] for finding in findings} == {"1.3"}
    by_line = [finding for finding in findings if finding["line"] is not None]
    assert len(by_line) >= 5
    for one in by_line:
        assert one["place"] == f"{one['file']}:{one['line']}"
        line = (tmp_path / one["file"]).read_text("utf-8").splitlines()[one["line"] - 1]
        assert json.dumps(one["quote"].split()[0], ensure_ascii=False)[1:-1] in line
    inside = [finding for finding in findings if finding["line"] is None]
    assert {one["place"].partition("#")[0] for one in inside} >= {
        "runs/appworld_rota_and_shelf.json",
        "runs/support_desk_exchange.json",
    }
    text = cli("lint", "runs").out
    assert text.startswith(
        f"mast-tui lint: {RulesJudge().name}: 11 findings in 16 traces; --fail-on any: 11"
    )
    assert "\nruns/ad-restart-loop.jsonl:125: error: 1.3 Step repetition (repeated-call): #67" in (
        text
    )


def test_only_what_is_named_makes_it_fail(cli: Cli, tmp_path: Path) -> None:
    write_run(tmp_path)
    assert cli("lint", "run.json").code == 3
    assert cli("lint", "run.json", "--fail-on", "step_repetition").code == 3
    other = cli("lint", "run.json", "--fail-on", "3.3", "--json")
    assert other.code == 0
    assert [(finding["mode"], finding["fails"]) for finding in other.json["findings"]] == [
        ("1.3", False)
    ]
    assert "failed-check" in {rule["name"] for rule in other.json["rules"]}, "what looks for 3.3"
    assert "reset" not in {rule["name"] for rule in cli("lint", ".", "--json").json["rules"]}


def test_fatal_are_the_modes_that_were_published_as_such(cli: Cli) -> None:
    done = cli("lint", samples_folder(), "--fail-on", "fatal", "--json")
    assert done.code == 3
    failing = {finding["mode"] for finding in done.json["findings"] if finding["fails"]}
    assert failing
    assert failing <= {"1.4", "1.5", "2.2", "2.3", "3.1"}
    assert any(not finding["fails"] for finding in done.json["findings"])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--fail-on", "1.33"), "did you mean 1.3 (Step repetition)?"),
        (("--fail-on", "step-repetition"), "did you mean 1.3"),
        (("--fail-on", "zzz"), "no such mode; mast@3 has 1.1"),
        (("--fail-on", ","), "is empty"),
        (("--fail-on", "2.4"), "no rule looks for it; the rules look for 1.3"),
        (("--fail-on", "3.3", "--rules", "similar-call"), "add failed-check to --rules"),
        (("--fail-on", "fatal", "--rules", "similar-call"), "looks for a fatal mode (1.4, 1.5"),
        (("--json", "--format", "sarif"), "leave out --format sarif"),
        (("--blind",), "shows nothing but a judge's findings"),
        (("--format", "xml"), "'xml' is not one of"),
    ],
)
def test_a_gate_that_could_never_close_is_wrong_usage(
    cli: Cli, tmp_path: Path, options: tuple[str, ...], told: str
) -> None:
    write_run(tmp_path)
    done = cli("lint", "run.json", *options)
    assert (done.code, done.out) == (2, "")
    assert told in done.err


def test_what_cannot_be_read_is_told_and_findings_come_first(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{")
    done = cli("lint", ".", "--json")
    assert done.code == 1
    assert [failure["path"] for failure in done.json["failed"]] == ["broken.json"]
    assert "broken.json" in done.err
    write_run(tmp_path)
    assert cli("lint", ".").code == 3
    assert cli("lint", "nowhere").code == 1


def test_nothing_to_look_at_is_no_success(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("nothing")
    done = cli("lint", ".")
    assert done.code == 1
    assert "no traces" in done.err


def test_nothing_is_written_but_the_output(cli: Cli, tmp_path: Path) -> None:
    write_run(tmp_path)
    done = cli("lint", ".", "--format", "sarif", "-o", "out.sarif")
    assert (done.code, done.out) == (3, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.sarif", "run.json"]
    assert json.loads((tmp_path / "out.sarif").read_text("utf-8"))["version"] == "2.1.0"


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("text", "out.txt"),
        ("github", "out.log"),
        ("json", "out.json"),
        ("sarif", "out.sarif"),
        ("junit", "out.xml"),
    ],
)
def test_an_earlier_output_is_replaced_and_is_no_trace(
    cli: Cli, tmp_path: Path, form: str, name: str
) -> None:
    write_run(tmp_path)
    written = set[bytes]()
    for _ in range(2):
        assert cli("lint", ".", "--format", form, "-o", name).code == 3
        written.add((tmp_path / name).read_bytes())
    assert len(written) == 1


def test_a_trace_is_never_written_over(cli: Cli, tmp_path: Path) -> None:
    write_run(tmp_path)
    before = (tmp_path / "run.json").read_bytes()
    (tmp_path / "other.json").write_bytes(before)
    assert cli("lint", ".", "-o", "run.json").code == 1
    forced = cli("lint", "other.json", "run.json", "-o", "run.json", "--force")
    assert (forced.code, "never overwritten" in forced.err) == (1, True)
    assert (tmp_path / "run.json").read_bytes() == before


def test_somebody_who_works_blind_is_told_nothing(cli: Cli, tmp_path: Path) -> None:
    write_run(tmp_path)
    assert cli("study", "set", "run.json", "--annotators", "ann", "--blind").code == 0
    hidden = cli("lint", "run.json", "--annotator", "ann")
    assert (hidden.code, hidden.out) == (1, "")
    assert "hidden from you" in hidden.err
    assert cli("lint", "run.json", "--annotator", "ann", "--assisted").code == 3
