"""The open mode: what labels are of that are none of a taxonomy's modes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mast_tui.taxonomy.loader import TaxonomyError, from_dict, load_mast, to_dict
from mast_tui.taxonomy.model import OPEN_SLUG, Taxonomy
from tests.taxonomy.rewording import changed

MAST = load_mast()
WORDS = {
    "id": "shop",
    "version": "1",
    "categories": [{"id": "all"}],
    "modes": [
        {"slug": "slow", "code": "A", "name": "Slow", "category": "all"},
        {"slug": "wrong", "code": "B", "name": "Wrong", "category": "all"},
    ],
}


def shop(**changes: object) -> Taxonomy:
    return from_dict({**WORDS, **changes})


def test_two_noughts_name_it_and_it_is_none_of_the_modes() -> None:
    for taxonomy in (MAST, shop()):
        found = taxonomy.by_digits("0", "0")
        assert found is not None
        assert found == taxonomy.open_mode == taxonomy.mode(OPEN_SLUG)
        assert found not in taxonomy.modes
        assert taxonomy.all_modes == (*taxonomy.modes, found)
        assert taxonomy.keys_of(found) == "00"
        assert taxonomy.find("0.0") == taxonomy.find(OPEN_SLUG) == found


def test_a_file_may_give_it_another_code_and_name() -> None:
    own = shop(open={"code": "Z", "name": "Something else"})
    assert (own.open_mode.code, own.open_mode.name) == ("Z", "Something else")
    assert own.find("something else") == own.by_digits("0", "0") == own.open_mode
    assert from_dict(to_dict(own)) == own
    assert own.identity == shop().identity
    digits = from_dict({**to_dict(MAST), "open": {"code": "9.9"}})
    assert digits.by_digits("9", "9") == digits.open_mode
    assert digits.keys_of(digits.open_mode) == "99"
    assert digits.by_digits("0", "0") is None


def test_a_taxonomy_that_says_nothing_of_it_is_written_as_before() -> None:
    assert "open" not in to_dict(MAST)


def test_a_mode_that_has_its_code_or_its_slug_keeps_it() -> None:
    coded = changed(MAST, lambda modes: [replace(modes[0], code="0.0"), *modes[1:]], "9")
    assert coded.by_digits("0", "0") == coded.modes[0]
    assert coded.find("0.0") == coded.modes[0]
    assert coded.open_mode.code == OPEN_SLUG
    named = changed(
        MAST,
        lambda modes: (
            [replace(mode, confusable=()) for mode in modes[:-1]]
            + [replace(modes[-1], slug=OPEN_SLUG, confusable=())]
        ),
        "9",
    )
    assert named.open_mode == named.modes[-1]
    assert named.all_modes == named.modes


@pytest.mark.parametrize(
    ("own", "told"),
    [
        ({"code": "A"}, "'A' already names"),
        ({"name": "Slow"}, "'Slow' already names"),
        ({"slug": "x"}, "unknown key 'slug'"),
        ("Z", "'open' is no table"),
    ],
)
def test_what_cannot_be_is_refused_in_words(own: object, told: str) -> None:
    with pytest.raises(TaxonomyError, match=told):
        shop(open=own)
