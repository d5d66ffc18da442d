"""What keys do where two runs stand side by side."""

from __future__ import annotations

from functools import partial

from mast_tui.ui.actions.action import Where, action, moves, scrolls

_here = partial(action, Where.SIDE_BY_SIDE)

SIDE_BY_SIDE = (
    *moves(Where.SIDE_BY_SIDE),
    _here("fork", "f", "where they part", "To where the two runs part", hint=10),
    _here(
        "next",
        "] .",
        "next difference",
        "To the next place where the agents do something else",
        "difference(1)",
        hint=20,
    ),
    _here(
        "previous",
        "[ ,",
        "previous difference",
        "To the place before where the agents do something else",
        "difference(-1)",
    ),
    _here(
        "open_a", "enter", "open A", "Open the run on the left at this step", "open('a')", hint=30
    ),
    _here("open_b", "o", "open B", "Open the run on the right at this step", "open('b')", hint=40),
    *scrolls(Where.SIDE_BY_SIDE, "what differs"),
)
