"""Make the pictures of README and docs: screens of the running app, and figures of a report.

    .venv/bin/python scripts/make_pictures.py [FOLDER]

The script presses the keys of the app over the sample traces and their labels, in a home of its
own: it neither reads nor changes the user's files. ``practice_server.py`` answers as the model of
the judge. The figures come from the commands of docs/report.md. The default folder is
``docs/pictures``. The same code makes the same pictures.
"""

from __future__ import annotations

import asyncio
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import MappingProxyType
from typing import Final

from textual.pilot import Pilot
from textual.worker import WorkerCancelled

from mast_tui.cli.command_line import split_command
from mast_tui.cli.dispatch import run
from mast_tui.configuration import configuration_path
from mast_tui.exchange.jsonl import fill_samples_workspace
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.library import samples_folder
from mast_tui.ui.annotate.screen import AnnotateScreen
from mast_tui.ui.app import MastApp
from mast_tui.ui.options import AppOptions
from mast_tui.ui.services.open_workspace import remember_welcome
from scripts.film import film
from scripts.practice_server import MODEL, Handler

PICTURES: Final = Path(__file__).resolve().parent.parent / "docs" / "pictures"
SIZE: Final = (120, 40)

ANNOTATOR: Final = "mira"
"""An annotator of the samples, who has two traces left to label."""

WAYS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "annotate": ("down", "enter", "]"),
        "library": ("L",),
        "adjudicate": ("A",),
        "agreement": ("K", "down", "down", "down"),
        "comparison": ("L", "J", "m", "enter", "R", "c", "o", "tab", "g"),
    }
)
"""The keys from one picture to the next, beginning in the library."""

COMMANDS: Final = (
    ("judge", "{samples}", "--judge", "rules", "--rules", "all", "--quiet"),
    ("import", "{samples}/workspace.jsonl", "--format", "jsonl"),
    ("report", "--by", "all", "--figures", "figures"),
)
"""The commands that make the figures."""

NEWCOMER: Final = "ana"
"""The annotator of the film, who has finished no trace yet."""

FILM: Final = "first-minute"
FILM_SIZE: Final = (100, 30)
SCENES: Final = (
    ("The library: Enter opens a trace", ("g", "down")),
    ("A trace: its steps, and the whole text of one; j and k move", ("enter", "j", "j")),
    ("] goes to the next suggestion, at its evidence", ("]",)),
    ("a accepts it, and goes on to the next", ("a",)),
    ("x rejects one", ("x",)),
    ("1 3 labels the step: FM-1.3, step repetition", ("k", "k", "1", "3")),
    ("D finishes; it first asks about unread spans and open modes", ("D",)),
)
"""The titles of the pictures in the film of the first minute, and the keys to each."""

FIGURES: Final = ("prevalence-all.svg", "onset-all.svg")

WEB_FONT: Final = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


async def press(pilot: Pilot[None], *keys: str) -> None:
    """Press each key when the app has finished its work on the last one."""
    await settle(pilot)
    for key in keys:
        await pilot.press(key)
        await settle(pilot)


async def settle(pilot: Pilot[None]) -> None:
    """Wait until no worker runs and the screen is drawn."""
    await pilot.pause()
    while running := [worker for worker in pilot.app.workers if not worker.is_finished]:
        for worker in running:
            with suppress(WorkerCancelled):
                await worker.wait()
        await pilot.pause()
    await pilot.pause()


async def mark_as_read(pilot: Pilot[None]) -> None:
    """Mark the drawn spans as read now, not at the next interval."""
    screen = pilot.app.screen
    if isinstance(screen, AnnotateScreen):
        screen.drawn_spans.write()
        await settle(pilot)


@contextmanager
def practice_model() -> Iterator[None]:
    """Run the practice server on this machine, and name it in the configuration."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        address = f"http://127.0.0.1:{server.server_port}/v1"
        path = configuration_path()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'[judge]\nmodel = "{MODEL}"\nbase_url = "{address}"\n', "utf-8")
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def app_over_samples(annotator: str) -> MastApp:
    """Return the app with the samples and their labels."""
    options = AppOptions(
        paths=(samples_folder(),),
        samples=True,
        workspace=None,
        annotator=annotator,
        taxonomy=None,
        blind=False,
        assisted=False,
        fill_new_workspace=fill_samples_workspace,
    )
    return MastApp(options, load_mast())


async def make(folder: Path) -> None:
    """Press the keys of ``WAYS`` and write a picture of each screen."""
    app = app_over_samples(ANNOTATOR)
    async with app.run_test(size=SIZE) as pilot:
        for name, keys in WAYS.items():
            await press(pilot, *keys)
            await mark_as_read(pilot)
            picture = app.export_screenshot(title="mast_tui", simplify=True)
            # A picture must fetch nothing, so it has no web font.
            path = folder / f"{name}.svg"
            path.write_text(WEB_FONT.sub("", picture), "utf-8")
            print(path)


async def make_film(folder: Path) -> None:
    """Press the keys of ``SCENES`` in a new app and write the film of the first minute."""
    app = app_over_samples(NEWCOMER)
    pictures = []
    async with app.run_test(size=FILM_SIZE) as pilot:
        for title, keys in SCENES:
            await press(pilot, *keys)
            await mark_as_read(pilot)
            pictures.append(app.export_screenshot(title=title, simplify=True))
    path = folder / f"{FILM}.svg"
    path.write_text(film(pictures), "utf-8")
    print(path)


def make_figures(folder: Path) -> None:
    """Write the figures that the commands make of the samples."""
    for command in COMMANDS:
        arguments = [argument.format(samples=samples_folder()) for argument in command]
        with redirect_stdout(io.StringIO()):
            code = run(split_command([*arguments, "--workspace", "figures.db"]))
        if code:
            raise SystemExit(f"mast-tui {command[0]}: exit code {code}")
    for name in FIGURES:
        print(shutil.copy(Path("figures") / name, folder))


@contextmanager
def new_home() -> Iterator[None]:
    """Use a temporary home, whose user has seen the welcome."""
    with tempfile.TemporaryDirectory() as home:
        os.environ["HOME"] = home
        for name in ("CONFIG", "DATA", "STATE", "CACHE"):
            os.environ[f"XDG_{name}_HOME"] = str(Path(home) / name.lower())
        os.environ["COLORTERM"] = "truecolor"
        os.environ.pop("NO_COLOR", None)
        os.chdir(home)
        remember_welcome()
        yield


def main(folder: Path) -> None:
    """Make all pictures."""
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with new_home():
        with practice_model():
            asyncio.run(make(folder))
        make_figures(folder)
    with new_home():
        asyncio.run(make_film(folder))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES)
