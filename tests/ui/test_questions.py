"""Questions and half-typed commands, which take every key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from textual.screen import ModalScreen

from mast_tui.labels import Severity
from mast_tui.ui.actions.registry import ACTIONS, Where
from mast_tui.ui.actions.tables import moves as moves_of
from mast_tui.ui.dialogs.dialog import Ask, NoteScreen
from mast_tui.ui.dialogs.finder import ModeFinder
from mast_tui.ui.dialogs.help import HelpScreen
from tests.ui.stage import MAST, Stage, finding, read_trace, stage, suggest

LEAVING: Final = ("escape", "ctrl+q", "ctrl+z")
"""Keys that every question knows; the last two end or suspend the app wherever one is."""

EVERY_KEY: Final = tuple(
    dict.fromkeys(
        key
        for action in ACTIONS
        if action.where in (Where.ANNOTATE, Where.EVERYWHERE)
        for key in action.keys
        if key not in LEAVING
    )
)

SOME_KEYS: Final = (*"axutvmcDJML/:", "question_mark")
"""Keys that label, move, undo, finish, or open something."""


def state(on: Stage) -> tuple[Any, ...]:
    """Return the state that keys could change; the message is last."""
    session = on.session
    return (
        on.app.screen,
        tuple(on.app.screen_stack),
        on.number,
        session.labels,
        session.pending,
        dict(session.span_notes),
        session.finished,
        on.annotate.state.selection,
        on.annotate.focused,
        on.message,
    )


async def test_a_note_typed_too_early_changes_nothing(small: Path) -> None:
    async with stage(small) as on:
        await on.press("1", "1", "2", "2", "m")
        asked = on.message
        assert "2.2 Fail to ask" in asked  # the one that was made last
        await on.press(*"just a guess xDa u")
        assert on.message == f"u does nothing here · {asked}"
        assert on.labels == {("1.1", 1, 1), ("2.2", 1, 1)}
        # The key that asked takes what is offered, and what is typed from there on is the note.
        await on.press(*"submits the same flag")
        assert isinstance(on.app.screen, NoteScreen)
        await on.press("enter")
        assert on.labels == {("1.1", 1, 1), ("2.2", 1, 1)}
        assert [label.note for label in on.session.labels] == ["", "its the same flag"]


async def test_the_choice_of_a_label_takes_all_keys(small: Path) -> None:
    async with stage(small) as on:
        await on.press("1", "1", "2", "2", "f", "tab", "enter")
        assert [label.severity for label in on.session.labels] == [Severity.FATAL, None]
        # Nothing is asked any more: the key goes round on the same label, and others do their work.
        await on.press("f")
        assert [label.severity for label in on.session.labels] == [Severity.BENIGN, None]
        await on.press("j")
        assert on.number == 2
        await on.press("k", "backspace", "enter")
        assert on.labels == {("1.1", 1, 1)}
        await on.undo_all()
        await on.press("j", "1", "1", "2", "2", "k")
        for choice in ("m", "f", "c", "backspace", "e"):
            await on.press("j", choice)
            asked = state(on)
            for key in EVERY_KEY if choice == "m" else SOME_KEYS:
                if key not in (choice, "tab", "enter"):
                    await on.send(key)
                    assert on.message.endswith(f" does nothing here · {asked[-1]}"), (choice, key)
                    assert state(on)[:-1] == asked[:-1], (choice, key)
            await on.press("tab")
            assert "1.1" in on.message
            await on.press("escape", "k")
            assert (on.number, len(on.labels)) == (1, 2)


async def test_half_typed_modes_take_all_keys(small: Path) -> None:
    moves = {key for move in moves_of(Where.ANNOTATE) for key in move.keys}
    async with stage(small) as on:
        await on.press("2", "2", "1", "backspace")
        assert on.message == ""
        await on.press("1", "3")
        assert on.labels == {("2.2", 1, 1), ("1.3", 1, 1)}
        await on.press("-", "3", "backspace")
        assert on.message.startswith("absent: ▁ · first digit")
        await on.press("backspace", "1", "1")
        assert ("1.1", 1, 1) in on.labels
        await on.undo_all()
        await on.press("2", "2")
        for begun in ("1", "-", "_", "-1"):
            await on.press(*begun)
            asked = state(on)
            for key in EVERY_KEY if begun == "1" else SOME_KEYS:
                if key not in moves and not key.isdigit() and key != "backspace":
                    await on.send(key)
                    assert "does nothing here · " in on.message, (begun, key)
                    assert state(on)[:-1] == asked[:-1], (begun, key)
            # The place may still be looked for, with the digit waiting.
            await on.press("j")
            assert (on.number, on.message.split(" · ")[0]) == (2, asked[-1].split(" · ")[0])
            await on.press("escape", "g")


async def test_editing_a_suggestion_takes_all_keys(small: Path, workspace: Path) -> None:
    trace = read_trace(small)
    suggest(workspace, trace, [finding(trace, "1.3", 3, 5), finding(trace, "2.6", 9, 9)])
    async with stage(small, workspace=workspace) as on:
        await on.press("]", "e")
        asked = state(on)
        assert "two digits accept as another mode" in on.message
        for key in ("a", "x", "u", "U", "m", "f", "c", "backspace", "-", "_", "D", "J", "}", "L"):
            await on.send(key)
            assert "does nothing while you edit" in on.message, key
            assert state(on)[:-1] == asked[:-1], key
        await on.press("j", "2", "backspace", "2", "1")
        assert (on.labels, len(on.session.pending)) == ({("2.1", 3, 6)}, 1)


DIALOGS: Final[dict[str, Callable[[], ModalScreen[Any]]]] = {
    "ask": lambda: Ask("Really?", "It cannot be taken back.", (("§", "yes"),)),
    "note": lambda: NoteScreen("Note"),
    "finder": lambda: ModeFinder(MAST),
    "help": lambda: HelpScreen(Where.ANNOTATE, {}),
}


async def test_dialogs_take_all_keys(small: Path) -> None:
    leaves = {"note": {"enter"}, "finder": {"enter"}, "help": {"question_mark", "/"}}
    async with stage(small) as on:
        await on.press("1", "1")
        stack = [*on.app.screen_stack]
        for name, make in DIALOGS.items():
            dialog = make()
            on.app.push_screen(dialog)
            await on.pilot.pause()
            for key in EVERY_KEY if name == "ask" else SOME_KEYS:
                if key not in leaves.get(name, set()):
                    await on.send(key)
                    assert on.app.screen_stack == [*stack, dialog], (name, key)
            await on.press(*["escape"] * (2 if name == "note" else 1))
            assert on.app.screen_stack == stack, name
            assert on.labels == {("1.1", 1, 1)}, name
            assert not on.session.finished, name
