"""Batches of work for other processes, on this machine or in a cluster.

``map(work, batches)`` is the whole interface. Results must depend on the batch alone, since a batch
is repeated if its process was killed. Each process of this machine has a pipe of its own:
``concurrent.futures`` gives up all running work when one process is killed, and hangs if that
process was writing an answer. The workers of a cluster are in ``scale/cluster.py``.
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
"""A function that takes a batch and returns the results of its items in order.

If it returns an iterator for a batch of one item, processes of this machine send each result at
once.
"""

_CLUSTER: Final = "mast_tui.scale.cluster"
"""The module of a cluster's workers, which is imported by name alone."""

AHEAD: Final = 4
"""The batches for each worker that are running, waiting, or finished before their turn."""

QUEUED: Final = 2
"""The batches that a worker has: one that runs and one that waits."""

_LOSSES: Final = 3
"""The number of processes that an item may end by itself before it is given up.

It is above 1, since a process may be killed for another reason.
"""


class NoWorkers(MastError):
    """The requested workers are not available, or all of them have ended."""


@dataclass(frozen=True, slots=True)
class LostItem:
    """The reason why an item has no result, in place of the result."""

    reason: str


LOST: Final = LostItem("each process that had it was ended; is there enough memory?")


@dataclass(slots=True, eq=False)
class WorkerTask:
    """A batch with the number of its losses and the results that were not yielded yet."""

    batch: Sequence[Any]
    losses: int = 0
    results: deque[Any] = field(default_factory=deque)
    done: bool = False
    received: int = 0
    """The number of results received from any process; a repeated batch sends them again."""
    sent_by_process: int = 0
    """The number of results that the current process of the batch has sent."""

    def take(self, results: Sequence[Any]) -> None:
        """Add the next results of the current process, without those received before."""
        self.results.extend(results[max(0, self.received - self.sent_by_process) :])
        self.sent_by_process += len(results)
        self.received = max(self.received, self.sent_by_process)


class BatchResults(NamedTuple):
    """Results of a batch; ``over`` is True with the last ones."""

    results: Sequence[Any]
    over: bool = True


TaskResult = tuple[WorkerTask, BatchResults | LostItem | None]
"""A batch with its results; ``LOST`` if its process ended, None if that was before it began
the batch."""


class Workers(AbstractContextManager["Workers"], ABC):
    """Processes that work on batches.

    Attributes:
        count: The number of batches at a time.
        location: The description of their location for messages.
        elsewhere: Whether their working folder is not that of this process.
        host: The address at which they reach this machine.
    """

    count: int
    location: str
    elsewhere = False
    host = "127.0.0.1"

    @abstractmethod
    def _free_slots(self) -> int:
        """Return the number of batches that the workers can accept now."""

    @abstractmethod
    def _give(self, work: Work[Any, Any], task: WorkerTask) -> None:
        """Send a batch to a worker."""

    @abstractmethod
    def _hear(self, patience: float | None) -> Sequence[TaskResult]:
        """Wait for results of batches.

        Args:
            patience: The longest time in seconds; None for any time.

        Raises:
            NoWorkers: All workers have ended.
            Exception: An exception of ``work``.
        """

    @abstractmethod
    def close(self) -> None:
        """End the processes and their work."""

    def __exit__(self, *_: object) -> None:
        self.close()

    def map(
        self,
        work: Work[Item, Result],
        batches: Iterable[Sequence[Item]],
        patience: float | None = None,
        ahead: int = AHEAD,
    ) -> Iterator[Result | LostItem | None]:
        """Apply a function to batches of items and yield the results in the order of the items.

        Args:
            work: A function of a module, or an object that can be pickled.
            batches: The batches; each is read when a worker is free.
            patience: The seconds without a result after which None is yielded.
            ahead: The number of batches for each worker that may finish before their turn.

        Yields:
            The results; a ``LostItem`` after those of an item that ends each of its processes.

        Raises:
            NoWorkers: All workers have ended.
            Exception: An exception of ``work``.
        """
        source = iter(batches)
        tasks: deque[WorkerTask] = deque()
        waiting: deque[WorkerTask] = deque()
        while True:
            while self._free_slots() > 0:
                if not waiting:
                    batch = next(source, None) if len(tasks) < ahead * self.count else None
                    if batch is None:
                        break
                    tasks.append(WorkerTask(batch))
                    waiting.append(tasks[-1])
                self._give(work, waiting.popleft())
            if not tasks:
                return
            while tasks[0].results:
                yield tasks[0].results.popleft()
            if tasks[0].done:
                tasks.popleft()
                continue
            received_results = self._hear(patience)
            if not received_results:
                yield None
            for task, answer in received_results:
                if answer is None:
                    waiting.appendleft(task)
                elif isinstance(answer, LostItem):
                    waiting.extendleft(_tasks_to_repeat(task, tasks))
                else:
                    task.take(answer.results)
                    task.done = answer.over


def each(
    work: Work[Item, Result], items: Iterable[Item], workers: Workers | None
) -> Iterator[Result | LostItem]:
    """Apply a function to items, each in a batch of its own.

    Args:
        work: The function; see ``Workers.map``.
        items: The items; each is read when it is needed.
        workers: The workers; None for this process alone.

    Yields:
        The results in the order of the items; a ``LostItem`` for one that ends each of its
        processes.
    """
    batches = ([item] for item in items)
    if workers is None:
        for batch in batches:
            yield from work(batch)
        return
    yield from (result for result in workers.map(work, batches) if result is not None)


def _tasks_to_repeat(task: WorkerTask, tasks: deque[WorkerTask]) -> list[WorkerTask]:
    """Return the tasks that replace a lost one, the last first: one for each of its items.

    A task of one item is repeated itself, and given up after ``_LOSSES`` losses.
    """
    if len(task.batch) > 1:
        index = tasks.index(task)
        del tasks[index]
        single_tasks = [WorkerTask([item]) for item in reversed(task.batch)]
        for single_task in single_tasks:
            tasks.insert(index, single_task)
        return single_tasks
    task.losses += 1
    task.sent_by_process = 0
    if task.losses < _LOSSES:
        return [task]
    task.results.append(LOST)
    task.done = True
    return []


def workers_of(option: str) -> Workers:
    """Return the workers of the option ``--workers``.

    Args:
        option: ``auto`` for one process for each core, a number, or the address of a cluster.

    Raises:
        NoWorkers: The option is none of these, or the cluster cannot be used.
    """
    if "://" in option:
        cluster: Workers = import_module(_CLUSTER).Cluster(option)
        return cluster
    if option == "auto":
        return LocalProcesses(cores())
    if option.isascii() and option.isdecimal() and int(option) > 0:
        return LocalProcesses(int(option))
    raise NoWorkers(
        f"{option!r} are no workers; give auto, a number of processes, or the address of a Dask "
        "scheduler such as tcp://localhost:8786"
    )


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_BEGIN: Final = """import sys
sys.path[:] = sys.argv[1].split(sys.argv[2])
from mast_tui.parallel import serve
serve(*map(int, sys.argv[3:]))
"""


class _Process:
    """A process of this machine and its batches."""

    def __init__(self, aside: bool) -> None:
        from multiprocessing.connection import Pipe  # start-up: the app searches and judges later

        self.connection, other = Pipe()
        # multiprocessing would import in each process all that this one has imported.
        arguments = (os.pathsep.join(sys.path), os.pathsep, str(other.fileno()), str(int(aside)))
        self._process = Popen(
            [sys.executable, "-I", "-W", "ignore", "-c", _BEGIN, *arguments],
            stdin=DEVNULL,
            stdout=DEVNULL,
            stderr=DEVNULL,  # errors come as answers, and the terminal belongs to the screen
            pass_fds=[other.fileno()],
            process_group=0,  # a signal to the app does not reach it; the app ends it
        )
        other.close()
        self.tasks: deque[WorkerTask] = deque()
        self._work: object = None

    def give(self, work: Work[Any, Any], task: WorkerTask) -> None:
        """Send a batch, which the process works on after its earlier ones."""
        new = self._work is not work
        self._work = work
        self.tasks.append(task)
        try:
            self.connection.send((work if new else None, task.batch))
        except (BrokenPipeError, ConnectionResetError):  # _hear reports the end of the process
            return

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._process.wait()
        self.connection.close()


def serve(descriptor: int, aside: int) -> None:
    """Work on batches until the other end of the pipe is closed.

    Args:
        descriptor: The descriptor of the pipe.
        aside: 1 to let all other processes go first, else 0.
    """
    from multiprocessing.connection import Connection  # start-up, as above

    if aside:  # the app must answer a key at once
        os.nice(19)
        if hasattr(os, "SCHED_IDLE"):
            with suppress(OSError):  # some containers forbid it
                os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    connection = Connection(descriptor)
    batches: SimpleQueue[tuple[Work[Any, Any] | None, Sequence[Any]]] = SimpleQueue()
    Thread(target=_listen, args=(connection, batches), name="batches", daemon=True).start()
    work: Work[Any, Any] | None = None
    while True:
        new, batch = batches.get()
        work = new or work
        assert work is not None
        try:
            results = work(batch)
            if len(batch) == 1 and isinstance(results, Iterator):
                for result in results:
                    connection.send((BatchResults([result], over=False), None))
                results = ()
            answer = pickle.dumps((BatchResults([*results]), None))
        except Exception as error:  # noqa: BLE001 - the receiver of the answer raises it
            answer = pickle.dumps((None, _to_raise(error)))
        connection.send_bytes(answer)


def _listen(connection: Connection, batches: SimpleQueue[Any]) -> None:
    while True:
        try:
            batches.put(connection.recv())
        except (EOFError, OSError):
            os._exit(1)  # also in the middle of a batch, since no one waits for its results


def _to_raise(error: Exception) -> Exception:
    """Return an exception that can be pickled, with the traceback as a note."""
    trace = "".join(traceback.format_exception(error))
    try:
        sent: Exception = pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - exceptions of libraries may not support pickling
        return RuntimeError(trace)
    sent.add_note(trace)
    return sent


class LocalProcesses(Workers):
    """Processes of this machine; each starts when there is a batch for it."""

    def __init__(self, count: int, *, aside: bool = False) -> None:
        """Prepare the workers without starting a process.

        Args:
            count: The number of processes.
            aside: Whether all other processes go first.
        """
        self.count = count
        self._aside = aside
        self.location = f"{count} processes" if count > 1 else "1 process"
        self._processes: list[_Process] = []

    def _free_slots(self) -> int:
        return QUEUED * self.count - sum(len(process.tasks) for process in self._processes)

    def _give(self, work: Work[Any, Any], task: WorkerTask) -> None:
        if len(self._processes) < self.count and all(process.tasks for process in self._processes):
            self._processes.append(_Process(self._aside))
        min(self._processes, key=lambda process: len(process.tasks)).give(work, task)

    def _hear(self, patience: float | None) -> Sequence[TaskResult]:
        from multiprocessing.connection import wait  # start-up, as above

        ready = wait([process.connection for process in self._processes], patience)
        received_results: list[TaskResult] = []
        for process in [process for process in self._processes if process.connection in ready]:
            try:
                answer, error = process.connection.recv()
            except (EOFError, OSError):
                self._processes.remove(process)
                process.kill()
                running, *waiting = process.tasks
                received_results += [(running, LOST), *((task, None) for task in waiting)]
                continue
            if error is not None:
                raise error
            received_results.append((process.tasks[0], answer))
            if answer.over:
                process.tasks.popleft()
        return received_results

    def close(self) -> None:
        """End the processes at once."""
        while self._processes:
            self._processes.pop().kill()
