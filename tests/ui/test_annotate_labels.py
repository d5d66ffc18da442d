"""Labels by keys on spans, ranges, quotes and the whole trace, and the digits of modes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import product
from pathlib import Path

import pytest

from mast_tui.labels import Severity, VerdictValue
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.ui.annotate.labelling import DigitEntry, TypedDigit, type_digit
from mast_tui.ui.dialogs.opening import first_keys
from tests.ui.build import taxonomy_of
from tests.ui.stage import CODES, MAST, PLAN, shown_key, stage


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
        assert "label 1▁" in on.lines[-1]
        assert on.labels == set()
        await on.press("9")
        assert "digits 1 9" in on.lines[-1]
        assert on.labels == set()
        await on.press("9")
        assert "no mode has the first digit 9" in on.message
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


async def test_a_refused_note_is_asked_for_again(small: Path, workspace: Path) -> None:
    refusal = "BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'disk is full'); END"
    async with stage(small, workspace=workspace) as on:
        await on.press("1", "3", "m", *"why")
        with closing(sqlite3.connect(workspace)) as raw:
            raw.execute(f"CREATE TRIGGER full {refusal}")
            await on.press("enter")
            assert "the disk is full; nothing was written" in on.message
            raw.execute("DROP TRIGGER full")
        await on.press("enter")
        assert [label.note for label in on.session.labels] == ["why"]


DIGITS = "0123456789"
BY_PLACE = taxonomy_of("A1", "A2", "B-x", *(f"C{n}" for n in range(20)))


def typed(
    taxonomy: Taxonomy, keys: str, purpose: VerdictValue = VerdictValue.PRESENT
) -> TypedDigit:
    """Return the outcome of the last key."""
    outcome = TypedDigit(DigitEntry(purpose, None, True))
    for key in keys:
        outcome = type_digit(outcome.entry, key, taxonomy)
    return outcome


@pytest.mark.parametrize("purpose", list(VerdictValue))
@pytest.mark.parametrize("taxonomy", [MAST, BY_PLACE], ids=["MAST", "by place"])
def test_each_pair_of_digits_is_a_mode_or_refused(
    taxonomy: Taxonomy, purpose: VerdictValue
) -> None:
    by_keys = {taxonomy.keys_of(mode): mode for mode in taxonomy.modes}
    if purpose is VerdictValue.PRESENT:
        by_keys["00"] = taxonomy.open_code_mode
    firsts = {keys[0] for keys in by_keys}
    for first, second in product(DIGITS, DIGITS):
        begun = typed(taxonomy, first, purpose)
        assert begun.mode is None
        if first not in firsts:
            assert begun.refusal
            assert begun.entry == DigitEntry()
            continue
        assert begun.refusal is None
        assert begun.entry == DigitEntry(purpose, first, True)
        done = type_digit(begun.entry, second, taxonomy)
        assert done.mode == by_keys.get(first + second)
        assert (done.refusal is None) == (done.mode is not None)
        assert done.entry.first is None
        assert not done.entry.has_begun


@pytest.mark.parametrize("taxonomy", [MAST, BY_PLACE, taxonomy_of("A1")])
def test_the_welcome_shows_digits_of_a_mode(taxonomy: Taxonomy) -> None:
    for lists_traces in (False, True):
        keys = dict(first_keys(taxonomy, shown_key, blind=False, lists_traces=lists_traces))
        first, second = next(key for key in keys if key[:1].isdigit()).split()
        assert taxonomy.by_digits(first, second) in taxonomy.modes
        assert ("Enter" in keys) is lists_traces
        blind = dict(first_keys(taxonomy, shown_key, blind=True, lists_traces=lists_traces))
        assert keys.keys() - blind.keys() == {"J", "]"}


@pytest.mark.parametrize("taxonomy", [MAST, BY_PLACE], ids=["MAST", "by place"])
def test_the_menu_offers_the_next_digits(taxonomy: Taxonomy) -> None:
    for first in DIGITS:
        entry = typed(taxonomy, first).entry
        offered = (
            {digit for digit in DIGITS if type_digit(entry, digit, taxonomy).mode is not None}
            if entry.first
            else set()
        )
        assert {digit for digit, _ in entry.candidates(taxonomy)} == offered
        if offered:
            rows = entry.menu(taxonomy).rows
            titles = [f"{digit}  {m.code} {m.name}" for digit, m in entry.candidates(taxonomy)]
            assert list(rows) == titles


def test_a_verdict_begins_with_the_menu_of_categories() -> None:
    for purpose in (VerdictValue.ABSENT, VerdictValue.UNSURE):
        entry = DigitEntry(purpose, None, True)
        assert entry.prompt == f"{purpose}: ▁"
        assert entry.menu(MAST).rows == tuple(
            f"{digit}  {category.name}" for digit, category in enumerate(MAST.categories, 1)
        )
        assert [row[:5] for row in entry.menu(BY_PLACE).rows] == ["0  A1", "1  C6", "2  C1"]
