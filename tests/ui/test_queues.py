"""The queues of the library: what they hold, and in which order one goes on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.errors import MastError
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
from mast_tui.ui.library.trace_list import LibraryRow, Sort, TraceListing, WorkState
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.workspace.events.types import Revealed
from tests.session.build import put, span
from tests.session.studies import Class
from tests.ui.stage import shown_key
from tests.workspace.build import MAST, MODES

IDS = st.lists(st.sampled_from("abcdefgh"), unique=True)


def opened_by(room: Class, who: str = "alice") -> OpenWorkspace:
    return OpenWorkspace(room.workspace, MAST, who, False)


class TestGoingOn:
    def test_what_comes_behind_comes_behind_still_and_what_was_passed_by_comes_last(self) -> None:
        assert continued_queue("abcde", "abde", "c") == list("cdeab")

    def test_what_is_to_be_done_anew_comes_at_once(self) -> None:
        assert continued_queue("abcde", "ade", "c", retests="a") == list("cade")

    def test_what_is_new_comes_before_what_was_passed_by(self) -> None:
        assert continued_queue("abc", "acx", "b") == list("bcxa")

    @given(IDS, IDS, st.sampled_from("abcdefgh"))
    def test_nothing_is_lost_doubled_or_added(
        self, before: list[str], now: list[str], here: str
    ) -> None:
        found = continued_queue(before, now, here, retests=now[:1])
        assert len(set(found)) == len(found)
        assert set(found) - {here} == set(now) - {here}
        if here in before:
            assert found[0] == here
        else:
            assert found == now


class TestReading:
    def test_a_studys_annotator_begins_with_what_is_theirs_and_others_with_everything(self) -> None:
        room = Class(6, overlap=0.0)
        read = read_queue(opened_by(room), None, list(room.traces))
        assert read.request.name is QueueName.MINE
        assert read.trace_ids == room.order()
        assert 0 < len(room.order()) < 6
        assert read_queue(opened_by(room, "carol"), None, list(room.traces)).trace_ids is None

    def test_without_a_study_what_is_not_finished_is_to_do_whether_it_was_opened_or_not(
        self,
    ) -> None:
        room = Class(3)
        opened = OpenWorkspace(room.workspace, MAST, "alice", False)
        room.finish("t01")
        room.workspace.study = lambda taxonomy: None  # type: ignore[method-assign]
        read = read_queue(opened, QueueRequest(QueueName.MINE), ["t00", "t01", "never opened"])
        assert read.trace_ids == ("t00", "never opened")
        sample = read_queue(opened, QueueRequest(QueueName.SAMPLE, 2, 5), ["x", "y", "z"])
        assert sample == read_queue(opened, QueueRequest(QueueName.SAMPLE, 2, 5), ["z", "y", "x"])
        assert len(sample.trace_ids or ()) == 2

    def test_what_comes_back_is_known_to_the_machinery(self) -> None:
        room = Class(14, retests=0.2)
        room.finish(*room.order()[:12])
        read = read_queue(opened_by(room), None, ())
        assert read.retests
        assert read.retests < set(read.trace_ids or ())

    def test_counting_records_nothing_and_choosing_a_disagreement_does(self) -> None:
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
        assert read.trace_ids == ("t00",)
        assert read.modes == {"t00": (MODES[0],)}
        assert reveals() == 2


class TestWords:
    def test_what_would_tell_of_others_is_counted_once_it_was_looked_at(self) -> None:
        counts = {QueueName.ALL: 9, QueueName.MINE: 4, QueueName.DISAGREEMENTS: 3}
        assert count_text(QueueName.MINE, counts, {}) == "4"
        assert "3 finished" in count_text(QueueName.DISAGREEMENTS, counts, {})
        assert count_text(QueueName.DISAGREEMENTS, counts, {QueueName.DISAGREEMENTS: 2}) == "2"
        assert count_text(QueueName.UNSURE, {}, {}) == "…"

    def test_an_empty_queue_says_why(self) -> None:
        mine = QueueRequest(QueueName.MINE)
        nothing = empty_queue_text(QueueTraces(mine, ()), shown_key)
        assert "Nothing is left" in nothing
        assert "K shows agreement, Y the progress of the study, V exports labels" in nothing
        other = empty_queue_text(QueueTraces(mine, (), is_outsider=True), shown_key)
        assert "no annotator of this study" in other
        assert "not under the open paths" in empty_queue_text(
            QueueTraces(mine, ("t1", "t2")), shown_key
        )

    @given(st.integers(1, 1_000_000), st.none() | st.integers(0, 10**17))
    def test_a_sample_is_written_with_or_without_a_seed(self, n: int, seed: int | None) -> None:
        text = f" {n} " if seed is None else f"{n}, {seed}"
        assert sample_from(text) == QueueRequest(QueueName.SAMPLE, n, seed)

    @pytest.mark.parametrize("text", ["", "0", "-3", "many", "2 x", "1 2 3", "9999999"])
    def test_anything_else_is_refused_in_words(self, text: str) -> None:
        with pytest.raises(MastError, match="is no number of traces"):
            sample_from(text)


def test_a_narrowed_listing_keeps_the_order_of_the_queue_until_something_else_is_sorted_by() -> (
    None
):
    listing = TraceListing()
    listing.put(LibraryRow(trace_id=name, name=name, state=WorkState.UNTOUCHED) for name in "abcd")
    listing.narrow(["c", "gone", "a"], in_order=True)
    assert [row.name for row in listing.arranged("", Sort.QUEUE)] == ["c", "a"]
    assert [row.name for row in listing.arranged("", Sort.NAME)] == ["a", "c"]
    assert listing.arranged("b", Sort.QUEUE) == []
    listing.narrow(["c", "a"], in_order=False)
    assert [row.name for row in listing.arranged("", Sort.QUEUE)] == ["a", "c"]
    listing.narrow(None, in_order=True)
    assert len(listing.arranged("", Sort.QUEUE)) == 4
