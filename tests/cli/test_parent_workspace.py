"""Reports of a workspace that a command has found in a parent folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mast_tui.traces.library import samples_folder
from mast_tui.workspace.paths import samples_workspace_path
from tests.cli.conftest import Cli

LINE = f"workspace: {Path('..', '.mast-tui', 'workspace.db')} (found in a parent folder)\n"

LABELS = "trace_id,annotator,mode,value\nt,ann,1.3,present\nt,ann,,finished\n"

COMMANDS = [
    ("study", "set", "runs", "--annotators", "ann,bob"),
    ("study", "show"),
    ("judge", "runs", "--judge", "rules"),
    ("import", "labels.csv", "--format", "csv-long", "--allow-new"),
    ("agree", "--rounds", "0"),
    ("report", "--rounds", "0"),
    ("status",),
    ("export", "--format", "csv-long", "-o", "out.csv"),
    ("workspace", "check"),
    ("taxonomy", "migrate", "mast@3", "mast@3"),
]


@pytest.fixture
def subfolder(cli: Cli, tmp_path: Path) -> Path:
    """A folder below that of a workspace, with a trace and a file of labels."""
    folder = tmp_path / "below"
    (folder / "runs").mkdir(parents=True)
    shutil.copy(samples_folder() / "cart-valkey-noeviction.jsonl", folder / "runs")
    for parent in (tmp_path, folder):
        (parent / "labels.csv").write_text(LABELS)
    cli.ok("import", "labels.csv", "--format", "csv-long", "--allow-new")
    study = ("study", "set", "below/runs", "--annotators", "ann,bob")
    cli.ok(*study)
    return folder


def test_a_workspace_of_a_parent_folder_is_reported_once_on_stderr(
    cli: Cli, subfolder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli("status").err == ""
    monkeypatch.chdir(subfolder)
    database = Path("..", ".mast-tui", "workspace.db")
    for command in COMMANDS:
        result = cli(*command)
        assert (command, result.err.count(LINE)) == (command, 1)
        assert "parent folder" not in result.out
        named = cli(*command, "--workspace", database)
        assert "found in a parent folder" not in named.err
    result = cli("status", "--json")
    assert Path(result.json["workspace"]).samefile(database)
    assert LINE in result.err
    for reading in (("inspect", "runs"), ("search", "redis", "runs")):
        assert "workspace" not in cli(*reading).err


def test_a_study_leaves_out_people_of_a_parent_folder_only_if_it_is_named(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "labels.csv").write_text(LABELS)
    cli.ok("import", "labels.csv", "--format", "csv-long", "--allow-new")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    for names, counted in (("bob,cy", "ann"), ("di,ed", "bob, cy")):
        setting = ("study", "set", "--annotators", names)
        refused = cli(*setting)
        assert (refused.code, f"leave out {counted}," in refused.err) == (1, True)
        cli.ok(*setting, "--workspace", "../.mast-tui/workspace.db")


@pytest.mark.parametrize(
    "command",
    [("agree",), ("status",), ("report",), ("export", "--format", "gold", "-o", "gold.json")],
)
def test_without_a_workspace_the_labels_of_the_sample_traces_are_named(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert "sample" not in cli(*command).err
    samples = samples_workspace_path()
    (tmp_path / "labels.csv").write_text(LABELS)
    samples.parent.mkdir(parents=True)
    importing = ("import", "labels.csv", "--format", "csv-long", "--allow-new")
    assert cli(*importing, "--workspace", samples).code == 0
    result = cli(*command)
    assert (result.code, f"sample traces are in {samples}" in result.err) == (1, True)
    assert cli(*command, "--workspace", samples).code == 0
    assert "sample" not in cli(*command, "--workspace", tmp_path / "other.db").err
