"""The files of sub-agents and of the runs above them, found by the first bytes of each file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import orjson

from mast_tui.traces.io.json_values import as_text
from mast_tui.traces.io.packed import packing_of
from mast_tui.traces.io.regular_files import open_regular
from mast_tui.traces.io.remote import RemotePath
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import Thread
from mast_tui.traces.readers.base import is_gemini_shaped

_HEAD_BYTES: Final = 64 * 1024
_MOST_NEIGHBOURS: Final = 500
"""The most files near a named file that are examined for its sub-agents."""

_MARK_BYTES: Final = 200
"""The length within which a Codex rollout has its mark, in bytes."""
_CODEX_SYSTEM: Final = "codex"
_CLAUDE_SYSTEM: Final = "claude-code"
_CODEX_MARK: Final = re.compile(rb'"type"\s*:\s*"session_meta"')
_CLAUDE_MARK: Final = rb'"sessionId"\s*:'
_CODEX_ID: Final = re.compile(rb'"payload"\s*:\s*\{[^{}]*?"id"\s*:\s*"([^"\\]+)"')
_CODEX_PARENT: Final = re.compile(rb'"parent_thread_id"\s*:\s*"([^"\\]+)"')
_NAME_OF_THREAD: Final = r"rollout-|agent-|[0-9a-f]{8}-[0-9a-f]{4}-"
_SUFFIXES: Final = (".jsonl", ".jsonl.zst", ".jsonl.gz")


class Threads:
    """The sub-agents among some files.

    Attributes:
        members: The files of sub-agents, in the order of the files, by the file of their run.
        run_of: The file of the run, by the file of each sub-agent.
    """

    def __init__(self) -> None:
        self.members: dict[Path, list[Path]] = {}
        self.run_of: dict[Path, Path] = {}


def may_hold_thread(path: Path) -> bool:
    """Return whether a file may hold a thread (one agent's part of a run), by its name.

    A remote file must have a name of Codex or Claude Code, because each look into it costs a
    request.
    """
    if isinstance(path, RemotePath) and re.match(_NAME_OF_THREAD, path.name) is None:
        return False
    return path.name.endswith(_SUFFIXES)


def threads_among(
    paths: Iterable[Path], known_thread: Callable[[Path], Thread | None] | None = None
) -> Threads:
    """Return the sub-agents among files, without sub-agents whose run is missing.

    Only the beginning of each file is read. Files that cannot be read are ignored.

    Args:
        paths: The files.
        known_thread: Returns the thread (one agent's part of a run) of a file; None for
            ``thread_of``.
    """
    find_thread = known_thread or thread_of
    threads_by_path = {}
    for path in paths:
        thread = find_thread(path)
        if thread is not None:
            threads_by_path[path] = thread
    located_threads = _located_threads(threads_by_path)
    threads = Threads()
    for path, thread in threads_by_path.items():
        thread = _with_known_parent(path, thread, located_threads)
        main_file = _main_file_of_run(thread, located_threads)
        if main_file is not None and main_file != path:
            threads.run_of[path] = main_file
            threads.members.setdefault(main_file, []).append(path)
    return threads


class _LocatedThread(NamedTuple):
    """The file of a thread, and the id of its parent; None for the main thread of a run."""

    path: Path
    parent: str | None


_LocatedThreads: TypeAlias = Mapping[tuple[str, str], _LocatedThread]
"""The threads of several files, each by its system and id."""


def _located_threads(threads_by_path: Mapping[Path, Thread]) -> _LocatedThreads:
    """Return threads by their ids, main threads also by the name of their file."""
    located_threads = {
        (thread.system, thread.id): _LocatedThread(path, thread.parent)
        for path, thread in threads_by_path.items()
    }
    for path, thread in threads_by_path.items():
        # A resumed session begins with the records of an earlier one. Its own id is its file name.
        if thread.parent is None:
            own_id = path.name.split(".jsonl")[0]
            located_threads.setdefault((thread.system, own_id), _LocatedThread(path, None))
    return located_threads


def _with_known_parent(path: Path, thread: Thread, located_threads: _LocatedThreads) -> Thread:
    """Return a sub-agent with an unknown parent replaced by the run that names its folder.

    A resumed run may have another id than its folder.
    """
    if thread.parent is None or (thread.system, thread.parent) in located_threads:
        return thread
    run_folders = (folder.parent for folder in path.parents if folder.name == "subagents")
    run_folder = next(run_folders, None)
    return thread if run_folder is None else thread._replace(parent=run_folder.name)


def sub_agents_of(path: Path) -> list[Path]:
    """Return the files of the sub-agents of a run, from the file of its main thread.

    They are in the folder of the file, or in the folder with the name of the file.
    """
    if not may_hold_thread(path):
        return []
    thread = thread_of(path)
    if thread is None or thread.parent is not None:
        return []
    neighbours = [other for other in path.parent.glob("*.jsonl*") if other != path]
    stem = path.name.split(".jsonl")[0]
    files_in_own_folder = list((path.parent / stem).glob("**/*.jsonl*"))
    files = (*files_in_own_folder, *neighbours)
    candidates = [other for other in files if may_hold_thread(other)]
    threads = threads_among([path, *candidates[:_MOST_NEIGHBOURS]])
    return sorted(threads.members.get(path, []))


def thread_of(path: Path) -> Thread | None:
    """Return the thread (one agent's part of a run) in a file of Codex or Claude Code, if any."""
    try:
        head = _head_of(path)
    except OSError:
        return None
    if _CODEX_MARK.search(head[:_MARK_BYTES]) is not None:
        thread_id = _CODEX_ID.search(head)
        parent_id = _CODEX_PARENT.search(head)
        if thread_id is None:
            return None
        parent = _decoded_id(parent_id[1]) if parent_id else None
        return Thread(_decoded_id(thread_id[1]), parent, _CODEX_SYSTEM)
    return _claude_thread(head) if re.search(_CLAUDE_MARK, head) is not None else None


def _claude_thread(head: bytes) -> Thread | None:
    """Return the thread of the first complete record of a Claude Code session, if any."""
    for line in head.split(b"\n"):
        if re.search(_CLAUDE_MARK, line) is None:
            continue
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        session = as_text(record.get("sessionId")) if isinstance(record, Mapping) else None
        if session is None or "uuid" not in record:
            continue
        if is_gemini_shaped(record):
            return None  # a session of another program, whose ids have another meaning
        agent = as_text(record.get("agentId"))
        if agent is not None and record.get("isSidechain") is True:
            return Thread(agent, session, _CLAUDE_SYSTEM)
        return Thread(session, None, _CLAUDE_SYSTEM)
    return None


def _head_of(path: Path) -> bytes:
    """Return the first bytes of a file, unpacked if it is compressed."""
    if isinstance(path, RemotePath):
        head = path.beginning(_HEAD_BYTES)
    else:
        with open_regular(path) as file:
            head = file.read(_HEAD_BYTES)
    return head if packing_of(head) is None else Source(path).head


def _main_file_of_run(thread: Thread, located_threads: _LocatedThreads) -> Path | None:
    """Return the file of the outermost known parent of a thread; None if no parent is known."""
    seen_ids = {thread.id}
    parent = thread.parent
    path = None
    while parent is not None and (thread.system, parent) in located_threads:
        if parent in seen_ids:
            return None  # the parents form a circle
        seen_ids.add(parent)
        path, parent = located_threads[thread.system, parent]
    return path


def _decoded_id(name: bytes) -> str:
    return name.decode("utf-8", "replace")
