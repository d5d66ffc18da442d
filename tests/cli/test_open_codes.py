"""``study notes`` and ``taxonomy``: open codes, new modes and agreement between versions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.labels import Label, PassKind, Target, VerdictValue
from mast_tui.session import remember_person
from mast_tui.study import Study
from mast_tui.taxonomy.loader import load_mast, load_taxonomy
from mast_tui.taxonomy.model import OPEN_CODE_SLUG
from mast_tui.workspace import NewEvent, TraceRecord, Workspace
from mast_tui.workspace.events.types import (
    Fact,
    LabelAdded,
    PassFinished,
    PassStarted,
    SpanNoteSet,
    StudySet,
    VerdictSet,
)
from tests.cli.conftest import Cli, open_workspace
from tests.judges.llm.server import MODEL, ModelServer, answer
from tests.traces.checks import CORPUS, needs_corpus

MAST = load_mast()
CATEGORY = MAST.categories[0].id
ESCAPE = "asks twice \x1b[31mred"


def label_trace(
    workspace: Workspace, annotator: str, trace_id: str, *facts: Fact, finished: bool = True
) -> None:
    """Append a pass in which all modes are absent, with further facts."""
    finish = [PassFinished()] if finished else []
    modes = [VerdictSet(mode.slug, None, VerdictValue.ABSENT) for mode in MAST.modes]
    all_facts: list[Fact] = [PassStarted(PassKind.BLIND), *modes, *facts, *finish]
    workspace.append([NewEvent(annotator, trace_id, MAST.ref, 1, fact) for fact in all_facts])


def open_label(annotator: str, trace_id: str, note: str) -> LabelAdded:
    name = f"{annotator}{trace_id}"
    label = Label(
        name, annotator, trace_id, MAST.ref, OPEN_CODE_SLUG, Target("k1", "k1"), note=note
    )
    return LabelAdded(label)


@pytest.fixture
def notes(cli: Cli) -> None:
    """Notes of alice and bob on three traces; bob has not finished the last."""
    with open_workspace() as workspace:
        workspace.add_taxonomy(MAST)
        for trace_id in ("t1", "t2", "t3"):
            workspace.register_trace(TraceRecord(trace_id))
        label_trace(workspace, "alice", "t1", open_label("alice", "t1", "asks twice"))
        label_trace(workspace, "alice", "t2", SpanNoteSet("k2", "", "wrong customer #who"))
        label_trace(workspace, "bob", "t1", open_label("bob", "t1", ESCAPE))
        label_trace(workspace, "bob", "t2")
        label_trace(workspace, "bob", "t3", open_label("bob", "t3", "asks twice"), finished=False)


def group_names(cli: Cli, *options: str) -> list[str]:
    return [group["name"] for group in cli.json("study", "notes", *options)["groups"]]


def test_notes_are_listed_in_groups_with_saturation(cli: Cli, notes: None) -> None:
    document = cli.json("study", "notes")
    first, other = document["groups"]
    assert (first["name"], len(first["places"])) == ("asks twice", 3)
    assert (other["name"], len(other["places"])) == ("#who", 1)
    assert first["places"][0] == {
        "annotator": "alice", "trace_id": "t1", "kind": "label", "first": "k1", "last": "k1",
        "quote": None, "text": "asks twice", "tags": [], "given": [],
    }  # fmt: skip
    assert document["saturation"] == {
        "traces": 2,
        "kinds": 2,
        "since_last_new": 0,
        "new_in_last_10": 2,
        "looked_at": [
            {"trace_id": "t1", "kinds": 1, "new": ["asks twice"]},
            {"trace_id": "t2", "kinds": 1, "new": ["#who"]},
        ],
    }
    assert "2 different failures (modes and groups of notes)" in cli("study", "notes").out
    tagged = cli("study", "notes", "--tag", "who").out
    assert "2 #who\n  t2 · alice · k2 · wrong customer #who\n" in tagged
    matches = cli("study", "notes", "--search", "red").out
    assert "\x1b" not in matches
    assert "␛[31mred" in matches
    cli.refused("study", "notes", "--group", "9", says="there is no group 9")


def test_groups_of_a_model_are_for_annotators_who_may_see_its_notes(
    cli: Cli, notes: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)

    def source_and_groups(*options: str) -> tuple[str, list[str]]:
        return cli.json("study", "notes", *options)["grouped_by"], group_names(cli, *options)

    assert "no model is set" in cli("study", "notes", "--by", "model").err
    proposed = {"groups": [{"name": "Repeats itself", "notes": [1, 2]}]}
    with ModelServer(lambda *_: answer(json.dumps(proposed))) as server:
        (tmp_path / "mast-tui").mkdir()
        file = tmp_path / "mast-tui" / "config.toml"
        file.write_text(f'[judge]\nmodel = "{MODEL}"\nbase_url = "{server.base_url}"\n')
        err = cli.ok("study", "notes", "--by", "model").err
        (asked,) = server.chats
    assert "The texts of 2 notes are sent to" in err
    assert "1 request, 100 tokens in and 50 out" in err
    # A tag is the annotator's own name for the note, so the model is not asked.
    assert "wrong customer" not in json.dumps(asked.body)
    assert source_and_groups() == (MODEL, ["Repeats itself", "#who"])
    assert source_and_groups("--annotator", "alice") == ("words", ["asks twice", "#who"])
    assert source_and_groups("--by", "words") == ("words", ["asks twice", "#who"])


def test_tags_are_added_searched_exported_and_removed(cli: Cli, notes: None) -> None:
    as_bob = ("--annotator", "bob")
    added = cli.json("study", "notes", "--search", "customer", "--give", "#Mixup", *as_bob)
    (group,) = added["groups"]
    assert (group["name"], group["places"][0]["tags"]) == ("#mixup", ["mixup", "who"])
    out = cli("study", "notes", "--tag", "mixup", *as_bob).out
    assert "wrong customer #who #mixup" in out
    # Tags are shown with the labels of their annotator only.
    cli("study", "notes", "--search", "asks", "--give", "again", *as_bob)
    assert group_names(cli, "--annotator", "alice") == ["#again", "#mixup"]
    assert group_names(cli, "--annotator", "carol") == []
    text = cli.export("jsonl")
    assert '"record": "tags"' in text
    Path("all.jsonl").write_text(text)
    other = ("--workspace", "copy.db")
    for _ in range(2):
        cli.ok("import", "--format", "jsonl", "all.jsonl", *other)
    assert cli.export("jsonl", *other) == text
    removed = cli("study", "notes", "--tag", "mixup", "--give", "mixup", *as_bob)
    assert "#mixup: removed from 1" in removed.err
    assert group_names(cli, "--tag", "mixup", *as_bob) == []
    assert "one word" in cli("study", "notes", "--give", "two words", *as_bob).err


def test_annotators_see_notes_of_others_on_traces_they_have_finished(cli: Cli, notes: None) -> None:
    def places(name: str) -> list[dict[str, str]]:
        document = cli.json("study", "notes", "--annotator", name)
        return [place for group in document["groups"] for place in group["places"]]

    texts = {place["text"] for place in places("bob")}
    assert texts == {"asks twice", ESCAPE, "wrong customer #who"}
    assert {place["trace_id"] for place in places("alice")} == {"t1", "t2"}
    assert places("carol") == []
    assert cli.json("study", "notes", "--annotator", "carol")["saturation"]["traces"] == 0
    with open_workspace() as workspace:
        passes = [p for p in workspace.passes() if p.revealed_at is not None]
    assert sorted(p.trace_id for p in passes) == ["t1", "t1", "t2"]


def test_an_empty_list_of_notes_names_the_keys_for_open_codes(cli: Cli) -> None:
    with open_workspace():
        pass
    assert "the keys 0 0 label a failure that no mode describes" in cli("study", "notes").out


ADD_MODE = ("taxonomy", "add", "Asks twice", "--category", CATEGORY)


def test_a_mode_is_made_of_a_group_and_undone(cli: Cli, notes: None) -> None:
    add = (*ADD_MODE, "--group", "1")
    trial = cli.json(*add, "--dry-run")
    assert (trial["file"], Path("mast-3+1.toml").exists()) == (None, False)
    document = cli.json(*add, "--definition", "It asks what it was told.")
    assert document["labels"] == trial["labels"] == {**document["labels"], "carried": 3}
    assert document["mode"] == {"slug": "asks_twice", "code": "1.6", "name": "Asks twice"}
    assert len(document["places"]) == 3
    assert load_taxonomy(Path(document["file"])).ref == "mast@3+1"
    left = cli.json("study", "notes", "--taxonomy", document["file"])
    assert [group["name"] for group in left["groups"]] == ["#who"]
    assert left["saturation"]["looked_at"][0]["new"] == ["asks_twice"]
    agreed = cli.json("agree", "--rounds", "0")
    assert agreed["taxonomy"] == "mast@3+1"
    assert agreed["modes"]["1.6"]["raw_agreement"]["value"] == 1.0
    cli.ok("taxonomy", "migrate", "--undo")
    assert len(group_names(cli)) == 2


def test_a_mode_that_cannot_be_made_is_refused(cli: Cli, notes: None) -> None:
    for options, message in (
        (("--group", "1", "--category", "nowhere"), "has no category 'nowhere'"),
        (("--search", "nothing such", "--category", CATEGORY), "no open code is chosen"),
        (("--category", CATEGORY), "choose the open codes with --group"),
    ):
        result = cli("taxonomy", "add", "Asks twice", *options)
        assert result.code != 0
        assert message in result.err
    # Under a study, only its lead may add a mode.
    with open_workspace() as workspace:
        fact = StudySet(None, Study(MAST.ref, ("alice", "bob"), batches=(("t1", "t2"),)))
        workspace.append([NewEvent("olga", None, MAST.ref, None, fact)])
        remember_person(workspace, "alice")
    cli.refused(*ADD_MODE, "--group", "1", says="only olga")
    assert not list(Path().glob("*.toml"))


def test_agreement_is_compared_between_versions_on_the_same_traces(cli: Cli, notes: None) -> None:
    cli.refused("taxonomy", "agree", says="give the taxonomies to compare")
    cli.ok(*ADD_MODE, "--group", "1")
    first, last = cli.json("taxonomy", "agree", "--rounds", "0")["versions"]
    assert (first["taxonomy"], last["taxonomy"]) == ("mast@3", "mast@3+1")
    assert (first["modes"], last["modes"], last["same_traces"]) == (14, 15, None)
    same = first["same_traces"]
    assert same["traces"] == first["traces"] == last["traces"] == 2
    # All verdicts were absent before; both annotators label the new mode.
    assert same["here"]["cohen_kappa"]["value"] is None
    assert same["last"]["cohen_kappa"]["value"] == 1.0
    assert "κ mast@3+1" in cli("taxonomy", "agree", "--rounds", "0").out
    cli.refused("taxonomy", "agree", "mast@9", "mast@3", says="no such taxonomy in the workspace")


@needs_corpus
def test_three_versions_of_mast_agree_on_its_human_labels(cli: Cli) -> None:
    labels = CORPUS / "mast-human" / "annotations_rounds_1_2.json"
    cli.ok("import", labels, "--format", "mast-human", "--allow-new")
    for name in ("early-mast-18", "interim-mast-17"):
        migrate = ("taxonomy", "migrate", f"{name}@1", "mast", "--map", f"{name}-to-mast")
        document = cli.json(*migrate)
        assert (document["lost"], document["look_again"]) == ([], [])
    people = "annotator_1,annotator_2,annotator_3"
    versions = cli.json("taxonomy", "agree", "--annotators", people, "--rounds", "0")["versions"]
    rows = {
        version["taxonomy"]: (version["modes"], version["traces"], version["cohen_kappa"]["value"])
        for version in versions
    }
    assert rows == {
        "early-mast-18@1": (18, 5, 1.0),
        "interim-mast-17@1": (17, 5, 1.0),
        "mast@3": (14, 10, 1.0),
    }
    for version in versions[:-1]:
        same = version["same_traces"]
        assert same["traces"] == 5
        kappas = [same[side]["cohen_kappa"] for side in ("here", "last")]
        assert [(kappa["value"], kappa["ci"]) for kappa in kappas] == [(1.0, None)] * 2
    assert [version["look_again"] for version in versions] == [0, 0, 0]
