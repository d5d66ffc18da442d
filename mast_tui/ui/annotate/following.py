"""Following the file of the open trace: what comes to it is shown, what becomes of it is said."""

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
    """What has become of the file, where ``asked`` says that a key asked for it.

    ``reason`` says why it is not what was opened. ``fresh`` is what it holds now where it was
    read anew, and ``moved`` tells that the spans known before are not the first of those.
    """

    trace: Trace
    asked: bool
    growth: Growth
    reason: str | None
    fresh: Trace | None
    moved: bool


class Following:
    """Looks now and then whether the file of the trace has grown, and when a key asks for it.

    What has come is read on where the reader can, else from the beginning, behind the screen. As
    long as the spans that were there stay what they are, nothing on screen moves. A file that
    is no longer the one that was opened is read anew only when a key asks for it.
    """

    def __init__(self, screen: AnnotateScreen) -> None:
        self._screen = screen
        self._state = screen.state
        self._timeline = screen.timeline
        self._looking: Trace | None = None
        self._began: float | None = None
        self._rests_until = 0.0
        self._asked = False
        """Whether a key waits to be told what has come."""
        self._known = 0
        """How many spans there were when that was looked for."""

    def look(self) -> None:
        """Look at the file if it is time to."""
        if self._screen.is_active and monotonic() >= self._rests_until:
            self._begin(asked=False)

    def ask(self) -> None:
        """Look at the file now, and read it anew where it is another one."""
        if self._state.trace is None:
            return
        self._timeline.stay_at_end()
        if self._looking is self._state.trace:
            self._asked = True
        elif not self._begin(asked=True):
            self._screen.hints.say("The file is still being read")

    def grown(self, *, done: bool) -> None:
        """More of the trace is known; ``done`` when that is all of it."""
        trace = self._state.trace
        if done:
            self._rest()
        if done and self._asked and self._looking is None and trace is not None:
            self._say(trace)

    def _rest(self) -> None:
        """Have the next look wait, the longer the more there was to do since the last began."""
        if self._began is not None:
            now = monotonic()
            self._rests_until = now + rest_after(now - self._began)

    def _begin(self, *, asked: bool) -> bool:
        """Whether a look at the file could begin: one thread alone may read a trace on."""
        trace = self._state.trace
        if trace is None or not self._timeline.pause_reading():
            return False
        self._looking, self._asked = trace, asked
        self._known, self._began = len(trace), monotonic()
        self._screen.in_background(partial(self._look, trace, asked=asked), "follow")
        return True

    def _look(self, trace: Trace, *, asked: bool) -> None:
        worker = get_current_worker()
        growth, reason, fresh, moved = Growth.NONE, None, None, False
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
            self._screen.call_later(self._take, news)

    def _take(self, news: FileNews) -> None:
        """Show what has come, or say what has become of the file."""
        trace, fresh = news.trace, news.fresh
        if trace is not self._state.trace:
            return
        self._looking = None
        self._rest()
        self._timeline.resume_reading()
        reason = news.reason
        if news.growth is Growth.ANEW and (fresh is None or news.moved):
            reason = "earlier steps are others now"
        if reason is not None:
            self._lost(news, reason)
        elif fresh is not None:
            trace.become(fresh)
            self._state.texts.forget()
            self._timeline.reread()
            self._screen.spans_added()
        elif news.growth is Growth.MORE:
            self._timeline.grown()
            self._screen.spans_added()
        else:
            self._began = None
            if self._asked:
                self._say(trace)

    def _lost(self, news: FileNews, reason: str) -> None:
        """The file is not the one that was opened, or not its beginning."""
        asked, self._asked = self._asked, False
        if not asked:
            self._state.texts.warn(news.trace, reason)
        elif not news.asked:
            self._begin(asked=True)
        elif news.fresh is None or not len(news.fresh):
            self._screen.hints.say(f"Nothing could be read anew: {one_line(reason)}", error=True)
        else:
            self._screen.show_anew(news.fresh)
            words = f"Read anew, as {one_line(reason)}: {len(news.fresh):,} spans"
            self._screen.hints.say(words)

    def _say(self, trace: Trace) -> None:
        """Answer the key that has asked."""
        self._asked = False
        more = len(trace) - self._known
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
