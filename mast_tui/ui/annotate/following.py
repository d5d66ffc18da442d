"""Following the file of the open trace: showing its new spans, and reporting other changes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from msgspec import Struct

from mast_tui.safe_text import one_line
from mast_tui.traces.library import read_anew, rest_after
from mast_tui.traces.model import Growth, Trace
from mast_tui.ui.annotate.part import ScreenPart
from mast_tui.ui.base_screen import Stopped
from mast_tui.ui.trace_view.background_index import READ_BYTES
from mast_tui.ui.wording import counted

if TYPE_CHECKING:
    from mast_tui.ui.annotate.screen import AnnotateScreen


class FileNews(Struct, frozen=True):
    """The result of checking the file.

    Attributes:
        trace: The open trace.
        requested: True if a key has requested the check.
        growth: The growth of the file.
        reason: The difference from the opened file; None if the file has only grown.
        new_trace: The trace as read again, or None.
        spans_differ: True if the new trace does not begin with the spans of the open trace.
    """

    trace: Trace
    requested: bool
    growth: Growth
    reason: str | None
    new_trace: Trace | None
    spans_differ: bool


class Following(ScreenPart):
    """Regular checks of the trace's file, and checks requested by a key.

    New spans are read in the background: after the known part if possible, else from the beginning
    of the file. Unless known spans change, nothing on screen moves. A replaced file is read again
    only if a key requests it.
    """

    def __init__(self, screen: AnnotateScreen) -> None:
        """Begin without a check."""
        super().__init__(screen)
        self._checked_trace: Trace | None = None
        """The trace with the file that is being checked, or None."""
        self._check_start: float | None = None
        """The start time of the last check; None after a check without news."""
        self._next_check = 0.0
        """The earliest time of the next check."""
        self._user_waits = False
        """True if the user has pressed a key that asks for the result."""
        self._known_span_count = 0
        """The number of spans when the check began."""

    def check(self) -> None:
        """Check the file if the next check is due."""
        if self._screen.is_active and monotonic() >= self._next_check:
            self._begin_check(requested=False)

    def check_now(self) -> None:
        """Check the file now. If it was replaced, show its new content.

        If a check is running, its result is shown. While the file is being read, show a hint. A
        cursor on the last span stays at the end.
        """
        if self._state.trace is None:
            return
        self._timeline.stay_at_end()
        if self._checked_trace is self._state.trace:
            self._user_waits = True
        elif not self._begin_check(requested=True):
            self._screen.hints.say("The file is still being read")

    def note_progress(self, *, done: bool) -> None:
        """Once the whole trace has been read, schedule the next check and answer a waiting user."""
        if not done:
            return
        trace = self._state.trace
        self._schedule_next()
        # A running check answers the user itself.
        if self._user_waits and self._checked_trace is None and trace is not None:
            self._report_growth(trace)

    def _schedule_next(self) -> None:
        """Delay the next check, in proportion to the duration of the last one."""
        if self._check_start is not None:
            now = monotonic()
            self._next_check = now + rest_after(now - self._check_start)

    def _begin_check(self, *, requested: bool) -> bool:
        """Begin to check in the background whether the trace has grown.

        Return False if no trace is open, or another thread reads it.
        """
        trace = self._state.trace
        if trace is None or not self._timeline.pause_reading():
            return False
        self._checked_trace = trace
        self._user_waits = requested
        self._known_span_count = len(trace)
        self._check_start = monotonic()
        self._screen.work.run_stages(
            "follow", partial(_file_news, trace, requested), self._show_news
        )
        return True

    def _show_news(self, news: FileNews) -> None:
        """Show new spans, or report a replaced file, and answer a waiting user."""
        trace = news.trace
        new_trace = news.new_trace
        if trace is not self._state.trace:
            return
        self._checked_trace = None
        self._schedule_next()
        self._timeline.resume_reading()
        reason = news.reason
        if news.growth is Growth.ANEW and (new_trace is None or news.spans_differ):
            reason = "earlier steps have changed"
        if reason is not None:
            self._report_replaced(news, reason)
        elif new_trace is not None:
            # The earlier spans are equal, so the new trace only adds spans.
            trace.become(new_trace)
            self._state.texts.discard_text()
            self._timeline.reread()
            self._screen.spans_added()
        elif news.growth is Growth.MORE:
            self._timeline.show_new_spans()
            self._screen.spans_added()
        else:
            self._check_start = None
            if self._user_waits:
                self._report_growth(trace)

    def _report_replaced(self, news: FileNews, reason: str) -> None:
        """Show the new content of a replaced file if the user waits for it; else warn.

        An automatic check has not read the new content. If the user waits, another check begins.
        """
        user_waits = self._user_waits
        self._user_waits = False
        if not user_waits:
            self._state.texts.warn(news.trace, reason)
        elif not news.requested:
            self.check_now()
        elif news.new_trace is None or not len(news.new_trace):
            self._screen.hints.say(
                f"The file could not be read again: {one_line(reason)}", error=True
            )
        else:
            self._screen.show_reread_trace(news.new_trace)
            message = (
                f"Read again, because {one_line(reason)}: {counted(len(news.new_trace), 'span')}"
            )
            self._screen.hints.say(message)

    def _report_growth(self, trace: Trace) -> None:
        """Show the number of new spans to the waiting user."""
        self._user_waits = False
        new_span_count = len(trace) - self._known_span_count
        if new_span_count:
            self._screen.hints.say(counted(new_span_count, "more span"))
        else:
            self._screen.hints.say(f"The file has not grown: {counted(len(trace), 'span')}")


def _file_news(trace: Trace, requested: bool, stopped: Stopped) -> Iterator[FileNews]:
    """Read the new spans of the file, and yield the result.

    If the reader cannot continue, the whole file is read again. A replaced file (``OSError``) is
    read again only if a key has requested the check.
    """
    growth = Growth.NONE
    reason = None
    new_trace = None
    try:
        growth = trace.follow()
    except OSError as error:
        reason = error.strerror or str(error)
    if growth is Growth.ANEW or (requested and reason is not None):
        new_trace = _read_again(trace, stopped)
    yield FileNews(
        trace=trace,
        requested=requested,
        growth=growth,
        reason=reason,
        new_trace=new_trace,
        spans_differ=new_trace is not None and _have_spans_changed(trace, new_trace),
    )


def _read_again(trace: Trace, stopped: Stopped) -> Trace | None:
    """Read the whole file of a trace again, and return the new trace.

    Return None if the trace is no longer in the file. If ``stopped`` returns True, the new trace is
    incomplete.
    """
    new_trace = read_anew(trace)
    if new_trace is not None:
        new_trace = new_trace.with_masks(trace.masks)
    while new_trace is not None and not stopped() and new_trace.advance(READ_BYTES):
        pass
    return new_trace


def _have_spans_changed(trace: Trace, new_trace: Trace) -> bool:
    """Check if the new trace does not begin with the spans of the trace, compared by key."""
    if len(new_trace) < len(trace):
        return True
    return any(trace.span(i).key != new_trace.span(i).key for i in range(len(trace)))
