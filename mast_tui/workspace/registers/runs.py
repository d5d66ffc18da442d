"""The register of judges' runs: settings, results, and answers of models."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Final, NamedTuple

from msgspec.structs import asdict
from sqlalchemy import ColumnElement, Connection, RowMapping, bindparam, case, func, select
from sqlalchemy.dialects.sqlite import insert

from mast_tui.labels import QuoteCounts
from mast_tui.traces.io.json_values import replace_surrogates
from mast_tui.workspace import schema
from mast_tui.workspace.database import calls_stored_functions, put_rows
from mast_tui.workspace.events.codec import (
    quote_counts_from,
    settings_from_values,
    settings_to_values,
    to_values,
)
from mast_tui.workspace.events.model import now
from mast_tui.workspace.events.rows import Row
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
_USED_BY_RUN: Final = select(*_SUMS).where(_ASKED.c.run == bindparam("run"))
_USED_BY_EACH_RUN: Final = select(_ASKED.c.run, *_SUMS).group_by(_ASKED.c.run)
_REPORTED_COLUMNS: Final = ("told_requests", "told_in", "told_out", "told_cached")
_REPORTED: Final = select(*(_RUNS.c[name] for name in _REPORTED_COLUMNS)).where(
    _RUNS.c.id == bindparam("run")
)
_SAME_NAME_COLUMNS: Final = (
    "id",
    "judge",
    "taxonomy",
    "started_at",
    "finished_at",
    "note",
    "ending",
)
"""The columns with the same names as fields of a run."""

_LATE_COLUMNS: Final = ("settings", "form", "finished_at", "ending")

_BEGAN_HERE: Final = _RUNS.c.told_requests.is_(None)


def begin_run(connection: Connection, run: Run) -> None:
    """Store a new run in this workspace.

    Args:
        connection: An open transaction.
        run: The run.
    """
    put_rows(connection, _RUNS, [_run_to_row(run)])


def add_run(connection: Connection, run: Run) -> None:
    """Store a judge's run from another workspace with its usage, or complete the stored run.

    Stored values stay; only missing ones are added. The usage of a run that began in this workspace
    is counted from its answers; for other runs, the greatest reported usage is stored.

    Args:
        connection: An open transaction.
        run: The run.
    """
    usage = run.usage
    reported_usage = {
        "told_requests": usage.requests,
        "told_in": usage.tokens_in,
        "told_out": usage.tokens_out,
        "told_cached": usage.tokens_cached,
    }
    row = _run_to_row(run) | reported_usage
    stored = _stored_run(connection, run.id)
    # Only runs from other workspaces have reported usage.
    began_here = stored is not None and stored["told_requests"] is None
    if stored is not None:
        completed_values = {
            name: row[name] if stored[name] is None else stored[name] for name in _LATE_COLUMNS
        }
        greatest_usage = {
            name: None if stored[name] is None else max(stored[name], reported_usage[name])
            for name in reported_usage
        }
        row = stored | completed_values | greatest_usage
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
        ending: The reason why the run stopped early; None if it did not.
    """
    _change_run(connection, run_id, finished_at=now(), ending=ending)


def set_answer_form(connection: Connection, run_id: str, form: str) -> None:
    """Store the form of answers that a model's server has accepted.

    Args:
        connection: An open transaction.
        run_id: The run.
        form: The form, such as ``json_schema`` or ``text``.
    """
    _change_run(connection, run_id, form=form)


def add_run_trace(
    connection: Connection, run_id: str, trace: RunTrace, *, keep_known: bool = False
) -> None:
    """Store the result of a run for a trace.

    Args:
        connection: An open transaction.
        run_id: The run.
        trace: The result.
        keep_known: True to keep a stored result for the same trace.
    """
    stored_result = select(_TRACES.c.run).where(
        _TRACES.c.run == run_id, _TRACES.c.trace_id == trace.trace_id
    )
    if keep_known and connection.execute(stored_result).first():
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
    """Store a model's answer to a request, with the current time.

    Args:
        connection: An open transaction.
        asked: The request and the answer. Lone surrogates in the answer become ``U+FFFD``.
    """
    values = asdict(asked) | {"answer": replace_surrogates(asked.answer), "at": now()}
    values["run"] = values.pop("run_id")
    # The server or the file gives the answer its id.
    if calls_stored_functions(connection):
        put_rows(connection, _ASKED, [values])
    else:  # ``put_rows`` would write a null as the id
        connection.execute(_ADD_ASKED, values)


def find_answer(connection: Connection, key: str) -> Asked | None:
    """Return the newest usable answer to a request, from any run, or None.

    Args:
        connection: An open connection.
        key: The key of the request; equal requests have equal keys.
    """
    row = connection.execute(_USABLE, {"asked_key": key}).mappings().first()
    return None if row is None else _answer_of_row(row)


def answers_about(connection: Connection, run_id: str, trace_id: str) -> tuple[Asked, ...]:
    """Return all answers of a run about a trace, in the order of their arrival.

    Args:
        connection: An open connection.
        run_id: The run.
        trace_id: The trace.
    """
    rows = connection.execute(
        select(_ASKED)
        .where(_ASKED.c.run == run_id, _ASKED.c.trace_id == trace_id)
        .order_by(_ASKED.c.id)
    )
    return tuple(map(_answer_of_row, rows.mappings()))


def unusable_answers(connection: Connection) -> tuple[Asked, ...]:
    """Return the unusable answers of all runs, in the order of their arrival."""
    rows = connection.execute(select(_ASKED).where(~_ASKED.c.usable).order_by(_ASKED.c.id))
    return tuple(map(_answer_of_row, rows.mappings()))


def reject_answer(connection: Connection, run_id: str, key: str) -> None:
    """Mark the newest answer of a run to a request as unusable.

    Args:
        connection: An open transaction.
        run_id: The run.
        key: The key of the request.
    """
    newest_id = select(func.max(_ASKED.c.id)).where(_ASKED.c.run == run_id, _ASKED.c.key == key)
    newest_answer = select(_ASKED).where(_ASKED.c.id == newest_id.scalar_subquery())
    rows = connection.execute(newest_answer).mappings()
    put_rows(connection, _ASKED, [{**row, "usable": False} for row in rows])


class _AnswersOfKind(NamedTuple):
    """The number of answers of one kind, and their tokens."""

    answers: int = 0
    tokens_out: int = 0
    longest_answer: int = 0
    longest_request: int = 0


def answer_statistics(connection: Connection, run_ids: Collection[str]) -> AnswerStatistics:
    """Count the answers of runs, and their tokens.

    Args:
        connection: An open connection.
        run_ids: The runs.
    """
    is_complete = _ASKED.c.usable & (_ASKED.c.finish == "stop")
    is_cut = _ASKED.c.finish == "length"  # at the limit of tokens
    # An answer with fewer characters than tokens consists mostly of hidden thoughts.
    is_unfinished_thought = (
        ~_ASKED.c.usable & is_cut & (func.length(_ASKED.c.answer) < _ASKED.c.tokens_out)
    )
    kind = case(
        (is_complete, "answer"),
        (_ASKED.c.usable & is_cut, "overflow"),
        (is_unfinished_thought, "unfinished_thought"),
        else_="unusable",
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
    answers_by_kind = {name: _AnswersOfKind(*columns) for name, *columns in rows}
    no_answers = _AnswersOfKind()
    usable_answers = answers_by_kind.get("answer", no_answers)
    unusable_answers = answers_by_kind.get("unusable", no_answers)
    return AnswerStatistics(
        answers=usable_answers.answers,
        tokens_out=usable_answers.tokens_out,
        longest_request=usable_answers.longest_request,
        unusable=unusable_answers.answers,
        unusable_tokens_out=unusable_answers.tokens_out,
        longest_thought=answers_by_kind.get("unfinished_thought", no_answers).longest_answer,
        overflows=answers_by_kind.get("overflow", no_answers).answers,
    )


def _answer_of_row(row: RowMapping) -> Asked:
    values = dict(row)
    del values["id"]
    return Asked(run_id=values.pop("run"), **values)


def answer_keys(connection: Connection) -> frozenset[str]:
    """Return the keys of all requests with a usable answer."""
    return frozenset(connection.execute(_USABLE_KEYS).scalars())


def usage(connection: Connection, run_id: str) -> Usage:
    """Return the number of requests and tokens of a run.

    They are counted from the run's answers, or reported by the run's own workspace.

    Args:
        connection: An open connection.
        run_id: The run.
    """
    counted_usage = connection.execute(_USED_BY_RUN, {"run": run_id}).one()
    reported_usage = connection.execute(_REPORTED, {"run": run_id}).first()
    return _summed_usage(
        tuple(counted_usage), None if reported_usage is None else tuple(reported_usage)
    )


def runs(connection: Connection) -> tuple[Run, ...]:
    """Return the runs of judges with their usage, the earliest first."""
    counted_usage = {run: tuple(sums) for run, *sums in connection.execute(_USED_BY_EACH_RUN)}
    return _stored_runs(connection, counted_usage)


def unfinished_run(connection: Connection, judge: str, taxonomy: str) -> Run | None:
    """Return a judge's newest unfinished run that began in this workspace, or None.

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
    counted_usage = {run_id: tuple(connection.execute(_USED_BY_RUN, {"run": run_id}).one())}
    (run,) = _stored_runs(connection, counted_usage, run_id)
    return run


def examples(connection: Connection, judge: str) -> frozenset[str]:
    """Return the ids of the traces that any run of a judge has shown as examples.

    Args:
        connection: An open connection.
        judge: The judge.
    """
    return frozenset(
        trace_id
        for settings in _settings_of_judge(connection, judge)
        for trace_id in settings.examples
    )


def unmeasured_traces(connection: Connection, judge: str) -> frozenset[str]:
    """Return the ids of the traces on which figures do not measure a judge.

    These are the examples in its prompt. For a taught judge, they are also the traces that it got
    because the judge before it was wrong there, until it has judged all traces of that judge.

    Args:
        connection: An open connection.
        judge: The judge.
    """
    traces = examples(connection, judge)
    for settings in _settings_of_judge(connection, judge):
        population = _judged_traces(connection, settings.chosen_from) - traces
        if population - _judged_traces(connection, judge):
            traces |= frozenset(settings.chosen)
    return traces


def _settings_of_judge(connection: Connection, judge: str) -> list[RunSettings]:
    """Return the settings of a judge's runs."""
    statement = select(_RUNS.c.settings).where(
        _RUNS.c.judge == judge, _RUNS.c.settings.is_not(None)
    )
    return [_settings_of(document, None) for (document,) in connection.execute(statement)]


def _judged_traces(connection: Connection, judge: str | None) -> frozenset[str]:
    """Return the ids of the traces in a judge's runs; none without a judge."""
    statement = select(_TRACES.c.trace_id).join(_RUNS, _RUNS.c.id == _TRACES.c.run)
    judged = statement.where(_RUNS.c.judge == judge, _TRACES.c.problem.is_(None))
    return frozenset(connection.execute(judged).scalars())


def _run_to_row(run: Run) -> Row:
    """Return the row of a run, without its usage."""
    settings = run.settings
    return {
        **{name: getattr(run, name) for name in _SAME_NAME_COLUMNS},
        "settings": None if settings is None else json.dumps(settings_to_values(settings)),
        "form": None if settings is None else settings.form,
    }


def _stored_runs(
    connection: Connection, counted_usage: dict[str, tuple[int, ...]], run_id: str | None = None
) -> tuple[Run, ...]:
    """Return all runs, the earliest first, or only one run.

    ``counted_usage`` is the usage counted from answers, by run.
    """
    traces_by_run: dict[str, list[RunTrace]] = {}
    traces = select(_TRACES).where(*_equal_to(_TRACES.c.run, run_id))
    for row in connection.execute(traces.order_by(_TRACES.c.run, _TRACES.c.trace_id)).mappings():
        trace = RunTrace(
            row["trace_id"],
            row["findings"],
            row["problem"],
            _quote_counts_of(row),
            row["windows"],
            tuple(json.loads(row["remarks"])),
        )
        traces_by_run.setdefault(row["run"], []).append(trace)
    runs = (
        select(_RUNS).where(*_equal_to(_RUNS.c.id, run_id)).order_by(_RUNS.c.started_at, _RUNS.c.id)
    )
    return tuple(
        Run(
            **{name: row[name] for name in _SAME_NAME_COLUMNS},
            traces=tuple(traces_by_run.get(row["id"], ())),
            settings=None
            if row["settings"] is None
            else _settings_of(row["settings"], row["form"]),
            usage=_summed_usage(
                counted_usage.get(row["id"]), tuple(row[name] for name in _REPORTED_COLUMNS)
            ),
        )
        for row in connection.execute(runs).mappings()
    )


def _quote_counts_of(row: RowMapping) -> QuoteCounts:
    kinds = row["quote_kinds"]
    counts = None if kinds is None else json.loads(kinds)
    return quote_counts_from(counts, quotes=row["quotes"], matched=row["verified"])


def _equal_to(column: ColumnElement[str], value: str | None) -> list[ColumnElement[bool]]:
    return [] if value is None else [column == value]


def _settings_of(document: str, form: str | None) -> RunSettings:
    return settings_from_values(json.loads(document), form)


def _summed_usage(*usages: tuple[int | None, ...] | None) -> Usage:
    """Add up usages; each has four counts (see ``_SUMS``) or is None."""
    return sum(
        (Usage(*(count or 0 for count in counts)) for counts in usages if counts is not None),
        start=Usage(),
    )
