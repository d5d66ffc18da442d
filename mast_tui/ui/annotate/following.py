"""Following the file of the open trace: its new spans are shown, other changes reported."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from textual.worker import Worker, get_current_worker

from mast_tui.safe_text import one_line
from mast_tui.traces.library import read_anew, rest_after
from mast_tui.traces.model import Growth, Trace
from mast_tui.ui.trace_view.background_index import READ_BYTES
from mast_tui.ui.wording import counted

if TYPE_CHECKING:
    from mast_tui.ui.annotate.screen import AnnotateScreen


@dataclass(frozen=True, slots=True)
class FileNews:
    """The result of checking the file; ``asked`` if a key asked for it.

    ``reason`` says how the file differs from the one that was opened. ``fresh`` is the trace if it
    was read again, and ``moved`` is true if its first spans are not those of the open trace.
    """

    trace: Trace
    asked: bool
    growth: Growth
    reason: str | None
    fresh: Trace | None
    moved: bool


class Following:
    """Regular checks of the trace's file, and one whenever a key asks for it.

    New spans are read in the background, from the end of the known part if the reader can, else
    from the beginning. As long as the known spans stay the same, nothing on screen moves. A file
    that was replaced is read again only when a key asks for it.
    """

    def __init__(self, screen: AnnotateScreen) -> None:
        self._screen = screen
        self._state = screen.state
        self._timeline = screen.timeline
        self._checked_trace: Trace | None = None
        self._check_began: float | None = None
        self._next_check = 0.0
        self._answer_due = False
        """Whether a key waits for the result."""
        self._known_spans = 0
        """The number of spans when the check began."""

    def check(self) -> None:
        """Check the file if it is time to."""
        if self._screen.is_active and monotonic() >= self._next_check:
            self._begin_check(asked=False)

    def check_now(self) -> None:
        """Check the file now, and read it again if it was replaced."""
        if self._state.trace is None:
            return
        self._timeline.stay_at_end()
        if self._checked_trace is self._state.trace:
            self._answer_due = True
        elif not self._begin_check(asked=True):
            self._screen.hints.say("The file is still being read")

    def grown(self, *, done: bool) -> None:
        """Take note that more of the trace was read; ``done`` if that is all of it."""
        trace = self._state.trace
        if done:
            self._schedule_next()
        if done and self._answer_due and self._checked_trace is None and trace is not None:
            self._answer(trace)

    def _schedule_next(self) -> None:
        """Delay the next check, the longer the more work the last one made."""
        if self._check_began is not None:
            now = monotonic()
            self._next_check = now + rest_after(now - self._check_began)

    def _begin_check(self, *, asked: bool) -> bool:
        """Begin a check; return False while another thread reads the trace."""
        trace = self._state.trace
        if trace is None or not self._timeline.pause_reading():
            return False
        self._checked_trace = trace
        self._answer_due = asked
        self._known_spans = len(trace)
        self._check_began = monotonic()
        self._screen.in_background(partial(self._check_in_background, trace, asked=asked), "follow")
        return True

    def _check_in_background(self, trace: Trace, *, asked: bool) -> None:
        """Read what the file has gained, or all of it if it was replaced, and report the result."""
        worker = get_current_worker()
        growth = Growth.NONE
        reason = None
        fresh = None
        moved = False
        try:
            growth = trace.follow()
        except OSError as error:
            reason = error.strerror or str(error)
        if growth is Growth.ANEW or (asked and reason is not None):
            fresh = _read(trace, worker)
            moved = fresh is not None and _moved(trace, fresh)
        if not worker.is_cancelled:
            news = FileNews(
                trace=trace, asked=asked, growth=growth, reason=reason, fresh=fresh, moved=moved
            )
            self._screen.call_later(self._show_news, news)

    def _show_news(self, news: FileNews) -> None:
        """Show new spans, or report what has happened to the file."""
        trace = news.trace
        fresh = news.fresh
        if trace is not self._state.trace:
            return
        self._checked_trace = None
        self._schedule_next()
        self._timeline.resume_reading()
        reason = news.reason
        if news.growth is Growth.ANEW and (fresh is None or news.moved):
            reason = "earlier steps have changed"
        if reason is not None:
            self._report_change(news, reason)
        elif fresh is not None:
            trace.become(fresh)
            self._state.texts.forget()
            self._timeline.reread()
            self._screen.spans_added()
        elif news.growth is Growth.MORE:
            self._timeline.grown()
            self._screen.spans_added()
        else:
            self._check_began = None
            if self._answer_due:
                self._answer(trace)

    def _report_change(self, news: FileNews, reason: str) -> None:
        """Report that the file was replaced; if a key asked, show its new content."""
        asked = self._answer_due
        self._answer_due = False
        if not asked:
            self._state.texts.warn(news.trace, reason)
        elif not news.asked:
            self._begin_check(asked=True)
        elif news.fresh is None or not len(news.fresh):
            self._screen.hints.say(
                f"The file could not be read again: {one_line(reason)}", error=True
            )
        else:
            self._screen.show_reread_trace(news.fresh)
            message = f"Read again, because {one_line(reason)}: {len(news.fresh):,} spans"
            self._screen.hints.say(message)

    def _answer(self, trace: Trace) -> None:
        """Answer the key that asked."""
        self._answer_due = False
        more = len(trace) - self._known_spans
        if more:
            self._screen.hints.say(counted(more, "more span"))
        else:
            self._screen.hints.say(f"The file has not grown: {len(trace):,} spans")


def _read(trace: Trace, worker: Worker[object]) -> Trace | None:
    """Read the trace as its file is now to its end, unless the worker is cancelled."""
    fresh = read_anew(trace)
    while fresh is not None and not worker.is_cancelled and fresh.advance(READ_BYTES):
        pass
    return fresh


def _moved(trace: Trace, fresh: Trace) -> bool:
    """Check if the spans of a trace are not the first ones of a fresh reading, by their keys."""
    if len(fresh) < len(trace):
        return True
    return any(trace.span(i).key != fresh.span(i).key for i in range(len(trace)))
