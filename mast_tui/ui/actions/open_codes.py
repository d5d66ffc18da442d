"""What keys do where open codes are gathered."""

from __future__ import annotations

from functools import partial

from mast_tui.ui.actions.action import Where, action, moves

_codes = partial(action, Where.OPEN_CODES)

OPEN_CODES = (
    *moves(Where.OPEN_CODES),
    _codes(
        name="open",
        keys="enter",
        title="open",
        help="Open the trace at the place; on a group at its first one",
        hint=5,
    ),
    _codes(
        name="mark",
        keys="v space",
        title="mark",
        help="Mark the place, or all of the group; again, take the mark off",
        hint=10,
    ),
    _codes(
        name="new_mode",
        keys="n",
        title="make a mode",
        help="Make a mode of what is marked, or else of the group under the cursor",
        hint=15,
    ),
    _codes(
        name="tag",
        keys="t",
        title="tag",
        help="Give what is marked, or else what is under the cursor, a tag, or take it off",
        hint=17,
    ),
    _codes(
        name="search",
        keys="/",
        title="search",
        help="Show only what holds some words or a #tag; nothing shows all again",
        hint=20,
    ),
    _codes(
        name="group_by_model",
        keys="J",
        title="ask the model",
        help="Have the model of config.toml group what no tag does, or go by words again",
        hint=22,
    ),
    _codes(
        name="next_group",
        keys="tab } >",
        title="next group",
        help="Go to the next group",
        command="group(1)",
        hint=25,
    ),
    _codes(
        name="previous_group",
        keys="{ <",
        title="previous group",
        help="Go to the previous group",
        command="group(-1)",
    ),
    _codes(
        name="text_down",
        keys="d",
        title="text ↓",
        help="Scroll the text down",
        command="text(1)",
    ),
    _codes(name="text_up", keys="b", title="text ↑", help="Scroll the text up", command="text(-1)"),
)
