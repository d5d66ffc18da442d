"""What keys do on the study, and on the page of what was agreed about a mode."""

from __future__ import annotations

from functools import partial

from mast_tui.ui.actions.action import Where, action, moves

_study = partial(action, Where.STUDY)

STUDY = (
    *moves(Where.STUDY),
    _study(name="set_up", keys="e", title="set up", help="Set the study up, or change it", hint=10),
    _study(
        name="add",
        keys="a",
        title="take in traces",
        help="Take in what of the library is not in it yet",
        hint=20,
    ),
    _study(name="join", keys="n", title="join", help="Let somebody join as an annotator"),
    _study(
        name="release",
        keys="r",
        title="give back",
        help="Give what the annotator under the cursor has not finished to the others",
        command="give_back",
    ),
    _study(
        name="leave_study",
        keys="x",
        title="leave",
        help="Let the annotator under the cursor leave the study",
    ),
    _study(
        name="text_down",
        keys="d",
        title="text ↓",
        help="Scroll what was set up down",
        command="text(1)",
    ),
    _study(
        name="text_up",
        keys="b",
        title="text ↑",
        help="Scroll what was set up up",
        command="text(-1)",
    ),
)

_guidelines = partial(action, Where.GUIDELINES)

GUIDELINES = (
    *moves(Where.GUIDELINES),
    _guidelines(
        name="open",
        keys="enter",
        title="open case",
        help="Go to the decided case under the cursor",
        hint=10,
    ),
    _guidelines(
        name="entry", keys="tab", title="next entry", help="Next guideline or case", hint=20
    ),
    _guidelines(
        name="write",
        keys="m",
        title="write",
        help="Write down what was agreed about the mode",
        hint=30,
    ),
    _guidelines(
        name="edit",
        keys="e",
        title="edit",
        help="Put the guideline under the cursor otherwise",
        hint=40,
    ),
    _guidelines(
        name="take_back",
        keys="x",
        title="take back",
        help="Take the guideline under the cursor back",
        hint=50,
    ),
    _guidelines(
        name="next_mode",
        keys="} >",
        title="next mode",
        help="The page of the next mode",
        command="mode(1)",
        hint=60,
    ),
    _guidelines(
        name="previous_mode",
        keys="{ <",
        title="previous mode",
        help="The page of the previous mode",
        command="mode(-1)",
    ),
)
