"""Runs of a model judge over files, with a scripted server and a workspace."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mast_tui.judges.llm.request import Parameters
from mast_tui.judges.llm.run.estimate import RunEstimate, estimate_run
from mast_tui.judges.llm.run.running import ModelRunSummary, Watch, run_model_judge
from mast_tui.judges.llm.run.setup import Setup
from mast_tui.taxonomy.loader import load_mast
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.library import scan
from mast_tui.traces.model import Trace
from mast_tui.workspace import Workspace
from mast_tui.workspace.events.types import Judged
from tests.judges.llm.made_answers import write_runs
from tests.judges.llm.server import ModelServer, Seen

MAST = load_mast()


def traces(*folders: Path) -> Iterator[Trace]:
    for folder in folders:
        for report in scan([folder]):
            yield from report.traces


@dataclass
class Bench:
    """A folder with runs, a scripted server and a workspace."""

    folder: Path
    server: ModelServer
    workspace: Workspace
    taxonomy: Taxonomy = MAST
    concurrency: int = 3

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    @property
    def chats(self) -> list[Seen]:
        return self.server.chats

    def write(self, count: int, *, spans: int = 4) -> None:
        write_runs(self.runs, count, spans=spans)

    def write_long(self, count: int, word_count: int, name: str = "runs") -> Path:
        """Write long runs into a folder, which is returned."""
        folder = self.folder / name
        write_long_runs(folder, count, word_count)
        return folder

    def setup(self, **changes: Any) -> Setup:
        setup = Setup(
            taxonomy=self.taxonomy,
            parameters=Parameters("test-model"),
            base_url=self.server.base_url,
            concurrency=self.concurrency,
        )
        return replace(setup, **changes)

    def judge(
        self, *folders: Path, again: bool = False, watch: Watch | None = None, **changes: Any
    ) -> ModelRunSummary:
        """Judge the runs, or those of other folders."""
        chosen = traces(*(folders or (self.runs,)))
        run = run_model_judge(
            self.setup(**changes), chosen, self.workspace, again=again, watch=watch
        )
        return asyncio.run(run)

    def estimate(self, *folders: Path) -> RunEstimate:
        chosen = traces(*(folders or (self.runs,)))
        return estimate_run(self.setup(), chosen, self.workspace)

    def assert_each_judged_once(self, count: int) -> None:
        """Check that this many traces were judged, each once, with one suggestion."""
        judged = [
            event.trace_id for event in self.workspace.events() if isinstance(event.fact, Judged)
        ]
        assert len(judged) == len(set(judged)) == count
        ids = [label.id for label in self.workspace.labels()]
        assert len(ids) == len(set(ids)) == count


def write_long_runs(folder: Path, count: int, word_count: int) -> None:
    """Write runs of ten spans with this many words each, and one word more in each further run."""
    folder.mkdir(parents=True, exist_ok=True)
    for run in range(count):
        messages = [
            {
                "role": ("user", "assistant")[step % 2],
                "content": f"run {run} step {step} " + f"word{step} " * (word_count + run),
            }
            for step in range(10)
        ]
        (folder / f"run-{run:02d}.json").write_text(json.dumps(messages))
