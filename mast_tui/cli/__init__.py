"""The command line: the app, and the commands that work without it.

Nothing is imported here that the app does not need for its first frame.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from mast_tui.cli.command_line import app_words, split_words
from mast_tui.cli.shared.terminal import (
    replace_closed_streams,
    replace_unencodable_characters,
)
from mast_tui.cli.start import start
from mast_tui.ui.crashes import excepthook


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and leave with its exit code: 0 done, 1 bad data, 2 wrong usage."""
    sys.excepthook = excepthook
    replace_closed_streams()
    replace_unencodable_characters()
    asked_to_complete = os.environ.get("_MAST_TUI_COMPLETE")
    given = tuple(sys.argv[1:] if args is None else args)
    words = split_words(given)
    plain = app_words(given) if words.command is None else None
    if plain is None or asked_to_complete is not None:
        from mast_tui.cli.dispatch import complete, run  # start-up: the app needs no click

        sys.exit(run(words) if asked_to_complete is None else complete(asked_to_complete))
    # What is imported on the way to the first frame is no garbage; the app collects again after it.
    gc.disable()
    sys.exit(start(*plain))
