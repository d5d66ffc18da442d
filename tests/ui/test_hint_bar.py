"""The last line of a screen: hints, messages, and clicks on them."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest
from textual.screen import ModalScreen

from mast_tui import ui
from mast_tui.ui.dialogs.help import HelpScreen
from mast_tui.ui.widgets import bars
from mast_tui.ui.widgets.bars import MAX_ROWS, message_rows, shorten_parts
from tests.ui.stage import stage, write_trace


@pytest.mark.parametrize("width", [30, 200])
async def test_a_message_takes_the_line_until_the_next_key(small: Path, width: int) -> None:
    async with stage(small, size=(width, 24)) as on:
        assert on.lines[-1].rstrip().endswith("? help")
        await on.press("1", "3")
        assert on.lines[-1].startswith(" 1.3 Step repetition on #1 ")
        assert on.lines[-1].rstrip().endswith("? help") is (width == 200)
        assert len(on.lines[-1]) == width
        await on.press("-", "1", "2", "P", "escape")
        assert on.lines[-1].startswith(" 1 3 label")
        assert on.lines[-1].rstrip().endswith("? help")
        await on.pilot.click(on.annotate.hints, offset=(width - 4, 0))
        await on.press()
        assert isinstance(on.app.screen, HelpScreen)


async def test_hints_are_clicked_and_follow_the_state(small: Path) -> None:
    async with stage(small) as on:
        column = on.lines[-1].index("v range")
        await on.pilot.click(on.annotate.hints, offset=(column + 3, 0))
        await on.press("j", "1", "3")
        assert on.labels == {("1.3", 1, 2)}
        # What stands before the hints now is no hint.
        await on.pilot.click(on.annotate.hints, offset=(3, 0))
        await on.press("2", "6")
        assert ("2.6", 2, 2) in on.labels
        await on.press("D", "j")
        assert on.session.finished
        assert on.lines[-1].startswith(" 1 3 label")


async def test_a_menu_appears_after_a_pause(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage(small) as on:
        monkeypatch.setattr(bars, "MENU_DELAY", 60.0)
        await on.press("1")
        assert "│ 3  1.3 Step repetition" not in on.text
        monkeypatch.setattr(bars, "MENU_DELAY", 0.01)
        await on.press("escape", "1")
        await on.until(lambda: "│ 3  1.3 Step repetition" in on.text)


async def test_a_finished_trace_offers_the_next_one_first(tmp_path: Path) -> None:
    first = write_trace(tmp_path / "one.json")
    second = write_trace(tmp_path / "two.json", [{"role": "user", "content": "Another."}])
    async with stage(first, second, size=(60, 24)) as on:
        await on.press("enter")
        assert on.lines[-1].startswith(" 1 3 label")
        await on.press("D", "W")
        assert on.session.finished
        assert on.lines[-2].startswith(" finished · ")
        assert on.lines[-1].startswith(" u undoes it · } next trace  ")
        assert on.text.count("} next trace") == 1
        await on.press("j")
        assert on.lines[-1].startswith(" } next trace")
        assert "1 3 label" not in on.lines[-1]
        finished = on.annotate.trace
        await on.pilot.click(on.annotate.hints, offset=(3, 0))
        await on.press()
        assert on.annotate.trace is not finished
        assert on.lines[-1].startswith(" 1 3 label")
        await on.press("<", "u", "j")
        assert not on.session.finished
        assert on.lines[-1].startswith(" 1 3 label")


async def test_dialogs_show_their_own_keys(small: Path) -> None:
    async with stage(small, size=(80, 24)) as on:
        await on.press("1", "3")
        for key, hints in (
            ("i", "j k scroll  / finds  n N next, previous match  y copies  Esc closes"),
            ("question_mark", "/ searches  j k scroll  d b pages  g G top, bottom  Esc closes"),
            ("colon", "↑ ↓ move  Enter chooses  Esc cancels"),
            ("m", "Enter saves  Esc leaves the label without a note  ^g in your editor"),
        ):
            await on.press(key)
            assert on.app.screen.is_modal
            assert on.lines[-1].strip() == hints
            await on.press("escape")


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (40, "1.3 on #5 · 12 to go · u takes back"),
        (34, "1.3 on #5 · 12 to go …"),
        (21, "1.3 on #5 · 12 to go…"),
        (8, "1.3 on …"),
    ],
)
def test_messages_lose_their_last_parts_first(cells: int, expected: str) -> None:
    assert shorten_parts("1.3 on #5 · 12 to go · u takes back", cells) == expected


def test_a_long_message_is_broken_between_its_parts() -> None:
    message = "finished · 16 of 90 spans read · 7 modes set absent · } next trace"
    assert message_rows(message, 80) == [message]
    assert message_rows(message, 40) == [
        "finished · 16 of 90 spans read",
        "7 modes set absent · } next trace",
    ]
    assert message_rows("No step of this trace failed", 16) == ["No step of this", "trace failed"]
    assert len(message_rows(" · ".join(["a part of it"] * 30), 20)) == MAX_ROWS
    assert message_rows("an answer that is long " * 9, 20)[-1].endswith("…")


def test_every_dialog_declares_its_keys() -> None:
    for module in walk_packages(ui.__path__, "mast_tui.ui."):
        import_module(module.name)
    kinds = [*ModalScreen.__subclasses__()]
    for kind in kinds:
        kinds += kind.__subclasses__()
    ours = [kind for kind in kinds if kind.__module__.startswith("mast_tui.")]
    silent = {kind.__name__ for kind in ours if not hasattr(kind, "dialog_keys")}
    assert len(ours) > 10
    # Others are built on these.
    assert silent == {"AnswersDialog", "Dialog", "KeyDialog", "LinesDialog", "TypingDialog"}
