"""The end of the app: the state of the terminal, the exit code, and the log."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shlex
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Final

import pexpect
import pytest
from pexpect.fdpexpect import fdspawn

from mast_tui.traces.library import samples_folder
from tests import waiting
from tests.terminal.screen import TIMEOUT, Terminal, settings
from tests.ui.stage import missing

TRACE: Final = samples_folder() / "shipping-quote-hpa-stuck.jsonl"

SECRET: Final = "picoCTF{what a trace holds}"

RESTORED: Final = (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1000l", b"\x1b[?1003l", b"\x1b[?2004l")
"""The sequences that restore the screen and the cursor, and release the mouse and pastes."""

RUN: Final = """
import os, sys, time
from pathlib import Path
from mast_tui.cli import main
from mast_tui.ui.app import MastApp

Path("pid").write_text(str(os.getpid()))
secret = {secret!r}

def stuck(app):
    Path("stuck").touch()
    time.sleep(1000)

def busy(app):
    app.run_worker(lambda: time.sleep(1000), thread=True)
    app.notify("at work")

def crash(app):
    held = [secret]
    raise ValueError("in " + held[0])

def crash_beside(app):
    def work():
        raise KeyError(secret)
    app.run_worker(work, thread=True)

if sys.argv[1] != "-":
    MastApp.action_keys_help = globals()[sys.argv[1]]
main(sys.argv[2:])
"""
"""A program that runs the app with another action for ``?``."""

CONTROLLING: Final = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""A program that makes the terminal the controlling one, whose end sends a signal."""

IN_A_SHELL: Final = 'stty -a > before; "$@"; code=$?; stty -a > after; echo "left with $code ."'


def command(help_action: str) -> list[str]:
    run = [sys.executable, "-c", RUN.format(secret=SECRET), help_action]
    return [*run, str(TRACE), "--workspace", "w.db", "--annotator", "alice"]


def spawned(home: Path, program: str, *arguments: str) -> Terminal:
    process = pexpect.spawn(
        program,
        list(arguments),
        env=settings(home),
        dimensions=(40, 120),
        cwd=str(home),
        timeout=TIMEOUT,
    )
    return Terminal(home=home, process=process)


def in_a_shell(home: Path, help_action: str = "-") -> Terminal:
    return spawned(home, "/bin/sh", "-c", IN_A_SHELL, "sh", *command(help_action))


def send(home: Path, number: int) -> None:
    os.kill(int((home / "pid").read_text()), number)


def check_left(terminal: Terminal, home: Path, code: int) -> bytes:
    """Wait for the end of the app, check the terminal, and return the output after the end."""
    terminal.until(rf"left with {code} \.")
    assert terminal.ended() == 0
    raw = bytes(terminal.raw)
    positions = [raw.rfind(sequence) for sequence in RESTORED]
    assert min(positions) > raw.rfind(b"\x1b[?1049h")
    assert (home / "after").read_text() == (home / "before").read_text()
    return raw[raw.rfind(b"\x1b[?1049l") :]


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_signals_end_the_app(name: str, home: Path) -> None:
    number = signal.Signals[name]
    with in_a_shell(home) as terminal:
        terminal.until("alice")
        terminal.press("j", "1", "3", ":")  # a dialog is open
        terminal.until(r"1\.3 ●")
        send(home, number)
        after = check_left(terminal, home, 128 + number)
    assert b"Traceback" not in after
    assert not (home / "w.db-wal").exists()


def test_signals_do_not_wait_for_threads_or_a_stuck_app(home: Path) -> None:
    with in_a_shell(home, "busy") as terminal:
        terminal.until("alice")
        terminal.press("?")
        terminal.until("at work")
        send(home, signal.SIGTERM)
        check_left(terminal, home, 143)


def test_signals_end_a_stuck_app(home: Path) -> None:
    with in_a_shell(home, "stuck") as terminal:
        terminal.until("alice")
        terminal.press("?")
        for _ in waiting.until((home / "stuck").exists):
            assert terminal.read()
        send(home, signal.SIGTERM)
        terminal.read(0.2)
        send(home, signal.SIGTERM)
        check_left(terminal, home, 143)


def _is_drawing(terminal: Terminal) -> bool:
    size = len(terminal.raw)
    terminal.read(0.5)
    return len(terminal.raw) > size


@pytest.mark.parametrize("has_terminal", [True, False], ids=["SIGHUP", "no signal"])
def test_losing_the_terminal_ends_the_app(has_terminal: bool, home: Path) -> None:
    outside, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    begin = [sys.executable, "-c", CONTROLLING, *command("-")] if has_terminal else command("-")
    process = subprocess.Popen(
        begin, stdin=inside, stdout=inside, stderr=inside, start_new_session=True,
        env=settings(home), cwd=home,
    )  # fmt: skip
    os.close(inside)
    try:
        terminal = Terminal(home=home, process=fdspawn(outside))
        terminal.until("alice")
        terminal.press("j", "1", "3")
        terminal.until(r"1\.3 ●")
        terminal.process.close()
        assert process.wait(TIMEOUT) == 128 + signal.SIGHUP
    finally:
        process.kill()
        process.wait()


def logs(home: Path) -> list[Path]:
    return sorted((home / ".local" / "state" / "mast-tui" / "log").glob("crash-*.log"))


def test_a_crash_writes_one_line_and_a_log(home: Path) -> None:
    with in_a_shell(home, "crash") as terminal:
        terminal.until("alice")
        terminal.press("?")
        after = check_left(terminal, home, 1)
    (log,) = logs(home)
    message = after[: after.rindex(b"left with")]
    assert message.count(b"\n") == 1
    assert re.search(
        rb"mast-tui: unexpected error \(ValueError\); the log is \S+\.log\r\n", message
    )
    assert log.name.encode() in message
    assert SECRET[:7] not in terminal.raw.decode()
    text = log.read_text()
    assert not missing(text, "in crash", "builtins.ValueError\n")
    assert SECRET[:7] not in text
    assert (log.stat().st_mode & 0o777, log.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_crash_in_a_worker_is_reported(home: Path) -> None:
    with in_a_shell(home, "crash_beside") as terminal:
        terminal.until("alice")
        terminal.press("?")
        terminal.until("Something went wrong in the background")
        terminal.until(r"KeyError")
        (log,) = logs(home)
        assert "in work" in log.read_text()
        assert SECRET[:7] not in log.read_text() + terminal.raw.decode()
        terminal.press("j", "1", "3")
        terminal.until(r"1\.3 ●")
        terminal.press("Q")
        check_left(terminal, home, 0)


def suspended(home: Path, terminal: Terminal) -> str:
    """Start the app from an interactive shell, label a span, suspend it, and return its screen."""
    terminal.press("PS1='$ '; clear\n")
    arguments = [sys.executable, "-m", "mast_tui", *command("-")[4:]]
    terminal.press(shlex.join(arguments) + "\n")
    terminal.until("alice")
    terminal.press("j", "1", "3")
    terminal.until(r"1\.3 ●")
    terminal.press("k")  # the message disappears at the next key
    for _ in waiting.until(lambda: not _is_drawing(terminal)):
        pass
    screen_text = terminal.text
    terminal.press("\x1a")
    terminal.until(r"Stopped")
    raw = bytes(terminal.raw)
    assert all(raw.rfind(sequence) > raw.rfind(b"\x1b[?1049h") for sequence in RESTORED)
    terminal.press("printf '\\033[2J\\033[Hin the %s' shell\n")
    terminal.until(lambda text: "in the shell" in text and "Timeline" not in text)
    return screen_text


def test_control_z_suspends_the_app(home: Path) -> None:
    with spawned(home, "bash", "--norc", "--noprofile", "-i") as terminal:
        screen_text = suspended(home, terminal)
        terminal.press("fg\n")
        terminal.until(lambda text: text == screen_text)
        terminal.press("Q")
        terminal.until(lambda _: terminal.raw.count(b"\x1b[?1049l") == 2)
        terminal.press("exit\n")
        assert terminal.ended() == 0


def test_a_signal_ends_a_suspended_app(home: Path) -> None:
    with spawned(home, "bash", "--norc", "--noprofile", "-i") as terminal:
        suspended(home, terminal)
        written = len(terminal.raw)
        terminal.press("p=$(jobs -p %1); kill %1; while kill -0 $p; do sleep 0.1; done; jobs\n")
        terminal.until(r"Exit 143")
        assert b"\x1b[?1049l" not in terminal.raw[written:]
        terminal.press("exit\n")
        assert terminal.ended() == 0
        assert not (home / "w.db-wal").exists()


def test_control_z_needs_a_shell(home: Path) -> None:
    with in_a_shell(home) as terminal:
        terminal.until("alice")
        terminal.press("\x1a")
        terminal.until("no shell has started it")
        terminal.press("Q")
        check_left(terminal, home, 0)
