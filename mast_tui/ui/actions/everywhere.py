"""What keys do on every screen."""

from __future__ import annotations

from functools import partial

from mast_tui.ui.actions.action import Where, action

_here = partial(action, Where.EVERYWHERE)

EVERYWHERE = (
    _here("library", "L", "library", "Open the library of traces", "app.show('library')"),
    _here(
        "adjudicate", "A", "adjudicate", "Settle where annotators differ", "app.show('adjudicate')"
    ),
    _here("agreement", "K", "agreement", "See the agreement per mode", "app.show('agreement')"),
    _here("signatures", "S", "signatures", "See how and why runs fail", "app.show('signatures')"),
    _here("runs", "R", "judge runs", "See what the judges have run on", "app.show('runs')"),
    _here("study", "Y", "study", "Set a study up, or see how far it is", "app.show('study')"),
    _here(
        "open_codes",
        "+",
        "open codes",
        "Gather notes and 'none of these' of all traces, and make modes of them",
        "app.show('open_codes')",
    ),
    _here("back", "escape", "back", "Leave what is open, or go back"),
    _here("close", "q", "close", "Close what is open; in the library ask whether to quit"),
    _here("help", "? f1", "help", "All keys of this screen", "app.keys_help", hint=90),
    _here(
        "palette",
        ": ctrl+p",
        "go to",
        "Every action by name; or go to a number or a key",
        "app.palette",
    ),
    _here(
        "theme",
        "f9",
        "theme",
        "Choose a theme: each is shown as you look, and kept when taken",
        "app.theme",
    ),
    _here(
        "export",
        "V",
        "export",
        "Export labels to a file: gold, one person's or all, in any format",
        "app.export",
    ),
    _here("undo", "u", "undo", "Take back the last change on this trace"),
    _here("redo", "U ctrl+r", "redo", "Do again what was taken back"),
    _here("leave", "Q", "quit", "Quit; everything is saved already", "app.quit", hint=95),
    _here("quit", "ctrl+q", "quit", "Quit, also while typing", "app.quit", priority=True),
    _here(
        "suspend",
        "ctrl+z",
        "suspend",
        "Suspend, also while typing; fg in the shell comes back",
        "app.suspend_process",
        priority=True,
    ),
)
