"""What keys do on the runs of judges, one of them, and two beside each other."""

from __future__ import annotations

from functools import partial

from mast_tui.ui.actions.action import Where, action, moves

_runs = partial(action, Where.RUNS)

RUNS = (
    *moves(Where.RUNS),
    _runs(
        name="open",
        keys="enter",
        title="its traces",
        help="See the traces of the run, those that failed first",
        hint=5,
    ),
    _runs(
        name="judge",
        keys="J",
        title="run judge",
        help="Run a judge on the library's traces, or cancel it",
        hint=10,
    ),
    _runs(
        name="mark",
        keys="v",
        title="mark",
        help="Mark the run, to compare it with another",
        hint=15,
    ),
    _runs(
        name="compare",
        keys="=",
        title="compare",
        help="Compare the marked run with this one",
        hint=20,
    ),
    _runs(name="gold", keys="c", title="with gold", help="Compare the run with the gold", hint=25),
    _runs(
        name="text_down",
        keys="d",
        title="text ↓",
        help="Scroll what is told of the run down",
        command="text(1)",
    ),
    _runs(
        name="text_up",
        keys="b",
        title="text ↑",
        help="Scroll what is told of the run up",
        command="text(-1)",
    ),
)

_run = partial(action, Where.RUN)

RUN = (
    *moves(Where.RUN),
    _run(
        name="open",
        keys="enter",
        title="open",
        help="Open the trace at its next suggestion",
        hint=5,
    ),
    _run(
        name="answers",
        keys="a",
        title="answers",
        help="Read what the model answered about the trace, word for word",
        hint=10,
    ),
    _run(
        name="text_down",
        keys="d",
        title="text ↓",
        help="Scroll what is told of the trace down",
        command="text(1)",
    ),
    _run(
        name="text_up",
        keys="b",
        title="text ↑",
        help="Scroll what is told of the trace up",
        command="text(-1)",
    ),
)

_comparison = partial(action, Where.COMPARISON)

COMPARISON = (
    *moves(Where.COMPARISON),
    _comparison(
        name="open",
        keys="enter",
        title="open",
        help="See the traces of the mode, or open one at its evidence",
        hint=5,
    ),
    _comparison(
        name="pane", keys="tab h l", title="other pane", help="Go to the other pane", hint=10
    ),
    _comparison(
        name="seen",
        keys="o",
        title="judge was seen",
        help="Count also gold that was settled with a judge on screen",
    ),
)
