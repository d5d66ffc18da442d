"""The workers of a cluster with a Dask scheduler, which the extra ``cluster`` installs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError
from importlib import import_module
from typing import Any, Final
from urllib.parse import urlsplit

from mast_tui import __version__
from mast_tui.parallel import (
    LOST,
    QUEUED,
    BatchMessage,
    BatchResults,
    Item,
    NoWorkers,
    Result,
    Work,
    Workers,
    WorkerTask,
)

_PATIENCE: Final = 30
"""The seconds to wait for a cluster."""

_LEAVING: Final = 2
"""The seconds to wait for the end of a connection, because the cluster may be gone."""


class Cluster(Workers):
    """The workers of a Dask scheduler, which replaces workers that are killed."""

    is_remote = True

    def __init__(self, address: str) -> None:
        """Connect to the scheduler, and wait for a worker.

        Args:
            address: The address of the scheduler, such as ``tcp://localhost:8786``.

        Raises:
            NoWorkers: Dask is not installed, no scheduler answers, it has no workers, or they have
                another version of the package.
        """
        try:
            self._dask = import_module("distributed")
        except ImportError:
            raise NoWorkers(
                f"{address}: a cluster needs Dask; install it with: pip install 'mast-tui[cluster]'"
            ) from None
        try:
            self._client = self._dask.Client(address, timeout=_PATIENCE)
        except (OSError, ValueError) as error:
            raise NoWorkers(
                f"{address}: no Dask scheduler answers ({error}); start one with 'dask scheduler'"
            ) from None
        try:
            self._client.wait_for_workers(1, timeout=_PATIENCE)
            _check_versions(self._client.run(_package_version))
        except TimeoutError:
            self._client.close()
            raise NoWorkers(
                f"{address}: this scheduler has no workers; start one with 'dask worker {address}'"
            ) from None
        except Exception:
            self._client.close()
            raise
        self.host = import_module("distributed.utils").get_ip(urlsplit(address).hostname)
        self.count = sum(self._client.nthreads().values())
        self.description = f"{self.count} at {address}; dashboard: {self._client.dashboard_link}"
        self._under_way: dict[Any, WorkerTask] = {}

    def _free_slots(self) -> int:
        return QUEUED * self.count - len(self._under_way)

    def _send_batch(self, work: Work[Any, Any], task: WorkerTask) -> None:
        future = self._client.submit(_all_of, work, task.batch, pure=False)
        self._under_way[future] = task

    def _receive_messages(self, timeout: float | None) -> Sequence[BatchMessage]:
        """Return the results of finished tasks; empty if none is finished in time."""
        try:
            finished_futures, _ = self._dask.wait(
                [*self._under_way], timeout=timeout, return_when="FIRST_COMPLETED"
            )
        except TimeoutError:
            return []
        except CancelledError:
            raise self._scheduler_gone_error() from None
        messages: list[BatchMessage] = []
        for future in finished_futures:
            task = self._under_way.pop(future)
            if future.status not in ("finished", "error"):
                raise self._scheduler_gone_error()
            error = future.exception()
            if error is None:
                messages.append((task, BatchResults(future.result())))
            elif isinstance(error, self._dask.KilledWorker):
                messages.append((task, LOST))
            else:
                raise error
        return messages

    def _scheduler_gone_error(self) -> NoWorkers:
        return NoWorkers(
            f"the Dask scheduler at {self._client.scheduler.addr} is gone; start one, then run "
            "the same command to continue"
        )

    def close(self) -> None:
        """Close the connection; Dask then drops the tasks without a client."""
        self._client.close(timeout=_LEAVING)


def _all_of(work: Work[Item, Result], batch: Sequence[Item]) -> list[Result]:
    return [*work(batch)]


def _package_version() -> str:
    return __version__


def _check_versions(versions: Mapping[str, str]) -> None:
    """Refuse workers with another version of the package."""
    for worker, version in versions.items():
        if version != __version__:
            raise NoWorkers(
                f"the worker at {worker} has mast-tui {version}, but this is {__version__}, so "
                "findings could differ; install the same version there"
            )
