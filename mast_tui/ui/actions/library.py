"""What keys do in the library."""

from __future__ import annotations

from functools import partial

from mast_tui.ui.actions.action import Where, action, moves

_here = partial(action, Where.LIBRARY)

LIBRARY = (
    *moves(Where.LIBRARY),
    _here("open", "enter", "open", "Open the trace under the cursor", hint=10),
    _here("filter", "/", "filter", "Show only traces that match", hint=20),
    _here(
        "contents",
        "F tab",
        "contents",
        "Find text in all traces; on the line of either search, go to the other search",
        hint=25,
    ),
    _here("sort", "o", "sort", "Sort by the next column", hint=30),
    _here("queue", "f", "queue", "Choose which traces to go through, such as mine to do", hint=35),
    _here(
        "compare",
        "=",
        "compare",
        "Put the run under the cursor beside another, such as one of the same task that succeeded",
        hint=45,
    ),
    _here("judge", "J", "run judge", "Run a judge on the listed traces, or cancel it", hint=40),
)
