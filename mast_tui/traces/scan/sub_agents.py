"""Which files hold sub-agents of which run, told from the first bytes of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

import orjson

from mast_tui.traces.io.json_values import as_text
from mast_tui.traces.io.packed import packing_of
from mast_tui.traces.io.regular_files import open_regular
from mast_tui.traces.io.remote import RemotePath
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import Thread
from mast_tui.traces.readers.claude_code.records import is_gemini_shaped

_LOOKED_AT: Final = 64 * 1024
_MOST_BESIDE: Final = 500
"""Of how many files beside a named one it is looked whether they are its sub-agents."""

_CODEX_SYSTEM: Final = "codex"
_CLAUDE_SYSTEM: Final = "claude-code"
_CODEX: Final = re.compile(rb'"type"\s*:\s*"session_meta"')
_CLAUDE: Final = re.compile(rb'"sessionId"\s*:')
_CODEX_ID: Final = re.compile(rb'"payload"\s*:\s*\{[^{}]*?"id"\s*:\s*"([^"\\]+)"')
_CODEX_PARENT: Final = re.compile(rb'"parent_thread_id"\s*:\s*"([^"\\]+)"')
_NAME_OF_THREAD: Final = re.compile(r"rollout-|agent-|[0-9a-f]{8}-[0-9a-f]{4}-")
_SUFFIXES: Final = (".jsonl", ".jsonl.zst", ".jsonl.gz")


class Threads:
    """The sub-agents among some files: of each run's file its members, in sorted order."""

    def __init__(self) -> None:
        self.members: dict[Path, list[Path]] = {}
        self.run_of: dict[Path, Path] = {}


def may_hold_thread(path: Path) -> bool:
    """Whether a file's name leaves it open that it is one thread of a run.

    Of one that lies elsewhere it must be such a name as Codex and Claude Code give: looking into
    each costs a request.
    """
    if isinstance(path, RemotePath) and _NAME_OF_THREAD.match(path.name) is None:
        return False
    return path.name.endswith(_SUFFIXES)


def threads_among(
    paths: Iterable[Path], told: Callable[[Path], Thread | None] | None = None
) -> Threads:
    """Who is whose sub-agent among the files; one whose run is not there stands for itself.

    Only the beginning of each file is read, unless ``told`` knows it already. What cannot be read
    is left for others to report.
    """
    look = told or thread_of
    heads = {path: thread for path in paths if (thread := look(path)) is not None}
    parents = {(thread.system, thread.id): (path, thread.parent) for path, thread in heads.items()}
    for path, thread in heads.items():
        # A session that was resumed begins with another's records; its file has its own id.
        if thread.parent is None:
            name = path.name.split(".jsonl")[0]
            parents.setdefault((thread.system, name), (path, None))
    found = Threads()
    for path, thread in heads.items():
        run = _run_of(thread, parents)
        if run is not None and run != path:
            found.run_of[path] = run
            found.members.setdefault(run, []).append(path)
    return found


def members_beside(path: Path) -> list[Path]:
    """The sub-agents of a run whose file was named alone.

    They are looked for beside it, and in a folder of its name.
    """
    if not may_hold_thread(path):
        return []
    own = thread_of(path)
    if own is None or own.parent is not None:
        return []
    beside = [other for other in path.parent.glob("*.jsonl*") if other != path]
    stem = path.name.split(".jsonl")[0]
    below = list((path.parent / stem).glob("**/*.jsonl*"))
    candidates = [other for other in (*below, *beside) if may_hold_thread(other)]
    found = threads_among([path, *candidates[:_MOST_BESIDE]])
    return sorted(found.members.get(path, []))


def thread_of(path: Path) -> Thread | None:
    """The thread that a Codex rollout or a Claude Code session holds; None for other files."""
    try:
        head = _head(path)
    except OSError:
        return None
    if _CODEX.search(head[:200]) is not None:
        own = _CODEX_ID.search(head)
        parent = _CODEX_PARENT.search(head)
        if own is None:
            return None
        return Thread(_decoded(own[1]), _decoded(parent[1]) if parent else None, _CODEX_SYSTEM)
    return _claude_thread(head) if _CLAUDE.search(head) is not None else None


def _claude_thread(head: bytes) -> Thread | None:
    for line in head.split(b"\n"):
        if _CLAUDE.search(line) is None:
            continue
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        session = as_text(record.get("sessionId")) if isinstance(record, Mapping) else None
        if session is None or "uuid" not in record:
            continue
        if is_gemini_shaped(record):
            return None  # of another program, whose ids mean nothing beside those of Claude Code
        agent = as_text(record.get("agentId"))
        if agent is not None and record.get("isSidechain") is True:
            return Thread(agent, session, _CLAUDE_SYSTEM)
        return Thread(session, None, _CLAUDE_SYSTEM)
    return None


def _head(path: Path) -> bytes:
    if isinstance(path, RemotePath):
        head = path.beginning(_LOOKED_AT)
    else:
        with open_regular(path) as file:
            head = file.read(_LOOKED_AT)
    return head if packing_of(head) is None else Source(path).head


def _run_of(
    thread: Thread, parents: Mapping[tuple[str, str], tuple[Path, str | None]]
) -> Path | None:
    """Return the file of the first thread of a run; None where it is absent or is this one.

    Args:
        thread: A thread.
        parents: The file and the parent of each thread, by its system and id.
    """
    passed = {thread.id}
    parent = thread.parent
    path = None
    while parent is not None and (thread.system, parent) in parents:
        if parent in passed:
            return None
        passed.add(parent)
        path, parent = parents[thread.system, parent]
    return path


def _decoded(name: bytes) -> str:
    return name.decode("utf-8", "replace")
