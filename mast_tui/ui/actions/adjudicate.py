"""What keys do where disagreements are settled."""

from __future__ import annotations

from functools import partial

from mast_tui.ui.actions.action import Where, action, moves

_adjudicate = partial(action, Where.ADJUDICATE)

ADJUDICATE = (
    *moves(Where.ADJUDICATE),
    *(
        _adjudicate(
            name=f"side_{d}",
            keys=str(d),
            title="take a side",
            help="Take that annotator's side",
            command=f"side({d})",
            hint=10 if d == 1 else 0,
        )
        for d in range(1, 10)
    ),
    _adjudicate(name="both", keys="b", title="both", help="Keep what both sides marked", hint=20),
    _adjudicate(
        name="nobody", keys="0", title="absent", help="Nobody is right: the mode is absent", hint=30
    ),
    _adjudicate(name="unsure", keys="_", title="unsure", help="Leave it as unsure", hint=35),
    _adjudicate(
        name="boundary",
        keys="e",
        title="boundary",
        help="Move the boundary: move its end, e the other end, Enter decides",
        hint=40,
    ),
    _adjudicate(
        name="other_mode",
        keys="l",
        title="other mode",
        help="It is another mode, at the same place",
        hint=45,
    ),
    _adjudicate(
        name="enter",
        keys="enter",
        title="evidence",
        help="Go to the evidence, or decide for the boundary",
        hint=52,
    ),
    _adjudicate(
        name="next_conflict",
        keys="] .",
        title="next conflict",
        help="Next conflict",
        command="conflict(1)",
        hint=50,
    ),
    _adjudicate(
        name="previous_conflict",
        keys="[ ,",
        title="previous conflict",
        help="Previous conflict",
        command="conflict(-1)",
    ),
    _adjudicate(
        name="next_trace",
        keys="} >",
        title="next trace",
        help="Next trace with conflicts",
        command="trace(1)",
    ),
    _adjudicate(
        name="previous_trace",
        keys="{ <",
        title="previous trace",
        help="Previous trace with conflicts",
        command="trace(-1)",
    ),
    _adjudicate(
        name="agreed", keys="v", title="agreed items", help="Look through what was agreed", hint=55
    ),
    _adjudicate(
        name="overrule",
        keys="x",
        title="overrule",
        help="Overrule what was agreed: absent for present, else present in the whole trace",
    ),
    _adjudicate(
        name="confirm",
        keys="c",
        title="confirm",
        help="Confirm a decision after which a side has changed",
    ),
    _adjudicate(name="reason", keys="m", title="reason", help="Say why it was decided so", hint=57),
    _adjudicate(
        name="names", keys="h", title="names", help="Hide the sides' names, or show them", hint=60
    ),
    _adjudicate(
        name="judge", keys="J", title="judge's word", help="The judge's word, once it is decided"
    ),
    _adjudicate(
        name="guidelines",
        keys="p",
        title="page",
        help="What was agreed about the mode, with cases",
        hint=58,
    ),
    _adjudicate(
        name="text_down",
        keys="d",
        title="text ↓",
        help="Scroll the evidence down",
        command="text(1)",
    ),
    _adjudicate(
        name="text_up", keys="s", title="text ↑", help="Scroll the evidence up", command="text(-1)"
    ),
    _adjudicate(name="pane", keys="tab", title="other pane", help="Go to the other pane"),
)
