"""What keys do where open codes are gathered."""

from __future__ import annotations

from functools import partial

from mast_tui.ui.actions.action import Where, action, moves, scrolls

_here = partial(action, Where.OPEN_CODES)

OPEN_CODES = (
    *moves(Where.OPEN_CODES),
    _here(
        "open", "enter", "open", "Open the trace at the place; on a group at its first one", hint=5
    ),
    _here(
        "mark",
        "v space",
        "mark",
        "Mark the place, or all of the group; again, take the mark off",
        hint=10,
    ),
    _here(
        "new_mode",
        "n",
        "make a mode",
        "Make a mode of what is marked, or else of the group under the cursor",
        hint=15,
    ),
    _here(
        "tag",
        "t",
        "tag",
        "Give what is marked, or else what is under the cursor, a tag, or take it off",
        hint=17,
    ),
    _here(
        "search",
        "/",
        "search",
        "Show only what holds some words or a #tag; nothing shows all again",
        hint=20,
    ),
    _here(
        "group_by_model",
        "J",
        "ask the model",
        "Have the model of config.toml group what no tag does, or go by words again",
        hint=22,
    ),
    _here("next_group", "tab } >", "next group", "Go to the next group", "group(1)", hint=25),
    _here("previous_group", "{ <", "previous group", "Go to the previous group", "group(-1)"),
    *scrolls(Where.OPEN_CODES, "the text"),
)
