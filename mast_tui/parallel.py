"""Workers that process batches in other processes, on this machine or in a cluster.

Use ``Workers.map(work, batches)``, or ``WorkerProcess`` for one process that sends messages during
a long batch. The result of a batch must depend on the batch alone, because another process repeats
it if a process is killed. Each local process has its own pipe: ``concurrent.futures`` gives up all
pending work when one process is killed, and hangs if that process had half written an answer.
"""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from queue import SimpleQueue
from subprocess import DEVNULL, Popen
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from mast_tui.errors import MastError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Item = TypeVar("Item")
Result = TypeVar("Result")
Work = Callable[[Sequence[Item]], Iterable[Result]]
"""A function from a batch to the results of its items, in order.

If it returns an iterator for a batch of one item, a local process sends each result at once.
"""

_CLUSTER: Final = "mast_tui.scale.cluster"
"""The module of a cluster's workers, imported only by this name."""

AHEAD: Final = 4
"""The batches per worker that run, wait in a queue, or wait for the results of earlier batches."""

QUEUED: Final = 2
"""The batches that are sent to a worker, so that it need not wait for the next one."""

_LOSSES: Final = 3
"""The number of processes that may end during an item before it is given up.

A process may be killed for a reason other than its item.
"""


class NoWorkers(MastError):
    """Workers that are not available, or that are all gone."""


@dataclass(frozen=True, slots=True)
class LostItem:
    """The reason why an item has no result; it takes the place of the result."""

    reason: str


LOST: Final = LostItem("every process that worked on it was killed; is there enough memory?")


@dataclass(slots=True, eq=False)
class WorkerTask:
    """A batch and its results.

    Attributes:
        batch: The items.
        losses: The number of processes that ended during the batch.
        results: The received results that are not yielded yet.
        done: True if all results were received.
        result_count: The number of results received, without repeated ones.
        sent_count: The number of results received from the present process. It repeats the results
            that an earlier process has sent.
    """

    batch: Sequence[Any]
    losses: int = 0
    results: deque[Any] = field(default_factory=deque)
    done: bool = False
    result_count: int = 0
    sent_count: int = 0

    def add_results(self, results: Sequence[Any]) -> None:
        """Add the next results of a process, without those that an earlier process has sent."""
        repeated_count = max(0, self.result_count - self.sent_count)
        self.results.extend(results[repeated_count:])
        self.sent_count += len(results)
        self.result_count = max(self.result_count, self.sent_count)


class BatchResults(NamedTuple):
    """Some results of a batch; ``is_last`` is True for the last ones."""

    results: Sequence[Any]
    is_last: bool = True


BatchMessage = tuple[WorkerTask, BatchResults | LostItem | None]
"""A batch with its results.

``LOST`` instead of results means that the process ended during the batch. None means that it ended
before the batch.
"""


class Workers(AbstractContextManager["Workers"], ABC):
    """Processes that compute batches.

    Attributes:
        count: The number of batches that run at a time.
        description: The number and location of the workers, as users read it.
        is_remote: True if the workers have another working folder than this process.
        host: The address at which the workers reach this machine.
    """

    count: int
    description: str
    is_remote = False
    host = "127.0.0.1"

    @abstractmethod
    def _free_slots(self) -> int:
        """Return the number of batches that the workers accept now."""

    @abstractmethod
    def _send_batch(self, work: Work[Any, Any], task: WorkerTask) -> None:
        """Send a batch to a worker."""

    @abstractmethod
    def _receive_messages(self, patience: float | None) -> Sequence[BatchMessage]:
        """Wait for messages about batches, for at most ``patience`` seconds.

        Raises:
            NoWorkers: All workers are gone.
            Exception: ``work`` raised it.
        """

    @abstractmethod
    def close(self) -> None:
        """Stop all running batches."""

    def __exit__(self, *_: object) -> None:
        self.close()

    def map(
        self,
        work: Work[Item, Result],
        batches: Iterable[Sequence[Item]],
        patience: float | None = None,
        ahead: int = AHEAD,
    ) -> Iterator[Result | LostItem | None]:
        """Yield the results of all items, in the order of the items.

        Args:
            work: A function of a module, or another object that can be pickled.
            batches: The items in batches, read as workers need them.
            patience: The seconds without a message after which None is yielded.
            ahead: The batches per worker that may run, wait in a queue, or wait for earlier ones.

        Returns:
            The results. ``LostItem`` stands for an item during which every process ended. None
            stands for a time of ``patience`` without a message.

        Raises:
            NoWorkers: All workers are gone.
            Exception: ``work`` raised it.
        """
        source = iter(batches)
        tasks: deque[WorkerTask] = deque()  # those with results that are not yielded yet
        unsent_tasks: deque[WorkerTask] = deque()
        while True:
            while self._free_slots() > 0:
                if not unsent_tasks:
                    batch = next(source, None) if len(tasks) < ahead * self.count else None
                    if batch is None:
                        break
                    tasks.append(WorkerTask(batch))
                    unsent_tasks.append(tasks[-1])
                self._send_batch(work, unsent_tasks.popleft())
            if not tasks:
                return
            while tasks[0].results:
                yield tasks[0].results.popleft()
            if tasks[0].done:
                tasks.popleft()
                continue
            messages = self._receive_messages(patience)
            if not messages:
                yield None
            for task, content in messages:
                if content is None:  # the process ended before it came to this batch
                    unsent_tasks.appendleft(task)
                elif isinstance(content, LostItem):  # the process ended while it worked on it
                    unsent_tasks.extendleft(_tasks_to_repeat(task, tasks))
                else:
                    task.add_results(content.results)
                    task.done = content.is_last


def each(
    work: Work[Item, Result], items: Iterable[Item], workers: Workers | None
) -> Iterator[Result | LostItem]:
    """Yield the results of all items, computed item by item in this process or by workers.

    Args:
        work: The function, as for ``Workers.map``.
        items: The items, read as they are needed.
        workers: The workers; None computes in this process.

    Returns:
        The results in the order of the items. ``LostItem`` stands for an item during which every
        process ended.
    """
    batches = ([item] for item in items)
    if workers is None:
        for batch in batches:
            yield from work(batch)
        return
    # ``map`` yields None after a wait without a message.
    yield from (result for result in workers.map(work, batches) if result is not None)


def _tasks_to_repeat(task: WorkerTask, tasks: deque[WorkerTask]) -> list[WorkerTask]:
    """Return the tasks to send again after a process ended during a task, the last one first.

    A batch of several items is split into batches of one item, so that only one item can be lost.
    """
    if len(task.batch) > 1:
        position = tasks.index(task)
        del tasks[position]
        single_tasks = [WorkerTask([item]) for item in reversed(task.batch)]
        for single_task in single_tasks:
            tasks.insert(position, single_task)  # before the items after it
        return single_tasks
    task.losses += 1
    task.sent_count = 0
    if task.losses < _LOSSES:
        return [task]
    task.results.append(LOST)
    task.done = True
    return []


def workers_of(requested: str) -> Workers:
    """Return the workers that ``--workers`` requests.

    Args:
        requested: ``auto`` for one process per core, a number of processes, or the address of a
            cluster.

    Raises:
        NoWorkers: The text is none of these, or the cluster is not available.
    """
    if "://" in requested:
        cluster: Workers = import_module(_CLUSTER).Cluster(requested)
        return cluster
    if requested == "auto":
        return LocalProcesses(cores())
    if requested.isascii() and requested.isdecimal() and int(requested) > 0:
        return LocalProcesses(int(requested))
    raise NoWorkers(
        f"{requested!r} is not a number of workers; give auto, a number of processes, or the "
        "address of a Dask scheduler such as tcp://localhost:8786"
    )


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_WORKER_CODE: Final = """import sys
sys.path[:] = sys.argv[1].split(sys.argv[2])
from mast_tui.parallel import serve
serve(*map(int, sys.argv[3:]))
"""


class WorkerProcess:
    """A local process with its batches.

    Attributes:
        connection: The pipe to the process. It receives pairs: ``BatchResults`` and None, or None
            and the error that the work raised.
        popen: The process; any thread may kill it.
        tasks: The unfinished batches that were sent to the process.
    """

    def __init__(self, *, low_priority: bool) -> None:
        """Start the process.

        Args:
            low_priority: True if all other processes of the machine take precedence.

        Raises:
            OSError: No process can start.
        """
        from multiprocessing.connection import Pipe  # start-up: the app searches and judges later

        self.connection, child_end = Pipe()
        # Processes of ``multiprocessing`` would import all modules of this one at their start.
        arguments = (
            os.pathsep.join(sys.path),
            os.pathsep,
            str(child_end.fileno()),
            str(int(low_priority)),
        )
        self.popen = Popen(
            [sys.executable, "-I", "-W", "ignore", "-c", _WORKER_CODE, *arguments],
            stdin=DEVNULL,
            stdout=DEVNULL,
            stderr=DEVNULL,  # errors come through the pipe; the app's screen must stay clean
            pass_fds=[child_end.fileno()],
            process_group=0,  # Ctrl+C must not end it: this process does
        )
        child_end.close()
        self.tasks: deque[WorkerTask] = deque()
        self._work: object = None

    def submit(self, work: Work[Any, Any], task: WorkerTask) -> None:
        """Send a batch to the process.

        Args:
            work: The function.
            task: The batch.
        """
        is_new = self._work is not work  # the process keeps the last function
        self._work = work
        self.tasks.append(task)
        try:
            self.connection.send((work if is_new else None, task.batch))
        except (BrokenPipeError, ConnectionResetError):
            return  # ``_receive_messages`` notices that the process has ended

    def kill(self) -> None:
        """End the process at once."""
        self.popen.kill()
        self.popen.wait()
        self.connection.close()


def serve(descriptor: int, low_priority: int) -> None:
    """Compute the batches that arrive through a pipe, until the pipe is closed.

    Args:
        descriptor: The descriptor of the open pipe.
        low_priority: 1 if all other processes of the machine take precedence, else 0.
    """
    from multiprocessing.connection import Connection  # start-up, as for ``Pipe``

    if low_priority:  # the app must answer to keys at once
        os.nice(19)
        if hasattr(os, "SCHED_IDLE"):
            with suppress(OSError):  # some containers forbid it
                os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    connection = Connection(descriptor)
    received: SimpleQueue[tuple[Work[Any, Any] | None, Sequence[Any]]] = SimpleQueue()
    Thread(target=_queue_batches, args=(connection, received), name="batches", daemon=True).start()
    work: Work[Any, Any] | None = None
    while True:
        new_work, batch = received.get()
        work = new_work or work  # ``submit`` sends None for the work of the batch before
        assert work is not None
        try:
            results = work(batch)
            if len(batch) == 1 and isinstance(results, Iterator):
                for result in results:
                    connection.send((BatchResults([result], is_last=False), None))
                results = ()
            answer = pickle.dumps((BatchResults([*results]), None))
        except Exception as error:  # noqa: BLE001 - ``_receive_messages`` raises it
            answer = pickle.dumps((None, _picklable_error(error)))
        connection.send_bytes(answer)


def _queue_batches(connection: Connection, received: SimpleQueue[Any]) -> None:
    """Put the batches from a pipe into a queue; end this process when the pipe closes."""
    while True:
        try:
            received.put(connection.recv())
        except (EOFError, OSError):
            os._exit(1)  # also in the middle of a batch: no process waits for it


def _picklable_error(error: Exception) -> Exception:
    """Return an error that can be pickled, with its traceback as a note or text."""
    trace_text = "".join(traceback.format_exception(error))
    try:
        copy: Exception = pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - errors of any library, some of which cannot be pickled
        return RuntimeError(trace_text)
    copy.add_note(trace_text)
    return copy


class LocalProcesses(Workers):
    """Processes of this machine; each starts when there is a batch for it."""

    def __init__(self, count: int, *, low_priority: bool = False) -> None:
        """Set the number of processes; none starts yet.

        Args:
            count: The number of processes.
            low_priority: True if all other processes of the machine take precedence.
        """
        self.count = count
        self._low_priority = low_priority
        self.description = f"{count} processes" if count > 1 else "1 process"
        self._processes: list[WorkerProcess] = []

    def _free_slots(self) -> int:
        return QUEUED * self.count - sum(len(process.tasks) for process in self._processes)

    def _send_batch(self, work: Work[Any, Any], task: WorkerTask) -> None:
        all_busy = all(process.tasks for process in self._processes)
        if len(self._processes) < self.count and all_busy:
            self._processes.append(WorkerProcess(low_priority=self._low_priority))
        min(self._processes, key=lambda process: len(process.tasks)).submit(work, task)

    def _receive_messages(self, patience: float | None) -> Sequence[BatchMessage]:
        """Wait for messages; if a process has ended, report its batches as lost or not begun."""
        from multiprocessing.connection import wait  # start-up, as above

        ready_connections = wait([process.connection for process in self._processes], patience)
        messages: list[BatchMessage] = []
        for process in tuple(self._processes):
            if process.connection not in ready_connections:
                continue
            try:
                answer, error = process.connection.recv()
            except (EOFError, OSError):
                self._processes.remove(process)
                process.kill()
                # The process has worked on its first batch only.
                for position, task in enumerate(process.tasks):
                    messages.append((task, LOST if position == 0 else None))
                continue
            if error is not None:
                raise error
            messages.append((process.tasks[0], answer))
            if answer.is_last:
                process.tasks.popleft()
        return messages

    def close(self) -> None:
        """End all processes at once."""
        while self._processes:
            self._processes.pop().kill()
