"""Notes written in the user's editor."""

from __future__ import annotations

import shlex
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from mast_tui.ui.app import MastApp
from mast_tui.ui.dialogs.editor import NoEditor, edited_text, editor_command
from mast_tui.ui.dialogs.note import NoteScreen
from tests.ui.stage import stage, write_trace


def python(code: str) -> list[str]:
    head = "import pathlib, sys; p = pathlib.Path(sys.argv[1]); "
    return [sys.executable, "-c", head + code]


ADDS = python("p.write_text(p.read_text() + 'and\\x1b[31m more\\n\\n')")


def test_edited_text_is_returned() -> None:
    assert edited_text("one", ADDS) == "one\nand\x1b[31m more"
    assert edited_text("", ADDS) == "and\x1b[31m more"
    assert edited_text("é\n\n two", python("pass")) == "é\n\n two"
    assert edited_text("one", python("p.write_text('')")) == ""


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["/no/such/editor"], "cannot be run"),
        (python("sys.exit(3)"), "ended with 3"),
        (python("p.unlink()"), "cannot be read"),
        (python("p.write_bytes(b'\\xff')"), "cannot be read"),
    ],
)
def test_failures_of_the_editor_are_reported(command: list[str], words: str) -> None:
    with pytest.raises(NoEditor, match=words):
        edited_text("one", command)


def test_the_editor_is_named_by_the_environment() -> None:
    assert editor_command({"EDITOR": "nano"}) == ["nano"]
    assert editor_command({"EDITOR": "nano", "VISUAL": "code --wait"}) == ["code", "--wait"]
    for wrong in ({}, {"EDITOR": " "}, {"VISUAL": "'"}):
        with pytest.raises(NoEditor, match=r"EDITOR|VISUAL"):
            editor_command(wrong)


def lend_terminal(app: MastApp) -> AbstractContextManager[None]:
    return nullcontext()


async def test_notes_of_several_lines_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", shlex.join(ADDS))
    monkeypatch.setattr(MastApp, "suspend", lend_terminal)
    async with stage(write_trace(tmp_path / "t.json")) as on:
        await on.press("1", "3", "m", *"first", "ctrl+g")
        (label,) = on.session.labels
        assert label.note == "first\nand\x1b[31m more"
        # A note of several lines is not cut by being looked at on one.
        await on.press("m")
        assert "\x1b" not in on.text
        await on.press("enter")
        assert on.session.labels[0].note == label.note
        await on.press("M")
        assert "✎ first" in on.text
        assert "more" in on.text
        assert "\x1b" not in on.text
        await on.press("escape", "j", "m", "f2")
        assert list(on.session.span_notes.values()) == ["and\x1b[31m more"]


async def test_a_missing_editor_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    async with stage(write_trace(tmp_path / "t.json")) as on:
        await on.press("m", *"odd", "ctrl+g")
        assert "cannot be lent to an editor" in on.text
        monkeypatch.setattr(MastApp, "suspend", lend_terminal)
        await on.press("ctrl+g")
        assert "set EDITOR" in on.text
        assert isinstance(on.app.screen, NoteScreen)
        await on.press("enter")
        assert list(on.session.span_notes.values()) == ["odd"]
