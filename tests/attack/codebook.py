"""Migrations to random versions of a codebook, killed on the way and undone."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from mast_tui.taxonomy.loader import load_mast
from tests.attack.trying import (
    DB,
    PLACE,
    Outcome,
    Setting,
    State,
    command,
    differing,
    kill,
    sample_home,
    seconds_of,
    standing,
    state,
    unsound,
)

WHOLE: Final = 300

MAST: Final = load_mast()
NEXT: Final = "mast@4"
MIGRATE: Final = (
    *("taxonomy", "migrate", "mast@3", "next.toml", "--map", "map.json", *PLACE, "--json"),
)
UNDO: Final = ("taxonomy", "migrate", "--undo", *PLACE)

Becomes = Mapping[str, tuple[str, ...]]
"""The new modes of each old one."""

Place = tuple[object, ...]


def next_codebook(home: Path, draw: random.Random) -> Becomes:
    """Write a random next version of MAST and the map to it."""
    becomes: dict[str, tuple[str, ...]] = {}
    merged: list[str] = []
    for mode in MAST.modes:
        match draw.randrange(6):
            case 0:
                becomes[mode.slug] = (f"new_{mode.slug}",)
            case 1:
                becomes[mode.slug] = tuple(
                    f"{mode.slug}_part{n}" for n in range(draw.choice((2, 3)))
                )
            case 2 if merged:
                becomes[mode.slug] = (draw.choice(merged),)
            case 3:
                becomes[mode.slug] = ()
            case _:
                becomes[mode.slug] = (mode.slug,)
        if len(becomes[mode.slug]) == 1:
            merged.append(becomes[mode.slug][0])
    slugs = list(dict.fromkeys(slug for targets in becomes.values() for slug in targets))
    lines = ['id = "mast"', 'version = "4"', 'name = "MAST"', "[[categories]]"]
    lines += ['id = "all"', 'name = "All"']
    for number, slug in enumerate(slugs or ["only_mode"], 1):
        lines += ["[[modes]]", f'slug = "{slug}"', f'code = "1.{number}"', f'name = "Mode {slug}"']
        lines += ['category = "all"', f'definition = "What {slug} is."']
    (home / "next.toml").write_text("\n".join(lines) + "\n", "utf-8")
    table = {old: new[0] if len(new) == 1 else list(new) for old, new in becomes.items()}
    (home / "map.json").write_text(json.dumps({"modes": table}), "utf-8")
    return becomes


def labels_of(path: Path, taxonomy: str) -> set[tuple[str, Place]]:
    """Return mode and place of the labels of people: annotator, trace, pass and spans."""
    with closing(sqlite3.connect(path)) as database:
        rows = database.execute(
            "SELECT mode, annotator, trace_id, pass_number, first_key, last_key, quote "
            "FROM labels WHERE taxonomy = ? AND annotator NOT LIKE 'judge:%'",
            (taxonomy,),
        ).fetchall()
    return {(mode, tuple(place)) for mode, *place in rows}


def _old_rows(rows: State) -> Mapping[str, object]:
    return {name: tuple(row for row in table if NEXT not in row) for name, table in rows.items()}


def _listed(document: dict[str, Any]) -> set[tuple[str, str, str]]:
    places = [(one["annotator"], one["trace_id"], one["mode"]) for one in document["dropped"]]
    for one in document["look_again"]:
        places += [(one["annotator"], one["trace_id"], mode) for mode in one["modes"]]
        places += [(one["annotator"], one["trace_id"], place["mode"]) for place in one["places"]]
    return set(places)


def _lost(home: Path, becomes: Becomes, documents: list[dict[str, Any]]) -> str:
    new = labels_of(home / DB, NEXT)
    listed = set().union(*map(_listed, documents))
    left = {
        (one["annotator"], one["trace_id"]) for document in documents for one in document["left"]
    }
    for mode, place in labels_of(home / DB, MAST.ref):
        targets = becomes.get(mode, (mode,))
        annotator, trace = str(place[0]), str(place[1])
        if len(targets) == 1 and (targets[0], place) in new:
            continue
        if (annotator, trace, mode) in listed or (annotator, trace) in left:
            continue
        if len(targets) > 1 and any((annotator, trace, one) in listed for one in targets):
            continue
        return f"{mode} → {targets} of {place} is neither carried over nor listed"
    if any(document["lost"] for document in documents):
        return f"the command says that labels are lost: {documents[-1]['lost'][:2]}"
    return ""


def attack(home: Path, draw: random.Random, seconds: float) -> str:
    """Migrate, killed on the way, migrate again, and take it back; return what does not hold."""
    becomes = next_codebook(home, draw)
    before = state(home / DB)
    dry = command(home, *MIGRATE, "--dry-run")
    if dry.fell or dry.code != 0:
        return f"--dry-run: {dry.fell or dry.err[-500:]}"
    if state(home / DB) != before:
        return "--dry-run has changed the workspace"
    documents = [json.loads(dry.out)]
    done = kill(home, MIGRATE, draw, seconds)
    if done is not None:
        if done.fell or done.code != 0:
            return done.fell or done.err[-500:]
        documents.append(json.loads(done.out))
    if fell := unsound(home / DB):
        return f"after the kill: {fell}"
    if _old_rows(state(home / DB)) != _old_rows(before):
        return "after the kill the old version is not as it was"
    again = command(home, *MIGRATE)
    if again.fell or again.code != 0:
        return f"again: {again.fell or again.err[-500:]}"
    documents.append(json.loads(again.out))
    if _old_rows(state(home / DB)) != _old_rows(before):
        return "the old version is not as it was"
    if fell := unsound(home / DB) or _lost(home, becomes, documents[:1]):
        return fell
    return _taken_back(home, before)


def _taken_back(home: Path, before: State) -> str:
    undone = command(home, *UNDO)
    while undone.code == 0:
        undone = command(home, *UNDO)
    if undone.fell:
        return f"--undo: {undone.fell}"
    if "no migration" not in undone.err:
        return f"--undo is refused: {undone.err[-500:]}"
    names = differing(standing(before), standing(state(home / DB)))
    return f"not as before after --undo: {names}" if names else ""


def tries(setting: Setting) -> Iterator[Outcome]:
    """Migrate to one random version after the other."""
    numbers = setting.numbers(WHOLE)
    if not numbers:
        return
    home = sample_home(setting)
    with setting.home(home) as alone:
        next_codebook(alone, setting.draw(-1))
        seconds = seconds_of(alone, MIGRATE)
    for number in numbers:
        with setting.home(home) as copy:
            fell = attack(copy, setting.draw(number), seconds)
        yield Outcome(setting.kind, "taxonomy migrate, killed and taken back", fell)
