"""The data of the benchmarks: made once from a seed, kept in a folder outside the checkout."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import orjson
from platformdirs import user_cache_path

from tests.benchmarks.documents import write_document
from tests.benchmarks.rollouts import RolloutFacts, small_traces, write_long, write_short
from tests.benchmarks.workspaces import write_workspace

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
    """What the benchmarks read; each thing is made when it is first asked for.

    A thing is written under another name and then renamed: what has its name is whole.
    """

    def __init__(self, folder: Path | None = None, *, seed: int = SEED) -> None:
        if folder is None:
            folder = user_cache_path("mast-tui", appauthor=False) / "benchmarks"
        self.folder = folder / f"v{VERSION}-seed{seed}"
        self._seed = seed

    def long_rollout(self, megabytes: int) -> Rollout:
        """About so many megabytes of the usual mix of records."""
        size = megabytes * MEGABYTE
        name = f"long-{megabytes}mb.jsonl"
        return self._rollout(name, lambda path: write_long(path, size, seed=self._seed))

    def short_rollout(self, spans: int) -> Rollout:
        """So many spans on short lines."""
        name = f"short-{spans}.jsonl"
        return self._rollout(name, lambda path: write_short(path, spans, seed=self._seed))

    def library(self, traces: int) -> Path:
        """A folder of so many small traces."""

        def write(folder: Path) -> None:
            folder.mkdir()
            for name, content in small_traces(traces, seed=self._seed):
                (folder / name).write_bytes(content)

        return self._made(f"library-{traces}", write)

    def document(self, megabytes: int, layout: str) -> Path:
        """A JSON document of about so many megabytes, in one of ``LAYOUTS``."""

        def write(path: Path) -> None:
            write_document(path, megabytes * MEGABYTE, layout, seed=self._seed)

        return self._made(f"{layout}-{megabytes}mb.json", write)

    def workspace(self, labels: int, rollout: Rollout, into: Path) -> Path:
        """A copy, in the folder ``into``, of a workspace with so many labels.

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
        known = orjson.loads(facts.read_bytes())
        return Rollout(path, RolloutFacts(known["spans"], known["lines"], tuple(known["rare"])))

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
