"""Make ``sample_traces/workspace.jsonl``: two invented annotators, a judge, some decisions.

    .venv/bin/python scripts/make_sample_workspace.py

Run it after a change of the samples or the rules. It uses the public commands: ``judge``,
``import`` of a csv-long file, decisions of an adjudicator, ``export`` as jsonl. The labels of the
annotators are the failures in ``planted.jsonl`` with human errors: missed failures, false alarms, a
confusable mode, a span too many or too few. The draw is seeded; ids and times are those of the run.
"""

from __future__ import annotations

import csv
import json
import random
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mast_tui.adjudication import Adjudication, SpanOrders, queue
from mast_tui.adjudication.conflicts import (
    ABSENT_CHOICE,
    Choice,
    choice_of_all_places,
    choice_of_side,
)
from mast_tui.cli.command_line import split_command
from mast_tui.cli.dispatch import run
from mast_tui.exchange.csv_labels import COLUMNS
from mast_tui.gold import Conflict, ConflictKind
from mast_tui.labels import VerdictValue
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.library import read_fully, scan
from mast_tui.traces.model import Trace
from mast_tui.workspace import Workspace

SAMPLES: Final = Path(__file__).resolve().parent.parent / "sample_traces"
MAST: Final = load_mast()

TraceKey = tuple[str, int | None]
"""The file name and the record of a trace."""

LEFT_OPEN: Final = 4
"""The number of traces with a conflict that is left to the user of the samples."""

UNREAD: Final = {"mira": ("email-relay-rejects", "support_desk"), "tomas": ("shipping-quote",)}
"""The unfinished traces of each annotator: the first is not begun, the others are open."""

START: Final = {"mira": "2026-11-02T08:{:02d}:00Z", "tomas": "2026-11-03T14:{:02d}:00Z"}


@dataclass(frozen=True)
class Habits:
    """The probabilities of an annotator's decisions and errors."""

    name: str
    assisted: bool
    finds: float
    finds_mechanical: float
    false_alarm: float
    confuses: float
    shifts: float
    quotes: float
    writes_notes: float


PEOPLE: Final = (
    Habits("mira", False, 0.88, 0.95, 0.05, 0.04, 0.15, 0.5, 0.6),
    Habits("tomas", True, 0.74, 0.92, 0.09, 0.08, 0.22, 0.35, 0.35),
)


def make(output: Path) -> None:
    """Write the workspace of the samples to a file."""
    traces = {
        (trace.path.name, trace.record): trace
        for report in scan([SAMPLES])
        for trace in report.traces
    }
    for trace in traces.values():
        read_fully(trace)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "labels.csv"
        database = str(Path(folder) / "samples.db")
        _write_table(table, traces)
        _run(
            "judge", str(SAMPLES), "--judge", "rules", "--rules", "all", "--quiet",
            "--workspace", database,
        )  # fmt: skip
        _run("import", str(table), "--format", "csv-long", "--allow-new", "--workspace", database)
        _adjudicate(database, list(traces.values()))
        _run("export", "--format", "jsonl", "-o", str(output), "--workspace", database)


def _run(*args: str) -> None:
    """Run a command line, which must succeed."""
    code = run(split_command(args))
    if code:
        sys.exit(code)


def read_places(name: str) -> list[dict[str, Any]]:
    """Return the lines of ``planted.jsonl`` or ``clean.jsonl``."""
    lines = (SAMPLES / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line]


def _write_table(path: Path, traces: dict[TraceKey, Trace]) -> None:
    """Write the labels of both annotators as csv-long."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="")
        writer.writeheader()
        for habits in PEOPLE:
            chance = random.Random(f"{habits.name}: seed 3")
            for number, (key, trace) in enumerate(sorted(traces.items(), key=str)):
                for row in _label_rows(habits, chance, key, trace):
                    row |= {
                        "trace_id": trace.identity.trace_id,
                        "annotator": habits.name,
                        "taxonomy": MAST.ref,
                        "created_at": START[habits.name].format(3 * number),
                    }
                    writer.writerow(row)


def _label_rows(
    habits: Habits, chance: random.Random, key: TraceKey, trace: Trace
) -> Iterator[dict[str, str]]:
    """Yield an annotator's rows for one trace."""
    unread = UNREAD[habits.name]
    if key[0].startswith(unread[0]):
        return
    labels = []
    for planted in read_places("planted.jsonl"):
        if trace_key(planted) == key:
            finds = habits.finds_mechanical if planted["mechanical"] else habits.finds
            if chance.random() < finds:
                labels.append(_label_row(habits, chance, planted, trace))
    for clean in read_places("clean.jsonl"):
        if trace_key(clean) == key and chance.random() < habits.false_alarm:
            labels.append(_label_row(habits, chance, clean, trace) | {"note": ""})
    yield from _unique(labels)
    present = {row["mode"] for row in labels}
    for mode in MAST.modes:
        if mode.code not in present:
            unsure = chance.random() < 0.03
            yield {"mode": mode.code, "value": "unsure" if unsure else "absent"}
    if not any(key[0].startswith(name) for name in unread):
        yield {"value": "finished"}


def trace_key(planted: dict[str, Any]) -> TraceKey:
    """Return the file name and the record of the trace with a planted failure."""
    return planted["trace"], planted["record"]


def _unique(rows: list[dict[str, str]]) -> Iterator[dict[str, str]]:
    """Yield the rows without a second label of one mode at one place."""
    seen = set()
    for row in rows:
        key = (row["mode"], row.get("span_first"), row.get("span_last"), row.get("quote"))
        if key not in seen:
            seen.add(key)
            yield row


def _label_row(
    habits: Habits, chance: random.Random, planted: dict[str, Any], trace: Trace
) -> dict[str, str]:
    """Return an annotator's label of a planted failure or of a false alarm, with errors."""
    mode = MAST.mode(planted["slug"])
    if mode.confusable and chance.random() < habits.confuses:
        mode = MAST.mode(chance.choice(mode.confusable).slug)
    row = {
        "mode": mode.code,
        "value": "present",
        "origin": "manual",
        "saw_suggestion": "true" if habits.assisted else "false",
        "confidence": chance.choice(["", "", "0.6", "0.8", "0.9"]),
    }
    decisive = planted.get("decisive")
    if decisive is not None and chance.random() < 0.6:
        row["severity"] = "fatal" if decisive else "benign"
    if chance.random() < habits.writes_notes:
        row["note"] = planted["why"].split(". ")[0].rstrip(".") + "."
    if planted["quote"] and chance.random() < habits.quotes:
        return row | _quoted(planted, trace)
    first = trace.index_of(planted["first"])
    last = trace.index_of(planted["last"])
    if first is None or last is None:
        raise SystemExit(f"{planted['trace']}: {planted['first']} … {planted['last']} is not there")
    if chance.random() < habits.shifts:
        if chance.random() < 0.5:
            first = max(0, first - 1)
        else:
            last = min(len(trace) - 1, last + 1)
    return row | {"span_first": trace.span(first).key, "span_last": trace.span(last).key}


def _quoted(planted: dict[str, Any], trace: Trace) -> dict[str, str]:
    """Return the fields of a label on the quote of a planted failure."""
    key = planted["quote_span"]
    quote = planted["quote"]
    index = trace.index_of(key)
    start = -1 if index is None else trace.text(index).find(quote)
    if start < 0:
        raise SystemExit(f"{planted['trace']}: {quote!r} is not in {key}")
    return {
        "span_first": key,
        "span_last": key,
        "quote": quote,
        "char_start": str(start),
        "char_end": str(start + len(quote)),
    }


def _adjudicate(database: str, traces: list[Trace]) -> None:
    """Decide the conflicts by the planted failures, all but one on each of the last traces."""
    adjudicator = PEOPLE[0].name
    workspace = Workspace.open(database)
    order_of = SpanOrders(workspace, traces)
    planted = {(trace_key(row), row["slug"]) for row in read_places("planted.jsonl")}
    trace_keys = {trace.identity.trace_id: (trace.path.name, trace.record) for trace in traces}
    entries = sorted(
        queue(workspace, MAST, adjudicator, order_of=order_of), key=lambda entry: entry.trace_id
    )
    disputed = [entry.trace_id for entry in entries if entry.gold and entry.gold.conflicts]
    left_open = disputed[-LEFT_OPEN:]
    for entry in entries:
        adjudication = Adjudication(
            workspace, MAST, entry.trace_id, adjudicator, order=order_of(entry.trace_id)
        )
        conflicts = adjudication.gold.conflicts
        for conflict in conflicts[: -1 if entry.trace_id in left_open else None]:
            is_planted = (trace_keys[entry.trace_id], conflict.mode) in planted
            reason = "" if is_planted else "the definition does not fit"
            adjudication.decide(conflict, _right_choice(conflict, is_planted), reason=reason)
    workspace.close()


def _right_choice(conflict: Conflict, is_planted: bool) -> Choice:
    """Return the choice of an adjudicator who knows the planted failures."""
    finders = [side for side in conflict.answers if side.targets]
    if conflict.kind is ConflictKind.PLACE and finders:
        return choice_of_side(conflict, finders[0].annotator)
    if is_planted and finders:
        return choice_of_all_places(conflict) or choice_of_side(conflict, finders[0].annotator)
    for side in conflict.answers:
        if side.value is VerdictValue.ABSENT:
            return choice_of_side(conflict, side.annotator)
    return ABSENT_CHOICE


if __name__ == "__main__":
    make(SAMPLES / "workspace.jsonl")
