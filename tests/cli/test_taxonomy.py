"""``mast-tui taxonomy``: what changed, and labels carried over, told as text and as JSON."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from mast_tui.labels import Label, PassKind, Target, VerdictValue
from mast_tui.session import remember_person
from mast_tui.study import Study
from mast_tui.taxonomy.loader import load_taxonomy
from mast_tui.workspace import NewEvent, TraceRecord, Workspace, find_workspace
from mast_tui.workspace.events.types import (
    Fact,
    LabelAdded,
    PassFinished,
    PassStarted,
    StudySet,
    VerdictSet,
)
from tests.cli.conftest import Cli

OLD = """
id = "shop"
version = "1"
[[categories]]
id = "all"
[[modes]]
slug = "slow"
code = "1"
name = "Too slow"
category = "all"
definition = "It takes longer than it may, with nobody told of it."
[[modes]]
slug = "wrong"
code = "2"
name = "Wrong"
category = "all"
"""
SAME = OLD.replace("with nobody told of it", "and nobody is told")
NEW = """
id = "shop"
version = "2"
[[categories]]
id = "all"
[[modes]]
slug = "too_slow"
code = "1"
name = "Too slow for the customer"
category = "all"
definition = "It takes longer than it may, with nobody told of it."
[[modes]]
slug = "wrong_price"
code = "2"
name = "Wrong price"
category = "all"
[[modes]]
slug = "wrong_item"
code = "3"
name = "Wrong item"
category = "all"
"""
MAP = '[modes]\nslow = "too_slow"\nwrong = ["wrong_price", "wrong_item"]\n'


@pytest.fixture
def shop(cli: Cli, tmp_path: Path) -> Path:
    """Two versions and the map as files, and a workspace with what alice and bob said."""
    for name, text in (("old", OLD), ("same", SAME), ("new", NEW), ("map", MAP)):
        (tmp_path / f"{name}.toml").write_text(text)
    database_path = find_workspace(None)
    with closing(Workspace.open(database_path)) as workspace:
        old = load_taxonomy(tmp_path / "old.toml")
        workspace.add_taxonomy(old)
        for trace_id in ("t1", "t2"):
            workspace.register_trace(TraceRecord(trace_id))
        for name, mode in (("alice", "wrong"), ("bob", "slow")):
            own = Label(name, name, "t1", old.ref, mode, Target("k1", "k1"), note="here")
            other = "slow" if mode == "wrong" else "wrong"
            facts: list[Fact] = [
                PassStarted(PassKind.BLIND),
                LabelAdded(own),
                VerdictSet(other, None, VerdictValue.ABSENT),
                PassFinished(),
            ]
            workspace.append([NewEvent(name, "t1", old.ref, 1, fact) for fact in facts])
    return database_path


def test_the_same_modes_in_other_words_can_stay(cli: Cli, shop: Path) -> None:
    done = cli("taxonomy", "diff", "old.toml", "same.toml")
    assert done.code == 0
    assert "wording   slow: definition" in done.out
    assert "labels can stay under shop@1" in done.out
    assert cli("taxonomy", "diff", "old.toml", "same.toml", "--json").json["same"] is True


def test_other_modes_are_told_with_what_they_may_have_become(cli: Cli, shop: Path) -> None:
    document = cli("taxonomy", "diff", "shop@1", "new.toml", "--json").json
    assert (document["from"], document["to"], document["same"]) == ("shop@1", "shop@2", False)
    assert document["dropped"] == ["slow", "wrong"]
    assert document["added"] == ["too_slow", "wrong_price", "wrong_item"]
    assert [one["from"] + one["to"] for one in document["renamed"]] == [["slow", "too_slow"]]
    assert [one["to"] for one in document["split"]] == [["wrong_price", "wrong_item"]]
    output = cli("taxonomy", "diff", "old.toml", "new.toml").out
    assert "renamed?  slow → too_slow" in output
    assert '  wrong = ["wrong_price", "wrong_item"]' in output
    skeleton = output.partition("[modes]")[2]
    Path("begun.toml").write_text(f"[modes]{skeleton}")
    assert cli("taxonomy", "migrate", "shop@1", "new.toml", "--map", "begun.toml").code == 0


def test_diff_needs_no_workspace(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "old.toml").write_text(OLD)
    assert cli("taxonomy", "diff", "old.toml", "mast").code == 0
    done = cli("taxonomy", "diff", "old.toml", "nowhere")
    assert (done.code, "no such file, and no taxonomy of that name" in done.err) == (1, True)
    assert not find_workspace(None).exists()


def test_a_migration_is_tried_made_told_and_taken_back(cli: Cli, shop: Path) -> None:
    arguments = ("taxonomy", "migrate", "shop@1", "new.toml", "--map", "map.toml", "--json")
    tried = cli(*arguments, "--dry-run").json
    assert len(cli("import", "--list", "--json").json["imports"]) == 0
    document = cli(*arguments).json
    assert (tried["dry_run"], tried["import"], document["dry_run"]) == (True, None, False)
    same = {"dry_run", "import"}
    assert {k: v for k, v in tried.items() if k not in same} == {
        k: v for k, v in document.items() if k not in same
    }
    assert document["lost"] == []
    assert document["labels"] == {"carried": 1, "joined": 0, "look_again": 1, "dropped": 0}
    (again,) = document["look_again"]
    assert (again["annotator"], again["modes"]) == ("alice", ["wrong_price", "wrong_item"])
    assert (again["places"][0]["first"], again["places"][0]["note"]) == ("k1", "here")
    assert [(mode["change"], mode["present"]) for mode in document["modes"]] == [
        ("renamed", 1),
        ("split", 1),
    ]
    # Figures of both can be had, and the new one is what is meant unless the old one is named.
    assert cli("agree", "--json", "--rounds", "0").json["taxonomy"] == "shop@2"
    assert cli("agree", "--json", "--rounds", "0", "--taxonomy", "shop@1").json["modes"]
    queue = cli("study", "queue", "--kind", "changed", "--annotator", "alice", "--json").json
    assert [trace["id"] for trace in queue["traces"]] == ["t1"]
    assert cli("taxonomy", "migrate", "--undo").out.startswith(
        "undid the migration shop@1 → shop@2"
    )
    assert cli("agree", "--json", "--rounds", "0").json["taxonomy"] == "shop@1"
    done = cli("taxonomy", "migrate", "--undo")
    assert (done.code, "no migration in the workspace" in done.err) == (1, True)


def test_as_text_it_lists_what_is_to_do(cli: Cli, shop: Path) -> None:
    done = cli("taxonomy", "migrate", "shop@1", "new.toml", "--map", "map.toml")
    assert "carried 2 readings with 1 label over" in done.out
    assert "traces to look at again: 1\n  t1 · alice · wrong_price, wrong_item" in done.out
    assert "labels lost: 0" in done.out


def test_what_is_missing_is_said_in_words(cli: Cli, shop: Path) -> None:
    done = cli("taxonomy", "migrate", "shop@1", "new.toml")
    assert done.code == 1
    assert "has no mode 'slow', 'wrong'; say with --map FILE" in done.err
    assert cli("taxonomy", "migrate", "shop@1").code == 2
    assert cli("taxonomy", "migrate", "shop@1", "new.toml", "--undo").code == 2


def test_who_labels_here_is_told_only_of_what_they_may_see(cli: Cli, shop: Path) -> None:
    with closing(Workspace.open(shop)) as workspace:
        remember_person(workspace, "carol")
        facts: list[Fact] = [PassStarted(PassKind.BLIND)]
        workspace.append([NewEvent("carol", "t1", "shop@1", 1, fact) for fact in facts])
    arguments = ("taxonomy", "migrate", "shop@1", "new.toml", "--map", "map.toml", "--json")
    document = cli(*arguments, "--dry-run").json
    assert document["look_again"] == []
    assert document["labels"]["carried"] == 0
    assert document["hidden"] == {"carried": 1, "look_again": 1, "dropped": 0, "left": 0}
    assert [mode["present"] for mode in document["modes"]] == [0, 0]
    assert document["sight"]["annotator"] == "carol"
    output = cli(*arguments[:-1]).out
    assert "carried 3 readings with 0 labels over" in output
    assert "1 label of others is hidden from you and is carried over too" in output
    assert "traces to look at again: 0, and 1 hidden from you" in output
    assert "labels lost: 0\n" in output
    with closing(Workspace.open(shop)) as workspace:
        kept = [x.taxonomy for x in workspace.verdicts() if x.annotator != "carol"]
        assert kept.count("shop@2") > 0  # the hidden ones are there


def test_under_a_study_its_lead_alone_migrates(cli: Cli, shop: Path) -> None:
    with closing(Workspace.open(shop)) as workspace:
        study = Study("shop@1", ("alice", "bob"), batches=(("t1", "t2"),))
        workspace.append([NewEvent("dora", None, "shop@1", None, StudySet(None, study))])
    arguments = ("taxonomy", "migrate", "shop@1", "new.toml", "--map", "map.toml")
    done = cli(*arguments, "--annotator", "bob")
    assert (done.code, "only dora, who set it up" in done.err) == (1, True)
    assert cli(*arguments, "--annotator", "dora").code == 0


def test_json_of_a_map_is_read_too(cli: Cli, shop: Path) -> None:
    document = {"modes": {"slow": "too_slow", "wrong": []}}
    Path("map.json").write_text(json.dumps(document))
    arguments = ("taxonomy", "migrate", "shop@1", "new.toml", "--map", "map.json", "--json")
    made = cli(*arguments).json
    assert made["added"] == ["wrong_price", "wrong_item"]
    assert [label["mode"] for label in made["dropped"]] == ["wrong"]
