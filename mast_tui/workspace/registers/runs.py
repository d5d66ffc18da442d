"""Runs of judges: what they were told, what they did, and what a model has answered."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, RowMapping, bindparam, case, func, select
from sqlalchemy.dialects.sqlite import insert

from mast_tui.labels import QuoteCounts
from mast_tui.traces.io.json_values import replace_surrogates
from mast_tui.workspace import schema
from mast_tui.workspace.database import put_rows, writes_by_calls
from mast_tui.workspace.events.codec import (
    quote_counts_from,
    settings_from_values,
    settings_to_values,
    to_values,
)
from mast_tui.workspace.events.rows import Row
from mast_tui.workspace.ids import now
from mast_tui.workspace.records import (
    AnswerStatistics,
    Asked,
    Run,
    RunSettings,
    RunTrace,
    Usage,
)

_RUNS: Final = schema.runs
_TRACES: Final = schema.run_traces
_ASKED: Final = schema.asked

_ADD_ASKED: Final = insert(_ASKED)
_USABLE: Final = (
    select(_ASKED)
    .where(_ASKED.c.key == bindparam("asked_key"), _ASKED.c.usable)
    .order_by(_ASKED.c.id.desc())
    .limit(1)
)
_USABLE_KEYS: Final = select(_ASKED.c.key).where(_ASKED.c.usable).distinct()
_SUMS: Final = (
    func.count(),
    func.coalesce(func.sum(_ASKED.c.tokens_in), 0),
    func.coalesce(func.sum(_ASKED.c.tokens_out), 0),
    func.coalesce(func.sum(_ASKED.c.tokens_cached), 0),
)
_USED_BY_ONE: Final = select(*_SUMS).where(_ASKED.c.run == bindparam("run"))
_USED_BY_EACH: Final = select(_ASKED.c.run, *_SUMS).group_by(_ASKED.c.run)
_REPORTED_COLUMNS: Final = ("told_requests", "told_in", "told_out", "told_cached")
_REPORTED: Final = select(*(_RUNS.c[name] for name in _REPORTED_COLUMNS)).where(
    _RUNS.c.id == bindparam("run")
)
_AS_IT_IS: Final = ("id", "judge", "taxonomy", "started_at", "finished_at", "note", "ending")
"""The columns of runs that equal the field of ``Run`` with the same name."""

_LATER_KNOWN: Final = ("settings", "form", "finished_at", "ending")
"""The columns that may be null when a run begins, and are filled in later."""

_BEGAN_HERE: Final = _RUNS.c.told_requests.is_(None)
"""True for runs of this workspace, whose usage is counted and not reported by another one."""


def begin_run(connection: Connection, run: Run) -> None:
    """Store a run that begins in this workspace.

    Args:
        connection: An open transaction.
        run: The run.
    """
    put_rows(connection, _RUNS, [_run_to_row(run)])


def add_run(connection: Connection, run: Run) -> None:
    """Store a run from another workspace with its usage, or update the stored one.

    If the run began in this workspace, only missing values are filled in.

    Args:
        connection: An open transaction.
        run: The run.
    """
    used = run.usage
    reported = {
        "told_requests": used.requests,
        "told_in": used.tokens_in,
        "told_out": used.tokens_out,
        "told_cached": used.tokens_cached,
    }
    row = _run_to_row(run) | reported
    stored = _stored_run(connection, run.id)
    began_here = stored is not None and stored["told_requests"] is None
    if stored is not None:
        completed = {
            name: row[name] if stored[name] is None else stored[name] for name in _LATER_KNOWN
        }
        # The reported usage of a run that began in this workspace stays null.
        greatest = {
            name: None if stored[name] is None else max(stored[name], reported[name])
            for name in reported
        }
        row = stored | completed | greatest
    put_rows(connection, _RUNS, [row])
    for trace in run.traces:
        add_run_trace(connection, run.id, trace, keep_known=began_here)


def _stored_run(connection: Connection, run_id: str) -> Row | None:
    stored = connection.execute(select(_RUNS).where(_RUNS.c.id == run_id)).mappings().first()
    return None if stored is None else dict(stored)


def _change_run(connection: Connection, run_id: str, **changes: str | None) -> None:
    stored = _stored_run(connection, run_id)
    if stored is not None:
        put_rows(connection, _RUNS, [stored | changes])


def finish_run(connection: Connection, run_id: str, *, ending: str | None = None) -> None:
    """Mark a run as finished.

    Args:
        connection: An open transaction.
        run_id: The run.
        ending: The reason why the run stopped before its last trace; None if it did not.
    """
    _change_run(connection, run_id, finished_at=now(), ending=ending)


def set_form(connection: Connection, run_id: str, form: str) -> None:
    """Store the form in which a run asks for answers, once the server has shown what it accepts.

    Args:
        connection: An open transaction.
        run_id: The run.
        form: The form.
    """
    _change_run(connection, run_id, form=form)


def add_run_trace(
    connection: Connection, run_id: str, trace: RunTrace, *, keep_known: bool = False
) -> None:
    """Record the result of a run for a trace.

    Args:
        connection: An open transaction.
        run_id: The run.
        trace: The result.
        keep_known: Keep an earlier record of the same trace.
    """
    of_trace = (_TRACES.c.run == run_id, _TRACES.c.trace_id == trace.trace_id)
    if keep_known and connection.execute(select(_TRACES.c.run).where(*of_trace)).first():
        return
    values = {
        "run": run_id,
        "trace_id": trace.trace_id,
        "findings": trace.findings,
        "problem": trace.problem,
        "quotes": trace.quotes.all,
        "verified": trace.quotes.found,
        "quote_kinds": json.dumps(to_values(trace.quotes)),
        "windows": trace.windows,
        "remarks": json.dumps(list(trace.remarks)),
    }
    put_rows(connection, _TRACES, [values])


def add_asked(connection: Connection, asked: Asked) -> None:
    """Store an answer of a model with the current time.

    Args:
        connection: An open transaction.
        asked: The question and answer; a lone surrogate in it is replaced by ``U+FFFD``.
    """
    values = asdict(asked) | {"answer": replace_surrogates(asked.answer), "at": now()}
    values |= {"run": values.pop("run_id")}
    if writes_by_calls(connection):
        put_rows(connection, _ASKED, [values])
    else:  # the database assigns the number of the row
        connection.execute(_ADD_ASKED, values)


def find_answer(connection: Connection, key: str) -> Asked | None:
    """Return the last usable answer to a question in any run, or None.

    Args:
        connection: An open connection.
        key: The key of the question.
    """
    row = connection.execute(_USABLE, {"asked_key": key}).mappings().first()
    return None if row is None else _asked(row)


def answers_about(connection: Connection, run_id: str, trace_id: str) -> tuple[Asked, ...]:
    """Return all answers about a trace, usable or not, in the order in which they arrived.

    Args:
        connection: An open connection.
        run_id: The run in which the judge asked.
        trace_id: The trace.
    """
    rows = connection.execute(
        select(_ASKED)
        .where(_ASKED.c.run == run_id, _ASKED.c.trace_id == trace_id)
        .order_by(_ASKED.c.id)
    )
    return tuple(map(_asked, rows.mappings()))


def unusable_answers(connection: Connection) -> tuple[Asked, ...]:
    """Return the unusable answers of all runs, in the order in which they arrived."""
    rows = connection.execute(select(_ASKED).where(~_ASKED.c.usable).order_by(_ASKED.c.id))
    return tuple(map(_asked, rows.mappings()))


def reject_answer(connection: Connection, run_id: str, key: str) -> None:
    """Mark the last answer of a run to a question as unusable.

    Args:
        connection: An open transaction.
        run_id: The run.
        key: The key of the question.
    """
    last = select(func.max(_ASKED.c.id)).where(_ASKED.c.run == run_id, _ASKED.c.key == key)
    answers = select(_ASKED).where(_ASKED.c.id == last.scalar_subquery())
    rows = connection.execute(answers).mappings()
    put_rows(connection, _ASKED, [{**row, "usable": False} for row in rows])


class _KindOfAnswer(NamedTuple):
    """The tokens of the answers of one kind."""

    answers: int = 0
    tokens_out: int = 0
    longest_answer: int = 0
    longest_request: int = 0


def answer_statistics(connection: Connection, run_ids: Collection[str]) -> AnswerStatistics:
    """Sum up the tokens of the answers of runs.

    Args:
        connection: An open connection.
        run_ids: The runs.
    """
    usable = _ASKED.c.usable & (_ASKED.c.finish == "stop")
    cut = _ASKED.c.finish == "length"
    thought = ~_ASKED.c.usable & cut & (func.length(_ASKED.c.answer) < _ASKED.c.tokens_out)
    kind = case(
        (usable, "answer"),
        (_ASKED.c.usable & cut, "overflow"),
        (thought, "thought"),
        else_="repeat",
    )
    rows = connection.execute(
        select(
            kind,
            func.count(),
            func.sum(_ASKED.c.tokens_out),
            func.max(_ASKED.c.tokens_out),
            func.max(_ASKED.c.tokens_in),
        )
        .where(_ASKED.c.run.in_(run_ids))
        .group_by(kind)
    )
    kinds = {name: _KindOfAnswer(*sums) for name, *sums in rows}
    none = _KindOfAnswer()
    usable_answers = kinds.get("answer", none)
    repeats = kinds.get("repeat", none)
    return AnswerStatistics(
        answers=usable_answers.answers,
        tokens_out=usable_answers.tokens_out,
        longest_request=usable_answers.longest_request,
        repeats=repeats.answers,
        repeats_out=repeats.tokens_out,
        thought_out=kinds.get("thought", none).longest_answer,
        overflows=kinds.get("overflow", none).answers,
    )


def _asked(row: RowMapping) -> Asked:
    values = dict(row)
    del values["id"]
    return Asked(run_id=values.pop("run"), **values)


def answer_keys(connection: Connection) -> frozenset[str]:
    """Return the keys of all questions that have a usable answer; this reads all of them."""
    return frozenset(connection.execute(_USABLE_KEYS).scalars())


def usage(connection: Connection, run_id: str) -> Usage:
    """Return the tokens and requests that a run has used.

    Args:
        connection: An open connection.
        run_id: The run.
    """
    counted = connection.execute(_USED_BY_ONE, {"run": run_id}).one()
    reported = connection.execute(_REPORTED, {"run": run_id}).first()
    return _sum(tuple(counted), None if reported is None else tuple(reported))


def runs(connection: Connection) -> tuple[Run, ...]:
    """Return the runs of judges with their usage, the earliest first."""
    usage_by_run = {run_id: tuple(sums) for run_id, *sums in connection.execute(_USED_BY_EACH)}
    return _runs(connection, usage_by_run)


def unfinished_run(connection: Connection, judge: str, taxonomy: str) -> Run | None:
    """Return the last unfinished run of a judge that began in this workspace, or None.

    Args:
        connection: An open connection.
        judge: The judge.
        taxonomy: The taxonomy.
    """
    last = (
        select(_RUNS.c.id)
        .where(
            _RUNS.c.judge == judge,
            _RUNS.c.taxonomy == taxonomy,
            _RUNS.c.finished_at.is_(None),
            _BEGAN_HERE,
        )
        .order_by(_RUNS.c.started_at.desc(), _RUNS.c.id.desc())
        .limit(1)
    )
    run_id = connection.execute(last).scalar_one_or_none()
    if run_id is None:
        return None
    usage_by_run = {run_id: tuple(connection.execute(_USED_BY_ONE, {"run": run_id}).one())}
    (run,) = _runs(connection, usage_by_run, run_id)
    return run


def examples(connection: Connection, judge: str) -> frozenset[str]:
    """Return the ids of the traces that are examples in any run of a judge.

    Args:
        connection: An open connection.
        judge: The judge.
    """
    statement = select(_RUNS.c.settings).where(
        _RUNS.c.judge == judge, _RUNS.c.settings.is_not(None)
    )
    return frozenset(
        trace_id
        for (document,) in connection.execute(statement)
        for trace_id in _settings_of(document, None).examples
    )


def _run_to_row(run: Run) -> Row:
    """Return the row of a run, without the columns of usage that another workspace reported."""
    settings = run.settings
    return {
        **{name: getattr(run, name) for name in _AS_IT_IS},
        "settings": None if settings is None else json.dumps(settings_to_values(settings)),
        "form": None if settings is None else settings.form,
    }


def _runs(
    connection: Connection, usage_by_run: dict[str, tuple[int, ...]], run_id: str | None = None
) -> tuple[Run, ...]:
    """Return one run, or all runs for None, the earliest first.

    ``usage_by_run`` has the sums of ``_SUMS``, counted in this workspace.
    """
    traces_by_run: dict[str, list[RunTrace]] = {}
    traces = select(_TRACES).where(*_equals(_TRACES.c.run, run_id))
    for row in connection.execute(traces.order_by(_TRACES.c.run, _TRACES.c.trace_id)).mappings():
        trace = RunTrace(
            row["trace_id"],
            row["findings"],
            row["problem"],
            _quotes_of(row),
            row["windows"],
            tuple(json.loads(row["remarks"])),
        )
        traces_by_run.setdefault(row["run"], []).append(trace)
    stored = (
        select(_RUNS).where(*_equals(_RUNS.c.id, run_id)).order_by(_RUNS.c.started_at, _RUNS.c.id)
    )
    return tuple(
        Run(
            **{name: row[name] for name in _AS_IT_IS},
            traces=tuple(traces_by_run.get(row["id"], ())),
            settings=None
            if row["settings"] is None
            else _settings_of(row["settings"], row["form"]),
            usage=_sum(usage_by_run.get(row["id"]), tuple(row[name] for name in _REPORTED_COLUMNS)),
        )
        for row in connection.execute(stored).mappings()
    )


def _quotes_of(row: RowMapping) -> QuoteCounts:
    kinds = row["quote_kinds"]
    counts = None if kinds is None else json.loads(kinds)
    return quote_counts_from(counts, quotes=row["quotes"], matched=row["verified"])


def _equals(column: ColumnElement[str], value: str | None) -> list[ColumnElement[bool]]:
    """Return the condition that a column has a value; none if the value is None."""
    return [] if value is None else [column == value]


def _settings_of(document: str, form: str | None) -> RunSettings:
    return settings_from_values(json.loads(document), form)


def _sum(*parts: tuple[int | None, ...] | None) -> Usage:
    """Add the usage counted in this workspace and the usage that was reported by another."""
    counted = [part for part in parts if part is not None]
    return Usage(
        *(sum(part[index] or 0 for part in counted) for index in range(len(_REPORTED_COLUMNS)))
    )
