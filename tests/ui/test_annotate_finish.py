"""Finishing a trace, undoing the finish, and second looks."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.labels import PassKind, VerdictValue
from tests.cli.conftest import configure
from tests.ui.stage import MAST, SLUGS, missing, stage, write_trace
from tests.ui.test_annotate_reading import LONG, repeated_messages


@pytest.fixture
def long(tmp_path: Path) -> Path:
    """A trace of six spans, of which only the one under the cursor is read."""
    return write_trace(tmp_path / "long.json", repeated_messages(2))


async def test_finishing_and_editing_afterwards(small: Path) -> None:
    async with stage(small) as on:
        await on.press("1", "3", "_", "2", "6", "D")
        assert on.session.finished
        assert "✓" in on.lines[0]
        await on.press("D")
        assert "finished already" in on.message
        await on.press("r")  # records nothing, so the finish can be undone
        assert "No one else has labelled this trace" in on.message
        await on.undo_all()
        await on.press("1", "3", "D", "j", "2", "6")
        current = on.session.current
        assert current is not None
        assert (current.number, current.kind) == (2, PassKind.SECOND_LOOK)
        assert not on.session.finished
        assert on.labels == {("1.3", 1, 1), ("2.6", 2, 2)}
        first = on.session.workspace.labels(annotator="alice", pass_number=1)
        assert [label.mode for label in first] == [SLUGS["1.3"]]
        await on.press("D")
        assert "agreement counts your first finish; to count this one: K, then p" in on.message


async def test_finishing_asks_about_unread_spans(long: Path) -> None:
    async with stage(long) as on:
        await on.press("1", "3")
        for answer, finished, absent in (
            ("escape", False, False),
            ("o", True, False),
            ("enter", True, False),
            ("W", True, True),
        ):
            await on.press("D")
            assert not missing(on.text, "1 of 6 spans read", "Not read: #2 to #6")
            await on.press(answer)
            assert on.session.finished is finished, answer
            expected = VerdictValue.ABSENT if absent else None
            assert on.session.verdict(SLUGS["1.1"]) is expected
            assert on.session.verdict(SLUGS["1.3"]) is VerdictValue.PRESENT
            if finished:
                await on.press("u")
        await on.undo_all()
        await on.press("j")  # by itself: spans in a burst of moves may not be drawn
        await on.press("D", "g")
        assert on.number == 3
        assert not on.session.finished
        assert LONG[:40] in on.text


async def test_open_modes_are_answered_by_their_digits(long: Path) -> None:
    async with stage(long, size=(80, 24)) as on:
        await on.press("1", "3", "_", "2", "6", "D")
        assert "Open (no verdict): 12 of 14 modes" in on.text
        for mode in MAST.modes:
            assert (f" {mode.code} {mode.name} " in on.text) is (mode.code not in ("1.3", "2.6"))
        assert "only if you looked for each" in on.text
        await on.press("1", "o", "1", "W")  # no answer between two digits
        assert "Nothing set: W is not a digit" in on.text
        await on.press("1", "enter", "_", "-", "1", "1")
        assert on.session.verdict(SLUGS["1.1"]) is VerdictValue.ABSENT
        assert not missing(
            on.text, "1.1 absent Disobey task specification", "14 modes · 1 set here"
        )
        for key, reason in (("3", "1.3 has a verdict already"), ("9", "no mode has the digits")):
            await on.press("1", key)
            assert f"Nothing set: {reason}" in on.text
        await on.press("_", "1", "1", "1", "2", "-", "1", "2", "1", "escape", *"djksu?")
        assert "All keys are in this box and in the last line" in on.text
        assert on.session.verdict(SLUGS["1.1"]) is VerdictValue.UNSURE
        assert on.session.verdict(SLUGS["1.2"]) is None
        assert not on.session.finished
        await on.press("escape", "u")
        assert on.session.verdict(SLUGS["1.2"]) is VerdictValue.ABSENT
        await on.press("D", "W")
        assert on.session.finished
        assert on.session.verdict(SLUGS["1.1"]) is VerdictValue.UNSURE
        assert on.session.verdict(SLUGS["3.3"]) is VerdictValue.ABSENT


async def test_the_last_finish_names_the_next_steps(tmp_path: Path) -> None:
    first = write_trace(tmp_path / "one.json")
    second = write_trace(tmp_path / "two.json", [{"role": "user", "content": "Another."}])
    configure('[keys]\n"everywhere.export" = "f4"\n')
    async with stage(first, second) as on:
        await on.press("enter", "D", "W")
        assert on.session.finished
        assert "next trace" in on.message
        assert "all your traces" not in on.message
        await on.press(">")
        await on.until(on.annotate.drawn_spans.readable_keys)
        await on.press("D")
        assert on.session.finished
        assert "all your traces are finished: F4 exports · K shows agreement" in on.message


async def test_a_finish_is_undone_until_something_is_revealed(small: Path, workspace: Path) -> None:
    async with stage(small, workspace=workspace, annotator="bob") as on:
        await on.press("1", "1", "D")
    async with stage(small, workspace=workspace) as on:
        await on.press("2", "6", "r")
        assert "Finish the trace first (D)" in on.message
        assert "1.1 ○" not in on.row(1)
        await on.press("D", "u", "U", "r", "enter", "r")
        assert "no longer undo the finish" in on.text
        assert "1.1 ○" not in on.row(1)
        await on.press("y")
        assert "1.1 ○" in on.row(1)
        assert "bob" in on.message
        await on.press("u")
        assert on.session.finished
        assert "the finish cannot be undone" in on.message
