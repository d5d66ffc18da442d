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
    """Leave changes to ``run_until_idle``, in the place of ``draw``. Draw other apps than the
    product at once: their tests wait in other ways too."""
    if screen is not screen.app.screen or not isinstance(screen.app, MastApp):
        draw(screen)
        return
    screen._dirty_widgets.clear()
    screen.app._update_mouse_over(screen)


async def settle(pilot: Pilot[Result]) -> None:
    """Wait until no worker runs, all messages are handled and their results are shown.

    Workers post messages, messages start workers, and both write to the workspace, so this waits
    until none of them is left. The screen is drawn once, when nothing is left to do; drawing may
    start work again. A failed worker ends the app, which reports it; here it counts as finished.
    """
    app = pilot.app
    await run_until_idle(app, draws=False)
    for _ in waiting.until(lambda: False):
        for _ in waiting.until(lambda: _is_idle(app)):
            for worker in _running_workers(app):
                with suppress(WorkerCancelled, WorkerFailed):
                    await worker.wait()
            await run_briefly(app)
        await run_until_idle(app)
        if _is_idle(app):
            return


async def run_until_idle(app: App[Result], *, draws: bool = True) -> None:
    """Let the app run until it can only wait: for a key, a clock, a thread or a file.

    ``Pilot.pause`` asks every widget for an answer and then sleeps until the process looks idle,
    which takes most of a test's time and means nothing on a busy machine. Here the event loop
    itself shows that nothing is left to run; then the screen is drawn.

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


async def run_briefly(app: App[Result]) -> None:
    """Let the app, its threads and its timers run for a moment, without drawing."""
    await run_until_idle(app, draws=False)
    await asyncio.sleep(POLL)
    await run_until_idle(app, draws=False)


async def wait_for_still_screen(pilot: Pilot[Result]) -> None:
    """Wait until the screen no longer changes."""
    previous: list[Strip] = []
    for _ in waiting.until(lambda: False):
        await settle(pilot)
        current = _rendered(pilot.app)
        if current == previous:
            return
        previous = current
        await pilot.pause()


def _rendered(app: App[Result]) -> list[Strip]:
    return app.screen._compositor.render_strips(app.screen.size)


def _is_idle(app: App[Result]) -> bool:
    return not _is_opening(app) and not _running_workers(app) and _has_written(app)


def _is_opening(app: object) -> bool:
    return isinstance(app, MastApp) and app.opening and app.is_running


def _running_workers(app: App[Result]) -> list[Worker[Any]]:
    return [worker for worker in app.workers if not worker.is_finished]


def _has_written(app: object) -> bool:
    return not isinstance(app, MastApp) or app.writes.idle or not app.is_running
