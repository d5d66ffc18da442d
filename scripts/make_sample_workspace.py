"""Make ``sample_traces/workspace.jsonl``: two invented annotators, a judge, some decisions.

Run from the project's root after the samples or the rules have changed:

    python scripts/make_sample_workspace.py

Everything goes through the public commands: ``judge``, ``import`` of a csv-long file, decisions of
an adjudicator, ``export`` as jsonl. What the annotators say follows from ``planted.jsonl``, with
the slips of people: things missed, things seen that are none, one mode taken for its neighbour,
a span more or less. The draw is seeded; ids and times are those of the run.
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

LEFT_OPEN: Final = 4
"""On so many traces one conflict stays for whoever looks at the samples first."""

UNREAD: Final = {"mira": ("email-relay-rejects", "support_desk"), "tomas": ("shipping-quote",)}
"""What an annotator has not finished: the first one not begun, the others open."""

START: Final = {"mira": "2026-11-02T08:{:02d}:00Z", "tomas": "2026-11-03T14:{:02d}:00Z"}


@dataclass(frozen=True)
class Habits:
    """How an annotator works, as chances."""

    name: str
    assisted: bool
    finds: float
    finds_mechanical: float
    sees_what_is_none: float
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
        write_table(table, traces)
        command(
            "judge", str(SAMPLES), "--judge", "rules", "--rules", "all", "--quiet",
            "--workspace", database,
        )  # fmt: skip
        command(
            "import", str(table), "--format", "csv-long", "--allow-new", "--workspace", database
        )
        adjudicate(database, list(traces.values()))
        command("export", "--format", "jsonl", "-o", str(output), "--workspace", database)


def command(*args: str) -> None:
    """A command line, which must succeed."""
    code = run(split_command(args))
    if code:
        sys.exit(code)


def read_places(name: str) -> list[dict[str, Any]]:
    """The lines of ``planted.jsonl`` or ``clean.jsonl``."""
    lines = (SAMPLES / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line]


def write_table(path: Path, traces: dict[tuple[str, int | None], Trace]) -> None:
    """What both annotators say, as csv-long."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="")
        writer.writeheader()
        for habits in PEOPLE:
            chance = random.Random(f"{habits.name}: seed 3")
            for number, (place, trace) in enumerate(sorted(traces.items(), key=str)):
                for row in rows_of(habits, chance, place, trace):
                    row |= {
                        "trace_id": trace.identity.trace_id,
                        "annotator": habits.name,
                        "taxonomy": MAST.ref,
                        "created_at": START[habits.name].format(3 * number),
                    }
                    writer.writerow(row)


def rows_of(
    habits: Habits, chance: random.Random, place: tuple[str, int | None], trace: Trace
) -> Iterator[dict[str, str]]:
    """One annotator's rows for one trace."""
    unread = UNREAD[habits.name]
    if place[0].startswith(unread[0]):
        return
    labels = []
    for planted in (p for p in read_places("planted.jsonl") if where(p) == place):
        found = habits.finds_mechanical if planted["mechanical"] else habits.finds
        if chance.random() < found:
            labels.append(label_row(habits, chance, planted, trace))
    for clean in (p for p in read_places("clean.jsonl") if where(p) == place):
        if chance.random() < habits.sees_what_is_none:
            labels.append(label_row(habits, chance, clean, trace) | {"note": ""})
    yield from unique(labels)
    present = {row["mode"] for row in labels}
    for mode in MAST.modes:
        if mode.code not in present:
            unsure = chance.random() < 0.03
            yield {"mode": mode.code, "value": "unsure" if unsure else "absent"}
    if not any(place[0].startswith(name) for name in unread):
        yield {"value": "finished"}


def where(planted: dict[str, Any]) -> tuple[str, int | None]:
    return planted["trace"], planted["record"]


def unique(rows: list[dict[str, str]]) -> Iterator[dict[str, str]]:
    """The rows without a second label of one mode at one place."""
    seen = set()
    for row in rows:
        key = (row["mode"], row.get("span_first"), row.get("span_last"), row.get("quote"))
        if key not in seen:
            seen.add(key)
            yield row


def label_row(
    habits: Habits, chance: random.Random, planted: dict[str, Any], trace: Trace
) -> dict[str, str]:
    """A label for what is planted, or seems to be, with this person's slips."""
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
        return row | quoted(planted, trace)
    first, last = trace.index_of(planted["first"]), trace.index_of(planted["last"])
    if first is None or last is None:
        raise SystemExit(f"{planted['trace']}: {planted['first']} … {planted['last']} is not there")
    if chance.random() < habits.shifts:
        if chance.random() < 0.5:
            first = max(0, first - 1)
        else:
            last = min(len(trace) - 1, last + 1)
    return row | {"span_first": trace.span(first).key, "span_last": trace.span(last).key}


def quoted(planted: dict[str, Any], trace: Trace) -> dict[str, str]:
    """The planted quote as a target."""
    key, quote = planted["quote_span"], planted["quote"]
    index = trace.index_of(key)
    start = -1 if index is None else trace.text(index).find(quote)
    if start < 0:
        raise SystemExit(f"{planted['trace']}: {quote!r} does not stand in {key}")
    return {
        "span_first": key,
        "span_last": key,
        "quote": quote,
        "char_start": str(start),
        "char_end": str(start + len(quote)),
    }


def adjudicate(database: str, traces: list[Trace]) -> None:
    """Decide the conflicts as the plants have it, but for one on each of the last traces."""
    adjudicator = PEOPLE[0].name
    workspace = Workspace.open(database)
    order_of = SpanOrders(workspace, traces)
    planted = {(where(p), p["slug"]) for p in read_places("planted.jsonl")}
    places = {t.identity.trace_id: (t.path.name, t.record) for t in traces}
    entries = sorted(
        queue(workspace, MAST, adjudicator, order_of=order_of), key=lambda entry: entry.trace_id
    )
    disputed = [entry.trace_id for entry in entries if entry.gold and entry.gold.conflicts]
    kept = disputed[-LEFT_OPEN:]
    for entry in entries:
        sitting = Adjudication(
            workspace, MAST, entry.trace_id, adjudicator, order=order_of(entry.trace_id)
        )
        conflicts = sitting.gold.conflicts
        for conflict in conflicts[: -1 if entry.trace_id in kept else None]:
            shows = (places[entry.trace_id], conflict.mode) in planted
            sitting.decide(conflict, choice_for(conflict, shows), reason=reason_for(shows))
    workspace.close()


def choice_for(conflict: Conflict, shows: bool) -> Choice:
    """What somebody who knows the plants would decide."""
    finders = [said for said in conflict.said if said.targets]
    if conflict.kind is ConflictKind.PLACE and finders:
        return choice_of_side(conflict, finders[0].annotator)
    if shows and finders:
        return choice_of_all_places(conflict) or choice_of_side(conflict, finders[0].annotator)
    for said in conflict.said:
        if said.value is VerdictValue.ABSENT:
            return choice_of_side(conflict, said.annotator)
    return ABSENT_CHOICE


def reason_for(shows: bool) -> str:
    return "" if shows else "the definition does not fit"


if __name__ == "__main__":
    make(SAMPLES / "workspace.jsonl")
