"""One allowance for many processes, which check out parts of it and give back what is left.

The command has the books; each process that asks a model has a connection to it. A part that a
process has when it is killed counts as spent: what it has sent may have to be paid.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import inf
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from secrets import token_bytes
from socket import create_connection
from threading import Lock, Thread
from types import TracebackType
from typing import Final, Self

from mast_tui.configuration import Prices
from mast_tui.judges.llm.client.budget import Allowance, Budget, Reserved
from mast_tui.judges.llm.errors import AllowanceSpent, RunStops
from mast_tui.judges.llm.run.setup import Setup
from mast_tui.scale.folder import ShardFolder
from mast_tui.workspace import Usage

SPENT: Final = "spent.json"
"""The file among the shards with what a run has taken so far."""

_PART: Final = 1 / 64
"""Of the allowance, what a process checks out at a time, unless a request takes more."""

_PAUSE: Final = 0.1
"""Seconds until a process asks again where what is left is only held by requests under way."""

_BACKLOG: Final = 256

_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class SharedAllowanceAddress:
    """Where the books are, and the secret that lets in."""

    address: tuple[str, int]
    secret: bytes


class SharedAllowance:
    """The books: what of an allowance, as a share of it, is spent or checked out."""

    def __init__(self, host: str, taken: float, note: Callable[[float], object]) -> None:
        """Listen.

        Args:
            host: The address at which processes reach this one.
            taken: What was spent before.
            note: Told what is taken before a process has it.
        """
        secret = token_bytes(32)
        self._listener = Listener((host, 0), backlog=_BACKLOG, authkey=secret)
        self.door = SharedAllowanceAddress(self._listener.address, secret)
        self.taken = taken
        self.spent = False
        """Whether somebody was told that too little is left."""
        self._note = note
        self._closed = False
        self._held: dict[Connection, float] = {}
        self._books = Lock()

    def __enter__(self) -> Self:
        Thread(target=self._accept, name="allowance", daemon=True).start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._closed = True
        create_connection(self.door.address).close()  # who waits for somebody hears of it
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except (AuthenticationError, EOFError, OSError):  # it was somebody without the secret
                if self._closed:
                    return
                continue
            Thread(target=self._serve, args=(connection,), name="allowance", daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        with connection, suppress(EOFError, OSError):
            while True:
                back, held, wanted = connection.recv()
                connection.send(self._take(connection, back, held, wanted))
        with self._books:
            self._held.pop(connection, None)

    def _take(
        self, connection: Connection, back: float, held: float, wanted: float
    ) -> float | None:
        """Take back what a process does not need, and give it what it wants.

        Returns:
            The share that it has now beside what it holds; 0.0 where too little is left, None
            where there may be enough when requests that are under way are answered.
        """
        with self._books:
            self.taken -= back
            self._held[connection] = held
            left = 1.0 - self.taken
            if not wanted or left + _ROUNDING < wanted:
                self._note(self.taken)
                if not wanted or any(self._held.values()):
                    return None
                self.spent = True
                return 0.0
            given = min(max(wanted, _PART), max(left, wanted))
            self.taken += given
            self._held[connection] = held + given
            self._note(self.taken)
            return given


class SharedBudget(Budget):
    """What this process may spend: the parts that it has checked out."""

    def __init__(
        self, door: SharedAllowanceAddress, allowance: Allowance, prices: Prices | None
    ) -> None:
        """Connect.

        Args:
            door: Where the books are.
            allowance: The whole that is shared.
            prices: What tokens cost.

        Raises:
            RunStops: Nobody answers there.
        """
        super().__init__(prices=prices)
        self._whole = allowance
        try:
            self._connection = Client(door.address, authkey=door.secret)
        except (EOFError, OSError) as error:
            place = ":".join(map(str, door.address))
            raise RunStops(
                f"a worker cannot reach the command that has the allowance, at {place} ({error}); "
                "look for a firewall between them"
            ) from None
        self._has = 0.0
        self._turn = asyncio.Lock()

    async def reserve(self, tokens_in: int, answer_tokens: int) -> Reserved:
        """Put aside what a request is expected to take; more is checked out where it must be."""
        async with self._turn:
            while True:
                wanted = Reserved(tokens_in, self._expected(answer_tokens))
                planned = self._share([*self._held, wanted])
                if planned <= self._has + _ROUNDING:
                    self._held.add(wanted)
                    return wanted
                held = self._share([*self._held])
                words = self._has - held, held - self._share([]), planned - held
                given = await asyncio.to_thread(self._ask, *words)
                self._has = held + (given or 0.0)
                if given == 0.0:
                    raise AllowanceSpent(
                        "the allowance is spent, but for less than the next request takes; the "
                        "same command goes on with a new one"
                    )
                if given is None:
                    await asyncio.sleep(_PAUSE)

    def close(self) -> None:
        """Give back what is left."""
        with self._connection, suppress(RunStops):
            self._ask(self._has - self._share([]), 0.0, 0.0)

    def _ask(self, back: float, held: float, wanted: float) -> float | None:
        try:
            self._connection.send((back, held, wanted))
            given: float | None = self._connection.recv()
        except (EOFError, OSError):
            raise RunStops("the command that has the allowance is gone") from None
        return given

    def _share(self, planned: list[Reserved]) -> float:
        """What was used and is planned, as a share of the allowance."""
        used = self.used
        for each in planned:
            used += Usage(0, each.tokens_in, each.tokens_out)
        return self._whole.share(used, self._prices)


@contextmanager
def shared(setup: Setup, folder: ShardFolder, host: str) -> Iterator[SharedAllowance | None]:
    """The books on what a setup allows, as long as they are needed; None where nothing bounds it.

    What is taken is written beside the shards: a run that was broken off goes on with the rest.

    Args:
        setup: With the allowance.
        folder: Where the shards are.
        host: The address at which processes reach this one.
    """
    allowed = setup.allowance
    if not (allowed.tokens or allowed.cost):
        yield None
        return

    def note(share: float) -> None:
        told = {"tokens": share * (allowed.tokens or 0), "cost": share * (allowed.cost or 0.0)}
        folder.write(SPENT, json.dumps(told).encode())

    told = json.loads(folder.read(SPENT) or b"{}")
    taken = max(
        told.get("tokens", 0) / (allowed.tokens or inf), told.get("cost", 0) / (allowed.cost or inf)
    )
    with SharedAllowance(host, taken, note) as books:
        yield books
