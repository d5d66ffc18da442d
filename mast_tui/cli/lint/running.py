"""Traces that are still being written: what a judge finds in them that it has not told yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mast_tui.cli.lint.findings import PlacedFinding, judged_now
from mast_tui.traces.io.regular_files import is_folder
from mast_tui.traces.library import scan
from mast_tui.traces.scan.folder import entries_under
from mast_tui.traces.scan.sub_agents import may_hold_thread, members_beside, thread_of

if TYPE_CHECKING:
    from mast_tui.cli.lint.gate import Gate
    from mast_tui.judges.rules import RulesJudge
    from mast_tui.traces.io.opened_file import OpenedFile
    from mast_tui.traces.model import FileReport, Trace

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
        return {run for run in same if new.isdisjoint(members_beside(run))} if new else same

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
