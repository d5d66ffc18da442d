"""The command line: the app, and the commands that work without it.

Only modules that the app needs for its first frame are imported here.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from mast_tui.cli.command_line import quick_app_arguments, split_command
from mast_tui.cli.start import (
    replace_closed_streams,
    replace_unencodable_characters,
    start,
)
from mast_tui.ui.crashes import excepthook


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and leave with its exit code: 0 done, 1 bad data, 2 wrong usage."""
    sys.excepthook = excepthook
    replace_closed_streams()
    replace_unencodable_characters()
    arguments = tuple(sys.argv[1:] if args is None else args)
    command_line = split_command(arguments)
    app_arguments = quick_app_arguments(arguments) if command_line.command is None else None
    completion = os.environ.get("_MAST_TUI_COMPLETE")  # set by a shell that completes a line
    if app_arguments is None or completion is not None:
        from mast_tui.cli.dispatch import complete, run  # start-up: the app needs no click

        sys.exit(run(command_line) if completion is None else complete(completion))
    # Imports before the first frame leave no garbage; the app enables collection after it.
    gc.disable()
    sys.exit(start(*app_arguments))
