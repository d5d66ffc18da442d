"""What keys do where two runs stand side by side."""

from __future__ import annotations

from functools import partial

from mast_tui.ui.actions.action import Where, action, moves, scrolls

_here = partial(action, Where.SIDE_BY_SIDE)

SIDE_BY_SIDE = (
    *moves(Where.SIDE_BY_SIDE),
    _here("fork", "f", title="where they part", help="To where the two runs part", hint=10),
    _here(
        "next",
        "] .",
        title="next difference",
        help="To the next place where the agents do something else",
        command="difference(1)",
        hint=20,
    ),
    _here(
        "previous",
        "[ ,",
        title="previous difference",
        help="To the place before where the agents do something else",
        command="difference(-1)",
    ),
    _here(
        "open_a",
        "enter",
        title="open A",
        help="Open the run on the left at this step",
        command="open('a')",
        hint=30,
    ),
    _here(
        "open_b",
        "o",
        title="open B",
        help="Open the run on the right at this step",
        command="open('b')",
        hint=40,
    ),
    *scrolls(Where.SIDE_BY_SIDE, "what differs"),
)
