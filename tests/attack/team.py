"""A team's PostgreSQL server, queried by a blind annotator."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Final

import psycopg

from tests.attack.trying import Outcome, Setting
from tests.postgres import running_server
from tests.workspace.test_attacks_by_sql import (
    EXCEPTION_BLOCKS,
    LABELS_AS_TEXT,
    READ_ALL,
    REVEALS,
    STATEMENTS,
    check_nothing_is_seen,
    check_others_can_work,
    rows_of_others,
)
from tests.workspace.test_sight_by_server import Team, everybody_works, reply, work

WHOLE: Final = 150

ME: Final = "mira"
NOT_MINE: Final = ("events", "labels", "verdicts", "passes", "reviews", "span_notes", "judgements",
                   "decisions", "taxonomies", "traces", "members")  # fmt: skip
"""Tables of which an annotator changes no row of others, whatever is committed."""


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
    old_rows = rows_of_others(team)
    sent: list[str] = []
    with team.sql(ME) as mira:
        answers: list[str] = []
        mira.execute("BEGIN")
        for number in range(draw.randrange(3, 15)):
            mira.execute(f"SAVEPOINT s{number}".encode())
            statement = _statement(draw, mira, reveals=reveals)
            answer = reply(mira, statement)
            sent.append(f"{statement} → {answer[:100]}")
            answers.append(answer)
            failed = mira.info.transaction_status is psycopg.pq.TransactionStatus.INERROR
            back = failed or draw.random() < 0.3
            end = "ROLLBACK TO" if back else draw.choice(("RELEASE", "SAVEPOINT again_"))
            reply(mira, f"{end} s{number}".replace("again_ ", "again_"))
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
    new_rows = rows_of_others(team)
    changed = [name for name in old_rows if name in NOT_MINE and old_rows[name] != new_rows[name]]
    return f"rows of others have changed in {', '.join(changed)}: {sent[-5:]}" if changed else ""


def tries(setting: Setting) -> Iterator[Outcome]:
    """Send statements that are rolled back and others that are committed, in turn."""
    numbers = setting.numbers(WHOLE)
    if not numbers:
        return
    with running_server(safe=True) as server:
        team = Team(server)
        everybody_works(team)
        work(team, ME, finish=False, note="of mira")
        for number in numbers:
            reveals = number % 2 == 0
            try:
                failure = ask(team, setting.draw(number), reveals=reveals)
            except AssertionError as error:
                failure = str(error)
            end = "rolled back" if reveals else "committed"
            yield Outcome(setting.kind, f"SQL of a blind annotator, {end}", failure)
