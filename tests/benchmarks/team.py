"""Many people in one database: the time of commits, and their completeness.

    python -m tests.benchmarks.team [--people 20] [--labels 2000]
        [--kills 0] [--server-kills 0]

Starts a server, which keeps every commit on the disk as a server of a team does. Each person is a
process that labels as fast as it can, as an annotator of the team; what it cannot commit waits in
its outbox, and goes out as in the app.

After every ten labels each process inserts ten rows by psycopg alone (``INSERT`` and ``COMMIT``):
the events of those labels, into a copy of the table of events with its indexes. So the benchmark
prints latency and processor time of a label beside those of the bare insert, and their ratios. The
server's processor time is that of the process that serves the connection.

With ``--kills`` that many of the people are killed at random moments and begun again, with
``--server-kills`` the server, too. At the end every label that was reported as kept has to be
there, once, and the tables have to be what the events come to; it ends with 1 where that is not so.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from signal import SIGKILL
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple
from unittest.mock import Mock
from urllib.parse import urlsplit

import psycopg

from mast_tui.errors import ChangedElsewhere, ServerAway
from mast_tui.ui.services.workspace import WorkspaceWatcher
from mast_tui.workspace import Workspace
from mast_tui.workspace.database import driver_of
from mast_tui.workspace.events.model import payload_text
from mast_tui.workspace.events.rows import event_to_row
from mast_tui.workspace.events.types import LabelAdded
from mast_tui.workspace.outbox import Outbox
from mast_tui.workspace.records import TeamRole, TraceRecord
from mast_tui.workspace.schema import events
from tests.postgres import PostgresServer, running_server
from tests.workspace.build import MAST, TRACE, event, label, start_pass

_CONTEXT: Final = get_context("forkserver")
_BLOCK: Final = 10
"""Labels, and then bare inserts, that a process makes in turns."""

_INSERT_BARE: Final = f"INSERT INTO bare_events VALUES ({', '.join(['%s'] * len(events.columns))})"
_MAKE_BARE: Final = """
CREATE TABLE IF NOT EXISTS public.bare_events (LIKE public.events INCLUDING ALL);
GRANT INSERT ON public.bare_events TO PUBLIC;
"""
_UNSENT: Final = 20
"""The most labels of an annotator while the server is away."""


class Account(NamedTuple):
    """The account of an annotator at the server."""

    name: str
    url: str
    password: str | None


class Cost(NamedTuple):
    """The cost of several commits, added up: their number and the processor seconds of both sides.

    ``server`` is None if the process that served was killed.
    """

    commits: int
    client: float
    server: float | None


class Timed(NamedTuple):
    """One label that was kept, with the seconds until it was."""

    label_id: str
    seconds: float


class Block(NamedTuple):
    """A block of labels and of as many bare inserts."""

    labels: Cost
    inserts: Cost
    insert_seconds: list[float]


class Meter:
    """A meter of the processor time of this process and of the one that serves it."""

    def __init__(self, backend: int | None) -> None:
        self._backend = backend
        self._server_at_first = _processor_seconds(backend)
        self._client = 0.0
        self._commits = 0

    @contextmanager
    def commit(self, seconds: list[float]) -> Iterator[None]:
        """Measure the block as one commit, and append its seconds."""
        spent = time.process_time()
        begun = time.perf_counter()
        yield
        seconds.append(time.perf_counter() - begun)
        self._client += time.process_time() - spent
        self._commits += 1

    def cost(self) -> Cost:
        """Return what all commits so far have cost."""
        now = _processor_seconds(self._backend)
        first = self._server_at_first
        server = None if now is None or first is None else now - first
        return Cost(self._commits, self._client, server)


def _processor_seconds(process: int | None) -> float | None:
    """Return the processor time of a process, None if it is gone."""
    if process is None:
        return None
    try:
        return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9
    except OSError:
        return None


def work(
    account: Account, count: int, folder: Path, results: Connection, start: Connection
) -> None:
    """Label ``count`` times, and report each label, and each block with its cost.

    Args:
        account: The account of the annotator.
        count: The number of labels.
        folder: The folder of the outbox.
        results: Receives 0 once this process is ready, then each label and block.
        start: Is closed when all are to begin.
    """
    name = account.name
    with closing(_opened(account, folder)) as workspace:
        known_seq = workspace.last_seq(name, TRACE, MAST.ref)
        outbox = workspace.outbox
        assert outbox is not None
        results.send(0)
        wait([start])
        left = count
        while left:
            size = min(left, _BLOCK)
            meter = Meter(_backend_of(workspace))
            rows = []
            for _ in range(size):
                seconds = list[float]()
                with meter.commit(seconds):
                    new_label = label(workspace, annotator=name)
                    recorded = None
                    while recorded is None:
                        try:
                            new = [event(LabelAdded(new_label), annotator=name)]
                            recorded = workspace.append(new, known_seq=known_seq)
                        except ChangedElsewhere:  # what has waited was counted otherwise
                            known_seq = workspace.last_seq(name, TRACE, MAST.ref)
                    known_seq = recorded[-1].seq
                results.send(Timed(new_label.id, seconds[0]))
                last = recorded[-1]
                rows.append(tuple(event_to_row(last, payload_text(last.fact)).values()))
                if len(outbox.waiting) >= _UNSENT:
                    _until_sent(outbox)
            cost = meter.cost()
            left -= size
            with suppress(psycopg.OperationalError):  # the server was killed
                results.send(Block(cost, *_insert_bare(account, rows)))
        _until_sent(outbox)
    results.close()


def _backend_of(workspace: Workspace) -> int | None:
    """Return the server's process for the connection that writes, None for a lost one."""
    writer = workspace._database._writer
    return None if writer.invalidated else driver_of(writer).info.backend_pid


@lru_cache
def _bare_connection(account: Account) -> psycopg.Connection[Any]:
    return psycopg.connect(account.url, password=account.password)


def _insert_bare(account: Account, rows: Sequence[Sequence[Any]]) -> tuple[Cost, list[float]]:
    """Insert rows by psycopg alone, each in a transaction, and return what that took."""
    if _bare_connection(account).closed:
        _bare_connection.cache_clear()
    connection = _bare_connection(account)
    meter = Meter(connection.info.backend_pid)
    seconds = list[float]()
    for row in rows:
        with meter.commit(seconds):
            connection.execute(_INSERT_BARE, row)
            connection.commit()
    return meter.cost(), seconds


def _until_sent(outbox: Outbox) -> None:
    """Wait as people do, who make no labels faster than the app sends them."""
    while outbox.waiting:
        time.sleep(0.05)


def _opened(account: Account, folder: Path) -> Workspace:
    """Return the workspace when the server answers, with a first pass and a watched outbox."""
    while True:
        try:
            workspace = Workspace.open(account.url, password=account.password)
            try:
                workspace.open_outbox(folder, account.name)
                if not workspace.last_seq(account.name, TRACE, MAST.ref):
                    start_pass(workspace, annotator=account.name)
            except BaseException:
                workspace.close()
                raise
            WorkspaceWatcher(workspace, Mock())
            return workspace
        except ServerAway:
            time.sleep(0.05)


class Person:
    """An annotator in a process that may be killed."""

    def __init__(self, account: Account, count: int, folder: Path, start: Connection) -> None:
        self.name = account.name
        self.ids: list[str] = []
        self.seconds: list[float] = []
        self.blocks: list[Block] = []
        self.ready = False
        self._account = account
        self._count = count
        self._folder = folder
        self._start = start
        self.begin()

    def begin(self) -> None:
        """Begin or continue."""
        self.results, results = _CONTEXT.Pipe(duplex=False)
        self._left = self._count - len(self.ids)
        self.process: BaseProcess = _CONTEXT.Process(
            target=work, args=(self._account, self._left, self._folder, results, self._start)
        )
        self.process.start()
        results.close()

    def hear(self) -> bool:
        """Read the reports, and return whether more can come."""
        try:
            while self.results.poll():
                match self.results.recv():
                    case 0:
                        self.ready = True
                    case Timed(label_id, seconds):
                        self.ids.append(label_id)
                        self.seconds.append(seconds)
                    case Block() as block:
                        self.blocks.append(block)
        except EOFError:
            self.process.join()
            return False
        return True


def run(url: str, server: PostgresServer, options: argparse.Namespace) -> int:
    """Measure, print, and return the exit code."""
    people = options.people
    count = options.labels
    chance = random.Random(1)
    kill_counts = chance.sample(range(people * count), options.kills + options.server_kills)
    kills = sorted(kill_counts[: options.kills])
    server_kills = sorted(kill_counts[options.kills :])
    waiting, start = _CONTEXT.Pipe(duplex=False)
    with TemporaryDirectory() as outboxes:
        accounts = _team(url, people)
        everybody = [Person(account, count, Path(outboxes), waiting) for account in accounts]
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute(_MAKE_BARE)
        while not all(person.ready for person in everybody):
            for person in everybody:
                assert person.hear(), f"{person.name} could not begin"
            time.sleep(0.05)
        begun = time.perf_counter()
        start.close()
        open_ones = list(everybody)
        while open_ones:
            wait([person.results for person in open_ones], 0.2)
            time.sleep(0.05)  # so that listening takes little from those who work
            for person in list(open_ones):
                if person.hear():
                    continue
                if person.process.exitcode == -SIGKILL and len(person.ids) < count:
                    person.begin()
                elif person.process.exitcode:
                    for other in everybody:
                        other.process.kill()
                    return 1
                else:
                    open_ones.remove(person)
            done = sum(len(person.ids) for person in everybody)
            if kills and done >= kills[0] and open_ones:
                kills.pop(0)
                chance.choice(open_ones).process.kill()
            if server_kills and done >= server_kills[0]:
                server_kills.pop(0)
                with server.away(killed=True):
                    time.sleep(chance.random())
                    if kills and open_ones:
                        kills.pop(0)
                        chance.choice(open_ones).process.kill()
        took = time.perf_counter() - begun
    times = sorted(seconds for person in everybody for seconds in person.seconds)
    lost = doubled = 0
    with closing(Workspace.open(url)) as workspace:
        for person in everybody:
            history = list(workspace.events(annotator=person.name))
            ids = Counter(e.fact.label.id for e in history if isinstance(e.fact, LabelAdded))
            stored = {label.id for label in workspace.labels(annotator=person.name)}
            lost += len(set(person.ids) - stored)
            doubled += ids.total() - len(ids) + len(history) - len({e.seq for e in history})
        wrong = [*workspace.differences(), *workspace.edited_histories()]
    blocks = [block for person in everybody for block in person.blocks]
    inserts = sorted(seconds for block in blocks for seconds in block.insert_seconds)
    print(
        f"{people} people × {count} labels, {options.kills} killed, the server "
        f"{options.server_kills} times: {len(times) / took:.0f} labels and as many bare inserts a "
        f"second; lost {lost}, doubled {doubled}, tables and chains that differ {len(wrong)}"
    )
    print(f"{'':28}{'label':>10}{'bare':>10}{'ratio':>10}")
    for name, share in (("median", 0.5), ("p95", 0.95)):
        values = (_quantile(times, share), _quantile(inserts, share))
        _print_ratio(f"ms to the commit, {name}", *values)
    costs = [block.labels for block in blocks], [block.inserts for block in blocks]
    client = [_mean(kind, lambda cost: cost.client) for kind in costs]
    _print_ratio("processor ms, client", *client)
    if all(any(cost.server is not None for cost in kind) for kind in costs):
        served = [_mean(kind, lambda cost: cost.server) for kind in costs]
        _print_ratio("processor ms, server", *served)
        _print_ratio("processor ms, both", client[0] + served[0], client[1] + served[1])
    return 1 if lost or doubled or wrong else 0


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Return a quantile of sorted seconds in milliseconds."""
    return ordered[int(len(ordered) * share)] * 1e3


def _mean(costs: Iterable[Cost], seconds_of: Callable[[Cost], float | None]) -> float:
    """Return the milliseconds of one commit over the blocks with known times."""
    measured = [
        (cost.commits, seconds) for cost in costs if (seconds := seconds_of(cost)) is not None
    ]
    return sum(seconds for _, seconds in measured) / sum(commits for commits, _ in measured) * 1e3


def _print_ratio(name: str, label_value: float, bare_value: float) -> None:
    print(f"{name:28}{label_value:10.3f}{bare_value:10.3f}{label_value / bare_value:10.2f}")


def _team(url: str, people: int) -> list[Account]:
    """Make the workspace, and a team of so many annotators."""
    names = [f"person-{number}" for number in range(people)]
    with closing(Workspace.create_on_server(url)) as workspace:
        workspace.add_taxonomy(MAST)
        workspace.register_trace(TraceRecord(TRACE))
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        return [
            Account(
                name,
                parts._replace(netloc=f"{name}@{host}").geturl(),
                workspace.add_member(name, TeamRole.ANNOTATOR),
            )
            for name in names
        ]


def main() -> int:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--labels", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--server-kills", type=int, default=0)
    options = parser.parse_args()
    with running_server(safe=True) as server:
        return run(server.url("team"), server, options)


if __name__ == "__main__":
    sys.exit(main())
