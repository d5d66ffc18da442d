"""Workers that are this process: what they are sent and what they answer is pickled."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

from mast_tui.parallel import LOST, BatchResults, LostItem, Work, Workers, WorkerTask


class PickledWorkers(Workers):
    """Does one batch at a time; by number some are lost, as if killed, and some come late."""

    def __init__(self, lost: Sequence[int] = (), late: Sequence[int] = ()) -> None:
        self.count = 1
        self.description = "1 process"
        self.batches = 0
        self._lost = frozenset(lost)
        self._late = set(late)
        self._given: tuple[Work[Any, Any], WorkerTask] | None = None

    def _free_slots(self) -> int:
        return int(self._given is None)

    def _send_batch(self, work: Work[Any, Any], task: WorkerTask) -> None:
        self._given = work, task

    def _receive_messages(
        self, _patience: float | None
    ) -> list[tuple[WorkerTask, BatchResults | LostItem | None]]:
        assert self._given is not None
        if self.batches in self._late:
            self._late.remove(self.batches)
            return []
        (work, task), self._given = self._given, None
        self.batches += 1
        if self.batches in self._lost:
            return [(task, LOST)]
        sent, batch = pickle.loads(pickle.dumps((work, task.batch)))
        return [(task, pickle.loads(pickle.dumps(BatchResults([*sent(batch)]))))]

    def close(self) -> None:
        self._given = None
