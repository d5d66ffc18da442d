"""The keys in a user's configuration, and the problems found in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.configuration import Configuration, configuration_path, read_configuration
from mast_tui.ui.actions.registry import ACTIONS, checked


def read(tmp_path: Path, text: str | bytes) -> Configuration:
    path = tmp_path / "config.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return checked(read_configuration(path))


def test_a_missing_file_is_an_empty_configuration(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    assert checked(read_configuration(path)) == Configuration(path)
    assert configuration_path() == tmp_path / "home" / "config" / "mast-tui" / "config.toml"


@pytest.mark.parametrize(
    "text",
    [
        '[keys]\n"annotate.note" = "ctrl+l"\n"annotate.fold" = ["ctrl+k", "ctrl+n"]\n',
        '[keys]\nannotate.note = "ctrl+l"\nannotate.fold = ["ctrl+k", "ctrl+n"]\n',
        '[keys.annotate]\nnote = "ctrl+l"\nfold = ["ctrl+k", "ctrl+n"]\n',
    ],
    ids=["quoted", "dotted", "a table a screen"],
)
def test_keys_are_read_in_all_notations(text: str, tmp_path: Path) -> None:
    config = read(tmp_path, f'annotator = "alice"\n{text}')
    assert config.problem is None
    assert config.annotator == "alice"
    assert config.keys == {"annotate.note": ("ctrl+l",), "annotate.fold": ("ctrl+k", "ctrl+n")}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('annotator = "alice', "config.toml"),
        (b"annotator = '\xff'", "config.toml"),
        ("annotator = 7", "annotator"),
        ('keys = "z"', "[keys]"),
        ('[keys]\n"annotate.nite" = "z"', "annotate.nite"),
        ('[keys]\nannotate = "z"', "no action annotate"),
        ('[keys]\n"annotate.note" = 7', "annotate.note"),
        ('[keys]\n"annotate.note" = []', "annotate.note"),
        ('[keys]\n"annotate.note" = ""', "annotate.note"),
        ('[keys]\n"annotate.note" = ["z", 1]', "annotate.note"),
        ('[keys]\n"annotate.note" = "z,Z"', "annotate.note"),
        ('[keys]\n"annotate.note" = "Control N"', "annotate.note"),
    ],
)
def test_problems_name_the_file_and_the_key(text: str | bytes, reason: str, tmp_path: Path) -> None:
    config = read(tmp_path, text)
    assert config.problem is not None
    assert config.problem.startswith(str(tmp_path / "config.toml"))
    assert reason in config.problem
    assert config.keys == {}
    assert config.annotator is None


def test_other_keys_are_read_beside_a_problem(tmp_path: Path) -> None:
    config = read(
        tmp_path, 'annotator = "bob"\n[keys]\n"annotate.nite" = "z"\n"annotate.note" = "ctrl+l"\n'
    )
    assert (config.annotator, config.keys) == ("bob", {"annotate.note": ("ctrl+l",)})
    assert config.problem is not None


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ('"annotate.note" = "f"', ["annotate.severity"]),
        ('"annotate.note" = "u"', ["everywhere.undo"]),
        ('"annotate.note" = "ctrl+k"\n"annotate.fold" = "ctrl+k"', ["annotate.fold"]),
        ('"annotate.note" = "f"\n"annotate.severity" = "ctrl+k"', []),
        ('"study.add" = "f"', []),
    ],
    ids=["covers one", "covers one of everywhere", "both set", "moved away", "other screen"],
)
def test_keys_with_two_meanings_are_reported(keys: str, named: list[str], tmp_path: Path) -> None:
    problem = read(tmp_path, f"[keys]\n{keys}\n").problem
    assert (problem is None) == (not named)
    assert all(name in (problem or "") for name in named)
    assert (problem or "").count("is a key of both") == len(named)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ('\ntheme = "textual-lihgt"\n', 2, "did you mean textual-light?"),
        ('[keys]\n"annotate.nite" = "z"\n', 2, "did you mean annotate.note?"),
        ('[keys]\nannotate.note = "ctrl+l"\nannotate.fold = "pgup"\n', 3, "did you mean pageup?"),
        ('[keys.annotate]\nnote = "f"\n', 2, "annotate.severity"),
    ],
)
def test_problems_have_lines_and_suggestions(
    text: str, line: int, reason: str, tmp_path: Path
) -> None:
    (problem,) = read(tmp_path, text).problems
    assert problem.line == line
    assert reason in problem.text


def test_keys_are_named_as_in_textual(tmp_path: Path) -> None:
    for key in ("pageup", "f8", "ctrl+n", "?", "question_mark", "alt+shift+left"):
        config = read(tmp_path, f'[keys]\n"library.open" = "{key}"\n')
        assert config.keys == {"library.open": (key,)}


@pytest.mark.parametrize("text", ['keys = "plain"', '[keys]\npreset = "plain"'])
def test_the_plain_preset_moves_by_no_letters(text: str, tmp_path: Path) -> None:
    config = read(tmp_path, text)
    assert config.problem is None
    assert (config.keys["annotate.down"], config.keys["library.bottom"]) == (("down",), ("end",))
    assert all(len(key) > 1 for keys in config.keys.values() for key in keys)
    assert all(config.keys.values()), "everything can still be reached"
    moves = {a.id for a in ACTIONS if a.command.startswith(("move", "text(", "across("))}
    assert moves <= config.keys.keys()


def test_presets_and_own_keys(tmp_path: Path) -> None:
    config = read(tmp_path, 'keys = "vim"')
    assert (config.problem, config.keys) == (None, {})
    config = read(tmp_path, '[keys]\npreset = "plain"\n"annotate.down" = ["down", "j"]\n')
    assert (config.keys["annotate.down"], config.keys["annotate.up"]) == (("down", "j"), ("up",))
