"""Fixtures of all tests of screens: a home directory for each test, a still cursor, waiting."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partialmethod
from pathlib import Path
from typing import Any

import pytest
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Input

from mast_tui.ui import app as ui_app
from tests.ui.settle import draw_at_rest, wait_for_still_screen
from tests.ui.stage import write_runs, write_trace
from tests.ui.team_dir import TeamDir
from tests.waiting import PATIENCE


@pytest.fixture(autouse=True)
def _private_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep tests away from the files of the user who runs them."""
    home = tmp_path / "home"
    work = home / "work"
    work.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    for name in ("CONFIG", "DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(home / name.lower()))
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "tester")
    # Nor may a test copy to the clipboard of that user.
    for name in ("NO_COLOR", "DISPLAY", "WAYLAND_DISPLAY", "TMUX", "SSH_CONNECTION", "SSH_TTY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(work)


@pytest.fixture(autouse=True)
def _still_app(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the blinking of the cursor, which would make two pictures of one screen differ, skip
    the garbage collection after the start of an app, and let a pilot wait over its 30 seconds."""
    monkeypatch.setattr(Input, "cursor_blink", False)
    monkeypatch.setattr(ui_app, "COLLECT_AFTER", 3600.0)
    wait = partialmethod(Pilot._wait_for_screen, PATIENCE)
    monkeypatch.setattr(Pilot, "_wait_for_screen", wait)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """The small trace, of twelve spans."""
    return write_trace(tmp_path / "small.json")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """The path of a workspace that does not exist yet."""
    return tmp_path / "w.db"


@pytest.fixture
def team(tmp_path: Path) -> TeamDir:
    """A folder of traces and a workspace beside it."""
    return TeamDir(tmp_path / "set")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder of eleven traces."""
    write_runs(tmp_path / "runs", *(f"run-{number}" for number in range(11)))
    return tmp_path / "runs"


@pytest.fixture
def every_frame() -> None:
    """Draw each frame, for tests of how much is drawn or when."""


@pytest.fixture(autouse=True)
def _draws_at_rest(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw consecutive changes as one frame, as a slow terminal would show them: an app that
    starts draws some ten frames, which is a third of its time."""
    if "every_frame" not in request.fixturenames:
        monkeypatch.setattr(Screen, "_compositor_refresh", draw_at_rest)


@pytest.fixture(autouse=True, scope="session")
def _styles_parsed_once() -> Iterator[None]:
    """Parse styles once: every app has the same, and parsed rules never change."""
    parse = Stylesheet._parse_rules
    parsed: dict[tuple[object, ...], list[RuleSet]] = {}

    def parse_rules(self: Stylesheet, *source: Any, **options: Any) -> list[RuleSet]:
        key = (*source, *options.items(), *self._variables.items())
        if key not in parsed:
            parsed[key] = parse(self, *source, **options)
        return parsed[key]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Stylesheet, "_parse_rules", parse_rules)
        yield


@pytest.fixture
def snap_compare(
    snap_compare: Callable[..., bool], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., bool]:
    """Compare with the stored picture once nothing on screen changes any more.

    Neither the terminal that runs the tests nor its settings show in a picture.

    A busy machine draws late: what a refresh asks for may come after the plugin has taken its
    picture.
    """
    for name in ("COLUMNS", "LINES", "TERM", "COLORTERM", "TEXTUAL_THEME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "none")

    def compare(
        app: object,
        terminal_size: tuple[int, int],
        run_before: Callable[[Pilot[None]], Awaitable[None]],
    ) -> bool:
        async def run_and_wait(pilot: Pilot[None]) -> None:
            await run_before(pilot)
            await wait_for_still_screen(pilot)

        return snap_compare(app, terminal_size=terminal_size, run_before=run_and_wait)

    return compare
