"""Traces and annotators of which a workspace has never heard: a slip of the pen, or new ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from mast_tui.exchange.errors import Remedy, RowProblem
from mast_tui.exchange.import_batch import Incoming
from mast_tui.exchange.importers.label_studio_import import CHANGED_THERE
from mast_tui.exchange.jsonl import Content
from mast_tui.labels import AnnotatorKind
from mast_tui.workspace import Workspace

_NEAR: Final = 60.0
"""From this likeness on (0 to 100) a known name is told as the one that may be meant."""

_NAMES_COMPARED: Final = 50
"""So many unknown names are held against all known ones: that takes time, and nobody reads more."""

_NO_TRACE: Final = "no trace of this id is known here"
_NOBODY: Final = "nobody of this name is known here"


def without_unknown(incoming: Incoming, workspace: Workspace, *, named: str | None) -> Incoming:
    """Leave out what is about traces or by annotators that the workspace does not know.

    Where it knows no trace, or nobody but judges, all of them are taken.

    Args:
        incoming: what was read.
        workspace: what is to take it.
        named: whom ``--annotator`` names: asked for by that name, so no slip of the file.

    Returns:
        What is left, with a problem for each name that is not known.
    """
    known_traces = [record.trace_id for record in workspace.traces()]
    strange_traces = set[str]()
    if known_traces:
        strange_traces = {
            record.trace_id for record in incoming.traces if workspace.find_trace(record) is None
        }
    known_people = _known_people(workspace)
    strange_people = set[str]()
    if known_people:
        names = {work.annotator for work in incoming.work}
        strange_people = {
            name
            for name in names - {named}
            # What somebody who is known here changed there goes by a name that follows from theirs.
            if name.removesuffix(CHANGED_THERE) not in known_people
        }
    if not strange_traces and not strange_people:
        return incoming
    files: dict[tuple[str, str], Path] = {}
    for work in incoming.work:
        files.setdefault(("trace", work.trace_id), work.file)
        files.setdefault(("person", work.annotator), work.file)
    problems = [
        *_problems(files, "trace", strange_traces, known_traces, _NO_TRACE),
        *_problems(files, "person", strange_people, known_people, _NOBODY),
    ]
    return replace(
        incoming,
        traces=tuple(one for one in incoming.traces if one.trace_id not in strange_traces),
        work=tuple(
            one
            for one in incoming.work
            if one.trace_id not in strange_traces and one.annotator not in strange_people
        ),
        problems=(*incoming.problems, *problems),
    )


def unknown_people(file: Path, content: Content, workspace: Workspace) -> list[RowProblem]:
    """Whoever has events in a workspace's export, but is in neither its register nor the workspace.

    Args:
        file: the export.
        content: what it holds.
        workspace: what is to take it.
    """
    known = _known_people(workspace)
    if not known:
        return []
    registered = {name for name, _ in content.annotators}
    strange = {event.annotator for event in content.foreign.events} - registered - set(known)
    files = {("person", name): file for name in strange}
    return list(_problems(files, "person", strange, known, _NOBODY))


def _known_people(workspace: Workspace) -> list[str]:
    """Everybody who is known, judges too, unless only judges are."""
    known = workspace.annotators()
    has_people = any(one.kind is not AnnotatorKind.JUDGE for one in known)
    return [one.name for one in known] if has_people else []


def _problems(
    files: dict[tuple[str, str], Path],
    kind: str,
    strange: Iterable[str],
    known: Collection[str],
    otherwise: str,
) -> Iterator[RowProblem]:
    for number, name in enumerate(sorted(strange)):
        near = _nearest(name, known) if number < _NAMES_COMPARED else None
        reason = otherwise if near is None else f"did you mean {near}? {otherwise}"
        file = files.get((kind, name), Path("-"))
        yield RowProblem(file, name, reason, Remedy.ALLOW_NEW)


def _nearest(name: str, known: Collection[str]) -> str | None:
    from rapidfuzz import fuzz, process

    found = process.extractOne(name, known, scorer=fuzz.ratio, score_cutoff=_NEAR)
    return None if found is None else str(found[0])
