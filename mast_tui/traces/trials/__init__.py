"""Folders with one run in several files: a module per benchmark, and one for agents' sessions.

To add a kind of trial, add its module, and its function to ``_KINDS``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from mast_tui.traces.model import TraceMeta
from mast_tui.traces.trials import harbor, itbench, session_folders, terminal_bench
from mast_tui.traces.trials.base import Trial

__all__ = ["Trial", "trial_facts", "trial_in"]

_FOLDERS_UP: Final = 4
"""The folders between a run's file and the folder of its trial, at most."""

_KINDS: Final[tuple[Callable[[Path, frozenset[str]], Trial | None], ...]] = (
    itbench.find,
    harbor.find,
    terminal_bench.find,
    session_folders.find_openhands,
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


def trial_facts(path: Path) -> TraceMeta | None:
    """Return the facts of the trial whose run is in a file; None if no trial has that file."""
    for folder in path.parents[:_FOLDERS_UP]:
        try:
            names = frozenset(member.name for member in folder.iterdir())
        except OSError:
            return None
        trial = trial_in(folder, names)
        if trial is not None:
            return trial.facts if any(path in group for group in trial.sources) else None
    return None
