"""The help screen's text: all keys of a screen, those that a person has set included."""

from __future__ import annotations

import pytest

from mast_tui.ui.actions.registry import Where, actions_for, shown
from mast_tui.ui.dialogs.help import help_text


@pytest.mark.parametrize("where", list(Where))
def test_every_action_of_the_screen_and_of_everywhere_is_explained_once(where: Where) -> None:
    lines = help_text(where, {}).splitlines()
    for place in {where, Where.EVERYWHERE}:
        assert lines.count(place.value.capitalize().replace("_", " ")) == 1
        for action in actions_for(place):
            if action.name.startswith(("digit_", "side_")):
                continue
            keys = "  ".join(shown(key) for key in action.keys)
            assert sum(line.split() == [*keys.split(), *action.help.split()] for line in lines) == 1


@pytest.mark.parametrize(("where", "words"), [(Where.ANNOTATE, "0…9"), (Where.ADJUDICATE, "1…9")])
def test_digits_take_one_line(where: Where, words: str) -> None:
    assert sum(words in line for line in help_text(where, {}).splitlines()) == 1


def test_other_screens_are_left_out() -> None:
    assert "Adjudicate\n" not in help_text(Where.LIBRARY, {})


def test_keys_of_ones_own_stand_in_place_of_ours() -> None:
    text = help_text(Where.ANNOTATE, {"annotate.note": ("ctrl+n", "i")})
    note = next(line for line in text.splitlines() if "Write a note" in line)
    assert note.split()[:2] == ["^n", "i"]
