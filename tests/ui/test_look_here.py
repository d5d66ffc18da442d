"""Spans that probably contain the decisive step: marks, navigation, and blind annotators."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from mast_tui.session import library_view
from mast_tui.ui.library.screen import LibraryScreen
from mast_tui.workspace import TraceRecord, Workspace
from mast_tui.workspace.registers.look_here import LookHere, keep_look_here
from tests.ui.stage import MAST, Stage, read_trace, stage, write_trace

SPANS = (2, 3, 9, 10)
"""The spans to look at, from 0."""


def store_marks(workspace: Path, *files: Path, sizes: tuple[int, ...] = (4,)) -> list[str]:
    """Store spans to look at in the traces of files, and return the ids of the traces."""
    spans = {}
    ids = []
    with closing(Workspace.open(workspace)) as store:
        for file, size in zip(files, sizes, strict=True):
            trace = read_trace(file)
            trace_id = store.register_trace(TraceRecord.from_trace(trace))
            spans[trace_id] = [trace.span(index).key for index in SPANS[:size]]
            ids.append(trace_id)
        counts = {trace_id: len(keys) for trace_id, keys in spans.items()}
        look_here = LookHere("0123abcd", "judge:rules@1", 0.9, 40, 0.2, 0.9, counts)
        keep_look_here(store, MAST.ref, look_here, spans)
    return ids


def marked_rows(on: Stage) -> Iterator[int]:
    """Yield the numbers of the spans with a mark at the edge of their row, from 1."""
    timeline = on.annotate.timeline
    for row in timeline.rows_on_screen():
        if timeline.render_row(row, timeline.size.width).text.startswith("┊"):
            yield timeline.rows.index_at(row) + 1


async def test_spans_to_look_at_are_marked_and_visited(small: Path, tmp_path: Path) -> None:
    store_marks(tmp_path / "w.db", small)
    async with stage(small, workspace=tmp_path / "w.db") as on:
        assert list(marked_rows(on)) == [3, 4, 10, 11]
        overview = on.annotate.overview
        edges = [overview.render_line(y).text[0] for y in range(12)]
        assert [number for number, edge in enumerate(edges, 1) if edge == "┇"] == [3, 4, 10, 11]
        seen = []
        for _ in range(3):
            await on.press("*")
            seen.append(on.number)
        assert seen == [3, 10, 3]
        assert "the decisive step is in 4 marked spans of 12" in on.text
        # What is labelled from here on was labelled with advice on screen.
        await on.press("1", "3")
        assert on.session.current is not None
        assert on.session.current.judge_seen


async def test_blind_annotators_see_no_spans_to_look_at(small: Path, tmp_path: Path) -> None:
    (trace_id,) = store_marks(tmp_path / "w.db", small)
    async with stage(small, workspace=tmp_path / "w.db", blind=True) as on:
        assert list(marked_rows(on)) == []
        assert "┇" not in on.text
        await on.press("*")
        assert on.number == 1
        assert "hidden, as suggestions are" in on.text
    with closing(Workspace.open(tmp_path / "w.db")) as store:
        for blind, size in ((True, None), (False, 4)):
            view = library_view(store, "alice", MAST.ref, blind=blind)
            assert view[trace_id].look_here == size


async def test_without_spans_to_look_at_the_key_names_the_command(small: Path) -> None:
    async with stage(small) as on:
        await on.press("*")
        assert "mast-tui exam --coverage --keep" in on.text


async def test_the_library_sorts_by_the_number_of_spans(tmp_path: Path) -> None:
    files = [write_trace(tmp_path / "runs" / f"{name}.json", id=name) for name in ("a", "b", "c")]
    store_marks(tmp_path / "w.db", files[0], files[2], sizes=(4, 1))
    async with stage(tmp_path / "runs", workspace=tmp_path / "w.db") as on:
        screen = on.screen(LibraryScreen)
        assert "┊4" in on.text
        while screen.sort != "spans to look at":
            await on.press("o")
        text = on.text
        assert text.index("┊1") < text.index("┊4")
