"""``mast-tui taxonomy``: differences, migrations and corrected definitions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.labels import Label, PassKind, Target, VerdictValue
from mast_tui.session import remember_person
from mast_tui.study import Study
from mast_tui.taxonomy.loader import load_mast, load_taxonomy
from mast_tui.workspace import NewEvent, TraceRecord, Workspace, find_workspace
from mast_tui.workspace.events.types import (
    Fact,
    LabelAdded,
    PassFinished,
    PassStarted,
    StudySet,
    VerdictSet,
)
from tests.cli.conftest import Cli, open_workspace

MAST = load_mast()
SHIPPED = (Path(__file__).parents[2] / "mast_tui" / "taxonomy" / "mast.toml").read_text("utf-8")
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
def shop(cli: Cli) -> None:
    """Files of two versions and a map, and a workspace with labels of alice and bob."""
    for name, text in (("old", OLD), ("same", SAME), ("new", NEW), ("map", MAP)):
        Path(f"{name}.toml").write_text(text)
    with open_workspace() as workspace:
        old = load_taxonomy(Path("old.toml"))
        workspace.add_taxonomy(old)
        for trace_id in ("t1", "t2"):
            workspace.register_trace(TraceRecord(trace_id))
        for name, mode in (("alice", "wrong"), ("bob", "slow")):
            label = Label(name, name, "t1", old.ref, mode, Target("k1", "k1"), note="here")
            other = "slow" if mode == "wrong" else "wrong"
            absent = VerdictSet(other, None, VerdictValue.ABSENT)
            append(workspace, name, PassStarted(PassKind.BLIND), LabelAdded(label), absent)
            append(workspace, name, PassFinished())


def append(workspace: Workspace, name: str, *facts: Fact) -> None:
    workspace.append([NewEvent(name, "t1", "shop@1", 1, fact) for fact in facts])


MIGRATE = ("taxonomy", "migrate", "shop@1", "new.toml", "--map", "map.toml")


def test_diff_reports_changed_definitions_and_modes(cli: Cli, shop: None) -> None:
    out = cli.ok("taxonomy", "diff", "old.toml", "same.toml").out
    assert "wording   slow: definition" in out
    assert "labels can stay under shop@1" in out
    assert cli.json("taxonomy", "diff", "old.toml", "same.toml")["same"] is True

    document = cli.json("taxonomy", "diff", "shop@1", "new.toml")
    assert (document["from"], document["to"], document["same"]) == ("shop@1", "shop@2", False)
    assert document["dropped"] == ["slow", "wrong"]
    assert document["added"] == ["too_slow", "wrong_price", "wrong_item"]
    assert [mode["from"] + mode["to"] for mode in document["renamed"]] == [["slow", "too_slow"]]
    assert [mode["to"] for mode in document["split"]] == [["wrong_price", "wrong_item"]]
    output = cli("taxonomy", "diff", "old.toml", "new.toml").out
    assert "renamed?  slow → too_slow" in output
    assert '  wrong = ["wrong_price", "wrong_item"]' in output
    skeleton = output.partition("[modes]")[2]
    Path("begun.toml").write_text(f"[modes]{skeleton}")
    cli.ok(*MIGRATE[:-1], "begun.toml")


def test_diff_needs_no_workspace(cli: Cli) -> None:
    Path("old.toml").write_text(OLD)
    cli.ok("taxonomy", "diff", "old.toml", "mast")
    message = "no such file and no such taxonomy"
    cli.refused("taxonomy", "diff", "old.toml", "nowhere", says=message)
    assert not find_workspace(None).exists()


def test_a_migration_carries_labels_over_and_is_undone(cli: Cli, shop: None) -> None:
    cli.refused(
        *MIGRATE[:4], says="has no mode 'slow', 'wrong'; map each under [modes] of --map FILE"
    )
    cli.refused(*MIGRATE[:3], code=2)
    cli.refused(*MIGRATE[:4], "--undo", code=2)
    trial = cli.json(*MIGRATE, "--dry-run")
    assert cli.json("import", "--list")["imports"] == []
    document = cli.json(*MIGRATE)
    assert (trial["dry_run"], trial["import"], document["dry_run"]) == (True, None, False)
    assert trial | {"dry_run": 0, "import": 0} == document | {"dry_run": 0, "import": 0}
    assert document["lost"] == []
    assert document["labels"] == {"carried": 1, "joined": 0, "look_again": 1, "dropped": 0}
    (reopened,) = document["look_again"]
    assert (reopened["annotator"], reopened["modes"]) == ("alice", ["wrong_price", "wrong_item"])
    assert (reopened["places"][0]["first"], reopened["places"][0]["note"]) == ("k1", "here")
    changes = [(mode["change"], mode["present"]) for mode in document["modes"]]
    assert changes == [("renamed", 1), ("split", 1)]
    # The new version is the default, and figures of the old one can be had.
    agree = ("agree", "--rounds", "0")
    assert cli.json(*agree)["taxonomy"] == "shop@2"
    assert cli.json(*agree, "--taxonomy", "shop@1")["modes"]
    queue = cli.json("study", "queue", "--kind", "changed", "--annotator", "alice")
    assert [trace["id"] for trace in queue["traces"]] == ["t1"]
    undone = cli("taxonomy", "migrate", "--undo").out
    assert undone.startswith("undid the migration shop@1 → shop@2")
    assert cli.json(*agree)["taxonomy"] == "shop@1"
    cli.refused("taxonomy", "migrate", "--undo", says="no migration in the workspace")
    out = cli(*MIGRATE).out
    assert "carried 2 labelled traces with 1 label over" in out
    assert "traces to check again: 1\n  t1 · alice · wrong_price, wrong_item" in out
    assert "labels lost: 0" in out


def test_an_annotator_sees_no_hidden_labels_of_a_migration(cli: Cli, shop: None) -> None:
    with open_workspace() as workspace:
        remember_person(workspace, "carol")
        append(workspace, "carol", PassStarted(PassKind.BLIND))
    document = cli.json(*MIGRATE, "--dry-run")
    assert (document["look_again"], document["labels"]["carried"]) == ([], 0)
    assert document["hidden"] == {"carried": 1, "look_again": 1, "dropped": 0, "left": 0}
    assert [mode["present"] for mode in document["modes"]] == [0, 0]
    assert document["sight"]["annotator"] == "carol"
    output = cli(*MIGRATE).out
    assert "carried 3 labelled traces with 0 labels over" in output
    assert "1 label of others is hidden from you and is carried over too" in output
    assert "traces to check again: 0, and 1 hidden from you" in output
    assert "labels lost: 0\n" in output
    with open_workspace() as workspace:
        others = [v.taxonomy for v in workspace.verdicts() if v.annotator != "carol"]
        assert others.count("shop@2") > 0  # hidden labels are carried over too


def test_only_the_lead_of_a_study_migrates(cli: Cli, shop: None) -> None:
    with open_workspace() as workspace:
        study = Study("shop@1", ("alice", "bob"), batches=(("t1", "t2"),))
        workspace.append([NewEvent("dora", None, "shop@1", None, StudySet(None, study))])
    cli.refused(*MIGRATE, "--annotator", "bob", says="only dora, who set up the study")
    cli.ok(*MIGRATE, "--annotator", "dora")


def test_a_map_may_be_json(cli: Cli, shop: None) -> None:
    Path("map.json").write_text(json.dumps({"modes": {"slow": "too_slow", "wrong": []}}))
    document = cli.json(*MIGRATE[:-1], "map.json")
    assert document["added"] == ["wrong_price", "wrong_item"]
    assert [label["mode"] for label in document["dropped"]] == ["wrong"]


@pytest.fixture
def labelled(cli: Cli) -> None:
    """A workspace in which two annotators have finished a trace and the rules have judged it."""
    calls = [{"role": "assistant", "content": f"Let me look again. {n % 2}"} for n in range(8)]
    Path("run.json").write_text(json.dumps(calls), encoding="utf-8")
    cli.ok("judge", "run.json", "--judge", "rules")
    absent = [VerdictSet(mode.slug, None, VerdictValue.ABSENT) for mode in MAST.modes]
    with open_workspace() as workspace:
        (trace,) = workspace.traces()
        for name in ("alice", "bob"):
            facts: list[Fact] = [PassStarted(PassKind.BLIND), *absent, PassFinished()]
            workspace.append([NewEvent(name, trace.trace_id, MAST.ref, 1, fact) for fact in facts])


def test_a_corrected_definition_keeps_labels_and_is_reported_with_figures(
    cli: Cli, labelled: None
) -> None:
    definition = " ".join(MAST.modes[0].definition.split()[:4])
    assert definition in SHIPPED
    Path("mine.toml").write_text(SHIPPED.replace(definition, f"Surely {definition}", 1))
    judge = ("judge", "run.json", "--judge", "rules")
    original = cli.json("agree")
    assert [revision["passes"] for revision in original["revisions"]] == [2]
    assert "texts of the modes" not in cli("status").out
    cli.ok(*judge, "--taxonomy", "mine.toml")
    corrected = cli.json("agree")
    assert {**corrected, "revisions": None} == {**original, "revisions": None}
    first, second = corrected["revisions"]
    assert (first["hash"], first["passes"]) == (MAST.content_hash, 2)
    assert (second["passes"], second["since"] > first["since"]) == (0, True)
    assert "the texts of the modes have changed once" in cli("status").out
    assert "The texts of the modes have changed once" in cli("agree").out
    for command in ("status", "report"):
        assert cli.json(command)["revisions"] == corrected["revisions"]
    taxonomy = cli.gold()["taxonomy"]
    assert taxonomy["revisions"] == corrected["revisions"]
    assert taxonomy["content_hash"] == second["hash"]
    assert taxonomy["modes"][0]["definition"].startswith("Surely ")
    (sheet,) = Path().glob("exported*.md")
    assert "texts of the modes have changed once" in sheet.read_text()
    # Without a file, the judge reads the text of the workspace.
    cli.ok(*judge, "--again")
    assert len(cli.json("status")["revisions"]) == 2


def test_another_code_under_the_same_version_is_refused(cli: Cli, labelled: None) -> None:
    Path("mine.toml").write_text(SHIPPED.replace('code = "1.1"', 'code = "1.9"', 1))
    for command in (("judge", "run.json", "--judge", "rules"), ("status",)):
        messages = ("has the code 1.9, not 1.1", "raise the version")
        cli.refused(*command, "--taxonomy", "mine.toml", says=messages)
    assert len(cli.json("status")["revisions"]) == 1
