"""Typing modes by two digits, in MAST and in other taxonomies."""

from __future__ import annotations

from itertools import product

import pytest

from mast_tui.labels import VerdictValue
from mast_tui.taxonomy.loader import load_mast
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.ui.annotate.labelling import DigitEntry, TypedDigit, type_digit
from mast_tui.ui.dialogs.welcome import first_keys
from tests.ui.build import taxonomy_of
from tests.ui.stage import shown_key

DIGITS = "0123456789"
MAST = load_mast()
BY_PLACE = taxonomy_of("A1", "A2", "B-x", *(f"C{n}" for n in range(20)))


def typed(
    taxonomy: Taxonomy, keys: str, purpose: VerdictValue = VerdictValue.PRESENT
) -> TypedDigit:
    """Return what the last key did."""
    done = TypedDigit(DigitEntry(purpose, None, True))
    for key in keys:
        done = type_digit(done.entry, key, taxonomy)
    return done


@pytest.mark.parametrize("purpose", list(VerdictValue))
@pytest.mark.parametrize("taxonomy", [MAST, BY_PLACE], ids=["MAST", "by place"])
def test_each_pair_of_digits_is_a_mode_or_refused(
    taxonomy: Taxonomy, purpose: VerdictValue
) -> None:
    by_keys = {taxonomy.keys_of(mode): mode for mode in taxonomy.modes}
    if purpose is VerdictValue.PRESENT:
        by_keys["00"] = taxonomy.open_mode
    firsts = {keys[0] for keys in by_keys}
    for first, second in product(DIGITS, DIGITS):
        begun = typed(taxonomy, first, purpose)
        assert begun.mode is None
        if first not in firsts:
            assert begun.refused
            assert begun.entry == DigitEntry()
            continue
        assert begun.refused is None
        assert begun.entry == DigitEntry(purpose, first, True)
        done = type_digit(begun.entry, second, taxonomy)
        assert done.mode == by_keys.get(first + second)
        assert (done.refused is None) == (done.mode is not None)
        assert done.entry.first is None
        assert not done.entry.has_begun


@pytest.mark.parametrize("taxonomy", [MAST, BY_PLACE, taxonomy_of("A1")])
def test_the_welcome_shows_digits_of_a_mode(taxonomy: Taxonomy) -> None:
    keys = dict(first_keys(taxonomy, shown_key, blind=False))
    first, second = next(key for key in keys if key[0].isdigit()).split()
    assert taxonomy.by_digits(first, second) in taxonomy.modes
    assert keys.keys() - dict(first_keys(taxonomy, shown_key, blind=True)).keys() == {"]"}


def test_modes_are_typed_by_code_or_by_place() -> None:
    for mode in MAST.modes:
        assert typed(MAST, mode.code.replace(".", "")).mode == mode
    assert [typed(BY_PLACE, f"{place:02d}").mode for place in range(1, 24)] == list(BY_PLACE.modes)
    assert typed(BY_PLACE, "24").refused
    assert typed(BY_PLACE, "00", VerdictValue.ABSENT).refused


@pytest.mark.parametrize("taxonomy", [MAST, BY_PLACE], ids=["MAST", "by place"])
def test_the_footer_offers_the_next_digits(taxonomy: Taxonomy) -> None:
    for first in DIGITS:
        entry = typed(taxonomy, first).entry
        offered = (
            {digit for digit in DIGITS if type_digit(entry, digit, taxonomy).mode is not None}
            if entry.first
            else set()
        )
        assert {digit for digit, _ in entry.candidates(taxonomy)} == offered
        if offered:
            prompt = entry.prompt(taxonomy, 400)
            assert all(mode.name in prompt for _, mode in entry.candidates(taxonomy))
            narrow = entry.prompt(taxonomy, 78)
            assert len(narrow) <= 78
            names = [part.partition(" ")[2] for part in narrow.split("  ")[1:]]
            assert len(set(names)) == len(entry.candidates(taxonomy))


def test_the_prompt_names_the_purpose() -> None:
    prompts = {DigitEntry(purpose, None, True).prompt(MAST, 78) for purpose in VerdictValue}
    assert len(prompts) == len(VerdictValue)
    assert all(MAST.keys_of(MAST.modes[0]) in prompt for prompt in prompts)
