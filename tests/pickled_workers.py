"""Workers in the process of the test; tasks and results are pickled as between processes."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

from mast_tui.parallel import LOST, BatchResults, LostItem, Work, Workers, WorkerTask


class PickledWorkers(Workers):
    """Workers that do one batch at a time.

    Args:
        lost: The numbers of batches whose worker seems to be killed.
        late: The numbers of batches without results at the first request.
    """

    def __init__(self, lost: Sequence[int] = (), late: Sequence[int] = ()) -> None:
        self.count = 1
        self.description = "1 process"
        self.batches = 0
        self._lost = frozenset(lost)
        self._late = set(late)
        self._pending: tuple[Work[Any, Any], WorkerTask] | None = None

    def _free_slots(self) -> int:
        return int(self._pending is None)

    def _send_batch(self, work: Work[Any, Any], task: WorkerTask) -> None:
        self._pending = work, task

    def _receive_messages(
        self, _patience: float | None
    ) -> list[tuple[WorkerTask, BatchResults | LostItem | None]]:
        assert self._pending is not None
        if self.batches in self._late:
            self._late.remove(self.batches)
            return []
        (work, task), self._pending = self._pending, None
        self.batches += 1
        if self.batches in self._lost:
            return [(task, LOST)]
        unpickled_work, batch = pickle.loads(pickle.dumps((work, task.batch)))
        return [(task, pickle.loads(pickle.dumps(BatchResults([*unpickled_work(batch)]))))]

    def close(self) -> None:
        self._pending = None
