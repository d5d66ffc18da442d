"""The data of the benchmarks: made once from a seed, kept in a folder outside the checkout."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import orjson
from platformdirs import user_cache_path

from mast_tui.labels import Finding, Label, PassKind, Target
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.library import read_file, read_fully
from mast_tui.workspace import NewEvent, TraceRecord, Workspace, store_judgement
from mast_tui.workspace.events.types import Fact, LabelAdded, PassStarted
from tests.benchmarks.documents import write_document
from tests.benchmarks.rollouts import RolloutFacts, small_traces, write_long, write_short

SEED: Final = 7
VERSION: Final = 1
"""Grows whenever the same seed would make other data, so that none of the old is used."""

MEGABYTE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Rollout:
    """A rollout on disk, with what is known to be in it."""

    path: Path
    facts: RolloutFacts

    def warm(self) -> None:
        """Read the file once, so that it lies in the page cache."""
        with self.path.open("rb") as file:
            while file.read(16 << 20):
                pass


class Data:
    """Input of the benchmarks, each part made when it is first needed.

    A part is written under another name and renamed when it is complete.
    """

    def __init__(self, folder: Path | None = None, *, seed: int = SEED) -> None:
        if folder is None:
            folder = user_cache_path("mast-tui", appauthor=False) / "benchmarks"
        self.folder = folder / f"v{VERSION}-seed{seed}"
        self._seed = seed

    def long_rollout(self, megabytes: int) -> Rollout:
        """Return a rollout of about this size with the usual mix of records."""
        size = megabytes * MEGABYTE
        name = f"long-{megabytes}mb.jsonl"
        return self._rollout(name, lambda path: write_long(path, size, seed=self._seed))

    def short_rollout(self, spans: int) -> Rollout:
        """Return a rollout with this number of spans on short lines."""
        name = f"short-{spans}.jsonl"
        return self._rollout(name, lambda path: write_short(path, spans, seed=self._seed))

    def library(self, traces: int) -> Path:
        """Return a folder with this number of small traces."""

        def write(folder: Path) -> None:
            folder.mkdir()
            for name, content in small_traces(traces, seed=self._seed):
                (folder / name).write_bytes(content)

        return self._made(f"library-{traces}", write)

    def document(self, megabytes: int, layout: str) -> Path:
        """Return a JSON document of about this size, in one of ``LAYOUTS``."""

        def write(path: Path) -> None:
            write_document(path, megabytes * MEGABYTE, layout, seed=self._seed)

        return self._made(f"{layout}-{megabytes}mb.json", write)

    def workspace(self, labels: int, rollout: Rollout, into: Path) -> Path:
        """Return a copy of a workspace with this number of labels, in the folder ``into``.

        Some of them stand on the rollout, half of these from ``someone``.
        """
        made = self._made(
            f"workspace-{labels}-{rollout.path.stem}.db",
            lambda path: write_workspace(path, rollout.path, labels),
        )
        return Path(shutil.copy(made, into / "workspace.db"))

    def _rollout(self, name: str, write: Callable[[Path], RolloutFacts]) -> Rollout:
        facts = self.folder / f"{name}.facts.json"

        def write_with_facts(path: Path) -> None:
            facts.write_bytes(orjson.dumps(asdict(write(path))))

        path = self._made(name, write_with_facts)
        values = orjson.loads(facts.read_bytes())
        return Rollout(path, RolloutFacts(values["spans"], values["lines"], tuple(values["rare"])))

    def _made(self, name: str, write: Callable[[Path], None]) -> Path:
        path = self.folder / name
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            partly = self.folder / f"{name}.part"
            if partly.is_dir():
                shutil.rmtree(partly)
            partly.unlink(missing_ok=True)
            write(partly)
            partly.rename(path)
        return path


ANNOTATOR: Final = "someone"
ANNOTATORS: Final = (ANNOTATOR, "another")
PER_TRACE: Final = 200
"""Labels on one trace, of all annotators together."""


def write_workspace(path: Path, rollout: Path, labels: int) -> None:
    """Write a workspace with ``labels`` labels; the first trace in it is the rollout.

    The journal is folded into the file at the end, so that the file can be copied by itself.
    """
    (trace,) = read_file(rollout, named=True).traces
    read_fully(trace)
    taxonomy = load_mast()
    workspace = Workspace.open(path)
    workspace.add_taxonomy(taxonomy)
    modes = [mode.slug for mode in taxonomy.modes]
    keys = [trace.span(index).key for index in range(min(len(trace), PER_TRACE))]
    with workspace.transaction():
        for number in range(max(1, labels // PER_TRACE)):
            record = (
                TraceRecord.from_trace(trace) if number == 0 else TraceRecord(f"trace-{number:05d}")
            )
            trace_id = workspace.register_trace(record)
            count = min(labels, PER_TRACE) // len(ANNOTATORS)
            for annotator in ANNOTATORS:
                workspace.append(
                    _events(workspace, annotator, trace_id, taxonomy.ref, modes, keys, count)
                )
    workspace.close()


def suggest(path: Path, rollout: Path, count: int) -> None:
    """Let a judge suggest a mode on ``count`` spans of a rollout, one after the other.

    ``path`` is the workspace, which gets them in addition to what is there.
    """
    (trace,) = read_file(rollout, named=True).traces
    read_fully(trace)
    taxonomy = load_mast()
    workspace = Workspace.open(path)
    keys = [trace.span(len(trace) - 1 - number).key for number in range(count)]
    store_judgement(
        workspace,
        judge="judge:rules@1",
        taxonomy=taxonomy.ref,
        trace_id=workspace.register_trace(TraceRecord.from_trace(trace)),
        looks_at=[mode.slug for mode in taxonomy.modes],
        findings=[Finding(taxonomy.modes[0].slug, key, key, "because", 0.5) for key in keys],
    )
    workspace.close()


def _events(
    workspace: Workspace,
    annotator: str,
    trace_id: str,
    taxonomy: str,
    modes: Sequence[str],
    keys: Sequence[str],
    count: int,
) -> list[NewEvent]:
    """Return a pass of one annotator over one trace with ``count`` labels."""

    def label(number: int) -> Label:
        key = keys[number % len(keys)]
        return Label(
            id=workspace.new_id(),
            annotator=annotator,
            trace_id=trace_id,
            taxonomy=taxonomy,
            mode=modes[number % len(modes)],
            target=Target(key, key),
        )

    facts: list[Fact] = [
        PassStarted(PassKind.ASSISTED),
        *(LabelAdded(label(n)) for n in range(count)),
    ]
    return [NewEvent(annotator, trace_id, taxonomy, 1, fact) for fact in facts]
