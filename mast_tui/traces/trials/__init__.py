"""Folders that hold one run of a benchmark in several files, one module per benchmark.

A kind of trial is added by its module and its line in ``_KINDS``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from mast_tui.traces.trials import events, harbor, itbench, session_folders, terminal_bench
from mast_tui.traces.trials.base import Trial

__all__ = ["Trial", "trial_in"]

_KINDS: Final[tuple[Callable[[Path, frozenset[str]], Trial | None], ...]] = (
    itbench.find,
    harbor.find,
    terminal_bench.find,
    events.find,
    session_folders.find_opencode,
    session_folders.find_strands,
)


def trial_in(folder: Path, names: frozenset[str]) -> Trial | None:
    """Return the trial in a folder; None for any other folder.

    Args:
        folder: The folder.
        names: The names of its members.
    """
    return next((trial for find in _KINDS if (trial := find(folder, names)) is not None), None)
