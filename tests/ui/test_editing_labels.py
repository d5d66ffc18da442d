"""Editing labels: their boundaries, modes and quotes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from mast_tui.labels import Label, Origin, Severity
from mast_tui.workspace.events.types import LabelChanged
from tests.ui.stage import PLAN, Stage, finding, missing, read_trace, stage, suggest


async def labelled_range(on: Stage) -> Label:
    """Label #3 to #6 with a note, a severity and a confidence, and leave the cursor on #6."""
    await on.press("j", "j", "v", "j", "j", "j", "2", "3")
    await on.press("m", *"well", "enter", "f", "c")
    (label,) = on.session.labels
    return label


MOVES: Final = (
    (6, ("e", ";", "enter"), (3, 7)),
    (6, ("e", "k", "enter"), (3, 5)),
    (3, ("e", "k", "enter"), (2, 6)),
    (4, ("e", "j", "enter"), (4, 6)),
    (5, ("e", "j", "enter"), (3, 7)),
    (6, ("e", "o", "k", "enter"), (2, 6)),
    (6, ("e", "v", "enter"), (6, 6)),
    (6, ("e", "t", "enter"), (0, 0)),
)
"""The span under the cursor, keys, and the first and last span of the label afterwards."""


async def test_boundaries_are_moved(small: Path) -> None:
    async with stage(small) as on:
        original = await labelled_range(on)
        for number, keys, ends in MOVES:
            await on.press("g", *"j" * (number - 1), *keys)
            assert on.labels == {("2.3", *ends)}, (number, keys)
            (after,) = on.session.labels
            unchanged = (after.id, after.note, after.severity, after.confidence, after.origin)
            assert unchanged == (original.id, "well", Severity.FATAL, 1.0, Origin.MANUAL)
            # One step, which takes back nothing else.
            await on.press("u")
            assert on.session.labels == (original,)
            assert "back to #3 to #6" in on.message
            assert on.annotate.timeline.range is None


async def test_ranges_quotes_and_modes_are_edited(small: Path) -> None:
    async with stage(small) as on:
        await on.press("j", "j", "1", "3", "e", "shift+down", "enter")
        assert on.labels == {("1.3", 3, 4)}
        await on.press("G", "2", "6", "e", "k", "enter")
        assert on.labels == {("1.3", 3, 4), ("2.6", 11, 11)}
        await on.press("g", "shift+down", "shift+down", "1", "1")
        assert ("1.1", 1, 3) in on.labels
        await on.undo_all()
        await on.press("j", "w", "v", "w", "1", "1", "e")
        quote = on.annotate.state.selection.quote
        assert quote is not None
        assert PLAN[quote.start : quote.end] == "I look"
        await on.press("w", "enter")
        (label,) = on.session.labels
        assert label.target.quote == "I look at"
        await on.undo_all()
        await on.press("1", "3", "j", "1", "3", "e", "k", "enter")
        assert on.labels == {("1.3", 1, 1), ("1.3", 2, 2)}
        assert "you already have 1.3 Step repetition on #1" in on.message
        await on.undo_all()
        original = await labelled_range(on)
        await on.press("e", "1", "3")
        assert (on.labels, on.session.labels[0].note) == ({("1.3", 3, 6)}, "well")
        assert on.message == "2.3 changed to 1.3 Step repetition, on #3 to #6"
        await on.press("e", "l", *"conversation reset", "enter")
        assert on.labels == {("2.1", 3, 6)}
        await on.press("u", "u")
        assert on.session.labels == (original,)


async def test_a_cancelled_edit_changes_nothing(small: Path) -> None:
    async with stage(small, size=(80, 24)) as on:
        original = await labelled_range(on)
        await on.press("e")
        assert "Enter saves, two digits save as another mode" in on.text
        await on.press("j")
        assert not missing(on.message, "range #3 to #7", "digits save as another mode")
        await on.press("escape", "v", "j")
        assert "two digits label" in on.message
        await on.press("k", "escape", "1", "1")
        assert original in on.session.labels
        assert on.labels == {("2.3", 3, 6), ("1.1", 6, 6)}


async def test_a_label_is_edited_from_the_list(small: Path) -> None:
    async with stage(small) as on:
        await labelled_range(on)
        await on.press("k")
        assert "e edit" in on.lines[-1]
        await on.press("G")
        assert "e edit" not in on.lines[-1]
        await on.press("M")
        assert "e edit" in on.lines[-1]
        await on.press("e", "j", "enter")
        assert on.labels == {("2.3", 3, 7)}


async def test_suggestions_are_edited_before_labels_and_counted_as_edited(
    small: Path, workspace: Path
) -> None:
    trace = read_trace(small)
    suggest(workspace, trace, [finding(trace, "1.3", 3, 4)])
    async with stage(small, workspace=workspace) as on:
        await on.press("]", "1", "1", "e", "j", "enter")
        assert on.labels == {("1.1", 3, 3), ("1.3", 3, 5)}
        assert {label.origin for label in on.session.labels} == {Origin.MANUAL, Origin.EDITED}
        await on.press("g", "j", "j", "e", "tab", "enter", "2", "2")
        assert ("2.2", 3, 3) in on.labels
        await on.undo_all()
        await on.press("]", "a", "e", "j", "enter")
        assert on.session.labels[0].origin is Origin.EDITED
        events = list(on.session.workspace.events(annotator="alice"))
        *_, changed = [event for event in events if isinstance(event.fact, LabelChanged)]
        *_, added = [event for event in events if event.kind == "label_added"]
        assert changed.replaces == (added.id,)


async def test_the_same_mode_inside_its_range_asks(small: Path) -> None:
    outer = ("2.3", 3, 6)
    answers: dict[str, set[tuple[str, int, int]]] = {
        "x": set(),
        "a": {outer, ("2.3", 5, 5)},
        "n": {outer},
        "escape": {outer},
        "2": {outer},
    }
    async with stage(small) as on:
        await labelled_range(on)
        for answer, labels in answers.items():
            await on.press("g", *"jjjj", "2", "3")
            assert "#5 is inside your label 2.3 on #3 to #6" in on.text
            assert on.labels == {outer}
            await on.press(answer)
            assert on.labels == labels, answer
            if answer == "a":
                assert "2.3 ● │2.3 ●" in on.row(5)
                await on.press("2", "3")
                assert on.labels == {outer}
            elif answer == "x":
                await on.press("u")
