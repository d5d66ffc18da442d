"""The hook of pre-commit, the action of GitHub, and their examples."""

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

import yaml

from mast_tui.cli.lint.formats import FORMATS
from mast_tui.traces.library import samples_folder
from tests.cli.conftest import Cli
from tests.cli.test_lint_formats import commands
from tests.waiting import PATIENCE

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
