"""What keys do on every screen."""

from __future__ import annotations

from functools import partial

from mast_tui.ui.actions.action import Where, action

_everywhere = partial(action, Where.EVERYWHERE)

EVERYWHERE = (
    _everywhere(
        "library", "L", title="library", help="Open the library of traces", command="app.library"
    ),
    _everywhere(
        "adjudicate",
        "A",
        title="adjudicate",
        help="Settle where annotators differ",
        command="app.adjudicate",
    ),
    _everywhere(
        "agreement",
        "K",
        title="agreement",
        help="See the agreement per mode",
        command="app.agreement",
    ),
    _everywhere(
        "signatures",
        "S",
        title="signatures",
        help="See how and why runs fail",
        command="app.signatures",
    ),
    _everywhere(
        "runs", "R", title="judge runs", help="See what the judges have run on", command="app.runs"
    ),
    _everywhere(
        "study",
        "Y",
        title="study",
        help="Set a study up, or see how far it is",
        command="app.study",
    ),
    _everywhere(
        "open_codes",
        "+",
        title="open codes",
        help="Gather notes and 'none of these' of all traces, and make modes of them",
        command="app.open_codes",
    ),
    _everywhere("back", "escape", title="back", help="Leave what is open, or go back"),
    _everywhere(
        "close",
        "q",
        title="close",
        help="Close what is open, as Esc does; in the library ask whether to quit",
    ),
    _everywhere(
        "help",
        "? f1",
        title="help",
        help="All keys of this screen",
        command="app.keys_help",
        hint=90,
    ),
    _everywhere(
        "palette",
        ": ctrl+p",
        title="go to",
        help="Every action by name; or go to a number or a key",
        command="app.palette",
    ),
    _everywhere(
        "theme",
        "f9",
        title="theme",
        help="Choose a theme: each is shown as you look, and kept when taken",
        command="app.theme",
    ),
    _everywhere(
        "export",
        "V",
        title="export",
        help="Export labels to a file: gold, one person's or all, in any format",
        command="app.export",
    ),
    _everywhere("undo", "u", title="undo", help="Take back the last change on this trace"),
    _everywhere("redo", "U ctrl+r", title="redo", help="Do again what was taken back"),
    _everywhere(
        "leave",
        "Q",
        title="quit",
        help="Quit; everything is saved already",
        command="app.quit",
        hint=95,
    ),
    _everywhere(
        "quit",
        "ctrl+q",
        title="quit",
        help="Quit, also while typing",
        command="app.quit",
        priority=True,
    ),
    _everywhere(
        "suspend",
        "ctrl+z",
        title="suspend",
        help="Suspend, also while typing; fg in the shell comes back",
        command="app.suspend_process",
        priority=True,
    ),
)
