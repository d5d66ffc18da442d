"""Where a workspace is looked for, and whose name is suggested."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.workspace.paths import (
    default_workspace_path,
    find_workspace,
    samples_workspace_path,
    suggested_name,
)


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
