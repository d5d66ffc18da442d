"""Waiting until the app is idle, without sleeping."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final, TypeVar

from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen
from textual.strip import Strip
from textual.worker import Worker, WorkerCancelled, WorkerFailed

from mast_tui.ui.app import MastApp
from tests import waiting

Result = TypeVar("Result")

POLL: Final = 0.002
"""Seconds between two checks of threads and timers."""

draw: Final = Screen._compositor_refresh
"""Draws what has changed on a screen."""


def draw_at_rest(screen: Screen[object]) -> None:
    """Leave what has changed to ``rest``, in the place of ``draw``; but in an app of a test's own,
    which is waited for in other ways too."""
    if screen is not screen.app.screen or not isinstance(screen.app, MastApp):
        draw(screen)
        return
    screen._dirty_widgets.clear()
    screen.app._update_mouse_over(screen)


async def settle(pilot: Pilot[Result]) -> None:
    """Wait until no worker runs, all messages are handled and what they asked for is shown.

    Workers post messages, messages start workers, and both have things written, so all of these
    are waited for until none is left. The screen is drawn once, when nothing is left to do;
    drawing may start work again. A worker that has failed ends the app, which reports it; here it
    only counts as over.
    """
    app = pilot.app
    await rest(app, draws=False)
    for _ in waiting.until(lambda: False):
        for _ in waiting.until(lambda: _is_idle(app)):
            for worker in _at_work(app):
                with suppress(WorkerCancelled, WorkerFailed):
                    await worker.wait()
            await a_moment(app)
        await rest(app)
        if _is_idle(app):
            return


async def rest(app: App[Result], *, draws: bool = True) -> None:
    """Let the app go on until it can only wait: for a key, a clock, a thread or a file.

    ``Pilot.pause`` asks every widget for an answer and then sleeps until the process looks idle,
    which takes most of a test's time and says nothing on a busy machine. Here the event loop
    itself says that nothing is left to run; then the screen is drawn.

    Args:
        app: The running app.
        draws: Whether the screen is drawn.
    """
    ready = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]
    for _ in waiting.until(lambda: False):
        await asyncio.sleep(0)
        if ready:
            continue
        if app.screen_stack:
            app.screen._on_timer_update()
            if draws and not ready and app.screen._compositor._dirty_regions:
                draw(app.screen)
        if not ready:
            return


async def a_moment(app: App[Result]) -> None:
    """Let the app, its threads and its timers run for a moment, without drawing."""
    await rest(app, draws=False)
    await asyncio.sleep(POLL)
    await rest(app, draws=False)


async def still(pilot: Pilot[Result]) -> None:
    """Wait until the screen no longer changes."""
    before: list[Strip] = []
    for _ in waiting.until(lambda: False):
        await settle(pilot)
        now = _drawn(pilot.app)
        if now == before:
            return
        before = now
        await pilot.pause()


def _drawn(app: App[Result]) -> list[Strip]:
    return app.screen._compositor.render_strips(app.screen.size)


def _is_idle(app: App[Result]) -> bool:
    return not _opens(app) and not _at_work(app) and _has_written(app)


def _opens(app: object) -> bool:
    return isinstance(app, MastApp) and app.opening and app.is_running


def _at_work(app: App[Result]) -> list[Worker[Any]]:
    return [worker for worker in app.workers if not worker.is_finished]


def _has_written(app: object) -> bool:
    return not isinstance(app, MastApp) or app.writes.idle or not app.is_running
