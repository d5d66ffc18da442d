"""A study that changes under way: an open note is written in a real terminal, notes become a mode,
the mode is split, one leaves and one joins, a new lot comes, and gold says all of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mast_tui.adjudication import Adjudication, take_on_as_study_says
from mast_tui.adjudication.conflicts import take_side
from mast_tui.cli.command_line import split_command
from mast_tui.cli.dispatch import run
from mast_tui.exchange.migration.mapping import taxonomy_toml
from mast_tui.labels import Target
from mast_tui.session import Session
from mast_tui.study import assigned
from mast_tui.taxonomy.loader import from_dict, load_mast, load_taxonomy, to_dict
from mast_tui.taxonomy.model import OPEN_SLUG, Mode, Taxonomy
from mast_tui.traces.library import read_file, read_fully, samples_folder
from mast_tui.traces.model import Trace
from mast_tui.workspace import Workspace
from tests.terminal.screen import Terminal

FIRST_LOT = ("ad-restart-loop.jsonl", "support_desk_exchange.json")
SECOND_LOT = "email-relay-rejects.jsonl"
LEAD = ("--annotator", "carol")
ASKS = "asks_twice"
PARTS = ("asks_the_user_twice", "asks_a_tool_twice")

Tell = Callable[..., str]


@pytest.fixture(autouse=True)
def _samples(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copy two of the samples into the folder ``set``, and a third into ``later``."""
    for folder, names in (("set", FIRST_LOT), ("later", (SECOND_LOT,))):
        (home / folder).mkdir()
        for name in names:
            shutil.copy(samples_folder() / name, home / folder / name)
    monkeypatch.chdir(home)


@pytest.fixture
def tell(home: Path, capsys: pytest.CaptureFixture[str]) -> Tell:
    """Run a command on the workspace, in this process; what it prints."""

    def call(*words: str) -> str:
        capsys.readouterr()
        code = run(split_command([*words, "--workspace", str(home / "labels.db")]))
        out, err = capsys.readouterr()
        assert code == 0, err
        return out

    return call


def app(home: Path, who: str, *words: str) -> Terminal:
    place = ("--workspace", str(home / "labels.db"))
    return Terminal("set", *words, *place, "--annotator", who, home=home)


def trace_of(home: Path, name: str) -> Trace:
    (path,) = home.glob(f"*/{name}")
    trace = read_file(path, named=True).traces[0]
    read_fully(trace)
    return trace


def labels(
    home: Path, who: str, taxonomy: Taxonomy, name: str, *modes: str, note: str = ""
) -> None:
    """Somebody finishes a trace with these modes on its second span."""
    trace = trace_of(home, name)
    key = trace.span(1).key
    with closing(Workspace.open(home / "labels.db")) as workspace:
        session = Session.open(workspace, trace, taxonomy, who, blind=True)
        for mode in modes:
            session.toggle_label(mode, Target(key, key), suggestions_on_screen=False)
            if note:
                session.edit_label(session.labels[0].id, note=note)
        session.mark_read([trace.span(index).key for index in range(len(trace))])
        session.finish(open_modes="absent")


def write_note(home: Path) -> None:
    """Alice finds no mode for what she sees on a trace, and says so with two noughts."""
    with app(home, "alice") as terminal:
        terminal.until(r"mine to do · 2 traces .*alice · blind · 0 of 2 finished")
        terminal.press("enter")
        terminal.until(r"alice · blind · 0 of 2 finished(?s:.*)#1 ")
        terminal.press("down", "0", "0")
        terminal.until("Note on 0.0 Something, none of these")
        terminal.press("asks the same twice", "enter")
        terminal.until("0.0 at #2")
        terminal.press("D")
        terminal.until("1 of 2 finished")
        terminal.press("Q")
        assert terminal.ended() == 0


def split(home: Path, old: Taxonomy) -> Taxonomy:
    """Write the next version, in which the new mode is two, and the map to it."""

    def parts(mode: Mode) -> list[Mode]:
        codes = zip(PARTS, ("1.6", "1.7"), strict=True)
        return [
            replace(mode, slug=slug, code=code, name=slug.replace("_", " ")) for slug, code in codes
        ]

    modes = [new for mode in old.modes for new in (parts(mode) if mode.slug == ASKS else [mode])]
    new = from_dict(to_dict(replace(old, version="4", modes=tuple(modes))))
    (home / "next.toml").write_text(taxonomy_toml(new), "utf-8")
    (home / "map.toml").write_text(f"[modes]\n{ASKS} = {json.dumps(PARTS)}\n")
    return new


def decide(home: Path, taxonomy: Taxonomy) -> None:
    """Carol takes the first side of the one conflict."""
    with closing(Workspace.open(home / "labels.db")) as workspace:
        taken = take_on_as_study_says(workspace, taxonomy, "carol")
        works = [Adjudication(workspace, taxonomy, one, "carol") for one in taken]
        ((work, conflict),) = ((work, one) for work in works for one in work.gold.conflicts)
        work.decide(conflict, take_side(conflict, conflict.said[0].annotator))


@pytest.mark.slow
def test_a_study_goes_from_open_notes_to_gold_while_codebook_and_people_change(
    home: Path, tell: Tell
) -> None:
    people = ("--annotators", "alice,bob", "--adjudicators", "carol", "--open-modes", "absent")
    tell("study", "set", "set", *people, *LEAD)
    write_note(home)
    mast = load_mast()
    with closing(Workspace.open(home / "labels.db")) as workspace:
        (first,) = {one.trace_id for one in workspace.labels(annotator="alice")}
    names = sorted(FIRST_LOT, key=lambda name: trace_of(home, name).identity.trace_id != first)
    labels(home, "alice", mast, names[1], OPEN_SLUG, note="asks the same twice")
    labels(home, "bob", mast, names[0], OPEN_SLUG, note="the same is asked twice")
    labels(home, "bob", mast, names[1])
    category = mast.categories[0].id
    options = ("--category", category, "--group", "1", "-o", str(home / "mast-3+1.toml"))
    tell("taxonomy", "add", "Asks twice", *options, *LEAD)
    new = split(home, load_taxonomy(home / "mast-3+1.toml"))
    done = json.loads(
        tell("taxonomy", "migrate", "mast@3+1", "next.toml", "--map", "map.toml", "--json", *LEAD)
    )
    assert done["lost"] == []
    again = sorted((one["annotator"], one["modes"]) for one in done["look_again"])
    assert again == [(name, list(PARTS)) for name in ("alice", "alice", "bob")]
    # Each looks again where they had seen it, and says which of the two it was.
    labels(home, "alice", new, names[0], PARTS[0])
    labels(home, "alice", new, names[1], PARTS[1])
    labels(home, "bob", new, names[0], PARTS[0])
    tell("study", "leave", "bob", *LEAD)
    tell("study", "join", "dora", *LEAD)
    tell("study", "add", "later", *LEAD)
    with closing(Workspace.open(home / "labels.db")) as workspace:
        study = workspace.study(new.ref)
    assert study is not None
    assert len(study.batches) == 2
    assert not set(study.batches[1]) & set(assigned(study, "bob"))
    for name, modes in (("alice", (PARTS[0],)), ("dora", PARTS)):
        assert set(study.batches[1]) <= set(assigned(study, name))
        labels(home, name, new, SECOND_LOT, *modes)
    decide(home, new)
    out = home / "gold.json"
    tell("export", "--format", "gold", "-o", str(out), *LEAD)
    _check(json.loads(out.read_text("utf-8")), done["from"])


def _check(gold: dict[str, Any], old: str) -> None:
    """Gold holds the modes as they are now, whoever said what, who was there, and who decided."""
    assert (gold["taxonomy"]["ref"], old) == ("mast@4", "mast@3+1")
    assert set(PARTS) <= {mode["slug"] for mode in gold["taxonomy"]["modes"]}
    protocol = gold["protocol"]
    assert protocol["annotators"] == ["alice", "bob", "dora"]
    assert {one["annotator"] for one in protocol["memberships"]} == {"bob", "dora"}
    assert len(protocol["batches"]) == 2
    by_people = {
        tuple(sorted(side["name"] for side in trace["annotators"])): trace
        for trace in gold["traces"]
    }
    assert set(by_people) == {("alice", "bob"), ("alice", "dora")}
    found = [
        (verdict["slug"], verdict["value"], verdict["source"], verdict["decided_by"])
        for trace in gold["traces"]
        for verdict in trace["verdicts"].values()
        if verdict["value"] == "present" or verdict["source"] == "adjudicated"
    ]
    # Bob had not looked for the mode where nobody had written of it: alice's word stands alone.
    assert sorted(found) == [
        (PARTS[1], "absent", "adjudicated", "carol"),
        (PARTS[1], "present", "single", None),
        (PARTS[0], "present", "unanimous", None),
        (PARTS[0], "present", "unanimous", None),
    ]
