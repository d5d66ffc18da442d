"""Imports of every format, fuzzed and forged, and the commands after them."""

from __future__ import annotations

import json
import random
import re
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from mast_tui.adjudication import read_work_by_trace
from mast_tui.adjudication.sides import TraceSides
from mast_tui.cli.command_line import split_command
from mast_tui.cli.dispatch import run
from mast_tui.exchange.registry import EXPORT_FORMATS, IMPORT_FORMATS
from mast_tui.taxonomy.loader import load_mast
from mast_tui.workspace import Workspace, schema
from mast_tui.workspace.events.changes import InForce
from tests.attack.trying import (
    DB,
    IN_DB,
    SAMPLES,
    Outcome,
    Setting,
    State,
    bad_end,
    forked,
    must,
    result_of,
    state,
    unsound,
    wait_for,
)
from tests.exchange.test_hostile_files import valid_documents
from tests.exchange.test_labelled_sets import RUN, agentrx, who_and_when
from tests.exchange.test_mast_human import ANSWERS, labels_file, traces_file
from tests.exchange.test_tool_judges import agentdebugx_report, pisama_file
from tests.exchange.test_trail import labels_file as trail_file
from tests.terminal.hostile import BIDI, HIDDEN, HOSTILE
from tests.traces.checks import write_json
from tests.traces.damage import mutate

WHOLE: Final = 2_000

FIGURES: Final = ("--rounds", "0", "--json")
AFTER: Final = (("status", "--json"), ("agree", *FIGURES, "--no-spans"), ("report", *FIGURES))
"""Commands after every accepted import, beside one of the exports."""

NAMES: Final = ("mira", "tomas", "judge:rules@1", "judge:x", "gold", "all", "", "mir\u0430", "MIRA")
TEXTS: Final = (
    *(*NAMES, BIDI, HIDDEN, HOSTILE, "\x1b]0;PWNED\x07", "\ud800", "x" * 100_000, "../../x"),
    *("=1+1", "mast@3", "mast@4", "1.3", "present", "absent", "finished", "step_repetition"),
    *("nan", "-1"),
)
NUMBERS: Final = ("0", "-1", "1e999", "9" * 30, "9" * 5_000, "2.5", "null", "true", "[]", "{}")
KINDS: Final = ("label_removed", "verdict_set", "decided", "pass_unfinished", "sight_set", "judged")


# What is changed


def seeds(setting: Setting) -> Path:
    """Return a folder with a workspace and a good file of every import format."""
    home = setting.folder / "template"
    if home.exists():
        return home
    (home / "set").mkdir(parents=True)
    must(home, "import", str(SAMPLES / "workspace.jsonl"), "--format", "jsonl", *IN_DB)
    must(home, "judge", str(SAMPLES), "--judge", "rules", "--quiet", *IN_DB)
    for name in ("jsonl", "csv-long", "csv-wide", "mast-data", "label-studio"):
        everything = () if name in ("jsonl", "csv-wide") else ("--labels", "all")
        out = ("-o", f"good.{name}")
        must(home, "export", "--format", name, *everything, *out, *IN_DB)
    who_and_when(home).rename(home / "good.who-and-when")
    write_json(home / "run-1.json", RUN)
    agentrx(home, {}, {"step_number": 2}).rename(home / "good.agentrx")
    traces_file(home)
    labels_file(home, ANSWERS).rename(home / "good.mast-human")
    trail_file(home, {}).rename(home / "good.trail")
    pisama_file(home / "good.pisama")
    write_json(home / "good.agentdebugx", agentdebugx_report())
    must(home, "page", str(SAMPLES / "ad-restart-loop.jsonl"), "-o", "page.html", *IN_DB)
    (home / "page.html").rename(home / "good.page")
    documents = valid_documents()
    for name in ("agentdash", "adamast"):
        write_json(home / f"good.{name}", documents[name])
    write_json(home / "x.json", documents["adamast taxonomy"])
    for file in home.glob("said.*"):
        file.unlink()
    return home


def forged(data: bytes, draw: random.Random) -> bytes:
    """Change lines of a file, also into the names of other annotators."""
    lines = data.decode("utf-8", "replace").splitlines(keepends=True)
    if lines and '"mast-tui-workspace"' in lines[0] and draw.random() < 0.5:
        return "".join(takeover(lines, draw)).encode()
    for _ in range(draw.randrange(1, 20)):
        number = draw.randrange(len(lines))
        lines[number] = _forged_line(lines[number], draw)
    return "".join(lines).encode("utf-8", "replace")


def takeover(lines: list[str], draw: random.Random) -> Iterator[str]:
    """Yield a file that overrules the adjudicator by a new name, or changes a judge's findings."""
    yield lines[0]
    events = [event for event in map(json.loads, lines) if event["record"] == "event"]
    of_judges = draw.random() < 0.5
    if of_judges:
        events = [event for event in events if event["annotator"].startswith("judge:")]
        events = [event for event in events if event["kind"] in ("label_added", "judged")]
    else:
        events = [event for event in events if event["kind"] == "decided"]
    chosen = draw.sample(events, draw.randrange(1, len(events) + 1))
    for number, event in enumerate(chosen, 1):
        event.pop("chain", None)
        seq = number if draw.random() < 0.5 else 100_000 + number
        event |= {"id": str(uuid.UUID(int=draw.getrandbits(128), version=4)), "seq": seq}
        (_changed_judge if of_judges else _changed_decision)(event, draw)
        yield json.dumps(event) + "\n"


def _changed_judge(event: dict[str, Any], draw: random.Random) -> None:
    payload = event["payload"]
    if event["kind"] == "judged":
        payload["absent"] = draw.choice(([], payload["looks_at"]))
    elif draw.random() < 0.5:
        event["kind"] = "label_removed"
    else:
        payload["label"][draw.choice(("note", "mode"))] = "step_repetition"


def _changed_decision(event: dict[str, Any], draw: random.Random) -> None:
    original = event["payload"]["after"] or event["payload"]["before"]
    decision = {
        **original,
        "decided_by": "zoe",
        "decided_at": draw.choice((original["decided_at"], "2020-01-01T00:00:00Z", "2030", "")),
        "value": draw.choice(("present", "absent", "unsure")),
        "targets": draw.choice((original["targets"], [])),
    }
    if draw.random() < 0.3:
        decision["item"] = draw.choice((original["mode"], f"{original['mode']}@k1"))
    event["annotator"] = "zoe"
    event["payload"] = {"item": decision["item"], "before": None, "after": decision}


def _forged_line(line: str, draw: random.Random) -> str:
    with suppress(ValueError):
        record = json.loads(line)
        if isinstance(record, dict) and record.get("record") == "event":
            return json.dumps(_forged_event(record, draw)) + "\n"
    cells = line.rstrip("\n").split(",")
    if not line.lstrip().startswith(("{", "[")) and len(cells) > 3:
        cells[draw.randrange(len(cells))] = draw.choice(TEXTS + NUMBERS).replace("\n", " ")
        return ",".join(cells) + "\n"
    return _changed_words(line, draw)


def _changed_words(line: str, draw: random.Random) -> str:
    matches = list(re.finditer(r'"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?', line))
    if not matches:
        return line
    match = draw.choice(matches)
    word = draw.choice(NUMBERS) if draw.random() < 0.4 else json.dumps(draw.choice(TEXTS))
    return line[: match.start()] + word + line[match.end() :]


def _forged_event(record: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    changed = {**record, "id": str(uuid.UUID(int=draw.getrandbits(128), version=4))}
    changed["seq"] = draw.choice((record.get("seq"), 100_000 + draw.randrange(1_000), 1, 0, 2**63))
    payload = changed.get("payload")
    for _ in range(draw.randrange(1, 3)):
        match draw.randrange(6):
            case 0:
                changed["annotator"] = draw.choice((*NAMES, "bob"))
            case 1:
                changed["kind"] = draw.choice((*KINDS, "label_added", "nonsense"))
            case 2 if changed["kind"] == "label_added":
                changed["kind"] = "label_removed"
            case 3 if isinstance(payload, dict) and "after" in payload:
                changed["payload"] = {**payload, "before": payload["after"], "after": None}
            case 4:
                changed["pass"] = draw.choice((None, 0, 1, 2, 99, -1))
            case _:
                changed["replaces"] = [record.get("id")]
    return changed


def damaged(data: bytes, draw: random.Random) -> bytes:
    """Return a file that is damaged anywhere, as traces are."""
    return mutate(data, draw).data


WAYS: Final[Mapping[str, Callable[[bytes, random.Random], bytes]]] = {
    "fuzzed": damaged,
    "forged": forged,
}


# A try


def _all(home: Path, file_format: str, file: str, more: str, skip: bool) -> None:
    skipping = ("--skip-errors",) if skip and file_format != "jsonl" else ()
    one_more = ("export", "--format", more, "-o", "after.out")
    arguments = ("import", file, "--format", file_format, "--allow-new", *skipping, *IN_DB)
    codes = [run(split_command(arguments))]
    if codes == [0]:
        codes += [run(split_command((*later, *IN_DB))) for later in (*AFTER, one_more)]
    (home / "codes").write_text(json.dumps(codes))


@dataclass(frozen=True)
class WorkspaceBefore:
    """The tables, the verdicts by trace and the entries in force before an import."""

    state: State
    sides: Mapping[str, TraceSides]
    in_force: InForce

    @classmethod
    def of(cls, path: Path) -> WorkspaceBefore:
        """Read the workspace of a file."""
        tables = state(path)
        with closing(Workspace.open(path, create=False)) as workspace:
            return cls(
                tables, read_work_by_trace(workspace, load_mast()), workspace.entries_in_force()
            )


def guarded(tables: State) -> set[tuple[object, ...]]:
    """Return what no import may change: finished passes, visibility, and findings of judges."""
    passes = {row[:4]: row for row in tables["passes"] if row[6] is not None}
    fixed: set[tuple[object, ...]] = {
        ("pass", *key, row[4], row[6], row[11]) for key, row in passes.items() if not _is_judge(row)
    }
    for name in ("verdicts", "span_notes", "reviews"):
        fixed |= {(name, *row) for row in tables[name] if row[:4] in passes and not _is_judge(row)}
    people = [row for row in tables["labels"] if not _is_judge(row)]
    fixed |= {("label", *row) for row in people if _pass_of(row) in passes}
    fixed |= {("suggestion", *_without_time(row)) for row in tables["labels"] if _is_judge(row)}
    fixed |= {("judge", *value) for value in _judged_values(tables) if value[:4] in passes}
    return fixed | {("sight", *row) for row in tables["sights"]}


def _is_judge(row: tuple[object, ...]) -> bool:
    return str(row[0]).startswith("judge:")


COLUMNS: Final = [column.name for column in schema.labels.columns]


def _pass_of(row: tuple[object, ...]) -> tuple[object, ...]:
    names = ("annotator", "trace_id", "taxonomy", "pass_number")
    return tuple(row[COLUMNS.index(name)] for name in names)


def _without_time(row: tuple[object, ...]) -> tuple[object, ...]:
    index = COLUMNS.index("created_at")
    return (*row[:index], *row[index + 1 :])


def _judged_values(tables: State) -> set[tuple[object, ...]]:
    values = {row[:5]: row[5] for row in tables["verdicts"] if _is_judge(row)}
    for row in tables["labels"]:
        if _is_judge(row):
            values[(*_pass_of(row), row[COLUMNS.index("mode")])] = "present"
    return {(*key, value) for key, value in values.items()}


def overruled(before: WorkspaceBefore, path: Path) -> set[tuple[object, ...]]:
    """Return the decisions of before that an import has put out of force or out of the gold.

    The sides are those before: what a new annotator says may reopen a mode.
    """
    with closing(Workspace.open(path, create=False)) as workspace:
        in_force = workspace.entries_in_force()
        decisions = workspace.all_decisions(load_mast().ref)
    gone: set[tuple[object, ...]] = set()
    for (table, key), entry in before.in_force.items():
        now = in_force.get((table, key))
        if (
            now is None
            or now.annotator != entry.annotator
            or (table == schema.decisions.name and now != entry)
        ):
            gone.add((table, key, entry))
    for trace, sides in before.sides.items():
        after = replace(sides, decisions=decisions.get(trace, ()))
        gone |= _adjudicated(sides) - _adjudicated(after)
    return gone


def _adjudicated(sides: TraceSides) -> set[tuple[object, ...]]:
    gold = sides.gold(load_mast())
    return {
        (sides.trace_id, entry.mode, entry.value, entry.decided_by, entry.decided_at)
        for entry in gold.verdicts
        if entry.decided_by
    } | {
        (sides.trace_id, entry.mode, entry.target, entry.decided_by, entry.decided_at)
        for entry in gold.labels
        if entry.decided_by
    }


def attack(setting: Setting, number: int, template: Path, before: WorkspaceBefore) -> Outcome:
    """Change a file, import it into a copy of the workspace, and go on with that."""
    draw = setting.draw(number)
    file_format = list(IMPORT_FORMATS)[number % len(IMPORT_FORMATS)]
    way = "forged" if draw.random() < 0.4 else "fuzzed"
    data = (template / f"good.{file_format}").read_bytes()
    with setting.home() as home:
        for name in (DB, "run-1.json", "traces.json", "x.json"):
            shutil.copy(template / name, home / name)
        end = {"csv-long": "csv", "csv-wide": "csv", "jsonl": "jsonl", "page": "html"}.get(
            file_format, "json"
        )
        file = home / f"labels.{end}"
        file.write_bytes(WAYS[way](data, draw))
        more = list(EXPORT_FORMATS)[number // 2 % len(EXPORT_FORMATS)]
        work = partial(_all, home, file_format, file.name, more, draw.random() < 0.7)
        done = result_of(home, wait_for(forked(home, work)))
        failure = bad_end(home, done)
        accepted = 0
        if not failure:
            first, *later_codes = json.loads((home / "codes").read_text())
            accepted = int(first == 0)
            after = state(home / DB)
            if any(later_codes):
                failure = f"after it the commands end with {later_codes}: {done.err[-500:]}"
            elif not accepted:
                failure = (
                    "" if after == before.state else "it was refused, and changed the workspace"
                )
            elif gone := guarded(before.state) - guarded(after) | overruled(before, home / DB):
                failure = f"finished work of people has changed: {sorted(gone, key=repr)[:2]}"
            else:
                failure = unsound(home / DB, imported=True)
        if failure and setting.keep is not None:
            shutil.copy(file, setting.keep / f"{number}.{file_format}")
        title = f"{file_format}, {way}"
        failure = failure and f"#{number}: {failure}"
        return Outcome(setting.kind, title, failure, {"taken": accepted})


def tries(setting: Setting) -> Iterator[Outcome]:
    """Every format in turn."""
    template = seeds(setting)
    before = WorkspaceBefore.of(template / DB)
    for number in setting.numbers(WHOLE):
        yield attack(setting, number, template, before)
