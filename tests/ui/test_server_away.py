"""Work on the screens while the server of a team is away."""

from __future__ import annotations

from contextlib import AsyncExitStack, closing
from pathlib import Path

import pytest

from mast_tui.adjudication import Adjudication, take_on
from mast_tui.adjudication.conflicts import ABSENT_CHOICE
from mast_tui.workspace import Workspace
from tests.postgres import PostgresServer
from tests.ui.settle import settle
from tests.ui.stage import MAST, SLUGS, Stage, missing, stage
from tests.ui.team_dir import TeamDir, last_message

pytestmark = pytest.mark.slow


async def wait_for_local_copy(on: Stage, *, everybody: bool = False) -> None:
    assert on.app.opened is not None
    outbox = on.app.opened.workspace.outbox
    assert outbox is not None
    await on.until(lambda: outbox.local_copy.ready and outbox.local_copy.everybody is everybody)


async def wait_until_sent(on: Stage) -> None:
    assert on.app.opened is not None
    workspace = on.app.opened.workspace
    await on.until(lambda: not workspace.waiting)


async def test_labels_are_sent_after_the_server_was_away(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    team = TeamDir(tmp_path / "set")
    database = postgres.take()
    url = postgres.url(database)
    for name in ("a", "b", "c"):
        team.file(name)
    async with AsyncExitStack() as first:
        on = await first.enter_async_context(stage(team.folder, workspace=url))
        await on.press("enter", "1", "3")
        await wait_for_local_copy(on)
        with postgres.keeping_out(database):
            await on.press("j", "2", "3")
            assert "1 change waiting for the server" in on.lines[0]
            await on.press("}", "1", "1", "D", "o")
            assert "3 changes waiting for the server" in on.lines[0]
            await on.press("}", "1", "5", "u", "3", "1", "{")
            assert on.session.finished
            await on.press("{", "j", "j", "3", "3")
            assert on.labels == {("1.3", 1, 1), ("2.3", 2, 2), ("3.3", 3, 3)}
            await on.press("L")
            assert "1 of 3" in on.lines[0]
            await first.aclose()  # nothing is sent any more
    async with stage(team.folder, workspace=url) as on:
        await wait_until_sent(on)
    with closing(Workspace.open(url)) as store:
        labels = store.labels(annotator="alice")
        assert [SLUGS[code] for code in ("1.3", "2.3", "1.1", "3.1", "3.3")] == [
            label.mode for label in sorted(labels, key=lambda label: label.created_at)
        ]
        assert (len(store.finished_traces("alice", MAST.ref)), store.differences()) == (1, ())
    postgres.give_back(database)


async def test_decisions_are_made_without_the_server(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = TeamDir(tmp_path / "set")
    database = postgres.take()
    url = postgres.url(database)
    team.label("alice", "one", {"1.3": (3, 8), "2.6": (10, 10)})
    team.label("bob", "one", {"3.1": "Done: the checkout", "2.6": (2, 2)})
    with closing(Workspace.open(team.workspace)) as file, closing(Workspace.open(url)) as store:
        file.copy_into(store)
        (trace_id,) = take_on(store, MAST, "carol", [record.trace_id for record in store.traces()])
        async with stage(team.folder, workspace=url) as on:
            await on.press("A")
            await wait_for_local_copy(on, everybody=True)
            with monkeypatch.context() as not_yet:
                not_yet.setattr(Workspace, "send_waiting", lambda _: ())
                with postgres.keeping_out(database):
                    await on.press("1")
                assert "1 change waiting for the server" in on.lines[0]
                assert (
                    "1.3 Step repetition: present at #3 to #8, as alice · 2 left"
                    in last_message(on)
                )
                await on.press("2", "0", "u")
                assert not missing(
                    on.lines[0], "4 changes waiting for the server", "2 of 3 decided"
                )
                other = Adjudication(store, MAST, trace_id, "carol")
                assert other.decisions == ()
                other.decide(other.gold.conflicts[0], ABSENT_CHOICE)
            await on.until(lambda: any("carol decided" in notice for notice in on.notices))
            await on.until(lambda: "waiting" not in on.lines[0])
            await settle(on.pilot)
            assert "2 of 3 decided" in on.lines[0]
        decided = {item.mode: item.decided_by for item in store.decisions(trace_id, MAST.ref)}
        assert decided == {SLUGS["1.3"]: "carol", SLUGS["3.1"]: "alice"}
        assert store.differences() == ()
    postgres.give_back(database)
