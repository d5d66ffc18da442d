"""The queues of the library: their traces, order, and texts."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from textual.widgets import Input

from mast_tui.errors import MastError
from mast_tui.exchange.migration.mapping import CodebookMap
from mast_tui.exchange.migration.migrate import migrate
from mast_tui.labels import AnnotatorKind, Target
from mast_tui.session import Session
from mast_tui.taxonomy.model import Mode
from mast_tui.traces.library import read_file
from mast_tui.ui.library.queues import (
    QueueName,
    QueueRequest,
    QueueTraces,
    continued_queue,
    count_queues,
    count_text,
    empty_queue_text,
    read_queue,
    sample_from,
)
from mast_tui.ui.library.screen import LibraryScreen
from mast_tui.ui.library.trace_list import LibraryRow, Sort, TraceListing, WorkState
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.services.traces import TraceQueue
from mast_tui.workspace.events.types import Revealed
from tests.session.build import put, span
from tests.session.studies import Class
from tests.taxonomy.rewording import changed as changed_taxonomy
from tests.ui.stage import MAST, Stage, missing, shown_key, stage
from tests.ui.team_dir import TeamDir
from tests.workspace.build import MAST as TESTED
from tests.workspace.build import MODES

IDS = st.lists(st.sampled_from("abcdefgh"), unique=True)


def opened_by(room: Class, annotator: str = "alice") -> OpenWorkspace:
    return OpenWorkspace(room.workspace, TESTED, annotator, False)


def test_a_queue_goes_on_from_the_open_trace() -> None:
    assert continued_queue("abcde", "abde", "c") == list("cdeab")
    assert continued_queue("abcde", "ade", "c", retests="a") == list("cade")
    assert continued_queue("abc", "acx", "b") == list("bcxa")


@given(IDS, IDS, st.sampled_from("abcdefgh"))
def test_continued_queues_keep_all_traces(old: list[str], new: list[str], opened: str) -> None:
    continued = continued_queue(old, new, opened, retests=new[:1])
    assert (len(set(continued)), set(continued) - {opened}) == (len(continued), set(new) - {opened})
    if opened in old:
        assert continued[0] == opened
    else:
        assert continued == new


def test_annotators_begin_with_their_own_traces() -> None:
    room = Class(6, overlap=0.0)
    read = read_queue(opened_by(room), None, list(room.traces))
    assert (read.request.name, read.trace_ids) == (QueueName.MINE, room.order())
    assert 0 < len(room.order()) < 6
    assert read_queue(opened_by(room, "carol"), None, list(room.traces)).trace_ids is None


def test_queues_without_a_study() -> None:
    room = Class(3)
    opened = OpenWorkspace(room.workspace, TESTED, "alice", False)
    room.finish("t01")
    room.workspace.study = lambda taxonomy: None  # type: ignore[method-assign]
    read = read_queue(opened, QueueRequest(QueueName.MINE), ["t00", "t01", "never opened"])
    assert read.trace_ids == ("t00", "never opened")
    sample = read_queue(opened, QueueRequest(QueueName.SAMPLE, 2, 5), ["x", "y", "z"])
    assert sample == read_queue(opened, QueueRequest(QueueName.SAMPLE, 2, 5), ["z", "y", "x"])
    assert len(sample.trace_ids or ()) == 2


def test_reveals_are_recorded_on_choosing_disagreements() -> None:
    room = Class(3)
    room.finish("t00", "t01", mode=MODES[0])
    room.finish("t00", annotator="bob")
    put(room.open("t02"), MODES[1], span(0))
    counts = count_queues(opened_by(room), list(room.traces))
    assert counts == {
        QueueName.ALL: 3,
        QueueName.MINE: 1,
        QueueName.UNSURE: 0,
        QueueName.CHANGED: 0,
        QueueName.WORTH: 0,
        QueueName.DISAGREEMENTS: 2,
        QueueName.JUDGE: 2,
    }

    def reveals() -> int:
        return sum(isinstance(event.fact, Revealed) for event in room.workspace.events())

    assert reveals() == 0
    read = read_queue(opened_by(room), QueueRequest(QueueName.DISAGREEMENTS), list(room.traces))
    assert (read.trace_ids, read.modes, reveals()) == (("t00",), {"t00": (MODES[0],)}, 1)


def test_counts_of_disagreements_are_hidden_until_chosen() -> None:
    counts = {QueueName.ALL: 9, QueueName.MINE: 4, QueueName.DISAGREEMENTS: 3}
    assert count_text(QueueName.MINE, counts, {}) == "4"
    assert "hidden" in count_text(QueueName.DISAGREEMENTS, counts, {})
    assert count_text(QueueName.DISAGREEMENTS, counts, {QueueName.DISAGREEMENTS: 2}) == "2"
    assert count_text(QueueName.UNSURE, {}, {}) == "…"


def test_an_empty_queue_says_why() -> None:
    mine = QueueRequest(QueueName.MINE)
    nothing = empty_queue_text(QueueTraces(mine, ()), shown_key)
    assert "Nothing is left" in nothing
    assert "K shows agreement, Y the progress of the study, V exports labels" in nothing
    other = empty_queue_text(QueueTraces(mine, (), is_outsider=True), shown_key)
    assert "not an annotator of this study" in other
    assert "open paths do not contain" in empty_queue_text(
        QueueTraces(mine, ("t1", "t2")), shown_key
    )


def test_samples_are_read_with_or_without_a_seed() -> None:
    assert sample_from(" 20 ") == QueueRequest(QueueName.SAMPLE, 20, None)
    assert sample_from("20, 7") == QueueRequest(QueueName.SAMPLE, 20, 7)
    for text in ("", "0", "-3", "many", "2 x", "1 2 3", "9999999"):
        with pytest.raises(MastError, match="is not a number of traces"):
            sample_from(text)


def test_listings_keep_the_order_of_the_queue() -> None:
    listing = TraceListing()
    listing.put(LibraryRow(trace_id=name, name=name, state=WorkState.UNTOUCHED) for name in "abcd")
    listing.narrow(["c", "gone", "a"], keeps_order=True)
    assert [row.name for row in listing.arranged("", Sort.QUEUE)] == ["c", "a"]
    assert [row.name for row in listing.arranged("", Sort.NAME)] == ["a", "c"]
    assert listing.arranged("b", Sort.QUEUE) == []
    listing.narrow(["c", "a"], keeps_order=False)
    assert [row.name for row in listing.arranged("", Sort.QUEUE)] == ["a", "c"]
    listing.narrow(None, keeps_order=True)
    assert len(listing.arranged("", Sort.QUEUE)) == 4


def listed_names(on: Stage) -> list[str]:
    return [row.name for row in on.open_screen(LibraryScreen).table.rows]


def reveals(team: TeamDir) -> int:
    with team.store() as store:
        return sum(isinstance(event.fact, Revealed) for event in store.events())


async def test_a_queue_is_chosen_and_gone_through(tmp_path: Path) -> None:
    team = TeamDir(tmp_path / "set")
    for name in ("a", "b", "c", "d", "e"):
        team.file(name)
    team.label("alice", "b", {"1.3": (3, 8)})
    team.label("bob", "b", {})
    team.label("alice", "d", {"1.3": (3, 8)})
    async with stage(team.folder, workspace=team.workspace) as on:
        assert len(listed_names(on)) == 5
        await on.press("f", "down")
        texts = ("mine to do", "count hidden until opened", "↓ does nothing here")
        await on.until(lambda: not missing(on.text, *texts))
        await on.press("escape")
        assert len(listed_names(on)) == 5
        await on.press("f", "m")
        assert listed_names(on) == ["a.json", "c.json", "e.json"]
        assert "mine to do · 3 of 5 traces" in on.lines[0]
        await on.press("/", *"b.json", "enter")
        assert "No trace of this queue matches “b.json”: 1 match outside of it." in on.text
        assert "f chooses another queue" in on.text
        await on.press("escape", "/", *"a.json", "enter", "enter", "}")
        assert on.message == "No other trace matches the filter “a.json” · L, then Esc removes it"
        await on.press("L", "escape", "enter", "}")
        assert on.lines[0].startswith(" c ·")
        await on.press("1", "3", "D", "}")
        await on.press("1", "3", "D")
        await on.press("{")
        assert on.lines[0].startswith(" ✓ c ·")
        await on.press("}", "u")
        assert on.lines[0].startswith(" e ·")
        await on.press("}")
        assert on.lines[0].startswith(" a ·")
        await on.press("escape")
        # What is begun comes first, by whatever it was begun.
        assert (sorted(listed_names(on)), reveals(team)) == (["a.json", "e.json"], 0)
        await on.press("f", "P", "n")
        assert reveals(team) == 0
        await on.press("f", "P", "y")
        assert listed_names(on) == ["b.json"]
        assert "1.3" in on.text
        assert reveals(team) > 0
        await on.press("f", "s")
        assert on.app.screen.query_one(Input).value == "5"  # as many as are listed
        await on.press(*"2 7", "enter")
        drawn = listed_names(on)
        assert len(drawn) == 2
        assert "random sample, seed 7" in on.lines[0]
        await on.press("f", "u")
        assert "You have marked no mode as unsure" in on.text
        await on.press("f", "a", "f", "s", "backspace", "backspace", *"2 7", "enter")
        assert listed_names(on) == drawn
        on.open_screen(LibraryScreen).queue.changed()
        await on.press("f", "P")
        assert "Show the disagreements?" in on.text  # it may show more than before


def test_the_queue_follows_the_last_finished_trace() -> None:
    traces: dict[str, Any] = {}
    for name in "abcd":
        traces[name] = SimpleNamespace(identity=SimpleNamespace(trace_id=name))
    app: Any = SimpleNamespace(catalog=SimpleNamespace(traces=traces))
    queue = TraceQueue(app)
    queue.note_opened(traces["d"], from_trace=False)
    queue.note_opened(traces["a"], from_trace=True)
    queue.ids = ["c", "b"]  # d and a were finished
    assert queue.neighbour(traces["d"], 1) is traces["a"]
    assert queue.neighbour(traces["a"], 1) is traces["c"]


async def test_another_annotator_begins_with_the_first_trace_of_a_study(team: TeamDir) -> None:
    for name in "abc":
        team.label("alice", name, {}, finish=False)
    team.set_study()
    async with stage(team.folder, workspace=team.workspace) as on:
        await on.press("o", "j", "&", *"bob", "enter")
        assert not missing(on.lines[0], "bob", "mine to do")
        assert "by name" not in on.lines[0]
        assert on.screen(LibraryScreen).table.cursor == 0


def merge_two_modes(modes: list[Mode]) -> list[Mode]:
    bare = [replace(mode, confusable=()) for mode in modes]
    return [*bare[:2], replace(bare[2], slug="both", name="Both"), *bare[4:]]


async def test_the_queue_of_a_changed_codebook(tmp_path: Path) -> None:
    team = TeamDir(tmp_path / "set")
    old = changed_taxonomy(MAST, merge_two_modes, version="2")
    parts = ("step_repetition", "loss_of_conversation_history")
    targets = {mode.slug: (mode.slug,) for mode in old.modes} | {"both": parts}
    with team.store() as store:
        store.add_taxonomy(old)
        store.add_annotator("alice", AnnotatorKind.HUMAN)
        for name in ("a", "b"):
            (trace,) = read_file(team.file(name), named=True).traces
            session = Session.open(store, trace, old, "alice", blind=False)
            mode = "both" if name == "a" else "task_derailment"
            key = trace.span(3).key
            session.toggle_label(mode, Target(key, key), suggestions_on_screen=False)
            session.finish(open_modes="absent")
        migrate(store, CodebookMap(old, MAST, targets), "alice")
    async with stage(team.folder, workspace=team.workspace) as on:
        await on.press("f")
        assert "a mode I labelled was split later" in on.text
        await on.press("c")
        assert listed_names(on) == ["a.json"]
        assert "split modes · 1 of 2 traces" in on.lines[0]
        assert "In this queue for: 1.3 Step repetition, 1.4 Loss of conversation history" in on.text
        await on.press("enter")
        await on.press("D")
        assert "1.3, 1.4 left open, as the codebook has changed" in on.text
        await on.press("u", "1", "4", "-", "1", "3", "escape")
        assert listed_names(on) == []
        assert "No mode has been split since you labelled it" in on.text
