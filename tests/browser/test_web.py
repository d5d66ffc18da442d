"""The app in a real browser: labels by keys and by mouse, copying, a reload, two visitors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from mast_tui.workspace import Workspace
from mast_tui.workspace.records import TeamRole
from tests.browser.chromium import Page, browser
from tests.browser.visitor import DOOR, Visitor, labelled
from tests.postgres import PostgresServer
from tests.waiting import PATIENCE

TRACE: Final = Path(__file__).parents[2] / "sample_traces" / "cart-valkey-noeviction.jsonl"


@contextmanager
def served(folder: Path, *options: str, **variables: str) -> Iterator[tuple[str, Path]]:
    """The address of a server that shows one trace, and its workspace; it ends with the block."""
    workspace = folder / "labels.db"
    words = ("web", "--port", "0", "--workspace", str(workspace), *options, str(TRACE))
    homes = {f"XDG_{name}_HOME": str(folder / name) for name in ("DATA", "CONFIG", "CACHE")}
    (folder / "DATA" / "mast-tui").mkdir(parents=True)
    (folder / "DATA" / "mast-tui" / "welcomed").touch()
    server = subprocess.Popen(
        (sys.executable, "-m", "mast_tui", *words),
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, **homes, **variables},
    )
    assert server.stdout is not None
    try:
        line = server.stdout.readline()
        assert line.startswith("The app is at http://localhost:"), line
        yield line.removeprefix("The app is at ").strip(), workspace
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE) == 0
    finally:
        server.kill()
        server.stdout.close()


def test_labels_by_keys_and_by_mouse_and_a_reload_loses_nothing(
    tmp_path: Path, program: str
) -> None:
    with (
        served(tmp_path) as (address, workspace),
        browser(program, tmp_path / "profile", offline=False) as page,
    ):
        page.size(1280, 800)
        visitor = Visitor(page)
        visitor.enter(address, "carol")
        visitor.sees("44 spans")
        visitor.press("j", "1", "3")
        visitor.sees("Step repetition on #2")
        assert labelled(workspace) == [("carol", "step_repetition")]

        visitor.click("Information withholding")
        visitor.sees("2.4 Information withholding ─")
        visitor.click("Information withholding")
        visitor.sees("Information withholding on #2")
        both = [("carol", "information_withholding"), ("carol", "step_repetition")]
        assert labelled(workspace) == both

        after = Visitor(page)
        page.loading(lambda: page.send("Page.reload"))
        after.sees("44 spans")
        after.press("j", "3", "3")
        after.sees("Incorrect verification on #")
        assert len(labelled(workspace)) == 3
        quiet = ("WebGL", "ping", "exceeded allotted deadline")  # the last one on a busy machine
        assert not [said for said in page.said() if not any(word in said for word in quiet)]
        assert {url.split("/")[2] for url in page.asked_for() if "//" in url} == {
            address.split("/")[2]
        }


def test_the_app_follows_the_window_and_copies_into_the_browser(
    tmp_path: Path, program: str
) -> None:
    with (
        served(tmp_path, DISPLAY=":99", TMUX="/tmp/none,1,0") as (address, _),
        browser(program, tmp_path / "profile", offline=False) as page,
    ):
        page.size(1280, 800)
        page.send(
            "Browser.grantPermissions",
            permissions=["clipboardReadWrite", "clipboardSanitizedWrite"],
            origin=address[:-1],
        )
        page.send("Emulation.setFocusEmulationEnabled", enabled=True)
        visitor = Visitor(page)
        visitor.enter(address, "carol")
        visitor.sees("44 spans")
        wide, _ = visitor.size()
        page.size(800, 500)
        page.until(lambda: visitor.size()[0] < wide)
        visitor.press("y")
        visitor.sees("Copied the text of #1")
        assert "through the browser" in visitor.text
        page.value(
            "(async () => { while (!await navigator.clipboard.readText()) "
            "await new Promise((again) => setTimeout(again, 20)) })()"
        )
        copied = page.value("navigator.clipboard.readText()")
        assert copied.startswith("You diagnose incidents offline")


def test_two_visitors_label_at_once_each_under_their_name(tmp_path: Path, program: str) -> None:
    with (
        served(tmp_path) as (address, workspace),
        browser(program, tmp_path / "one", offline=False) as first,
        browser(program, tmp_path / "other", offline=False) as second,
    ):
        carol, dave = Visitor(first), Visitor(second)
        carol.enter(address, "carol")
        dave.enter(address, "dave")
        for visitor, digit in ((carol, "1"), (dave, "2")):
            visitor.sees("44 spans")
            visitor.press("1", digit)
        carol.sees("specification on #1")
        dave.sees("specification on #1")
        assert labelled(workspace) == [
            ("carol", "disobey_task_specification"),
            ("dave", "disobey_role_specification"),
        ]
        carol.press("Q")
        carol.page.until(lambda: carol.page.value("document.body.classList.contains('-closed')"))
        assert "The app has ended" in carol.page.value("document.body.innerText")


def test_the_token_comes_behind_the_address_and_goes_to_no_log(
    tmp_path: Path, program: str
) -> None:
    with (
        served(tmp_path, "--token") as (address, _),
        browser(program, tmp_path / "profile", offline=False) as page,
    ):
        place, _, token = address.partition("#")
        visitor = Visitor(page)
        page.open(place)
        page.value("document.querySelector('input[name=name]').value = 'carol'")
        page.value("document.querySelector('input[name=token]').value = 'guessed'")
        page.loading(lambda: page.value(DOOR))
        assert "This is not the token" in page.value("document.body.innerText")
        page.open("about:blank")
        visitor.enter(address, "carol")
        visitor.sees("44 spans")
        assert not [url for url in page.asked_for() if token in url.partition("#")[0]]


def test_an_app_ends_with_a_server_that_was_killed(tmp_path: Path) -> None:
    read, write = os.pipe()
    app = subprocess.Popen(
        (sys.executable, "-m", "mast_tui", "--annotator", "carol", "--", str(TRACE)),
        stdin=read,
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, "TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver"},
    )
    os.close(read)
    try:
        assert app.stdout is not None
        assert app.stdout.readline() == b"__GANGLION__\n"
        app.stdout.close()
        os.close(write)
        assert app.wait(PATIENCE) != 0
    finally:
        app.kill()
        app.wait()


def _wait_for_focus(page: Page, selector: str) -> None:
    """Wait until the focus is in the element that a CSS selector names."""
    page.value(
        f"(async () => {{ while (!document.activeElement.matches({selector!r})) "
        "await new Promise((again) => setTimeout(again, 20)) })()"
    )


def test_enter_begins_wherever_the_focus_is(tmp_path: Path, program: str) -> None:
    for place, options in enumerate(((), ("--annotator", "carol"))):
        folder = tmp_path / str(place)
        folder.mkdir()
        with (
            served(folder, *options) as (address, _),
            browser(program, folder / "profile", offline=False) as page,
        ):
            visitor = Visitor(page)
            page.open(address)
            # Chromium moves the focus when it first draws the page, which may be after its load.
            _wait_for_focus(page, "button" if options else "input")
            if not options:
                page.value("document.querySelector('input[name=name]').value = 'carol'")
            page.value("document.activeElement.blur()")
            page.loading(partial(visitor.press, "enter"))
            visitor.sees("44 spans")


def test_a_lost_connection_keeps_the_open_trace_and_a_half_typed_note(
    tmp_path: Path, program: str
) -> None:
    with (
        served(tmp_path) as (address, workspace),
        browser(program, tmp_path / "profile", offline=False) as page,
    ):
        page.size(1280, 800)
        visitor = Visitor(page)
        visitor.enter(address, "carol")
        visitor.sees("44 spans")
        visitor.press("j", "1", "3")
        visitor.sees("Step repetition on #2")
        visitor.press("m", *"half")
        visitor.sees("half")
        page.offline(True)
        page.until(lambda: page.value("document.body.classList.contains('-lost')"))
        assert "Connection lost" in page.value("document.body.innerText")
        after = Visitor(page)
        page.offline(False)
        after.sees("half")
        page.until(lambda: not page.value("document.body.classList.contains('-lost')"))
        after.press(*"way", "enter")
        after.sees("halfway")
        assert labelled(workspace) == [("carol", "step_repetition")]


def test_the_page_fits_a_phone(tmp_path: Path, program: str) -> None:
    with (
        served(tmp_path) as (address, _),
        browser(program, tmp_path / "profile", offline=False) as page,
    ):
        page.size(390, 844, phone=True)
        visitor = Visitor(page)
        visitor.enter(address, "carol")
        visitor.sees("update_plan")
        assert page.value("document.documentElement.scrollWidth") == 390
        assert page.value("innerWidth") == 390
        assert page.value(
            "document.querySelector('.xterm-screen').getBoundingClientRect().right <= 390"
        )
        columns, _lines = visitor.size()
        assert columns >= 50


@pytest.mark.slow
def test_a_member_signs_in_with_their_own_password_and_labels_under_their_own_name(
    tmp_path: Path, program: str, postgres: PostgresServer
) -> None:
    database = postgres.new_database()
    with closing(Workspace.create_on_server(postgres.url(database))) as owner:
        for name in ("ann", "ben"):
            owner.add_member(name, TeamRole.ANNOTATOR)
        workspace = ("--workspace", postgres.url(database, user="ben"))
        with (
            postgres.asking_for_passwords(("ann", "ben")),
            served(tmp_path, *workspace) as (address, _),
            browser(program, tmp_path / "profile", offline=False) as page,
        ):
            visitor = Visitor(page)
            visitor.enter(address, "ann")
            assert "The password of ann is missing" in page.value("document.body.innerText")
            _wait_for_focus(page, "input[name=password]")
            page.value("document.querySelector('input[name=password]').value = 'secret of ann'")
            page.loading(lambda: page.value(DOOR))
            visitor.sees("44 spans")
            visitor.press("1", "1")
            visitor.sees("specification on #1")
            assert [label.annotator for label in owner.labels()] == ["ann"]
