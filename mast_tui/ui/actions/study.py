"""What keys do on the study, and on the page of what was agreed about a mode."""

from __future__ import annotations

from functools import partial

from mast_tui.ui.actions.action import Where, action, moves, scrolls

_study = partial(action, Where.STUDY)

STUDY = (
    *moves(Where.STUDY),
    _study("set_up", "e", "set up", "Set the study up, or change it", hint=10),
    _study("add", "a", "take in traces", "Take in what of the library is not in it yet", hint=20),
    _study("join", "n", "join", "Let somebody join as an annotator"),
    _study(
        "release",
        "r",
        "give back",
        "Give what the annotator under the cursor has not finished to the others",
        "give_back",
    ),
    _study("leave_study", "x", "leave", "Let the annotator under the cursor leave the study"),
    *scrolls(Where.STUDY, "what was set up"),
)

_guidelines = partial(action, Where.GUIDELINES)

GUIDELINES = (
    *moves(Where.GUIDELINES),
    _guidelines("open", "enter", "open case", "Go to the decided case under the cursor", hint=10),
    _guidelines("entry", "tab", "next entry", "Next guideline or case", hint=20),
    _guidelines("write", "m", "write", "Write down what was agreed about the mode", hint=30),
    _guidelines("edit", "e", "edit", "Put the guideline under the cursor otherwise", hint=40),
    _guidelines("take_back", "x", "take back", "Take the guideline under the cursor back", hint=50),
    _guidelines("next_mode", "} >", "next mode", "The page of the next mode", "mode(1)", hint=60),
    _guidelines(
        "previous_mode", "{ <", "previous mode", "The page of the previous mode", "mode(-1)"
    ),
)
