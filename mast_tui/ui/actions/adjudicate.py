"""What keys do where disagreements are settled."""

from __future__ import annotations

from functools import partial

from mast_tui.ui.actions.action import Where, action, moves, scrolls

_adjudicate = partial(action, Where.ADJUDICATE)

ADJUDICATE = (
    *moves(Where.ADJUDICATE),
    *(
        _adjudicate(
            f"side_{d}",
            str(d),
            title="take a side",
            help="Take that annotator's side",
            command=f"side({d})",
            hint=10 if d == 1 else 0,
        )
        for d in range(1, 10)
    ),
    _adjudicate("both", "b", title="both", help="Keep what both sides marked", hint=20),
    _adjudicate("nobody", "0", title="absent", help="Nobody is right: the mode is absent", hint=30),
    _adjudicate("unsure", "_", title="unsure", help="Leave it as unsure", hint=35),
    _adjudicate(
        "boundary",
        "e",
        title="boundary",
        help="Move the boundary: move its end, e the other end, Enter decides",
        hint=40,
    ),
    _adjudicate(
        "other_mode", "l", title="other mode", help="It is another mode, at the same place", hint=45
    ),
    _adjudicate(
        "enter",
        "enter",
        title="evidence",
        help="Go to the evidence, or decide for the boundary",
        hint=52,
    ),
    _adjudicate(
        "next_conflict",
        "] .",
        title="next conflict",
        help="Next conflict",
        command="conflict(1)",
        hint=50,
    ),
    _adjudicate(
        "previous_conflict",
        "[ ,",
        title="previous conflict",
        help="Previous conflict",
        command="conflict(-1)",
    ),
    _adjudicate(
        "next_trace",
        "} >",
        title="next trace",
        help="Next trace with conflicts",
        command="trace(1)",
    ),
    _adjudicate(
        "previous_trace",
        "{ <",
        title="previous trace",
        help="Previous trace with conflicts",
        command="trace(-1)",
    ),
    _adjudicate("agreed", "v", title="agreed items", help="Look through what was agreed", hint=55),
    _adjudicate(
        "overrule",
        "x",
        title="overrule",
        help="Overrule what was agreed: absent for present, else present in the whole trace",
    ),
    _adjudicate(
        "confirm", "c", title="confirm", help="Confirm a decision after which a side has changed"
    ),
    _adjudicate("reason", "m", title="reason", help="Say why it was decided so", hint=57),
    _adjudicate("names", "h", title="names", help="Hide the sides' names, or show them", hint=60),
    _adjudicate("judge", "J", title="judge's word", help="The judge's word, once it is decided"),
    _adjudicate(
        "guidelines", "p", title="page", help="What was agreed about the mode, with cases", hint=58
    ),
    *scrolls(Where.ADJUDICATE, "the evidence", up="s"),
    _adjudicate("pane", "tab", title="other pane", help="Go to the other pane"),
)
