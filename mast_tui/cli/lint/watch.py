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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.lint.command import ALL_IS_TOLD, FAILS
from mast_tui.cli.lint.findings import PlacedFinding, judged_now
from mast_tui.cli.lint.formats import finding_values, text_line
from mast_tui.cli.lint.gate import (
    fail_on_option,
    gate_of,
    guards_for,
    guards_option,
    rules_for,
    rules_option,
)
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import check_may_see_judges
from mast_tui.cli.shared.common import load_chosen_taxonomy, say
from mast_tui.cli.shared.options import OptionRule
from mast_tui.counts import counted
from mast_tui.judges.rules import RulesJudge
from mast_tui.safe_text import one_line
from mast_tui.traces.io.regular_files import is_folder
from mast_tui.traces.library import LOOK_EVERY, rest_after, scan
from mast_tui.traces.scan.folder import entries_under
from mast_tui.traces.scan.sub_agents import may_hold_thread, sub_agents_of, thread_of

if TYPE_CHECKING:
    from mast_tui.cli.lint.gate import Gate
    from mast_tui.traces.io.opened_file import OpenedFile
    from mast_tui.traces.model import FileReport, Trace

_BY_SIGNAL: Final = 128
_STDERR: Final = 2
"""Where a command's own words go, so that stdout has findings alone."""

_ENDING: Final = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRequest:
    """The options of ``mast-tui watch``."""

    paths: tuple[Path, ...] = options.paths(required=True)
    fail_on: str = fail_on_option()
    rule_names: str | None = rules_option()
    guards: Path | None = guards_option()
    bell: bool = options.option(
        "--bell", is_flag=True, help="Ring the terminal's bell for a finding that fails."
    )
    command: str | None = options.option(
        "--run",
        metavar="COMMAND",
        help="A command for each finding that fails, without a shell; MAST_TUI_PLACE, "
        "MAST_TUI_MODE and others in its environment tell what was found.",
    )
    leave: bool = options.option(
        "--exit", is_flag=True, help="End with exit code 3 at the first that fails."
    )
    existing: bool = options.option(
        "--existing", is_flag=True, help="Report also the findings that are there at the start."
    )
    as_json: bool = options.option("--json", is_flag=True, help="Print one JSON object a line.")
    common: CommonOptions = options.common(blind=ALL_IS_TOLD)


_RULES: Final = (
    OptionRule[WatchRequest](
        "--guards look in the place of rules; leave out {other}",
        options=("--guards",),
        excludes=("--rules",),
    ),
)


@click.command()
@options.takes(WatchRequest, _RULES)
def watch_command(request: WatchRequest) -> int:
    """Follow running sessions and say so the moment a rule finds something.

    Files that grow and new files in folders are looked at about once a second. Each finding is told
    once, on one line: when, where, its mode, the rule and why. Ctrl+C ends it with a summary.
    """
    for path in request.paths:
        if not path.exists():
            raise click.UsageError(
                f"{path}: no such file or folder; to wait for a file, name the folder in which it "
                "will be"
            )
    chosen = load_chosen_taxonomy(request.common.taxonomy)
    gate = gate_of(request.fail_on, chosen)
    if request.guards is None:
        rules = rules_for(request.rule_names, gate, running=True)
    else:
        rules = guards_for(request.guards, gate, running=True)
    words = _words_of(request.command)
    check_may_see_judges(request.common, chosen)
    judge = RulesJudge(rules)
    running = RunningTraces(request.paths, judge, gate)
    told = _Told(request.bell, words, request.as_json)
    try:
        with _ended_by_signals():
            code = _follow(running, told, leave=request.leave, existing=request.existing)
    except _Ended as ended:
        code = _BY_SIGNAL + ended.number
    say(
        f"mast-tui watch: {counted(told.findings, 'finding')} in "
        f"{counted(running.traces, 'trace')}; --fail-on {request.fail_on}: {told.failing}"
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
            hidden = f"; {counted(before, 'earlier finding')}" if before else ""
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


_State = tuple[object, ...] | None
"""By which it is seen that somebody has written to a file; None where it cannot be told."""

_Place = tuple[Path, int | None]
"""A trace by its file and its record there: its id may follow from what it holds by now."""

_Name = tuple[str | None, str, str]
"""A finding by its rule, its mode and the first span of its range: what a range is about begins
where it began, however far it reaches by now."""


class NotRead(NamedTuple):
    """A file that cannot be read, and why."""

    path: Path
    reason: str


@dataclass(slots=True)
class _Known:
    """What was told of a trace, with a digest of each first span's text, and its file as it was."""

    opened: OpenedFile | None = None
    told: dict[_Name, bytes] = field(default_factory=dict)


class RunningTraces:
    """Looks at files and folders again and again, and judges the traces that have become more.

    Between two looks nothing is kept of a trace but what was told of it, so that thousands may be
    followed. Whether a file has just grown, its opened file tells: then a finding is the one that
    was told before where rule, mode and first span are. In a file that was written anew it is so
    only where that span says the same.
    """

    def __init__(self, paths: Sequence[Path], judge: RulesJudge, gate: Gate) -> None:
        """Begin with nothing seen.

        Args:
            paths: Files, and folders in which new ones may come.
            judge: The rules that look.
            gate: Tells what fails.
        """
        self._paths = tuple(paths)
        self._judge = judge
        self._gate = gate
        self._states: Mapping[Path, _State] = {}
        self._parts: dict[Path, tuple[Path, ...]] = {}
        self._known: dict[_Place, _Known] = {}
        self._not_read: dict[Path, str | None] = {}
        """Files that cannot be read with the reason, None once that was told."""

    @property
    def traces(self) -> int:
        """How many traces were seen."""
        return len(self._known)

    def look(self) -> Iterator[PlacedFinding | NotRead]:
        """Look at what was written since the last look, and tell what is new.

        A file that cannot be read is told when nobody has written to it for one look: what is
        being written is often half there.
        """
        states = self._states_now()
        same = self._unchanged(states)
        for path, reason in self._not_read.items():
            if reason is not None and (path in same or path not in states):
                self._not_read[path] = None
                yield NotRead(path, reason)
        if len(same) == len(states):
            return
        walk = scan(self._paths, without=same)
        for report in walk:
            yield from self._news(report)
        for run, members in walk.members.items():
            self._parts[Path(run)] = tuple(map(Path, members))
        for path in self._paths:
            if path not in same and not is_folder(path):
                self._parts[path] = _beside(path, walk.members.get(str(path), ()))
        self._states = states

    def _states_now(self) -> dict[Path, _State]:
        """The state of every file, taken before any is read: what comes meanwhile is seen the next
        time."""
        states: dict[Path, _State] = {}
        for path in self._paths:
            if is_folder(path):
                states.update((entry.path, _state(entry.path)) for entry in entries_under(path))
            else:
                states[path] = _state(path)
                states.update((part, _mark(part)) for part in self._parts.get(path, ()))
        return states

    def _unchanged(self, states: Mapping[Path, _State]) -> set[Path]:
        """The files to which nobody has written, nor to a sub-agent's of the same run."""
        same = {
            path
            for path, state in states.items()
            if state is not None and state == self._states.get(path)
        }
        changed = states.keys() - same
        for run, parts in self._parts.items():
            if not changed.isdisjoint(parts):
                same.discard(run)
        strange = changed.difference(*self._parts.values())
        new = {path for path in strange if _is_sub_agent(path)} if same else set[Path]()
        return {run for run in same if new.isdisjoint(sub_agents_of(run))} if new else same

    def _news(self, report: FileReport) -> Iterator[PlacedFinding]:
        reason = report.failed
        for trace in report.traces:
            try:
                yield from self._judged(trace)
            except OSError as error:
                reason = error.strerror or str(error)
        if reason is None:
            self._not_read.pop(report.path, None)
        elif self._not_read.get(report.path, "") is not None:
            self._not_read[report.path] = reason

    def _judged(self, trace: Trace) -> Iterator[PlacedFinding]:
        known = self._known.setdefault((trace.path, trace.record), _Known())
        anew = known.opened is None or known.opened.changed() is not None
        findings = judged_now(self._judge, self._gate, trace)
        known.opened = trace.opened
        for finding in findings:
            first = finding.first - 1
            name = finding.rule, finding.mode.slug, trace.span(first).key
            said = _digest(trace.text(first)) if anew or name not in known.told else b""
            if name not in known.told or (anew and known.told[name] != said):
                known.told[name] = said
                yield finding


def _beside(path: Path, members: Sequence[str]) -> tuple[Path, ...]:
    """The sub-agents' files of a run that was named, and the folders where more of them may come:
    a folder is written to when a file begins in it."""
    files = tuple(map(Path, members))
    below = path.parent / path.name.split(".jsonl")[0]
    folders = dict.fromkeys((path.parent, below, *(file.parent for file in files)))
    return (*files, *(folder for folder in folders if is_folder(folder)))


def _is_sub_agent(path: Path) -> bool:
    if not may_hold_thread(path):
        return False
    thread = thread_of(path)
    return thread is not None and thread.parent is not None


def _state(path: Path) -> _State:
    """What tells that somebody has written to a file, or to one in the folder of a run."""
    if is_folder(path):
        return tuple((one, _mark(one)) for one in sorted(path.rglob("*")) if not is_folder(one))
    return _mark(path)


def _mark(path: Path) -> _State:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
