"""Work done batch by batch by other processes, of this machine or of a cluster.

``map(work, batches)`` is all there is: what is done must follow from its batch alone, as a batch is
done again where the process that had it was killed. Processes of this machine have a pipe each:
``concurrent.futures`` gives up all that is under way when one of them is killed, and hangs where
that one had half written an answer. Those of a cluster are in ``scale/cluster.py``.
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
"""Takes a batch, and gives the results of its items in their order. What an iterator gives for a
batch of one item is told while it goes on, by processes of this machine."""

_CLUSTER: Final = "mast_tui.scale.cluster"
"""The module of a cluster's workers, which is imported by name alone."""

AHEAD: Final = 4
"""So many batches for each worker are under way, waiting, or done before their turn."""

QUEUED: Final = 2
"""So many batches a worker has at hand: the next one before it has done the first."""

_LOSSES: Final = 3
"""An item is given up that has ended so many processes alone; some may have been killed by somebody
who was not after it."""


class NoWorkers(MastError):
    """The workers that were asked for cannot be had, or have gone away as a whole."""


@dataclass(frozen=True, slots=True)
class LostItem:
    """In the place of a result: why the item has none."""

    reason: str


LOST: Final = LostItem("each process that had it was ended; is there enough memory?")


@dataclass(slots=True, eq=False)
class WorkerTask:
    """A batch, how often it was lost, and of its results those that were not given out yet."""

    batch: Sequence[Any]
    losses: int = 0
    results: deque[Any] = field(default_factory=deque)
    done: bool = False
    known: int = 0
    """How many results have come, whoever told them; another process tells the same again."""
    told: int = 0
    """How many of them the process has told that has the batch now."""

    def take(self, results: Sequence[Any]) -> None:
        """Take what follows."""
        self.results.extend(results[max(0, self.known - self.told) :])
        self.told += len(results)
        self.known = max(self.known, self.told)


class BatchResults(NamedTuple):
    """Results of a batch, and whether they are the last."""

    results: Sequence[Any]
    over: bool = True


Heard = tuple[WorkerTask, BatchResults | LostItem | None]
"""What came of a batch: ``LOST`` where its process was ended, None where it was not begun by
then."""


class Workers(AbstractContextManager["Workers"], ABC):
    """Processes that do what they are given.

    Attributes:
        count: How many batches they do at a time.
        place: Where they are, for people.
        elsewhere: Whether they stand in another folder than this process.
        host: The address of this machine at which they reach it.
    """

    count: int
    place: str
    elsewhere = False
    host = "127.0.0.1"

    @abstractmethod
    def _room(self) -> int:
        """How many more batches they take now."""

    @abstractmethod
    def _give(self, work: Work[Any, Any], task: WorkerTask) -> None:
        """Have a batch done."""

    @abstractmethod
    def _hear(self, patience: float | None) -> Sequence[Heard]:
        """Wait until something has come of a batch, for so many seconds at most.

        Raises:
            NoWorkers: There is nobody left.
            Exception: What ``work`` has raised.
        """

    @abstractmethod
    def close(self) -> None:
        """End what is under way."""

    def __exit__(self, *_: object) -> None:
        self.close()

    def map(
        self,
        work: Work[Item, Result],
        batches: Iterable[Sequence[Item]],
        patience: float | None = None,
        ahead: int = AHEAD,
    ) -> Iterator[Result | LostItem | None]:
        """Do the same with every item; what comes of each is given in the order of the items.

        Args:
            work: A function of a module, or an object that can be pickled.
            batches: Items, some at a time; they are drawn as workers need them.
            patience: After so many seconds in which nothing has come None is given.
            ahead: How many batches for each worker may be done before their turn.

        Returns:
            The results; ``LostItem`` behind those of an item that ends every process which has it.

        Raises:
            NoWorkers: There is nobody left who does it.
            Exception: What ``work`` raises.
        """
        source = iter(batches)
        tasks: deque[WorkerTask] = deque()
        waiting: deque[WorkerTask] = deque()
        while True:
            while self._room() > 0:
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
            heard = self._hear(patience)
            if not heard:
                yield None
            for task, found in heard:
                if found is None:
                    waiting.appendleft(task)
                elif isinstance(found, LostItem):
                    waiting.extendleft(_again(task, tasks))
                else:
                    task.take(found.results)
                    task.done = found.over


def each(
    work: Work[Item, Result], items: Iterable[Item], workers: Workers | None
) -> Iterator[Result | LostItem]:
    """Do the same with every item, one a batch: here, or by workers.

    Args:
        work: As for ``Workers.map``.
        items: Drawn as they are needed.
        workers: Who does it; None for this process alone.

    Returns:
        The results in the order of the items; ``LostItem`` for one that ends every process.
    """
    batches = ([item] for item in items)
    if workers is None:
        for batch in batches:
            yield from work(batch)
        return
    yield from (found for found in workers.map(work, batches) if found is not None)


def _again(task: WorkerTask, tasks: deque[WorkerTask]) -> list[WorkerTask]:
    """What has to be done of a batch that was lost, the last first: its items one by one."""
    if len(task.batch) > 1:
        place = tasks.index(task)
        del tasks[place]
        alone = [WorkerTask([item]) for item in reversed(task.batch)]
        for one in alone:
            tasks.insert(place, one)
        return alone
    task.losses += 1
    task.told = 0
    if task.losses < _LOSSES:
        return [task]
    task.results.append(LOST)
    task.done = True
    return []


def workers_of(wanted: str) -> Workers:
    """The workers that ``--workers`` asks for.

    Args:
        wanted: ``auto`` for a process for each core, their number, or a cluster's address.

    Raises:
        NoWorkers: There are none of that kind.
    """
    if "://" in wanted:
        cluster: Workers = import_module(_CLUSTER).Cluster(wanted)
        return cluster
    if wanted == "auto":
        return LocalProcesses(cores())
    if wanted.isascii() and wanted.isdecimal() and int(wanted) > 0:
        return LocalProcesses(int(wanted))
    raise NoWorkers(
        f"{wanted!r} are no workers; give auto, a number of processes, or the address of a Dask "
        "scheduler such as tcp://localhost:8786"
    )


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_BEGIN: Final = """import sys
sys.path[:] = sys.argv[1].split(sys.argv[2])
from mast_tui.parallel import serve
serve(*map(int, sys.argv[3:]))
"""


class _Process:
    """A process of this machine, with the batches that it has."""

    def __init__(self, aside: bool) -> None:
        from multiprocessing.connection import Pipe  # start-up: the app searches and judges later

        self.connection, other = Pipe()
        # Not by multiprocessing, whose processes begin with all that this one has imported.
        words = (os.pathsep.join(sys.path), os.pathsep, str(other.fileno()), str(int(aside)))
        self._process = Popen(
            [sys.executable, "-I", "-W", "ignore", "-c", _BEGIN, *words],
            stdin=DEVNULL,
            stdout=DEVNULL,
            stderr=DEVNULL,  # what goes wrong is answered, and a screen must not be written on
            pass_fds=[other.fileno()],
            process_group=0,  # whoever has begun it ends it
        )
        other.close()
        self.tasks: deque[WorkerTask] = deque()
        self._work: object = None

    def give(self, work: Work[Any, Any], task: WorkerTask) -> None:
        """Have it do a batch once it has done those before."""
        new = self._work is not work
        self._work = work
        self.tasks.append(task)
        try:
            self.connection.send((work if new else None, task.batch))
        except (BrokenPipeError, ConnectionResetError):  # that it has ended is heard of
            return

    def kill(self) -> None:
        """End it, whatever it is at."""
        self._process.kill()
        self._process.wait()
        self.connection.close()


def serve(place: int, aside: int) -> None:
    """Do what comes, until nobody is there any more who could give anything.

    Args:
        place: The number of the open pipe through which it comes.
        aside: Whether others go before.
    """
    from multiprocessing.connection import Connection  # start-up, as above

    if aside:  # whoever waits for a key has its turn at once
        os.nice(19)
        if hasattr(os, "SCHED_IDLE"):
            with suppress(OSError):  # some containers forbid it
                os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    connection = Connection(place)
    given: SimpleQueue[tuple[Work[Any, Any] | None, Sequence[Any]]] = SimpleQueue()
    Thread(target=_listen, args=(connection, given), name="batches", daemon=True).start()
    work: Work[Any, Any] | None = None
    while True:
        new, batch = given.get()
        work = new or work
        assert work is not None
        try:
            results = work(batch)
            if len(batch) == 1 and isinstance(results, Iterator):
                for result in results:
                    connection.send((BatchResults([result], over=False), None))
                results = ()
            answer = pickle.dumps((BatchResults([*results]), None))
        except Exception as error:  # noqa: BLE001 - it is raised where the answer is heard
            answer = pickle.dumps((None, _to_raise(error)))
        connection.send_bytes(answer)


def _listen(connection: Connection, given: SimpleQueue[Any]) -> None:
    while True:
        try:
            given.put(connection.recv())
        except (EOFError, OSError):
            os._exit(1)  # also in the middle of a batch: nobody waits for it


def _to_raise(error: Exception) -> Exception:
    """The error as it can be sent, with the place where it was raised."""
    words = "".join(traceback.format_exception(error))
    try:
        sent: Exception = pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - errors of any library, which do not think of pickling
        return RuntimeError(words)
    sent.add_note(words)
    return sent


class LocalProcesses(Workers):
    """Processes of this machine; each is begun when there is something for it to do."""

    def __init__(self, count: int, *, aside: bool = False) -> None:
        """Begin none of them yet.

        Args:
            count: How many there are.
            aside: Whether all other processes go before them.
        """
        self.count = count
        self._aside = aside
        self.place = f"{count} processes" if count > 1 else "1 process"
        self._processes: list[_Process] = []

    def _room(self) -> int:
        return QUEUED * self.count - sum(len(one.tasks) for one in self._processes)

    def _give(self, work: Work[Any, Any], task: WorkerTask) -> None:
        if len(self._processes) < self.count and all(one.tasks for one in self._processes):
            self._processes.append(_Process(self._aside))
        min(self._processes, key=lambda one: len(one.tasks)).give(work, task)

    def _hear(self, patience: float | None) -> Sequence[Heard]:
        from multiprocessing.connection import wait  # start-up, as above

        ready = wait([one.connection for one in self._processes], patience)
        heard: list[Heard] = []
        for process in [one for one in self._processes if one.connection in ready]:
            try:
                answer, error = process.connection.recv()
            except (EOFError, OSError):
                self._processes.remove(process)
                process.kill()
                begun, *others = process.tasks
                heard += [(begun, LOST), *((one, None) for one in others)]
                continue
            if error is not None:
                raise error
            heard.append((process.tasks[0], answer))
            if answer.over:
                process.tasks.popleft()
        return heard

    def close(self) -> None:
        """End the processes, whatever they are at."""
        while self._processes:
            self._processes.pop().kill()
