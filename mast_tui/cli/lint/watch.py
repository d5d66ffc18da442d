"""``mast-tui watch``: follow running sessions, and say so the moment a rule finds something."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

import click

from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.judge.files import usual_lengths
from mast_tui.cli.lint.command import ALL_IS_TOLD, FAILS
from mast_tui.cli.lint.formats import finding_values, text_line
from mast_tui.cli.lint.gate import fail_on_option, gate_of, rules_for, rules_option
from mast_tui.cli.lint.running import NotRead, RunningTraces
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import check_may_see_judges
from mast_tui.cli.shared.common import load_chosen_taxonomy, say
from mast_tui.judges.rules import RulesJudge
from mast_tui.reports.sentences import counted
from mast_tui.safe_text import one_line
from mast_tui.traces.following import LOOK_EVERY, rest_after

if TYPE_CHECKING:
    from mast_tui.cli.lint.findings import PlacedFinding

_BY_SIGNAL: Final = 128
_STDERR: Final = 2
"""Where a command's own words go, so that stdout has findings alone."""

_ENDING: Final = (signal.SIGINT, signal.SIGTERM)


@click.command()
@options.paths(required=True)
@fail_on_option
@rules_option
@click.option("--bell", is_flag=True, help="Ring the terminal's bell for a finding that fails.")
@click.option(
    "--run",
    "command",
    metavar="COMMAND",
    help="A command for each finding that fails, without a shell; MAST_TUI_PLACE, MAST_TUI_MODE "
    "and others in its environment tell what was found.",
)
@click.option("--exit", "leave", is_flag=True, help="End with exit code 3 at the first that fails.")
@click.option(
    "--existing", is_flag=True, help="Tell also of what stands in the traces at the beginning."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@options.common(blind=ALL_IS_TOLD)
def watch_command(
    paths: tuple[Path, ...],
    fail_on: str,
    rule_names: str | None,
    bell: bool,
    command: str | None,
    leave: bool,
    existing: bool,
    as_json: bool,
    common: CommonOptions,
) -> int:
    """Follow running sessions and say so the moment a rule finds something.

    Files that grow and new files in folders are looked at about once a second. Each finding is told
    once, on one line: when, where, its mode, the rule and why. Ctrl+C ends it with a summary.
    """
    for path in paths:
        if not path.exists():
            raise click.UsageError(
                f"{path}: no such file or folder; to wait for a file, name the folder in which it "
                "will be"
            )
    chosen = load_chosen_taxonomy(common.taxonomy)
    gate = gate_of(fail_on, chosen)
    rules = rules_for(rule_names, gate, running=True)
    words = _words_of(command)
    check_may_see_judges(common, chosen)
    judge = RulesJudge(rules, usual_lengths(rules, paths))
    running = RunningTraces(paths, judge, gate)
    told = _Told(bell, words, as_json)
    try:
        with _ended_by_signals():
            code = _follow(running, told, leave=leave, existing=existing)
    except _Ended as ended:
        code = _BY_SIGNAL + ended.number
    say(
        f"mast-tui watch: {counted(told.findings, 'finding')} in "
        f"{counted(running.traces, 'trace')}; --fail-on {fail_on}: {told.failing}"
    )
    return code


def _follow(running: RunningTraces, told: _Told, *, leave: bool, existing: bool) -> int:
    """Look until a finding that fails ends it; whatever else does is raised."""
    before = 0
    begins = True
    while True:
        began, telling = time.monotonic(), 0.0
        for news in running.look():
            told_at = time.monotonic()
            if isinstance(news, NotRead):
                say(f"mast-tui watch: {news.path}: {news.reason}")
            elif begins and not existing:
                before += 1
            else:
                told.tell(news)
                if leave and news.fails:
                    return FAILS
            telling += time.monotonic() - told_at  # a command may take long; looking has not
        if begins:
            hidden = f"; {counted(before, 'finding')} stood there before" if before else ""
            say(f"mast-tui watch: following {counted(running.traces, 'trace')}{hidden}")
        begins = False
        looked = time.monotonic() - began - telling
        time.sleep(max(LOOK_EVERY, rest_after(looked)))


@dataclass(slots=True)
class _Told:
    """Tells of findings, and counts them."""

    bell: bool
    command: tuple[str, ...]
    as_json: bool
    findings: int = 0
    failing: int = 0

    def tell(self, finding: PlacedFinding) -> None:
        """Print a finding, and do for one that fails what was asked for."""
        self.findings += 1
        now = datetime.now().astimezone()
        if self.as_json:
            line = json.dumps(
                {"time": now.isoformat(timespec="seconds"), **finding_values(finding)}
            )
        else:
            line = f"{now:%H:%M:%S} #{finding.number} {text_line(finding)}"
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
        if not finding.fails:
            return
        self.failing += 1
        if self.bell:
            sys.stderr.write("\a")
            sys.stderr.flush()
        if self.command:
            self._run(finding)

    def _run(self, finding: PlacedFinding) -> None:
        """Run the command and wait for its end; that it fails is told, and ends nothing."""
        try:
            done = subprocess.run(
                self.command,
                env={**os.environ, **_environment(finding)},
                stdin=subprocess.DEVNULL,
                stdout=_STDERR,
                check=False,
            )
        except OSError as error:
            say(f"mast-tui watch: {self.command[0]}: {error.strerror or error}")
            return
        if done.returncode:
            say(f"mast-tui watch: {self.command[0]} ended with exit code {done.returncode}")


def _environment(finding: PlacedFinding) -> Mapping[str, str]:
    """What a command is told: a line each; ``FILE`` and ``PATH`` as the files are called."""
    values = finding_values(finding)
    told = {
        name: "" if values[name] is None else one_line(str(values[name]))
        for name in ("trace", "place", "line", "span", "mode", "name", "rule", "quote", "reason")
    }
    told |= {name: values[name] for name in ("file", "path")}
    return {f"MAST_TUI_{name.upper()}": value for name, value in told.items()}


def _words_of(command: str | None) -> tuple[str, ...]:
    """A command as words, of which the first can be run.

    Raises:
        click.UsageError: It has no words, a quotation mark is open, or there is no such program.
    """
    if command is None:
        return ()
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise click.UsageError(f"--run {command!r}: {error}") from None
    if not words or shutil.which(words[0]) is None:
        raise click.UsageError(
            f"--run {command!r}: there is no program {words[0] if words else ''!r}; for a line "
            "of a shell say --run \"sh -c '…'\""
        )
    return words


class _Ended(BaseException):
    """A signal has ended it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Within, Ctrl+C and SIGTERM raise ``_Ended``."""

    def end(number: int, _frame: FrameType | None) -> None:
        raise _Ended(number)

    before = {number: signal.signal(number, end) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
