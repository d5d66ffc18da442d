"""Who labels which traces, as a table that people can change: ``trace_id,annotator,lot``."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mast_tui.exchange.csv_files import read_rows
from mast_tui.exchange.errors import ExchangeError
from mast_tui.study import Study, annotators_of

_COLUMNS: Final = ("trace_id", "annotator", "lot")


def assignments_csv(study: Study, annotator: str | None = None) -> str:
    """Write who labels which traces, a row for each trace and annotator.

    Args:
        study: The study.
        annotator: Whose rows alone; None for everybody's.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for lot, batch in enumerate(study.batches, start=1):
        for trace_id in batch:
            for name in annotators_of(study, trace_id):
                if annotator in (None, name):
                    writer.writerow((trace_id, name, lot))
    return text.getvalue()


def read_assignments(path: Path, study: Study) -> Mapping[str, tuple[str, ...]]:
    """Read who is to label which traces.

    Args:
        path: A table with the columns ``trace_id`` and ``annotator``; ``lot`` is not looked at.
        study: What it is for.

    Returns:
        The annotators by trace id, of the traces that the table names.

    Raises:
        ExchangeError: The table is broken, or names a trace or a person that the study lacks.
    """
    there = frozenset(study.traces)
    found: dict[str, dict[str, None]] = {}
    for row in read_rows(path, known=_COLUMNS, needed=_COLUMNS[:2]):
        trace_id, name = row.cells["trace_id"].strip(), row.cells["annotator"].strip()
        why = None
        if trace_id not in there:
            why = f"trace {trace_id!r} is not in the study; mast-tui study add takes it in"
        elif name not in study.annotators:
            why = (
                f"{name!r} is no annotator of the study; mast-tui study join lets somebody join, "
                f"there are {', '.join(study.annotators)}"
            )
        elif name in found.get(trace_id, {}):
            why = f"{name} is to label trace {trace_id!r} twice"
        if why is not None:
            raise ExchangeError(str(row.problem(why)))
        found.setdefault(trace_id, {})[name] = None
    if not found:
        raise ExchangeError(f"{path}: no row says who labels what")
    return {trace_id: tuple(sorted(names)) for trace_id, names in found.items()}
