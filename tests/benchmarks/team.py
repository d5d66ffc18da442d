"""Many people at once in one database: how soon a label is committed, and whether all are there.

    python -m tests.benchmarks.team [--people 20] [--labels 2000] [--url URL] [--kills 0]

Starts a server, which keeps every commit on the disk as a server of a team does, unless a ``--url``
names one with a database to be made. Each person is a process that labels as fast as it can;
with ``--kills`` that many of them are killed at random moments and begun again. At the end every
label that was said to be committed has to be there, once, and the tables have to be what the events
come to; it ends with 1 where that is not so.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from mast_tui.workspace import Workspace
from mast_tui.workspace.events.types import LabelAdded
from tests.postgres import running_server
from tests.workspace.build import event, label, started

_CONTEXT = get_context("spawn")


def work(url: str, name: str, count: int, to: Connection) -> None:
    """Label ``count`` times, and say of each its id, and how long it took until it was kept."""
    with closing(Workspace.open(url)) as workspace:
        if not workspace.passes(annotator=name):
            started(workspace, annotator=name)
        for _ in range(count):
            one = label(workspace, annotator=name)
            begun = time.perf_counter()
            workspace.append([event(LabelAdded(one), annotator=name)])
            to.send((one.id, time.perf_counter() - begun))
    to.close()


class Person:
    """Somebody who labels, in a process that may be killed."""

    def __init__(self, url: str, name: str, count: int) -> None:
        self.name = name
        self.ids: list[str] = []
        self.seconds: list[float] = []
        self._url = url
        self._count = count
        self.begin()

    def begin(self) -> None:
        """Begin, or go on."""
        self.words, to = _CONTEXT.Pipe(duplex=False)
        left = self._count - len(self.ids)
        self.process: BaseProcess = _CONTEXT.Process(
            target=work, args=(self._url, self.name, left, to)
        )
        self.process.start()
        to.close()

    def hear(self) -> bool:
        """Take what was said; whether there is more to come."""
        try:
            while self.words.poll():
                one, seconds = self.words.recv()
                self.ids.append(one)
                self.seconds.append(seconds)
        except EOFError:
            self.process.join()
            return False
        return True


def run(url: str, people: int, count: int, kills: int) -> int:
    """Measure, print, and return the exit code."""
    Workspace.create_on_server(url).close()
    begun = time.perf_counter()
    everybody = [Person(url, f"person-{number}", count) for number in range(people)]
    open_ones = list(everybody)
    moments = sorted(random.Random(1).sample(range(people * count), kills))
    while open_ones:
        wait([one.words for one in open_ones], 0.2)
        done = sum(len(one.ids) for one in everybody)
        if moments and done >= moments[0]:
            moments.pop(0)
            killed = random.Random(done).choice(open_ones)
            killed.process.kill()
        for one in list(open_ones):
            if one.hear():
                continue
            if one.process.exitcode and len(one.ids) < count:
                one.begin()
            else:
                open_ones.remove(one)
    took = time.perf_counter() - begun
    times = sorted(seconds for one in everybody for seconds in one.seconds)
    with closing(Workspace.open(url)) as workspace:
        lost = doubled = 0
        for one in everybody:
            kept = [found.id for found in workspace.labels(annotator=one.name)]
            lost += len(set(one.ids) - set(kept))
            seqs = [found.seq for found in workspace.events(annotator=one.name)]
            doubled += len(seqs) - len(set(seqs))
        differing = workspace.differences()
    middle, late = (times[int(len(times) * share)] * 1e3 for share in (0.5, 0.95))
    print(
        f"{people} people × {count} labels, {kills} killed: {len(times) / took:.0f} a second; "
        f"key → committed {middle:.1f} ms, p95 {late:.1f} ms; "
        f"lost {lost}, doubled {doubled}, tables that differ {len(differing)}"
    )
    return 1 if lost or doubled or differing else 0


@contextmanager
def _place(url: str | None) -> Iterator[str]:
    if url is not None:
        yield url
        return
    with running_server(safe=True) as server:
        yield server.url("team")


def main() -> int:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--labels", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--url")
    asked = parser.parse_args()
    with _place(asked.url) as url:
        return run(url, asked.people, asked.labels, asked.kills)


if __name__ == "__main__":
    sys.exit(main())
