"""A team's PostgreSQL server: killed while members label, and queried by a blind annotator."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import psycopg

from mast_tui.errors import MastError
from mast_tui.labels import Target
from mast_tui.workspace import Workspace
from tests.attack.trying import Outcome, Setting, command, forked, wait_for
from tests.postgres import PostgresServer, running_server
from tests.workspace.build import MODES
from tests.workspace.test_attacks_by_sql import (
    EXCEPTION_BLOCKS,
    LABELS_AS_TEXT,
    READ_ALL,
    REVEALS,
    STATEMENTS,
    check_nothing_is_seen,
    check_others_can_work,
    everything,
)
from tests.workspace.test_sight_by_server import Team, asked, everybody_works, work

WHOLE: Final = 300

ME: Final = "mira"
MEMBERS: Final = ("noa", "omar")
"""The annotators who label while something is killed."""
KEYS: Final = ("k0", "k1")
SECONDS: Final = 1.5
"""The longest time until a kill, counted from the first label."""
NOT_MINE: Final = ("events", "labels", "verdicts", "passes", "reviews", "span_notes", "judgements",
                   "decisions", "taxonomies", "traces", "members")  # fmt: skip
"""Tables of which an annotator changes no row of others, whatever is committed."""

Mark = tuple[str, str]
"""A mode and the key of a span."""


# Kills


def label(team: Team, name: str, log: Path, seed: str) -> None:
    """Set and remove labels without an end; note each before and after the call."""
    draw = random.Random(seed)
    with team.session(name) as session, log.open("a", buffering=1) as lines:
        while True:
            mark = (draw.choice(MODES), draw.choice(KEYS))
            lines.write(json.dumps(["asked", *mark]) + "\n")
            target = Target(mark[1], mark[1])
            session.toggle_label(mark[0], target, suggestions_on_screen=False)
            lines.write(json.dumps(["kept", *mark]) + "\n")


def until_refused(team: Team, name: str, log: Path, seed: str) -> int:
    """Label until the server is away, which is an error in words."""
    os.closerange(3, 1_000)  # the server's own pipe, which tells it to end when it is closed
    try:
        label(team, name, log, seed)
    except MastError as error:
        print(error)
    return 0


def _marks(log: Path) -> tuple[set[Mark], Mark | None]:
    marks: set[Mark] = set()
    asked_for: Mark | None = None
    for line in log.read_text().splitlines():
        what, mode, key = json.loads(line)
        if what == "asked":
            asked_for = (mode, key)
        else:
            marks ^= {(mode, key)}
            asked_for = None
    return marks, asked_for


def _lost(team: Team, name: str, log: Path, before: set[Mark]) -> str:
    changed, unknown = _marks(log)
    expected = before ^ changed
    found = _found(team, name)
    if found in (expected, expected ^ ({unknown} if unknown else set())):
        return ""
    return f"{name}: {sorted(found ^ expected)} differ; {unknown} was under way"


def _found(team: Team, name: str) -> set[Mark]:
    with closing(Workspace.open(team.url("postgres"))) as owner:
        labels = owner.labels(annotator=name)
    marks = [(one.mode, str(one.target.first)) for one in labels]
    if len(set(marks)) < len(marks):
        raise AssertionError(f"{name} has a label twice: {marks}")
    return set(marks)


def kill(home: Path, team: Team, draw: random.Random, *, server: bool) -> str:
    """Kill the server or a member's program while two members label; return what was lost."""
    before = {name: _found(team, name) for name in MEMBERS}
    logs = {name: home / f"{name}.log" for name in MEMBERS}
    pids: dict[str, int] = {}
    for name, log in logs.items():
        log.touch()
        seed = str(draw.random())

        def run(name: str = name, log: Path = log, seed: str = seed) -> int:
            return until_refused(team, name, log, seed)

        pids[name] = forked(home, run, name=name)
    try:
        end = time.monotonic() + 60
        while not all(log.stat().st_size for log in logs.values()) and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(draw.uniform(0.0, SECONDS))
        if server:
            with team.server.away(killed=draw.random() < 0.5):
                fell = _ends(home, pids)
            if fell:
                return fell
        for pid in pids.values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    finally:
        if not server:
            for pid in pids.values():
                wait_for(pid)
    for name, log in logs.items():
        if fell := _lost(team, name, log, before[name]):
            return fell
    checked = command(home, "workspace", "check", "--workspace", team.url("postgres"))
    return checked.fell or ("" if checked.code == 0 else checked.out[-500:])


def _ends(home: Path, pids: dict[str, int]) -> str:
    for name, pid in pids.items():
        code = wait_for(pid)
        texts = [(home / f"{name}.{end}").read_text("utf-8", "replace") for end in ("out", "err")]
        if code != 0 or "Traceback" in "".join(texts):
            return f"{name}: ended with {code} when the server was away: {texts[1][-500:]}"
    return ""


# SQL


def _statement(draw: random.Random, connection: psycopg.Connection[Any], *, reveals: bool) -> Any:
    kind = draw.random()
    if reveals and kind < 0.35:
        return draw.choice(draw.choice(list(REVEALS.values())))
    if reveals and kind < 0.45:
        reveal = " ".join(
            statement.as_string(connection).replace("SELECT seen.append", "PERFORM seen.append", 1)
            + ";"
            for statement in REVEALS["pass 1"]
        )
        return draw.choice(list(EXCEPTION_BLOCKS.values())).format(
            reveal=reveal, labels=LABELS_AS_TEXT
        )
    if kind < 0.6:
        return draw.choice(READ_ALL)
    if kind < 0.65:
        name = f"c{draw.randrange(10**9)}"
        return f"DECLARE {name} CURSOR WITH HOLD FOR {draw.choice(READ_ALL)}; FETCH ALL FROM {name}"
    return draw.choice(STATEMENTS)


def ask(team: Team, draw: random.Random, *, reveals: bool) -> str:
    """Send random statements in a transaction; return what was seen, changed or kept waiting."""
    before = everything(team)
    sent: list[str] = []
    with team.sql(ME) as mira:
        answers: list[str] = []
        mira.execute("BEGIN")
        for number in range(draw.randrange(3, 15)):
            mira.execute(f"SAVEPOINT s{number}".encode())
            statement = _statement(draw, mira, reveals=reveals)
            answer = asked(mira, statement)
            sent.append(f"{statement} → {answer[:100]}")
            answers.append(answer)
            failed = mira.info.transaction_status is psycopg.pq.TransactionStatus.INERROR
            back = failed or draw.random() < 0.3
            kept = "ROLLBACK TO" if back else draw.choice(("RELEASE", "SAVEPOINT again_"))
            asked(mira, f"{kept} s{number}".replace("again_ ", "again_"))
        try:
            check_nothing_is_seen(mira, *answers)
            check_others_can_work(team)
        except AssertionError as error:
            return f"{error}; sent: {sent[-5:]}"
        mira.execute("ROLLBACK" if reveals or draw.random() < 0.5 else "COMMIT")
        try:
            check_nothing_is_seen(mira)
        except AssertionError as error:
            return f"after the transaction: {error}; sent: {sent[-5:]}"
    after = everything(team)
    changed = [name for name in before if name in NOT_MINE and before[name] != after[name]]
    return f"rows of others have changed in {', '.join(changed)}: {sent[-5:]}" if changed else ""


WAYS: Final[Sequence[str]] = (
    "SQL of a blind annotator, taken back",
    "programs of two members killed while they label",
    "SQL of a blind annotator, committed",
    "the server ends while two members label",
)


def attack(home: Path, way: str, teams: dict[str, Team], draw: random.Random) -> str:
    """Make one try."""
    if way.startswith("SQL"):
        return ask(teams["SQL"], draw, reveals=way.endswith("back"))
    return kill(home, teams["kills"], draw, server=way.startswith("the server"))


def _teams(server: PostgresServer) -> dict[str, Team]:
    teams = {"SQL": Team(server)}
    everybody_works(teams["SQL"])
    work(teams["SQL"], ME, finish=False, note="of mira")
    teams["kills"] = Team(server)
    return teams


def tries(setting: Setting) -> Iterator[Outcome]:
    """Make the ways in turn, on one server."""
    numbers = setting.numbers(WHOLE)
    if not numbers:
        return
    with running_server(safe=True) as server:
        teams = _teams(server)
        for number in numbers:
            way = WAYS[number % len(WAYS)]
            with setting.home() as home:
                try:
                    fell = attack(home, way, teams, setting.draw(number))
                except AssertionError as error:
                    fell = str(error)
            yield Outcome(setting.kind, way, fell)
