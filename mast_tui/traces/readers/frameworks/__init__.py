"""Readers for the raw logs of multi-agent frameworks, one file each.

``FRAMEWORKS`` read logs that are files. ``framework_of`` finds the reader of a log that is inside
another record.
"""

from __future__ import annotations

from typing import Final

from mast_tui.traces.readers.frameworks import (
    ag2,
    appworld,
    chatdev,
    hyperagent,
    magentic_one,
    metagpt,
    openmanus,
)
from mast_tui.traces.readers.frameworks.base import Framework, Transcript

FRAMEWORKS: Final[tuple[Framework, ...]] = (
    chatdev.READER,
    metagpt.READER,
    hyperagent.READER,
    ag2.READER,
    appworld.READER,
    magentic_one.READER,
    openmanus.READER,
)


def framework_of(transcript: Transcript) -> Framework | None:
    """Return the framework that wrote a log; None for an unknown one."""
    return next(
        (framework for framework in FRAMEWORKS if framework.recognises_transcript(transcript)), None
    )
