"""Levels of categories, lasting places of modes, and the open mode."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mast_tui.exchange.migration.mapping import taxonomy_toml, with_mode
from mast_tui.judges.llm.prompt.taxonomy_text import taxonomy_text
from mast_tui.taxonomy.changes import changes
from mast_tui.taxonomy.loader import TaxonomyError, from_dict, load_mast, load_taxonomy, to_dict
from mast_tui.taxonomy.model import OPEN_CODE_SLUG, Taxonomy, differences, lasting_positions
from mast_tui.workspace import Workspace
from tests.taxonomy.rewording import changed

DESK: dict[str, Any] = {
    "id": "desk",
    "version": "1",
    "categories": [
        {"id": "tools", "name": "Tools"},
        {"id": "choice", "name": "Choice of tool", "under": "tools"},
        {"id": "arguments", "name": "Arguments", "under": "tools"},
        {"id": "talk", "name": "Talk"},
    ],
    "modes": [
        {"slug": "wrong_tool", "code": "AC-1", "name": "Wrong tool", "category": "choice"},
        {"slug": "no_tool", "code": "AC-7", "name": "No tool", "category": "choice"},
        {"slug": "wrong_value", "code": "A.1.2", "name": "Wrong value", "category": "arguments"},
        {"slug": "rude", "name": "Rude", "category": "talk"},
    ],
}


def desk(**changed: object) -> Taxonomy:
    return from_dict({**DESK, **changed}, "desk.toml")


def version(number: int, *slugs: str) -> Taxonomy:
    modes = [{"slug": slug, "name": slug, "category": "all"} for slug in slugs]
    return from_dict(
        {"id": "own", "version": str(number), "categories": [{"id": "all"}], "modes": modes}
    )


def test_levels_hold_every_mode_and_are_shown_to_models() -> None:
    assert desk().by_level == {
        "category": (
            ("tools", "Tools", ("wrong_tool", "no_tool", "wrong_value")),
            ("talk", "Talk", ("rude",)),
        ),
        "group": (
            ("choice", "Tools › Choice of tool", ("wrong_tool", "no_tool")),
            ("arguments", "Tools › Arguments", ("wrong_value",)),
            ("talk", "Talk", ("rude",)),
        ),
    }
    assert desk(levels=["area", "kind"]).levels == ("area", "kind")
    heads = [line for line in taxonomy_text(desk()).splitlines() if line.startswith("## ")]
    assert heads == ["## Tools › Choice of tool", "## Tools › Arguments", "## Talk"]


def test_levels_are_written_and_read_and_mast_has_one(tmp_path: Path) -> None:
    own = with_mode(desk(levels=["area", "kind"]), "Late", "talk")
    (tmp_path / "own.toml").write_text(taxonomy_toml(own))
    assert load_taxonomy(tmp_path / "own.toml") == own
    assert from_dict(to_dict(own)) == own
    mast = load_mast()
    assert mast.content_hash == "5476c907316ee64b1d12bec4fdb8e930f018d08455102d543b2412ac69e63cd5"
    assert mast.by_level == {}
    assert mast.identity[1] == ("system_design", "inter_agent", "task_verification")


BAD_LEVELS: list[tuple[dict[str, Any], str]] = [
    (
        {"categories": [{"id": "a", "under": "b"}, {"id": "b"}]},
        "desk.toml: category 1 'a': 'under' is 'b', which is not an earlier category",
    ),
    ({"categories": [{"id": "a", "under": "a"}]}, "category 1 'a': 'under' is 'a'"),
    ({"levels": ["area"]}, "desk.toml: 'levels' has 'area'; .* have 2 levels, so give 2 diff"),
    ({"levels": ["area", "area"]}, "give 2 different names"),
]


def test_impossible_levels_are_refused() -> None:
    for values, told in BAD_LEVELS:
        with pytest.raises(TaxonomyError, match=told):
            desk(**values)


def test_moving_a_group_changes_the_taxonomy_and_renaming_does_not() -> None:
    tools, choice, arguments, talk = DESK["categories"]
    moved = [tools, choice, talk, {**arguments, "under": "talk"}]
    found = changes(desk(), desk(categories=moved))
    assert not found.same
    assert found.categories == ("-tools/arguments", "talk/arguments")
    assert differences(desk(), desk(categories=moved)) == ("the categories differ",)
    names = [{**one, "name": one["name"].upper()} for one in DESK["categories"]]
    assert changes(desk(), desk(categories=names)).same
    assert changes(desk(), desk(levels=["area", "kind"])).same


NAMES = st.lists(st.sampled_from([f"m{n}" for n in range(12)]), min_size=1, unique=True)


@given(st.lists(NAMES, min_size=1, max_size=6))
def test_a_mode_keeps_its_place(history: list[list[str]]) -> None:
    versions = [version(n, *slugs) for n, slugs in enumerate(history)]
    placed = [dict(lasting_positions(versions[: n + 1])) for n in range(len(versions))]
    assert list(placed[0].values()) == list(range(1, len(history[0]) + 1))
    for before, now, slugs in zip([{}, *placed], placed, history, strict=False):
        assert now.keys() == set(slugs)
        assert len(set(now.values())) == len(now)
        assert all(now[slug] == before[slug] for slug in now.keys() & before.keys())


def test_free_places_are_reused_last() -> None:
    many = [f"m{n}" for n in range(99)]
    places = dict(lasting_positions([version(1, *many), version(2, *many[:4], *many[5:], "new")]))
    assert (places["new"], places["m98"]) == (5, 99)
    assert dict(lasting_positions([version(1, *many), version(2, *many[:98], "new")]))["new"] == 99
    over = version(1, *many, "one-more")
    assert over.keys_of(over.mode("one-more")) == "··"


def test_digits_keep_naming_the_same_mode(tmp_path: Path) -> None:
    first, second = version(1, "a", "b", "c"), version(2, "d", "a", "c")
    with closing(Workspace.open(tmp_path / "w.db")) as workspace:
        workspace.add_taxonomy(first)
        for now in (workspace.with_positions(second), workspace.with_positions(first)):
            assert {now.keys_of(mode): mode.slug for mode in now.modes}.items() >= {
                ("01", "a"), ("03", "c")
            }  # fmt: skip
        now = workspace.with_positions(second)
        assert now.by_digits("0", "2") is None
        assert now.by_digits("0", "4") == now.mode("d")
        workspace.add_taxonomy(now)
        assert workspace.taxonomy("own@2").content_hash == second.content_hash
        assert workspace.with_positions(load_mast()) == load_mast()


# The open mode


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


def test_two_zeros_name_the_open_mode() -> None:
    for taxonomy in (MAST, shop()):
        found = taxonomy.by_digits("0", "0")
        assert found is not None
        assert found == taxonomy.open_code_mode == taxonomy.mode(OPEN_CODE_SLUG)
        assert found not in taxonomy.modes
        assert taxonomy.all_modes == (*taxonomy.modes, found)
        assert taxonomy.keys_of(found) == "00"
        assert taxonomy.find("0.0") == taxonomy.find(OPEN_CODE_SLUG) == found


def test_a_file_may_rename_the_open_mode() -> None:
    own = shop(open={"code": "Z", "name": "Something else"})
    assert (own.open_code_mode.code, own.open_code_mode.name) == ("Z", "Something else")
    assert own.find("something else") == own.by_digits("0", "0") == own.open_code_mode
    assert from_dict(to_dict(own)) == own
    assert own.identity == shop().identity
    digits = from_dict({**to_dict(MAST), "open": {"code": "9.9"}})
    assert digits.by_digits("9", "9") == digits.open_code_mode
    assert digits.keys_of(digits.open_code_mode) == "99"
    assert digits.by_digits("0", "0") is None
    assert "open" not in to_dict(MAST)


def test_a_mode_keeps_the_code_and_slug_of_the_open_mode() -> None:
    coded = changed(MAST, lambda modes: [replace(modes[0], code="0.0"), *modes[1:]], "9")
    assert coded.by_digits("0", "0") == coded.modes[0]
    assert coded.find("0.0") == coded.modes[0]
    assert coded.open_code_mode.code == OPEN_CODE_SLUG
    named = changed(
        MAST,
        lambda modes: (
            [replace(mode, confusable=()) for mode in modes[:-1]]
            + [replace(modes[-1], slug=OPEN_CODE_SLUG, confusable=())]
        ),
        "9",
    )
    assert named.open_code_mode == named.modes[-1]
    assert named.all_modes == named.modes


def test_impossible_open_modes_are_refused() -> None:
    for own, told in [
        ({"code": "A"}, "'A' already names"),
        ({"name": "Slow"}, "'Slow' already names"),
        ({"slug": "x"}, "unknown key 'slug'"),
        ("Z", "'open' is not a table"),
    ]:
        with pytest.raises(TaxonomyError, match=told):
            shop(open=own)
