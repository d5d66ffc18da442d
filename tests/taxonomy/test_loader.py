"""A taxonomy of one's own loads the same way as MAST, and what is wrong with it is said clearly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.taxonomy.loader import (
    TaxonomyError,
    from_dict,
    load_mast,
    load_taxonomy,
    to_dict,
)
from mast_tui.taxonomy.model import Taxonomy

SMALL = """
id = "payments"
version = "2026-01"
name = "Failures of the payment bot"

[[categories]]
id = "money"
name = "Money"

[[modes]]
slug = "double-charge"
name = "Double charge"
category = "money"
definition = "The customer pays twice."
confusable = [{ slug = "no-refund", difference = "There it is once too often, here never back." }]

[[modes]]
slug = "no-refund"
name = "No refund"
category = "money"
applies = ["A refund was promised."]
aliases = [{ name = "refund_missing", source = "the old spreadsheet" }]
"""


def load(tmp_path: Path, text: str | bytes) -> Taxonomy:
    path = tmp_path / "own.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_taxonomy(path)


def refusal(tmp_path: Path, text: str | bytes) -> str:
    with pytest.raises(TaxonomyError) as caught:
        load(tmp_path, text)
    message = str(caught.value)
    assert message.startswith(str(tmp_path / "own.toml")), message
    assert "\n" not in message
    return message


def test_a_small_file_loads(tmp_path: Path) -> None:
    taxonomy = load(tmp_path, SMALL)
    assert taxonomy.ref == "payments@2026-01"
    assert [mode.slug for mode in taxonomy.modes] == ["double-charge", "no-refund"]
    assert taxonomy.modes[1].applies == ("A refund was promised.",)
    assert taxonomy.modes[0].confusable[0].slug == "no-refund"
    assert taxonomy.modes[1].aliases[0].source == "the old spreadsheet"


def test_without_codes_a_mode_is_called_by_its_slug_and_typed_by_its_place(tmp_path: Path) -> None:
    taxonomy = load(tmp_path, SMALL)
    assert taxonomy.modes[0].code == "double-charge"
    assert taxonomy.by_digits("0", "2") is taxonomy.modes[1]


def test_the_documented_example_loads(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "codebook.md"
    example = page.read_text(encoding="utf-8").split("```toml\n")[1].split("```")[0]
    assert load(tmp_path, example).coded_by_digits


def test_a_byte_order_mark_is_no_trouble(tmp_path: Path) -> None:
    assert load(tmp_path, b"\xef\xbb\xbf" + SMALL.encode()) == load(tmp_path, SMALL)


def replaced(old: str, new: str) -> str:
    assert old in SMALL
    return SMALL.replace(old, new)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["empty"]),
        ("  # nothing yet\n", ["'id' is missing"]),
        ("id = payments", ["not TOML", "line 1"]),
        (SMALL.encode("utf-16"), ["not UTF-8", "line 1", "save the file as UTF-8"]),
        (
            (SMALL + "\n# caf\u00e9").encode("latin-1"),
            ["line 24", "0xe9", "save the file as UTF-8"],
        ),
        (
            replaced('version = "2026-01"', "version = 3"),
            ["'version' is a number", 'version = "…"'],
        ),
        (replaced('version = "2026-01"', 'version = "a@b"'), ["'version' is 'a@b'", "no space"]),
        (replaced('id = "payments"', 'id = "Pay ments"'), ["'id' is 'Pay ments'", "lower-case"]),
        (replaced('name = "No refund"', ""), ["mode 2 'no-refund'", "'name' is missing"]),
        (replaced('name = "No refund"', 'name = " "'), ["mode 2 'no-refund'", "'name' is empty"]),
        (replaced('slug = "double-charge"', ""), ["mode 1", "'slug' is missing"]),
        (replaced('slug = "double-charge"', 'slug = "1.1"'), ["mode 1", "'slug' is '1.1'"]),
        (
            replaced('name = "No refund"\ncategory = "money"', 'name = "N"\ncategory = "cash"'),
            ["mode 2 'no-refund'", "'cash'", "one of money"],
        ),
        (
            replaced('"no-refund", difference', '"refund", difference'),
            ["mode 'double-charge'", "'refund' is no mode of this file"],
        ),
        (
            replaced('"no-refund", difference', '"double-charge", difference'),
            ["the mode itself"],
        ),
        (
            replaced('slug = "no-refund"\n', 'slug = "no-refund"\ncode = "Double-Charge"\n'),
            ["mode 2 'no-refund'", "already names mode 1 'double-charge'"],
        ),
        (
            replaced('slug = "no-refund"\n', 'slug = "double-charge"\n'),
            ["mode 2", "already names mode 1"],
        ),
        (replaced("applies =", "aplies ="), ["mode 2", "unknown key 'aplies'", "applies"]),
        (replaced('["A refund was promised."]', '"A refund"'), ["'applies' is text, not a list"]),
        (
            replaced('["A refund was promised."]', '["yes", 3]'),
            ["entry 2 of 'applies'", "a number"],
        ),
        (replaced('["A refund was promised."]', '["", "x"]'), ["entry 1 of 'applies'", "empty"]),
        (
            replaced("applies =", 'stages = ["pre", "later"]\napplies ='),
            ["'stages' has 'later'", "pre, execution, post"],
        ),
        (replaced("[[categories]]", "[categories]"), ["'categories' is a table", "[[categories]]"]),
        ('id = "a"\nversion = "1"\nmodes = [1]\n[[categories]]\nid = "c"', ["mode 1 is a number"]),
        ('id = "a"\nversion = "1"\n[[categories]]\nid = "c"', ["no modes", "[[modes]]"]),
        ('id = "a"\nversion = "1"\n', ["no categories", "[[categories]]"]),
        (SMALL + '[[categories]]\nid = "money"\n', ["category 2", "already names category 1"]),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_what_is_wrong_is_said_with_its_place_and_what_to_do(
    tmp_path: Path, text: str | bytes, words: list[str]
) -> None:
    message = refusal(tmp_path, text)
    for word in words:
        assert word in message, message


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(TaxonomyError, match="cannot be read: No such file"):
        load_taxonomy(tmp_path / "own.toml")
    with pytest.raises(TaxonomyError, match="cannot be read"):
        load_taxonomy(tmp_path)


def test_escapes_in_a_file_do_not_come_out_raw_in_its_messages(tmp_path: Path) -> None:
    message = refusal(tmp_path, replaced('id = "payments"', 'id = "\\u001b[31mred"'))
    assert "\x1b" not in message


def test_the_hash_is_of_the_content_not_of_how_it_is_written(tmp_path: Path) -> None:
    plain = load(tmp_path, SMALL)
    rewritten = SMALL.replace(
        'definition = "The customer pays twice."',
        '# a comment\ndefinition = """\nThe customer\n  pays   twice.\n"""',
    ).replace('id = "payments"\nversion = "2026-01"', 'version="2026-01"\nid = "payments"')
    assert load(tmp_path, rewritten) == plain


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The customer pays twice.", "The customer pays thrice."),
        ('name = "Money"', 'name = "Cash"'),
        ('version = "2026-01"', 'version = "2026-02"'),
        ("There it is once too often", "Here it is once too often"),
        ("the old spreadsheet", "the new spreadsheet"),
    ],
)
def test_any_change_of_content_changes_the_hash(tmp_path: Path, old: str, new: str) -> None:
    changed = load(tmp_path, replaced(old, new))
    assert changed.content_hash != load(tmp_path, SMALL).content_hash


def test_the_order_of_modes_is_content(tmp_path: Path) -> None:
    document = to_dict(load(tmp_path, SMALL))
    modes = document["modes"]
    assert isinstance(modes, list)
    turned = from_dict({**document, "modes": modes[::-1]})
    assert turned.content_hash != load(tmp_path, SMALL).content_hash


def test_mast_survives_storage_as_json() -> None:
    mast = load_mast()
    assert from_dict(json.loads(json.dumps(to_dict(mast)))) == mast


names = st.from_regex(r"[a-z0-9]{1,6}(?:[_-][a-z0-9]{1,6}){0,2}", fullmatch=True)
prose = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30).filter(str.strip)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, object]:
    categories = draw(st.lists(names, min_size=1, max_size=3, unique=True))
    # The prefix keeps slugs, codes and names of different modes apart.
    slugs = [f"m{place}-{draw(names)}" for place in range(draw(st.integers(1, 4)))]
    modes = []
    for place, slug in enumerate(slugs):
        mode: dict[str, object] = {
            "slug": slug,
            "name": f"{place} {draw(prose)}",
            "category": draw(st.sampled_from(categories)),
        }
        optional: dict[str, st.SearchStrategy[Any]] = {
            "code": st.just(f"{place}.1"),
            "stages": st.lists(st.sampled_from(["pre", "execution", "post"]), unique=True),
            "definition": prose,
            "applies": st.lists(prose, max_size=2),
            "applies_not": st.lists(prose, max_size=2),
            "detection": prose,
            "fixes": st.lists(prose, max_size=2),
            "aliases": st.lists(
                st.fixed_dictionaries({"name": prose, "source": prose}), max_size=2
            ),
        }
        for key in draw(st.sets(st.sampled_from(sorted(optional)))):
            mode[key] = draw(optional[key])
        others = [other for other in slugs if other != slug]
        linked: bool = draw(st.booleans())
        if others and linked:
            mode["confusable"] = [
                {"slug": draw(st.sampled_from(others)), "difference": draw(prose)}
            ]
        modes.append(mode)
    return {
        "id": draw(names),
        "version": draw(names),
        "categories": [{"id": category, "name": draw(prose)} for category in categories],
        "modes": modes,
    }


@given(documents())
def test_nothing_is_lost_between_values_and_taxonomy(document: dict[str, object]) -> None:
    taxonomy = from_dict(document)
    stored = json.loads(json.dumps(to_dict(taxonomy)))
    again = from_dict(stored)
    assert again == taxonomy
    given_modes = document["modes"]
    assert isinstance(given_modes, list)
    for mode, values in zip(stored["modes"], given_modes, strict=True):
        for key in ("slug", "category", "stages", "code"):
            if key in values:
                assert mode[key] == values[key]
        for key in ("name", "definition", "detection"):
            if key in values:
                assert mode[key].split() == values[key].split()


def test_more_modes_or_categories_than_anybody_chooses_among_are_refused(tmp_path: Path) -> None:
    mode = '[[modes]]\nslug = "m{0}"\nname = "Mode {0}"\ncategory = "money"\n'
    head = SMALL.split("[[modes]]", maxsplit=1)[0]
    most = head + "".join(mode.format(n) for n in range(1000))
    assert len(load(tmp_path, most).modes) == 1000
    assert "1,001 modes; a taxonomy may have up to 1,000" in refusal(
        tmp_path, most + mode.format(1000)
    )
    broken = most + mode.format(1000) + "= no TOML"
    assert "1,001 modes" in refusal(tmp_path, broken), "it is not even parsed"
    inline = ", ".join(f'{{slug="m{n}",name="N{n}",category="money"}}' for n in range(1001))
    assert "1,001 modes" in refusal(tmp_path, f'id="a"\nversion="1"\nmodes=[{inline}]\n')
    categories = "".join(f'[[categories]]\nid = "c{n}"\n' for n in range(1000))
    assert "1,001 categories" in refusal(tmp_path, SMALL + categories)
