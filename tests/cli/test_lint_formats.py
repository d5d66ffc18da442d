"""The formats of ``mast-tui lint``, valid for any text, its hook, its action and their examples."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote
from xml.etree import ElementTree

import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from sarif_kit.validate import validation_errors

from mast_tui.cli.lint.findings import LintedTrace, LintReport, PlacedFinding
from mast_tui.cli.lint.formats import FORMATS
from mast_tui.judges.rules import RULES
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.file_places import FilePlace
from mast_tui.traces.library import samples_folder
from tests.cli.conftest import Cli
from tests.waiting import PATIENCE

MAST: Final = load_mast()
HOSTILE: Final = (
    "a\n::error file=x::stolen",
    "##[add-path]/evil",
    "::set-output name=a::b",
    "</failure><x a='1'>]]>&amp;",
    "100%0A::warning::\r\n",
    "[see](1) {0} {{",
    "\x1b[31m\x00\x07\ud800\ufffe\u202e",
    "a,b:c=d%2C",
)

COMMAND: Final = re.compile(r"::(?P<name>\w+)(?: (?P<settings>.*?))?::(?P<data>.*)")
"""A command as GitHub's runner parses a line: settings end with the first ``::``."""


def decoded(text: str, *, setting: bool) -> str:
    if setting:
        text = text.replace("%3A", ":").replace("%2C", ",")
    return text.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")


def commands(text: str) -> list[tuple[str, dict[str, str], str]]:
    """Return the commands that the runner finds in printed lines."""
    parsed = []
    for line in text.split("\n"):
        assert "##[" not in line
        match = COMMAND.match(line.lstrip())
        if match is None:
            continue
        settings = dict(setting.split("=", 1) for setting in match["settings"].split(","))
        parsed.append(
            (
                match["name"],
                {name: decoded(value, setting=True) for name, value in settings.items()},
                decoded(match["data"], setting=False),
            )
        )
    return parsed


def report_of(text: str, *, line: int | None = 3, fails: bool = True) -> LintReport:
    """Return a report in which this text stands for all foreign texts."""
    name = text.encode("utf-8", "ignore").decode().replace("\0", "").replace("/", "") or "x"
    path = Path("runs") / name
    mode = MAST.mode("step_repetition")
    inside = "" if line else f"/{text}"
    finding = PlacedFinding(
        trace_id=text,
        path=path,
        place=FilePlace(path, line, inside),
        key=text,
        number=4,
        first=2,
        last=4,
        mode=mode,
        rule="repeated-call",
        quote=text,
        reason=text,
        confidence=0.5,
        decisive=None,
        fails=fails,
    )
    report = LintReport("judge:rules@2", MAST, (("repeated-call", mode),), "any")
    report.traces.append(LintedTrace(text, path, (finding,)))
    report.failed.append((Path("runs") / f"{name}.json", text))
    return report


def test_sarif_of_the_samples_is_valid(cli: Cli, tmp_path: Path) -> None:
    shutil.copytree(samples_folder(), tmp_path / "runs of today")
    linted = cli("lint", "runs of today", "--rules", "all", "--format", "sarif")
    assert linted.code == 3
    log = linted.json
    assert validation_errors(log) == []
    (run,) = log["runs"]
    ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(set(ids)) == len(ids) == len(RULES)
    assert len(run["results"]) >= 15
    for result in run["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        (location,) = result["locations"]
        physical = location["physicalLocation"]
        file = tmp_path / unquote(physical["artifactLocation"]["uri"])
        if "region" in physical:
            lines = file.read_text("utf-8").count("\n")
            assert 1 <= physical["region"]["startLine"] <= lines
        else:
            assert file.is_file()
            assert location["logicalLocations"][0]["fullyQualifiedName"].startswith("/")
    fingerprints = [json.dumps(result["partialFingerprints"]) for result in run["results"]]
    assert len(set(fingerprints)) == len(fingerprints)
    del run["results"][0]["message"]
    assert validation_errors(log) != [], "the validator finds faults"


def test_junit_has_a_case_and_github_a_command_for_each_finding(cli: Cli, tmp_path: Path) -> None:
    shutil.copytree(samples_folder(), tmp_path / "runs")
    document = cli("lint", "runs", "--json").json
    (suite,) = ElementTree.fromstring(cli("lint", "runs", "--format", "junit").out)
    cases = suite.findall("testcase")
    traces = document["traces"]
    names = [(trace["path"], trace["trace"]) for trace in traces]
    assert [(case.get("classname"), case.get("name")) for case in cases] == names
    failed = [case for case in cases if case.find("failure") is not None]
    assert suite.get("tests") == str(len(cases)) == "16"
    with_findings = [trace for trace in traces if trace["findings"]]
    assert suite.get("failures") == str(len(failed)) == str(len(with_findings))

    annotations = commands(cli("lint", "runs", "--format", "github").out)
    annotated = [(level, where["file"], where.get("line")) for level, where, _ in annotations]
    assert annotated == [
        ("error", finding["file"], None if finding["line"] is None else str(finding["line"]))
        for finding in document["findings"]
    ]
    allowed = commands(cli("lint", "runs", "--format", "github", "--fail-on", "3.1").out)
    assert "warning" in {name for name, _settings, _ in allowed}


foreign = st.text(st.characters(), min_size=1, max_size=60)


@given(foreign, st.sampled_from([3, None]), st.booleans())
@example("a b:c%é?#", 3, True)
@example(HOSTILE[0], 3, True)
@example(HOSTILE[1], None, True)
@example(HOSTILE[2], 3, False)
@example(HOSTILE[3], None, False)
@example(HOSTILE[4], 3, True)
@example(HOSTILE[5], 3, True)
@example(HOSTILE[6], None, True)
@example(HOSTILE[7], 3, True)
def test_foreign_text_is_escaped_in_every_format(text: str, line: int | None, fails: bool) -> None:
    report = report_of(text, line=line, fails=fails)
    level = "error" if fails else "warning"

    annotations = commands(FORMATS["github"](report))
    assert [name for name, _settings, _data in annotations] == [level, "error"]
    settings = {"file", "title"} if line is None else {"file", "line", "title"}
    assert set(annotations[0][1]) == settings
    assert annotations[0][1]["title"] == "1.3 Step repetition (repeated-call)"

    assert commands(FORMATS["text"](report)) == []
    assert len(FORMATS["text"](report).split("\n")) == 4

    (suite,) = ElementTree.fromstring(FORMATS["junit"](report).encode("utf-8"))
    kinds = [[child.tag for child in case] for case in suite.findall("testcase")]
    assert kinds == [["failure" if fails else "system-out"], ["error"]]

    log = json.loads(FORMATS["sarif"](report))
    json.dumps(log, ensure_ascii=False).encode("utf-8")
    assert validation_errors(log) == []
    (result,) = log["runs"][0]["results"]
    assert result["level"] == level
    shown_text = result["message"]["text"]
    assert re.search(r"(?<!\\)\]\(", shown_text) is None, "a link"
    assert re.search(r"(?<!\{)(?:\{\{)*\{(?!\{)", shown_text) is None, "a placeholder"
    if text == "a b:c%é?#":
        location = result["locations"][0]["physicalLocation"]["artifactLocation"]
        assert location == {"uri": "runs/a%20b%3Ac%25%C3%A9%3F%23", "uriBaseId": "%SRCROOT%"}

    document = json.loads(FORMATS["json"](report))
    assert document["findings"][0]["quote"] == text
    for file_format in ("text", "junit", "github"):
        output = FORMATS[file_format](report)
        output.encode("utf-8")
        assert re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", output) is None, file_format


ROOT: Final = Path(__file__).parents[2]


def load_yaml(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text("utf-8"))


def test_the_hook_checks_the_given_files(cli: Cli, tmp_path: Path) -> None:
    (hook,) = load_yaml(".pre-commit-hooks.yaml")
    program, *args = shlex.split(hook["entry"])
    assert program == "mast-tui"
    shutil.copytree(samples_folder(), tmp_path / "runs")
    names = ["runs/ad-restart-loop.jsonl", "runs/email-relay-rejects.jsonl"]
    assert all(re.search(hook["files"], name) for name in names)
    assert not re.search(hook["files"], "package.json")
    assert cli(*args, *names).code == 3
    cli.ok(*args, names[1])
    ((example,),) = (
        repo["hooks"] for repo in load_yaml("docs/examples/pre-commit-config.yaml")["repos"]
    )
    assert example["id"] == hook["id"]
    result = cli(*args, *example["args"], names[0])
    assert result.code == 3
    assert ": error: 3.3 Incorrect verification" in result.out


def run_action(folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run the last step of the action as GitHub does: in bash, with its inputs in ``env``.

    The step before it installs this package.
    """
    action = load_yaml("action.yml")
    values = {name: definition.get("default", "") for name, definition in action["inputs"].items()}
    values |= {name.replace("_", "-"): value for name, value in inputs.items()}
    step = action["runs"]["steps"][-1]
    assert step["shell"] == "bash"
    assert "${{" not in step["run"], "an input would be read as a line of the shell"
    environment = {
        name: values[re.fullmatch(r"\$\{\{ inputs\.([\w-]+) \}\}", value)[1]]  # type: ignore[index]
        for name, value in step["env"].items()
    }
    program = folder / "temp" / "mast-tui" / "bin" / "mast-tui"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m mast_tui "$@"\n')
    program.chmod(0o755)
    (folder / "step.sh").write_text(step["run"])
    inherited = {**os.environ, "PYTHONPATH": str(ROOT), "RUNNER_TEMP": str(folder / "temp")}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", folder / "step.sh"],
        cwd=folder, env={**inherited, **environment}, capture_output=True, encoding="utf-8",
        check=False, timeout=PATIENCE,
    )  # fmt: skip


def test_the_action_annotates_fails_and_passes(tmp_path: Path) -> None:
    shutil.copytree(samples_folder(), tmp_path / "runs of today")
    paths = "\n  \nruns of today\n"
    result = run_action(tmp_path, paths=paths, fail_on="1.3,3.3", sarif="traces.sarif")
    assert result.returncode == 3, result.stderr
    levels = [name for name, _settings, _data in commands(result.stdout)]
    log = json.loads((tmp_path / "traces.sarif").read_text("utf-8"))
    assert len(levels) == len(log["runs"][0]["results"]) >= 10
    assert set(levels) == {"error"}
    (tmp_path / "traces.sarif").unlink()

    shutil.copy(samples_folder() / "email-relay-rejects.jsonl", tmp_path / "-run.jsonl")
    result = run_action(tmp_path, paths="-run.jsonl", rules="repeated-call")
    assert (result.returncode, commands(result.stdout)) == (0, [])
    assert not list(tmp_path.glob("*.sarif"))

    hostile = "\"; touch pwned; $(touch pwned) `touch pwned` '"
    names = ("paths", "fail_on", "rules", "sarif")
    assert run_action(tmp_path, **dict.fromkeys(names, hostile)).returncode in (1, 2)
    assert not (tmp_path / "pwned").exists()


def test_the_example_of_the_action_uses_defined_inputs() -> None:
    action = load_yaml("action.yml")
    (job,) = load_yaml("docs/examples/lint-traces.yml")["jobs"].values()
    (lint_step,) = [step for step in job["steps"] if "mast_tui@" in step.get("uses", "")]
    assert set(lint_step["with"]) <= set(action["inputs"])
    assert {
        name for name, definition in action["inputs"].items() if definition.get("required")
    } <= set(lint_step["with"])
    (upload,) = [step for step in job["steps"] if "upload-sarif" in step.get("uses", "")]
    assert upload["with"]["sarif_file"] == lint_step["with"]["sarif"]
    assert {"sarif", "github"} <= set(FORMATS)
