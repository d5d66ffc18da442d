"""Paths of workspaces and of traces, and suggested names."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mast_tui.traces.io.remote import trace_path
from mast_tui.workspace import TraceRecord, Workspace
from mast_tui.workspace.paths import (
    default_workspace_path,
    find_workspace,
    found_trace_path,
    samples_workspace_path,
    stored_trace_path,
    suggested_name,
    traces_folder,
)
from mast_tui.workspace.records import SpanIndex
from tests.workspace.version_one import WITHOUT_TASKS


def test_workspace_is_named_or_the_nearest_upwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    assert default_workspace_path(deep) == deep / ".mast-tui" / "workspace.db"
    for folder in (tmp_path, tmp_path / "a"):
        path = folder / ".mast-tui" / "workspace.db"
        path.parent.mkdir()
        path.touch()
        assert default_workspace_path(deep) == path
    monkeypatch.chdir(deep)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_workspace(None) == path
    assert find_workspace("x.db") == Path("x.db")
    assert find_workspace("~/x.db") == tmp_path / "x.db"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert samples_workspace_path().suffix == ".db"
    assert samples_workspace_path().is_relative_to(tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_suggested_name_is_configured_or_of_git_or_the_login(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "gitconfig"
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", str(tmp_path / "none"))
    monkeypatch.setenv("LOGNAME", "login-name")
    monkeypatch.chdir(tmp_path)
    for unusable in (None, "judge:me", ""):
        assert suggested_name(unusable) == "login-name"
    config.write_text("[user]\n\tname = Ada Lovelace\n", encoding="utf-8")
    assert suggested_name(None) == "Ada Lovelace"
    assert suggested_name("  grace ") == "grace"
    config.write_text('[user]\n\tname = "a|b"\n', encoding="utf-8")
    assert suggested_name("x" * 65) == "login-name"
    monkeypatch.setenv("PATH", "")
    assert suggested_name(None) == "login-name"


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the trace ``runs/one.json``."""
    folder = tmp_path / "study"
    (folder / "runs").mkdir(parents=True)
    (folder / "runs" / "one.json").write_text("{}")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def workspace_path(study: Path) -> Path:
    return study / ".mast-tui" / "workspace.db"


def register(workspace_path: Path, path: Path) -> list[str | None]:
    """Register a trace with this path; return the stored paths."""
    with closing(Workspace.open(workspace_path)) as workspace:
        workspace.register_trace(TraceRecord("t", path=path))
        return workspace.read_columns("traces", ("path",), lambda rows: [row[0] for row in rows])


def path_in(workspace_path: Path) -> Path | None:
    with closing(Workspace.open(workspace_path)) as workspace:
        return workspace.trace("t").path


def test_trace_paths_are_relative_to_the_folder_of_the_workspace(
    study: Path, tmp_path: Path
) -> None:
    assert traces_folder(tmp_path / ".mast-tui" / "workspace.db") == tmp_path
    assert traces_folder(tmp_path / "labels.db") == tmp_path
    link = tmp_path / "link"
    link.symlink_to(study)
    folder = traces_folder(link / ".mast-tui" / "workspace.db")
    assert stored_trace_path(study / "runs" / "one.json", folder) == "runs/one.json"


@pytest.mark.parametrize("text", ["runs/one.json", "../study/runs/one.json", "{}/runs/one.json"])
def test_trace_is_found_from_any_directory_and_in_a_moved_folder(
    study: Path, workspace_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    assert register(workspace_path, Path(text.format(study))) == ["runs/one.json"]
    monkeypatch.chdir("/")
    assert path_in(workspace_path) == study / "runs" / "one.json"
    moved = study.rename(study.with_name("moved"))
    assert path_in(moved / ".mast-tui" / "workspace.db") == moved / "runs" / "one.json"


def test_same_path_again_writes_nothing(study: Path, workspace_path: Path) -> None:
    with closing(Workspace.open(workspace_path)) as workspace:
        for path in (Path("runs/one.json"), study / "runs" / "one.json"):
            workspace.register_trace(TraceRecord("t", path=path))
            last_write = workspace.last_write
        assert workspace.last_write == last_write
        assert workspace.trace("t").path == study / "runs" / "one.json"


def test_trace_outside_the_folder_keeps_its_absolute_path(
    workspace_path: Path, tmp_path: Path
) -> None:
    (tmp_path / "far.json").write_text("{}")
    assert register(workspace_path, Path("../far.json")) == [str(tmp_path / "far.json")]


def test_urls_are_stored_unchanged_and_archives_relative(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for url in (
        "s3://bucket/runs/one.json",
        "https://host/one.json",
        "zip://one.json::https://host/runs.zip",
    ):
        assert stored_trace_path(trace_path(url), study) == url
        assert found_trace_path(url, study) == trace_path(url)
    (study / "runs.zip").write_bytes(b"")
    stored = stored_trace_path(trace_path("zip://one.json::runs.zip"), study)
    assert stored == "zip://one.json::runs.zip"
    monkeypatch.chdir("/")
    assert str(found_trace_path(stored, study)) == f"zip://one.json::{study}/runs.zip"


def test_copies_elsewhere_keep_paths_and_span_indices(
    study: Path, workspace_path: Path, tmp_path: Path
) -> None:
    indices = {"t": {"k0": SpanIndex(0, 12), "gone": SpanIndex(None)}}
    copies = tmp_path / "copies"
    copies.mkdir()
    with closing(Workspace.open(workspace_path)) as workspace:
        workspace.register_trace(TraceRecord("t", path=Path("runs/one.json")))
        workspace.keep_span_indices(indices)
        workspace.rebuild()
        assert workspace.span_indices() == indices
        assert workspace.differences() == ()
        workspace.copy_to(copies / "backup.db")
        with closing(Workspace.open(copies / "rows.db")) as rows:
            workspace.copy_into(rows)
    for name in ("backup.db", "rows.db"):
        with closing(Workspace.open(copies / name)) as copy:
            assert copy.trace("t").path == study / "runs" / "one.json"
            assert copy.span_indices() == indices


def test_paths_of_earlier_versions_are_tried_in_the_folder_and_then_here(
    study: Path, workspace_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Workspace.open(workspace_path).close()
    with closing(sqlite3.connect(workspace_path)) as raw, raw:
        for statement in (*WITHOUT_TASKS, "DROP TABLE span_indices"):
            raw.execute(statement)
        rows = {"here": "runs/one.json", "there": "old.json", "far": "s3://b/k", "abs": "/x.json"}
        raw.executemany(
            "INSERT INTO traces (id, base_id, native, outcome, path) "
            "VALUES (?, ?, 0, 'unknown', ?)",
            [(name, name, path) for name, path in rows.items()],
        )
        raw.execute("PRAGMA user_version = 8")
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "runs").mkdir(parents=True)
    for name in ("old.json", "runs/one.json"):
        (elsewhere / name).write_text("{}")
    monkeypatch.chdir(elsewhere)
    with closing(Workspace.open(workspace_path)) as workspace:
        paths = {trace.trace_id: trace.path for trace in workspace.traces()}
        assert paths["here"] == study / "runs" / "one.json"
        assert paths["there"] == elsewhere / "old.json"
        assert str(paths["far"]) == "s3://b/k"
        assert paths["abs"] == Path("/x.json")
        monkeypatch.chdir("/")
        assert workspace.trace("there").path == study / "old.json"
