"""What keys do where disagreements are settled."""

from __future__ import annotations

from functools import partial

from mast_tui.ui.actions.action import Where, action, moves, scrolls

_here = partial(action, Where.ADJUDICATE)

ADJUDICATE = (
    *moves(Where.ADJUDICATE),
    *(
        _here(
            f"side_{d}",
            str(d),
            "take a side",
            "Take that annotator's side",
            f"side({d})",
            hint=10 if d == 1 else 0,
        )
        for d in range(1, 10)
    ),
    _here("both", "b", "both", "Keep all that the sides marked", hint=20),
    _here(
        "nobody",
        "0",
        "absent",
        "The mode is absent, or no disputed place is taken; among the sides, that place",
        hint=30,
    ),
    _here("unsure", "_", "unsure", "Leave it as unsure", hint=35),
    _here(
        "boundary",
        "e",
        "boundary",
        "Move the boundary: move one end, press it again for the other end, then decide",
        hint=40,
    ),
    _here("other_mode", "l", "other mode", "It is another mode, at the same places", hint=45),
    _here(
        "enter",
        "enter",
        "evidence",
        "Go to the evidence, decide for the boundary, or take a side beyond the ninth",
        hint=52,
    ),
    _here("next_conflict", "] .", "next conflict", "Next conflict", "conflict(1)", hint=50),
    _here("previous_conflict", "[ ,", "previous conflict", "Previous conflict", "conflict(-1)"),
    _here("next_trace", "} >", "next trace", "Next trace with conflicts", "trace(1)"),
    _here("previous_trace", "{ <", "previous trace", "Previous trace with conflicts", "trace(-1)"),
    _here("agreed", "v", "agreed items", "Look through what was agreed", hint=55),
    _here(
        "overrule",
        "x",
        "overrule",
        "Overrule what was agreed: absent for present, else present in the whole trace",
    ),
    _here("confirm", "c", "confirm", "Confirm a decision after which a side has changed"),
    _here("reason", "m", "reason", "Say why it was decided so", hint=57),
    _here("names", "h", "names", "Hide the sides' names, or show them", hint=60),
    _here("judge", "J", "judge's word", "The judge's word, once it is decided"),
    _here("guidelines", "p", "page", "What was agreed about the mode, with cases", hint=58),
    *scrolls(Where.ADJUDICATE, "the evidence", up="s"),
    _here("pane", "tab", "other pane", "Go to the other pane"),
)
