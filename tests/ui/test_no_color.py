"""Signs and shapes of an app without colours."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ui.stage import PLAN, Stage, finding, read_trace, stage, suggest, write_trace


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The small trace, in an environment without colours."""
    monkeypatch.setenv("NO_COLOR", "1")
    return write_trace(tmp_path / "small.json")


@pytest.fixture
def judged(small: Path, workspace: Path) -> Path:
    """A workspace with a judge's suggestion on the small trace."""
    trace = read_trace(small)
    suggest(workspace, trace, [finding(trace, "1.1", 2, 2, quote="pods")])
    return workspace


def underlined(on: Stage) -> str:
    view = on.annotate.span_view
    strip = view.render_row(0, view.scrollable_content_region.width)
    return "".join(text for text, style, _ in strip if style and style.underline)


async def test_marks_cursor_and_range_have_signs(small: Path, judged: Path) -> None:
    async with stage(small, workspace=judged, annotator="bob") as on:
        await on.press("j", "j", "2", "1", "D", "o")
    async with stage(small, workspace=judged) as on:
        assert on.app.no_color
        await on.press("1", "3", "j", "j", "v", "j", "j")
        assert on.row(1).rstrip().endswith("1.3 ●")
        assert on.row(2).rstrip().endswith("1.1 ◌")
        assert [on.row(number)[0] for number in range(1, 7)] == [" ", " ", "┃", "┃", "▌", " "]
        await on.press("escape", "D", "o", "r", "y")
        assert on.row(3).rstrip().endswith("2.1 ○")


async def test_evidence_quotes_and_focus_have_shapes(small: Path, judged: Path) -> None:
    async with stage(small, workspace=judged) as on:
        await on.press("]")
        assert underlined(on) == "pods"
        await on.press("x", "w", "v", "w", "1", "3")
        assert underlined(on) == PLAN[:6]
        corners = [line[0] for line in on.lines if line[0] in "┏╭"]
        await on.press("tab")
        assert [line[0] for line in on.lines if line[0] in "┏╭"] == corners[::-1] == ["╭", "┏"]


async def test_modes_of_a_first_digit_are_underlined(small: Path) -> None:
    async with stage(small) as on:
        await on.press("3")
        modes = on.annotate.modes
        rows = [modes.render_row(row, 38) for row in range(modes.row_count)]
        marked = [
            strip.text.split()[0]
            for strip in rows
            if any(style and style.underline for _, style, _ in strip)
        ]
        assert marked == ["3.1", "3.2", "3.3"]
