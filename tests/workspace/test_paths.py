"""Where a workspace is looked for, and whose name is suggested."""

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


def test_the_nearest_workspace_upwards_is_taken(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    assert default_workspace_path(deep) == deep / ".mast-tui" / "workspace.db"
    for folder in (tmp_path, tmp_path / "a"):
        path = folder / ".mast-tui" / "workspace.db"
        path.parent.mkdir()
        path.touch()
        assert default_workspace_path(deep) == path


def test_a_command_can_name_its_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_workspace(None) == default_workspace_path(tmp_path)
    assert find_workspace("x.db") == Path("x.db")
    assert find_workspace("~/x.db") == tmp_path / "x.db"


def test_the_samples_have_one_in_the_users_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    path = samples_workspace_path()
    assert path.suffix == ".db"
    assert not path.parent.exists()


@pytest.fixture
def gitconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine on which git knows nobody; the file in which git would look."""
    config = tmp_path / "gitconfig"
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", str(tmp_path / "none"))
    monkeypatch.setenv("LOGNAME", "login-name")
    monkeypatch.chdir(tmp_path)
    return config


def test_the_configured_name_comes_first_then_git_then_the_login(gitconfig: Path) -> None:
    assert suggested_name(None) == "login-name"
    gitconfig.write_text("[user]\n\tname = Ada Lovelace\n", encoding="utf-8")
    assert suggested_name(None) == "Ada Lovelace"
    assert suggested_name("  grace ") == "grace"


def test_what_cannot_be_a_name_is_not_suggested(gitconfig: Path) -> None:
    assert suggested_name("judge:me") == "login-name"
    assert suggested_name("") == "login-name"
    gitconfig.write_text('[user]\n\tname = "a|b"\n', encoding="utf-8")
    assert suggested_name("x" * 65) == "login-name"


def test_without_git_the_login_will_do(gitconfig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert suggested_name(None) == "login-name"


# The files of traces


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a trace, in which the program is started."""
    folder = tmp_path / "study"
    (folder / "runs").mkdir(parents=True)
    (folder / "runs" / "one.json").write_text("{}")
    monkeypatch.chdir(folder)
    return folder


def stored(place: Path) -> list[str | None]:
    """The paths as they are in the file."""
    with closing(Workspace.open(place)) as workspace:
        return workspace.read_columns("traces", ("path",), lambda rows: [row[0] for row in rows])


def test_traces_are_named_from_the_folder_of_the_workspace(tmp_path: Path) -> None:
    assert traces_folder(tmp_path / ".mast-tui" / "workspace.db") == tmp_path
    assert traces_folder(tmp_path / "labels.db") == tmp_path


@pytest.mark.parametrize("given", ["runs/one.json", "../study/runs/one.json", "{}/runs/one.json"])
def test_a_trace_is_found_from_any_directory_and_where_its_folder_was_moved(
    study: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    place = study / ".mast-tui" / "workspace.db"
    with closing(Workspace.open(place)) as workspace:
        workspace.register_trace(TraceRecord("t", path=Path(given.format(study))))
    assert stored(place) == ["runs/one.json"]
    monkeypatch.chdir("/")
    with closing(Workspace.open(place)) as workspace:
        assert workspace.trace("t").path == study / "runs" / "one.json"
    moved = study.rename(study.with_name("moved"))
    with closing(Workspace.open(moved / ".mast-tui" / "workspace.db")) as workspace:
        assert workspace.trace("t").path == moved / "runs" / "one.json"


def test_the_same_path_again_writes_nothing(study: Path) -> None:
    place = study / ".mast-tui" / "workspace.db"
    with closing(Workspace.open(place)) as workspace:
        for path in (Path("runs/one.json"), study / "runs" / "one.json"):
            workspace.register_trace(TraceRecord("t", path=path))
            before = workspace.last_write
        assert workspace.last_write == before
        assert workspace.trace("t").path == study / "runs" / "one.json"


def test_a_trace_elsewhere_keeps_its_absolute_path(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "far.json").write_text("{}")
    place = study / ".mast-tui" / "workspace.db"
    with closing(Workspace.open(place)) as workspace:
        workspace.register_trace(TraceRecord("t", path=Path("../far.json")))
    assert stored(place) == [str(tmp_path / "far.json")]


def test_a_folder_reached_by_a_link_is_the_same_folder(study: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(study)
    folder = traces_folder(link / ".mast-tui" / "workspace.db")
    assert stored_trace_path(study / "runs" / "one.json", folder) == "runs/one.json"


@pytest.mark.parametrize(
    "url",
    ["s3://bucket/runs/one.json", "https://host/one.json", "zip://one.json::https://host/runs.zip"],
)
def test_urls_stay_as_they_are(study: Path, url: str) -> None:
    assert stored_trace_path(trace_path(url), study) == url
    assert found_trace_path(url, study) == trace_path(url)


def test_an_archive_in_the_folder_is_named_from_there(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (study / "runs.zip").write_bytes(b"")
    kept = stored_trace_path(trace_path("zip://one.json::runs.zip"), study)
    assert kept == "zip://one.json::runs.zip"
    monkeypatch.chdir("/")
    assert str(found_trace_path(kept, study)) == f"zip://one.json::{study}/runs.zip"


def test_a_copy_in_another_folder_names_the_same_files(study: Path, tmp_path: Path) -> None:
    place = study / ".mast-tui" / "workspace.db"
    copy = tmp_path / "copies" / "labels.db"
    copy.parent.mkdir()
    with closing(Workspace.open(place)) as workspace:
        workspace.register_trace(TraceRecord("t", path=Path("runs/one.json")))
        workspace.copy_to(copy)
        with closing(Workspace.open(tmp_path / "copies" / "rows.db")) as other:
            workspace.copy_into(other)
            assert other.trace("t").path == study / "runs" / "one.json"
    with closing(Workspace.open(copy)) as workspace:
        assert workspace.trace("t").path == study / "runs" / "one.json"


def test_indices_of_spans_stay_in_copies_and_where_tables_are_made_anew(
    study: Path, tmp_path: Path
) -> None:
    kept = {"t": {"k0": SpanIndex(0, 12), "gone": SpanIndex(None)}}
    with closing(Workspace.open(study / ".mast-tui" / "workspace.db")) as workspace:
        workspace.keep_span_indices(kept)
        workspace.rebuild()
        assert workspace.span_indices() == kept
        assert workspace.differences() == ()
        workspace.copy_to(tmp_path / "backup.db")
        with closing(Workspace.open(tmp_path / "rows.db")) as other:
            workspace.copy_into(other)
            assert other.span_indices() == kept
    with closing(Workspace.open(tmp_path / "backup.db")) as workspace:
        assert workspace.span_indices() == kept


def test_what_earlier_versions_kept_is_looked_for_in_the_folder_and_then_here(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = study / ".mast-tui" / "workspace.db"
    Workspace.open(place).close()
    with closing(sqlite3.connect(place)) as raw, raw:
        for statement in WITHOUT_TASKS:
            raw.execute(statement)
        raw.execute("DROP TABLE span_indices")
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
    with closing(Workspace.open(place)) as workspace:
        paths = {one.trace_id: one.path for one in workspace.traces()}
        assert paths["here"] == study / "runs" / "one.json"
        assert paths["there"] == elsewhere / "old.json"
        assert str(paths["far"]) == "s3://b/k"
        assert paths["abs"] == Path("/x.json")
        monkeypatch.chdir("/")
        assert workspace.trace("there").path == study / "old.json"
