"""The taxonomy that comes with the package says what an annotator needs, and says it shortly."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mast_tui.taxonomy.loader import load_mast
from mast_tui.taxonomy.model import Mode, Taxonomy


@pytest.fixture(scope="module")
def mast() -> Taxonomy:
    return load_mast()


def test_the_fourteen_modes_stand_under_the_codes_of_version_3(mast: Taxonomy) -> None:
    assert mast.ref == "mast@3"
    assert {mode.code: mode.slug for mode in mast.modes} == {
        "1.1": "disobey_task_specification",
        "1.2": "disobey_role_specification",
        "1.3": "step_repetition",
        "1.4": "loss_of_conversation_history",
        "1.5": "unaware_of_termination_conditions",
        "2.1": "conversation_reset",
        "2.2": "fail_to_ask_for_clarification",
        "2.3": "task_derailment",
        "2.4": "information_withholding",
        "2.5": "ignored_other_agents_input",
        "2.6": "reasoning_action_mismatch",
        "3.1": "premature_termination",
        "3.2": "no_or_incomplete_verification",
        "3.3": "incorrect_verification",
    }
    assert [mode.code for mode in mast.modes] == sorted(mode.code for mode in mast.modes)


def test_the_code_tells_the_category(mast: Taxonomy) -> None:
    order = [category.id for category in mast.categories]
    for mode in mast.modes:
        assert order.index(mode.category) == int(mode.code[0]) - 1


def test_two_digits_label_with_every_mode(mast: Taxonomy) -> None:
    for mode in mast.modes:
        keys = mast.keys_of(mode)
        assert len(keys) == 2
        assert mast.by_digits(keys[0], keys[1]) is mode
    assert mast.by_digits("4", "1") is None


def mode_texts(mode: Mode) -> list[str]:
    return [
        mode.definition,
        mode.detection,
        *mode.applies,
        *mode.applies_not,
        *mode.fixes,
        *(confusable.difference for confusable in mode.confusable),
    ]


def test_every_mode_has_all_that_helps_to_decide(mast: Taxonomy) -> None:
    for mode in mast.modes:
        assert len(mode.applies) >= 2, mode.slug
        assert len(mode.applies_not) >= 2, mode.slug
        assert mode.confusable, mode.slug
        assert mode.fixes, mode.slug
        assert mode.stages, mode.slug
        assert all(mode_texts(mode)), mode.slug


def test_texts_fit_a_panel(mast: Taxonomy) -> None:
    for mode in mast.modes:
        assert len(mode.definition) <= 260, mode.slug
        for text in mode_texts(mode):
            assert len(text) <= 260, text


def test_pairs_that_people_confuse_point_at_each_other(mast: Taxonomy) -> None:
    pairs = ["3.2 3.3", "1.3 1.5", "1.1 2.3", "1.4 2.1", "2.4 2.5", "1.5 3.1"]
    for pair in pairs:
        one, other = (mast.find(code) for code in pair.split())
        assert one is not None
        assert other is not None
        assert other.slug in {confusable.slug for confusable in one.confusable}, pair
        assert one.slug in {confusable.slug for confusable in other.confusable}, pair


def test_the_aliases_say_which_way_round_a_source_binds_the_verifications(mast: Taxonomy) -> None:
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


def test_reading_it_imports_nothing_heavy() -> None:
    code = (
        "import sys; from mast_tui.taxonomy.loader import load_mast; load_mast();"
        "print(*sorted({name.split('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "mast_tui" in loaded
    assert not loaded & {"textual", "rich", "sqlalchemy", "numpy", "openai", "rapidfuzz", "click"}
