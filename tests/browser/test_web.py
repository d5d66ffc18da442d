"""The app in a real browser."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from tests.browser.chromium import Page, browser
from tests.browser.visitor import DOOR, Visitor, labelled
from tests.waiting import PATIENCE

TRACE: Final = Path(__file__).parents[2] / "sample_traces" / "cart-valkey-noeviction.jsonl"


@contextmanager
def served(folder: Path, *options: str, **variables: str) -> Iterator[tuple[str, Path]]:
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


def test_two_visitors_label_by_keys_and_mouse(tmp_path: Path, program: str) -> None:
    with (
        served(tmp_path) as (address, workspace),
        browser(program, tmp_path / "profile", offline=False) as page,
        browser(program, tmp_path / "other", offline=False) as second,
    ):
        page.size(1280, 800)
        visitor, dave = Visitor(page), Visitor(second)
        visitor.enter(address, "carol")
        dave.enter(address, "dave")
        visitor.sees("44 spans")
        dave.sees("44 spans")
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
        dave.press("1", "2")
        dave.sees("specification on #1")
        assert labelled(workspace)[-1] == ("dave", "disobey_role_specification")
        dave.press("Q")
        second.until(lambda: second.value("document.body.classList.contains('-closed')"))
        assert "The app has ended" in second.value("document.body.innerText")
        quiet = ("WebGL", "ping", "exceeded allotted deadline")  # the last one on a busy machine
        assert not [said for said in page.said() if not any(word in said for word in quiet)]
        assert {url.split("/")[2] for url in page.asked_for() if "//" in url} == {
            address.split("/")[2]
        }


def test_window_sizes_and_the_clipboard(tmp_path: Path, program: str) -> None:
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


def test_the_token_of_the_address_is_never_sent(tmp_path: Path, program: str) -> None:
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


def test_an_app_ends_with_its_server(tmp_path: Path) -> None:
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


def test_enter_starts_the_app(tmp_path: Path, program: str) -> None:
    with browser(program, tmp_path / "profile", offline=False) as page:
        for place, options in enumerate(((), ("--annotator", "carol"))):
            folder = tmp_path / str(place)
            folder.mkdir()
            with served(folder, *options) as (address, _):
                visitor = Visitor(page)
                page.open(address)
                # Chromium moves the focus when it first draws the page, maybe after its load.
                _wait_for_focus(page, "button" if options else "input")
                if not options:
                    page.value("document.querySelector('input[name=name]').value = 'carol'")
                page.value("document.activeElement.blur()")
                page.loading(partial(visitor.press, "enter"))
                visitor.sees("44 spans")
                page.open("about:blank")


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
