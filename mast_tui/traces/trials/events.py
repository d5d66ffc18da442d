"""OpenHands: a conversation as one file per event in a folder."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Final

from mast_tui.traces.model import FileReport
from mast_tui.traces.readers.openhands import reader as openhands
from mast_tui.traces.trials.base import Trial

_EVENT_FILE: Final = re.compile(r"(?:event-)?\d{1,12}(?:-[^/]*)?\.json")


def find(folder: Path, names: frozenset[str]) -> Trial | None:
    """Return the conversation in a folder of files such as ``event-00001-….json`` or ``1.json``.

    Args:
        folder: The folder.
        names: The names of its members.
    """
    if not any(map(_EVENT_FILE.fullmatch, names)):
        return None
    files = openhands.event_files(folder)
    if not files:
        return None
    return Trial(
        "OpenHands conversation",
        folder,
        (),
        fact_files=tuple(files),
        read=partial(_read_events, folder),
    )


def _read_events(folder: Path) -> FileReport:
    report = openhands.read_event_folder(folder)
    return report or FileReport(folder, failed="its event files cannot be read any more")
