"""Waiting for the app to have done what it was asked, without sleeping."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, TypeVar

from textual.app import App
from textual.pilot import Pilot
from textual.worker import Worker, WorkerCancelled, WorkerFailed

from mast_tui.ui.app import MastApp
from tests import waiting

Result = TypeVar("Result")


async def settle(pilot: Pilot[Result]) -> None:
    """Wait until no worker runs, all messages are handled and what they asked for is shown.

    Workers post messages, messages start workers, and both have things written, so all of these
    are waited for until none is left. A worker that has failed ends the app, which reports it;
    here it only counts as over.
    """
    app = pilot.app
    await pilot.pause()
    for _ in waiting.until(lambda: not _opens(app)):
        await pilot.pause(0)
    for _ in waiting.until(lambda: not _at_work(app) and _has_written(app)):
        for worker in _at_work(app):
            with suppress(WorkerCancelled, WorkerFailed):
                await worker.wait()
        await pilot.pause()
    await pilot.pause()


def _opens(app: object) -> bool:
    return isinstance(app, MastApp) and app.opening and app.is_running


def _at_work(app: App[Result]) -> list[Worker[Any]]:
    return [worker for worker in app.workers if not worker.is_finished]


def _has_written(app: object) -> bool:
    return not isinstance(app, MastApp) or app.writes.idle or not app.is_running
