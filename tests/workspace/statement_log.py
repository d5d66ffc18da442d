"""Statements that are sent to the file of a workspace, and their query plans."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest


class StatementLog:
    """The statements sent to files that are opened later."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.statements: list[str] = []
        self._connect = sqlite3.connect
        monkeypatch.setattr(sqlite3, "connect", self._connect_logged)

    def _connect_logged(self, *args: object, **kwargs: object) -> sqlite3.Connection:
        connection: sqlite3.Connection = self._connect(*args, **kwargs)  # type: ignore[call-overload]
        connection.set_trace_callback(self.statements.append)
        return connection

    @contextmanager
    def during(self) -> Iterator[list[str]]:
        """Collect the statements of the block."""
        self.statements.clear()
        yield self.statements

    def plans(self, path: Path) -> list[tuple[str, str]]:
        """Return the steps of the query plans of statements that read or change rows."""
        steps = []
        with closing(self._connect(path)) as connection:
            for statement in self.statements:
                if statement.split()[0] in ("SELECT", "INSERT", "UPDATE", "DELETE"):
                    plan = connection.execute(f"EXPLAIN QUERY PLAN {statement}")
                    steps += [(step[3], statement) for step in plan]
        return steps
