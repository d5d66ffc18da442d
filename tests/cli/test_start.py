"""The start of the app, by the quick parser and by the full one."""

from __future__ import annotations

import gc
from importlib import import_module
from pathlib import Path

import pytest

from mast_tui.cli import main
from mast_tui.cli.command_line import COMMANDS, split_command
from mast_tui.cli.dispatch import run
from mast_tui.traces.library import samples_folder
from mast_tui.ui import app
from mast_tui.ui.options import AppOptions


@pytest.fixture
def started_options(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[AppOptions]:
    """The options of each start of the app, which does not run, in a temporary folder."""
    recorded: list[AppOptions] = []

    def run_app(options: AppOptions) -> int:
        recorded.append(options)
        return 0

    monkeypatch.setattr(app, "run_app", run_app)
    monkeypatch.setattr(import_module("mast_tui.cli.start"), "has_terminal", lambda: True)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jsonl").write_text("{}")
    (tmp_path / "judge").mkdir()
    (tmp_path / "own.toml").write_text("")
    return recorded


def start(*args: str) -> int:
    """Run the command line in this process, and switch garbage collection on again after it."""
    try:
        with pytest.raises(SystemExit) as exit_info:
            main(args)
    finally:
        gc.enable()
    assert isinstance(exit_info.value.code, int)
    return exit_info.value.code


def test_without_a_path_the_samples_are_opened(started_options: list[AppOptions]) -> None:
    assert start() == start("--taxonomy", "own.toml", "--assisted") == 0
    options, other = started_options
    samples = AppOptions((samples_folder(),), True, None, None, None, False, False)
    assert options._replace(fill_new_workspace=None) == samples
    assert options.fill_new_workspace is not None
    assert (samples_folder() / "planted.jsonl").is_file()
    assert (other.taxonomy, other.assisted, other.blind) == (Path("own.toml"), True, False)


@pytest.mark.parametrize(
    "args",
    [
        ("a.jsonl", "./judge", "--workspace", "w.db", "--annotator=bo", "--blind"),
        ("--workspace=w.db", "--blind", "a.jsonl", "--annotator", "bo", "./judge"),
    ],
)
def test_both_parsers_return_the_same_options(
    started_options: list[AppOptions], args: tuple[str, ...]
) -> None:
    paths = (Path("a.jsonl"), Path("judge"))
    assert start(*args) == 0
    assert run(split_command(args)) == 0
    assert started_options == [AppOptions(paths, False, "w.db", "bo", None, True, False)] * 2


def test_help_lists_every_command(
    started_options: list[AppOptions], capsys: pytest.CaptureFixture[str]
) -> None:
    assert start("--help") == 0
    out = capsys.readouterr().out
    assert [name for name in (*COMMANDS, "PATH") if name not in out] == []
    assert start("--version") == 0
    assert capsys.readouterr().out.startswith("mast-tui")
    assert started_options == []


def test_wrong_arguments_open_nothing(
    started_options: list[AppOptions], capsys: pytest.CaptureFixture[str]
) -> None:
    files = sorted(Path().iterdir())
    for args, code in (
        (("no-such\x1b[31m.jsonl",), 1),
        (("exprot",), 1),
        (("a.jsonl", "nowhere.jsonl"), 1),
        (("--taxonomy", "nowhere.toml"), 1),
        (("--blind", "--assisted"), 2),
        (("--annotator",), 2),
        (("--cake",), 2),
    ):
        assert start(*args) == code
        assert started_options == []
        err = capsys.readouterr().err
        assert "\x1b" not in err
        assert code == 2 or err.count("\n") == 1
        assert ("mast-tui export" in err) == (args == ("exprot",))
        assert sorted(Path().iterdir()) == files
