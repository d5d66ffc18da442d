"""The hook of pre-commit and the action of GitHub do what they say, step by step."""

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


def loaded(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text("utf-8"))


def test_the_hook_looks_at_the_files_that_it_is_given(cli: Cli, tmp_path: Path) -> None:
    (hook,) = loaded(".pre-commit-hooks.yaml")
    program, *words = shlex.split(hook["entry"])
    assert program == "mast-tui"
    shutil.copytree(samples_folder(), tmp_path / "runs")
    names = ["runs/ad-restart-loop.jsonl", "runs/email-relay-rejects.jsonl"]
    assert all(re.search(hook["files"], name) for name in names)
    assert not re.search(hook["files"], "package.json")
    assert cli(*words, *names).code == 3
    assert cli(*words, names[1]).code == 0


def test_the_example_of_the_hook_asks_for_one_that_there_is(cli: Cli, tmp_path: Path) -> None:
    ((one,),) = (
        [*repo["hooks"]] for repo in loaded("docs/examples/pre-commit-config.yaml")["repos"]
    )
    (hook,) = loaded(".pre-commit-hooks.yaml")
    assert one["id"] == hook["id"]
    shutil.copy(samples_folder() / "ad-restart-loop.jsonl", tmp_path)
    done = cli(*shlex.split(hook["entry"])[1:], *one["args"], "ad-restart-loop.jsonl")
    assert done.code == 3
    assert ": error: 3.3 Incorrect verification" in done.out


def step_of_the_action(folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """The step that looks, as GitHub runs it: its script in bash, the inputs put into its ``env``.

    What the step before it installs is this package.
    """
    action = loaded("action.yml")
    values = {name: one.get("default", "") for name, one in action["inputs"].items()}
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
    outer = {**os.environ, "PYTHONPATH": str(ROOT), "RUNNER_TEMP": str(folder / "temp")}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", folder / "step.sh"],
        cwd=folder,
        env={**outer, **environment},
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=PATIENCE,
    )


def test_the_action_annotates_and_fails(tmp_path: Path) -> None:
    shutil.copytree(samples_folder(), tmp_path / "runs of today")
    done = step_of_the_action(
        tmp_path, paths="\n  \nruns of today\n", fail_on="1.3,3.3", sarif="traces.sarif"
    )
    assert done.returncode == 3, done.stderr
    levels = [name for name, _settings, _data in commands(done.stdout)]
    log = json.loads((tmp_path / "traces.sarif").read_text("utf-8"))
    assert len(levels) == len(log["runs"][0]["results"]) >= 10
    assert set(levels) == {"error"}


def test_the_action_passes_where_nothing_is_found(tmp_path: Path) -> None:
    shutil.copy(samples_folder() / "email-relay-rejects.jsonl", tmp_path / "-run.jsonl")
    done = step_of_the_action(tmp_path, paths="-run.jsonl", rules="repeated-call")
    assert (done.returncode, commands(done.stdout)) == (0, [])
    assert not list(tmp_path.glob("*.sarif"))


def test_no_input_is_read_by_the_shell(tmp_path: Path) -> None:
    words = "\"; touch pwned; $(touch pwned) `touch pwned` '"
    done = step_of_the_action(
        tmp_path, **dict.fromkeys(("paths", "fail_on", "rules", "sarif"), words)
    )
    assert done.returncode in (1, 2)
    assert not (tmp_path / "pwned").exists()


def test_the_example_of_the_action_gives_inputs_that_there_are() -> None:
    action = loaded("action.yml")
    (job,) = loaded("docs/examples/lint-traces.yml")["jobs"].values()
    (ours,) = [step for step in job["steps"] if "mast_tui@" in step.get("uses", "")]
    assert set(ours["with"]) <= set(action["inputs"])
    assert {name for name, one in action["inputs"].items() if one.get("required")} <= set(
        ours["with"]
    )
    (upload,) = [step for step in job["steps"] if "upload-sarif" in step.get("uses", "")]
    assert upload["with"]["sarif_file"] == ours["with"]["sarif"]
    assert {"sarif", "github"} <= set(FORMATS)
