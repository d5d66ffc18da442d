"""``mast-tui watch``: follow running sessions, and report findings of rules at once."""

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
from mast_tui.cli.lint.command import FAILS, NO_BLIND_LINT
from mast_tui.cli.lint.findings import (
    Gate,
    PlacedFinding,
    fail_on_option,
    find_by_rules,
    guards_for,
    guards_option,
    read_gate,
    rules_for,
    rules_option,
)
from mast_tui.cli.lint.formats import finding_json, text_line
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import check_may_see_judges
from mast_tui.cli.shared.common import load_taxonomy_or_mast, say
from mast_tui.cli.shared.options import OptionRule
from mast_tui.counts import counted
from mast_tui.judges.rules import RulesJudge
from mast_tui.safe_text import one_line
from mast_tui.traces.io.regular_files import is_folder
from mast_tui.traces.library import LOOK_EVERY, rest_after, scan
from mast_tui.traces.scan.folder import entries_under
from mast_tui.traces.scan.sub_agents import may_hold_thread, sub_agents_of, thread_of

if TYPE_CHECKING:
    from mast_tui.traces.io.opened_file import OpenedFile
    from mast_tui.traces.model import FileReport, Trace

_BY_SIGNAL: Final = 128
_STDERR: Final = 2
"""The output of ``--run`` commands. Stdout has only findings."""

_END_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


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
        help="Run a command for each finding that fails, without a shell; MAST_TUI_PLACE, "
        "MAST_TUI_MODE and other variables of its environment describe the finding.",
    )
    leave: bool = options.option(
        "--exit", is_flag=True, help="End with exit code 3 at the first finding that fails."
    )
    existing: bool = options.option(
        "--existing", is_flag=True, help="Also report findings that exist at the start."
    )
    as_json: bool = options.option("--json", is_flag=True, help="Print one JSON object a line.")
    common: CommonOptions = options.common(blind=NO_BLIND_LINT)


_RULES: Final = (
    OptionRule[WatchRequest](
        "--guards replaces rules; leave out {other}",
        options=("--guards",),
        excludes=("--rules",),
    ),
)


@click.command()
@options.takes(WatchRequest, _RULES)
def watch_command(request: WatchRequest) -> int:
    """Follow running sessions and report each finding of a rule at once.

    Growing files and new files in folders are checked about once a second. Each finding is printed
    once, on one line: time, location, mode, rule and reason. Ctrl+C ends it with a summary.

    Example: mast-tui watch ~/.codex/sessions --bell
    """
    for path in request.paths:
        if not path.exists():
            raise click.UsageError(
                f"{path}: no such file or folder; to wait for a file, give its folder"
            )
    taxonomy = load_taxonomy_or_mast(request.common.taxonomy)
    gate = read_gate(request.fail_on, taxonomy)
    if request.guards is None:
        rules = rules_for(request.rule_names, gate, while_running=True)
    else:
        rules = guards_for(request.guards, gate, while_running=True)
    command_words = _split_command(request.command)
    check_may_see_judges(request.common, taxonomy)
    judge = RulesJudge(rules)
    running = RunningTraces(request.paths, judge, gate)
    reporter = _FindingReporter(request.bell, command_words, request.as_json)
    try:
        with _ended_by_signals():
            code = _follow_sessions(
                running, reporter, leaves_on_failure=request.leave, reports_earlier=request.existing
            )
    except _EndedBySignal as ended:
        code = _BY_SIGNAL + ended.number
    say(
        f"mast-tui watch: {counted(reporter.findings, 'finding')} in "
        f"{counted(running.traces, 'trace')}; --fail-on {request.fail_on}: {reporter.failing}"
    )
    return code


def _follow_sessions(
    running: RunningTraces,
    reporter: _FindingReporter,
    *,
    leaves_on_failure: bool,
    reports_earlier: bool,
) -> int:
    """Report new findings about once a second.

    Return the exit code at the first finding that makes the check fail if ``leaves_on_failure`` is
    set. Otherwise a signal ends the loop. Findings of the first round are reported only with
    ``reports_earlier``.
    """
    earlier_count = 0
    is_first = True
    while True:
        round_start = time.monotonic()
        report_seconds = 0.0
        for item in running.new_findings():
            report_start = time.monotonic()
            if isinstance(item, NotRead):
                say(f"mast-tui watch: {item.path}: {item.reason}")
            elif is_first and not reports_earlier:
                earlier_count += 1
            else:
                reporter.report(item)
                if leaves_on_failure and item.fails:
                    return FAILS
            # The time of a ``--run`` command does not count as time of the check.
            report_seconds += time.monotonic() - report_start
        if is_first:
            earlier_text = f"; {counted(earlier_count, 'earlier finding')}" if earlier_count else ""
            say(f"mast-tui watch: following {counted(running.traces, 'trace')}{earlier_text}")
        is_first = False
        check_seconds = time.monotonic() - round_start - report_seconds
        time.sleep(max(LOOK_EVERY, rest_after(check_seconds)))


@dataclass(slots=True)
class _FindingReporter:
    """The output of findings, and their counts.

    Attributes:
        bell: Ring the bell at a finding that makes the check fail.
        command: The words of the ``--run`` command; empty for none.
        as_json: Print JSON lines.
        findings: The number of reported findings.
        failing: The number of reported findings that make the check fail.
    """

    bell: bool
    command: tuple[str, ...]
    as_json: bool
    findings: int = 0
    failing: int = 0

    def report(self, finding: PlacedFinding) -> None:
        """Print and count a finding.

        If it makes the check fail, ring the bell and run the command.
        """
        self.findings += 1
        now = datetime.now().astimezone()
        if self.as_json:
            line = json.dumps({"time": now.isoformat(timespec="seconds"), **finding_json(finding)})
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
            self._run_command(finding)

    def _run_command(self, finding: PlacedFinding) -> None:
        """Run the command, wait for its end, and report a failure."""
        try:
            result = subprocess.run(
                self.command,
                env={**os.environ, **_environment_of(finding)},
                stdin=subprocess.DEVNULL,
                stdout=_STDERR,
                check=False,
            )
        except OSError as error:
            say(f"mast-tui watch: {self.command[0]}: {error.strerror or error}")
            return
        if result.returncode:
            say(f"mast-tui watch: {self.command[0]} ended with exit code {result.returncode}")


def _environment_of(finding: PlacedFinding) -> Mapping[str, str]:
    """Return the environment variables that describe a finding.

    All values but the paths are one line.
    """
    values = finding_json(finding)
    texts = {
        name: "" if values[name] is None else one_line(str(values[name]))
        for name in ("trace", "place", "line", "span", "mode", "name", "rule", "quote", "reason")
    }
    texts |= {name: values[name] for name in ("file", "path")}
    return {f"MAST_TUI_{name.upper()}": value for name, value in texts.items()}


def _split_command(command: str | None) -> tuple[str, ...]:
    """Split a command into words; empty for None.

    Raises:
        click.UsageError: The command is empty, a quotation mark is open, or there is no such
            program.
    """
    if command is None:
        return ()
    try:
        parts = tuple(shlex.split(command))
    except ValueError as error:
        raise click.UsageError(f"--run {command!r}: {error}") from None
    if not parts or shutil.which(parts[0]) is None:
        raise click.UsageError(
            f"--run {command!r}: there is no program {parts[0] if parts else ''!r}; for a "
            "shell command give --run \"sh -c '…'\""
        )
    return parts


class _EndedBySignal(BaseException):
    """A signal that ends the command."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Raise ``_EndedBySignal`` on Ctrl+C and SIGTERM inside the ``with`` block."""

    def end(number: int, _frame: FrameType | None) -> None:
        raise _EndedBySignal(number)

    previous_handlers = {number: signal.signal(number, end) for number in _END_SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)


_FileState = tuple[object, ...] | None
"""The metadata of a file that change with its content; None if it is unreadable."""

_TraceKey = tuple[Path, int | None]
"""The file and the record of a trace. The id may change as the file grows."""

_FindingKey = tuple[str | None, str, str]
"""The rule, the mode and the key of the first span of a finding. Its last span may change."""


class NotRead(NamedTuple):
    """An unreadable file with the reason."""

    path: Path
    reason: str


@dataclass(slots=True)
class _SeenTrace:
    """A trace with its reported findings.

    ``digests`` holds a digest of the text of each finding's first span.
    """

    opened: OpenedFile | None = None
    digests: dict[_FindingKey, bytes] = field(default_factory=dict)


class RunningTraces:
    """The traces of files and folders, checked repeatedly for new findings.

    In a file that has only grown, findings are known by rule, mode and first span. In a rewritten
    file the text of this span must be the same too.
    """

    def __init__(self, paths: Sequence[Path], judge: RulesJudge, gate: Gate) -> None:
        """Start without any trace.

        Args:
            paths: The files, and the folders for new files.
            judge: The rules.
            gate: The findings that make the check fail, and the taxonomy.
        """
        self._paths = tuple(paths)
        self._judge = judge
        self._gate = gate
        self._states: Mapping[Path, _FileState] = {}
        self._sub_agent_files: dict[Path, tuple[Path, ...]] = {}
        self._seen: dict[_TraceKey, _SeenTrace] = {}
        self._unreadable: dict[Path, str | None] = {}
        """The reasons why files cannot be read; None for a reported reason."""

    @property
    def traces(self) -> int:
        """The number of seen traces."""
        return len(self._seen)

    def new_findings(self) -> Iterator[PlacedFinding | NotRead]:
        """Check the changed files, and yield new findings and unreadable files.

        An unreadable file is reported only if the next check finds it unchanged. Until then it may
        be incomplete.
        """
        states = self._read_states()
        unchanged = self._unchanged_files(states)
        for path, reason in self._unreadable.items():
            if reason is not None and (path in unchanged or path not in states):
                self._unreadable[path] = None  # reports each reason once
                yield NotRead(path, reason)
        if len(unchanged) == len(states):
            return
        changed_files = scan(self._paths, without=unchanged)
        for report in changed_files:
            yield from self._findings_in_file(report)
        # The members of a run are the files of its sub-agents.
        for run, members in changed_files.members.items():
            self._sub_agent_files[Path(run)] = tuple(map(Path, members))
        # A file that the user has named may get sub-agents later, so their folders are watched.
        for path in self._paths:
            if path not in unchanged and not is_folder(path):
                self._sub_agent_files[path] = _sub_agent_paths(
                    path, changed_files.members.get(str(path), ())
                )
        self._states = states

    def _read_states(self) -> dict[Path, _FileState]:
        """Return the state of every file.

        It must be read before the file, so that the next check notices a later write.
        """
        states: dict[Path, _FileState] = {}
        for path in self._paths:
            if is_folder(path):
                states.update(
                    (entry.path, _path_state(entry.path)) for entry in entries_under(path)
                )
            else:
                states[path] = _path_state(path)
                states.update(
                    (part, _file_stamp(part)) for part in self._sub_agent_files.get(path, ())
                )
        return states

    def _unchanged_files(self, states: Mapping[Path, _FileState]) -> set[Path]:
        """Return the unchanged files.

        A run changes with the files of its sub-agents.
        """
        unchanged = {
            path
            for path, state in states.items()
            if state is not None and state == self._states.get(path)
        }
        changed = states.keys() - unchanged
        for run, files in self._sub_agent_files.items():
            if not changed.isdisjoint(files):
                unchanged.discard(run)
        if not unchanged:
            return unchanged
        # A new file of a sub-agent is not yet in the list of its run.
        files_of_no_known_run = changed.difference(*self._sub_agent_files.values())
        new_sub_agents = {path for path in files_of_no_known_run if _is_sub_agent(path)}
        if not new_sub_agents:
            return unchanged
        return {path for path in unchanged if new_sub_agents.isdisjoint(sub_agents_of(path))}

    def _findings_in_file(self, report: FileReport) -> Iterator[PlacedFinding]:
        """Yield the new findings in a file, and note the reason if it is unreadable."""
        reason = report.failed
        for trace in report.traces:
            try:
                yield from self._new_findings_in_trace(trace)
            except OSError as error:
                reason = error.strerror or str(error)
        if reason is None:
            self._unreadable.pop(report.path, None)
            return
        # None is the note for a reason that was already reported.
        is_reported = report.path in self._unreadable and self._unreadable[report.path] is None
        if not is_reported:
            self._unreadable[report.path] = reason

    def _new_findings_in_trace(self, trace: Trace) -> Iterator[PlacedFinding]:
        """Yield the findings that were not reported before, and remember them."""
        seen_trace = self._seen.setdefault((trace.path, trace.record), _SeenTrace())
        # In a new or rewritten file, the same key can belong to another text.
        compares_texts = seen_trace.opened is None or seen_trace.opened.change_reason() is not None
        findings = find_by_rules(self._judge, self._gate, trace)
        seen_trace.opened = trace.opened
        for finding in findings:
            span_index = finding.first - 1  # findings number spans from 1
            key = finding.rule, finding.mode.slug, trace.span(span_index).key
            if key in seen_trace.digests and not compares_texts:
                continue
            digest = blake2b(
                trace.text(span_index).encode("utf-8", "surrogatepass"), digest_size=8
            ).digest()
            if seen_trace.digests.get(key) != digest:
                seen_trace.digests[key] = digest
                yield finding


def _sub_agent_paths(path: Path, members: Sequence[str]) -> tuple[Path, ...]:
    """Return the files of a run's sub-agents, and the folders in which new ones may appear.

    A new file changes the state of its folder.
    """
    files = tuple(map(Path, members))
    # Some agents store sub-agents in a folder with the name of the session.
    sub_folder = path.parent / path.name.split(".jsonl")[0]
    folders = dict.fromkeys((path.parent, sub_folder, *(file.parent for file in files)))
    return (*files, *(folder for folder in folders if is_folder(folder)))


def _is_sub_agent(path: Path) -> bool:
    if not may_hold_thread(path):
        return False
    thread = thread_of(path)
    return thread is not None and thread.parent is not None


def _path_state(path: Path) -> _FileState:
    """Return the metadata of a file, or those of all files in a folder."""
    if is_folder(path):
        return tuple(
            (file, _file_stamp(file)) for file in sorted(path.rglob("*")) if not is_folder(file)
        )
    return _file_stamp(path)


def _file_stamp(path: Path) -> _FileState:
    """Return the device, inode, size and time of change of a file; None if it is missing."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
