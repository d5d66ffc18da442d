"""Workspaces of these tests, in memory or on a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import is_hypothesis_test, settings

from mast_tui.workspace import Workspace
from tests.postgres import PostgresServer

_ON_BOTH_DATABASES: Final = {
    *("test_chain", "test_events", "test_judgements", "test_merging", "test_revisions"),
    *("test_runs", "test_set_aside", "test_state", "test_traces"),
}
"""The files of tests that run on SQLite and on PostgreSQL; the others are about files."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test of those files on both databases; random tests only in a thorough run."""
    if metafunc.module.__name__.rpartition(".")[2] not in _ON_BOTH_DATABASES:
        return
    is_random = is_hypothesis_test(metafunc.function)
    if is_random and settings.get_current_profile_name() != "thorough":
        return
    server = pytest.param("postgresql", marks=pytest.mark.slow)
    metafunc.parametrize("database", ["sqlite", server], indirect=True)


@pytest.fixture(autouse=True)
def database(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``:memory:`` mean a database of the server, where the test runs on one."""
    if getattr(request, "param", "sqlite") == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres")
        monkeypatch.setattr(Workspace, "open", _on(server, Workspace.open))


def _on(
    server: PostgresServer, open_workspace: Callable[..., Workspace]
) -> Callable[..., Workspace]:
    def open_on_server(location: Path | str, **options: Any) -> Workspace:
        if str(location) != ":memory:":
            return open_workspace(location, **options)
        name = server.take()
        workspace = open_workspace(server.url(name))
        close = workspace.close
        databases = [name]

        def close_and_give_back() -> None:
            close()
            while databases:
                server.give_back(databases.pop())

        workspace.close = close_and_give_back  # type: ignore[method-assign]
        return workspace

    return open_on_server


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    """The address of an empty workspace on the server."""
    name = postgres.take()
    yield postgres.url(name)
    postgres.give_back(name)


@pytest.fixture
def workspace(database: None) -> Iterator[Workspace]:
    with closing(Workspace.open(":memory:")) as workspace:
        yield workspace


@pytest.fixture
def other(database: None) -> Iterator[Workspace]:
    with closing(Workspace.open(":memory:")) as workspace:
        yield workspace
