"""The entry point of the command line.

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
    """Run the command line, and exit with 0 for success, 1 for bad data or 2 for wrong usage."""
    sys.excepthook = excepthook
    replace_closed_streams()
    replace_unencodable_characters()
    arguments = tuple(sys.argv[1:] if args is None else args)
    command_line = split_command(arguments)
    app_arguments = quick_app_arguments(arguments) if command_line.command is None else None
    completion = os.environ.get("_MAST_TUI_COMPLETE")  # the shell requests a completion
    if app_arguments is None or completion is not None:
        # Not at the top, because it imports Click, which the app does not need.
        from mast_tui.cli.dispatch import complete, run

        sys.exit(run(command_line) if completion is None else complete(completion))
    # Imports leave no garbage. The app enables collection after its first frame.
    gc.disable()
    sys.exit(start(*app_arguments))
