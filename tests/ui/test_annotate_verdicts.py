"""Verdicts without labels, keys that change labels, and notes in the user's editor."""

from __future__ import annotations

import shlex
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from mast_tui.labels import Severity, VerdictValue
from mast_tui.ui.app import MastApp
from mast_tui.ui.dialogs.dialog import NoteScreen
from mast_tui.ui.services.external_programs import NoEditor, edited_text, editor_command
from tests.ui.stage import SLUGS, missing, stage, write_trace


async def test_verdicts_are_typed_and_ask_before_they_remove_labels(small: Path) -> None:
    async with stage(small) as on:
        for key, value in (("-", VerdictValue.ABSENT), ("_", VerdictValue.UNSURE)):
            await on.press(key)
            assert str(value) in on.lines[-1]
            await on.press("1", "3")
            assert on.session.verdict(SLUGS["1.3"]) is value
            assert on.labels == set()
            panel = next(line for line in on.lines if "1.3 Step repetition" in line)
            assert str(value) in panel
            await on.press(key, "1", "3")
            assert on.session.verdict(SLUGS["1.3"]) is None
            await on.press(key, "1", "3", "1", "3")
            assert on.session.verdict(SLUGS["1.3"]) is VerdictValue.PRESENT
            await on.press("u", "u", "u", "u")
        await on.undo_all()
        await on.press("1", "3", "j", "1", "3", "2", "6", "-", "1", "3")
        assert "1.3 has 2 labels in this trace. Remove them and set 1.3 absent?" in on.text
        assert len(on.labels) == 3
        await on.press("n")
        assert (len(on.labels), on.session.verdict(SLUGS["1.3"])) == (3, VerdictValue.PRESENT)
        await on.press("_", "1", "3", "escape")
        assert len(on.labels) == 3
        await on.press("-", "1", "3", "y")
        assert on.labels == {("2.6", 2, 2)}
        assert on.session.verdict(SLUGS["1.3"]) is VerdictValue.ABSENT
        # The question and its answer are one step.
        await on.press("u")
        assert on.labels == {("1.3", 1, 1), ("1.3", 2, 2), ("2.6", 2, 2)}


async def test_notes_on_labels_and_spans(small: Path) -> None:
    async with stage(small) as on:
        await on.press("1", "3", "m", *"seen twice", "enter")
        (label,) = on.session.labels
        assert label.note == "seen twice"
        await on.press("m", "backspace", "escape", "!", "ctrl+q")
        assert "^q again closes and drops what you typed" in on.text
        await on.press("escape")  # another key asks anew
        assert "Esc again closes and drops what you typed" in on.text
        await on.press("escape")
        assert on.session.labels[0].note == "seen twice"
        await on.press("j", "m", *"odd", "enter")
        assert dict(on.session.span_notes) == {on.trace.span(1).key: "odd"}
        assert "✎" in on.row(2)
        await on.press("m", "backspace", "backspace", "backspace", "enter")
        assert not on.session.span_notes
        assert "✎" not in on.row(2)
        await on.undo_all()
        await on.press("m", *"13 D Q u x? / v", "enter")
        assert (list(on.session.span_notes.values()), on.labels) == (["13 D Q u x? / v"], set())
        assert not on.session.finished


async def test_severity_and_confidence_and_their_messages(small: Path) -> None:
    async with stage(small) as on:
        await on.press("f")
        assert "No label of yours" in on.message
        await on.press("1", "3")
        seen = []
        for _ in range(3):
            await on.press("f")
            seen.append(on.session.labels[0].severity)
        assert seen == [Severity.FATAL, Severity.BENIGN, None]
        values = []
        for _ in range(5):
            await on.press("c")
            values.append(on.session.labels[0].confidence)
        assert values == [1.0, 0.75, 0.5, 0.25, None]
        await on.undo_all()
        await on.press("1", "3", "c")
        keys = " · u undoes · M lists it"
        assert on.message == f"confidence of 1.3 on #1: sure · c again: fairly sure{keys}"
        await on.press("c")
        assert on.message == f"confidence of 1.3 on #1: fairly sure · c again: half sure{keys}"
        await on.press("u")
        assert on.message == ("undone: confidence of 1.3 on #1: fairly sure · back to sure")
        await on.press("f")
        assert on.message == f"severity of 1.3 on #1: fatal · f again: benign{keys}"
        await on.press("t", "2", "3", "f")  # the label that was just made
        assert on.message.startswith("severity of 2.3 on the whole trace: fatal")
        await on.press("u", "u", "m", *"odd", "enter")
        assert on.message == "note on 1.3 at #1: odd"
        assert "✎" in on.row(1)
        await on.press("m", *"er", "enter", "u")
        assert on.message == "undone: note on 1.3 at #1: odder · back to “odd”"
        await on.press("U")
        assert on.message == "redone: note on 1.3 at #1: odder"
        await on.press("j", "m", *"well", "enter")
        assert on.message == "note on #2: well"
        await on.press("u")
        assert on.message == "undone: note on #2: well"
        await on.press("-", "3", "1", "u")
        assert on.message.endswith("absent · back to no verdict")


async def test_labels_at_the_cursor_are_removed_after_a_choice(small: Path) -> None:
    async with stage(small) as on:
        await on.press("1", "3", "3", "1", "2", "6", "backspace")
        assert len(on.labels) == 3
        # The one that was made last is offered first.
        assert "2.6" in on.message
        await on.press("tab")
        assert "3.1" in on.message
        await on.press("tab", "tab")
        assert "2.6" in on.message
        await on.press("backspace")
        assert on.labels == {("1.3", 1, 1), ("3.1", 1, 1)}
        # Left alone, a choice takes nothing; and one that was begun does not go on elsewhere.
        await on.press("backspace", "escape")
        assert len(on.labels) == 2
        await on.press("j", "1", "1", "2", "2", "k", "backspace", "j")
        assert on.number == 1
        await on.press("escape", "j")
        assert "1.3" not in on.message
        await on.press("backspace")
        assert len(on.labels) == 4
        await on.press("backspace")
        assert on.labels == {("1.3", 1, 1), ("3.1", 1, 1), ("1.1", 2, 2)}
        await on.undo_all()
        await on.press("1", "3", "v", "j", "j", "2", "6", "k")
        assert on.number == 2
        await on.press("backspace")
        assert on.labels == {("1.3", 1, 1)}
        await on.press("backspace")
        assert "No label of yours" in on.message


async def test_undo_and_redo_last_over_a_restart(small: Path, workspace: Path) -> None:
    async with stage(small, workspace=workspace) as on:
        await on.press("1", "3", "j", "j", "2", "6", "-", "3", "1", "f")
        await on.press("u", "u")
        assert on.labels == {("1.3", 1, 1), ("2.6", 3, 3)}
        assert on.session.verdict(SLUGS["3.1"]) is None
    async with stage(small, workspace=workspace) as on:
        await on.press("u")
        assert (on.labels, on.number) == ({("1.3", 1, 1)}, 3)
        await on.press("u")
        assert (on.labels, on.number) == (set(), 1)
        await on.press("u")
        assert "Nothing to undo" in on.message
        await on.press("U", "ctrl+r", "U", "U")
        assert on.labels == {("1.3", 1, 1), ("2.6", 3, 3)}
        assert on.session.verdict(SLUGS["3.1"]) is VerdictValue.ABSENT
        assert [label.severity for label in on.session.labels] == [None, Severity.FATAL]
        await on.press("U")
        assert "Nothing to redo" in on.message
        await on.press("u", "1", "1", "U")
        assert "Nothing to redo" in on.message
        assert ("1.1", on.number, on.number) in on.labels


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
    ("command", "message"),
    [
        (["/no/such/editor"], "cannot be run"),
        (python("sys.exit(3)"), "ended with exit code 3"),
        (python("p.unlink()"), "cannot be read"),
        (python("p.write_bytes(b'\\xff')"), "cannot be read"),
    ],
)
def test_failures_of_the_editor_are_reported(command: list[str], message: str) -> None:
    with pytest.raises(NoEditor, match=message):
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
        assert not missing(on.text, "✎ first", "more")
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
        assert "cannot open an editor" in on.text
        monkeypatch.setattr(MastApp, "suspend", lend_terminal)
        await on.press("ctrl+g")
        assert "set EDITOR" in on.text
        assert isinstance(on.app.screen, NoteScreen)
        await on.press("enter")
        assert list(on.session.span_notes.values()) == ["odd"]
