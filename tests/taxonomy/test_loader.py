"""Loading of taxonomies from files, and the taxonomy that comes with the package."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mast_tui.taxonomy.loader import TaxonomyError, from_dict, load_mast, load_taxonomy, to_dict
from mast_tui.taxonomy.model import Mode, Taxonomy

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


def test_a_small_file_loads_also_without_codes(tmp_path: Path) -> None:
    taxonomy = load(tmp_path, SMALL)
    assert taxonomy.ref == "payments@2026-01"
    assert [mode.slug for mode in taxonomy.modes] == ["double-charge", "no-refund"]
    assert taxonomy.modes[1].applies == ("A refund was promised.",)
    assert taxonomy.modes[0].confusable[0].slug == "no-refund"
    assert taxonomy.modes[1].aliases[0].source == "the old spreadsheet"
    # Without a code a mode has its slug, and its place as digits.
    assert taxonomy.modes[0].code == "double-charge"
    assert taxonomy.by_digits("0", "2") is taxonomy.modes[1]
    assert load(tmp_path, b"\xef\xbb\xbf" + SMALL.encode()) == load(tmp_path, SMALL)
    assert from_dict(json.loads(json.dumps(to_dict(taxonomy)))) == taxonomy


def test_the_documented_example_loads(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "codebook.md"
    example = page.read_text(encoding="utf-8").split("```toml\n")[1].split("```")[0]
    assert load(tmp_path, example).coded_by_digits


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
        ((SMALL + "\n# caf\u00e9").encode("latin-1"),
         ["line 24", "0xe9", "save the file as UTF-8"]),
        (replaced('version = "2026-01"', "version = 3"),
         ["'version' is a number", 'version = "…"']),
        (replaced('version = "2026-01"', 'version = "a@b"'), ["'version' is 'a@b'", "no space"]),
        (replaced('id = "payments"', 'id = "Pay ments"'), ["'id' is 'Pay ments'", "lower-case"]),
        (replaced('name = "No refund"', ""), ["mode 2 'no-refund'", "'name' is missing"]),
        (replaced('name = "No refund"', 'name = " "'), ["mode 2 'no-refund'", "'name' is empty"]),
        (replaced('slug = "double-charge"', ""), ["mode 1", "'slug' is missing"]),
        (replaced('slug = "double-charge"', 'slug = "1.1"'), ["mode 1", "'slug' is '1.1'"]),
        (replaced('name = "No refund"\ncategory = "money"', 'name = "N"\ncategory = "cash"'),
         ["mode 2 'no-refund'", "'cash'", "one of money"]),
        (replaced('"no-refund", difference', '"refund", difference'),
         ["mode 'double-charge'", "'refund' is not a mode of this file"]),
        (replaced('"no-refund", difference', '"double-charge", difference'), ["the mode itself"]),
        (replaced('slug = "no-refund"\n', 'slug = "no-refund"\ncode = "Double-Charge"\n'),
         ["mode 2 'no-refund'", "already names mode 1 'double-charge'"]),
        (replaced('slug = "no-refund"\n', 'slug = "double-charge"\n'),
         ["mode 2", "already names mode 1"]),
        (replaced("applies =", "aplies ="), ["mode 2", "unknown key 'aplies'", "applies"]),
        (replaced('["A refund was promised."]', '"A refund"'), ["'applies' is text, not a list"]),
        (replaced('["A refund was promised."]', '["yes", 3]'),
         ["entry 2 of 'applies'", "a number"]),
        (replaced('["A refund was promised."]', '["", "x"]'), ["entry 1 of 'applies'", "empty"]),
        (replaced("applies =", 'stages = ["pre", "later"]\napplies ='),
         ["'stages' has 'later'", "pre, execution, post"]),
        (replaced("[[categories]]", "[categories]"), ["'categories' is a table", "[[categories]]"]),
        ('id = "a"\nversion = "1"\nmodes = [1]\n[[categories]]\nid = "c"', ["mode 1 is a number"]),
        ('id = "a"\nversion = "1"\n[[categories]]\nid = "c"', ["no modes", "[[modes]]"]),
        ('id = "a"\nversion = "1"\n', ["no categories", "[[categories]]"]),
        (SMALL + '[[categories]]\nid = "money"\n', ["category 2", "already names category 1"]),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)  # fmt: skip
def test_errors_have_place_and_remedy(tmp_path: Path, text: str | bytes, words: list[str]) -> None:
    message = refusal(tmp_path, text)
    for word in words:
        assert word in message, message


def test_missing_files_and_escapes_are_reported(tmp_path: Path) -> None:
    with pytest.raises(TaxonomyError, match="cannot be read: No such file"):
        load_taxonomy(tmp_path / "own.toml")
    with pytest.raises(TaxonomyError, match="cannot be read"):
        load_taxonomy(tmp_path)
    message = refusal(tmp_path, replaced('id = "payments"', 'id = "\\u001b[31mred"'))
    assert "\x1b" not in message


def test_the_hash_depends_on_content_and_order_alone(tmp_path: Path) -> None:
    plain = load(tmp_path, SMALL)
    rewritten = SMALL.replace(
        'definition = "The customer pays twice."',
        '# a comment\ndefinition = """\nThe customer\n  pays   twice.\n"""',
    ).replace('id = "payments"\nversion = "2026-01"', 'version="2026-01"\nid = "payments"')
    assert load(tmp_path, rewritten) == plain
    for old, new in [
        ("The customer pays twice.", "The customer pays thrice."),
        ('name = "Money"', 'name = "Cash"'),
        ('version = "2026-01"', 'version = "2026-02"'),
        ("There it is once too often", "Here it is once too often"),
        ("the old spreadsheet", "the new spreadsheet"),
    ]:
        changed = load(tmp_path, replaced(old, new))
        assert changed.content_hash != load(tmp_path, SMALL).content_hash
    document = to_dict(load(tmp_path, SMALL))
    modes = document["modes"]
    assert isinstance(modes, list)
    turned = from_dict({**document, "modes": modes[::-1]})
    assert turned.content_hash != load(tmp_path, SMALL).content_hash


def test_mast_survives_json_and_imports_nothing_heavy() -> None:
    mast = load_mast()
    assert from_dict(json.loads(json.dumps(to_dict(mast)))) == mast
    code = (
        "import sys; from mast_tui.taxonomy.loader import load_mast; load_mast();"
        "print(*sorted({name.split('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "mast_tui" in loaded
    assert not loaded & {"textual", "rich", "sqlalchemy", "numpy", "openai", "rapidfuzz", "click"}


def test_too_many_modes_or_categories_are_refused(tmp_path: Path) -> None:
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


# MAST


@pytest.fixture(scope="module")
def mast() -> Taxonomy:
    return load_mast()


def test_mast_has_fourteen_modes_with_codes_by_category(mast: Taxonomy) -> None:
    assert mast.ref == "mast@3"
    assert [(mode.code, mode.slug) for mode in mast.modes] == [
        ("1.1", "disobey_task_specification"), ("1.2", "disobey_role_specification"),
        ("1.3", "step_repetition"), ("1.4", "loss_of_conversation_history"),
        ("1.5", "unaware_of_termination_conditions"), ("2.1", "conversation_reset"),
        ("2.2", "fail_to_ask_for_clarification"), ("2.3", "task_derailment"),
        ("2.4", "information_withholding"), ("2.5", "ignored_other_agents_input"),
        ("2.6", "reasoning_action_mismatch"), ("3.1", "premature_termination"),
        ("3.2", "no_or_incomplete_verification"), ("3.3", "incorrect_verification"),
    ]  # fmt: skip
    order = [category.id for category in mast.categories]
    for mode in mast.modes:
        assert order.index(mode.category) == int(mode.code[0]) - 1
    for mode in mast.modes:
        keys = mast.keys_of(mode)
        assert len(keys) == 2
        assert mast.by_digits(keys[0], keys[1]) is mode
    assert mast.by_digits("4", "1") is None


def mode_texts(mode: Mode) -> list[str]:
    differences = [confusable.difference for confusable in mode.confusable]
    lists = (*mode.applies, *mode.applies_not, *mode.fixes)
    return [mode.definition, mode.detection, *lists, *differences]


def test_every_mode_of_mast_has_short_texts_and_examples(mast: Taxonomy) -> None:
    for mode in mast.modes:
        assert len(mode.applies) >= 2, mode.slug
        assert len(mode.applies_not) >= 2, mode.slug
        assert mode.confusable, mode.slug
        assert mode.fixes, mode.slug
        assert mode.stages, mode.slug
        assert all(mode_texts(mode)), mode.slug
        assert len(mode.definition) <= 260, mode.slug
        for text in mode_texts(mode):
            assert len(text) <= 260, text


def test_confusable_modes_refer_to_each_other(mast: Taxonomy) -> None:
    pairs = ["3.2 3.3", "1.3 1.5", "1.1 2.3", "1.4 2.1", "2.4 2.5", "1.5 3.1"]
    for pair in pairs:
        one, other = (mast.find(code) for code in pair.split())
        assert one is not None
        assert other is not None
        assert other.slug in {confusable.slug for confusable in one.confusable}, pair
        assert one.slug in {confusable.slug for confusable in other.confusable}, pair


def test_aliases_name_the_verification_codes_of_their_source(mast: Taxonomy) -> None:
    omission = mast.mode("no_or_incomplete_verification")
    failing = mast.mode("incorrect_verification")
    sources = {
        (alias.name, mode.code): alias.source
        for mode in (omission, failing)
        for alias in mode.aliases
    }
    assert "definitions.txt, there 3.3" in sources["No or incorrect verification", "3.2"]
    assert "definitions.txt, there 3.2" in sources["Weak verification", "3.3"]
    assert "agentdash, there 3.2" in sources["No or incorrect verification", "3.2"]
    assert "agentdash, there 3.3" in sources["Weak verification", "3.3"]
