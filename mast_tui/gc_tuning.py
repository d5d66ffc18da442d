"""When the collector of cyclic garbage looks for some: seldom, and never while the app starts."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

COLLECT_AFTER: Final = 1.0
"""Seconds after the first screen has opened."""

NEW_OBJECTS: Final = 20_000
"""How many objects come to life between two looks for garbage. Reading a trace makes many that are
no garbage, and a key would wait for each look."""

IN_A_RUN: Final = (50_000, 20, 20)
"""The same during a judge's run, and after how many such looks older objects are gone over too."""


def collect_again() -> None:
    """End the rest that the command line began; what came to life in it is never looked at again.

    Modules and styles stay to the end, and going over them all would hold up a key press.
    """
    if not gc.isenabled():
        gc.freeze()
        gc.set_threshold(NEW_OBJECTS)
        gc.enable()


@contextmanager
def uncollected() -> Iterator[None]:
    """Without garbage collection, where it was on.

    A large study is many small objects and hardly a cycle; looking through all of them again and
    again while they are read takes a tenth of a command's time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Within, garbage is looked for less often: each trace makes many objects that are none."""
    before = gc.get_threshold()
    gc.set_threshold(*IN_A_RUN)
    try:
        yield
    finally:
        gc.set_threshold(*before)
