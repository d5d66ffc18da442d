"""Waiting for the app to have done what it was asked, without sleeping."""

from __future__ import annotations

from contextlib import suppress
from typing import TypeVar

from textual.pilot import Pilot
from textual.worker import WorkerCancelled, WorkerFailed

from mast_tui.ui.app import MastApp

Result = TypeVar("Result")


async def settle(pilot: Pilot[Result]) -> None:
    """Wait until no worker runs, all messages are handled and what they asked for is shown.

    Workers post messages, messages start workers, and both have things written, so all of these
    are waited for until none is left. A worker that has failed ends the app, which reports it;
    here it only counts as over.
    """
    app = pilot.app
    await pilot.pause()
    while isinstance(app, MastApp) and app.opening and app.is_running:
        await pilot.pause(0)
    while True:
        running = [worker for worker in pilot.app.workers if not worker.is_finished]
        if not running and _has_written(app):
            break
        for worker in running:
            with suppress(WorkerCancelled, WorkerFailed):
                await worker.wait()
        await pilot.pause()
    await pilot.pause()


def _has_written(app: object) -> bool:
    return not isinstance(app, MastApp) or app.writes.idle or not app.is_running
