"""What keys do on every screen."""

from __future__ import annotations

from functools import partial

from mast_tui.ui.actions.action import Where, action

_everywhere = partial(action, Where.EVERYWHERE)

EVERYWHERE = (
    _everywhere("library", "L", "library", "Open the library of traces", command="app.library"),
    _everywhere(
        "adjudicate", "A", "adjudicate", "Settle where annotators differ", command="app.adjudicate"
    ),
    _everywhere(
        "agreement", "K", "agreement", "See the agreement per mode", command="app.agreement"
    ),
    _everywhere(
        "signatures", "S", "signatures", "See how and why runs fail", command="app.signatures"
    ),
    _everywhere("runs", "R", "judge runs", "See what the judges have run on", command="app.runs"),
    _everywhere("study", "Y", "study", "Set a study up, or see how far it is", command="app.study"),
    _everywhere("back", "escape", "back", "Leave what is open, or go back"),
    _everywhere(
        "help", "? f1", "help", "All keys of this screen", command="app.keys_help", hint=90
    ),
    _everywhere(
        "palette",
        ": ctrl+p",
        "go to",
        "Every action by name; or go to a number or a key",
        command="app.palette",
    ),
    _everywhere("undo", "u", "undo", "Take back the last change on this trace"),
    _everywhere("redo", "U ctrl+r", "redo", "Do again what was taken back"),
    _everywhere(
        "leave", "Q", "quit", "Quit; everything is saved already", command="app.quit", hint=95
    ),
    _everywhere(
        "quit", "ctrl+q", "quit", "Quit, also while typing", command="app.quit", priority=True
    ),
    _everywhere(
        "suspend",
        "ctrl+z",
        "suspend",
        "Suspend, also while typing; fg in the shell comes back",
        command="app.suspend_process",
        priority=True,
    ),
)
