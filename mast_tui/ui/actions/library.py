"""What keys do in the library."""

from __future__ import annotations

from functools import partial

from mast_tui.ui.actions.action import Where, action, moves

_library = partial(action, Where.LIBRARY)

LIBRARY = (
    *moves(Where.LIBRARY),
    _library("open", "enter", title="open", help="Open the trace under the cursor", hint=10),
    _library("filter", "/", title="filter", help="Show only traces that match", hint=20),
    _library(
        "contents",
        "F tab",
        title="contents",
        help="Find text in all traces; on the line of either search, tab goes to the other",
        hint=25,
    ),
    _library("sort", "o", title="sort", help="Sort by the next column", hint=30),
    _library(
        "queue",
        "f",
        title="queue",
        help="Choose which traces to go through, such as mine to do",
        hint=35,
    ),
    _library(
        "compare",
        "=",
        title="compare",
        help="Put the run under the cursor beside another, such as one of the same task that"
        " succeeded",
        hint=45,
    ),
    _library(
        "judge",
        "J",
        title="run judge",
        help="Run a judge on the listed traces, or cancel it",
        hint=40,
    ),
)
