"""Labels by keys on spans, ranges, quotes and the whole trace."""

from __future__ import annotations

from pathlib import Path

from mast_tui.labels import Severity
from mast_tui.traces.library import samples_folder
from mast_tui.ui.library.screen import LibraryScreen
from tests.ui.stage import CODES, PLAN, stage


async def test_digits_or_a_name_label_a_span_or_range(small: Path) -> None:
    async with stage(small) as on:
        await on.press("j", "1", "3")
        assert on.labels == {("1.3", 2, 2)}
        assert "1.3 ●" in on.row(2)
        await on.press("2", "6")
        assert on.labels == {("1.3", 2, 2), ("2.6", 2, 2)}
        await on.press("1", "3")
        assert on.labels == {("2.6", 2, 2)}
        assert "1.3 ●" not in on.row(2)
        await on.press("u", "u", "u", "g")
        await on.press("1")
        assert "1▁" in on.lines[-1]
        assert "3 Step repetition" in on.lines[-1]
        assert on.labels == set()
        await on.press("9")
        assert "no mode 19" in on.lines[-1]
        assert on.labels == set()
        await on.press("9")
        assert "no mode begins with 9" in on.message
        # The refused pair is forgotten: two more digits begin anew.
        await on.press("1", "1")
        assert on.labels == {("1.1", 1, 1)}
        await on.press("1", "escape", "3", "1")
        assert on.labels == {("1.1", 1, 1), ("3.1", 1, 1)}
        await on.press("u", "u", "g")
        await on.press("v", "j", "j", "escape")
        assert on.annotate.timeline.range is None
        await on.press("v", "k", "v", "1", "3")
        assert on.labels == {("1.3", 2, 2)}
        await on.press("u", "g")
        screen = on.app.screen
        await on.press("j", "v", "j", "l", *"repetition", "enter")
        assert on.labels == {("1.3", 2, 3)}
        await on.press("l", *"no such mode at all", "enter")
        assert on.app.screen is not screen
        await on.press("escape")
        assert on.labels == {("1.3", 2, 3)}
        await on.press("u", "g")
        for code in CODES.values():
            await on.press(*code.replace(".", ""))
        assert on.labels == {(code, 1, 1) for code in CODES.values()}


async def test_a_range_is_labelled_from_either_end(small: Path) -> None:
    async with stage(small) as on:
        for keys in ("jjjvjj", "jjjjjvkk"):
            await on.press("g", *keys)
            assert on.annotate.timeline.range == (3, 5)
            assert all("┃" in on.row(n) or "▌" in on.row(n) for n in (4, 5, 6))
            await on.press("1", "3")
            assert on.labels == {("1.3", 4, 6)}
            assert all("1.3 ●" in on.row(n) for n in (4, 5, 6))
            assert "1.3 ●" not in on.row(7)
            # The selection ends with the label: the next one is on the span alone.
            assert on.annotate.timeline.range is None
            await on.press("2", "1")
            assert ("2.1", on.number, on.number) in on.labels
            await on.press("u", "u")


async def test_quotes_and_the_whole_trace_are_labelled(small: Path) -> None:
    async with stage(small) as on:
        await on.press("j", "w", "w", "w", "v", "w", "w", "w", "b")
        await on.press("1", "1")
        (label,) = on.session.labels
        target = label.target
        assert target.quote == "at the pods"
        assert PLAN[target.char_start : target.char_end] == target.quote
        assert on.annotate.state.selection.is_plain
        await on.undo_all()
        await on.press("j")
        view = on.annotate.span_view
        # One column is margin; the border is another. The cells are in the middle of the words.
        ends = [(2 + PLAN.index("first") + 2, 1), (2 + PLAN.index("Événements") + 8, 1)]
        for start, end in (ends, ends[::-1]):
            await on.pilot.mouse_down(view, offset=start)
            await on.pilot.hover(view, offset=end)
            await on.pilot.mouse_up(view, offset=end)
            await on.press("2", "3")
            (label,) = on.session.labels
            assert label.target.quote == "first, then at the Événements"
            assert PLAN[label.target.char_start : label.target.char_end] == label.target.quote
            await on.press("u")
        await on.undo_all()
        await on.press("t")
        assert "whole trace" in on.lines[-1]
        await on.press("1", "5")
        assert on.labels == {("1.5", 0, 0)}
        assert not any("●" in on.row(n) for n in range(1, 13))
        assert "●" in on.text
        # What acts on a label under the cursor acts on those of the whole trace meanwhile.
        await on.press("t", "f", "escape", "f")
        assert on.session.labels[0].severity is Severity.FATAL
        assert "No label of yours" in on.message
        await on.press("1", "5")
        assert ("1.5", 1, 1) in on.labels
        await on.press("t", "1", "5")
        assert on.labels == {("1.5", 1, 1)}


async def test_every_sample_is_labelled_at_both_ends(tmp_path: Path) -> None:
    async with stage(samples_folder(), workspace=tmp_path / "w.db") as on:
        assert isinstance(on.app.screen, LibraryScreen)
        await on.press("enter")
        seen = set()
        for number in range(len(on.app.catalog.traces)):
            trace = on.trace
            seen.add(trace.identity.trace_id)
            if number % 3:
                await on.press(">")
                continue
            await on.press("1", "1", "G", "v", "k", "3", "2", "j", "w", "v", "w", "2", "6")
            last = len(trace)
            assert on.labels == {("1.1", 1, 1), ("3.2", last - 1, last), ("2.6", last, last)}
            (target,) = [x.target for x in on.session.labels if x.target.quote is not None]
            assert target.quote == trace.text(last - 1)[target.char_start : target.char_end]
            assert target.quote
            await on.press(">")
        assert seen == on.app.catalog.traces.keys()
        await on.press("<", "<", ">")
        assert {code for code, _, _ in on.labels} == {"1.1", "3.2", "2.6"}
