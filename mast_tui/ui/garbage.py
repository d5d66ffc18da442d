"""The collector of cyclic garbage rests while the app starts, when nearly nothing is garbage."""

from __future__ import annotations

import gc
from typing import Final

COLLECT_AFTER: Final = 1.0
"""Seconds after the first screen has opened."""

NEW_OBJECTS: Final = 20_000
"""How many objects come to life between two looks for garbage. Reading a trace makes many that are
no garbage, and a key would wait for each look."""


def collect_again() -> None:
    """End the rest that the command line began; what came to life in it is never looked at again.

    Modules and styles stay to the end, and going over them all would hold up a key press.
    """
    if not gc.isenabled():
        gc.freeze()
        gc.set_threshold(NEW_OBJECTS)
        gc.enable()
