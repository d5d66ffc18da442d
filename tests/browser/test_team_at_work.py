"""Two members of a team in two browsers, a lost connection, and an adjudicator."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest

from mast_tui.labels import PassKind, VerdictValue
from mast_tui.workspace import Workspace
from mast_tui.workspace.records import TeamRole
from tests.browser.chromium import browser
from tests.browser.test_web import TRACE, served
from tests.browser.visitor import Visitor
from tests.postgres import PostgresServer
from tests.workspace.build import MAST

pytestmark = pytest.mark.slow

MEMBERS: Final = {
    "ann": TeamRole.ANNOTATOR,
    "ben": TeamRole.ANNOTATOR,
    "carol": TeamRole.ADJUDICATOR,
}
OTHER_TRACE: Final = TRACE.with_name("shipping-quote-hpa-stuck.jsonl")
MODE: Final = "step_repetition"


class Cable:
    """A connection between a browser and a server that can be cut and mended."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._is_cut = False
        self._sockets: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        with self._lock:
            self._is_cut = True
            for end in self._sockets:
                _shut(end)

    def mend(self) -> None:
        """Let connections through again."""
        with self._lock:
            self._is_cut = False

    def close(self) -> None:
        self.cut()
        _shut(self._listener)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                if self._is_cut:
                    client.close()
                    continue
                server = socket.create_connection(("localhost", self._server_port))
                self._sockets |= {client, server}
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self._carry, args=(source, target), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):  # where one end has gone, so does the other
            while data := source.recv(1 << 16):
                target.sendall(data)
        with self._lock:
            _shut(target)
            self._sockets.discard(source)
        source.close()


def _shut(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


@contextmanager
def cable_to(address: str) -> Iterator[tuple[Cable, str]]:
    port = urlsplit(address).port
    assert port is not None
    with closing(Cable(port)) as cable:
        yield cable, f"http://localhost:{cable.port}/"


def test_members_label_reconnect_and_adjudicate(
    tmp_path: Path, program: str, postgres: PostgresServer
) -> None:
    database = postgres.new_database()
    with closing(Workspace.create_on_server(postgres.url(database))) as owner:
        for name, role in MEMBERS.items():
            owner.add_member(name, role)
        # Of two traces the library shows first, so that carol decides without beginning one.
        options = ("--workspace", postgres.url(database, user="ann"), str(OTHER_TRACE))
        with (
            postgres.asking_for_passwords(MEMBERS),
            served(tmp_path, *options) as (address, _),
            cable_to(address) as (cable, address_of_ann),
            browser(program, tmp_path / "one", offline=False) as first,
            browser(program, tmp_path / "other", offline=False) as second,
        ):
            ann = Visitor(first)
            ben = Visitor(second)
            for visitor, name, place in ((ann, "ann", address_of_ann), (ben, "ben", address)):
                visitor.page.size(1280, 800)
                visitor.enter(place, name, password=f"secret of {name}")
                visitor.sees("Enter open")
                visitor.press("enter")
                visitor.sees("44 spans")
            ann.press("j", "1", "3")
            ann.sees("Step repetition on #2")
            ann.press("m", *"half")
            ann.sees("half")

            cable.cut()
            first.until(lambda: first.value("document.body.classList.contains('-lost')"))
            assert "Connection lost" in first.value("document.body.innerText")
            ben.press("-", "1", "3")
            ben.sees("Step repetition: absent")
            ann = Visitor(first)
            cable.mend()
            first.until(lambda: not first.value("document.body.classList.contains('-lost')"))
            ann.sees("half")
            ann.press(*"way", "enter")
            ann.sees("halfway")

            for visitor in (ann, ben):
                visitor.press("D", "W")
                visitor.sees("finished ·")
            assert [(one.annotator, one.mode, one.note) for one in owner.labels()] == [
                ("ann", MODE, "halfway")
            ]
            values = {(one.annotator, one.mode): one.value for one in owner.verdicts()}
            assert values["ann", MODE] is VerdictValue.PRESENT
            assert values["ben", MODE] is VerdictValue.ABSENT

            ben.press("Q")
            second.until(lambda: second.value("document.body.classList.contains('-closed')"))
            second.loading(lambda: second.value("document.querySelector('.quiet').click()"))
            carol = Visitor(second)
            carol.enter(address, "carol")
            assert "The password of carol is missing" in second.value("document.body.innerText")
            carol.enter(address, "carol", password="secret of carol")
            carol.sees("Enter open")
            carol.press("A")
            carol.sees("Enter opens them to you as adjudicator")
            carol.press("enter")
            carol.sees("a  adjudicate it")
            carol.press("a")
            carol.sees("0 of 1 decided")
            carol.press("1")
            carol.sees("1 of 1 decided")
            ((_, decisions),) = owner.all_decisions(MAST.ref).items()
            assert [(one.decided_by, one.mode, one.value) for one in decisions] == [
                ("carol", MODE, VerdictValue.PRESENT)
            ]
            finished = {one.annotator: one.kind for one in owner.passes() if one.finished_at}
            assert finished == {"ann": PassKind.BLIND, "ben": PassKind.BLIND}
