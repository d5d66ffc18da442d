"""An allowance that many processes share: they check out parts of it and return the rest.

The command keeps the account; each process that sends requests to a model is connected to it. The
part of a killed process counts as spent, because its requests may have to be paid.
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
from typing import Final, Self

from mast_tui.configuration import Prices
from mast_tui.judges.llm.client.budget import Allowance, Budget, Reserved
from mast_tui.judges.llm.request import AllowanceSpent, RunStops
from mast_tui.judges.llm.run.setup import Setup
from mast_tui.scale.shards import ShardFolder
from mast_tui.workspace import Usage

SPENT: Final = "spent.json"
"""The file in the folder of the shards that records the part of the allowance in use."""

_PART: Final = 1 / 64
"""The share of the allowance that a process checks out at once, unless a request needs more."""

_PAUSE: Final = 0.1
"""The seconds until a process asks again while only concurrent requests hold the rest."""

_BACKLOG: Final = 256

_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class SharedAllowanceAddress:
    """The address of the process with the account, and the secret for its connections."""

    address: tuple[str, int]
    secret: bytes


class SharedAllowance:
    """The account of an allowance that several processes share.

    A process checks out a part of the allowance, and returns the surplus.
    """

    def __init__(self, host: str, used: float, record: Callable[[float], object]) -> None:
        """Listen for connections.

        Args:
            host: The address at which processes reach this one.
            used: The share of the allowance that was spent before, from 0 to 1.
            record: Stores the used share; called before a process gets its part.
        """
        secret = token_bytes(32)
        self._listener = Listener((host, 0), backlog=_BACKLOG, authkey=secret)
        self.address = SharedAllowanceAddress(self._listener.address, secret)
        self.used = used
        self.spent = False
        """True once a process was refused because too little is left."""
        self._record = record
        self._closed = False
        self._reservations: dict[Connection, float] = {}
        self._lock = Lock()

    def __enter__(self) -> Self:
        Thread(target=self._accept_connections, name="allowance", daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._closed = True
        create_connection(self._listener.address).close()  # wakes the thread that waits in accept
        self._listener.close()

    def _accept_connections(self) -> None:
        """Start a thread for each process that connects with the secret; end when closed."""
        while True:
            try:
                connection = self._listener.accept()
            # The other side has no secret, or this side was closed.
            except (AuthenticationError, EOFError, OSError):
                if self._closed:
                    return
                continue
            Thread(
                target=self._serve_connection, args=(connection,), name="allowance", daemon=True
            ).start()

    def _serve_connection(self, connection: Connection) -> None:
        """Grant one process the shares that it requests, until it disconnects."""
        with connection, suppress(EOFError, OSError):
            while True:
                surplus, unanswered_share, requested_share = connection.recv()
                granted = self._check_out(connection, surplus, unanswered_share, requested_share)
                connection.send(granted)
        with self._lock:
            self._reservations.pop(connection, None)

    def _check_out(
        self,
        connection: Connection,
        surplus: float,
        unanswered_share: float,
        requested_share: float,
    ) -> float | None:
        """Accept the surplus of a process, and check out the share that it requests.

        Args:
            connection: The connection of the process.
            surplus: The checked out share that the process returns.
            unanswered_share: The share of its unanswered requests.
            requested_share: The additional share that it needs; 0 to only return the surplus.

        Returns:
            The granted share; 0.0 if too little is left; None if nothing is requested, or if
            answers to concurrent requests may leave enough.
        """
        with self._lock:
            self.used -= surplus
            self._reservations[connection] = unanswered_share
            remaining = 1.0 - self.used
            if not requested_share or remaining + _ROUNDING < requested_share:
                self._record(self.used)
                if not requested_share or any(self._reservations.values()):
                    return None
                self.spent = True
                return 0.0
            # More than requested, so that processes ask seldom, but no more than remains.
            granted = min(max(requested_share, _PART), max(remaining, requested_share))
            self.used += granted
            self._reservations[connection] = unanswered_share + granted
            self._record(self.used)
            return granted


class SharedBudget(Budget):
    """The budget of this process: the parts of the allowance that it has checked out."""

    def __init__(
        self, address: SharedAllowanceAddress, allowance: Allowance, prices: Prices | None
    ) -> None:
        """Connect to the process with the account.

        Args:
            address: The address of the account.
            allowance: The shared allowance.
            prices: The prices of tokens.

        Raises:
            RunStops: No process answers at the address.
        """
        super().__init__(allowance, prices=prices)
        try:
            self._connection = Client(address.address, authkey=address.secret)
        except (EOFError, OSError) as error:
            host_and_port = ":".join(map(str, address.address))
            raise RunStops(
                f"a worker cannot reach the command that started it, at {host_and_port} "
                f"({error}); check for a firewall between them"
            ) from None
        self._checked_out_share = 0.0
        """The share of the allowance that this process has taken from the account."""
        self._turn = asyncio.Lock()
        """Held while one request reserves its tokens; the other requests wait for their turn."""

    async def reserve(self, tokens_in: int, answer_tokens: int) -> Reserved:
        """Reserve the estimated tokens of a request; check out more of the allowance if needed.

        Args:
            tokens_in: The estimated tokens of the request.
            answer_tokens: The most tokens of the answer.

        Raises:
            AllowanceSpent: Too little of the allowance is left.
        """
        async with self._turn:
            while True:
                reserved = Reserved(tokens_in, self._expected_answer_tokens(answer_tokens))
                planned_share = self._share_of_allowance([*self._reservations, reserved])
                if planned_share <= self._checked_out_share + _ROUNDING:
                    self._reservations.add(reserved)
                    return reserved
                # The share without this request, and the share of the unanswered requests in it.
                held_share = self._share_of_allowance([*self._reservations])
                surplus = self._checked_out_share - held_share
                unanswered_share = held_share - self._share_of_allowance([])
                granted = await asyncio.to_thread(
                    self._exchange_with_account,
                    surplus,
                    unanswered_share,
                    planned_share - held_share,
                )
                # 0.0: too little is left; None: answers to other requests may leave enough.
                self._checked_out_share = held_share + (granted or 0.0)
                if granted == 0.0:
                    raise AllowanceSpent(
                        "the rest of the allowance is too small for the next request; the "
                        "same command continues with a new allowance"
                    )
                if granted is None:
                    await asyncio.sleep(_PAUSE)

    def close(self) -> None:
        """Return the unused part of the checked out share to the account, and disconnect."""
        surplus = self._checked_out_share - self._share_of_allowance([])
        with self._connection, suppress(RunStops):
            self._exchange_with_account(surplus, unanswered_share=0.0, requested_share=0.0)

    def _exchange_with_account(
        self, surplus: float, unanswered_share: float, requested_share: float
    ) -> float | None:
        """Return a surplus to the account, request a share, and return the granted share.

        The account also needs the share of unanswered requests, which may leave a surplus.
        """
        try:
            self._connection.send((surplus, unanswered_share, requested_share))
            granted: float | None = self._connection.recv()
        except (EOFError, OSError):
            raise RunStops("the command that started this worker has ended") from None
        return granted

    def _share_of_allowance(self, planned: list[Reserved]) -> float:
        """Return the share of the allowance for used and planned tokens together."""
        total_usage = self.used
        for reserved in planned:
            total_usage += Usage(0, reserved.tokens_in, reserved.tokens_out)
        return self._allowed.share(total_usage, self._prices)


@contextmanager
def shared_account(
    setup: Setup, folder: ShardFolder, host: str
) -> Iterator[SharedAllowance | None]:
    """Open the account from which processes take parts of the allowance; None without a limit.

    The used part is stored in the folder of the shards, so that an interrupted run continues with
    the rest.

    Args:
        setup: The setup, with its allowance.
        folder: The folder of the shards.
        host: The address at which processes reach this one.
    """
    allowance = setup.allowance
    if not (allowance.tokens or allowance.cost):
        yield None
        return

    def record(used_share: float) -> None:
        spent = {
            "tokens": used_share * (allowance.tokens or 0),
            "cost": used_share * (allowance.cost or 0.0),
        }
        folder.write(SPENT, json.dumps(spent).encode())

    recorded = json.loads(folder.read(SPENT) or b"{}")
    earlier_share = max(
        recorded.get("tokens", 0) / (allowance.tokens or inf),
        recorded.get("cost", 0) / (allowance.cost or inf),
    )
    with SharedAllowance(host, earlier_share, record) as account:
        yield account
