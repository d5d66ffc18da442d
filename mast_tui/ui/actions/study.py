"""The rows of the registry for the study screen."""

from __future__ import annotations

from mast_tui.ui.actions.action import MOVE, Where, rows

STUDY = rows(
    Where.STUDY,
    *MOVE,
    ("set_up", "e", "set up", "Set the study up, or change it", "set_up", 10),
    ("add", "a", "take in traces", "Take in what of the library is not in it yet", "add", 20),
    ("text_down", "d", "text ↓", "Scroll what was set up down", "text(1)", 0),
    ("text_up", "b", "text ↑", "Scroll what was set up up", "text(-1)", 0),
)
