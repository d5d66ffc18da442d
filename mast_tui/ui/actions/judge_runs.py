"""What keys do on the runs of judges, one of them, and two beside each other."""

from __future__ import annotations

from functools import partial

from mast_tui.ui.actions.action import Where, action, moves, scrolls

_runs = partial(action, Where.RUNS)

RUNS = (
    *moves(Where.RUNS),
    _runs(
        "open", "enter", "its traces", "See the traces of the run, those that failed first", hint=5
    ),
    _runs("judge", "J", "run judge", "Run a judge on the library's traces, or cancel it", hint=10),
    _runs("mark", "v", "mark", "Mark the run, to compare it with another", hint=15),
    _runs("compare", "=", "compare", "Compare the marked run with this one", hint=20),
    _runs("gold", "c", "with gold", "Compare the run with the gold", hint=25),
    *scrolls(Where.RUNS, "what is told of the run"),
)

_run = partial(action, Where.RUN)

RUN = (
    *moves(Where.RUN),
    _run("open", "enter", "open", "Open the trace at its next suggestion", hint=5),
    _run(
        "answers",
        "a",
        "answers",
        "Read what the model answered about the trace, word for word",
        hint=10,
    ),
    *scrolls(Where.RUN, "what is told of the trace"),
)

_comparison = partial(action, Where.COMPARISON)

COMPARISON = (
    *moves(Where.COMPARISON),
    _comparison(
        "open", "enter", "open", "See the traces of the mode, or open one at its evidence", hint=5
    ),
    _comparison("pane", "tab h l", "other pane", "Go to the other pane", hint=10),
    _comparison(
        "seen", "o", "judge was seen", "Count also gold that was settled with a judge on screen"
    ),
)
