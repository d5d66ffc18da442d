"""What the adjudicate screen makes of sides, gold and decisions."""

from __future__ import annotations

from collections.abc import Sequence

from mast_tui.adjudication.conflicts import Choice, take_side
from mast_tui.columns import fit, text_lengths
from mast_tui.gold import Conflict, Decision, gold_of_trace
from mast_tui.labels import TraceWork
from mast_tui.taxonomy.model import Category, Mode, Taxonomy
from mast_tui.ui.adjudicate.items import TraceItems
from mast_tui.ui.adjudicate.lists import COLUMNS, QueueRow, RowState
from tests.gold.build import ABSENT, MODE, MODES, OTHER, PRESENT, at, label, order, quote, side

TAXONOMY = Taxonomy(
    "mast",
    "3",
    "MAST",
    (Category("c", "Category"),),
    (
        Mode(MODE, "1.3", "Step repetition", "c"),
        Mode(OTHER, "3.1", "Premature termination", "c"),
    ),
    "hash",
)


def items(sides: Sequence[TraceWork], *decisions: Decision) -> TraceItems:
    gold = gold_of_trace(sides, decisions, MODES, order)
    return TraceItems("t1", sides, gold, decisions, TAXONOMY, order)


def conflicts(found: TraceItems, row: str) -> tuple[Conflict, ...]:
    """What a key decides in a row."""
    group = found.question(row)
    assert group is not None
    return group.conflicts


def decided(conflict: Conflict, choice: Choice) -> Decision:
    return Decision(
        conflict.mode,
        conflict.id,
        choice.value,
        choice.targets,
        choice.sides,
        conflict.said,
        "dan",
        "2026-01-01T00:00:00Z",
    )


def test_only_what_is_open_is_listed_until_agreed_items_are_asked_for() -> None:
    sides = [
        side("ann", at(3), others={OTHER: ABSENT}),
        side("bob", value=ABSENT, others={OTHER: ABSENT}),
    ]
    found = items(sides)
    assert [(row.code, row.state, row.summary) for row in found.rows()] == [
        ("1.3", RowState.OPEN, "present / absent")
    ]
    assert [(row.code, row.state) for row in found.rows(agreed=True)] == [
        ("1.3", RowState.OPEN),
        ("3.1", RowState.AGREED),
    ]
    assert found.rows(agreed=True, mode=OTHER)[0].summary == "absent"


def test_a_decided_item_stays_in_its_place_and_says_how() -> None:
    sides = [
        side("ann", at(3), others={OTHER: PRESENT}),
        side("bob", value=ABSENT, others={OTHER: ABSENT}),
    ]
    before = items(sides)
    (conflict,) = conflicts(before, MODE)
    after = items(sides, decided(conflict, take_side(conflict, "ann")))
    assert [row.item for row in after.rows()] == [row.item for row in before.rows()]
    first = after.rows()[0]
    assert (first.state, first.summary) == (RowState.DECIDED, "present, as ann")
    assert (before.open_count(), after.open_count()) == (2, 1)
    view = after.view(MODE)
    assert view is not None
    assert [(s.name, s.remark) for s in view.sides] == [("ann", "✓ taken"), ("bob", "")]
    assert view.target == at(3)


def test_a_decision_whose_sides_have_moved_is_marked() -> None:
    sides = [side("ann", at(3)), side("bob", value=ABSENT)]
    (conflict,) = conflicts(items(sides), MODE)
    decision = decided(conflict, take_side(conflict, "ann"))
    moved = items([side("ann", at(3)), side("bob", at(9))], decision)
    assert moved.rows()[0].state is RowState.CHANGED


def test_sides_are_numbered_with_place_quote_and_note() -> None:
    marked = label("ann", quote(4, 2, "again"), note="the same call")
    found = items([side("ann", labels=[marked]), side("bob", value=ABSENT)])
    view = found.view(MODE)
    assert view is not None
    ann, bob = view.sides
    assert (ann.number, ann.name, ann.verdict) == (1, "ann", "present")
    assert (bob.number, bob.name, bob.verdict, bob.places) == (2, "bob", "absent", ())
    place = ann.places[0]
    assert (place.words, place.quote, place.note) == ("#5", "again", "the same call")


def test_a_place_that_one_side_did_not_mark_is_a_question_about_the_place() -> None:
    found = items([side("ann", at(3)), side("bob", at(3), at(9))])
    rows = found.rows()
    assert [row.summary for row in rows] == ["place: only bob"]
    view = found.view(rows[0].item or "")
    assert view is not None
    assert "#10" in view.title
    assert [s.verdict for s in view.sides] == ["did not mark this place", "", ""]
    assert [place.words for place in view.sides[1].places] == ["#10"]
    assert [(s.name, s.places[0].words) for s in view.sides[2:]] == [("settled", "#4")]


def test_a_trace_that_is_not_here_has_places_by_key() -> None:
    sides = [side("ann", at(3, 5)), side("bob", value=ABSENT)]
    gold = gold_of_trace(sides, (), MODES)
    view = TraceItems("t1", sides, gold, (), TAXONOMY, lambda _: None).view(MODE)
    assert view is not None
    assert view.sides[0].places[0].words == "k3 to k5"


def test_names_show_wherever_they_fit_and_go_before_anything_else_is_cut() -> None:
    conflict = QueueRow(
        trace_id="t1",
        item="1.3",
        state=RowState.OPEN,
        code="1.3",
        name="n" * 10,
        summary="w" * 20,
        sides="ann, bob",
    )
    shown = {
        line: [cells for _, cells in fit(COLUMNS, [text_lengths(COLUMNS, conflict)], line)]
        for line in (49, 48, 39, 38, 36, 35)
    }
    assert shown == {
        49: [2, 3, 10, 20, 8],
        48: [2, 3, 10, 20],
        39: [2, 3, 10, 20],
        38: [2, 3, 10, 19],
        36: [2, 3, 10, 17],
        35: [2, 3, 9, 17],
    }
