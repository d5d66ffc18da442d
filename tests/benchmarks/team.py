"""Many people at once in one database: how soon a label is committed, and whether all are there.

    python -m tests.benchmarks.team [--people 20] [--labels 2000] [--role annotator]
        [--kills 0] [--server-kills 0] [--url URL]

Starts a server, which keeps every commit on the disk as a server of a team does, unless a ``--url``
names one with a database to be made. Each person is a process that labels as fast as it can, as an
annotator of the team or as ``--role owner``; what it cannot commit waits in its outbox, and goes
out as in the app. With ``--kills`` that many of them are killed at random moments and begun again,
with ``--server-kills`` the server, too. At the end every label that was said to be kept has to be
there, once, and the tables have to be what the events come to; it ends with 1 where that is not so.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple
from unittest.mock import Mock
from urllib.parse import urlsplit

from mast_tui.errors import ChangedElsewhere, ServerAway
from mast_tui.ui.services.workspace import WorkspaceWatcher
from mast_tui.workspace import Workspace
from mast_tui.workspace.events.types import LabelAdded
from mast_tui.workspace.outbox import Outbox
from mast_tui.workspace.records import Role, TraceRecord
from tests.postgres import PostgresServer, running_server
from tests.workspace.build import MAST, TRACE, event, label, started

_CONTEXT: Final = get_context("forkserver")
_UNSENT: Final = 20
"""Labels that somebody makes at most while the server is away."""


class Who(NamedTuple):
    """Somebody who labels, and how they reach the workspace."""

    name: str
    url: str
    password: str | None = None


def work(who: Who, count: int, folder: Path, to: Connection, go: Connection) -> None:
    """Label ``count`` times, and say of each its id, and how long it took until it was kept.

    Args:
        who: Who labels.
        count: How many labels.
        folder: Where changes wait for the server.
        to: Is told: 0 once this is ready, then each label, and at the end the processor time.
        go: Is closed when all are to begin.
    """
    name = who.name
    with closing(_opened(who, folder)) as workspace:
        known = workspace.last_seq(name, TRACE, MAST.ref)
        outbox = workspace.outbox
        assert outbox is not None
        to.send(0)
        wait([go])
        spent = time.process_time()
        for _ in range(count):
            one = label(workspace, annotator=name)
            begun = time.perf_counter()
            recorded = None
            while recorded is None:
                try:
                    new = [event(LabelAdded(one), annotator=name)]
                    recorded = workspace.append(new, known_seq=known)
                except ChangedElsewhere:  # what has waited was counted otherwise
                    known = workspace.last_seq(name, TRACE, MAST.ref)
            known = recorded[-1].seq
            to.send((one.id, time.perf_counter() - begun))
            if len(outbox.waiting) >= _UNSENT:
                _until_sent(outbox)
        _until_sent(outbox)
        to.send(time.process_time() - spent)
    to.close()


def _until_sent(outbox: Outbox) -> None:
    """Wait as people do, who make no labels faster than the app sends them."""
    while outbox.waiting:
        time.sleep(0.05)


def _opened(who: Who, folder: Path) -> Workspace:
    """The workspace, once the server is there, with the first pass begun and the outbox watched."""
    while True:
        try:
            workspace = Workspace.open(who.url, password=who.password)
            try:
                workspace.keep_waiting(folder, who.name)
                if not workspace.last_seq(who.name, TRACE, MAST.ref):
                    started(workspace, annotator=who.name)
            except BaseException:
                workspace.close()
                raise
            WorkspaceWatcher(workspace, Mock(), Mock())
            return workspace
        except ServerAway:
            time.sleep(0.05)


class Person:
    """Somebody who labels, in a process that may be killed."""

    def __init__(self, who: Who, count: int, folder: Path, go: Connection) -> None:
        self.name = who.name
        self.ids: list[str] = []
        self.seconds: list[float] = []
        self.spent: list[tuple[int, float]] = []
        """For how many labels a process has taken how much processor time."""
        self.ready = False
        self._who, self._count, self._folder, self._go = who, count, folder, go
        self.begin()

    def begin(self) -> None:
        """Begin, or go on."""
        self.words, to = _CONTEXT.Pipe(duplex=False)
        self._left = self._count - len(self.ids)
        self.process: BaseProcess = _CONTEXT.Process(
            target=work, args=(self._who, self._left, self._folder, to, self._go)
        )
        self.process.start()
        to.close()

    def hear(self) -> bool:
        """Take what was said; whether there is more to come."""
        try:
            while self.words.poll():
                match self.words.recv():
                    case 0:
                        self.ready = True
                    case float(spent):
                        self.spent.append((self._left, spent))
                    case one, seconds:
                        self.ids.append(one)
                        self.seconds.append(seconds)
        except EOFError:
            self.process.join()
            return False
        return True


def run(url: str, server: PostgresServer | None, asked: argparse.Namespace) -> int:
    """Measure, print, and return the exit code."""
    people, count = asked.people, asked.labels
    chance = random.Random(1)
    moments = chance.sample(range(people * count), asked.kills + asked.server_kills)
    kills, server_kills = sorted(moments[: asked.kills]), sorted(moments[asked.kills :])
    waiting, go = _CONTEXT.Pipe(duplex=False)
    with TemporaryDirectory() as outboxes:
        everybody = [
            Person(who, count, Path(outboxes), waiting)
            for who in _team(url, people, owner=asked.role == "owner")
        ]
        while not all(one.ready for one in everybody):
            for one in everybody:
                assert one.hear(), f"{one.name} could not begin"
            time.sleep(0.05)
        at_first = 0.0 if server is None else server.processor_seconds()
        begun = time.perf_counter()
        go.close()
        open_ones = list(everybody)
        while open_ones:
            wait([one.words for one in open_ones], 0.2)
            time.sleep(0.05)  # so that listening takes little from those who work
            for one in list(open_ones):
                if one.hear():
                    continue
                if one.process.exitcode and len(one.ids) < count:
                    one.begin()
                else:
                    open_ones.remove(one)
            done = sum(len(one.ids) for one in everybody)
            if kills and done >= kills[0] and open_ones:
                kills.pop(0)
                chance.choice(open_ones).process.kill()
            if server is not None and server_kills and done >= server_kills[0]:
                server_kills.pop(0)
                with server.away(killed=True):
                    time.sleep(chance.random())
                    if kills and open_ones:
                        kills.pop(0)
                        chance.choice(open_ones).process.kill()
        took = time.perf_counter() - begun
    times = sorted(seconds for one in everybody for seconds in one.seconds)
    lost = doubled = 0
    with closing(Workspace.open(url)) as workspace:
        for one in everybody:
            events = list(workspace.events(annotator=one.name))
            kept = Counter(e.fact.label.id for e in events if isinstance(e.fact, LabelAdded))
            lost += len(set(one.ids) - {found.id for found in workspace.labels(annotator=one.name)})
            doubled += kept.total() - len(kept) + len(events) - len({e.seq for e in events})
        wrong = [*workspace.differences(), *workspace.edited_histories()]
    middle, late = (times[int(len(times) * share)] * 1e3 for share in (0.5, 0.95))
    labels, spent = map(sum, zip(*(both for one in everybody for both in one.spent), strict=True))
    of_server = ""
    if server is not None and not asked.server_kills:
        spent_there = (server.processor_seconds() - at_first) / len(times)
        of_server = f", the server {spent_there * 1e3:.2f} ms"
    print(
        f"{people} people ({asked.role}) × {count} labels, {asked.kills} killed, the server "
        f"{asked.server_kills} times: {len(times) / took:.0f} a second; "
        f"key → committed {middle:.1f} ms, p95 {late:.1f} ms; "
        f"processor time a label: a client {spent / labels * 1e3:.2f} ms{of_server}; "
        f"lost {lost}, doubled {doubled}, tables and chains that differ {len(wrong)}"
    )
    return 1 if lost or doubled or wrong else 0


def _team(url: str, people: int, *, owner: bool) -> list[Who]:
    """Make the workspace, and a team of so many annotators unless the ``owner`` does it all."""
    names = [f"person-{number}" for number in range(people)]
    with closing(Workspace.create_on_server(url)) as workspace:
        workspace.add_taxonomy(MAST)
        workspace.register_trace(TraceRecord(TRACE))
        if owner:
            return [Who(name, url) for name in names]
        parts = urlsplit(url)
        place = parts.netloc.rpartition("@")[2]
        return [
            Who(
                name,
                parts._replace(netloc=f"{name}@{place}").geturl(),
                workspace.add_member(name, Role.ANNOTATOR),
            )
            for name in names
        ]


@contextmanager
def _place(url: str | None) -> Iterator[tuple[str, PostgresServer | None]]:
    if url is not None:
        yield url, None
        return
    with running_server(safe=True) as server:
        yield server.url("team"), server


def main() -> int:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--labels", type=int, default=2000)
    parser.add_argument("--role", choices=("annotator", "owner"), default="annotator")
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--server-kills", type=int, default=0)
    parser.add_argument("--url")
    asked = parser.parse_args()
    if asked.url is not None and asked.server_kills:
        parser.error("--server-kills goes with a server that is started here")
    with _place(asked.url) as (url, server):
        return run(url, server, asked)


if __name__ == "__main__":
    sys.exit(main())
