"""The order of writing and drawing after a key."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from textual.geometry import Region
from textual.widget import Widget

from mast_tui.ui.annotate.suggestions import SuggestionPanel
from mast_tui.ui.trace_view.folding import FoldedRun
from mast_tui.workspace import Event, NewEvent, Workspace
from mast_tui.workspace.events.types import SpansRead
from tests.ui.settle import settle
from tests.ui.stage import SMALL, call, finding, read_trace, result, stage, suggest, write_trace

pytestmark = pytest.mark.usefixtures("every_frame")


class Steps:
    """The order of drawing and writing: the classes of drawn widgets, and ``disk``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.taken: list[str] = []
        refresh, append = Widget.refresh, Workspace.append

        def refreshed(widget: Widget, *regions: Region, **how: bool) -> Widget:
            self.taken.append(type(widget).__name__)
            return refresh(widget, *regions, **how)

        def appended(
            workspace: Workspace, events: Sequence[NewEvent], **how: object
        ) -> tuple[Event, ...]:
            recorded = append(workspace, events, **how)  # type: ignore[arg-type]
            if not any(isinstance(event.fact, SpansRead) for event in events):
                self.taken.append("disk")
            return recorded

        monkeypatch.setattr(Widget, "refresh", refreshed)
        monkeypatch.setattr(Workspace, "append", appended)


async def test_a_label_is_written_before_it_is_drawn(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage(small) as on:
        await on.press("j", "1")
        steps = Steps(monkeypatch)
        on.annotate.action_digit("3")
        await settle(on.pilot)
        assert steps.taken.count("disk") == 1
        assert "Timeline" not in steps.taken[: steps.taken.index("disk")]
        assert {"HintBar", "TaxonomyPanel", "Timeline"} <= set(steps.taken)
        assert on.labels == {("1.3", 2, 2)}


async def test_an_answer_is_written_before_it_is_drawn(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, trace = tmp_path / "w.db", read_trace(small)
    suggest(place, trace, [finding(trace, "1.3", 3, 3), finding(trace, "1.1", 10, 10)])
    async with stage(small, workspace=place) as on:
        await on.press("]")
        steps = Steps(monkeypatch)
        filled: list[str] = []
        show_text = SuggestionPanel.show_text

        def shown(panel: SuggestionPanel, text: str, *rest: object, **how: str) -> None:
            filled.append(text)
            show_text(panel, text, *rest, **how)  # type: ignore[arg-type]

        monkeypatch.setattr(SuggestionPanel, "show_text", shown)
        on.annotate.action_accept()
        await settle(on.pilot)
        assert (steps.taken[0], len(filled)) == ("disk", len(on.annotate.suggestions.panels))
        assert len(set(filled)) == 1
        assert filled[0].startswith("1.1")
        assert on.number == 10


async def test_a_long_fold_is_recorded_as_one_run(tmp_path: Path) -> None:
    repeats = 40
    messages = [SMALL[0]]
    for number in range(repeats):
        messages += [call(number, "get_pods", "{}"), result(number, "Running " * 40)]
    path = write_trace(tmp_path / "again.json", messages)
    async with stage(path, workspace=tmp_path / "w.db") as on:
        await on.press("j", "space", "j", "j")
        fold = on.annotate.timeline.fold_at_cursor
        assert isinstance(fold, FoldedRun)
        on.annotate.drawn_spans.write()
        await settle(on.pilot)
        assert on.session.unread() == ()
        written = on.session.workspace.reads("alice", on.session.trace_id, on.app.taxonomy.ref, 1)
        assert len(written.runs) == 1
        assert len(written.keys) < repeats
