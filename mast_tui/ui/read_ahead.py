"""Reading the one file that was named while the app is still being set up."""

from __future__ import annotations

from threading import Thread

from mast_tui.traces.library import read_file
from mast_tui.traces.model import FileReport
from mast_tui.ui.options import AppOptions


class ReadAhead:
    """The report on a single file, read in a thread that keeps nobody from leaving.

    A small trace is there before the first frame, which then shows its spans; for a big or slow
    one nobody waits.
    """

    def __init__(self, options: AppOptions) -> None:
        self._report: FileReport | None = None
        self._thread: Thread | None = None
        if len(options.paths) == 1 and options.paths[0].is_file():
            path = options.paths[0]

            def read() -> None:
                self._report = read_file(path, named=True)

            self._thread = Thread(target=read, name="read-ahead", daemon=True)
            self._thread.start()

    @property
    def single(self) -> bool:
        """Whether it is a single file that was named."""
        return self._thread is not None

    def report(self, patience: float | None = None) -> FileReport | None:
        """The report, or None where it is not there after ``patience`` seconds (None: any)."""
        if self._thread is not None:
            self._thread.join(patience)
        return self._report
