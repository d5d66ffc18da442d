"""What a reader of one format offers."""

from __future__ import annotations

from typing import Protocol

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport


class Reader(Protocol):
    """Recognises one format by content and reads it.

    ``key_scheme`` numbers the way span keys are made; labels depend on it, so it changes only
    together with a migration.
    """

    @property
    def name(self) -> str: ...
    @property
    def key_scheme(self) -> int: ...
    def recognises(self, source: Source) -> bool:
        """Whether the file is of this format, by its content."""

    def read(self, source: Source) -> FileReport:
        """The file's traces and problems; broken parts are reported, never raised."""
