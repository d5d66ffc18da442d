"""Folders of small traces that several annotators have labelled."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mast_tui.gold import Decision
from mast_tui.labels import Pass, PassKind, Target, VerdictValue
from mast_tui.session import Session
from mast_tui.study.model import Study
from mast_tui.traces.model import Trace
from mast_tui.ui.adjudicate.screen import AdjudicateScreen
from mast_tui.ui.base_screen import BaseScreen
from mast_tui.workspace import NewEvent, Workspace
from mast_tui.workspace.events.types import StudySet
from tests.ui.stage import CODES, MAST, SLUGS, SMALL, Stage, read_trace, stage, write_trace

CodeLabels = Mapping[str, "tuple[int, int] | str | VerdictValue"]
"""By code of a mode: the labelled spans (from 1), a quote, or a verdict."""


@dataclass(slots=True)
class TeamDir:
    """A folder of traces and the workspace of the annotators who label them."""

    folder: Path

    @property
    def workspace(self) -> Path:
        """The file of the workspace."""
        return self.folder.parent / "labels.db"

    @contextmanager
    def store(self) -> Iterator[Workspace]:
        """Open the workspace, and close it at the end of the block."""
        with closing(Workspace.open(self.workspace)) as store:
            yield store

    def file(self, name: str) -> Path:
        """Write a trace under this name, and return its path."""
        first = {"role": "user", "content": f"{name}: find out why the checkout is slow."}
        return write_trace(self.folder / f"{name}.json", (first, *SMALL[1:]), id=name)

    def trace(self, name: str) -> Trace:
        """Read the trace of this name; write it first if it is missing."""
        path = self.folder / f"{name}.json"
        return read_trace(path if path.exists() else self.file(name))

    def label(
        self, annotator: str, name: str, labels: CodeLabels, *, note: str = "", finish: bool = True
    ) -> None:
        """Label a trace as an annotator, and finish it with all other modes absent."""
        trace = self.trace(name)
        with self.store() as store:
            session = Session.open(store, trace, MAST, annotator, blind=False)
            for code, label in labels.items():
                if isinstance(label, VerdictValue):
                    session.set_verdict(SLUGS[code], label)
                    continue
                target = _target(trace, label)
                session.toggle_label(SLUGS[code], target, suggestions_on_screen=False)
                if note:
                    session.edit_label(session.labels[-1].id, note=note)
            if not labels:
                session.mark_read([trace.span(0).key])
            if finish:
                session.finish(open_modes="absent")

    def decisions(self, name: str) -> dict[str, Decision]:
        """Return the decisions on a trace by code of the mode, with ``@`` for boundaries."""
        with self.store() as store:
            decisions = store.decisions(self.trace_id(store, name), MAST.ref)
        return {CODES[d.mode] if d.is_verdict else f"{CODES[d.mode]}@": d for d in decisions}

    def passes(self, annotator: str, name: str) -> tuple[Pass, ...]:
        """Return an annotator's passes over a trace."""
        with self.store() as store:
            return store.passes(annotator=annotator, trace_id=self.trace_id(store, name))

    def adjudicates(self, annotator: str, name: str) -> bool:
        """Return whether an annotator has started to adjudicate a trace."""
        passes = self.passes(annotator, name)
        return any(labelling.kind is PassKind.ADJUDICATION for labelling in passes)

    def lose_order(self, *names: str) -> None:
        """Delete the files of traces and the stored indices of spans."""
        with self.store() as store, store._database.writing() as connection:
            connection.exec_driver_sql("DELETE FROM span_indices")
        for name in names:
            (self.folder / f"{name}.json").unlink()

    def set_study(self, *traces: str, author: str = "alice", **fields: object) -> Study:
        """Set up a study of alice and bob with the adjudicator carol, over all traces by default.

        Args:
            traces: The ids of the traces.
            author: The person who sets it up.
            fields: Other fields of the study.
        """
        with self.store() as store:
            ids = traces or tuple(record.trace_id for record in store.traces())
            people = {"annotators": ("alice", "bob"), "adjudicators": ("carol",)}
            study = Study(MAST.ref, batches=(ids,), **{**people, **fields})  # type: ignore[arg-type]
            store.append([NewEvent(author, None, MAST.ref, None, StudySet(None, study))])
        return study

    def trace_id(self, store: Workspace, name: str) -> str:
        """Return the id of the trace of this name."""
        return next(
            r.trace_id for r in store.traces() if r.path is not None and r.path.stem == name
        )


def last_message(on: Stage) -> str:
    """Return the message in the last line of the screen."""
    assert isinstance(on.app.screen, BaseScreen)
    return on.app.screen.hints.message


def _target(trace: Trace, part: tuple[int, int] | str) -> Target:
    if isinstance(part, tuple):
        first, last = part
        return Target(trace.span(first - 1).key, trace.span(last - 1).key)
    for index in range(len(trace)):
        start = trace.text(index).find(part)
        if start >= 0:
            key = trace.span(index).key
            return Target(key, key, part, start, start + len(part))
    raise AssertionError(f"no span contains {part!r}")


@asynccontextmanager
async def screen_of_key(
    key: str,
    kind: type[BaseScreen],
    team: TeamDir,
    annotator: str = "alice",
    *,
    size: tuple[int, int] = (120, 40),
    blind: bool = False,
) -> AsyncIterator[Stage]:
    """Open the traces of a team, press a key, and check that it opens a screen of this kind."""
    async with stage(
        team.folder, workspace=team.workspace, annotator=annotator, size=size, blind=blind
    ) as on:
        await on.press(key)
        on.screen(kind)
        yield on


adjudicating = partial(screen_of_key, "A", AdjudicateScreen)
"""Opens the adjudicate screen."""


def adjudicate(on: Stage) -> AdjudicateScreen:
    """Return the adjudicate screen."""
    return on.open_screen(AdjudicateScreen)


def row_at_cursor(on: Stage) -> str:
    """Return code and state of the row under the cursor of the adjudicate screen."""
    row = adjudicate(on).queue.row
    return "" if row is None else f"{row.code} {row.state}".strip()
